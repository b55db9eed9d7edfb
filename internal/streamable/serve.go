package streamable

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/modern"
	"github.com/rootbound/rootbound/internal/wire"
)

// Path is where clients find the one endpoint there is.
const Path = "/mcp"

// Options of a server. Stateless and Session must be set.
type Options struct {
	// Stateless takes the requests of all clients of the stateless era; Notify-only messages too.
	Stateless exchange.Handler
	// Session makes what takes the requests of one session of the handshake era. Lost ends the session from behind; end ends
	// what was made, and waits for that.
	Session func(lost func(error)) (h exchange.Handler, end func(), err error)
	// Hosts are names under which clients may speak of this server, beside the address that is listened on.
	Hosts []string
	// Token, if set, is what each request must show.
	Token string
	// TLS, if set, is spoken.
	TLS *tls.Config
	// StateKey, if set, seals request states, so that servers with the same one take each other's (see modern.Options).
	StateKey []byte
	// Limit is the longest message in bytes; 0 is wire.DefaultLimit.
	Limit int
	// Sessions is how many sessions there may be at a time; 0 is 64. One that nobody uses makes room for a new one.
	Sessions int
	// Idle is how long a session is kept that nobody uses; 0 is 30 minutes.
	Idle time.Duration
	// Report is told of oddities that nobody else hears of, Note of what is only for the log; nil drops them.
	Report, Note func(format string, args ...any)
}

const (
	defaultSessions = 64
	defaultIdle     = 30 * time.Minute
	// maxConnections is how many connections are served at a time; further ones wait until one ends.
	maxConnections = 4096
	// maxHeaderBytes is how much a request may say before its body.
	maxHeaderBytes = 64 << 10
	// headerTime is how long that may take, and quietTime how long a connection is kept that asks nothing.
	headerTime = 10 * time.Second
	quietTime  = 2 * time.Minute
	// writeTime is how long a client may take to read some of what it is sent.
	writeTime = 30 * time.Second
	// lookTime is how often sessions are looked at.
	lookTime = 10 * time.Second
	// lingerTime is how long answers may take when the server ends.
	lingerTime = 2 * time.Second
)

var errClosing = errors.New("the server ends")

// Server serves clients of both eras on one endpoint.
type Server struct {
	opt    Options
	host   hosts
	modern *modern.Client
	params annotated
	bodies budget
	kept   budget
	unread budget

	closing chan struct{} // closed when streams are to end

	mu       sync.Mutex
	sessions map[string]*served
	opening  int // sessions that are about to be
	closed   bool
	ending   sync.WaitGroup // sessions that end

	requests atomic.Int64
	told     atomic.Bool // that a client is on another machine
}

// Listen listens on an address, with numbers for its host. Who serves what is listened on closes it.
func Listen(address string) (net.Listener, error) {
	network := "tcp"
	if a, err := netip.ParseAddrPort(address); err == nil && a.Addr().Is4() {
		network = "tcp4" // or 0.0.0.0 would be every address of the other kind too
	}
	return net.Listen(network, address)
}

// New returns a server for what is listened on with l.
func New(l net.Listener, o Options) *Server {
	drop := func(string, ...any) {}
	if o.Report == nil {
		o.Report = drop
	}
	if o.Note == nil {
		o.Note = drop
	}
	if o.Limit <= 0 {
		o.Limit = wire.DefaultLimit
	}
	if o.Sessions <= 0 {
		o.Sessions = defaultSessions
	}
	if o.Idle <= 0 {
		o.Idle = defaultIdle
	}
	return &Server{
		opt: o, host: newHosts(l.Addr(), o.Hosts), modern: modern.NewClient(o.Stateless, nil, modern.Options{Key: o.StateKey, Report: o.Report}),
		bodies: budget{limit: max(maxBodies, 2*int64(o.Limit))}, kept: budget{limit: maxKept}, unread: budget{limit: maxUnread},
		closing: make(chan struct{}), sessions: map[string]*served{},
	}
}

