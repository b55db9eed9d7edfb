package rootfs

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/roots"
)

// Nothing special is opened, and nothing blocks: the test would hang.
func TestSpecialFiles(t *testing.T) {
	w := tree(t, map[string]string{"R/fifolink": "->fifo", "R/f": ""})
	r := filepath.Join(w, "R")
	if err := syscall.Mkfifo(filepath.Join(r, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(r, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	names := []string{"fifo", "fifolink", "sock"}
	if err := unix.Mknod(filepath.Join(r, "zero"), unix.S_IFCHR|0o644, int(unix.Mkdev(1, 5))); err == nil {
		names = append(names, "zero")
	}
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		f := open(t, Options{}, dir(t, r, roots.ReadWrite))
		for _, name := range names {
			for _, path := range []string{name, filepath.Join(r, name)} {
				if got := read(t, f, path); got != "special_file" {
					t.Errorf("Open(%q) = %q", path, got)
				}
				if info, err := f.Stat(path); err != nil || info.Mode().IsRegular() {
					t.Errorf("Stat(%q) = %v, %v", path, info, err)
				}
				if _, err := f.ReadDir(path); !errors.Is(err, NotDirectory) {
					t.Errorf("ReadDir(%q): %v", path, err)
				}
			}
		}
	})
}

// The kernel's own file systems are refused also where they lie in a root.
func TestKernelFileSystems(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("there is no /proc here")
	}
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		f := open(t, Options{}, dir(t, "/", roots.ReadWrite))
		for _, path := range []string{
			"/proc/version", "/proc/self/environ", "/proc/self/root/etc/passwd", "/proc/self/cwd/doc.go", "/proc/1/cmdline",
			"/dev/fd/0", "proc/version",
		} {
			if got := read(t, f, path); got != "special_file" {
				t.Errorf("Open(%q) = %.40q", path, got)
			}
		}
		if _, err := f.ReadDir("/proc"); !errors.Is(err, SpecialFile) {
			t.Errorf("listing /proc: %v", err)
		}
		if got := read(t, f, "/dev/zero"); got != "special_file" {
			t.Errorf("Open(/dev/zero) = %.40q", got)
		}
		if _, err := f.ReadDir("/"); err != nil {
			t.Errorf("listing the root itself: %v", err)
		}
	})
	if f, err := Open(roots.NewSet(dir(t, "/proc", roots.ReadOnly)), Options{}); err == nil {
		f.Close()
		t.Error("/proc was opened as a root")
	}
}

// While one goroutine exchanges a directory with a link that leads out, no read and no listing shows what is outside.
func TestSwapRace(t *testing.T) {
	w := tree(t, map[string]string{
		"R/d/secret": "inside", "R/l": "->../outside", "outside/secret": "canary", "outside/only-outside": "",
	})
	r := filepath.Join(w, "R")
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		f := open(t, Options{}, dir(t, r, roots.ReadWrite))
		var stop atomic.Bool
		swapped := make(chan error, 1)
		go func() {
			for !stop.Load() {
				if err := unix.Renameat2(unix.AT_FDCWD, r+"/d", unix.AT_FDCWD, r+"/l", unix.RENAME_EXCHANGE); err != nil {
					swapped <- err
					return
				}
			}
			swapped <- nil
		}()
		paths := []string{"d/secret", r + "/d/secret", r + "/d/../l/secret", "./l/secret"}
		seen := map[string]int{}
		for n, end := 0, time.Now().Add(raceTime); time.Now().Before(end); n++ {
			got := read(t, f, paths[n%len(paths)])
			seen[got]++
			if got == "canary" {
				t.Fatalf("read the file outside after %d reads", n)
			}
			list, err := f.ReadDir(r + "/d")
			if err == nil && (len(list) != 1 || list[0].Name != "secret") {
				t.Fatalf("listed outside: %v", list)
			}
		}
		stop.Store(true)
		if err := <-swapped; err != nil {
			t.Skip("this file system cannot exchange names: ", err)
		}
		if seen["inside"] == 0 || len(seen) < 2 {
			t.Errorf("the race was never on: %v", seen)
		}
		t.Log(seen)
	})
}

const raceTime = 2 * time.Second

// As an ordinary user: what may not be read is told apart from what is not there.
func TestPermission(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("nothing is forbidden to this user")
	}
	w := tree(t, map[string]string{"R/closed/f": "x", "R/f": "x"})
	closed := filepath.Join(w, "R", "closed")
	if err := errors.Join(os.Chmod(closed, 0), os.Chmod(filepath.Join(w, "R", "f"), 0)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(closed, 0o755) })
	d := dir(t, filepath.Join(w, "R"), roots.ReadWrite)
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		f := open(t, Options{}, d)
		for _, path := range []string{"closed/f", "f"} {
			if got := read(t, f, path); got != "permission" {
				t.Errorf("Open(%q) = %q", path, got)
			}
		}
	})
	p, err := Locate(roots.NewSet(d), filepath.Join(closed, "f"), Process{})
	if p.Inside || err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("Locate beneath a closed directory = %+v, %v", p, err)
	}
}
