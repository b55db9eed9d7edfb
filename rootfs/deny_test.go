package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rootbound/rootbound/roots"
)

func TestDeny(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{
			"R/keys/id": "secret", "R/keys/link": "->../f", "R/f": "x", "R/link": "->keys/id", "R/dirlink": "->keys", "R/a/keys/id": "fine",
			"R/in/keys/id": "secret", "R/in/f": "x",
		})
		r := filepath.Join(w, "R")
		deny := Options{Deny: func(name string) bool { return name == "keys" }}
		for _, dirs := range [][]roots.Dir{
			{dir(t, r, roots.ReadWrite)},
			{dir(t, r, roots.ReadWrite), dir(t, filepath.Join(r, "in"), roots.ReadWrite)},
		} {
			f := open(t, deny, dirs...)
			want := map[string]string{
				"keys/id": "denied", "keys": "denied", "keys/nope": "denied", "keys/link": "denied", "keys/../f": "denied", "link": "denied",
				"dirlink/id": "denied", "f": "x", "a/keys/id": "fine", "./keys/id": "denied",
			}
			want["in/keys/id"] = "secret"
			if len(dirs) > 1 {
				want["in/keys/id"] = "denied" // of the deepest root
			}
			for path, want := range want {
				for _, path := range []string{path, r + "/" + path} {
					if got := read(t, f, path); got != want {
						t.Errorf("Open(%q) = %q, want %q", path, got, want)
					}
				}
			}
			if _, err := f.ReadDir("keys"); !errors.Is(err, Denied) {
				t.Errorf("listing: %v", err)
			}
			if list, err := f.ReadDir("."); err != nil || !slices.Contains(list, Entry{"keys", fs.ModeDir}) {
				t.Errorf("it is not listed: %v, %v", list, err)
			}
			if _, err := f.Stat("keys"); err != nil {
				t.Errorf("describing: %v", err)
			}
			if _, err := f.Stat("keys/id"); !errors.Is(err, Denied) {
				t.Errorf("describing what is beneath: %v", err)
			}
		}
	})
}

// A root in another opens nothing there that is denied by its name beneath the other, whatever road leads to it.
func TestDenyAroundARoot(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/in/deep/key": "secret", "R/in/f": "x", "R/link": "->in/deep/key", "R/d/key": "fine"})
		r, in := filepath.Join(w, "R"), filepath.Join(w, "R/in")
		deny := Options{Deny: func(name string) bool { return name == "in/deep/key" || name == "in/later/key" || name == "in" }}
		dirs := []roots.Dir{dir(t, r, roots.ReadWrite), dir(t, in, roots.ReadWrite)}
		for _, dirs := range [][]roots.Dir{dirs, {dirs[1], dirs[0]}} {
			f := open(t, deny, dirs...)
			for path, want := range map[string]string{
				in + "/deep/key": "denied", in + "/./deep/key": "denied", r + "/in/deep/key": "denied", in + "/f": "x",
				r + "/d/key": "fine", r + "/in": "is_a_directory",
			} {
				if got := read(t, f, path); got != want {
					t.Errorf("Open(%q) = %q, want %q", path, got, want)
				}
			}
			for _, line := range []string{
				"create " + in + "/later/key", "mkdir " + in + "/later/key/x", "remove " + in + "/deep/key", "trash " + in + "/deep",
				"move " + in + "/deep " + in + "/other", "move " + r + "/d " + in + "/later",
			} {
				if got := perform(t, f, line); got != string(Denied) {
					t.Errorf("%s: %q", line, got)
				}
			}
			f.Walk(t.Context(), in, WalkOptions{}, func(d *Directory) []Entry {
				if file, err := d.Open("key"); d.Path == "deep" && !errors.Is(err, Denied) {
					t.Errorf("opening it in a walk: %v, %v", file, err)
				}
				return d.Entries
			})
		}
	})
}

func TestStrictLinks(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/f": "x", "R/d/": "", "outside/f": "canary"})
		if err := os.Link(filepath.Join(w, "outside/f"), filepath.Join(w, "R/hard")); err != nil {
			t.Fatal(err)
		}
		d := dir(t, filepath.Join(w, "R"), roots.ReadWrite)
		strict := open(t, Options{StrictLinks: true}, d)
		if got := read(t, strict, "f"); got != "x" {
			t.Errorf("a file with one name: %q", got)
		}
		if got := read(t, strict, "hard"); got != "hard_link" {
			t.Errorf("a file with two names: %q", got)
		}
		if _, err := strict.Replace(t.Context(), "hard", ReplaceOptions{}, text("x")); !errors.Is(err, HardLink) {
			t.Errorf("replacing it: %v", err)
		}
		if _, err := strict.ReadDir("d"); err != nil {
			t.Error(err)
		}
		// https://github.com/modelcontextprotocol/servers/issues/4512: without, the other name keeps its content.
		if _, err := open(t, Options{}, d).Replace(t.Context(), "hard", ReplaceOptions{}, text("new")); err != nil {
			t.Error(err)
		}
		if b, err := os.ReadFile(filepath.Join(w, "outside/f")); err != nil || string(b) != "canary" {
			t.Errorf("the other name has %q, %v", b, err)
		}
	})
}
