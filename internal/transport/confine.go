package transport

import (
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
