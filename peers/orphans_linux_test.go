package peers

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestNoProcessIsLeft ends the guard in each way there is while it has a server under npx, which starts a shell, which
// starts the server.
func TestNoProcessIsLeft(t *testing.T) {
	for name, end := range map[string]func(*exec.Cmd, io.Closer){
		"closed":     func(_ *exec.Cmd, stdin io.Closer) { stdin.Close() },
		"terminated": func(c *exec.Cmd, _ io.Closer) { c.Process.Signal(syscall.SIGTERM) },
		"killed":     func(c *exec.Cmd, _ io.Closer) { c.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			needNode(t)
			p := newProject(t)
			installIn(t, p.one)
			command := guardedBy([]string{"--log", "off"}, []string{"npx", "-y", "@modelcontextprotocol/server-filesystem", p.one})
			cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
			cmd.Env = append(os.Environ(), "npm_config_offline=true")
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			io.WriteString(stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
				`"capabilities":{},"clientInfo":{"name":"peers","version":"1"}}}`+"\n")
			if answer, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || !strings.Contains(answer, "protocolVersion") {
				t.Fatalf("the server answered %q, %v", answer, err)
			}
			if n := processesWith(p.one); n < 3 {
				t.Errorf("%d processes carry the directory; the guard, npx and the server should", n)
			}
			end(cmd, stdin)
			cmd.Wait()
			for until := time.Now().Add(patience); processesWith(p.one) > 0; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(until) {
					t.Fatalf("%d processes are left", processesWith(p.one))
				}
			}
		})
	}
}

// processesWith counts the processes that have arg among their arguments.
func processesWith(arg string) int {
	n := 0
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		if b, err := os.ReadFile(name); err == nil && strings.Contains(string(b), arg) {
			n++
		}
	}
	return n
}
