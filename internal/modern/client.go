package modern

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// maxParked is how many requests may be given back and not retried, and maxParkedBytes how long they may be together; the oldest are given
// up for a newer one.
const (
	maxParked      = 256
	maxParkedBytes = 64 << 20
)

// ErrAbandoned is why the context of a request ends that was given back and not tried again in time.
var ErrAbandoned = errors.New("given back to the client and not tried again")

// Client is the client edge. A question of a stage answers the request with input_required; the request is kept under a
// random state that works once, for this method and these params, and goes on when the retry brings the answers. It is safe
// for concurrent use as long as no two requests that are received at once have one id.
type Client struct {
	next    exchange.Handler
	session *exchange.Session
	report  func(string, ...any)
	sealer  *sealer
	name    string // tells what this edge has parked from what another one has

	mu     sync.Mutex
	open   map[string]*call // by the id the client waits for now
	known  map[string]bool  // ids of requests that are open or given back, as those behind know them
	parked []*call          // given back, the oldest first

	unsent exchange.Tally // requests, but for subscriptions, whose answers were not sent yet
}

// Options of a client edge.
type Options struct {
	// Key of KeySize bytes seals what stages hold in request states; nil is one of this edge's own. Edges with one key take each
	// other's states, each of them once.
	Key []byte
	// Report is told of oddities that nobody else hears of; nil drops them.
	Report func(format string, args ...any)
}

// NewClient returns the edge of a client whose requests go to next; without a session it is that of all clients who come by
// HTTP, who use no id twice.
func NewClient(next exchange.Handler, s *exchange.Session, o Options) *Client {
	if o.Report == nil {
		o.Report = func(string, ...any) {}
	}
	return &Client{next: next, session: s, report: o.Report, sealer: newSealer(o.Key, time.Now), name: handle(6) + ".", open: map[string]*call{}, known: map[string]bool{}}
}

// Removed reports whether a method is one that this revision took out.
func Removed(method string) bool { return removed[method] }

var removed = map[string]bool{
	"initialize": true, "ping": true, "logging/setLevel": true, "resources/subscribe": true, "resources/unsubscribe": true,
}

// Receive takes a message of the client. What belongs to it is written on its stream, which a request ends, with an answer or
// without.
func (c *Client) Receive(m *wire.Message, on exchange.Stream) {
	switch m.Kind() {
	case wire.Request:
		c.request(m, on)
	case wire.Notification:
		c.notification(m)
	case wire.Response:
		c.report("the client sent a response, which this revision has not; it was dropped")
	case wire.Batch:
		on.Refuse(wire.NewError(nil, wire.CodeInvalidRequest, "rootbound: this revision has no batches", nil))
	}
}

// Has reports whether a request with this id's key is open.
func (c *Client) Has(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[key] != nil
}

func (c *Client) notification(m *wire.Message) {
	switch m.Method() {
	case "notifications/roots/list_changed", "notifications/initialized":
		c.report("the client sent %s, which this revision has not; it was dropped", m.Method())
		return
	case "notifications/cancelled":
		id, _ := wire.Get(m.Params(), "requestId")
		c.mu.Lock()
		k := c.open[wire.IDKey(id)]
		c.mu.Unlock()
		if k == nil {
			return // answered, or given back
		}
		if string(k.first.ID()) != string(id) { // a retry: those behind know the first id
			m = m.WithParams(wire.SetMember(m.Params(), k.first.ID(), "requestId"))
		}
		k.mu.Lock()
		if id := k.id; id != nil && !k.finished { // nothing is said of it any more
			k.finished, k.id = true, nil
			c.close(id)
			c.forget(k)
			k.on.End(nil)
			c.sent(k)
		}
		k.mu.Unlock()
		k.cancel(exchange.ErrCancelled)
	}
	c.next.Handle(c.session.Context(), &exchange.Request{Msg: m, Era: exchange.Modern, Session: c.session}, func(exchange.Outcome) {})
}

// call is an open request over all its tries; it is the caller that its handlers see.
type call struct {
	edge   *Client
	first  *wire.Message // the first try: its id is the one that those behind know
	digest []byte
	ctx    context.Context
	cancel context.CancelCauseFunc
	listen bool

	mu       sync.Mutex
	on       exchange.Stream // of the current try
	id       []byte          // the id the client waits for now; nil while it has the request back
	token    []byte          // the progress token of the current try
	meta     []byte          // the _meta of the current try
	brought  []byte          // answers to what another edge asked
	state    string          // while it is given back
	timer    *time.Timer
	waiting  []*asked // questions that are not answered
	outcome  *exchange.Outcome
	finished bool
}

// asked is one question that was asked.
type asked struct {
	exchange.Question
	asks *asks
	i    int
}

