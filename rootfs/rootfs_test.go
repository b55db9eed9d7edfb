package rootfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/roots"
)

// dir is what roots.Resolve makes of a path.
func dir(t testing.TB, path string, access roots.Access) roots.Dir {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(real)
	if err != nil {
		t.Fatal(err)
	}
	d := roots.Dir{Path: real, Spellings: []string{real}, Access: access, File: !info.IsDir(), ID: identify(real, info)}
	if real != path {
		d.Spellings = append(d.Spellings, path)
	}
	return d
}

// tree makes files and links below a new directory W and returns it without links. A value that starts with "->" is a
// link; in it and in file contents, W stands for the directory. A name that ends in "/" is a directory.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	w, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(w, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		content = strings.ReplaceAll(content, "W/", w+"/")
		target, link := strings.CutPrefix(content, "->")
		switch {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		case link:
			err = os.Symlink(target, path)
		default:
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// everyOne runs a test over each implementation that this system has.
func everyOne(t *testing.T, f func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS)) {
	for _, i := range implementations() {
		t.Run(i.name, func(t *testing.T) {
			f(t, func(t *testing.T, o Options, dirs ...roots.Dir) *FS {
				t.Helper()
				o.by = i.by
				fsys, err := Open(roots.NewSet(dirs...), o)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { fsys.Close() })
				return fsys
			})
		})
	}
}

type named struct {
	name string
	by   implementation
}

func implementations() []named {
	list := []named{{"osRoot", osRoot}}
	top := filepath.VolumeName(os.TempDir()) + string(filepath.Separator)
	if d, err, ok := openSteps(top, 0); ok && err == nil {
		d.close()
		list = append(list, named{"steps", steps})
	}
	if d, err, ok := openKernel(top, 0); ok && err == nil {
		d.close()
		list = append(list, named{"kernel", kernel})
	}
	return list
}

// read gives the content at path, or the code of the error.
func read(t *testing.T, f *FS, path string) string {
	t.Helper()
	file, err := f.Open(path)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("Open(%q): %v is no *Error", path, err)
		}
		if e.Path != path {
			t.Errorf("Open(%q): the error names %q", path, e.Path)
		}
		return string(e.Code)
	}
	defer file.Close()
	b, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var battery = map[string]string{
	"R/f":                 "inside",
	"R/a/b/deep":          "deep",
	"R/sp ace/ünï/文件":     "unicode",
	`R/C:\x`:              "drive",
	"R/NUL":               "nulname",
	"R/~/f":               "tilde",
	"R/%2e%2e/f":          "percent",
	"S/two":               "two",
	"outside/f":           "canary",
	"rootevil/f":          "canary",
	"R /f":                "canary",
	"R/rel":               "->a/b/deep",
	"R/dirlink":           "->a",
	"R/abs":               "->W/R/f",
	"R/absdir":            "->W/R/a",
	"R/cross":             "->W/S/two",
	"R/crossdir":          "->../S",
	"R/crossabs":          "->W/S/",
	"R/outandback":        "->../../" + "x/../R/f",
	"R/outandback2":       "->../R/f",
	"R/out":               "->../outside/f",
	"R/outabs":            "->W/outside/f",
	"R/outdir":            "->../outside",
	"R/chain":             "->a/chain2",
	"R/a/chain2":          "->../../outside/f",
	"R/loop":              "->loop2",
	"R/loop2":             "->loop",
	"R/dangling":          "->nothing",
	"R/danglingout":       "->../outside/nothing",
	"R/danglingdir":       "->a/nothing/b",
	"R/slashlink":         "->f/",
	"R/top":               "->/",
	"R/a/b/up":            "->..",
	"R/empty/":            "",
	"R/nested/f":          "nested",
	"R/hole/secret":       "canary",
	"R/notes.txt":         "notes",
	"elsewhere/one.txt":   "one",
	"elsewhere/other.txt": "canary",
}

