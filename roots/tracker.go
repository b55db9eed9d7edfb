package roots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Mode says what a client's own list of roots counts for.
type Mode uint8

const (
	// Narrow lets the list narrow what is configured, and never widen it. Where nothing is configured nothing holds.
	Narrow Mode = iota
	// Ignore never asks the client. It is also right for a client on another machine, whose disk is not this one.
	Ignore
	// Accept makes of the list the boundary where nothing is configured, as far as a person consented to it (see
	// Tracker.Consent), and is Narrow where something is.
	Accept
)

// AnswerLimit is how long a question to a client is worth waiting for.
const AnswerLimit = 5 * time.Second

const (
	// maxAge is how old a list may be when a path is judged, if the client does not tell of changes.
	maxAge = 30 * time.Second
	// retryAfter is how long a client that gave no list is left alone.
	retryAfter = 30 * time.Second
)

// methodNotFound is JSON-RPC's code for a method that the peer does not have.
const methodNotFound = -32601

// Client is what a client declared. A client of the stateless era (2026-07-28) declares with each request and never tells
// of changes.
type Client struct {
	Roots       bool // that it has a list
	ListChanged bool // and that it tells of changes
}

// Answer is how a question to the client ended: with a list, or with Err.
type Answer struct {
	// Dirs are the roots of the list that can be used, resolved, in its order. Their rights count: give ReadWrite, since a
	// client has no way to say less.
	Dirs []Dir
	// Bad are the roots of the list that cannot. A list with neither is an empty one.
	Bad []*Error
	// Err is set when there is no list: the client's error, context.DeadlineExceeded when it did not answer in time, or
	// context.Canceled when the question was withdrawn and says nothing about the client.
	Err error
	// Code is the JSON-RPC code of the client's error.
	Code int
}

// Step is what the caller of a Tracker does after an event. The zero value is: nothing, go on with what holds.
type Step struct {
	// Ask is set when the client has to be asked now. The caller does, and hands how it ended to Answer, with Question.
	Ask bool
	// Question is the question that is in flight, when it is worth waiting for, be it this caller's or another's.
	Question int
	// Until is when waiting for Question ends. What holds then is what held before.
	Until time.Time
	// Changed is set when another set holds than before: servers that want to know are told.
	Changed bool
	// Warning is for a person and the log, or empty. What was warned of once is not repeated.
	Warning string
}

// Why says which of the cases of a Tracker holds.
type Why uint8

const (
	// NothingConfigured: nothing holds, and a client's list would not change that.
	NothingConfigured Why = iota
	// NotAsked: the configured directories hold, since the client has no list or it is ignored.
	NotAsked
	// Unanswered: the configured directories hold (with Accept and none: nothing), since the client gave no list yet.
	Unanswered
	// Narrowed: what is in the client's list and configured holds, and what is pinned.
	Narrowed
	// NoOverlap: only what is pinned holds, since nothing in the client's list is configured.
	NoOverlap
	// Revoked: only what is pinned holds, since the client's list is empty and was not.
	Revoked
	// OnlyBad: only what is pinned holds, since no root of the client's list can be used.
	OnlyBad
	// Accepted: of the client's list holds what a person consented to, since nothing is configured and the mode is Accept.
	Accepted
)

// State is what holds, and all that an explanation needs.
type State struct {
	// Set is what holds.
	Set Set
	// Why is why.
	Why Why
	// Configured is what is configured, also when it is gone.
	Configured Set
	// List is what can be used of the client's list.
	List Set
	// Bad is what cannot.
	Bad []*Error
	// Waiting is what of the list would hold if a person consented to it. It is empty unless Why is Accepted.
	Waiting Set
	// Failed is why the last question brought no list, else nil. Whatever list there was before still counts.
	Failed error
	// Lost are the configured or listed directories that are gone, or cannot be opened any longer, by their path.
	Lost []*Error
}

// Tracker decides when a client is asked for its roots, what holds, and what is announced. It is a value machine: it
// starts nothing, looks at no disk and has no clock. Events come as method calls, with the time where time matters, and
// each returns what to do. The zero value has nothing configured, so nothing holds.
//
// One Tracker serves one session: a stdio connection, or an HTTP session with a handshake. Over stateless HTTP, where each
// request speaks for itself, make one for each request that needs roots; its first Need asks.
//
// Whatever the events, what holds is never wider than what is configured, or under Accept with nothing configured than what
// a person consented to.
//
// A Tracker is not safe for concurrent use: its owner holds a lock around each call, and none while it waits.
type Tracker struct {
	mode       Mode
	client     Client
	configured Set
	consented  Set
	lost       map[string]*Error // by Dir.Path

	// The client's list.
	known bool // a list came that was not empty: from now on an empty one means revoked
	list  []Dir
	bad   []*Error

	// Questions are numbered from 1.
	asked      int       // the last one
	flying     int       // the one in flight, or 0
	until      time.Time // when it is given up
	settled    int       // the last one that brought a list
	settledAt  time.Time
	staleAfter int       // answers to questions up to this one are out of date
	failed     error     // why there was no list the last time
	retryAt    time.Time // after failed
	mute       bool      // the client has no roots/list, whatever it declared

	state State
	said  map[string]string // what was last warned of, by kind
}