type asks struct {
	left    int
	answers []exchange.Answer
	answer  func([]exchange.Answer)
	stop    func() bool // ends the watch over its context
}

func (c *Client) request(m *wire.Message, on exchange.Stream) {
	if removed[m.Method()] {
		on.Refuse(wire.NewError(m.ID(), wire.CodeMethodNotFound, "rootbound: "+m.Method()+" does not exist in this revision", nil))
		return
	}
	c.mu.Lock()
	_, open := c.open[m.Key()]
	c.mu.Unlock()
	if open {
		on.Refuse(wire.NewError(m.ID(), wire.CodeInvalidRequest, "rootbound: a request with this id is still open", nil))
		return
	}
	state := m.RequestState()
	switch {
	case strings.HasPrefix(state, parkedPrefix), strings.HasPrefix(state, unsentPrefix+c.name):
		c.resume(m, on, state)
		return
	}
	var brought []byte
	if strings.HasPrefix(state, unsentPrefix) {
		again, err := c.unsentElsewhere(m, state)
		if err != nil {
			refuseState(m, on)
			return
		}
		brought, _ = wire.Get(m.Params(), "inputResponses")
		m = again
		state = wire.GetString(m.Params(), "requestState")
	}
	r := &exchange.Request{Msg: m, Era: exchange.Modern, Session: c.session, Shown: exchange.Shown(on)}
	if strings.HasPrefix(state, sealedPrefix) {
		v, err := c.sealer.open(state, digest(m))
		if err != nil {
			refuseState(m, on)
			return
		}
		r.Held = v.Held
		p := wire.DeleteMember(m.Params(), "requestState")
		if v.State != nil {
			p = wire.SetMember(p, v.State, "requestState")
		}
		r.Msg = m.WithParams(p)
	}
	id := c.inward(m)
	r.Msg = r.Msg.WithID(id)
	k := &call{edge: c, first: m.WithID(id), on: on, id: m.ID(), meta: m.Meta(), brought: brought, listen: m.Method() == exchange.Listen}
	k.token, _ = wire.Get(m.Meta(), "progressToken")
	k.ctx, k.cancel = context.WithCancelCause(c.session.Context())
	r.Caller = k
	c.opened(m, k)
	c.next.Handle(k.ctx, r, k.end)
}

// unsentElsewhere is the retry of a request that another edge asked about before it sent it on: here it is the request that it was there,
// and is asked about anew.
func (c *Client) unsentElsewhere(m *wire.Message, state string) (*wire.Message, error) {
	p := wire.DeleteMember(wire.DeleteMember(m.Params(), "requestState"), "inputResponses")
	// Of its own try is in the state what that brought: NAME.HANDLE.SEALED.
	if parts := strings.SplitN(strings.TrimPrefix(state, unsentPrefix), ".", 3); len(parts) == 3 {
		v, err := c.sealer.open(sealedPrefix+parts[2], digest(m))
		if err != nil {
			return nil, err
		}
		if v.State != nil {
			p = wire.SetMember(p, v.State, "requestState")
		}
		if v.Answers != nil {
			p = wire.SetMember(p, v.Answers, "inputResponses")
		}
	}
	return m.WithParams(p), nil
}

func refuseState(m *wire.Message, on exchange.Stream) {
	on.Refuse(wire.NewError(m.ID(), wire.CodeInvalidParams, "rootbound: "+errState.Error(), []byte(`{"reason":"request state"}`)))
}

// end takes the outcome of the request. While the client has it back, the outcome waits for the retry.
func (k *call) end(o exchange.Outcome) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.outcome != nil || k.finished {
		return
	}
	k.outcome = &o
	if k.id != nil {
		k.finish()
	}
}

// finish answers the client. The caller holds mu.
func (k *call) finish() {
	c, o := k.edge, *k.outcome
	id := k.id
	k.finished, k.id = true, nil
	c.close(id)
	c.forget(k)
	defer c.sent(k)
	// A subscription ends with its connection, whose end is no failure that anybody waits to hear of.
	if over := k.listen && c.session.Context().Err() != nil; o.Msg != nil && !over {
		k.on.End(k.sealed(o).WithID(id))
	} else {
		k.on.End(nil)
	}
	k.cancel(context.Canceled)
}

// isOurs reports whether a state looks like one of this program: of this edge, or of another one further on, whose states
// are sealed like any that something is held with, so that they are not taken for this edge's.
func isOurs(state string) bool {
	return strings.HasPrefix(state, parkedPrefix) || strings.HasPrefix(state, unsentPrefix) || strings.HasPrefix(state, sealedPrefix)
}

