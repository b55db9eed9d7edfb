package roots

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

const (
	openNonblock = 0
	openNoFollow = 0
)

// superuserHome is a home whatever the user: there is none.
const superuserHome = ""

// identityOf asks for no right, so that it also works for a directory that may not be listed.
func identityOf(path string) (FileID, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return FileID{}, err
	}
	h, err := windows.CreateFile(name, 0, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return FileID{}, err
	}
	f := os.NewFile(uintptr(h), path)
	defer f.Close()
	return identify(f, nil)
}

func identify(f *os.File, _ fs.FileInfo) (FileID, error) {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info); err != nil {
		return FileID{}, err
	}
	return FileID{
		Volume: uint64(info.VolumeSerialNumber),
		Index:  uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow),
	}, nil
}
