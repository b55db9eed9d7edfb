package fsserver

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
)

// revisions are the protocol revisions spoken here, the newest first. All but the first begin with a handshake.
var revisions = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

const (
	// capabilities: the tools never change while the server runs, so no change of them is ever told. What the resources are
	// changes with the roots, and only a handshake has a word for that.
	capabilities       = `{"tools":{}}`
	legacyCapabilities = `{"tools":{},"resources":{"subscribe":true,"listChanged":true}}`
	modernCapabilities = `{"tools":{},"resources":{"subscribe":true}}`
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
	// Redact keeps the paths of this machine out of errors: what is beneath a root is named by a relative path.
	Redact bool
	// Protection says in a line for people what holds the server to its directories at the moment. It may be nil, and must
	// be safe for concurrent use.
	Protection func() string
	// Own are absolute paths of Rootbound's own files and directories, and OwnNames the names of such files at the top of
	// a root, whether they are there or not. No tool changes them.
	Own, OwnNames []string
	// Deny says which names no tool reaches. It takes the place of Files.Deny.
	Deny *Deny
	// Files says how files are reached.
	Files rootfs.Options
}

// Server answers requests of both eras. It is safe for concurrent use.
type Server struct {
	home  string
	deny  *Deny
	info  []byte // what it says of itself
	tools []*tool
	// The members of the results of tools/list.
	legacyTools, modernTools func() string // made when a client asks: none of it is needed for the handshake
	sets                     sets
	subscriptions            subscriptions
	compat, redact           bool
	protection               func() string
	slots                    *slots
	calls, reads, subscribes exchange.Handler
}

// New returns a server. Its owner closes it.
func New(o Options) *Server {
	s := &Server{home: o.Home, tools: toolsFor(o), compat: o.Compat, redact: o.Redact, protection: o.Protection}
	s.sets.options, s.sets.ownNames = o.Files, o.OwnNames
	s.sets.options.Protect = append(slices.Clip(o.Files.Protect), o.Own...)
	if s.deny = o.Deny; s.deny != nil {
		s.sets.options.Deny = s.deny.denies
	}
	s.legacyTools = sync.OnceValue(func() string { return listTools(s.tools, exchange.Legacy) })
	s.modernTools = sync.OnceValue(func() string { return listTools(s.tools, exchange.Modern) })
	s.info = append([]byte(`{"name":`), wire.Quote(o.Name)...)
	if o.Title != "" {
		s.info = append(append(s.info, `,"title":`...), wire.Quote(o.Title)...)
	}
	s.info = append(append(append(s.info, `,"version":`...), wire.Quote(o.Version)...), '}')
	s.slots = newSlots(waits{walk: maxWalk, slot: maxWalk, still: maxStill})
	s.calls, s.reads, s.subscribes = s.slots.work(s.call), s.slots.work(s.readResource), s.slots.work(s.subscribe)
	s.subscriptions.sets = &s.sets
	return s
}

// Close lets go of the roots that are held open, of each as soon as no call uses it, and tells of no more changes.
func (s *Server) Close() {
	s.subscriptions.close()
	s.sets.close()
}

// Handle implements exchange.Handler.
func (s *Server) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	if r.Msg.Kind() != wire.Request {
		if r.Msg.Method() == "notifications/roots/list_changed" && !s.compat {
			s.subscriptions.saw(r)
			s.subscriptions.rootsChanged(r.Session)
		}
		return // cancelling is the context's
	}
	if r.Era == exchange.Modern {
		if o, refused := refuseMeta(r); refused {
			reply(o)
			return
		}
	}
	switch method := r.Msg.Method(); {
	case method == "tools/call":
		s.subscriptions.saw(r)
		s.calls.Handle(ctx, r, reply)
	case method == exchange.Listen:
		s.listen(ctx, r, reply)
	case method == "resources/read" && !s.compat:
		s.subscriptions.saw(r)
		s.reads.Handle(ctx, r, reply)
	case method == "resources/subscribe" && !s.compat && r.Era == exchange.Legacy:
		s.subscriptions.saw(r)
		s.subscribes.Handle(ctx, r, reply)
	default:
		reply(s.answer(r))
	}
}

// answer answers what is at hand.
func (s *Server) answer(r *exchange.Request) exchange.Outcome {
	modern := r.Era == exchange.Modern
	switch method := r.Msg.Method(); {
	case method == "tools/list" && modern:
		return s.result(r, s.modernTools()+hints(r, cacheHints))
	case method == "tools/list":
		return s.result(r, s.legacyTools())
	case method == "resources/list" && !s.compat:
		return s.result(r, listResources(r.Roots)+hints(r, noHints))
	case method == "resources/templates/list" && !s.compat:
		return s.result(r, resourceTemplates+hints(r, cacheHints))
	case method == "resources/unsubscribe" && !s.compat && !modern:
		return s.unsubscribe(r)
	case method == "server/discover" && modern:
		return s.result(r, `"supportedVersions":`+string(quoteAll(revisions))+`,"capabilities":`+s.capabilities(r)+","+cacheHints)
	case method == "initialize" && !modern:
		return s.result(r, `"protocolVersion":`+string(wire.Quote(negotiate(r)))+`,"capabilities":`+s.capabilities(r)+`,"serverInfo":`+string(s.info))
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

// capabilities are what the server declares in the words of a request.
func (s *Server) capabilities(r *exchange.Request) string {
	switch {
	case s.compat:
		return capabilities
	case r.Era == exchange.Modern:
		return modernCapabilities
	}
	return legacyCapabilities
}

// hints are members for the result of r that say how long it is good for, in the era that has them.
func hints(r *exchange.Request, members string) string {
	if r.Era == exchange.Modern {
		return "," + members
	}
	return ""
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
