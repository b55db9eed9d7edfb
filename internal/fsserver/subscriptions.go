package fsserver

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

const (
	// maxSubscriptions is how many resources one client follows at one time.
	maxSubscriptions = 256
	// maxListeners is how many requests one client listens with at one time.
	maxListeners = 32
	// lookInterval is how often resources are looked at where the system reports no changes, and lookDelay how long a
	// report waits for more of them.
	lookInterval = time.Second
	lookDelay    = 50 * time.Millisecond
	// fresh is how long after a change another one may leave the same time on a file: the system's clock for that ticks.
	fresh = 20 * time.Millisecond
)

// subscriptions tells clients of changes of the resources that they follow. The system's watcher knows paths only, so what it
// reports is no more than a reason to look: what is told is what a look through the roots finds.
type subscriptions struct {
	sets *sets

	mu        sync.Mutex
	listeners []*listener
	wake      chan struct{} // makes the goroutine look; nil while there is none

	running sync.WaitGroup // the goroutine
}

// listener is a request on which changes are told.
type listener struct {
	caller  exchange.Caller
	era     exchange.Era
	session *exchange.Session
	id      []byte // of the request

	// Under subscriptions.mu:
	set    roots.Set // what its client may reach
	subs   []*subscription
	silent bool // its client has not heard yet what of its subscriptions was accepted
}

// subscription is a resource that is followed.
type subscription struct {
	uri, path string
	// Only the goroutine uses these once it is in a listener:
	state state
	fresh bool      // it was changed just before state was seen, so another change may not show
	since time.Time // when it was first seen changed and not at rest; zero when it is at rest
	dir   string    // where the system reports changes of it
	// A look that is under way; nil when there is none. Where a file system does not answer it goes on, and the others are seen.
	looking chan sight
}

// sight is what one look at a resource has seen.
type sight struct {
	of      roots.Set // it was looked at through these
	state   state
	isFresh bool
	dir     string
}

// state is what is seen of a resource.
type state struct {
	version string
	err     string // why nothing can be seen
}

var errTooMany = refuse("too_many", "a client follows at most %d resources at one time", maxSubscriptions)

// listen answers the request on which changes are told, which stays open until its client ends it. A stateless client says
// with it what it follows, and hears first what of that is.
func (s *Server) listen(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	l := &listener{caller: r.Caller, era: r.Era, session: r.Session, id: r.Msg.ID(), set: r.Roots}
	if r.Era == exchange.Legacy {
		s.subscriptions.add(l)
		s.end(ctx, l, reply)
		return
	}
	wanted, _ := wire.Get(r.Msg.Params(), "notifications")
	if typeOf(wanted) != "object" {
		reply(exchange.Fail(r, wire.CodeInvalidParams, exchange.Listen+` needs an object "notifications"`, nil))
		return
	}
	list, _ := wire.Get(wanted, "resourceSubscriptions")
	l.silent = !s.compat && typeOf(list) == "array"
	if !s.subscriptions.add(l) {
		reply(exchange.Fail(r, wire.CodeInvalidParams, fmt.Sprintf("a client listens with at most %d requests at one time", maxListeners), nil))
		return
	}
	if !l.silent {
		l.acknowledge("{}")
		s.end(ctx, l, reply)
		return
	}
	go func() { // a disk may be slow
		uris := []string{}
		for _, sub := range s.follow(ctx, r, list) {
			if s.subscriptions.follow(l, sub) == nil {
				uris = append(uris, sub.uri)
			}
		}
		l.acknowledge(`{"resourceSubscriptions":` + string(quoteAll(uris)) + `}`)
		s.subscriptions.acknowledged(l)
		s.end(ctx, l, reply)
	}()
}

// follow makes the subscriptions that a stateless client asks for, as far as they can be had.
func (s *Server) follow(ctx context.Context, r *exchange.Request, list []byte) []*subscription {
	if !readable(r.Roots) {
		return nil
	}
	o, err := s.sets.use(r.Roots)
	if err != nil {
		return nil
	}
	defer s.sets.done(o)
	c := &call{openSet: o, Server: s, ctx: ctx, request: r}
	var subs []*subscription
	room, asked := s.subscriptions.room(r.Session), map[string]bool{}
	for item := range wire.Items(list) {
		uri := unquote(item)
		if len(asked) == room || ctx.Err() != nil {
			break // what there is no room for is not looked at either
		}
		if asked[uri] {
			continue
		}
		asked[uri] = true
		if sub, err := c.subscription(uri); err == nil {
			subs = append(subs, sub)
		}
	}
	return subs
}

// end ends a listener with its request.
func (s *Server) end(ctx context.Context, l *listener, reply func(exchange.Outcome)) {
	context.AfterFunc(ctx, func() {
		s.subscriptions.remove(l)
		reply(exchange.Cancelled)
	})
}

