package bridge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

const (
	// settleLimit is how long requests wait for a server that was told something to make of it.
	settleLimit = time.Second
	// settleMargin is what a server is given after it answered a ping behind the list of roots: it may still be looking at
	// the directories.
	settleMargin = 100 * time.Millisecond
	// maxListens is how many listen requests may be open: as many as clients that come over HTTP.
	maxListens = 4096
	// maxFollowed is how many resources one listen request, or one session of a handshake client, may follow.
	maxFollowed = 4096
	// maxEarly is how many notifications are kept for a client whose listen request is not acknowledged yet, and maxEarlyBytes how many
	// bytes of them.
	maxEarly      = 1024
	maxEarlyBytes = 1 << 20
)

// declaration is what the server is told that the client can: later requests may declare what the first did not, and
// whether a question can be carried is decided when it is asked.
const declaration = `{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}}}`

// Down is a handler for stateless clients in front of the edge of a handshake server. It is safe for concurrent use.
type Down struct {
	next exchange.Handler

	// Held from finding out that the server is to be told of a resource, or not any more, until it is, or it could be told in another order.
	subscribing sync.Mutex

	mu         sync.Mutex
	outer      exchange.Caller           // the listen request of a handshake client on the same connection, nil when there is none
	hears      bool                      // the server's edge has our listen request
	handshake  []byte                    // the server's answer to initialize, nil before
	open       []*exchange.Request       // what is not answered yet, the oldest first
	asking     map[*exchange.Request]int // how many questions each of them carries
	listens    []*listen
	subscribed map[string]*subscription
	level      int               // of its log messages, -1 when it was told none
	parked     []*parked         // questions for roots that no request was there to carry
	roots      *exchange.Request // a request with the roots that the server was told of
	fetched    bool              // the server has asked for roots
	lazy       bool              // it does not ask when it is told of a change
	settling   *settling         // nil when the server knows what holds, as far as it wants to
}

// settling is the time in which requests wait for a server that has to fetch roots.
type settling struct {
	over   chan struct{}
	asking int  // its questions for roots that are not answered, or were just now
	told   bool // it was told of a change
}

// NewDown returns a bridge in front of next.
func NewDown(next exchange.Handler) *Down {
	return &Down{next: next, asking: map[*exchange.Request]int{}, subscribed: map[string]*subscription{}, level: -1}
}

// Attach says who is to be told, too, what belongs to no request: a handshake client on the same connection.
func (d *Down) Attach(caller exchange.Caller) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.outer = caller
}

// shaken is the caller of a handshake client, nil when none has shaken hands: one word of that era is no client of it.
func (d *Down) shaken() exchange.Caller {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.roots == nil || d.roots.Session.Client().Capabilities == nil {
		return nil
	}
	return d.outer
}

// Hears reports whether the server's edge has the listen request of this bridge, and must be given no other.
func (d *Down) Hears() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hears
}

// Adopt takes a handshake that a client has made on its own; result is the server's answer.
func (d *Down) Adopt(r *exchange.Request, result []byte) {
	d.mu.Lock()
	d.handshake, d.roots = result, r
	d.mu.Unlock()
	d.hear(r)
}

// Handshake returns the server's answer to initialize, nil before it.
func (d *Down) Handshake() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.handshake
}

// Server returns the name and version by which the server went in its handshake, and "" before.
func (d *Down) Server() string {
	info, _ := wire.Get(d.Handshake(), "serverInfo")
	return named(info)
}

// hear has the server's edge take to us what belongs to no request.
func (d *Down) hear(r *exchange.Request) {
	d.mu.Lock()
	first := !d.hears
	d.hears = true
	d.mu.Unlock()
	if first {
		d.next.Handle(r.Session.Context(), &exchange.Request{
			Msg: wire.NewRequest(exchange.NewID(), exchange.Listen, nil), Caller: hub{d: d}, Session: r.Session,
		}, func(exchange.Outcome) {})
	}
}

// own is a request of ours to the server, or with a method that begins so, a notification.
func (d *Down) own(s *exchange.Session, method string, params []byte, reply func(exchange.Outcome)) {
	m := wire.NewNotification(method, params)
	if !strings.HasPrefix(method, "notifications/") {
		m = wire.NewRequest(exchange.NewID(), method, params)
	}
	d.next.Handle(s.Context(), &exchange.Request{Msg: m, Session: s}, reply)
}

