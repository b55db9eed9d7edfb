package rootfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/rootbound/rootbound/roots"
)

func TestReplaceGivesTheOldFile(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/f": "one\n"})
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		info, err := f.Replace(t.Context(), "f", ReplaceOptions{}, func(w io.Writer, old *os.File) error {
			if got := read(t, f, "f"); got != "one\n" {
				t.Errorf("meanwhile the file reads %q", got)
			}
			if list, err := f.ReadDir("."); err != nil || len(list) != 1 {
				t.Errorf("meanwhile the list is %v, %v", list, err)
			}
			if err := f.Remove(filepath.Base(temporary(t, f))); !errors.Is(err, Denied) {
				t.Errorf("removing the temporary file: %v", err)
			}
			_, err := io.Copy(w, old)
			return errors.Join(err, text("two\n")(w, nil))
		})
		if err != nil || info.Name() != "f" || info.Size() != 8 || !info.Mode().IsRegular() {
			t.Errorf("Replace = %v, %v", info, err)
		}
		if now, err := f.Stat("f"); err != nil || Version(now) != Version(info) {
			t.Errorf("the version is another than Replace said: %v", err)
		}
		if got := read(t, f, "f"); got != "one\ntwo\n" {
			t.Errorf("got %q", got)
		}
		_, err = f.Replace(t.Context(), "new", ReplaceOptions{}, func(w io.Writer, old *os.File) error {
			if old != nil {
				t.Error("there is an old file")
			}
			return nil
		})
		if got := read(t, f, "new"); err != nil || got != "" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// temporary is the path of the one temporary file in the first root.
func temporary(t *testing.T, f *FS) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(f.roots[0].dir.Path, temporaryPrefix+"*"))
	if err != nil || len(list) != 1 {
		t.Fatalf("temporary files: %v, %v", list, err)
	}
	return list[0]
}

// What ends a Replace before its end leaves the file as it was, and nothing beside it.
func TestReplaceThatFails(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/f": "old"})
		before := snapshot(t, w)
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		own := errors.New("the caller's own")
		for _, path := range []string{"f", "new"} {
			_, err := f.Replace(t.Context(), path, ReplaceOptions{}, func(w io.Writer, _ *os.File) error {
				text("half")(w, nil)
				return own
			})
			if err != own {
				t.Errorf("an error of write came back as %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			_, err = f.Replace(ctx, path, ReplaceOptions{}, func(w io.Writer, _ *os.File) error {
				text("half")(w, nil)
				cancel()
				if _, err := w.Write([]byte("x")); !errors.Is(err, context.Canceled) {
					t.Errorf("writing after the end: %v", err)
				}
				return nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
			if _, err := f.Replace(ctx, path, ReplaceOptions{}, text("x")); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled before: %v", err)
			}
		}
		if got := changes(before, snapshot(t, w)); got != "" {
			t.Errorf("changed: %s", got)
		}
	})
}

func TestReplaceSeesOthers(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/f": "old", "outside": "canary"})
		r := filepath.Join(w, "R")
		f := open(t, Options{}, dir(t, r, roots.ReadWrite))
		others := map[string]func(name string) error{
			"writes it":       func(name string) error { return os.WriteFile(name, []byte("theirs"), 0o644) },
			"replaces it":     func(name string) error { return errors.Join(os.Remove(name), os.WriteFile(name, []byte("old"), 0o644)) },
			"removes it":      os.Remove,
			"makes a link":    func(name string) error { return errors.Join(os.Remove(name), os.Symlink("../outside", name)) },
			"makes directory": func(name string) error { return errors.Join(os.Remove(name), os.Mkdir(name, 0o755)) },
		}
		if runtime.GOOS == "windows" {
			clear(others) // an open file stays there
		}
		for what, other := range others {
			name := filepath.Join(r, "f")
			if err := errors.Join(os.RemoveAll(name), os.WriteFile(name, []byte("old"), 0o644)); err != nil {
				t.Fatal(err)
			}
			var theirs map[string]string
			_, err := f.Replace(t.Context(), "f", ReplaceOptions{}, func(w io.Writer, _ *os.File) error {
				text("ours")(w, nil)
				if err := other(name); err != nil {
					t.Fatal(err)
				}
				theirs = snapshot(t, filepath.Dir(r))
				return nil
			})
			if !errors.Is(err, Changed) {
				t.Errorf("another process %s: %v, want Changed", what, err)
			}
			delete(theirs, "R/"+filepath.Base(temporaryIn(theirs)))
			if got := changes(theirs, snapshot(t, w)); got != "" {
				t.Errorf("another process %s, and then changed: %s", what, got)
			}
		}
		// A file that comes where there was none.
		for must, want := range map[Presence]Code{Anything: Changed, Absent: Exists} {
			_, err := f.Replace(t.Context(), "new", ReplaceOptions{Must: must}, func(io.Writer, *os.File) error {
				return os.WriteFile(filepath.Join(r, "new"), []byte("theirs"), 0o644)
			})
			if got := read(t, f, "new"); !errors.Is(err, want) || got != "theirs" {
				t.Errorf("a file has come: %v, want %v; it is %q", err, want, got)
			}
			os.Remove(filepath.Join(r, "new"))
		}
	})
}