func TestOpen(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the tree has names and links that Windows does not")
	}
	w := tree(t, battery)
	if err := os.Symlink(filepath.Join(w, "R"), filepath.Join(w, "alias")); err != nil {
		t.Fatal(err)
	}
	// A chain of links as long as is followed, and one longer.
	for i, target := 1, "f"; i <= maxHops+1; i++ {
		name := "hop" + string(rune('0'+i/10)) + string(rune('0'+i%10))
		if err := os.Symlink(target, filepath.Join(w, "R", name)); err != nil {
			t.Fatal(err)
		}
		target = name
	}
	r := dir(t, filepath.Join(w, "alias"), roots.ReadWrite)
	s := dir(t, filepath.Join(w, "S"), roots.ReadOnly)
	hole := dir(t, filepath.Join(w, "R", "hole"), 0)
	nested := dir(t, filepath.Join(w, "R", "nested"), roots.ReadOnly)
	one := dir(t, filepath.Join(w, "elsewhere", "one.txt"), roots.ReadOnly)
	notes := dir(t, filepath.Join(w, "R", "notes.txt"), roots.ReadOnly)

	tests := []struct {
		path, want string
		noLinks    string // under NoLinks, when that is another answer
	}{
		{path: "W/R/f", want: "inside"},
		{path: "f", want: "inside"},
		{path: "./a/./b//deep", want: "deep"},
		{path: "W/alias/f", want: "inside"},
		{path: "W/R/sp ace/ünï/文件", want: "unicode"},
		{path: `C:\x`, want: "drive"},
		{path: "NUL", want: "nulname"},
		{path: "~/f", want: "tilde"},
		{path: "W/R/~/f", want: "tilde"},
		{path: "%2e%2e/f", want: "percent"},
		{path: "W/S/two", want: "two"},
		{path: "two", want: "two"},
		{path: "W/R/a/../f", want: "inside"},
		{path: "W/R/../R/f", want: "inside"},
		{path: "../S/two", want: "two"},
		{path: "W/R/nested/f", want: "nested"},
		{path: "W/R/nested/../f", want: "inside"},
		{path: "W/R/hole/../f", want: "outside_roots"},
		{path: "W/R/notes.txt", want: "notes"},
		{path: "W/elsewhere/one.txt", want: "one"},
		{path: "one.txt", want: "one"},

		{path: "W/R/nope", want: "not_found"},
		{path: "W/R/nope/../f", want: "not_found"},
		{path: "W/R/F", want: "not_found"},
		{path: "W/R/f/", want: "not_a_directory"},
		{path: "W/R/f/.", want: "not_a_directory"},
		{path: "W/R/f/..", want: "not_a_directory"},
		{path: "W/R/f/x", want: "not_a_directory"},
		{path: "W/R/a", want: "is_a_directory"},
		{path: "W/R", want: "is_a_directory"},
		{path: ".", want: "is_a_directory"},
		{path: "W/elsewhere/one.txt/", want: "not_a_directory"},

		{path: "W/outside/f", want: "outside_roots"},
		{path: "W/rootevil/f", want: "outside_roots"},
		{path: "W/R /f", want: "outside_roots"},
		{path: "W/ROOT/f", want: "outside_roots"},
		{path: "W", want: "outside_roots"},
		{path: "/", want: "outside_roots"},
		{path: "/etc/passwd", want: "outside_roots"},
		{path: "W/R/../outside/f", want: "outside_roots"},
		{path: "W/R/../../../../../../../../../../etc/passwd", want: "outside_roots"},
		{path: "../outside/f", want: "outside_roots"},
		{path: "a/../../outside/f", want: "outside_roots"},
		{path: "W/R//..//outside//f", want: "outside_roots"},
		{path: "W/elsewhere/other.txt", want: "outside_roots"},
		{path: "W/elsewhere", want: "outside_roots"},
		{path: "W/elsewhere/one.txt/../other.txt", want: "not_a_directory"},
		{path: "W/R/hole/secret", want: "outside_roots"},
		{path: "hole/secret", want: "outside_roots"},
		{path: "hole", want: "outside_roots"},
		{path: "file:///etc/passwd", want: "not_found"},

		{path: "W/R/rel", want: "deep", noLinks: "outside_roots"},
		{path: "rel", want: "deep", noLinks: "outside_roots"},
		{path: "W/R/dirlink/b/deep", want: "deep", noLinks: "outside_roots"},
		{path: "W/R/dirlink/../f", want: "inside", noLinks: "outside_roots"},
		{path: "W/R/dirlink/nope", want: "not_found", noLinks: "outside_roots"},
		{path: "W/R/abs", want: "inside", noLinks: "outside_roots"},
		{path: "W/R/absdir/b/deep", want: "deep", noLinks: "outside_roots"},
		{path: "W/R/cross", want: "two", noLinks: "outside_roots"},
		{path: "W/R/crossdir/two", want: "two", noLinks: "outside_roots"},
		{path: "W/R/crossabs/two", want: "two", noLinks: "outside_roots"},
		{path: "W/R/outandback2", want: "inside", noLinks: "outside_roots"},
		{path: "W/R/a/b/up/b/deep", want: "deep", noLinks: "outside_roots"},
		{path: "W/R/top" + "W/R/f", want: "inside", noLinks: "outside_roots"},
		{path: "W/R/hop40", want: "inside", noLinks: "outside_roots"},
		{path: "W/R/hop41", want: "loop", noLinks: "outside_roots"},
		{path: "W/R/loop", want: "loop", noLinks: "outside_roots"},

		{path: "W/R/out", want: "outside_roots"},
		{path: "W/R/outabs", want: "outside_roots"},
		{path: "W/R/outdir/f", want: "outside_roots"},
		{path: "W/R/outdir/", want: "outside_roots"},
		{path: "W/R/outdir/../R/f", want: "outside_roots"},
		{path: "W/R/outandback", want: "outside_roots"},
		{path: "W/R/chain", want: "outside_roots"},
		{path: "W/R/top/etc/passwd", want: "outside_roots"},
		{path: "W/R/dangling", want: "outside_roots"},
		{path: "W/R/danglingout", want: "outside_roots"},
		{path: "W/R/danglingdir", want: "outside_roots"},
		{path: "W/R/slashlink", want: "not_a_directory", noLinks: "outside_roots"},

		{path: "", want: "invalid_path"},
		{path: "W/R/f\x00/../../outside/f", want: "invalid_path"},
		{path: "W/R/" + strings.Repeat("a", 300), want: "invalid_path"},
		{path: "W/R/" + strings.Repeat("a/../", 1000) + "f", want: "invalid_path"},
		{path: strings.Repeat("a/", 500_000), want: "invalid_path"},
	}
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		dirs := []roots.Dir{r, s, hole, nested, one, notes}
		within, without := open(t, Options{}, dirs...), open(t, Options{Links: NoLinks}, dirs...)
		for _, tt := range tests {
			path := strings.ReplaceAll(tt.path, "W", w)
			if got := read(t, within, path); got != tt.want {
				t.Errorf("Open(%.80q) = %q, want %q", tt.path, got, tt.want)
			}
			want := tt.want
			if tt.noLinks != "" {
				want = tt.noLinks
			}
			if got := read(t, without, path); got != want {
				t.Errorf("Open(%.80q) without links = %q, want %q", tt.path, got, want)
			}
		}
	})
}

