package fsserver

import (
	"io/fs"
	"syscall"
	"time"
)

// accessed says when what is described was last read.
func accessed(info fs.FileInfo) time.Time {
	if a, ok := info.Sys().(*syscall.Win32FileAttributeData); ok {
		return time.Unix(0, a.LastAccessTime.Nanoseconds())
	}
	return info.ModTime()
}
