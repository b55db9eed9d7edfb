package clientconf

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// at is where the samples lie in a home directory, by system; {project} begins what lies in a project.
var at = map[string][3]string{ // Linux, macOS, Windows
	"claude-code/.mcp.json":                     {"{project}/.mcp.json", "{project}/.mcp.json", "{project}/.mcp.json"},
	"claude-code/.claude.json":                  {".claude.json", ".claude.json", ".claude.json"},
	"claude-desktop/claude_desktop_config.json": {".config/Claude/claude_desktop_config.json", "Library/Application Support/Claude/claude_desktop_config.json", "AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json"},
	"cline/cline_mcp_settings.json":             {".cline/data/settings/cline_mcp_settings.json", ".cline/data/settings/cline_mcp_settings.json", ".cline/data/settings/cline_mcp_settings.json"},
	"vscode/.vscode/mcp.json":                   {"{project}/.vscode/mcp.json", "Library/Application Support/Code/User/mcp.json", "AppData/Roaming/Code/User/profiles/-1a2b/mcp.json"},
	"vscode/team.code-workspace":                {"{project}/team.code-workspace", "{project}/team.code-workspace", "{project}/team.code-workspace"},
	"copilot-cli/mcp-config.json":               {".copilot/mcp-config.json", ".copilot/mcp-config.json", ".copilot/mcp-config.json"},
	"cursor/.cursor/mcp.json":                   {".cursor/mcp.json", "{project}/.cursor/mcp.json", ".cursor/mcp.json"},
	"gemini-cli/.gemini/settings.json":          {".gemini/settings.json", "{project}/.gemini/settings.json", ".gemini/settings.json"},
	"opencode/opencode.jsonc":                   {".config/opencode/opencode.jsonc", ".config/opencode/opencode.jsonc", ".config/opencode/opencode.jsonc"},
	"opencode/.opencode/opencode.json":          {"{project}/.opencode/opencode.json", "{project}/.opencode/opencode.json", "{project}/.opencode/opencode.json"},
	"zed/settings.json":                         {".config/zed/settings.json", ".config/zed/settings.json", "AppData/Roaming/Zed/settings.json"},
	"codex/config.toml":                         {".codex/config.toml", "{project}/.codex/config.toml", ".codex/config.toml"},
	"goose/config.yaml":                         {".config/goose/config.yaml", ".config/goose/config.yaml", "AppData/Roaming/Block/goose/config/config.yaml"},
	"goose/.agents/plugins/files/.mcp.json":     {"{project}/.agents/plugins/files/.mcp.json", "{project}/.agents/plugins/files/.mcp.json", "{project}/.agents/plugins/files/.mcp.json"},
}

// readOnly are files of clients that are only read, each with one server that is called "files", at their places on Linux.
const readOnly = `
-- windsurf .codeium/windsurf/mcp_config.json --
{"mcpServers": {"files": {"command": "npx", "args": ["x"], "disabledTools": ["y"]}}}
-- kiro .kiro/settings/mcp.json --
{"mcpServers": {"files": {"command": "npx", "args": ["x"]}}}
-- amazon-q {project}/.amazonq/mcp.json --
{"mcpServers": {"files": {"command": "npx", "args": ["x"]}}}
-- jetbrains .junie/mcp/mcp.json --
{"mcpServers": {"files": {"command": "npx", "args": ["x"]}}}
-- lmstudio .lmstudio/mcp.json --
{"mcpServers": {"files": {"command": "npx", "args": ["x"]}}}
-- warp .warp/.mcp.json --
{"mcpServers": {"files": {"command": "npx", "args": ["x"], "working_directory": "/srv"}}}
-- amp .config/amp/settings.jsonc --
{"amp.mcpServers": {"files": {"command": "npx", "args": ["x"],},},} // dotted
-- librechat {project}/librechat.yaml --
interface: {mcpServers: {use: true}}
mcpServers:
  files: {type: stdio, command: npx, args: [x]}
-- antigravity .gemini/config/mcp_config.json --
{"mcpServers": {"files": {"serverUrl": "https://mcp.example.test", "command": "npx", "args": ["x"]}}}
-- crush {project}/crushrc --
if true; then echo no; fi
mcp add files --type stdio --command npx --args "x" # yes
mcp remove files
-- roo-code {project}/.roo/mcp.json --
{"mcpServers": {"files": {"command": "npx", "args": ["x"], "alwaysAllow": ["*"]}}}
-- continue .continue/config.yaml --
mcpServers:
  - name: files
    command: npx
    args: [x]
`

