package sandbox

import "golang.org/x/sys/unix"

const filterArch, foreignArch = "arm64", unix.AUDIT_ARCH_X86_64

// ownRefused are calls that only this architecture has, and that are refused.
var ownRefused []uint32

// ownModes are calls that set a mode, besides those that every architecture has, and the argument that it is.
var ownModes = map[uint32]int{}

// ownPlain are calls that are known to do no harm, and have other meanings where they are called by another's number.
var ownPlain = []uint32{unix.SYS_OPENAT, unix.SYS_UNLINKAT, unix.SYS_PPOLL}
