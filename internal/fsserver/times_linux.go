package fsserver

import (
	"io/fs"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// times says when what is at a path was made and last read. The kernel tells the first for what can be opened as a file;
// for the rest it is when something about it changed last, as the reference server has it on old kernels.
func (c *call) times(path string, info fs.FileInfo) (created, accessed time.Time) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime(), info.ModTime()
	}
	created, accessed = time.Unix(st.Ctim.Unix()), time.Unix(st.Atim.Unix())
	if !info.Mode().IsRegular() {
		return created, accessed
	}
	f, err := c.fs.Open(path)
	if err != nil {
		return created, accessed
	}
	defer f.Close()
	conn, err := f.SyscallConn()
	if err != nil {
		return created, accessed
	}
	conn.Control(func(fd uintptr) {
		var x unix.Statx_t
		if unix.Statx(int(fd), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &x) == nil && x.Mask&unix.STATX_BTIME != 0 {
			created = time.Unix(x.Btime.Sec, int64(x.Btime.Nsec))
		}
	})
	return created, accessed
}
