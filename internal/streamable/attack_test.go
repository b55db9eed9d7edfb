package streamable

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/wire"
)

// raw sends bytes on a connection of their own, and returns the status of each answer until the connection ends.
func (s *server) raw(text string) (statuses []int) {
	s.t.Helper()
	c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), Path))
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(mcptest.Patience))
	if _, err := io.WriteString(c, text); err != nil {
		return nil
	}
	c.(*net.TCPConn).CloseWrite()
	for r := bufio.NewReader(c); ; {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return statuses
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		statuses = append(statuses, resp.StatusCode)
	}
}

// What two readers of HTTP would read differently, so that one of them finds a second request in it, brings none to the server.
func TestNothingIsSmuggled(t *testing.T) {
	s := serve(t, Options{Limit: 1 << 20})
	body, h := modernCall("1", "smuggled", "}")
	head := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
	var fields strings.Builder
	for i := 0; i < len(h); i += 2 {
		fmt.Fprintf(&fields, "%s: %s\r\n", h[i], h[i+1])
	}
	inner := head + fields.String() + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
	if got := s.raw(inner); len(got) != 1 || got[0] != 200 || !s.hears("smuggled") {
		t.Fatalf("as it should be, it got %v", got)
	}
	for name, text := range map[string]string{
		"a length and chunks":        head + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", len(inner)+5) + inner,
		"two lengths":                head + fmt.Sprintf("Content-Length: 0\r\nContent-Length: %d\r\n\r\n", len(inner)) + inner,
		"a signed length":            head + "Content-Length: +0\r\n\r\n" + inner,
		"an encoding that is none":   head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + inner,
		"a blank before the colon":   head + "Content-Length : 0\r\n\r\n" + inner,
		"another host as the target": strings.Replace(inner, "POST /mcp", "POST http://evil.example/mcp", 1),
		"two hosts":                  strings.Replace(inner, "Host: localhost", "Host: localhost\r\nHost: evil.example", 1),
		"no host":                    strings.Replace(inner, "Host: localhost\r\n", "", 1),
		"chunks without an end":      head + fields.String() + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s", len(body)+100, body),
		"a bare line end":            strings.Replace(inner, "Host: localhost\r\n", "Host: localhost\nX: \r", 1),
		"a zero in a field":          strings.Replace(inner, "Host: localhost\r\n", "Host: localhost\r\nX: a\x00b\r\n", 1),
		"the preface of HTTP/2":      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + inner,
	} {
		s.mu.Lock()
		s.heard = nil
		s.mu.Unlock()
		for _, status := range s.raw(text) {
			if status < 400 {
				t.Errorf("%s: got %d", name, status)
			}
		}
		if s.hears("smuggled") {
			t.Errorf("%s: the server heard it", name)
		}
	}
}

// A stream is come back to in its own session and in no other; however often that is tried at once, one gets it, and nothing is left.
func TestStormsOfResumption(t *testing.T) {
	s := serve(t, Options{})
	mine, other := s.begin("2025-11-25"), s.begin("2025-11-25")
	release := make(chan struct{})
	s.answers(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		r.Caller.Notify(wire.NewNotification("notifications/message", []byte(`{"level":"info","data":"a secret"}`)))
		go func() {
			<-release
			reply(exchange.Result(r, []byte(`{"it":"is mine"}`)))
		}()
	})
	ctx, leave := context.WithCancel(t.Context())
	resp := s.request(ctx, "POST", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}}`, mine)
	events := newEventReader(resp.Body, 1<<20, nil)
	first, err := events.next()
	if err != nil {
		t.Fatal(err)
	}
	leave()
	for _, last := range []string{first.id, "0-0", "2-0", "-1", "99999999999999999999-1", "1-99999999", "1--1", "0x1-1", strings.Repeat("1", 5000)} {
		r := s.request(t.Context(), "GET", "", append(headers{headerLastEvent, last}, other...))
		if r.StatusCode != 200 {
			continue
		}
		go func() {
			time.Sleep(50 * time.Millisecond)
			r.Body.Close()
		}()
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), "secret") || strings.Contains(string(b), "mine") {
			t.Errorf("the other session got %s with %q", b, last)
		}
	}
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	var mu sync.Mutex
	answered := 0
	for range 200 {
		wg.Go(func() {
			r := s.request(t.Context(), "GET", "", append(headers{headerLastEvent, first.id}, mine...))
			b, _ := io.ReadAll(r.Body)
			r.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(string(b), "is mine") {
				answered++
			}
		})
	}
	s.until(func() bool { return s.served.requests.Load() > 200 })
	close(release)
	wg.Wait()
	if answered == 0 {
		r := s.request(t.Context(), "GET", "", append(headers{headerLastEvent, first.id}, mine...))
		b, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(b), "is mine") {
			t.Errorf("nobody got the answer; who came last got %s", b)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	s.until(func() bool { return runtime.NumGoroutine() <= before+10 })
}

// until waits for what a test looks at.
func (s *server) until(ok func() bool) {
	s.t.Helper()
	until(s.t, ok, func() string {
		buf := make([]byte, 1<<16)
		return fmt.Sprintf("it does not come: %s", buf[:runtime.Stack(buf, true)])
	})
}

// A session that is ended says nothing more on the streams that are still open, takes nothing more, and ends them.
func TestStreamsEndWithTheirSession(t *testing.T) {
	s := serve(t, Options{})
	sid := s.begin("2025-06-18")
	var caller exchange.Caller
	asked := make(chan struct{})
	s.answers(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Method() != "tools/call" {
			return
		}
		caller = r.Caller
		r.Caller.Notify(wire.NewNotification("notifications/message", []byte(`{"level":"info","data":"first"}`)))
		close(asked)
		context.AfterFunc(ctx, func() { reply(exchange.Cancelled) })
	})
	call := s.request(t.Context(), "POST", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}}`, sid)
	<-asked
	get := s.request(t.Context(), "GET", "", sid)
	if r := s.request(t.Context(), "DELETE", "", sid); r.StatusCode != 204 {
		t.Fatalf("ending it got %s", r.Status)
	}
	caller.Notify(wire.NewNotification("notifications/message", []byte(`{"level":"info","data":"later"}`)))
	for name, r := range map[string]*http.Response{"the call's": call, "its own": get} {
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), "later") {
			t.Errorf("%s stream said %s", name, b)
		}
	}
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if r := s.request(t.Context(), method, `{"jsonrpc":"2.0","id":6,"method":"ping"}`, sid); r.StatusCode != 404 {
			t.Errorf("%s to a session that ended got %s", method, r.Status)
		}
	}
}

