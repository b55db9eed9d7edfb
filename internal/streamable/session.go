package streamable

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/legacy"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/wire"
)

const (
	// maxKept is how many bytes are kept for clients that come back for what they missed, maxKeptBytes and maxKeptEvents how much
	// of that for one session, and keptTime for how long.
	maxKept       = 16 << 20
	maxKeptBytes  = 1 << 20
	maxKeptEvents = 256
	keptTime      = 5 * time.Minute
	// spareTime is how long a session must not have been used to make room for another one.
	spareTime = 5 * time.Minute
	// firstPrimed is the revision from which on clients know an event without data.
	firstPrimed = "2025-11-25"
)

var (
	errDeleted = errors.New("the client ended the session")
	errIdle    = errors.New("the session was not used for a long time")
	errRoom    = errors.New("the session was not used, and made room for another one")
	errStalled = errors.New("the client does not read what it is asked")
	errFailed  = errors.New("the handshake failed")
)

// served is a session of the handshake era: an edge, and streams on which its client is told and asked.
type served struct {
	server *Server
	id     string // known to its client alone
	of     *exchange.Session
	edge   *legacy.Client
	end    func() // ends what was made for it
	own    *stream
	remote bool // its client is on another machine

	in              sync.Mutex  // one message at a time
	greeted, failed atomic.Bool // at its handshake

	mu      sync.Mutex
	streams map[int64]*stream // to which the client may come back, beside its own
	next    int64
	kept    []kept
	bytes   int // kept
	using   int // HTTP requests
	last    time.Time
}

// kept is a message that is kept for a client that comes back.
type kept struct {
	on           *stream
	number, size int
	at           time.Time
}

// open begins a session, or says why there is none.
func (s *Server) open(r *http.Request) (*served, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errClosing
	}
	var spare *served
	if len(s.sessions)+s.opening >= s.opt.Sessions {
		if spare = s.spare(time.Now()); spare == nil {
			s.mu.Unlock()
			return nil, fmt.Errorf("there are %d sessions, and no room for another one", s.opt.Sessions)
		}
		delete(s.sessions, spare.id)
		s.ending.Add(1)
	}
	s.opening++
	s.mu.Unlock()
	if spare != nil {
		s.finish(spare, errRoom)
	}
	sess := &served{
		server: s, id: rand.Text(), of: exchange.NewSession(context.Background()), remote: isElsewhere(r),
		streams: map[int64]*stream{}, last: time.Now(), using: 1,
	}
	sess.own = newStream(s, sess, 0)
	sess.own.begun = true
	var early error
	h, end, err := s.opt.Session(func(err error) {
		s.mu.Lock()
		begun := sess.edge != nil
		if !begun {
			early = err
		}
		s.mu.Unlock()
		if begun {
			s.end(sess, err)
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening--
	switch {
	case err != nil:
		return nil, err
	case s.closed:
		s.ending.Go(end)
		return nil, errClosing
	case early != nil:
		s.ending.Go(end)
		return nil, early
	}
	sess.end = end
	sess.edge = legacy.NewClient(sess.own, h, sess.of, legacy.Options{Report: s.opt.Report})
	s.sessions[sess.id] = sess
	return sess, nil
}

// spare is the session that was not used for the longest time, if that is long enough. The caller holds mu.
func (s *Server) spare(now time.Time) *served {
	var spare *served
	since := now.Add(-spareTime)
	for _, sess := range s.sessions {
		if last, used := sess.unused(); !used && last.Before(since) {
			spare, since = sess, last
		}
	}
	return spare
}

// unused returns when the session was used last, and whether it is now.
func (s *served) unused() (last time.Time, used bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, s.using > 0
}

func (s *Server) all() []*served {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*served, 0, len(s.sessions))
	for _, sess := range s.sessions {
		all = append(all, sess)
	}
	return all
}

// look ends sessions that nobody uses, and lets go of what was kept for long enough.
func (s *Server) look(now time.Time) {
	for _, sess := range s.all() {
		if last, used := sess.unused(); !used && now.Sub(last) > s.opt.Idle {
			s.end(sess, errIdle)
			continue
		}
		sess.forget(func(k kept) bool { return now.Sub(k.at) > keptTime })
	}
}

// end ends a session; what was made for it ends behind that.
func (s *Server) end(sess *served, why error) {
	s.mu.Lock()
	if s.sessions[sess.id] != sess {
		s.mu.Unlock()
		return
	}
	delete(s.sessions, sess.id)
	s.ending.Add(1)
	s.mu.Unlock()
	s.finish(sess, why)
}

func (s *Server) finish(sess *served, why error) {
	s.opt.Note("session %s ends: %v", sess.of.ID, why)
	sess.of.End(why)
	sess.mu.Lock()
	streams := []*stream{sess.own}
	for _, st := range sess.streams {
		streams = append(streams, st)
	}
	sess.streams = nil
	sess.mu.Unlock()
	sess.forget(func(kept) bool { return true }) // behind that, or what comes meanwhile would be kept
	for _, st := range streams {
		st.close()
	}
	go func() {
		defer s.ending.Done()
		sess.end()
	}()
}

// find returns the session that a request names, in use until release is called, or answers why there is none.
func (s *Server) find(w http.ResponseWriter, r *http.Request, id []byte) *served {
	name, ok, err := one(r.Header, headerSession)
	if !ok || err != nil {
		fail(w, http.StatusBadRequest, id, wire.CodeInvalidRequest, "the header "+headerSession+" must name the session, which begins with initialize")
		return nil
	}
	version, _, err := one(r.Header, headerVersion)
	if err != nil || transport.IsModern(version) {
		fail(w, http.StatusBadRequest, id, wire.CodeInvalidRequest, fmt.Sprintf("the header %s names no revision that a session can have: %.60q", headerVersion, version))
		return nil
	}
	s.mu.Lock()
	sess := s.sessions[name]
	s.mu.Unlock()
	if sess == nil {
		fail(w, http.StatusNotFound, id, wire.CodeInvalidRequest, "there is no such session; begin one with initialize")
		return nil
	}
	sess.mu.Lock()
	sess.using++
	sess.mu.Unlock()
	return sess
}

func (s *served) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.using--
	s.last = time.Now()
}

