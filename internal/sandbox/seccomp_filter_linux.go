//go:build linux && (amd64 || arm64)

package sandbox

import (
	"math"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Where things are in what a filter sees, and what it may answer. Both architectures are little-endian, and the kernel
// reads of each argument that is compared here only the low half.
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16

	allow = unix.SECCOMP_RET_ALLOW
	kill  = unix.SECCOMP_RET_KILL_PROCESS
	ask   = unix.SECCOMP_RET_USER_NOTIF
)

func refuse(e syscall.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// never are the system calls that no server has a use for, and that reach what Landlock does not cover: other processes,
// the machine, or parts of the kernel with a history.
var never = map[syscall.Errno][]uint32{
	unix.EPERM: {
		// Other processes, their memory and their descriptors.
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
		unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
		// Memory, messages and semaphores that the user's processes share by number or name, without a file.
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
		unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
		// Keys, programs and counters in the kernel.
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		// Mounts, roots and namespaces.
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR,
		unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
		unix.SYS_UNSHARE, unix.SYS_SETNS,
		// Files by number instead of by path, and everybody's events.
		unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
		// Owners, attributes, flags and access lists of files elsewhere: Landlock does not know them. By an open file they can be had.
		unix.SYS_FCHOWNAT, unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR,
		unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR,
		// The machine.
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
		unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME,
		unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP,
	},
	unix.EOPNOTSUPP: { // as on a file system that has none
		unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_GETXATTRAT, unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR, unix.SYS_LISTXATTRAT,
	},
	unix.ENOSYS: { // programs do without them
		// Does what other calls do, out of sight of a filter.
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		// Makes namespaces where a filter cannot see it.
		unix.SYS_CLONE3,
	},
}

// newest is the last system call that was looked at for these lists. What is newer is not there for a program, as on an
// older kernel.
const newest = unix.SYS_RSEQ_SLICE_YIELD

// A program is a filter while it is written. What no rule of it ends goes through.
type program []bpf.Instruction

// when runs then, which has to end the filter, for a system call.
func (p *program) when(number uint32, then program) {
	*p = append(*p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipFalse: skip(len(then))})
	*p = append(*p, then...)
}

// skip is a jump over n instructions. One that is too long for a filter would lead somewhere else.
func skip(n int) uint8 {
	if n > math.MaxUint8 {
		panic("bug: a jump of a filter is too long")
	}
	return uint8(n)
}

// end answers all that comes here.
func end(answer uint32) program { return program{bpf.RetConstant{Val: answer}} }

// test runs then if an argument, of which the bits of mask count, is one of the values, and else otherwise.
func test(arg int, mask uint32, values []uint32, then, otherwise program) program {
	p := program{bpf.LoadAbsolute{Off: uint32(dataArgs + 8*arg), Size: 4}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: mask}}
	for i, v := range values {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: skip(len(values) - 1 - i + len(otherwise))})
	}
	return append(append(p, otherwise...), then...)
}

// is is test for a whole argument.
func is(arg int, values []uint32, then, otherwise program) program {
	return test(arg, ^uint32(0), values, then, otherwise)
}

// has is test for one of some bits: then if any is set.
func has(arg int, bits uint32, then, otherwise program) program {
	return test(arg, bits, []uint32{0}, otherwise, then)
}

const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// filter writes the policy's filter.
func (p Policy) filter() ([]bpf.RawInstruction, error) {
	f := program{
		bpf.LoadAbsolute{Off: dataArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: kill}, // numbers of another architecture mean something else
		bpf.LoadAbsolute{Off: dataNumber, Size: 4},
	}
	if foreign != 0 {
		f = append(f, bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: foreign, SkipTrue: 1}, bpf.RetConstant{Val: refuse(unix.ENOSYS)})
	}
	f = append(f, bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: newest, SkipFalse: 1}, bpf.RetConstant{Val: refuse(unix.ENOSYS)})
	for _, e := range []syscall.Errno{unix.EPERM, unix.EOPNOTSUPP, unix.ENOSYS} {
		for _, number := range never[e] {
			f.when(number, end(refuse(e)))
		}
	}
	for _, number := range onlyHere {
		f.when(number, end(refuse(unix.EPERM)))
	}
	// Files that give another user's rights to who runs them.
	for _, m := range modes {
		f.when(m.number, has(m.arg, unix.S_ISUID|unix.S_ISGID, end(refuse(unix.EPERM)), end(allow)))
	}
	f.when(unix.SYS_CLONE, has(0, namespaces, end(refuse(unix.EPERM)), end(allow)))
	// Limits and priorities of other processes. 0 is the process itself, and also its group or its user.
	no := end(refuse(unix.EPERM))
	itself := is(1, []uint32{0}, end(allow), no)
	f.when(unix.SYS_PRLIMIT64, is(0, []uint32{0}, end(allow), no))
	f.when(unix.SYS_SETPRIORITY, is(0, []uint32{unix.PRIO_PROCESS}, itself, no))
	f.when(unix.SYS_IOPRIO_SET, is(0, []uint32{ioprioProcess}, itself, no))
	f.when(unix.SYS_MIGRATE_PAGES, is(0, []uint32{0}, end(allow), end(refuse(unix.EPERM))))
	f.when(unix.SYS_MOVE_PAGES, is(0, []uint32{0}, end(allow), end(refuse(unix.EPERM))))
	// Typing into the terminal that standard error may be.
	f.when(unix.SYS_IOCTL, is(1, []uint32{unix.TIOCSTI, tiocLinux}, end(refuse(unix.EPERM)), end(allow)))
	p.sockets(&f)
	f = append(f, end(allow)...)
	return bpf.Assemble(f)
}

