package transport

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rootbound/rootbound/internal/sandbox"
	"github.com/rootbound/rootbound/internal/wire"
)

// Command is what a process runs.
type Command struct {
	// Args are the program and its arguments. The program is looked up in PATH unless it has a slash.
	Args []string
	// Env is the whole environment; nil is this program's own.
	Env []string
	// Dir is the working directory; "" is this program's own.
	Dir string
	// Confine, if set, is what the kernel does with the process, or it is not started: a sandbox.Policy that holds it, or a
	// sandbox.Watch. Args[0] is then a path.
	Confine Stager
}

// ProcessOptions of a process. The zero value works.
type ProcessOptions struct {
	// Limit is the longest message in bytes; 0 is wire.DefaultLimit.
	Limit int
	// Stderr gets the child's standard error; nil is this program's own.
	Stderr *os.File
	// Strict refuses questions of a handshake server that belong to no open request.
	Strict bool
	// Report is told of oddities that nobody else hears of; nil drops them.
	Report func(format string, args ...any)
	// Note is told of what is only for the log; nil drops it.
	Note func(format string, args ...any)
	// Again says whether a subscription of the client may be made again with a server that was started again; nil is always.
	Again func(m *wire.Message) bool
	// Confined, if set, is told what the kernel enforces, each time that a confined process was started.
	Confined func(sandbox.Level)
	// Said, if set, gets each line of a confined process's standard error, after it was passed on; of a long one the beginning.
	Said func(line string)
	// Exited, if set, is told when a child ended that nobody wanted to end. Lost says that the session was lost with it:
	// a handshake server's client has to begin anew.
	Exited func(e *ExitError, lost bool)
	// ProbeTimeout is how long a server may be silent on the first request of a stateless client before the other era is
	// tried; 0 is 5 s, and 20 s for one on another machine: over HTTP who does not know a request says so, and who is silent is slow.
	// GreetTimeout is the same for initialize; 0 is 20 s: a server that is still being fetched is silent, too, and some end on what
	// comes between the parts of a handshake.
	ProbeTimeout, GreetTimeout time.Duration
	// Protocol holds the server to revisions: it is spoken to in no others.
	Protocol Protocol
	// Memory keeps from run to run which era is to be tried first; nil keeps nothing.
	Memory Memory
	// Grace is how long a child may take to end after its standard input was closed, and again after SIGTERM; 0 is 2 s.
	Grace time.Duration
}

const (
	defaultProbe       = 5 * time.Second
	defaultRemoteProbe = 20 * time.Second
	defaultGreet       = 20 * time.Second
	defaultGrace       = 2 * time.Second
	// largeLine is the length from which official clients close the connection.
	largeLine = 10 << 20
)

// Process is a server in a child process: a handler that starts the child with the first request. A child that ends
// fails what is open; the next request that a session may begin with starts another one. It is safe for concurrent use.
type Process struct{ server }

// ExitError says how a child ended.
type ExitError struct {
	// Code is the exit code; 128 and the signal's number when it was killed.
	Code int
	// State is how the system describes it.
	State string
	// Stopped is set when we ended it, because it did not end by itself after its standard input was closed.
	Stopped bool

	unstarted bool // there was no child; State says why
}

func (e *ExitError) Error() string {
	if e.unstarted {
		return e.State
	}
	return "the server process ended: " + e.State
}

// NewProcess returns a process that is not started. Command is called at each start, so that its arguments can follow
// what holds then.
func NewProcess(command func() (Command, error), o ProcessOptions) *Process {
	p := &Process{}
	p.init(o)
	p.dial = func() (link, error) {
		cmd, err := command()
		if err != nil {
			return nil, err
		}
		c, err := startChild(cmd, p.opt)
		if err != nil {
			return nil, err // and no link with a nil child in it
		}
		return c, nil
	}
	return p
}

// restartPatience is how long a restart waits for what the old child has not answered yet.
const restartPatience = 5 * time.Second

