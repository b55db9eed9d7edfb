package legacy

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// maxWithdrawn is how many answers that come late are known for that.
const maxWithdrawn = 1024

// Options of a client edge.
type Options struct {
	// Report is told of oddities that nobody else hears of; nil drops them.
	Report func(format string, args ...any)
}

// Client is the client edge. Receive must be called once at a time; everything else is safe from any goroutine.
type Client struct {
	out     exchange.Stream
	next    exchange.Handler
	session *exchange.Session
	report  func(string, ...any)

	mu          sync.Mutex
	open        map[string]*call     // requests of the client, by id
	questions   map[string]*question // what the client was asked, by id
	withdrawn   []string             // the ids of what was withdrawn last, to which answers may still come
	initialized *wire.Message        // the answer to initialize
	greeting    bool                 // an initialize is open
	again       []*call              // more of them, which get its answer
	listening   bool
	unsent      exchange.Tally // requests whose answers were not sent yet
}

// NewClient returns the edge of a client that is told on out what belongs to none of its messages, and whose requests go to
// next. The session ends when the connection does: its owner calls End.
func NewClient(out exchange.Stream, next exchange.Handler, s *exchange.Session, o Options) *Client {
	if o.Report == nil {
		o.Report = func(string, ...any) {}
	}
	return &Client{out: out, next: next, session: s, report: o.Report, open: map[string]*call{}, questions: map[string]*question{}}
}

// Receive takes a message of the client. What belongs to it is written on its stream, which a request and a batch end, with an
// answer or without.
func (c *Client) Receive(m *wire.Message, on exchange.Stream) {
	c.listen()
	switch m.Kind() {
	case wire.Request:
		c.request(m, on, nil)
	case wire.Notification:
		c.notification(m)
	case wire.Response:
		c.response(m)
	case wire.Batch:
		c.receiveBatch(m, on)
	}
}

// Refusal is the answer to a line that is refused; nil when it was a notification or a response, which have none.
func Refusal(r *wire.Refusal) *wire.Message {
	if r.Kind == wire.Notification || r.Kind == wire.Response {
		return nil
	}
	return wire.NewError(r.ID, r.Code, "rootbound: this message was refused: "+r.Reason, nil)
}

// listen opens the session's long-running request before the first message.
func (c *Client) listen() {
	c.mu.Lock()
	first := !c.listening
	c.listening = true
	c.mu.Unlock()
	if !first {
		return
	}
	r := &exchange.Request{
		Msg:     wire.NewRequest(exchange.NewID(), exchange.Listen, nil),
		Session: c.session,
	}
	r.Caller = &call{edge: c, on: c.out, ctx: c.session.Context()}
	c.next.Handle(c.session.Context(), r, func(exchange.Outcome) {})
}

// call is an open request; it is the caller that its handlers see.
type call struct {
	edge   *Client
	on     exchange.Stream
	ctx    context.Context
	cancel context.CancelCauseFunc
	id     []byte
	key    string
	batch  *batch

	mu   sync.Mutex
	done bool
}

func (c *Client) request(m *wire.Message, on exchange.Stream, b *batch) {
	k := &call{edge: c, on: on, id: m.ID(), key: m.Key(), batch: b}
	if m.Method() == "initialize" && c.repeated(k) {
		return
	}
	k.ctx, k.cancel = context.WithCancelCause(c.session.Context())
	c.mu.Lock()
	if _, open := c.open[k.key]; open {
		c.mu.Unlock()
		k.deliver(wire.NewError(m.ID(), wire.CodeInvalidRequest, "rootbound: a request with this id is still open", nil))
		return
	}
	c.open[k.key] = k
	c.mu.Unlock()
	c.unsent.Add()
	if m.Method() == "initialize" {
		c.client(m)
	}
	c.next.Handle(k.ctx, &exchange.Request{Msg: m, Caller: k, Session: c.session, Shown: exchange.Shown(on)}, func(o exchange.Outcome) {
		k.end(m.Method(), o)
	})
}

