package streamable

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/wire"
)

// old is a server in the way of revision 2024-11-05 that does as a test says, and a link to it. Each of its streams gives a place of its own
// to post to, and ends when its channel is closed; what is posted is answered on that stream, but for calls.
type old struct {
	*site
	l       *Link
	streams chan chan struct{} // of those that were opened, each to end it
	again   chan struct{}
	said    chan string
}

func newOld(t *testing.T, took func(o *old, m message), told func(o *old, line string)) *old {
	o := &old{streams: make(chan chan struct{}, 10), again: make(chan struct{}, 10), said: make(chan string, 100)}
	outs := make(chan chan string, 10)
	var posts [10]chan string
	for i := range posts {
		posts[i] = make(chan string, 10)
		outs <- posts[i]
	}
	n := make(chan int, 1)
	n <- 0
	o.site = newSite(t, handlers{
		"GET": func(w http.ResponseWriter, r *http.Request, m message) {
			i := <-n
			n <- i + 1
			over := make(chan struct{})
			sse(fmt.Sprintf("event: endpoint|data: /messages/%d||", i))(w, r, m)
			o.streams <- over
			for {
				select {
				case text := <-posts[i]:
					sse("data: "+text+"||")(w, r, m)
				case <-over:
					return
				case <-r.Context().Done():
					return
				}
			}
		},
		"POST": func(w http.ResponseWriter, r *http.Request, m message) {
			var i int
			if _, err := fmt.Sscanf(r.URL.Path, "/messages/%d", &i); err != nil {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			if took != nil {
				took(o, m)
			}
			w.WriteHeader(http.StatusAccepted)
			if m.Method == "initialize" {
				posts[i] <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2024-11-05"}}`, m.ID)
			} else if m.Method == "ping" {
				posts[i] <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
			}
		},
	})
	u, err := url.Parse(o.URL + "/sse")
	if err != nil {
		t.Fatal(err)
	}
	o.l = Dial(DialOptions{URL: u, Backoff: time.Millisecond, Again: func() { o.again <- struct{}{} }, Report: t.Logf})
	t.Cleanup(func() { o.l.Close() })
	go o.l.Receive(func(m *wire.Message, _ *wire.Refusal, _ string) {
		if told != nil {
			told(o, string(m.Bytes()))
		}
		o.said <- string(m.Bytes())
	})
	return o
}

func (o *old) send(line string) {
	o.t.Helper()
	m, err := wire.Scan([]byte(line), wire.Strict)
	if err != nil {
		o.t.Fatal(err)
	}
	if err := o.l.Send(&m); err != nil {
		o.t.Fatal(err)
	}
}

func (o *old) want(parts ...string) {
	o.t.Helper()
	select {
	case line := <-o.said:
		for _, part := range parts {
			if !strings.Contains(line, part) {
				o.t.Fatalf("got %s, want %q in it", line, part)
			}
		}
	case <-time.After(mcptest.Patience):
		o.t.Fatalf("nothing came, want %q", parts)
	}
}

func wait[T any](t *testing.T, c chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(mcptest.Patience):
		t.Fatal("it does not come: " + what)
	}
	return v
}

// begin makes a handshake up to its answer, and returns what ends the stream of it.
func (o *old) begin(id int) (stream chan struct{}) {
	o.t.Helper()
	o.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{}}`, id))
	o.want(fmt.Sprintf(`"id":%d,"result"`, id))
	return wait(o.t, o.streams, "the stream")
}

const (
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	ping        = `{"jsonrpc":"2.0","id":%d,"method":"ping"}`
	call        = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a"}}`
)

// over waits until the link knows that its stream has ended.
func (o *old) over() {
	for deadline := time.Now().Add(mcptest.Patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		o.l.mu.Lock()
		gone := o.l.session.endpoint == nil
		o.l.mu.Unlock()
		if gone {
			return
		}
	}
	o.t.Error("the link does not see that its stream has ended")
}

// resume makes a new handshake, which the link asked for.
func (o *old) resume() {
	o.t.Helper()
	wait(o.t, o.again, "that the handshake is to be said again")
	o.begin(100)
	o.send(initialized)
}

// A stream that ends while its handshake does is a session that is forgotten: the next request begins another one.
func TestAStreamOfTheOldWayThatEndsInItsHandshake(t *testing.T) {
	t.Parallel()
	t.Run("before it is complete", func(t *testing.T) {
		t.Parallel()
		o := newOld(t, nil, nil)
		close(o.begin(0))
		o.over()
		o.send(initialized)
		o.send(fmt.Sprintf(ping, 1))
		o.resume()
		o.want(`"id":1,"result"`)
	})
	t.Run("while it is completed", func(t *testing.T) {
		t.Parallel()
		var stream chan struct{}
		o := newOld(t, func(o *old, m message) {
			if m.Method == "notifications/initialized" && stream != nil {
				close(stream)
				stream = nil
				o.over()
			}
		}, nil)
		stream = o.begin(0)
		o.send(initialized)
		o.send(fmt.Sprintf(ping, 1))
		o.resume()
		o.want(`"id":1,"result"`)
	})
	t.Run("when it is said again", func(t *testing.T) {
		t.Parallel()
		o := newOld(t, nil, nil)
		stream := o.begin(0)
		o.send(initialized)
		close(stream)
		wait(t, o.again, "that the handshake is to be said again")
		close(o.begin(100))
		o.over()
		o.send(fmt.Sprintf(ping, 1)) // which waits for the handshake
		o.send(initialized)
		o.resume()
		o.want(`"id":1,"result"`)
	})
}

// What is asked while what was open fails with its stream is not sent for that one: nothing would answer it.
func TestARequestWhileAStreamOfTheOldWayEnds(t *testing.T) {
	t.Parallel()
	o := newOld(t, nil, func(o *old, line string) {
		if !strings.Contains(line, `"reason":"broken"`) {
			return
		}
		o.send(fmt.Sprintf(call, 2))
		for len(o.again) == 0 && len(o.requests("POST tools/call")) < 2 {
			time.Sleep(time.Millisecond)
		}
	})
	stream := o.begin(0)
	o.send(initialized)
	o.send(fmt.Sprintf(call, 1))
	until(t, func() bool { return len(o.requests("POST tools/call")) > 0 }, func() string { return "no call" })
	close(stream)
	o.want(`"id":1`, `"reason":"broken"`)
	if n := len(o.requests("POST tools/call")); n != 1 {
		t.Errorf("%d calls were made; nobody answers the last one", n)
	}
}

// The end of a stream is that of what was asked on it, and of no newer one.
func TestAStreamOfTheOldWayThatEndsLate(t *testing.T) {
	t.Parallel()
	calls := make(chan message, 1)
	o := newOld(t, func(_ *old, m message) {
		if m.Method == "tools/call" {
			calls <- m
		}
	}, nil)
	o.begin(0)
	o.l.mu.Lock()
	first := o.l.session
	o.l.mu.Unlock()
	second := o.begin(1) // its client begins anew
	o.send(initialized)
	o.send(fmt.Sprintf(call, 2))
	wait(t, calls, "the call")
	ended := make(chan struct{})
	o.l.spawn(func() {
		defer close(ended)
		o.l.oldEnded(first, io.EOF)
	})
	wait(t, ended, "the end of the first stream")
	if len(o.said) > 0 {
		t.Errorf("the call of the newer session got %s", <-o.said)
	}
	close(second)
	o.want(`"id":2`, `"reason":"broken"`)
}
