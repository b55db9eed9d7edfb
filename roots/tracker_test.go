package roots

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return start.Add(d) }

func list(dirs ...string) Answer { return Answer{Dirs: set(dirs...).Dirs()} }

func badList(uris ...string) (a Answer) {
	for _, u := range uris {
		a.Bad = append(a.Bad, &Error{Root: u, Reason: Missing})
	}
	return a
}

var (
	noAnswer  = Answer{Err: context.DeadlineExceeded}
	noMethod  = Answer{Err: errors.New("method not found"), Code: -32601}
	anError   = Answer{Err: errors.New("internal"), Code: -32603}
	withdrawn = Answer{Err: context.Canceled}
)

// ask makes the client answer once, at that time.
func ask(t *testing.T, tr *Tracker, when time.Duration, a Answer) Step {
	t.Helper()
	s := tr.Need(at(when))
	if !s.Ask || s.Question == 0 || !s.Until.Equal(at(when+5*time.Second)) {
		t.Fatalf("after %v, Need = %+v, want a question for 5 s", when, s)
	}
	return tr.Answer(at(when), s.Question, a)
}

func wantAsk(t *testing.T, tr *Tracker, when time.Duration, want bool) {
	t.Helper()
	if s := tr.Need(at(when)); s.Ask != want {
		t.Errorf("after %v, Need = %+v, want ask %v", when, s, want)
	}
}

func wantHolds(t *testing.T, tr *Tracker, why Why, want ...string) {
	t.Helper()
	s := tr.State()
	if got := texts(s.Set); s.Why != why || !slices.Equal(got, append([]string{}, want...)) {
		t.Errorf("%q holds, why %d; want %q, why %d\n%s", got, s.Why, want, why, s)
	}
}

var roots, changes = Client{Roots: true}, Client{Roots: true, ListChanged: true}

