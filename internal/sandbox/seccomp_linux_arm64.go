package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	// foreign is the bit of system call numbers that belong to another interface; 0 where there is none.
	foreign = 0
)

// ports are the calls of this architecture for the ports of its devices.
var ports []uint32
