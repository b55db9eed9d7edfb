package fsserver

import (
	"context"
	"fmt"
	"slices"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
)

// revisions are the protocol revisions spoken here, the newest first. All but the first begin with a handshake.
var revisions = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

const (
	// capabilities: the tools never change while the server runs, so no change of them is ever told.
	capabilities = `{"tools":{}}`
	// cacheHints of what is the same for as long as the server runs. Another run may have other options.
	cacheHints = `"ttlMs":300000,"cacheScope":"private"`

	codeUnsupportedVersion = -32022
)

// Options of a server.
type Options struct {
	// Name, Title and Version are what the server says of itself. Title may be empty.
	Name, Title, Version string
	// Home is the directory that "~" at the beginning of a path stands for. When it is empty, "~" is a name like any other.
	Home string
	// Compat leaves out what the reference server does not have: tools, parameters and resources.
	Compat bool
	// ReadOnly leaves out the tools that change anything. What may be changed where is for Request.Roots to say.
	ReadOnly bool
	// Redact keeps the paths of this machine out of errors: they name an argument as it was given.
	Redact bool
	// Protection says in a line for people what holds the server to its directories. It may be empty.
	Protection string
	// Files says how files are reached.
	Files rootfs.Options
}

// Server answers requests of both eras. It is safe for concurrent use.
type Server struct {
	home  string
	info  []byte // what it says of itself
	tools []*tool
	// The members of the results of tools/list.
	legacyTools, modernTools string
	sets                     sets
	calls                    exchange.Handler
}

// New returns a server. Its owner closes it.
func New(o Options) *Server {
	s := &Server{home: o.Home, tools: toolsFor(o)}
	s.sets.options = o.Files
	s.legacyTools, s.modernTools = listTools(s.tools, exchange.Legacy), listTools(s.tools, exchange.Modern)
	s.info = append([]byte(`{"name":`), wire.Quote(o.Name)...)
	if o.Title != "" {
		s.info = append(append(s.info, `,"title":`...), wire.Quote(o.Title)...)
	}
	s.info = append(append(append(s.info, `,"version":`...), wire.Quote(o.Version)...), '}')
	s.calls = exchange.Work(s.call)
	return s
}

// Close lets go of the roots that are held open, of each as soon as no call uses it.
func (s *Server) Close() { s.sets.close() }

// Handle implements exchange.Handler.
func (s *Server) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	if r.Msg.Kind() != wire.Request {
		return // there is nothing to do about a notification: cancelling is the context's
	}
	if r.Era == exchange.Modern {
		if o, refused := refuseMeta(r); refused {
			reply(o)
			return
		}
	}
	switch r.Msg.Method() {
	case "tools/call":
		s.calls.Handle(ctx, r, reply)
	case exchange.Listen:
		listen(ctx, r, reply)
	default:
		reply(s.answer(r))
	}
}

// answer answers what is at hand.
func (s *Server) answer(r *exchange.Request) exchange.Outcome {
	modern := r.Era == exchange.Modern
	switch method := r.Msg.Method(); {
	case method == "tools/list" && modern:
		return s.result(r, s.modernTools+","+cacheHints)
	case method == "tools/list":
		return s.result(r, s.legacyTools)
	case method == "server/discover" && modern:
		return s.result(r, `"supportedVersions":`+string(quoteAll(revisions))+`,"capabilities":`+capabilities+","+cacheHints)
	case method == "initialize" && !modern:
		return s.result(r, `"protocolVersion":`+string(wire.Quote(negotiate(r)))+`,"capabilities":`+capabilities+`,"serverInfo":`+string(s.info))
	case method == "ping" && !modern:
		return s.result(r, "")
	}
	return exchange.Fail(r, wire.CodeMethodNotFound, fmt.Sprintf("method not found: %.100q", r.Msg.Method()), nil)
}

// negotiate returns the revision of a handshake: the client's where it is spoken here, else the newest with a handshake.
func negotiate(r *exchange.Request) string {
	v := wire.GetString(r.Msg.Params(), "protocolVersion")
	if slices.Contains(revisions[1:], v) {
		return v
	}
	return revisions[1]
}

// refuseMeta refuses a stateless request that does not say, or says wrongly, in which words it is written.
func refuseMeta(r *exchange.Request) (exchange.Outcome, bool) {
	version, _ := wire.Get(r.Msg.Meta(), exchange.MetaVersion)
	caps, _ := wire.Get(r.Msg.Meta(), exchange.MetaCapabilities)
	switch {
	case typeOf(version) != "string":
		return exchange.Fail(r, wire.CodeInvalidParams, fmt.Sprintf("the request's _meta needs a string %q", exchange.MetaVersion), nil), true
	case !slices.Contains(revisions, wire.GetString(r.Msg.Meta(), exchange.MetaVersion)):
		data := append([]byte(`{"supported":`), quoteAll(revisions)...)
		data = append(append(append(data, `,"requested":`...), version...), '}')
		return exchange.Fail(r, codeUnsupportedVersion, "unsupported protocol version", data), true
	case typeOf(caps) != "object":
		return exchange.Fail(r, wire.CodeInvalidParams, fmt.Sprintf("the request's _meta needs an object %q", exchange.MetaCapabilities), nil), true
	}
	return exchange.Outcome{}, false
}

// listen keeps the request on which changes would be told open until its client ends it. There are none to tell, and a
// stateless client hears that first.
func listen(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	if r.Era == exchange.Modern {
		if wanted, _ := wire.Get(r.Msg.Params(), "notifications"); typeOf(wanted) != "object" {
			reply(exchange.Fail(r, wire.CodeInvalidParams, exchange.Listen+` needs an object "notifications"`, nil))
			return
		}
		params := append([]byte(`{"notifications":{},"_meta":{"`+exchange.MetaSubscriptionID+`":`), r.Msg.ID()...)
		r.Caller.Notify(wire.NewNotification("notifications/subscriptions/acknowledged", append(params, `}}`...)))
	}
	context.AfterFunc(ctx, func() { reply(exchange.Cancelled) })
}

// result is the outcome of r with the members of a JSON object, in the words of its era.
func (s *Server) result(r *exchange.Request, members string) exchange.Outcome {
	begin, end := s.around(r)
	return exchange.Result(r, []byte(begin+members+end))
}

// around is what stands before and behind the members of a result.
func (s *Server) around(r *exchange.Request) (begin, end string) {
	if r.Era == exchange.Modern {
		return `{"resultType":"complete",`, `,"_meta":{"` + exchange.MetaServer + `":` + string(s.info) + `}}`
	}
	return "{", "}"
}

// quoteAll returns a JSON array.
func quoteAll(list []string) []byte {
	b := []byte{'['}
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendQuote(b, s)
	}
	return append(b, ']')
}
