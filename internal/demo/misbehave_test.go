package demo

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/rootbound/rootbound/internal/sandbox"
)

// What was tried is counted only where it comes through when nothing holds it.
func TestCompare(t *testing.T) {
	var free, held, loose outcomes
	add := func(o *outcomes, what, became string) { *o = append(*o, struct{ what, became string }{what, became}) }
	for _, what := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "impossible", signalGuard} {
		became := cameThrough
		if what == "impossible" {
			became = "no such file or directory"
		}
		add(&free, what, became)
		add(&held, what, "permission denied")
		if what == "b" || what == signalGuard {
			became = cameThrough
		} else {
			became = "permission denied"
		}
		add(&loose, what, became)
	}
	p := &printer{out: io.Discard}
	for _, tt := range []struct {
		name           string
		free, confined outcomes
		level          sandbox.Level
		want           int
		fails          bool
	}{
		{"all held", free, held, sandbox.Level{Landlock: 7}, 0, false},
		{"one and the signal came through", free, loose, sandbox.Level{Landlock: 7}, 2, false},
		{"where signals are not promised", free, loose, sandbox.Level{Landlock: 5}, 1, false},
		{"an attempt that was not made", free, held[1:], sandbox.Level{Landlock: 7}, 0, true},
		{"nothing comes through anyhow", held, held, sandbox.Level{Landlock: 7}, 0, true},
	} {
		got, err := compare(p, tt.free, tt.confined, tt.level)
		if got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %d, %v; want %d, an error: %v", tt.name, got, err, tt.want, tt.fails)
		}
	}
}

// Where nothing holds it, it comes through everywhere that is in the file system, and leaves nothing inside.
func TestMisbehave(t *testing.T) {
	w, err := newWorkspace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(w.dir) })
	got := parseOutcomes(misbehave(w.frontend, filepath.Dir(w.outside)).String())
	through := 0
	for _, a := range got {
		if a.became == cameThrough {
			through++
		}
	}
	if through < 10 {
		t.Errorf("only %d came through:\n%s", through, got)
	}
	left, _ := filepath.Glob(filepath.Join(w.frontend, ".*"))
	if len(left) > 0 {
		t.Errorf("it left %q", left)
	}
}