// The table of what holds when, row by row.
func TestWhatHolds(t *testing.T) {
	given := []string{"/a", "/b", "*/pin"}
	tests := []struct {
		row        string
		mode       Mode
		configured []string
		consented  []string
		client     Client
		answers    []Answer
		why        Why
		want       []string
		warnings   []string // of each answer, a part of it
	}{
		{row: "given, no capability", configured: given, why: NotAsked, want: given},
		{row: "given, ignored", mode: Ignore, configured: given, client: changes, why: NotAsked, want: given},
		{row: "given, not asked yet", configured: given, client: roots, why: Unanswered, want: given},
		{row: "given, an error", configured: given, client: roots, answers: []Answer{anError}, why: Unanswered, want: given,
			warnings: []string{"internal"}},
		{row: "given, no such method", configured: given, client: roots, answers: []Answer{noMethod}, why: Unanswered, want: given,
			warnings: []string{"method not found"}},
		{row: "given, no answer in time", configured: given, client: roots, answers: []Answer{noAnswer}, why: Unanswered, want: given,
			warnings: []string{"did not say within 5s"}},
		{row: "given, the first is empty", configured: given, client: roots, answers: []Answer{list()}, why: Unanswered, want: given,
			warnings: []string{"list is empty"}},
		{row: "given, one warning for all that", configured: given, client: roots, answers: []Answer{list(), anError, noAnswer},
			why: Unanswered, want: given, warnings: []string{"list is empty", "", ""}},
		{row: "given, usable", configured: given, client: roots, answers: []Answer{list("/a/x", "/b", "/c")}, why: Narrowed,
			want: []string{"/a/x", "/b", "*/pin"}, warnings: []string{""}},
		{row: "given, wider", configured: given, client: roots, answers: []Answer{list("/")}, why: Narrowed, want: given,
			warnings: []string{""}},
		{row: "given, an error after a usable list", configured: given, client: roots,
			answers: []Answer{list("/a"), anError, anError}, why: Narrowed, want: []string{"/a", "*/pin"},
			warnings: []string{"", "internal", ""}},
		{row: "given, no answer in time after a usable list", configured: given, client: roots,
			answers: []Answer{list("/a"), noAnswer, noAnswer}, why: Narrowed, want: []string{"/a", "*/pin"},
			warnings: []string{"", "did not say within 5s", ""}},
		{row: "given, no such method after a usable list", configured: given, client: roots,
			answers: []Answer{list("/a"), noMethod}, why: Narrowed, want: []string{"/a", "*/pin"}, warnings: []string{"", "method"}},
		{row: "given, usable after an error", configured: given, client: roots, answers: []Answer{anError, list("/a")}, why: Narrowed,
			want: []string{"/a", "*/pin"}, warnings: []string{"internal", ""}},
		{row: "given, none overlaps", configured: given, client: roots, answers: []Answer{list("/c", "/ab")}, why: NoOverlap,
			want: []string{"*/pin"}, warnings: []string{`client's list ("/c", "/ab") is configured ("/a", "/b", "/pin")`}},
		{row: "given, revoked", configured: given, client: roots, answers: []Answer{list("/a"), list()}, why: Revoked,
			want: []string{"*/pin"}, warnings: []string{"", "emptied"}},
		{row: "given, revoked and then an error", configured: given, client: roots, answers: []Answer{list("/a"), list(), noAnswer},
			why: Revoked, want: []string{"*/pin"}, warnings: []string{"", "emptied", "did not say"}},
		{row: "given, revoked and given again", configured: given, client: roots, answers: []Answer{list("/a"), list(), list("/b")},
			why: Narrowed, want: []string{"/b", "*/pin"}, warnings: []string{"", "emptied", ""}},
		{row: "given, mixed", configured: given, client: roots,
			answers: []Answer{{Dirs: list("/b").Dirs, Bad: badList("file:///gone", "vscode-remote:x").Bad}}, why: Narrowed,
			want: []string{"/b", "*/pin"}, warnings: []string{`"file:///gone"`}},
		{row: "given, only bad", configured: given, client: roots, answers: []Answer{badList("file:///gone")}, why: OnlyBad,
			want: []string{"*/pin"}, warnings: []string{`"file:///gone"`}},
		{row: "given, only bad, then an error", configured: given, client: roots, answers: []Answer{badList("file:///gone"), anError},
			why: OnlyBad, want: []string{"*/pin"}, warnings: []string{"gone", "internal"}},
		{row: "given, only bad, then empty", configured: given, client: roots, answers: []Answer{badList("file:///gone"), list()},
			why: Revoked, want: []string{"*/pin"}, warnings: []string{"gone", "emptied"}},
		{row: "given, accept", mode: Accept, configured: given, client: roots, answers: []Answer{list("/a/x", "/c")}, why: Narrowed,
			want: []string{"/a/x", "*/pin"}, warnings: []string{""}},
		{row: "given, accept, an error", mode: Accept, configured: given, client: roots, answers: []Answer{anError}, why: Unanswered,
			want: given, warnings: []string{"internal"}},
		{row: "none", why: NothingConfigured},
		{row: "none, capability", client: changes, why: NothingConfigured},
		{row: "none, ignored", mode: Ignore, client: changes, why: NothingConfigured},
		{row: "none, accept, no capability", mode: Accept, why: NothingConfigured},
		{row: "none, accept, not asked yet", mode: Accept, client: roots, why: Unanswered},
		{row: "none, accept, an error", mode: Accept, client: roots, answers: []Answer{anError}, why: Unanswered,
			warnings: []string{"internal"}},
		{row: "none, accept, usable, no consent", mode: Accept, client: roots, answers: []Answer{list("/a", "/b")}, why: Accepted,
			warnings: []string{""}},
		{row: "none, accept, usable", mode: Accept, consented: []string{"/a", "/b"}, client: roots, answers: []Answer{list("/a", "/b")},
			why: Accepted, want: []string{"/a", "/b"}, warnings: []string{""}},
		{row: "none, accept, consent to a part", mode: Accept, consented: []string{"/a", "/b/x"}, client: roots,
			answers: []Answer{list("/a/y", "/b", "/c")}, why: Accepted, want: []string{"/a/y"}, warnings: []string{""}},
		{row: "none, consent without accept", consented: []string{"/a"}, client: roots, why: NothingConfigured},
		{row: "given, consent to more", mode: Accept, configured: given, consented: []string{"/c"}, client: roots,
			answers: []Answer{list("/a", "/c")}, why: Narrowed, want: []string{"/a", "*/pin"}, warnings: []string{""}},
		{row: "none, accept, an error after a usable list", mode: Accept, consented: []string{"/"}, client: roots, answers: []Answer{list("/a"), anError},
			why: Accepted, want: []string{"/a"}, warnings: []string{"", "internal"}},
		{row: "none, accept, revoked", mode: Accept, client: roots, answers: []Answer{list("/a"), list()}, why: Revoked,
			warnings: []string{"", "emptied"}},
		{row: "none, accept, only bad", mode: Accept, client: roots, answers: []Answer{badList("file:///gone")}, why: OnlyBad,
			warnings: []string{"gone"}},

		{row: "rights are the configured ones", configured: []string{"/a r", "/b"}, client: roots, answers: []Answer{list("/")},
			why: Narrowed, want: []string{"/a r", "/b"}, warnings: []string{""}},
		{row: "a read-only directory inside a pinned one stays so", configured: []string{"*/p", "/p/ro r", "/a"}, client: roots,
			answers: []Answer{list("/c")}, why: NoOverlap, want: []string{"*/p", "/p/ro r"}, warnings: []string{"nothing in"}},
		{row: "what is pinned and listed stays pinned", configured: []string{"*/p r", "/a"}, client: roots, answers: []Answer{list("/p")},
			why: Narrowed, want: []string{"*/p r"}, warnings: []string{""}},
		{row: "a list inside what is pinned takes nothing away", configured: []string{"*/p"}, client: roots,
			answers: []Answer{list("/p/x r")}, why: Narrowed, want: []string{"*/p", "/p/x"}, warnings: []string{""}},
	}
	for _, test := range tests {
		t.Run(test.row, func(t *testing.T) {
			tr := NewTracker(test.mode, set(test.configured...))
			if s := tr.Consent(set(test.consented...)); s != (Step{}) {
				t.Errorf("consent before there is a list: %+v", s)
			}
			tr.Client(test.client)
			if test.answers == nil && test.client.Roots && test.why != Unanswered {
				wantAsk(t, tr, 0, false)
			}
			for i, a := range test.answers {
				before := tr.State().Set
				s := ask(t, tr, time.Duration(i)*time.Minute, a)
				if (s.Warning == "") != (test.warnings[i] == "") || !strings.Contains(s.Warning, test.warnings[i]) {
					t.Errorf("answer %d warns %q, want %q", i, s.Warning, test.warnings[i])
				}
				if s.Changed == before.Equal(tr.State().Set) {
					t.Errorf("answer %d: changed %v, from %q to %q", i, s.Changed, texts(before), texts(tr.State().Set))
				}
			}
			wantHolds(t, tr, test.why, test.want...)
		})
	}
}

