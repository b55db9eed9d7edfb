//go:build unix

package cli

import (
	"os"
	"syscall"
)

// waitForStarter returns when the program that started this one is gone.
func waitForStarter() {
	syscall.CloseOnExec(tiedTo)
	syscall.SetNonblock(tiedTo, true) // so that the wait takes no thread
	os.NewFile(tiedTo, "pipe").Read(make([]byte, 1))
}