// NewTracker makes a tracker for a client that has not said anything yet.
func NewTracker(mode Mode, configured Set) *Tracker {
	t := &Tracker{mode: mode, configured: configured}
	t.state = t.judge()
	return t
}

// State returns what holds now.
func (t *Tracker) State() State {
	s := t.state
	s.Bad, s.Lost = slices.Clone(s.Bad), slices.Clone(s.Lost)
	return s
}

// Client tells what the client declared: at the handshake, or with each request before its Need. A list that it gave
// still counts when it declares less.
func (t *Tracker) Client(c Client) Step {
	t.client = c
	return t.step()
}

// Need is called when a request needs to know what holds. When a question is in flight and what holds is too old to judge
// by, the request may wait for the answer.
func (t *Tracker) Need(now time.Time) Step {
	s := t.giveUp(now)
	if t.fresh(now) {
		return s
	}
	return t.ask(s, now, t.failed == nil)
}

// Fresh reports whether Need has nothing to do now: no question is in flight, and none is due.
func (t *Tracker) Fresh(now time.Time) bool { return t.flying == 0 && t.fresh(now) }

// Denied is called when a path is denied, with what the path leads to as far as that is known, or "". The client may have
// forgotten to tell of a change, so it is asked once more, unless its list is newer than the request, which came at came,
// or none could allow the path.
// When the step has a Question the path is judged again after the answer; else the denial stands.
func (t *Tracker) Denied(now, came time.Time, path string) Step {
	s := t.giveUp(now)
	if t.failed != nil || t.settled > 0 && !t.settledAt.Before(came) {
		return s
	}
	if path != "" && t.configured.Len() > 0 {
		if _, _, ok := t.configured.Match(path); !ok {
			return s
		}
	}
	return t.ask(s, now, true)
}

// Expire gives up a question that had its time, without asking another.
func (t *Tracker) Expire(now time.Time) Step { return t.giveUp(now) }

// Answer tells how a question ended. It comes once for each Ask; a list that comes late still counts if none came since.
func (t *Tracker) Answer(now time.Time, question int, a Answer) Step {
	var s Step
	if question <= t.settled || question > t.asked || a.Err != nil && question != t.flying {
		return s // a later one was answered, or it was given up and is warned of
	}
	if question == t.flying {
		t.flying = 0
	}
	switch empty := len(a.Dirs)+len(a.Bad) == 0; {
	case errors.Is(a.Err, context.Canceled):
	case a.Err != nil:
		t.mute = t.mute || a.Code == methodNotFound
		t.fail(&s, now, a.Err)
	default:
		t.settled, t.settledAt = question, now
		if empty && !t.known {
			t.fail(&s, now, errEmptyList)
			break
		}
		t.failed, t.retryAt = nil, time.Time{}
		t.known = true
		t.list = slices.Clone(a.Dirs)
		t.bad = slices.Clone(a.Bad)
		for _, d := range a.Dirs { // they were resolved just now
			delete(t.lost, d.Path)
		}
		t.change(&s)
		switch t.state.Why {
		case NoOverlap, Revoked, OnlyBad:
			t.warn(&s, "list", t.state.String())
		default:
			if len(a.Bad) > 0 {
				t.warn(&s, "list", badText(a.Bad))
			}
		}
	}
	return s
}

// ListChanged tells of the client's notification. One from a client that did not declare it is dropped, with a warning.
func (t *Tracker) ListChanged() Step {
	var s Step
	switch {
	case !t.client.ListChanged:
		t.warn(&s, "undeclared", "the client told of a change of its roots but did not declare that it does: dropped")
	default:
		t.staleAfter = t.asked
		// What failed may work now. A client that was silent is not asked sooner for that: it would cost a wait each time.
		if t.failed != nil && !errors.Is(t.failed, context.DeadlineExceeded) {
			t.retryAt = time.Time{}
		}
	}
	return s
}

// Configure tells of another configuration. Its directories were resolved just now.
func (t *Tracker) Configure(configured Set) Step {
	t.configured = configured
	for _, d := range configured.dirs {
		delete(t.lost, d.Path)
	}
	return t.step()
}

// Consent tells which directories of a client's list may hold where nothing is configured: these, and what is in them. It
// is what a person said, and before that nothing may.
func (t *Tracker) Consent(consented Set) Step {
	t.consented = consented
	return t.step()
}

