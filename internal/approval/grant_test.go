package approval

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

func store(t testing.TB) Store {
	dir := t.TempDir()
	return Store{Path: filepath.Join(dir, "grants.json"), Lock: filepath.Join(dir, "grants.lock")}
}

var use = Use{Server: "files", Runs: "npm:files", Client: "c", Session: "s", Definition: "d", All: "all", Tool: "write_file", Rule: "r", Digest: "x",
	Roots: []string{"/w"}, Targets: []string{"/w/a/x"}}

func grant(f func(*Grant)) Grant {
	g := Grant{ID: "g1", Server: "files", Runs: "npm:files", Client: "c", Definition: "d", Tool: "write_file"}
	f(&g)
	return g
}

func TestWhatAGrantAllows(t *testing.T) {
	all := func(g *Grant) { g.Tool, g.Definition = "", "all" }
	for _, tt := range []struct {
		name string
		g    Grant
		want bool
	}{
		{"nothing", Grant{}, false},
		{"a tool with nothing else", grant(func(g *Grant) {}), true},
		{"session", grant(func(g *Grant) { g.Session = "s" }), true},
		{"another session", grant(func(g *Grant) { g.Session = "t" }), false},
		{"another definition", grant(func(g *Grant) { g.Session, g.Definition = "s", "e" }), false},
		{"another server", grant(func(g *Grant) { g.Session, g.Server = "s", "x" }), false},
		{"another program", grant(func(g *Grant) { g.Session, g.Runs = "s", "x" }), false},
		{"another client", grant(func(g *Grant) { g.Session, g.Client = "s", "x" }), false},
		{"another tool", grant(func(g *Grant) { g.Session, g.Tool = "s", "x" }), false},
		{"another rule", grant(func(g *Grant) { g.Session, g.Rule = "s", "x" }), false},
		{"this call", grant(func(g *Grant) { g.Digest = "x" }), true},
		{"another call", grant(func(g *Grant) { g.Digest = "y" }), false},
		{"under", grant(func(g *Grant) { g.Under = "/w/a" }), true},
		{"under the top", grant(func(g *Grant) { g.Under = "/" }), true},
		{"under another", grant(func(g *Grant) { g.Under = "/w/ab" }), false},
		{"a name that begins alike", grant(func(g *Grant) { g.Under = "/w/a/" + "x" + "y" }), false},
		{"host", grant(func(g *Grant) { g.Host = "h" }), false},
		{"root, for every tool", grant(func(g *Grant) { all(g); g.Session, g.Rule, g.Root = "s", "r", "/w" }), true},
		{"root, for every tool without a rule", grant(func(g *Grant) { all(g); g.Session, g.Root = "s", "/w" }), false},
		{"another root", grant(func(g *Grant) { all(g); g.Session, g.Rule, g.Root = "s", "r", "/v" }), false},
		{"root, for every tool in any session", grant(func(g *Grant) { all(g); g.Rule, g.Root = "r", "/w" }), false},
		{"root, for this tool in any session", grant(func(g *Grant) { g.Rule, g.Root = "r", "/w" }), true},
		{"every tool", grant(func(g *Grant) { all(g); g.Session, g.Rule = "s", "r" }), false},
	} {
		if got := tt.g.allows(&use); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	two := use
	two.Targets = []string{"/w/a/x", "/w/b"}
	g := grant(func(g *Grant) { g.Under = "/w/a" })
	if g.allows(&two) {
		t.Error("one of two paths is enough")
	}
	two.Targets, two.Hosts = use.Targets, []string{"h"}
	if g.allows(&two) {
		t.Error("a grant for paths is good for a call that also leads to a host")
	}
}

func TestGrantsFollowTheFile(t *testing.T) {
	s := store(t)
	now := time.Now()
	view := NewGrants(s)
	find := func(at time.Time) bool {
		_, ok, err := view.Find(use, at)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if find(now) {
		t.Fatal("granted without a file")
	}
	for _, f := range []func(*Grant){
		func(g *Grant) { g.Digest = "x" },
		func(g *Grant) { g.Under = "/w" },
		func(g *Grant) { g.Session = "s" },
		func(g *Grant) { g.Session, g.Root = "s", "/w" },
	} {
		added, err := s.Add(grant(func(g *Grant) { f(g); g.Since, g.Until = now, now.Add(time.Hour) }))
		if err != nil {
			t.Fatal(err)
		}
		if !find(now) || !find(now.Add(59*time.Minute)) {
			t.Errorf("%v is not found", added)
		}
		if gone, err := s.Revoke(func(g Grant) bool { return g.ID == added.ID }); err != nil || len(gone) != 1 {
			t.Errorf("revoking: %v, %v", gone, err)
		}
		if find(now) {
			t.Errorf("%v is found after it was revoked", added)
		}
		view = NewGrants(s)
	}
	s.Add(grant(func(g *Grant) { g.Digest, g.Since, g.Until = "x", now, now.Add(time.Hour) }))
	if find(now.Add(time.Hour)) {
		t.Error("a grant has no end")
	}
	if find(now) {
		t.Error("a clock that was set back makes a grant good again")
	}
	view = NewGrants(s)
	if find(now.Add(-time.Hour)) {
		t.Error("a grant is good before it was given")
	}
	if err := s.Clear(); err != nil || find(now) {
		t.Errorf("after everything was cleared: %v", err)
	}
}

func TestAFileThatCannotBeReadGrantsNothing(t *testing.T) {
	damages := map[string]func(path string) error{
		"cut": func(path string) error { return os.Truncate(path, 20) },
		"without an end": func(path string) error {
			return os.WriteFile(path, []byte(`{"grants":[{"id":"g","server":"files"}]}`), 0o600)
		},
	}
	if runtime.GOOS != "windows" {
		damages["written by others"] = func(path string) error { return os.Chmod(path, 0o666) }
	}
	for name, damage := range damages {
		s := store(t)
		now := time.Now()
		if _, err := s.Add(grant(func(g *Grant) { g.Digest, g.Since, g.Until = "x", now, now.Add(time.Hour) })); err != nil {
			t.Fatal(err)
		}
		if err := damage(s.Path); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := NewGrants(s).Find(use, now); ok || err == nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
		if _, err := s.Add(grant(func(g *Grant) { g.Digest, g.Since, g.Until = "y", now, now.Add(time.Hour) })); err == nil {
			t.Errorf("%s: it was written over", name)
		}
	}
}

func TestManyWriteAtOnce(t *testing.T) {
	s := store(t)
	now := time.Now()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := s.Add(grant(func(g *Grant) { g.Digest, g.Since, g.Until = fmt.Sprint(i), now, now.Add(time.Hour) })); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := s.Grants(); err != nil || len(list) != 20 {
		t.Errorf("%d of 20 are there: %v", len(list), err)
	}
}

// With 10,000 grants a call is looked up in about the time that it takes with one.
func BenchmarkFind(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := store(b)
			now := time.Now()
			err := s.edit(func([]Grant) []Grant {
				var all []Grant
				for i := range n {
					all = append(all, grant(func(g *Grant) {
						g.ID, g.Since, g.Until = fmt.Sprint("g", i), now, now.Add(time.Hour)
						switch i % 4 {
						case 0:
							g.Under = fmt.Sprint("/w/", i)
						case 1:
							g.Digest = fmt.Sprint(i)
						case 2:
							g.Session = fmt.Sprint(i)
						case 3:
							g.Host = fmt.Sprint(i, ".example")
						}
					}))
				}
				return all
			})
			if err != nil {
				b.Fatal(err)
			}
			view := NewGrants(s)
			u := use
			u.Targets = []string{"/w/0/x"}
			for b.Loop() {
				if _, ok, err := view.Find(u, now); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}
