package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/roots"
)

// A link itself is described, wherever it leads.
func TestLstat(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{
			"R/f": "12345", "R/d/": "", "R/in": "->f", "R/indir": "->d", "R/out": "->../outside", "R/dangling": "->nope", "R/loop": "->loop", "outside": "",
		})
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		for path, want := range map[string]string{
			"f": "-", "d": "d", "in": "L", "indir": "L", "out": "L", "dangling": "L", "loop": "L", ".": "d",
		} {
			info, err := f.Lstat(path)
			if err != nil {
				t.Errorf("Lstat(%q): %v", path, err)
				continue
			}
			if got := info.Mode().Type().String()[:1]; got != want {
				t.Errorf("Lstat(%q) = %q, want %q", path, got, want)
			}
		}
		for path, want := range map[string]Code{"nope": NotFound, "out/x": OutsideRoots, "../outside": OutsideRoots, "f/x": NotDirectory} {
			if _, err := f.Lstat(path); !errors.Is(err, want) {
				t.Errorf("Lstat(%q): %v, want %v", path, err, want)
			}
		}
	})
}

// Exact first; then the one name that means the same; several are not guessed among.
func TestNames(t *testing.T) {
	const nfc, nfd = "caf\u00e9", "cafe\u0301"
	if runtime.GOOS == "darwin" {
		t.Skip("the file system does this itself")
	}
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{
			"R/" + nfd + "/f": "in nfd", "R/two/\u212b": "angstrom", "R/two/A\u030a": "decomposed", "R/both/" + nfc: "c", "R/both/" + nfd: "d",
			"R/bytes\xff": "bytes", "R/link": "->" + nfc + "/f", "R/case/É": "upper",
		})
		r := filepath.Join(w, "R")
		for _, dirs := range [][]roots.Dir{
			{dir(t, r, roots.ReadWrite)},
			{dir(t, r, roots.ReadWrite), dir(t, filepath.Join(r, "both"), roots.ReadWrite)},
		} {
			f := open(t, Options{}, dirs...)
			for path, want := range map[string]string{
				nfc + "/f": "in nfd", nfd + "/f": "in nfd", r + "/" + nfc + "/f": "in nfd", "link": "in nfd",
				"both/" + nfc: "c", "both/" + nfd: "d",
				"two/\u212b": "angstrom", "two/A\u030a": "decomposed", "two/\u00c5": "ambiguous_name",
				"bytes\xff": "bytes", "bytes\xfe": "not_found", "case/é": "not_found", "case/E": "not_found", r + "/" + nfc + "/nope": "not_found",
			} {
				if got := read(t, f, path); got != want {
					t.Errorf("Open(%q) = %q, want %q", path, got, want)
				}
			}
			before := snapshot(t, w)
			for _, line := range []string{"replace " + nfc + "/f", "mkdir " + nfc + "/new", "replace " + nfc + "/new/f", "move " + nfc + "/new/f " + nfc + "/g"} {
				if got := perform(t, f, line); got != "" {
					t.Errorf("%s: %s", line, got)
				}
			}
			want := "~R/" + nfd + "/f +R/" + nfd + "/g +R/" + nfd + "/new/"
			if diff := cmp.Diff(want, changes(before, snapshot(t, w))); diff != "" {
				t.Error(diff)
			}
			if got := perform(t, f, "create two/\u00c5"); got != "ambiguous_name" {
				t.Errorf("making a third name: %q", got)
			}
			for _, line := range []string{"remove " + nfc + "/g", "remove " + nfc + "/new"} {
				if got := perform(t, f, line); got != "" {
					t.Errorf("%s: %s", line, got)
				}
			}
			os.WriteFile(filepath.Join(r, nfd, "f"), []byte("in nfd"), 0o644)
		}
	})
}

// A file that is a root keeps its rights where its directory, in another root, takes letters of both cases for one. A second
// name of the file stands for that here.
func TestAFileThatIsARootInOtherLetters(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/one.txt": "old", "R/d/": ""})
		other := filepath.Join(w, "R/ONE.txt")
		if err := os.Link(filepath.Join(w, "R/one.txt"), other); errors.Is(err, fs.ErrExist) {
			t.Log("names fold here")
		} else if err != nil {
			t.Fatal(err)
		}
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite), dir(t, filepath.Join(w, "R/one.txt"), roots.ReadOnly))
		for _, line := range []string{"replace " + other, "edit " + other, "move " + other + " " + filepath.Join(w, "R/d/x"), "remove " + other} {
			if got := perform(t, f, line); got != string(ReadOnly) && got != string(IsRoot) {
				t.Errorf("%s: %q", line, got)
			}
		}
		if got := read(t, f, other); got != "old" {
			t.Errorf("reading it: %q", got)
		}
	})
}
