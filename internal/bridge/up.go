package bridge

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// Up is a handler for handshake clients in front of one for stateless ones. It is safe for concurrent use.
type Up struct {
	next exchange.Handler

	mu       sync.Mutex
	sessions map[*exchange.Session]*upSession
	server   string
}

// NewUp returns a bridge in front of next.
func NewUp(next exchange.Handler) *Up {
	return &Up{next: next, sessions: map[*exchange.Session]*upSession{}}
}

// upSession is what a handshake says once, and a stateless request says each time.
type upSession struct {
	of *exchange.Session

	mu                        sync.Mutex
	capabilities, info, level []byte
	discovered                []byte            // what the server said of itself, nil before
	tries                     map[string][]byte // under which id a request is with the server, by the client's

	caller    exchange.Caller // of the session's own listen request
	listening *upListener     // the listen request that the server has; nil when there is none
	uris      []string        // resources that the client follows
	deaf      bool            // the server does not know how to listen
}

func (u *Up) session(s *exchange.Session) *upSession {
	u.mu.Lock()
	defer u.mu.Unlock()
	st := u.sessions[s]
	if st == nil {
		st = &upSession{of: s, capabilities: []byte("{}"), tries: map[string][]byte{}}
		u.sessions[s] = st
		context.AfterFunc(s.Context(), func() {
			u.mu.Lock()
			delete(u.sessions, s)
			u.mu.Unlock()
		})
	}
	return st
}

// Attach says who is to be told what belongs to no other request of a session.
func (u *Up) Attach(s *exchange.Session, caller exchange.Caller) {
	st := u.session(s)
	st.mu.Lock()
	defer st.mu.Unlock()
	st.caller = caller
}

// Greet asks the server what it is, in the name of the client whose initialize r is, and reports how it answered and
// whether that is what a stateless server answers.
func (u *Up) Greet(ctx context.Context, r *exchange.Request, done func(o exchange.Outcome, ok bool)) {
	st := u.session(r.Session)
	st.mu.Lock()
	if caps, ok := wire.Get(r.Msg.Params(), "capabilities"); ok {
		st.capabilities = wire.DeleteMember(caps, "tasks")
		if _, declared := wire.Get(caps, "roots"); declared {
			st.capabilities = wire.SetMember(st.capabilities, []byte("{}"), "roots")
		}
	}
	st.info, _ = wire.Get(r.Msg.Params(), "clientInfo")
	st.mu.Unlock()
	discover := r.With(wire.NewRequest(exchange.NewID(), "server/discover", nil))
	u.next.Handle(ctx, st.modern(discover), func(o exchange.Outcome) {
		if !Stateless(o) {
			done(o, false)
			return
		}
		st.mu.Lock()
		st.discovered = o.Msg.Result()
		st.mu.Unlock()
		info, _ := wire.Get(o.Msg.Result(), "_meta", exchange.MetaServer)
		u.mu.Lock()
		u.server = named(info)
		u.mu.Unlock()
		done(o, true)
	})
}

// Server returns the name and version by which the server went when it was greeted last, and "" before.
func (u *Up) Server() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.server
}

// Stateless reports whether the outcome of a server/discover is that of a server which speaks the stateless revision.
func Stateless(o exchange.Outcome) bool {
	if o.Msg == nil || o.Msg.Result() == nil {
		return false
	}
	versions, _ := wire.Get(o.Msg.Result(), "supportedVersions")
	for v := range wire.Items(versions) {
		if s, _ := wire.Unquote(v); s == modernRevision {
			return true
		}
	}
	return false
}

// Handle implements exchange.Handler.
func (u *Up) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	st := u.session(r.Session)
	switch method := r.Msg.Method(); {
	case method == "initialize":
		u.initialize(ctx, r, st, reply)
	case method == "ping":
		reply(exchange.Result(r, []byte("{}")))
	case method == "logging/setLevel":
		st.mu.Lock()
		st.level, _ = wire.Get(r.Msg.Params(), "level")
		st.mu.Unlock()
		reply(exchange.Result(r, []byte("{}")))
	case method == exchange.Listen:
		u.Attach(r.Session, r.Caller)
		u.hear(st)
		context.AfterFunc(ctx, func() { reply(exchange.Cancelled) })
	case method == "resources/subscribe":
		u.subscribe(r, st, reply)
	case method == "resources/unsubscribe":
		u.unsubscribe(r, st, reply)
	case method == "notifications/cancelled":
		u.cancelled(r, st)
	case r.Msg.Kind() != wire.Request: // of the handshake, or progress of what was asked
	default:
		u.hear(st)
		u.try(ctx, st.modern(r), r, st, reply, 1)
	}
}

