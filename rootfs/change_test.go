package rootfs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/roots"
)

// text makes the write function that gives a file this content.
func text(s string) func(io.Writer, *os.File) error {
	return func(w io.Writer, _ *os.File) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// perform does what a line says, and gives the code of the error.
func perform(t *testing.T, f *FS, line string) string {
	t.Helper()
	words := strings.Split(line, " ")
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "␠", " ")
	}
	may := mayPerform(f, words)
	var err error
	switch words[0] {
	case "replace":
		_, err = f.Replace(t.Context(), words[1], ReplaceOptions{}, text("new"))
	case "create":
		_, err = f.Replace(t.Context(), words[1], ReplaceOptions{Must: Absent}, text("new"))
	case "edit":
		_, err = f.Replace(t.Context(), words[1], ReplaceOptions{Must: Present}, text("new"))
	case "mkdir":
		err = f.MkdirAll(words[1])
	case "move":
		err = f.Move(words[1], words[2])
	case "remove":
		err = f.Remove(words[1])
	case "trash":
		_, err = f.Trash(words[1], TrashOptions{})
	default:
		t.Fatal(line)
	}
	if rights := []Code{Denied, Protected, ReadOnly, IsRoot, OutsideRoots}; (err == nil || slices.Contains(rights, codeOf(may))) && codeOf(may) != codeOf(err) {
		t.Errorf("%s: May says %v, and it is %v", line, may, err)
	}
	if err == nil {
		return ""
	}
	var e *Error
	if !errors.As(err, &e) || !slices.Contains(words[1:], e.Path) {
		t.Errorf("%s: %v is no *Error that names the path", line, err)
	}
	return string(codeOf(err))
}

// mayPerform asks May for what a line says.
func mayPerform(f *FS, words []string) error {
	switch words[0] {
	case "mkdir":
		return f.May(ToMake, words[1])
	case "move":
		if err := f.May(ToTake, words[1]); err != nil {
			return err
		}
		return f.May(ToPut, words[2])
	case "remove", "trash":
		return f.May(ToTake, words[1])
	}
	return f.May(ToWrite, words[1])
}

