package modern

import (
	"context"
	"slices"
	"sync"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// Server is the server edge: a handler in front of a stateless server on one stream. It keeps nothing of a request once
// it is answered, an interim answer included. It is safe for concurrent use; Receive must be called from one goroutine
// at a time.
type Server struct {
	report func(string, ...any)

	mu   sync.Mutex
	out  *wire.Writer // nil while not connected
	open []*pending   // the oldest first
}

type pending struct {
	out   *wire.Writer // of the process that has to answer
	req   *exchange.Request
	key   string
	id    []byte
	token string
	reply func(exchange.Outcome)
}

// NewServer returns an edge that is not connected yet. Report is told of oddities that nobody else hears of; it may be
// nil.
func NewServer(report func(format string, args ...any)) *Server {
	if report == nil {
		report = func(string, ...any) {}
	}
	return &Server{report: report}
}

// Connect says where the server's messages go from now on.
func (s *Server) Connect(out *wire.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = out
}

// Handle implements exchange.Handler.
func (s *Server) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	s.mu.Lock()
	out, msg := s.out, r.Msg
	switch {
	case msg.Kind() == wire.Request && ctx.Err() != nil:
		s.mu.Unlock()
		reply(exchange.Cancelled)
		return
	case out == nil:
		s.mu.Unlock()
		if msg.Kind() == wire.Request {
			reply(exchange.Fail(r, wire.CodeInternal, "rootbound: the server is not running", nil))
		}
		return
	}
	var ended *pending
	if msg.Kind() == wire.Request {
		p := &pending{out: out, req: r, reply: reply}
		for p.key = msg.Key(); s.isOpen(p.key); p.key = msg.Key() {
			msg = msg.WithID(exchange.NewID())
		}
		p.id = msg.ID()
		if token, ok := wire.Get(msg.Meta(), "progressToken"); ok {
			p.token = wire.IDKey(token)
		}
		s.open = append(s.open, p)
	} else if msg.Method() == "notifications/cancelled" {
		id, _ := wire.Get(msg.Params(), "requestId")
		if ended = s.takeClients(wire.IDKey(id)); ended != nil && string(ended.id) != string(ended.req.Msg.ID()) {
			msg = msg.WithParams(wire.SetMember(msg.Params(), ended.id, "requestId"))
		}
	}
	out.Put(msg) // in this order, so that a cancellation never overtakes its request
	s.mu.Unlock()
	out.Flush() // an error means that the server is going: Disconnect answers what is open
	if ended != nil {
		ended.reply(exchange.Cancelled)
	}
}

func (s *Server) isOpen(key string) bool {
	return slices.ContainsFunc(s.open, func(p *pending) bool { return p.key == key })
}

func (s *Server) take(key string) *pending {
	for i, p := range s.open {
		if p.key == key {
			s.open = slices.Delete(s.open, i, i+1)
			return p
		}
	}
	return nil
}

// takeClients ends what is open under the client's id. The caller holds mu.
func (s *Server) takeClients(key string) *pending {
	for _, p := range s.open {
		if p.req.Msg.Key() == key {
			return s.take(p.key)
		}
	}
	return nil
}

// Forget ends what is open under the client's id without an answer.
func (s *Server) Forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeClients(key)
}

// Disconnect says that the process behind out is gone: what it has not answered fails with why. What a later process has
// is left alone.
func (s *Server) Disconnect(out *wire.Writer, why error) {
	s.mu.Lock()
	if s.out == out {
		s.out = nil
	}
	var open []*pending
	for _, p := range slices.Clone(s.open) {
		if p.out == out {
			open = append(open, s.take(p.key))
		}
	}
	s.mu.Unlock()
	for _, p := range open {
		p.reply(exchange.Fail(p.req, wire.CodeInternal, "rootbound: "+why.Error(), nil))
	}
}

// Has reports whether a request with this id's key is open.
func (s *Server) Has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isOpen(key)
}

// Open reports how many requests the server has not answered.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Receive takes a message of the server.
func (s *Server) Receive(m *wire.Message) {
	if m.IllFormed() {
		s.report("the server sent text that is not well-formed Unicode; it was passed on as it came")
	}
	switch m.Kind() {
	case wire.Response:
		s.response(m)
	case wire.Notification:
		s.notification(m)
	case wire.Request:
		s.report("the server sent the request %.60q, which a stateless server must not; it was dropped", m.Method())
	case wire.Batch:
		s.report("the server sent a batch, which this revision has not; it was dropped")
	}
}

func (s *Server) response(m *wire.Message) {
	s.mu.Lock()
	p := s.take(m.Key())
	if p == nil && (m.ID() == nil || string(m.ID()) == "null") && len(s.open) == 1 {
		// An error without an id can only mean the one request that is open.
		p = s.take(s.open[0].key)
		m = wire.NewErrorObject(p.id, m.Error())
	}
	s.mu.Unlock()
	if p == nil {
		s.report("the server answered %.60q, which is not open; the answer was dropped", m.ID())
		return
	}
	p.reply(exchange.Outcome{Msg: m})
}

// notification goes to the request it belongs to: by progress token, by subscription, else to the oldest that is open.
func (s *Server) notification(m *wire.Message) {
	var token, subscription string
	if v, ok := wire.Get(m.Params(), "progressToken"); ok {
		token = wire.IDKey(v)
	}
	if v, ok := wire.Get(m.Meta(), exchange.MetaSubscriptionID); ok {
		subscription = wire.IDKey(v)
	}
	progress := m.Method() == "notifications/progress"
	s.mu.Lock()
	var to exchange.Caller
	for _, p := range s.open {
		if p.req.Caller == nil {
			continue
		}
		if token != "" && p.token == token || subscription != "" && p.key == subscription {
			to = p.req.Caller
			break
		}
		if to == nil && !progress {
			to = p.req.Caller
		}
	}
	s.mu.Unlock()
	if to != nil {
		to.Notify(m)
	} else {
		s.report("the server sent %.60q outside any request; it was dropped", m.Method())
	}
}

// Refuse takes a line of the server that is no message.
func (s *Server) Refuse(r *wire.Refusal) {
	s.mu.Lock()
	var p *pending
	if r.ID != nil && r.Kind != wire.Request {
		p = s.take(wire.IDKey(r.ID))
	}
	s.mu.Unlock()
	switch {
	case r.Text:
		s.report("the server wrote a line to stdout that is no message; it was dropped")
	case p != nil:
		p.reply(exchange.Fail(p.req, wire.CodeInternal, "rootbound: the server's answer was refused: "+r.Reason, nil))
	default:
		s.report("a message of the server was refused: %s", r.Reason)
	}
}
