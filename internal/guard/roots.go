package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

const (
	// settleLimit is how long a call waits after a change of roots for a server that has to fetch them.
	settleLimit = time.Second
	// settleMargin is what a server is given after it answered a ping behind the list: it may still be looking at the
	// directories.
	settleMargin = 100 * time.Millisecond
	// askKey is the name of our question among those of a request.
	askKey = "rootbound.roots"
)

// session is what the roots stage keeps of one client.
type session struct {
	g    *Guard
	next exchange.Handler // behind the roots stage
	of   *exchange.Session
	n    int // which of all sessions of the guard; 0 where it is of one request

	mu        sync.Mutex
	client    *client // what a client without a handshake says of itself; nil before it did
	tracker   *roots.Tracker
	changes   int       // of the configured directories that it has looked at
	given     int       // which of those and of the consents it goes by, where it is of one request
	waiting   []*waiter // requests that wait for the client's answer
	greeted   bool      // the server had its handshake
	stateless bool      // it gets requests without one
	fetched   bool      // the server has asked for the list
	passed    bool      // it let the last change pass without asking
	lazy      bool      // it did, and asked in mid-call then: it asks when a call needs the list, not when it is told
	open      int       // calls that the server has
	template  *exchange.Request
	settling  *settling
	told      roots.Set // the last list that it fetched

	capabilities []byte // of the server, in its handshake; for the pins stage
}

// settling is the time after a change in which calls wait until the server knows: one that fetches the list on its own
// would judge the next call by the old one.
type settling struct {
	over  chan struct{}
	once  sync.Once
	asked bool // the server fetched the list after the change
}

func (s *settling) end() { s.once.Do(func() { close(s.over) }) }

// rootsStage says which roots hold for a request, answers the server's own questions for them, and tells it of changes.
func (g *Guard) rootsStage(next exchange.Handler) exchange.Handler {
	return exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		s := g.enter(r, next)
		if r.Era == exchange.Modern {
			s.meet(r)
		}
		c := &struct { // in one piece of memory
			exchange.Request
			rootsCaller
		}{*r, rootsCaller{r.Caller, s}}
		if r.Caller != nil {
			c.Request.Caller = &c.rootsCaller
		}
		r = &c.Request
		switch method := r.Msg.Method(); {
		case method == "initialize":
			s.initialize(ctx, r, reply)
		case method == "notifications/initialized":
			s.mu.Lock()
			s.greeted, s.template = true, r
			set := s.tracker.State().Set
			stale := s.stale(set) // what holds may have changed since it was started, when it could not be told of it
			s.mu.Unlock()
			next.Handle(ctx, r, reply)
			if stale {
				s.announce(set)
			}
		case method == "notifications/roots/list_changed":
			s.listChanged()
		case r.Msg.Kind() != wire.Request:
			next.Handle(ctx, r, reply)
		case pathargs.Judges(method) && !(method == exchange.Listen && r.Era == exchange.Legacy): // that one is our own
			s.hold(ctx, r, reply)
		default:
			// It names no path, so nobody is asked for it. A server of ours that lists the roots lists what holds.
			r.Roots = s.state().Set
			s.forward(ctx, r, reply)
		}
	})
}

func (s *session) state() roots.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

// now is what holds for the client now. Where nothing connects its requests nothing tells the session of one of them what is configured
// and consented to since. The caller holds mu.
func (s *session) now() roots.State {
	if s.n == 0 {
		s.g.mu.Lock()
		configured, consented, given := s.g.configured, s.g.consented, s.g.given
		s.g.mu.Unlock()
		if given != s.given {
			s.given = given
			s.tracker.Configure(configured)
			s.tracker.Consent(consented)
		}
	}
	return s.tracker.State()
}

// event puts an event into the tracker and does what the step says, apart from asking.
func (s *session) event(f func(*roots.Tracker) roots.Step) roots.Step {
	step := s.take(f)
	if step.Changed {
		s.announce(s.state().Set)
	}
	return step
}

// events puts an event into the tracker of each session. It is in force for all of them before a server is told, which may not read.
func events(all []*session, f func(*roots.Tracker) roots.Step) {
	var changed []*session
	for _, s := range all {
		if s.take(f).Changed {
			changed = append(changed, s)
		}
	}
	announce(changed)
}

// announce tells the servers of sessions what holds now. At once: one that does not read takes its time.
func announce(all []*session) {
	var told sync.WaitGroup
	for _, s := range all {
		told.Go(func() { s.announce(s.state().Set) })
	}
	told.Wait()
}