func TestZeroTracker(t *testing.T) {
	var tr Tracker
	tr.Client(changes)
	wantAsk(t, &tr, 0, false)
	wantHolds(t, &tr, NothingConfigured)
	if s := tr.Answer(at(0), 1, list("/")); s != (Step{}) {
		t.Errorf("an answer that nobody asked for: %+v", s)
	}
	wantHolds(t, &tr, NothingConfigured)
	if got := tr.State().String(); got != "nothing is allowed: no directory is configured" {
		t.Errorf("got %q", got)
	}
}

func narrow(c Client, configured ...string) *Tracker {
	tr := NewTracker(Narrow, set(configured...))
	tr.Client(c)
	return tr
}

func TestTheAnswerIsKeptForTheSession(t *testing.T) {
	tr := narrow(changes, "/a", "/b")
	ask(t, tr, 0, list("/a"))
	wantAsk(t, tr, 10*time.Hour, false)
	if s := tr.ListChanged(); s != (Step{}) {
		t.Errorf("list_changed does more than mark the list: %+v", s)
	}
	wantHolds(t, tr, Narrowed, "/a")
	ask(t, tr, 10*time.Hour+time.Second, list("/b"))
	wantHolds(t, tr, Narrowed, "/b")
	wantAsk(t, tr, 20*time.Hour, false)
}

func TestWithoutListChangedAnAnswerIsKept30Seconds(t *testing.T) {
	tr := narrow(roots, "/a", "/b")
	ask(t, tr, 0, list("/a"))
	wantAsk(t, tr, 29*time.Second, false)
	ask(t, tr, 30*time.Second, list("/b"))
	wantAsk(t, tr, 59*time.Second, false)
	wantAsk(t, tr, 60*time.Second, true)
}

