package exchange

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/rootbound/rootbound/internal/wire"
)

// Pending is a request that a server has not answered.
type Pending struct {
	// Req is the request, Msg its message as it was sent: under another id where the client's is taken.
	Req *Request
	Msg *wire.Message
	// Out is where it was sent: the process that has to answer.
	Out *wire.Writer

	reply func(Outcome)
	key   string // of Msg's id
	token string // of its progress, "" for none
}

// Reply ends it. Whoever took it out of its Line does.
func (p *Pending) Reply(o Outcome) { p.reply(o) }

// Line is what the server edges of both eras have in common: where the server is now, and the requests that it has not
// answered, the oldest first. It outlives connections. It is safe for concurrent use. Ids are given in the form of
// wire.IDKey.
type Line struct {
	report, note func(format string, args ...any)

	mu    sync.Mutex
	out   *wire.Writer // nil while not connected
	left  error        // why it is not connected any more
	list  []*Pending
	byKey map[string]*Pending
	tally Tally
	// silent is set when the newest message to the server was one that has no answer, doubt when one was sent since the last
	// answer with an id.
	silent, doubt bool
	// gone are the ids of what was cancelled last, whose answers may still come.
	gone []string
}

// maxGone is how many answers that come late are known for that.
const maxGone = 1024

// NewLine returns a line that is not connected yet. Report is told of oddities that nobody else hears of, note of what is
// only for the log; either may be nil.
func NewLine(report, note func(format string, args ...any)) *Line {
	drop := func(string, ...any) {}
	if report == nil {
		report = drop
	}
	if note == nil {
		note = drop
	}
	return &Line{report: report, note: note}
}

// Report tells of an oddity of the server.
func (l *Line) Report(format string, args ...any) { l.report(format, args...) }

// Connect says where messages go from now on.
func (l *Line) Connect(out *wire.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = out
}

// Out returns where messages go, nil when nowhere.
func (l *Line) Out() *wire.Writer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out
}

// Send sends a message of the client to the server: a request is open until it is answered, and a cancellation ends one.
func (l *Line) Send(ctx context.Context, r *Request, reply func(Outcome)) {
	request := r.Msg.Kind() == wire.Request
	l.mu.Lock()
	out := l.out
	switch {
	case request && ctx.Err() != nil:
		l.mu.Unlock()
		reply(Cancelled)
		return
	case out == nil:
		text := "rootbound: the server is not running"
		if l.left != nil {
			text += ": " + l.left.Error()
		}
		l.mu.Unlock()
		if request {
			reply(Fail(r, wire.CodeInternal, text, []byte(`{"reason":"server not started"}`)))
		}
		return
	}
	m := r.Msg
	var ended *Pending
	switch {
	case request:
		m = l.add(r, reply).Msg
	case m.Method() == "notifications/cancelled":
		ended, m = l.cancel(m)
		fallthrough
	default:
		l.silent, l.doubt = true, true
	}
	out.Put(m) // in this order, so that a cancellation never overtakes its request
	l.mu.Unlock()
	out.Flush() // an error means that the server is going: Disconnect answers what is open
	if ended != nil {
		ended.Reply(Cancelled)
	}
}

// Add takes in a request that its caller sends, under an id that no other has.
func (l *Line) Add(r *Request, reply func(Outcome)) *Pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.add(r, reply)
}

func (l *Line) add(r *Request, reply func(Outcome)) *Pending {
	p := &Pending{Req: r, Msg: r.Msg, Out: l.out, reply: reply}
	if token, ok := wire.Get(r.Msg.Meta(), "progressToken"); ok {
		p.token = wire.IDKey(token)
	}
	// Nor one whose late answer would be taken for the answer to this one.
	for p.key = p.Msg.Key(); l.byKey[p.key] != nil || slices.Contains(l.gone, p.key); p.key = p.Msg.Key() {
		p.Msg = p.Msg.WithID(NewID())
	}
	if l.byKey == nil {
		l.byKey = map[string]*Pending{}
	}
	l.byKey[p.key] = p
	l.list = append(l.list, p)
	l.silent = false
	if !p.subscription() {
		l.tally.Add()
	}
	return p
}

func (p *Pending) subscription() bool { return p.Req.Msg.Method() == Listen }

func (l *Line) find(f func(*Pending) bool) int { return slices.IndexFunc(l.list, f) }

func (l *Line) take(i int) *Pending {
	if i < 0 {
		return nil
	}
	p := l.list[i]
	l.list = slices.Delete(l.list, i, i+1)
	delete(l.byKey, p.key)
	if !p.subscription() {
		l.tally.Done()
	}
	return p
}

// Take takes out what was sent under an id, nil when there is none.
func (l *Line) Take(key string) *Pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.byKey[key]; p != nil {
		return l.take(slices.Index(l.list, p))
	}
	return nil
}

// TakeClients takes out what the client sent under an id and does not wait for any more. An answer to it is late.
func (l *Line) TakeClients(key string) *Pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.takeClients(key)
}

func (l *Line) takeClients(key string) *Pending {
	p := l.take(l.find(func(p *Pending) bool { return p.Req.Msg.Key() == key }))
	if p != nil {
		l.gone = append(l.gone[max(0, len(l.gone)+1-maxGone):], p.key)
	}
	return p
}

// late reports whether m answers something that was cancelled. It does so once for each.
func (l *Line) late(m *wire.Message) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.gone, m.Key())
	if i >= 0 {
		l.gone = slices.Delete(l.gone, i, i+1)
	}
	return i >= 0
}

