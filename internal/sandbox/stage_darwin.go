package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/roots"
)

// sandboxExec puts a profile in force and becomes the program that is named after it. It comes with the system.
const sandboxExec = "/usr/bin/sandbox-exec"

var errRestrict = fmt.Errorf("macOS lets a program be started confined, and here not confine itself: %w", errors.ErrUnsupported)

// Supported returns the level that Restrict would reach, or why it would reach none: an error that is
// errors.ErrUnsupported.
func Supported() (Level, error) { return Level{}, errRestrict }

// Restrict confines this process to what the rules allow. Here it cannot: it restricts nothing, and the error is
// errors.ErrUnsupported.
func Restrict([]Rule) (Level, error) { return Level{}, errRestrict }

// Able returns the level that a program confined to p would have here, or why it cannot be confined: an error that is
// errors.ErrUnsupported.
func (p Policy) Able() (Level, error) {
	if err := unix.Access(sandboxExec, unix.X_OK); err != nil {
		return Level{}, fmt.Errorf("this system has no %s (%v): %w", sandboxExec, err, errors.ErrUnsupported)
	}
	return Level{Seatbelt: true, Net: p.Net, Unix: p.Unix, Parts: len(p.Excepts) > 0}, nil
}

// Parts says why nothing can be taken out of what rules open: here it can.
func Parts() error { return nil }

// Stage prepares to run the program at path with the arguments args, of which the first is its name, and exactly the
// environment env. The caller starts what it returns, and then calls Confined, or Close when it did not start. The error
// is errors.ErrUnsupported where the system cannot confine.
func (p Policy) Stage(path string, args, env []string) (*Stage, error) {
	level, err := p.Able()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	// The stage is confined from its beginning: it has to be run, too.
	p.Rules = append(slices.Clone(p.Rules), Rule{Path: self, Access: roots.Read, Execute: true})
	for i, r := range p.Rules {
		// The kernel compares the rule with where a file really is: a link that comes later leads outside.
		real, err := filepath.EvalSymlinks(r.Path)
		switch {
		case err != nil:
			return nil, fmt.Errorf("confining the process to %q: %w", r.Path, err)
		case real != filepath.Clean(r.Path):
			return nil, fmt.Errorf("confining the process to %q: a link is on the way to it: it is %q", r.Path, real)
		}
		p.Rules[i].Path = real
	}
	profile, err := p.profile(func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.IsDir()
	})
	if err != nil {
		return nil, err
	}
	trials, err := shown(p.trials(os.Getpid()))
	if err != nil {
		return nil, err
	}
	o := order{Policy: p, Level: level, Path: path, Args: args, Env: env}
	for _, t := range trials {
		o.Shown = append(o.Shown, t.what)
	}
	return newStage(o, sandboxExec, []string{sandboxExec, "-p", profile, self, Argument})
}

// receiver reads from a socket.
type receiver struct{ *os.File }

// asked is for other systems: nothing is done for a program here.
func (receiver) asked(func(int)) {}

func (s *Stage) receive() receiver { return receiver{s.conn} }

func pair() (ends [2]int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if ends, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); err == nil {
		unix.CloseOnExec(ends[0])
		unix.CloseOnExec(ends[1])
	}
	return ends, err
}

// watch is for other systems.
func (o *order) watch() error { return errWatch }

// confine tries whether this process is held to the policy, in which it was started, and takes away the rest.
func (o *order) confine() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("setting limits: %w", err)
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("closing descriptors: %w", err)
	}
	const most = 1 << 16 // more than the system gives a process, which says no limit instead
	for fd := 3; fd < int(min(files.Cur, most)); fd++ {
		unix.CloseOnExec(fd)
	}
	for _, t := range o.Policy.trials(os.Getppid()) {
		if !slices.Contains(o.Shown, t.what) {
			continue
		}
		if err := t.held(); err != nil {
			return fmt.Errorf("the system did not hold it: %w", err)
		}
	}
	return nil
}

// trials returns what this policy must make impossible, as far as it can be tried here.
func (p Policy) trials(guard int) []trial {
	list := []trial{{"to signal the guard", func() error { return unix.Kill(guard, 0) }, unix.EPERM}}
	for _, dir := range []string{"/Users", "/Applications", "/private/etc"} {
		if !p.reaches(dir) {
			list = append(list, trial{"to list " + dir, func() error { return tryList(dir) }, unix.EPERM})
		}
	}
	if !p.Net.All {
		for _, network := range []string{"tcp4", "udp4"} {
			list = append(list, trial{"to connect over " + network, func() error {
				c, err := net.Dial(network, "127.0.0.1:9") // a port that nobody is known to serve
				if err == nil {
					c.Close()
				}
				return err
			}, unix.EPERM})
		}
	}
	return list
}

// reaches reports whether a rule allows to read a directory, as itself or as part of another.
func (p Policy) reaches(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		if p.allows(dir) {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}
