package approval

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// heard collects the answers to calls, by their id.
type heard struct {
	mu sync.Mutex
	by map[string]Answer
}

func listener() *heard { return &heard{by: map[string]Answer{}} }

func (h *heard) get(id string) Answer {
	a, _ := h.answer(id)
	return a
}

func (h *heard) answer(id string) (Answer, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a, ok := h.by[id]
	return a, ok
}

func (h *heard) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.by)
}

func (h *heard) call(id, key string) Call {
	return Call{Question: Question{ID: id, Choices: []Choice{{}, {Allow: true}, {Allow: true, Session: true, Scope: "s"}}, Remember: true}, Key: key, Session: "s1",
		Answered: func(a Answer) {
			h.mu.Lock()
			defer h.mu.Unlock()
			if _, twice := h.by[id]; twice {
				panic("answered twice")
			}
			h.by[id] = a
		}}
}

var yes = Reply{Choice: Choice{Allow: true}}

func ids(d *Desk) string {
	s, _ := d.State()
	var list []string
	for _, q := range s.Questions {
		id := q.ID
		if q.Behind > 0 {
			id += fmt.Sprintf("+%d", q.Behind)
		}
		list = append(list, id)
	}
	return strings.Join(list, " ")
}

func TestTheFirstAnswerWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, h := NewDesk(DeskOptions{}), listener()
		var w *Waiting
		c := h.call("a", "k")
		c.Asked = func(asked *Waiting) { w = asked }
		d.Ask(t.Context(), c)
		if err := d.Answer("a", Reply{Note: "not this one"}, ByTerminal, "me"); err != nil {
			t.Fatal(err)
		}
		if w.Answer(Answer{Choice: Choice{Allow: true}, Road: ByClient}) {
			t.Error("the second answer was taken")
		}
		if err := d.Answer("a", yes, ByTerminal, "me"); err != ErrNoQuestion {
			t.Errorf("the third answer: %v", err)
		}
		if a := h.get("a"); a.Allow || a.Note != "not this one" || a.Road != ByTerminal || a.Who != "me" {
			t.Errorf("the answer is %+v", a)
		}
	})
}

func TestTimeEndsAQuestionAsANo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, h := NewDesk(DeskOptions{}), listener()
		d.Ask(t.Context(), h.call("a", "k"))
		time.Sleep(DefaultWait - time.Second)
		synctest.Wait()
		if h.len() != 0 {
			t.Fatalf("answered early: %v", h.by)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if a := h.get("a"); a.Allow || a.Road != TimedOut {
			t.Errorf("the answer is %+v", a)
		}
		if got := ids(d); got != "" {
			t.Errorf("still open: %s", got)
		}
	})
}

// Calls that are the same are one question. A no is for all of them; a yes for once is for one of them.
func TestTheSameCallsAreOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, h := NewDesk(DeskOptions{}), listener()
		gone, leave := context.WithCancel(t.Context())
		d.Ask(gone, h.call("a", "k"))
		d.Ask(t.Context(), h.call("b", "k"))
		d.Ask(t.Context(), h.call("c", "k"))
		d.Ask(t.Context(), h.call("x", "other"))
		if got, want := ids(d), "a+2 x"; got != want {
			t.Fatalf("open are %q, want %q", got, want)
		}
		if err := d.Answer("b", yes, ByTerminal, ""); err == nil {
			t.Error("a yes went to a call that nobody is asked about")
		}
		leave()
		synctest.Wait()
		if got, want := ids(d), "b+1 x"; got != want || h.get("a").Road != Withdrawn {
			t.Fatalf("open are %q, want %q; a got %+v", got, want, h.get("a"))
		}
		if err := d.Answer("b", yes, ByTerminal, ""); err != nil {
			t.Fatal(err)
		}
		if got, want := ids(d), "c x"; got != want || !h.get("b").Allow {
			t.Fatalf("open are %q, want %q; b got %+v", got, want, h.get("b"))
		}
		d.Ask(t.Context(), h.call("d", "k"))
		if err := d.Answer("c", Reply{Choice: Choice{Allow: true, Session: true}}, ByTerminal, ""); err != nil {
			t.Fatal(err)
		}
		if !h.get("c").Allow || !h.get("d").Allow || h.get("d").Scope != "s" {
			t.Errorf("a yes for the session: c got %+v, d got %+v", h.get("c"), h.get("d"))
		}
	})
}

