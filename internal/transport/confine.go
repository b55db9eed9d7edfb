package transport

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/rootbound/rootbound/internal/sandbox"
)

// startConfined starts cmd in the watched group, confined, and returns when it runs.
func startConfined(guard *watcher, cmd *exec.Cmd, p sandbox.Policy) (sandbox.Level, error) {
	s, err := p.Stage(cmd.Path, cmd.Args, cmd.Env)
	if err != nil {
		return sandbox.Level{}, err
	}
	cmd.Path, cmd.Args, cmd.Env, cmd.ExtraFiles = s.Path, s.Args, []string{}, s.Files
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

// Run runs a confined command to its end. It reads nothing, and what it says goes to out. What is left of it when ctx is
// done is killed.
func Run(ctx context.Context, c Command, out *os.File) error {
	group, err := newWatcher()
	if err != nil {
		return fmt.Errorf("starting the watcher of %q: %w", c.Args[0], err)
	}
	defer group.close()
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.Env, c.Dir, out, out
	if _, err := startConfined(group, cmd, *c.Confine); err != nil {
		return fmt.Errorf("starting %q: %w", c.Args[0], err)
	}
	defer context.AfterFunc(ctx, group.kill)()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("running %q: %w", c.Args[0], errors.Join(err, context.Cause(ctx)))
	}
	return nil
}
