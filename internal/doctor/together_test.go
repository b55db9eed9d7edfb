package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/clientconf"
)

// What is only to be seen of several files together, or of where they are. {project} stands for the project's directory.
func TestTogether(t *testing.T) {
	for _, tt := range []struct {
		name    string
		files   map[string]string
		project string // below the home
		want    string // CLIENT ID SERVER, a line each
	}{
		{
			"a project's server that Claude Code switched off",
			map[string]string{
				".claude.json":  `{"projects": {"{project}": {"disabledMcpjsonServers": ["b"]}}}`,
				"app/.mcp.json": `{"mcpServers": {"a": {"command": "/bin/sh", "type": "stdio"}, "b": {"command": "/bin/sh", "type": "stdio"}}}`,
				"app/.git/HEAD": "",
			}, "app", "claude-code TRUST b",
		},
		{
			"local before project before user",
			map[string]string{
				".claude.json":  `{"mcpServers": {"a": {"command": "/bin/sh"}}, "projects": {"{project}": {"mcpServers": {"a": {"command": "/bin/cat"}}}}}`,
				"app/.mcp.json": `{"mcpServers": {"a": {"command": "/bin/ls", "tools": ["*"]}}}`,
				"app/.git/HEAD": "",
			}, "app", "claude-code SCOPE-SHADOW a\nclaude-code SCOPE-SHADOW a\nclaude-code SCOPE-SHADOW a",
		},
		{
			"two projects of one file do not hide each other",
			map[string]string{
				".claude.json": `{"projects": {"/srv/a": {"mcpServers": {"a": {"command": "/bin/sh"}}}, "/srv/b": {"mcpServers": {"a": {"command": "/bin/sh"}}}}}`,
			}, "app", "",
		},
		{
			"a project that is the home directory",
			map[string]string{".gemini/settings.json": `{"mcpServers": {"a": {"command": "/bin/sh"}}}`}, "", "gemini-cli FILE-LEVEL",
		},
		{
			"no git repository",
			map[string]string{"app/.github/mcp.json": `{"mcpServers": {"a": {"command": "/bin/sh", "tools": ["*"]}}}`}, "app", "copilot-cli FILE-LEVEL",
		},
		{
			"a former file beside the live one",
			map[string]string{
				".cline/data/settings/cline_mcp_settings.json":                                            `{"mcpServers": {"a": {"command": "/bin/sh"}}}`,
				".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json": `{"mcpServers": {"b": {"command": "/bin/sh"}}}`,
			}, "app", "cline FILE-LEGACY",
		},
		{
			"the settings of VS Code, where servers of Cline are not read",
			map[string]string{".config/Code/User/settings.json": `{"editor.tabSize": 2, "cline.mcpServers": {"a": {"command": "/bin/sh"}}, /* x */}`}, "app", "cline FILE-LEVEL",
		},
		{
			"two files of Antigravity that differ",
			map[string]string{
				".gemini/config/mcp_config.json":      `{"mcpServers": {"a": {"command": "/bin/sh"}}}`,
				".gemini/antigravity/mcp_config.json": `{"mcpServers": {"b": {"command": "/bin/sh"}}}`,
			}, "app", "antigravity FILE-LEGACY",
		},
		{
			"two files of Antigravity that do not",
			map[string]string{
				".gemini/config/mcp_config.json":      `{"mcpServers": {"a": {"command": "/bin/sh"}}}`,
				".gemini/antigravity/mcp_config.json": `{"mcpServers": {"a": {"command": "/bin/sh"}}}`,
			}, "app", "",
		},
		{
			"a path of Windows where the server runs on Linux",
			map[string]string{".cursor/mcp.json": `{"mcpServers": {"a": {"command": "npx", "args": ["@modelcontextprotocol/server-filesystem@2026.8.31", "C:\\Users\\ana\\x"]}}}`},
			"app", "cursor ROOT-REPLACED a\ncursor ROOT-WSL a",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			project := filepath.Join(home, tt.project)
			if err := os.MkdirAll(project, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, text := range tt.files {
				path := filepath.Join(home, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				text = strings.ReplaceAll(text, "{project}", filepath.ToSlash(project))
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			m := Machine{Host: clientconf.Host{Home: home, Project: project, OS: "linux", Env: func(string) string { return "" }}}
			r := Examine(m, Files(m))
			var got []string
			for _, f := range r.Findings {
				got = append(got, strings.TrimSpace(f.Client+" "+f.ID+" "+f.Server))
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// Which entry of a name holds is one sentence, however many there are.
func TestOrder(t *testing.T) {
	at := func(scope clientconf.Scope, path string, line int) *entry {
		s := &clientconf.Server{Scope: scope}
		s.Pos.Line = line
		return &entry{Server: s, file: &clientconf.File{Path: path}}
	}
	user, local, project := at(clientconf.User, "/a", 1), at(clientconf.Local, "/a", 2), at(clientconf.Project, "/b", 3)
	for want, e := range map[string]*entry{
		"": {}, "gives way to local /a:2, project /b:3": {shadowed: []*entry{local, project}}, "wins over user /a:1": {hides: []*entry{user}},
		"gives way to local /a:2, wins over user /a:1": {shadowed: []*entry{local}, hides: []*entry{user}},
	} {
		if got := (&examiner{}).order(e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
