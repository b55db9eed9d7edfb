//go:build unix

package transport

import (
	"os/exec"
	"syscall"
	"testing"
)

// Ctrl-C is sent to the process group of the terminal, and a browser is none of it.
func TestWhatIsDetachedIsInAnotherGroup(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	apart(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if group, err := syscall.Getpgid(cmd.Process.Pid); err != nil || group != cmd.Process.Pid {
		t.Errorf("process %d is in the group %d, %v", cmd.Process.Pid, group, err)
	}
}
