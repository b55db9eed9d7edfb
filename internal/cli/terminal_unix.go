//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyResize returns a channel that tells of a screen that has another size, and what ends that.
func notifyResize() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}

// prepareOutput lets a terminal obey sequences, which here it does, and returns what takes that back.
func prepareOutput(*os.File) func() { return func() {} }
