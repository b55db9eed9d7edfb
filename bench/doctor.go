package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// served is a server as most clients have it in their file.
const served = `{"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/app"]}`

// clientFiles are the files of every client, in a home and in the project app.
var clientFiles = map[string]string{
	".config/Claude/claude_desktop_config.json":    `{"mcpServers": {"f": ` + served + `}}`,
	".config/Code/User/mcp.json":                   `{"servers": {"f": ` + served + `}, /* ours */ }`,
	".config/Code/User/settings.json":              `{"editor.tabSize": 2, "chat.tools.global.autoApprove": true}`,
	".config/amp/settings.json":                    `{"amp.mcpServers": {"f": ` + served + `}}`,
	".config/crush/crushrc":                        `mcp add f --command npx --args "$PWD"`,
	".config/goose/config.yaml":                    "extensions:\n  f: {name: f, type: stdio, cmd: npx, args: [server, /srv/app]}\n",
	".config/opencode/opencode.json":               `{"mcp": {"f": {"type": "local", "command": ["npx", "server", "/srv/app"]}}}`,
	".config/zed/settings.json":                    `{"context_servers": {"f": ` + served + `}}`,
	".aws/amazonq/mcp.json":                        `{"mcpServers": {"f": ` + served + `}}`,
	".cline/data/settings/cline_mcp_settings.json": `{"mcpServers": {"f": ` + served + `}}`,
	".codeium/windsurf/mcp_config.json":            `{"mcpServers": {"f": ` + served + `}}`,
	".codex/config.toml":                           "[mcp_servers.f]\ncommand = \"npx\"\nargs = [\"server\", \"/srv/app\"]\n",
	".continue/config.yaml":                        "mcpServers:\n  - {name: f, command: npx, args: [server, /srv/app]}\n",
	".copilot/mcp-config.json":                     `{"mcpServers": {"f": ` + served + `}}`,
	".cursor/mcp.json":                             `{"mcpServers": {"f": ` + served + `}}`,
	".gemini/config/mcp_config.json":               `{"mcpServers": {"f": ` + served + `}}`,
	".gemini/settings.json":                        `{"mcpServers": {"f": ` + served + `}}`,
	".junie/mcp/mcp.json":                          `{"mcpServers": {"f": ` + served + `}}`,
	".kiro/settings/mcp.json":                      `{"mcpServers": {"f": ` + served + `}}`,
	".lmstudio/mcp.json":                           `{"mcpServers": {"f": ` + served + `}}`,
	".warp/.mcp.json":                              `{"mcpServers": {"f": ` + served + `}}`,
	"app/.mcp.json":                                `{"mcpServers": {"f": ` + served + `}}`,
	"app/.roo/mcp.json":                            `{"mcpServers": {"f": ` + served + `}}`,
	"app/librechat.yaml":                           "mcpServers:\n  f: {type: stdio, command: npx, args: [server, /app/data]}\n",
}

// doctorHome judges a home in which every client is. The state of Claude Code is 1.6 MB, as it becomes.
func doctorHome(b *bench) ([]result, error) {
	home := filepath.Join(b.dir, "doctor")
	history := strings.Repeat(`{"display": "what was typed, a line of some length", "pastedContents": {}},`, 20_000)
	files := map[string]string{
		".claude.json": `{"history": [` + strings.TrimSuffix(history, ",") + `], "mcpServers": {"f": ` + served + `}}`,
	}
	for name, text := range clientFiles {
		files[name] = text
	}
	for name, text := range files {
		path := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	var took []float64
	for range starts {
		cmd := exec.Command(b.guard, "doctor", "--home", home, "--project", filepath.Join(home, "app"), "--json")
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		began := time.Now()
		err := cmd.Run()
		took = append(took, float64(time.Since(began))/1e6)
		var exit *exec.ExitError
		if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == exitMissed) { // it has findings
			return nil, fmt.Errorf("running %q: %w\n%s", cmd.Args, err, &errs)
		}
		if n := strings.Count(out.String(), `"scope":`); n < len(clientFiles) {
			return nil, fmt.Errorf("running %q: %d servers were found in %d files", cmd.Args, n, len(files))
		}
	}
	return []result{summary("rootbound doctor, a home with 23 clients", "ms", took).within(150)}, nil
}
