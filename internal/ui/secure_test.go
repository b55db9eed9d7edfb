package ui

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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