func TestListChangedFromWhoDidNotDeclareIt(t *testing.T) {
	tr := narrow(roots, "/a")
	ask(t, tr, 0, list("/a"))
	if s := tr.ListChanged(); !strings.Contains(s.Warning, "did not declare") {
		t.Errorf("dropped without a word: %+v", s)
	}
	if s := tr.ListChanged(); s != (Step{}) {
		t.Errorf("warned of twice: %+v", s)
	}
	wantAsk(t, tr, time.Second, false)
}

func TestOneQuestionInFlight(t *testing.T) {
	tr := narrow(changes, "/a", "/b")
	first := tr.Need(at(0))
	if !first.Ask {
		t.Fatalf("Need = %+v", first)
	}
	// Another request waits for the same answer, and what held before holds meanwhile.
	second := tr.Need(at(time.Second))
	if second.Ask || second.Question != first.Question || !second.Until.Equal(at(5*time.Second)) {
		t.Errorf("Need = %+v, want to wait for question %d", second, first.Question)
	}
	wantHolds(t, tr, Unanswered, "/a", "/b")
	tr.Answer(at(2*time.Second), first.Question, list("/a"))
	wantHolds(t, tr, Narrowed, "/a")
	if s := tr.Need(at(3 * time.Second)); s != (Step{}) {
		t.Errorf("Need = %+v after the answer", s)
	}
}

func TestASilentClientCostsOneWaitIn30Seconds(t *testing.T) {
	for _, reported := range []bool{true, false} {
		tr := narrow(changes, "/a")
		q := tr.Need(at(0)).Question
		var s Step
		if reported {
			s = tr.Answer(at(5*time.Second), q, noAnswer)
		} else { // by whoever comes next, when the one who asked is gone
			s = tr.Need(at(5 * time.Second))
		}
		if s.Ask || s.Question != 0 || s.Warning == "" || s.Changed {
			t.Errorf("after 5 s: %+v", s)
		}
		tr.ListChanged() // asks no sooner
		for _, when := range []time.Duration{6, 20, 34} {
			if s := tr.Need(at(when * time.Second)); s != (Step{}) {
				t.Errorf("after %d s: %+v, want to go on", when, s)
			}
			if s := tr.Denied(at(when*time.Second), at(when*time.Second), "/a/x"); s != (Step{}) {
				t.Errorf("denied after %d s: %+v, want to go on", when, s)
			}
		}
		again := tr.Need(at(35 * time.Second))
		if !again.Ask {
			t.Errorf("not asked again: %+v", again)
		}
		// Who comes meanwhile goes on with what holds.
		if s := tr.Need(at(36 * time.Second)); s != (Step{}) {
			t.Errorf("waits again: %+v", s)
		}
	}
}

func TestALateListCounts(t *testing.T) {
	tr := narrow(changes, "/a", "/b", "/c")
	first := tr.Need(at(0)).Question
	tr.Answer(at(5*time.Second), first, noAnswer)
	if s := tr.Answer(at(9*time.Second), first, list("/a")); !s.Changed {
		t.Errorf("a late list: %+v", s)
	}
	wantHolds(t, tr, Narrowed, "/a")
	wantAsk(t, tr, 10*time.Second, false)

	// But not one that is older than what came since, and not an error for a question that was given up.
	tr.ListChanged()
	second := tr.Need(at(20 * time.Second)).Question
	tr.Need(at(26 * time.Second))
	third := tr.Need(at(60 * time.Second)).Question
	tr.Answer(at(61*time.Second), third, list("/b"))
	tr.Answer(at(62*time.Second), second, list("/c"))
	tr.Answer(at(63*time.Second), second, anError)
	tr.Answer(at(63*time.Second), third+1, list("/c"))
	wantHolds(t, tr, Narrowed, "/b")
	if err := tr.State().Failed; err != nil {
		t.Errorf("failed with %v", err)
	}
}

func TestAChangeWhileAskingAsksAgain(t *testing.T) {
	tr := narrow(changes, "/a", "/b")
	q := tr.Need(at(0)).Question
	tr.ListChanged()
	tr.Answer(at(time.Second), q, list("/a"))
	wantHolds(t, tr, Narrowed, "/a")
	ask(t, tr, 2*time.Second, list("/b"))
	wantAsk(t, tr, 3*time.Second, false)
}

