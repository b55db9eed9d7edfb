package streamable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// post is a request that is with the server.
type post struct {
	m   *wire.Message
	key string
	as  *wire.Message // m as it was sent last: under another id where it was sent again
	ctx context.Context
	// cancel ends it, without an answer where there was none: nobody waits for one.
	cancel  func()
	written chan struct{} // closed when it was sent
	done    chan struct{} // closed when it was answered, or nobody waits any more
	once    sync.Once
	sent    sync.Once
	over    chan struct{} // of the session of the old way on whose stream its answer comes; nil for none

	again     bool // it was sent to a session that was forgotten, which may happen once
	mirrored  bool // the list of tools was fetched for its headers
	subscribe bool // its subscription was acknowledged once
}

// end ends it, and reports whether it had not ended before.
func (l *Link) end(p *post) (first bool) {
	p.once.Do(func() {
		first = true
		l.mu.Lock()
		if l.posts[p.key] == p {
			delete(l.posts, p.key)
		}
		l.mu.Unlock()
		close(p.done)
	})
	return first
}

// ask sends a request on its own way.
func (l *Link) ask(m *wire.Message) *post {
	p := &post{m: m, as: m, key: m.Key(), written: make(chan struct{}), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(l.ctx)
	p.ctx, p.cancel = ctx, func() {
		cancel()
		l.end(p)
	}
	l.mu.Lock()
	l.posts[p.key] = p
	closed := l.ctx.Err() != nil
	waits := l.park(p)
	l.mu.Unlock()
	switch {
	case closed:
		p.cancel()
	case !waits:
		l.spawn(func() { l.run(p) })
	}
	return p
}

// park has p wait while a handshake is said again, and reports whether it does. The caller holds mu.
func (l *Link) park(p *post) bool {
	waits := l.lost && p.m.Method() != "initialize" && !stateless(p.m)
	if waits {
		l.parked = append(l.parked, p)
	}
	return waits
}

// run sends a request and takes its answer.
func (l *Link) run(p *post) {
	if p.m.Method() != exchange.Listen { // which stays, and each client has one
		select {
		case l.slots <- struct{}{}:
			defer func() { <-l.slots }()
		case <-p.ctx.Done():
			return
		}
	}
	defer func() {
		select {
		case <-p.done:
			p.cancel() // lets go of what waits for its end
		default: // it waits for a session
		}
	}()
	l.mu.Lock()
	s, waits := l.session, l.park(p)
	if s.old && !stateless(p.m) {
		p.over = s.over
	}
	l.mu.Unlock()
	switch {
	case waits: // it was forgotten just now
		return
	case stateless(p.m):
		s = session{}
	case p.m.Method() == "initialize" && s.old:
		var err error
		if s, err = l.openOld(p); err != nil {
			l.failed(p, s, err)
			return
		}
	case p.m.Method() == "initialize":
		s = session{}
	case s.old && s.endpoint == nil:
		l.failed(p, s, errForgotten)
		return
	}
	ctx := httptrace.WithClientTrace(p.ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { p.sent.Do(func() { close(p.written) }) },
	})
	resp, err := l.do(ctx, l.request(p.m, s))
	if err == nil && (resp.StatusCode < 200 || resp.StatusCode >= 300) {
		err = refused(resp, s)
		resp.Body.Close()
	}
	if err != nil {
		l.failed(p, s, err)
		return
	}
	if p.m.Method() == "initialize" && !s.old {
		s.id = resp.Header.Get(headerSession)
		l.mu.Lock()
		l.session.id = s.id
		l.mu.Unlock()
	}
	l.answered(p, s, resp)
}

// part is what the response to a request, or the stream that took its place, has said so far.
type part struct {
	last  string        // the id of its last event
	retry time.Duration // the time that it named
	empty int           // how many streams in a row had no event
}

// answered takes the response to a request, and goes on where its stream breaks.
func (l *Link) answered(p *post, s session, resp *http.Response) {
	var at part
	for resp != nil {
		why := l.read(p, s, resp, &at)
		resp.Body.Close()
		if why == nil {
			return
		}
		resp = l.broken(p, s, &at, why)
	}
}

// read takes one response, and says why it ended before the answer; nil where nothing more is to be done.
func (l *Link) read(p *post, s session, resp *http.Response, at *part) error {
	switch t := mediaType(resp); {
	case s.old: // the answer comes on the stream
		drain(resp)
	case t == "text/event-stream":
		return l.stream(p, resp, at)
	case resp.StatusCode == http.StatusOK && (t == "application/json" || t == ""):
		*at = part{}
		return l.body(p, resp)
	case t == "text/html":
		l.fail(p, "not found", "there is a web page at "+place(l.o.URL)+" and no MCP server: is its path right?")
	default:
		l.fail(p, "no answer", fmt.Sprintf("the server took the request and gave no answer (%d, %.60q)", resp.StatusCode, t))
	}
	return nil
}

