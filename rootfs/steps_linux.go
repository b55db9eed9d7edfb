package rootfs

import (
	"strings"

	"golang.org/x/sys/unix"
)

const searchOnly = unix.O_PATH | unix.O_DIRECTORY

// openTop opens the directory at path, if there is no link on the way.
func openTop(path string) (int, error) {
	fd, err := unix.Open("/", searchOnly|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	top := &stepDir{dirFD: dirFD{fd: fd}}
	defer top.close()
	name := strings.Trim(path, "/")
	if name == "" {
		name = "."
	}
	s, err := top.sub(name, 0)
	if err != nil {
		return -1, err
	}
	return s.(*stepDir).fd, nil
}

// mountOf says in which mount a name lies, or with no name the directory itself; 0 where the kernel does not tell.
func mountOf(dir int, name string) uint64 {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	var st unix.Statx_t
	if err := unix.Statx(dir, name, flags, unix.STATX_MNT_ID, &st); err != nil || st.Mask&unix.STATX_MNT_ID == 0 {
		return 0
	}
	return st.Mnt_id
}
