package ui

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// reports collects what the person in the terminal reads.
type reports struct {
	mu    sync.Mutex
	lines []string
}

func (r *reports) report(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// take returns what was reported since the last time.
func (r *reports) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	return lines
}

func TestWhatComesOftenIsToldSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told reports
		f := &few{report: told.report}
		flood := func(n int) {
			for i := range n {
				f.tell("link", "nobody %d", i)
			}
		}
		want := func(lines ...string) {
			t.Helper()
			synctest.Wait()
			if got := told.take(); !slices.Equal(got, lines) {
				t.Errorf("told was %q, want %q", got, lines)
			}
		}
		flood(100)
		f.tell("other", "of another kind")
		want("nobody 0", "nobody 1", "nobody 2", "nobody 3", "nobody 4", "nobody 5", "nobody 6", "nobody 7", "of another kind")
		time.Sleep(time.Minute)
		want("92 more like this: nobody 99")
		flood(1)
		time.Sleep(time.Minute)
		want()
		time.Sleep(time.Minute)
		want("1 more like this: nobody 0")
		time.Sleep(4 * time.Minute) // nothing came
		want()
		flood(1)
		want("nobody 0")
		time.Sleep(time.Hour)

		// A day of it.
		lines := 0
		for range 24 * 60 {
			flood(1000)
			time.Sleep(time.Minute)
			synctest.Wait()
			lines += len(told.take())
		}
		if lines < 24 || lines > 40 {
			t.Errorf("a day of it is %d lines", lines)
		}
		flood(3)
		f.end()
		if got := told.take(); len(got) != 1 || !strings.HasSuffix(got[0], "more like this: nobody 2") {
			t.Errorf("at the end %q is told", got)
		}
		flood(100)
		want()
	})
}

func TestWhoTriesLinksDoesNotFloodTheTerminal(t *testing.T) {
	var told reports
	s := serve(t, Options{Report: told.report})
	b := &browser{served: s}
	const n = 60
	for range n {
		if status, _, _ := b.do("POST", "/api/open", `{"token":"guessed"}`); status != 403 {
			t.Fatalf("a token that was guessed: %d", status)
		}
	}
	s.letIn() // which is always told
	s.end()
	got := told.take()
	if len(got) != tellAtOnce+2 || got[tellAtOnce] != "the page is open in a browser" || !strings.HasPrefix(got[tellAtOnce+1], fmt.Sprint(n-tellAtOnce)+" more like this: somebody came with a link") {
		t.Errorf("told was %q", got)
	}
}