// The text of an error must not tell what is outside, nor where a link leads.
func TestErrorTellsNothing(t *testing.T) {
	w := tree(t, map[string]string{
		"R/f": "", "outside/f": "x",
		"R/out": "->../outside/f", "R/danglingout": "->../outside/nothing", "R/dangling": "->nothing",
	})
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		for _, path := range []string{"out", "danglingout", "dangling", "/no/such/root", w + "/outside/f", w + "/outside/nothing"} {
			_, err := f.Stat(path)
			want := `describing "` + path + `": outside the roots, or through a link that ends outside them or nowhere`
			if err == nil || err.Error() != want {
				t.Errorf("Stat(%q): %v, want %s", path, err, want)
			}
			if !errors.Is(err, OutsideRoots) || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Stat(%q): %v is not OutsideRoots alone", path, err)
			}
		}
		if _, err := f.Stat("nope"); !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, NotFound) {
			t.Errorf("Stat of nothing: %v", err)
		}
	})
}

func TestReadDirAndStat(t *testing.T) {
	w := tree(t, map[string]string{
		"R/file": "12345", "R/dir/x": "", "R/link": "->../outside/f", "R/in": "->file", "outside/f": "a longer one",
	})
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		got, err := f.ReadDir(".")
		if err != nil {
			t.Fatal(err)
		}
		want := []Entry{{"dir", fs.ModeDir}, {"file", 0}, {"in", fs.ModeSymlink}, {"link", fs.ModeSymlink}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error("ReadDir (-want +got):", diff)
		}
		if _, err := f.ReadDir("file"); !errors.Is(err, NotDirectory) {
			t.Errorf("listing a file: %v", err)
		}
		for _, name := range []string{"file", "in"} {
			if info, err := f.Stat(name); err != nil || info.Size() != 5 {
				t.Errorf("Stat(%q) = %v, %v, want 5 bytes", name, info, err)
			}
		}
		if info, err := f.Stat("."); err != nil || !info.IsDir() {
			t.Errorf("Stat of the root = %v, %v", info, err)
		}
		if _, err := f.Stat("link"); !errors.Is(err, OutsideRoots) {
			t.Errorf("Stat of a link that leads out: %v", err)
		}
	})
}