// A call that was told to come again gets its answer then, once.
func TestACallComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, h := NewDesk(DeskOptions{}), listener()
		var w *Waiting
		c := h.call("a", "k")
		c.Asked = func(asked *Waiting) { w = asked }
		d.Ask(t.Context(), c)
		if !w.Later() || w.Later() {
			t.Fatal("it may leave once")
		}
		d.Ask(t.Context(), h.call("b", "k")) // while it is open
		if q, err := d.Question("a", nil); err != nil || q.ID != "b" {
			t.Errorf("the id that a person read first is now %q: %v", q.ID, err)
		}
		if err := d.Answer("a", yes, ByTerminal, ""); err != nil || !h.get("b").Allow {
			t.Fatalf("%v: b got %+v", err, h.get("b"))
		}
		d.Ask(t.Context(), h.call("c", "k"))
		if got := ids(d); got != "c" {
			t.Fatalf("the yes was good twice: open are %q", got)
		}
		d.Answer("c", Reply{}, ByTerminal, "")

		c = h.call("d", "k")
		c.Asked = func(asked *Waiting) { w = asked }
		d.Ask(t.Context(), c)
		w.Later()
		if err := d.Answer("d", yes, ByTerminal, ""); err != nil { // and behind it
			t.Fatal(err)
		}
		d.Ask(t.Context(), h.call("e", "k"))
		d.Ask(t.Context(), h.call("f", "k"))
		if _, answered := h.answer("f"); !h.get("e").Allow || answered {
			t.Errorf("e got %+v, f got %+v", h.get("e"), h.get("f"))
		}
		d.Answer("f", Reply{}, ByTerminal, "")

		c = h.call("g", "k")
		c.Asked = func(asked *Waiting) { w = asked }
		d.Ask(t.Context(), c)
		w.Later()
		d.Answer("g", yes, ByTerminal, "")
		time.Sleep(keepFor)
		d.Ask(t.Context(), h.call("h", "k"))
		if got := ids(d); got != "h" {
			t.Errorf("a yes is good for ever: open are %q", got)
		}
		d.Answer("h", Reply{}, ByTerminal, "")
	})
}

// The call behind one that was told to come again has all of its time: an answer within it counts, and none comes after.
func TestTheNextCallHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, h := NewDesk(DeskOptions{}), listener()
		var w *Waiting
		c := h.call("a", "k")
		c.Asked = func(asked *Waiting) { w = asked }
		d.Ask(t.Context(), c)
		d.Ask(t.Context(), h.call("b", "k"))
		time.Sleep(DefaultWait - time.Second)
		w.Later()
		s, _ := d.State()
		if left := time.Until(s.Questions[0].Until); s.Questions[0].ID != "b" || left != DefaultWait {
			t.Errorf("%s is asked about, for %v", s.Questions[0].ID, left)
		}
		time.Sleep(time.Minute)
		if err := d.Answer("b", yes, ByTerminal, ""); err != nil || !h.get("b").Allow {
			t.Errorf("%v: b got %+v", err, h.get("b"))
		}
	})
}

func TestFloodsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, h := NewDesk(DeskOptions{}), listener()
		for i := range maxOpen + 1 {
			d.Ask(t.Context(), h.call(fmt.Sprint(i), fmt.Sprint("k", i)))
		}
		if h.len() != 1 || h.get(fmt.Sprint(maxOpen)).Road != Flooded {
			t.Fatalf("answered are %v", h.by)
		}
		other := h.call("other", "o")
		other.Session = "s2"
		d.Ask(t.Context(), other)
		if h.len() != 1 {
			t.Error("one session floods another")
		}
		for i := range maxOpen {
			d.Answer(fmt.Sprint(i), Reply{}, ByTerminal, "")
		}
		for i := range maxRate {
			id := fmt.Sprint("r", i)
			d.Ask(t.Context(), h.call(id, id))
			d.Answer(id, Reply{}, ByTerminal, "")
		}
		if a := h.get(fmt.Sprint("r", maxRate-1)); a.Road != Flooded {
			t.Errorf("the last of many questions got %+v", a)
		}
		time.Sleep(time.Minute)
		d.Ask(t.Context(), h.call("later", "later"))
		if _, answered := h.answer("later"); answered {
			t.Error("a flood never ends")
		}
		d.Answer("later", Reply{}, ByTerminal, "")
		d.Answer("other", Reply{}, ByTerminal, "")
	})
}

// A clock that is set while a question waits makes a yes a no, and a no stays one.
func TestAClockThatIsSet(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, time.Hour} {
		at := time.Now()
		d, h := NewDesk(DeskOptions{Now: func() time.Time { return at }}), listener()
		d.Ask(t.Context(), h.call("a", "k"))
		at = at.Add(jump)
		if err := d.Answer("a", yes, ByTerminal, "me"); err != nil {
			t.Fatal(err)
		}
		if a := h.get("a"); a.Allow || a.Road != ClockMoved || a.Who != "me" {
			t.Errorf("after %v: %+v", jump, a)
		}
	}
}

// Of sessions that are gone nothing is left but what holds for a minute.
func TestSessionsAreForgotten(t *testing.T) {
	at := time.Now()
	d, h := NewDesk(DeskOptions{Now: func() time.Time { return at }}), listener()
	for i := range 100 {
		c := h.call(fmt.Sprint(i), fmt.Sprint(i))
		c.Session = fmt.Sprint(i)
		d.Ask(t.Context(), c)
		at = at.Add(time.Second)
	}
	if n := len(d.asked); n > 60 {
		t.Errorf("%d sessions are kept", n)
	}
}

func TestPause(t *testing.T) {
	d, h := NewDesk(DeskOptions{}), listener()
	if d.Hold(t.Context(), h.call("a", "k")) {
		t.Fatal("a call is held without a pause")
	}
	d.Pause(true)
	ctx, leave := context.WithCancel(t.Context())
	for _, id := range []string{"a", "b", "c"} {
		if !d.Hold(ctx, h.call(id, "k")) {
			t.Fatal("a call is not held")
		}
	}
	if err := d.Answer("a", Reply{Note: "no"}, ByTerminal, ""); err != nil || h.get("a").Allow {
		t.Errorf("%v: a got %+v", err, h.get("a"))
	}
	if err := d.Answer("b", yes, ByTerminal, ""); err != nil || !h.get("b").Allow {
		t.Errorf("%v: b got %+v", err, h.get("b"))
	}
	if err := d.Answer("c", Reply{Choice: Choice{Allow: true, Session: true}}, ByTerminal, ""); err == nil {
		t.Error("more than one call was let through")
	}
	d.Pause(false)
	if !h.get("c").Allow || h.get("c").Road != Resumed {
		t.Errorf("c got %+v", h.get("c"))
	}
	leave()
}

