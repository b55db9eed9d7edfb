package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rootbound/rootbound/internal/bridge"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// Memory is what is known of a server from earlier runs: that it does not speak one of the eras. Its methods are called
// from several goroutines, one at a time.
type Memory interface {
	// Recall returns the only era that the server speaks, as far as is known, and the name that it gave itself then.
	Recall() (only exchange.Era, server string, known bool)
	// Remember takes the only era that the server speaks, and the name that it gives itself.
	Remember(only exchange.Era, server string)
	// Forget says that what was recalled is wrong or was of another version.
	Forget()
}

// way is how messages of one era reach the server.
type way = uint32

const (
	undecided way = iota // in their own words, and what the server answers decides
	asking               // not yet: messages wait
	direct               // in their own words
	bridged              // in those of the other era
)

// route is the way of the messages of one era.
type route struct {
	way  atomic.Uint32
	hold hold // while asking

	mu       sync.Mutex
	decision way    // what the last trial found
	trial    *trial // nil while none runs
	last     *trial // that was begun
}

var errStopped = errors.New("the server was stopped")

func other(e exchange.Era) exchange.Era { return exchange.Modern - e }

// words names an era for the log.
func words(e exchange.Era) string {
	if e == exchange.Modern {
		return "revision 2026-07-28"
	}
	return "the handshake revisions"
}

// deliver takes a message to the server.
func (p *server) deliver(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	rt := &p.routes[r.Era]
	switch w := rt.way.Load(); w {
	case direct, bridged:
		p.send(w, ctx, r, reply)
	case asking:
		rt.hold.pass(func() {
			rt.mu.Lock()
			w := rt.decision
			rt.mu.Unlock()
			p.send(w, ctx, r, reply)
		})
	default:
		p.send(undecided, ctx, r, reply)
	}
}

func (p *server) send(w way, ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	method := r.Msg.Method()
	switch {
	case method == exchange.Listen && r.Era == exchange.Legacy:
		p.listen(w, ctx, r, reply)
	case w == bridged && r.Era == exchange.Legacy:
		p.up.Handle(ctx, r, reply)
	case w == bridged:
		p.down.Handle(ctx, r, reply)
	case method == "notifications/initialized" && p.welcomed.Load():
	case w == undecided && method == "initialize":
		p.welcome(ctx, r, reply)
	case w == undecided && r.Msg.Kind() == wire.Request && (r.Era == exchange.Modern || p.opt.Protocol.excludes(r.Era)):
		p.try(ctx, r, reply)
	case w == undecided && p.opt.Protocol.excludes(r.Era): // a notification before anything that it could be about
	default:
		p.edge(r.Era).Handle(ctx, r, reply)
	}
}

// edge is the server's edge for messages of an era.
func (p *server) edge(e exchange.Era) exchange.Handler {
	if e == exchange.Modern {
		return p.modern
	}
	return p.handshake
}

// listen takes in the request on which a handshake client is told what belongs to no other. Both bridges know it, so that it
// gets what it should whichever is put in.
func (p *server) listen(w way, ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	p.down.Attach(r.Caller)
	switch {
	case w == bridged:
		p.up.Handle(ctx, r, reply)
		return
	case p.down.Hears():
		context.AfterFunc(ctx, func() { reply(exchange.Cancelled) })
	default:
		p.legacy.Handle(ctx, r, reply)
	}
	p.up.Attach(r.Session, r.Caller)
}

// welcome takes the first handshake of a client. One that speaks both eras on one stream may shake hands with a server with
// which a bridge did so already, or is doing it: a server must not be greeted twice, so it gets the answer to that.
func (p *server) welcome(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	m := &p.routes[exchange.Modern]
	if m.way.Load() != bridged && m.way.Load() != asking {
		p.try(ctx, r, reply)
		return
	}
	m.hold.pass(func() {
		result := p.down.Handshake()
		if result == nil {
			p.try(ctx, r, reply)
			return
		}
		p.welcomed.Store(true)
		p.routes[exchange.Legacy].way.Store(direct)
		reply(exchange.Result(r, result))
	})
}

