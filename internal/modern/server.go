package modern

import (
	"context"
	"fmt"
	"sync"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// Server is the server edge: a handler in front of a stateless server on one stream. It keeps nothing of a request once
// it is answered, an interim answer included. It is safe for concurrent use; Receive must be called from one goroutine
// at a time.
type Server struct {
	line  *exchange.Line
	again func(*wire.Message) bool

	mu      sync.Mutex
	resumed map[string]bool // subscriptions that were made again, by id, until the server acknowledges them
}

// ServerOptions of a server edge.
type ServerOptions struct {
	// Report is told of oddities that nobody else hears of; nil drops them.
	Report func(format string, args ...any)
	// Note is told of what is only for the log; nil drops it.
	Note func(format string, args ...any)
	// Again says whether a subscription of the client may be made again with a new process; nil is always.
	Again func(m *wire.Message) bool
}

// NewServer returns an edge that is not connected yet.
func NewServer(o ServerOptions) *Server {
	if o.Again == nil {
		o.Again = func(*wire.Message) bool { return true }
	}
	return &Server{line: exchange.NewLine(o.Report, o.Note), again: o.Again, resumed: map[string]bool{}}
}

// Connect says where the server's messages go from now on. Subscriptions of a process that was replaced are made again.
func (s *Server) Connect(out *wire.Writer) {
	s.line.Connect(out)
	s.mu.Lock()
	s.resumed = map[string]bool{}
	var refused []*exchange.Pending
	for _, p := range s.line.Subscriptions() {
		if !s.again(p.Msg) {
			if p = s.line.Take(p.Msg.Key()); p != nil { // else its client has cancelled it just now
				refused = append(refused, p)
			}
		} else if s.line.Resend(p, out) {
			s.resumed[p.Msg.Key()] = true
		}
	}
	s.mu.Unlock()
	go out.Flush() // the new process may not be reading yet
	for _, p := range refused {
		p.Reply(exchange.Fail(p.Req, wire.CodeInvalidParams, "rootbound: the server was started again for new roots, which this subscription is not in", []byte(`{"reason":"outside"}`)))
	}
}

// Replace says that another process is about to take the place of the one behind out: what that has not answered fails
// with why, but for subscriptions, which wait for Connect, or Disconnect.
func (s *Server) Replace(out *wire.Writer, why error) { s.line.Disconnect(out, why, exchange.Listen) }

// Handle implements exchange.Handler.
func (s *Server) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	s.line.Send(ctx, r, reply)
}

// Forget ends what is open under the client's id without an answer.
func (s *Server) Forget(key string) { s.line.TakeClients(key) }

// Disconnect says that the process behind out is gone: what it has not answered fails with why. What a later process has
// is left alone.
func (s *Server) Disconnect(out *wire.Writer, why error) { s.line.Disconnect(out, why, "") }

// Idle is closed when the server has nothing left to answer but subscriptions.
func (s *Server) Idle() <-chan struct{} { return s.line.Empty() }

// Request returns what was sent under an id in the form of wire.IDKey and is not answered, nil when there is nothing.
func (s *Server) Request(key string) *exchange.Request {
	if p := s.line.Get(key); p != nil {
		return p.Req
	}
	return nil
}

// Has reports whether something was sent under an id in the form of wire.IDKey and is not answered.
func (s *Server) Has(key string) bool { return s.line.Has(key) }

// Late reports whether an answer under an id would be late: what it answers was cancelled.
func (s *Server) Late(key string) bool { return s.line.Late(key) }

// Open reports how many requests the server has not answered.
func (s *Server) Open() int { return s.line.Len() }

// Receive takes a message of the server. Of is the key of the id of the request on whose own stream it came; it is empty where it
// came on no request's, as on stdio.
func (s *Server) Receive(m *wire.Message, of string) {
	if m.IllFormed() {
		s.line.Report("the server sent text that is not well-formed Unicode; it was passed on as it came")
	}
	switch m.Kind() {
	case wire.Response:
		s.response(m)
	case wire.Notification:
		s.notification(m, of)
	case wire.Request:
		s.line.Report("the server sent the request %.60q, which a stateless server must not; it was dropped", m.Method())
	case wire.Batch:
		s.line.Report("the server sent a batch, which this revision has not; it was refused")
		answers, _, _ := m.Elements(wire.Lenient)
		for i := range answers {
			if answers[i].Kind() == wire.Response { // nothing else would come for its request
				s.Refuse(&wire.Refusal{ID: answers[i].ID(), Kind: wire.Response, Reason: "it came in a batch"})
			}
		}
	}
}

func (s *Server) response(m *wire.Message) {
	p, m := s.line.Answered(m)
	if p == nil {
		return
	}
	if m.ResultType() == "input_required" {
		n := 0
		requests, _ := wire.Get(m.Result(), "inputRequests")
		for range wire.Members(requests) {
			n++
		}
		if n > exchange.MaxQuestions {
			m = wire.NewError(m.ID(), wire.CodeInternal, fmt.Sprintf("rootbound: the server's answer was refused: it asks %d questions, and there may be %d at once", n, exchange.MaxQuestions), nil)
		}
	}
	p.Reply(exchange.Outcome{Msg: m})
}

// notification goes to the request it belongs to: progress by its token, others by their subscription, else by the stream they
// came on, else to the oldest that is open.
func (s *Server) notification(m *wire.Message, of string) {
	var to *exchange.Pending
	if m.Method() == "notifications/progress" {
		to = s.line.Progress(m.Params())
	} else {
		if id, ok := wire.Get(m.Meta(), exchange.MetaSubscriptionID); ok {
			key := wire.IDKey(id)
			if m.Method() == "notifications/subscriptions/acknowledged" && s.acknowledged(key) {
				return
			}
			to = s.line.Find(func(p *exchange.Pending) bool { return p.Msg.Key() == key })
		}
		if to == nil && of != "" {
			to = s.line.Find(func(p *exchange.Pending) bool { return p.Msg.Key() == of })
		} else if to == nil {
			to = s.line.Find(func(*exchange.Pending) bool { return true })
		}
	}
	if to == nil {
		s.line.Report("the server sent %.60q outside any request; it was dropped", m.Method())
		return
	}
	to.Req.Caller.Notify(m)
}

// acknowledged reports whether the server acknowledges a subscription for the second time, which the client did not make.
func (s *Server) acknowledged(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := s.resumed[key]
	delete(s.resumed, key)
	return again
}

// Refuse takes a line of the server that is no message.
func (s *Server) Refuse(r *wire.Refusal) { s.line.Refuse(r) }
