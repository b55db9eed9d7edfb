package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	// foreign is the bit of system call numbers that belong to another interface, x32; 0 where there is none.
	foreign = 0x40000000
)

// ports are the calls of this architecture for the ports of its devices.
var ports = []uint32{unix.SYS_IOPL, unix.SYS_IOPERM}
