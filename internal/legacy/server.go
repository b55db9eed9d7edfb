package legacy

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// ServerOptions of a server edge.
type ServerOptions struct {
	// Strict refuses a server's question that belongs to no open request.
	Strict bool
	// Report is told of oddities that nobody else hears of; nil drops them.
	Report func(format string, args ...any)
	// Note is told of what is only for the log; nil drops it.
	Note func(format string, args ...any)
	// Again says whether a subscription of the client may be made again with a new process; nil is always.
	Again func(m *wire.Message) bool
}

// Server is the server edge: a handler in front of a handshake server, for one session. It outlives connections: after
// Disconnect it can be connected again, and says again what a new server process must know. It is safe for concurrent
// use; Receive must be called from one goroutine at a time.
type Server struct {
	strict bool
	line   *exchange.Line
	again  func(*wire.Message) bool

	mu     sync.Mutex // before the line's own
	listen exchange.Caller
	asked  map[string]*asked // questions of the server that are open, by id

	// What a new process must be told.
	initialize, initialized, level *wire.Message
	subscriptions                  []*wire.Message
	revision                       string
}

// maxAsked is how many questions of a server may be open: each is kept until its client answers.
const maxAsked = 1024

// asked is a question of the server that is open.
type asked struct {
	out      *wire.Writer // of the process that asked
	withdraw context.CancelCauseFunc
}

// NewServer returns an edge that is not connected yet.
func NewServer(o ServerOptions) *Server {
	if o.Again == nil {
		o.Again = func(*wire.Message) bool { return true }
	}
	return &Server{strict: o.Strict, line: exchange.NewLine(o.Report, o.Note), again: o.Again, asked: map[string]*asked{}}
}

// Revision is the protocol revision that the server agreed to, "" before it did.
func (s *Server) Revision() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// Handle implements exchange.Handler.
func (s *Server) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	if r.Msg.Method() == exchange.Listen && r.Era == exchange.Legacy {
		s.mu.Lock()
		s.listen = r.Caller
		s.mu.Unlock()
		context.AfterFunc(ctx, func() { reply(exchange.Cancelled) })
		return
	}
	if ctx.Err() == nil && s.line.Out() != nil {
		s.remember(r.Msg)
	}
	s.line.Send(ctx, r, reply)
}

// remember keeps what a new process must be told.
func (s *Server) remember(m *wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m.Method() {
	case "initialize":
		s.initialize = m
	case "notifications/initialized":
		s.initialized = m
	case "logging/setLevel":
		s.level = m
	case "resources/subscribe", "resources/unsubscribe":
		uri := wire.GetString(m.Params(), "uri")
		s.subscriptions = slices.DeleteFunc(s.subscriptions, func(m *wire.Message) bool { return wire.GetString(m.Params(), "uri") == uri })
		if m.Method() == "resources/subscribe" {
			s.subscriptions = append(s.subscriptions, m)
		}
	}
}

// replayLimit is how long a new process may take for its handshake.
const replayLimit = 30 * time.Second

// Connect says where the server's messages go from now on. When an earlier process had been told things, the new one is
// told them first; it must be handed no other request until then. Ready runs on a goroutine of its own when it knows, or
// when it never will.
func (s *Server) Connect(out *wire.Writer, ready func()) {
	s.mu.Lock()
	s.subscriptions = slices.DeleteFunc(s.subscriptions, func(m *wire.Message) bool { return !s.again(m) })
	s.line.Connect(out)
	if s.initialized == nil {
		s.mu.Unlock()
		go ready()
		return
	}
	again := slices.Clone(s.subscriptions)
	if s.level != nil {
		again = append(again, s.level)
	}
	var late *time.Timer
	hello := s.ours(s.initialize, func(o exchange.Outcome) {
		s.mu.Lock() // behind which late is set: the server may answer as it is being asked
		late.Stop()
		if o.Msg == nil || o.Msg.Result() == nil || s.line.Out() != out {
			s.mu.Unlock()
			s.line.Report("the server did not take its handshake when it was said again")
			s.Disconnect(out, errors.New("the server did not take its handshake when it was said again"))
			go ready()
			return
		}
		s.line.Silent()
		out.Put(s.initialized)
		for _, m := range again {
			out.Put(s.ours(m, func(exchange.Outcome) {}).Msg)
		}
		s.mu.Unlock()
		go func() { // not on the goroutine that reads the server, which may not be reading
			out.Flush()
			ready()
		}()
	})
	late = time.AfterFunc(replayLimit, func() { s.end(hello.Msg.ID(), exchange.Cancelled) })
	out.Put(hello.Msg)
	s.mu.Unlock()
	go out.Flush() // the new process may never read, and who connects it may hold a lock that its end needs
}