// trial finds out the way of one era: what the server answers to the first requests in their own words, and if it refuses
// them, is silent or ends, whether it takes the other era.
type trial struct {
	p   *server
	era exchange.Era
	rt  *route

	mu      sync.Mutex
	guests  []*guest
	own     progress // of the requests in their own words
	bridge  progress // of the other era
	alone   bool     // the bridge's try is all that its process was sent
	asked   bool     // server/discover was sent by us, for requests that are none
	passing bool     // what it refused its client with may be otherwise next time
	over    bool
	timer   *time.Timer
	waiting []func() // run when it is over
}

// progress is how far a try is.
type progress uint8

const (
	untried progress = iota
	open
	refused
	spare // it is taken, and is spoken if the server does not take the other era
)

// guest is a request of a client that came before the way was known.
type guest struct {
	ctx     context.Context
	r       *exchange.Request
	reply   func(exchange.Outcome)
	sent    bool              // in its own words
	outcome *exchange.Outcome // which waits for the decision
	ended   bool              // the server ended before it answered
	gone    bool              // answered, or handed on
}

// try sends a request in its own words, or keeps it until the way is known.
func (p *server) try(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	rt := &p.routes[r.Era]
	g := &guest{ctx: ctx, r: r, reply: reply}
	rt.mu.Lock()
	if rt.decision != undecided { // just now
		rt.mu.Unlock()
		p.deliver(ctx, r, reply)
		return
	}
	t := rt.trial
	first := t == nil
	if first {
		t = &trial{p: p, era: r.Era, rt: rt}
		rt.trial, rt.last = t, t
	}
	rt.mu.Unlock()
	t.mu.Lock()
	over := t.over
	if !over {
		t.guests = append(t.guests, g)
	}
	t.mu.Unlock()
	switch {
	case over: // just now
		p.deliver(ctx, r, reply)
	case first && (p.opt.Protocol.excludes(r.Era) || p.recalls(other(r.Era)) && !p.opt.Protocol.excludes(other(r.Era))):
		t.greet(false)
	case p.opt.Protocol.excludes(r.Era): // it waits for the bridge
	default:
		t.send(g)
	}
}

// send sends a request in its own words.
func (t *trial) send(g *guest) {
	t.mu.Lock()
	first := t.own == untried
	g.sent = true
	if first {
		t.own = open
		t.limit(t.silent)
	}
	t.mu.Unlock()
	r := g.r
	if r.Msg.Method() == exchange.Listen { // its answer is far away
		r = r.With(r.Msg)
		r.Caller = notice{g.r.Caller, func() { t.end(direct) }}
	}
	t.p.edge(t.era).Handle(g.ctx, r, func(o exchange.Outcome) { t.answered(g, o) })
}

// notice is a caller that tells when the server acknowledges a subscription, which only a stateless one does.
type notice struct {
	exchange.Caller
	acknowledged func()
}

func (n notice) Notify(m *wire.Message) {
	if m.Method() == "notifications/subscriptions/acknowledged" {
		n.acknowledged()
	}
	n.Caller.Notify(m)
}

// limit calls f after the time that a server may be silent. The caller holds mu.
func (t *trial) limit(f func()) {
	if t.timer != nil {
		t.timer.Stop()
	}
	d := t.p.opt.ProbeTimeout
	if (t.era == exchange.Legacy) != (t.bridge == open) { // it is a handshake that is open
		d = t.p.opt.GreetTimeout
	}
	t.timer = time.AfterFunc(d, f)
}

