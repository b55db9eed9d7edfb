package rootfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/roots"
)

// A new content keeps what the file was beside its content.
func TestReplaceKeeps(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/run.sh": "old", "R/plain": "old"})
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		for name, mode := range map[string]fs.FileMode{
			"run.sh": 0o755, "plain": 0o604, "set": 0o755 | fs.ModeSetuid | fs.ModeSetgid, "private": 0o600, "wide": 0o666,
		} {
			path := filepath.Join(w, "R", name)
			if err := errors.Join(os.WriteFile(path, []byte("old"), 0o600), os.Chmod(path, mode)); err != nil {
				t.Fatal(err)
			}
			attribute := unix.Setxattr(path, "user.kept", []byte("yes"), 0)
			if os.Getuid() == 0 {
				if err := errors.Join(os.Chown(path, 1234, 5678), os.Chmod(path, mode)); err != nil {
					t.Fatal(err)
				}
			}
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Replace(t.Context(), name, ReplaceOptions{}, text("new")); err != nil {
				t.Fatal(err)
			}
			after, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := after.Mode(), mode.Perm(); got != want {
				t.Errorf("%s: mode %v, want %v", name, got, want)
			}
			was, is := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t)
			if was.Uid != is.Uid || was.Gid != is.Gid {
				t.Errorf("%s: owner %d:%d, want %d:%d", name, is.Uid, is.Gid, was.Uid, was.Gid)
			}
			buf := make([]byte, 16)
			if n, err := unix.Getxattr(path, "user.kept", buf); attribute == nil && (err != nil || string(buf[:n]) != "yes") {
				t.Errorf("%s: attribute %q, %v", name, buf[:max(n, 0)], err)
			}
		}
		old := syscall.Umask(0o027)
		_, err := f.Replace(t.Context(), "made", ReplaceOptions{}, text("new"))
		syscall.Umask(old)
		if info, _ := os.Lstat(filepath.Join(w, "R/made")); err != nil || info.Mode() != 0o640 {
			t.Errorf("a new file: %v, %v", info.Mode(), err)
		}
	})
}

// FIFOs, sockets and devices are moved and removed by name, never opened: the test would hang.
func TestChangeSpecialFiles(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/f": "", "R/d/f": "", "R/link": "->fifo"})
		if err := errors.Join(unix.Mkfifo(filepath.Join(w, "R/fifo"), 0o644), unix.Mkfifo(filepath.Join(w, "R/d/fifo"), 0o644)); err != nil {
			t.Fatal(err)
		}
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		for _, tt := range []struct{ line, want string }{
			{"replace fifo", "special_file"},
			{"replace link", "special_file"},
			{"create fifo", "exists"},
			{"replace fifo/x", "not_a_directory"},
			{"mkdir fifo", "exists"},
			{"mkdir fifo/x", "not_a_directory"},
			{"move f fifo", "exists"},
			{"move fifo moved", ""},
			{"trash d", ""},
			{"remove moved", ""},
		} {
			if got := perform(t, f, tt.line); got != tt.want {
				t.Errorf("%s: %q, want %q", tt.line, got, tt.want)
			}
		}
	})
}

// As an ordinary user: the directory would allow the replacing of a file that may not be written; we do not.
func TestReplaceReadOnlyFile(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("this user may write everything")
	}
	w := tree(t, map[string]string{"R/f": "old", "R/closed/f": "old"})
	closed := filepath.Join(w, "R/closed")
	if err := errors.Join(os.Chmod(filepath.Join(w, "R/f"), 0o444), os.Chmod(closed, 0o555)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(closed, 0o755) })
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		for _, line := range []string{"replace f", "replace closed/f", "replace closed/new", "mkdir closed/d", "move closed/f g", "move f closed/g", "remove closed/f"} {
			if got := perform(t, f, line); got != "permission" {
				t.Errorf("%s: %q", line, got)
			}
		}
	})
}

