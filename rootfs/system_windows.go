package rootfs

import (
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"

	"github.com/rootbound/rootbound/roots"
)

const openNonblock = 0

const namesFold = true

func device(fs.FileInfo) uint64 { return 0 }

// identify opens path, without following a link at its end, to ask which file it is.
func identify(path string, _ fs.FileInfo) roots.FileID {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return roots.FileID{}
	}
	h, err := windows.CreateFile(name, 0, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil,
		windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return roots.FileID{}
	}
	defer windows.CloseHandle(h)
	var info windows.ByHandleFileInformation
	if windows.GetFileInformationByHandle(h, &info) != nil {
		return roots.FileID{}
	}
	return roots.FileID{
		Volume: uint64(info.VolumeSerialNumber),
		Index:  uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow),
	}
}

// split cuts a path into its elements, "." and ".." kept, and says what it starts from: a volume with a backslash, or
// "" when relative. A path relative to a drive's own directory (C:x), to no drive (\x), or of the object manager (\\?\x)
// has a top that no root has.
func split(path string) (top string, elems []string) {
	path = filepath.FromSlash(path)
	volume := filepath.VolumeName(path)
	rest := path[len(volume):]
	switch {
	case strings.HasPrefix(rest, `\`):
		top = strings.ToUpper(volume) + `\`
	case volume != "":
		top = volume
	}
	for e := range strings.SplitSeq(rest, `\`) {
		if e != "" {
			elems = append(elems, e)
		}
	}
	return top, elems
}

// validName refuses what Windows would read as another name: devices, streams, trailing dots and blanks.
func validName(e string) bool {
	return e == "." || e == ".." ||
		filepath.IsLocal(e) && !strings.ContainsAny(e, "\x00:*?\"<>|") && !strings.HasSuffix(e, ".") && !strings.HasSuffix(e, " ")
}
