package launch

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestInstall(t *testing.T) {
	node := func(bin string) map[string]string {
		return map[string]string{
			"node_modules/@a/server-x/package.json": `{"version": "1.2.3", "bin": ` + bin + `}`,
			"package-lock.json":                     `{"packages": {"": {}, "node_modules/@a/server-x": {"version": "1.2.3", "integrity": "sha512-abc"}}}`,
		}
	}
	python := func(entries string) map[string]string {
		return map[string]string{
			"site/a_server_x-1.2.3.dist-info/entry_points.txt": "[other]\nz = z:z\n[console_scripts]\n" + entries,
			"site/b-9.dist-info/entry_points.txt":              "[console_scripts]\nb = b:main\n",
			"report.json":                                      `{"install": [{"metadata": {"name": "A.server-x"}, "download_info": {"archive_info": {"hashes": {"sha256": "abc"}}}}]}`,
		}
	}
	const all = "npm pnpm bun uv python3 node"
	tests := []struct {
		line  string
		there string // the programs
		files map[string]string
		with  string // the installer; empty: there is nothing to install
		want  string // the command
	}{
		{"npx -y @a/server-x /r", all, node(`{"server-x": "x.js"}`), "npm -- @a/server-x", "DIR/node_modules/@a/server-x/x.js /r"},
		{"npx -y @a/server-x@1 /r", all, node(`{"other": "./d/x.js"}`), "npm -- @a/server-x@1", "DIR/node_modules/@a/server-x/d/x.js /r"},
		{"npx -y -p @a/server-x@latest two /r", all, node(`{"one": "1.js", "two": "2.js"}`), "npm -- @a/server-x@latest", "DIR/node_modules/@a/server-x/2.js /r"},
		{"npx -y @a/server-x", all, node(`{"one": "1.js", "two": "2.js"}`), "npm -- @a/server-x", `looking for the program of @a/server-x: it has ["one" "two"]; name one with --package @a/server-x`},
		{"npx -y -p @a/server-x ../../x", all, node(`{"x": "1.js"}`), "npm -- @a/server-x", `looking for the program of @a/server-x: it has ["x"]; name one with --package @a/server-x`},
		{"npx @a/server-x", all, node(`{"server-x": "../../x"}`), "npm -- @a/server-x", `looking for the program of @a/server-x: "../../x" is not in the package`},
		{"npx @a/server-x", all, node(`null`), "npm -- @a/server-x", "looking for the program of @a/server-x: it has none"},
		{"npx @a/server-x", all, node(`"x.js"`), "npm -- @a/server-x", "DIR/node_modules/@a/server-x/x.js"},
		{"npx b", all, node(`"x.js"`), "npm -- b", `looking for b in "DIR": it is not installed`},
		{"npm exec @a/server-x -- /r", all, node(`{"server-x": "x.js"}`), "npm -- @a/server-x", "DIR/node_modules/@a/server-x/x.js /r"},
		{"pnpm dlx @a/server-x /r", all, node(`{"server-x": "x.js"}`), "npm -- @a/server-x", "DIR/node_modules/@a/server-x/x.js /r"},
		{"pnpm dlx @a/server-x /r", "pnpm node", node(`{"server-x": "x.js"}`), "pnpm --config.manage-package-manager-versions=false @a/server-x", "DIR/node_modules/@a/server-x/x.js /r"},
		{"bunx @a/server-x /r", "bun", node(`{"server-x": "x.js"}`), "bun --exact @a/server-x", "bun DIR/node_modules/@a/server-x/x.js /r"},
		{"bunx @a/server-x /r", "pnpm", nil, "looking for something that installs @a/server-x: neither npm nor bunx's own installer is in PATH", ""},
		{"uvx a.server-x /r", all, python("a-server-x = x.y:main\n"), "uv :all: a.server-x", "python3 -s DIR/start.py x.y:main a-server-x /r"},
		{"uvx a-server-x@latest /r", "python3", python("a-server-x = x:main [extra]\n"), "python3 DIR/report.json a-server-x", "python3 -s DIR/start.py x:main a-server-x /r"},
		{"uv tool run --from a-server-x[z]==1.2 two", all, python("one = x:one\ntwo = x:App.two\n"), "uv :all: a-server-x[z]==1.2", "python3 -s DIR/start.py x:App.two two"},
		{"pipx run --spec a-server-x@1.2 two", all, python("one = x:one\ntwo = x:two\n"), "python3 DIR/report.json a-server-x==1.2", "python3 -s DIR/start.py x:two two"},
		{"pipx run a-server-x", all, python("one = x:one\ntwo = x:two\n"), "python3 DIR/report.json a-server-x", `looking for the program of a-server-x: it has ["one" "two"]; name one with --from a-server-x`},
		{"pipx run a-server-x", all, python("one = os; import x:one\n"), "python3 DIR/report.json a-server-x", `looking for the program of a-server-x: "os; import x:one" is no entry`},
		{"pipx run c", all, python("one = x:one\n"), "python3 DIR/report.json c", `looking for c in "DIR": it is not installed`},
		{"uvx a-server-x", "uv", nil, "looking for something that runs a-server-x: python3 is not in PATH", ""},
		{"uvx --with more a-server-x", all, nil, "", ""},
		{"uvx --python 3.12 a-server-x", all, nil, "", ""},
		{"node /x/node_modules/@a/server-x/x.js /r", all, nil, "", ""},
		{"docker run image", all, nil, "", ""},
		{"npx -y ./here", all, nil, "", ""},
	}
	for _, tt := range tests {
		i, ok := command(tt.line).Install()
		if ok != (tt.with != "") {
			t.Errorf("%s: installs %q (%v), want %q", tt.line, i.Spec, ok, tt.with)
		}
		if !ok {
			continue
		}
		has := func(program string) bool { return slices.Contains(strings.Fields(tt.there), program) }
		dir := filepath.Join(t.TempDir(), "x")
		if _, err := i.In(dir, has); !os.IsNotExist(err) {
			t.Errorf("%s: in no directory: %v", tt.line, err)
		}
		with, _, err := i.Command(dir, "", has)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = strings.Join(append([]string{with.Path}, with.Args[len(with.Args)-2:]...), " ")
		}
		if got = strings.ReplaceAll(got, dir, "DIR"); got != tt.with {
			t.Errorf("%s: installed with %s, want %s", tt.line, got, tt.with)
		}
		if err != nil {
			continue
		}
		again, _, _ := i.Command(dir, "7.8.9", has)
		if last := again.Args[len(again.Args)-1]; !strings.HasSuffix(last, "@7.8.9") && !strings.HasSuffix(last, "==7.8.9") {
			t.Errorf("%s: in a version it is %q", tt.line, last)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := i.Prepare(dir); err != nil {
			t.Fatal(err)
		}
		for name, text := range tt.files {
			name = filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		switch in, err := i.In(dir, has); {
		case err != nil:
			got = err.Error()
		case in.Version != "1.2.3" || !strings.HasSuffix(in.Integrity, "abc"):
			t.Errorf("%s: %+v", tt.line, in)
		default:
			got = strings.Join(append([]string{in.Command.Path}, in.Command.Args...), " ")
		}
		if got = filepath.ToSlash(strings.ReplaceAll(got, dir, "DIR")); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.line, got, tt.want)
		}
	}
}

