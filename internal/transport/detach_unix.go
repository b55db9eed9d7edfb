//go:build unix

package transport

import (
	"os/exec"
	"syscall"
)

// apart lets a command run in a session of its own, which Ctrl-C at our terminal does not reach.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