func nothing(exchange.Outcome) {}

// Greet shakes hands with the server, in the name of the client whose request r is, and reports how that answered. R can
// carry what the server asks because of it.
func (d *Down) Greet(r *exchange.Request, done func(o exchange.Outcome, ok bool)) {
	d.mu.Lock()
	d.roots = r
	d.mu.Unlock()
	d.hear(r)
	d.enter(r)
	info, ok := wire.Get(r.Msg.Meta(), exchange.MetaClient)
	if !ok {
		info = []byte(`{"name":"rootbound","version":"0"}`)
	}
	p := wire.SetMember(nil, wire.Quote(legacyRevision), "protocolVersion")
	p = wire.SetMember(wire.SetMember(p, []byte(declaration), "capabilities"), info, "clientInfo")
	d.own(r.Session, "initialize", p, func(o exchange.Outcome) {
		if o.Msg == nil || wire.GetString(o.Msg.Result(), "protocolVersion") == "" { // there are servers that have a result for anything
			d.leave(r)
			done(o, false)
			return
		}
		d.mu.Lock()
		d.handshake = o.Msg.Result()
		d.mu.Unlock()
		w := d.settle(false)
		go func() { // not where the server is read, which must not wait for the server to read
			d.own(r.Session, "notifications/initialized", nil, nothing)
			d.behind(r.Session, 0, func() { // what it asks at once, it asks before it answers
				d.leave(r)
				d.settled(w, 0)
				done(o, true)
			})
		}()
	})
}

// behind calls f when the server has answered a ping, and had a margin, but not later than settleLimit.
func (d *Down) behind(s *exchange.Session, margin time.Duration, f func()) {
	var once sync.Once
	late := time.AfterFunc(settleLimit, func() { once.Do(f) })
	d.own(s, "ping", nil, func(exchange.Outcome) {
		time.AfterFunc(margin, func() {
			late.Stop()
			once.Do(f)
		})
	})
}

// Handle implements exchange.Handler.
func (d *Down) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	if r.Msg.Kind() != wire.Request {
		if r.Msg.Method() == "notifications/cancelled" && !d.has(r) {
			return // a listen request, or what the server never had
		}
		c := *r
		c.Era = exchange.Legacy
		if p := r.Msg.Params(); p != nil {
			c.Msg = r.Msg.WithEdited(withoutReserved(p))
		}
		d.next.Handle(ctx, &c, reply)
		return
	}
	if refused := check(r); refused.Msg != nil {
		reply(refused)
		return
	}
	switch r.Msg.Method() {
	case "server/discover":
		reply(exchange.Result(r, d.discover()))
	case exchange.Listen:
		d.listen(ctx, r, reply)
	default:
		d.call(ctx, r, reply)
	}
}

// check refuses what a stateless server must refuse, and no handshake server does. A handshake server gives no states
// away, so one that comes is of another server, or of the time before this one.
func check(r *exchange.Request) exchange.Outcome {
	version := wire.GetString(r.Msg.Meta(), exchange.MetaVersion)
	capabilities, _ := wire.Get(r.Msg.Meta(), exchange.MetaCapabilities)
	_, state := wire.Get(r.Msg.Params(), "requestState")
	switch {
	case version == "" || len(capabilities) == 0 || capabilities[0] != '{':
		return exchange.Fail(r, wire.CodeInvalidParams, "rootbound: _meta must have "+exchange.MetaVersion+" and "+exchange.MetaCapabilities, nil)
	case version != modernRevision:
		data := wire.SetMember([]byte(`{"supported":["`+modernRevision+`"]}`), wire.Quote(version), "requested")
		return exchange.Fail(r, codeUnsupportedRevision, "rootbound: unsupported protocol version", data)
	case state:
		return exchange.Fail(r, wire.CodeInvalidParams, "rootbound: the request state is of no request here", []byte(`{"reason":"request state"}`))
	}
	return exchange.Outcome{}
}

// discover is what the server said of itself, in the words of the stateless era.
func (d *Down) discover() []byte {
	h := d.Handshake()
	capabilities, ok := wire.Get(h, "capabilities")
	if !ok {
		capabilities = []byte("{}")
	}
	result := wire.SetMember([]byte(`{"supportedVersions":["`+modernRevision+`"]}`), wire.DeleteMember(capabilities, "tasks"), "capabilities")
	if text, ok := wire.Get(h, "instructions"); ok {
		result = wire.SetMember(result, text, "instructions")
	}
	return d.result("server/discover", result)
}

