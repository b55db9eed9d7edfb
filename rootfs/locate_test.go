package rootfs

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/roots"
)

func TestLocate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the tree has names and links that Windows does not")
	}
	w := tree(t, battery)
	r, s := filepath.Join(w, "R"), filepath.Join(w, "S")
	set := roots.NewSet(
		dir(t, r, roots.ReadWrite), dir(t, s, roots.ReadOnly), dir(t, filepath.Join(r, "hole"), 0),
		dir(t, filepath.Join(r, "nested"), roots.ReadOnly), dir(t, filepath.Join(w, "elsewhere", "one.txt"), roots.ReadOnly),
	)
	by := Process{Dir: filepath.Join(r, "a"), Home: filepath.Join(w, "outside")}

	tests := []struct {
		path string
		want string // "R:rel" and its like inside, "outside:W/…" outside; "?" behind what does not exist, "error" for one
	}{
		{"W/R/f", "R:f"},
		{"W/R", "R:."},
		{"W/R/", "R:."},
		{"W/R/a/../f", "R:f"},
		{"W/R//a/./b//deep", "R:a/b/deep"},
		{"W/R/sp ace/ünï/文件", "R:sp ace/ünï/文件"},
		{"b/deep", "R:a/b/deep"},
		{".", "R:a"},
		{"../f", "R:f"},
		{"../../S/two", "S:two"},
		{"../../outside/f", "outside:W/outside/f"},
		{"new/file.txt", "R:a/new/file.txt?"},
		{"W/R/nope/../../outside/f", "outside:W/outside/f"},
		{"W/R/nope/../f", "R:f"},
		{"W/R/nope/a/../../f", "R:f"},
		{"W/R/f/x", "R:f/x?"},
		{"W/S/two", "S:two"},
		{"W/R/nested/new", "nested:new?"},
		{"W/R/nested/../f", "R:f"},

		{"W/outside/f", "outside:W/outside/f"},
		{"W/rootevil/f", "outside:W/rootevil/f"},
		{"W/R /f", "outside:W/R /f"},
		{"W/ROOT/f", "outside:W/ROOT/f?"},
		{"W", "outside:W"},
		{"/", "outside:/"},
		{"W/R/../../../../../../../../../../../../nope", "outside:/nope?"},
		{"W/R/hole", "outside:W/R/hole"},
		{"W/R/hole/new", "outside:W/R/hole/new?"},
		{"W/elsewhere/one.txt", "one.txt:."},
		{"W/elsewhere/other.txt", "outside:W/elsewhere/other.txt"},
		{"W/elsewhere/one.txt/x", "outside:W/elsewhere/one.txt/x?"},

		{"W/R/rel", "R:a/b/deep"},
		{"W/R/dirlink/../f", "R:f"},
		{"W/R/crossdir/two", "S:two"},
		{"W/R/absdir/new", "R:a/new?"},
		{"W/R/out", "outside:W/outside/f"},
		{"W/R/outdir/new", "outside:W/outside/new?"},
		{"W/R/outdir/../R/f", "R:f"},
		{"W/R/outandback2", "R:f"},
		{"W/R/chain", "outside:W/outside/f"},
		{"W/R/dangling", "R:nothing?"},
		{"W/R/danglingout", "outside:W/outside/nothing?"},
		{"W/R/danglingout/x", "outside:W/outside/nothing/x?"},
		{"W/R/top" + "W/R/f", "R:f"},
		{"W/R/loop", "error"},

		{"~", "outside:W/outside"},
		{"~/f", "outside:W/outside/f"},
		{"~root/f", "R:a/~root/f?"},
		{"W/R/~/f", "R:~/f"},

		{"", "error"},
		{"W/R/f\x00", "error"},
		{"W/R/" + strings.Repeat("a", 300), "error"},
		{strings.Repeat("a/", 500_000), "error"},
	}
	for _, tt := range tests {
		p, err := Locate(set, strings.ReplaceAll(tt.path, "W", w), by)
		if got := describe(p, err, w); got != tt.want {
			t.Errorf("Locate(%.80q) = %q, want %q (%v)", tt.path, got, tt.want, err)
		}
	}

	if _, err := Locate(set, "x", Process{}); err == nil {
		t.Error("a relative path was located without a directory")
	}
	if p, err := Locate(set, "~/x", Process{Dir: r}); err != nil || p.Rel != "~/x" {
		t.Errorf("~ without a home = %+v, %v, want a name", p, err)
	}
}

