package streamable

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// Authorizer has the token that a server wants. It is safe for concurrent use.
type Authorizer interface {
	// Token returns the token to send, "" for none.
	Token(ctx context.Context) (string, error)
	// Refused takes it that the server refused a token, or that there was none, with a status and what it says of it in
	// WWW-Authenticate. Without an error the request is sent once more, with what Token returns then. An error says what is to
	// be done; nil header values are none.
	Refused(ctx context.Context, status int, challenge []string, token string) error
}

// DialOptions of the way to a server.
type DialOptions struct {
	// URL is the server's endpoint.
	URL *url.URL
	// Header goes with every request to the server. Its values may be secrets: they are never told.
	Header http.Header
	// Auth, if set, has a token where Header has no Authorization.
	Auth Authorizer
	// Forwarded, if set, returns the Authorization with which a client sent the request that goes on under an id in the form of
	// wire.IDKey, "" for none. It takes the place of any other.
	Forwarded func(key string) string
	// Agent is how we call ourselves.
	Agent string
	// Limit is the longest message in bytes; 0 is wire.DefaultLimit.
	Limit int
	// Again is called when the server has forgotten the session: the handshake is to be said again.
	Again func()
	// Report is told of oddities that nobody else hears of; nil drops them. Note is told of what is only for the log.
	Report, Note func(format string, args ...any)
	// Backoff is how long to wait before a broken stream is made again, when the server does not say; it doubles with each
	// failure. 0 is one second.
	Backoff time.Duration
}

const (
	// maxPosts is how many requests are with the server at once, but for those that listen. More wait.
	maxPosts = 256
	// noticeLimit is how long the server may take to accept what has no answer.
	noticeLimit = 10 * time.Second
	// goodbyeLimit is how long it may take to hear that a session ends.
	goodbyeLimit = 2 * time.Second
	// streamLimit is how long a handshake waits for the stream of what belongs to no request.
	streamLimit = 500 * time.Millisecond
	// orderLimit is how long what comes behind a request waits that changes what is said of it.
	orderLimit = 2 * time.Second
	// maxBrief is how many sessions in a row may be forgotten within briefTime before no other is begun until that is over: there
	// are servers that forget each at once, and a new one is told things that they refuse like any other.
	maxBrief  = 5
	briefTime = 10 * time.Second
	// writtenLimit is how long a cancellation waits for its request to be sent.
	writtenLimit = time.Second
)

// Link is the way to one server over HTTP, in whatever era a message is written: a request of the stateless era is a POST of
// its own, a handshake makes a session, or leads to the two ways of revision 2024-11-05. Send is called from one goroutine at
// a time; everything else is safe from any.
type Link struct {
	o      DialOptions
	client *http.Client
	ctx    context.Context // of everything; ends with Close
	cancel context.CancelFunc
	slots  chan struct{}
	tools  catalog
	all    exchange.Tally // goroutines, but for one that is in take, where it may wait for a client

	idle  chan func()   // to a goroutine that has nothing to do
	turn  chan struct{} // full while take runs
	ready chan struct{} // closed when take is known
	take  func(m *wire.Message, refused *wire.Refusal, of string)

	mu    sync.Mutex
	posts map[string]*post // requests that are not answered, by id
	session
	// lost is set while a handshake is said again for a session that the server has forgotten, parked what waits for that.
	lost   bool
	parked []*post
	brief  int // how many sessions in a row were forgotten soon
}

// session is what a handshake agreed on.
type session struct {
	id       string        // "" for a server that gives none
	revision string        // "" before the handshake
	greeted  bool          // the server had notifications/initialized
	since    time.Time     // when it had that
	old      bool          // it is the way of revision 2024-11-05
	endpoint *url.URL      // where that is posted to; nil while there is no stream
	over     chan struct{} // closed when it is lost; nil before it began
}

// delivery is what the server said.
type delivery struct {
	m       *wire.Message
	refused *wire.Refusal
	of      string
}

