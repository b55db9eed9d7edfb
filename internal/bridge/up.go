// Package bridge joins a client and a server that speak different eras. It is the only code that knows both.
//
// # Limits
//
// Only the way up is here: a handshake client in front of a stateless handler. An error that such a client answers to a
// question cannot be said in the stateless era: to an elicitation it becomes a cancel, everything else fails the request.
// Resource subscriptions, and cancelling a request that was given back, do not cross yet.
package bridge

import (
	"context"
	"fmt"
	"sync"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// maxRounds is how often a request may be given back.
const maxRounds = 10

// modernRevision is what a handshake client's requests are made into.
const modernRevision = "2026-07-28"

// Up returns a handler for the requests of handshake clients in front of one for stateless ones.
func Up(next exchange.Handler) exchange.Handler {
	return &up{next: next, sessions: map[*exchange.Session]*state{}}
}

type up struct {
	next exchange.Handler

	mu       sync.Mutex
	sessions map[*exchange.Session]*state
}

// state is what a handshake says once and a stateless request says each time.
type state struct {
	capabilities, info, level []byte
}

func (u *up) state(s *exchange.Session) *state {
	u.mu.Lock()
	defer u.mu.Unlock()
	st := u.sessions[s]
	if st == nil {
		st = &state{capabilities: []byte("{}")}
		u.sessions[s] = st
		context.AfterFunc(s.Context(), func() {
			u.mu.Lock()
			delete(u.sessions, s)
			u.mu.Unlock()
		})
	}
	return st
}

// Handle implements exchange.Handler.
func (u *up) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	if r.Era == exchange.Modern {
		u.next.Handle(ctx, r, reply)
		return
	}
	st := u.state(r.Session)
	switch r.Msg.Method() {
	case "initialize":
		u.mu.Lock()
		if caps, ok := wire.Get(r.Msg.Params(), "capabilities"); ok {
			st.capabilities = caps
			if _, declared := wire.Get(caps, "roots"); declared {
				st.capabilities = wire.SetMember(caps, []byte("{}"), "roots")
			}
		}
		st.info, _ = wire.Get(r.Msg.Params(), "clientInfo")
		u.mu.Unlock()
		u.initialize(ctx, r, st, reply)
	case "ping":
		reply(exchange.Result(r, []byte("{}")))
	case "logging/setLevel":
		u.mu.Lock()
		st.level, _ = wire.Get(r.Msg.Params(), "level")
		u.mu.Unlock()
		reply(exchange.Result(r, []byte("{}")))
	case "notifications/initialized", "notifications/roots/list_changed":
	case "notifications/cancelled":
		u.next.Handle(ctx, r, reply)
	case exchange.Listen:
		m := r.Msg.WithParams(wire.SetMember(nil, []byte(`{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`), "notifications"))
		u.next.Handle(ctx, u.modern(r.With(m), st), reply)
	default:
		if r.Msg.Kind() == wire.Request {
			u.rounds(ctx, u.modern(r, st), r, reply, 1)
		}
	}
}

// modern puts r into the words of the stateless era.
func (u *up) modern(r *exchange.Request, st *state) *exchange.Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	p := r.Msg.Params()
	set := func(value []byte, name string) {
		if value != nil {
			p = wire.SetMember(p, value, "_meta", name)
		}
	}
	set(wire.Quote(modernRevision), exchange.MetaVersion)
	set(st.capabilities, exchange.MetaCapabilities)
	set(st.info, exchange.MetaClient)
	set(st.level, exchange.MetaLogLevel)
	m := r.With(r.Msg.WithParams(p))
	m.Era = exchange.Modern
	return m
}

// initialize answers the handshake from what the server says of itself.
func (u *up) initialize(ctx context.Context, r *exchange.Request, st *state, reply func(exchange.Outcome)) {
	discover := u.modern(r.With(wire.NewRequest(r.Msg.ID(), "server/discover", nil)), st)
	u.next.Handle(ctx, discover, func(o exchange.Outcome) {
		if o.Msg == nil || o.Msg.Result() == nil {
			reply(o)
			return
		}
		d := o.Msg.Result()
		result := wire.SetMember(nil, wire.Quote(wire.GetString(r.Msg.Params(), "protocolVersion")), "protocolVersion")
		for to, from := range map[string][]string{"capabilities": {"capabilities"}, "serverInfo": {"_meta", exchange.MetaServer}, "instructions": {"instructions"}} {
			if v, ok := wire.Get(d, from...); ok {
				result = wire.SetMember(result, v, to)
			}
		}
		reply(exchange.Result(r, result))
	})
}

// rounds sends r, asks its caller what the server gives it back for, and tries again with the answers.
func (u *up) rounds(ctx context.Context, r, first *exchange.Request, reply func(exchange.Outcome), round int) {
	u.next.Handle(ctx, r, func(o exchange.Outcome) {
		questions, interim := exchange.Interim(r, o)
		switch {
		case !interim:
			if o.Msg != nil && o.Msg.Result() != nil {
				o.Msg = o.Msg.WithResult(wire.DeleteMember(o.Msg.Result(), "resultType"))
			}
			reply(o)
			return
		case round == maxRounds:
			reply(exchange.Fail(first, wire.CodeInternal, fmt.Sprintf("rootbound: the server gave the request back %d times", round), nil))
			return
		}
		for _, q := range questions {
			if !first.Caller.CanAsk(q.Method) {
				reply(exchange.Fail(first, wire.CodeInternal, "rootbound: the server needs an answer to "+q.Method+", which the client does not give", nil))
				return
			}
		}
		ask := func(answers []exchange.Answer) {
			p := wire.DeleteMember(wire.DeleteMember(r.Msg.Params(), "inputResponses"), "requestState")
			for i, a := range answers {
				if a.Error != nil && questions[i].Method != "elicitation/create" {
					reply(exchange.Outcome{Msg: wire.NewErrorObject(first.Msg.ID(), a.Error)})
					return
				}
				if a.Error != nil {
					a.Result = []byte(`{"action":"cancel"}`)
				}
				p = wire.SetMember(p, a.Result, "inputResponses", questions[i].Key)
			}
			if state, ok := wire.Get(o.Msg.Result(), "requestState"); ok {
				p = wire.SetMember(p, state, "requestState")
			}
			again := r.With(r.Msg.WithParams(p).WithID(exchange.NewID()))
			again.Held = o.Hold
			u.rounds(ctx, again, first, reply, round+1)
		}
		if len(questions) == 0 {
			go ask(nil) // this may be where the server is read, which must not wait for the server to read
			return
		}
		first.Caller.Ask(ctx, questions, ask)
	})
}