func describe(p Place, err error, w string) string {
	missing := ""
	if !p.Exists {
		missing = "?"
	}
	switch {
	case err != nil && p.Inside:
		return "an error, and inside"
	case err != nil:
		return "error"
	case p.Inside:
		return filepath.Base(p.Dir.Path) + ":" + p.Rel + missing
	}
	return "outside:" + strings.ReplaceAll(p.Path, w, "W") + missing
}

func TestLocateExisting(t *testing.T) {
	w := tree(t, map[string]string{"R/a/f": "", "R/loop": "->loop"})
	top, elems := split(w)
	for path, want := range map[string]int{
		"R": 1, "R/a/f": 3, "R/a/new/x": 2, "new/x": 0, "R/a/f/x": 3, "R/a/../new": 1, "R/loop": 2, "R/" + strings.Repeat("a", 300): 1,
	} {
		p, _ := Locate(roots.Set{}, filepath.Join(w, path), Process{})
		if p.Existing != len(elems)+want {
			t.Errorf("Locate(%.40q).Existing = %d, want %d more than the %d below %s", path, p.Existing, want, len(elems), top)
		}
	}
}

// What is not what was resolved is not answered for, neither by the root nor by the one around it.
func TestLocateReplacedRoot(t *testing.T) {
	w := tree(t, map[string]string{"R/ro/f": "", "R/f": "", "hole/": ""})
	r := filepath.Join(w, "R")
	set := roots.NewSet(dir(t, r, roots.ReadWrite), dir(t, filepath.Join(r, "ro"), roots.ReadOnly))
	locate := func(path string) bool {
		t.Helper()
		p, err := Locate(set, filepath.Join(w, path), Process{})
		if err != nil {
			t.Fatal(err)
		}
		return p.Inside
	}
	if !locate("R/ro/f") {
		t.Error("R/ro/f is not inside to begin with")
	}
	if err := os.Rename(filepath.Join(r, "ro"), filepath.Join(r, "was-ro")); err != nil {
		t.Fatal(err)
	}
	if locate("R/ro/f") {
		t.Error("beneath a root that is gone: inside")
	}
	if err := os.Mkdir(filepath.Join(r, "ro"), 0o755); err != nil {
		t.Fatal(err)
	}
	if locate("R/ro/f") {
		t.Error("beneath a root that was replaced: inside")
	}
	if !locate("R/f") {
		t.Error("the root around it is not inside")
	}
}

// Where names fold, the identity of the directories decides. On Linux a second spelling without a link is to be had through
// /proc only.
func TestFolding(t *testing.T) {
	w := tree(t, map[string]string{"R/f": "inside", "R/sub/g": "", "other/f": "", "R/one.txt": "", "alias": "->R"})
	other := func(name string) roots.Dir {
		d := dir(t, filepath.Join(w, name), roots.ReadWrite)
		d.Path = filepath.Join("/proc/self/root", d.Path)
		if _, err := os.Stat(d.Path); err != nil {
			t.Skip("there is no second spelling here")
		}
		return d
	}
	for _, tt := range []struct{ root, path, want string }{
		{"R", "R", "."},
		{"R", "R/sub/g", "sub/g"},
		{"R", "R/sub/new/x", "sub/new/x"},
		{"R", "alias/sub", "sub"},
		{"R", "other/f", ""},
		{"R", "new", ""},
		{"R/one.txt", "R/one.txt", "."},
		{"R/one.txt", "R/one.txt/x", ""},
		{"R/one.txt", "R/f", ""},
	} {
		p, err := locate(roots.NewSet(other(tt.root)), filepath.Join(w, tt.path), Process{}, true)
		if err != nil || p.Rel != tt.want || p.Inside != (tt.want != "") {
			t.Errorf("root %s, path %s: %+v, %v, want %q", tt.root, tt.path, p, err, tt.want)
		}
	}

	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		f := open(t, Options{fold: true}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		if got := read(t, f, filepath.Join(w, "alias", "f")); got != "inside" {
			t.Errorf("reading by another spelling of the root = %q", got)
		}
		if got := read(t, f, filepath.Join(w, "other", "f")); got != "outside_roots" {
			t.Errorf("reading outside = %q", got)
		}
	})
}