// take is event, apart from telling the server.
func (s *session) take(f func(*roots.Tracker) roots.Step) roots.Step {
	s.mu.Lock()
	was := s.now()
	step := f(s.tracker)
	after := s.tracker.State()
	s.mu.Unlock()
	s.g.opt.Board.Changed()
	if !was.Waiting.Covers(after.Waiting) {
		s.waits(after.Waiting.Dirs())
	}
	if step.Warning != "" {
		s.g.opt.Warn(step.Warning)
		s.g.note(&calllog.Record{Kind: calllog.Note, Session: s.id(), Code: "roots", Reason: step.Warning})
	}
	if step.Changed {
		s.g.note(&calllog.Record{
			Kind: calllog.RootsChanged, Session: s.id(), Reason: after.String(), Before: LogDirs(was.Set), After: LogDirs(after.Set),
		})
	}
	return step
}

func (s *session) id() string {
	if s.of == nil {
		return ""
	}
	return s.of.ID
}

// initialize learns what the client declared, and declares to the server what holds here.
func (s *session) initialize(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	s.declared(r)
	s.next.Handle(ctx, s.declare(r), reply)
}

// CodeDeclared marks the record of the request by which the server was told that there are roots.
const CodeDeclared = "roots declared"

// declare puts the roots capability that the server is to see into r.
func (s *session) declare(r *exchange.Request) *exchange.Request {
	d := s.declaration()
	if m := r.Msg.Method(); d != nil && (m == "initialize" || m == "server/discover") {
		r.Trail.Add(exchange.Note{Stage: "roots", Code: CodeDeclared, Text: "roots are declared to the server"})
	}
	return exchange.DeclareRoots(r, d)
}

// declared tells the tracker what the client of r declares.
func (s *session) declared(r *exchange.Request) {
	caps := exchange.Capability(r, "roots")
	changes, _ := wire.Get(caps, "listChanged")
	s.event(func(t *roots.Tracker) roots.Step {
		return t.Client(roots.Client{Roots: caps != nil, ListChanged: r.Era == exchange.Legacy && string(changes) == "true"})
	})
}

// declaration is the roots capability that the server sees: none when there is no list and cannot be one.
func (s *session) declaration() []byte {
	switch {
	case s.state().Why == roots.NothingConfigured, s.g.opt.Remote && !s.g.opt.Share:
		return nil
	case s.g.opt.Quiet:
		return []byte("{}")
	}
	return []byte(`{"listChanged":true}`)
}

// listChanged takes the client's word that its list is another one. It is asked by the next request that needs it, never
// outside of one.
func (s *session) listChanged() {
	s.g.note(&calllog.Record{Kind: calllog.ListChanged, Session: s.id(), Method: "notifications/roots/list_changed", From: calllog.Client, To: calllog.Guard})
	s.event(func(t *roots.Tracker) roots.Step { return t.ListChanged() })
}

// hold sends r on with the roots that hold for it, after the client was asked where that is due, and after the server
// knows of a change.
func (s *session) hold(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	s.g.consent() // who has just consented wants it to hold
	if r.Era == exchange.Modern {
		s.declared(r)
	}
	s.mu.Lock()
	ready := s.settling == nil && s.tracker.Fresh(s.g.opt.Now())
	s.mu.Unlock()
	if ready {
		s.send(ctx, r, reply)
		return
	}
	need := func(t *roots.Tracker) roots.Step { return t.Need(s.g.opt.Now()) }
	s.ask(ctx, r, need, reply, func(bool) {
		s.settle(ctx, reply, func() { s.send(ctx, r, reply) })
	})
}

// waiter is a request that waits for the client's answer.
type waiter struct {
	once sync.Once
	stop []func() bool
	// wake lets it go on: with what holds now, or, when the question was withdrawn and brought nothing, from the start.
	wake func(again bool)
}