// silent takes it that the server does not answer requests in their own words.
func (t *trial) silent() {
	t.mu.Lock()
	if t.over || t.own != open || t.bridge != untried || len(t.guests) == 0 || t.p.opt.Protocol.excludes(other(t.era)) {
		t.mu.Unlock()
		return // with no other era to try, it is waited for as long as its client does
	}
	first := t.guests[0].r
	t.mu.Unlock()
	if t.era == exchange.Modern && first.Msg.Method() != "server/discover" {
		t.ask() // it may only be slow
		return
	}
	t.greet(false)
}

// unreached reports whether an outcome is that a server on another machine was not reached, or did not let us in.
func unreached(o exchange.Outcome) bool {
	switch wire.GetString(o.Msg.Error(), "data", "reason") {
	case "unreachable", "unauthorized", "forbidden", "redirected":
		return true
	}
	return false
}

// passing reports whether an outcome is that a server on another machine broke down: it is no word of what it speaks.
func passing(o exchange.Outcome) bool {
	switch wire.GetString(o.Msg.Error(), "data", "reason") {
	case "broken", "server error":
		return true
	}
	return false
}

// verdict is what an outcome says of the server.
type verdict uint8

const (
	unclear verdict = iota
	takes           // it speaks the era
	not             // it does not
)

// judge says what the outcome of a request in its own words means.
func judge(r *exchange.Request, o exchange.Outcome) verdict {
	method, failed := r.Msg.Method(), o.Msg.Error()
	switch v, _ := wire.Get(failed, "code"); {
	case r.Era == exchange.Modern && (string(v) == "-32020" || string(v) == "-32021"):
		return takes // no other era has these
	case failed != nil && (r.Era == exchange.Legacy || string(v) == "-32022"):
		supported, ok := wire.Get(failed, "data", "supported")
		for item := range wire.Items(supported) {
			if s, _ := wire.Unquote(item); IsModern(s) == (r.Era == exchange.Modern) {
				return takes // another revision of the era
			}
		}
		if ok || r.Era == exchange.Legacy || method == "server/discover" && sound(r) {
			return not
		}
	case failed != nil && method == "server/discover" && !sound(r):
		return unclear // it may be the request itself that it does not take
	case method == "server/discover" && !bridge.Stateless(o):
		return not
	case method == "server/discover", method == "initialize":
		return takes
	case failed == nil:
		if _, ok := wire.Get(o.Msg.Result(), "resultType"); ok {
			return takes
		}
	}
	return unclear
}

// sound reports whether a request says of itself what every request of the stateless era must, in a revision that there is.
func sound(r *exchange.Request) bool {
	caps, _ := wire.Get(r.Msg.Meta(), exchange.MetaCapabilities)
	return slices.Contains(modernRevisions, wire.GetString(r.Msg.Meta(), exchange.MetaVersion)) && len(caps) > 0 && caps[0] == '{'
}

// answered takes the outcome of a request that was sent in its own words.
func (t *trial) answered(g *guest, o exchange.Outcome) {
	t.mu.Lock()
	if t.over {
		gone := g.gone
		g.gone = true
		way := t.rt.decided()
		t.mu.Unlock()
		switch {
		case gone:
		case way == bridged && t.era == exchange.Modern:
			g.reply(t.p.down.Outcome(g.r, o))
		default:
			g.reply(o)
		}
		return
	}
	if t.era == exchange.Legacy && o.Msg != nil && o.Msg.Result() != nil {
		result := o.Msg.Result()
		t.p.agreed.Store(&result)
	}
	if o.Msg == nil || unreached(o) { // its client does not wait for it, or the server has not seen it: that says nothing
		g.gone = true
		abandoned := t.bridge == untried && !t.asked && !slices.ContainsFunc(t.guests, func(g *guest) bool { return !g.gone })
		if abandoned {
			t.stop(undecided)
		}
		t.mu.Unlock()
		g.reply(o)
		if abandoned {
			t.release(undecided)
		}
		return
	}
	v, dead := judge(g.r, o), t.p.dead()
	g.outcome, g.ended = &o, dead && o.Msg.Result() == nil
	t.passing = t.passing || passing(o)
	done := v == unclear && o.Msg.Result() != nil // in whatever words: only the way of later ones is open
	g.gone = done
	t.mu.Unlock()
	if done {
		g.reply(o)
	}
	switch {
	case v == takes && o.Msg.Result() != nil && g.r.Msg.Method() == "initialize" && t.p.sessionless() && !t.p.opt.Protocol.excludes(exchange.Modern):
		t.mu.Lock()
		t.own = spare
		t.mu.Unlock()
		t.greet(false) // it could ask nobody anything, and in the other era it can
	case v == takes:
		t.end(direct)
	case dead: // that is all that its outcome says
		t.failed(true)
	case v == not:
		t.failed(false)
	default:
		t.ask()
	}
}