// Checked tells what Dir.Refresh said just now of the directory with that path, configured or listed: that it is gone,
// back, or another one.
func (t *Tracker) Checked(path string, now Dir, err error) Step {
	var s Step
	is := func(d Dir) bool { return d.Path == path }
	i, j := slices.IndexFunc(t.configured.dirs, is), slices.IndexFunc(t.list, is)
	if i < 0 && j < 0 {
		return s // it was taken out meanwhile
	}
	var e *Error
	switch {
	case err == nil:
		if now.Path != path || i >= 0 && now.File != t.configured.dirs[i].File || j >= 0 && now.File != t.list[j].File {
			e = &Error{Reason: Moved}
		}
	case !errors.As(err, &e):
		e = &Error{Reason: Unopenable, Err: err}
	}
	if e == nil {
		delete(t.lost, path)
		t.configured = Set{slices.Clone(t.configured.dirs)}
		if i >= 0 {
			d := &t.configured.dirs[i]
			d.ID, d.ancestors = now.ID, now.ancestors
		}
		if j >= 0 {
			d := &t.list[j]
			d.ID, d.ancestors = now.ID, now.ancestors
		}
	} else {
		lost := *e
		lost.Root = path
		if was := t.lost[path]; was == nil || was.Reason != lost.Reason {
			s.Warning = lost.Error()
		}
		if t.lost == nil {
			t.lost = make(map[string]*Error)
		}
		t.lost[path] = &lost
	}
	t.change(&s)
	return s
}

// fresh reports whether nothing is to be asked for what holds to be judged by: there is an answer that is not out of date,
// or asking is of no use.
func (t *Tracker) fresh(now time.Time) bool {
	if !t.mayAsk() {
		return true
	}
	return t.failed == nil && t.settled > t.staleAfter && (t.client.ListChanged || now.Before(t.settledAt.Add(maxAge)))
}

// mayAsk reports whether the client can be asked, and its answer could count.
func (t *Tracker) mayAsk() bool {
	return t.client.Roots && !t.mute && (t.mode == Accept || t.mode == Narrow && t.configured.Len() > 0)
}

// ask begins a question if none is in flight and one may be. Else, when wait is set, it points to the one in flight.
func (t *Tracker) ask(s Step, now time.Time, wait bool) Step {
	if !t.mayAsk() {
		return s
	}
	if t.flying == 0 {
		if now.Before(t.retryAt) {
			return s
		}
		t.asked++
		t.flying, t.until = t.asked, now.Add(AnswerLimit)
		s.Ask, wait = true, true
	}
	if wait {
		s.Question, s.Until = t.flying, t.until
	}
	return s
}

// giveUp ends a question whose time is over, in case its caller has not.
func (t *Tracker) giveUp(now time.Time) (s Step) {
	if t.flying != 0 && !now.Before(t.until) {
		t.flying = 0
		t.fail(&s, now, context.DeadlineExceeded)
	}
	return s
}

var errEmptyList = errors.New("its list is empty")

// fail remembers that there was no list: what held still holds.
func (t *Tracker) fail(s *Step, now time.Time, err error) {
	t.failed, t.retryAt = err, now.Add(retryAfter)
	t.change(s)
	if text := t.state.String(); t.known {
		t.warnOnce(s, "kept", text)
	} else {
		t.warnOnce(s, "unanswered", text)
	}
}

func (t *Tracker) warn(s *Step, kind, text string) {
	if t.said[kind] == text {
		return
	}
	if t.said == nil {
		t.said = make(map[string]string)
	}
	t.said[kind], s.Warning = text, text
}

func (t *Tracker) warnOnce(s *Step, kind, text string) {
	if t.said[kind] == "" {
		t.warn(s, kind, text)
	}
}

func (t *Tracker) step() (s Step) {
	t.change(&s)
	return s
}

// change finds what holds now.
func (t *Tracker) change(s *Step) {
	before := t.state.Set
	t.state = t.judge()
	s.Changed = s.Changed || !t.state.Set.Equal(before)
}

// judge is the table of what holds when.
func (t *Tracker) judge() State {
	s := State{Configured: t.configured, List: NewSet(t.list...), Bad: t.bad, Failed: t.failed}
	switch {
	case t.configured.Len() == 0 && (t.mode != Accept || !t.client.Roots && !t.known):
		s.Why = NothingConfigured
	case t.configured.Len() > 0 && (t.mode == Ignore || !t.client.Roots && !t.known):
		s.Why, s.Set = NotAsked, t.configured
	case !t.known:
		s.Why, s.Set = Unanswered, t.configured
	default:
		if t.configured.Len() == 0 {
			s.Why = Accepted
			s.Set, s.Waiting = t.accept()
		} else {
			s.Why, s.Set = Narrowed, t.narrow(s.List)
			if !allowsAnything(t.configured.Intersect(s.List)) {
				s.Why = NoOverlap
			}
		}
		switch {
		case s.List.Len() > 0:
		case len(t.bad) > 0:
			s.Why = OnlyBad
		default:
			s.Why = Revoked
		}
	}
	for _, d := range slices.Concat(t.configured.dirs, t.list) {
		if e := t.lost[d.Path]; e != nil && !slices.Contains(s.Lost, e) {
			s.Lost = append(s.Lost, e)
		}
	}
	s.Set = t.present(s.Set)
	return s
}

