package sandbox

import "golang.org/x/sys/unix"

const filterArch, foreignArch = "amd64", unix.AUDIT_ARCH_AARCH64

// ownRefused are calls that only this architecture has, and that are refused.
var ownRefused = []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_CHOWN, unix.SYS_LCHOWN, foreign | unix.SYS_READ, foreign | unix.SYS_SOCKET}

// ownModes are calls that set a mode, besides those that every architecture has, and the argument that it is.
var ownModes = map[uint32]int{unix.SYS_CHMOD: 1}

// ownPlain are calls that are known to do no harm, and have other meanings where they are called by another's number.
var ownPlain = []uint32{unix.SYS_OPEN, unix.SYS_STAT, unix.SYS_FORK, unix.SYS_POLL, unix.SYS_UNLINK}