// subscribe answers resources/subscribe of a handshake client: its session's listen request tells of the changes.
func (s *Server) subscribe(ctx context.Context, r *exchange.Request, t *slot) exchange.Outcome {
	c, uri, err := s.resourceCall(ctx, r, t)
	if err == nil {
		defer s.sets.done(c.openSet)
		var sub *subscription
		if sub, err = c.subscription(uri); err == nil {
			err = s.subscriptions.subscribe(r, sub)
		}
	}
	switch {
	case ctx.Err() != nil:
		return exchange.Cancelled
	case err != nil:
		return s.resourceError(r, uri, err)
	}
	return s.result(r, "")
}

// unsubscribe answers resources/unsubscribe. What is not followed is not followed afterwards either.
func (s *Server) unsubscribe(r *exchange.Request) exchange.Outcome {
	value, _ := wire.Get(r.Msg.Params(), "uri")
	if typeOf(value) != "string" {
		return s.resourceError(r, "", refuse(codeArguments, `%s needs a string "uri"`, r.Msg.Method()))
	}
	s.subscriptions.unsubscribe(r.Session, unquote(value))
	return s.result(r, "")
}

// subscription looks at a resource and returns what it takes to follow it.
func (c *call) subscription(uri string) (*subscription, error) {
	path, err := c.resourcePath(uri)
	if err != nil {
		return nil, err
	}
	if _, err := c.fs.Stat(path); err != nil {
		return nil, c.explain(opStat, path, err)
	}
	sub := &subscription{uri: uri, path: path}
	sub.state, sub.fresh = c.look(path)
	return sub, nil
}

// notify tells something. A stateless client hears by which of its requests it gets to hear it.
func (l *listener) notify(method string, params []byte) {
	if l.era == exchange.Modern {
		params = wire.SetMember(params, l.id, "_meta", exchange.MetaSubscriptionID)
	}
	l.caller.Notify(wire.NewNotification(method, params))
}

// acknowledge tells a stateless client what it will hear of.
func (l *listener) acknowledge(accepted string) {
	l.notify("notifications/subscriptions/acknowledged", []byte(`{"notifications":`+accepted+`}`))
}

// of reports whether a listener is of the client of a session. A client without one is known by nothing, so each of its
// requests counts for itself.
func (l *listener) of(session *exchange.Session) bool { return session != nil && l.session == session }

// add takes a listener in, unless its client has too many.
func (s *subscriptions) add(l *listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, o := range s.listeners {
		if o.of(l.session) {
			n++
		}
	}
	if n >= maxListeners {
		return false
	}
	s.listeners = append(s.listeners, l)
	return true
}

// acknowledged lets a listener speak.
func (s *subscriptions) acknowledged(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.silent = false
	s.rouse()
}

// remove lets a listener go with all that it follows.
func (s *subscriptions) remove(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = slices.DeleteFunc(s.listeners, func(o *listener) bool { return o == l })
	l.subs = nil
	s.rouse()
}

// room is how many more resources the client of a session may follow.
func (s *subscriptions) room(session *exchange.Session) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left(session)
}

// left is room. The caller holds mu.
func (s *subscriptions) left(session *exchange.Session) int {
	n := maxSubscriptions
	for _, l := range s.listeners {
		if l.of(session) {
			n -= len(l.subs)
		}
	}
	return n
}

// subscribe follows a resource for the client of a handshake.
func (s *subscriptions) subscribe(r *exchange.Request, sub *subscription) error {
	s.mu.Lock()
	l := s.handshake(r.Session)
	s.mu.Unlock()
	if l == nil {
		return refuse(codeArguments, "this connection has no way to tell of changes")
	}
	return s.follow(l, sub)
}

// handshake returns the listener of a session that began with a handshake. The caller holds mu.
func (s *subscriptions) handshake(session *exchange.Session) *listener {
	i := slices.IndexFunc(s.listeners, func(l *listener) bool {
		return l.of(session) && l.era == exchange.Legacy
	})
	if i < 0 {
		return nil
	}
	return s.listeners[i]
}

// follow takes a subscription into a listener, once.
func (s *subscriptions) follow(l *listener, sub *subscription) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case slices.ContainsFunc(l.subs, func(o *subscription) bool { return o.uri == sub.uri }):
		return nil
	case s.left(l.session) <= 0:
		return errTooMany
	case !slices.Contains(s.listeners, l):
		return nil // its request has ended
	}
	l.subs = append(l.subs, sub)
	if s.wake == nil {
		wake := make(chan struct{}, 1)
		s.wake = wake
		s.running.Go(func() { s.run(wake) })
	}
	s.rouse()
	return nil
}

func (s *subscriptions) unsubscribe(session *exchange.Session, uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.handshake(session); l != nil {
		l.subs = slices.DeleteFunc(l.subs, func(o *subscription) bool { return o.uri == uri })
		s.rouse()
	}
}

// rouse makes the goroutine look. The caller holds mu.
func (s *subscriptions) rouse() {
	select {
	case s.wake <- struct{}{}: // never when it is nil
	default:
	}
}

// saw takes the roots that hold for the client of a session from a request of it. What it follows outside of them is not
// seen any more.
func (s *subscriptions) saw(r *exchange.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		if l.of(r.Session) {
			l.set = r.Roots
		}
	}
}