// ask puts an event into the tracker, asks the client when the step says so, and calls then, with whether there was
// something to wait for. When the request ends before, it replies.
func (s *session) ask(ctx context.Context, r *exchange.Request, event func(*roots.Tracker) roots.Step, reply func(exchange.Outcome), then func(asked bool)) {
	var w *waiter
	step := s.event(func(t *roots.Tracker) roots.Step {
		step := event(t)
		if step.Question != 0 {
			w = s.waiter(ctx, r, event, reply, then)
			s.waiting = append(s.waiting, w) // with the event in one step, or an answer could come between
		}
		return step
	})
	if step.Question == 0 {
		then(false)
		return
	}
	client := r.Caller.(*rootsCaller).Caller
	stops := []func() bool{context.AfterFunc(ctx, func() { w.wake(false) })}
	// A request that was given back to a stateless client goes on with its retry and not before: who does not come back
	// must not find the call done.
	if !(step.Ask && r.Era == exchange.Modern) {
		timer := time.AfterFunc(step.Until.Sub(s.g.opt.Now()), func() {
			s.event(func(t *roots.Tracker) roots.Step { return t.Expire(s.g.opt.Now()) })
			w.wake(false)
		})
		stops = append(stops, timer.Stop)
	}
	s.mu.Lock()
	w.stop = stops
	s.mu.Unlock()
	switch {
	case !step.Ask:
	case !client.CanAsk("roots/list"):
		s.mu.Lock() // or those whom this wakes, who cannot be asked either, would wake it, and it them, without an end
		s.waiting = slices.DeleteFunc(s.waiting, func(o *waiter) bool { return o == w })
		s.mu.Unlock()
		s.answer(step.Question, roots.Answer{Err: context.Canceled})
		w.wake(false)
	default:
		ask := strconv.Itoa(step.Question)
		s.g.note(&calllog.Record{Kind: calllog.RootsAsked, Session: s.id(), Ask: ask, Call: trailID(r), From: calllog.Guard, To: calllog.Client})
		client.Ask(ctx, []exchange.Question{{Key: askKey, Method: "roots/list", Unsent: true, Portable: true}}, func(answers []exchange.Answer) {
			go s.answered(ctx, ask, step.Question, answers[0])
		})
	}
}

// waiter makes what lets a request go on that waits for the client's answer.
func (s *session) waiter(ctx context.Context, r *exchange.Request, event func(*roots.Tracker) roots.Step, reply func(exchange.Outcome), then func(asked bool)) *waiter {
	w := &waiter{}
	w.wake = func(again bool) {
		w.once.Do(func() {
			s.mu.Lock()
			s.waiting = slices.DeleteFunc(s.waiting, func(o *waiter) bool { return o == w })
			stop := w.stop
			s.mu.Unlock()
			for _, f := range stop {
				f()
			}
			switch {
			case ctx.Err() != nil:
				reply(exchange.Cancelled)
			case again:
				s.ask(ctx, r, event, reply, then)
			default:
				then(true)
			}
		})
	}
	return w
}

// answer tells the tracker how a question ended and wakes who waits for it.
func (s *session) answer(question int, a roots.Answer) {
	s.event(func(t *roots.Tracker) roots.Step { return t.Answer(s.g.opt.Now(), question, a) })
	s.mu.Lock()
	waiting := slices.Clone(s.waiting)
	s.mu.Unlock()
	for _, w := range waiting {
		w.wake(errors.Is(a.Err, context.Canceled))
	}
}

// answered takes the client's answer: it looks at the directories it names, so it must not hold up what comes after.
func (s *session) answered(ctx context.Context, ask string, question int, a exchange.Answer) {
	rec := &calllog.Record{Kind: calllog.RootsAnswered, Session: s.id(), Ask: ask, From: calllog.Client, To: calllog.Guard, Outcome: calllog.OK}
	var answer roots.Answer
	list, err := parseList(a.Result)
	switch {
	case ctx.Err() != nil:
		answer.Err = context.Canceled
	case a.Error != nil:
		code, _ := wire.Get(a.Error, "code")
		answer.Code, _ = strconv.Atoi(string(code))
		answer.Err = fmt.Errorf("the client refused to say its roots: %.200q", wire.GetString(a.Error, "message"))
	case err != nil:
		answer.Err = err
	default:
		parse := roots.ParseURI
		if s.g.opt.Strict {
			parse = roots.StrictURI
		}
		answer.Dirs, answer.Bad = roots.ResolveList(list, parse, roots.ResolveOptions{Access: roots.ReadWrite, Origin: "client"})
		equal := sameRoots(list, s.g.Configured().Roots())
		rec.Roots, rec.Equal = logRoots(list[:min(len(list), maxLoggedRoots)]), &equal
	}
	if answer.Err != nil {
		rec.Outcome, rec.Reason = calllog.Failed, answer.Err.Error()
	}
	s.g.note(rec)
	s.answer(question, answer)
}

