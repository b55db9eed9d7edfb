package verify

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// A round is a request that a stateless server gave back for something that it wants to know first.
type round struct {
	*peer
	params  []byte // of the request
	result  []byte // of the server
	asks    []byte // its input requests; nil for none
	state   []byte // its state, nil for none
	methods []string
}

// interim begins with a new process, and calls a tool that needs to know the roots. Nil is for a server that does not ask. The
// caller closes.
func (s *session) interim() (*round, error) {
	t := s.tools[roleRead]
	if t == nil {
		return nil, nil
	}
	p, first, err := s.connect(exchange.Modern, peerOptions{})
	if err != nil {
		return nil, err
	}
	arguments := t.arguments(text("path", filepath.Join(s.w.one, plainName)))
	r := &round{peer: p, params: append(append(append([]byte(`{"name":`), wire.Quote(t.name)...), `,"arguments":`...), append(arguments, '}')...)}
	r.params = wire.SetMember(r.params, p.meta(), "_meta")
	if first.ok() {
		answer, _ := p.once("tools/call", r.params)
		r.result = answer.result
	}
	if wire.GetString(r.result, "resultType") != "input_required" {
		p.close()
		return nil, nil
	}
	r.asks, _ = wire.Get(r.result, "inputRequests")
	r.state, _ = wire.Get(r.result, "requestState")
	for _, ask := range wire.Members(r.asks) {
		r.methods = append(r.methods, wire.GetString(ask, "method"))
	}
	return r, nil
}

// again tries the request again with answers and a state; nil leaves them out.
func (r *round) again(answers, state []byte) reply {
	params := r.params
	if answers != nil {
		params = wire.SetMember(params, answers, "inputResponses")
	}
	if state != nil {
		params = wire.SetMember(params, state, "requestState")
	}
	rep, _ := r.once("tools/call", params)
	return rep
}

// answers are right answers to all that is asked for.
func (r *round) answers() []byte {
	b := []byte("{}")
	for key, ask := range wire.Members(r.asks) {
		params, _ := wire.Get(ask, "params")
		if a := r.answer(wire.GetString(ask, "method"), params); a != nil {
			b = wire.SetMember(b, a, key)
		}
	}
	return b
}

// rounded makes a check of what a server does with a request that it gave back.
func rounded(id, what, expected, allowed string, see func(s *session, r *round) (string, bool)) check {
	return check{id, what, expected, Low, allowed, func(s *session, _ list) (string, bool) {
		r, err := s.interim()
		if r == nil || err != nil {
			return "", true
		}
		defer r.close()
		return see(s, r)
	}}
}

// outcome says in a word what came of a try.
func outcome(r reply) string {
	switch {
	case r.hung:
		return "no answer"
	case r.err != nil:
		return fmt.Sprintf("the error %d", r.code())
	case wire.GetString(r.result, "resultType") == "input_required":
		return "asked again"
	case r.refused():
		return "a refusal"
	}
	return "a result"
}

var roundChecks = []check{
	rounded("MR-03", "a request that is given back", "what is wanted, or a state", "", func(_ *session, r *round) (string, bool) {
		return fmt.Sprintf("wants %v", r.methods), len(r.methods) > 0 || r.state != nil
	}),
	rounded("MR-05", "what a server wants to know", "only what this client declared", "", func(_ *session, r *round) (string, bool) {
		ok := true
		for _, m := range r.methods {
			ok = ok && (m == "roots/list" || m == "elicitation/create")
		}
		return fmt.Sprintf("wants %v", r.methods), ok
	}),
	rounded("MR-17", "a second try without answers", "the same question, or an error", "", func(_ *session, r *round) (string, bool) {
		rep := r.again(nil, r.state)
		return outcome(rep), !rep.hung && outcome(rep) != "a result"
	}),
	rounded("MR-16", "answers to what was not asked, beside the right ones", "they are ignored", "", func(s *session, r *round) (string, bool) {
		rep := r.again(wire.SetMember(r.answers(), []byte(`{"action":"accept"}`), "rootbound-not-asked"), r.state)
		return outcome(rep), !rep.refused() && bytes.Contains(rep.all(), []byte(s.w.inside[s.w.one]))
	}),
	rounded("MR-15", "an answer that is no list of roots", "a refusal, an error, or the question again; nothing hangs", "", func(_ *session, r *round) (string, bool) {
		b := []byte("{}")
		for key := range wire.Members(r.asks) {
			b = wire.SetMember(b, []byte(`{"roots":"x"}`), key)
		}
		rep := r.again(b, r.state)
		return outcome(rep), !rep.hung
	}),
	rounded("MR-06", "a state that was changed", "an error, or the question again", "what a server keeps in its state may not matter to it", func(_ *session, r *round) (string, bool) {
		state, err := wire.Unquote(r.state)
		if r.state == nil || err != nil || len(state) < 2 {
			return "", true
		}
		changed := []byte(state)
		changed[len(changed)/2] ^= 1
		rep := r.again(r.answers(), wire.Quote(string(changed)))
		return outcome(rep), !rep.hung && outcome(rep) != "a result"
	}),
	{"MR-02", "lists", "they are never given back for an answer", Low, "", func(s *session, _ list) (string, bool) {
		r, _ := s.peer.once("tools/list", wire.SetMember([]byte("{}"), s.peer.meta(), "_meta"))
		return outcome(r), outcome(r) == "a result"
	}},
	{"VD-20", "a client that declares nothing", "no question; an answer, or the error -32021", Low, "", func(s *session, _ list) (string, bool) {
		t := s.tools[roleRead]
		if t == nil {
			return "", true
		}
		p, _, err := s.connect(exchange.Modern, peerOptions{noRoots: true})
		if err != nil {
			return err.Error(), false
		}
		defer p.close()
		r := p.call(t.name, t.arguments(text("path", filepath.Join(s.w.one, plainName))))
		asked := p.looked().undeclared
		return outcome(r), !r.hung && len(asked) == 0
	}},
}
