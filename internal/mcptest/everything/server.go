package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

const (
	stateless  = "2026-07-28"
	handshakes = "2025-11-25"
)

type (
	object = map[string]any
	list   = []any
)

var info = object{"name": "everything", "version": "1.0.0"}

// server answers for all clients.
type server struct {
	only string // the era it knows; "" for both
	work exchange.Handler

	mu        sync.Mutex
	listeners []*listener
	levels    map[*exchange.Session]string // below which sessions want no log messages
}

// listener is a request on which changes are told.
type listener struct {
	session *exchange.Session
	tell    func(method string, params object)
	wants   func(kind string) bool
}

func newServer(only string) *server {
	s := &server{only: only, levels: map[*exchange.Session]string{}}
	s.work = exchange.Work(s.answer)
	return s
}

// Handle implements exchange.Handler.
func (s *server) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	switch {
	case r.Msg.Kind() != wire.Request:
	case r.Msg.Method() == exchange.Listen && r.Era == exchange.Legacy:
		s.listen(ctx, r, reply) // the session's own
	case s.only != "" && r.Era.String() != s.only:
		reply(unknown(r))
	case r.Msg.Method() == exchange.Listen:
		s.listen(ctx, r, reply)
	default:
		s.work.Handle(ctx, r, reply)
	}
}

func unknown(r *exchange.Request) exchange.Outcome {
	return exchange.Fail(r, wire.CodeMethodNotFound, fmt.Sprintf("there is no %.100q", r.Msg.Method()), nil)
}

// revisions are those that are spoken.
func (s *server) revisions() []string {
	switch s.only {
	case "legacy":
		return []string{handshakes}
	case "modern":
		return []string{stateless}
	}
	return []string{stateless, handshakes}
}

// answer answers a request.
func (s *server) answer(ctx context.Context, r *exchange.Request) exchange.Outcome {
	modern := r.Era == exchange.Modern
	if modern {
		v := wire.GetString(r.Msg.Meta(), exchange.MetaVersion)
		if caps, _ := wire.Get(r.Msg.Meta(), exchange.MetaCapabilities); v == "" || len(caps) == 0 || caps[0] != '{' {
			return exchange.Fail(r, wire.CodeInvalidParams, "_meta must have a revision and capabilities", nil)
		}
		if !slices.Contains(s.revisions(), v) {
			return exchange.Fail(r, -32022, "unsupported protocol version", encode(object{"supported": s.revisions(), "requested": v}))
		}
	}
	name := wire.GetString(r.Msg.Params(), "name")
	switch method := r.Msg.Method(); {
	case method == "server/discover" && modern:
		return result(r, object{"supportedVersions": s.revisions(), "capabilities": capabilities(r), "ttlMs": 60000, "cacheScope": "public"})
	case method == "initialize" && !modern:
		return result(r, object{"protocolVersion": handshakes, "capabilities": capabilities(r), "serverInfo": info})
	case method == "ping" && !modern:
		return result(r, object{})
	case method == "logging/setLevel" && !modern:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.levels[r.Session] = wire.GetString(r.Msg.Params(), "level")
		return result(r, object{})
	case method == "tools/list":
		return listed(r, "tools", toolList())
	case method == "tools/call" && tools[name] != nil:
		return tools[name].call(&call{server: s, ctx: ctx, r: r})
	case method == "tools/call":
		return exchange.Fail(r, wire.CodeInvalidParams, fmt.Sprintf("there is no tool %.100q", name), nil)
	case method == "resources/list":
		return listed(r, "resources", resourceList())
	case method == "resources/templates/list":
		return listed(r, "resourceTemplates", list{object{"uriTemplate": "test://template/{id}/data", "name": "template", "description": "a template", "mimeType": "application/json"}})
	case method == "resources/read":
		return read(r)
	case (method == "resources/subscribe" || method == "resources/unsubscribe") && !modern:
		return result(r, object{}) // nothing here ever changes
	case method == "prompts/list":
		return listed(r, "prompts", promptList())
	case method == "prompts/get":
		return prompt(&call{server: s, ctx: ctx, r: r}, name)
	case method == "completion/complete":
		return result(r, object{"completion": object{"values": []string{"paris", "park", "party"}, "total": 3, "hasMore": false}})
	}
	return unknown(r)
}

func capabilities(r *exchange.Request) object {
	c := object{
		"tools": object{"listChanged": true}, "prompts": object{"listChanged": true}, "resources": object{"subscribe": true},
		"completions": object{}, "logging": object{},
	}
	if r.Era == exchange.Modern {
		delete(c, "logging") // what a request asks for is no capability
	}
	return c
}

// result is the outcome of r with a result, in the words of its era.
func result(r *exchange.Request, v object) exchange.Outcome {
	if r.Era == exchange.Modern {
		v["_meta"] = object{exchange.MetaServer: info}
	}
	return exchange.Result(r, encode(v))
}

// listed is the outcome of a request for a list.
func listed(r *exchange.Request, name string, items list) exchange.Outcome {
	return cached(r, object{name: items})
}

// cached is result for what the client may keep.
func cached(r *exchange.Request, v object) exchange.Outcome {
	if r.Era == exchange.Modern {
		v["ttlMs"], v["cacheScope"] = 60000, "public"
	}
	return result(r, v)
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// listen keeps a request open on which changes are told.
func (s *server) listen(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	l := &listener{session: r.Session, wants: func(string) bool { return true }}
	l.tell = func(method string, params object) { r.Caller.Notify(wire.NewNotification(method, encode(params))) }
	if r.Era == exchange.Modern {
		wanted, _ := wire.Get(r.Msg.Params(), "notifications")
		l.wants = func(kind string) bool {
			v, _ := wire.Get(wanted, kind)
			return string(v) == "true"
		}
		tag := object{exchange.MetaSubscriptionID: json.RawMessage(r.Msg.ID())}
		l.tell = func(method string, params object) {
			params["_meta"] = tag
			r.Caller.Notify(wire.NewNotification(method, encode(params)))
		}
		accepted := object{}
		for _, kind := range []string{"toolsListChanged", "promptsListChanged"} {
			if l.wants(kind) {
				accepted[kind] = true
			}
		}
		if uris, ok := wire.Get(wanted, "resourceSubscriptions"); ok { // nothing here ever changes
			accepted["resourceSubscriptions"] = json.RawMessage(uris)
		}
		l.tell("notifications/subscriptions/acknowledged", object{"notifications": accepted})
	}
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		s.listeners = slices.DeleteFunc(s.listeners, func(o *listener) bool { return o == l })
		if r.Era == exchange.Legacy {
			delete(s.levels, r.Session)
		}
		s.mu.Unlock()
		reply(exchange.Cancelled)
	})
}

// changed tells who wants to know that something changed.
func (s *server) changed(kind, method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		if l.wants(kind) {
			l.tell(method, object{})
		}
	}
}

// severities are the levels of log messages, the least first.
var severities = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// logs reports whether the client of a request wants log messages of a level.
func (s *server) logs(r *exchange.Request, level string) bool {
	wanted := wire.GetString(r.Msg.Meta(), exchange.MetaLogLevel)
	if r.Era == exchange.Legacy {
		s.mu.Lock()
		defer s.mu.Unlock()
		if wanted = s.levels[r.Session]; wanted == "" {
			wanted = severities[0]
		}
	}
	at := slices.Index(severities, wanted)
	return at >= 0 && slices.Index(severities, level) >= at
}