// result says of a result what a stateless server says of its own: who it is, and that it is not to be kept.
func (d *Down) result(method string, result []byte) []byte {
	result = wire.SetMember(withoutReserved(result), []byte(`"complete"`), "resultType")
	if info, ok := wire.Get(d.Handshake(), "serverInfo"); ok {
		result = wire.SetMember(result, info, "_meta", exchange.MetaServer)
	}
	if cached[method] {
		result = wire.SetMember(wire.SetMember(result, []byte("0"), "ttlMs"), []byte(`"private"`), "cacheScope")
	}
	return result
}

// Outcome is an outcome of the server in the words of the stateless era.
func (d *Down) Outcome(r *exchange.Request, o exchange.Outcome) exchange.Outcome {
	switch {
	case o.Msg == nil:
		return o
	case o.Msg.Error() != nil:
		return exchange.Outcome{Msg: errorDown(o.Msg)}
	}
	return exchange.Outcome{Msg: o.Msg.WithEditedResult(d.result(r.Msg.Method(), o.Msg.Result()))}
}

// call hands a request on.
func (d *Down) call(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	d.enter(r)
	end := func(o exchange.Outcome) {
		d.leave(r)
		reply(o)
	}
	d.tell(r)
	d.wait(ctx, end, func() {
		d.logLevel(r)
		c := *r
		c.Era, c.Caller = exchange.Legacy, hub{d, r}
		if p := r.Msg.Params(); p != nil {
			if p = withoutReserved(p); r.Msg.InputResponses() != nil {
				p = wire.DeleteMember(p, "inputResponses")
			}
			c.Msg = r.Msg.WithEdited(p)
		}
		d.try(ctx, r, &c, end, 1)
	})
}

// try sends a request, and once more when the server first wants its client's person to visit URLs: that is a question here
// and an error there.
func (d *Down) try(ctx context.Context, r, c *exchange.Request, reply func(exchange.Outcome), round int) {
	d.next.Handle(ctx, c, func(o exchange.Outcome) {
		visits := visits(r, o)
		if len(visits) == 0 || round == maxRounds {
			reply(d.Outcome(r, o))
			return
		}
		r.Caller.Ask(ctx, visits, func(answered []exchange.Answer) {
			for _, a := range answered {
				if ctx.Err() != nil {
					reply(exchange.Cancelled)
					return
				}
				if wire.GetString(a.Result, "action") != "accept" {
					reply(d.Outcome(r, o))
					return
				}
			}
			again := c.With(c.Msg.WithID(exchange.NewID()))
			withdrawn := context.AfterFunc(ctx, func() {
				d.own(r.Session, "notifications/cancelled", wire.SetMember(nil, again.Msg.ID(), "requestId"), nothing)
			})
			d.try(ctx, r, again, func(o exchange.Outcome) {
				withdrawn()
				reply(o)
			}, round+1)
		})
	})
}

// visits are the questions in an error that wants URLs to be visited, if the client can be asked them.
func visits(r *exchange.Request, o exchange.Outcome) (qs []exchange.Question) {
	if o.Msg == nil || code(o.Msg.Error()) != codeURLElicitation || !r.Caller.CanAsk("elicitation/create") {
		return nil
	}
	caps, _ := wire.Get(r.Msg.Meta(), exchange.MetaCapabilities)
	list, _ := wire.Get(o.Msg.Error(), "data", "elicitations")
	for item := range wire.Items(list) {
		q := questionDown(exchange.Question{Method: "elicitation/create", Params: item})
		if !answers(caps, q.Method, q.Params) || len(qs) == exchange.MaxQuestions {
			return nil
		}
		qs = append(qs, q)
	}
	return qs
}

// enter takes a request in that can carry questions of the server, and lets it carry those that wait for one.
func (d *Down) enter(r *exchange.Request) {
	d.mu.Lock()
	d.open = append(d.open, r)
	waiting := d.parked
	d.parked = nil
	d.mu.Unlock()
	if len(waiting) > 0 {
		d.settle(false)
	}
	for _, p := range waiting {
		p.stop()
		hub{d: d}.Ask(p.ctx, []exchange.Question{p.question}, p.answer)
	}
}

