package peers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The profile of the reference filesystem server knows the version that is pinned here: when that moves,
// internal/launch/effects.go moves with it. Nobody is asked for reading, and somebody for writing.
func TestProfileKnowsTheReference(t *testing.T) {
	needNode(t)
	text, err := os.ReadFile("node_modules/@modelcontextprotocol/server-filesystem/package.json")
	if err != nil {
		t.Fatal(err)
	}
	var pkg struct{ Name, Version string }
	if err := json.Unmarshal(text, &pkg); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, config := filepath.Join(dir, "a.txt"), filepath.Join(t.TempDir(), "rootbound.toml")
	if err := os.WriteFile(file, []byte("what is in it"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := fmt.Sprintf("[server.files]\ncommand = \"npx\"\nargs = [\"-y\", %q, %q]\ncwd = %q\npins = \"pins.json\"\n", pkg.Name+"@"+pkg.Version, dir, abs("."))
	if err := os.WriteFile(config, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), guard, "run", "--log", "off", "--ask", "deny", "--config", config)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(out)
	ask := func(id int, method string, params any) string {
		t.Helper()
		b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write(append(b, '\n')); err != nil {
			t.Fatal(err)
		}
		for {
			line, err := answers.ReadString('\n')
			if err != nil {
				t.Fatalf("waiting for the answer to %s: %v\n%s", method, err, &stderr)
			}
			if strings.Contains(line, fmt.Sprintf(`"id":%d`, id)) && !strings.Contains(line, `"method"`) {
				return line
			}
		}
	}
	ask(1, "initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"}})
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	ask(2, "tools/list", map[string]any{})
	call := func(id int, tool string, args map[string]any) string {
		return ask(id, "tools/call", map[string]any{"name": tool, "arguments": args})
	}
	if got := call(3, "read_text_file", map[string]any{"path": file}); !strings.Contains(got, "what is in it") {
		t.Errorf("reading: %s", got)
	}
	if got := call(4, "write_file", map[string]any{"path": file, "content": "x"}); !strings.Contains(got, "it needs the user's yes") {
		t.Errorf("writing: %s", got)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the guard: %v\n%s", err, &stderr)
	}
	checked, err := exec.CommandContext(t.Context(), guard, "policy", "check", "--config", config).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, checked)
	}
	if n := strings.Count(string(checked), "(the profile of the reference filesystem server)"); n < 14 || strings.Contains(string(checked), " unknown ") {
		t.Errorf("of %d tools it is known what they do:\n%s", n, checked)
	}
}
