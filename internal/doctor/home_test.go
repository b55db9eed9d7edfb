package doctor

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/clientconf"
)

// places are where samples lie in a home in which every client is, and in the project that is worked in.
var places = map[string]string{
	"claude-code/levels/.claude.json":                 ".claude.json",
	"claude-code/settings/.claude/settings.json":      ".claude/settings.json",
	"claude-code/plain/.mcp.json":                     "app/.mcp.json",
	"claude-desktop/shell/claude_desktop_config.json": ".config/Claude/claude_desktop_config.json",
	"vscode/user/User/mcp.json":                       ".config/Code/User/mcp.json",
	"vscode/plain/.vscode/mcp.json":                   "app/.vscode/mcp.json",
	"copilot-cli/plain/mcp-config.json":               ".copilot/mcp-config.json",
	"cursor/name/.cursor/mcp.json":                    ".cursor/mcp.json",
	"cursor/plain/.cursor/mcp.json":                   "app/.cursor/mcp.json",
	"codex/plain/config.toml":                         ".codex/config.toml",
	"codex/project/.codex/config.toml":                "app/.codex/config.toml",
	"gemini-cli/trust/.gemini/settings.json":          ".gemini/settings.json",
	"cline/plain/cline_mcp_settings.json":             ".cline/data/settings/cline_mcp_settings.json",
	"opencode/one/opencode.jsonc":                     ".config/opencode/opencode.jsonc",
	"zed/plain/settings.json":                         ".config/zed/settings.json",
	"goose/plain/config.yaml":                         ".config/goose/config.yaml",
	"windsurf/plain/mcp_config.json":                  ".codeium/windsurf/mcp_config.json",
	"kiro/plain/.kiro/settings/mcp.json":              ".kiro/settings/mcp.json",
	"amazon-q/comment/.amazonq/mcp.json":              ".aws/amazonq/mcp.json",
	"jetbrains/junie/.junie/mcp/mcp.json":             ".junie/mcp/mcp.json",
	"lmstudio/plain/mcp.json":                         ".lmstudio/mcp.json",
	"warp/plain/.warp/.mcp.json":                      ".warp/.mcp.json",
	"amp/plain/.amp/settings.jsonc":                   ".config/amp/settings.jsonc",
	"librechat/plain/librechat.yaml":                  "app/librechat.yaml",
	"crush/plain/crushrc":                             ".config/crush/crushrc",
	"roo-code/plain/.roo/mcp.json":                    "app/.roo/mcp.json",
	"continue/plain/config.yaml":                      ".continue/config.yaml",
}

// home makes a home of all clients, and returns its machine. The state of Claude Code is as large as it becomes.
func home(t testing.TB) Machine {
	t.Helper()
	dir := t.TempDir()
	all := samples(t)
	write := func(to string, text []byte) {
		path := filepath.Join(dir, filepath.FromSlash(to))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range places {
		i := slices.IndexFunc(all, func(s sample) bool { return s.name == from })
		if i < 0 {
			t.Fatalf("there is no sample %s", from)
		}
		text := all[i].text
		if to == ".claude.json" {
			history := strings.Repeat(`{"display": "what was typed, a line of some length", "pastedContents": {}},`, 20_000)
			text = bytes.Replace(text, []byte("{"), []byte(`{"history": [`+strings.TrimSuffix(history, ",")+`],`), 1)
		}
		write(to, text)
	}
	write(".gemini/config/mcp_config.json", []byte(`{"mcpServers": {"f": {"command": "/opt/server"}}}`))
	write(".cc-switch/cc-switch.db", nil)
	return Machine{
		Host:     clientconf.Host{Home: dir, Project: filepath.Join(dir, "app"), OS: "linux", Env: func(string) string { return "" }},
		LookPath: func(string) error { return nil },
		Self:     self,
	}
}

// Every client is found in a home that has them all, nothing is written, and twice the same is found.
func TestHome(t *testing.T) {
	m := home(t)
	before := tree(t, m.Host.Home)
	r := Examine(m, Files(m))
	var missing []string
	for _, c := range clientconf.Clients() {
		if c.ID != "cc-switch" && !slices.ContainsFunc(r.clients, func(f clientFacts) bool { return f.id == c.ID }) {
			missing = append(missing, c.ID)
		}
	}
	if len(missing) > 0 {
		t.Errorf("these clients were not found: %q", missing)
	}
	var first, second strings.Builder
	if err := r.WriteJSON(&first); err != nil {
		t.Fatal(err)
	}
	if err := Examine(m, Files(m)).WriteJSON(&second); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Error("a second time something else is found")
	}
	for _, id := range []string{"MANAGED", "TRUST", "ROOT-BROAD", "SCOPE-SHADOW"} {
		if !slices.Contains(ids(r), id) {
			t.Errorf("%s is not found; found are %q", id, ids(r))
		}
	}
	if after := tree(t, m.Host.Home); after != before {
		t.Errorf("the home was changed:\n%s\nit was\n%s", after, before)
	}
}

