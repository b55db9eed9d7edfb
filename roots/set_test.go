package roots

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// dir makes a Dir as if resolved. An Access at the end of the text (" r", " rw", " -") is its rights, all without one; a
// star before it pins it, a dollar sign makes it a file.
func dir(text string) Dir {
	path, rights, _ := strings.Cut(text, " ")
	d := Dir{Access: ReadWrite}
	switch rights {
	case "r":
		d.Access = ReadOnly
	case "rw":
		d.Access = Read | Write
	case "-":
		d.Access = 0
	}
	path, d.Pinned = strings.CutPrefix(path, "*")
	path, d.File = strings.CutPrefix(path, "$")
	d.Path = filepath.FromSlash(path)
	d.Spellings = []string{d.Path}
	return d
}

func set(texts ...string) Set {
	var dirs []Dir
	for _, s := range texts {
		dirs = append(dirs, dir(s))
	}
	return NewSet(dirs...)
}

func texts(s Set) []string {
	list := []string{}
	for _, d := range s.Dirs() {
		text := filepath.ToSlash(d.Path)
		if d.File {
			text = "$" + text
		}
		if d.Pinned {
			text = "*" + text
		}
		switch d.Access {
		case ReadOnly:
			text += " r"
		case Read | Write:
			text += " rw"
		case 0:
			text += " -"
		}
		list = append(list, text)
	}
	return list
}

func TestIntersect(t *testing.T) {
	tests := []struct {
		name       string
		s, t, want []string
	}{
		{"nothing", []string{}, []string{"/a"}, []string{}},
		{"the same", []string{"/a"}, []string{"/a"}, []string{"/a"}},
		{"the deeper one", []string{"/a"}, []string{"/a/b"}, []string{"/a/b"}},
		{"the deeper one, the other way", []string{"/a/b"}, []string{"/a"}, []string{"/a/b"}},
		{"a prefix of the text is no parent", []string{"/a"}, []string{"/ab"}, []string{}},
		{"all of the disk", []string{"/a", "/b"}, []string{"/"}, []string{"/a", "/b"}},
		{"in the order of the first", []string{"/b", "/a"}, []string{"/a", "/b"}, []string{"/b", "/a"}},
		{"nested roots stay", []string{"/a", "/a/b"}, []string{"/a"}, []string{"/a", "/a/b"}},
		{"each once", []string{"/a", "/a/b"}, []string{"/a", "/a/b"}, []string{"/a", "/a/b"}},
		{"rights intersect", []string{"/a r"}, []string{"/a"}, []string{"/a r"}},
		{"rights of the one around", []string{"/a r"}, []string{"/a/b"}, []string{"/a/b r"}},
		{"a read-only one inside", []string{"/a", "/a/b r"}, []string{"/a/b/c"}, []string{"/a/b/c r"}},
		{"a writable one inside", []string{"/a r", "/a/b"}, []string{"/a/b/c"}, []string{"/a/b/c"}},
		{"a hole stays one", []string{"/a", "/a/b -"}, []string{"/a"}, []string{"/a", "/a/b -"}},
		{"a file in a directory", []string{"/a"}, []string{"$/a/f"}, []string{"$/a/f"}},
		{"the same file", []string{"$/a/f"}, []string{"$/a/f"}, []string{"$/a/f"}},
		{"a file holds nothing", []string{"$/a/f"}, []string{"/a/f/x", "$/a/f/x"}, []string{}},
		{"pinned in both", []string{"*/a", "*/b"}, []string{"*/a", "/b"}, []string{"*/a", "/b"}},
	}
	for _, test := range tests {
		got := texts(set(test.s...).Intersect(set(test.t...)))
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q and %q = %q, want %q", test.name, test.s, test.t, got, test.want)
		}
	}
}

func TestIntersectKeepsWhatItWasGiven(t *testing.T) {
	a := Dir{Path: "/real", Spellings: []string{"/real", "/link"}, Name: "api", Access: ReadWrite, Origin: "--root", ID: FileID{1, 2}}
	b := Dir{Path: "/real", Spellings: []string{"/real", "/other"}, Name: "folder", Access: ReadWrite, Origin: "client", ID: FileID{1, 2}}
	got := NewSet(a).Intersect(NewSet(b)).Dirs()
	want := a
	want.Spellings = []string{"/real", "/link", "/other"}
	if len(got) != 1 || !got[0].Equal(want) || got[0].Origin != "--root" {
		t.Errorf("got %+v, want %+v", got, want)
	}

	// The client's own name is taken where nothing else has one, and does not replace a configured one found later.
	wide, deep := dir("/a"), dir("/a/b")
	deep.Name = "configured"
	listed := dir("/a/b")
	listed.Name = "listed"
	got = NewSet(wide, deep).Intersect(NewSet(listed)).Dirs()
	if len(got) != 1 || got[0].Name != "configured" {
		t.Errorf("got %+v, want the configured name", got)
	}
}

