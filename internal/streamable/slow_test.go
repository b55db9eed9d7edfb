package streamable

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// pipes is a listener whose connections are in this process, so that time can be made to pass.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.done); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// inBubble runs f with a server in a bubble of time, and with what connects to it.
func inBubble(t *testing.T, h exchange.Handler, f func(t *testing.T, s *Server, dial func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		l := pipes{make(chan net.Conn), make(chan struct{})}
		s := New(l, Options{Stateless: h, Session: func(func(error)) (exchange.Handler, func(), error) { return h, func() {}, nil }})
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error)
		go func() { served <- s.Serve(ctx, l) }()
		f(t, s, func() net.Conn {
			client, server := net.Pipe()
			l.conns <- server
			return client
		})
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// ends waits for the end of a connection, or for an answer, and says how long that took.
func ends(t *testing.T, c net.Conn) (string, time.Duration) {
	t.Helper()
	began := time.Now()
	c.SetReadDeadline(began.Add(time.Hour))
	b, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the connection did not end: %v", err)
	}
	return string(b), time.Since(began)
}

func TestWhoSendsSlowlyIsNotWaitedFor(t *testing.T) {
	h := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {})
	head := "POST " + Path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	inBubble(t, h, func(t *testing.T, _ *Server, dial func() net.Conn) {
		for _, tt := range []struct {
			name, sends, each string // each is sent every second after it
			most              time.Duration
		}{
			{"nothing", "", "", headerTime},
			{"half a header", "POST /mcp HT", "", headerTime},
			{"a header, letter by letter", head, "X", headerTime},
			{"no body", head + "Content-Length: 100\r\n\r\n", "", bodyTime},
			{"a body, letter by letter", head + "Content-Length: 1000000\r\n\r\n{", " ", bodyTime + time.Second},
			{"a body in pieces, letter by letter", head + "Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n", bodyTime + time.Second},
			{"a body that is not wanted", "POST /else HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n", "", bodyTime + quietTime},
		} {
			c := dial()
			go func() {
				io.WriteString(c, tt.sends)
				for tt.each != "" {
					time.Sleep(time.Second)
					if _, err := io.WriteString(c, tt.each); err != nil {
						return
					}
				}
			}()
			if said, took := ends(t, c); took > tt.most {
				t.Errorf("%s: it was waited for %v, and said %q", tt.name, took, said)
			}
			c.Close()
		}
	})
}

func TestAConnectionThatAsksNothingEnds(t *testing.T) {
	h := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {})
	inBubble(t, h, func(t *testing.T, _ *Server, dial func() net.Conn) {
		c := dial()
		io.WriteString(c, "DELETE /else HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if said, took := ends(t, c); !strings.Contains(said, " 404 ") || took > quietTime+time.Second {
			t.Errorf("it ended after %v with %q", took, said)
		}
	})
}

// A call that takes long gets an event stream, with a comment now and then; a client that does not read that is given up.
func TestAStreamIsKeptAlive(t *testing.T) {
	var ended chan error // of the bubble
	h := exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Kind() == wire.Request {
			context.AfterFunc(ctx, func() {
				ended <- context.Cause(ctx)
				reply(exchange.Cancelled)
			})
		}
	})
	body, hs := modernCall("1", "x", "}")
	inBubble(t, h, func(t *testing.T, _ *Server, dial func() net.Conn) {
		ended = make(chan error, 1)
		c := dial()
		req, err := http.NewRequest("POST", "http://localhost"+Path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(hs); i += 2 {
			req.Header.Set(hs[i], hs[i+1])
		}
		go req.Write(c)
		began := time.Now()
		resp, err := http.ReadResponse(bufio.NewReader(c), req)
		if err != nil || resp.Header.Get("Content-Type") != "text/event-stream" || time.Since(began) > 2*alone {
			t.Fatalf("after %v came %v, %v", time.Since(began), resp, err)
		}
		b := make([]byte, len(keepAlive))
		for range 3 {
			if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != keepAlive {
				t.Fatalf("got %q, %v", b, err)
			}
		}
		if took := time.Since(began); took > 4*keepAliveTime {
			t.Errorf("three comments took %v", took)
		}
		began = time.Now()
		if err := <-ended; !errors.Is(err, exchange.ErrCancelled) || time.Since(began) > keepAliveTime+2*writeTime {
			t.Errorf("a client that did not read was given up after %v: %v", time.Since(began), err)
		}
		c.Close()
	})
}

func TestSessionsEndByThemselves(t *testing.T) {
	h := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Method() == "initialize" {
			reply(exchange.Result(r, []byte(`{"protocolVersion":"2025-11-25"}`)))
		}
	})
	inBubble(t, h, func(t *testing.T, s *Server, dial func() net.Conn) {
		c := dial()
		defer c.Close()
		body := strings.Replace(initialize, "%q", `"2025-11-25"`, 1)
		req, err := http.NewRequest("POST", "http://localhost"+Path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		go req.Write(c)
		resp, err := http.ReadResponse(bufio.NewReader(c), req)
		if err != nil || resp.Header.Get(headerSession) == "" {
			t.Fatalf("got %v, %v", resp, err)
		}
		io.Copy(io.Discard, resp.Body)
		if time.Sleep(defaultIdle - time.Minute); len(s.all()) != 1 {
			t.Error("the session ended too early")
		}
		if time.Sleep(2 * time.Minute); len(s.all()) != 0 {
			t.Error("the session did not end")
		}
	})
}

// Who does not read makes the one wait that produces, for a while, and then is told no more; what it asked for is answered all the
// same, if it reads on.
func TestAClientThatDoesNotReadIsNotToldEverything(t *testing.T) {
	const floods = 3 * maxBacklog / (64 << 10)
	large := wire.NewNotification("notifications/message", wire.SetMember(nil, wire.Quote(strings.Repeat("x", 64<<10)), "data"))
	var flooded chan time.Duration // of the bubble
	h := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		switch r.Msg.Method() {
		case "initialize":
			reply(exchange.Result(r, []byte(`{"protocolVersion":"2025-06-18"}`)))
		case "tools/call":
			go func() {
				began := time.Now()
				for range floods {
					r.Caller.Notify(large)
				}
				reply(exchange.Result(r, []byte(`{"last":true}`)))
				flooded <- time.Since(began)
			}()
		}
	})
	inBubble(t, h, func(t *testing.T, s *Server, dial func() net.Conn) {
		flooded = make(chan time.Duration, 1)
		c := dial()
		defer c.Close()
		in := bufio.NewReader(c)
		post := func(body, sid string) *http.Response {
			req, err := http.NewRequest("POST", "http://localhost"+Path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			if sid != "" {
				req.Header.Set(headerSession, sid)
			}
			go req.Write(c)
			resp, err := http.ReadResponse(in, req)
			if err != nil {
				t.Fatal(err)
			}
			return resp
		}
		resp := post(strings.Replace(initialize, "%q", `"2025-06-18"`, 1), "")
		sid := resp.Header.Get(headerSession)
		io.Copy(io.Discard, resp.Body)
		resp = post(`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`, sid)
		if took := <-flooded; took < patience || took > 2*patience {
			t.Errorf("the flood took %v", took)
		}
		events := newEventReader(resp.Body, 1<<20, nil)
		for n := 0; ; n++ {
			e, err := events.next()
			if err != nil {
				t.Fatalf("after %d events: %v", n, err)
			}
			if strings.Contains(string(e.data), `"last":true`) {
				if n < 10 || n > 2*maxBacklog/(64<<10) {
					t.Errorf("%d of %d were told", n, floods)
				}
				break
			}
		}
	})
}