// has reports whether the request that a cancellation names is open.
func (d *Down) has(cancelled *exchange.Request) bool {
	id, _ := wire.Get(cancelled.Msg.Params(), "requestId")
	key := wire.IDKey(id)
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.open, func(r *exchange.Request) bool { return r.Msg.Key() == key })
}

func (d *Down) leave(r *exchange.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = slices.DeleteFunc(d.open, func(o *exchange.Request) bool { return o == r })
}

// tell tells the server that other roots hold for r than it was told of. One that fetches the list then has a moment for it:
// it would judge the request by the old one.
func (d *Down) tell(r *exchange.Request) {
	d.mu.Lock()
	same := d.roots != nil && r.Roots.Equal(d.roots.Roots)
	d.roots = r
	fetches := d.fetched && !d.lazy
	d.mu.Unlock()
	if same {
		return
	}
	if fetches {
		d.settle(true)
	}
	d.own(r.Session, "notifications/roots/list_changed", nil, nothing)
}

// settle has requests wait until the server has settled, but not for long, and not for what they waited for before.
func (d *Down) settle(told bool) *settling {
	w := &settling{over: make(chan struct{}), told: told}
	d.mu.Lock()
	old := d.settling
	d.settling = w
	d.mu.Unlock()
	if old != nil {
		close(old.over) // those who wait for it look again
	}
	time.AfterFunc(settleLimit, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.settling == w {
			d.lazy = d.lazy || w.told && w.asking == 0 // it asks when a call needs the list, or never
			d.end(w)
		}
	})
	return w
}

// settled notes that the server has made something of so many of its answers, and ends the wait when that was all.
func (d *Down) settled(w *settling, answers int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w.asking -= answers
	if w.asking == 0 && d.settling == w {
		d.end(w)
	}
}

// end ends the wait. The caller holds mu.
func (d *Down) end(w *settling) {
	d.settling = nil
	close(w.over)
}

// wait calls do when the server knows of the last change of roots, or had its time.
func (d *Down) wait(ctx context.Context, reply func(exchange.Outcome), do func()) {
	d.mu.Lock()
	w := d.settling
	d.mu.Unlock()
	if w == nil {
		do()
		return
	}
	go func() {
		select {
		case <-w.over:
			d.wait(ctx, reply, do)
		case <-ctx.Done():
			reply(exchange.Cancelled)
		}
	}()
}

// levels are the levels of log messages, the most talkative first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// logLevel sees to it that the server sends the log messages that r asks for.
func (d *Down) logLevel(r *exchange.Request) {
	wanted := slices.Index(levels, wire.GetString(r.Msg.Meta(), exchange.MetaLogLevel))
	if wanted < 0 {
		return
	}
	d.mu.Lock()
	_, can := wire.Get(d.handshake, "capabilities", "logging")
	set := can && (d.level < 0 || wanted < d.level)
	if set {
		d.level = wanted
	}
	d.mu.Unlock()
	if set {
		d.own(r.Session, "logging/setLevel", wire.SetMember(nil, wire.Quote(levels[wanted]), "level"), nothing)
	}
}

var tooManyFollowed = fmt.Sprintf("rootbound: more than %d resources cannot be followed at once", maxFollowed)

// listen is a listen request of a client.
type listen struct {
	r     *exchange.Request
	kinds map[string]bool // notifications that it is told
	uris  map[string]bool // resources that it follows

	acknowledged bool
	early        []*wire.Message // came before it was acknowledged
	size         int             // of them
}