func TestManyEntries(t *testing.T) {
	w := tree(t, map[string]string{"R/": ""})
	var want []Entry
	for i := range 3000 {
		name := strings.Repeat("n", 20) + string(rune('a'+i/676)) + string(rune('a'+i/26%26)) + string(rune('a'+i%26))
		want = append(want, Entry{Name: name})
		if err := os.WriteFile(filepath.Join(w, "R", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		got, err := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadOnly)).ReadDir(".")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// A root is a handle: what is put in its place later is not served.
func TestRootReplaced(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open directory cannot be renamed there")
	}
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/f": "old", "outside/f": "canary"})
		r := filepath.Join(w, "R")
		d := dir(t, r, roots.ReadWrite)
		f := open(t, Options{}, d)
		if err := os.Rename(r, r+".old"); err != nil {
			t.Fatal(err)
		}
		if got := Check(roots.NewSet(d)); len(got) != 1 || got[0].Trouble != Gone {
			t.Errorf("Check after the rename = %v, want gone", got)
		}
		if err := os.Symlink(filepath.Join(w, "outside"), r); err != nil {
			t.Fatal(err)
		}
		if got := read(t, f, filepath.Join(r, "f")); got != "old" {
			t.Errorf("reading after the swap = %q, want the old file", got)
		}
		if got := Check(roots.NewSet(d)); len(got) != 1 || got[0].Trouble != Replaced {
			t.Errorf("Check = %v, want replaced", got)
		}
		if _, err := Open(roots.NewSet(d), f.options); err == nil {
			t.Error("a root that is a link now was opened")
		}
		if err := errors.Join(os.Remove(r), os.Mkdir(r, 0o755)); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(roots.NewSet(d), f.options); !errors.Is(err, errReplaced) {
			t.Errorf("opening another directory in the root's place: %v", err)
		}
	})
}

