//go:build unix && !darwin && !freebsd && !netbsd

package rootfs

import "syscall"

func changed(st *syscall.Stat_t) (sec, nsec int64) { return st.Ctim.Unix() }
