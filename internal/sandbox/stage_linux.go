package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// receiver reads from a socket, and keeps the descriptor that comes with what it reads.
type receiver struct {
	from *os.File
	fd   int
}

func (r *receiver) Read(p []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	for {
		n, oobn, _, _, err := unix.Recvmsg(int(r.from.Fd()), p, oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, os.NewSyscallError("recvmsg", err)
		}
		if messages, err := unix.ParseSocketControlMessage(oob[:oobn]); err == nil && len(messages) > 0 {
			if fds, err := unix.ParseUnixRights(&messages[0]); err == nil && len(fds) == 1 {
				r.fd = fds[0]
			}
		}
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	}
}

// asked lets what came be listened to.
func (r *receiver) asked(listen func(fd int)) { listen(r.fd) }

func (s *Stage) receive() *receiver { return &receiver{s.conn, -1} }

func pair() ([2]int, error) {
	return unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
}

// Able returns the level that a program confined to p would have here, or why it cannot be confined: an error that is
// errors.ErrUnsupported.
func (p Policy) Able() (Level, error) {
	level, err := Supported()
	switch {
	case err != nil:
		return Level{}, err
	case auditArch == 0:
		return Level{}, fmt.Errorf("system calls can be filtered on amd64 and arm64, and this is %s: %w", runtime.GOARCH, errors.ErrUnsupported)
	case p.Net.Proxy != 0 && p.Unix:
		return Level{}, errors.New("a program that reaches the network through our proxy cannot have Unix sockets too")
	}
	if err := filters(); err != nil {
		return Level{}, err
	}
	level.Seccomp, level.Net, level.Unix = true, p.Net, p.Unix
	level.Parts = len(p.Excepts) > 0 && Parts() == nil
	return level, nil
}

// filters returns why this kernel lets no system calls be filtered, or nil.
func filters() error {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))); e != 0 {
		return fmt.Errorf("this kernel filters no system calls, or a container keeps that from programs (%v): %w", e, errors.ErrUnsupported)
	}
	return nil
}

// Stage prepares to run the program at path with the arguments args, of which the first is its name, and exactly the
// environment env. The caller starts what it returns, and then calls Confined, or Close when it did not start. The error
// is errors.ErrUnsupported where the kernel cannot confine.
func (p Policy) Stage(path string, args, env []string) (*Stage, error) {
	level, err := p.Able()
	if err != nil {
		return nil, err
	}
	s, err := newStage(order{Policy: p, Level: level, Path: path, Args: args, Env: env}, "/proc/self/exe", []string{os.Args[0], Argument})
	if err == nil {
		s.listen = func(fd int) { go connector{fd, p.Net.Proxy}.serve() }
		if level.Parts {
			s.Attr = mountNamespace()
		}
	}
	return s, err
}
