package exchange

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
)

// Session is what outlives a request: a stdio connection, or a handshake HTTP session. It is safe for concurrent use. A nil one,
// of requests that nothing connects, never ends, and nothing is known of its client.
type Session struct {
	// ID tells it from others in the log.
	ID string

	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	client Client
}

// Client is what a client said of itself in its handshake.
type Client struct {
	Name, Version string
	// Revision is the protocol revision in force, "" before the handshake and for clients without one.
	Revision string
	// Capabilities are the declared capabilities' bytes, nil when none were declared yet.
	Capabilities []byte
}

var sessions atomic.Int64

// NewSession returns a session that ends with ctx or with End.
func NewSession(ctx context.Context) *Session {
	s := &Session{ID: "s" + strconv.FormatInt(sessions.Add(1), 10)}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s
}

// Context is done when the session ends.
func (s *Session) Context() context.Context {
	if s == nil {
		return context.Background()
	}
	return s.ctx
}

// End ends the session.
func (s *Session) End(cause error) { s.cancel(cause) }

// Client returns what is known of the client.
func (s *Session) Client() Client {
	if s == nil {
		return Client{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// SetClient says what is known of the client.
func (s *Session) SetClient(c Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = c
}
