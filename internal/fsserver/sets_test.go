package fsserver

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// makeDirs makes directories with a file "name" in each that holds the directory's name.
func makeDirs(t testing.TB, names ...string) []string {
	t.Helper()
	w, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, name := range names {
		path := filepath.Join(w, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "name"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// isClosed reports whether the handles of a set were let go.
func isClosed(o *openSet) bool {
	_, err := o.fs.Stat(".")
	return err != nil && strings.Contains(err.Error(), os.ErrClosed.Error())
}

func TestASetIsOpenedOnceAndClosedWhenItIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paths := makeDirs(t, "a")
		set := func() roots.Set { return roots.NewSet(resolve(t, paths[0], roots.ReadOnly)) } // equal, and not the same
		var c sets
		use := func() *openSet {
			t.Helper()
			o, err := c.use(set())
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		first, second := use(), use()
		if first != second {
			t.Error("an equal set was opened twice")
		}
		c.done(first)
		time.Sleep(2 * idle)
		if isClosed(second) {
			t.Error("closed while a call used it")
		}
		c.done(second)
		time.Sleep(idle - 1)
		if third := use(); third != first {
			t.Error("opened again although it was used a moment ago")
		}
		time.Sleep(2 * idle)
		if isClosed(first) {
			t.Error("the time of an earlier user ran on")
		}
		c.done(first)
		time.Sleep(idle)
		synctest.Wait()
		if !isClosed(first) || len(c.open) != 0 {
			t.Errorf("not closed when nobody used it; %d sets are held", len(c.open))
		}
		again := use()
		if again == first || isClosed(again) {
			t.Error("a closed set was given out")
		}
		c.close()
		if isClosed(again) {
			t.Error("closed while a call used it")
		}
		c.done(again)
		if !isClosed(again) {
			t.Error("not closed after its last user")
		}
	})
}

// A client that calls once an hour does not have its directories walked through each time.
func TestASetIsCleanedWhenItIsFirstOpened(t *testing.T) {
	paths := makeDirs(t, "a", "b")
	a, b := resolve(t, paths[0], roots.ReadWrite), resolve(t, paths[1], roots.ReadWrite)
	readOnly := a
	readOnly.Access = roots.ReadOnly
	var c sets
	for i, tt := range []struct {
		set  roots.Set
		want bool
	}{
		{roots.NewSet(a), true}, {roots.NewSet(a), false}, {roots.NewSet(readOnly), false}, {roots.NewSet(a, b), true}, {roots.NewSet(b), false}, {roots.NewSet(a), false},
	} {
		o, err := c.use(tt.set)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.stop != nil; got != tt.want {
			t.Errorf("%d: cleaned %v, want %v", i, got, tt.want)
		}
		c.done(o)
		c.close()
	}
}

func TestFewSetsAreHeld(t *testing.T) {
	var c sets
	defer c.close()
	var all []*openSet
	for _, path := range makeDirs(t, "a", "b", "c", "d", "e", "f", "g") {
		o, err := c.use(roots.NewSet(resolve(t, path, roots.ReadOnly)))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	for i, o := range all {
		if isClosed(o) {
			t.Errorf("set %d was closed while it was used", i)
		}
		c.done(o)
		if got, want := isClosed(o), i < len(all)-maxSets; got != want {
			t.Errorf("set %d, after its use: closed %v, want %v", i, got, want)
		}
	}
	// The one that was used the longest time ago goes first.
	oldest, next := all[3], all[4]
	if o, err := c.use(oldest.asked); o != oldest || err != nil {
		t.Fatalf("the oldest is not held any more: %v", err)
	}
	other, err := c.use(roots.NewSet(oldest.asked.Dirs()[0], next.asked.Dirs()[0]))
	if err != nil {
		t.Fatal(err)
	}
	if isClosed(oldest) || !isClosed(next) {
		t.Errorf("closed: the one used last %v, the one used before %v", isClosed(oldest), isClosed(next))
	}
	c.done(oldest)
	c.done(other)
}

// https://github.com/modelcontextprotocol/servers/issues/2815: a root that is gone does not take the others with it. It says
// what is wrong, nothing around it stands in for it, and it is served again when it is back.
func TestARootThatIsGone(t *testing.T) {
	paths := makeDirs(t, "around", "other")
	inner := filepath.Join(paths[0], "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(inner, "name"), []byte("inner"), 0o600); err != nil {
		t.Fatal(err)
	}
	set := roots.NewSet(resolve(t, paths[0], roots.ReadWrite), resolve(t, inner, roots.ReadOnly), resolve(t, paths[1], roots.ReadOnly))
	server := newServer(t)
	read := func(dir string) string {
		t.Helper()
		text, _ := use(t, server, exchange.Legacy, set, "read_text_file", `{"path":`+quoteJSON(filepath.Join(dir, "name"))+`}`)
		return text
	}
	move := func(from, to string) {
		t.Helper()
		server.Close() // Windows does not move what is open
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want map[string]string) {
		t.Helper()
		for dir, want := range want {
			if got := read(dir); got != want {
				t.Errorf("%s: %s: %q, want %q", when, dir, got, want)
			}
		}
	}
	check("at first", map[string]string{paths[0]: "around", inner: "inner", paths[1]: "other"})

	away := inner + " away"
	move(inner, away)
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(inner, "name"), []byte("an impostor"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("when another is in its place", map[string]string{
		paths[0]: "around", paths[1]: "other",
		inner: "Access denied - this allowed directory cannot be used now: " + inner + " is replaced",
	})
	if text, _ := use(t, server, exchange.Legacy, set, "list_allowed_directories", ""); text != "Allowed directories:\n"+paths[0]+"\n"+paths[1] {
		t.Errorf("allowed: %q", text)
	}
	move(inner, inner+" impostor")
	move(away, inner)
	check("when it is back", map[string]string{paths[0]: "around", inner: "inner", paths[1]: "other"})

	only := roots.NewSet(resolve(t, paths[1], roots.ReadOnly))
	move(paths[1], paths[1]+" away")
	if text, isError := use(t, server, exchange.Legacy, only, "list_allowed_directories", ""); !isError ||
		text != "Access denied - none of the allowed directories can be used now: "+paths[1]+" is gone" {
		t.Errorf("with no root left: %q", text)
	}
}

// While roots change under calls that run, every call sees the roots of its own request and no handle is closed under it.
func TestRootsChangeWhileCallsRun(t *testing.T) {
	paths := makeDirs(t, "a", "b", "c", "d", "e", "f")
	server := newServer(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 50 {
				path := paths[(i+n)%len(paths)]
				set := roots.NewSet(resolve(t, path, roots.ReadOnly))
				if text, _ := use(t, server, eras[n%2], set, "read_text_file", `{"path":"name"}`); text != filepath.Base(path) {
					t.Errorf("in %s: %q", path, text)
				}
				if n == 25 {
					server.Close()
				}
			}
		})
	}
	wg.Wait()
	server.Close()
	if len(server.sets.open) != 0 {
		t.Errorf("%d sets are still held", len(server.sets.open))
	}
}

func TestARootThatCannotBeOpened(t *testing.T) {
	paths := makeDirs(t, "a")
	d := resolve(t, paths[0], roots.ReadOnly)
	var c sets
	if err := os.RemoveAll(paths[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := c.use(roots.NewSet(d)); err == nil || len(c.open) != 0 {
		t.Errorf("error %v, %d sets held", err, len(c.open))
	}
	if err := os.Mkdir(paths[0], 0o755); err != nil {
		t.Fatal(err)
	}
	o, err := c.use(roots.NewSet(resolve(t, paths[0], roots.ReadOnly)))
	if err != nil || rootfs.Check(o.asked) != nil {
		t.Fatalf("after it came back: %v", err)
	}
	c.done(o)
	c.close()
}