// legacyPost takes a message of the handshake era.
func (s *Server) legacyPost(w http.ResponseWriter, r *http.Request, m *wire.Message) {
	greets := m.Method() == "initialize" && m.Kind() == wire.Request && r.Header[headerSession] == nil
	var sess *served
	if greets {
		var err error
		if sess, err = s.open(r); err != nil {
			w.Header().Set("Retry-After", "10")
			fail(w, http.StatusServiceUnavailable, m.ID(), wire.CodeInternal, err.Error())
			return
		}
	} else if sess = s.find(w, r, m.ID()); sess == nil {
		return
	}
	defer sess.release()
	if m.Method() == "initialize" && sess.remote {
		m = s.elsewhere(r, m, "capabilities", "roots")
	}
	if m.Kind() == wire.Notification || m.Kind() == wire.Response {
		sess.receive(m, nowhere{})
		w.WriteHeader(http.StatusAccepted)
		return
	}
	st := sess.stream()
	st.attach(r, -1)
	on := exchange.Stream(st)
	if m.Method() == "initialize" {
		on = greeting{st}
	}
	sess.receive(m, on)
	p := reply{w: w, r: r, status: legacyStatus, prime: sess.primes, header: func(h http.Header) {
		if greets && !sess.failed.Load() {
			h.Set(headerSession, sess.id)
		}
	}}
	if m.Kind() == wire.Batch {
		p.none = http.StatusAccepted
	}
	told := st.serve(p)
	if greets && (sess.failed.Load() || !told) { // nobody knows of it
		s.end(sess, errFailed)
	}
	sess.settle(st)
	if !told && r.Context().Err() == nil {
		fail(w, http.StatusNotFound, m.ID(), wire.CodeInvalidRequest, "the session has ended; begin one with initialize")
	}
}

// greeting is the stream of a handshake.
type greeting struct{ *stream }

// End implements exchange.Stream.
func (g greeting) End(m *wire.Message) {
	failed := m == nil || m.Error() != nil
	g.sess.failed.Store(failed)
	g.sess.greeted.Store(!failed)
	g.stream.End(m)
}

