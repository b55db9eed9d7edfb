package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/roots"
)

func TestTrash(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/d/sub/f": "deep", "R/d/link": "->../../outside", "R/f": "x", "R/out": "->../outside", "outside/f": "canary"})
		r := filepath.Join(w, "R")
		f := open(t, Options{}, dir(t, r, roots.ReadWrite))
		before := snapshot(t, w)
		ids := map[string]string{}
		for _, path := range []string{"f", "out", "d/sub/f", "d"} {
			id, err := f.Trash(path, TrashOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Stat(path); !errors.Is(err, NotFound) {
				t.Errorf("%q is still there: %v", path, err)
			}
			ids[path] = id
		}
		if list, err := f.ReadDir("."); err != nil || len(list) != 0 {
			t.Errorf("listed: %v, %v", list, err)
		}
		if b, err := os.ReadFile(filepath.Join(r, trashName, ".gitignore")); err != nil || string(b) != "*\n" {
			t.Errorf(".gitignore is %q, %v", b, err)
		}
		for _, path := range []string{trashName, trashName + "/" + ids["f"] + "/item", ".ROOTBOUND-TRASH"} {
			if _, err := f.Stat(path); !errors.Is(err, Denied) {
				t.Errorf("Stat(%q): %v", path, err)
			}
		}
		// Its directory is made again; then the rest of it does not come in its place.
		if path, err := f.Restore(ids["d/sub/f"]); err != nil || path != filepath.Join(r, "d", "sub", "f") {
			t.Errorf("Restore = %q, %v", path, err)
		}
		if _, err := f.Restore(ids["d"]); !errors.Is(err, Exists) {
			t.Errorf("restoring onto something: %v", err)
		}
		if err := os.RemoveAll(filepath.Join(r, "d")); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"d", "f", "out"} {
			if got, err := f.Restore(ids[path]); err != nil || got != filepath.Join(r, path) {
				t.Errorf("Restore = %q, %v", got, err)
			}
		}
		for _, id := range []string{ids["f"], "", "nope", "../f", "0-aaaaaaaa", strings.Repeat("z", 5000)} {
			if _, err := f.Restore(id); !errors.Is(err, NotFound) {
				t.Errorf("Restore(%.20q): %v", id, err)
			}
		}
		want := "-R/d/sub/f +R/.rootbound-trash/ +R/.rootbound-trash/.gitignore"
		if diff := cmp.Diff(want, changes(before, snapshot(t, w))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTrashIsBounded(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{
			"R/a/f": strings.Repeat("a", 400), "R/a/out": "->../../outside", "R/b": strings.Repeat("b", 400), "R/c": strings.Repeat("c", 400),
			"R/big/f": strings.Repeat("x", 900), "R/big/g": strings.Repeat("x", 200), "outside/f": "canary",
		})
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		o := TrashOptions{MaxBytes: 1000, MaxAge: time.Hour}
		var ids []string
		for i, path := range []string{"a", "b", "c"} {
			id, err := f.Trash(path, o)
			if err != nil {
				t.Fatal(err)
			}
			// Each is some minutes older than the next.
			old := backdate(t, filepath.Join(w, "R", trashName), id, time.Duration(10-i)*time.Minute)
			ids = append(ids, old)
		}
		if _, err := f.Trash("big", o); !errors.Is(err, TooLarge) {
			t.Errorf("more than the trash may hold: %v", err)
		}
		if _, err := f.Restore(ids[0]); !errors.Is(err, NotFound) {
			t.Errorf("the oldest is still there: %v", err)
		}
		backdate(t, filepath.Join(w, "R", trashName), ids[1], 2*time.Hour)
		if path, err := f.Restore(ids[2]); err != nil {
			t.Error(path, err)
		}
		if _, err := f.Trash("c", TrashOptions{MaxAge: time.Hour}); err != nil {
			t.Error(err)
		}
		left, err := os.ReadDir(filepath.Join(w, "R", trashName))
		if err != nil || len(left) != 2 {
			t.Errorf("in the trash: %v, %v, want .gitignore and one thing", left, err)
		}
		if b, err := os.ReadFile(filepath.Join(w, "outside/f")); err != nil || string(b) != "canary" {
			t.Errorf("what a link in the trash leads to: %q, %v", b, err)
		}
	})
}

// backdate makes a thing in the trash older, and returns its new id.
func backdate(t *testing.T, trash, id string, by time.Duration) string {
	t.Helper()
	at, ok := parseID(id)
	if !ok {
		t.Fatalf("id %q", id)
	}
	_, random, _ := strings.Cut(id, "-")
	old := makeID(at.Add(-by), random)
	if err := os.Rename(filepath.Join(trash, id), filepath.Join(trash, old)); err != nil {
		t.Fatal(err)
	}
	return old
}

