package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/rootbound/rootbound/internal/sandbox"
)

// Stager is what a program can be started with: see package sandbox.
type Stager interface {
	Stage(path string, args, env []string) (*sandbox.Stage, error)
}

// startConfined starts cmd in the watched group, confined, and returns when it runs.
func startConfined(guard *watcher, cmd *exec.Cmd, p Stager) (sandbox.Level, error) {
	s, err := p.Stage(cmd.Path, cmd.Args, cmd.Env)
	if err != nil {
		return sandbox.Level{}, err
	}
	cmd.Path, cmd.Args, cmd.Env, cmd.ExtraFiles = s.Path, s.Args, []string{}, s.Files
	cmd.SysProcAttr = s.Attr
	if err := guard.start(cmd); err != nil {
		s.Close()
		return sandbox.Level{}, err
	}
	level, err := s.Confined()
	if err != nil {
		guard.kill()
		cmd.Wait()
	}
	return level, err
}

// Run runs a command to its end, confined if it says so. It reads nothing, and what it says goes to out. What is left of it when
// ctx is done is killed.
func Run(ctx context.Context, c Command, out *os.File) error {
	group, err := newWatcher()
	if err != nil {
		return fmt.Errorf("starting the watcher of %q: %w", c.Args[0], err)
	}
	defer group.close()
	said, err := newRelay(out, nil)
	if err != nil {
		return fmt.Errorf("making a pipe from %q: %w", c.Args[0], err)
	}
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.Env, c.Dir, said.in, said.in
	if c.Confine == nil {
		err = group.start(cmd)
	} else {
		_, err = startConfined(group, cmd, c.Confine)
	}
	said.in.Close()
	if err != nil {
		return fmt.Errorf("starting %q: %w", c.Args[0], err)
	}
	defer said.wait()
	defer context.AfterFunc(ctx, group.kill)()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("running %q: %w", c.Args[0], errors.Join(err, context.Cause(ctx)))
	}
	return nil
}

// relay passes on what a confined program says on its standard error. The program gets a pipe: from a terminal of ours it
// could read what is typed there, whatever it may open, and it could cut a file.
type relay struct {
	in   *os.File // for the program; closed here when it has it
	done chan struct{}
}

func newRelay(to *os.File, said func(line string)) (*relay, error) {
	r, w, err := pipe()
	if err != nil {
		return nil, err
	}
	l := &relay{w, make(chan struct{})}
	go func() {
		defer close(l.done)
		defer r.Close()
		from := io.Reader(r)
		if said != nil {
			from = io.TeeReader(r, &lines{said: said})
		}
		io.Copy(to, from)
		io.Copy(io.Discard, from) // where nobody takes it, the program goes on all the same
	}()
	return l, nil
}

// lines tells of the lines that are written to it.
type lines struct {
	said func(line string)
	line []byte
}

const longestLine = 4096 // of which is told; the rest of it is left out

func (l *lines) Write(b []byte) (int, error) {
	for n, rest := len(b), b; ; {
		part, more, ended := bytes.Cut(rest, []byte("\n"))
		l.line = append(l.line, part[:min(len(part), longestLine-len(l.line))]...)
		if !ended {
			return n, nil
		}
		l.said(string(l.line))
		l.line, rest = l.line[:0], more
	}
}

// wait waits until the last of it was passed on, but not for long: somebody else may hold the pipe open.
func (l *relay) wait() {
	select {
	case <-l.done:
	case <-time.After(lastWords):
	}
}

const lastWords = 200 * time.Millisecond