// ask asks the server whether it is a stateless one, when an answer did not show it.
func (t *trial) ask() {
	t.mu.Lock()
	if t.over || t.asked || t.bridge != untried {
		t.mu.Unlock()
		return
	}
	t.asked = true
	t.wait()
	r := exchange.Own(t.guests[0].r, "server/discover", nil)
	if !sound(r) {
		p := wire.SetMember(nil, wire.Quote(modernRevisions[0]), "_meta", exchange.MetaVersion)
		r = r.With(r.Msg.WithParams(wire.SetMember(p, []byte("{}"), "_meta", exchange.MetaCapabilities)))
	}
	var once sync.Once
	t.limit(func() {
		once.Do(func() {
			t.p.modern.Forget(r.Msg.Key())
			t.failed(false)
		})
	})
	t.mu.Unlock()
	go t.p.modern.Handle(r.Session.Context(), r, func(o exchange.Outcome) {
		once.Do(func() {
			switch {
			case o.Msg != nil && judge(r, o) == takes:
				t.end(direct)
			default:
				t.failed(t.p.dead())
			}
		})
	})
}

// wait lets later messages wait for the decision. The caller holds mu.
func (t *trial) wait() {
	t.rt.hold.close()
	t.rt.way.Store(asking)
}

// failed takes it that the server does not speak the era of its client, and has ended with that.
func (t *trial) failed(ended bool) {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return
	}
	t.own = refused
	next := t.bridge
	t.mu.Unlock()
	if t.p.opt.Protocol.excludes(other(t.era)) {
		t.end(direct)
		return
	}
	switch next {
	case untried:
		t.greet(ended)
	case refused:
		t.end(direct)
	}
}

// greet tries the other era, with a new process where the old one has ended.
func (t *trial) greet(ended bool) {
	t.mu.Lock()
	if t.over || len(t.guests) == 0 {
		t.mu.Unlock()
		return
	}
	t.bridge = open
	t.alone = ended || t.own == untried
	t.wait()
	r := t.guests[0].r
	t.limit(t.unheard)
	t.mu.Unlock()
	go t.p.revive(func(err error) {
		switch {
		case err != nil:
			t.unmet(exchange.Fail(r, wire.CodeInternal, "rootbound: "+err.Error(), nil))
		case t.era == exchange.Legacy:
			t.p.up.Greet(r.Session.Context(), r, t.met)
		default:
			t.p.shake(r, t.met)
		}
	})
}

// unheard takes it that the server does not answer in the other era.
func (t *trial) unheard() {
	t.mu.Lock()
	over, own := t.over, t.own
	t.mu.Unlock()
	switch {
	case over:
	case t.p.opt.Protocol.excludes(t.era): // it is waited for as long as its client does
	case own == untried: // what was remembered may be wrong
		t.sendAll()
	case own == refused, own == spare:
		t.end(direct)
	}
}

func (t *trial) met(o exchange.Outcome, ok bool) {
	if ok {
		t.end(bridged)
	} else {
		t.unmet(o)
	}
}

