package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// program is an MCP client as its makers publish it. Without an account it lists the servers of its configuration.
type program struct {
	id   string // what wrap calls it
	bin  string // of peers/clients/node_modules, a pattern
	args []string
	file string // of the home directory
	text string // of the file; COMMAND and DIR are replaced
	// starts says that it starts the servers to list them, and what it prints of one that answers.
	starts string
	env    []string
}

var programs = []program{
	{
		id: "claude-code", bin: "@anthropic-ai/claude-code-*/claude*", args: []string{"mcp", "list"}, starts: `files: .* - ✔ Connected`,
		file: ".claude.json", text: "{\n  \"mcpServers\": {\n    \"files\": { \"type\": \"stdio\", \"command\": \"COMMAND\", \"args\": [\"DIR\"], \"env\": {} }\n  }\n}\n",
		env: []string{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"},
	},
	{
		id: "gemini-cli", bin: ".bin/gemini", args: []string{"mcp", "list"}, starts: `✓ files: .* - Connected`,
		file: ".gemini/settings.json", text: "{\n  // files\n  \"mcpServers\": { \"files\": { \"command\": \"COMMAND\", \"args\": [\"DIR\"] } }\n}\n",
		env: []string{"GEMINI_CLI_TRUST_WORKSPACE=true"},
	},
	{
		id: "opencode", bin: "opencode-[^a]*/bin/opencode*", args: []string{"mcp", "list"}, starts: `✓ files .*connected`,
		file: ".config/opencode/opencode.jsonc", text: "{\n  // version 1\n  \"mcp\": { \"files\": { \"type\": \"local\", \"command\": [\"COMMAND\", \"DIR\"], } },\n}\n",
		env: []string{"OPENCODE_DISABLE_AUTOUPDATE=true"},
	},
	{
		id: "codex", bin: ".bin/codex", args: []string{"mcp", "list", "--json"},
		file: ".codex/config.toml", text: "# files\n[mcp_servers.files]\ncommand = 'COMMAND'\nargs = ['DIR']\n",
	},
	{
		id: "copilot-cli", bin: ".bin/copilot", args: []string{"mcp", "list", "--json"},
		file: ".copilot/mcp-config.json", text: "{ \"mcpServers\": { \"files\": { \"type\": \"local\", \"command\": \"COMMAND\", \"args\": [\"DIR\"], \"tools\": [\"*\"] } } }\n",
		env: []string{"COPILOT_AUTO_UPDATE=false"},
	},
}

// What a client itself finds in its file is what wrap and unwrap say is in it; and those that start a server to list it reach
// it through the guard.
func TestWrappedClients(t *testing.T) {
	needNode(t)
	server, err := filepath.Abs(filepath.Join("node_modules", ".bin", "mcp-server-filesystem"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		t.Run(p.id, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			dir := filepath.Join(home, "proj")
			file := filepath.Join(home, filepath.FromSlash(p.file))
			text := strings.NewReplacer("COMMAND", server, "DIR", dir).Replace(p.text)
			for _, d := range []string{filepath.Join(dir, ".git"), filepath.Dir(file)} {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			at := machine{t: t, home: home, dir: dir, env: p.env}
			list := func() string { return words(at.run(p.find(t), p.args...)) }

			before := list()
			if want := words(server + " " + dir); !strings.Contains(before, want) {
				t.Fatalf("%s does not list its server:\n%s", p.id, before)
			}
			started := at.runs() // by nobody, so far
			was := contents(t, file)
			at.run(guard, "wrap", p.id, "--program", guard, "--write")
			wrapped := contents(t, file)
			after := list()
			if want := words(guard + " run -- " + server + " " + dir); !strings.Contains(after, want) {
				t.Fatalf("%s does not list the wrapped server as it is written:\n%s", p.id, after)
			}
			if p.starts != "" {
				if !regexp.MustCompile(p.starts).MatchString(after) {
					t.Errorf("%s did not reach the server through the guard:\n%s", p.id, after)
				}
				if n := at.runs(); n <= started {
					t.Errorf("%s started no guard", p.id)
				}
			}
			changed := !bytes.Equal(contents(t, file), wrapped) // by the client, which keeps other things in it
			at.run(guard, "unwrap", p.id, "--write")
			is := contents(t, file)
			switch {
			case !changed && !bytes.Equal(is, was):
				t.Errorf("unwrapping left\n%s, it was\n%s", is, was)
			case changed && !bytes.Equal(servers(t, is), servers(t, was)):
				t.Errorf("unwrapping left the servers\n%s, they were\n%s", servers(t, is), servers(t, was))
			}
			// What a client says beside its servers is its own affair, and differs when it is busy.
			if got := list(); !strings.Contains(got, words(server+" "+dir)) || strings.Contains(got, words(guard+" run")) {
				t.Errorf("unwrapped, %s lists\n%s, it was\n%s", p.id, got, before)
			}
		})
	}
}

// find returns the program's file. The platform's own one is called where there is one: what stands for it in .bin is written
// by an install script, and none is run.
func (p program) find(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("clients", "node_modules", filepath.FromSlash(p.bin)))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		missing(t, "finding "+p.id+" (run .ci/peers)")
	}
	bin, err := filepath.Abs(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// machine is a home directory in which programs run as on a machine of their own.
type machine struct {
	t         *testing.T
	home, dir string
	env       []string
}

func (m machine) run(name string, args ...string) string {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = m.dir
	cmd.Env = append([]string{"HOME=" + m.home, "PATH=" + os.Getenv("PATH"), "TERM=dumb", "NO_COLOR=1", "LANG=C.UTF-8"}, m.env...)
	out, err := cmd.CombinedOutput() // some list on one, some on the other
	if err != nil {
		m.t.Fatalf("running %q: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}

// runs counts the guards that have run.
func (m machine) runs() int {
	logs, err := filepath.Glob(filepath.Join(m.home, ".local", "state", "rootbound", "log", "*.jsonl"))
	if err != nil {
		m.t.Fatal(err)
	}
	return len(logs)
}

// words is a listing as words, be it a table, lines or JSON.
func words(listing string) string {
	for _, sign := range []string{"\x1b\\[[0-9;?]*[A-Za-z]", `"args":`, `[",│\[\]]`} {
		listing = regexp.MustCompile(sign).ReplaceAllString(listing, " ")
	}
	return strings.Join(strings.Fields(listing), " ")
}

func contents(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// servers is the table of servers in a JSON file.
func servers(t *testing.T, text []byte) []byte {
	t.Helper()
	var all struct {
		Servers json.RawMessage `json:"mcpServers"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, all.Servers); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