// rootsChanged tells the handshake client of a session that its roots are others.
func (s *subscriptions) rootsChanged(session *exchange.Session) {
	s.mu.Lock()
	l := s.handshake(session)
	s.rouse()
	s.mu.Unlock()
	if l != nil {
		l.caller.Notify(wire.NewNotification("notifications/resources/list_changed", nil))
	}
}

// close ends everything.
func (s *subscriptions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		l.subs = nil
	}
	s.listeners = nil
	s.rouse()
}

// run looks at what is followed as long as anything is: when the system reports a change near it, when it is roused, and
// every lookInterval.
func (s *subscriptions) run(wake <-chan struct{}) {
	var events <-chan fsnotify.Event
	var lost <-chan error
	w, err := fsnotify.NewWatcher()
	if err == nil { // else it is looked at in time
		defer w.Close()
		events, lost = w.Events, w.Errors
	}
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	for {
		some, rest := s.look(w)
		if !some {
			return
		}
		if rest {
			select {
			case <-events:
			case <-lost:
			case <-wake:
			case <-tick.C:
			}
		}
		for settled := time.After(lookDelay); settled != nil; {
			select {
			case <-events:
			case <-lost:
			case <-settled:
				settled = nil
			}
		}
	}
}

// look looks at everything that is followed and tells what changed. Some is false when there is nothing, and then the
// goroutine ends; rest, when something is being changed and has to be looked at again.
func (s *subscriptions) look(w *fsnotify.Watcher) (some, rest bool) {
	type followed struct {
		*listener
		set  roots.Set
		subs []*subscription
	}
	var all []followed
	s.mu.Lock()
	for _, l := range s.listeners {
		some = some || len(l.subs) > 0
		if len(l.subs) > 0 && !l.silent {
			all = append(all, followed{l, l.set, slices.Clone(l.subs)})
		}
	}
	if !some {
		s.wake = nil
	}
	s.mu.Unlock()

	rest = true
	dirs := map[string]bool{}
	patience, out := context.WithTimeout(context.Background(), lookInterval)
	defer out()
	for _, f := range all {
		for _, sub := range f.subs {
			seen, ok := s.see(patience, f.set, sub)
			switch now := seen.state; {
			case !ok || now == sub.state && !sub.fresh:
			case seen.isFresh && (sub.since.IsZero() || time.Since(sub.since) < lookInterval):
				rest = false
				if sub.since.IsZero() {
					sub.since = time.Now()
				}
			default:
				sub.state, sub.fresh, sub.since = now, seen.isFresh, time.Time{}
				if s.follows(f.listener, sub) {
					f.notify("notifications/resources/updated", append(wire.AppendQuote([]byte(`{"uri":`), sub.uri), '}'))
				}
			}
			if ok {
				sub.dir = seen.dir
			}
			if sub.dir != "" {
				dirs[sub.dir] = true
			}
		}
	}
	if w != nil {
		watch(w, dirs)
	}
	return some, rest
}

// see looks at a resource through a set, or takes up what a look before has seen through it. It says no when nothing is seen before
// the end of ctx.
func (s *subscriptions) see(ctx context.Context, set roots.Set, sub *subscription) (sight, bool) {
	if sub.looking == nil {
		looking, before, wasFresh, dir, path := make(chan sight, 1), sub.state, sub.fresh, sub.dir, sub.path
		sub.looking = looking
		go func() {
			seen := sight{of: set, dir: dir}
			if o, err := s.sets.use(set); err == nil {
				seen.state, seen.isFresh = o.look(path)
				if seen.state != before || wasFresh || dir == "" {
					seen.dir = o.reports(path)
				}
				s.sets.done(o)
			} else {
				seen.state.err = err.Error()
			}
			looking <- seen
		}()
	}
	select {
	case seen := <-sub.looking:
		sub.looking = nil
		return seen, seen.of.Equal(set)
	case <-ctx.Done():
		return sight{}, false
	}
}

// follows reports whether a listener has a subscription still.
func (s *subscriptions) follows(l *listener, sub *subscription) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(l.subs, sub)
}

// look sees a resource as it is now, and whether it was changed just before.
func (o *openSet) look(path string) (seen state, isFresh bool) {
	info, err := o.fs.Stat(path)
	if err != nil {
		return state{err: err.Error()}, false
	}
	age := time.Since(info.ModTime())
	return state{version: rootfs.Version(info)}, 0 <= age && age < fresh
}

// reports returns the directory in which the system reports changes of a resource, "" when there is none.
func (o *openSet) reports(path string) string {
	p, err := rootfs.Locate(o.set, path, rootfs.Process{})
	switch {
	case err != nil || !p.Inside:
		return ""
	case p.Rel == "." && !p.Dir.File:
		return p.Path
	}
	if info, err := o.fs.Stat(path); err == nil && info.IsDir() {
		return p.Path
	}
	return filepath.Dir(p.Path)
}

// watch watches these directories and no others. One that cannot be watched is looked at in time.
func watch(w *fsnotify.Watcher, dirs map[string]bool) {
	for _, dir := range w.WatchList() {
		if !dirs[dir] {
			_ = w.Remove(dir)
		}
		delete(dirs, dir)
	}
	for dir := range dirs {
		_ = w.Add(dir)
	}
}
