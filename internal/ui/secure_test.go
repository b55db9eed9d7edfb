package ui

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A request that takes long is served to its end: only what the browser sends has to come in time.
func TestASlowAnswerIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := New(Options{})
		u.host, u.session, u.key = "127.0.0.1:1", "session", "key"
		u.handleSlow("GET /api/test/slow", searchTime, func(r *http.Request) (any, error) {
			select {
			case <-time.After(searchTime / 2):
				return "done", nil
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		})
		near, far := net.Pipe()
		l := &oneConn{conn: make(chan net.Conn, 1), end: make(chan struct{})}
		l.conn <- far
		srv := &http.Server{Handler: u.Handler()}
		ended := make(chan struct{})
		go func() { srv.Serve(l); close(ended) }()
		r := httptest.NewRequest("GET", "http://127.0.0.1:1/api/test/slow", nil)
		r.AddCookie(&http.Cookie{Name: cookieName(r.Host), Value: "session"})
		r.Header.Set(keyHeader, "key")
		if err := r.Write(near); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(near), r)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(res.Body); res.StatusCode != 200 || string(text) != "\"done\"\n" || err != nil {
			t.Errorf("%s %s, %v", res.Status, text, err)
		}
		near.Close()
		srv.Close()
		<-ended
	})
}

// oneConn accepts one connection.
type oneConn struct {
	conn chan net.Conn
	end  chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.end:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error   { close(l.end); return nil }
func (l *oneConn) Addr() net.Addr { return addr("http://127.0.0.1:1") }

// A page that was let in and asks for the stream just when another browser is let in does not follow it.
func TestAPageThatIsLetInNoLongerFollowsNothing(t *testing.T) {
	u := New(Options{})
	u.session = "another"
	ctx, end := context.WithCancel(t.Context())
	end() // else it would follow until the test ends
	r := httptest.NewRequest("GET", "/api/events", nil).WithContext(ctx)
	r.AddCookie(&http.Cookie{Name: cookieName(r.Host), Value: "session"})
	w := httptest.NewRecorder()
	if u.events(w, r); w.Code != http.StatusUnauthorized {
		t.Errorf("it is answered with %d: %s", w.Code, w.Body)
	}
}

// Browsers leave out the port 80.
func TestPort80(t *testing.T) {
	u := New(Options{})
	for host, want := range map[string]int{"127.0.0.1": 200, "127.0.0.1:80": 200, "127.0.0.1:81": 421, "localhost": 421, "": 421} {
		u.host = "127.0.0.1:80"
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if u.Handler().ServeHTTP(w, r); w.Code != want {
			t.Errorf("the host %q is answered with %d, want %d", host, w.Code, want)
		}
	}
}

// What another program has left for our origin in the browser goes.
func TestWhatWasLeftForTheOriginGoes(t *testing.T) {
	b := &browser{served: serve(t, Options{})}
	address, _, _ := strings.Cut(b.ui.Link(addr(b.at)), "#")
	if again, _, _ := strings.Cut(b.ui.Link(addr(b.at)), "#"); again == address {
		t.Errorf("two links have the address %q, of which the browser may keep a copy", address)
	}
	if status, h, text := b.do("GET", strings.TrimPrefix(address, b.at), ""); status != 200 || h.Get("Clear-Site-Data") != `"cache"` || !strings.Contains(text, "app.js") {
		t.Errorf("the address of a link: %d %v", status, h)
	}
	if _, h, _ := b.do("GET", "/", ""); h.Get("Clear-Site-Data") != "" {
		t.Error("each time that the page is loaded anew something is cleared")
	}
	b.header = map[string]string{"Service-Worker": "script"}
	for _, path := range []string{"/worker.js", "/web/app.js", "/"} {
		if status, h, text := b.do("GET", path, ""); status != 200 || text != workerGone || !strings.HasPrefix(h.Get("Content-Type"), "text/javascript") {
			t.Errorf("a service worker at %s: %d %v %q", path, status, h, text)
		}
	}
}
