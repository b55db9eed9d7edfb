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