func (k *call) end(method string, o exchange.Outcome) {
	c := k.edge
	k.mu.Lock()
	if k.done {
		k.mu.Unlock()
		return
	}
	k.done = true
	k.mu.Unlock()
	// All this before the answer goes: the client may use the id again, or begin again, as soon as it has it.
	answer := o.Msg
	if answer != nil {
		answer = answer.WithID(k.id)
	}
	var again []*call
	if method == "initialize" {
		again = c.greeted(answer)
	}
	c.mu.Lock()
	delete(c.open, k.key)
	c.mu.Unlock()
	defer c.unsent.Done()
	k.deliver(answer)
	for _, k := range again {
		if answer == nil {
			k.deliver(wire.NewError(k.id, wire.CodeInvalidRequest, "rootbound: the first initialize was cancelled", nil))
		} else {
			k.deliver(answer.WithID(k.id))
		}
	}
	k.cancel(context.Canceled)
}

// Drained is closed when every request of the client was answered.
func (c *Client) Drained() <-chan struct{} { return c.unsent.Empty() }

// client remembers what the client says of itself.
func (c *Client) client(m *wire.Message) {
	p := m.Params()
	caps, _ := wire.Get(p, "capabilities")
	if caps == nil {
		caps = []byte("{}")
	}
	c.session.SetClient(exchange.Client{
		Name:         wire.GetString(p, "clientInfo", "name"),
		Version:      wire.GetString(p, "clientInfo", "version"),
		Revision:     wire.GetString(p, "protocolVersion"),
		Capabilities: caps,
	})
}

// repeated answers an initialize after the first like the first, as soon as that is answered: some clients send it twice.
func (c *Client) repeated(k *call) bool {
	c.mu.Lock()
	first := c.initialized
	if first == nil && c.greeting {
		c.again = append(c.again, k)
	}
	repeated := first != nil || c.greeting
	if c.open[k.key] == nil { // else it is refused
		c.greeting = true
	}
	c.mu.Unlock()
	if first != nil {
		k.deliver(first.WithID(k.id))
	}
	if repeated {
		c.report("the client sent initialize again; it gets the first answer")
	}
	return repeated
}

