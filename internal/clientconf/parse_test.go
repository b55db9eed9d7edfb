package clientconf

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/calllog"
)

// What is wrong with a text is said without it: a secret may have been put in with the line end that stood behind it.
func TestAControlCharacterIsToldWithoutItsText(t *testing.T) {
	c, _ := Lookup("claude-code")
	f := ParseAs(c, ".mcp.json", []byte(`{"mcpServers":{"a":{"command":"x","args":["--pass","hunter2\n"]}}}`))
	if len(f.Problems) != 1 || f.Problems[0].Kind != Control || strings.Contains(f.Problems[0].Msg, "hunter2") {
		t.Errorf("the problems are %+v", f.Problems)
	}
}

// Whichever way a file is printed, no value of a variable or a header is.
func TestSecretsAreNotPrinted(t *testing.T) {
	const secret = "hunter2hunter2"
	for _, x := range []struct{ client, name, text string }{
		{"claude-code", ".mcp.json", `{"mcpServers":{"a":{"command":"x","args":["y"],"env":{"TOKEN":"SECRET"}},"b":{"url":"https://x","headers":{"Authorization":"Bearer SECRET"}}}}`},
		{"cline", "cline_mcp_settings.json", `{"mcpServers":{"a":{"transport":{"command":"x","args":["y"],"env":{"TOKEN":"SECRET"}}}}}`},
		{"codex", "config.toml", "[mcp_servers.a]\ncommand = 'x'\nargs = ['y']\nenv = { TOKEN = 'SECRET' }\n[mcp_servers.b]\nurl = 'https://x'\nhttp_headers = { Authorization = 'SECRET' }\n"},
		{"goose", "config.yaml", "extensions:\n  a:\n    cmd: x\n    args: [y]\n    envs:\n      TOKEN: SECRET\n"},
		{"opencode", "opencode.json", `{"mcp":{"a":{"type":"local","command":["x","y"],"environment":{"TOKEN":"SECRET"}}}}`},
		{"crush", "crushrc", "mcp add a --command x --args y --env TOKEN SECRET --header Authorization \"Bearer SECRET\"\n"},
	} {
		c, _ := Lookup(x.client)
		f := ParseAs(c, x.name, []byte(strings.ReplaceAll(x.text, "SECRET", secret)))
		if len(f.Servers) == 0 || len(f.Servers[0].Env) != 1 || f.Servers[0].Env[0].Name != "TOKEN" {
			t.Errorf("%s: the variable is not found", x.client)
			continue
		}
		if !f.Servers[0].Env[0].Value.Test(func(v string) bool { return v == secret }) || !f.Servers[0].Env[0].Value.Literal() {
			t.Errorf("%s: the value is not known", x.client)
		}
		s := f.Servers[0]
		out := fmt.Sprintf("%v %+v %#v %v %+v %#v %s", f, f, *f, s, *s, s.Entry, s.Env)
		s.File = nil // a server and its file hold each other
		for _, v := range []any{s.Env, s.Headers, s.Entry, f.Tree} {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			out += string(text)
		}
		if out += f.Masked(calllog.RedactArgs); strings.Contains(out, secret) {
			t.Errorf("%s: the secret is printed: %s", x.client, out)
		}
	}
}