// Restart replaces the running child by one that is started afresh, tells it what the old one had been told, and calls
// ready. It waits for what the old one has not answered yet, but not for long: then that fails. Without a running child
// it does nothing but call ready. One call at a time.
func (p *Process) Restart(ready func()) error {
	patience := time.After(restartPatience)
	for _, idle := range []<-chan struct{}{p.legacy.Idle(), p.modern.Idle()} {
		select {
		case <-idle:
		case <-patience:
			patience = time.After(0)
		}
	}
	p.mu.Lock()
	old := p.link
	if old == nil || p.closed || p.restarting {
		p.mu.Unlock()
		ready()
		return nil
	}
	p.restarting = true
	p.hold.close() // until the new one is connected
	p.mu.Unlock()
	why := errors.New("the server was started again for new roots")
	p.legacy.Disconnect(old.sink(), why)
	p.modern.Replace(old.sink(), why)
	p.restarts.Go(func() { old.stop(p.opt.Grace) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restarting = false
	err := errStopped
	if !p.closed { // meanwhile
		err = p.launch(ready)
	}
	if err != nil {
		p.link = nil
		p.exit = &ExitError{Code: 1, State: err.Error(), unstarted: true}
		p.legacy.Disconnect(old.sink(), err)
		p.modern.Disconnect(old.sink(), err)
		go p.hold.open()
	}
	return err
}

// Close stops the child: its standard input is closed, and what does not end then is terminated, then killed, with its
// whole process group. It returns how the last child ended; nil when none was started.
func (p *Process) Close() *ExitError {
	p.mu.Lock()
	p.closed = true
	c := p.link
	p.mu.Unlock()
	if c != nil {
		c.stop(p.opt.Grace)
		select {
		case <-c.gone():
		case <-time.After(p.opt.Grace): // somebody else holds its output open
		}
	}
	p.restarts.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

// LookPath says why a program cannot be started from dir, or nil.
func LookPath(program, dir string) error {
	if filepath.Base(program) != program && !filepath.IsAbs(program) {
		program = filepath.Join(dir, program)
	}
	_, err := exec.LookPath(program)
	return err
}

// child is one run of the command.
type child struct {
	cmd    *exec.Cmd
	guard  *watcher
	stdin  io.Closer
	stdout *os.File
	out    *wire.Writer
	opt    ProcessOptions
	said   *relay        // of a confined one; nil otherwise
	exited chan struct{} // the process was waited for
	exit   *ExitError    // after exited
	forced atomic.Bool   // we ended it
	left   chan struct{} // its output ended, and everything open was answered
	once   sync.Once
}

func (c *child) sink() *wire.Writer  { return c.out }
func (c *child) gone() chan struct{} { return c.left }

// receive implements link: a pipe does not say to which request a message belongs.
func (c *child) receive(take func(m *wire.Message, refused *wire.Refusal, of string)) {
	receiveLines(c.stdout, c.opt, take)
}

// receiveLines hands on what comes on a stream, until it ends.
func receiveLines(r io.Reader, o ProcessOptions, take func(m *wire.Message, refused *wire.Refusal, of string)) {
	rd := wire.NewReader(r, o.Limit)
	for {
		line, err := rd.Next()
		var refused *wire.Refusal
		if err != nil && !errors.As(err, &refused) {
			return
		}
		var m wire.Message
		if err == nil {
			if len(line) > largeLine {
				o.Report("the server sent a message of %d bytes; many clients end the connection at %d", len(line), largeLine)
			}
			m, err = wire.Scan(line, wire.Lenient)
			errors.As(err, &refused)
		}
		take(&m, refused, "")
	}
}

func (c *child) sessionless() bool { return false }

func (c *child) ended() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

func startChild(command Command, o ProcessOptions) (*child, error) {
	if len(command.Args) == 0 {
		return nil, errors.New("starting the server: no command")
	}
	guard, err := newWatcher()
	if err != nil {
		return nil, fmt.Errorf("starting the watcher of the server: %w", err)
	}
	stdinR, stdinW, err := pipe()
	if err != nil {
		guard.close()
		return nil, fmt.Errorf("making a pipe to the server: %w", err)
	}
	stdoutR, stdoutW, err := pipe()
	if err != nil {
		guard.close()
		stdinR.Close()
		stdinW.Close()
		return nil, fmt.Errorf("making a pipe from the server: %w", err)
	}
	cmd := exec.Command(command.Args[0], command.Args[1:]...)
	cmd.Env, cmd.Dir = command.Env, command.Dir
	if command.Dir != "" && !filepath.IsAbs(command.Args[0]) && filepath.Base(command.Args[0]) != command.Args[0] {
		if abs, err := filepath.Abs(command.Args[0]); err == nil {
			cmd.Path, cmd.Err = abs, nil
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdinR, stdoutW, o.Stderr
	var said *relay
	if command.Confine == nil {
		err = guard.start(cmd)
	} else if said, err = newRelay(o.Stderr, o.Said); err == nil {
		cmd.Stderr = said.in
		var level sandbox.Level
		if level, err = startConfined(guard, cmd, command.Confine); err == nil && o.Confined != nil {
			o.Confined(level)
		}
		said.in.Close()
	}
	stdinR.Close()
	stdoutW.Close()
	if err != nil {
		guard.close()
		stdinW.Close()
		stdoutR.Close()
		return nil, fmt.Errorf("starting the server %q: %w", command.Args[0], err)
	}
	c := &child{
		cmd: cmd, guard: guard, stdin: stdinW, stdout: stdoutR, out: wire.NewWriter(stdinW), opt: o, said: said,
		exited: make(chan struct{}), left: make(chan struct{}),
	}
	go func() {
		err := cmd.Wait()
		c.exit = exitError(cmd.ProcessState, err)
		c.exit.Stopped = c.forced.Load()
		close(c.exited)
		time.AfterFunc(o.Grace, guard.close) // ends what it left behind in its group, which may hold its output open
	}()
	return c, nil
}

// wait waits for the end of a child whose output has ended, and ends one that does not.
func (c *child) wait(grace time.Duration) *ExitError {
	select {
	case <-c.exited:
	case <-time.After(grace):
		c.stop(grace)
	}
	c.stdout.Close()
	c.guard.close()
	if c.said != nil {
		c.said.wait()
	}
	return c.exit
}

// stop ends the child and its process group and waits for it.
func (c *child) stop(grace time.Duration) {
	c.once.Do(func() {
		c.stdin.Close()
		for _, end := range []func(){c.guard.terminate, c.guard.kill} {
			select {
			case <-c.exited:
				c.guard.kill() // what it left behind in its group
				return
			case <-time.After(grace):
				c.forced.Store(true)
				end()
			}
		}
	})
	<-c.exited
}