// What somebody else has put into a trash, or in its place, takes nothing from what Trash has put into another, or into it.
func TestTrashThatOthersWrote(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		later := makeID(time.Now().Add(time.Minute), "aaaaaaaa")
		w := tree(t, map[string]string{
			"file/" + trashName: "no directory", "link/" + trashName: "->../outside", "outside/f": "canary",
			"R/" + trashName + "/1-aaaaaaaa": "->../../outside", "R/" + trashName + "/2-aaaaaaaa": "no directory",
			"R/" + trashName + "/3-aaaaaaaa/" + trashFrom: "->../../../outside/f", "R/" + trashName + "/4-aaaaaaaa/" + trashFrom + "/": "",
			"R/f": "first", "R/g": "second", "R/" + trashName + "/" + later + "/" + trashFrom: "9223372036854775807\nx",
		})
		f := open(t, Options{}, dir(t, filepath.Join(w, "file"), roots.ReadWrite), dir(t, filepath.Join(w, "link"), roots.ReadWrite),
			dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		o := TrashOptions{MaxBytes: 1000}
		first, err := f.Trash(filepath.Join(w, "R/f"), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Trash(filepath.Join(w, "R/g"), o); err != nil {
			t.Fatal(err)
		}
		if path, err := f.Restore(first); err != nil || path != filepath.Join(w, "R/f") {
			t.Errorf("Restore = %q, %v", path, err)
		}
		var e *Error
		if _, err := f.Trash(filepath.Join(w, "file/x"), o); !errors.Is(err, NotFound) {
			t.Errorf("Trash of nothing: %v", err)
		}
		for root, want := range map[string]Code{"file": NotDirectory, "link": OutsideRoots} {
			if err := os.WriteFile(filepath.Join(w, root, "x"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := f.Trash(filepath.Join(w, root, "x"), o)
			if !errors.As(err, &e) || e.Code != want || e.Path != filepath.Join(w, root, trashName) {
				t.Errorf("Trash where its directory is another thing, a %s: %v", root, err)
			}
		}
		for _, id := range []string{later, first, "1-aaaaaaaa", "2-aaaaaaaa", "3-aaaaaaaa", "4-aaaaaaaa"} {
			if _, err := f.Restore(id); !errors.Is(err, NotFound) {
				t.Errorf("Restore of what is not there: %v", err)
			}
		}
		if list, err := os.ReadDir(filepath.Join(w, "outside")); err != nil || len(list) != 1 {
			t.Errorf("outside: %v, %v", list, err)
		}
	})
}

// However deep a thing is, it is removed from the trash with few directories open at once.
func TestTrashDeep(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/": ""})
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		for i := range 5 {
			if err := f.MkdirAll(strings.Repeat("d/", 200)); err != nil {
				t.Fatal(err)
			}
			if err := f.Move("d", "e"); err != nil {
				t.Fatal(err)
			}
			// The next goes on top of this one.
			if err := f.MkdirAll(strings.Repeat("d/", 200)); err != nil {
				t.Fatal(err)
			}
			if err := f.Move("e", strings.Repeat("d/", 200)+"e"); err != nil {
				t.Fatal(i, err)
			}
			if _, err := f.Trash("d", TrashOptions{MaxAge: time.Nanosecond}); err != nil {
				t.Fatal(i, err)
			}
		}
		left, err := os.ReadDir(filepath.Join(w, "R", trashName))
		if err != nil || len(left) != 2 {
			t.Errorf("in the trash: %v, %v, want .gitignore and the last", left, err)
		}
	})
}

// What a killed process has left in the trash has no size: nothing goes for it, and it goes itself. What cannot be read stays.
func TestTrashWithNothingInIt(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		left, odd := makeID(time.Now().Add(-2*time.Hour), "aaaaaaaa"), makeID(time.Now().Add(-2*time.Hour), "bbbbbbbb")
		w := tree(t, map[string]string{
			"R/f": strings.Repeat("f", 400), "R/g": strings.Repeat("g", 400),
			"R/" + trashName + "/" + left + "/" + trashFrom: "900\nx", "R/" + trashName + "/" + odd + "/" + trashFrom + "/": "", "R/" + trashName + "/" + odd + "/" + trashItem: "text",
		})
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		first, err := f.Trash("f", TrashOptions{})
		if err != nil {
			t.Fatal(err)
		}
		first = backdate(t, filepath.Join(w, "R", trashName), first, 3*time.Hour)
		if err := os.MkdirAll(filepath.Join(w, "R", trashName, left), 0o700); err != nil { // again, if it went
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w, "R", trashName, left, trashFrom), []byte("900\nx"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Trash("g", TrashOptions{MaxBytes: 1000}); err != nil {
			t.Fatal(err)
		}
		if path, err := f.Restore(first); err != nil || path != filepath.Join(w, "R/f") {
			t.Errorf("Restore = %q, %v", path, err)
		}
		if _, err := os.Stat(filepath.Join(w, "R", trashName, left)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("what has nothing in it is there: %v", err)
		}
		if text, err := os.ReadFile(filepath.Join(w, "R", trashName, odd, trashItem)); err != nil || string(text) != "text" {
			t.Errorf("what cannot be read holds %q, %v", text, err)
		}
	})
}
