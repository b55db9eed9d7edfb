package bridge

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// maxRounds is how often a request may be given back.
const maxRounds = 10

// retry is a request of a handshake client that a server gave back: the client is asked, and it is tried again with the answers.
type retry struct {
	ctx      context.Context
	first    *exchange.Request // in the client's words
	declared []byte            // what the client can; nil is left to those who ask it
	given    exchange.Outcome
	reply    func(exchange.Outcome)
}

func (t retry) fail(text string) {
	t.reply(exchange.Fail(t.first, wire.CodeInternal, "rootbound: "+text, nil))
}

// ask asks the questions of a round, and has again called with params that hold the answers and the server's state. Or it fails the
// request.
func (t retry) ask(questions []exchange.Question, round int, again func(params []byte), params []byte) {
	if round == maxRounds {
		t.fail(fmt.Sprintf("the server gave the request back %d times", round))
		return
	}
	for i, q := range questions {
		if tooDeep(q.Params) {
			t.fail("the server's question is nested too deeply")
			return
		}
		if !t.first.Caller.CanAsk(q.Method) || t.declared != nil && q.Method != "roots/list" && !answers(t.declared, q.Method, q.Params) {
			t.fail(fmt.Sprintf("the server needs an answer to %.60q, which the client does not give", q.Method))
			return
		}
		questions[i] = questionUp(q)
	}
	answered := func(answered []exchange.Answer) {
		if t.ctx.Err() != nil {
			t.reply(exchange.Cancelled)
			return
		}
		p := wire.DeleteMember(wire.DeleteMember(params, "inputResponses"), "requestState")
		for i, a := range answered {
			if a.Error != nil && questions[i].Method != "elicitation/create" {
				t.reply(exchange.Outcome{Msg: wire.NewErrorObject(t.first.Msg.ID(), a.Error)})
				return
			}
			if tooDeep(a.Result) {
				t.fail("the client's answer is nested too deeply")
				return
			}
			if a.Error != nil {
				a.Result = []byte(`{"action":"cancel"}`)
			}
			p = wire.SetMember(p, a.Result, "inputResponses", questions[i].Key)
		}
		if state, ok := wire.Get(t.given.Msg.Result(), "requestState"); ok {
			p = wire.SetMember(p, state, "requestState")
		}
		// This may be where the server is read, which must not wait for the server to read.
		go again(p)
	}
	if len(questions) == 0 {
		answered(nil)
		return
	}
	t.first.Caller.Ask(t.ctx, questions, answered)
}

// Rounds is a handler in front of the edge of a handshake server. There are servers that ask for one thing in the words of the
// handshake, and for the next one by a result with questions inside, which no client of a handshake reads: their questions are asked, and
// the request is sent again with the answers.
type Rounds struct {
	next exchange.Handler

	mu    sync.Mutex
	tries map[string][]byte // under which id a request that was given back is with the server, by its first; nil is with its client
}

// NewRounds returns one in front of next.
func NewRounds(next exchange.Handler) *Rounds { return &Rounds{next: next, tries: map[string][]byte{}} }

// Handle implements exchange.Handler.
func (h *Rounds) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	switch method := r.Msg.Method(); {
	case r.Msg.Kind() == wire.Request && givenBack[method]:
		h.try(ctx, r, r, reply, 1)
		return
	case method == "notifications/cancelled":
		id, _ := wire.Get(r.Msg.Params(), "requestId")
		h.mu.Lock()
		now, again := h.tries[wire.IDKey(id)]
		h.mu.Unlock()
		if again && now == nil {
			return // the end of its context is all
		}
		if again {
			r = r.With(r.Msg.WithParams(wire.SetMember(r.Msg.Params(), now, "requestId")))
		}
	}
	h.next.Handle(ctx, r, reply)
}

// at notes under which id the request that began as first is with the server.
func (h *Rounds) at(first *exchange.Request, id []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tries[first.Msg.Key()] = id
}

// over forgets a request that is answered.
func (h *Rounds) over(first *exchange.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.tries, first.Msg.Key())
}

// givenBack are the methods whose requests may be given back.
var givenBack = map[string]bool{"tools/call": true, "prompts/get": true, "resources/read": true}

func (h *Rounds) try(ctx context.Context, r, first *exchange.Request, reply func(exchange.Outcome), round int) {
	h.next.Handle(ctx, r, func(o exchange.Outcome) {
		questions := inside(o)
		if len(questions) == 0 {
			reply(o)
			return
		}
		if round == 1 {
			end := reply
			reply = func(o exchange.Outcome) {
				h.over(first)
				end(o)
			}
		}
		h.at(first, nil)
		t := retry{ctx: ctx, first: first, given: o, reply: reply}
		h.ask(t, questions, wire.DeleteMember(r.Msg.Params(), "inputResponses"), r, round)
	})
}

// ask asks one question after the other, as a handshake server does.
func (h *Rounds) ask(t retry, left []exchange.Question, params []byte, r *exchange.Request, round int) {
	responses, _ := wire.Get(params, "inputResponses")
	t.ask(left[:1], round, func(p []byte) {
		for key, v := range wire.Members(responses) {
			p = wire.SetMember(p, v, "inputResponses", key)
		}
		if len(left) > 1 {
			h.ask(t, left[1:], p, r, round)
			return
		}
		next := r.With(r.Msg.WithParams(p).WithID(exchange.NewID()))
		h.at(t.first, next.Msg.ID())
		h.try(t.ctx, next, t.first, t.reply, round+1)
	}, params)
}

// inside are the questions in a result of a handshake server, none where it has none or is something else.
func inside(o exchange.Outcome) (questions []exchange.Question) {
	if o.Msg == nil || !bytes.Contains(o.Msg.Result(), []byte(`"inputRequests"`)) { // most have not, and some are long
		return nil
	}
	if kind, ok := wire.Get(o.Msg.Result(), "resultType"); ok && string(kind) != `"input_required"` {
		return nil
	}
	requests, _ := wire.Get(o.Msg.Result(), "inputRequests")
	for key, v := range wire.Members(requests) {
		q := exchange.Question{Key: key, Method: wire.GetString(v, "method")}
		if exchange.CapabilityFor(q.Method) == "" || len(questions) == exchange.MaxQuestions {
			return nil
		}
		q.Params, _ = wire.Get(v, "params")
		questions = append(questions, q)
	}
	return questions
}
