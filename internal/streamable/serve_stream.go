package streamable

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/rootbound/rootbound/internal/wire"
)

const (
	// alone is how long an answer may take to be written alone; then an event stream begins, to which a client can come back.
	alone = time.Second
	// keepAliveTime is how long nothing is said on an event stream.
	keepAliveTime = 15 * time.Second
	// retryTime is what a client that lost a stream is told to wait.
	retryTime = time.Second
	// backpressure is how many bytes may wait for a client before who sends more waits too, and patience how long.
	backpressure = 1 << 20
	patience     = 5 * time.Second
	// maxBacklog is how many bytes may wait before notifications are dropped, and maxQuestions before the client counts as gone.
	maxBacklog   = 8 << 20
	maxQuestions = 64 << 20
	// maxUnread is how many bytes of messages may wait for all clients together before an answer that is longer than maxSpared is
	// dropped.
	maxUnread = 512 << 20
	maxSpared = 64 << 10
)

// stream is the way back of one message, or a session's own. Messages are put on it by anybody, and written by the HTTP request
// that they are for; of a session also by one that comes back for them. Numbers of messages begin with 1.
type stream struct {
	server *Server
	sess   *served // nil for a stateless request, to which nobody comes back
	id     int64   // within the session; 0 is its own

	mu      sync.Mutex
	items   []item
	first   int  // the number of items[0]
	sent    int  // the number of the last one that was written
	waiting int  // bytes of those behind it
	ended   bool // there will be no more
	begun   bool // as an event stream
	gone    bool // nobody reads it any more
	stalled bool // who reads it does not
	writer  *http.Request
	shown   string        // by who sent the message
	changed chan struct{} // the writer has something to look at
	room    chan struct{} // less is waiting
}

type item struct {
	m    *wire.Message
	kept bool // for a client that comes back
}

func newStream(server *Server, sess *served, id int64) *stream {
	return &stream{server: server, sess: sess, id: id, first: 1, changed: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Send implements exchange.Stream.
func (s *stream) Send(m *wire.Message) { s.put(m, false) }

// End implements exchange.Stream.
func (s *stream) End(m *wire.Message) { s.put(m, true) }

// Refuse implements exchange.Stream.
func (s *stream) Refuse(m *wire.Message) { s.put(m, true) }

// Open implements exchange.Stream.
func (s *stream) Open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writer != nil
}

func (s *stream) put(m *wire.Message, last bool) {
	if !last {
		s.wait()
	}
	s.mu.Lock()
	if s.ended || s.gone {
		s.mu.Unlock()
		return
	}
	n := 0
	if m != nil {
		n = len(m.Bytes())
	}
	if last && n > maxSpared && s.server.unread.full(n) {
		m = wire.NewError(m.ID(), wire.CodeInternal, "rootbound: there was an answer, which was dropped: clients do not read what they asked for", []byte(`{"reason":"unread"}`))
		n = len(m.Bytes())
	}
	if !last && m.Kind() == wire.Notification && s.waiting > 0 && s.waiting+n > maxBacklog {
		s.mu.Unlock()
		s.server.opt.Report("a client does not read what it asked for; it is told no more until it does")
		return
	}
	if !last && s.waiting > maxQuestions {
		s.mu.Unlock()
		go s.server.end(s.sess, errStalled) // what is asked must not be dropped
		return
	}
	keep := m != nil && s.begun && s.sess != nil
	if m != nil {
		s.items = append(s.items, item{m, keep})
		s.waits(s.waiting + n)
	}
	number := s.first + len(s.items) - 1
	s.ended = last
	s.mu.Unlock()
	if keep {
		s.sess.keep(s, number, n)
	}
	if last && s.sess != nil {
		s.sess.settle(s)
	}
	signal(s.changed)
}

// waits notes how many bytes wait for the client. The caller holds mu.
func (s *stream) waits(n int) {
	s.server.unread.used.Add(int64(n - s.waiting))
	s.waiting = n
}

// wait waits while much is waiting for a client that reads: who produces it is not to be faster. A stateless request may be one of
// another client, so nobody waits for it.
func (s *stream) wait() {
	if s.sess == nil {
		return
	}
	var late *time.Timer
	for {
		s.mu.Lock()
		full := s.waiting > backpressure && s.writer != nil && !s.stalled
		s.mu.Unlock()
		if !full {
			signal(s.room) // who waits too
			return
		}
		if late == nil {
			late = time.NewTimer(patience)
			defer late.Stop()
		}
		select {
		case <-s.room:
		case <-late.C:
			s.mu.Lock()
			s.stalled = true
			s.mu.Unlock()
		}
	}
}

// close ends the stream for everybody, but for who is about to write its last message.
func (s *stream) close() {
	s.mu.Lock()
	if !s.ended || s.writer == nil {
		s.gone, s.items = true, nil
		s.waits(0)
	}
	s.mu.Unlock()
	signal(s.changed)
	signal(s.room)
}

// evict says that a message is not kept any more.
func (s *stream) evict(number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := number - s.first; i >= 0 && i < len(s.items) {
		s.items[i].kept = false
	}
	s.trim()
}

// trim lets go of what is at the front and not needed: it was written and is not kept. Where nobody writes, what is not kept is
// lost. The caller holds mu.
func (s *stream) trim() {
	n := 0
	for ; n < len(s.items) && !s.items[n].kept && (s.first+n <= s.sent || s.writer == nil && s.begun); n++ {
		if s.first+n > s.sent {
			s.sent = s.first + n
			s.waits(s.waiting - len(s.items[n].m.Bytes()))
		}
		s.items[n] = item{}
	}
	s.items, s.first = s.items[n:], s.first+n
	if len(s.items) == 0 {
		s.items = nil
	}
}

// spent reports whether nothing can come from the stream any more.
func (s *stream) spent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone || s.ended && len(s.items) == 0 && s.writer == nil
}

