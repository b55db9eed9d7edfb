package mcptest

import (
	"context"
	"maps"
	"sync"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// Counted is a server that counts what it does: its tool "do" does something at once, "ask" asks a person before. Both say what they did,
// by their argument n.
type Counted struct {
	only *exchange.Era

	mu   sync.Mutex
	done map[string]int
}

// NewCounted returns one that knows one era only, or with nil both.
func NewCounted(only *exchange.Era) *Counted { return &Counted{only: only, done: map[string]int{}} }

// Done is how often each call was done, by its argument n.
func (s *Counted) Done() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.done)
}

// Handle implements exchange.Handler.
func (s *Counted) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	method, n := r.Msg.Method(), wire.GetString(r.Msg.Params(), "arguments", "n")
	did := func(how string) {
		s.mu.Lock()
		s.done[n]++
		s.mu.Unlock()
		reply(exchange.Result(r, []byte(`{"content":[{"type":"text","text":`+string(wire.Quote(how+" "+n))+`}]}`)))
	}
	switch {
	case r.Msg.Kind() != wire.Request:
	case method == exchange.Listen:
		context.AfterFunc(ctx, func() { reply(exchange.Cancelled) })
	case s.only != nil && r.Era != *s.only:
		reply(exchange.Fail(r, wire.CodeMethodNotFound, "not here", nil))
	case method == "initialize":
		reply(exchange.Result(r, []byte(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`)))
	case method == "server/discover":
		reply(exchange.Result(r, []byte(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)))
	case method == "ping":
		reply(exchange.Result(r, []byte(`{}`)))
	case method == "tools/call" && wire.GetString(r.Msg.Params(), "name") == "do":
		did("did")
	case method == "tools/call":
		r.Caller.Ask(ctx, []exchange.Question{{Key: "may", Method: "elicitation/create", Params: []byte(`{"message":"?","requestedSchema":{"type":"object","properties":{}}}`)}}, func(a []exchange.Answer) {
			if ctx.Err() != nil || wire.GetString(a[0].Result, "action") != "accept" {
				reply(exchange.Fail(r, wire.CodeInternal, "nobody allowed it", nil))
				return
			}
			did("asked and did")
		})
	default:
		reply(exchange.Fail(r, wire.CodeMethodNotFound, "not here", nil))
	}
}