const (
	tiocLinux     = 0x541c // copy and paste on a console
	ioprioProcess = 1      // whose class of input is set
	typeMask      = 0xf    // of a socket's type; the rest are flags
	tcpFastOpen   = unix.MSG_FASTOPEN
)

// sockets writes what the policy says of the network.
func (p Policy) sockets(f *program) {
	no := end(refuse(unix.EAFNOSUPPORT))
	stream, datagram := []uint32{unix.SOCK_STREAM}, []uint32{unix.SOCK_DGRAM}
	pair := is(0, []uint32{unix.AF_UNIX}, end(allow), no)
	if !p.Unix {
		// A pair reaches nobody, unless it is of datagrams: those can be sent to any socket of a file system.
		pair = is(0, []uint32{unix.AF_UNIX}, test(1, typeMask, []uint32{unix.SOCK_STREAM, unix.SOCK_SEQPACKET}, end(allow), no), no)
	}
	f.when(unix.SYS_SOCKETPAIR, pair)

	rest := no
	if p.Unix {
		rest = is(0, []uint32{unix.AF_UNIX}, end(allow), no)
	}
	overTCP := test(1, typeMask, stream, is(2, []uint32{0, unix.IPPROTO_TCP}, end(allow), end(refuse(unix.EPROTONOSUPPORT))), no)
	internet := []uint32{unix.AF_INET, unix.AF_INET6}
	switch {
	case p.Net.All:
		overUDP := test(1, typeMask, datagram, is(2, []uint32{0, unix.IPPROTO_UDP}, end(allow), end(refuse(unix.EPROTONOSUPPORT))), overTCP)
		routes := is(0, []uint32{unix.AF_NETLINK}, is(2, []uint32{unix.NETLINK_ROUTE}, end(allow), no), rest) // which addresses there are
		rest = is(0, internet, overUDP, routes)
	case p.Net.Proxy != 0:
		rest = is(0, internet, overTCP, rest)
		// Landlock knows ports and no hosts. So the guard connects, and nobody else.
		f.when(unix.SYS_CONNECT, end(ask))
		refused := end(refuse(unix.EPERM))
		f.when(unix.SYS_LISTEN, refused)
		f.when(unix.SYS_SENDTO, has(3, tcpFastOpen, refused, end(allow)))
		f.when(unix.SYS_SENDMSG, has(2, tcpFastOpen, refused, end(allow)))
		f.when(unix.SYS_SENDMMSG, has(3, tcpFastOpen, refused, end(allow)))
		f.when(unix.SYS_SETSOCKOPT, is(1, []uint32{unix.IPPROTO_TCP},
			is(2, []uint32{unix.TCP_FASTOPEN, unix.TCP_FASTOPEN_CONNECT}, refused, end(allow)), end(allow)))
	}
	f.when(unix.SYS_SOCKET, rest)
}

// setFilter puts a filter in force for this thread and what it starts. It needs no_new_privs. Where the filter asks
// somebody, it returns the descriptor for that one, and -1 else.
func setFilter(raw []bpf.RawInstruction, asks bool) (int, error) {
	list := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		list[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	prog := unix.SockFprog{Len: uint16(len(list)), Filter: &list[0]}
	flags := 0
	if asks { // whoever waits for an answer is not disturbed by signals: it would ask again for what was done
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	listener, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, uintptr(flags), uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(list)
	switch {
	case e != 0:
		return -1, e
	case !asks:
		return -1, nil
	}
	return int(listener), nil
}