// parseList reads the result of roots/list.
func parseList(result []byte) ([]roots.Root, error) {
	items, ok := wire.Get(result, "roots")
	if !ok || len(items) == 0 || items[0] != '[' {
		return nil, fmt.Errorf("the client's answer to roots/list has no list %q", "roots")
	}
	list := []roots.Root{}
	for item := range wire.Items(items) {
		list = append(list, roots.Root{URI: wire.GetString(item, "uri"), Name: wire.GetString(item, "name")})
	}
	return list, nil
}

// settle calls do when the server knows of the last change, or had its time.
func (s *session) settle(ctx context.Context, reply func(exchange.Outcome), do func()) {
	s.mu.Lock()
	w := s.settling
	s.mu.Unlock()
	if w == nil {
		do()
		return
	}
	go func() {
		select {
		case <-w.over:
			s.settle(ctx, reply, do) // another change may have come
		case <-ctx.Done():
			reply(exchange.Cancelled)
		}
	}()
}

// send sends r, which is the roots stage's own copy, on with the roots that hold now.
func (s *session) send(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	s.mu.Lock()
	r.Roots = s.now().Set
	s.open++
	s.mu.Unlock()
	s.forward(ctx, r, func(o exchange.Outcome) {
		s.mu.Lock()
		s.open--
		s.mu.Unlock()
		reply(o)
	})
}

// denied asks the client once more when a path is denied: it may have forgotten to tell of a change. Again judges the
// path once more, or lets the denial stand.
func (s *session) denied(ctx context.Context, r *exchange.Request, path string, reply func(exchange.Outcome), again func(set roots.Set, final bool)) {
	event := func(t *roots.Tracker) roots.Step { return t.Denied(s.g.opt.Now(), r.Trail.Begun, path) }
	s.ask(ctx, r, event, reply, func(asked bool) {
		if !asked {
			again(s.state().Set, true)
			return
		}
		s.settle(ctx, reply, func() { again(s.state().Set, false) })
	})
}

// announce tells the server that other roots hold, and makes calls wait until it knows. A stateless one cannot be told.
func (s *session) announce(after roots.Set) {
	s.mu.Lock()
	template, greeted := s.template, s.greeted
	if !greeted && !s.stateless {
		s.mu.Unlock()
		return
	}
	w := &settling{over: make(chan struct{})}
	restart := s.stale(after)
	wait := greeted && s.fetched && !s.lazy && !s.g.opt.Quiet && !s.g.opt.Remote // whose checks are not by its roots
	if wait || restart {
		if s.settling != nil {
			defer s.settling.end() // those who wait for it look again
		}
		s.settling = w
	}
	s.mu.Unlock()
	if restart {
		go s.restart(w) // it waits for what the server has not answered
		return
	}
	if s.g.opt.Quiet || s.g.opt.Remote && !s.g.opt.Share || !greeted {
		return
	}
	if !s.g.contained { // ours goes by what holds for each request, and never fetches the list
		s.g.note(&calllog.Record{Kind: calllog.ListChanged, Session: s.id(), Method: "notifications/roots/list_changed", From: calllog.Guard, To: calllog.Server})
	}
	exchange.InOrder(func() {
		for told := false; !told; {
			changed := exchange.Own(template, "notifications/roots/list_changed", nil)
			changed.Roots = after
			s.next.Handle(context.Background(), changed, func(exchange.Outcome) {})
			// Who told of a later change may have been faster, and ours goes by what it hears last.
			now := s.state().Set
			told, after = !s.g.contained || now.Equal(after), now
		}
	})
	if wait {
		time.AfterFunc(settleLimit, func() { s.late(w) })
	}
}

// stale reports whether the server has to be started again to know what holds now, because its command line was filled
// with something else and it does not fetch the list, or to reach it. The caller holds mu.
func (s *session) stale(now roots.Set) bool {
	s.g.mu.Lock()
	started := s.g.started
	s.g.mu.Unlock()
	if s.g.opt.Restart == nil || started == nil || s.fetched && !s.passed && !s.g.opt.Held {
		return false
	}
	known := *started
	if s.fetched && !s.g.opt.Held {
		known = s.told
	}
	return !known.Covers(now) || s.g.opt.RestartNarrowed && !now.Covers(known)
}

