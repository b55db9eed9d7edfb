//go:build unix

package roots

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// tree makes directories (with a slash at the end), files and links ("name -> target") in a new directory, which it
// returns resolved.
func tree(t *testing.T, entries ...string) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	grow(t, top, entries...)
	return top
}

func grow(t *testing.T, top string, entries ...string) {
	t.Helper()
	for _, e := range entries {
		name, target, link := strings.Cut(e, " -> ")
		path := filepath.Join(top, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case link:
			err = os.Symlink(target, path)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		default:
			err = os.WriteFile(path, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func reason(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

func TestResolve(t *testing.T) {
	top := tree(t, "home/p/", "work/a/b/", "work/file", "link -> work/a", "deep -> link/b", "flink -> work/file", "dangling -> nowhere",
		"loop -> loop", "~user/", "work/~/")
	t.Setenv("HOME", top+"/home")
	t.Chdir(top + "/work")

	tests := []struct {
		path, want string
		spellings  []string // beside the path
		reason     Reason
	}{
		{path: top + "/work/a", want: "/work/a"},
		{path: top + "/work/a/", want: "/work/a"},
		{path: top + "//work/./a/../a", want: "/work/a"},
		{path: top + "/work/file", want: "/work/file"},
		{path: "a", want: "/work/a"},
		{path: ".", want: "/work"},
		{path: "./~", want: "/work/~"},
		{path: "~/p", want: "/home/p"},
		{path: "../~user", want: "/~user"},
		{path: top + "/link", want: "/work/a", spellings: []string{"/link"}},
		{path: "../link/b", want: "/work/a/b", spellings: []string{"/link/b"}},
		{path: top + "/deep", want: "/work/a/b", spellings: []string{"/deep"}},
		{path: top + "/flink", want: "/work/file", spellings: []string{"/flink"}},
		// What ".." means after a link is what the system takes it for, and its text is no spelling.
		{path: top + "/deep/../b", want: "/work/a/b"},

		{path: "", reason: NotAbsolute},
		{path: "a\x00", reason: HasNUL},
		{path: top + "/nowhere", reason: Missing},
		{path: top + "/dangling", reason: Missing},
		{path: "~user/x", reason: Missing},
		{path: top + "/loop", reason: Unopenable},
		{path: top + "/work/file/x", reason: Unopenable},
		{path: os.DevNull, reason: WrongKind},
		{path: "/", reason: TooBroad},
		{path: "~", reason: TooBroad},
		{path: "..", reason: TooBroad}, // it holds the home
	}
	for _, test := range tests {
		o := ResolveOptions{Name: "n", Access: ReadOnly, Pinned: true, Origin: "--ro"}
		d, err := Resolve(test.path, o)
		if test.reason != "" {
			var e *Error
			if !errors.As(err, &e) || e.Reason != test.reason || e.Root != test.path || e.Fix == "" {
				t.Errorf("Resolve(%q) = %+v, %v, want reason %q", test.path, d, err, test.reason)
			}
			continue
		}
		want := Dir{Path: top + test.want, Spellings: []string{top + test.want}, Name: "n", Access: ReadOnly, Pinned: true, Origin: "--ro",
			File: strings.HasSuffix(test.want, "file"), ID: d.ID}
		for _, s := range test.spellings {
			want.Spellings = append(want.Spellings, top+s)
		}
		if err != nil || !d.Equal(want) || d.Origin != want.Origin {
			t.Errorf("Resolve(%q) = %+v, %v, want %+v", test.path, d, err, want)
		}
		var st syscall.Stat_t
		if err := syscall.Stat(d.Path, &st); err != nil || d.ID != (FileID{uint64(st.Dev), uint64(st.Ino)}) {
			t.Errorf("Resolve(%q) has identity %v, %v", test.path, d.ID, err)
		}
	}
}

func TestResolveNeverWaits(t *testing.T) {
	top := tree(t)
	fifo := top + "/fifo"
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Resolve(fifo, ResolveOptions{}); reason(err) != WrongKind {
		t.Errorf("got %v", err)
	}
}

func TestUnreadableSaysWhatToDo(t *testing.T) {
	_, err := refuseUnopened("/secret", &fs.PathError{Op: "open", Path: "/secret", Err: syscall.EACCES})
	want := `refusing root "/secret": it cannot be opened (permission denied); let this user read it, or take it out of the list`
	if err.Error() != want || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestBroad(t *testing.T) {
	top := tree(t, "users/me/p/", "users/you/", "me -> users/me", "top -> /", "p -> users/me/p", "elsewhere/", "wide -> users", "file")
	t.Setenv("HOME", top+"/me") // as on systems where the home is reached through a link
	t.Chdir(top + "/users/me")
	tests := []struct {
		path  string
		broad bool
		typed bool // AllowBroad takes it
	}{
		{"/", true, true},
		{"//", true, true},
		{"~", true, true},
		{"~/", true, true},
		{top + "/me", true, true},
		{top + "/users/me", true, true},
		{top + "/users", true, true},
		{top, true, true},
		{top + "/me/..", true, true},
		{".", true, false},
		{"..", true, false},
		{top + "/top", true, false},
		{top + "/wide", true, false},
		{top + "/elsewhere", false, true},
		{top + "/p", false, true},
		{"p", false, true},
		{top + "/users/you", false, true}, // nobody knows that this is a home
		{top + "/file", false, true},
	}
	for _, test := range tests {
		path := strings.Replace(test.path, "~", top+"/me", 1)
		if got := Broad(path); got != test.broad {
			t.Errorf("Broad(%q) = %v, want %v", path, got, test.broad)
		}
		_, err := Resolve(test.path, ResolveOptions{})
		if got := reason(err) == TooBroad; got != test.broad {
			t.Errorf("Resolve(%q): %v, want broad %v", test.path, err, test.broad)
		}
		_, err = Resolve(test.path, ResolveOptions{AllowBroad: true})
		if got := err == nil; got != test.typed {
			t.Errorf("Resolve(%q) with AllowBroad: %v, want taken %v", test.path, err, test.typed)
		}
	}
	for _, path := range []string{"/home", "/home/me", "/Users", "/Users/me", "/var/home/me", "/root"} {
		if !Broad(path) {
			t.Errorf("Broad(%q) = false", path)
		}
	}
	for _, path := range []string{"/home/me/p", "/srv", "/usr/share", "/homes"} {
		if Broad(path) {
			t.Errorf("Broad(%q) = true", path)
		}
	}
}

func TestRefresh(t *testing.T) {
	top := tree(t, "d/", "f", "elsewhere/")
	resolve := func(name string) Dir {
		d, err := Resolve(filepath.Join(top, name), ResolveOptions{Name: "n", Access: ReadWrite})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d, f := resolve("d"), resolve("f")
	if now, err := d.Refresh(); err != nil || !now.Equal(d) {
		t.Errorf("untouched: %+v, %v", now, err)
	}

	// Moved away, and another made in its place while the old one lives, so it must have another identity.
	if err := os.Rename(d.Path, d.Path+".old"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Refresh(); reason(err) != Missing {
		t.Errorf("moved away: %v", err)
	}
	grow(t, top, "d/")
	now, err := d.Refresh()
	if err != nil || now.ID == d.ID || now.Name != "n" || now.Access != ReadWrite {
		t.Errorf("replaced: %+v, %v", now, err)
	}

	for _, place := range []string{"d -> elsewhere", "d"} {
		if err := os.Remove(d.Path); err != nil {
			t.Fatal(err)
		}
		grow(t, top, place)
		if now, err := d.Refresh(); reason(err) != Moved {
			t.Errorf("%s in its place: %+v, %v", place, now, err)
		}
	}
	if err := os.Remove(f.Path); err != nil {
		t.Fatal(err)
	}
	grow(t, top, "f/")
	if now, err := f.Refresh(); reason(err) != Moved {
		t.Errorf("a directory in the place of a file: %+v, %v", now, err)
	}
}

func TestResolveList(t *testing.T) {
	top := tree(t, "my project/", "b/", "home/")
	t.Setenv("HOME", top+"/home")
	answer := []Root{
		{URI: "file://" + top + "/my%20project", Name: "mine"},
		{URI: "vscode-remote://ssh/x"},
		{URI: "file:" + top + "/b"},
		{URI: "file://" + top + "/gone"},
		{URI: "file:///"},
	}
	got := func(parse func(string) (string, error)) (paths, refused []string) {
		dirs, bad := ResolveList(answer, parse, ResolveOptions{Name: "not this one", Access: ReadOnly, Origin: "client"})
		for _, d := range dirs {
			paths = append(paths, strings.TrimPrefix(d.Path, top)+" "+d.Name)
			if d.Access != ReadOnly || d.Origin != "client" {
				t.Errorf("%+v", d)
			}
		}
		for _, e := range bad {
			refused = append(refused, e.Root+" "+string(e.Reason))
		}
		return paths, refused
	}
	paths, refused := got(ParseURI)
	wantRefused := []string{"vscode-remote://ssh/x scheme", "file://" + top + "/gone missing", "file:/// broad"}
	if want := []string{"/my project mine", "/b "}; !slices.Equal(paths, want) || !slices.Equal(refused, wantRefused) {
		t.Errorf("got %q and %q, want %q and %q", paths, refused, want, wantRefused)
	}
	paths, refused = got(StrictURI)
	wantRefused = slices.Insert(wantRefused, 1, "file:"+top+"/b not-strict")
	if want := []string{"/my project mine"}; !slices.Equal(paths, want) || !slices.Equal(refused, wantRefused) {
		t.Errorf("strict: got %q and %q, want %q and %q", paths, refused, want, wantRefused)
	}

	answer = slices.Repeat([]Root{{URI: "file://" + top + "/b"}}, 1002)
	dirs, bad := ResolveList(answer, ParseURI, ResolveOptions{})
	if len(dirs) != 1000 || len(bad) != 1 || bad[0].Reason != TooMany {
		t.Errorf("of 1,002 roots %d were taken and %d refused", len(dirs), len(bad))
	}
}

func TestAncestors(t *testing.T) {
	top := tree(t, "a/b/")
	d := func(path string) Dir {
		id, err := identityOf(path)
		if err != nil {
			t.Fatal(err)
		}
		return Dir{Path: path, ID: id, Access: Read, ancestors: ancestors(path)}
	}
	inner := d(top + "/a/b")
	if want := []FileID{d(top + "/a").ID, d(top).ID}; !slices.Equal(inner.ancestors[:2], want) {
		t.Errorf("got %v, want %v first", inner.ancestors, want)
	}
	if last := inner.ancestors[len(inner.ancestors)-1]; last != d("/").ID {
		t.Errorf("the last is %v, not /", last)
	}
	// The same place under another text is found by them.
	outer := d(top + "/a")
	outer.Path = strings.ToUpper(outer.Path)
	if got := newSet([]Dir{outer}, true).intersect(newSet([]Dir{inner}, true), true); got.Len() != 1 {
		t.Errorf("got %q", texts(got))
	}
}

func TestWorkspace(t *testing.T) {
	top := tree(t,
		"git/.git/HEAD", "git/sub/dir/", "git/sub/go.mod",
		"git/module/.git", "git/module/x/",
		"hg/.hg/", "hg/x/", "jj/.jj/", "jj/x/",
		"no/.git/", "no/go/go.mod", "no/go/x/package.json", "no/go/x/y/",
		"js/package.json", "js/x/", "py/pyproject.toml", "rs/Cargo.toml", "code/a b.code-workspace", "code/x/",
		"odd/go.mod/", "odd/.git", "odd/.hg",
		"none/x/", "file -> git/sub/go.mod", "link -> git/sub",
		"home/.git/HEAD", "home/go.mod", "home/p/go.mod", "home/p/x/", "home/q/",
	)
	if err := os.WriteFile(top+"/git/module/.git", []byte("gitdir: ../.git/modules/module\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(top+"/none/.git", 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", top+"/home")
	tests := []struct{ dir, want string }{
		{"git", "git"},
		{"git/sub/dir", "git"}, // before the project file that is nearer
		{"git/module/x", "git/module"},
		{"hg/x", "hg"},
		{"jj/x", "jj"},
		{"no/go/x/y", "no/go/x"},
		{"no/go", "no/go"},
		{"no", ""},
		{"js/x", "js"},
		{"py", "py"},
		{"rs", "rs"},
		{"code/x", "code"},
		{"odd", ""},
		{"none/x", ""},
		{"link", "git"},
		{"missing", ""},
		{"home/p/x", "home/p"}, // the home is under version control, and is no workspace for that
		{"home/q", ""},
		{"home", ""},
	}
	for _, test := range tests {
		path, ok := Workspace(filepath.Join(top, test.dir))
		want := ""
		if test.want != "" {
			want = filepath.Join(top, test.want)
		}
		if path != want || ok != (want != "") {
			t.Errorf("Workspace(%q) = %q, %v, want %q", test.dir, path, ok, want)
		}
	}
	t.Chdir(top + "/js/x")
	if path, ok := Workspace("."); path != top+"/js" || !ok {
		t.Errorf("from the working directory: %q, %v", path, ok)
	}
}