// sealed puts what stages hold around the server's state.
func (k *call) sealed(o exchange.Outcome) *wire.Message {
	if state := wire.GetString(o.Msg.Result(), "requestState"); len(o.Hold) == 0 && !isOurs(state) {
		return o.Msg
	}
	own, _ := wire.Get(o.Msg.Result(), "requestState")
	state, err := k.edge.sealer.seal(sealed{Digest: digest(k.first), Held: o.Hold, State: own})
	if err != nil {
		return wire.NewError(k.first.ID(), wire.CodeInternal, "rootbound: keeping the state of the request: "+err.Error(), nil)
	}
	return o.Msg.WithResult(wire.SetMember(o.Msg.Result(), wire.Quote(state), "requestState"))
}

// close ends what is open under an id, before its answer goes: the client may use the id again as soon as it has it.
func (c *Client) close(id []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, wire.IDKey(id))
}

// inward returns the id under which those behind are to know a request: its client's, unless that is still the one of a request which was
// given back. That one is answered for the client, who may use its id again, and open for them.
func (c *Client) inward(m *wire.Message) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := m.ID()
	for c.known[wire.IDKey(id)] {
		id = exchange.NewID()
	}
	c.known[wire.IDKey(id)] = true
	return id
}

// forget ends what those behind know of k.
func (c *Client) forget(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, k.first.Key())
}

// opened puts k under the id that the client waits for now.
func (c *Client) opened(m *wire.Message, k *call) {
	c.mu.Lock()
	c.open[m.Key()] = k
	c.mu.Unlock()
	if !k.listen {
		c.unsent.Add()
	}
}

// sent counts an answer that was sent.
func (c *Client) sent(k *call) {
	if !k.listen {
		c.unsent.Done()
	}
}

// Drained is closed when every request of the client but its subscriptions was answered.
func (c *Client) Drained() <-chan struct{} { return c.unsent.Empty() }

// Notify implements exchange.Caller. While the client has the request back, progress and messages are dropped.
func (k *call) Notify(m *wire.Message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.id == nil {
		return
	}
	first, _ := wire.Get(k.first.Meta(), "progressToken")
	if old, ok := wire.Get(m.Params(), "progressToken"); ok && k.token != nil && string(old) == string(first) && string(old) != string(k.token) {
		m = m.WithParams(wire.SetMember(m.Params(), k.token, "progressToken"))
	}
	k.on.Send(m)
}

