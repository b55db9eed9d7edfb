package guard

import (
	"context"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// heldRoots is the roots stage's part of what is held while a request is given back: the keys of the server's questions for
// roots. They are answered with the retry, by what holds then.
const heldRoots = "roots"

// maxRounds is how often a server may give a request back only for roots, which are answered at once.
const maxRounds = 10

// forward sends r on with the roots capability declared, and answers for roots when a stateless server gives the request
// back: when it wants nothing else the request is tried again at once, else they are answered with the client's retry.
func (s *session) forward(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	if r.Era != exchange.Modern {
		s.next.Handle(ctx, r, reply)
		return
	}
	s.mu.Lock()
	s.stateless = true
	s.mu.Unlock()
	r = s.declare(withoutRoots(r))
	params, failed := s.answerRoots(r.Msg.Params(), heldKeys(r.Held[heldRoots]))
	if failed != nil {
		reply(exchange.Outcome{Msg: wire.NewErrorObject(r.Msg.ID(), failed)})
		return
	}
	if len(r.Held[heldRoots]) > 0 {
		r = r.With(r.Msg.WithParams(params))
	}
	s.try(ctx, r, reply, 1)
}

func (s *session) try(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome), round int) {
	s.next.Handle(ctx, r, func(o exchange.Outcome) {
		questions, interim := exchange.Interim(r, o)
		var ours []string // the keys of those for roots
		for _, q := range questions {
			if q.Method == "roots/list" {
				ours = append(ours, q.Key)
			}
		}
		switch {
		case !interim || len(ours) == 0:
			reply(o)
			return
		case len(ours) < len(questions):
			result, keys := o.Msg.Result(), []byte("{}")
			for _, key := range ours {
				keys = wire.SetMember(keys, []byte("null"), key)
				result = wire.DeleteMember(result, "inputRequests", key)
			}
			hold := exchange.Held{heldRoots: keys}
			for k, v := range o.Hold {
				hold[k] = v
			}
			reply(exchange.Outcome{Msg: o.Msg.WithResult(result), Hold: hold})
			return
		case round == maxRounds:
			reply(exchange.Fail(r, wire.CodeInternal, "rootbound: the server asked for roots again and again", nil))
			return
		}
		// The request that was given back has ended for the server: the next try is another one.
		params := wire.DeleteMember(wire.DeleteMember(r.Msg.Params(), "inputResponses"), "requestState")
		params, failed := s.answerRoots(params, ours)
		if failed != nil {
			reply(exchange.Outcome{Msg: wire.NewErrorObject(r.Msg.ID(), failed)})
			return
		}
		if state, ok := wire.Get(o.Msg.Result(), "requestState"); ok {
			params = wire.SetMember(params, state, "requestState")
		}
		again := r.With(r.Msg.WithParams(params).WithID(exchange.NewID()))
		again.Roots = s.state().Set
		if len(o.Hold) > 0 { // what other stages hold for the retry: this is it
			again.Held = o.Hold
		}
		// This runs where the server's answer was read, which must not wait for the server to read. And the client's
		// cancellation names an id that the server has not seen.
		withdrawn := context.AfterFunc(ctx, func() {
			s.next.Handle(context.Background(), exchange.Own(again, "notifications/cancelled", wire.SetMember(nil, again.Msg.ID(), "requestId")), func(exchange.Outcome) {})
		})
		go s.try(ctx, again, func(o exchange.Outcome) {
			withdrawn()
			reply(o)
		}, round+1)
	})
}

// answerRoots puts the list that holds now into params, as the answer to the questions with these keys; failed is the
// error that the server gets instead.
func (s *session) answerRoots(params []byte, keys []string) (answered, failed []byte) {
	for _, key := range keys {
		a, told := s.list(exchange.Question{Key: key})
		if a.Error != nil {
			return nil, a.Error
		}
		s.mu.Lock()
		s.fetched, s.told = true, told
		s.mu.Unlock()
		params = wire.SetMember(params, a.Result, "inputResponses", key)
	}
	return params, nil
}

// heldKeys are the keys of the questions for roots that wait for the retry.
func heldKeys(held []byte) (keys []string) {
	for key := range wire.Members(held) {
		keys = append(keys, key)
	}
	return keys
}

// withoutRoots takes out of r what its client says of roots to a server directly: they are answered here, and nowhere else.
func withoutRoots(r *exchange.Request) *exchange.Request {
	responses := r.Msg.InputResponses()
	left := wire.DeleteMembers(responses, func(_ string, v []byte) bool {
		_, ok := wire.Get(v, "roots")
		return ok
	})
	if len(left) == len(responses) {
		return r
	}
	return r.With(r.Msg.WithParams(wire.SetMember(r.Msg.Params(), left, "inputResponses")))
}
