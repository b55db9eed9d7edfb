package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rootbound/rootbound/roots"
)

func (e Effect) text(top string) string {
	list := func(sign string, all []Placed) (text string) {
		for _, p := range all {
			text += fmt.Sprintf(" %s%s(%s)", sign, strings.TrimPrefix(p.Place, top+"/"), word(accessWords, p.Access))
		}
		return text
	}
	text := e.Server
	switch {
	case e.Active:
		text = "active"
	case text == "":
		text = "all"
	}
	text += ":" + list("+", e.Gained) + list("-", e.Lost) + list("~", e.Changed)
	if e.Begun {
		text += " begun"
	}
	if e.Emptied {
		text += " emptied"
	}
	return text
}

// What an edit changes for whom is known before it is saved.
func TestEffects(t *testing.T) {
	const file = "active = \"w\"\n\n[[roots]]\npath = \"TOP/work\"\nname = \"w\"\n\n[[roots]]\npath = \"TOP/other\"\n\n[server.a]\ncommand = \"x\"\n\n[server.b]\nroots = [{ path = \"TOP/work\" }]\n"
	for _, tt := range []struct {
		name string
		edit func(h *home, file string) (Change, error)
		want string
	}{
		{"add for all", func(h *home, f string) (Change, error) {
			return AddRoot(f, "", Root{Path: h.path("work/src"), Access: roots.ReadOnly})
		}, "all: +work/src(ro)"},
		{"a first one of a server", func(h *home, f string) (Change, error) {
			return AddRoot(f, "a", Root{Path: h.path("work/src"), Access: roots.ReadWrite})
		}, "a: +work/src(rw) -work(rw) -other(rw) begun"},
		{"remove", func(h *home, f string) (Change, error) { return RemoveRoot(f, "", h.path("other")) }, "all: -other(rw)"},
		{"remove the last", func(h *home, f string) (Change, error) { return RemoveRoot(f, "b", h.path("work")) }, "b: -work(rw) emptied"},
		{"other rights", func(h *home, f string) (Change, error) {
			return SetRoot(f, "", "w", func(r Root) Root { r.Access = roots.ReadOnly; return r })
		}, "all: ~work(ro)"},
		{"rename", func(h *home, f string) (Change, error) {
			return SetRoot(f, "", "w", func(r Root) Root { r.Name = "v"; return r })
		}, "all: ~work(rw)"},
		{"switch", func(h *home, f string) (Change, error) { return Use(f, h.path("other")) }, "active: +other(?) -work(?)"},
		{"nothing", func(h *home, f string) (Change, error) { return Use(f, "w") }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t)
			h.dir("cfg")
			h.write("cfg/c.toml", strings.ReplaceAll(file, "TOP", h.top))
			c, err := tt.edit(h, h.path("cfg/c.toml"))
			if err != nil {
				t.Fatal(err)
			}
			effects, err := c.Effects()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range effects {
				text := e.text(h.top)
				if e.Active {
					text = strings.NewReplacer("(rw)", "(?)", "()", "(?)").Replace(text)
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (c.Diff() == "") != (tt.want == "") {
				t.Errorf("the diff is\n%s", c.Diff())
			}
		})
	}
}

func TestLists(t *testing.T) {
	h := newHome(t)
	h.dir("cfg")
	h.write("cfg/c.toml", strings.ReplaceAll("active = \"w\"\n[[roots]]\npath = \"TOP/work\"\nname = \"w\"\n\n[[roots]]\npath = \"TOP/gone\"\n\n[[roots]]\npath = \"~\"\n\n[server.a]\ncommand = \"x\"\n", "TOP", h.top))
	lists, err := Lists(h.path("cfg/c.toml"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lists {
		for _, r := range l.Roots {
			text := fmt.Sprintf("%s %s %v", l.Server, r.Name, r.Active)
			if r.Err != nil {
				text += " " + string(r.Err.Reason)
			}
			got = append(got, text)
		}
		got = append(got, fmt.Sprintf("%q given %v", l.Server, l.Given))
	}
	want := []string{" w true", "  false missing", "  false broad", `"" given true`, `"a" given false`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if lists, err := Lists(h.path("cfg/none.toml")); err != nil || len(lists) != 1 || lists[0].Given {
		t.Errorf("%v, %v", lists, err)
	}
}

func TestPicks(t *testing.T) {
	h := newHome(t)
	for _, dir := range []string{"p/alpha/.git", "p/Albert", "p/.hidden", "p/beta", "p/a\u202eb"} {
		h.dir(dir)
	}
	h.write("p/alpha/.git/HEAD", "x")
	h.write("p/also-a-file", "x")
	if err := os.Symlink(h.path("p/beta"), h.path("p/al-link")); err != nil {
		t.Fatal(err)
	}
	pick := func(typed string, most int) string {
		list, more, err := Picks(typed, most)
		if err != nil {
			return err.Error()
		}
		var got []string
		for _, p := range list {
			text := filepath.Base(p.Path)
			if p.Work {
				text += " work"
			}
			if p.Broad {
				text += " broad"
			}
			got = append(got, text)
		}
		return fmt.Sprintf("%s %v", strings.Join(got, ", "), more)
	}
	for _, tt := range []struct {
		typed string
		most  int
		want  string
	}{
		{h.path("p/al"), 9, "al-link, Albert, alpha work false"},
		{h.path("p") + "/", 2, "al-link, Albert true"},
		{h.path("p") + "/.", 9, ".hidden false"},
		{h.path("p/none"), 9, " false"},
		{"/home", 1, "home broad false"},
	} {
		if got := pick(tt.typed, tt.most); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.typed, got, tt.want)
		}
	}
	for _, typed := range []string{"relative", h.path("p/none") + "/x"} {
		if _, _, err := Picks(typed, 9); err == nil {
			t.Errorf("%s can be completed", typed)
		}
	}
}
