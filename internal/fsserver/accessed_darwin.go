package fsserver

import (
	"io/fs"
	"syscall"
	"time"
)

// accessed says when what is described was last read.
func accessed(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Atimespec.Unix())
	}
	return info.ModTime()
}
