package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/approval"
)

// A person sees one question at a time, and a key answers what was on the screen for a moment.
func TestScreen(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var answers []string
	paused := false
	s := &screen{
		guards: map[string]*known{}, now: func() time.Time { return now },
		answer: func(w waiting, r approval.Reply) error {
			answers = append(answers, fmt.Sprintf("%s %s %s", w.ID, r.Word(), r.Note))
			return nil
		},
		pause:  func(p bool) error { paused = p; return nil },
		paused: func() bool { return paused },
	}
	press := func(keys ...string) {
		for _, k := range keys {
			msg := keyMsg{k, k}
			if len(k) > 1 {
				msg.text = ""
			}
			if !s.update(msg) {
				t.Errorf("%s ends it", k)
			}
		}
	}
	question := func(id string, asked time.Duration) approval.Question {
		return approval.Question{
			ID: id, Head: "files: write_file \x1b[2J" + id, Facts: []string{"path: /w/" + id}, Diff: "--- a\n+++ b\n@@\n-old\n+new\n" + strings.Repeat("+more\n", 100),
			Args: json.RawMessage(`{"path":"x\u202e"}`), Size: 20, Asked: now.Add(asked), Until: now.Add(asked + 5*time.Minute),
			Choices: []approval.Choice{{}, {Allow: true}, {Allow: true, Session: true, Scope: "all of it"}},
		}
	}
	state := func(qs ...approval.Question) {
		s.update(approval.Event{Guard: approval.Guard{Server: "files", PID: 7}, State: &approval.State{Questions: qs}})
	}
	want := func(texts ...string) {
		t.Helper()
		got := s.text()
		for _, w := range texts {
			if !strings.Contains(got, w) {
				t.Errorf("there is no %q on\n%s", w, got)
			}
		}
		if strings.ContainsAny(got, "\x1b\u202e") {
			t.Errorf("the screen obeys what a peer wrote: %q", got)
		}
		lines := strings.Split(got, "\n")
		if s.height > 0 && len(lines) != s.height {
			t.Errorf("it has %d lines of %d:\n%s", len(lines), s.height, got)
		}
		for _, l := range lines {
			if n := len([]rune(l)); s.width > 0 && n > s.width {
				t.Errorf("a line is %d long: %q", n, l)
			}
		}
	}
	s.resize(60, 24)
	want("0 guards, 0 questions", "Nothing waits for you.")
	a, b := question("aaa", 0), question("bbb", time.Second)
	state(a, b)
	want("> aaa", "bbb", "path: /w/aaa", "-old", "lines more", "2  allow once", "3  allow this session: all of it")

	press("2")
	want("press the key again")
	now = now.Add(time.Second)
	press("2")
	state(b)
	want("> bbb", "aaa: allow once")
	press("3") // meant for the one before
	want("press the key again")
	now = now.Add(time.Second)
	press("6", "n", "n", "o", " ", "esc", "n", "w", "h", "y", "enter")
	want("bbb: deny")
	state(a, b)
	press("p")
	want("PAUSED")
	press("p")
	press("down", "j", "k", "1")
	if got, want := strings.Join(answers, "; "), "aaa allow once ; bbb deny why; aaa deny "; got != want {
		t.Errorf("the answers are %q, want %q", got, want)
	}
	s.update(approval.Event{Guard: approval.Guard{Server: "files", PID: 7}, Now: &approval.Now{
		Server: "files", PID: 7, Command: []string{"server\x1b[2J"}, Questions: 2, Roots: []approval.Root{
			{Name: "docs", Path: "/w/docs", Access: "rw", State: approval.Open}, {Path: "/w/gone", Access: "ro", State: approval.Unavailable, Reason: "it does not exist"},
		},
		Layers:  []approval.Layer{{Name: "told", Holds: true, Text: "told"}, {Name: "confined", Text: "not confined"}},
		Clients: []approval.Client{{Name: "client\u202e", Version: "1", Revision: "2025-11-25", ServerRevision: "2026-07-28"}},
	}})
	if got := s.text(); strings.Contains(got, "process 7") {
		t.Errorf("the guard is shown where a question is:\n%s", got)
	}
	press("tab")
	want("process 7", "/w/docs (rw)", "/w/gone (ro): UNAVAILABLE, it does not exist", "not confined", "2 calls: `rootbound approve`", "Tab the questions")
	press("1", "n") // no question is to be seen
	if len(answers) != 3 || s.noting {
		t.Errorf("a key answered what is not shown: %q", answers)
	}
	press("tab")
	want("> aaa")
	state()
	want("Nothing waits for you.", "process 7", "the server speaks 2026-07-28")
	s.update(approval.Event{Guard: approval.Guard{Server: "files", PID: 7}, Gone: true})
	want("0 guards, 0 questions")
	press("2")
	for _, size := range [][2]int{{20, 6}, {200, 50}, {8, 3}} {
		s.resize(size[0], size[1])
		state(a, b)
		s.text() // it is too small, perhaps, and does not fail
	}
	if s.update(keyMsg{"q", "q"}) {
		t.Error("q does not end it")
	}
}

// What does not fit goes on behind a blank, and all of it is there.
func TestScreenWraps(t *testing.T) {
	for _, tt := range []struct {
		width      int
		text, want string
	}{
		{20, "a file that exists, of 8 bytes", "a file that exists, |of 8 bytes"},
		{20, "a file that exists of 8 bytes", "a file that exists |of 8 bytes"},
		{20, "short", "short"},
		{10, "a /very/long/path/without/one", "a /very/lo|ng/path/wi|thout/one"},
		{10, "0123456789 abc", "0123456789| abc"},
		{6, "漢字漢字 漢字", "漢字漢|字 |漢字"},
		{1, "漢字", "漢|字"},
		{0, "as it is", "as it is"},
	} {
		s := screen{width: tt.width}
		if got := strings.Join(s.wrap(tt.text), "|"); got != tt.want {
			t.Errorf("%d: %q, want %q", tt.width, got, tt.want)
		}
	}
}
