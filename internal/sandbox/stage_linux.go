package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// order is what the stage is told.
type order struct {
	Policy Policy
	Level  Level // what has to be reached, no more and no less
	Path   string
	Args   []string
	Env    []string
}

// report is what the stage says: that a descriptor comes with it, for which this program connects; that the level is
// reached, or why it is not; then nothing more, or why the program could not be run.
type report struct {
	Asks  bool `json:",omitempty"`
	Level Level
	Error string `json:",omitempty"`
}

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

// Stage is a program that is about to be started confined. It is for one start.
type Stage struct {
	// Path and Args are what has to be started, with an empty environment.
	Path string
	Args []string
	// Files are to be inherited, the first as descriptor 3.
	Files []*os.File

	conn  *os.File // this program's end
	order order
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
	level.Seccomp, level.Net, level.Unix = true, p.Net, p.Unix
	return level, nil
}

// Stage prepares to run the program at path with the arguments args, of which the first is its name, and exactly the
// environment env. The caller starts what it returns, and then calls Confined, or Close when it did not start. The error
// is errors.ErrUnsupported where the kernel cannot confine.
func (p Policy) Stage(path string, args, env []string) (*Stage, error) {
	level, err := p.Able()
	if err != nil {
		return nil, err
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	return &Stage{
		Path: "/proc/self/exe", Args: []string{os.Args[0], Argument},
		Files: []*os.File{os.NewFile(uintptr(ends[1]), "stage")},
		conn:  os.NewFile(uintptr(ends[0]), "stage"), order: order{p, level, path, args, env},
	}, nil
}

// Confined waits until the program runs, and returns the level that was reached, tried out from inside. An error says why
// the program does not run.
func (s *Stage) Confined() (Level, error) {
	defer s.Close()
	s.Files[0].Close() // the stage has it
	err := json.NewEncoder(s.conn).Encode(s.order)
	if err == nil {
		err = unix.Shutdown(int(s.conn.Fd()), unix.SHUT_WR)
	}
	if err != nil {
		return Level{}, fmt.Errorf("telling the stage what to do: %w", err)
	}
	var level Level
	from := &receiver{s.conn, -1}
	for d := json.NewDecoder(from); ; {
		var r report
		switch err := d.Decode(&r); {
		case errors.Is(err, io.EOF) && level.Enforced():
			return level, nil
		case err != nil:
			return Level{}, fmt.Errorf("confining the program: the stage ended without a word: %w", err)
		case r.Error != "":
			return Level{}, errors.New(r.Error)
		case r.Asks:
			go connector{from.fd, s.order.Policy.Net.Proxy}.serve()
			continue
		case r.Level != s.order.Level:
			return Level{}, fmt.Errorf("bug: the stage reached %q instead of %q", r.Level, s.order.Level)
		}
		level = r.Level
	}
}

// Close forgets a stage that was not started.
func (s *Stage) Close() {
	s.conn.Close()
	s.Files[0].Close()
}
