package exchange

import (
	"context"
	"errors"

	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// Era is a family of protocol revisions that share their way of speaking.
type Era uint8

const (
	// Legacy is the handshake era: revisions 2024-11-05 to 2025-11-25.
	Legacy Era = iota
	// Modern is the stateless era: revision 2026-07-28 and later.
	Modern
)

func (e Era) String() string {
	if e == Modern {
		return "modern"
	}
	return "legacy"
}

// Request is one message of a client on its way to a server: a request or, without an id, a notification.
type Request struct {
	// Msg is the message as it came. It is never changed in place: a stage that edits puts an edited message into a
	// copy of the request (With).
	Msg *wire.Message
	// Era is the era Msg is written in. Only the bridge and this package's own helpers look at it.
	Era Era
	// Caller is the client, as long as this request is open. It is nil for a notification.
	Caller Caller
	// Session is what outlives a request: a stdio connection, a handshake HTTP session. It is nil over stateless HTTP.
	Session *Session
	// Roots is what holds for this request. The roots stage sets it.
	Roots roots.Set
	// Held is what stages left with the interim outcome that this request is the retry of, else nil.
	Held Held
	// Shown is what the client showed with the message to say who it is: its Authorization over HTTP, "" on stdio. It is a secret.
	Shown string
	// Trail collects what the stages decided, for the log. The log stage sets it.
	Trail *Trail
}

// With returns a copy of r that carries msg.
func (r *Request) With(msg *wire.Message) *Request {
	c := *r
	c.Msg = msg
	return &c
}

// ErrCancelled is why the context of a request ends that its client cancelled.
var ErrCancelled = errors.New("cancelled by the client")

// Caller is the client's end of an open request. Deliveries keep their order, and there are none after the reply. It is
// safe for use by any goroutine.
type Caller interface {
	// Notify tells the client msg, a notification.
	Notify(msg *wire.Message)
	// CanAsk reports whether the client declared that it answers method, and this request can carry a question now.
	CanAsk(method string) bool
	// Ask asks. Answer runs once, with one answer for each question in their order; when ctx is done first the
	// questions are withdrawn and every answer is an error. Answer must not wait.
	Ask(ctx context.Context, q []Question, answer func([]Answer))
}

// Question is an input request: a method and its params, as they came or as made.
type Question struct {
	// Key is its stable name among the questions of one request. Empty: the edge picks one.
	Key string
	// Method is the method asked.
	Method string
	// Params are the params' bytes; nil when there are none.
	Params []byte
	// Msg is the whole message as it came, when it came as one (a handshake server's request), else nil.
	Msg *wire.Message
	// Unsent is set when the request was not sent on yet, and will not be without an answer. So a retry that comes to another
	// process may be taken for a new request there.
	Unsent bool
	// Portable is set when an answer that was given to another process is as good: it says nothing that was not the client's to say.
	Portable bool
	// Settled, if set, reports that no answer is needed any more: then a retry without one goes on, as if it were withdrawn.
	Settled func() bool
}

// Answer is what came back: a result or an error, as JSON. Exactly one is set.
type Answer struct {
	Result []byte
	Error  []byte
	// Msg is the whole response as it came, when it came as one, else nil.
	Msg *wire.Message
}

// Outcome ends a request.
type Outcome struct {
	// Msg is one response, as it came or as made; the client's edge puts the client's id in. Nil means that there is
	// nothing to say any more: the request was cancelled.
	Msg *wire.Message
	// Hold is what stages keep until the retry; only with an interim result (see Interim).
	Hold Held
}

// Held is what a stage must know when a request that a stateless server gave back is tried again, by stage name. The
// modern client edge seals it around the server's own state.
type Held map[string][]byte

// Handler takes a request and replies exactly once, or never when it is a notification. It returns without waiting:
// because nobody waits inside Handle, messages keep their order in both directions. What must wait (a person, a disk, a
// child) starts its own goroutine.
type Handler interface {
	Handle(ctx context.Context, r *Request, reply func(Outcome))
}

// HandlerFunc is a function that is a Handler.
type HandlerFunc func(ctx context.Context, r *Request, reply func(Outcome))

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, r *Request, reply func(Outcome)) { f(ctx, r, reply) }

// Stage puts something in front of a handler.
type Stage func(next Handler) Handler

// Chain puts the stages in front of last; the first stage meets a request first.
func Chain(last Handler, stages ...Stage) Handler {
	for i := len(stages) - 1; i >= 0; i-- {
		last = stages[i](last)
	}
	return last
}