// end ends what was sent under an id with an outcome.
func (s *Server) end(id []byte, o exchange.Outcome) {
	if p := s.line.Take(wire.IDKey(id)); p != nil {
		p.Reply(o)
	}
}

// ours makes a request that repeats m for ourselves. The caller holds mu.
func (s *Server) ours(m *wire.Message, reply func(exchange.Outcome)) *exchange.Pending {
	return s.line.Add(&exchange.Request{Msg: m.WithID(exchange.NewID())}, reply)
}

// Disconnect says that the process behind out is gone: what it has not answered fails with why, and its questions are
// withdrawn. What a later process has is left alone.
func (s *Server) Disconnect(out *wire.Writer, why error) {
	s.mu.Lock()
	fail := s.line.Leave(out, why, "") // with mu held, or who holds it could still ask or be asked by a process that is left
	var withdraw []context.CancelCauseFunc
	for key, q := range s.asked {
		if q.out == out {
			withdraw = append(withdraw, q.withdraw)
			delete(s.asked, key)
		}
	}
	s.mu.Unlock()
	for _, f := range withdraw {
		f(why)
	}
	fail()
}

// Idle is closed when the server has nothing left to answer.
func (s *Server) Idle() <-chan struct{} { return s.line.Empty() }

// Connected reports whether messages go anywhere.
func (s *Server) Connected() bool { return s.line.Out() != nil }

// Request returns what was sent under an id in the form of wire.IDKey and is not answered, nil when there is nothing.
func (s *Server) Request(key string) *exchange.Request {
	if p := s.line.Get(key); p != nil {
		return p.Req
	}
	return nil
}

// Has reports whether something was sent under an id in the form of wire.IDKey and is not answered.
func (s *Server) Has(key string) bool { return s.line.Has(key) }

// Open reports how many requests the server has not answered.
func (s *Server) Open() int { return s.line.Len() }

// Forget forgets a handshake that the server did not take, or did not answer.
func (s *Server) Forget() {
	s.mu.Lock()
	m := s.initialize
	s.initialize = nil
	s.mu.Unlock()
	if m != nil {
		s.line.TakeClients(m.Key())
	}
}

// Greeted reports whether an initialize went to the server.
func (s *Server) Greeted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initialize != nil
}

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
		s.question(m, of)
	case wire.Batch:
		s.receiveBatch(m, of)
	}
}

func (s *Server) receiveBatch(m *wire.Message, of string) {
	s.mu.Lock()
	revision := s.revision
	s.mu.Unlock()
	msgs, refused, err := m.Elements(wire.Lenient)
	if err != nil || revision != batchRevision {
		s.line.Report("the server sent a batch, which exists only in revision %s; it was refused", batchRevision)
		for i := range msgs {
			if msgs[i].Kind() == wire.Response {
				s.Refuse(&wire.Refusal{ID: msgs[i].ID(), Kind: wire.Response, Reason: "it came in a batch"})
			}
		}
		return
	}
	for i := range msgs {
		if refused[i] != nil {
			s.Refuse(refused[i])
		} else {
			s.Receive(&msgs[i], of)
		}
	}
}

func (s *Server) response(m *wire.Message) {
	p, m := s.line.Answered(m)
	if p == nil {
		return
	}
	if p.Msg.Method() == "initialize" && m.Result() != nil {
		s.mu.Lock()
		s.revision = wire.GetString(m.Result(), "protocolVersion")
		s.mu.Unlock()
	}
	p.Reply(exchange.Outcome{Msg: m})
}

func (s *Server) notification(m *wire.Message, of string) {
	s.mu.Lock()
	to := s.listen
	switch m.Method() {
	case "notifications/progress":
		if p := s.line.Progress(m.Params()); p != nil {
			to = p.Req.Caller
		}
	case "notifications/message":
		if caller := s.caller(of); caller != nil {
			to = caller
		}
	case "notifications/cancelled":
		if id, ok := wire.Get(m.Params(), "requestId"); ok {
			if q := s.asked[wire.IDKey(id)]; q != nil {
				delete(s.asked, wire.IDKey(id))
				s.mu.Unlock()
				reason := wire.GetString(m.Params(), "reason")
				if reason == "" {
					reason = "the server withdrew it"
				}
				q.withdraw(errors.New(reason))
				return
			}
		}
	}
	s.mu.Unlock()
	if to != nil {
		to.Notify(m)
	}
}