// unmet takes it that the server does not speak the other era either: o is what it said.
func (t *trial) unmet(o exchange.Outcome) {
	ended := t.p.dead()
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return
	}
	again := ended && !t.alone
	if !again {
		t.bridge = refused
	}
	own := t.own
	t.mu.Unlock()
	if t.era == exchange.Modern {
		t.p.legacy.Forget()
	}
	switch {
	case again: // what it was sent before may be what it ended of
		t.greet(true)
	case t.p.opt.Protocol.excludes(t.era):
		t.refuse(o)
	case own == untried:
		t.sendAll()
	case own == refused || own == spare || ended:
		t.end(direct)
	}
}

// refuse gives up the trial, for a server that is held to an era and did not take it: o is what it said. The next request
// begins another one.
func (t *trial) refuse(o exchange.Outcome) {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return
	}
	t.stop(undecided)
	guests := t.guests
	t.mu.Unlock()
	text := fmt.Sprintf("the server is held to %s, which it does not speak", words(other(t.era)))
	if o.Msg != nil && o.Msg.Error() != nil {
		text += fmt.Sprintf(": %.300s", wire.GetString(o.Msg.Error(), "message"))
	}
	for _, g := range guests {
		g.reply(exchange.Fail(g.r, wire.CodeInternal, "rootbound: "+text, []byte(`{"reason":"protocol"}`)))
	}
	go t.release(undecided)
}

// sendAll sends what waits in its own words.
func (t *trial) sendAll() {
	t.mu.Lock()
	guests := t.guests
	t.mu.Unlock()
	go t.p.revive(func(error) { // an error is what each of them gets
		for _, g := range guests {
			t.send(g)
		}
	})
}

// end decides.
func (t *trial) end(w way) {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return
	}
	t.wait() // what comes now goes behind what is here
	neither := t.own == refused && w == direct
	t.stop(w)
	guests, passing := t.guests, t.passing
	t.mu.Unlock()
	t.p.found(t.era, w, neither, passing)
	var later []func()
	for _, g := range guests {
		if f := t.settle(g, w); f != nil {
			later = append(later, f)
		}
	}
	go func() { // this may be where the server is read, which must not wait for the server to read
		for _, f := range later {
			f()
		}
		t.release(w)
	}()
}

// stop ends the trial with a decision. The caller holds mu.
func (t *trial) stop(w way) {
	t.over = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.rt.mu.Lock()
	t.rt.decision, t.rt.trial = w, nil
	t.rt.mu.Unlock()
}

// release lets go what waited for the decision, in its order.
func (t *trial) release(w way) {
	t.rt.hold.open()
	t.rt.mu.Lock()
	if t.rt.last == t { // else a later one knows better
		t.rt.way.Store(w)
	}
	t.rt.mu.Unlock()
	t.mu.Lock()
	waiting := t.waiting
	t.waiting = nil
	t.mu.Unlock()
	for _, f := range waiting {
		f()
	}
}

// after runs f when the trial is over, and reports whether it is not yet.
func (t *trial) after(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.waiting = append(t.waiting, f)
	}
	return !t.over
}

// settle does with a request what was decided; what is to be sent for it, the function that it returns does. Of a tool's call
// it is not known whether the server has begun with it, unless it refused it: then, and only then, it is sent once more.
func (t *trial) settle(g *guest, w way) (later func()) {
	t.mu.Lock()
	o, sent, key := g.outcome, g.sent, g.r.Msg.Key()
	once := sent && g.r.Msg.Method() == "tools/call" && (o == nil || g.ended)
	stays := g.gone || sent && o == nil && (w == direct || once)
	g.gone = g.gone || !stays
	t.mu.Unlock()
	switch {
	case stays: // answered already, or what it was sent for is still to come
		return nil
	case w == direct && o == nil:
		return func() { t.p.edge(t.era).Handle(g.ctx, g.r, g.reply) }
	case w == direct || once:
		g.reply(*o)
		return nil
	case t.era == exchange.Modern:
		if sent && o == nil {
			t.p.modern.Forget(key)
		}
		return func() { t.p.down.Handle(g.ctx, g.r, g.reply) }
	}
	t.p.legacy.Forget()
	return func() { t.p.up.Handle(g.ctx, g.r, g.reply) }
}