// modern puts r into the words of the stateless era.
func (st *upSession) modern(r *exchange.Request) *exchange.Request {
	st.mu.Lock()
	defer st.mu.Unlock()
	meta := unreserved(r.Msg.Meta())
	set := func(value []byte, name string) {
		if value != nil {
			meta = wire.SetMember(meta, value, name)
		}
	}
	set(wire.Quote(modernRevision), exchange.MetaVersion)
	set(st.capabilities, exchange.MetaCapabilities)
	set(st.info, exchange.MetaClient)
	set(st.level, exchange.MetaLogLevel)
	m := r.With(r.Msg.WithEdited(wire.SetMember(r.Msg.Params(), meta, "_meta")))
	m.Era = exchange.Modern
	return m
}

// initialize answers the handshake from what the server says of itself.
func (u *Up) initialize(ctx context.Context, r *exchange.Request, st *upSession, reply func(exchange.Outcome)) {
	st.mu.Lock()
	discovered := st.discovered
	st.mu.Unlock()
	if discovered == nil {
		u.Greet(ctx, r, func(o exchange.Outcome, ok bool) {
			switch {
			case ok:
				u.initialize(ctx, r, st, reply)
			case o.Msg != nil && o.Msg.Error() != nil:
				reply(exchange.Outcome{Msg: errorUp(o.Msg)})
			case o.Msg == nil:
				reply(o)
			default:
				reply(exchange.Fail(r, wire.CodeInternal, "rootbound: the server does not speak revision "+modernRevision, nil))
			}
		})
		return
	}
	revision := wire.GetString(r.Msg.Params(), "protocolVersion")
	if !handshakes[revision] {
		revision = legacyRevision
	}
	result := wire.SetMember(nil, wire.Quote(revision), "protocolVersion")
	for _, member := range []struct {
		to       string
		from     []string
		fallback string
	}{
		{"capabilities", []string{"capabilities"}, "{}"},
		{"serverInfo", []string{"_meta", exchange.MetaServer}, `{"name":"unknown","version":"0"}`},
		{"instructions", []string{"instructions"}, ""},
	} {
		v, ok := wire.Get(discovered, member.from...)
		if !ok {
			v = []byte(member.fallback)
		}
		if len(v) > 0 {
			result = wire.SetMember(result, v, member.to)
		}
	}
	u.hear(st)
	reply(exchange.Result(r, result))
}

// try sends a request, asks its caller what the server gives it back for, and tries again with the answers. First is the
// request in the client's words.
func (u *Up) try(ctx context.Context, r, first *exchange.Request, st *upSession, reply func(exchange.Outcome), round int) {
	key := first.Msg.Key()
	st.mu.Lock()
	st.tries[key] = r.Msg.ID()
	st.mu.Unlock()
	u.next.Handle(ctx, r, func(o exchange.Outcome) {
		st.mu.Lock()
		delete(st.tries, key)
		st.mu.Unlock()
		questions, interim := exchange.Interim(r, o)
		if !interim {
			reply(outcomeUp(first, o))
			return
		}
		t := retry{ctx: ctx, first: first, declared: st.declared(), given: o, reply: reply}
		t.ask(questions, round, func(params []byte) {
			next := r.With(r.Msg.WithParams(params).WithID(exchange.NewID()))
			next.Held = o.Hold
			u.try(ctx, next, first, st, reply, round+1)
		}, r.Msg.Params())
	})
}

func (st *upSession) declared() []byte {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.capabilities
}

// questionUp is a question of a stateless server in the words of the handshake era, where a URL has an id.
func questionUp(q exchange.Question) exchange.Question {
	q = question(q)
	if q.Method == "elicitation/create" && wire.GetString(q.Params, "mode") == "url" && wire.GetString(q.Params, "elicitationId") == "" {
		q.Params = wire.SetMember(q.Params, exchange.NewID(), "elicitationId")
	}
	return q
}