func TestMasked(t *testing.T) {
	c, _ := Lookup("goose")
	f := ParseAs(c, "config.yaml", []byte("GOOSE_MODE: auto # c\nextensions:\n  a:\n    cmd: 'x'\n    args: [-y, --token, abcdefgh]\n    envs: {A: \"b\", N: 1}\n    description: >\n      long\n"))
	want := "GOOSE_MODE: … # c\nextensions:\n  a:\n    cmd: 'x'\n    args: [-y, --token, …]\n    envs: {A: \"…\", N: 1}\n    description: …\n      long\n"
	if diff := cmp.Diff(want, f.Masked(calllog.RedactArgs)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProblems(t *testing.T) {
	for _, x := range []struct {
		client, name, text string
		want               string // kinds with places, and "!" for what the client cannot read
	}{
		{"claude-code", ".mcp.json", "{ // c\n\"mcpServers\": {\"a\": {\"command\": \"x\",}},}", "comment 1:3!, trailing-comma 2:36!, trailing-comma 2:39!"},
		{"gemini-cli", ".gemini/settings.json", "{ // c\n\"mcpServers\": {},}", "trailing-comma 2:17!"},
		{"vscode", ".vscode/mcp.json", "{ // c\n\"servers\": {},}", ""},
		{"claude-desktop", "claude_desktop_config.json", "\ufeff{}", "bom 1:1!"},
		{"goose", "config.yaml", "\ufeffextensions: {}\n", "bom 1:1"},
		{"cursor", "mcp.json", `{"mcpServers":{"a":{"args":["C:\temp"],"command":"x"}}}`, "control 1:29"},
		{"cursor", "mcp.json", `{"mcpServers":{"a":{"args":["C:\Users"]}}}`, "escape 1:32!"},
		{"cursor", "mcp.json", `{"mcpServers":{"a":{},"A":{},"a":{}}}`, "case-twin 1:23, twice 1:30"},
		{"cursor", "mcp.json", `{"mcpServers":[]}`, "shape 1:15"},
		{"cursor", "mcp.json", `{"mcpServers":{"a":"npx"}}`, "shape 1:20"},
		{"cursor", "mcp.json", `{`, "syntax 1:2!"},
		{"cursor", "mcp.json", "", "syntax 1:1!"},
		{"codex", "config.toml", "[mcp_servers.a]\n[mcp_servers.a]\n", "twice 2:2!"},
		{"codex", "config.toml", "x = \"C:\\Users\"\n", "escape 1:8!"},
		{"goose", "config.yaml", "extensions:\n  a: {}\n  a: {}\n", "twice 3:3!"},
		{"goose", "config.yaml", "", ""},
	} {
		c, _ := Lookup(x.client)
		var got []string
		for _, p := range ParseAs(c, x.name, []byte(x.text)).Problems {
			s := fmt.Sprintf("%s %s", p.Kind, p.Pos)
			if p.Fatal {
				s += "!"
			}
			got = append(got, s)
		}
		if s := strings.Join(got, ", "); s != x.want {
			t.Errorf("%s reads %q with the problems %q, want %q", x.client, x.text, s, x.want)
		}
	}
}

func TestReferences(t *testing.T) {
	text := `$A ${B} ${C:-d:e} ${env:F} ${file:/g} {env:H} {file:i} ${workspaceFolder} ${workspaceFolder:j k} ${userHome}${/} ${input:l} %M% {{N}} ${{ secrets.O }} $(p q) $Q$ a$1 100% {x} $$ ${`
	var got []string
	for _, r := range References(text) {
		got = append(got, fmt.Sprintf("%s|%s|%s", text[r.Start:r.End], r.Syntax, r.Name+r.Default))
	}
	want := []string{
		"$A|$NAME|A", "${B}|${NAME}|B", "${C:-d:e}|${NAME:-default}|Cd:e", "${env:F}|${env:NAME}|F", "${file:/g}|${file:path}|/g", "{env:H}|{env:NAME}|H",
		"{file:i}|{file:path}|i", "${workspaceFolder}|${workspaceFolder}|workspaceFolder", "${workspaceFolder:j k}|${workspaceFolder:name}|j k",
		"${userHome}|${userHome}|userHome", "${/}|${pathSeparator}|/", "${input:l}|${input:id}|l", "%M%|%NAME%|M", "{{N}}|{{NAME}}|N",
		"${{ secrets.O }}|${{ secrets.NAME }}|secrets.O", "$(p q)|$(command)|p q", "$Q$|$NAME$|Q",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestExpand(t *testing.T) {
	h := Host{Home: "/home/kim", Project: "/srv/app", OS: "linux", Env: func(name string) string { return map[string]string{"DOCS": "/srv/docs"}[name] }}
	for _, x := range []struct {
		client, text, want string
		ok                 bool
	}{
		{"claude-code", "${CLAUDE_PROJECT_DIR:-.}", "/srv/app", true},
		{"claude-code", "${DOCS}/x", "/srv/docs/x", true},
		{"claude-code", "${NONE:-/tmp}", "/tmp", true},
		{"claude-code", "${NONE}", "${NONE}", false},
		{"claude-code", "$DOCS", "$DOCS", true}, // not its way to write a variable
		{"cursor", "${workspaceFolder}${/}${env:DOCS}", "/srv/app//srv/docs", true},
		{"cursor", "${userHome}", "/home/kim", true},
		{"gemini-cli", "$HOME/x", "/home/kim/x", true},
		{"opencode", "{env:DOCS}", "/srv/docs", true},
		{"vscode", "${input:x}", "${input:x}", false},
		{"codex", "${DOCS}", "${DOCS}", true},
	} {
		c, _ := Lookup(x.client)
		if got, ok := c.Expand(x.text, h); got != x.want || ok != x.ok {
			t.Errorf("%s makes %q, %v of %q, want %q, %v", x.client, got, ok, x.text, x.want, x.ok)
		}
	}
}

func TestLiteral(t *testing.T) {
	for text, want := range map[string]bool{
		"${T}": false, "Bearer ${env:T}": false, "token $T": false, "": false, "x": true, "Bearer x": true, "${T}x": true, "Basic": false,
	} {
		if got := hide(text).Literal(); got != want {
			t.Errorf("%q is literal: %v", text, got)
		}
	}
}

// Of a script only plain lines are understood, and nothing in it is filled in or run.
func TestScript(t *testing.T) {
	c, _ := Lookup("crush")
	f := ParseAs(c, "crushrc", []byte(`# mcp add no --command no
mcp add fs --type stdio --command npx \
  --args -y --args "$(git rev-parse --show-toplevel; echo 'x y')" --args 'a "b' --timeout 30
  mcp add far --type http --url https://mcp.example.test --header Authorization "Bearer $T"; mcp add --help
echo mcp add no --command no
mcp add odd --args
`))
	var got []string
	for _, s := range f.Servers {
		var args []string
		for _, a := range s.Args {
			args = append(args, a.Text)
		}
		got = append(got, fmt.Sprintf("%s %s %s %q %s %d", s.Name, s.Pos, s.Command.Text, args, s.URL.Text, len(s.Headers)))
	}
	want := []string{
		`fs 2:9 npx ["-y" "$(git rev-parse --show-toplevel; echo 'x y')" "a \"b"]  0`,
		`far 4:11  [] https://mcp.example.test 1`,
		`odd 6:9  []  0`,
	}
	got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "--help ") })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseAsKnowsThePlace(t *testing.T) {
	for _, x := range []struct {
		client, path string
		scope        Scope
		role         Role
	}{
		{"claude-code", "/x/.mcp.json", Project, Servers},
		{"claude-code", "/x/.claude.json", User, Servers},
		{"claude-code", "/x/.claude/settings.json", Project, Settings},
		{"vscode", "/x/.vscode/mcp.json", Project, Servers},
		{"vscode", "/x/mcp.json", User, Servers},
		{"vscode", "/x/.vscode/settings.json", Project, Legacy},
		{"codex", "/x/.codex/config.toml", Project, Servers},
		{"codex", "config.toml", User, Servers},
		{"zed", "settings.json", User, Servers},
		{"goose", "/x/.agents/plugins/y/.mcp.json", Plugin, Servers},
		{"cursor", "permissions.json", User, Settings},
		{"cursor", "anything.json", Project, Servers},
	} {
		c, _ := Lookup(x.client)
		if p := ParseAs(c, x.path, []byte("{}")).Place; p.Scope != x.scope || p.Role != x.role {
			t.Errorf("%s of %s is of the scope %s and the role %d, want %s and %d", x.path, x.client, p.Scope, p.Role, x.scope, x.role)
		}
	}
}