// body takes an answer that comes alone.
func (l *Link) body(p *post, resp *http.Response) error {
	b, err := readBody(resp, l.o.Limit+1)
	switch {
	case err != nil:
		return err
	case len(b) > l.o.Limit:
		l.fail(p, "too long", fmt.Sprintf("the server's answer is longer than %d bytes", l.o.Limit))
	case !l.said(p, bytes.TrimSpace(b)):
		l.fail(p, "no answer", "what the server answered is not the answer to the request")
	}
	return nil
}

// readBody reads a body up to a limit, in one piece of memory where its length is told.
func readBody(resp *http.Response, limit int) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, bytes.MinRead+int(min(max(0, resp.ContentLength), int64(limit), maxToldBody))))
	_, err := b.ReadFrom(io.LimitReader(resp.Body, int64(limit)))
	return b.Bytes(), err
}

// maxToldBody is the length of a body that is believed before it comes.
const maxToldBody = 1 << 20

// stream takes what comes on the stream of a request, up to its answer.
func (l *Link) stream(p *post, resp *http.Response, at *part) error {
	events := newEventReader(resp.Body, l.o.Limit, nil)
	for at.empty++; ; at.empty = 0 {
		e, err := events.next()
		if err != nil {
			return err
		}
		if e.hasID {
			at.last = e.id
		}
		if e.retry > 0 {
			at.retry = e.retry
		}
		if len(e.data) > 0 && (e.name == "" || e.name == "message") && l.said(p, e.data) {
			select {
			case <-p.done:
				late := time.AfterFunc(restLimit, p.cancel)
				drain(resp) // up to its end its connection cannot be used again
				late.Stop()
			default: // it is sent once more
			}
			return nil
		}
	}
}

// restLimit is how long the end of a stream behind its answer is waited for.
const restLimit = time.Second

// said hands on what the server said on the stream of p, and reports whether that was its answer.
func (l *Link) said(p *post, data []byte) (answered bool) {
	m, err := wire.Scan(data, wire.Lenient)
	var r *wire.Refusal
	if errors.As(err, &r) {
		answered = r.Kind != wire.Request && r.Kind != wire.Notification && r.ID != nil && wire.IDKey(r.ID) == p.as.Key()
		if answered && !l.end(p) {
			return true
		}
		if answered {
			r.ID = p.m.ID()
		}
		l.deliver(delivery{refused: r, of: p.key})
		return answered
	}
	oneLine(data)
	one := &m
	answered = one.Kind() == wire.Response && (one.Key() == p.as.Key() || one.Error() != nil && (one.ID() == nil || string(one.ID()) == "null"))
	if one.Kind() == wire.Batch {
		elements, _, _ := one.Elements(wire.Lenient)
		for i := range elements {
			answered = answered || elements[i].Kind() == wire.Response && elements[i].Key() == p.key
		}
	}
	if !answered {
		if p.subscribe && one.Method() == "notifications/subscriptions/acknowledged" {
			return false // of the subscription that took the place of the first, which nobody knows of
		}
		p.subscribe = p.subscribe || one.Method() == "notifications/subscriptions/acknowledged"
		if id, ok := wire.Get(one.Meta(), exchange.MetaSubscriptionID); ok && p.as != p.m && wire.IDKey(id) == p.as.Key() {
			one = one.WithParams(wire.SetMember(one.Params(), p.m.ID(), "_meta", exchange.MetaSubscriptionID))
		}
		l.deliver(delivery{m: one, of: p.key})
		return false
	}
	if one.Error() != nil && l.mirrors(p, one) {
		return true
	}
	if !l.end(p) {
		return true
	}
	switch {
	case one.Kind() != wire.Response:
	case one.ID() == nil || string(one.ID()) == "null": // on this stream it says enough
		one = wire.NewErrorObject(p.m.ID(), one.Error())
	case p.as != p.m:
		one = one.WithID(p.m.ID())
	}
	l.learn(p, &one)
	l.deliver(delivery{m: one, of: p.key})
	return true
}

