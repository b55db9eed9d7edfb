package fsserver

import (
	"io/fs"
	"syscall"
	"time"
)

// times says when what is at a path was made and last read.
func (c *call) times(_ string, info fs.FileInfo) (created, accessed time.Time) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime(), info.ModTime()
	}
	return time.Unix(st.Birthtimespec.Unix()), time.Unix(st.Atimespec.Unix())
}