// tree lists what is in a directory, with times and sizes.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b.WriteString(path + " " + info.Mode().String() + " " + info.ModTime().String() + "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// All clients at once: less than 150 ms are promised.
func BenchmarkExamine(b *testing.B) {
	m := home(b)
	for b.Loop() {
		if r := Examine(m, Files(m)); len(r.Findings) == 0 {
			b.Fatal("nothing is found")
		}
	}
}

// A file that somebody made to keep the reader busy is judged as far as it is of use.
func TestLargeFiles(t *testing.T) {
	const n = 50_000
	servers := strings.Repeat(`"f": {"command": "npx", "args": ["~/a"], "Args": 1}, `, n)
	args := strings.Repeat(`"~/a", `, n)
	for _, text := range []string{
		`{"mcpServers": {` + strings.TrimSuffix(servers, ", ") + `}}`,
		`{"mcpServers": {"f": {"command": "npx", "args": ["@modelcontextprotocol/server-filesystem", ` + strings.TrimSuffix(args, ", ") + `]}}}`,
		`{"mcpServers": {"f": {"command": "a"}}, "servers": {` + strings.TrimSuffix(servers, ", ") + `}}`,
	} {
		c, _ := clientconf.Lookup("claude-code")
		r := Examine(elsewhere(), []*clientconf.File{clientconf.ParseAs(c, "/srv/.mcp.json", []byte(text))})
		if n := len(r.Findings); n == 0 || n > most {
			t.Errorf("%d findings", n)
		}
		var out strings.Builder
		p := Printer{W: &out}
		if err := p.Findings(r); err != nil || !strings.Contains(out.String(), "Of /srv/.mcp.json only the first 1000 findings are told.") {
			t.Errorf("it is not told that there are more, or %v", err)
		}
	}
}

// The Store's Claude Desktop reads its own file on Windows; the other one may say something else.
func TestTwoPlaces(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "AppData", "Local", "Packages", "Claude_abc", "LocalCache", "Roaming", "Claude")
	plain := filepath.Join(dir, "AppData", "Roaming", "Claude")
	for at, server := range map[string]string{store: "a", plain: "b"} {
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		text := `{"mcpServers": {"` + server + `": {"command": "C:\\server.exe"}}}`
		if err := os.WriteFile(filepath.Join(at, "claude_desktop_config.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m := Machine{Host: clientconf.Host{Home: dir, OS: "windows"}}
	r := Examine(m, Files(m))
	if diff := cmp.Diff([]string{"FILE-LEGACY"}, ids(r)); diff != "" {
		t.Fatalf("findings (-want +got):\n%s", diff)
	}
	if f := r.Findings[0]; !strings.HasPrefix(f.File, plain) || !strings.Contains(f.What, "Claude_abc") {
		t.Errorf("the finding is %+v; the file that is not read is in %s", f, plain)
	}
}