// What os.Root says of a file, the steps say too.
func TestStatInfo(t *testing.T) {
	w := tree(t, map[string]string{"f": "12345", "d/": "", "link": "->f"})
	if err := errors.Join(os.Chmod(filepath.Join(w, "d"), 0o777|fs.ModeSticky), os.Chmod(filepath.Join(w, "f"), 0o755|fs.ModeSetuid|fs.ModeSetgid),
		unix.Mkfifo(filepath.Join(w, "fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	d, err, _ := openSteps(w, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	for _, name := range []string{"f", "d", "link", "fifo", "."} {
		got, _, err := d.look(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.Lstat(filepath.Join(w, name))
		if err != nil {
			t.Fatal(err)
		}
		// To read the text of a link is to read it.
		got.Sys().(*syscall.Stat_t).Atim = want.Sys().(*syscall.Stat_t).Atim
		if got.Mode() != want.Mode() || got.Size() != want.Size() || !got.ModTime().Equal(want.ModTime()) || got.IsDir() != want.IsDir() ||
			got.Name() != name || !reflect.DeepEqual(got.Sys(), want.Sys()) || Version(got) != Version(want) || !sameFile(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// What a file system without renaming that does not replace gets instead.
func TestRenameByLink(t *testing.T) {
	w := tree(t, map[string]string{"f": "x", "d/g": "y", "link": "->f", "taken": "z"})
	before := snapshot(t, w)
	d, err, _ := openSteps(w, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	h := d.(*stepDir).dirFD
	for _, name := range []string{"f", "d", "link", "nope"} {
		want := Exists
		if name == "nope" {
			want = NotFound
		}
		if err := h.renameByLink(name, h.fd, "taken"); codeOf(err) != want {
			t.Errorf("%s onto something: %v, want %v", name, err, want)
		}
	}
	for _, name := range []string{"f", "d", "link"} {
		if err := h.renameByLink(name, h.fd, name+"2"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if diff := cmp.Diff("-d/ -d/g -f -link +d2/ +d2/g +f2 +link2", changes(before, snapshot(t, w))); diff != "" {
		t.Error(diff)
	}
}

// ownMounts gives this test a view of the file systems that no other process shares.
func ownMounts(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		t.Skip("no mounts for this user: ", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Skip("no mounts for this user: ", err)
	}
}

func TestMounts(t *testing.T) {
	for _, i := range implementations() {
		t.Run(i.name, func(t *testing.T) {
			ownMounts(t)
			w := tree(t, map[string]string{
				"R/f": "x", "R/bind/": "", "R/d/bind/": "", "R/tmpfs/": "", "R/proc/": "", "R/file": "", "outside/f": "canary", "outside/d/f": "canary",
			})
			r := filepath.Join(w, "R")
			mount := func(from, to, kind string, flags uintptr) {
				if err := unix.Mount(from, filepath.Join(r, to), kind, flags, ""); err != nil {
					t.Fatal(to, err)
				}
				t.Cleanup(func() { unix.Unmount(filepath.Join(r, to), unix.MNT_DETACH) })
			}
			mount(filepath.Join(w, "outside"), "bind", "", unix.MS_BIND)
			mount(filepath.Join(w, "outside"), "d/bind", "", unix.MS_BIND)
			mount(filepath.Join(w, "outside/f"), "file", "", unix.MS_BIND)
			mount("tmpfs", "tmpfs", "tmpfs", 0)
			mount("proc", "proc", "proc", 0)
			if err := os.WriteFile(filepath.Join(r, "tmpfs/f"), []byte("tmpfs"), 0o644); err != nil {
				t.Fatal(err)
			}
			open := func(o Options) *FS {
				o.by = i.by
				f, err := Open(roots.NewSet(dir(t, r, roots.ReadWrite)), o)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { f.Close() })
				return f
			}
			f, without := open(Options{}), open(Options{NoMounts: true})
			bind := "mount"
			if i.by == osRoot {
				bind = "canary" // a mount of the same file system cannot be told: a documented limit
			}
			for _, tt := range []struct{ path, want, without string }{
				{"f", "x", "x"},
				{"bind/../f", "x", map[bool]string{true: "x", false: "mount"}[i.by == osRoot]},
				{"bind/f", "canary", bind},
				{"file", "canary", bind},
				{"tmpfs/f", "tmpfs", "mount"},
				{"proc/version", "special_file", "mount"},
				{"proc/self/environ", "special_file", "mount"},
			} {
				if got := read(t, f, tt.path); got != tt.want {
					t.Errorf("Open(%q) = %.20q, want %q", tt.path, got, tt.want)
				}
				if got := read(t, without, tt.path); got != tt.without {
					t.Errorf("Open(%q) without mounts = %.20q, want %q", tt.path, got, tt.without)
				}
			}
			lines := map[string]string{
				"replace tmpfs/f": "mount", "mkdir tmpfs/d": "mount", "move f tmpfs/g": "mount", "remove tmpfs": "mount",
				"replace proc/x": "mount", "trash tmpfs": "mount",
			}
			if i.by != osRoot {
				for _, line := range []string{"replace bind/f", "replace bind/new", "mkdir bind/d", "move bind/f g", "remove bind/f", "trash bind/f"} {
					lines[line] = "mount"
				}
			}
			for line, want := range lines {
				if got := perform(t, without, line); got != want {
					t.Errorf("%s without mounts: %q, want %q", line, got, want)
				}
			}
			for line, want := range map[string]string{
				"move f tmpfs/g": "cross_device", "move tmpfs/f g": "cross_device", "move tmpfs g": "mount", "remove tmpfs": "mount",
				"replace proc/x": "special_file", "mkdir proc/x": "special_file", "trash tmpfs/f": "cross_device",
			} {
				if got := perform(t, f, line); got != want {
					t.Errorf("%s: %q, want %q", line, got, want)
				}
			}
			if i.by != osRoot {
				if got := perform(t, f, "trash d"); got != "mount" {
					t.Errorf("to trash what holds a mount: %q", got)
				}
				// One that somebody mounts in the trash later is not entered when the trash is emptied.
				if err := os.MkdirAll(filepath.Join(r, trashName, "0-aaaaaaaa/item"), 0o755); err != nil {
					t.Fatal(err)
				}
				mount(filepath.Join(w, "outside"), trashName+"/0-aaaaaaaa/item", "", unix.MS_BIND)
				if _, err := f.Trash("f", TrashOptions{MaxAge: time.Minute}); err != nil {
					t.Error(err)
				}
			}
			for _, name := range []string{"f", "d/f"} {
				if b, err := os.ReadFile(filepath.Join(w, "outside", name)); err != nil || string(b) != "canary" {
					t.Errorf("outside %s is %q, %v", name, b, err)
				}
			}
		})
	}
}

// While one goroutine exchanges a directory with a link that leads out, no change lands outside.
func TestSwapRaceOfChanges(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{
			"R/d/f": "inside", "R/l": "->../outside", "R/from": "mine", "outside/f": "canary", "outside/g": "canary", "outside/e/": "",
		})
		r := filepath.Join(w, "R")
		f := open(t, Options{}, dir(t, r, roots.ReadWrite))
		canaries := snapshot(t, filepath.Join(w, "outside"))
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
		defer func() { stop.Store(true) }()
		for what, change := range map[string]func() error{
			"replace": func() error { _, err := f.Replace(t.Context(), "d/f", ReplaceOptions{}, text("inside")); return err },
			"edit": func() error {
				_, err := f.Replace(t.Context(), "d/f", ReplaceOptions{}, func(w io.Writer, old *os.File) error {
					if old == nil {
						return nil
					}
					b, err := io.ReadAll(old)
					if string(b) == "canary" {
						t.Error("read outside")
					}
					return errors.Join(err, text("inside")(w, nil))
				})
				return err
			},
			"create": func() error {
				_, err := f.Replace(t.Context(), "d/new", ReplaceOptions{Must: Absent}, text("x"))
				f.Remove("d/new")
				return err
			},
			"mkdir": func() error { err := f.MkdirAll("d/a/b"); f.Remove("d/a/b"); f.Remove("d/a"); return err },
			"move in": func() error {
				err := f.Move("from", "d/to")
				for end := time.Now().Add(time.Minute); err == nil && f.Move("d/to", "from") != nil; {
					if time.Now().After(end) {
						return errors.New("it does not come back")
					}
				}
				return err
			},
			"move out": func() error { err := f.Move("d/g", "got"); f.Remove("got"); return err },
			"remove":   func() error { return f.Remove("d/g") },
			"trash":    func() error { _, err := f.Trash("d/g", TrashOptions{MaxAge: 1}); return err },
			"walk": func() error {
				_, err := f.Walk(context.Background(), "d", WalkOptions{}, func(d *Directory) []Entry {
					for _, e := range d.Entries {
						if e.Name == "e" || e.Name == "g" {
							t.Error("walked outside")
						}
					}
					return d.Entries
				})
				return err
			},
		} {
			worked, failed := 0, 0
			for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end) || worked+failed == 0; {
				if change() == nil {
					worked++
				} else {
					failed++
				}
			}
			t.Logf("%s: %d worked, %d failed", what, worked, failed)
		}
		stop.Store(true)
		if err := <-swapped; err != nil {
			t.Skip("this file system cannot exchange names: ", err)
		}
		if diff := cmp.Diff(canaries, snapshot(t, filepath.Join(w, "outside"))); diff != "" {
			t.Error("outside (-want +got):", diff)
		}
	})
}

// A directory that takes the place of another between the question for its rights and the step: the rights of the root
// that it is are what counts.
func TestSwapRaceOfRights(t *testing.T) {
	for _, i := range implementations() {
		if i.by == osRoot {
			continue // it goes by names each time: a documented limit
		}
		t.Run(i.name, func(t *testing.T) {
			w := tree(t, map[string]string{"R/d/f": "inside", "R/ro/f": "precious", "R/hole/f": "canary"})
			r := filepath.Join(w, "R")
			f, err := Open(roots.NewSet(dir(t, r, roots.ReadWrite), dir(t, r+"/ro", roots.ReadOnly), dir(t, r+"/hole", 0)), Options{by: i.by})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var stop atomic.Bool
			swapped := make(chan error, 1)
			go func() {
				var err error
				for n := 0; err == nil && !(stop.Load() && n%2 == 0); n++ {
					for _, other := range []string{"/ro", "/hole"} {
						err = errors.Join(err, unix.Renameat2(unix.AT_FDCWD, r+"/d", unix.AT_FDCWD, r+other, unix.RENAME_EXCHANGE))
					}
				}
				swapped <- err
			}()
			for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
				f.Replace(t.Context(), "d/f", ReplaceOptions{}, text("inside"))
				f.Remove("d/nothing")
				if got := read(t, f, "d/f"); got == "canary" {
					t.Fatal("read in the hole")
				}
			}
			stop.Store(true)
			if err := <-swapped; err != nil {
				t.Skip("this file system cannot exchange names: ", err)
			}
			left := map[string]int{}
			for _, content := range snapshot(t, w) {
				left[content]++
			}
			if left["precious"] != 1 || left["canary"] != 1 {
				t.Errorf("files: %v", left)
			}
		})
	}
}

// Whatever the path: what openat2 finds with RESOLVE_IN_ROOT, which treats the root as a chroot, is what Open finds, where
// both find something. Open also follows absolute links that end inside, and refuses what leaves.
func FuzzOracle(f *testing.F) {
	w := tree(f, battery)
	r := filepath.Join(w, "R")
	top, err := openat2(unix.AT_FDCWD, r, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		f.Skip("no openat2 here: ", err)
	}
	f.Cleanup(func() { unix.Close(top) })
	for _, path := range []string{"f", "a/../f", "rel", "dirlink/../f", "a/b/up/b/deep", "slashlink", "outdir/..", "hop", "a//b/./deep", "nested/f/", "f/..", "..", "a/b/../../../f"} {
		f.Add(path)
	}
	var systems []*FS
	for _, i := range implementations() {
		fsys, err := Open(roots.NewSet(dir(f, r, roots.ReadWrite)), Options{by: i.by})
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { fsys.Close() })
		systems = append(systems, fsys)
	}
	f.Fuzz(func(t *testing.T, path string) {
		path = strings.TrimLeft(path, "/")
		fd, err := openat2(top, path, unix.O_PATH, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS)
		var want unix.Stat_t
		found := err == nil
		if found {
			defer unix.Close(fd)
			if err := unix.Fstat(fd, &want); err != nil {
				t.Fatal(err)
			}
		}
		for _, fsys := range systems {
			info, err := fsys.Stat(path)
			if err != nil {
				if found && !errors.Is(err, OutsideRoots) && !errors.Is(err, Denied) && !errors.Is(err, InvalidPath) {
					t.Errorf("Stat(%q): %v, and the kernel finds something", path, err)
				}
				continue
			}
			st := info.Sys().(*syscall.Stat_t)
			if found && (st.Ino != want.Ino || st.Dev != want.Dev) {
				t.Errorf("Stat(%q) is another file than the kernel's", path)
			}
			inside := false
			filepath.WalkDir(r, func(_ string, d fs.DirEntry, _ error) error {
				if i, err := d.Info(); err == nil && i.Sys().(*syscall.Stat_t).Ino == st.Ino {
					inside = true
				}
				return nil
			})
			if !inside {
				t.Errorf("Stat(%q) describes what is outside", path)
			}
		}
	})
}
