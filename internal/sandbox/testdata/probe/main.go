//go:build linux

// Command probe tries what a hostile program would, and prints what became of each attempt: "yes" or the error. Its
// arguments are the directory that is inside, the one that is outside, and where servers wait: the port of a TCP and a
// UDP one on 127.0.0.1, the name of an abstract Unix socket, the port of a proxy, and the number of a descriptor that it should not have.
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var in, out string

func main() {
	if len(os.Args) == 1 {
		try("run a program without a file", nil)
	}
	if len(os.Args) > 1 && os.Args[1] == "race" {
		race(os.Args[2], os.Args[3], os.Args[4] == "until it wins")
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "parts" {
		parts(os.Args[2])
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "wait" {
		fmt.Println("waiting in", os.Getpid())
		unix.Pause()
	}
	if len(os.Args) < 8 {
		return
	}
	in, out = os.Args[1], os.Args[2]
	tcp, udp := number(os.Args[3]), number(os.Args[4])
	abstract, proxy, leaked := os.Args[5], number(os.Args[6]), number(os.Args[7])
	guard := os.Getppid()

	try("read inside", read(in+"/file"))
	try("write inside", write(in+"/new", os.O_CREATE|os.O_WRONLY))
	try("replace inside", os.Rename(in+"/new", in+"/sub/new"))
	try("remove inside", os.Remove(in+"/sub/new"))
	try("remove a directory inside", os.Remove(in+"/empty"))
	try("read outside", read(out+"/file"))
	try("read /etc/passwd", read("/etc/passwd"))
	try("list outside", list(out))
	try("list /", list("/"))
	try("list /proc", list("/proc"))
	try("read outside, by a link inside", read(in+"/link"))
	try("read outside, by a link made now", first(os.Symlink(out+"/file", in+"/mylink"), func() error { return read(in + "/mylink") }))
	try("read outside, by a hard link inside", read(in+"/hard"))
	try("make a hard link to outside", os.Link(out+"/file", in+"/myhard"))
	try("read outside, by /proc/self/root", read("/proc/self/root"+out+"/file"))
	try("read outside, by a handle without rights", byPath(out+"/file"))
	try("read the guard's environment", read(fmt.Sprintf("/proc/%d/environ", guard)))
	try("read the guard's memory", read(fmt.Sprintf("/proc/%d/maps", guard)))
	try("read an inherited descriptor", func() error { _, err := unix.Pread(leaked, make([]byte, 1), 0); return err }())
	try("write outside", write(out+"/file", os.O_WRONLY))
	try("create outside", write(out+"/new", os.O_CREATE|os.O_WRONLY))
	try("truncate outside", os.Truncate(out+"/file", 0))
	try("make a directory outside", os.Mkdir(out+"/made", 0o700))
	try("make a link outside", os.Symlink("x", out+"/mylink"))
	try("remove outside", os.Remove(out+"/gone"))
	try("move from inside to outside", os.Rename(in+"/file", out+"/taken"))
	try("move from outside to inside", os.Rename(out+"/other", in+"/other"))
	try("make a FIFO inside", unix.Mkfifo(in+"/fifo", 0o600))
	try("make a socket inside", unix.Mknod(in+"/sock", unix.S_IFSOCK|0o600, 0))
	try("make a device inside", unix.Mknod(in+"/null", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
	try("look at a file outside", func() error { _, err := os.Stat(out + "/file"); return err }())
	try("change the mode outside", os.Chmod(out+"/mine", 0o640))
	try("change the times outside", os.Chtimes(out+"/mine", time.Time{}, time.Unix(1, 0)))
	try("read attributes outside", func() error { _, err := unix.Listxattr(out+"/mine", nil); return err }())
	try("change flags outside", flags(out+"/mine"))
	try("change the owner outside", os.Chown(out+"/mine", os.Getuid(), os.Getgid()))
	try("change attributes outside", unix.Setxattr(out+"/mine", "user.rootbound", []byte("x"), 0))
	try("make a program for other users inside", first(write(in+"/suid", os.O_CREATE|os.O_WRONLY), func() error { return os.Chmod(in+"/suid", 0o755|os.ModeSetuid) }))
	try("watch a directory outside", watch(out))
	try("take a file's handle outside", handle(out+"/file"))
	try("run a program outside", exec.Command("/bin/true").Run())
	try("run a program written inside", own(in+"/program"))
	try("connect over TCP", dial(unix.SOCK_STREAM, 0, tcp))
	try("connect to the proxy", dial(unix.SOCK_STREAM, 0, proxy))
	try("connect to its port on another host", elsewhere(proxy))
	try("connect elsewhere, by a race", raced(tcp, proxy))
	try("connect over MPTCP", dial(unix.SOCK_STREAM, unix.IPPROTO_MPTCP, tcp))
	try("connect over TCP with the first data", fastOpen(tcp))
	try("listen on a TCP port", listen())
	try("send over UDP", dial(unix.SOCK_DGRAM, 0, udp))
	try("listen on a UDP port", bind(unix.SOCK_DGRAM))
	try("make a raw socket", socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP))
	try("make a packet socket", socket(unix.AF_PACKET, unix.SOCK_RAW, 0))
	try("make a netlink socket", socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE))
	try("make a vsock socket", socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0))
	try("connect to a Unix socket outside", unixDial(out+"/server"))
	try("send to a Unix socket outside, from a pair", fromPair(out+"/datagrams"))
	try("connect to an abstract Unix socket", unixDial("@"+abstract))
	try("make a pair of sockets", func() error { _, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err }())
	try("signal the guard", unix.Kill(guard, 0))
	try("signal itself", unix.Kill(os.Getpid(), 0))
	try("trace the guard", unix.PtraceSeize(guard))
	try("read the guard's memory by a call", readMemory(guard))
	try("take a descriptor of the guard", takeDescriptor(guard))
	try("limit the guard", limit(guard))
	try("lower the guard's class of input", syscall(unix.SYS_IOPRIO_SET, 1, uintptr(guard), 3<<13))
	try("slow its process group down", slowGroup())
	try("slow the guard down", unix.Setpriority(unix.PRIO_PROCESS, guard, 19))
	try("lower its process group's class of input", syscall(unix.SYS_IOPRIO_SET, 2, 0, 0))
	try("share memory by number", sharedMemory())
	try("share a queue by name", queue())
	try("read the session's keys", syscall(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, ^uintptr(2), 0))
	try("set up io_uring", ioUring())
	try("load a program into the kernel", reachable(syscall(unix.SYS_BPF, 0, 0, 0)))
	try("make a user namespace", userNamespace())
	try("make a user namespace by clone3", clone3())
	try("mount", unix.Mount("none", in+"/sub", "tmpfs", 0, ""))
	try("change the root", unix.Chroot("/"))
	try("see a capability", capability())
	try("type into a terminal", reachable(syscall(unix.SYS_IOCTL, 2, unix.TIOCSTI, uintptr(unsafe.Pointer(&[]byte{'x'}[0])))))
	try("run a program without a file", memfd()) // the last, because it is another program then
}

// parts tries to get at what is held back in a directory that is open: .env, which may not be read, and .git/hooks, in which
// nothing may be written.
func parts(in string) {
	try("read .env", read(in+"/.env"))
	try("write .env", write(in+"/.env", os.O_WRONLY))
	try("remove .env", os.Remove(in+"/.env"))
	try("put another file in the place of .env", os.Rename(in+"/file", in+"/.env"))
	try("link .env", first(os.Link(in+"/.env", in+"/linked"), func() error { return read(in + "/linked") }))
	try("change the mode of .env", first(os.Chmod(in+"/.env", 0o644), func() error { return read(in + "/.env") }))
	try("look into keys", list(in+"/keys"))
	try("read a file of keys", read(in+"/keys/key"))
	try("make a hook", write(in+"/.git/hooks/new", os.O_CREATE|os.O_WRONLY))
	try("write a hook", write(in+"/.git/hooks/old", os.O_WRONLY))
	try("remove a hook", os.Remove(in+"/.git/hooks/gone"))
	try("read a hook", read(in+"/.git/hooks/old"))
	try("move .git away", first(os.Rename(in+"/.git", in+"/moved"), func() error { return os.Rename(in+"/moved", in+"/.git") }))
	try("move the hooks away", first(os.Rename(in+"/.git/hooks", in+"/.git/moved"), func() error { return os.Rename(in+"/.git/moved", in+"/.git/hooks") }))
	try("mount over the hooks", unix.Mount("none", in+"/.git/hooks", "tmpfs", 0, ""))
	try("unmount the hooks", unix.Unmount(in+"/.git/hooks", unix.MNT_DETACH))
	try("make the hooks writable", unix.MountSetattr(unix.AT_FDCWD, in+"/.git/hooks", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}))
	try("write beside the hooks", write(in+"/.git/index.lock", os.O_CREATE|os.O_WRONLY))
	try("replace beside the hooks", os.Rename(in+"/.git/index.lock", in+"/.git/index"))
	try("write in the directory", write(in+"/new", os.O_CREATE|os.O_WRONLY))
}