// late ends the wait for a server that had its time. It may ask while it handles the call; if it has not by the next
// change, it is taken for one that never asks.
func (s *session) late(w *settling) {
	s.mu.Lock()
	if s.settling == w && !w.asked {
		s.passed = true
	}
	s.mu.Unlock()
	s.settled(w)
}

// restart starts the server again; calls wait until it can be spoken to.
func (s *session) restart(w *settling) {
	s.g.restarting.Lock()
	defer s.g.restarting.Unlock()
	s.mu.Lock()
	stale := s.stale(s.tracker.State().Set)
	if stale {
		s.fetched, s.passed, s.lazy = false, false, false
	}
	s.mu.Unlock()
	if !stale { // it was started meanwhile, for a change before this one
		s.settled(w)
		return
	}
	s.g.opt.Warn(fmt.Sprintf("%s is started again, because it was started with other roots", s.g.opt.Server))
	if err := s.g.opt.Restart(func() { s.settled(w) }); err != nil {
		s.g.opt.Warn("starting the server again: " + err.Error())
		s.settled(w)
	}
}

func (s *session) settled(w *settling) {
	s.mu.Lock()
	if s.settling == w {
		s.settling = nil
	}
	s.mu.Unlock()
	w.end()
}

// list answers the server's question for the roots, and says what it was told.
func (s *session) list(q exchange.Question) (exchange.Answer, roots.Set) {
	state := s.state()
	ask := questionID(q)
	s.g.note(&calllog.Record{Kind: calllog.RootsAsked, Session: s.id(), Ask: ask, From: calllog.Server, To: calllog.Guard})
	rec := &calllog.Record{Kind: calllog.RootsAnswered, Session: s.id(), Ask: ask, From: calllog.Guard, To: calllog.Server, Outcome: calllog.OK}
	var a exchange.Answer
	s.g.consent() // who has just consented wants it to hold
	set := s.g.shared(state.Set)
	if state.Why == roots.NothingConfigured && !s.g.opt.Remote {
		a.Error = wire.ErrorObject(wire.CodeMethodNotFound, "rootbound: no roots are configured", []byte(`{"reason":"nothing configured"}`))
		rec.Outcome, rec.Reason = calllog.Failed, "nothing is configured"
	} else {
		list := set.Roots()
		equal := sameRoots(list, s.g.Configured().Roots())
		rec.Roots, rec.Equal = logRoots(list), &equal
		a.Result = formatList(list)
	}
	if err := s.g.opt.Log.Append(rec); err != nil {
		return exchange.Answer{Error: wire.ErrorObject(wire.CodeInternal, "rootbound: the list of roots could not be logged", []byte(`{"reason":"log"}`))}, roots.Set{}
	}
	return a, set
}

// answeredServer is called when the server was told a list: with a ping behind it we know when it has read it.
func (s *session) answeredServer(told roots.Set) {
	s.mu.Lock()
	s.fetched, s.told = true, told
	s.lazy = s.open > 0 && (s.lazy || s.passed)
	s.passed = false
	w, template := s.settling, s.template
	if w != nil && !told.Equal(s.tracker.State().Set) {
		w = nil // it was told what held before the change; it will ask again
	}
	if w != nil {
		w.asked = true
	}
	s.mu.Unlock()
	if w == nil || template == nil { // without a handshake only a start anew is waited for, which says by itself when it is over
		return
	}
	ping := exchange.Own(template, "ping", nil)
	late := time.AfterFunc(settleLimit, func() { // so that nothing waits for it for ever
		s.next.Handle(context.Background(), exchange.Own(template, "notifications/cancelled", wire.SetMember(nil, ping.Msg.ID(), "requestId")), func(exchange.Outcome) {})
	})
	go s.next.Handle(context.Background(), ping, func(exchange.Outcome) {
		late.Stop()
		time.AfterFunc(settleMargin, func() { s.settled(w) })
	})
}

// saw notes how often the configured directories changed, and reports whether the session has to look for itself: at such a change,
// and always where a client's list or something that is lost is to be looked at too.
func (s *session) saw(changes int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.tracker.State()
	look := s.changes != changes || state.List.Len() > 0 || len(state.Lost) > 0
	s.changes = changes
	return look
}

// look looks at the directories that are configured and listed, tells the tracker, and reports whether something else holds now.
func (s *session) look() (changed bool) {
	state := s.state()
	for _, set := range []roots.Set{state.Configured, state.List} {
		for _, d := range set.Dirs() {
			now, err := d.Refresh()
			step := s.take(func(t *roots.Tracker) roots.Step { return t.Checked(d.Path, now, err) })
			changed = changed || step.Changed
		}
	}
	return changed
}

