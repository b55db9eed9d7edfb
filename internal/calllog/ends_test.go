package calllog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadEnds(t *testing.T) {
	const start, a, b = `{"kind":"start","server":"s"}` + "\n", `{"kind":"note","text":"a"}` + "\n", `{"kind":"note","text":"b"}` + "\n"
	long := `{"kind":"note","text":"` + strings.Repeat("x", 1000) + `"}` + "\n"
	longer := `{"kind":"note","text":"` + strings.Repeat("y", 10_000) + `"}` + "\n"
	for _, tt := range []struct {
		name, file string
		size       int64
		want       string
		whole      bool
	}{
		{"all", start + a + b, 1000, "start: start note:a note:b", true},
		{"just all", start + a + b, int64(len(start + a + b)), "start: start note:a note:b", true},
		{"the last", start + a + b, int64(len(b) + 1), "start: note:b", false},
		{"from the middle of a line", start + a + b, int64(len(a) + len(b)), "start: note:b", false},
		{"not one fits", start + longer + long, 10, "start: note:" + strings.Repeat("x", 1000), false},
		{"just being written", start + a + b[:5], 1000, "start: start note:a", true},
		{"just being written, not one fits", start + a + long[:900], 10, "start: start note:a", true},
		{"the first just being written", start[:9], 1000, ":", true},
		{"nothing yet", "", 1000, ":", true},
		{"not a record", start + "nonsense\n\n" + a, 1000, "start: start note:a", true},
		{"no start", a + b, 1000, ": note:a note:b", true},
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		ends, err := ReadEnds(path, tt.size)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		got := string(ends.Start.Kind) + ":"
		for _, e := range ends.Last {
			got += strings.TrimSuffix(" "+string(e.Kind)+":"+e.Text, ":")
		}
		if got != tt.want || ends.Whole != tt.whole {
			t.Errorf("%s: got %s, whole %v; want %s, %v", tt.name, got, ends.Whole, tt.want, tt.whole)
		}
	}
	if _, err := ReadEnds(filepath.Join(t.TempDir(), "missing"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestRuns(t *testing.T) {
	dir := t.TempDir()
	now := someTime
	a := create(t, dir, "a", &now)
	now = now.Add(time.Second)
	b := create(t, dir, "b", &now)
	expect := func(want ...Run) {
		t.Helper()
		got, err := Runs(dir)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	expect(Run{a.Path(), true}, Run{b.Path(), true})
	a.Close(0, "")
	expect(Run{a.Path(), false}, Run{b.Path(), true})
	if _, err := Runs(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
}

// TestAskedWhileCreated: whoever looks what runs does not get into the way of what starts.
func TestAskedWhileCreated(t *testing.T) {
	dir := t.TempDir()
	now := someTime
	done := make(chan struct{})
	var askers sync.WaitGroup
	for range 4 {
		askers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if _, err := Runs(dir); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range 100 {
		log := create(t, dir, "s", &now)
		if err := log.Close(0, ""); err != nil {
			t.Error(err)
		}
	}
	close(done)
	askers.Wait()
}

// TestAbove: a process stands behind another one while that one guards, and behind nobody who had its number before.
func TestAbove(t *testing.T) {
	dir := t.TempDir()
	now := someTime
	guards := func(server string, pid int) *Log {
		log, err := Create(dir, Record{Server: server, PID: pid}, Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { log.Close(0, "") })
		return log
	}
	before := guards("of yesterday", 42)
	before.Close(0, "")
	now = now.Add(time.Hour)
	log := guards("a-b/c", 42)
	guards("of another", 421)
	for pid, want := range map[int]string{42: "a-b/c", 421: "of another", 4: "", 0: ""} {
		if got := above(dir, pid); got != want {
			t.Errorf("process %d guards %q, want %q", pid, got, want)
		}
	}
	log.Close(0, "")
	if got := above(dir, 42); got != "" {
		t.Errorf("a guard that ended guards %q", got)
	}
}
