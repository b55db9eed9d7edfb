//go:build unix

package launch

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/roots"
)

// grow makes files: a name that ends in "/" is a directory, "a -> b" a link, and "a: text" a program with that text.
func grow(t *testing.T, files ...string) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name, text, _ := strings.Cut(file, ": ")
		name, to, link := strings.Cut(name, " -> ")
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		case link:
			err = os.Symlink(to, path)
		default:
			err = os.WriteFile(path, []byte(strings.ReplaceAll(text, "TOP", top)), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// What a command needs is what it comes to, and the files of its own that it reads.
func TestNeeds(t *testing.T) {
	top := grow(t,
		"bin/node: ", "opt/py/bin/python3.11: ", "opt/py/lib/python3.11/", "bin/python3 -> ../opt/py/bin/python3.11", "bin/sh: ", "bin/env: ", "bin/npx: #!TOP/bin/env node\n", "bin/ruby: ", "bin/server: ",
		"app/package.json: {}", "app/dist/main.js: #!TOP/bin/env node\n", "node_modules/",
		"lone/main.js: ", "lone/run.sh: #!TOP/bin/sh -e\n",
		"mods/node_modules/a/cli.js: #!TOP/bin/env -S node --no-warnings\n", "mods/node_modules/.bin/a -> ../a/cli.js",
		"bin/bun: ", "put/package.json: {}", "put/node_modules/a/cli.js: ", "venv/bin/python -> ../../bin/python3", "venv/pyvenv.cfg: ", "venv/bin/tool: #!TOP/venv/bin/python\n",
		"bin/lib/: ", "py/pyproject.toml: ", "py/src/s.py: ",
		"pyenv/shims/python3: #!TOP/bin/sh\n", "pyenv/version: 3.9\n", "pyenv/versions/3.9/bin/python3 -> python3.9", "pyenv/versions/3.9/bin/python3.9: ", "pyenv/versions/3.9/lib/python3.9/",
		"loop/a: #!TOP/loop/b\n", "loop/b: #!TOP/loop/a\n",
		"home/.local/lib/python3.11/site-packages/x.py: ",
	)
	home := filepath.Join(top, "home")
	tests := []struct {
		line string
		want string // what is started, then what is read, "+" before what is also run, "?" before what is only listed; the common things are left out
	}{
		{"server /x", "bin/server +bin/server"},
		{"node app/dist/main.js", "bin/node +bin/node +app +node_modules"},
		{"app/dist/main.js", "app/dist/main.js +app/dist/main.js +bin/env +bin/node +app +node_modules"},
		{"node lone/main.js", "bin/node +bin/node +lone +node_modules"},
		{"node -r ./app/dist/main.js lone/main.js", "bin/node +bin/node +app +node_modules +lone"},
		{"node -e 1 lone/main.js", "bin/node +bin/node"},
		{"mods/node_modules/.bin/a", "mods/node_modules/.bin/a +mods/node_modules/a/cli.js +bin/env +bin/node +mods/node_modules"},
		{"env A=1 -u B node lone/main.js", `looking up "-u": it is not in PATH`},
		{"env -u B A=1 node lone/main.js", "bin/env +bin/env +bin/node +lone +node_modules"},
		{"sh -c", "bin/sh +bin/sh"},
		{"sh lone/run.sh", "bin/sh +bin/sh +lone"},
		{"lone/run.sh", "lone/run.sh +lone/run.sh +bin/sh +lone"},
		{"python3 py/src/s.py", "bin/python3 +opt/py/bin/python3.11 +opt/py +home/.local/lib/python3.11/site-packages +py"},
		{"python3 -m x py/src/s.py", "bin/python3 +opt/py/bin/python3.11 +opt/py +home/.local/lib/python3.11/site-packages"},
		{"venv/bin/tool", "venv/bin/tool +venv/bin/tool +opt/py/bin/python3.11 +venv +opt/py +home/.local/lib/python3.11/site-packages"},
		{"pyenv/shims/python3 py/src/s.py", "pyenv/versions/3.9/bin/python3 +pyenv/versions/3.9/bin/python3.9 +pyenv/versions/3.9 +py"},
		{"node put/node_modules/a/cli.js", "bin/node +bin/node +put/node_modules put/package.json"},
		{"bun put/node_modules/a/cli.js", "bin/bun +bin/bun +put/node_modules put/package.json ?put"},
		{"ruby ./lone/main.js", "bin/ruby +bin/ruby +lone"},
		{"npx -y x", "npx fetches and installs the server when it is started: install it first, and name the installed program"},
		{"nothing", `looking up "nothing": it is not in PATH`},
		{"./app", `looking up "./app": it is no program`},
		{"loop/a", `looking into "TOP/loop/a": it goes from script to script without an end`},
	}
	look := Look{Dir: top, Getenv: func(name string) string {
		return map[string]string{"PATH": top + "/bin:bin", "HOME": home}[name]
	}}
	for _, tt := range tests {
		got := ""
		n, err := command(tt.line).Needs(look)
		if err != nil {
			got = err.Error()
		} else {
			list := []string{n.Command.Path}
			for _, need := range n.Files {
				if strings.HasPrefix(need.Path, top) {
					sign := ""
					if need.Execute {
						sign = "+"
					}
					if need.List {
						sign = "?"
					}
					list = append(list, sign+need.Path)
				}
			}
			got = strings.Join(list, " ")
		}
		if got = strings.ReplaceAll(strings.ReplaceAll(got, top+"/", ""), top, "TOP"); !strings.Contains(tt.want, "TOP") {
			got = strings.ReplaceAll(got, "TOP", "")
		} else {
			got = strings.ReplaceAll(got, `"loop`, `"TOP/loop`)
		}
		if got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.line, got, tt.want)
		}
	}

	_, err := command("npx -y x").Needs(look)
	var runner *RunnerError
	if !errors.As(err, &runner) || runner.Program != "npx" {
		t.Errorf("npx: %v is no RunnerError of it", err)
	}
}

