//go:build unix

package statefile

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives f to the owner of the file that it takes the place of, where that is somebody else and it can be done.
func keepOwner(f *os.File, of fs.FileInfo) error {
	st, ok := of.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return f.Chown(int(st.Uid), int(st.Gid))
}

// hold locks a file that is being written until release is called, or this process has ended. Where it cannot be had, the
// file is young.
func hold(path string) (release func()) {
	f, err := os.Open(path)
	if err != nil {
		return func() {}
	}
	flock(f)
	return func() { f.Close() }
}

// left reports whether nobody holds a file that was found.
func left(path string, found fs.FileInfo) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	is, err := f.Stat()
	return err == nil && os.SameFile(is, found) && flock(f)
}

func flock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