// What is being written to a client when its session ends is counted once only as what does not wait any more.
func TestAStreamEndsWhileItIsWritten(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}}`
	for _, size := range []int{100, maxBacklog - 1000} { // the second one is more than a connection holds
		s := serve(t, Options{})
		sid := s.begin("2025-11-25")
		var caller exchange.Caller
		s.answers(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
			if r.Msg.Method() == "tools/call" {
				caller = r.Caller
				caller.Notify(wire.NewNotification("notifications/message", []byte(`{"data":"first"}`)))
				context.AfterFunc(ctx, func() { reply(exchange.Cancelled) })
			}
		})
		r := s.request(t.Context(), "POST", call, sid)
		lines := bufio.NewReader(r.Body)
		for line := ""; !strings.Contains(line, "first"); {
			var err error
			if line, err = lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		caller.Notify(wire.NewNotification("notifications/message", wire.SetMember(nil, wire.Quote(strings.Repeat("x", size)), "data")))
		if r := s.request(t.Context(), "DELETE", "", sid); r.StatusCode != 204 {
			t.Fatalf("ending it got %s", r.Status)
		}
		io.Copy(io.Discard, lines)
		s.stop() // which looks at what waits
	}
}

// What is put on a stream between the last of what a session kept being let go of and its end is not kept.
func TestASessionKeepsNothingBehindItsEnd(t *testing.T) {
	s := serve(t, Options{})
	sid := s.begin("2025-11-25")
	s.served.mu.Lock()
	sess := s.served.sessions[sid[1]]
	s.served.mu.Unlock()
	said := wire.NewNotification("notifications/message", []byte(`{"data":"x"}`))
	other := sess.stream()
	other.begin()
	other.put(said, false)
	other.mu.Lock() // the end waits here to take from the stream what was kept of it
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.served.end(sess, errDeleted)
	}()
	s.until(func() bool {
		sess.mu.Lock()
		defer sess.mu.Unlock()
		return len(sess.kept) == 0
	})
	sess.own.put(said, false)
	other.mu.Unlock()
	<-ended
	if n := s.served.kept.used.Load(); n != 0 {
		t.Errorf("%d bytes are kept for a session that has ended", n)
	}
}

// A session whose server is lost before the session is there does not begin.
func TestASessionThatIsLostAsItIsMade(t *testing.T) {
	s := serve(t, Options{})
	made := s.served.opt.Session
	s.served.opt.Session = func(lost func(error)) (exchange.Handler, func(), error) {
		lost(errors.New("it has ended"))
		return made(lost)
	}
	r := s.request(t.Context(), "POST", fmt.Sprintf(initialize, "2025-11-25"), nil)
	if left := s.served.all(); len(left) != 0 || r.StatusCode != 503 {
		t.Errorf("%d sessions are left, and who began one got %s", len(left), r.Status)
	}
}

// Whoever waits for an answer when its session ends gets what there is: the answer, where it was given, and else that there is no such
// session any more.
func TestACallWhoseSessionEnds(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}}`
	s := serve(t, Options{})
	for i := range 100 {
		sid := s.begin("2025-11-25")
		s.answers(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
			if r.Msg.Method() == "tools/call" { // as a process that dies does
				reply(exchange.Fail(r, wire.CodeInternal, "the server has ended", nil))
				s.lost(errors.New("it has ended"))
			}
		})
		if status, text := s.post(call, sid); status != 200 || !strings.Contains(text, "the server has ended") {
			t.Fatalf("call %d of a session whose server ends got %d %q", i, status, text)
		}
	}
	for tries := 0; ; tries++ {
		sid, asked := s.begin("2025-11-25"), make(chan struct{})
		s.answers(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
			if r.Msg.Method() == "tools/call" {
				close(asked)
				context.AfterFunc(ctx, func() { reply(exchange.Cancelled) })
			}
		})
		var deleted sync.WaitGroup
		deleted.Go(func() {
			<-asked
			s.request(t.Context(), "DELETE", "", sid)
		})
		status, text := s.post(call, sid)
		deleted.Wait()
		if status == 200 && tries < 10 { // it was ended so late that a stream had begun
			continue
		}
		if status != 404 || !strings.Contains(text, `"id":5`) {
			t.Errorf("a call of a session that its client ended got %d %q", status, text)
		}
		return
	}
}