func TestNoSuchMethodIsNotAskedAgain(t *testing.T) {
	for _, earlier := range []bool{false, true} {
		tr := narrow(changes, "/a", "/b")
		if earlier {
			ask(t, tr, 0, list("/a"))
			tr.ListChanged()
		}
		ask(t, tr, time.Minute, noMethod)
		tr.ListChanged()
		wantAsk(t, tr, time.Hour, false)
		if s := tr.Denied(at(time.Hour), at(time.Hour), "/a/x"); s.Ask {
			t.Errorf("asked again when denied: %+v", s)
		}
	}
}

func TestAfterAnErrorOrAnEmptyListAskedAgainLater(t *testing.T) {
	for _, a := range []Answer{anError, list()} {
		tr := narrow(changes, "/a")
		ask(t, tr, 0, a)
		wantAsk(t, tr, 29*time.Second, false)
		ask(t, tr, 30*time.Second, a)
		wantAsk(t, tr, 31*time.Second, false)
		tr.ListChanged()
		ask(t, tr, 32*time.Second, list("/a"))
		wantAsk(t, tr, time.Hour, false)
	}
}

func TestAWithdrawnQuestionIsAskedByTheNext(t *testing.T) {
	tr := narrow(changes, "/a")
	if s := ask(t, tr, 0, withdrawn); s != (Step{}) {
		t.Errorf("the client is blamed: %+v", s)
	}
	ask(t, tr, time.Second, list("/a"))
}

func TestDeniedAsksOnceMore(t *testing.T) {
	tr := narrow(changes, "/a", "/b")
	ask(t, tr, 0, list("/a"))
	if s := tr.Denied(at(time.Second), at(0), "/b/x"); s != (Step{}) {
		t.Errorf("asked again for a request that has asked: %+v", s)
	}
	if s := tr.Denied(at(time.Minute), at(time.Minute), "/etc/passwd"); s != (Step{}) {
		t.Errorf("asked for a path that no list can allow: %+v", s)
	}
	s := tr.Denied(at(time.Minute), at(time.Minute), "/b/x")
	if !s.Ask {
		t.Fatalf("not asked: %+v", s)
	}
	// Other requests go on, others that are denied wait too.
	if n := tr.Need(at(time.Minute)); n != (Step{}) {
		t.Errorf("Need = %+v", n)
	}
	if d := tr.Denied(at(time.Minute), at(time.Minute), "/b/y"); d.Ask || d.Question != s.Question {
		t.Errorf("Denied = %+v", d)
	}
	tr.Answer(at(time.Minute), s.Question, list("/a", "/b"))
	wantHolds(t, tr, Narrowed, "/a", "/b")

	if s := tr.Denied(at(time.Hour), at(time.Hour), ""); !s.Ask {
		t.Errorf("not asked for a path that is not known: %+v", s)
	}

	accept := NewTracker(Accept, Set{})
	accept.Client(changes)
	ask(t, accept, 0, list("/a"))
	if s := accept.Denied(at(time.Minute), at(time.Minute), "/b/x"); !s.Ask {
		t.Errorf("with nothing configured, not asked: %+v", s)
	}
}

// In the stateless era each request declares anew.
func TestARequestThatDeclaresNoRoots(t *testing.T) {
	tr := narrow(roots, "/a", "/b")
	ask(t, tr, 0, list("/a"))
	if s := tr.Client(Client{}); s.Changed {
		t.Errorf("declaring less changes what holds: %+v", s)
	}
	wantAsk(t, tr, time.Hour, false)
	wantHolds(t, tr, Narrowed, "/a")
	tr.Client(roots)
	wantAsk(t, tr, time.Hour, true)
}

func TestConfigure(t *testing.T) {
	tr := narrow(changes, "/a", "/b")
	ask(t, tr, 0, list("/b", "/c"))
	if s := tr.Configure(set("/c", "/b")); !s.Changed {
		t.Errorf("%+v", s)
	}
	wantHolds(t, tr, Narrowed, "/c", "/b")
	if s := tr.Configure(set("/c", "/b", "/d")); s.Changed {
		t.Errorf("a directory the client does not list is announced: %+v", s)
	}
	tr.Configure(Set{})
	wantHolds(t, tr, NothingConfigured)
}

