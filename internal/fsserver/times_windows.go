package fsserver

import (
	"io/fs"
	"syscall"
	"time"
)

// times says when what is at a path was made and last read.
func (c *call) times(_ string, info fs.FileInfo) (created, accessed time.Time) {
	a, ok := info.Sys().(*syscall.Win32FileAttributeData)
	if !ok {
		return info.ModTime(), info.ModTime()
	}
	return time.Unix(0, a.CreationTime.Nanoseconds()), time.Unix(0, a.LastAccessTime.Nanoseconds())
}
