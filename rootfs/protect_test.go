package rootfs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/roots"
)

func TestProtect(t *testing.T) {
	files := map[string]string{
		"R/f": "f", "R/own.toml": "own", "R/alias": "->own.toml", "R/d/state/log": "log", "R/d/other": "o", "R/state": "->d/state",
		"R/other/own/x": "x", "R/link.toml": "->dotfiles/real.toml", "R/dotfiles/real.toml": "real", "R/dotfiles/f": "f", "R/empty/": "",
		"R/in/f": "f", "R/in/own": "own",
	}
	tests := []struct{ line, code, want string }{
		{"replace own.toml", "protected", ""},
		{"edit alias", "protected", ""},
		{"remove own.toml", "protected", ""},
		{"trash own.toml", "protected", ""},
		{"move own.toml f2", "protected", ""},
		{"remove alias", "", "-R/alias"}, // a name of somebody else's
		{"replace d/state/log", "protected", ""},
		{"create d/state/new", "protected", ""},
		{"replace state/log", "protected", ""},
		{"mkdir d/state/new", "protected", ""},
		{"mkdir d/state", "", ""}, // it is there
		{"move f d/state/f", "protected", ""},
		{"move d e", "protected", ""},
		{"trash d", "protected", ""},
		{"replace d/other", "", "~R/d/other"},

		// What does not exist yet.
		{"create new.toml", "protected", ""},
		{"mkdir new.toml", "protected", ""},
		{"move f new.toml", "protected", ""},
		{"mkdir deep/own", "protected", ""},
		{"mkdir deep", "", "+R/deep/"},
		{"move other deep", "protected", ""}, // and with it deep/own
		{"move state deep", "protected", ""},

		// A link, and what it leads to.
		{"replace link.toml", "protected", ""},
		{"remove link.toml", "protected", ""},
		{"replace dotfiles/real.toml", "protected", ""},
		{"move dotfiles away", "protected", ""},
		{"replace dotfiles/f", "", "~R/dotfiles/f"},

		// In a root in another, and where links lead.
		{"replace in/own", "protected", ""},
		{"remove in/own", "protected", ""},
		{"replace in/f", "", "~R/in/f"},

		{"move f new.txt", "", "-R/f +R/new.txt"},
		{"remove empty", "", "-R/empty/"},
	}
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		for _, nested := range []bool{false, true} {
			var w string
			var f *FS
			fresh := func() map[string]string {
				w = tree(t, files)
				o := Options{}
				for _, name := range []string{"own.toml", "new.toml", "state", "deep/own", "link.toml", "in/own"} {
					o.Protect = append(o.Protect, filepath.Join(w, "R", name))
				}
				dirs := []roots.Dir{dir(t, filepath.Join(w, "R"), roots.ReadWrite)}
				if nested {
					dirs = append(dirs, dir(t, filepath.Join(w, "R/in"), roots.ReadWrite))
				}
				f = open(t, o, dirs...)
				return snapshot(t, w)
			}
			before := fresh()
			for _, tt := range tests {
				if got := perform(t, f, tt.line); got != tt.code {
					t.Errorf("%s: %q, want %q", tt.line, got, tt.code)
				}
				after := snapshot(t, w)
				if diff := cmp.Diff(tt.want, changes(before, after)); diff != "" {
					t.Errorf("%s has changed (-want +got):\n%s", tt.line, diff)
				}
				if tt.want != "" {
					f.Close()
					before = fresh()
				}
			}
			if got := read(t, f, "own.toml"); got != "own" {
				t.Errorf("reading: %q", got)
			}
		}
	})
}

// What was taken away before is not brought back over it.
func TestProtectAgainstTheTrash(t *testing.T) {
	w := tree(t, map[string]string{"R/deep/own": "x", "R/f": "x"})
	d := dir(t, filepath.Join(w, "R"), roots.ReadWrite)
	before, err := Open(roots.NewSet(d), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	id, err := before.Trash("deep", TrashOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(roots.NewSet(d), Options{Protect: []string{filepath.Join(w, "R/deep/own")}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Restore(id); codeOf(err) != Protected || !strings.HasSuffix(err.Error(), texts[Protected]) {
		t.Errorf("restored: %v", err)
	}
	if _, err := f.Stat("deep"); codeOf(err) != NotFound {
		t.Errorf("it is there: %v", err)
	}
}