// decided returns what the last trial found.
func (rt *route) decided() way {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.decision
}

// trying reports whether a trial is under way: what the server ends of is then part of it.
func (p *server) trying() bool {
	for i := range p.routes {
		rt := &p.routes[i]
		rt.mu.Lock()
		t := rt.trial
		rt.mu.Unlock()
		if t != nil {
			return true
		}
	}
	return false
}

// sessionless reports whether the server has no session of the handshake that was made.
func (p *server) sessionless() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.link != nil && p.link.sessionless()
}

// dead reports whether no process runs.
func (p *server) dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.link == nil || p.link.ended()
}

// revive calls f when a process runs that can be spoken to, a new one when the old one has ended. It may wait for the end of
// the old one's output.
func (p *server) revive(f func(error)) {
	p.mu.Lock()
	old := p.link
	p.mu.Unlock()
	if old != nil && old.ended() {
		<-old.gone()
	}
	var err error
	p.mu.Lock()
	switch {
	case p.closed:
		err = errStopped
	case p.link == nil:
		err = p.launch(func() {})
	}
	p.mu.Unlock()
	if err != nil {
		f(err)
		return
	}
	p.hold.pass(func() { f(nil) })
}

// shake has the bridge shake hands with the server in the name of a stateless client, unless a client has done so itself.
func (p *server) shake(r *exchange.Request, met func(exchange.Outcome, bool)) {
	rt := &p.routes[exchange.Legacy]
	rt.mu.Lock()
	t, decision := rt.trial, rt.decision
	rt.mu.Unlock()
	agreed := p.agreed.Load()
	switch {
	case t != nil && t.after(func() { p.shake(r, met) }):
	case decision == bridged: // it refused a handshake already
		met(exchange.Cancelled, false)
	case agreed != nil:
		p.down.Adopt(r, *agreed)
		met(exchange.Cancelled, true)
	default:
		p.down.Greet(r, met)
	}
}

// Revision is the protocol revision that is spoken with the server for a client of an era, "" before that is known.
func (p *server) Revision(client exchange.Era) string {
	w := p.routes[client].way.Load()
	switch {
	case w != direct && w != bridged:
		return ""
	case (w == direct) == (client == exchange.Legacy):
		return p.legacy.Revision()
	}
	return modernRevisions[len(modernRevisions)-1]
}

// recalls reports whether the server is known to speak nothing but e.
func (p *server) recalls(e exchange.Era) bool {
	if p.opt.Memory == nil {
		return false
	}
	only, _, known := p.opt.Memory.Recall()
	return known && only == e
}

// found notes what a trial found out. What may be otherwise next time is not remembered.
func (p *server) found(e exchange.Era, w way, neither, passing bool) {
	server := p.down.Server()
	if e == exchange.Legacy {
		server = p.up.Server()
	}
	switch {
	case w == bridged:
		p.opt.Note("the client speaks %s and the server %s: a bridge is between them", words(e), words(other(e)))
	case neither:
		p.opt.Note("the server takes neither %s nor %s", words(e), words(other(e)))
	default:
		p.opt.Note("the client and the server speak %s", words(e))
	}
	if _, held := p.opt.Protocol.only(); p.opt.Memory == nil || neither || passing || held {
		return
	}
	only, before, known := p.opt.Memory.Recall()
	switch {
	case w == direct && known && only != e:
		p.opt.Memory.Forget()
	case w == bridged && (!known || only == e):
		p.opt.Memory.Remember(other(e), server)
	case w == bridged && before != server:
		p.opt.Memory.Forget() // this version may speak both: the next start finds out
	}
}