// An editor saves by replacing the file; the root goes on being that name.
func TestFileRootSaved(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"d/notes.txt": "one", "d/new": "two", "d/other": "canary"})
		notes := filepath.Join(w, "d", "notes.txt")
		d := dir(t, notes, roots.ReadWrite)
		f := open(t, Options{}, d)
		if got := read(t, f, notes); got != "one" {
			t.Errorf("got %q, want one", got)
		}
		if err := os.Rename(filepath.Join(w, "d", "new"), notes); err != nil {
			t.Fatal(err)
		}
		if got := read(t, f, notes); got != "two" {
			t.Errorf("got %q, want two", got)
		}
		if got := Check(roots.NewSet(d)); got != nil {
			t.Errorf("Check = %v, want no problem", got)
		}
		// The name becomes a directory, or a link: not the root any more.
		if err := errors.Join(os.Remove(notes), os.MkdirAll(filepath.Join(notes, "sub"), 0o755)); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadDir(notes); !errors.Is(err, OutsideRoots) {
			t.Errorf("listing a directory in the file's place: %v", err)
		}
		if err := errors.Join(os.RemoveAll(notes), os.Symlink("other", notes)); err != nil {
			t.Fatal(err)
		}
		if got := read(t, f, notes); got != "outside_roots" {
			t.Errorf("reading a link in the file's place = %q", got)
		}
	})
}

// A hole hides what it holds also under another name, and a read-only root stays what it is.
func TestHoleMoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open directory cannot be renamed there")
	}
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/hole/secret": "canary", "R/f": ""})
		r := filepath.Join(w, "R")
		f := open(t, Options{}, dir(t, r, roots.ReadWrite), dir(t, filepath.Join(r, "hole"), 0))
		if err := os.Rename(filepath.Join(r, "hole"), filepath.Join(r, "moved")); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"moved", "moved/secret", r + "/moved/secret"} {
			if got := read(t, f, path); got != "outside_roots" {
				t.Errorf("Open(%q) = %q", path, got)
			}
		}
		if err := os.Mkdir(filepath.Join(r, "hole"), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadDir("hole"); !errors.Is(err, OutsideRoots) {
			t.Errorf("listing what is in the hole's place: %v", err)
		}
	})
}

// Where a hole is nothing may be, now or later: what a root that has gone leaves in another.
func TestHoleGone(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/d/e/f": "x"})
		r := filepath.Join(w, "R")
		hole := filepath.Join(r, "d", "hole")
		f := open(t, Options{}, dir(t, r, roots.ReadWrite), roots.Dir{Path: hole, Spellings: []string{hole}})
		if got := read(t, f, "d/e/f"); got != "x" {
			t.Errorf("reading beside it = %q", got)
		}
		n := 0
		if _, err := f.Walk(t.Context(), ".", WalkOptions{Workers: 1}, func(d *Directory) []Entry { n++; return d.Entries }); err != nil || n != 3 {
			t.Errorf("walking: %d directories, %v", n, err)
		}
		for what, err := range map[string]error{
			"making it": f.MkdirAll("d/hole"), "making in it": f.MkdirAll("d/hole/x"), "moving to it": f.Move("d/e", "d/hole"), "moving what it is in": f.Move("d", "g"),
		} {
			if !errors.Is(err, OutsideRoots) && !errors.Is(err, IsRoot) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := os.Mkdir(hole, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadDir("d/hole"); !errors.Is(err, OutsideRoots) {
			t.Errorf("listing what is in its place: %v", err)
		}
		if _, err := f.Walk(t.Context(), ".", WalkOptions{}, func(d *Directory) []Entry {
			if d.Path == "d/hole" && !errors.Is(d.Err, OutsideRoots) {
				t.Errorf("entering what is in its place: %v", d.Err)
			}
			return d.Entries
		}); err != nil {
			t.Error(err)
		}
	})
}

func TestClosed(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/f": "x"})
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadOnly))
		file, err := f.Open("f")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if err := errors.Join(f.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(file); err != nil || string(b) != "x" {
			t.Errorf("reading an open file after Close = %q, %v", b, err)
		}
		if _, err := f.Open("f"); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("opening after Close: %v", err)
		}
	})
}

func TestEmptySet(t *testing.T) {
	f, err := Open(roots.Set{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, path := range []string{"/", ".", "x", "/etc/passwd"} {
		if got := read(t, f, path); got != "outside_roots" {
			t.Errorf("Open(%q) = %q", path, got)
		}
	}
}