// accept returns what a person consented to of the list, and the rest.
func (t *Tracker) accept() (consented, waiting Set) {
	var yes, no []Dir
	for _, d := range t.list {
		if t.consented.Covers(NewSet(d)) {
			yes = append(yes, d)
		} else {
			no = append(no, d)
		}
	}
	return NewSet(yes...), NewSet(no...)
}

// narrow returns what is configured of what is in the list or pinned. Going through what is configured also for what is
// pinned keeps the read-only directories and the holes inside it.
func (t *Tracker) narrow(list Set) Set {
	var visible []Dir
	for _, d := range t.configured.dirs {
		if d.Pinned {
			d.Access = ReadWrite
			visible = append(visible, d)
		}
	}
	pinned := NewSet(visible...)
	for _, d := range list.dirs {
		switch {
		case pinned.index(d, namesFold) >= 0:
			continue
		case pinned.at(d, namesFold).Access != 0:
			d.Access = ReadWrite // the list takes nothing away from what is pinned
		}
		visible = append(visible, d)
	}
	return t.configured.Intersect(NewSet(visible...))
}

// present returns s without what is lost. Where that would leave more rights, those of a root around it, it leaves a hole.
func (t *Tracker) present(s Set) Set {
	if len(t.lost) == 0 {
		return s
	}
	var dirs []Dir
	for _, d := range s.dirs {
		if t.lost[d.Path] != nil {
			if !slices.ContainsFunc(s.dirs, func(e Dir) bool { return e.holds(d, namesFold) && e.Access&^d.Access != 0 }) {
				continue
			}
			d.Access = 0
		}
		dirs = append(dirs, d)
	}
	return Set{dirs}
}

func allowsAnything(s Set) bool {
	return slices.ContainsFunc(s.dirs, func(d Dir) bool { return d.Access != 0 })
}

// String says what holds and why in one line, with the paths: for a person and the log.
func (s State) String() string {
	var text string
	switch s.Why {
	case NothingConfigured:
		text = "nothing is allowed: no directory is configured"
	case NotAsked:
		text = "allowed is what is configured: " + pathsText(s.Set)
	case Unanswered:
		text = "allowed is what is configured: " + pathsText(s.Set) + "; the client gave no list of roots"
	case Narrowed:
		text = "allowed is what is both configured and in the client's list: " + pathsText(s.Set)
	case NoOverlap:
		text = "nothing in the client's list (" + pathsText(s.List) + ") is configured (" + pathsText(s.Configured) +
			"); allowed is what is pinned: " + pathsText(s.Set)
	case Revoked:
		text = "the client emptied its list of roots; allowed is what is pinned: " + pathsText(s.Set)
	case OnlyBad:
		text = "no root of the client's list can be used; allowed is what is pinned: " + pathsText(s.Set)
	case Accepted:
		text = "allowed is what you consented to of the client's list, since nothing is configured: " + pathsText(s.Set)
	}
	if s.Waiting.Len() > 0 {
		text += "; waiting for your consent: " + pathsText(s.Waiting)
	}
	if len(s.Bad) > 0 {
		text += "; " + badText(s.Bad)
	}
	switch {
	case errors.Is(s.Failed, context.DeadlineExceeded):
		text += fmt.Sprintf("; the client did not say within %v what its roots are", AnswerLimit)
	case s.Failed != nil:
		text += fmt.Sprintf("; asked for its roots, the client: %q", s.Failed.Error())
	}
	for _, e := range s.Lost {
		text += "; " + e.Error()
	}
	return text
}

func pathsText(s Set) string {
	var list []string
	for _, d := range s.dirs {
		if d.Access != 0 {
			list = append(list, strconv.Quote(d.Path))
		}
	}
	return listText(list, ", ", "nothing")
}

func badText(bad []*Error) string {
	var list []string
	for _, e := range bad {
		list = append(list, e.Error())
	}
	return listText(list, "; ", "")
}

// listText names the first twenty: a list is as long as its client likes.
func listText(list []string, separator, none string) string {
	if len(list) == 0 {
		return none
	}
	if n := len(list) - 20; n > 0 {
		list = append(list[:20:20], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(list, separator)
}
