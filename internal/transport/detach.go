package transport

import (
	"fmt"
	"os/exec"
)

// Detach starts a program that goes on by itself, such as a browser: what ends this one at the terminal does not end it.
func Detach(args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	apart(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %q: %w", args[0], err)
	}
	go cmd.Wait() // how it ends is its own affair
	return nil
}
