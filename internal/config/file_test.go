package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/results"
	"github.com/rootbound/rootbound/roots"
)

func parse(t testing.TB, path, text string) *File {
	t.Helper()
	f, err := Parse(path, []byte(text))
	if err != nil {
		t.Fatalf("parsing\n%s\n%v", text, err)
	}
	return f
}

const full = `# everything
active = "api"
client_roots = "ignore"
list_changed = false
on_change = "restart"
paths = "elsewhere"
allow_broad = true
share_roots = true
strict_protocol = true
pins = "off"

[[roots]]
path = "/srv/api"
name = "api"

[[roots]]
uri = "file:///srv/a%20b"
access = "ro"
pin = true

[results]
limits = "warn"
paths = "block"
schema = "off"
agreement = "block"
types = "redact"
characters = "redact"
secrets = "redact"
max_mb = 4
max_depth = 10
max_parts = 100

[log]
enabled = true
dir = "/var/log/rb"
bodies = true
sync = true
keep_days = 7
max_mb = 10

[server.fs]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "{roots}"]
env = { TOKEN = "x" }
cwd = "{root}"
roots = [{ path = "rel", access = "no-delete" }]

[server.fs.tool.search]
paths = ["where"]
not_paths = ["pattern"]
defaults = { directory = "{root}" }

[server.plain]
command = "server"
`

const fullJSON = `{
  "$schema": "https://example.test/rootbound.schema.json",
  "active": "api", "client_roots": "ignore", "list_changed": false, "on_change": "restart", "paths": "elsewhere",
  "allow_broad": true, "share_roots": true, "strict_protocol": true, "pins": "off",
  "roots": [{"path": "/srv/api", "name": "api"}, {"uri": "file:///srv/a%20b", "access": "ro", "pin": true}],
  "results": {"limits": "warn", "paths": "block", "schema": "off", "agreement": "block", "types": "redact", "characters": "redact",
    "secrets": "redact", "max_mb": 4, "max_depth": 10, "max_parts": 100},
  "log": {"enabled": true, "dir": "/var/log/rb", "bodies": true, "sync": true, "keep_days": 7, "max_mb": 10},
  "server": {
    "fs": {
      "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "{roots}"], "env": {"TOKEN": "x"}, "cwd": "{root}",
      "roots": [{"path": "rel", "access": "no-delete"}],
      "tool": {"search": {"paths": ["where"], "not_paths": ["pattern"], "defaults": {"directory": "{root}"}}}
    },
    "plain": {"command": "server"}
  }
}`

