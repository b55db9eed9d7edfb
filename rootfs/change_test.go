package rootfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

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
