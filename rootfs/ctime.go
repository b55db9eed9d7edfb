//go:build unix && !darwin && !freebsd && !netbsd

package rootfs

import "syscall"

// ctime is when the metadata of a file changed last.
func ctime(st *syscall.Stat_t) (sec, nsec int64) { return st.Ctim.Unix() }
