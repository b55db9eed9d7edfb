//go:build unix

package transport

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// watchScript waits for the end of this program, which closes the pipe, and then kills its process group: the server,
// and everything that stayed with it.
const watchScript = `trap '' TERM INT HUP; read x; kill -KILL 0`

var shell = "/bin/sh" // another one in tests

// Watch is what this program does when its only argument is WatchArgument: the same as watchScript. It returns only if the
// group cannot be ended.
func Watch() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	io.Copy(io.Discard, os.Stdin)
	syscall.Kill(0, syscall.SIGKILL)
}

// watcherCommand is the shell, which starts faster and takes less than this program does; in images without one, it is this
// program.
func watcherCommand() (*exec.Cmd, error) {
	if _, err := os.Stat(shell); !errors.Is(err, fs.ErrNotExist) {
		return exec.Command(shell, "-c", watchScript), nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program, as there is no %s: %w", shell, err)
	}
	return exec.Command(self, WatchArgument), nil
}

// watcher is a small process that leads the server's process group and outlives this program just long enough to end
// that group. It reads a pipe that only this program holds.
type watcher struct {
	pgid int
	hold io.Closer // closing it ends the group
	done chan struct{}
	once sync.Once
}

func newWatcher() (*watcher, error) {
	cmd, err := watcherCommand()
	if err != nil {
		return nil, err
	}
	r, w, err := pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdin = r
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	r.Close()
	if err != nil {
		w.Close()
		return nil, err
	}
	g := &watcher{pgid: cmd.Process.Pid, hold: w, done: make(chan struct{})}
	go func() {
		cmd.Wait() // that it was killed is how it ends
		close(g.done)
	}()
	return g, nil
}

// start starts cmd in the watched group.
func (g *watcher) start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pgid = true, g.pgid
	return startTied(cmd)
}

// terminate asks the group to end.
func (g *watcher) terminate() { syscall.Kill(-g.pgid, syscall.SIGTERM) }

// kill ends the group, the watcher included.
func (g *watcher) kill() {
	if err := syscall.Kill(-g.pgid, syscall.SIGKILL); err == nil || errors.Is(err, syscall.ESRCH) {
		<-g.done
	}
}

// close ends the group and forgets it.
func (g *watcher) close() {
	g.once.Do(func() {
		select {
		case <-g.done: // the group's number may be somebody else's by now
		default:
			g.kill()
		}
		g.hold.Close()
	})
}

func exitError(s *os.ProcessState, err error) *ExitError {
	if s == nil {
		return &ExitError{Code: 1, State: err.Error()}
	}
	e := &ExitError{Code: s.ExitCode(), State: s.String()}
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Code = 128 + int(ws.Signal())
	}
	return e
}
