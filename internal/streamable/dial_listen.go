package streamable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/rootbound/rootbound/internal/wire"
)

// hear holds the stream of a session on which comes what belongs to no request, as long as the session lasts. A server need not
// have one. Open is called when it is known whether it has.
func (l *Link) hear(s session, open func()) {
	defer open()
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	go func() {
		select {
		case <-s.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	last, retry, heard := "", time.Duration(0), false
	for failures := 0; ; failures++ {
		resp, err := l.do(ctx, request{method: http.MethodGet, session: s.id, revision: s.revision, lastEvent: last})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if !heard {
				_, text := explain(err, l.o.URL)
				l.o.Note("the server's stream for what belongs to no request: %s", text)
			}
		case resp.StatusCode == http.StatusOK && mediaType(resp) == "text/event-stream":
			heard, failures = true, 0
			open()
			events := newEventReader(resp.Body, l.o.Limit, nil)
			for {
				e, err := events.next()
				if errors.Is(err, errEventTooLong) {
					l.o.Report("a message of the server, longer than %d bytes, was dropped", l.o.Limit)
					last = "" // or it would come again
				}
				if err != nil {
					break
				}
				if e.hasID {
					last = e.id
				}
				if e.retry > 0 {
					retry = e.retry
				}
				if len(e.data) > 0 && (e.name == "" || e.name == "message") {
					l.heard(e.data)
				}
			}
			resp.Body.Close()
		default:
			why := refused(resp, s)
			resp.Body.Close()
			switch {
			case !heard && resp.StatusCode < 500: // there is none
				l.o.Note("the server has no stream for what belongs to no request (%d)", resp.StatusCode)
				return
			case errors.Is(why, errForgotten):
				l.forgotten(s, nil)
				return
			case resp.StatusCode == http.StatusMethodNotAllowed:
				return
			}
		}
		open()
		if !l.pause(ctx, retry, failures) {
			return
		}
	}
}

// heard hands on what came on no request's stream. An answer there ends its request.
func (l *Link) heard(data []byte) {
	m, err := wire.Scan(data, wire.Lenient)
	var r *wire.Refusal
	var id []byte
	switch {
	case errors.As(err, &r):
		if r.Kind != wire.Request && r.Kind != wire.Notification {
			id = r.ID
		}
	case m.Kind() == wire.Response:
		id = m.ID()
	}
	of := ""
	if id != nil {
		l.mu.Lock()
		p := l.posts[wire.IDKey(id)]
		l.mu.Unlock()
		if p != nil {
			if !l.end(p) {
				return
			}
			of = p.key
			if r == nil {
				one := &m
				l.learn(p, &one)
				m = *one
			}
			p.cancel()
		}
	}
	if r != nil {
		l.deliver(delivery{refused: r, of: of})
		return
	}
	oneLine(m.Bytes())
	l.deliver(delivery{m: &m, of: of})
}

// fetch sends a request of ours for p, and returns its answer.
func (l *Link) fetch(p *post, m *wire.Message) (*wire.Message, error) {
	r := l.request(m, session{})
	r.key = p.key
	resp, err := l.do(p.ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer := func(data []byte) (*wire.Message, bool) {
		a, err := wire.Scan(data, wire.Lenient)
		if err != nil || a.Kind() != wire.Response || a.Key() != m.Key() || a.Result() == nil {
			return nil, false
		}
		oneLine(data)
		return &a, true
	}
	if mediaType(resp) == "text/event-stream" {
		for events := newEventReader(resp.Body, l.o.Limit, nil); ; {
			e, err := events.next()
			if err != nil {
				return nil, err
			}
			if a, ok := answer(e.data); ok {
				return a, nil
			}
		}
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, int64(l.o.Limit)))
	if err != nil {
		return nil, err
	}
	if a, ok := answer(b); ok {
		return a, nil
	}
	return nil, errors.New("no answer")
}

// oldLimit is how long the server may take to say where it is posted to, in the way of revision 2024-11-05.
const oldLimit = 10 * time.Second

// tryOld tries the way of revision 2024-11-05 for an initialize that the server refused with r: a stream on which everything
// comes, and which says first where to post to.
func (l *Link) tryOld(p *post, r *refusal) {
	s, err := l.openOld(p)
	if err != nil {
		l.o.Note("the server does not speak the HTTP of revision 2024-11-05 either: %v", err)
		l.fail(p, r.reason, r.text)
		return
	}
	l.o.Note("the server speaks the HTTP of revision 2024-11-05")
	resp, err := l.do(p.ctx, l.request(p.m, s))
	if err == nil && (resp.StatusCode < 200 || resp.StatusCode >= 300) {
		err = refused(resp, s)
		resp.Body.Close()
	}
	if err != nil {
		l.failed(p, s, err)
		return
	}
	l.answered(p, s, resp)
}

// openOld opens the stream of revision 2024-11-05 for p, whose answer comes on it, and returns its session.
func (l *Link) openOld(p *post) (session, error) {
	stream, cancel := context.WithCancel(l.ctx)
	late := time.AfterFunc(oldLimit, cancel)
	gone := context.AfterFunc(p.ctx, cancel)
	fail := func(err error) (session, error) {
		cancel()
		return session{old: true}, err
	}
	resp, err := l.do(stream, request{method: http.MethodGet})
	if err != nil {
		return fail(err)
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp) != "text/event-stream" {
		err := refused(resp, session{})
		resp.Body.Close()
		return fail(err)
	}
	events := newEventReader(resp.Body, l.o.Limit, nil)
	first, err := events.next()
	if err == nil && first.name != "endpoint" {
		err = errors.New("its stream does not say where to post to")
	}
	var to *url.URL
	if err == nil {
		to, err = l.o.URL.Parse(string(first.data))
	}
	if err == nil && !sameOrigin(to, l.o.URL) {
		err = &redirected{fmt.Sprintf("it wants to be posted to at another place, %s", place(to))}
	}
	if err != nil || !late.Stop() || !gone() {
		resp.Body.Close()
		if err == nil {
			err = context.DeadlineExceeded
		}
		return fail(err)
	}
	l.mu.Lock()
	s := session{old: true, endpoint: to, over: make(chan struct{})}
	l.session, p.over = s, s.over
	l.mu.Unlock()
	l.spawn(func() {
		defer cancel()
		defer resp.Body.Close()
		for {
			e, err := events.next()
			if err != nil {
				l.oldEnded(s, ended(err))
				return
			}
			if len(e.data) > 0 && (e.name == "" || e.name == "message") {
				l.heard(e.data)
			}
		}
	})
	return s, nil
}

// oldEnded takes it that the stream of a session has ended: everything that was sent in it fails, since its answers would have come
// there, and nothing says what of it was done. Before that it is seen to that nothing more is sent in it.
func (l *Link) oldEnded(s session, why error) {
	if l.ctx.Err() != nil {
		return
	}
	l.forgotten(s, nil)
	l.mu.Lock()
	if l.over == s.over { // it had not begun, or there were too many: it is forgotten when something is to be sent
		l.session.endpoint = nil
	}
	var open []*post
	for _, p := range l.posts {
		if p.over == s.over {
			open = append(open, p)
		}
	}
	l.mu.Unlock()
	for _, p := range open {
		l.fail(p, "broken", fmt.Sprintf("the connection to the server broke before the answer, so it is not known whether the server did what it was asked: %v", why))
		p.cancel()
	}
}