// race is a server that looks where a path leads before it opens it, while something exchanges what is there: a file
// inside, and a link to one outside. It goes on for some time, and at least some thousand times, and until it has read the one
// inside and, if it is to win, the one outside; and prints how often it read each of them.
func race(in, duration string, win bool) {
	d, err := time.ParseDuration(duration)
	if err != nil {
		panic(err)
	}
	file, link := in+"/file", in+"/link"
	go func() {
		for {
			unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		}
	}()
	read := map[string]int{}
	end := time.Now().Add(d)
	for i := 0; i < 4000 || time.Now().Before(end) || (read["in"] == 0 || win && read["out"] == 0) && time.Now().Before(end.Add(time.Minute)); i++ {
		if real, err := filepath.EvalSymlinks(file); err != nil || !strings.HasPrefix(real, in+"/") {
			continue
		}
		if b, err := os.ReadFile(file); err == nil {
			read[string(b)]++
		}
	}
	fmt.Printf("read inside: %d\nread outside: %d\n", read["in"], read["out"])
}

func try(what string, err error) {
	result := "yes"
	var e unix.Errno
	switch {
	case errors.As(err, &e):
		result = unix.ErrnoName(e)
	case err != nil:
		result = err.Error()
	}
	fmt.Printf("%s: %s\n", what, result)
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func first(err error, then func() error) error {
	if err != nil {
		return err
	}
	return then()
}

func read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Read(make([]byte, 1))
	return err
}

