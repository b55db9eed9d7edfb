package exchange

import (
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

// Reply ends it. Whoever took it out of its Open does.
func (p *Pending) Reply(o Outcome) { p.reply(o) }

// Open are the requests that a server has not answered, the oldest first. The zero value is empty. It is safe for
// concurrent use. Ids are given in the form of wire.IDKey.
type Open struct {
	mu    sync.Mutex
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

// Add takes a request in, under an id that no other has.
func (o *Open) Add(out *wire.Writer, r *Request, reply func(Outcome)) *Pending {
	p := &Pending{Req: r, Msg: r.Msg, Out: out, reply: reply}
	if token, ok := wire.Get(r.Msg.Meta(), "progressToken"); ok {
		p.token = wire.IDKey(token)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	// Nor one whose late answer would be taken for the answer to this one.
	for p.key = p.Msg.Key(); o.byKey[p.key] != nil || slices.Contains(o.gone, p.key); p.key = p.Msg.Key() {
		p.Msg = p.Msg.WithID(NewID())
	}
	if o.byKey == nil {
		o.byKey = map[string]*Pending{}
	}
	o.byKey[p.key] = p
	o.list = append(o.list, p)
	o.silent = false
	if !p.subscription() {
		o.tally.Add()
	}
	return p
}

func (p *Pending) subscription() bool { return p.Req.Msg.Method() == Listen }

func (o *Open) find(f func(*Pending) bool) int { return slices.IndexFunc(o.list, f) }

func (o *Open) take(i int) *Pending {
	if i < 0 {
		return nil
	}
	p := o.list[i]
	o.list = slices.Delete(o.list, i, i+1)
	delete(o.byKey, p.key)
	if !p.subscription() {
		o.tally.Done()
	}
	return p
}

// Take takes out what was sent under an id, nil when there is none.
func (o *Open) Take(key string) *Pending {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p := o.byKey[key]; p != nil {
		return o.take(slices.Index(o.list, p))
	}
	return nil
}

// TakeClients takes out what the client sent under an id and does not wait for any more. An answer to it is Late.
func (o *Open) TakeClients(key string) *Pending {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.take(o.find(func(p *Pending) bool { return p.Req.Msg.Key() == key }))
	if p != nil {
		o.gone = append(o.gone[max(0, len(o.gone)+1-maxGone):], p.key)
	}
	return p
}

// Late reports whether m answers something that was cancelled. It does so once for each.
func (o *Open) Late(m *wire.Message) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.Index(o.gone, m.Key())
	if i >= 0 {
		o.gone = slices.Delete(o.gone, i, i+1)
	}
	return i >= 0
}

// Silent says that something was sent to the server that has no answer.
func (o *Open) Silent() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.silent, o.doubt = true, true
}

// takeOnly takes out the only one that is open, which an error without an id means, if it means none of the messages that
// have no answer: some servers give one. So it is not when such a message was sent last; and not when one was sent lately
// and the error is that of an unknown method, of which the server could have read the id.
func (o *Open) takeOnly(code string) *Pending {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.list) != 1 || o.silent || o.doubt && code == strconv.Itoa(wire.CodeMethodNotFound) {
		return nil
	}
	return o.take(0)
}

// TakeAnswered takes out what an answer of the server belongs to, and gives the answer that request's id where it has
// none.
func (o *Open) TakeAnswered(m *wire.Message) (*Pending, *wire.Message) {
	if id := m.ID(); id != nil && string(id) != "null" {
		o.mu.Lock()
		o.doubt = false
		o.mu.Unlock()
		return o.Take(m.Key()), m
	}
	code, _ := wire.Get(m.Error(), "code")
	p := o.takeOnly(string(code))
	if p != nil {
		m = wire.NewErrorObject(p.Msg.ID(), m.Error())
	}
	return p, m
}

// Enter takes a message of the client in on its way to out: a request is open from now on, and a cancellation ends one.
// It returns the message to send, and what ended, whose owner replies.
func (o *Open) Enter(out *wire.Writer, r *Request, reply func(Outcome)) (m *wire.Message, ended *Pending) {
	switch {
	case r.Msg.Kind() == wire.Request:
		return o.Add(out, r, reply).Msg, nil
	case r.Msg.Method() == "notifications/cancelled":
		ended, m = o.cancel(r.Msg)
	default:
		m = r.Msg
	}
	o.Silent()
	return m, ended
}

// cancel takes out what a cancellation of the client names, and returns the cancellation with the id under which that was
// sent.
func (o *Open) cancel(m *wire.Message) (*Pending, *wire.Message) {
	id, _ := wire.Get(m.Params(), "requestId")
	p := o.TakeClients(wire.IDKey(id))
	if p != nil && p.Msg != p.Req.Msg {
		m = m.WithParams(wire.SetMember(m.Params(), p.Msg.ID(), "requestId"))
	}
	return p, m
}

// Disconnect fails what was sent to out with why, apart from requests of the method that is kept.
func (o *Open) Disconnect(out *wire.Writer, why error, keep string) {
	o.mu.Lock()
	var gone []*Pending
	for i := 0; i < len(o.list); {
		if p := o.list[i]; p.Out == out && (keep == "" || p.Req.Msg.Method() != keep) {
			gone = append(gone, o.take(i))
		} else {
			i++
		}
	}
	o.mu.Unlock()
	for _, p := range gone {
		p.Reply(Fail(p.Req, wire.CodeInternal, "rootbound: "+why.Error(), []byte(`{"reason":"server ended"}`)))
	}
}

// Find returns the oldest one that has a caller and for which f is true, nil when there is none.
func (o *Open) Find(f func(*Pending) bool) *Pending {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := o.find(func(p *Pending) bool { return p.Req.Caller != nil && f(p) }); i >= 0 {
		return o.list[i]
	}
	return nil
}

// Progress returns the one that progress with these params is of.
func (o *Open) Progress(params []byte) *Pending {
	token, ok := wire.Get(params, "progressToken")
	if !ok {
		return nil
	}
	key := wire.IDKey(token)
	return o.Find(func(p *Pending) bool { return p.token == key })
}

// Has reports whether something was sent under an id.
func (o *Open) Has(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byKey[key] != nil
}

// Subscriptions are those that a client waits on for as long as it wants to be told.
func (o *Open) Subscriptions() []*Pending {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.list), func(p *Pending) bool { return !p.subscription() })
}

// Move says that one was sent again, to another process.
func (o *Open) Move(p *Pending, out *wire.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p.Out = out
}

// Len returns how many there are.
func (o *Open) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.list)
}

// Empty is closed when there are none but subscriptions.
func (o *Open) Empty() <-chan struct{} { return o.tally.Empty() }
