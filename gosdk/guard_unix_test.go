//go:build unix

package gosdk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rootbound/rootbound/roots"
)

// As a server of its tests this program says its process, and reads files as it is told.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "server" {
		os.Exit(server())
	}
	os.Exit(m.Run())
}

func server() int {
	s := mcp.NewServer(info, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "pid"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return say(strconv.Itoa(os.Getpid())), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "read"}, func(_ context.Context, _ *mcp.CallToolRequest, in readInput) (*mcp.CallToolResult, any, error) {
		text, err := os.ReadFile(in.Path)
		return say(string(text)), nil, err
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestGuard(t *testing.T) {
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/rootbound")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the guard: %v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Run("asks", func(t *testing.T) { askedThroughTheClient(t, self) })
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			dirs := workspace(t, "a", "b", "c")
			start := func() (*mcp.ClientSession, *os.Process, int) {
				t.Helper()
				transport, err := Guard([]string{self, "server"}, "--preset", "boundary", "--root", dirs[0].Path, "--root", dirs[1].Path)
				if err != nil {
					t.Fatal(err)
				}
				transport.Command.Stderr = io.Discard
				client := NewClient(info, nil, roots.NewList(roots.NewSet(dirs[1], dirs[2])))
				cs, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
				if err != nil {
					t.Fatal(err)
				}
				pid, err := strconv.Atoi(callTool(cs, "pid", struct{}{}))
				if err != nil {
					t.Fatal(err)
				}
				return cs, transport.Command.Process, pid
			}
			cs, guard, pid := start()
			if got := callRead(cs, in(dirs[1])); got != "in b" {
				t.Errorf("inside: %q", got)
			}
			for _, d := range []roots.Dir{dirs[0], dirs[2]} {
				if got := callRead(cs, in(d)); strings.HasPrefix(got, "in ") {
					t.Errorf("in %s, which client and operator do not both allow: %q", d.Name, got)
				}
			}
			if err := cs.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
			gone(t, "the guard", guard.Pid, true)
			gone(t, "its server", pid, false)

			cs, guard, pid = start()
			if err := guard.Kill(); err != nil {
				t.Fatal(err)
			}
			if got := callRead(cs, in(dirs[1])); !strings.HasPrefix(got, "error: ") {
				t.Errorf("a call when the guard is killed: %q", got)
			}
			cs.Close()
			gone(t, "the guard that was killed", guard.Pid, true)
			gone(t, "its server", pid, false)
		})
	}
}

// Calls of which the guard knows nothing are asked about, through the client's own handler in both eras.
func askedThroughTheClient(t *testing.T, self string) {
	t.Setenv("CI", "true") // nobody is waited for in a terminal
	for _, revision := range revisions {
		for decision, want := range map[string]string{"allow once": "in a", "deny": "the user said no"} {
			dirs := workspace(t, "a")
			transport, err := Guard([]string{self, "server"}, "--ask", "always", "--root", dirs[0].Path)
			if err != nil {
				t.Fatal(err)
			}
			transport.Command.Stderr = io.Discard
			var asked []string
			client := NewClient(info, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked = append(asked, r.Params.Message)
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}, nil
			}}, roots.NewList(roots.NewSet(dirs...)))
			cs, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
			if err != nil {
				t.Fatal(err)
			}
			if got := callRead(cs, in(dirs[0])); !strings.Contains(got, want) {
				t.Errorf("%s, %s: %q, want ... %s ...", revision, decision, got, want)
			}
			if len(asked) != 1 || !strings.Contains(asked[0], `"read"`) {
				t.Errorf("%s, %s: the person was asked %q", revision, decision, asked)
			}
			cs.Close()
		}
	}
}

// gone waits until a process is gone, also as one that is to be reaped, if that is for us to do. There are systems that never do.
func gone(t *testing.T, what string, pid int, ours bool) {
	t.Helper()
	for range 1000 {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // not everywhere
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) || !ours && bytes.Contains(stat, []byte(") Z ")) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%s is still there", what)
}

func TestGuardIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Guard([]string{"server"})
	if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "go install github.com/rootbound/rootbound/cmd/rootbound@latest") {
		t.Errorf("without the program: %v", err)
	}
	if _, err := Guard(nil); err == nil || errors.Is(err, exec.ErrNotFound) {
		t.Errorf("without a command: %v", err)
	}
}
