//go:build unix

package roots

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const (
	// openNonblock keeps the opening of a FIFO that took the place of a file from waiting for its other end.
	openNonblock = syscall.O_NONBLOCK
	// openNoFollow refuses a link that took the place of a resolved path.
	openNoFollow = syscall.O_NOFOLLOW
)

// superuserHome is a home whatever the user.
const superuserHome = "/root"

func identityOf(path string) (FileID, error) {
	info, err := os.Stat(path)
	if err != nil {
		return FileID{}, err
	}
	return identify(nil, info)
}

func identify(_ *os.File, info fs.FileInfo) (FileID, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return FileID{}, errors.New("the system does not say which file it is")
	}
	return FileID{Volume: uint64(st.Dev), Index: uint64(st.Ino)}, nil
}