// question takes a request of the server to somebody who can be asked.
func (s *Server) question(m *wire.Message, of string) {
	s.mu.Lock()
	out, key := s.line.Out(), m.Key()
	if out == nil {
		s.mu.Unlock()
		return
	}
	if s.asked[key] != nil {
		s.mu.Unlock()
		s.answer(out, wire.NewError(m.ID(), wire.CodeInvalidRequest, "rootbound: a request with this id is still open", nil))
		return
	}
	if len(s.asked) >= maxAsked {
		s.mu.Unlock()
		s.line.Report("the server has %d questions without an answer; it gets no more through until some are answered", maxAsked)
		s.answer(out, wire.NewError(m.ID(), wire.CodeInternal, "rootbound: too many of your requests are not answered yet", []byte(`{"reason":"too many questions"}`)))
		return
	}
	caller := s.carrier(m.Method(), of)
	associated := s.line.Find(func(*exchange.Pending) bool { return true }) != nil
	if caller == nil || s.strict && !associated && m.Method() != "ping" {
		s.mu.Unlock()
		s.answer(out, s.refuseQuestion(m, caller != nil))
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	q := &asked{out: out, withdraw: cancel}
	s.asked[key] = q
	s.mu.Unlock()
	caller.Ask(ctx, []exchange.Question{{Method: m.Method(), Params: m.Params(), Msg: m}}, func(answers []exchange.Answer) {
		s.mu.Lock()
		if s.asked[key] == q {
			delete(s.asked, key)
		}
		s.mu.Unlock()
		if ctx.Err() == nil {
			s.answer(out, answerTo(m, answers[0]))
		}
		cancel(nil)
	})
}

// answer answers a question of the server.
func (s *Server) answer(out *wire.Writer, m *wire.Message) {
	s.line.Silent()
	out.Queue(m)
}

// caller is that of the request under an id, nil when there is none.
func (s *Server) caller(of string) exchange.Caller {
	if p := s.line.Get(of); of != "" && p != nil {
		return p.Req.Caller
	}
	return nil
}

// carrier returns the caller that can be asked method: that of the request on whose stream the question came, where there is
// such a stream. Requests without a session may be of several clients: a question that could be for two of them goes to neither, and
// is for whoever listens to refuse. The caller holds mu.
func (s *Server) carrier(method, of string) exchange.Caller {
	if caller := s.caller(of); caller != nil {
		if caller.CanAsk(method) {
			return caller
		}
		return nil // nobody else is asked for it
	}
	if s.listen != nil && s.listen.CanAsk(method) {
		return s.listen
	}
	var found exchange.Caller
	two := s.line.Find(func(p *exchange.Pending) bool {
		if !p.Req.Caller.CanAsk(method) || found != nil && p.Req.Session != nil {
			return false
		}
		two := found != nil
		found = p.Req.Caller
		return two
	})
	if two != nil {
		return s.listen
	}
	return found
}

func (s *Server) refuseQuestion(m *wire.Message, unassociated bool) *wire.Message {
	switch {
	case m.Method() == "ping":
		return wire.NewResult(m.ID(), []byte("{}"))
	case unassociated:
		return wire.NewError(m.ID(), wire.CodeInvalidParams, "rootbound: "+m.Method()+" belongs to no request of the client", []byte(`{"reason":"unassociated"}`))
	}
	return wire.NewError(m.ID(), wire.CodeMethodNotFound, "rootbound: the client does not answer "+m.Method(), []byte(`{"reason":"not declared"}`))
}

func answerTo(m *wire.Message, a exchange.Answer) *wire.Message {
	switch {
	case a.Msg != nil:
		return a.Msg.WithID(m.ID())
	case a.Error != nil:
		return wire.NewErrorObject(m.ID(), a.Error)
	}
	return wire.NewResult(m.ID(), a.Result)
}

// Refuse takes a line of the server that is no message: what it would have answered fails, what it would have asked is
// refused, the rest is dropped and reported.
func (s *Server) Refuse(r *wire.Refusal) {
	if out := s.line.Out(); r.Kind == wire.Request && r.ID != nil && out != nil {
		s.answer(out, Refusal(r))
	}
	s.line.Refuse(r)
}
