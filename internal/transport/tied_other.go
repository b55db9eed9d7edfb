//go:build unix && !linux

package transport

import (
	"os"
	"os/exec"
	"syscall"
)

// startTied starts cmd; the watcher alone ends it with this program.
func startTied(cmd *exec.Cmd) error { return cmd.Start() }

// pipe returns a pipe of blocking descriptors. Go's own are polled, which costs more than the copying.
func pipe() (r, w *os.File, err error) {
	var p [2]int
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := syscall.Pipe(p[:]); err != nil {
		return nil, nil, os.NewSyscallError("pipe", err)
	}
	syscall.CloseOnExec(p[0])
	syscall.CloseOnExec(p[1])
	return os.NewFile(uintptr(p[0]), "pipe"), os.NewFile(uintptr(p[1]), "pipe"), nil
}

// widen does nothing: the system chooses how much a pipe holds.
func widen(int) {}

// Adopt does nothing: this system lets no program adopt its descendants.
func Adopt() error { return nil }

// KillDescendants does nothing: what left the server's process group cannot be found on this system.
func KillDescendants() {}
