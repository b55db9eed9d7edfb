package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rootbound/rootbound/roots"
)

func TestEditRoots(t *testing.T) {
	add := func(server, path, name string, access roots.Access) func(h *home, file string) (Change, error) {
		return func(h *home, file string) (Change, error) {
			return AddRoot(file, server, Root{Path: h.path(path), Name: name, Access: access})
		}
	}
	remove := func(server, root string) func(h *home, file string) (Change, error) {
		return func(h *home, file string) (Change, error) {
			return RemoveRoot(file, server, strings.ReplaceAll(root, "TOP", h.top))
		}
	}
	set := func(server, root string, to Root) func(h *home, file string) (Change, error) {
		return func(h *home, file string) (Change, error) {
			return SetRoot(file, server, strings.ReplaceAll(root, "TOP", h.top), func(Root) Root { return to })
		}
	}
	use := func(root string) func(h *home, file string) (Change, error) {
		return func(h *home, file string) (Change, error) { return Use(file, strings.ReplaceAll(root, "TOP", h.top)) }
	}
	const two = "# mine\n\n[[roots]] # first\npath = \"TOP/work\"\nname = \"w\"\n\n[[roots]]\npath = \"TOP/other\"\nname = \"o\"\n\n[server.a]\ncommand = \"x\"\n"
	const skeleton = "{\n  \"mcpServers\": {\n    \"fs\": {\n      \"command\": \"npx\", // node\n      \"roots\": [\n        {\"uri\": \"file://TOP/work\", \"name\": \"w\"}\n      ]\n    }\n  },\n  \"other\": 12345678901234567890\n}\n"
	tests := []struct {
		name string
		file string
		text string
		edit func(h *home, file string) (Change, error)
		want string // the new text, or part of the error
		err  bool
	}{
		{"add to the list for all", "c.toml", two, add("", "work/src", "s", roots.ReadOnly),
			"# mine\n\n[[roots]] # first\npath = \"TOP/work\"\nname = \"w\"\n\n[[roots]]\npath = \"TOP/other\"\nname = \"o\"\n\n[[roots]]\npath = \"TOP/work/src\"\nname = \"s\"\naccess = \"ro\"\n\n[server.a]\ncommand = \"x\"\n", false},
		{"add a server's first", "c.toml", two, add("a", "work/src", "", roots.ReadWrite), two + "\n[[server.a.roots]]\npath = \"TOP/work/src\"\n", false},
		{"add to an inline list", "c.toml", "roots = [ { path = \"TOP/work\" } ] # r\n", add("", "other", "", roots.ReadWrite),
			"roots = [ { path = \"TOP/work\" }, { path = \"TOP/other\" } ] # r\n", false},
		{"add to JSON of ours", "c.json", "{\"server\": {\"a\": {}}}", add("a", "other", "o", roots.Read|roots.Write),
			"{\"server\": {\"a\": {\"roots\": [{\"path\": \"TOP/other\", \"name\": \"o\", \"access\": \"no-delete\"}]}}}", false},
		{"add to a client's file", "mcp.json", skeleton, add("fs", "other", "o", roots.ReadWrite),
			strings.Replace(skeleton, "\"w\"}\n", "\"w\"},\n        {\"uri\": \"file://TOP/other\", \"name\": \"o\"}\n", 1), false},
		{"add to TOML servers", "mcp.toml", "[[mcp.servers]]\nname = \"a\"\n\n[[mcp.servers]]\nname = \"b\"\n", add("a", "other", "", roots.ReadWrite),
			"[[mcp.servers]]\nname = \"a\"\n\n[[mcp.servers.roots]]\nuri = \"file://TOP/other\"\n\n[[mcp.servers]]\nname = \"b\"\n", false},
		{"add to a file that is not there", "new/c.toml", "", add("", "other", "", roots.ReadWrite), newFile + "\n[[roots]]\npath = \"TOP/other\"\n", false},
		{"add what is there", "c.toml", two, add("", "other", "", roots.ReadWrite), "c.toml:7:3: root \"TOP/other\" is there already", true},
		{"add a name that is there", "c.toml", two, add("", "work/src", "o", roots.ReadWrite), "there is a root named \"o\" already", true},
		{"add to an unknown server", "c.toml", "[server.files]\n", add("file", "other", "", roots.ReadWrite), "there is no server \"file\", did you mean \"files\"?", true},

		{"remove by name", "c.toml", two, remove("", "w"), "# mine\n\n[[roots]]\npath = \"TOP/other\"\nname = \"o\"\n\n[server.a]\ncommand = \"x\"\n", false},
		{"remove by directory", "c.toml", two, remove("", "TOP/other/"), "# mine\n\n[[roots]] # first\npath = \"TOP/work\"\nname = \"w\"\n\n[server.a]\ncommand = \"x\"\n", false},
		{"remove one that is gone from the disk", "c.toml", "roots = [{ path = \"/gone\" }, { path = \"TOP/work\" }]\n", remove("", "/gone"),
			"roots = [{ path = \"TOP/work\" }]\n", false},
		{"the last one leaves an empty list", "c.toml", "[[roots]]\npath = \"TOP/work\"\n\n[server.a]\ncommand = \"x\"\n", remove("", "TOP/work"),
			"roots = []\n\n[server.a]\ncommand = \"x\"\n", false},
		{"also of a client's file", "mcp.json", skeleton, remove("fs", "w"), strings.Replace(skeleton, "[\n        {\"uri\": \"file://TOP/work\", \"name\": \"w\"}\n      ]", "[]", 1), false},
		{"remove an unknown one", "c.toml", two, remove("", "oo"), "there is no root \"oo\", did you mean \"o\"?", true},
		{"remove the active one", "c.toml", "active = \"o\"\n" + two, remove("", "TOP/other"), "c.toml:1:10: \"TOP/other\" is the active workspace", true},

		{"rename", "c.toml", two, set("", "w", Root{Name: "work", Access: roots.ReadWrite}), strings.Replace(two, "name = \"w\"", "name = \"work\"", 1), false},
		{"rename the active one", "c.toml", "active = \"w\" # now\n" + two, set("", "w", Root{Name: "work", Access: roots.ReadWrite}),
			"active = \"work\" # now\n" + strings.Replace(two, "name = \"w\"", "name = \"work\"", 1), false},
		{"take the name of the active one", "c.toml", "active = \"w\"\n" + two, set("", "w", Root{Access: roots.ReadWrite}),
			"active = \"TOP/work\"\n" + strings.Replace(two, "name = \"w\"\n", "", 1), false},
		{"read-only and pinned", "c.toml", "roots = [ { path = \"TOP/work\" } ] # r\n", set("", "TOP/work", Root{Access: roots.ReadOnly, Pin: true}),
			"roots = [ { path = \"TOP/work\", access = \"ro\", pin = true } ] # r\n", false},
		{"writable again", "c.toml", "[[roots]]\npath = \"TOP/work\" # here\naccess = \"ro\" # no\npin = true\n", set("", "TOP/work", Root{Access: roots.ReadWrite}),
			"[[roots]]\npath = \"TOP/work\" # here\n", false},
		{"nothing", "c.toml", two, set("", "w", Root{Name: "w", Access: roots.ReadWrite}), two, false},
		{"one of a client's file", "mcp.json", skeleton, set("fs", "w", Root{Name: "w", Access: roots.ReadOnly}),
			strings.Replace(skeleton, "\"w\"}", "\"w\", \"access\": \"ro\"}", 1), false},
		{"a name that is there", "c.toml", two, set("", "w", Root{Name: "o", Access: roots.ReadWrite}), "there is a root named \"o\" already", true},
		{"a name that a server is filled in with", "c.toml", strings.Replace(two, "\"x\"", "\"x\"\nargs = [\"{root:w}\"]", 1), set("", "w", Root{Name: "v", Access: roots.ReadWrite}),
			"the server \"a\" is filled in with {root:w}: write another name there first", true},
		{"set an unknown one", "c.toml", two, set("", "oo", Root{}), "there is no root \"oo\", did you mean \"o\"?", true},

		{"use a name", "c.toml", two, use("o"), strings.Replace(two, "mine\n\n", "mine\n\nactive = \"o\"\n\n", 1), false},
		{"use another", "c.toml", "active = \"w\" # now\n" + two, use("o"), "active = \"o\" # now\n" + two, false},
		{"use a directory", "c.toml", "", use("TOP/work/src"), "active = \"TOP/work/src\"\n", false},
		{"use nothing that is there", "c.toml", two, use("oo"), "there is no root \"oo\", did you mean \"o\"?", true},
		{"use in a client's file", "mcp.json", skeleton, use("w"), "the active workspace belongs into your own", true},
		{"an invalid file stays", "c.toml", "x = 1\n", use("o"), "c.toml:1:1: unknown key \"x\"", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t)
			h.dir("cfg")
			file := h.path("cfg/" + tt.file)
			if tt.text != "" || tt.file == "c.toml" {
				h.write("cfg/"+tt.file, tt.text)
			}
			want := strings.ReplaceAll(tt.want, "TOP", h.top)
			c, err := tt.edit(h, file)
			if tt.err {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v\nwant one with %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, string(c.After)); diff != "" {
				t.Errorf("After (-want +got):\n%s", diff)
			}
			if err := c.Write(); err != nil {
				t.Fatal(err)
			}
			if got, _ := os.ReadFile(file); string(got) != want {
				t.Errorf("the file holds\n%s", got)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".rootbound-*")); left != nil {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.toml"), filepath.Join(dir, "link.toml")
	if err := os.WriteFile(real, []byte("paths = \"local\"\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.toml", link); err != nil {
		t.Skipf("no links here: %v", err)
	}
	c, err := AddRoot(link, "", Root{Path: dir, Access: roots.ReadWrite})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
	if info, err := os.Stat(real); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file is %v, %v", info, err)
	}
	if err := c.Write(); !errors.Is(err, ErrChanged) || strings.Count(err.Error(), link) != 1 {
		t.Errorf("writing over a change: %v", err)
	}
	fresh := Change{File: filepath.Join(dir, "sub", "new.toml"), After: []byte("# new\n")}
	if err := fresh.Write(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(fresh.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the new file is %v, %v", info, err)
	}
	if err := fresh.Write(); !errors.Is(err, ErrChanged) {
		t.Errorf("writing a new file over one that is there: %v", err)
	}
	if err := os.Remove(real); err != nil {
		t.Fatal(err)
	}
	gone := Change{File: real, Before: []byte("x"), After: []byte("y")}
	if err := gone.Write(); err == nil {
		t.Error("a file that is gone was written")
	}
}