func (d *Down) listen(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	wanted, _ := wire.Get(r.Msg.Params(), "notifications")
	if len(wanted) == 0 || wanted[0] != '{' {
		reply(exchange.Fail(r, wire.CodeInvalidParams, `rootbound: `+exchange.Listen+` needs an object "notifications"`, nil))
		return
	}
	l := &listen{r: r, kinds: map[string]bool{}, uris: map[string]bool{}}
	honoured := []byte("{}")
	h := d.Handshake()
	for _, kind := range []string{"tools", "prompts", "resources"} {
		asked, _ := wire.Get(wanted, kind+"ListChanged")
		if has, _ := wire.Get(h, "capabilities", kind, "listChanged"); string(asked) == "true" && string(has) == "true" {
			l.kinds["notifications/"+kind+"/list_changed"] = true
			honoured = wire.SetMember(honoured, asked, kind+"ListChanged")
		}
	}
	var uris []string
	list, _ := wire.Get(wanted, "resourceSubscriptions")
	if has, _ := wire.Get(h, "capabilities", "resources", "subscribe"); string(has) == "true" {
		listed := map[string]bool{}
		for item := range wire.Items(list) {
			if uri, err := wire.Unquote(item); err == nil && !listed[uri] {
				listed[uri] = true
				uris = append(uris, uri)
			}
		}
	}
	if len(uris) > maxFollowed {
		reply(exchange.Fail(r, wire.CodeInvalidParams, tooManyFollowed, nil))
		return
	}
	d.mu.Lock()
	full := len(d.listens) >= maxListens
	if !full {
		d.listens = append(d.listens, l)
	}
	d.mu.Unlock()
	if full {
		reply(exchange.Fail(r, wire.CodeInvalidParams, "rootbound: too many listen requests are open", nil))
		return
	}
	context.AfterFunc(ctx, func() {
		d.unlisten(l)
		reply(exchange.Cancelled)
	})
	d.follow(l, uris, func(followed []string) {
		if list != nil {
			items := []byte{'['}
			for i, uri := range followed {
				if i > 0 {
					items = append(items, ',')
				}
				items = wire.AppendQuote(items, uri)
			}
			honoured = wire.SetMember(honoured, append(items, ']'), "resourceSubscriptions")
		}
		l.acknowledge(d, honoured)
	})
	if ctx.Err() != nil { // what was followed meanwhile, too
		d.unlisten(l)
	}
}

// follow subscribes to resources at the server, and says which of them it took.
func (d *Down) follow(l *listen, uris []string, done func(followed []string)) {
	var mu sync.Mutex
	left, took := len(uris)+1, map[string]bool{}
	answered := func(uri string, ok bool) {
		mu.Lock()
		if ok {
			took[uri] = true
		}
		left--
		last := left == 0
		mu.Unlock()
		if last {
			done(slices.DeleteFunc(slices.Clone(uris), func(uri string) bool { return !took[uri] }))
		}
	}
	for _, uri := range uris {
		d.subscribe(l, uri, func(ok bool) { answered(uri, ok) })
	}
	answered("", false)
}

// subscription is a resource that the server tells of.
type subscription struct {
	n       int // for how many listen requests
	waiting []subscriber
}

// subscriber is a listen request that is told whether the server took a subscription.
type subscriber struct {
	l    *listen
	done func(ok bool)
}

// subscribe follows a resource for a listen request, and says whether the server tells of it.
func (d *Down) subscribe(l *listen, uri string, done func(ok bool)) {
	d.subscribing.Lock()
	d.mu.Lock()
	s := d.subscribed[uri]
	first := s == nil
	if first {
		s = &subscription{}
		d.subscribed[uri] = s
	}
	s.n++
	l.uris[uri] = true
	waits := first || len(s.waiting) > 0
	if waits {
		s.waiting = append(s.waiting, subscriber{l, done})
	}
	d.mu.Unlock()
	if first {
		d.own(l.r.Session, "resources/subscribe", wire.SetMember(nil, wire.Quote(uri), "uri"), func(o exchange.Outcome) {
			d.taken(uri, s, o.Msg != nil && o.Msg.Error() == nil)
		})
	}
	d.subscribing.Unlock()
	if !waits {
		done(true)
	}
}

// taken says to all that wait for it whether the server took a subscription.
func (d *Down) taken(uri string, s *subscription, ok bool) {
	d.mu.Lock()
	waiting := s.waiting
	s.waiting = nil
	if !ok {
		for _, w := range waiting {
			delete(w.l.uris, uri)
		}
		if d.subscribed[uri] == s {
			delete(d.subscribed, uri)
		}
	}
	d.mu.Unlock()
	for _, w := range waiting {
		w.done(ok)
	}
}

// unfollow takes a resource from a listen request, and lets the server know when nobody follows it any more.
func (d *Down) unfollow(l *listen, uri string) {
	d.subscribing.Lock()
	defer d.subscribing.Unlock()
	d.mu.Lock()
	last := false
	if l.uris[uri] {
		delete(l.uris, uri)
		s := d.subscribed[uri]
		if s.n--; s.n == 0 {
			delete(d.subscribed, uri)
			last = true
		}
	}
	d.mu.Unlock()
	if last && l.r.Session.Context().Err() == nil {
		d.own(l.r.Session, "resources/unsubscribe", wire.SetMember(nil, wire.Quote(uri), "uri"), nothing)
	}
}