// CanAsk implements exchange.Caller: what this request declared, on the methods that can be given back.
func (k *call) CanAsk(method string) bool {
	switch k.first.Method() {
	case "tools/call", "prompts/get", "resources/read":
	default:
		return false
	}
	need := exchange.CapabilityFor(method)
	if need == "" {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	caps, _ := wire.Get(k.meta, exchange.MetaCapabilities)
	return exchange.Answers(caps, method)
}

// Ask implements exchange.Caller.
func (k *call) Ask(ctx context.Context, qs []exchange.Question, answer func([]exchange.Answer)) {
	a := &asks{left: len(qs), answers: exchange.ErrorAnswers(len(qs), wire.CodeInternal, "rootbound: the question was withdrawn"), answer: answer}
	k.mu.Lock()
	if k.finished || k.outcome != nil || len(qs) == 0 {
		k.mu.Unlock()
		answer(a.answers)
		return
	}
	if answers := k.known(qs); answers != nil {
		k.mu.Unlock()
		answer(answers)
		return
	}
	for i, q := range qs {
		if q.Key == "" || slices.ContainsFunc(k.waiting, func(o *asked) bool { return o.Key == q.Key }) {
			q.Key, _ = wire.Unquote(exchange.NewID())
		}
		k.waiting = append(k.waiting, &asked{Question: q, asks: a, i: i})
	}
	withdraw := func() { k.withdraw(a) }
	stop1, stop2 := context.AfterFunc(ctx, withdraw), context.AfterFunc(k.ctx, withdraw)
	a.stop = func() bool { return stop1() && stop2() }
	if k.id != nil {
		k.giveBack()
	}
	k.mu.Unlock()
}

// known are the answers that the client gave to another edge, if that are all, each once. The caller holds mu.
func (k *call) known(qs []exchange.Question) (answers []exchange.Answer) {
	for _, q := range qs {
		v, ok := wire.Get(k.brought, q.Key)
		if !ok || !q.Portable {
			return nil
		}
		answers = append(answers, exchange.Answer{Result: v})
	}
	k.brought = nil
	return answers
}

// withdraw answers what is left of one Ask with errors.
func (k *call) withdraw(a *asks) {
	k.mu.Lock()
	n := len(k.waiting)
	k.waiting = slices.DeleteFunc(k.waiting, func(q *asked) bool { return q.asks == a })
	was := n != len(k.waiting)
	k.mu.Unlock()
	if was {
		a.stop()
		a.answer(a.answers)
	}
}

// handle returns so many random bytes as text.
func handle(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// giveBack answers the request with the questions that wait, and parks it. The caller holds mu.
func (k *call) giveBack() {
	c := k.edge
	k.state = parkedPrefix + handle(24)
	if k.digest == nil {
		k.digest = digest(k.first)
	}
	if !slices.ContainsFunc(k.waiting, func(q *asked) bool { return !q.Unsent }) {
		k.state = unsentPrefix + c.name + handle(24)
		v := sealed{Digest: k.digest}
		v.State, _ = wire.Get(k.first.Params(), "requestState")
		v.Answers, _ = wire.Get(k.first.Params(), "inputResponses")
		if v.State != nil || v.Answers != nil { // for another edge, to which it is a new request
			if text, err := c.sealer.seal(v); err == nil {
				k.state += "." + strings.TrimPrefix(text, sealedPrefix)
			}
		}
	}
	qs := make([]exchange.Question, len(k.waiting))
	for i, q := range k.waiting {
		qs[i] = q.Question
	}
	id := k.id
	k.id = nil
	c.close(id)
	c.mu.Lock()
	c.parked = append(c.parked, k)
	kept, size := 1, len(k.first.Bytes())
	for ; kept < min(len(c.parked), maxParked); kept++ {
		if size += len(c.parked[len(c.parked)-1-kept].first.Bytes()); size > maxParkedBytes {
			break
		}
	}
	oldest := slices.Clone(c.parked[:len(c.parked)-kept])
	c.parked = slices.Delete(c.parked, 0, len(oldest))
	c.mu.Unlock()
	state := k.state
	k.timer = time.AfterFunc(stateLifetime, func() { k.abandon(state) })
	for _, o := range oldest {
		go o.abandon(o.state)
	}
	k.on.End(wire.NewResult(id, exchange.InputRequired(qs, k.state)))
	c.sent(k)
}

// abandon gives up a request whose retry with a state does not come: its context ends, and those behind are told. It may have come just now,
// and the request be given back with another one.
func (k *call) abandon(state string) {
	c := k.edge
	k.mu.Lock()
	if k.id != nil || k.finished || k.state != state {
		k.mu.Unlock()
		return
	}
	k.finished = true
	k.timer.Stop()
	k.mu.Unlock()
	c.mu.Lock()
	c.parked = slices.DeleteFunc(c.parked, func(o *call) bool { return o == k })
	c.mu.Unlock()
	defer c.forget(k)            // behind what is said of it, too, or that could be said of another one under its id
	defer k.cancel(ErrAbandoned) // behind what is said of it, or its questions would be answered before that
	p := append([]byte(`{"requestId":`), k.first.ID()...)
	p = wire.AppendQuote(append(p, `,"reason":`...), ErrAbandoned.Error())
	m := wire.NewNotification("notifications/cancelled", append(p, '}'))
	c.next.Handle(c.session.Context(), &exchange.Request{Msg: m, Era: exchange.Modern, Session: c.session}, func(exchange.Outcome) {})
}

// resume takes the retry of a request that was given back.
func (c *Client) resume(m *wire.Message, on exchange.Stream, state string) {
	c.mu.Lock()
	var k *call
	for i, p := range c.parked {
		if p.state == state {
			k = p
			c.parked = slices.Delete(c.parked, i, i+1)
			break
		}
	}
	c.mu.Unlock()
	if k == nil {
		refuseState(m, on)
		return
	}
	k.mu.Lock()
	if k.finished || string(k.digest) != string(digest(m)) {
		k.mu.Unlock()
		refuseState(m, on)
		k.abandon(state) // the state is used up: its request cannot come back
		return
	}
	k.timer.Stop()
	k.on, k.id, k.meta, k.state = on, m.ID(), m.Meta(), ""
	k.token, _ = wire.Get(m.Meta(), "progressToken")
	c.opened(m, k)

	responses, _ := wire.Get(m.Params(), "inputResponses")
	var full []*asks
	k.waiting = slices.DeleteFunc(k.waiting, func(q *asked) bool {
		v, ok := wire.Get(responses, q.Key)
		switch {
		case ok:
			q.asks.answers[q.i] = exchange.Answer{Result: v}
		case q.Settled == nil || !q.Settled():
			return false
		}
		if q.asks.left--; q.asks.left == 0 {
			full = append(full, q.asks)
		}
		return true
	})
	if k.outcome != nil {
		k.finish()
	} else if len(k.waiting) > 0 {
		k.giveBack() // something is missing: ask again
	}
	k.mu.Unlock()
	for _, a := range full {
		a.stop()
		a.answer(a.answers)
	}
}
