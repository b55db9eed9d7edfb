package config

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/results"
	"github.com/rootbound/rootbound/internal/splice"
	"github.com/rootbound/rootbound/roots"
)

// home is a machine in a temporary directory: /home, /etc, a work tree and what tests put in.
type home struct {
	t   testing.TB
	top string
	sys System
}

func newHome(t testing.TB) *home {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &home{t: t, top: top}
	h.dir("work/.git", "work/src", "work/docs", "work/src/deep", "other", "user/.config/rootbound", "etc")
	h.write("work/.git/HEAD", "ref: refs/heads/main\n")
	env := map[string]string{"HOME": h.path("user"), "APPDATA": h.path("user")}
	h.sys = System{Env: func(name string) string { return env[name] }, Dir: h.path("work"), GOOS: "linux", Managed: h.path("etc")}
	return h
}

func (h *home) path(name string) string { return filepath.Join(h.top, filepath.FromSlash(name)) }

func (h *home) dir(names ...string) {
	h.t.Helper()
	for _, name := range names {
		if err := os.MkdirAll(h.path(name), 0o755); err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *home) write(name, text string) {
	h.t.Helper()
	text = strings.ReplaceAll(text, "TOP", filepath.ToSlash(h.top))
	if err := os.WriteFile(h.path(name), []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

const (
	user    = "user/.config/rootbound/rootbound.toml"
	project = "work/rootbound.toml"
	managed = "etc/rootbound.toml"
)

func (h *home) resolve(f Flags) *Plan {
	h.t.Helper()
	p, err := Resolve(h.sys, f)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// show writes roots as NAME=PATH ACCESS, with the top taken off.
func (h *home) show(s roots.Set) []string {
	var list []string
	for _, d := range s.Dirs() {
		text := filepath.ToSlash(strings.TrimPrefix(d.Path, h.top+string(filepath.Separator))) + " " + word(accessWords, d.Access)
		if d.Name != "" {
			text = d.Name + "=" + text
		}
		if d.Pinned {
			text += " pin"
		}
		list = append(list, text)
	}
	return list
}

func (h *home) flag(flag, value string) DirFlag {
	h.t.Helper()
	access := roots.ReadWrite
	if flag == "--ro" {
		access = roots.ReadOnly
	}
	f, err := ParseDirFlag(flag, value, access, h.sys.Dir)
	if err != nil {
		h.t.Fatal(err)
	}
	return f
}

var npx = []string{"npx", "-y", "@modelcontextprotocol/server-filesystem"}

func TestSources(t *testing.T) {
	const userFile = "[[roots]]\npath = \"TOP/other\"\nname = \"o\"\n[server.own]\ncommand = \"x\"\nroots = [{ path = \"TOP/work/docs\", access = \"ro\", pin = true }]\n"
	tests := []struct {
		name   string
		files  map[string]string
		flags  func(h *home) Flags
		source Source
		want   []string
	}{
		{"flags come first", map[string]string{user: userFile}, func(h *home) Flags {
			return Flags{Roots: []DirFlag{h.flag("--root", "src"), h.flag("--ro", "d="+h.path("work/docs"))}, Command: append(npx, "{roots}")}
		}, FromFlags, []string{"work/src rw", "d=work/docs ro"}},
		{"then the file", map[string]string{user: userFile}, func(h *home) Flags {
			return Flags{Command: []string{"x"}}
		}, FromFile, []string{"o=other rw"}},
		{"the server's own list in it", map[string]string{user: userFile}, func(h *home) Flags {
			return Flags{Server: "own"}
		}, FromFile, []string{"work/docs ro pin"}},
		{"an empty list in it is none", map[string]string{user: "roots = []\n"}, func(h *home) Flags {
			return Flags{Command: append(npx, h.path("other"))[:3]}
		}, FromFile, nil},
		{"the managed file when there is no other", map[string]string{managed: "roots = [{ path = \"TOP/other\" }]\n"}, func(h *home) Flags {
			return Flags{Command: []string{"x"}}
		}, FromFile, []string{"other rw"}},
		{"then the server's arguments", nil, func(h *home) Flags {
			return Flags{Command: append(npx, h.path("other"), "src", h.path("missing"))}
		}, FromArguments, []string{"other rw", "work/src rw"}},
		{"relative to where it starts", map[string]string{user: "[server.a]\ncommand = \"npx\"\nargs = [\"@modelcontextprotocol/server-filesystem\", \"deep\"]\ncwd = \"TOP/work/src\"\n"},
			func(h *home) Flags { return Flags{} }, FromArguments, []string{"work/src/deep rw"}},
		{"of our own server, with names and rights", nil, func(h *home) Flags {
			return Flags{Command: []string{"rootbound", "fs", "--ro", "d=docs", "src"}}
		}, FromArguments, []string{"d=work/docs ro", "work/src rw"}},
		{"then the work tree", nil, func(h *home) Flags {
			h.sys.Dir = h.path("work/src/deep")
			return Flags{Command: []string{"x", h.path("other")}}
		}, FromWorkspace, []string{"work rw"}},
		{"not where the client's list was asked for", nil, func(h *home) Flags {
			return Flags{Command: append(npx, "{roots}"), ClientRoots: "accept"}
		}, FromNowhere, nil},
		{"else nothing", nil, func(h *home) Flags {
			h.sys.Dir = h.path("other")
			return Flags{Command: []string{"x"}}
		}, FromNowhere, nil},
		{"--config takes the place of the user's file", map[string]string{user: userFile, "other/my.json": `{"roots": [{"uri": "file://TOP/work/src"}]}`},
			func(h *home) Flags { return Flags{Config: "../other/my.json", Command: []string{"x"}} }, FromFile, []string{"work/src rw"}},
		{"a relative path starts at its file", map[string]string{"other/my.toml": "roots = [{ path = \"../work/src\" }]"},
			func(h *home) Flags { return Flags{Config: h.path("other/my.toml"), Command: []string{"x"}} }, FromFile, []string{"work/src rw"}},
		{"the active workspace by name", map[string]string{user: "active = \"o\"\n" + userFile}, func(h *home) Flags {
			return Flags{Roots: []DirFlag{h.flag("--ro", "@active")}, Command: []string{"x"}}
		}, FromFlags, []string{"o=other ro"}},
		{"the active workspace by directory", map[string]string{user: "active = \"TOP/work/src\"\n" + userFile}, func(h *home) Flags {
			return Flags{Roots: []DirFlag{h.flag("--root", "ws=@active"), h.flag("--root", "docs")}, Command: []string{"x"}}
		}, FromFlags, []string{"ws=work/src rw", "work/docs rw"}},
		{"a project's file named with --config", map[string]string{project: "roots = [{ path = \"TOP/other\" }]\n[server.x]\ncommand = \"x\"\n"},
			func(h *home) Flags { return Flags{Config: "rootbound.toml"} }, FromFile, []string{"other rw"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t)
			for name, text := range tt.files {
				h.write(name, text)
			}
			p := h.resolve(tt.flags(h))
			if p.Source != tt.source {
				t.Errorf("the source is %s, want %s", p.Source, tt.source)
			}
			if diff := cmp.Diff(tt.want, h.show(p.Roots)); diff != "" {
				t.Errorf("roots (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLayersNarrow(t *testing.T) {
	tests := []struct {
		name                   string
		managed, user, project string
		want                   []string
		notes                  []string // parts of the notes, in order
	}{
		{"a project keeps a part, read-only",
			"", "roots = [{ path = \"TOP/work\", name = \"w\", pin = true }]", "roots = [{ path = \"src\", access = \"ro\" }]",
			[]string{"w=work/src ro pin"}, nil},
		{"a project narrows the detected work tree", "", "", "roots = [{ path = \"docs\", access = \"no-delete\" }, { path = \"src\" }]",
			[]string{"work/docs no-delete", "work/src rw"}, nil},
		{"a project adds nothing", "", "roots = [{ path = \"TOP/work/src\", access = \"ro\" }]",
			"roots = [{ path = \"TOP/other\" }, { path = \".\", pin = true }]",
			[]string{"work/src ro"}, []string{`other" has no effect: it is in none of the roots above`}},
		{"a project with an empty list", "", "roots = [{ path = \"TOP/work\", name = \"w\" }]", "roots = []", nil, []string{"is left out"}},
		{"a project's directory that is not there", "", "", "roots = [{ path = \"gone\" }]", nil, []string{"gone", "is left out"}},
		{"the managed file is the most there is", "roots = [{ path = \"TOP/work\" }]",
			"roots = [{ path = \"TOP\", pin = true, name = \"top\" }, { path = \"TOP/other\" }]", "",
			[]string{"top=work rw"}, []string{`other" is left out`}},
		{"all three", "roots = [{ path = \"TOP/work\", access = \"no-delete\", pin = true }]",
			"roots = [{ path = \"TOP/work/src\", name = \"s\", pin = true }, { path = \"TOP/work/docs\" }]",
			"roots = [{ path = \"src/deep\" }]",
			[]string{"s=work/src/deep no-delete pin"}, []string{"is left out"}},
		{"stricter settings of a project hold", "", "client_roots = \"ignore\"",
			"client_roots = \"narrow\"\nlist_changed = false\non_change = \"restart\"\nstrict_protocol = true",
			[]string{"work rw"}, nil},
		{"looser ones do not", "", "", "client_roots = \"accept\"\non_change = \"notify\"\npaths = \"elsewhere\"\nshare_roots = true",
			[]string{"work rw"}, []string{"client_roots has no effect", "on_change has", "paths has", "share_roots has"}},
		{"nor against the managed file", "client_roots = \"narrow\"\nstrict_protocol = true", "client_roots = \"accept\"\nstrict_protocol = false", "",
			[]string{"work rw"}, []string{"client_roots has no effect", "strict_protocol has no effect"}},
		{"answers: what is stricter holds", "[results]\nsecrets = \"block\"\nmax_mb = 5", "[results]\nsecrets = \"warn\"\npaths = \"off\"\nmax_mb = 4",
			"[results]\npaths = \"warn\"\ntypes = \"off\"\nmax_mb = 3\nmax_parts = 20000",
			[]string{"work rw"}, []string{"results.types has no effect", "results.secrets has no effect", "results.max_parts has no effect"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t)
			for name, text := range map[string]string{managed: tt.managed, user: tt.user, project: tt.project} {
				if text != "" {
					h.write(name, text)
				}
			}
			p := h.resolve(Flags{Command: []string{"x"}})
			if diff := cmp.Diff(tt.want, h.show(p.Roots)); diff != "" {
				t.Errorf("roots (-want +got):\n%s", diff)
			}
			ok := len(p.Notes) == len(tt.notes)
			for i := range min(len(p.Notes), len(tt.notes)) {
				ok = ok && strings.Contains(p.Notes[i], tt.notes[i])
			}
			if !ok {
				t.Errorf("notes %q, want %q", p.Notes, tt.notes)
			}
			if !strings.Contains(tt.user, "accept") && p.ClientRoots.Value == roots.Accept {
				t.Error("a project's accept holds")
			}
		})
	}
}

// TestLowerLayersOnlyNarrow makes random files and checks that one more layer below never adds a right anywhere and
// never loosens a setting.
func TestLowerLayersOnlyNarrow(t *testing.T) {
	h := newHome(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
	random := func() string {
		var b strings.Builder
		for _, line := range []string{
			"client_roots = \"" + pick("narrow", "ignore", "accept") + "\"", "on_change = \"" + pick("auto", "restart", "notify") + "\"",
			"paths = \"" + pick("local", "elsewhere") + "\"", "list_changed = " + pick("true", "false"), "share_roots = " + pick("true", "false"),
			"strict_protocol = " + pick("true", "false"),
			"[results]\nsecrets = \"" + pick("off", "warn", "redact", "block") + "\"\nmax_depth = " + pick("1", "2", "3"),
		} {
			if rnd.IntN(2) == 0 {
				b.WriteString(line + "\n")
			}
		}
		if n := rnd.IntN(4); n > 0 {
			for range n {
				fmt.Fprintf(&b, "[[roots]]\npath = \"TOP/%s\"\naccess = \"%s\"\npin = %s\n",
					pick("work", "work/src", "work/src/deep", "work/docs", "other"), pick("rw", "ro", "no-delete"), pick("true", "false"))
			}
		}
		return b.String()
	}
	looser := func(a, b *Plan) bool { // b looser than a
		return b.ClientRoots.Value > a.ClientRoots.Value || b.Paths.Value > a.Paths.Value ||
			b.OnChange.Value == Notify && a.OnChange.Value != Notify || b.OnChange.Value == Auto && a.OnChange.Value == Restart ||
			b.ListChanged.Value && !a.ListChanged.Value || b.ShareRoots.Value && !a.ShareRoots.Value ||
			!b.StrictProtocol.Value && a.StrictProtocol.Value ||
			b.Results.Actions[results.Secrets].Value > a.Results.Actions[results.Secrets].Value || b.Results.MaxDepth.Value > a.Results.MaxDepth.Value
	}
	flags := Flags{Command: []string{"x"}}
	for i := range 200 {
		os.Remove(h.path(project))
		os.Remove(h.path(managed))
		h.write(user, random())
		above := h.resolve(flags)
		text := random()
		h.write(project, text)
		below := h.resolve(flags)
		if !above.Roots.Covers(below.Roots) || looser(above, below) {
			t.Fatalf("round %d: the project's file\n%s\nwidens %v\nto    %v", i, text, h.show(above.Roots), h.show(below.Roots))
		}
		for _, d := range below.Roots.Dirs() {
			if m, _, _ := above.Roots.Match(d.Path); d.Pinned && !m.Pinned {
				t.Fatalf("round %d: the project's file\n%s\npins %q", i, text, d.Path)
			}
		}
		text = random()
		h.write(managed, text)
		bound := h.resolve(flags)
		h.write("etc/alone.toml", text)
		ceiling, err := Load(h.path("etc/alone.toml"))
		if err != nil {
			t.Fatal(err)
		}
		if !ceiling.Roots.Given() {
			continue
		}
		var dirs []roots.Dir
		for _, r := range ceiling.Roots.Value {
			d, err := roots.Resolve(r.Path, roots.ResolveOptions{Access: r.Access, AllowBroad: true})
			if err != nil {
				t.Fatal(err)
			}
			dirs = append(dirs, d)
		}
		if !roots.NewSet(dirs...).Covers(bound.Roots) {
			t.Fatalf("round %d: the managed file\n%s\nleaves %v", i, text, h.show(bound.Roots))
		}
	}
}

func TestBroadRoots(t *testing.T) {
	h := newHome(t)
	p := h.resolve(Flags{Roots: []DirFlag{h.flag("--ro", "/")}, Command: []string{"x"}})
	if len(p.Notes) != 1 || p.Notes[0] != "--ro /: this is a broad directory, and all of it is served" {
		t.Errorf("notes %q", p.Notes)
	}
	h.write(user, "allow_broad = true\nroots = [{ path = \"/\" }]\n")
	if p = h.resolve(Flags{Command: []string{"x"}}); p.Roots.Len() != 1 || p.Roots.Dirs()[0].Path != "/" {
		t.Errorf("roots %v", p.Roots.Dirs())
	}
	// A relative path never makes one, whatever is allowed.
	up := strings.Repeat("../", strings.Count(h.path("user/.config/rootbound"), "/"))
	h.write(user, "allow_broad = true\nroots = [{ path = \""+up+"\" }]\n")
	if _, err := Resolve(h.sys, Flags{Command: []string{"x"}}); err == nil {
		t.Error("a relative path made a broad root")
	}
	if _, err := Resolve(h.sys, Flags{Roots: []DirFlag{h.flag("--root", up)}, Command: []string{"x"}}); err == nil {
		t.Error("a relative path made a broad root")
	}
}

func TestProjectCannotSay(t *testing.T) {
	h := newHome(t)
	h.write(project, "active = \"x\"\nallow_broad = false\n[log]\nenabled = false\n[server.a]\ncommand = \"evil\"\nargs = []\n[server.a.tool.t]\npaths = [\"p\"]\nnot_paths = [\"q\"]\ndefaults = { a = \"b\" }\n")
	_, err := Resolve(h.sys, Flags{Command: []string{"x"}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`:1:1: a project's file only narrows, and cannot give "active"`, `:2:1:`, `:3:2:`, `:6:1:`, `:7:1:`, `:10:1:`, `:11:1:`} {
		if !strings.Contains(err.Error(), "rootbound.toml"+want) {
			t.Errorf("no fault at %s in\n%v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "only narrows"); n != 7 {
		t.Errorf("%d faults:\n%v", n, err)
	}
	h.write(project, "[server.a.tool.t]\npaths = [\"p\"]\n")
	h.write(user, "[server.a]\ncommand = \"x\"\n[server.a.tool.t]\npaths = [\"o\"]\nnot_paths = [\"q\"]\n")
	p := h.resolve(Flags{})
	if diff := cmp.Diff([]string{"o", "p"}, p.Tools["t"].Paths.Value); diff != "" || p.Tools["t"].NotPaths.Value[0] != "q" {
		t.Errorf("tools %+v", p.Tools)
	}
}

func TestResolveFaults(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		flags func(h *home) Flags
		want  string
	}{
		{"a --config that is not there", nil, func(h *home) Flags { return Flags{Config: "none.toml"} }, `reading configuration "TOP/work/none.toml": `},
		{"a root that is not there", map[string]string{user: "\n[[roots]]\npath = \"TOP/gone\"\n"}, func(h *home) Flags { return Flags{Command: []string{"x"}} },
			user + `:2:3: `},
		{"a flag's directory that is not there", nil, func(h *home) Flags { return Flags{Roots: []DirFlag{h.flag("--ro", "gone")}} }, `--ro gone: `},
		{"a broad root", map[string]string{user: "roots = [{ path = \"/\" }]\n"}, func(h *home) Flags { return Flags{Command: []string{"x"}} }, "allow_broad = true allows it"},
		{"a broad argument", nil, func(h *home) Flags { return Flags{Command: append(npx, "/")} }, "--root / allows it"},
		{"arguments that are all gone", nil, func(h *home) Flags { return Flags{Command: append(npx, "/gone/a", "/gone/b")} }, "the server's directory argument"},
		{"arguments outside the roots", map[string]string{user: "[server.a]\ncommand = \"npx\"\nargs = [\"@modelcontextprotocol/server-filesystem\", \"TOP/other\"]\nroots = [{ path = \"TOP/work\" }]\n"},
			func(h *home) Flags { return Flags{} },
			user + `:2:11: the server's directory arguments ["TOP/other"] are outside its roots ["TOP/work"]: name them as roots, or write args = ["@modelcontextprotocol/server-filesystem", "{roots}"]`},
		{"two roots of one name", nil, func(h *home) Flags {
			return Flags{Roots: []DirFlag{h.flag("--root", "a=src"), h.flag("--ro", "a=docs")}, Command: []string{"x"}}
		}, `--ro: two roots are named "a"`},
		{"no active workspace", nil, func(h *home) Flags { return Flags{Roots: []DirFlag{h.flag("--root", "@active")}} }, "--root @active: no active workspace is set"},
		{"an unknown server", map[string]string{user: "[server.files]\ncommand = \"x\"\n"}, func(h *home) Flags { return Flags{Server: "file"} }, `did you mean "files"?`},
		{"an unknown word", nil, func(h *home) Flags { return Flags{ClientRoots: "all"} }, `reading --client-roots "all": known are narrow, ignore, accept`},
		{"a placeholder without a root", nil, func(h *home) Flags {
			h.sys.Dir = h.path("other")
			return Flags{Command: []string{"x", "{root}"}}
		}, `the command line: filling "{root}": there is no root to put in; name one with --root DIR, or in the configuration file`},
		{"an unknown name in a placeholder", map[string]string{user: "[server.a]\ncommand = \"x\"\nargs = [\"{root:doc}\"]\nroots = [{ path = \"TOP/work/docs\", name = \"docs\" }]\n"},
			func(h *home) Flags { return Flags{} }, `did you mean "docs"?`},
		{"a default that cannot be filled", map[string]string{user: "[server.a]\ncommand = \"x\"\n[server.a.tool.t]\ndefaults = { d = \"{root:z}\" }\n"},
			func(h *home) Flags { return Flags{} }, user + `:4:12: the default of d of t: filling "{root:z}"`},
		{"two files for one layer", map[string]string{user: "", "user/.config/rootbound/rootbound.json": "{}"}, func(h *home) Flags { return Flags{} }, "keep one of them"},
		{"faults of two files", map[string]string{user: "x = 1", managed: "y = 1"}, func(h *home) Flags { return Flags{} }, managed + `:1:1: unknown key "y"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t)
			for name, text := range tt.files {
				h.write(name, text)
			}
			_, err := Resolve(h.sys, tt.flags(h))
			if want := strings.ReplaceAll(tt.want, "TOP", filepath.ToSlash(h.top)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v\nwant one with %s", err, want)
			}
		})
	}
}

func TestChoosing(t *testing.T) {
	h := newHome(t)
	h.write("other/two.json", `{"mcpServers": {"a": {"command": "one", "args": ["x"]}, "b": {"type": "stdio"}}}`)
	h.write("other/one.toml", "[server.only]\ncommand = \"one\"\nenv = { A = \"1\" }\ncwd = \"sub\"\n")
	h.write(user, "[server.mine]\ncommand = \"mine\"\n")
	two, one := h.path("other/two.json"), h.path("other/one.toml")
	tests := []struct {
		flags   Flags
		server  string
		command launch.Command
		run     string // part of the error of Runnable
	}{
		{Flags{}, "mine", launch.Command{Path: "mine"}, ""},
		{Flags{Command: []string{"y", "z"}}, "", launch.Command{Path: "y", Args: []string{"z"}}, ""},
		{Flags{Command: []string{"y"}, Server: "mine"}, "mine", launch.Command{Path: "y", Args: []string{}}, ""},
		{Flags{Config: two, Server: "a"}, "a", launch.Command{Path: "one", Args: []string{"x"}}, ""},
		{Flags{Config: two}, "", launch.Command{}, `name one of ["a" "b"] with --server`},
		{Flags{Config: two, Server: "b"}, "b", launch.Command{}, `the server "b" has neither a command nor a URL`},
		{Flags{Config: one}, "only", launch.Command{Path: "one", Env: map[string]string{"A": "1"}, Dir: h.path("other/sub")}, ""},
		{Flags{Config: one, Command: []string{"y"}}, "only", launch.Command{Path: "y", Args: []string{}, Env: map[string]string{"A": "1"}, Dir: h.path("other/sub")}, ""},
	}
	for _, tt := range tests {
		p := h.resolve(tt.flags)
		if p.Server != tt.server {
			t.Errorf("%+v: server %q, want %q", tt.flags, p.Server, tt.server)
		}
		if diff := cmp.Diff(tt.command, p.Command); diff != "" {
			t.Errorf("%+v: command (-want +got):\n%s", tt.flags, diff)
		}
		if err := p.Runnable(); (err == nil) != (tt.run == "") || err != nil && !strings.Contains(err.Error(), tt.run) {
			t.Errorf("%+v: Runnable says %v, want %q", tt.flags, err, tt.run)
		}
	}
	os.Remove(h.path(user))
	if err := h.resolve(Flags{}).Runnable(); err == nil || !strings.Contains(err.Error(), "behind --") {
		t.Errorf("Runnable without anything says %v", err)
	}
}

func TestLogAndProfile(t *testing.T) {
	h := newHome(t)
	h.write(user, "[log]\nenabled = false\ndir = \"logs\"\nkeep_days = 3\n")
	if l := h.resolve(Flags{Command: []string{"x"}}).Log; l.Enabled.Value || l.Dir.Value != h.path("user/.config/rootbound/logs") || l.KeepDays.Value != 3 {
		t.Errorf("log %+v", l)
	}
	if l := h.resolve(Flags{Log: "here"}).Log; !l.Enabled.Value || l.Dir.Value != h.path("work/here") {
		t.Errorf("log %+v", l)
	}
	h.write(managed, "[log]\ndir = \"TOP/log\"\n")
	p := h.resolve(Flags{Log: "off"})
	if !p.Log.Enabled.Value || p.Log.Dir.Value != h.path("log") || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "--log has no effect") {
		t.Errorf("log %+v, notes %q", p.Log, p.Notes)
	}
	p = h.resolve(Flags{Command: []string{"docker", "run", "-i", "ghcr.io/github/github-mcp-server"}})
	if p.Paths.Value != launch.Elsewhere || !strings.HasPrefix(p.Paths.Origin.String(), "the profile of") {
		t.Errorf("paths %+v", p.Paths)
	}
	h.write(project, "paths = \"local\"\n")
	if p = h.resolve(Flags{Command: []string{"github-mcp-server"}}); p.Paths.Value != launch.Local {
		t.Errorf("paths %+v", p.Paths)
	}
	if diff := cmp.Diff([]string{h.path(managed), h.path(user), h.path(project)}, p.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestUserFile(t *testing.T) {
	env := map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/x", "APPDATA": "/roaming", "ProgramData": "/pd"}
	lookup := func(name string) string { return env[name] }
	for goos, want := range map[string][2]string{
		"linux":   {"/x/rootbound/rootbound.toml", "/etc/rootbound"},
		"darwin":  {"/h/Library/Application Support/rootbound/rootbound.toml", "/etc/rootbound"},
		"windows": {"/roaming/rootbound/rootbound.toml", "/pd/rootbound"},
	} {
		s := System{Env: lookup, GOOS: goos}
		file, err := s.UserFile()
		if err != nil || filepath.ToSlash(file) != want[0] || filepath.ToSlash(s.managedDir()) != want[1] {
			t.Errorf("%s: %q, %q, %v", goos, file, s.managedDir(), err)
		}
	}
	env["XDG_CONFIG_HOME"] = "relative"
	if file, _ := (System{Env: lookup, GOOS: "linux"}).UserFile(); filepath.ToSlash(file) != "/h/.config/rootbound/rootbound.toml" {
		t.Errorf("with a relative XDG_CONFIG_HOME: %q", file)
	}
	if file, err := (System{Env: func(string) string { return "" }, GOOS: "linux"}).UserFile(); file != "" || err != nil {
		t.Errorf("without a home: %q, %v", file, err)
	}
}

func TestParseDirFlag(t *testing.T) {
	h := newHome(t)
	h.dir("work/a=b")
	for value, want := range map[string][2]string{
		"src": {"", "src"}, "s=src": {"s", "src"}, "a=b": {"", "a=b"}, "x=a=b": {"x", "a=b"}, "./a=c": {"", "./a=c"}, "我=src": {"我", "src"},
	} {
		f, err := ParseDirFlag("--root", value, roots.ReadWrite, h.sys.Dir)
		if err != nil || f.Name != want[0] || f.Dir != want[1] || f.Flag != "--root" || f.Access != roots.ReadWrite {
			t.Errorf("ParseDirFlag(%q) = %+v, %v", value, f, err)
		}
	}
	for value, want := range map[string]string{"x=": "no directory", "": "no directory", "=src": "no name"} {
		if _, err := ParseDirFlag("--root", value, roots.ReadWrite, h.sys.Dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseDirFlag(%q): error %v", value, err)
		}
	}
}

func TestShow(t *testing.T) {
	h := newHome(t)
	h.write(user, "client_roots = \"ignore\"\n[[roots]]\npath = \"TOP/work\"\nname = \"w\"\n[server.a]\ncommand = \"x\"\nargs = [\"{roots}\"]\nenv = { SECRET = \"hunter2\" }\n"+
		"pins = \"team.json\"\n[server.a.results]\ntypes = \"off\"\nsecrets = \"redact\"\n[results]\nmax_mb = 8\nsecrets = \"off\"\n")
	h.write(project, "roots = [{ path = \"src\", access = \"ro\" }]\n")
	var got []string
	for _, r := range h.resolve(Flags{}).Show() {
		got = append(got, strings.ReplaceAll(r.Key+" = "+r.Value+" ("+r.Origin+")", filepath.ToSlash(h.top), "TOP"))
	}
	u, pr := "TOP/"+user, "TOP/"+project
	want := []string{
		"server = a (" + u + ":6)", "command = x (" + u + ":6)", "args[0] = {roots} (" + u + ":6)", "env.SECRET = (set) (" + u + ":6)",
		"roots[0] = w=TOP/work/src ro (" + pr + ":1)",
		"client_roots = ignore (" + u + ":1)", "list_changed = true (default)", "on_change = auto (default)", "paths = local (default)",
		"allow_broad = false (default)", "share_roots = false (default)",
		"forward_authorization = false (default)", "server_protocol = auto (default)", "client_protocol = auto (default)", "strict_protocol = false (default)",
		"confine = false (default)",
		"results.limits = block (default)", "results.paths = redact (default)", "results.schema = warn (default)",
		"results.agreement = warn (default)", "results.types = off (" + u + ":11)", "results.characters = warn (default)",
		"results.secrets = redact (" + u + ":12)", "results.max_mb = 8 (" + u + ":14)", "results.max_depth = 500 (default)", "results.max_parts = 10000 (default)",
		"ask = auto (default)", "approval.wait = 300 (default)", "approval.pending = 0 (default)", "approval.claude_always_ask = false (default)", "preset = standard (default)", "trust_annotations = false (default)", "publish_annotations = false (default)",
		"pins = TOP/user/.config/rootbound/team.json (" + u + ":9)",
		"log.enabled = true (default)", "log.bodies = false (default)", "log.sync = false (default)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Show (-want +got):\n%s", diff)
	}
}

// What the managed file says about pins holds, whatever was typed; what was typed holds before the user's file.
func TestPins(t *testing.T) {
	h := newHome(t)
	h.write(user, "pins = \"off\"\n[server.a]\ncommand = \"x\"\npins = \"sub/../team.json\"\n")
	check := func(f Flags, want string, notes int) {
		t.Helper()
		p := h.resolve(f)
		if got := strings.ReplaceAll(filepath.ToSlash(p.Pins.Value), filepath.ToSlash(h.top), "TOP"); got != want || len(p.Notes) != notes {
			t.Errorf("%+v: pins = %q, want %q; notes %q", f, got, want, p.Notes)
		}
	}
	check(Flags{}, "TOP/user/.config/rootbound/team.json", 0)
	check(Flags{ForAll: true, Command: []string{"x"}}, "off", 0)
	check(Flags{Pins: "mine.json"}, "TOP/work/mine.json", 0)
	check(Flags{Pins: "on"}, "on", 0)
	h.write(managed, "pins = \"on\"\n")
	check(Flags{Pins: "off"}, "on", 1)
	check(Flags{}, "on", 0)
	if p := h.resolve(Flags{}); p.PinsFile() != "" {
		t.Errorf("pins that are on are in the file %q", p.PinsFile())
	}
}

func TestExampleRuns(t *testing.T) {
	h := newHome(t)
	h.dir("other/src")
	dirs := []string{h.path("work/src"), h.path("other/src"), h.path("work/docs")}
	for ext, format := range map[string]splice.Format{"toml": splice.TOML, "json": splice.JSON} {
		text := Example(format, "rootbound", dirs)
		h.write("other/example."+ext, string(text))
		p := h.resolve(Flags{Config: h.path("other/example." + ext)})
		if err := p.Runnable(); err != nil {
			t.Errorf("%s: %v", ext, err)
		}
		if diff := cmp.Diff([]string{"src=work/src rw", "src-2=other/src rw", "docs=work/docs rw"}, h.show(p.Roots)); diff != "" {
			t.Errorf("%s: roots (-want +got):\n%s", ext, diff)
		}
		filled, err := p.Command.Fill(p.Roots)
		if err != nil || filled.Path != "rootbound" || !cmp.Equal(filled.Args, append([]string{"fs"}, dirs...)) || !p.ListChanged.Value {
			t.Errorf("%s: %+v, %v", ext, filled, err)
		}
	}
}