// learn notes what an answer says for what comes after it.
func (l *Link) learn(p *post, m **wire.Message) {
	result := (*m).Result()
	if result == nil {
		if p.m.Method() == "initialize" {
			l.unmet(fmt.Sprintf("%.200q", wire.GetString((*m).Error(), "message")))
		}
		return
	}
	switch p.m.Method() {
	case "initialize":
		l.mu.Lock()
		l.session.revision = wire.GetString(result, "protocolVersion")
		l.mu.Unlock()
	case "tools/list":
		if stateless(p.m) {
			*m = l.tools.learn(p.m, *m, l.o.Report)
		}
	}
}

// repeatable are requests that change nothing, so that one is made again when its stream breaks before the answer.
var repeatable = map[string]bool{
	"server/discover": true, "tools/list": true, "prompts/list": true, "resources/list": true, "resources/templates/list": true,
	exchange.Listen: true,
}

// broken goes on with a request whose stream has ended before the answer: where the server left off, if it said how; with a
// new stream where the request changes nothing. It is never made a second time otherwise: it may have been done. It returns the response to
// go on with, nil where there is none.
func (l *Link) broken(p *post, s session, at *part, why error) *http.Response {
	if p.ctx.Err() != nil {
		return nil
	}
	if errors.Is(why, errEventTooLong) {
		l.fail(p, "too long", fmt.Sprintf("a message of the server is longer than %d bytes", l.o.Limit))
		return nil
	}
	for failures := 0; failures < maxFailures; failures++ {
		var r request
		switch {
		case stateless(p.m) && repeatable[p.m.Method()]:
			p.as = p.m.WithID(exchange.NewID())
			r = l.request(p.as, s)
			r.key = p.key
		case !stateless(p.m) && at.last != "" && p.m.Method() != "initialize":
			r = request{method: http.MethodGet, session: s.id, revision: s.revision, lastEvent: at.last, key: p.key}
		default:
			l.fail(p, "broken", fmt.Sprintf("the connection to the server broke before the answer, so it is not known whether the server did what it was asked: %v", ended(why)))
			return nil
		}
		if !l.pause(p.ctx, at.retry, failures+max(0, at.empty-1)) {
			return nil
		}
		resp, err := l.do(p.ctx, r)
		if err == nil && resp.StatusCode == http.StatusOK {
			at.retry = max(at.retry, l.o.Backoff/10)
			return resp
		}
		if err != nil {
			why = err
			continue
		}
		why = refused(resp, s)
		resp.Body.Close()
		if errors.Is(why, errForgotten) {
			l.forgotten(s, nil)
			break
		}
		if resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests {
			break
		}
	}
	if p.ctx.Err() != nil {
		return nil
	}
	_, text := why.Error(), ""
	if _, text = explain(why, l.o.URL); errors.As(why, new(*refusal)) || errors.Is(why, errForgotten) {
		text = why.Error()
	}
	l.fail(p, "broken", "the connection to the server broke before the answer, so it is not known whether the server did what it was asked, and it could not be taken up again: "+text)
	return nil
}

// maxFailures is how often in a row a broken stream is made again.
const maxFailures = 6

func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("its stream ended")
	}
	return err
}

// failed takes it that the server did not take a request.
func (l *Link) failed(p *post, s session, err error) {
	if p.ctx.Err() != nil {
		return
	}
	var r *refusal
	switch {
	case errors.Is(err, errForgotten):
		if !l.forgotten(s, p) {
			l.fail(p, "session lost", "the server has forgotten the session")
		}
	case !errors.As(err, &r):
		reason, text := explain(err, l.o.URL)
		l.fail(p, reason, text)
	case r.said != nil:
		m := r.said
		if !l.mirrors(p, m) && l.end(p) {
			m = wire.NewErrorObject(p.m.ID(), m.Error())
			l.learn(p, &m)
			l.deliver(delivery{m: m, of: p.key})
		}
	case p.m.Method() == "initialize" && !s.old && (r.status == http.StatusBadRequest || r.status == http.StatusNotFound || r.status == http.StatusMethodNotAllowed):
		l.tryOld(p, r)
	default:
		l.fail(p, r.reason, r.text)
	}
}

// fail answers a request with an error of ours.
func (l *Link) fail(p *post, reason, text string) {
	if p.ctx.Err() != nil || !l.end(p) {
		return
	}
	if p.m.Method() == "initialize" {
		l.unmet(text)
	}
	data := append(wire.AppendQuote([]byte(`{"reason":`), reason), '}')
	l.deliver(delivery{m: wire.NewError(p.m.ID(), wire.CodeInternal, "rootbound: "+text, data), of: p.key})
}
