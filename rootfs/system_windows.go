package rootfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/windows"

	"github.com/rootbound/rootbound/roots"
)

const openNonblock = 0

const namesFold = true

// birthIn says when what is described was made.
func birthIn(info fs.FileInfo) time.Time {
	if a, ok := info.Sys().(*syscall.Win32FileAttributeData); ok {
		return time.Unix(0, a.CreationTime.Nanoseconds())
	}
	return time.Time{}
}

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

// sameFile is false of nil.
func sameFile(a, b fs.FileInfo) bool { return os.SameFile(a, b) }

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

// identity is what tells one state of a file from another, beside its size and time.
func identity(info fs.FileInfo) [4]int64 {
	if d, ok := info.Sys().(*syscall.Win32FileAttributeData); ok {
		return [4]int64{d.CreationTime.Nanoseconds(), int64(d.FileAttributes)}
	}
	return [4]int64{}
}

// linkCount says how many hard links a file has.
func linkCount(f *os.File) (uint64, error) {
	var info windows.ByHandleFileInformation
	err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info)
	return uint64(info.NumberOfLinks), err
}

var errLocked error = windows.ERROR_LOCK_VIOLATION

// lock takes the lock of a file, which ends with the process at the latest, or says errLocked. It is of one byte that no
// file reaches.
func lock(f *os.File) error {
	at := &windows.Overlapped{OffsetHigh: 1 << 30}
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
}

// keep gives a new file what an old one has: here, nothing but what it has from its directory.
func keep(*os.File, *os.File, fs.FileInfo) error { return nil }

// mayWrite says why this process may not write a file.
func mayWrite(_ *os.File, info fs.FileInfo) error {
	if info.Mode().Perm()&0o200 == 0 {
		return Permission
	}
	return nil
}

func syncRoot(*os.Root) error { return nil } // Windows has nothing for that