func TestChoices(t *testing.T) {
	q := Question{Remember: true, Targets: []string{"/w/a/x", "/w/b/y"}, Choices: []Choice{{}, {Allow: true}, {Allow: true, Session: true, Scope: "in /w"}, {Allow: true, Under: "/w"}}}
	for word, want := range map[string]Choice{
		"deny": {}, "": {}, "allow": {}, "allow once": {Allow: true}, "allow this session": {Allow: true, Session: true, Scope: "in /w"},
		"allow under /w": {Allow: true, Under: "/w"}, "allow under /": {},
	} {
		if got := q.Choice(word); got != want {
			t.Errorf("%q is %+v, want %+v", word, got, want)
		}
	}
	for _, tt := range []struct {
		c  Choice
		ok bool
	}{
		{Choice{}, true}, {Choice{Allow: true}, true}, {Choice{Allow: true, Under: "/w"}, true}, {Choice{Allow: true, Under: "/w/"}, true},
		{Choice{Allow: true, Under: "/w/a"}, false}, {Choice{Allow: true, Under: "/w/./"}, true}, {Choice{Allow: true, Host: "h"}, false},
		{Choice{Allow: true, Session: true, For: time.Hour}, true}, {Choice{Allow: true, For: MaxFor + 1}, false}, {Choice{Allow: true, For: -1}, false},
	} {
		if _, err := q.Check(tt.c); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt.c, err)
		}
	}
	same := q
	same.Same = true
	for _, c := range []Choice{{Allow: true, Under: "/w"}, {Allow: true, Session: true, Under: "/w"}, {Allow: true, Host: "h"}} {
		if _, err := same.Check(c); err == nil {
			t.Errorf("%+v is more than the same arguments", c)
		}
	}
	if _, err := same.Check(Choice{Allow: true, For: time.Hour}); err != nil {
		t.Error(err)
	}
	both := q
	both.Hosts = []string{"h"}
	for _, c := range []Choice{{Allow: true, Under: "/w"}, {Allow: true, Host: "h"}} {
		if _, err := both.Check(c); err == nil {
			t.Errorf("%+v is for a call that has a path and a host", c)
		}
	}
	q.Remember = false
	if _, err := q.Check(Choice{Allow: true, Session: true}); err == nil {
		t.Error("what is never remembered is")
	}
	if _, err := q.Check(Choice{Session: true, Under: "/w"}); err != nil {
		t.Error(err)
	}
}

func TestTextIsBoundedAndShowsWhatIsHidden(t *testing.T) {
	q := Question{ID: "c7f3a2", Head: "write\u202e_file\nin \x1b[2Jx", Digest: "d1", Why: "it\u200b writes", Diff: strings.Repeat("+ a line\n", 1000)}
	for _, max := range []int{300, 2000} {
		text := q.Text(max)
		if len(text) > max+64 {
			t.Errorf("with %d bytes it has %d", max, len(text))
		}
		first, _, _ := strings.Cut(text, "\n")
		if want := `write⟨U+202E⟩_file\nin ⟨U+001B⟩[2Jx`; first != want {
			t.Errorf("the first line is %q, want %q", first, want)
		}
		for _, want := range []string{"it⟨U+200B⟩ writes", "d1", "more lines", "rootbound approve show c7f3a2"} {
			if !strings.Contains(text, want) {
				t.Errorf("with %d bytes there is no %q:\n%s", max, want, text)
			}
		}
	}
	// Many facts do not push out why it is asked, and that some are missing is said.
	q.Facts = []string{"client: x"}
	for i := range 30 {
		q.Facts = append(q.Facts, fmt.Sprintf("%q: %s", fmt.Sprint("arg", i), strings.Repeat("é", 300)))
	}
	text := q.Text(2000)
	for _, want := range []string{"\nclient: x\n", "\n\"arg0\": é", " more such lines are not shown here)\n", "\nwhy: it⟨U+200B⟩ writes\ndigest: d1\n", "more lines of the change", "rootbound approve show c7f3a2"} {
		if !strings.Contains(text, want) {
			t.Errorf("with many facts there is no %q:\n%s", want, text)
		}
	}
	if len(text) > 2064 {
		t.Errorf("with many facts it has %d bytes", len(text))
	}
	if got := Line("aé", 2); got != "a… (2 bytes more)" {
		t.Errorf("got %q", got)
	}
}