// home makes a home directory in which every client has a file, and a project beneath it.
func home(t testing.TB, goos string) (h Host, paths map[string]string) {
	t.Helper()
	dir := t.TempDir()
	h = Host{Home: dir, Project: filepath.Join(dir, "work", "app"), OS: goos}
	paths = map[string]string{}
	write := func(client, path string, text []byte) {
		full := filepath.Join(h.Home, filepath.FromSlash(path))
		if rest, ok := strings.CutPrefix(path, "{project}"); ok {
			full = filepath.Join(h.Project, filepath.FromSlash(rest))
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, text, 0o600); err != nil {
			t.Fatal(err)
		}
		paths[full] = client
	}
	system := slices.Index([]string{"linux", "darwin", "windows"}, goos)
	for _, s := range samples(t) {
		where, ok := at[s.client.ID+"/"+s.name]
		if !ok {
			t.Fatalf("it is not said where %s/%s lies", s.client.ID, s.name)
		}
		write(s.client.ID, where[system], s.text)
	}
	if goos == "linux" {
		for _, f := range txtar.Parse([]byte(readOnly)).Files {
			client, path, _ := strings.Cut(f.Name, " ")
			write(client, path, f.Data)
		}
	}
	return h, paths
}

func TestFindEveryClient(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			h, paths := home(t, goos)
			found := map[string][]*File{}
			for _, f := range Find(h) {
				if f.Place.Scope == Managed {
					continue // of this machine
				}
				found[f.Path] = append(found[f.Path], f)
				if len(f.Problems) > 0 && !(len(f.Problems) == 1 && f.Problems[0].Kind == CaseTwin) {
					t.Errorf("%s: %v", f.Path, f.Problems)
				}
				if inside := strings.HasPrefix(f.Path, h.Project); inside != (f.Project != "") {
					t.Errorf("%s is of the project %q", f.Path, f.Project)
				}
			}
			for path, client := range paths {
				i := slices.IndexFunc(found[path], func(f *File) bool { return f.Client.ID == client })
				if i < 0 {
					t.Errorf("%s of %s is not found", path, client)
					continue
				}
				if f := found[path][i]; len(f.Servers) == 0 || f.Place.Role == Unread {
					t.Errorf("%s has %d servers, and the role %v", path, len(f.Servers), f.Place.Role)
				} else if !f.Client.Writable {
					s := f.Servers[0]
					if s.Name != "files" || s.Command.Text != "npx" || len(s.Args) != 1 || s.Args[0].Text != "x" || !s.Args[0].Given() {
						t.Errorf("%s has %q: %q %q", path, s.Name, s.Command.Text, s.Args)
					}
				}
			}
			if goos == "linux" {
				for _, c := range Clients() {
					if c.ID != "cc-switch" && !slices.Contains(clientsOf(paths), c.ID) {
						t.Errorf("%s has no file here", c.Name)
					}
				}
			}
		})
	}
}

func clientsOf(m map[string]string) []string {
	var list []string
	for _, v := range m {
		list = append(list, v)
	}
	return list
}