func TestDirectoriesThatComeAndGo(t *testing.T) {
	tr := narrow(changes, "/a", "/b")
	ask(t, tr, 0, list("/a", "/b"))
	gone := &Error{Root: "/b", Reason: Missing, Fix: "make it"}
	s := tr.Checked("/b", Dir{}, gone)
	if !s.Changed || !strings.Contains(s.Warning, `"/b"`) {
		t.Errorf("gone: %+v", s)
	}
	wantHolds(t, tr, Narrowed, "/a")
	if got := tr.State(); len(got.Lost) != 1 || got.Lost[0].Reason != Missing || got.Configured.Len() != 2 ||
		!strings.Contains(got.String(), "does not exist") {
		t.Errorf("state: %+v", got)
	}
	if s := tr.Checked("/b", Dir{}, gone); s != (Step{}) {
		t.Errorf("still gone: %+v", s)
	}
	if s := tr.Checked("/b", Dir{}, errors.New("i/o")); s.Changed || !strings.Contains(s.Warning, "i/o") {
		t.Errorf("gone in another way: %+v", s)
	}

	b := dir("/b")
	if s := tr.Checked("/b", b, nil); !s.Changed || s.Warning != "" {
		t.Errorf("back: %+v", s)
	}
	wantHolds(t, tr, Narrowed, "/a", "/b")
	if s := tr.Checked("/b", b, nil); s != (Step{}) {
		t.Errorf("still there: %+v", s)
	}

	b.ID = FileID{1, 7}
	if s := tr.Checked("/b", b, nil); !s.Changed {
		t.Errorf("replaced: %+v", s)
	}
	if got := tr.State().Set.Dirs()[1].ID; got != b.ID {
		t.Errorf("the identity is %v", got)
	}

	for name, now := range map[string]Dir{"a file in its place": dir("$/b"), "a link in its place": dir("/etc")} {
		tr.Checked("/b", b, nil)
		if s := tr.Checked("/b", now, nil); !s.Changed || s.Warning == "" {
			t.Errorf("%s: %+v", name, s)
		}
		wantHolds(t, tr, Narrowed, "/a")
	}
	if s := tr.Checked("/elsewhere", Dir{}, gone); s != (Step{}) {
		t.Errorf("a directory of no set: %+v", s)
	}

	// What was just resolved is there.
	tr.ListChanged()
	ask(t, tr, time.Second, list("/a", "/b"))
	wantHolds(t, tr, Narrowed, "/a", "/b")
	tr.Checked("/a", Dir{}, gone)
	tr.Configure(set("/a", "/b"))
	wantHolds(t, tr, Narrowed, "/a", "/b")
}

// A read-only directory that is moved away must not become writable by what is made in its place.
func TestALostDirectoryLeavesAHole(t *testing.T) {
	tr := narrow(Client{}, "/w", "/w/ro r", "/ro2 r", "/ro2/rw")
	tr.Checked("/w/ro", Dir{}, &Error{Reason: Missing})
	tr.Checked("/ro2/rw", Dir{}, &Error{Reason: Missing})
	wantHolds(t, tr, NotAsked, "/w", "/w/ro -", "/ro2 r")
}

func TestAllConfiguredLostIsNotNothingConfigured(t *testing.T) {
	tr := NewTracker(Accept, set("/a"))
	tr.Client(roots)
	tr.Checked("/a", Dir{}, &Error{Reason: Missing})
	ask(t, tr, 0, list("/", "/etc"))
	wantHolds(t, tr, Narrowed)
}

func TestConsentIsGivenAndWithdrawn(t *testing.T) {
	tr := NewTracker(Accept, Set{})
	tr.Client(changes)
	ask(t, tr, 0, list("/a", "/b"))
	want := `allowed is what you consented to of the client's list, since nothing is configured: nothing; waiting for your consent: "/a", "/b"`
	if got := tr.State().String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if s := tr.Consent(set("/a")); !s.Changed {
		t.Errorf("%+v", s)
	}
	wantHolds(t, tr, Accepted, "/a")
	if got := texts(tr.State().Waiting); !slices.Equal(got, []string{"/b"}) {
		t.Errorf("waiting %q", got)
	}
	if s := tr.Consent(set("/b")); !s.Changed {
		t.Errorf("%+v", s)
	}
	wantHolds(t, tr, Accepted, "/b")
	tr.Consent(Set{})
	wantHolds(t, tr, Accepted)
}

func TestStateString(t *testing.T) {
	tr := narrow(roots, "/a", "*/p")
	ask(t, tr, 0, Answer{Dirs: list("/c").Dirs, Bad: badList("file:///gone").Bad})
	want := `nothing in the client's list ("/c") is configured ("/a", "/p"); allowed is what is pinned: "/p"; ` +
		`refusing root "file:///gone": it does not exist`
	if got := tr.State().String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("/%d", i))
	}
	if got := narrow(Client{}, many...).State().String(); !strings.HasSuffix(got, `"/19", and 80 more`) {
		t.Errorf("got %s", got)
	}
}

