package cli

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/sandbox"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// What servers of several languages say when the kernel denies them something, and what is told of it.
func TestDenials(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out of it")
	for _, d := range []string{in, out} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(out, "key.txt")
	for name, mode := range map[string]os.FileMode{file: 0o600, filepath.Join(out, "tool"): 0o700} {
		if err := os.WriteFile(name, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", out)
	c := &confinement{plan: &config.Plan{}}
	shell := filepath.Join(out, "shell")
	if err := os.WriteFile(shell, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	c.held = sandbox.Policy{Rules: []sandbox.Rule{{Path: in, Access: roots.ReadWrite}, {Path: shell, Access: roots.ReadOnly, Execute: true}}}
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"EACCES: permission denied, open '" + file + "'", []string{"--allow-read '" + file + "'"}},
		{"[Errno 13] Permission denied: '" + file + "'", []string{"--allow-read '" + file + "'"}},
		{`thread 'main' panicked: could not read "` + file + `": Permission denied (os error 13)`, []string{"--allow-read '" + file + "'"}},
		{"EACCES: permission denied, mkdir '" + out + "/new'", []string{"--allow-write '" + out + "'"}},
		{"Error: spawn tool EACCES", []string{"--allow-run tool"}},
		{`exec: "tool": permission denied`, []string{"--allow-run tool"}},
		{"'" + shell + "': 1: tool: Permission denied", []string{"--allow-run tool"}}, // the shell says so by its own name
		{"'" + shell + "': can't open file '" + file + "': [Errno 13] Permission denied", []string{"--allow-read '" + file + "'"}},
		{"sh: 1: tool: Permission denied", []string{"--allow-run tool"}},
		{"connect EACCES 93.184.216.34:443", []string{"--net 93.184.216.34:443"}},
		{"getaddrinfo EAI_AGAIN api.example.com", []string{"--net api.example.com:443, or another port"}},
		{"[Errno 97] Address family not supported by protocol", []string{"--net HOST:PORT, or --allow-unix for Unix sockets"}},
		// What is open to it, is not there, or was not denied, the confinement had no part in.
		{"EACCES: permission denied, open '" + in + "/file'", nil},
		{"EACCES: permission denied, open '/nowhere/at/all'", nil},
		{"ENOENT: no such file or directory, open '" + file + "'", nil},
		{"sh: 1: other: Permission denied", nil},
		{"a text of " + file, nil},
	} {
		var got []string
		for _, d := range c.denials(tt.text) {
			got = append(got, d.fix)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s (-want +got):\n%s", tt.text, cmp.Diff(tt.want, got))
		}
	}
	c.held.Net.All = true
	if got := c.denials("connect EACCES 93.184.216.34:443"); got != nil {
		t.Errorf("with the whole network it was kept from %v", got)
	}
}

// That a server could not be started is our own word, whatever it says.
func TestOwnFailureIsNoDenial(t *testing.T) {
	r := &exchange.Request{Msg: wire.NewRequest(wire.Quote("1"), "initialize", nil)}
	text := `starting the server "/usr/bin/python3": confining the program: operation not permitted`
	for reason, want := range map[string]bool{`{"reason":"server not started"}`: false, `{"reason":"another"}`: true} {
		if _, is := failure(exchange.Fail(r, wire.CodeInternal, text, []byte(reason))); is != want {
			t.Errorf("with %s it is taken for a denial: %v", reason, is)
		}
	}
}
