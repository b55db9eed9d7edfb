//go:build unix

package cli

import (
	"os"
	"syscall"
)

// tiedTo is the descriptor of the end of the pipe that is ours.
const tiedTo = 3

// starter takes the pipe over, of which nothing has a part that is started from now on, and returns what waits until the program
// that started this one is gone.
func starter() (wait func()) {
	syscall.CloseOnExec(tiedTo)
	syscall.SetNonblock(tiedTo, true) // so that the wait takes no thread
	pipe := os.NewFile(tiedTo, "pipe")
	return func() { pipe.Read(make([]byte, 1)) }
}
