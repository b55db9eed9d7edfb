//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// connector connects sockets for a confined program, which may not do it itself, to the one port it may reach. What the
// program says is read once, and what is connected is a descriptor of ours: nothing that it changes meanwhile leads
// anywhere else. It ends when no process is left that it serves.
type connector struct {
	listener int // of seccomp
	port     uint16
}

// What the kernel says and is answered (struct seccomp_notif and seccomp_notif_resp).
type (
	notification struct {
		id     uint64
		pid    uint32
		_      uint32
		number int32
		_      uint32
		_      uint64
		args   [6]uint64
	}
	response struct {
		id    uint64
		val   int64
		errno int32
		flags uint32
	}
)

func (c connector) serve() {
	c.each(func(n *notification) response {
		// Not in a goroutine of its own: a connection on this machine is there at once, or refused.
		r := response{id: n.id}
		if err := c.connect(n); err != nil {
			var e unix.Errno
			if !errors.As(err, &e) {
				e = unix.EACCES
			}
			r.errno = -int32(e)
		}
		return r
	})
}

// each answers what is asked, one after the other.
func (c connector) each(answer func(*notification) response) {
	defer unix.Close(c.listener)
	for {
		poll := []unix.PollFd{{Fd: int32(c.listener), Events: unix.POLLIN}}
		switch _, err := unix.Poll(poll, -1); {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || poll[0].Revents&unix.POLLIN == 0:
			return
		}
		var n notification
		if err := c.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err != nil {
			continue // whoever asked has ended
		}
		r := answer(&n)
		c.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
	}
}

func (c connector) ioctl(request uintptr, arg unsafe.Pointer) error {
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(c.listener), request, uintptr(arg)); e != 0 {
		return e
	}
	return nil
}

// connect does what a process asked for: connect(args[0], args[1], args[2]).
func (c connector) connect(n *notification) error {
	var address [16]byte // of struct sockaddr_in
	if n.args[2] < uint64(len(address)) {
		return unix.EACCES
	}
	local := []unix.Iovec{{Base: &address[0], Len: uint64(len(address))}}
	remote := []unix.RemoteIovec{{Base: uintptr(n.args[1]), Len: len(address)}}
	if got, err := unix.ProcessVMReadv(int(n.pid), local, remote, 0); err != nil || got != len(address) {
		return unix.EACCES
	}
	switch {
	case binary.NativeEndian.Uint16(address[:]) != unix.AF_INET,
		binary.BigEndian.Uint16(address[2:]) != c.port,
		[4]byte(address[4:8]) != [4]byte{127, 0, 0, 1}:
		return unix.EACCES
	}
	process, err := processOf(n.pid)
	if err != nil {
		return err
	}
	pidfd, err := unix.PidfdOpen(process, 0)
	if err != nil {
		return unix.EACCES
	}
	defer unix.Close(pidfd)
	if err := c.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id)); err != nil {
		return err // the number may be another process's by now
	}
	fd, err := unix.PidfdGetfd(pidfd, int(int32(n.args[0])), 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrInet4{Port: int(c.port), Addr: [4]byte{127, 0, 0, 1}})
}

// processOf returns the process of a thread.
func processOf(thread uint32) (int, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if id, ok := strings.CutPrefix(line, "Tgid:"); ok {
			return strconv.Atoi(strings.TrimSpace(id))
		}
	}
	return 0, fmt.Errorf("bug: thread %d has no process", thread)
}