// Silent says that something was sent to the server that has no answer.
func (l *Line) Silent() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent, l.doubt = true, true
}

// takeOnly takes out the only one that is open, which an error without an id means, if it means none of the messages that
// have no answer: some servers give one. So it is not when such a message was sent last; and not when one was sent lately
// and the error is that of an unknown method, of which the server could have read the id.
func (l *Line) takeOnly(code string) *Pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) != 1 || l.silent || l.doubt && code == strconv.Itoa(wire.CodeMethodNotFound) {
		return nil
	}
	return l.take(0)
}

// Answered takes out what an answer of the server belongs to, and gives the answer that request's id where it has none. It
// is nil, and told, when that is nothing.
func (l *Line) Answered(m *wire.Message) (*Pending, *wire.Message) {
	p, m := l.answered(m)
	switch {
	case p != nil:
	case l.late(m):
		l.note("the server answered %.60q, which was cancelled; the answer was dropped", m.ID())
	case m.Error() != nil && (m.ID() == nil || string(m.ID()) == "null"):
		l.report("the server refused something and did not say what, maybe a notification; that was dropped")
		l.note("the server refused something and did not say what: %.200q", wire.GetString(m.Error(), "message"))
	default:
		l.report("the server answered %.60q, which is not open; the answer was dropped", m.ID())
	}
	return p, m
}

func (l *Line) answered(m *wire.Message) (*Pending, *wire.Message) {
	if id := m.ID(); id != nil && string(id) != "null" {
		l.mu.Lock()
		l.doubt = false
		l.mu.Unlock()
		return l.Take(m.Key()), m
	}
	code, _ := wire.Get(m.Error(), "code")
	p := l.takeOnly(string(code))
	if p != nil {
		m = wire.NewErrorObject(p.Msg.ID(), m.Error())
	}
	return p, m
}

// cancel takes out what a cancellation of the client names, and returns the cancellation with the id under which that was
// sent.
func (l *Line) cancel(m *wire.Message) (*Pending, *wire.Message) {
	id, _ := wire.Get(m.Params(), "requestId")
	p := l.takeClients(wire.IDKey(id))
	if p != nil && p.Msg != p.Req.Msg {
		m = m.WithParams(wire.SetMember(m.Params(), p.Msg.ID(), "requestId"))
	}
	return p, m
}

// Disconnect says that the process behind out is gone: what was sent to it fails with why, apart from requests of the
// method that is kept. What a later process has is left alone.
func (l *Line) Disconnect(out *wire.Writer, why error, keep string) { l.Leave(out, why, keep)() }

// Leave is Disconnect, for who holds a lock: the function that it returns fails what was open.
func (l *Line) Leave(out *wire.Writer, why error, keep string) (fail func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out == out || l.out == nil {
		l.out, l.left = nil, why
	}
	var gone []*Pending
	for i := 0; i < len(l.list); {
		if p := l.list[i]; p.Out == out && (keep == "" || p.Req.Msg.Method() != keep) {
			gone = append(gone, l.take(i))
		} else {
			i++
		}
	}
	return func() {
		for _, p := range gone {
			p.Reply(Fail(p.Req, wire.CodeInternal, "rootbound: "+why.Error(), []byte(`{"reason":"server ended"}`)))
		}
	}
}

// Find returns the oldest one that has a caller and for which f is true, nil when there is none.
func (l *Line) Find(f func(*Pending) bool) *Pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.find(func(p *Pending) bool { return p.Req.Caller != nil && f(p) }); i >= 0 {
		return l.list[i]
	}
	return nil
}

// Progress returns the one that progress with these params is of.
func (l *Line) Progress(params []byte) *Pending {
	token, ok := wire.Get(params, "progressToken")
	if !ok {
		return nil
	}
	key := wire.IDKey(token)
	return l.Find(func(p *Pending) bool { return p.token == key })
}

// Get returns what was sent under an id, nil when there is none.
func (l *Line) Get(key string) *Pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byKey[key]
}

// Has reports whether something was sent under an id.
func (l *Line) Has(key string) bool { return l.Get(key) != nil }

// Late reports whether an answer under an id would be late: what it answers was cancelled.
func (l *Line) Late(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.gone, key)
}

// Subscriptions are those that a client waits on for as long as it wants to be told.
func (l *Line) Subscriptions() []*Pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.list), func(p *Pending) bool { return !p.subscription() })
}

// Resend sends one again, to another process, unless it has ended. Whoever has it sent flushes.
func (l *Line) Resend(p *Pending, out *wire.Writer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey[p.key] != p {
		return false
	}
	p.Out = out
	out.Put(p.Msg) // in this order, so that a cancellation never overtakes it
	return true
}

// Len returns how many there are.
func (l *Line) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.list)
}

// Empty is closed when there are none but subscriptions.
func (l *Line) Empty() <-chan struct{} { return l.tally.Empty() }

// Refuse takes a line of the server that is no message: what it would have answered fails, everything else is told.
func (l *Line) Refuse(r *wire.Refusal) {
	var p *Pending
	if r.ID != nil && r.Kind != wire.Request {
		p = l.Take(wire.IDKey(r.ID))
	}
	switch {
	case r.Text:
		l.report("the server wrote a line to stdout that is no message; it was dropped (such lines belong on stderr)")
	case p != nil:
		p.Reply(Fail(p.Req, wire.CodeInternal, "rootbound: the server's answer was refused: "+r.Reason, nil))
	default:
		l.report("a message of the server was refused: %s", r.Reason)
	}
}
