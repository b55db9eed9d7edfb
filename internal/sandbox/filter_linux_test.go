//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// answer is what the filter of a policy says to a system call. The machine of the tests reads what the kernel's does, in
// the other order of bytes.
func answer(t *testing.T, p Policy, arch, number uint32, args ...uint32) uint32 {
	t.Helper()
	raw, err := p.filter()
	if err != nil {
		t.Fatal(err)
	}
	list, all := bpf.Disassemble(raw)
	if !all {
		t.Fatal("the filter cannot be read")
	}
	vm, err := bpf.NewVM(list)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, dataArgs+8*6)
	binary.BigEndian.PutUint32(data[dataNumber:], number)
	binary.BigEndian.PutUint32(data[dataArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[dataArgs+8*i:], a)
	}
	n, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// TestFilter is made for both architectures, wherever it runs: see TestFilterOfTheOtherArchitecture.
func TestFilter(t *testing.T) {
	t.Run(filterArch, func(t *testing.T) {
		testFilter(t)
	})
}

func testFilter(t *testing.T) {
	no, family, ok := refuse(unix.EPERM), refuse(unix.EAFNOSUPPORT), uint32(allow)
	net, proxy, sockets := Policy{Net: Net{All: true}}, Policy{Net: Net{Proxy: 1}}, Policy{Unix: true}
	const plain = 0o644
	type test struct {
		name         string
		policy       Policy
		arch, number uint32
		args         []uint32
		want         uint32
	}
	tests := []test{
		{"the number of a 32-bit architecture", Policy{}, unix.AUDIT_ARCH_I386, unix.SYS_READ, nil, kill},
		{"the number of the other architecture", Policy{}, foreignArch, unix.SYS_READ, nil, kill},
		{"a plain call", Policy{}, auditArch, unix.SYS_READ, nil, ok},
		{"the newest that is known", Policy{}, auditArch, newest, nil, ok},
		{"one that the kernel may have, and this list not", Policy{}, auditArch, newest + 1, nil, refuse(unix.ENOSYS)},
		{"its own limits", Policy{}, auditArch, unix.SYS_PRLIMIT64, []uint32{0}, ok},
		{"the limits of another process", Policy{}, auditArch, unix.SYS_PRLIMIT64, []uint32{1}, no},
		{"its own priority", Policy{}, auditArch, unix.SYS_SETPRIORITY, []uint32{unix.PRIO_PROCESS, 0}, ok},
		{"the priority of another process", Policy{}, auditArch, unix.SYS_SETPRIORITY, []uint32{unix.PRIO_PROCESS, 1}, no},
		{"the priority of all processes of the user", Policy{}, auditArch, unix.SYS_SETPRIORITY, []uint32{unix.PRIO_USER, 0}, no},
		{"its own class of input", Policy{}, auditArch, unix.SYS_IOPRIO_SET, []uint32{1, 0}, ok},
		{"the class of input of all of them", Policy{}, auditArch, unix.SYS_IOPRIO_SET, []uint32{3, 0}, no},
		{"a thread", Policy{}, auditArch, unix.SYS_CLONE, []uint32{unix.CLONE_VM | unix.CLONE_THREAD}, ok},
		{"a user namespace", Policy{}, auditArch, unix.SYS_CLONE, []uint32{unix.CLONE_NEWUSER}, no},
		{"a network namespace among other flags", Policy{}, auditArch, unix.SYS_CLONE, []uint32{unix.CLONE_VM | unix.CLONE_NEWNET}, no},
		{"what Go asks a terminal", Policy{}, auditArch, unix.SYS_IOCTL, []uint32{0, unix.TCGETS}, ok},
		{"to type into a terminal", Policy{}, auditArch, unix.SYS_IOCTL, []uint32{0, unix.TIOCSTI}, no},
		{"a plain mode of an open file", Policy{}, auditArch, unix.SYS_FCHMOD, []uint32{3, plain}, ok},
		{"setuid on an open file", Policy{}, auditArch, unix.SYS_FCHMOD, []uint32{3, unix.S_ISUID | plain}, no},
		{"a plain mode", Policy{}, auditArch, unix.SYS_FCHMODAT, []uint32{3, 0, plain}, ok},
		{"setgid", Policy{}, auditArch, unix.SYS_FCHMODAT, []uint32{3, 0, unix.S_ISGID | plain}, no},
		{"setuid, by the newer call", Policy{}, auditArch, unix.SYS_FCHMODAT2, []uint32{3, 0, unix.S_ISUID, 0}, no},
		{"a pair", Policy{}, auditArch, unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, ok},
		{"a pair of datagrams", Policy{}, auditArch, unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_DGRAM}, family},
		{"a pair of datagrams, with Unix sockets", sockets, auditArch, unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_DGRAM}, ok},
		{"a Unix socket", Policy{}, auditArch, unix.SYS_SOCKET, []uint32{unix.AF_UNIX, unix.SOCK_STREAM}, family},
		{"a Unix socket, allowed", sockets, auditArch, unix.SYS_SOCKET, []uint32{unix.AF_UNIX, unix.SOCK_STREAM}, ok},
		{"TCP", Policy{}, auditArch, unix.SYS_SOCKET, []uint32{unix.AF_INET, unix.SOCK_STREAM}, family},
		{"TCP, with the network", net, auditArch, unix.SYS_SOCKET, []uint32{unix.AF_INET6, unix.SOCK_STREAM | unix.SOCK_NONBLOCK}, ok},
		{"UDP, with the network", net, auditArch, unix.SYS_SOCKET, []uint32{unix.AF_INET, unix.SOCK_DGRAM}, ok},
		{"MPTCP, with the network", net, auditArch, unix.SYS_SOCKET, []uint32{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, refuse(unix.EPROTONOSUPPORT)},
		{"a raw socket, with the network", net, auditArch, unix.SYS_SOCKET, []uint32{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, family},
		{"routes, with the network", net, auditArch, unix.SYS_SOCKET, []uint32{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, ok},
		{"another kind of netlink, with the network", net, auditArch, unix.SYS_SOCKET, []uint32{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}, family},
		{"a packet socket, with the network", net, auditArch, unix.SYS_SOCKET, []uint32{unix.AF_PACKET, unix.SOCK_RAW}, family},
		{"TCP, by the proxy", proxy, auditArch, unix.SYS_SOCKET, []uint32{unix.AF_INET, unix.SOCK_STREAM}, ok},
		{"UDP, by the proxy", proxy, auditArch, unix.SYS_SOCKET, []uint32{unix.AF_INET, unix.SOCK_DGRAM}, family},
		{"to connect, by the proxy", proxy, auditArch, unix.SYS_CONNECT, nil, ask},
		{"to listen, by the proxy", proxy, auditArch, unix.SYS_LISTEN, nil, no},
		{"to send, by the proxy", proxy, auditArch, unix.SYS_SENDTO, nil, ok},
		{"the first data with the connection, by the proxy", proxy, auditArch, unix.SYS_SENDTO, []uint32{3, 0, 0, unix.MSG_FASTOPEN}, no},
		{"the same by a message", proxy, auditArch, unix.SYS_SENDMSG, []uint32{3, 0, unix.MSG_FASTOPEN}, no},
		{"the same by an option", proxy, auditArch, unix.SYS_SETSOCKOPT, []uint32{3, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT}, no},
		{"another option, by the proxy", proxy, auditArch, unix.SYS_SETSOCKOPT, []uint32{3, unix.IPPROTO_TCP, unix.TCP_NODELAY}, ok},
	}
	for e, numbers := range never {
		for _, n := range numbers {
			tests = append(tests, test{fmt.Sprintf("call %d of those that nobody needs", n), net, auditArch, n, nil, refuse(e)})
		}
	}
	for _, n := range ownRefused {
		want := no
		if foreign != 0 && n&foreign != 0 {
			want = refuse(unix.ENOSYS)
		}
		tests = append(tests, test{fmt.Sprintf("call %d of this architecture", n), Policy{}, auditArch, n, nil, want})
	}
	for n, arg := range ownModes {
		args := make([]uint32, 6)
		tests = append(tests, test{fmt.Sprintf("a plain mode by call %d", n), Policy{}, auditArch, n, slices.Clone(args), ok})
		args[arg] = unix.S_ISUID
		tests = append(tests, test{fmt.Sprintf("setuid by call %d", n), Policy{}, auditArch, n, args, no})
	}
	// What a runtime cannot do without goes through: no list has it by mistake, for a number that is another's elsewhere.
	for _, n := range append([]uint32{
		unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_FSTAT, unix.SYS_STATX, unix.SYS_GETDENTS64,
		unix.SYS_MMAP, unix.SYS_MPROTECT, unix.SYS_MUNMAP, unix.SYS_BRK, unix.SYS_FUTEX, unix.SYS_EXECVE, unix.SYS_EXIT_GROUP, unix.SYS_WAIT4,
		unix.SYS_PIPE2, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_GETRANDOM, unix.SYS_CLOCK_GETTIME, unix.SYS_RT_SIGACTION,
		unix.SYS_KILL, unix.SYS_TGKILL, unix.SYS_RENAMEAT2, unix.SYS_UNLINKAT, unix.SYS_MKDIRAT, unix.SYS_LINKAT, unix.SYS_SYMLINKAT,
		unix.SYS_READLINKAT, unix.SYS_FACCESSAT, unix.SYS_FTRUNCATE, unix.SYS_COPY_FILE_RANGE, unix.SYS_MEMFD_CREATE, unix.SYS_SCHED_YIELD,
		unix.SYS_INOTIFY_ADD_WATCH, unix.SYS_FCHOWN, unix.SYS_FSETXATTR, unix.SYS_UTIMENSAT, unix.SYS_PRCTL, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ,
	}, ownPlain...) {
		tests = append(tests, test{fmt.Sprintf("call %d, which every runtime makes", n), Policy{}, auditArch, n, nil, ok})
	}
	for _, tt := range tests {
		if got := answer(t, tt.policy, tt.arch, tt.number, tt.args...); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
	}
}

// A jump has a byte for its length. What does not fit must not become a short one.
func TestAJumpThatIsTooLong(t *testing.T) {
	if got := skip(255); got != 255 {
		t.Errorf("skip(255) is %d", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a filter is written that jumps elsewhere")
		}
	}()
	var f program
	f.when(1, make(program, 256))
}
