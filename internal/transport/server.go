package transport

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rootbound/rootbound/internal/bridge"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/legacy"
	"github.com/rootbound/rootbound/internal/modern"
	"github.com/rootbound/rootbound/internal/wire"
)

// link is one connection to a server: a run of a child process, or the way to a server on another machine.
type link interface {
	// sink is where messages go.
	sink() *wire.Writer
	// receive hands on what the server says, one after the other, until it has ended. Of is the key of the id of the request on
	// whose own stream it was said, where there is such a stream. Refused is set for what is no message.
	receive(take func(m *wire.Message, refused *wire.Refusal, of string))
	// ended reports whether nobody is there any more.
	ended() bool
	// sessionless reports whether the handshake that was made last began no session, so that the server has nobody to ask.
	sessionless() bool
	// wait waits for the end, after receive returned, and says how it was.
	wait(grace time.Duration) *ExitError
	// stop ends it, and waits for that.
	stop(grace time.Duration)
	// gone is closed by the server when everything open was answered behind the end.
	gone() chan struct{}
}

// server is a handler in front of a server over a link, which is made with the first request. It has an edge for each era,
// finds out which of them the server speaks, and puts a bridge in where that is not its client's.
type server struct {
	opt    ProcessOptions
	legacy *legacy.Server
	modern *modern.Server
	up     *bridge.Up
	down   *bridge.Down
	// handshake is in front of legacy: it reads results with questions inside, and holds the server to a revision where it is held to one.
	handshake exchange.Handler

	routes   [2]route               // by the era of the client's messages
	agreed   atomic.Pointer[[]byte] // the answer to a handshake that a client made itself
	welcomed atomic.Bool            // a client got the answer to the bridge's handshake

	mu     sync.Mutex
	dial   func() (link, error)
	link   link // nil while there is none
	exit   *ExitError
	closed bool
	// restarting is set while a child is being replaced: the old one counts no more, and the new one is not there yet.
	restarting bool
	restarts   sync.WaitGroup
	hold       hold
	// stale is set when the server has forgotten its session and did not take another one.
	stale atomic.Bool
}

// hold lets messages wait, in their order, while there is no child that can be spoken to. The zero value lets them pass.
type hold struct {
	mu     sync.Mutex
	closed bool
	times  int // that it was closed
	held   []func()
}

func (h *hold) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.times++
}

// pass runs f, now or when the hold opens.
func (h *hold) pass(f func()) {
	h.mu.Lock()
	if h.closed {
		h.held = append(h.held, f)
		h.mu.Unlock()
		return
	}
	h.mu.Unlock()
	f()
}

// open lets go what waits. Where it is closed meanwhile, what still waits then does so until it is opened once more.
func (h *hold) open() {
	h.mu.Lock()
	defer h.mu.Unlock()
	times := h.times
	for len(h.held) > 0 && h.times == times {
		f := h.held[0]
		h.held[0] = nil
		h.held = h.held[1:]
		h.mu.Unlock()
		f()
		h.mu.Lock()
	}
	if h.times == times {
		h.closed, h.held = false, nil
	}
}

// init makes the server ready. Its owner sets dial.
func (p *server) init(o ProcessOptions) {
	if o.Report == nil {
		o.Report = func(string, ...any) {}
	}
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	if o.ProbeTimeout == 0 {
		o.ProbeTimeout = defaultProbe
	}
	if o.GreetTimeout == 0 {
		o.GreetTimeout = defaultGreet
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	if o.Note == nil {
		o.Note = func(string, ...any) {}
	}
	p.opt = o
	p.legacy = legacy.NewServer(legacy.ServerOptions{Strict: o.Strict, Report: o.Report, Note: o.Note, Again: o.Again})
	p.modern = modern.NewServer(modern.ServerOptions{Report: o.Report, Note: o.Note, Again: o.Again})
	p.handshake = bridge.NewRounds(p.legacy)
	if rev := o.Protocol.handshake(); rev != "" {
		p.handshake = agreeing{p.handshake, rev, "server"}
	}
	p.up, p.down = bridge.NewUp(p.modern), bridge.NewDown(p.handshake)
}

// Handle implements exchange.Handler.
func (p *server) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	if r.Msg.Kind() == wire.Request && (r.Msg.Method() != exchange.Listen || r.Era == exchange.Modern) {
		if err := p.start(r); err != nil {
			reply(exchange.Fail(r, wire.CodeInternal, "rootbound: "+err.Error(), []byte(`{"reason":"server not started"}`)))
			return
		}
		if p.stale.Swap(false) {
			p.mu.Lock()
			c := p.link
			p.mu.Unlock()
			if c != nil { // else it was closed meanwhile
				p.greetAgain(c)
			}
		}
	}
	p.hold.pass(func() { p.deliver(ctx, r, reply) })
}

