//go:build unix

package fsserver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/roots"
)

func TestRedact(t *testing.T) {
	set := roots.NewSet(
		roots.Dir{Path: "/srv/docs", Spellings: []string{"/srv/docs", "/home/me/docs"}, Name: "handbook", Access: roots.ReadOnly},
		roots.Dir{Path: "/srv/docs/inner", Access: roots.ReadWrite},
		roots.Dir{Path: "/opt/one/file.txt", File: true, Access: roots.ReadOnly},
		roots.Dir{Path: "/", Access: roots.ReadOnly}, // nothing to hide
	)
	for text, want := range map[string]string{
		"ENOENT: open '/srv/docs/a/b'": "ENOENT: open 'a/b'",
		"ENOENT: open '/srv/docs'":     "ENOENT: open 'handbook'",
		"path outside: /etc/x not in /srv/docs, /home/me/docs, /srv/docs/inner": "path outside: /etc/x not in handbook, handbook, inner",
		"/srv/docs/inner/x":                        "x",
		"/srv/docs2/x":                             "/srv/docs2/x",
		"/srv/docs.old":                            "/srv/docs.old",
		"file:///srv/docs/a%20b":                   "a%20b",
		"/home/me/docs/x and /home/me/y, /home/me": "x and ~/y, ~",
		"open '/opt/one/../two', /opt/one/file.txt. Or /opt/one, /opt/one.bak, /opt/one.": "open '../two', file.txt. Or ., /opt/one.bak, ..",
		"/srv/docs\n/srv/docs/x": "handbook\nx",
		"nothing":                "nothing",
		"":                       "",
	} {
		if got := redact(text, set, "/home/me"); got != want {
			t.Errorf("redact(%q) = %q, want %q", text, got, want)
		}
	}
}

// With Redact, no error of any tool or resource names a path of this machine; the codes are the same.
func TestRedactedErrorsNameNoPath(t *testing.T) {
	dir := old(t, tree(t, map[string]string{"a": "a", "sub/x": "x", "large": strings.Repeat("x", maxText+1)}))
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	home := filepath.Dir(dir)
	plain := New(Options{Name: "files", Title: "Files", Version: "1.2", Home: home})
	defer plain.Close()
	redacted := New(Options{Name: "files", Title: "Files", Version: "1.2", Home: home, Redact: true})
	defer redacted.Close()
	set := roots.NewSet(resolve(t, dir, roots.ReadOnly), resolve(t, filepath.Join(old(t, tree(t, map[string]string{"of/one": "x"})), "of/one"), roots.ReadWrite))
	errors := 0
	for _, era := range eras {
		for _, tool := range tools {
			for _, path := range []string{"a", "sub", "nothing", "out", "a/x", "large", "../x", "~/x", dir + "/nothing", dir + "/../x", ".", "", "x\x00"} {
				arguments := `{"path":` + quoteJSON(path) + `,"source":` + quoteJSON(path) + `,"destination":` + quoteJSON(path) +
					`,"content":"x","paths":[` + quoteJSON(path) + `],"pattern":"(","edits":[{"oldText":"q","newText":"r"}],"id":"none"}`
				params := `{"name":"` + tool.name + `","arguments":` + arguments + `}`
				text, isError := use(t, redacted, era, set, tool.name, arguments)
				if !isError {
					continue
				}
				errors++
				if strings.Contains(text, home) || path != dir+"/nothing" && path != dir+"/../x" && strings.Contains(text, os.TempDir()) {
					t.Errorf("%s %q: %s", tool.name, path, text)
				}
				code := func(s *Server) string {
					var result struct {
						Meta map[string]any `json:"_meta"`
					}
					if err := json.Unmarshal([]byte(ask(t, s, request(era, "tools/call", params, set))), &result); err != nil {
						t.Fatal(err)
					}
					code, _ := result.Meta[metaCode].(string)
					return code
				}
				if got, want := code(redacted), code(plain); got != want {
					t.Errorf("%s %q: code %q, want %q", tool.name, path, got, want)
				}
			}
		}
		for _, name := range []string{"large", "a/x", "nothing"} {
			if _, _, problem := readURI(t, redacted, era, set, roots.FileURI(filepath.Join(dir, name))); problem == "" || strings.Contains(problem, dir) {
				t.Errorf("reading %s: %q", name, problem)
			}
		}
	}
	if errors < 20 {
		t.Errorf("only %d errors were seen", errors)
	}
}