// All that is edited is there again, and nothing else has changed.
func TestWrapEveryClient(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			h, paths := home(t, goos)
			before := map[string][]byte{}
			for path := range paths {
				before[path] = []byte(get(t, path))
			}
			each := func(change func(f *File, d *Draft) error) {
				done := map[string]bool{}
				for _, f := range Find(h) {
					if done[f.Path] || !f.Client.Writable || f.Place.Role != Servers || f.Place.Scope == Managed {
						continue
					}
					done[f.Path] = true
					d, err := f.Draft()
					if err != nil {
						t.Fatal(err)
					}
					if err := change(f, d); err != nil {
						t.Fatal(err)
					}
				}
			}
			edited := map[string]bool{}
			each(func(f *File, d *Draft) error {
				for _, s := range f.Servers {
					if s.Command.Given() {
						if err := d.Wrap(s, program); err != nil {
							return err
						}
						edited[f.Path] = true
					}
				}
				if err := f.Save(true); err != nil {
					return err
				}
				return d.Write()
			})
			for path := range paths {
				if same := bytes.Equal([]byte(get(t, path)), before[path]); same == edited[path] {
					t.Errorf("%s: edited %v, the same %v", path, edited[path], same)
				}
			}
			each(func(f *File, d *Draft) error {
				for _, s := range f.Servers {
					if err := d.Unwrap(s); err != nil {
						return err
					}
				}
				if err := d.Write(); err != nil {
					return err
				}
				return f.With(d.Bytes()).Forget()
			})
			var left []string
			err := filepath.WalkDir(h.Home, func(path string, d os.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					left = append(left, path)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range left {
				if !bytes.Equal([]byte(get(t, path)), before[path]) {
					t.Errorf("%s is not what it was", path)
				}
			}
			if len(left) != len(before) {
				t.Errorf("there are %d files, there were %d", len(left), len(before))
			}
		})
	}
}

func TestFindWhatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	h := Host{Home: dir, OS: runtime.GOOS}
	if err := os.MkdirAll(filepath.Join(dir, ".cursor", "mcp.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, ".codex", "config.toml"), "", 0o600)
	if err := os.Truncate(filepath.Join(dir, ".codex", "config.toml"), maxSize+1); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, ".gemini"), "this is no directory", 0o600)
	got := map[string]string{}
	for _, f := range Find(h) {
		if f.Place.Scope != Managed {
			got[f.Client.ID] = fmt.Sprint(f.Problems)
		}
	}
	if len(got) != 2 || !strings.Contains(got["cursor"], "it cannot be read: it is a directory") || !strings.Contains(got["codex"], "it is larger than 64 MiB") {
		t.Errorf("found %v", got)
	}
}

func TestFindAbove(t *testing.T) {
	dir := t.TempDir()
	h := Host{Home: dir, Project: filepath.Join(dir, "work", "app", "packages", "api"), OS: "linux"}
	for _, d := range []string{"", "work/app", "work/app/packages/api"} {
		put(t, filepath.Join(dir, filepath.FromSlash(d), ".mcp.json"), oneServer, 0o600)
	}
	c, _ := Lookup("claude-code")
	var got []string
	for _, f := range FindOf(c, h) {
		rel, err := filepath.Rel(dir, f.Path)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, filepath.ToSlash(rel))
		if f.Place.Scope == Project && f.Project != filepath.Dir(f.Path) {
			t.Errorf("%s is of the project %q", f.Path, f.Project)
		}
	}
	if want := []string{"work/app/packages/api/.mcp.json", "work/app/.mcp.json", ".mcp.json"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// Where a variable says where the file is, the usual place does not count.
func TestFindByVariable(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, ".codex", "config.toml"), "[mcp_servers.usual]\ncommand = 'x'\n", 0o600)
	put(t, filepath.Join(dir, "other", "config.toml"), "[mcp_servers.other]\ncommand = 'x'\n", 0o600)
	c, _ := Lookup("codex")
	env := func(name string) string {
		if name == "CODEX_HOME" {
			return filepath.Join(dir, "other")
		}
		return ""
	}
	for _, x := range []struct {
		env  func(string) string
		want string
	}{{nil, "usual"}, {env, "other"}} {
		files := FindOf(c, Host{Home: dir, OS: "linux", Env: x.env})
		files = slices.DeleteFunc(files, func(f *File) bool { return f.Place.Scope == Managed })
		if len(files) != 1 || files[0].Servers[0].Name != x.want {
			t.Errorf("found %v, want %s", files, x.want)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	h, _ := home(b, "linux")
	for b.Loop() {
		Find(h)
	}
}
