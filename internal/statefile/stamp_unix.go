//go:build unix

package statefile

import (
	"io/fs"
	"syscall"
)

// fileID tells a file from one that was put in its place.
func fileID(info fs.FileInfo) any {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return nil
}
