package transport

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// apart lets a command run in a process group of its own, which Ctrl-C in our console does not reach.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}
