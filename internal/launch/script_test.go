package launch

import (
	"strings"
	"testing"
)

func TestScriptName(t *testing.T) {
	for line, want := range map[string]string{
		"python3 weather.py":                                  "weather",
		"python3.12 -u /srv/tides/server.py --all":            "tides",
		"/usr/bin/env node dist/index.js":                     "work",
		"env A=b node --import x /srv/moon/dist/src/main.mjs": "moon",
		"deno run -A /srv/moon/moon.ts":                       "moon",
		"bun run sun.ts":                                      "sun",
		"uv run --with x star.py":                             "star",
		"uv run python -u star.py":                            "star",
		"ruby comet.rb":                                       "comet",
		"sh run.sh":                                           "work",
		"sh -c run.sh":                                        "",
		"python3 -m weather":                                  "",
		"node -e 1":                                           "",
		"my-server server.py":                                 "",
		"python3":                                             "",
		"env -S node x.js":                                    "",
	} {
		words := strings.Fields(line)
		got := Command{Path: words[0], Args: words[1:]}.Script()
		if got != "" {
			got = ScriptName(got, "/home/me/work")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
