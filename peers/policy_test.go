package peers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// project is a directory with two repositories, a link out of one of them, and a file beside it that nobody may read.
type project struct{ dir, one, two, outside string }

func newProject(t *testing.T) project {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := project{
		dir: filepath.Join(top, "work"), one: filepath.Join(top, "work", "one"), two: filepath.Join(top, "work", "two"),
		outside: filepath.Join(top, "outside.txt"),
	}
	for _, dir := range []string{p.one, p.two} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("in "+filepath.Base(dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(p.outside, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.outside, filepath.Join(p.one, "link.txt")); err != nil {
		t.Fatal(err)
	}
	return p
}

// What a step must come to.
const (
	works     = "works"
	refused   = "refused by the guard"    // the server does not see the call
	anyResult = "whatever it may come to" // for steps that prepare
)

type expectation struct {
	step
	want string
	says string // part of the result's text
}

// knows waits until the reference server, which asks for roots in its own time, knows of dir.
func knows(dir string) expectation {
	s := call("list_allowed_directories", nil)
	s.Do, s.Text = "until", dir
	return expectation{s, works, dir}
}

func readFile(path string) step { return call("read_text_file", args{"path": path}) }

// TestBoundary puts the guard before the reference filesystem server and has clients read inside and outside of its
// roots.
func TestBoundary(t *testing.T) {
	p := newProject(t)
	in := func(elem ...string) string { return filepath.Join(append([]string{p.dir}, elem...)...) }
	for _, tt := range []struct {
		name        string
		flags, args []string
		roots       []string // the client's
		steps       []expectation
	}{
		{
			name: "a file, a link, a list of files", flags: []string{"--root", p.one}, args: []string{p.one},
			steps: []expectation{
				{readFile(in("one/a.txt")), works, "in one"},
				{readFile(in("two/a.txt")), refused, ""},
				{readFile(p.outside), refused, ""},
				{readFile(in("one/link.txt")), refused, ""},
				{readFile(in("one/../../outside.txt")), refused, ""},
				{call("write_file", args{"path": in("new.txt"), "content": "x"}), refused, ""},
				{call("move_file", args{"source": in("one/a.txt"), "destination": in("two/b.txt")}), refused, ""},
				{call("read_multiple_files", args{"paths": []string{in("one/a.txt"), p.outside}}), refused, ""},
			},
		},
		{
			name: "read only", flags: []string{"--ro", p.one},
			steps: []expectation{
				knows(p.one),
				{readFile(in("one/a.txt")), works, "in one"},
				{call("write_file", args{"path": in("one/new.txt"), "content": "x"}), refused, ""},
			},
		},
		{
			name: "a client without roots", flags: []string{"--root", p.one},
			steps: []expectation{
				knows(p.one),
				{readFile(in("one/a.txt")), works, "in one"},
				{readFile(p.outside), refused, ""},
			},
		},
		{
			name: "a client whose list is empty", flags: []string{"--root", p.one}, roots: []string{},
			steps: []expectation{
				knows(p.one),
				{readFile(in("one/a.txt")), works, "in one"},
				{readFile(in("two/a.txt")), refused, ""},
			},
		},
		{
			name: "a client whose list is wider", flags: []string{"--root", p.one}, roots: []string{p.dir},
			steps: []expectation{
				knows(p.one),
				{readFile(in("one/a.txt")), works, "in one"},
				{readFile(in("two/a.txt")), refused, ""},
			},
		},
		{
			name: "a client whose list is elsewhere", flags: []string{"--root", p.one}, roots: []string{p.two},
			steps: []expectation{
				{readFile(in("one/a.txt")), refused, ""},
				{readFile(in("two/a.txt")), refused, ""},
			},
		},
		{
			name: "a client's list that is ignored", flags: []string{"--root", p.dir, "--client-roots", "ignore"}, roots: []string{p.two},
			steps: []expectation{
				knows(p.dir),
				{readFile(in("one/a.txt")), works, "in one"},
				{readFile(in("two/a.txt")), works, "in two"},
				{readFile(p.outside), refused, ""},
			},
		},
	} {
		for _, client := range []peer{tsLegacy, goLegacy} {
			t.Run(tt.name+"/"+client.name, func(t *testing.T) {
				t.Parallel()
				needNode(t)
				expect(t, client, append(slices.Clone(tsFilesystem.command), tt.args...), tt.flags, tt.roots, tt.steps)
			})
		}
	}
}

// TestWithoutAnyFlag runs the line that the documentation begins with: the arguments of the server are its boundary.
func TestWithoutAnyFlag(t *testing.T) {
	needNode(t)
	p := newProject(t)
	installIn(t, p.one)
	t.Setenv("npm_config_offline", "true")
	results(t, tsLegacy, guardedBy(nil, []string{"npx", "-y", "@modelcontextprotocol/server-filesystem", p.one}), nil, []expectation{
		{readFile(filepath.Join(p.one, "a.txt")), works, "in one"},
		{readFile(filepath.Join(p.two, "a.txt")), refused, ""},
		{readFile(p.outside), refused, ""},
	})
}

// installIn lets npx find the peers: it looks for what is installed upwards from where it is started.
func installIn(t *testing.T, dir string) {
	t.Helper()
	if err := os.Symlink(abs("node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
}

// TestWorkspaceSwitch has a client change its roots and use the new ones at once, again and again: the reference server
// has to have fetched them by then.
func TestWorkspaceSwitch(t *testing.T) {
	for _, client := range []peer{tsLegacy, goLegacy} {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			needNode(t)
			p := newProject(t)
			now, other := p.one, p.two
			steps := []expectation{knows(now)}
			for range 10 {
				steps = append(steps,
					expectation{readFile(filepath.Join(now, "a.txt")), works, "in " + filepath.Base(now)},
					expectation{readFile(filepath.Join(other, "a.txt")), refused, ""},
					expectation{call("list_allowed_directories", nil), works, now},
					expectation{step{Do: "roots", Roots: []string{other}}, anyResult, ""},
				)
				now, other = other, now
			}
			expect(t, client, tsFilesystem.command, []string{"--root", p.dir}, []string{p.one}, steps)
		})
	}
}

// TestRootsToldToStatelessServers has servers of the stateless era ask for roots: they get what is both configured and in
// the client's list.
func TestRootsToldToStatelessServers(t *testing.T) {
	rootsAreAsked(t, []peer{tsPinned, goModern}, []peer{tsServer, goServerPeer})
}

// rootsAreAsked has each client call tools of each server that ask for roots in mid-call, once as a client with roots and
// once as one without.
func rootsAreAsked(t *testing.T, clients, servers []peer) {
	for _, client := range clients {
		for _, server := range servers {
			t.Run(client.name+"/"+server.name, func(t *testing.T) {
				t.Parallel()
				needNode(t)
				p := newProject(t)
				told := "file://" + filepath.ToSlash(p.one)
				steps := []expectation{{call("need_roots", nil), works, told}, {call("two_rounds", nil), works, told + " accept Ada"}}
				expect(t, client, server.command, []string{"--root", p.one}, []string{p.dir, filepath.Dir(p.outside)}, steps)
				expect(t, client, server.command, []string{"--root", p.one}, nil, steps)
			})
		}
	}
}

// expect has a client that has these roots do the steps through the guard.
func expect(t *testing.T, client peer, server, flags, roots []string, steps []expectation) {
	t.Helper()
	inner := t.TempDir()
	results(t, client, guardedBy(flags, tapped(inner, server)), roots, steps)
	var want, got []string
	for _, s := range steps {
		if s.want == works {
			want = append(want, s.Tool)
		}
	}
	for _, start := range readRecording(t, inner) {
		for _, m := range parse(t, start.in) {
			const until = "list_allowed_directories"
			again := m.Params.Name == until && slices.Contains(got[max(0, len(got)-1):], until)
			if m.Method == "tools/call" && m.Params.RequestState == nil && !again {
				got = append(got, m.Params.Name)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the server was called for %q\nwant %q", got, want)
	}
}

func results(t *testing.T, client peer, command, roots []string, steps []expectation) {
	t.Helper()
	p := plan{Roots: roots, Content: map[string]any{"name": "Ada"}}
	for _, s := range steps {
		p.Steps = append(p.Steps, s.step)
	}
	out := drive(t, client, command, p)
	for i, s := range steps {
		var got struct {
			Result struct {
				IsError bool
				Content []struct{ Text string }
			}
			Error any
		}
		if err := json.Unmarshal([]byte(out[i]), &got); err != nil {
			t.Fatal(err)
		}
		var text string
		for _, c := range got.Result.Content {
			text += c.Text
		}
		ok := got.Error == nil
		switch s.want {
		case works:
			ok = ok && !got.Result.IsError && strings.Contains(text, s.says)
		case refused:
			ok = ok && got.Result.IsError && strings.Contains(text, "Rootbound")
		}
		if !ok || strings.Contains(text, "canary") {
			t.Errorf("step %d (%s %s %v) came to %s\nwant: %s %s", i, s.Do, s.Tool, s.Arguments, out[i], s.want, s.says)
		}
	}
}
