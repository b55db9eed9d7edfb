package transport

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/legacy"
	"github.com/rootbound/rootbound/internal/modern"
	"github.com/rootbound/rootbound/internal/wire"
)

// StdioOptions of a client on a stream.
type StdioOptions struct {
	// Limit is the longest message in bytes; 0 is wire.DefaultLimit.
	Limit int
	// Report is told of oddities that nobody else hears of; nil drops them.
	Report func(format string, args ...any)
}

// ServeStdio reads a client's messages from in until it ends, hands them to h in the era of each, and writes what comes
// back to out. It returns nil when in ends, what was asked was answered or had a little time for it, and everything was
// written. When ctx ends it returns at once, although a read may still be waiting on in.
func ServeStdio(ctx context.Context, in io.Reader, out io.Writer, h exchange.Handler, o StdioOptions) error {
	report := o.Report
	if report == nil {
		report = func(string, ...any) {}
	}
	session := exchange.NewSession(ctx)
	if f, ok := out.(*os.File); ok {
		widen(int(f.Fd()))
	}
	w := wire.NewWriter(out)
	line := exchange.OnLine(w)
	d := &dispatch{
		line:   line,
		legacy: legacy.NewClient(line, h, session, legacy.Options{Report: report}),
		modern: modern.NewClient(h, session, modern.Options{Report: report}),
	}
	done := make(chan error, 1)
	go func() {
		GrowStack()
		done <- d.read(wire.NewReader(in, o.Limit))
	}()
	var err error
	select {
	case err = <-done:
		d.linger(ctx)
	case <-w.Done():
		err = w.Wait()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	session.End(errClientGone)
	written := make(chan error, 1)
	go func() { written <- w.Wait() }()
	select {
	case werr := <-written:
		if err == nil {
			err = werr
		}
	case <-time.After(lingerTime): // it does not read
	}
	return err
}

var errClientGone = errors.New("the client closed the connection")

// dispatch gives each message to the edge of its era: one client may speak both on one stream.
type dispatch struct {
	line   exchange.Stream
	legacy *legacy.Client
	modern *modern.Client
}

// lingerTime is how long the answers to what a client asked before it closed may take.
const lingerTime = 2 * time.Second

// linger waits for what is open when the client has said its last.
func (d *dispatch) linger(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lingerTime)
	defer cancel()
	for _, drained := range []<-chan struct{}{d.legacy.Drained(), d.modern.Drained()} {
		select {
		case <-drained:
		case <-ctx.Done():
		}
	}
}

func (d *dispatch) read(r *wire.Reader) error {
	for {
		line, err := r.Next()
		var refused *wire.Refusal
		switch {
		case errors.As(err, &refused):
			d.refuse(refused)
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		m, err := wire.Scan(line, wire.Strict)
		if errors.As(err, &refused) {
			d.refuse(refused)
			continue
		}
		if d.isModern(&m) {
			d.modern.Receive(&m, d.line)
		} else {
			d.legacy.Receive(&m, d.line)
		}
	}
}

// refuse answers a line that is no message.
func (d *dispatch) refuse(r *wire.Refusal) {
	if answer := legacy.Refusal(r); answer != nil {
		d.line.Refuse(answer)
	}
}

// isModern decides by what the message itself says; a cancellation says nothing and goes where its request is.
func (d *dispatch) isModern(m *wire.Message) bool {
	switch m.Kind() {
	case wire.Response, wire.Batch:
		return false
	}
	switch m.Method() {
	case "server/discover", exchange.Listen:
		return true
	case "initialize":
		return false
	case "notifications/cancelled":
		id, _ := wire.Get(m.Params(), "requestId")
		return d.modern.Has(wire.IDKey(id))
	}
	return IsModern(wire.GetString(m.Meta(), exchange.MetaVersion))
}

// handshakeRevisions are the revisions that begin with initialize.
var handshakeRevisions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// IsModern reports whether a request that names this revision in its _meta is of the stateless era: it names one at all,
// and none of the handshake's.
func IsModern(revision string) bool {
	return strings.TrimSpace(revision) != "" && !slices.Contains(handshakeRevisions, revision)
}