// attach makes r the one that writes, from behind a message on; -1 is from where the last one was.
func (s *stream) attach(r *http.Request, behind int) {
	s.mu.Lock()
	s.writer = r
	if s.shown == "" && behind < 0 {
		s.shown = r.Header.Get("Authorization")
	}
	if behind >= 0 {
		s.sent = min(max(behind, s.first-1), s.first+len(s.items)-1)
		n := 0
		for _, it := range s.items[s.sent-s.first+1:] {
			n += len(it.m.Bytes())
		}
		s.waits(n)
	}
	s.mu.Unlock()
	signal(s.changed) // whoever wrote before stops
}

// Shown is what the client showed to say who it is.
func (s *stream) Shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown
}

// detach says that r does not write any more. A stream that had not begun cannot be come back to.
func (s *stream) detach(r *http.Request) {
	s.mu.Lock()
	if s.writer == r {
		s.writer = nil
		if !s.begun || s.sess == nil {
			s.gone, s.items = true, nil
			s.waits(0)
		}
		s.trim()
	}
	s.mu.Unlock()
	signal(s.changed) // another one may have been told of something
	signal(s.room)
}

// next takes what is to be written. Mine is false when r is not the one that writes any more, done when nothing will come.
func (s *stream) next(r *http.Request) (items []*wire.Message, number int, done, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writer != r || s.gone {
		return nil, 0, true, false
	}
	number = s.sent + 1
	for _, it := range s.items[s.sent-s.first+1:] {
		items = append(items, it.m)
	}
	return items, number, s.ended, true
}

// wrote says that messages were written. Those of a stream that was closed meanwhile are not waited for any more.
func (s *stream) wrote(r *http.Request, items []*wire.Message) {
	s.mu.Lock()
	if s.writer == r && !s.gone {
		for _, m := range items {
			s.waits(s.waiting - len(m.Bytes()))
		}
		s.sent += len(items)
		s.stalled = s.stalled && s.waiting > backpressure
		s.trim()
	}
	s.mu.Unlock()
	signal(s.room)
}

// begin makes an event stream of it.
func (s *stream) begin() {
	s.mu.Lock()
	var keep []item
	number := s.first
	if s.sess != nil && !s.begun {
		for i := range s.items {
			s.items[i].kept = true
		}
		keep = append(keep, s.items...)
	}
	s.begun = true
	s.mu.Unlock()
	for i, it := range keep {
		s.sess.keep(s, number+i, len(it.m.Bytes()))
	}
}