func temporaryIn(all map[string]string) string {
	for name := range all {
		if strings.Contains(name, temporaryPrefix) {
			return name
		}
	}
	return ""
}

func TestReplaceVersion(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/f": "one"})
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		first, err := f.Stat("f")
		if err != nil {
			t.Fatal(err)
		}
		v := Version(first)
		if strings.Trim(v, "0123456789abcdefghijklmnopqrstuvwxyz-") != "" || len(v) > 32 {
			t.Errorf("version %q", v)
		}
		second, err := f.Replace(t.Context(), "f", ReplaceOptions{Version: v}, text("two"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Replace(t.Context(), "f", ReplaceOptions{Version: v}, text("lost")); !errors.Is(err, Changed) {
			t.Errorf("with the version before: %v", err)
		}
		if _, err := f.Replace(t.Context(), "f", ReplaceOptions{Version: Version(second)}, text("three")); err != nil {
			t.Errorf("with the version that Replace said: %v", err)
		}
		if _, err := f.Replace(t.Context(), "new", ReplaceOptions{Version: v}, text("x")); !errors.Is(err, Changed) {
			t.Errorf("where no file is: %v", err)
		}
		if got := read(t, f, "f"); got != "three" {
			t.Errorf("got %q", got)
		}
	})
}

// https://github.com/anomalyco/opencode/issues/40620: of many edits at once none is lost, by whatever name and FS.
func TestReplacesTakeTurns(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/d/f": "", "R/link": "->d/f"})
		d := dir(t, filepath.Join(w, "R"), roots.ReadWrite)
		systems := []*FS{open(t, Options{}, d), open(t, Options{}, d)}
		paths := []string{"d/f", "link", filepath.Join(w, "R/d/f"), "d/../d/f"}
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				_, err := systems[i%2].Replace(t.Context(), paths[i%4], ReplaceOptions{}, func(w io.Writer, old *os.File) error {
					_, err := io.Copy(w, old)
					return errors.Join(err, text("x")(w, nil))
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := read(t, systems[0], "d/f"); got != strings.Repeat("x", 20) {
			t.Errorf("got %q, want 20 of them", got)
		}
		if len(turns.of) != 0 {
			t.Errorf("%d turns are left", len(turns.of))
		}
	})
}

// What a killed process left is gone when its directory is listed or written; what a live one has is not.
func TestStaleTemporaryFiles(t *testing.T) {
	const stale, other = temporaryPrefix + "stalestalestales", temporaryPrefix + "notes.txt"
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		for what, use := range map[string]func(f *FS) error{
			"listing":  func(f *FS) error { _, err := f.ReadDir("d"); return err },
			"writing":  func(f *FS) error { _, err := f.Replace(t.Context(), "d/new", ReplaceOptions{}, text("")); return err },
			"removing": func(f *FS) error { return f.Remove("d/only") },
			"cleaning": func(f *FS) error { return f.CleanTemporary(t.Context(), 100) },
		} {
			w := tree(t, map[string]string{"R/d/" + stale: "half", "R/d/only/" + stale: "half", "R/d/f": "", "R/d/" + other: "somebody's"})
			d := dir(t, filepath.Join(w, "R"), roots.ReadWrite)
			f := open(t, Options{}, d)
			readOnly := d
			readOnly.Access = roots.ReadOnly
			if list, err := open(t, Options{}, readOnly).ReadDir("d"); err != nil || len(list) != 2 {
				t.Errorf("listing: %v, %v", list, err)
			}
			held, name, err := createTemporary(f.roots[0], 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if err := use(f); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			gone := "R/d/" + stale
			if what == "removing" {
				gone = "R/d/only/"
			}
			after := snapshot(t, w)
			if _, there := after[gone]; there {
				t.Errorf("after %s %s is still there", what, gone)
			}
			if _, there := after["R/"+name]; !there {
				t.Errorf("after %s the file of a live process is gone", what)
			}
			if _, there := after["R/d/"+other]; !there {
				t.Errorf("after %s a file that is not ours is gone", what)
			}
			held.Close()
		}
	})
}

// A caller's function may use the FS while another goroutine closes it: neither waits for the other.
func TestCloseDuringReplace(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/f": "old"})
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		_, err := f.Replace(t.Context(), "f", ReplaceOptions{}, func(w io.Writer, _ *os.File) error {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if _, err := f.Open("f"); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("opening after Close: %v", err)
			}
			return text("new")(w, nil)
		})
		if b, _ := os.ReadFile(filepath.Join(w, "R/f")); err != nil || string(b) != "new" {
			t.Errorf("the file is %q, %v", b, err)
		}
	})
}
