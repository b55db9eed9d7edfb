package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// Running is a server that was started for a client of one era.
type Running struct {
	// Handler takes its requests.
	Handler exchange.Handler
	// Close ends it.
	Close func()
}

// peer is a client of one era in front of a running server.
type peer struct {
	ctx     context.Context
	era     exchange.Era
	server  Running
	session *exchange.Session
	opt     peerOptions
	limit   time.Duration // for one answer

	mu    sync.Mutex
	roots []string // what it answers to roots/list: URIs
	n     int
	open  int // requests without an answer
	seen  seen
}

// peerOptions say what a client is like.
type peerOptions struct {
	roots    []string // what it answers; URIs
	noRoots  bool     // it does not declare roots
	revision string   // of its handshake; "" is the newest
	answer   func(uris []string) []byte
}

// seen is what a server did besides answering.
type seen struct {
	asked        int      // roots/list
	alone        int      // roots/list that belonged to no request
	undeclared   []string // questions for what was not declared
	changes      int      // that the client announced
	askedChanged int      // roots/list since
	logs         int
	yes          int // questions to a person, who said yes
}

const (
	newestHandshake = "2025-11-25"
	stateless       = "2026-07-28"
)

// connect begins a session with a server. What it answers to the first request is in the reply.
func connect(ctx context.Context, start func(ctx context.Context, era exchange.Era) (Running, error), era exchange.Era, o peerOptions) (*peer, reply, error) {
	server, err := start(ctx, era)
	if err != nil {
		return nil, reply{}, err
	}
	p := &peer{ctx: ctx, era: era, server: server, session: exchange.NewSession(ctx), opt: o, roots: o.roots, limit: firstLimit}
	if era == exchange.Modern {
		r := p.request("server/discover", nil)
		p.limit = callLimit
		return p, r, nil
	}
	listen := &exchange.Request{Msg: wire.NewRequest(exchange.NewID(), exchange.Listen, nil), Caller: caller{p}, Session: p.session}
	server.Handler.Handle(ctx, listen, func(exchange.Outcome) {})
	params := []byte(`{"capabilities":{"elicitation":{}},"clientInfo":{"name":"rootbound-verify","version":"1"}}`)
	if !o.noRoots {
		params = wire.SetMember(params, []byte(`{"listChanged":true}`), "capabilities", "roots")
	}
	revision := o.revision
	if revision == "" {
		revision = newestHandshake
	}
	caps, _ := wire.Get(params, "capabilities")
	p.session.SetClient(exchange.Client{Name: "rootbound-verify", Version: "1", Revision: revision, Capabilities: caps})
	r := p.request("initialize", wire.SetMember(params, wire.Quote(revision), "protocolVersion"))
	if r.ok() {
		p.notify("notifications/initialized")
	}
	p.limit = callLimit
	return p, r, nil
}

const (
	firstLimit = 60 * time.Second // a server that is being fetched
	callLimit  = 3 * time.Second  // more than anything here takes
)

func (p *peer) close() {
	p.session.End(nil)
	p.server.Close()
}

// reply is what came back for a request.
type reply struct {
	result, err []byte
	took        time.Duration
	hung        bool
	rounds      int
}

func (r reply) ok() bool { return r.result != nil }

// all returns the bytes that came back.
func (r reply) all() []byte {
	if r.result != nil {
		return r.result
	}
	return r.err
}

// refused reports whether the server said no: by an error, or by the result of a tool that says so.
func (r reply) refused() bool {
	if r.result == nil {
		return true
	}
	v, _ := wire.Get(r.result, "isError")
	return string(v) == "true"
}

// text returns what a model would read.
func (r reply) text() string {
	if r.hung {
		return "no answer"
	}
	if r.result == nil {
		return wire.GetString(r.err, "message")
	}
	var parts []string
	content, _ := wire.Get(r.result, "content")
	for part := range wire.Items(content) {
		parts = append(parts, wire.GetString(part, "text"))
	}
	return strings.Join(parts, "\n")
}

// code returns the code of an error, 0 for none.
func (r reply) code() int {
	v, _ := wire.Get(r.err, "code")
	n := 0
	fmt.Sscan(string(v), &n)
	return n
}

var errHung = errors.New("no answer in time")

// request sends a request and returns what comes, after as many rounds as a stateless server wants.
func (p *peer) request(method string, params []byte) reply {
	if params == nil {
		params = []byte("{}")
	}
	if p.era == exchange.Modern {
		params = wire.SetMember(params, p.meta(), "_meta")
	}
	began := time.Now()
	for round := 1; ; round++ {
		r, again := p.once(method, params)
		r.took, r.rounds = time.Since(began), round
		if again == nil || round == 10 {
			return r
		}
		params = again
	}
}

// once sends a request. Again is what it is to be tried again with.
func (p *peer) once(method string, params []byte) (r reply, again []byte) {
	p.mu.Lock()
	p.n++
	id := p.n
	p.mu.Unlock()
	return p.send(wire.NewRequest(fmt.Appendf(nil, "%d", id), method, params))
}