// An event that was not sent cannot be come back to: who tries does not take the place of the one that waits for the answer.
func TestAStreamThatHasNotBegunIsNotTaken(t *testing.T) {
	s := serve(t, Options{})
	for tries := 0; ; tries++ {
		sid := s.begin("2025-11-25")
		asked, finish := make(chan struct{}), make(chan struct{})
		s.answers(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
			if r.Msg.Method() == "tools/call" {
				close(asked)
				go func() {
					<-finish
					reply(exchange.Result(r, []byte(`{"it":"is mine"}`)))
				}()
			}
		})
		var taken []string
		go func() {
			defer close(finish)
			<-asked
			for _, last := range []string{"2-0", "2-1"} {
				if r := s.request(t.Context(), "GET", "", append(headers{headerLastEvent, last}, sid...)); r.StatusCode != 400 {
					taken = append(taken, last+": "+r.Status)
					r.Body.Close()
				}
			}
		}()
		status, text := s.post(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}}`, sid)
		<-finish
		if len(taken) > 0 && tries < 10 { // it was come back to so late that it had begun
			continue
		}
		if len(taken) > 0 || status != 200 || !strings.Contains(text, "is mine") {
			t.Errorf("the call got %d %q, and coming back got %q", status, text, taken)
		}
		return
	}
}

// What is longer than what may wait is told all the same to a client that reads.
func TestALongNotificationIsTold(t *testing.T) {
	s := serve(t, Options{})
	sid := s.begin("2025-11-25")
	s.answers(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Method() == "tools/call" {
			r.Caller.Notify(wire.NewNotification("notifications/message", wire.SetMember(nil, wire.Quote(strings.Repeat("x", maxBacklog+1)), "data")))
			reply(exchange.Result(r, []byte(`{"it":"is done"}`)))
		}
	})
	_, text := s.post(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}}`, sid)
	if len(text) < maxBacklog || !strings.Contains(text, "is done") {
		t.Errorf("the stream said %d bytes", len(text))
	}
}

// Answers that many clients do not read are not kept without an end: a long one for which there is no room is dropped, and its client
// is told so.
func TestAnswersThatNobodyReads(t *testing.T) {
	s := serve(t, Options{})
	s.served.unread.limit = 4 * maxSpared
	sid := s.begin("2025-11-25")
	const unread = `{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"rootbound: there was an answer, which was dropped: clients do not read what they asked for","data":{"reason":"unread"}}}`
	size := 0
	s.answers(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		reply(exchange.Result(r, wire.SetMember(nil, wire.Quote(strings.Repeat("x", size)), "text")))
	})
	for _, tt := range []struct {
		waiting, size int
		dropped       bool
	}{{0, 2 * maxSpared, false}, {3 * maxSpared, 2 * maxSpared, true}, {0, 5 * maxSpared, true}, {4 * maxSpared, maxSpared / 2, false}} {
		size = tt.size
		s.served.unread.used.Add(int64(tt.waiting)) // of others
		_, text := s.post(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}}`, sid)
		s.served.unread.used.Add(-int64(tt.waiting))
		if dropped := text == unread; dropped != tt.dropped || !strings.Contains(text, `"id":5`) {
			t.Errorf("%+v: got %.300s", tt, text)
		}
	}
}