// greetAgain tells a server that has forgotten its session what it had been told. Messages wait meanwhile. When it does not
// take that, the next request tries again.
func (p *server) greetAgain(c link) {
	p.hold.close()
	p.legacy.Connect(c.sink(), func() {
		stale := !p.legacy.Connected()
		p.hold.open() // with an error for what waited, if it did not
		if p.stale.Store(stale); stale {
			p.opt.Note("the server has no session; the next request asks for one")
		}
	})
}

// start makes sure that there is a link. One that ended is replaced only by a request that can begin a conversation: a
// handshake server that lost its handshake would refuse everything else.
func (p *server) start(r *exchange.Request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return errStopped
	case p.link != nil:
		return nil
	case p.exit != nil && r.Era == exchange.Legacy && r.Msg.Method() != "initialize" && p.lost():
		return p.exit
	}
	err := p.launch(func() {})
	if err != nil {
		p.exit = &ExitError{Code: 1, State: err.Error(), unstarted: true}
		p.opt.Report("%v", err)
	}
	return err
}

// lost reports whether the end of the link is the end of the session: a client made its handshake over it.
func (p *server) lost() bool {
	return p.routes[exchange.Legacy].decided() != bridged && !p.welcomed.Load() && !p.trying()
}

// launch makes the link. The caller holds mu.
func (p *server) launch(ready func()) error {
	c, err := p.dial()
	if err != nil {
		return err
	}
	p.link = c
	p.hold.close()
	p.modern.Connect(c.sink())
	p.legacy.Connect(c.sink(), func() {
		p.hold.open()
		ready()
	})
	go p.read(c)
	go func() {
		<-c.sink().Done()
		p.mu.Lock()
		ending := p.closed || p.link != c || p.restarting // we closed its input, and something was still on its way
		p.mu.Unlock()
		if !ending && !c.ended() { // it does not take what it is sent: what it was asked has no answer
			p.opt.Report("the server does not read its input any more; it is ended")
			c.stop(p.opt.Grace)
		}
	}()
	return nil
}

func (p *server) read(c link) {
	c.receive(func(m *wire.Message, refused *wire.Refusal, of string) {
		p.mu.Lock()
		current := p.link == c && !p.restarting
		p.mu.Unlock()
		switch {
		case !current: // a child that was replaced has nothing to say any more
		case refused != nil && p.isModern(refused.ID, refused.Kind, of):
			p.modern.Refuse(refused)
		case refused != nil:
			p.legacy.Refuse(refused)
		case p.isModern(m.ID(), m.Kind(), of):
			p.modern.Receive(m, of)
		default:
			p.legacy.Receive(m, of)
		}
	})
	exit := c.wait(p.opt.Grace)
	p.mu.Lock()
	current, closed, trying := p.link == c && !p.restarting, p.closed, p.trying()
	if current {
		p.link, p.exit = nil, exit
	}
	p.mu.Unlock()
	c.sink().Fail(exit) // it has ended
	if current {
		p.modern.Disconnect(c.sink(), exit)
		p.legacy.Disconnect(c.sink(), exit)
		switch {
		case trying && p.trying(): // it is started again
			p.opt.Note("%v, while it was found out what it speaks", exit)
		case !closed && p.opt.Exited != nil:
			p.opt.Exited(exit, p.legacy.Greeted() && p.lost())
		}
	}
	close(c.gone())
}

// isModern says whose message of the server it is, also of one that is refused: where it came on the stream of a request, that
// one's; an answer goes where its request is open, and one without an id where only one request is; the rest goes to the
// handshake once there was one.
func (p *server) isModern(id []byte, kind wire.Kind, of string) bool {
	if of != "" {
		return p.modern.Has(of) || !p.legacy.Has(of) && p.modern.Late(of)
	}
	named := id != nil && string(id) != "null" && kind != wire.Request && kind != wire.Notification
	switch legacy, modern := p.routes[exchange.Legacy].decided(), p.routes[exchange.Modern].decided(); {
	case named && p.modern.Has(wire.IDKey(id)):
		return true
	case named && legacy != bridged:
		key := wire.IDKey(id)
		return p.modern.Late(key) && !p.legacy.Has(key)
	case legacy == bridged || modern == bridged:
		return legacy == bridged
	case !named && modern == direct && !p.legacy.Greeted():
		return true
	}
	return p.modern.Open() > 0 && p.legacy.Open() == 0 && (kind == wire.Response || !p.legacy.Greeted())
}