// Dial returns the way to a server. It does not wait for the server.
func Dial(o DialOptions) *Link {
	if o.Limit <= 0 {
		o.Limit = wire.DefaultLimit
	}
	if o.Backoff <= 0 {
		o.Backoff = time.Second
	}
	drop := func(string, ...any) {}
	if o.Report == nil {
		o.Report = drop
	}
	if o.Note == nil {
		o.Note = drop
	}
	if o.Again == nil {
		o.Again = func() {}
	}
	l := &Link{o: o, client: newHTTPClient(), idle: make(chan func()), turn: make(chan struct{}, 1), ready: make(chan struct{}), slots: make(chan struct{}, maxPosts), posts: map[string]*post{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Receive hands on what the server says until Close.
func (l *Link) Receive(take func(m *wire.Message, refused *wire.Refusal, of string)) {
	l.take = take
	close(l.ready)
	<-l.ctx.Done()
	l.turn <- struct{}{} // behind what is being handed on
}

// Sessionless reports whether the handshake that was made last began no session.
func (l *Link) Sessionless() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.revision != "" && l.id == "" && !l.old
}

// Close tells the server that the session ends, and ends everything that is open.
func (l *Link) Close() error {
	l.mu.Lock()
	id, revision := l.id, l.revision
	l.mu.Unlock()
	if id != "" {
		ctx, cancel := context.WithTimeout(l.ctx, goodbyeLimit)
		if resp, err := l.do(ctx, request{method: http.MethodDelete, session: id, revision: revision}); err == nil {
			resp.Body.Close()
		}
		cancel()
	}
	l.mu.Lock()
	l.cancel()
	open := slices.Collect(maps.Values(l.posts))
	l.mu.Unlock()
	for _, p := range open {
		p.cancel()
	}
	<-l.all.Empty()
	l.client.CloseIdleConnections()
	return nil
}

var errClosed = errors.New("the connection to the server was closed")

// Send sends one message. It waits until the server has taken what has no answer, so that what comes behind does not overtake
// it, and what it is asked that changes what it says; everything else that it is asked goes on its own way.
func (l *Link) Send(m *wire.Message) error {
	if l.ctx.Err() != nil {
		return errClosed
	}
	switch {
	case m.Kind() == wire.Request:
		p := l.ask(m)
		if ordered[m.Method()] {
			select {
			case <-p.done:
			case <-time.After(orderLimit):
			}
		}
	case m.Method() == "notifications/cancelled":
		l.withdraw(m)
	default:
		l.tell(m)
	}
	return nil
}

// spawn runs f beside, unless the link is closed.
func (l *Link) spawn(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return
	}
	l.all.Add()
	select {
	case l.idle <- f:
	default:
		go l.work(f)
	}
}

// work runs f, and for a while what is spawned next: a goroutine that has run has the stack that the next one would have to grow.
func (l *Link) work(f func()) {
	late := time.NewTimer(idleTime)
	defer late.Stop()
	for {
		f()
		l.all.Done()
		late.Reset(idleTime)
		select {
		case f = <-l.idle:
		case <-late.C:
			return
		case <-l.ctx.Done():
			return
		}
	}
}

// idleTime is how long a goroutine waits for more to do.
const idleTime = 5 * time.Second

// ordered are requests that change what the server says of those behind them.
var ordered = map[string]bool{"logging/setLevel": true, "resources/subscribe": true, "resources/unsubscribe": true}

// deliver hands on what the server says, on the goroutine that read it: another one would have to be woken up for it.
func (l *Link) deliver(d delivery) {
	select {
	case <-l.ready:
	case <-l.ctx.Done():
		return
	}
	select {
	case l.turn <- struct{}{}:
	case <-l.ctx.Done():
		return
	}
	l.all.Done()
	defer func() {
		l.all.Add()
		<-l.turn
	}()
	l.take(d.m, d.refused, d.of)
}

// stateless reports whether m is of the era that has no session.
func stateless(m *wire.Message) bool {
	_, ok := wire.Get(m.Meta(), exchange.MetaVersion)
	return ok
}

// withdraw takes a cancellation of the client: over HTTP the end of a stream is one, where there is no session.
func (l *Link) withdraw(m *wire.Message) {
	id, _ := wire.Get(m.Params(), "requestId")
	l.mu.Lock()
	p := l.posts[wire.IDKey(id)]
	l.mu.Unlock()
	switch {
	case p == nil:
		return // answered, or never sent
	case stateless(p.m):
		p.cancel()
		return
	}
	select {
	case <-p.written:
		l.tell(m)
	case <-p.done:
	case <-time.After(writtenLimit): // it waits for a slot, or for the network
	}
	p.cancel()
}

// tell sends what has no answer.
func (l *Link) tell(m *wire.Message) {
	l.mu.Lock()
	s, lost := l.session, l.lost
	l.mu.Unlock()
	initialized := m.Method() == "notifications/initialized" && !s.greeted
	if lost && !initialized || s.old && s.endpoint == nil {
		l.o.Note("%s was for a session that the server has forgotten; it was dropped", what(m))
		if initialized {
			l.greeted() // what waits for that finds it out, and has another one begun
		}
		return
	}
	if initialized {
		s = l.listenFirst()
	}
	ctx, cancel := context.WithTimeout(l.ctx, noticeLimit)
	defer cancel()
	resp, err := l.do(ctx, l.request(m, s))
	if err == nil {
		err = l.accepted(resp, s)
		resp.Body.Close()
	}
	switch {
	case l.ctx.Err() != nil:
		return
	case errors.Is(err, errForgotten) && initialized:
		l.mu.Lock()
		close(l.over)
		l.session = session{old: s.old}
		l.mu.Unlock()
		l.spawn(func() { l.unmet("it has forgotten that, too") })
		return
	case errors.Is(err, errForgotten):
		l.forgotten(s, nil)
		return
	case err != nil:
		var r *refusal
		text := err.Error()
		if !errors.As(err, &r) {
			_, text = explain(err, l.o.URL)
		}
		l.o.Report("the server did not take %s: %s", what(m), text)
	}
	if initialized {
		l.greeted()
	}
}

// listenFirst opens the stream for what belongs to no request, and waits a little for it: a server may have something to say as
// soon as it knows that its client is ready.
func (l *Link) listenFirst() session {
	l.mu.Lock()
	if l.over == nil {
		l.over = make(chan struct{})
	}
	s := l.session
	l.mu.Unlock()
	if s.old {
		return s
	}
	open := make(chan struct{})
	l.spawn(func() { l.hear(s, sync.OnceFunc(func() { close(open) })) })
	select {
	case <-open:
	case <-time.After(streamLimit):
	case <-l.ctx.Done():
	}
	return s
}

func what(m *wire.Message) string {
	if m.Kind() == wire.Response {
		return "the answer to its question"
	}
	return m.Method()
}

// errForgotten is what a server says that has forgotten the session.
var errForgotten = errors.New("the server has forgotten the session")

// greeted lets go what waited for the handshake.
func (l *Link) greeted() {
	l.mu.Lock()
	l.session.greeted, l.session.since = true, time.Now()
	if l.over == nil { // it ended before it began
		l.over = make(chan struct{})
	}
	parked := l.parked
	l.lost, l.parked = false, nil
	l.mu.Unlock()
	for _, p := range parked {
		l.spawn(func() { l.run(p) })
	}
}

// forgotten takes it that the server has forgotten a session. P, if set, is a request that it refused for that: it waits for
// the handshake to be said again, which it has not been before. It reports whether p does.
func (l *Link) forgotten(s session, p *post) bool {
	l.mu.Lock()
	first := l.over == s.over && !l.lost && l.session.greeted
	if first && time.Since(l.session.since) > briefTime {
		l.brief = 0
	}
	first = first && l.brief < maxBrief
	if first {
		l.brief++
		l.lost = true
		close(l.over)
		l.session = session{old: s.old}
	}
	waits := l.lost && p != nil && !p.again
	if waits {
		p.again = true
		l.parked = append(l.parked, p)
	}
	// It may have been made anew since p was sent.
	now := !first && !l.lost && l.session.greeted && l.over != s.over && p != nil && !p.again
	if now {
		p.again = true
	}
	l.mu.Unlock()
	if first {
		l.o.Report("the server has forgotten its session; a new one is begun, and what the server kept in the old one is gone")
		go l.o.Again()
	}
	if now {
		l.spawn(func() { l.run(p) })
	}
	return waits || now
}

// unmet takes it that the server did not take the handshake that was said again: what waits for it fails.
func (l *Link) unmet(why string) {
	l.mu.Lock()
	parked := l.parked
	l.lost, l.parked = false, nil
	l.mu.Unlock()
	for _, p := range parked {
		l.fail(p, "session lost", "the server has forgotten the session, and begins no other: "+why)
		p.cancel()
	}
}

// pause waits before a broken stream is made again, longer with each failure, and reports whether to go on.
func (l *Link) pause(ctx context.Context, retry time.Duration, failures int) bool {
	if retry <= 0 {
		retry = l.o.Backoff
	}
	retry = max(retry, l.o.Backoff/10) << min(failures, 5)
	select {
	case <-time.After(min(retry, maxPause)):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// maxPause is the longest wait before a broken stream is made again.
const maxPause = 5 * time.Minute
