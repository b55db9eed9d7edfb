package transport

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// Link is the way to a server on another machine.
type Link interface {
	// Send sends one message, which is not changed any more.
	Send(m *wire.Message) error
	// Receive hands on what the server says, one after the other, until Close. Of is the key of the id of the request on whose
	// own stream it was said, where there is such a stream. Refused is set for what is no message.
	Receive(take func(m *wire.Message, refused *wire.Refusal, of string))
	// Sessionless reports whether the handshake that was made last began no session.
	Sessionless() bool
	// Close ends it, and what is open with it.
	Close() error
}

// Remote is a server on another machine: a handler that makes a link with the first request. It is safe for concurrent use.
type Remote struct {
	server
	shown atomic.Pointer[string] // by the client of the session, last
}

// Handle implements exchange.Handler.
func (p *Remote) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	if r.Era == exchange.Legacy && r.Shown != "" {
		p.shown.Store(&r.Shown)
	}
	p.server.Handle(ctx, r, reply)
}

// Shown is what a client showed with the request that was sent under an id in the form of wire.IDKey; for everything else what the
// client of the session showed last.
func (p *Remote) Shown(key string) string {
	if r := p.modern.Request(key); r != nil {
		return r.Shown
	}
	if r := p.legacy.Request(key); r != nil && r.Shown != "" {
		return r.Shown
	}
	if shown := p.shown.Load(); shown != nil {
		return *shown
	}
	return ""
}

// NewRemote returns a remote that has no link yet. Dial makes one, and does not wait for the server. The link calls again when
// the server has forgotten its session: then the handshake is said once more, and what else a new session must know. What
// the options say of a process has no meaning here.
func NewRemote(dial func(again func()) (Link, error), o ProcessOptions) *Remote {
	p := &Remote{}
	if o.ProbeTimeout == 0 {
		o.ProbeTimeout = defaultRemoteProbe
	}
	p.init(o)
	p.dial = func() (link, error) {
		c := &remote{done: make(chan struct{}), left: make(chan struct{})}
		l, err := dial(func() { p.greetAgain(c) })
		if err != nil {
			return nil, err
		}
		c.Link, c.out = l, wire.NewWriterFunc(l.Send)
		return c, nil
	}
	return p
}

// Close ends the link.
func (p *Remote) Close() {
	p.mu.Lock()
	p.closed = true
	c := p.link
	p.mu.Unlock()
	if c != nil {
		c.stop(p.opt.Grace)
		select {
		case <-c.gone():
		case <-time.After(p.opt.Grace): // its client does not read
		}
	}
}

// remote is a Link as a server has it.
type remote struct {
	Link
	out  *wire.Writer
	once sync.Once
	ends atomic.Bool // it is being stopped
	done chan struct{}
	left chan struct{}
}

func (c *remote) sink() *wire.Writer  { return c.out }
func (c *remote) gone() chan struct{} { return c.left }
func (c *remote) receive(take func(m *wire.Message, refused *wire.Refusal, of string)) {
	c.Receive(take)
}

func (c *remote) sessionless() bool { return c.Sessionless() }

func (c *remote) ended() bool { return c.ends.Load() }

var errLinkClosed = errors.New("the connection to the server was closed")

func (c *remote) wait(time.Duration) *ExitError {
	<-c.done
	return &ExitError{Code: 1, State: errLinkClosed.Error(), unstarted: true}
}

func (c *remote) stop(time.Duration) {
	c.once.Do(func() {
		c.ends.Store(true)
		c.Close()
		close(c.done)
	})
	<-c.done
}
