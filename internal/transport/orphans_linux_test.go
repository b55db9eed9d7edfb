package transport

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/mcptest"
)

func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// noShell has the guard of a test do without a shell, as in images that have none.
const noShell = "TRANSPORT_TEST_NO_SHELL=1"

func init() {
	if os.Getenv("TRANSPORT_TEST_NO_SHELL") != "" {
		shell = "/there-is-none"
	}
}

// TestNoOrphans ends the guard in each way there is, around a server that ignores SIGTERM and whose children have left
// it: one in its process group, one in a session of its own.
func TestNoOrphans(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(guard *exec.Cmd, client *os.Process, pids []int)
		// detached says that also what left the process group must end.
		detached bool
		env      string
	}{
		{"client ends", func(_ *exec.Cmd, c *os.Process, _ []int) { c.Signal(syscall.SIGTERM) }, true, ""},
		{"client killed", func(_ *exec.Cmd, c *os.Process, _ []int) { c.Kill() }, true, ""},
		{"server killed", func(_ *exec.Cmd, c *os.Process, pids []int) { syscall.Kill(pids[2], syscall.SIGKILL); c.Kill() }, true, ""},
		{"guard killed", func(g *exec.Cmd, _ *os.Process, _ []int) { g.Process.Kill() }, false, ""},
		{"guard killed, no shell", func(g *exec.Cmd, _ *os.Process, _ []int) { g.Process.Kill() }, false, noShell},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "pids")
			exe, _ := os.Executable()
			guard := exec.Command(exe)
			guard.Env = append(os.Environ(), "TRANSPORT_TEST_GUARD="+path, tt.env)
			in, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			guard.Stdin = in
			// The client is who holds the other end of the guard's input.
			client := exec.Command("sh", "-c", `printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'; exec sleep 600`)
			client.Stdout = out
			for _, cmd := range []*exec.Cmd{guard, client} {
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				defer cmd.Wait()
				defer cmd.Process.Kill()
			}
			in.Close()
			out.Close()
			pids := waitPids(t, path)
			tt.end(guard, client.Process, pids)
			guard.Wait()
			for i, pid := range pids {
				if i == 1 && !tt.detached {
					syscall.Kill(pid, syscall.SIGKILL) // named in docs/limits.md
					continue
				}
				waitGone(t, i, pid)
			}
		})
	}
}

func waitPids(t *testing.T, path string) []int {
	t.Helper()
	deadline := time.Now().Add(mcptest.Patience)
	for time.Now().Before(deadline) {
		if b, err := os.ReadFile(path); err == nil {
			var pids []int
			for _, s := range strings.Fields(string(b)) {
				pid, err := strconv.Atoi(s)
				if err != nil {
					t.Fatal(err)
				}
				pids = append(pids, pid)
			}
			if len(pids) != 3 {
				t.Fatalf("pids: %q", b)
			}
			return pids
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the server was not started")
	return nil
}

func waitGone(t *testing.T, i, pid int) {
	t.Helper()
	for deadline := time.Now().Add(mcptest.Patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if !alive(pid) {
			return
		}
	}
	syscall.Kill(pid, syscall.SIGKILL)
	t.Errorf("process %d of the server's tree (pid %d) is left", i, pid)
}
