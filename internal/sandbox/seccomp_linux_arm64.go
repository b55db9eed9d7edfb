package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	// foreign is the bit of system call numbers that belong to another interface; 0 where there is none.
	foreign = 0
)

// onlyHere are calls that this architecture has besides, and no server has a use for.
var onlyHere []uint32

// modes are the calls that set the mode of a file, and the argument that it is.
var modes = []struct {
	number uint32
	arg    int
}{{unix.SYS_FCHMOD, 1}, {unix.SYS_FCHMODAT, 2}, {unix.SYS_FCHMODAT2, 2}}