func list(path string) error {
	_, err := os.ReadDir(path)
	return err
}

func write(path string, flags int) error {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func byPath(path string) error {
	fd, err := unix.Open(path, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	return read(fmt.Sprintf("/proc/self/fd/%d", fd))
}

func watch(dir string) error {
	fd, err := unix.InotifyInit()
	if err != nil {
		return err
	}
	_, err = unix.InotifyAddWatch(fd, dir, unix.IN_CREATE)
	return err
}

func handle(path string) error {
	_, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
	return err
}

// own copies this program and runs the copy.
func own(path string) error {
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, self, 0o700); err != nil {
		return err
	}
	return exec.Command(path, "exit").Run()
}

// memfd becomes a copy of this program that is in no directory.
func memfd() error {
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("program", 0)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, self); err != nil {
		return err
	}
	reading, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY, 0) // what is open for writing is not run
	if err != nil {
		return err
	}
	unix.Close(fd)
	empty, arg, end := []byte{0}, []byte("memfd\x00"), uintptr(0)
	argv := []uintptr{uintptr(unsafe.Pointer(&arg[0])), end}
	return syscall6(unix.SYS_EXECVEAT, uintptr(reading), uintptr(unsafe.Pointer(&empty[0])), uintptr(unsafe.Pointer(&argv[0])),
		uintptr(unsafe.Pointer(&end)), unix.AT_EMPTY_PATH)
}

// userNamespace starts a process in one, which ends at once.
func userNamespace() error {
	pid, _, e := unix.RawSyscall6(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid == 0 && e == 0 {
		unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	}
	if e != 0 {
		return e
	}
	unix.Wait4(int(pid), nil, 0, nil)
	return nil
}

func socket(family, kind, protocol int) error {
	_, err := unix.Socket(family, kind, protocol)
	return err
}

func dial(kind, protocol, port int) error {
	fd, err := unix.Socket(unix.AF_INET, kind, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte("x"))
	return err
}

// elsewhere connects to another address of this machine.
func elsewhere(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 2}})
	if errors.Is(err, unix.ECONNREFUSED) {
		return nil // it was there
	}
	return err
}

