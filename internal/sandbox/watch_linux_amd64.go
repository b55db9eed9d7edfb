package sandbox

import "golang.org/x/sys/unix"

// oldOpens and oldChanges are calls that this architecture has besides: paths without a directory.
var (
	oldOpens   = map[uint32]pathCall{unix.SYS_OPEN: {here, 0}, unix.SYS_CREAT: {here, 0}}
	oldChanges = map[uint32][]pathCall{
		unix.SYS_UNLINK: {{here, 0}}, unix.SYS_RMDIR: {{here, 0}}, unix.SYS_MKDIR: {{here, 0}}, unix.SYS_MKNOD: {{here, 0}},
		unix.SYS_SYMLINK: {{here, 1}}, unix.SYS_RENAME: {{here, 0}, {here, 1}}, unix.SYS_LINK: {{here, 1}},
	}
)

func oldFlags(number uint32, args [6]uint64) uint64 {
	if number == unix.SYS_CREAT {
		return unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC
	}
	return args[1]
}