func formatList(list []roots.Root) []byte {
	b := []byte(`{"roots":[`)
	for i, r := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendQuote(append(b, `{"uri":`...), r.URI)
		if r.Name != "" {
			b = wire.AppendQuote(append(b, `,"name":`...), r.Name)
		}
		b = append(b, '}')
	}
	return append(b, `]}`...)
}

func sameRoots(a, b []roots.Root) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].URI != b[i].URI {
			return false
		}
	}
	return true
}

const (
	// maxLoggedRoots is how many roots of a client's list go to the log: as many as are looked at.
	maxLoggedRoots = 1_000
	// maxLoggedRoot is how much of a URI, or of a name, does, in bytes: more than a path that can be opened takes, percent-encoded.
	maxLoggedRoot = 16 << 10
)

func logRoots(list []roots.Root) []calllog.Root {
	clip := func(s string) string {
		if len(s) <= maxLoggedRoot {
			return s
		}
		return strings.ToValidUTF8(s[:maxLoggedRoot], "") + "…"
	}
	out := make([]calllog.Root, len(list))
	for i, r := range list {
		out[i] = calllog.Root{URI: clip(r.URI), Name: clip(r.Name)}
	}
	return out
}

// LogDirs is a set as the log has it.
func LogDirs(s roots.Set) []calllog.Dir {
	var out []calllog.Dir
	for _, d := range s.Dirs() {
		out = append(out, LogDir(d))
	}
	return out
}

// LogDir is a directory as the log has it.
func LogDir(d roots.Dir) calllog.Dir {
	return calllog.Dir{Name: d.Name, Path: d.Path, Access: access(d.Access), Pinned: d.Pinned, Origin: d.Origin}
}

func access(a roots.Access) string {
	switch a {
	case roots.ReadWrite:
		return "rw"
	case roots.Read | roots.Write:
		return "no-delete"
	case roots.ReadOnly:
		return "ro"
	}
	return "none"
}

func trailID(r *exchange.Request) string {
	if r.Trail == nil {
		return ""
	}
	return r.Trail.ID
}

// questionID names a question of the server in the log.
func questionID(q exchange.Question) string {
	if q.Msg != nil {
		return "server " + string(q.Msg.ID())
	}
	return "server " + q.Key
}

// rootsCaller is a client whose questions for roots are answered here, whatever it declared, and which hears of changes inside of
// them only.
type rootsCaller struct {
	exchange.Caller
	s *session
}

func (c *rootsCaller) CanAsk(method string) bool {
	return method == "roots/list" || c.Caller.CanAsk(method)
}

// Notify passes on what the server tells, but for the change of a resource that lies outside now: what held when it was subscribed to may
// have been more.
func (c *rootsCaller) Notify(m *wire.Message) {
	if m.Method() != "notifications/resources/updated" {
		c.Caller.Notify(m)
		return
	}
	exchange.InOrder(func() { // a disk may be slow
		g := c.s.g
		if g.inside("resources/subscribe", m.Params(), c.s.state().Set) {
			c.Caller.Notify(m)
			return
		}
		g.noteOnce(calllog.CodeOutside, fmt.Sprintf("a change of %.200q is not told: it is outside the roots now", wire.GetString(m.Params(), "uri")))
	})
}

func (c *rootsCaller) Ask(ctx context.Context, qs []exchange.Question, answer func([]exchange.Answer)) {
	answers := make([]exchange.Answer, len(qs))
	var rest []exchange.Question
	var at []int
	var told roots.Set
	for i, q := range qs {
		if q.Method == "roots/list" {
			answers[i], told = c.s.list(q)
		} else {
			rest, at = append(rest, q), append(at, i)
			if q.Method != "ping" {
				c.s.g.note(&calllog.Record{Kind: calllog.Note, Session: c.s.id(), Code: "question", Method: q.Method, From: calllog.Server, To: calllog.Client})
			}
		}
	}
	if len(rest) == len(qs) {
		c.Caller.Ask(ctx, qs, answer)
		return
	}
	done := func(got []exchange.Answer) {
		for i, a := range got {
			answers[at[i]] = a
		}
		answer(answers)
		c.s.answeredServer(told)
	}
	if len(rest) == 0 {
		done(nil)
		return
	}
	c.Caller.Ask(ctx, rest, done)
}
