package rootfs

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/rootbound/rootbound/roots"
)

// late is a directory in which something happens just before a file is replaced, after the last look at it.
type late struct {
	directory
	happens func()
}

func (l late) sub(name string, h how) (directory, error) {
	d, err := l.directory.sub(name, h)
	return late{d, l.happens}, err
}

func (l late) rename(name string, to directory, as string, replace bool) error {
	if replace {
		l.happens()
	}
	if t, ok := to.(late); ok {
		to = t.directory
	}
	return l.directory.rename(name, to, as, replace)
}

// A Replace of another process, of the same file, would wait in the last step, as this one does for it; but not for a program
// that keeps the lock.
func TestReplaceLocksTheOldFile(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/f": "old"})
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		theirs := func() *os.File {
			other, err := os.Open(filepath.Join(w, "R/f"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { other.Close() })
			return other
		}
		f.roots[0].directory = late{f.roots[0].directory, func() {
			if err := lock(theirs()); !errors.Is(err, errLocked) {
				t.Errorf("locking it in the last moment: %v", err)
			}
		}}
		if _, err := f.Replace(t.Context(), "f", ReplaceOptions{}, text("new")); err != nil {
			t.Error(err)
		}
		if err := lock(theirs()); err != nil {
			t.Errorf("locking it afterwards: %v", err)
		}
		if _, err := f.Replace(t.Context(), "f", ReplaceOptions{}, text("newer")); err != nil || read(t, f, "f") != "newer" {
			t.Errorf("while another program has the lock: %v", err)
		}
	})
}

// Where an edited file is taken away, and another comes to its name, in the moment in which the edit ends, neither is lost.
func TestReplaceAndWhatComesInItsLastMoment(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		for what, come := range map[string]func(f *FS, deleted string) error{
			"moved":    func(f *FS, _ string) error { return f.Move("h", "f") },
			"restored": func(f *FS, deleted string) error { _, err := f.Restore(deleted); return err },
		} {
			for _, away := range []func(f *FS) error{
				func(f *FS) error { return f.Move("f", "g") },
				func(f *FS) error { _, err := f.Trash("f", TrashOptions{}); return err },
			} {
				w := tree(t, map[string]string{"R/f": "theirs", "R/h": "theirs"})
				f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
				deleted, err := f.Trash("f", TrashOptions{})
				if err == nil {
					_, err = f.Replace(t.Context(), "f", ReplaceOptions{}, text("old"))
				}
				if err != nil {
					t.Fatal(err)
				}
				synctest.Test(t, func(t *testing.T) {
					done := make(chan error, 1)
					f.roots[0].directory = late{f.roots[0].directory, func() {
						go func() { done <- errors.Join(away(f), come(f, deleted)) }()
						synctest.Wait() // it is done, or waits
					}}
					if _, err := f.Replace(t.Context(), "f", ReplaceOptions{}, text("new")); err != nil {
						t.Error(err)
					}
					if err := <-done; err != nil {
						t.Error(err)
					}
				})
				if got := read(t, f, "f"); got != "theirs" {
					t.Errorf("what was %s is %q", what, got)
				}
				if after := snapshot(t, w); !slices.Contains(slices.Collect(maps.Values(after)), "new") {
					t.Errorf("the edit of what was then %s is lost: %q", what, after)
				}
			}
		}
	})
}