// The print of an archive is found in the lock file of each installer, for the package and its version alone.
func TestIntegrity(t *testing.T) {
	for file, text := range map[string]string{
		"package-lock.json": `{"packages": {"node_modules/@a/x": {"integrity": "sha512-good="}, "node_modules/b/node_modules/@a/x": {"integrity": "sha512-bad="}}}`,
		"bun.lock":          `{"packages": {"a": ["@a/x@1.2.4", "", {}, "sha512-bad="],` + "\n" + `"b": ["@a/x@1.2.3", "", { "bin": { "x": "[y]" } }, "sha512-good="],` + "\n}}",
		"pnpm-lock.yaml":    "packages:\n\n  '@a/x@1.2.30':\n    resolution: {integrity: sha512-bad=}\n\n  '@a/x@1.2.3':\n    resolution: {integrity: sha512-good=}\n",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := integrity(dir, "@a/x", "1.2.3"); got != "sha512-good=" {
			t.Errorf("%s: %q", file, got)
		}
	}
}

// A print changes with each thing that is changed in a directory, and with nothing else.
func TestPrint(t *testing.T) {
	grow := func(change func(dir string) error) string {
		dir := t.TempDir()
		err := errors.Join(os.Mkdir(filepath.Join(dir, "d"), 0o700), os.WriteFile(filepath.Join(dir, "d/f"), []byte("text"), 0o600),
			os.WriteFile(filepath.Join(dir, "g"), nil, 0o700), os.WriteFile(filepath.Join(dir, "long"), make([]byte, 300_000), 0o600), change(dir))
		if err != nil {
			t.Fatal(err)
		}
		print, err := Print(dir)
		if err != nil {
			t.Fatal(err)
		}
		return print
	}
	same := grow(func(string) error { return nil })
	if want := "sha256:912557bd1fedd2f94e0685ce3e256c223f0f136550be7f4e0c1cde24c74b4be8"; runtime.GOOS != "windows" && same != want {
		t.Errorf("the print is %s, want %s: what was installed before would be refused", same, want)
	}
	prints := []string{same}
	for what, change := range map[string]func(dir string) error{
		"content":      func(dir string) error { return os.WriteFile(filepath.Join(dir, "d/f"), []byte("texT"), 0o600) },
		"a name":       func(dir string) error { return os.Rename(filepath.Join(dir, "d/f"), filepath.Join(dir, "d/h")) },
		"another file": func(dir string) error { return os.WriteFile(filepath.Join(dir, "d/h"), nil, 0o600) },
		"a directory":  func(dir string) error { return os.Mkdir(filepath.Join(dir, "e"), 0o700) },
		"removed":      func(dir string) error { return os.Remove(filepath.Join(dir, "g")) },
		"a byte of a long file, with its size and time as they were": func(dir string) error {
			name := filepath.Join(dir, "long")
			info, err := os.Stat(name)
			if err != nil {
				return err
			}
			text := make([]byte, 300_000)
			text[200_000] = 1
			return errors.Join(os.WriteFile(name, text, 0o600), os.Chtimes(name, info.ModTime(), info.ModTime()))
		},
	} {
		print := grow(change)
		if slices.Contains(prints, print) {
			t.Errorf("%s: the print is that of another tree", what)
		}
		prints = append(prints, print)
	}
	if again := grow(func(dir string) error { return os.Chtimes(filepath.Join(dir, "g"), time.Time{}, time.Unix(1, 0)) }); again != same {
		t.Error("another time makes another print")
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
