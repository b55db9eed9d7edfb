package doctor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
)

// The secrets are where people put them, under names that say so and under names that do not.
const planted = "Zq7PlantedSecret"

var plantedFiles = map[string]string{
	"claude-code .mcp.json": `{"mcpServers": {
	  "a": {"command": "npx", "args": ["-y", "server", "--token=Zq7PlantedSecret1", "--password", "Zq7PlantedSecret2"], "roots": ["/srv/a"],
	    "env": {"API_KEY": "Zq7PlantedSecret3", "PLAIN": "Zq7PlantedSecret4", "MIXED": "${HOME}Zq7PlantedSecret5", "D": "${X:-Zq7PlantedSecret6}"}},
	  "b": {"type": "http", "url": "https://me:Zq7PlantedSecret7@mcp.example.test/x?api_key=Zq7PlantedSecret8",
	    "headers": {"Authorization": "Bearer Zq7PlantedSecret9", "X-Own": "Zq7PlantedSecretA"}},
	  "c": {"command": "env API_KEY=Zq7PlantedSecretB npx server"},
	  "d": {"command": "sh", "args": ["-c", "TOKEN=Zq7PlantedSecretC npx server"]},
	  "e": {"command": "/opt/server", "args": ["--dsn", "postgres://u:Zq7PlantedSecretD@db/x", "~/a"], "Args": 1},
	  "f": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "--api-key", "Zq7PlantedSecretE", "~/a"]}
	}}`,
	"cursor .cursor/mcp.json": "\ufeff" + `{"servers": {"a": {"command": "npx", "args": ["${input:x}"], "environment": {"K": "Zq7PlantedSecret1"}, "env": {"K": "Zq7PlantedSecret2",},}}}`,
	"codex config.toml": `[mcp_servers.a]
command = "/opt/server"
timeout = 60000
env = { PLAIN = "Zq7PlantedSecret1" }
http_headers = { X = "Zq7PlantedSecret2" }
bearer_token = "Zq7PlantedSecret3"
`,
	"goose config.yaml": `extensions:
  a: {name: a, type: stdio, cmd: npx, args: [server, --api-key=Zq7PlantedSecret1], envs: {PLAIN: Zq7PlantedSecret2}, env: {P: Zq7PlantedSecret3}, timeout: 60000}
`,
	"crush crushrc": `mcp add a --command npx --args --token=Zq7PlantedSecret1 --env PLAIN Zq7PlantedSecret2 --url https://u:Zq7PlantedSecret3@x.test
`,
	"cline cline_mcp_settings.json": `{"mcpServers": {"a": {"transport": {"command": "npx", "args": ["x"], "env": {"P": "Zq7PlantedSecret1"}}, "timeout": 60000, "headers": {"P": "Zq7PlantedSecret2"}}}}`,
}

func TestNoSecretIsPrinted(t *testing.T) {
	for name, text := range plantedFiles {
		client, base, _ := strings.Cut(name, " ")
		t.Run(client, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), base)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, alone := range []bool{true, false} {
				m := elsewhere()
				m.Alone = alone
				m.Host.Env = func(string) string { return "" }
				files, err := FilesOf(m, client, path)
				if err != nil {
					t.Fatal(err)
				}
				r := Examine(m, files)
				if len(r.Findings) == 0 {
					t.Error("nothing is found")
				}
				var out strings.Builder
				p := Printer{W: &out}
				if err := p.Servers(r); err != nil {
					t.Fatal(err)
				}
				if err := p.Findings(r); err != nil {
					t.Fatal(err)
				}
				if err := r.WriteJSON(&out); err != nil {
					t.Fatal(err)
				}
				if err := r.WriteSARIF(&out, "v"); err != nil {
					t.Fatal(err)
				}
				list, errs := Fixes(m, files, r)
				for _, a := range list {
					out.WriteString(udiff.Unified("a", "b", Mask(a.File, string(a.Before)), Mask(a.File, string(a.Draft.Bytes()))))
				}
				for _, err := range errs {
					out.WriteString(err.Error() + "\n")
				}
				for line := range strings.Lines(out.String()) {
					if strings.Contains(line, planted) {
						t.Errorf("a secret is printed: %s", line)
					}
				}
			}
		})
	}
}

// What is written for programs is what the schemas say.
func TestFormats(t *testing.T) {
	s := samples(t)[2]
	r, err := examineFile(elsewhere(), s.client, s.write(t))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := r.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Servers  []map[string]any
		Findings []map[string]any
	}
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Servers == nil || len(got.Findings) == 0 {
		t.Fatalf("servers or findings are missing in %s", out.String())
	}
	for _, key := range []string{"id", "severity", "client", "server", "file", "line", "column", "message", "fix"} {
		if _, ok := got.Findings[0][key]; !ok {
			t.Errorf("a finding has no %q: %v", key, got.Findings[0])
		}
	}
	if n := len(got.Findings[0]); n != 9 {
		t.Errorf("a finding has %d members, want 9: %v", n, got.Findings[0])
	}
	out.Reset()
	if err := r.WriteSARIF(&out, "v1"); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Level     string
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine, StartColumn int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out.String()), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	f := r.Findings[0]
	one := run.Results[0]
	at := one.Locations[0].PhysicalLocation
	if log.Version != "2.1.0" || run.Tool.Driver.Rules[one.RuleIndex].ID != f.ID || one.RuleID != f.ID || one.Level != "error" ||
		!strings.HasPrefix(at.ArtifactLocation.URI, "file:///") || at.Region.StartLine != f.Line || at.Region.StartColumn != f.Column {
		t.Errorf("SARIF does not have the finding %+v:\n%s", f, out.String())
	}
}

// A report of nothing is still one.
func TestNothing(t *testing.T) {
	r := Examine(Machine{}, nil)
	var out strings.Builder
	if err := r.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	if want := "{\n  \"servers\": [],\n  \"findings\": []\n}\n"; out.String() != want {
		t.Errorf("JSON is %q, want %q", out.String(), want)
	}
	if !r.Empty() || r.Worst() != "" {
		t.Errorf("the report is not empty: %+v", r)
	}
}
