package transport

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/sandbox"
	"github.com/rootbound/rootbound/roots"
)

// What a confined server says reaches the standard error of this program, and nothing else of it reaches the server: not
// what is typed, where that is a terminal, nor what stands in a file.
func TestStandardErrorOfAConfinedServer(t *testing.T) {
	policy := sandbox.Policy{Rules: []sandbox.Rule{{Path: "/", Access: roots.ReadOnly, Execute: true}}}
	if _, err := policy.Able(); err != nil {
		t.Skipf("this kernel cannot: %v", err)
	}
	command := Command{
		Args: []string{"/bin/sh", "-c", `read x <&2 && echo "read: $x" >&2 || echo "read nothing" >&2`},
		Env:  []string{}, Dir: "/", Confine: &policy,
	}
	starts := map[string]func(*os.File) error{
		"a server": func(f *os.File) error {
			c, err := startChild(command, ProcessOptions{Stderr: f, Grace: time.Minute})
			if err == nil {
				<-c.exited
				c.wait(time.Minute)
				c.stdin.Close()
			}
			return err
		},
		"a command": func(f *os.File) error { return Run(context.Background(), command, f) },
	}
	for name, start := range starts {
		path := filepath.Join(t.TempDir(), "stderr")
		if err := os.WriteFile(path, []byte("typed\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		err = start(file)
		file.Close()
		got, rerr := os.ReadFile(path)
		if want := "typed\nread nothing\n"; string(got) != want || err != nil || rerr != nil {
			t.Errorf("%s: standard error is %q, want %q (%v, %v)", name, got, want, err, rerr)
		}
	}
}
