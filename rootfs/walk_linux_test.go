package rootfs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/roots"
)

// descriptors counts the open ones of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("there is no /proc here")
	}
	return len(list)
}

// A tree that is deeper than any path may be long, and deeper than the process may open directories: it is walked as far as
// paths lead.
func TestWalkDeep(t *testing.T) {
	const depth, reached = 3000, int64(maxPath / len("dir/"))
	w := tree(t, map[string]string{"R/": ""})
	r := filepath.Join(w, "R")
	at, err := unix.Open(r, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	down := func(flags int) {
		next, err := unix.Openat(at, "dir", flags|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(at)
		at = next
	}
	for range depth {
		if err := unix.Mkdirat(at, "dir", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mknodat(at, "f", unix.S_IFREG|0o644, 0); err != nil {
			t.Fatal(err)
		}
		down(unix.O_PATH)
	}
	defer func() {
		for range depth {
			up, err := unix.Openat(at, "..", unix.O_PATH|unix.O_DIRECTORY, 0)
			if err != nil {
				t.Fatal(err)
			}
			unix.Close(at)
			at = up
			unix.Unlinkat(at, "dir", unix.AT_REMOVEDIR)
			unix.Unlinkat(at, "f", 0)
		}
		unix.Close(at)
	}()
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		f := open(t, Options{}, dir(t, r, roots.ReadWrite))
		o, want := WalkOptions{}, Walked{Entries: 2 * (reached + 1), Directories: reached + 1, TooDeep: 1}
		before, most := descriptors(t), atomic.Int64{}
		walked, err := f.Walk(t.Context(), r, o, func(d *Directory) []Entry {
			if d.Depth%1000 == 999 {
				most.Store(max(most.Load(), int64(descriptors(t)-before)))
			}
			if d.Err != nil {
				t.Errorf("at depth %d: %v", d.Depth, d.Err)
			}
			return d.Entries
		})
		if err != nil || walked != want {
			t.Errorf("%+v, %v; want %+v", walked, err, want)
		}
		if n := most.Load(); n == 0 || n > 1000 {
			t.Errorf("%d directories were open at once", n)
		}
		if n := descriptors(t) - before; n > 0 {
			t.Errorf("%d directories stay open", n)
		}
	})
}

// While one goroutine exchanges directories with a link that leads out, and with another root, no walk shows what is
// outside, or in the other root without its rights.
func TestWalkSwapRace(t *testing.T) {
	w := tree(t, map[string]string{
		"R/a/d/e/secret": "inside", "R/a/l": "->../../outside", "outside/e/secret": "canary", "outside/secret": "canary",
		"R/hole/e/secret": "canary", "R/b/x/e/secret": "inside",
	})
	r := filepath.Join(w, "R")
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		f := open(t, Options{}, dir(t, r, roots.ReadWrite), dir(t, filepath.Join(r, "hole"), 0))
		var stop atomic.Bool
		swapped := make(chan error, 1)
		go func() {
			var err error
			for n := 0; err == nil && (!stop.Load() || n%2 == 1); n++ {
				err = errors.Join(unix.Renameat2(unix.AT_FDCWD, r+"/a/d", unix.AT_FDCWD, r+"/a/l", unix.RENAME_EXCHANGE),
					unix.Renameat2(unix.AT_FDCWD, r+"/hole", unix.AT_FDCWD, r+"/b/x", unix.RENAME_EXCHANGE))
			}
			swapped <- err
		}()
		var mu sync.Mutex
		seen := map[string]int{}
		for end := time.Now().Add(raceTime / 2); time.Now().Before(end); {
			_, err := f.Walk(t.Context(), r, WalkOptions{}, func(d *Directory) []Entry {
				for _, e := range d.Entries {
					if e.Name != "secret" {
						continue
					}
					file, err := d.Open(e.Name)
					if err != nil {
						continue
					}
					b, _ := io.ReadAll(file)
					file.Close()
					mu.Lock()
					seen[string(b)]++
					mu.Unlock()
				}
				return d.Entries
			})
			if err != nil && !errors.Is(err, Changed) {
				t.Fatal(err)
			}
		}
		stop.Store(true)
		if err := <-swapped; err != nil {
			t.Skip("this file system cannot exchange names: ", err)
		}
		if seen["canary"] > 0 || seen["inside"] == 0 {
			t.Errorf("read %v", seen)
		}
		t.Log(seen)
	})
}

func TestWalkKernelFileSystems(t *testing.T) {
	descriptors(t)
	f, err := Open(roots.NewSet(dir(t, "/", roots.ReadOnly)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var proc error
	_, err = f.Walk(t.Context(), "/", WalkOptions{}, func(d *Directory) []Entry {
		switch d.Path {
		case "":
			return []Entry{{Name: "proc", Type: os.ModeDir}}
		case "proc":
			proc = d.Err
		}
		return d.Entries
	})
	if err != nil || !errors.Is(proc, SpecialFile) {
		t.Errorf("/proc: %v, %v", proc, err)
	}
}
