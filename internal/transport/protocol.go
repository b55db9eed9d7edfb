package transport

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// Protocol says which revisions are spoken with a peer: "auto" or nothing for those that it speaks, "legacy" for the handshake
// revisions, "modern" for the stateless one, or a revision.
type Protocol string

// modernRevisions are those of the stateless era that are known.
var modernRevisions = []string{"2026-07-28"}

// only returns the era that a peer is held to, and whether it is held to one.
func (p Protocol) only() (exchange.Era, bool) {
	switch {
	case p == "modern", slices.Contains(modernRevisions, string(p)):
		return exchange.Modern, true
	case p == "legacy", slices.Contains(handshakeRevisions, string(p)):
		return exchange.Legacy, true
	}
	return 0, false
}

// excludes reports whether an era is not spoken.
func (p Protocol) excludes(e exchange.Era) bool {
	only, held := p.only()
	return held && only != e
}

// handshake is the only handshake revision that is spoken, "" where there are several or none.
func (p Protocol) handshake() string {
	if slices.Contains(handshakeRevisions, string(p)) {
		return string(p)
	}
	return ""
}

// unsupported refuses a revision and names those that there are.
func unsupported(r *exchange.Request, text string, supported []string, requested string) exchange.Outcome {
	list := []byte{'['}
	for i, s := range supported {
		if i > 0 {
			list = append(list, ',')
		}
		list = wire.AppendQuote(list, s)
	}
	data := wire.SetMember(nil, append(list, ']'), "supported")
	if requested != "" {
		data = wire.SetMember(data, wire.Quote(requested), "requested")
	}
	return exchange.Fail(r, codeUnsupported, "rootbound: "+text, data)
}

const codeUnsupported = -32022

// Hold holds a client to a protocol, in front of next: it is told, in the words of what it tried, what it can speak here.
func Hold(p Protocol, next exchange.Handler) exchange.Handler {
	if _, held := p.only(); !held {
		return next
	}
	if rev := p.handshake(); rev != "" {
		next = agreeing{next, rev, "client"}
	}
	return exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		switch {
		case !p.excludes(r.Era):
			next.Handle(ctx, r, reply)
		case r.Msg.Kind() != wire.Request:
		case r.Era == exchange.Legacy && r.Msg.Method() == exchange.Listen: // our edge's own
			context.AfterFunc(ctx, func() { reply(exchange.Cancelled) })
		case r.Era == exchange.Legacy:
			reply(unsupported(r, "the client is held to revision "+strings.Join(modernRevisions, ", "), modernRevisions,
				wire.GetString(r.Msg.Params(), "protocolVersion")))
		case r.Msg.Method() == "server/discover": // as a server that does not know it
			reply(exchange.Fail(r, wire.CodeMethodNotFound, "rootbound: the client is held to the handshake revisions", nil))
		default:
			revisions := handshakeRevisions
			if rev := p.handshake(); rev != "" {
				revisions = []string{rev}
			}
			reply(unsupported(r, "the client is held to the handshake revisions", revisions, wire.GetString(r.Msg.Meta(), exchange.MetaVersion)))
		}
	})
}

// agreeing holds a handshake to one revision: it is asked for, and another answer is none.
type agreeing struct {
	exchange.Handler
	revision string
	held     string // who is held to it
}

// Handle implements exchange.Handler.
func (a agreeing) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	if r.Era != exchange.Legacy || r.Msg.Method() != "initialize" || r.Msg.Kind() != wire.Request {
		a.Handler.Handle(ctx, r, reply)
		return
	}
	if wire.GetString(r.Msg.Params(), "protocolVersion") != a.revision {
		r = r.With(r.Msg.WithParams(wire.SetMember(r.Msg.Params(), wire.Quote(a.revision), "protocolVersion")))
	}
	a.Handler.Handle(ctx, r, func(o exchange.Outcome) {
		if o.Msg != nil && o.Msg.Result() != nil {
			if got := wire.GetString(o.Msg.Result(), "protocolVersion"); got != a.revision {
				o = unsupported(r, fmt.Sprintf("the %s is held to revision %s, and the server speaks %.60q", a.held, a.revision, got), []string{got}, a.revision)
			}
		}
		reply(o)
	})
}