func TestCheck(t *testing.T) {
	w := tree(t, map[string]string{"A/": "", "B/": ""})
	a, b := filepath.Join(w, "A"), filepath.Join(w, "B")
	set := roots.NewSet(dir(t, a, roots.ReadWrite), dir(t, b, roots.ReadWrite))
	for _, tt := range []struct {
		change func() error
		want   string
	}{
		{func() error { return nil }, ""},
		{func() error { return os.Rename(a, a+"2") }, "A gone"},
		{func() error { return os.Mkdir(a, 0o755) }, "A replaced"},
		{func() error { return os.Remove(b) }, "A replaced, B gone"},
		{func() error { return os.Remove(a) }, "A gone, B gone"},
		{func() error { return os.Rename(a+"2", a) }, "B gone"},
		{func() error { return os.WriteFile(b, nil, 0o600) }, "B replaced"},
	} {
		if err := tt.change(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range Check(set) {
			got = append(got, filepath.Base(p.Dir.Path)+" "+p.Trouble.String())
		}
		if got := strings.Join(got, ", "); got != tt.want {
			t.Errorf("Check = %q, want %q", got, tt.want)
		}
	}
}

// Whatever the path: what Locate calls inside is beneath a root, and where Open reads, it reads what Locate found.
func FuzzPaths(f *testing.F) {
	w := tree(f, battery)
	for _, path := range []string{
		"f", "../R/f", "outdir/f", "crossdir/two", "W/R/absdir/../f", "a/b/up/../../outdir", "top/etc", "W/outside/f", "hole/secret",
		"dangling/../f", "hole/../hole/secret", "a/b/deep/..", "crossdir/../outside/f",
	} {
		f.Add(path)
	}
	r := filepath.Join(w, "R")
	set := roots.NewSet(
		dir(f, r, roots.ReadWrite), dir(f, filepath.Join(w, "S"), roots.ReadOnly), dir(f, filepath.Join(r, "hole"), 0),
	)
	all := implementations()
	var systems []*FS
	for _, i := range all {
		fsys, err := Open(set, Options{by: i.by})
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { fsys.Close() })
		systems = append(systems, fsys)
	}
	f.Fuzz(func(t *testing.T, path string) {
		path = strings.ReplaceAll(path, "W", w)
		p, locateErr := Locate(set, path, Process{Dir: r})
		if p.Inside {
			rel, err := filepath.Rel(p.Dir.Path, p.Path)
			if err != nil || !filepath.IsLocal(rel) || p.Dir.Access == 0 || rel != p.Rel {
				t.Errorf("Locate(%q) = %+v: not beneath its root", path, p)
			}
		}
		got := make([]string, len(systems))
		for i, fsys := range systems {
			got[i] = read(t, fsys, path)
			if got[i] == "canary" {
				t.Errorf("Open(%q) read what is outside", path)
			}
			if got[i] != got[0] {
				t.Errorf("Open(%q) = %q by %s, %q by %s", path, got[0], all[0].name, got[i], all[i].name)
			}
		}
		// An absolute path means the same to both; a relative one is looked for in every root by Open.
		if content, err := os.ReadFile(p.Path); err == nil && filepath.IsAbs(path) && p.Inside && locateErr == nil {
			if _, code := texts[Code(got[0])]; !code && string(content) != got[0] {
				t.Errorf("Open(%q) = %q, and %q is there (%q)", path, got[0], p.Path, content)
			}
		}
	})
}
