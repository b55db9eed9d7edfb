package streamable

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/wire"
)

// hosts are the names by which clients may speak of a server. A page of another place that was made to have this machine's
// address still says its own name.
type hosts struct {
	listen netip.Addr
	names  map[string]bool
	last   *atomic.Pointer[string] // a Host that is allowed: most clients say one
}

func newHosts(listen net.Addr, names []string) hosts {
	h := hosts{names: map[string]bool{}, last: new(atomic.Pointer[string])}
	if a, ok := listen.(*net.TCPAddr); ok {
		h.listen, _ = netip.AddrFromSlice(a.IP)
		h.listen = h.listen.Unmap()
	}
	if h.listen.IsLoopback() || h.listen.IsUnspecified() {
		h.names["localhost"] = true
	}
	for _, name := range names {
		h.names[strings.ToLower(strings.TrimSuffix(name, "."))] = true
	}
	return h
}

// allows reports whether a host, without its port, is this server: an address that it listens on, or one of its names. An
// address in numbers cannot be made to mean another one.
func (h hosts) allows(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		addr = addr.Unmap()
		switch {
		case addr.Zone() != "":
			return false
		case h.listen.IsUnspecified(), h.names[addr.String()]:
			return true
		case h.listen.IsLoopback():
			return addr.IsLoopback()
		}
		return addr == h.listen
	}
	return h.names[strings.ToLower(strings.TrimSuffix(host, "."))]
}

// check says why a request does not come from where it may.
func (h hosts) check(r *http.Request) error {
	if last := h.last.Load(); last == nil || *last != r.Host {
		u, err := url.Parse("http://" + r.Host)
		if err != nil || u.Host != r.Host || !h.allows(u.Hostname()) {
			return fmt.Errorf("this server does not go by the host %.100q; name it with --allow-host", r.Host)
		}
		host := r.Host // and not the request that it is of
		h.last.Store(&host)
	}
	for _, origin := range r.Header["Origin"] {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || !h.allows(u.Hostname()) {
			return fmt.Errorf("pages of %.100q may not speak to this server", origin)
		}
	}
	return nil
}

// authorized reports whether a request shows the token, if there is one to be shown. How long that takes says nothing of it.
func (s *Server) authorized(r *http.Request) bool {
	if s.opt.Token == "" {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got, want := sha256.Sum256([]byte(strings.TrimSpace(token))), sha256.Sum256([]byte(s.opt.Token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

// isElsewhere reports whether a request comes from another machine, whose directories are not those of this one. What was
// handed on by a proxy counts as such.
func isElsewhere(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "Via"} {
		if r.Header[name] != nil {
			return true
		}
	}
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return true
	}
	if remote.Addr().Unmap().IsLoopback() {
		return false
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return !ok || remote.Addr().Unmap() != local.AddrPort().Addr().Unmap()
}

// accepts reports whether the client takes a kind of content.
func accepts(r *http.Request, kind string) bool {
	values := r.Header.Values("Accept")
	if len(values) == 0 {
		return true
	}
	family, _, _ := strings.Cut(kind, "/")
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			name, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case kind, family + "/*", "*/*":
				return true
			}
		}
	}
	return false
}

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	kind, params, err := mime.ParseMediaType(contentType)
	charset := strings.ToLower(params["charset"])
	return err == nil && kind == "application/json" && (charset == "" || charset == "utf-8")
}

// isModern reports whether a message is of the stateless era: by what it says itself, and where that is nothing, by its
// headers.
func isModern(h http.Header, m *wire.Message) bool {
	switch m.Kind() {
	case wire.Response, wire.Batch:
		return false
	}
	if transport.IsModern(wire.GetString(m.Meta(), exchange.MetaVersion)) {
		return true
	}
	switch m.Method() {
	case "initialize":
		return false
	case "server/discover", exchange.Listen:
		return true
	}
	// Neither does a session of the handshake era have a revision that it does not know, which is refused there.
	return h.Get(headerSession) == "" && transport.IsModern(h.Get(headerVersion))
}

// limited is a listener that serves so many connections at a time.
type limited struct {
	net.Listener
	free   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func limit(l net.Listener, n int) net.Listener {
	return &limited{Listener: l, free: make(chan struct{}, n), closed: make(chan struct{})}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return newCounted(c, l.free), nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// counted is a connection that counts, and keeps its deadlines itself: net/http and we set several for each request, and in the kernel's poller
// each of them may wake a thread.
type counted struct {
	net.Conn
	free        chan struct{}
	once        sync.Once
	read, write deadline
}

func newCounted(conn net.Conn, free chan struct{}) *counted {
	c := &counted{Conn: conn, free: free}
	c.read.set, c.write.set = conn.SetReadDeadline, conn.SetWriteDeadline
	return c
}

func (c *counted) Close() error {
	c.once.Do(func() { <-c.free })
	c.read.stop()
	c.write.stop()
	return c.Conn.Close()
}

func (c *counted) SetReadDeadline(t time.Time) error  { return c.read.move(t) }
func (c *counted) SetWriteDeadline(t time.Time) error { return c.write.move(t) }

func (c *counted) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// deadline is one that is moved often and seldom met. Its timer is left as it is when the deadline moves on, and goes after it when it rings.
type deadline struct {
	set func(time.Time) error // that of the connection

	mu    sync.Mutex
	at    time.Time   // zero for none
	timer *time.Timer // that rings at rings, unless that is zero
	rings time.Time
	met   bool // the connection's own is in the past
	over  bool // the connection was closed
}

func (d *deadline) move(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over { // who still answers on it must not have it kept until then
		return net.ErrClosed
	}
	d.at = t
	if !t.IsZero() && time.Until(t) <= 0 {
		return d.meet()
	}
	if d.met {
		d.met = false
		if err := d.set(time.Time{}); err != nil {
			return err
		}
	}
	if !t.IsZero() && (d.rings.IsZero() || t.Before(d.rings)) {
		d.wind()
	}
	return nil
}

// stop lets go of a connection that ends.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over, d.at = true, time.Time{}
	if d.timer != nil {
		d.timer.Stop()
	}
}

// wind has the timer ring at the deadline. The caller holds mu.
func (d *deadline) wind() {
	d.rings = d.at
	if wait := time.Until(d.at); d.timer == nil {
		d.timer = time.AfterFunc(wait, d.ring)
	} else {
		d.timer.Reset(wait)
	}
}

func (d *deadline) ring() {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch d.rings = (time.Time{}); {
	case d.at.IsZero():
	case time.Until(d.at) <= 0:
		d.meet()
	default:
		d.wind()
	}
}

// meet lets what waits fail. The caller holds mu.
func (d *deadline) meet() error {
	d.met = true
	return d.set(d.at)
}
