package logindex

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/calllog"
)

// TestAnotherProcess is another process, when it is run as one: it follows a log until it is killed.
func TestAnotherProcess(t *testing.T) {
	dir := os.Getenv("LOGINDEX_TEST_DIR")
	if dir == "" {
		return
	}
	x, err := Open(os.Getenv("LOGINDEX_TEST_PATH"), dir, func(note string) { fmt.Println(note) })
	if err != nil {
		t.Fatal(err)
	}
	x.Follow(t.Context(), func() {})
}

// another starts another process that follows the log. It says what goes wrong on standard output, which the caller reads when it
// has ended it.
func (f *fixture) another() *exec.Cmd {
	f.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestAnotherProcess$")
	cmd.Env = append(os.Environ(), "LOGINDEX_TEST_DIR="+f.dir, "LOGINDEX_TEST_PATH="+f.path)
	cmd.Stdout, cmd.Stderr = f.Output(), f.Output()
	if err := cmd.Start(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

// everything compares the index with the log.
func (f *fixture) everything() {
	f.Helper()
	var want, got []string
	for e, err := range calllog.ReadDir(f.dir, calllog.Filter{}) {
		if err != nil {
			f.Fatal(err)
		}
		want = append(want, e.Hash)
	}
	for e, err := range f.x.All(f.Context(), Query{}) {
		if err != nil {
			f.Fatal(err)
		}
		got = append(got, e.Hash)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%d records, %d in the index (-log +index):\n%s", len(want), len(got), diff)
	}
	if len(f.notes) > 0 {
		f.Errorf("the index said %q", f.notes)
	}
}

// TestKilled kills processes in the middle of their work, wherever that is.
func TestKilled(t *testing.T) {
	f := newFixture(t)
	l := f.log("files")
	write := func(n int) {
		for range n {
			f.append(l, call(l.NewID(), "read", calllog.Allow, "/home/u/app/"+l.NewID()))
		}
	}
	write(10_000)
	for i := range 6 {
		cmd := f.another()
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // sometimes before it began, sometimes after it was done
		cmd.Process.Kill()
		cmd.Wait()
		write(1000)
		if i%2 == 1 {
			f.update()
			f.everything()
		}
	}
}

// TestSeveral lets processes follow one log at once, while it is written and a file is pruned.
func TestSeveral(t *testing.T) {
	f := newFixture(t)
	old := f.log("old")
	for range 3000 {
		f.append(old, call(old.NewID(), "read", calllog.Allow, "/home/u/old"))
	}
	old.Close(0, "")
	for range 3 {
		f.another()
	}
	a, b := f.log("a"), f.log("b")
	for i := range 10_000 {
		l := a
		if i%3 == 0 {
			l = b
		}
		f.append(l, call(l.NewID(), "read", calllog.Allow, "/home/u/app"))
		switch i {
		case 2500, 7500:
			f.update()
		case 5000:
			if err := os.Remove(old.Path()); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.update()
	f.everything()
	// None was taken for one that was changed in place, and looked at anew.
	c, err := f.x.open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if n, err := c.number("SELECT max(id) FROM file"); n > 3 || err != nil {
		t.Errorf("files were looked at from their beginning %d times, %v; want 3 at most", n, err)
	}
}
