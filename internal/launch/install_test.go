package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInstall(t *testing.T) {
	lock := func(bin string) string {
		return `{"packages": {"": {}, "node_modules/@a/server-x": {"version": "1.2.3", "integrity": "sha512-abc", "bin": ` + bin + `}}}`
	}
	tests := []struct {
		line, bin string // bin as in the lock
		spec      string // empty: there is nothing to install
		want      string // the command
	}{
		{"npx -y @a/server-x /r", `{"server-x": "x.js"}`, "@a/server-x", "DIR/node_modules/.bin/server-x /r"},
		{"npx -y @a/server-x@1 /r", `{"other": "x.js"}`, "@a/server-x@1", "DIR/node_modules/.bin/other /r"},
		{"npx -y -p @a/server-x@latest two /r", `{"one": "1.js", "two": "2.js"}`, "@a/server-x@latest", "DIR/node_modules/.bin/two /r"},
		{"npx -y @a/server-x", `{"one": "1.js", "two": "2.js"}`, "@a/server-x", `looking for the program of @a/server-x: it has ["one" "two"]; name one with --package @a/server-x`},
		{"npx -y -p @a/server-x ../../x", `{"x": "1.js"}`, "@a/server-x", `looking for the program of @a/server-x: it has ["x"]; name one with --package @a/server-x`},
		{"npx @a/server-x", `{"../../x": "1.js"}`, "@a/server-x", `looking for the program of @a/server-x: "../../x" is no name`},
		{"npx @a/server-x", `null`, "@a/server-x", "looking for the program of @a/server-x: it has none"},
		{"npx b", `"x.js"`, "b", `looking for b in "DIR": it is not installed`},
		{"npm exec @a/server-x -- /r", `{"server-x": "x.js"}`, "@a/server-x", "DIR/node_modules/.bin/server-x /r"},
		{"pnpm dlx @a/server-x /r", `{"server-x": "x.js"}`, "@a/server-x", "DIR/node_modules/.bin/server-x /r"},
		{"node /x/node_modules/@a/server-x/x.js /r", "", "", ""},
		{"uvx mcp-server-git", "", "", ""},
		{"npx -y ./here", "", "", ""},
	}
	for _, tt := range tests {
		i, ok := command(tt.line).Install()
		if ok != (tt.spec != "") || i.Spec != tt.spec {
			t.Errorf("%s: installs %q (%v), want %q", tt.line, i.Spec, ok, tt.spec)
		}
		if !ok {
			continue
		}
		dir := t.TempDir()
		if _, err := i.In(dir); !os.IsNotExist(err) {
			t.Errorf("%s: in an empty directory: %v", tt.line, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "package-lock.json"), []byte(lock(tt.bin)), 0o600); err != nil {
			t.Fatal(err)
		}
		got := ""
		switch in, err := i.In(dir); {
		case err != nil:
			got = err.Error()
		case in.Version != "1.2.3" || in.Integrity != "sha512-abc":
			t.Errorf("%s: %+v", tt.line, in)
		default:
			got = strings.Join(append([]string{in.Command.Path}, in.Command.Args...), " ")
		}
		if got = filepath.ToSlash(strings.ReplaceAll(got, dir, "DIR")); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.line, got, tt.want)
		}
		if args := i.Command(dir).Args; args[len(args)-1] != tt.spec || args[len(args)-2] != "--" {
			t.Errorf("%s: installed by %q", tt.line, args)
		}
	}
}

func TestCached(t *testing.T) {
	dir := t.TempDir()
	for hash, version := range map[string]string{"a": "2025.12.18", "b": "2025.7.1", "c": "2025.12.18", "d": ""} {
		at := filepath.Join(dir, "_npx", hash, "node_modules", "@scope", "name")
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "package.json"), []byte(`{"version": "`+version+`"}`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"2025.7.1", "2025.12.18"}, Cached(dir, "@scope/name")); diff != "" {
		t.Errorf("Cached (-want +got):\n%s", diff)
	}
	for _, name := range []string{"", "@scope/other", "../a", "@scope"} {
		if got := Cached(dir, name); got != nil {
			t.Errorf("Cached(%q) = %q, want none", name, got)
		}
	}
}