// outcomeUp is an outcome of a stateless server in the words of the handshake era.
func outcomeUp(r *exchange.Request, o exchange.Outcome) exchange.Outcome {
	switch {
	case o.Msg == nil:
		return o
	case o.Msg.Error() != nil:
		return exchange.Outcome{Msg: errorUp(o.Msg)}
	}
	result := o.Msg.Result()
	if v, ok := wire.Get(result, "resultType"); ok {
		if o.Msg.ResultType() != "complete" {
			return exchange.Fail(r, wire.CodeInternal, fmt.Sprintf("rootbound: the server's answer was refused: the resultType %.60q is not known", v), nil)
		}
		result = wire.DeleteMember(result, "resultType")
	}
	if cached[r.Msg.Method()] {
		result = wire.DeleteMember(wire.DeleteMember(result, "ttlMs"), "cacheScope")
	}
	return exchange.Outcome{Msg: o.Msg.WithEditedResult(withoutReserved(result))}
}

// cached are the methods whose results say how long they may be kept.
var cached = map[string]bool{
	"server/discover": true, "tools/list": true, "prompts/list": true, "resources/list": true, "resources/templates/list": true,
	"resources/read": true,
}

// cancelled passes a cancellation on under the id that the server knows. What its client is being asked for is not with the
// server: there the end of its context is all.
func (u *Up) cancelled(r *exchange.Request, st *upSession) {
	id, _ := wire.Get(r.Msg.Params(), "requestId")
	st.mu.Lock()
	now := st.tries[wire.IDKey(id)]
	st.mu.Unlock()
	if now == nil {
		return
	}
	c := r.With(r.Msg.WithParams(wire.SetMember(r.Msg.Params(), now, "requestId")))
	c.Era = exchange.Modern
	u.next.Handle(r.Session.Context(), c, func(exchange.Outcome) {})
}

// upListener is the caller of a listen request that stands for the session of a handshake client.
type upListener struct {
	st *upSession
	id []byte
	// acks are told once what the server says it will tell, or how it refused. Under st.mu.
	acks []func(honoured []byte, refused *wire.Message)
}

// acknowledged takes out who waits for the server's word.
func (l *upListener) acknowledged() func(honoured []byte, refused *wire.Message) {
	acks := l.acks
	l.acks = nil
	return func(honoured []byte, refused *wire.Message) {
		for _, ack := range acks {
			ack(honoured, refused)
		}
	}
}

// hear makes sure that the server tells the client of changes, as far as it does that.
func (u *Up) hear(st *upSession) {
	st.mu.Lock()
	idle := st.listening == nil && !st.deaf && st.discovered != nil && st.caller != nil
	st.mu.Unlock()
	if idle {
		u.listen(st, func([]byte, *wire.Message) {})
	}
}

// listen replaces the listen request that the server has by one for what is to be heard now. Acked is called with what the
// server says it will tell, or with how it refused; not when the session ends before.
func (u *Up) listen(st *upSession, acked func(honoured []byte, refused *wire.Message)) {
	st.mu.Lock()
	old := st.listening
	var wanted []byte
	for _, kind := range []string{"tools", "prompts", "resources"} {
		if v, _ := wire.Get(st.discovered, "capabilities", kind, "listChanged"); string(v) == "true" {
			wanted = wire.SetMember(wanted, []byte("true"), kind+"ListChanged")
		}
	}
	if len(st.uris) > 0 {
		list := []byte{'['}
		for i, uri := range st.uris {
			if i > 0 {
				list = append(list, ',')
			}
			list = wire.AppendQuote(list, uri)
		}
		wanted = wire.SetMember(wanted, append(list, ']'), "resourceSubscriptions")
	}
	if wanted == nil && old == nil {
		st.mu.Unlock()
		acked(nil, nil) // there is nothing to be heard
		return
	}
	l := &upListener{st: st, id: exchange.NewID()}
	if old != nil {
		l.acks, old.acks = old.acks, nil
	}
	l.acks = append(l.acks, acked)
	st.listening = l
	nothing := func([]byte, *wire.Message) {}
	if wanted == nil {
		st.listening, nothing = nil, l.acknowledged()
	}
	st.mu.Unlock()
	ctx := st.of.Context()
	if old != nil { // first, since there are servers that keep one, and end it with the other
		cancel := &exchange.Request{Msg: wire.NewNotification("notifications/cancelled", wire.SetMember(nil, old.id, "requestId")), Era: exchange.Modern, Session: st.of}
		u.next.Handle(ctx, cancel, func(exchange.Outcome) {})
	}
	if wanted == nil {
		nothing(nil, nil)
		return
	}
	r := st.modern(&exchange.Request{
		Msg: wire.NewRequest(l.id, exchange.Listen, wire.SetMember(nil, wanted, "notifications")), Caller: l, Session: st.of,
	})
	u.next.Handle(ctx, r, func(o exchange.Outcome) {
		st.mu.Lock()
		current := st.listening == l
		if current {
			st.listening = nil
		}
		if current && len(st.uris) == 0 && o.Msg != nil && code(o.Msg.Error()) == wire.CodeMethodNotFound {
			st.deaf = true
		}
		acknowledged := l.acknowledged()
		st.mu.Unlock()
		acknowledged(nil, o.Msg)
	})
}

