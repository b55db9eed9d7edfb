package peers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// asking makes a file of rules that ask for everything, and returns the flags that have it asked.
func asking(t *testing.T, dir string) []string {
	t.Helper()
	rules := filepath.Join(t.TempDir(), "rules.toml")
	if err := os.WriteFile(rules, []byte("[[rule]]\nmatch = {}\nverdict = \"ask\"\nremember = \"never\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--ask", "always", "--config", rules, "--root", dir}
}

// came is what came of a step.
type came struct {
	Asked []struct {
		Method string
		Params struct{ Message string }
	}
	Result *struct {
		Content []struct{ Text string }
		IsError bool
	}
	Error any
}

func (c came) text() string {
	if c.Result == nil || len(c.Result.Content) == 0 {
		return fmt.Sprint("error: ", c.Error)
	}
	return c.Result.Content[0].Text
}

func readCame(t *testing.T, line string) came {
	t.Helper()
	var c came
	if err := json.Unmarshal([]byte(line), &c); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return c
}

// TestApprovedInTheClient has clients of both eras that can ask a person: what is allowed runs, once, and what is not, not.
// The server's own question comes after ours, to the same person.
func TestApprovedInTheClient(t *testing.T) {
	for _, client := range []peer{tsLegacy, goLegacy, tsPinned, tsAuto, goModern} {
		for _, server := range []peer{goServerPeer, goLegacyOnly, goModernOnly} {
			t.Run(client.name+"/"+server.name, func(t *testing.T) {
				t.Parallel()
				if client.node {
					needNode(t)
				}
				dir := workspace(t)
				// Nobody is waited for in a terminal, also where the client does not send what does not fit the form.
				command := append([]string{"env", "CI=true"}, guardedBy(asking(t, dir), server.command)...)
				p := plan{Content: map[string]any{"decision": "allow once", "name": "Ada"}, Steps: []step{call("echo", args{"text": "one"})}}
				gives := client.name != tsLegacy.name && client.name != goLegacy.name && server.name != goLegacyOnly.name
				if gives { // the server gives requests back
					p.Steps = append(p.Steps, call("two_rounds", nil))
				}
				out := drive(t, client, command, p)
				echo := readCame(t, out[0])
				if echo.text() != "one" || echo.Result.IsError || len(echo.Asked) != 1 || !strings.Contains(echo.Asked[0].Params.Message, `"echo"`) {
					t.Errorf("echo came to %s", out[0])
				}
				rounds, ours, its := echo, 0, 0
				if gives {
					rounds = readCame(t, out[1])
				}
				for _, a := range rounds.Asked {
					switch {
					case a.Method != "elicitation/create":
					case strings.Contains(a.Params.Message, `"two_rounds"`):
						ours++
					default:
						its++
					}
				}
				if gives && (rounds.Result == nil || rounds.Result.IsError || ours != 1 || its == 0) {
					t.Errorf("two_rounds came to %s, with %d questions of ours and %d of the server", out[1], ours, its)
				}
				for _, content := range []map[string]any{{"decision": "deny"}, {}, {"decision": "allow everything"}} {
					p.Content, p.Steps = content, []step{call("echo", args{"text": "one"})}
					out := drive(t, client, command, p)
					c := readCame(t, out[0])
					no := c.Result != nil && c.Result.IsError && (strings.Contains(c.text(), "the user said no") || strings.Contains(c.text(), "closed the question") ||
						strings.Contains(c.text(), "brought no answer")) // of what does not fit
					if !no && c.Error == nil { // the error of a client that ends a call for which it would send what does not fit
						t.Errorf("with the answer %v it came to %s", content, out[0])
					}
				}
			})
		}
	}
}

// TestApprovedFileIsWritten is the same for our own filesystem server and the reference one: the question shows what will
// be in the file.
func TestApprovedFileIsWritten(t *testing.T) {
	for _, client := range []peer{tsLegacy, goLegacy, tsPinned, goModern} {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			needNode(t)
			for _, server := range [][]string{nil, tsFilesystem.command} {
				dir := workspace(t)
				file := filepath.Join(dir, "new.txt")
				flags := asking(t, dir)
				command := slices.Concat([]string{guard, "fs"}, flags[:4], []string{dir})
				if server != nil {
					command = guardedBy(flags, append(slices.Clone(server), dir))
				}
				write := call("write_file", args{"path": file, "content": "first\nsecond\n"})
				out := drive(t, client, command, plan{Content: map[string]any{"decision": "allow once"}, Steps: []step{write}})
				c := readCame(t, out[0])
				text, err := os.ReadFile(file)
				if err != nil || string(text) != "first\nsecond\n" || c.Result == nil || c.Result.IsError {
					t.Errorf("it came to %s; the file has %q, %v", out[0], text, err)
				}
				if len(c.Asked) != 1 || !strings.Contains(c.Asked[0].Params.Message, "\n+first\n+second") || !strings.Contains(c.Asked[0].Params.Message, file) {
					t.Errorf("the question is %+v", c.Asked)
				}
			}
		})
	}
}