// hasBegun reports whether it is an event stream.
func (s *stream) hasBegun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// reply says how an answer goes over HTTP.
type reply struct {
	w http.ResponseWriter
	r *http.Request
	// status is that of an answer which is written alone.
	status func(m *wire.Message) int
	// none is the status of no answer at all; 0 is an event stream without an event.
	none int
	// prime says that a client is given an id to come back with, before the first event.
	prime func() bool
	// header adds to the header of what is not alone.
	header func(http.Header)
	// closing, if set, ends the stream.
	closing func()
}

// serve writes the stream to a client until everything was written, the client is gone, another one has taken the stream over, or its
// session has ended. The stream must be attached. Told is false when the client heard nothing.
func (s *stream) serve(p reply) (told bool) {
	defer s.detach(p.r)
	closing := s.server.closing
	patient := time.NewTimer(alone)
	defer patient.Stop()
	begin := s.hasBegun()
	for !begin {
		items, _, done, mine := s.next(p.r)
		switch {
		case !mine:
			return false
		case done && len(items) == 1:
			p.header(p.w.Header())
			answer(p.w, p.status(items[0]), items[0])
			s.wrote(p.r, items)
			return true
		case done && len(items) == 0 && s.sess != nil && s.sess.of.Context().Err() != nil: // it was withdrawn for that
			return false
		case done && len(items) == 0 && p.none != 0:
			p.w.WriteHeader(p.none)
			return true
		case done || len(items) > 0:
			begin = true
			continue
		}
		select {
		case <-s.changed:
		case <-patient.C:
			begin = true
		case <-closing:
			if closing = nil; p.closing != nil {
				p.closing()
			}
		case <-p.r.Context().Done():
			return false
		}
	}
	h := p.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	p.header(h)
	p.w.WriteHeader(http.StatusOK)
	s.begin()
	var b []byte
	if p.prime() {
		_, number, _, _ := s.next(p.r)
		b = appendEvent(b, event{id: s.eventID(number - 1), hasID: true, retry: retryTime})
	}
	rc := http.NewResponseController(p.w)
	for first := true; ; first = false {
		items, number, done, mine := s.next(p.r)
		if !mine {
			return true
		}
		if writeEvents(p.w, b, items, func(i int) string { return s.eventID(number + i) }) != nil {
			return true
		}
		if (first || len(items) > 0 || len(b) > 0) && rc.Flush() != nil {
			return true
		}
		b = b[:0]
		s.wrote(p.r, items)
		if done {
			return true
		}
		patient.Reset(keepAliveTime)
		select {
		case <-s.changed:
		case <-patient.C:
			b = append(b, keepAlive...)
		case <-closing:
			if closing = nil; p.closing == nil {
				continue
			}
			p.closing()
		case <-p.r.Context().Done():
			return true
		}
	}
}

// eventID names a message for a client that comes back; "" where none can.
func (s *stream) eventID(number int) string {
	if s.sess == nil {
		return ""
	}
	return strconv.FormatInt(s.id, 10) + "-" + strconv.Itoa(number)
}

// writeEvents writes b and messages as events, what is small together.
func writeEvents(w http.ResponseWriter, b []byte, items []*wire.Message, id func(i int) string) error {
	const small = 64 << 10
	for i, m := range items {
		e := event{name: "message", id: id(i), data: m.Bytes()}
		e.hasID = e.id != ""
		if len(e.data) <= small || lineEnd(e.data) >= 0 {
			b = appendEvent(b, e)
		} else {
			e.data = nil
			b = appendEvent(b, e)
			b = b[:len(b)-len("\n\n")] // behind "data: "
			if err := writeAll(w, b); err != nil {
				return err
			}
			if err := writeAll(w, m.Bytes()); err != nil {
				return err
			}
			b = append(b[:0], "\n\n"...)
		}
		if len(b) > small {
			if err := writeAll(w, b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	return writeAll(w, b)
}