// Notify implements exchange.Caller.
func (l *upListener) Notify(m *wire.Message) {
	l.st.mu.Lock()
	caller := l.st.caller
	if m.Method() == "notifications/subscriptions/acknowledged" {
		acknowledged := l.acknowledged()
		l.st.mu.Unlock()
		honoured, _ := wire.Get(m.Params(), "notifications")
		acknowledged(honoured, nil)
		return
	}
	l.st.mu.Unlock()
	if caller != nil {
		if p := withoutReserved(m.Params()); m.Params() != nil {
			m = m.WithParams(p)
			if string(p) == "{}" { // it had nothing else
				m = wire.NewNotification(m.Method(), nil)
			}
		}
		caller.Notify(m)
	}
}

// CanAsk implements exchange.Caller.
func (l *upListener) CanAsk(string) bool { return false }

// Ask implements exchange.Caller.
func (l *upListener) Ask(_ context.Context, q []exchange.Question, answer func([]exchange.Answer)) {
	answer(exchange.ErrorAnswers(len(q), wire.CodeMethodNotFound, "rootbound: a listen request asks nothing"))
}

// subscribe adds a resource to what is listened for.
func (u *Up) subscribe(r *exchange.Request, st *upSession, reply func(exchange.Outcome)) {
	uri := wire.GetString(r.Msg.Params(), "uri")
	st.mu.Lock()
	follows := slices.Contains(st.uris, uri)
	full := !follows && len(st.uris) >= maxFollowed
	if !follows && !full {
		st.uris = append(st.uris, uri)
	}
	st.mu.Unlock()
	if full {
		reply(exchange.Fail(r, wire.CodeInvalidParams, tooManyFollowed, nil))
		return
	}
	u.listen(st, func(honoured []byte, refused *wire.Message) {
		list, _ := wire.Get(honoured, "resourceSubscriptions")
		for item := range wire.Items(list) {
			if s, _ := wire.Unquote(item); s == uri {
				reply(exchange.Result(r, []byte("{}")))
				return
			}
		}
		st.mu.Lock()
		st.uris = slices.DeleteFunc(st.uris, func(s string) bool { return s == uri })
		st.mu.Unlock()
		if refused != nil && refused.Error() != nil {
			reply(exchange.Outcome{Msg: errorUp(refused)})
		} else {
			reply(exchange.Fail(r, wire.CodeInvalidParams, "rootbound: the server does not tell of changes of this resource", nil))
		}
	})
}

func (u *Up) unsubscribe(r *exchange.Request, st *upSession, reply func(exchange.Outcome)) {
	uri := wire.GetString(r.Msg.Params(), "uri")
	st.mu.Lock()
	n := len(st.uris)
	st.uris = slices.DeleteFunc(st.uris, func(s string) bool { return s == uri })
	changed := n != len(st.uris)
	st.mu.Unlock()
	if changed {
		u.listen(st, func([]byte, *wire.Message) {})
	}
	reply(exchange.Result(r, []byte("{}")))
}