func TestParseOwnForm(t *testing.T) {
	for path, text := range map[string]string{"/c/rootbound.toml": full, "/c/rootbound.json": fullJSON, "/c/x": full, "/c/y": fullJSON} {
		f := parse(t, path, text)
		if f.form != ours {
			t.Errorf("%s: form %d", path, f.form)
		}
		type plain struct {
			Active                           string
			Mode                             roots.Mode
			ListChanged, Broad, Share, Stric bool
			OnChange                         OnChange
			Paths                            launch.Paths
			Servers                          []string
			Roots                            []Root
		}
		if f.Pins.Value != PinsOff {
			t.Errorf("%s: pins = %q", path, f.Pins.Value)
		}
		r := f.Results
		if got, want := fmt.Sprint(r.Options(results.Defaults())), "{[warn block off block redact redact redact] {4194304 10 100}}"; got != want {
			t.Errorf("%s: what is done about answers is %s, want %s", path, got, want)
		}
		strip := func(list []Root) []Root {
			var out []Root
			for _, r := range list {
				if r.Origin.File != path || r.Origin.Pos.Line < 2 {
					t.Errorf("%s: root %q has the origin %v", path, r.Path, r.Origin)
				}
				r.Origin = Origin{}
				out = append(out, r)
			}
			return out
		}
		got := plain{f.Active.Value, f.ClientRoots.Value, f.ListChanged.Value, f.AllowBroad.Value, f.ShareRoots.Value,
			f.StrictProtocol.Value, f.OnChange.Value, f.Paths.Value, f.serverNames(), strip(f.Roots.Value)}
		want := plain{"api", roots.Ignore, false, true, true, true, Restart, launch.Elsewhere, []string{"fs", "plain"}, []Root{
			{Path: "/srv/api", Name: "api", Access: roots.ReadWrite}, {Path: "/srv/a b", Access: roots.ReadOnly, Pin: true},
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		if !f.ListChanged.Given() {
			t.Errorf("%s: list_changed is not given", path)
		}
		fs, _ := f.Server("fs")
		if fs.Command.Value != "npx" || len(fs.Args.Value) != 3 || fs.Env.Value["TOKEN"] != "x" || fs.Cwd.Value != "{root}" {
			t.Errorf("%s: server %+v", path, fs)
		}
		if diff := cmp.Diff([]Root{{Path: "rel", Access: roots.Read | roots.Write}}, strip(fs.Roots.Value)); diff != "" {
			t.Errorf("%s: roots of fs (-want +got):\n%s", path, diff)
		}
		tool := fs.Tools["search"]
		if tool.Paths.Value[0] != "where" || tool.NotPaths.Value[0] != "pattern" || tool.Defaults.Value["directory"] != "{root}" {
			t.Errorf("%s: tool %+v", path, tool)
		}
		l := f.Log
		if !l.Enabled.Value || l.Dir.Value != "/var/log/rb" || !l.Bodies.Value || !l.Sync.Value || l.KeepDays.Value != 7 || l.MaxMB.Value != 10 {
			t.Errorf("%s: log %+v", path, l)
		}
		if plain, _ := f.Server("plain"); f.of(plain).Roots.Value[0].Path != "/srv/api" || f.of(fs).Roots.Value[0].Path != "rel" {
			t.Errorf("%s: a server's own roots do not come before those for all", path)
		}
	}
}

func TestParseClientForms(t *testing.T) {
	const jsonSkeleton = `{
  "mcpServers": {
    "filesystem": {
      "type": "stdio", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem"], "timeout": 60000,
      "env": {"A": "x", "N": 5, "UNSET": null}, "cwd": "/srv", "disabled": false, "autoApprove": ["read_file"],
      "roots": [{"uri": "file:///srv/api", "name": "api"}],
      "capabilities": {"roots": {"listChanged": true}, "sampling": {}}
    },
    "quiet": {"command": "x", "roots": [{"uri": "file:///srv/api"}], "capabilities": {"roots": {}}},
    "absent": {"command": "x", "roots": [{"uri": "file:///srv/api"}]},
    "remote": {"url": "https://example.test/mcp", "headers": {"Authorization": "x"}}
  },
  "preferences": {"anything": [1, 2]}, // a comment
}`
	const tomlSkeleton = `title = "mine"
[[mcp.servers]]
name = "filesystem"
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem"]
startup_timeout = 5

[[mcp.servers.roots]]
uri = "file:///srv/api"
name = "api"

[mcp.servers.capabilities.roots]
listChanged = true

[[mcp.servers]]
name = "quiet"
command = "x"
roots = [{ uri = "file:///srv/api" }]
capabilities = { roots = { listChanged = false } }

[[mcp.servers]]
name = "absent"
command = "x"
roots = [{ uri = "file:///srv/api" }]

[[mcp.servers]]
name = "remote"
url = "https://example.test/mcp"
`
	for path, text := range map[string]string{"/c/mcp.json": jsonSkeleton, "/c/mcp.toml": tomlSkeleton} {
		f := parse(t, path, text)
		if f.form != client {
			t.Errorf("%s: form %d", path, f.form)
		}
		if diff := cmp.Diff([]string{"filesystem", "quiet", "absent", "remote"}, f.serverNames()); diff != "" {
			t.Errorf("%s: servers (-want +got):\n%s", path, diff)
		}
		fs, _ := f.Server("filesystem")
		r := fs.Roots.Value[0]
		if fs.Command.Value != "npx" || r.Path != "/srv/api" || r.Name != "api" || r.Access != roots.ReadWrite || !fs.ListChanged.Value {
			t.Errorf("%s: server %+v", path, fs)
		}
		for _, name := range []string{"quiet", "absent"} {
			if s, _ := f.Server(name); !s.ListChanged.Given() || s.ListChanged.Value {
				t.Errorf("%s: %s says listChanged %+v, want false", path, name, s.ListChanged)
			}
		}
		if s, _ := f.Server("remote"); s.ListChanged.Given() || s.Roots.Given() || s.Command.Given() {
			t.Errorf("%s: remote server %+v", path, s)
		}
	}
	f := parse(t, "/c/mcp.json", jsonSkeleton)
	fs, _ := f.Server("filesystem")
	if diff := cmp.Diff(map[string]string{"A": "x", "N": "5"}, fs.Env.Value); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
}

func TestParseFragments(t *testing.T) {
	tests := []struct {
		path, text string
		form       form
		given      bool // list_changed
		changed    bool
	}{
		{"x.json", `{"roots": [{"uri": "file:///a"}], "capabilities": {"roots": {"listChanged": true}}}`, fragment, true, true},
		{"x.json", `{"roots": [{"uri": "file:///a"}], "capabilities": {}}`, fragment, true, false},
		{"x.json", `{"roots": [{"uri": "file:///a"}]}`, fragment, true, false},
		{"x.json", `{"capabilities": {"roots": {"listChanged": true}}}`, fragment, true, true},
		{"x.toml", "[[roots]]\nuri = \"file:///a\"\n[capabilities.roots]\nlistChanged = true\n", fragment, true, true},
		{"x.json", `{"roots": [{"path": "/a"}]}`, ours, false, false},
		{"x.json", `{"roots": []}`, ours, false, false},
		{"x.json", `{}`, ours, false, false},
		{"x.toml", "[[roots]]\nuri = \"file:///a\"\n", ours, false, false},
		{"x.toml", "", ours, false, false},
	}
	for _, tt := range tests {
		f := parse(t, tt.path, tt.text)
		if f.form != tt.form || f.ListChanged.Given() != tt.given || f.ListChanged.Value != tt.changed {
			t.Errorf("%s: form %d, listChanged %+v", tt.text, f.form, f.ListChanged)
		}
	}
	// A fragment beside servers holds for those without their own.
	f := parse(t, "x.json", `{"roots": [{"uri": "file:///a"}], "capabilities": {"roots": {"listChanged": true}},
		"mcpServers": {"own": {"roots": [{"uri": "file:///b"}]}, "none": {}}}`)
	own, _ := f.Server("own")
	none, _ := f.Server("none")
	if f.of(own).Roots.Value[0].Path != "/b" || !f.of(own).ListChanged.Value || f.of(none).Roots.Value[0].Path != "/a" {
		t.Errorf("own %+v, none %+v", f.of(own), f.of(none))
	}
}

func TestParseFaults(t *testing.T) {
	tests := []struct {
		path, text string
		want       []string
	}{
		{"c.toml", "[server.fs]\ncomand = \"npx\"\n", []string{`c.toml:2:1: unknown key "comand": did you mean "command"?`}},
		{"c.toml", "[servers.fs]\n", []string{`c.toml:1:2: unknown key "servers": servers are tables [server.NAME]; of clients' files only mcpServers`}},
		{"c.toml", "[serve.fs]\n", []string{`c.toml:1:2: unknown key "serve": did you mean "server"?`}},
		{"c.toml", "[log]\nfoo = 1\n", []string{`c.toml:2:1: unknown key "foo": known are enabled, dir, bodies, sync, keep_days, max_mb`}},
		{"c.json", "{\"roots\": [{\"path\": \"/a\", \"acess\": \"ro\"}]}", []string{`c.json:1:27: unknown key "acess": did you mean "access"?`}},
		{"c.toml", "[[roots]]\npath = \"/a\"\naccess = \"rw-\"\nname = 5\n", []string{
			`c.toml:3:10: unknown value "rw-": did you mean "rw"?`, `c.toml:4:8: this is a number and has to be a string`}},
		{"c.toml", "client_roots = \"all\"\n", []string{`c.toml:1:16: unknown value "all": known are narrow, ignore, accept`}},
		{"c.toml", "roots = [\"/a\"]\n", []string{`c.toml:1:10: this is a string and has to be a table, such as { path = "/srv/repo" }`}},
		{"c.toml", "roots = [{ name = \"a\" }]\n", []string{`c.toml:1:10: a root has either a path or a uri`}},
		{"c.toml", "roots = [{ path = \"/a\", uri = \"file:///a\" }]\n", []string{`c.toml:1:10: a root has either a path or a uri`}},
		{"c.toml", "roots = [{ path = \"\" }]\n", []string{`c.toml:1:10: a root's path is empty`}},
		{"c.toml", "roots = [{ path = \"/a\", name = \"x\" }, { path = \"/b\", name = \"x\" }]\n", []string{`c.toml:1:39: two roots are named "x"`}},
		{"c.toml", "log = \"off\"\n[server]\nfs = 1\n", []string{
			`c.toml:1:7: this is a string and has to be a table`, `c.toml:3:6: this is a number and has to be a table`}},
		{"c.toml", "[log]\nkeep_days = 0\nmax_mb = 1.5\nsync = \"yes\"\n", []string{
			`c.toml:2:13: this has to be a whole number from 1 on`, `c.toml:3:10: this has to be a whole number from 1 on`,
			`c.toml:4:8: this is a string and has to be true or false`}},
		{"c.toml", "a = 1\na = 2\n", []string{`c.toml:2:1: key a is already defined`}},
		{"c.json", `{"server": {"a": {}, "a": {}}}`, []string{`c.json:1:22: "a" is given twice, first on line 1`}},
		{"c.json", `[]`, []string{`c.json:1:1: this is an array and has to be a table`}},
		{"c.json", "{\n  \"server\": {", []string{`c.json:2:14: parsing value: unexpected EOF`}},
		{"c.toml", "roots = [{ path = \"a\\u0000b\" }]\n", []string{`c.toml:1:19: a NUL has no place here`}},
		{"mcp.json", `{"mcpServers": {"a": {"roots": [{"uri": "/srv", "nam": "x"}], "capabilities": {"root": {}, "roots": {"listchanged": true}}}}}`,
			[]string{`mcp.json:1:41: `, `mcp.json:1:49: unknown key "nam": did you mean "name"?`,
				`mcp.json:1:80: unknown key "root": did you mean "roots"?`,
				`mcp.json:1:102: unknown key "listchanged": did you mean "listChanged"?`}},
		{"mcp.json", `{"mcpServers": {"a": {"args": "x"}, "b": 1}}`, []string{
			`mcp.json:1:31: this is a string and has to be an array`, `mcp.json:1:42: this is a number and has to be a table`}},
		{"mcp.toml", "[[mcp.servers]]\ncommand = \"x\"\n[[mcp.servers]]\nname = \"a\"\n[[mcp.servers]]\nname = \"a\"\n", []string{
			`mcp.toml:1:7: a server needs a name`, `mcp.toml:6:8: two servers are named "a"`}},
	}
	for _, tt := range tests {
		_, err := Parse(tt.path, []byte(tt.text))
		if err == nil {
			t.Errorf("%s: no error", tt.text)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		ok := len(lines) == len(tt.want)
		for i := range min(len(lines), len(tt.want)) {
			ok = ok && strings.HasPrefix(lines[i], tt.want[i])
		}
		if !ok {
			t.Errorf("%s\n got %q\nwant %q", tt.text, lines, tt.want)
		}
		var e *Error
		if !errors.As(err, &e) || e.File != tt.path {
			t.Errorf("%s: the error is no *Error of the file: %#v", tt.text, err)
		}
	}
}

func TestLoadMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.toml")
	_, err := Load(path)
	if !errors.Is(err, os.ErrNotExist) || strings.Count(err.Error(), path) != 1 {
		t.Errorf("error %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{full, fullJSON, `{"mcpServers": {"a": {"roots": [{"uri": "file:///a"}], "capabilities": {"roots": {"listChanged": true}}}}}`,
		"[[mcp.servers]]\nname = \"a\"\n[[mcp.servers.roots]]\nuri = \"file:///a\"\n", `{"roots": [{"uri": "x:"}]}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("/c/file", []byte(text))
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "/c/file:") {
					t.Fatalf("an error without a place: %q", line)
				}
			}
			return
		}
		for _, s := range file.Servers {
			for _, r := range file.of(s).Roots.Value {
				if r.Path == "" || r.Access == 0 || r.Origin.Pos.Line == 0 {
					t.Fatalf("a root that says nothing: %+v", r)
				}
			}
		}
	})
}