func (d *Down) unlisten(l *listen) {
	d.mu.Lock()
	d.listens = slices.DeleteFunc(d.listens, func(o *listen) bool { return o == l })
	var uris []string
	for uri := range l.uris {
		uris = append(uris, uri)
	}
	d.mu.Unlock()
	for _, uri := range uris {
		d.unfollow(l, uri)
	}
}

// acknowledge tells the client what it will be told, before the first of that.
func (l *listen) acknowledge(d *Down, honoured []byte) {
	l.tell(wire.NewNotification("notifications/subscriptions/acknowledged", wire.SetMember(nil, honoured, "notifications")))
	for {
		d.mu.Lock()
		early := l.early
		l.early, l.size, l.acknowledged = nil, 0, len(early) == 0
		d.mu.Unlock()
		if len(early) == 0 {
			return
		}
		for _, m := range early {
			l.tell(m)
		}
	}
}

// tell tells the client of l something, with the name of its subscription.
func (l *listen) tell(m *wire.Message) {
	l.r.Caller.Notify(m.WithParams(wire.SetMember(m.Params(), l.r.Msg.ID(), "_meta", exchange.MetaSubscriptionID)))
}

// hub is the server's caller: for a request, or for what belongs to none.
type hub struct {
	d  *Down
	of *exchange.Request // nil for none
}

// hears reports whether a client wants a log message on a request.
func hears(r *exchange.Request, m *wire.Message) bool {
	wanted := slices.Index(levels, wire.GetString(r.Msg.Meta(), exchange.MetaLogLevel))
	return wanted >= 0 && slices.Index(levels, wire.GetString(m.Params(), "level")) >= wanted
}

// Notify implements exchange.Caller.
func (h hub) Notify(m *wire.Message) {
	d := h.d
	switch {
	case h.of == nil:
	case m.Method() == "notifications/message" && !hears(h.of, m):
		return
	default:
		h.of.Caller.Notify(m)
		return
	}
	outer := d.shaken()
	d.mu.Lock()
	var to []*listen
	var logs exchange.Caller
	switch method := m.Method(); method {
	case "notifications/message":
		for _, r := range d.open {
			if !hears(r, m) {
				continue
			}
			if logs != nil && r.Session == nil { // it may be of another client
				logs = nil
				break
			}
			if logs == nil {
				logs = r.Caller
			}
		}
	default:
		uri := wire.GetString(m.Params(), "uri")
		for _, l := range d.listens {
			if !l.kinds[method] && !(method == "notifications/resources/updated" && l.follows(uri)) {
				continue
			}
			if l.acknowledged {
				to = append(to, l)
			} else if n := len(m.Bytes()); len(l.early) < maxEarly && l.size+n <= maxEarlyBytes {
				l.early = append(l.early, m)
				l.size += n
			}
		}
	}
	d.mu.Unlock()
	if outer != nil {
		outer.Notify(m)
	}
	if logs != nil {
		logs.Notify(m)
	}
	for _, l := range to {
		l.tell(m)
	}
}

