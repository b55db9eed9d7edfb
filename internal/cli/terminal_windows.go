package cli

import (
	"os"

	"golang.org/x/sys/windows"
)

// notifyResize returns a channel that tells of nothing: consoles have no signal for it, and each second is looked.
func notifyResize() (<-chan os.Signal, func()) { return nil, func() {} }

// prepareOutput lets a console obey sequences, and returns what takes that back.
func prepareOutput(out *os.File) func() {
	h, mode := windows.Handle(out.Fd()), uint32(0)
	if err := windows.GetConsoleMode(h, &mode); err != nil {
		return func() {}
	}
	windows.SetConsoleMode(h, mode|windows.ENABLE_PROCESSED_OUTPUT|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING)
	return func() { windows.SetConsoleMode(h, mode) }
}