// raced connects while another thread writes another port into the address, and looks which one it reached.
func raced(wanted, allowed int) error {
	address := &unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: [4]byte{127, 0, 0, 1}}
	port := (*[2]byte)(unsafe.Pointer(&address.Port))
	stop := make(chan bool)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				binary.BigEndian.PutUint16(port[:], uint16([]int{wanted, allowed}[i%2]))
			}
		}
	}()
	defer close(stop)
	last := error(unix.ETIME)
	for range 3000 {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		_, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(address)), unix.SizeofSockaddrInet4)
		peer, err := unix.Getpeername(fd)
		unix.Close(fd)
		if e != 0 {
			last = e
			continue
		}
		if in, ok := peer.(*unix.SockaddrInet4); err == nil && ok && in.Port == wanted {
			return nil
		}
	}
	return last
}

func fastOpen(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

func listen() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Listen(fd, 1)
}

func bind(kind int) error {
	fd, err := unix.Socket(unix.AF_INET, kind, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
}

func unixDial(name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: name})
}

func fromPair(name string) error {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(ends[0], []byte("x"), 0, &unix.SockaddrUnix{Name: name})
}

func readMemory(pid int) error {
	b := make([]byte, 1)
	local := []unix.Iovec{{Base: &b[0], Len: 1}}
	_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 1, Len: 1}}, 0)
	return reachable(err)
}

func takeDescriptor(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	_, err = unix.PidfdGetfd(fd, 0, 0)
	return err
}

// slowGroup sets the priority of the process group, which the guard is in, to what it is. All processes of the user are
// set in the same way.
func slowGroup() error {
	kernel, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // 20 less what it is
	if err != nil {
		return err
	}
	return unix.Setpriority(unix.PRIO_PGRP, 0, 20-kernel)
}

// flags sets the flags of a file to what they are.
func flags(path string) error {
	name, attr := append([]byte(path), 0), [3]uint64{}
	at := unix.AT_FDCWD
	for _, number := range []uintptr{unix.SYS_FILE_GETATTR, unix.SYS_FILE_SETATTR} {
		if err := syscall6(number, uintptr(at), uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0); err != nil {
			return err
		}
	}
	return nil
}

func limit(pid int) error {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &old); err != nil {
		return err
	}
	return unix.Prlimit(pid, unix.RLIMIT_CORE, &old, nil)
}

func syscall(number, a, b, c uintptr) error { return syscall6(number, a, b, c, 0, 0) }

func syscall6(number, a, b, c, d, e uintptr) error {
	if _, _, errno := unix.Syscall6(number, a, b, c, d, e, 0); errno != 0 {
		return errno
	}
	return nil
}

// reachable makes an error that only the called one would give a success: it was reached.
func reachable(err error) error {
	for _, e := range []unix.Errno{unix.EFAULT, unix.E2BIG, unix.EINVAL, unix.ENOTTY} {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}

func sharedMemory() error {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		return err
	}
	_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	return err
}

func queue() error {
	name := append([]byte("rootbound-probe"), 0)
	fd, _, e := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&name[0])), unix.O_CREAT|unix.O_RDWR, 0o600, 0, 0, 0)
	if e != 0 {
		return e
	}
	unix.Close(int(fd))
	return syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(&name[0])), 0, 0)
}

func ioUring() error {
	var params [120]byte
	return syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])), 0)
}

func clone3() error {
	// Sharing file systems with a new user namespace is refused by clone3 itself, so it is reached when it says so.
	var args [88]byte
	binary.LittleEndian.PutUint64(args[:], unix.CLONE_NEWUSER|unix.CLONE_FS)
	return reachable(syscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args[0])), 88, 0))
}

// capability is an error unless this process, or what it runs, can have one.
func capability() error {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(os.Getpid()), "status"))
	if err != nil {
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&head, &data[0]); err != nil {
			return err
		}
		if data[0].Effective|data[0].Permitted|data[1].Effective|data[1].Permitted == 0 {
			return errors.New("none")
		}
		return nil
	}
	for _, line := range strings.Split(string(b), "\n") {
		if v, ok := strings.CutPrefix(line, "CapPrm:\t"); ok && strings.Trim(v, "0") == "" {
			return errors.New("none")
		}
	}
	return nil
}