func TestNewSet(t *testing.T) {
	a, again := dir("*/a"), dir("/a r")
	again.Name, again.Spellings = "a", []string{"/a", "/link"}
	s := NewSet(a, dir("/b"), again)
	if got, want := texts(s), []string{"/a r", "/b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if d, ok := s.Find("a"); !ok || d.Path != "/a" || !slices.Equal(d.Spellings, []string{"/a", "/link"}) {
		t.Errorf("Find = %+v, %v", d, ok)
	}
	if d, ok := s.Find(""); ok {
		t.Errorf("found %+v under no name", d)
	}

	// What was given or handed out can be changed without changing the set.
	again.Spellings[1] = "/elsewhere"
	s.Dirs()[0].Spellings[1] = "/elsewhere"
	s.Dirs()[0].Access = ReadWrite
	if d := s.Dirs()[0]; d.Access != ReadOnly || d.Spellings[1] != "/link" {
		t.Errorf("the set changed: %+v", d)
	}
}

func TestRoots(t *testing.T) {
	linked := dir("/b")
	linked.Spellings, linked.Name = []string{"/b", "/link to b"}, "我的项目"
	got := NewSet(dir("/a"), linked, dir("/a/c"), dir("/a/hole -")).Roots()
	want := []Root{{"file:///a", ""}, {"file:///b", "我的项目"}, {"file:///link%20to%20b", "我的项目"}, {"file:///a/c", ""}}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMatch(t *testing.T) {
	linked := dir("/real/deep/place")
	linked.Spellings = []string{linked.Path, "/l"}
	s := NewSet(dir("/a"), dir("/a/b r"), dir("$/f"), linked, dir("/a/hole -"))
	tests := []struct{ path, dir, rel string }{
		{"/a", "/a", "."},
		{"/a/", "/a", "."},
		{"/a/x/y", "/a", "x/y"},
		{"/a/b/x", "/a/b", "x"},
		{"/a/b", "/a/b", "."},
		{"/ab", "", ""},
		{"/f", "/f", "."},
		{"/f/x", "", ""},
		{"/l/x", "/real/deep/place", "x"},
		{"/real/deep/place/x", "/real/deep/place", "x"},
		{"/a/hole/x", "/a/hole", "x"},
		{"/a/../etc", "", ""},
		{"a", "", ""},
		{"", "", ""},
	}
	for _, test := range tests {
		d, rel, ok := s.Match(test.path)
		if d.Path != test.dir || rel != test.rel || ok != (test.dir != "") {
			t.Errorf("Match(%q) = %q, %q, %v, want %q, %q", test.path, d.Path, rel, ok, test.dir, test.rel)
		}
	}
	if d, rel, ok := set("/").Match("/x/y"); !ok || d.Path != "/" || rel != "x/y" {
		t.Errorf("Match beneath / = %q, %q, %v", d.Path, rel, ok)
	}
}

// Where names fold, the identities of what lies above decide.
func TestContainmentByIdentity(t *testing.T) {
	top, work, sub, file := FileID{1, 2}, FileID{1, 10}, FileID{1, 11}, FileID{1, 12}
	outer := Dir{Path: "/Work", ID: work, Access: ReadWrite, ancestors: []FileID{top}}
	again := Dir{Path: "/WORK", ID: work, Access: ReadOnly, ancestors: []FileID{top}}
	inner := Dir{Path: "/work/Sub", ID: sub, Access: ReadWrite, ancestors: []FileID{work, top}}
	other := Dir{Path: "/other", ID: FileID{1, 13}, Access: ReadWrite, ancestors: []FileID{top}}
	a := Dir{Path: "/work/sub/A.txt", ID: file, File: true, Access: ReadWrite, ancestors: []FileID{sub, work, top}}
	sameA := Dir{Path: "/WORK/SUB/a.TXT", ID: file, File: true, Access: ReadWrite, ancestors: []FileID{sub, work, top}}
	hardlink := Dir{Path: "/work/sub/b.txt", ID: file, File: true, Access: ReadWrite, ancestors: []FileID{sub, work, top}}

	one := func(d Dir) Set { return newSet([]Dir{d}, true) }
	tests := []struct {
		name string
		s, t Dir
		want string
	}{
		{"other letters", outer, again, "/Work"},
		{"beneath other letters", outer, inner, "/work/Sub"},
		{"beside", outer, other, ""},
		{"file beneath", inner, a, "/work/sub/A.txt"},
		{"file in other letters", a, sameA, "/work/sub/A.txt"},
		{"a second name of a file", a, hardlink, ""},
	}
	for _, test := range tests {
		got := ""
		if dirs := one(test.s).intersect(one(test.t), true).Dirs(); len(dirs) > 0 {
			got = dirs[0].Path
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
		if by := one(test.s).intersect(one(test.t), false); by.Len() != 0 {
			t.Errorf("%s: by text they meet in %q", test.name, texts(by))
		}
	}
	if s := newSet([]Dir{outer, again}, true); s.Len() != 1 || s.Dirs()[0].Access != ReadOnly {
		t.Errorf("one directory in two spellings is %q", texts(s))
	}
	if s := newSet([]Dir{{Path: "/x"}, {Path: "/y"}}, true); s.Len() != 2 {
		t.Errorf("unknown identities were taken for one: %q", texts(s))
	}
}

// randomSet makes a set of a few places that nest often.
func randomSet(r *rand.Rand) Set {
	var dirs []Dir
	for range r.IntN(5) {
		d := Dir{Access: Access(r.IntN(8)), Pinned: r.IntN(4) == 0}
		for range r.IntN(4) {
			d.Path += fmt.Sprintf("/%c", 'a'+r.IntN(2))
		}
		if d.Path == "" {
			d.Path = "/"
		}
		// A name is a file or a directory, in every set alike.
		if len(d.Path) > 5 && strings.HasSuffix(d.Path, "a") {
			d.File = true
		}
		d.Spellings = []string{d.Path}
		dirs = append(dirs, d)
	}
	return NewSet(dirs...)
}

// allows is what Set says it means, found without its help: what the deepest root that holds the path allows.
func allows(s Set, path string) (a Access) {
	deepest := -1
	for _, d := range s.Dirs() {
		holds := path == d.Path || !d.File && strings.HasPrefix(path, strings.TrimSuffix(d.Path, "/")+"/")
		if holds && len(d.Path) > deepest {
			deepest, a = len(d.Path), d.Access
		}
	}
	return a
}

func TestAlgebra(t *testing.T) {
	var places []string
	level := []string{""}
	for range 4 {
		var next []string
		for _, p := range level {
			for _, n := range []string{"/a", "/b", "/c"} {
				next = append(next, p+n)
			}
		}
		places, level = append(places, next...), next
	}
	r := rand.New(rand.NewPCG(1, 2))
	sorted := func(s Set) []string { l := texts(s); slices.Sort(l); return l }
	overlaps, covers := 0, 0
	for range 1000 {
		s, u, v := randomSet(r), randomSet(r), randomSet(r)
		su := s.Intersect(u)
		for _, p := range places {
			if got, want := allows(su, p), allows(s, p)&allows(u, p); got != want {
				t.Fatalf("%q and %q: at %s allowed %b, want %b", texts(s), texts(u), p, got, want)
			}
		}
		if got, want := sorted(u.Intersect(s)), sorted(su); !slices.Equal(got, want) {
			t.Fatalf("%q and %q do not commute: %q, %q", texts(s), texts(u), got, want)
		}
		if !s.Covers(su) || !u.Covers(su) {
			t.Fatalf("%q and %q: %q is not in both", texts(s), texts(u), texts(su))
		}
		if got := s.Intersect(s); !got.Equal(s) {
			t.Fatalf("%q with itself is %q", texts(s), texts(got))
		}
		if got, want := sorted(su.Intersect(v)), sorted(s.Intersect(u.Intersect(v))); !slices.Equal(got, want) {
			t.Fatalf("%q, %q, %q do not associate: %q, %q", texts(s), texts(u), texts(v), got, want)
		}
		want := true
		for _, p := range append(places, "/") {
			want = want && allows(u, p)&^allows(s, p) == 0
		}
		if got := s.Covers(u); got != want {
			t.Fatalf("%q covers %q: %v, want %v", texts(s), texts(u), got, want)
		}
		if su.Len() > 0 {
			overlaps++
		}
		if want && u.Len() > 0 {
			covers++
		}
	}
	if overlaps < 150 || covers < 30 {
		t.Errorf("only %d pairs overlapped and %d covered: the test shows little", overlaps, covers)
	}
}

func TestEqual(t *testing.T) {
	base := Dir{Path: "/a", Spellings: []string{"/a"}, Access: Read, ID: FileID{1, 2}, Origin: "--root"}
	if o := base; !NewSet(base).Equal(NewSet(o)) {
		t.Error("a set is not equal to its like")
	}
	elsewhere := base
	elsewhere.Origin = "client"
	if !NewSet(base).Equal(NewSet(elsewhere)) {
		t.Error("where a root came from makes it another")
	}
	for name, change := range map[string]func(*Dir){
		"path":      func(d *Dir) { d.Path = "/b" },
		"spellings": func(d *Dir) { d.Spellings = []string{"/a", "/l"} },
		"name":      func(d *Dir) { d.Name = "n" },
		"access":    func(d *Dir) { d.Access = ReadWrite },
		"file":      func(d *Dir) { d.File = true },
		"pinned":    func(d *Dir) { d.Pinned = true },
		"identity":  func(d *Dir) { d.ID.Index++ },
	} {
		other := base.clone()
		change(&other)
		if NewSet(base).Equal(NewSet(other)) {
			t.Errorf("another %s makes no difference", name)
		}
	}
	if set("/a", "/b").Equal(set("/b", "/a")) || set("/a").Equal(set("/a", "/b")) || !(Set{}).Equal(NewSet()) {
		t.Error("order or number make no difference, or the empty set is not the zero value")
	}
}