// Serve serves clients until ctx ends, and then what is open for a little while. It closes l, and everything that was made.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	hs := &http.Server{
		Handler: s, MaxHeaderBytes: maxHeaderBytes, ReadHeaderTimeout: headerTime, IdleTimeout: quietTime, Protocols: &protocols,
		ErrorLog: log.New(&complaints{note: s.opt.Note}, "", 0), TLSConfig: s.opt.TLS,
	}
	l = limit(l, maxConnections)
	done := make(chan error, 1)
	go func() {
		if s.opt.TLS != nil {
			done <- hs.ServeTLS(l, "", "")
		} else {
			done <- hs.Serve(l)
		}
	}()
	look := time.NewTicker(min(lookTime, s.opt.Idle/2+time.Millisecond))
	defer look.Stop()
	var before int64 // requests
	var rests bool
	var err error
	for serving := true; serving; {
		select {
		case <-look.C:
			s.look(time.Now())
			n := s.requests.Load()
			if idle := n == before; idle && !rests { // what work left behind is not to be kept by many idle sessions
				debug.FreeOSMemory()
			}
			before, rests = n, n == before
		case err = <-done:
			serving = false
		case <-ctx.Done():
			serving = false
		}
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.closing)
	linger, cancel := context.WithTimeout(context.WithoutCancel(ctx), lingerTime)
	defer cancel()
	if hs.Shutdown(linger) != nil {
		hs.Close()
	}
	for _, sess := range s.all() {
		s.end(sess, errClosing)
	}
	s.ending.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// complaints are what net/http says of connections that went wrong. Whoever makes many go wrong fills no disk.
type complaints struct {
	note func(format string, args ...any)
	n    atomic.Int64
}

func (c *complaints) Write(b []byte) (int, error) {
	if n := c.n.Add(1); n > 16 && n&(n-1) != 0 {
		return len(b), nil
	}
	c.note("http: %.300s", string(b[:max(0, len(b)-1)]))
	return len(b), nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	rc := http.NewResponseController(w)
	now := time.Now()
	rc.SetWriteDeadline(now.Add(writeTime))
	if r.ContentLength != 0 { // also what is not looked at has to come
		rc.SetReadDeadline(now.Add(bodyTime))
	}
	h := w.Header()
	h["X-Content-Type-Options"] = noSniff
	h["Cache-Control"] = noStore
	if len(r.TransferEncoding) > 0 { // with a length beside it, which is not told, what follows may be what another reader took for its body
		h["Connection"] = closes
	}
	switch err := s.host.check(r); {
	case err != nil:
		fail(w, http.StatusForbidden, nil, wire.CodeInvalidRequest, err.Error())
		return
	case !s.authorized(r):
		w.Header().Set("WWW-Authenticate", `Bearer realm="rootbound"`)
		fail(w, http.StatusUnauthorized, nil, wire.CodeInvalidRequest, "this server wants a token")
		return
	case r.URL.Path != Path:
		fail(w, http.StatusNotFound, nil, wire.CodeInvalidRequest, "the endpoint is "+Path)
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r)
	case http.MethodGet:
		s.get(w, r)
	case http.MethodDelete:
		s.delete(w, r)
	default:
		notAllowed(w)
	}
}

// Values of headers, which nobody changes.
var (
	noSniff = []string{"nosniff"}
	noStore = []string{"no-store"}
	isJSONs = []string{"application/json"}
	closes  = []string{"close"}
)

func notAllowed(w http.ResponseWriter) {
	w.Header().Set("Allow", "POST, GET, DELETE")
	fail(w, http.StatusMethodNotAllowed, nil, wire.CodeInvalidRequest, "this method is not allowed here")
}

// fail answers with a status and a JSON-RPC error. Without an id it is not the answer to a request that could be told.
func fail(w http.ResponseWriter, status int, id []byte, code int, text string) {
	answer(w, status, wire.NewError(id, code, "rootbound: "+text, nil))
}

// answer answers with a status and a message.
func answer(w http.ResponseWriter, status int, m *wire.Message) {
	h := w.Header()
	h["Content-Type"] = isJSONs
	h["Content-Length"] = []string{strconv.Itoa(len(m.Bytes()))}
	w.WriteHeader(status)
	writeAll(w, m.Bytes())
}