// snapshot is the whole tree beneath w, as tree takes it.
func snapshot(t *testing.T, w string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(w, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(w, path)
		name = filepath.ToSlash(name)
		switch {
		case name == ".":
		case d.IsDir():
			all[name+"/"] = ""
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			all[name] = "->" + link
			return err
		default:
			b, err := os.ReadFile(path)
			all[name] = string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// changes says how a tree differs: "-" before what is gone, "+" before what has come, "~" before what is another.
func changes(before, after map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		switch now, ok := after[name]; {
		case !ok:
			list = append(list, "-"+name)
		case now != before[name]:
			list = append(list, "~"+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok {
			list = append(list, "+"+name)
		}
	}
	return strings.Join(list, " ")
}

func TestChange(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the tree has names and links that Windows does not")
	}
	files := map[string]string{
		"R/f": "old", "R/d/g": "old", "R/d/sub/h": "old", "R/empty/": "", "R/ro/f": "old", "R/ro/empty/": "", "R/keep/f": "old",
		"R/hole/f": "canary", "R/holder/root/f": "old", "R/.env": "secret", "R/with/.env": "secret", "R/with/f": "old",
		"R/one.txt": "old", "S/f2": "old", "S/d2/": "", "outside/f": "canary", "outside/d/": "", "elsewhere/file": "old", "elsewhere/other": "canary",
		"R/link": "->f", "R/dirlink": "->d", "R/out": "->../outside/f", "R/outdir": "->../outside", "R/dangling": "->nothing",
		"R/danglingout": "->../outside/nothing", "R/cross": "->W/S/f2", "R/crossdir": "->../S", "R/rolink": "->ro/f", "R/loop": "->loop",
		"R/d/deeplink": "->sub/h",
	}
	tests := []struct {
		line, code string
		want       string // what has changed
	}{
		{"replace f", "", "~R/f"},
		{"replace W/R/f", "", "~R/f"},
		{"replace ./d/../f", "", "~R/f"},
		{"replace new", "", "+R/new"},
		{"replace d/new", "", "+R/d/new"},
		{"replace d2/new", "", "+S/d2/new"}, // where its directory is
		{"replace f2", "", "~S/f2"},
		{"replace nope/new", "not_found", ""},
		{"replace f/new", "not_a_directory", ""},
		{"replace f/", "not_a_directory", ""},
		{"replace new/", "is_a_directory", ""},
		{"replace d", "is_a_directory", ""},
		{"replace .", "is_a_directory", ""},
		{"replace link", "", "~R/f"},
		{"replace dirlink/g", "", "~R/d/g"},
		{"replace dirlink/new", "", "+R/d/new"},
		{"replace dirlink/deeplink", "", "~R/d/sub/h"},
		{"replace cross", "", "~S/f2"},
		{"replace crossdir/new", "", "+S/new"},
		{"replace out", "outside_roots", ""},
		{"replace outdir/f", "outside_roots", ""},
		{"replace outdir/new", "outside_roots", ""},
		{"replace dangling", "outside_roots", ""},
		{"replace danglingout", "outside_roots", ""},
		{"replace loop", "loop", ""},
		{"replace W/outside/new", "outside_roots", ""},
		{"replace ../outside/new", "outside_roots", ""},
		{"replace nope/../../outside/new", "not_found", ""},
		{"replace ro/f", "read_only", ""},
		{"replace ro/new", "read_only", ""},
		{"replace rolink", "read_only", ""},
		{"replace keep/f", "", "~R/keep/f"},
		{"replace hole/f", "outside_roots", ""},
		{"replace hole/new", "outside_roots", ""},
		{"replace gone", "outside_roots", ""}, // a root that is not there any more
		{"replace .env", "denied", ""},
		{"replace with/.env", "denied", ""},
		{"replace d/.env", "denied", ""},
		{"replace d/.rootbound-tmp-x", "denied", ""},
		{"replace .rootbound-trash", "denied", ""},
		{"replace W/elsewhere/file", "", "~elsewhere/file"},
		{"replace W/elsewhere/other", "outside_roots", ""},
		{"create new", "", "+R/new"},
		{"create f", "exists", ""},
		{"create d", "exists", ""},
		{"create link", "exists", ""},
		{"create dangling", "outside_roots", ""},
		{"edit f", "", "~R/f"},
		{"edit new", "not_found", ""},

		{"mkdir a/b/c", "", "+R/a/ +R/a/b/ +R/a/b/c/"},
		{"mkdir a/./b/", "", "+R/a/ +R/a/b/"},
		{"mkdir d/sub", "", ""},
		{"mkdir .", "", ""},
		{"mkdir dirlink", "", ""},
		{"mkdir dirlink/a/b", "", "+R/d/a/ +R/d/a/b/"},
		{"mkdir crossdir/a", "", "+S/a/"},
		{"mkdir f", "exists", ""},
		{"mkdir f/a", "not_a_directory", ""},
		{"mkdir a/../b", "not_found", ""},
		{"mkdir outdir", "outside_roots", ""},
		{"mkdir outdir/a/b", "outside_roots", ""},
		{"mkdir dangling", "outside_roots", ""},
		{"mkdir dangling/a", "outside_roots", ""},
		{"mkdir W/outside/a", "outside_roots", ""},
		{"mkdir ro/a", "read_only", ""},
		{"mkdir ro/empty", "", ""},
		{"mkdir gone/a", "outside_roots", ""},
		{"mkdir a/.env/b", "denied", ""},
		{"mkdir " + strings.Repeat("a/", 300), "invalid_path", ""},

		{"move f d/f", "", "-R/f +R/d/f"},
		{"move f W/S/f", "", "-R/f +S/f"},
		{"move d e", "", "-R/d/ -R/d/deeplink -R/d/g -R/d/sub/ -R/d/sub/h +R/e/ +R/e/deeplink +R/e/g +R/e/sub/ +R/e/sub/h"},
		{"move empty/ e/", "", "-R/empty/ +R/e/"},
		{"move f e/", "not_a_directory", ""},
		{"move f/ e", "not_a_directory", ""},
		{"move link/ e", "not_a_directory", ""},
		{"move dirlink/ e", "not_a_directory", ""},
		{"move link moved", "", "-R/link +R/moved"}, // the link, not its target
		{"move out moved", "", "-R/out +R/moved"},
		{"move dangling moved", "", "-R/dangling +R/moved"},
		{"move dirlink/g moved", "", "-R/d/g +R/moved"},
		{"move f d/g", "exists", ""},
		{"move f d", "exists", ""},
		{"move f empty", "exists", ""},
		{"move empty d", "exists", ""},
		{"move f f", "exists", ""},
		{"move f link", "exists", ""},
		{"move f dangling", "exists", ""},
		{"move f danglingout", "exists", ""},
		{"move f nope/f", "not_found", ""},
		{"move f d/g/f", "not_a_directory", ""},
		{"move nope e", "not_found", ""},
		{"move d d/sub/e", "into_itself", ""},
		{"move d dirlink/e", "into_itself", ""},
		{"move f outdir/f2", "outside_roots", ""},
		{"move outdir/f e", "outside_roots", ""},
		{"move f W/outside/f2", "outside_roots", ""},
		{"move W/outside/f e", "outside_roots", ""},
		{"move f ro/f2", "read_only", ""},
		{"move ro/f e", "read_only", ""},
		{"move keep/f e", "read_only", ""},      // may not be taken away
		{"move f keep/e", "", "-R/f +R/keep/e"}, // may be written
		{"move hole/f e", "outside_roots", ""},
		{"move hole e", "outside_roots", ""},
		{"move f hole/f2", "outside_roots", ""},
		{"move f gone", "outside_roots", ""},
		{"move . e", "is_root", ""},
		{"move W/R W/S/e", "is_root", ""},
		{"move ro e", "is_root", ""},
		{"move keep e", "is_root", ""},
		{"move holder e", "is_root", ""},
		{"move one.txt e", "is_root", ""},
		{"move W/elsewhere/file e", "is_root", ""},
		{"move .env e", "denied", ""},
		{"move f d/.env", "denied", ""},
		{"move with e", "denied", ""}, // it holds one
		{"move with/f e", "", "-R/with/f +R/e"},

		{"remove f", "", "-R/f"},
		{"remove link", "", "-R/link"},
		{"remove out", "", "-R/out"},
		{"remove dangling", "", "-R/dangling"},
		{"remove loop", "", "-R/loop"},
		{"remove dirlink", "", "-R/dirlink"},
		{"remove dirlink/", "not_a_directory", ""},
		{"remove empty", "", "-R/empty/"},
		{"remove empty/", "", "-R/empty/"},
		{"remove d", "not_empty", ""},
		{"remove nope", "not_found", ""},
		{"remove .", "is_root", ""},
		{"remove d/..", "is_root", ""},
		{"remove ro", "is_root", ""},
		{"remove holder/root", "is_root", ""},
		{"remove one.txt", "is_root", ""},
		{"remove ro/f", "read_only", ""},
		{"remove keep/f", "read_only", ""},
		{"remove hole/f", "outside_roots", ""},
		{"remove outdir/f", "outside_roots", ""},
		{"remove .env", "denied", ""},

		{"trash holder", "is_root", ""},
		{"trash .", "is_root", ""},
		{"trash W/elsewhere/file", "is_root", ""},
		{"trash ro/f", "read_only", ""},
		{"trash with", "denied", ""},
		{"trash outdir/f", "outside_roots", ""},
		{"trash nope", "not_found", ""},
	}
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		var w string
		var f *FS
		fresh := func() map[string]string {
			w = tree(t, files)
			at := func(name string, a roots.Access) roots.Dir { return dir(t, filepath.Join(w, name), a) }
			os.Mkdir(filepath.Join(w, "R/gone"), 0o755)
			f = open(t, Options{Deny: func(name string) bool { return filepath.Base(name) == ".env" }},
				at("R", roots.ReadWrite), at("S", roots.ReadWrite), at("R/ro", roots.ReadOnly), at("R/keep", roots.Read|roots.Write),
				at("R/hole", 0), at("R/holder/root", roots.ReadWrite), at("R/one.txt", roots.ReadWrite), at("elsewhere/file", roots.ReadWrite),
				at("R/gone", roots.ReadWrite))
			os.Remove(filepath.Join(w, "R/gone"))
			return snapshot(t, w)
		}
		before := fresh()
		for _, tt := range tests {
			line := strings.ReplaceAll(tt.line, "W/", w+"/")
			code, want := tt.code, strings.ReplaceAll(tt.want, "W/", w+"/")
			if f.rooted() && (tt.line == "move f W/S/f" || tt.line == "move f keep/e") {
				code, want = "cross_device", "" // os.Root cannot move from one root to another
			}
			if got := perform(t, f, line); got != code {
				t.Errorf("%s: %q, want %q", tt.line, got, code)
			}
			after := snapshot(t, w)
			if diff := cmp.Diff(want, changes(before, after)); diff != "" {
				t.Errorf("%s has changed (-want +got):\n%s", tt.line, diff)
			}
			if len(changes(before, after)) > 0 {
				f.Close()
				before = fresh()
			}
		}
	})
}

func (f *FS) rooted() bool {
	_, ok := f.roots[0].directory.(*osRootDir)
	return ok
}

// Where no roots nest, names are resolved at once instead of step by step: the same must come of it.
func TestChangePlain(t *testing.T) {
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		w := tree(t, map[string]string{"R/f": "old", "R/d/sub/g": "old", "R/out": "->../outside", "outside/f": "canary"})
		before := snapshot(t, w)
		f := open(t, Options{}, dir(t, filepath.Join(w, "R"), roots.ReadWrite))
		for _, line := range []string{
			"replace f", "replace d/new", "move d/sub/g d/g", "remove d/sub", "mkdir d/x/y", "move d e", "remove out",
		} {
			if got := perform(t, f, line); got != "" {
				t.Errorf("%s: %s", line, got)
			}
		}
		want := "-R/d/ -R/d/sub/ -R/d/sub/g ~R/f -R/out +R/e/ +R/e/g +R/e/new +R/e/x/ +R/e/x/y/"
		if diff := cmp.Diff(want, changes(before, snapshot(t, w))); diff != "" {
			t.Error(diff)
		}
	})
}

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
		for _, id := range []string{later, first} {
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
