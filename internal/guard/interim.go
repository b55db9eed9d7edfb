package guard

import (
	"context"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// heldRoots is the roots stage's part of what is held while a request is given back: the answers it had ready.
const heldRoots = "roots"

// maxRounds is how often a server may give a request back only for roots, which are answered at once.
const maxRounds = 10

// forward sends r on with the roots capability declared, and answers for roots when a stateless server gives the request
// back: when it wants nothing else the request is tried again at once, else the answer waits for the client's.
func (s *session) forward(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	if r.Era != exchange.Modern {
		s.next.Handle(ctx, r, reply)
		return
	}
	r = s.declare(withoutRoots(r))
	if held := r.Held[heldRoots]; held != nil {
		r = r.With(r.Msg.WithParams(addResponses(r.Msg.Params(), held)))
	}
	s.try(ctx, r, reply, 1)
}

func (s *session) try(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome), round int) {
	s.next.Handle(ctx, r, func(o exchange.Outcome) {
		questions, interim := exchange.Interim(r, o)
		if !interim {
			reply(o)
			return
		}
		responses, ours := []byte("{}"), 0
		result := o.Msg.Result()
		for _, q := range questions {
			if q.Method != "roots/list" {
				continue
			}
			a, _ := s.list(q)
			if a.Error != nil {
				reply(exchange.Outcome{Msg: wire.NewErrorObject(r.Msg.ID(), a.Error)})
				return
			}
			ours++
			responses = wire.SetMember(responses, a.Result, q.Key)
			result = wire.DeleteMember(result, "inputRequests", q.Key)
		}
		switch {
		case ours == 0:
			reply(o)
		case ours < len(questions):
			hold := exchange.Held{heldRoots: responses}
			for k, v := range o.Hold {
				hold[k] = v
			}
			reply(exchange.Outcome{Msg: o.Msg.WithResult(result), Hold: hold})
		case round == maxRounds:
			reply(exchange.Fail(r, wire.CodeInternal, "rootbound: the server asked for roots again and again", nil))
		default:
			// The request that was given back has ended for the server: the next try is another one.
			params := wire.DeleteMember(r.Msg.Params(), "inputResponses")
			params = addResponses(wire.DeleteMember(params, "requestState"), responses)
			if state, ok := wire.Get(o.Msg.Result(), "requestState"); ok {
				params = wire.SetMember(params, state, "requestState")
			}
			again := r.With(r.Msg.WithParams(params).WithID(exchange.NewID()))
			again.Roots = s.state().Set
			// This runs where the server's answer was read, which must not wait for the server to read. And the client's
			// cancellation names an id that the server has not seen.
			withdrawn := context.AfterFunc(ctx, func() {
				s.next.Handle(context.Background(), exchange.Own(again, "notifications/cancelled", wire.SetMember(nil, again.Msg.ID(), "requestId")), func(exchange.Outcome) {})
			})
			go s.try(ctx, again, func(o exchange.Outcome) {
				withdrawn()
				reply(o)
			}, round+1)
		}
	})
}

// withoutRoots takes out of r what its client says of roots to a server directly: they are answered here, and nowhere else.
func withoutRoots(r *exchange.Request) *exchange.Request {
	responses, _ := wire.Get(r.Msg.Params(), "inputResponses")
	params := r.Msg.Params()
	for key, v := range wire.Members(responses) {
		if _, ok := wire.Get(v, "roots"); ok {
			params = wire.DeleteMember(params, "inputResponses", key)
		}
	}
	if len(params) == len(r.Msg.Params()) {
		return r
	}
	return r.With(r.Msg.WithParams(params))
}

// addResponses puts answers to those that params has.
func addResponses(params, responses []byte) []byte {
	for key, v := range wire.Members(responses) {
		params = wire.SetMember(params, v, "inputResponses", key)
	}
	return params
}