// legacyStatus is the status of an answer that is written alone: one without an id says that what was sent was no request.
func legacyStatus(m *wire.Message) int {
	if m.Error() != nil && string(m.ID()) == "null" {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

func (s *served) receive(m *wire.Message, on exchange.Stream) {
	s.in.Lock()
	defer s.in.Unlock()
	s.edge.Receive(m, on)
}

// primes reports whether the client knows an event that only has an id.
func (s *served) primes() bool { return s.greeted.Load() && s.of.Client().Revision >= firstPrimed }

// stream makes the stream of a message.
func (s *served) stream() *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	st := newStream(s.server, s, s.next)
	if s.streams != nil { // else it has ended
		s.streams[st.id] = st
	} else {
		st.gone = true
	}
	return st
}

// settle forgets a stream that nothing can come from any more.
func (s *served) settle(st *stream) {
	if st.id != 0 && st.spent() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, st.id)
	}
}

// keep keeps a message for a client that comes back, as long as there is room.
func (s *served) keep(st *stream, number, size int) {
	if !s.server.kept.take(int64(size)) {
		st.evict(number)
		return
	}
	s.mu.Lock()
	ended := s.streams == nil
	if !ended {
		s.kept = append(s.kept, kept{st, number, size, time.Now()})
		s.bytes += size
	}
	s.mu.Unlock()
	if ended {
		s.server.kept.give(int64(size))
		st.evict(number)
		return
	}
	s.forget(func(kept) bool { return len(s.kept) > maxKeptEvents || s.bytes > maxKeptBytes })
}

// forget lets go of what was kept, the oldest first, as long as old says so. Old is called with mu held.
func (s *served) forget(old func(kept) bool) {
	s.mu.Lock()
	var gone []kept
	for len(s.kept) > 0 && old(s.kept[0]) {
		k := s.kept[0]
		s.kept[0] = kept{}
		s.kept = s.kept[1:]
		s.bytes -= k.size
		s.server.kept.give(int64(k.size))
		gone = append(gone, k)
	}
	if len(s.kept) == 0 {
		s.kept = nil
	}
	s.mu.Unlock()
	for _, k := range gone {
		k.on.evict(k.number)
		s.settle(k.on)
	}
}

// get opens a session's own stream, or comes back to one that was lost.
func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	if r.Header[headerSession] == nil && transport.IsModern(r.Header.Get(headerVersion)) {
		notAllowed(w)
		return
	}
	if !accepts(r, "text/event-stream") {
		fail(w, http.StatusNotAcceptable, nil, wire.CodeInvalidRequest, "the header Accept must name text/event-stream")
		return
	}
	sess := s.find(w, r, nil)
	if sess == nil {
		return
	}
	defer sess.release()
	st, behind := sess.own, -1
	if last, ok, err := one(r.Header, headerLastEvent); err != nil {
		fail(w, http.StatusBadRequest, nil, wire.CodeInvalidRequest, err.Error())
		return
	} else if ok {
		if st, behind = sess.behind(last); st == nil {
			fail(w, http.StatusBadRequest, nil, wire.CodeInvalidRequest, fmt.Sprintf("what came behind the event %.60q is not kept any more", last))
			return
		}
	}
	st.attach(r, behind)
	p := reply{w: w, r: r, prime: sess.primes, header: func(http.Header) {}}
	if st == sess.own {
		p.closing = func() { st.End(nil) }
	}
	st.serve(p)
	sess.settle(st)
}

// behind finds the stream of an event, and its number there. Of one that has not begun there is no event.
func (s *served) behind(id string) (*stream, int) {
	name, number, ok := strings.Cut(id, "-")
	on, err1 := strconv.ParseInt(name, 10, 64)
	n, err2 := strconv.Atoi(number)
	if !ok || err1 != nil || err2 != nil || n < 0 {
		return nil, 0
	}
	if on == 0 {
		return s.own, n
	}
	s.mu.Lock()
	st := s.streams[on]
	s.mu.Unlock()
	if st == nil || !st.hasBegun() {
		return nil, 0
	}
	return st, n
}

// delete ends a session.
func (s *Server) delete(w http.ResponseWriter, r *http.Request) {
	if r.Header[headerSession] == nil && transport.IsModern(r.Header.Get(headerVersion)) {
		notAllowed(w)
		return
	}
	sess := s.find(w, r, nil)
	if sess == nil {
		return
	}
	defer sess.release()
	s.end(sess, errDeleted)
	w.WriteHeader(http.StatusNoContent)
}