func (p *peer) send(m *wire.Message) (r reply, again []byte) {
	ctx, cancel := context.WithTimeoutCause(p.ctx, p.limit, errHung)
	defer cancel()
	request := &exchange.Request{Msg: m, Era: p.era, Caller: caller{p}, Session: p.session}
	p.opened(1)
	defer p.opened(-1)
	done := make(chan exchange.Outcome, 1)
	p.server.Handler.Handle(ctx, request, func(o exchange.Outcome) { done <- o })
	var o exchange.Outcome
	select {
	case o = <-done:
	case <-ctx.Done():
		return reply{hung: true}, nil
	}
	if o.Msg == nil {
		return reply{hung: true}, nil
	}
	r = reply{result: o.Msg.Result(), err: o.Msg.Error()}
	questions, interim := exchange.Interim(request, o)
	if !interim {
		return r, nil
	}
	again = m.Params()
	for _, q := range questions {
		answer := p.answer(q.Method, q.Params)
		if answer == nil {
			return r, nil
		}
		again = wire.SetMember(again, answer, "inputResponses", q.Key)
	}
	if state, ok := wire.Get(o.Msg.Result(), "requestState"); ok {
		again = wire.SetMember(again, state, "requestState")
	}
	return r, again
}

func (p *peer) opened(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open += n
}

// meta is what a stateless client says with each request.
func (p *peer) meta() []byte {
	revision := p.opt.revision
	if revision == "" {
		revision = stateless
	}
	m := []byte(`{"` + exchange.MetaCapabilities + `":{"elicitation":{}},"` + exchange.MetaClient + `":{"name":"rootbound-verify","version":"1"}}`)
	m = wire.SetMember(m, wire.Quote(revision), exchange.MetaVersion)
	if !p.opt.noRoots {
		m = wire.SetMember(m, []byte("{}"), exchange.MetaCapabilities, "roots")
	}
	return m
}

func (p *peer) notify(method string) {
	p.server.Handler.Handle(p.ctx, &exchange.Request{Msg: wire.NewNotification(method, nil), Session: p.session}, func(exchange.Outcome) {})
}

// call calls a tool.
func (p *peer) call(tool string, arguments []byte) reply {
	params := append(append(append([]byte(`{"name":`), wire.Quote(tool)...), `,"arguments":`...), arguments...)
	return p.request("tools/call", append(params, '}'))
}

// setRoots changes what the client answers, and announces it where there is a word for it.
func (p *peer) setRoots(uris ...string) {
	p.mu.Lock()
	p.roots = uris
	p.seen.changes++
	p.seen.askedChanged = 0
	p.mu.Unlock()
	if p.era == exchange.Legacy {
		p.notify("notifications/roots/list_changed")
	}
}

// looked returns what was seen so far.
func (p *peer) looked() seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seen
	s.undeclared = slices.Clone(s.undeclared)
	return s
}

// answer answers a question of the server: nil for one that is not answered.
func (p *peer) answer(method string, params []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case method == "ping":
		return []byte("{}")
	case method == "elicitation/create":
		p.seen.yes++
		return yes(params)
	case method != "roots/list", p.opt.noRoots:
		if !slices.Contains(p.seen.undeclared, method) {
			p.seen.undeclared = append(p.seen.undeclared, method)
		}
		return nil
	}
	p.seen.asked++
	p.seen.askedChanged++
	if p.open == 0 {
		p.seen.alone++
	}
	if p.opt.answer != nil {
		return p.opt.answer(p.roots)
	}
	return rootsList(p.roots)
}

// yes is the answer of a person who lets everything happen, once: the boundary has to hold all the same.
func yes(params []byte) []byte {
	content := []byte("{}")
	properties, _ := wire.Get(params, "requestedSchema", "properties")
	for name, schema := range wire.Members(properties) {
		value := least(schema)
		options, _ := wire.Get(schema, "enum")
		for option := range wire.Items(options) {
			if text, _ := wire.Unquote(option); strings.Contains(strings.ToLower(text), "once") || strings.EqualFold(text, "yes") || strings.EqualFold(text, "allow") {
				value = option
				break
			}
		}
		if wire.GetString(schema, "type") == "boolean" {
			value = []byte("true")
		}
		content = wire.SetMember(content, value, name)
	}
	return append(append([]byte(`{"action":"accept","content":`), content...), '}')
}

func rootsList(uris []string) []byte {
	var b bytes.Buffer
	b.WriteString(`{"roots":[`)
	for i, uri := range uris {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"uri":%s,"name":"root %d"}`, wire.Quote(uri), i+1)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

func uris(dirs ...string) []string {
	list := make([]string, len(dirs))
	for i, d := range dirs {
		list[i] = roots.FileURI(d)
	}
	return list
}

// caller is the client's end of a request.
type caller struct{ *peer }

// Notify implements exchange.Caller.
func (c caller) Notify(m *wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Method() == "notifications/message" {
		c.seen.logs++
	}
}

// CanAsk implements exchange.Caller. What was not declared can be asked, to see who does.
func (c caller) CanAsk(string) bool { return true }

// Ask implements exchange.Caller.
func (c caller) Ask(_ context.Context, qs []exchange.Question, answer func([]exchange.Answer)) {
	answers := make([]exchange.Answer, len(qs))
	for i, q := range qs {
		if result := c.answer(q.Method, q.Params); result != nil {
			answers[i].Result = result
		} else {
			answers[i].Error = fmt.Appendf(nil, `{"code":%d,"message":"this client does not answer %s"}`, wire.CodeMethodNotFound, q.Method)
		}
	}
	answer(answers)
}