// follows reports whether l follows a resource, or what it is in. The caller holds Down.mu.
func (l *listen) follows(uri string) bool {
	for u := range l.uris {
		if rest, ok := strings.CutPrefix(uri, strings.TrimSuffix(u, "/")); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// CanAsk implements exchange.Caller.
func (h hub) CanAsk(method string) bool {
	d := h.d
	if h.of != nil {
		return h.of.Caller.CanAsk(method)
	}
	outer := d.shaken()
	if method == "roots/list" || outer != nil && outer.CanAsk(method) {
		return true
	}
	return d.carrier(method) != nil
}

// carrier is the oldest open request whose client can be asked method, if possible one that carries no question: that one's work
// waits for the answer. Requests without a session may be of several clients; a question that could be for two of them is for neither.
// For roots nobody is asked who could see more than his own.
func (d *Down) carrier(method string) *exchange.Request {
	d.mu.Lock()
	open, asking := slices.Clone(d.open), maps.Clone(d.asking)
	d.mu.Unlock()
	var found *exchange.Request
	for _, r := range open {
		switch {
		case !r.Caller.CanAsk(method):
		case found != nil && method != "roots/list" && (r.Session == nil || found.Session == nil):
			return nil
		case asking[r] == 0 && (r.Session != nil || method == "roots/list"):
			return r
		case found == nil:
			found = r
		}
	}
	return found
}

// parked is a question for roots that no open request can carry: the next one may.
type parked struct {
	ctx      context.Context
	question exchange.Question
	answer   func([]exchange.Answer)
	stop     func() bool
}

// Ask implements exchange.Caller. A server's question comes alone.
func (h hub) Ask(ctx context.Context, qs []exchange.Question, answer func([]exchange.Answer)) {
	d, q, r := h.d, qs[0], h.of
	if r == nil {
		if outer := d.shaken(); outer != nil && outer.CanAsk(q.Method) {
			outer.Ask(ctx, qs, d.reading(q, d.session(), answer))
			return
		}
		r = d.carrier(q.Method)
	}
	if r == nil && q.Method == "roots/list" {
		p := &parked{ctx: ctx, question: q, answer: answer}
		d.mu.Lock()
		p.stop = context.AfterFunc(ctx, func() { d.withdraw(p) })
		d.parked = append(d.parked, p)
		d.mu.Unlock()
		if r = d.carrier(q.Method); r == nil || !d.unpark(p) { // one may have come just now, and not have seen it
			return
		}
		p.stop()
	}
	switch {
	case r == nil:
		answer(exchange.ErrorAnswers(1, wire.CodeMethodNotFound, "rootbound: no open request can carry this question, or more than one could"))
		return
	}
	if tooDeep(q.Params) {
		answer(exchange.ErrorAnswers(1, wire.CodeInvalidParams, "rootbound: the question is nested too deeply"))
		return
	}
	if caps, _ := wire.Get(r.Msg.Meta(), exchange.MetaCapabilities); q.Method != "roots/list" && !answers(caps, q.Method, q.Params) {
		answer(exchange.ErrorAnswers(1, wire.CodeInvalidParams, "rootbound: the client did not declare that it answers such a question"))
		return
	}
	d.carry(r, 1)
	r.Caller.Ask(ctx, []exchange.Question{questionDown(q)}, d.reading(q, r.Session, func(a []exchange.Answer) {
		d.carry(r, -1)
		if a[0].Result != nil {
			a[0].Result = wire.DeleteMember(a[0].Result, "resultType")
		}
		answer(a)
	}))
}

// carry notes that a request carries so many more questions.
func (d *Down) carry(r *exchange.Request, more int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asking[r] += more; d.asking[r] == 0 {
		delete(d.asking, r)
	}
}

// unpark takes a question out that waits for a request, and reports whether it still did.
func (d *Down) unpark(p *parked) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.parked)
	d.parked = slices.DeleteFunc(d.parked, func(o *parked) bool { return o == p })
	return n != len(d.parked)
}

// withdraw gives up a question that was withdrawn before a request could carry it.
func (d *Down) withdraw(p *parked) {
	if d.unpark(p) {
		p.answer(exchange.ErrorAnswers(1, wire.CodeInternal, "rootbound: the question was withdrawn"))
	}
}

// reading is answer for a question q. After one for roots it is seen to that requests wait until the server has read them, if
// they wait already: with a ping behind the list it is known when that is.
func (d *Down) reading(q exchange.Question, s *exchange.Session, answer func([]exchange.Answer)) func([]exchange.Answer) {
	if q.Method != "roots/list" {
		return answer
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fetched, d.lazy = true, false
	w := d.settling
	if w == nil {
		return answer
	}
	w.asking++
	return func(a []exchange.Answer) {
		answer(a)
		go d.behind(s, settleMargin, func() { d.settled(w, 1) })
	}
}

// session is that of the last request.
func (d *Down) session() *exchange.Session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.roots.Session
}

// questionDown is a question of a handshake server in the words of the stateless era, where a URL has no id. It is called as
// the server called it.
func questionDown(q exchange.Question) exchange.Question {
	if q.Msg != nil {
		q.Key = string(q.Msg.ID())
		if q.Key[0] == '"' {
			q.Key, _ = wire.Unquote(q.Msg.ID())
		}
	}
	q = question(q)
	if q.Method == "elicitation/create" && q.Params != nil {
		q.Params = wire.DeleteMember(q.Params, "elicitationId")
	}
	return q
}