// play runs events on a tracker as the bytes say, and checks after each what must always be so.
func play(t *testing.T, script []byte) {
	next := func() int {
		if len(script) == 0 {
			return 0
		}
		b := script[0]
		script = script[1:]
		return int(b)
	}
	some := func() Set { return randomSet(rand.New(rand.NewPCG(uint64(next()), 1))) }

	mode := Mode(next() % 3)
	tr := NewTracker(mode, some())
	var consented Set
	now := start
	asked, open := time.Time{}, 0 // the question that nobody has answered, and since when
	for len(script) > 0 {
		before := tr.State()
		var s Step
		switch op := next(); op % 9 {
		case 0:
			s = tr.Client(Client{Roots: next()%4 != 0, ListChanged: next()%2 == 0})
		case 1:
			s = tr.Need(now)
		case 2:
			var paths []string
			for _, d := range some().Dirs() {
				paths = append(paths, d.Path)
			}
			path := ""
			if len(paths) > 0 {
				path = paths[0]
			}
			s = tr.Denied(now, now, path)
		case 3:
			question := open
			if op >= 224 {
				question = next() % 8 // late, early, twice, never asked
			}
			a := []Answer{{}, {}, {}, noAnswer, noMethod, anError, withdrawn}[next()%7]
			if a.Err == nil {
				a.Dirs = some().Dirs()
				if next()%3 == 0 {
					a.Bad = badList("file:///bad").Bad
				}
			}
			s = tr.Answer(now, question, a)
			if question == open {
				open = 0
			}
			if a.Err != nil && !tr.State().Set.Equal(before.Set) {
				t.Fatalf("a client that gives no list changes what holds: %q to %q", texts(before.Set), texts(tr.State().Set))
			}
		case 4:
			s = tr.ListChanged()
		case 5:
			s = tr.Configure(some())
		case 6:
			if dirs := some().Dirs(); len(dirs) > 0 {
				d := dirs[0]
				d.ID = FileID{1, uint64(next() % 4)}
				var err error
				if next()%2 == 0 {
					err = &Error{Reason: Missing}
				}
				s = tr.Checked(d.Path, d, err)
			}
		case 8:
			consented = some()
			s = tr.Consent(consented)
		case 7:
			now = now.Add(time.Duration(next()) * 200 * time.Millisecond)
		}

		after := tr.State()
		if (mode != Accept || after.Configured.Len() > 0) && !after.Configured.Covers(after.Set) {
			t.Fatalf("%q holds, wider than what is configured: %q (%s)", texts(after.Set), texts(after.Configured), after)
		}
		if mode == Accept && after.Configured.Len() == 0 && !consented.Covers(after.Set) {
			t.Fatalf("%q holds, of which a person consented to %q (%s)", texts(after.Set), texts(consented), after)
		}
		if s.Changed == after.Set.Equal(before.Set) {
			t.Fatalf("changed %v, from %q to %q", s.Changed, texts(before.Set), texts(after.Set))
		}
		if s.Ask {
			if open != 0 && now.Before(asked.Add(AnswerLimit)) {
				t.Fatal("two questions in flight")
			}
			open, asked = s.Question, now
		}
		if s.Question != 0 && (now.After(s.Until) || s.Until.Sub(now) > AnswerLimit) {
			t.Fatalf("waiting from %v until %v", now, s.Until)
		}
		if after.Why == Unanswered && mode != Accept && !after.Set.Equal(tr.present(after.Configured)) {
			t.Fatalf("without an answer %q holds of %q", texts(after.Set), texts(after.Configured))
		}
	}
}

func FuzzTracker(f *testing.F) {
	f.Add([]byte{0, 1, 0, 1, 0, 1, 3, 0, 5, 0, 4, 1, 3, 3})
	f.Add([]byte{2, 0, 0, 1, 0, 1, 3, 0, 9, 0, 6, 9, 1, 0})
	f.Fuzz(play)
}

func TestNoEventsWiden(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		script := make([]byte, 120)
		for i := range script {
			script[i] = byte(r.IntN(256))
		}
		play(t, script)
	}
}