// greeted ends the first initialize, remembers what was agreed, and returns those that came meanwhile and are to get the
// same answer.
func (c *Client) greeted(answer *wire.Message) (again []*call) {
	agreed := answer != nil && answer.Result() != nil
	if agreed {
		cl := c.session.Client()
		cl.Revision = wire.GetString(answer.Result(), "protocolVersion")
		c.session.SetClient(cl)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if agreed {
		c.initialized = answer
	}
	again = c.again
	c.greeting, c.again = false, nil
	return again
}

func (c *Client) notification(m *wire.Message) {
	if m.Method() == "notifications/cancelled" {
		if id, ok := wire.Get(m.Params(), "requestId"); ok {
			c.mu.Lock()
			k := c.open[wire.IDKey(id)]
			c.mu.Unlock()
			if k != nil {
				k.cancel(exchange.ErrCancelled)
			}
		}
	}
	c.next.Handle(c.session.Context(), &exchange.Request{Msg: m, Session: c.session}, func(exchange.Outcome) {})
}

// Notify implements exchange.Caller.
func (k *call) Notify(m *wire.Message) {
	k.mu.Lock()
	done := k.done
	k.mu.Unlock()
	if !done {
		k.on.Send(m)
	}
}

// CanAsk implements exchange.Caller: what the client declared in its handshake, and everything that needs no declaration.
func (k *call) CanAsk(method string) bool {
	if !k.on.Open() {
		return false
	}
	need := exchange.CapabilityFor(method)
	if need == "" {
		return true
	}
	return exchange.Answers(k.edge.session.Client().Capabilities, method)
}

// question is one question the client was asked. Its answers are kept until all of the same Ask are there.
type question struct {
	id   []byte
	key  string
	i    int
	asks *asks
}

type asks struct {
	mu      sync.Mutex
	left    int
	answers []exchange.Answer
	answer  func([]exchange.Answer)
	stop    []func() bool // ends the watch over the contexts
}

// watch keeps what ends the watch over the contexts, or ends it when all answers are there.
func (a *asks) watch(stop ...func() bool) {
	a.mu.Lock()
	a.stop = stop
	done := a.left == 0
	a.mu.Unlock()
	if done {
		a.unwatch()
	}
}

func (a *asks) unwatch() {
	a.mu.Lock()
	stop := a.stop
	a.stop = nil
	a.mu.Unlock()
	for _, f := range stop {
		f()
	}
}

func (a *asks) set(i int, v exchange.Answer) {
	a.mu.Lock()
	a.answers[i] = v
	a.left--
	last := a.left == 0
	a.mu.Unlock()
	if last {
		a.unwatch()
		a.answer(a.answers)
	}
}

// Ask implements exchange.Caller: each question is a request to the client, by the id it came with where that is free.
func (k *call) Ask(ctx context.Context, qs []exchange.Question, answer func([]exchange.Answer)) {
	k.mu.Lock()
	done := k.done
	k.mu.Unlock()
	if done || len(qs) == 0 {
		answer(exchange.ErrorAnswers(len(qs), wire.CodeInternal, "rootbound: the request this question belongs to has ended"))
		return
	}
	c := k.edge
	a := &asks{left: len(qs), answers: make([]exchange.Answer, len(qs)), answer: answer}
	asked := make([]*question, len(qs))
	msgs := make([]*wire.Message, len(qs))
	c.mu.Lock()
	for i, q := range qs {
		m := q.Msg
		if m == nil {
			m = wire.NewRequest(exchange.NewID(), q.Method, q.Params)
		}
		// Nor one whose late answer would be taken for the answer to this one.
		for c.questions[m.Key()] != nil || slices.Contains(c.withdrawn, m.Key()) {
			m = m.WithID(exchange.NewID())
		}
		asked[i], msgs[i] = &question{id: m.ID(), key: m.Key(), i: i, asks: a}, m
		c.questions[m.Key()] = asked[i]
	}
	c.mu.Unlock()
	withdraw := func() {
		cause := context.Cause(ctx)
		if cause == nil {
			cause = context.Cause(k.ctx)
		}
		for _, q := range asked {
			if c.takeQuestion(q.key, q) {
				c.mu.Lock()
				c.withdrawn = append(c.withdrawn[max(0, len(c.withdrawn)+1-maxWithdrawn):], q.key)
				c.mu.Unlock()
				k.on.Send(cancelled(q.id, fmt.Sprint(cause)))
				q.asks.set(q.i, exchange.ErrorAnswer(wire.CodeInternal, fmt.Sprintf("rootbound: the question was withdrawn: %v", cause)))
			}
		}
	}
	for _, m := range msgs {
		k.on.Send(m)
	}
	a.watch(context.AfterFunc(ctx, withdraw), context.AfterFunc(k.ctx, withdraw))
}

func cancelled(id []byte, reason string) *wire.Message {
	p := append([]byte(`{"requestId":`), id...)
	p = wire.AppendQuote(append(p, `,"reason":`...), reason)
	return wire.NewNotification("notifications/cancelled", append(p, '}'))
}

func (c *Client) takeQuestion(key string, q *question) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.questions[key] != q || q == nil {
		return false
	}
	delete(c.questions, key)
	return true
}

func (c *Client) response(m *wire.Message) {
	c.mu.Lock()
	q := c.questions[m.Key()]
	late := slices.Index(c.withdrawn, m.Key())
	if q == nil && late >= 0 {
		c.withdrawn = slices.Delete(c.withdrawn, late, late+1)
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	if !c.takeQuestion(m.Key(), q) {
		c.report("the client answered %.60q, which nobody asked", m.ID())
		return
	}
	q.asks.set(q.i, exchange.Answer{Result: m.Result(), Error: m.Error(), Msg: m})
}