// One shell command is looked into where it is one program; else a note says that it was not.
func TestNeedsOfAShell(t *testing.T) {
	top := grow(t, "bin/sh: ", "bin/server: ")
	look := Look{Dir: top, Getenv: func(name string) string { return map[string]string{"PATH": top + "/bin"}[name] }}
	for text, inside := range map[string]bool{"server --x /y": true, "exec server": true, "cd / && server": false, "server; server": false, `server "$HOME"`: false} {
		n, err := Command{Path: "sh", Args: []string{"-c", text}}.Needs(look)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		found := slices.ContainsFunc(n.Files, func(n Need) bool { return n.Path == top+"/bin/server" })
		if found != inside || (len(n.Notes) == 0) != inside {
			t.Errorf("%q: looked into: %v, notes %q", text, found, n.Notes)
		}
		n, err = Command{Path: "sh", Args: []string{"-c", text}}.Needs(look, "server")
		if err != nil || !slices.ContainsFunc(n.Files, func(n Need) bool { return n.Path == top+"/bin/server" && n.Execute }) {
			t.Errorf("%q: what is also run is not among %v, error %v", text, n.Files, err)
		}
	}
}

// A directory in which much else lies is not the server's own.
func TestTheHomeDirectoryIsNotAPackage(t *testing.T) {
	top := grow(t, "bin/node: ", "home/main.js: ", "home/package.json: {}", "home/secret: ")
	home := filepath.Join(top, "home")
	t.Setenv("HOME", home)
	n, err := Command{Path: "node", Args: []string{"main.js"}}.Needs(Look{Dir: home, Getenv: func(string) string { return top + "/bin" }})
	if err != nil {
		t.Fatal(err)
	}
	want := []Need{{Path: home + "/main.js", Access: roots.Read, Why: "the server's own files"}}
	n.Files = slices.DeleteFunc(n.Files, func(n Need) bool { return !strings.HasPrefix(n.Path, home) })
	if diff := cmp.Diff(want, n.Files); diff != "" {
		t.Errorf("files of the home directory (-want +got):\n%s", diff)
	}
	if n.Command.Env["OPENSSL_CONF"] != "" {
		t.Error("a variable that is there was set")
	}
}

func TestEnvironment(t *testing.T) {
	kept, withheld := Environment([]string{"PATH=/bin", "LC_ALL=C", "TOKEN=x", "AWS_SECRET=y", "HOME=/h", "API=1=2"}, []string{"API"})
	if diff := cmp.Diff([]string{"PATH=/bin", "LC_ALL=C", "HOME=/h", "API=1=2"}, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"AWS_SECRET", "TOKEN"}, withheld); diff != "" {
		t.Errorf("withheld (-want +got):\n%s", diff)
	}
}