// writeAll writes b, as long as its reader goes on reading.
func writeAll(w http.ResponseWriter, b []byte) error {
	const piece = 256 << 10
	rc := http.NewResponseController(w)
	for len(b) > 0 {
		rc.SetWriteDeadline(time.Now().Add(writeTime))
		n, err := w.Write(b[:min(piece, len(b))])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// post takes a message.
func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	if !accepts(r, "application/json") || !accepts(r, "text/event-stream") {
		fail(w, http.StatusNotAcceptable, nil, wire.CodeInvalidRequest, "the header Accept must name application/json and text/event-stream")
		return
	}
	if !isJSON(r.Header.Get("Content-Type")) {
		fail(w, http.StatusUnsupportedMediaType, nil, wire.CodeInvalidRequest, "the header Content-Type must be application/json")
		return
	}
	body, release, err := s.body(w, r)
	defer release()
	if err != nil {
		f := bodyError{http.StatusBadRequest, "the message was cut off"} // by who is gone, or half gone
		if errors.As(err, &f) && f.status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		w.Header().Set("Connection", "close")
		fail(w, f.status, nil, wire.CodeInvalidRequest, f.text)
		return
	}
	m, err := wire.Scan(body, wire.Strict)
	var refused *wire.Refusal
	if errors.As(err, &refused) {
		fail(w, http.StatusBadRequest, refused.ID, refused.Code, "this message was refused: "+refused.Reason)
		return
	}
	oneLine(body)
	if isModern(r.Header, &m) {
		s.modernPost(w, r, &m)
	} else {
		s.legacyPost(w, r, &m)
	}
}

// oneLine takes the line ends out of a message that was scanned: they stand between values only, and on other ways a message
// is a line.
func oneLine(body []byte) {
	for rest := body; ; {
		i := lineEnd(rest)
		if i < 0 {
			return
		}
		rest[i] = ' '
		rest = rest[i+1:]
	}
}

const (
	// maxBodies is how many bytes of messages are taken in at a time.
	maxBodies = 256 << 20
	// bodyTime is how long a body may take, and bodyRate how many bytes of it are worth one more second.
	bodyTime = 30 * time.Second
	bodyRate = 64 << 10
)

// bodyError is why a body is not taken.
type bodyError struct {
	status int
	text   string
}

func (e bodyError) Error() string { return e.text }

// body reads the message of a request. Release says that it is not needed any more.
func (s *Server) body(w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	var taken int64
	release = func() { s.bodies.give(taken) }
	take := func(n int64) bool {
		if !s.bodies.take(n) {
			return false
		}
		taken += n
		return true
	}
	tooLong := bodyError{http.StatusRequestEntityTooLarge, fmt.Sprintf("a message may have %d bytes", s.opt.Limit)}
	if r.ContentLength > int64(s.opt.Limit) {
		return nil, release, tooLong
	}
	rc := http.NewResponseController(w)
	began, worth := time.Now(), 0 // in seconds, of what came
	size := 4 << 10
	if r.ContentLength >= 0 {
		size = min(int(r.ContentLength)+2, 64<<10)
	}
	for {
		if grow := size - cap(body); grow > 0 {
			if !take(int64(grow)) {
				return nil, release, bodyError{http.StatusServiceUnavailable, "too much is being sent at the moment"}
			}
			body = append(make([]byte, 0, size), body...)
		}
		if n := len(body) / bodyRate; n > worth { // before that, what holds for the whole request
			worth = n
			more := time.Duration(worth) * time.Second
			rc.SetReadDeadline(began.Add(bodyTime + more))
			rc.SetWriteDeadline(began.Add(bodyTime + writeTime + more))
		}
		n, err := r.Body.Read(body[len(body) : cap(body)-1])
		body = body[:len(body)+n]
		switch {
		case len(body) > s.opt.Limit:
			return nil, release, tooLong
		case errors.Is(err, io.EOF):
			rc.SetReadDeadline(time.Time{})
			body = append(body, '\n')[:len(body)] // whoever writes it as a line has the end at hand
			return body, release, nil
		case err != nil:
			var ne net.Error
			if errors.As(err, &ne) && ne.Timeout() {
				err = bodyError{http.StatusRequestTimeout, "the message took too long to arrive"}
			}
			return nil, release, err
		}
		if len(body) == cap(body)-1 {
			size = min(2*cap(body), s.opt.Limit+2)
			if r.ContentLength >= 0 { // it may be believed as far as it was kept
				size = min(size, int(r.ContentLength)+2)
			}
			size = max(size, len(body)+2)
		}
	}
}

// budget bounds how much of something is held by all clients together.
type budget struct {
	limit int64
	used  atomic.Int64
}

func (b *budget) take(n int64) bool {
	if b.used.Add(n) <= b.limit {
		return true
	}
	b.used.Add(-n)
	return false
}

// full reports whether there is no room for n more.
func (b *budget) full(n int) bool { return b.used.Load()+int64(n) > b.limit }

func (b *budget) give(n int64) { b.used.Add(-n) }
