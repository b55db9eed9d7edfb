package streamable

import (
	"bufio"
	"bytes"
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
	"weak"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/wire"
)

// server is a server on a socket of its own, and what its handlers are asked. Answer, if set, answers in place of the default:
// the request as it came.
type server struct {
	t      *testing.T
	url    string
	served *Server
	stop   func()

	mu       sync.Mutex
	answer   func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome))
	heard    []string
	sessions int
	ended    int
	lost     func(error) // of the last session
}

func serve(t *testing.T, o Options) *server {
	t.Helper()
	s := &server{t: t}
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Stateless = exchange.HandlerFunc(s.handle)
	o.Session = func(lost func(error)) (exchange.Handler, func(), error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sessions++
		s.lost = lost
		return exchange.HandlerFunc(s.handle), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ended++
		}, nil
	}
	o.Report = func(f string, v ...any) { t.Logf(f, v...) }
	s.url = "http://" + l.Addr().String() + Path
	s.served = New(l, o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.served.Serve(ctx, l) }()
	var once sync.Once
	s.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("serving: %v", err)
			}
			held := func() [3]int64 {
				return [3]int64{s.served.unread.used.Load(), s.served.kept.used.Load(), s.served.bodies.used.Load()}
			}
			for deadline := time.Now().Add(mcptest.Patience); held() != [3]int64{}; time.Sleep(time.Millisecond) { // until the last who wrote has seen it
				if time.Now().After(deadline) {
					t.Errorf("for nobody there are bytes that wait, are kept and are being read: %d", held())
					break
				}
			}
			if s.sessions != s.ended {
				t.Errorf("%d sessions began and %d ended", s.sessions, s.ended)
			}
		})
	}
	t.Cleanup(s.stop)
	return s
}

func (s *server) handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	s.mu.Lock()
	s.heard = append(s.heard, string(r.Msg.Bytes()))
	answer := s.answer
	s.mu.Unlock()
	switch {
	case r.Msg.Kind() != wire.Request:
	case r.Msg.Method() == exchange.Listen && r.Era == exchange.Legacy:
		context.AfterFunc(ctx, func() { reply(exchange.Cancelled) })
		if answer != nil {
			answer(ctx, r, func(exchange.Outcome) {})
		}
	case r.Msg.Method() == "initialize":
		revision, _ := wire.Get(r.Msg.Params(), "protocolVersion")
		if len(revision) == 0 {
			reply(exchange.Fail(r, wire.CodeInvalidParams, "no revision", nil))
			return
		}
		reply(exchange.Result(r, wire.SetMember(nil, revision, "protocolVersion")))
	case answer != nil:
		answer(ctx, r, reply)
	default:
		reply(exchange.Result(r, wire.SetMember(nil, r.Msg.Bytes(), "got")))
	}
}

func (s *server) hears(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(strings.Join(s.heard, "\n"), text)
}

// answers says how requests are answered from now on.
func (s *server) answers(f func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome))) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// headers are pairs of a name and a value; a value "-" takes the header out.
type headers []string

func (s *server) request(ctx context.Context, method, body string, h headers) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, s.url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(h); i += 2 {
		switch {
		case h[i] == "Host":
			req.Host = h[i+1]
		case h[i+1] == "-":
			req.Header.Del(h[i])
		default:
			req.Header.Add(h[i], h[i+1])
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// post posts and returns the status and the whole answer.
func (s *server) post(body string, h headers) (int, string) {
	s.t.Helper()
	resp := s.request(s.t.Context(), "POST", body, h)
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"roots":{},"elicitation":{}}}}`

// begin begins a session and returns the header that names it.
func (s *server) begin(revision string) headers {
	s.t.Helper()
	resp := s.request(s.t.Context(), "POST", fmt.Sprintf(initialize, revision), nil)
	io.Copy(io.Discard, resp.Body)
	id := resp.Header.Get(headerSession)
	if resp.StatusCode != 200 || len(id) < 20 {
		s.t.Fatalf("initialize got %s, session %q", resp.Status, id)
	}
	return headers{headerSession, id}
}

// modernCall is a call of the stateless era, with its headers.
func modernCall(id, name, rest string) (string, headers) {
	body := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{},"elicitation":{}}` + rest + `}}`
	return body, headers{headerVersion, "2026-07-28", headerMethod, "tools/call", headerName, name}
}

func TestWhatIsRefused(t *testing.T) {
	s := serve(t, Options{Limit: 1000})
	sid := s.begin("2025-06-18")
	ping := `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	call, modern := modernCall("7", "x", "}")
	discover := func(version, caps string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"server/discover","params":{"_meta":{` + version + caps + `}}}`
	}
	const version, caps = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `,"io.modelcontextprotocol/clientCapabilities":{}`
	for _, tt := range []struct {
		name, method, body string
		h                  headers
		status             int
		want               string
	}{
		{"another method", "PUT", ping, nil, 405, ""},
		{"options", "OPTIONS", "", headers{"Origin", "http://localhost:1"}, 405, ""},
		{"host", "POST", ping, headers{"Host", "evil.example:80"}, 403, "evil.example"},
		{"host with a path", "POST", ping, headers{"Host", "localhost/x"}, 403, ""},
		{"another address", "POST", ping, headers{"Host", "10.0.0.1"}, 403, ""},
		{"origin", "POST", ping, headers{"Origin", "http://evil.example"}, 403, "evil.example"},
		{"no origin", "POST", ping, headers{"Origin", "null"}, 403, "null"},
		{"two origins", "POST", ping, headers{"Origin", "http://localhost", "Origin", "http://evil.example"}, 403, ""},
		{"origin of a file", "GET", "", headers{"Origin", "file://localhost"}, 403, ""},
		{"content type", "POST", ping, headers{"Content-Type", "-"}, 415, ""},
		{"text", "POST", ping, headers{"Content-Type", "-", "Content-Type", "text/plain"}, 415, ""},
		{"another charset", "POST", ping, headers{"Content-Type", "-", "Content-Type", "application/json; charset=latin1"}, 415, ""},
		{"accept", "POST", ping, headers{"Accept", "-", "Accept", "application/json"}, 406, ""},
		{"accept of a get", "GET", "", append(headers{"Accept", "-", "Accept", "application/json"}, sid...), 406, ""},
		{"no JSON", "POST", "{", nil, 400, `"code":-32700`},
		{"nothing", "POST", "", nil, 400, `"code":-32700`},
		{"a line end in a string", "POST", "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"pi\nng\"}", sid, 400, `"code":-32700`},
		{"twice a name", "POST", `{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}`, sid, 400, `"code":-32600`},
		{"too long", "POST", `{"jsonrpc":"2.0","id":7,"method":"` + strings.Repeat("x", 1000) + `"}`, sid, 413, "1000"},

		{"no session", "POST", ping, nil, 400, headerSession},
		{"no session for a stream", "GET", "", nil, 400, headerSession},
		{"no such session", "POST", ping, headers{headerSession, "x"}, 404, ""},
		{"no such session to end", "DELETE", "", headers{headerSession, "x"}, 404, ""},
		{"a revision that there is not", "POST", ping, append(headers{headerVersion, "1900-01-01"}, sid...), 400, headerVersion},
		{"two sessions", "POST", ping, append(headers{headerSession, "x"}, sid...), 400, headerSession},
		{"no batches here", "POST", "[" + ping + "]", sid, 400, "batches"},
		{"no such event", "GET", "", append(headers{headerLastEvent, "7-1"}, sid...), 400, "7-1"},
		{"no event", "GET", "", append(headers{headerLastEvent, "x"}, sid...), 400, ""},
		{"a handshake that fails", "POST", `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}`, nil, 200, "no revision"},

		{"a stream of the stateless era", "GET", "", headers{headerVersion, "2026-07-28"}, 405, ""},
		{"a session of the stateless era", "DELETE", "", headers{headerVersion, "2026-07-28"}, 405, ""},
		{"version missing", "POST", call, modern[2:], 400, `"code":-32020`},
		{"version differs", "POST", call, append(headers{headerVersion, "2027-01-01"}, modern[2:]...), 400, `"code":-32020`},
		{"version twice", "POST", call, append(headers{headerVersion, "2025-11-25"}, modern...), 400, `"code":-32020`},
		{"method missing", "POST", call, append(headers{headerMethod, "-"}, modern[:2]...), 400, `"code":-32020`},
		{"method differs", "POST", call, append(headers{headerMethod, "tools/list"}, modern[:2]...), 400, `"code":-32020`},
		{"name missing", "POST", call, modern[:4], 400, `"code":-32020`},
		{"name differs", "POST", call, append(headers{headerName, "y"}, modern[:4]...), 400, `"code":-32020`},
		{"name in wrong base64", "POST", call, append(headers{headerName, "=?base64?!?="}, modern[:4]...), 400, `"code":-32020`},
		{"a name too much", "POST", discover(version, caps), headers{headerVersion, "2026-07-28", headerMethod, "server/discover", headerName, "y"}, 400, `"code":-32020`},
		{"no capabilities", "POST", discover(version, ""), headers{headerVersion, "2026-07-28", headerMethod, "server/discover"}, 400, `"code":-32602`},
		{"no _meta", "POST", discover("", ""), headers{headerVersion, "2026-07-28", headerMethod, "server/discover"}, 400, `"code":-32602`},
		{"an older revision", "POST", discover(`"io.modelcontextprotocol/protocolVersion":"2025-11-25"`, caps), headers{headerVersion, "2025-11-25", headerMethod, "server/discover"}, 400, `"supported":["2026-07-28"]`},
		{"no revision", "POST", discover(`"io.modelcontextprotocol/protocolVersion":"1900-01-01"`, caps), headers{headerVersion, "1900-01-01", headerMethod, "server/discover"}, 400, `"code":-32022`},
		{"a handshake of the stateless era", "POST", `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2026-07-28","_meta":{` + version + caps + `}}}`, headers{headerVersion, "2026-07-28", headerMethod, "initialize"}, 404, `"code":-32601`},
		{"what was taken out", "POST", `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"_meta":{` + version + caps + `}}}`, headers{headerVersion, "2026-07-28", headerMethod, "ping"}, 404, `"code":-32601`},
	} {
		resp := s.request(t.Context(), tt.method, tt.body, tt.h)
		b, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != tt.status || !strings.Contains(string(b), tt.want) {
			t.Errorf("%s: got %s %s", tt.name, resp.Status, b)
		}
		if strings.Contains(tt.want, "code") && strings.Contains(tt.body, `"id":7,"method"`) && !strings.Contains(string(b), `"id":7`) && !strings.Contains(tt.name, "line end") {
			t.Errorf("%s: the error has not the request's id: %s", tt.name, b)
		}
	}
	if n := len(s.served.all()); n != 1 {
		t.Errorf("%d sessions are left, want 1", n)
	}
	s.url = strings.TrimSuffix(s.url, Path)
	if status, _ := s.post(ping, nil); status != 404 {
		t.Errorf("another path got %d", status)
	}
}

func TestNamesOfThisServer(t *testing.T) {
	for _, tt := range []struct {
		listen, host string
		want         bool
	}{
		{"127.0.0.1:1", "localhost:99", true}, {"127.0.0.1:1", "LOCALHOST", true}, {"127.0.0.1:1", "[::1]:1", true}, {"127.0.0.1:1", "127.0.0.2", true},
		{"127.0.0.1:1", "mine.example", true}, {"127.0.0.1:1", "mine.example.", true}, {"127.0.0.1:1", "10.1.1.1", false}, {"127.0.0.1:1", "", false},
		{"127.0.0.1:1", "localhost.evil.example", false}, {"127.0.0.1:1", "user@localhost", false}, {"127.0.0.1:1", "[::1%25lo]", false}, {"127.0.0.1:1", "2130706433", false},
		{"10.1.1.1:1", "10.1.1.1", true}, {"10.1.1.1:1", "localhost", false}, {"10.1.1.1:1", "127.0.0.1", false}, {"0.0.0.0:1", "10.1.1.1", true}, {"0.0.0.0:1", "evil.example", false},
	} {
		addr, err := net.ResolveTCPAddr("tcp", tt.listen)
		if err != nil {
			t.Fatal(err)
		}
		err = newHosts(addr, []string{"Mine.example"}).check(&http.Request{Host: tt.host})
		if (err == nil) != tt.want {
			t.Errorf("on %s, host %q: %v", tt.listen, tt.host, err)
		}
	}
}

// The host that was said last is kept, and not the request that said it, with all that hangs on that.
func TestNoRequestIsKept(t *testing.T) {
	h := newHosts(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, nil)
	r := &http.Request{Host: "localhost"}
	kept := weak.Make(r)
	if err := h.check(r); err != nil {
		t.Fatal(err)
	}
	r = nil
	runtime.GC()
	if kept.Value() != nil {
		t.Error("the request is kept")
	}
	runtime.KeepAlive(h)
}

func TestToken(t *testing.T) {
	s := serve(t, Options{Token: "secret-0123456789"})
	body := fmt.Sprintf(initialize, "2025-11-25")
	for auth, want := range map[string]int{
		"-": 401, "Bearer": 401, "Bearer secret": 401, "Basic secret-0123456789": 401, "Bearer secret-0123456789x": 401,
		"Bearer secret-0123456789": 200, "bearer  secret-0123456789": 200,
	} {
		if got, text := s.post(body, headers{"Authorization", auth}); got != want {
			t.Errorf("%q got %d %s", auth, got, text)
		}
	}
	resp := s.request(t.Context(), "GET", "", nil)
	if resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("got %s, %q", resp.Status, resp.Header)
	}
}

func TestASessionOfTheHandshakeEra(t *testing.T) {
	s := serve(t, Options{})
	s.answers(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		switch r.Msg.Method() {
		case "tools/call": // asks, and answers with what it heard
			r.Caller.Notify(wire.NewNotification("notifications/progress", []byte(`{"progressToken":"p","progress":1}`)))
			r.Caller.Ask(ctx, []exchange.Question{{Method: "elicitation/create", Params: []byte(`{"message":"?"}`)}}, func(a []exchange.Answer) {
				reply(exchange.Result(r, a[0].Result))
			})
		case exchange.Listen:
			r.Caller.Notify(wire.NewNotification("notifications/tools/list_changed", nil))
		}
	})
	sid := s.begin("2025-06-18")
	if status, text := s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, sid); status != 202 || text != "" {
		t.Errorf("a notification got %d %q", status, text)
	}

	// What belongs to no request waits for the session's own stream, and a second such stream takes the place of the first.
	own := s.request(t.Context(), "GET", "", sid)
	events := newEventReader(own.Body, 1<<20, nil)
	e, err := events.next()
	if err != nil || e.hasID != true || !strings.Contains(string(e.data), "list_changed") {
		t.Fatalf("the stream began with %+v, %v", e, err)
	}
	again := s.request(t.Context(), "GET", "", sid)
	if _, err := events.next(); !errors.Is(err, io.EOF) {
		t.Errorf("the first stream got %v", err)
	}
	if again.Header.Get("Content-Type") != "text/event-stream" || again.Header.Get("X-Accel-Buffering") != "no" {
		t.Errorf("got %q", again.Header)
	}

	// A call's own stream brings its progress, its question, and its answer, in this order.
	resp := s.request(t.Context(), "POST", `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{}}`, sid)
	events = newEventReader(resp.Body, 1<<20, nil)
	if e, _ := events.next(); !strings.Contains(string(e.data), "notifications/progress") {
		t.Fatalf("got %s", e.data)
	}
	e, _ = events.next()
	q, err := wire.Scan(e.data, wire.Strict)
	if err != nil || q.Method() != "elicitation/create" {
		t.Fatalf("got %s", e.data)
	}
	if status, text := s.post(fmt.Sprintf("{\"jsonrpc\":\"2.0\",\n\"id\":%s,\"result\":{\"action\":\"accept\"}}", q.ID()), sid); status != 202 || text != "" {
		t.Errorf("an answer got %d %q", status, text)
	}
	if e, _ = events.next(); string(e.data) != `{"jsonrpc":"2.0","id":"c","result":{"action":"accept"}}` {
		t.Errorf("got %s", e.data)
	}
	if _, err := events.next(); !errors.Is(err, io.EOF) {
		t.Errorf("behind the answer came %v", err)
	}

	if resp := s.request(t.Context(), "DELETE", "", sid); resp.StatusCode != 204 {
		t.Errorf("the end got %s", resp.Status)
	}
	if status, _ := s.post(`{"jsonrpc":"2.0","id":3,"method":"ping"}`, sid); status != 404 {
		t.Errorf("behind the end came %d", status)
	}
	if b, err := io.ReadAll(again.Body); err != nil {
		t.Errorf("the stream of the session ended with %q, %v", b, err)
	}
}

func TestBatches(t *testing.T) {
	s := serve(t, Options{})
	s.answers(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		reply(exchange.Result(r, []byte(`{}`)))
	})
	sid := s.begin("2025-03-26")
	for body, want := range map[string]string{
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`: `200 [{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]`,
		`[{"jsonrpc":"2.0","method":"notifications/x"}]`: `202 `,
		`[]`: `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"rootbound: this message was refused: a batch without messages"}}`,
	} {
		status, text := s.post(body, sid)
		if got := fmt.Sprint(status, " ", text); got != want && !strings.HasPrefix(want, "400") || status != 400 && strings.HasPrefix(want, "400") {
			t.Errorf("%s got %s", body, got)
		}
	}
}

// Events of a call that a client lost are had with Last-Event-ID, and those of another call are not; the call goes on meanwhile.
func TestAClientComesBackForWhatItMissed(t *testing.T) {
	s := serve(t, Options{})
	step := make(chan int)
	s.answers(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Method() != "tools/call" {
			return
		}
		go func() {
			for n := range step {
				if n < 0 {
					reply(exchange.Result(r, []byte(`{"done":true}`)))
					return
				}
				r.Caller.Notify(wire.NewNotification("notifications/progress", fmt.Appendf(nil, `{"progress":%d}`, n)))
			}
		}()
	})
	sid := s.begin("2025-11-25")
	ctx, leave := context.WithCancel(t.Context())
	resp := s.request(ctx, "POST", `{"jsonrpc":"2.0","id":5,"method":"tools/call"}`, sid)
	events := newEventReader(resp.Body, 1<<20, nil)
	primed, err := events.next() // an id to come back with, though nothing was said yet
	if err != nil || !primed.hasID || len(primed.data) != 0 || primed.retry == 0 {
		t.Fatalf("the stream began with %+v, %v", primed, err)
	}
	step <- 1
	first, _ := events.next()
	if !strings.Contains(string(first.data), `"progress":1`) || first.id == primed.id {
		t.Fatalf("got %+v", first)
	}
	leave()
	step <- 2
	step <- 3
	step <- -1
	for from, want := range map[string][]string{
		primed.id: {`"progress":1`, `"progress":2`, `"progress":3`, `"done":true`},
		first.id:  {`"progress":2`, `"progress":3`, `"done":true`},
	} {
		back := s.request(t.Context(), "GET", "", append(headers{headerLastEvent, from}, sid...))
		got, err := io.ReadAll(back.Body)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, e := range readEvents(t, bytes.NewReader(got)) {
			if len(e.data) > 0 {
				said = append(said, string(e.data))
			}
		}
		if len(said) != len(want) {
			t.Fatalf("behind %s came %q", from, said)
		}
		for i := range want {
			if !strings.Contains(said[i], want[i]) {
				t.Errorf("behind %s came %q as number %d", from, said[i], i)
			}
		}
	}
	// Another session's events are nobody else's.
	other := s.begin("2025-11-25")
	if resp := s.request(t.Context(), "GET", "", append(headers{headerLastEvent, first.id}, other...)); resp.StatusCode != 400 {
		t.Errorf("another session got %s", resp.Status)
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	s := serve(t, Options{})
	say := make(chan string)
	s.answers(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Method() != exchange.Listen {
			reply(exchange.Result(r, []byte("{}")))
			return
		}
		go func() {
			for text := range say {
				r.Caller.Notify(wire.NewNotification("notifications/message", wire.SetMember(nil, wire.Quote(text), "data")))
			}
		}()
	})
	sid := s.begin("2025-06-18")
	s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, sid)
	for i := range 2 * maxKeptEvents {
		say <- fmt.Sprint("small ", i)
	}
	for range 4 {
		say <- strings.Repeat("x", maxKeptBytes/3)
	}
	say <- "last"
	close(say)
	s.post(`{"jsonrpc":"2.0","id":9,"method":"ping"}`, sid) // behind the last one, as far as the order of the test goes
	resp := s.request(t.Context(), "GET", "", sid)
	events := newEventReader(resp.Body, 2<<20, nil)
	n, bytes := 0, 0
	for {
		e, err := events.next()
		if err != nil {
			t.Fatal(err)
		}
		n, bytes = n+1, bytes+len(e.data)
		if strings.Contains(string(e.data), `"last"`) {
			break
		}
	}
	if n > maxKeptEvents || bytes > maxKeptBytes || n < 3 {
		t.Errorf("%d messages with %d bytes were kept", n, bytes)
	}
	sess := s.served.all()[0]
	sess.mu.Lock()
	defer sess.mu.Unlock()
	if sess.bytes > maxKeptBytes || len(sess.kept) > maxKeptEvents || s.served.kept.used.Load() != int64(sess.bytes) {
		t.Errorf("%d bytes of %d events are kept, %d counted", sess.bytes, len(sess.kept), s.served.kept.used.Load())
	}
}

// Requests of several clients with the same ids, tokens and names each get their own, and what they follow has their names.
func TestStatelessClientsAreKeptApart(t *testing.T) {
	s := serve(t, Options{})
	type open struct {
		r     *exchange.Request
		reply func(exchange.Outcome)
	}
	calls := make(chan open, 2)
	s.answers(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) { calls <- open{r, reply} })
	body, h := modernCall("1", "x", `,"progressToken":1}`)
	var streams []*eventReader
	var got []open
	for range 2 {
		var wg sync.WaitGroup
		wg.Go(func() {
			o := <-calls
			token, _ := wire.Get(o.r.Msg.Meta(), "progressToken")
			o.r.Caller.Notify(wire.NewNotification("notifications/progress", wire.SetMember([]byte(`{"progress":1}`), token, "progressToken")))
			got = append(got, o)
		})
		resp := s.request(t.Context(), "POST", body, h)
		wg.Wait()
		if resp.Header.Get(headerSession) != "" {
			t.Error("there is a session")
		}
		streams = append(streams, newEventReader(resp.Body, 1<<20, nil))
	}
	for i, o := range got {
		if o.r.Session != nil || o.r.Msg.Key() == got[1-i].r.Msg.Key() || string(o.r.Msg.ID()) == "1" {
			t.Errorf("the request came as %s", o.r.Msg.Bytes())
		}
		o.r.Caller.Notify(wire.NewNotification("notifications/message", wire.SetMember(nil, o.r.Msg.ID(), "_meta", exchange.MetaSubscriptionID)))
		o.reply(exchange.Result(o.r, fmt.Appendf(nil, `{"call":%d}`, i)))
	}
	for i, events := range streams {
		for _, want := range []string{
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`,
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"call":%d,"resultType":"complete"}}`, i),
		} {
			e, err := events.next()
			if err != nil || string(e.data) != want || e.hasID {
				t.Errorf("client %d got %s, %v\nwant %s", i, e.data, err, want)
			}
		}
	}
}

func TestClosingTheStreamCancels(t *testing.T) {
	s := serve(t, Options{})
	begun, ended := make(chan string, 1), make(chan error, 1)
	s.answers(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		context.AfterFunc(ctx, func() {
			ended <- context.Cause(ctx)
			reply(exchange.Cancelled)
		})
		begun <- string(r.Msg.ID())
	})
	body, h := modernCall("1", "x", "}")
	ctx, leave := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "POST", s.url, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(h); i += 2 {
		req.Header.Set(h[i], h[i+1])
	}
	gone := make(chan error, 1)
	go func() {
		_, err := http.DefaultClient.Do(req)
		gone <- err
	}()
	id := <-begun
	// What another client posts about an id that it guessed does nothing.
	cancelled := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
	if status, _ := s.post(cancelled, headers{headerVersion, "2026-07-28", headerMethod, "notifications/cancelled"}); status != 202 {
		t.Errorf("got %d", status)
	}
	select {
	case err := <-ended:
		t.Fatalf("another client cancelled it: %v", err)
	default:
	}
	leave()
	<-gone
	if err := <-ended; !errors.Is(err, exchange.ErrCancelled) {
		t.Errorf("it ended with %v", err)
	}
	for !s.hears(`"method":"notifications/cancelled","params":{"requestId":` + id) {
		runtime.Gosched()
	}
}

// A question of a stage gives the request back, and the retry brings the answer in another POST.
func TestAStatelessRequestIsGivenBackAndRetried(t *testing.T) {
	s := serve(t, Options{})
	s.answers(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		r.Caller.Ask(ctx, []exchange.Question{{Key: "k", Method: "roots/list"}}, func(a []exchange.Answer) {
			reply(exchange.Result(r, a[0].Result))
		})
	})
	body, h := modernCall("1", "x", "}")
	_, text := s.post(body, h)
	m, err := wire.Scan([]byte(text), wire.Strict)
	if err != nil || string(m.ID()) != "1" {
		t.Fatalf("got %s", text)
	}
	state, _ := wire.Get(m.Result(), "requestState")
	retry := strings.Replace(body, `"id":1`, `"id":2`, 1)
	retry = strings.Replace(retry, `"name":"x"`, `"name":"x","inputResponses":{"k":{"roots":[]}},"requestState":`+string(state), 1)
	if _, text := s.post(retry, h); text != `{"jsonrpc":"2.0","id":2,"result":{"roots":[],"resultType":"complete"}}` {
		t.Errorf("the retry got %s", text)
	}
	if _, text := s.post(retry, h); !strings.Contains(text, "request state") {
		t.Errorf("the second retry got %s", text)
	}
}

func TestMirroredArguments(t *testing.T) {
	s := serve(t, Options{})
	s.answers(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Method() == "tools/list" {
			reply(exchange.Result(r, []byte(`{"tools":[{"name":"x","inputSchema":{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}`)))
			return
		}
		reply(exchange.Result(r, []byte(`{}`)))
	})
	body, h := modernCall("1", "x", `}`)
	body = strings.Replace(body, `"name":"x"`, `"name":"x","arguments":{"region":"世界"}`, 1)
	if status, _ := s.post(body, h); status != 200 {
		t.Errorf("before the list it got %d", status)
	}
	list := strings.NewReplacer(`"method":"tools/call"`, `"method":"tools/list"`, `"name":"x","arguments":{"region":"世界"},`, ``).Replace(body)
	if status, text := s.post(list, headers{headerVersion, "2026-07-28", headerMethod, "tools/list"}); status != 200 {
		t.Fatalf("the list got %d %s", status, text)
	}
	if status, text := s.post(body, h); status != 400 || !strings.Contains(text, `"code":-32020`) {
		t.Errorf("without the header it got %d %s", status, text)
	}
	if status, text := s.post(body, append(headers{"mcp-param-region", encodeValue("世界")}, h...)); status != 200 {
		t.Errorf("with the header it got %d %s", status, text)
	}
}

// An unknown method and what a client lacks have a status of their own.
func TestStatusOfErrors(t *testing.T) {
	s := serve(t, Options{})
	var code int
	s.answers(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		reply(exchange.Fail(r, code, "no", nil))
	})
	sid := s.begin("2025-11-25")
	for c, want := range map[int]int{-32601: 404, -32021: 400, -32022: 400, -32602: 200, -32603: 200, 1: 200} {
		code = c
		body, h := modernCall("1", "x", "}")
		if status, _ := s.post(body, h); status != want {
			t.Errorf("%d got %d, want %d", c, status, want)
		}
		if status, _ := s.post(`{"jsonrpc":"2.0","id":1,"method":"x"}`, sid); status != 200 {
			t.Errorf("%d got %d in a session", c, status)
		}
	}
}

// Roots of a client on another machine count for nothing: it has none, as far as those behind know.
func TestAClientOnAnotherMachineHasNoRoots(t *testing.T) {
	s := serve(t, Options{})
	for _, via := range []headers{nil, {"X-Forwarded-For", "10.0.0.1"}, {"Forwarded", "for=10.0.0.1"}} {
		s.heard = nil
		s.post(fmt.Sprintf(initialize, "2025-11-25"), via)
		body, h := modernCall("1", "x", "}")
		s.post(body, append(h, via...))
		s.mu.Lock()
		for _, m := range s.heard {
			if has, here := strings.Contains(m, `"roots"`), via == nil; strings.Contains(m, "elicitation") && has != here {
				t.Errorf("with %q came %s", via, m)
			}
		}
		s.mu.Unlock()
	}
}

func TestSessionsHaveAnEnd(t *testing.T) {
	s := serve(t, Options{Sessions: 2})
	first, second := s.begin("2025-11-25"), s.begin("2025-11-25")
	resp := s.request(t.Context(), "POST", fmt.Sprintf(initialize, "2025-11-25"), nil)
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a third session got %s", resp.Status)
	}
	// One that was not used for a while makes room, and not one that is in use, however old.
	stream := s.request(t.Context(), "GET", "", first)
	for _, sess := range s.served.all() {
		sess.mu.Lock()
		sess.last = sess.last.Add(-2 * spareTime)
		sess.mu.Unlock()
	}
	third := s.begin("2025-11-25")
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for i, tt := range []struct {
		sid  headers
		want int
	}{{first, 200}, {second, 404}, {third, 200}} {
		if status, _ := s.post(ping, tt.sid); status != tt.want {
			t.Errorf("session %d got %d, want %d", i+1, status, tt.want)
		}
	}
	// Those that nobody uses end in time.
	s.served.look(time.Now().Add(2 * defaultIdle))
	if status, _ := s.post(ping, third); status != 404 {
		t.Errorf("an idle session got %d", status)
	}
	if status, _ := s.post(ping, first); status != 200 {
		t.Errorf("a session with a stream got %d", status)
	}
	// And so does one whose server is gone.
	fourth := s.begin("2025-11-25")
	s.lost(errors.New("the server is gone"))
	if status, _ := s.post(ping, fourth); status != 404 {
		t.Errorf("a session without a server got %d", status)
	}
	stream.Body.Close()
}

// When the server ends, streams end, what is about to be answered is, and nothing is left.
func TestTheEnd(t *testing.T) {
	http.DefaultClient.CloseIdleConnections()
	before := runtime.NumGoroutine()
	s := serve(t, Options{})
	begun, finish := make(chan bool, 1), make(chan bool)
	s.answers(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		switch {
		case r.Msg.Method() == "tools/call":
			begun <- true
			go func() {
				<-finish
				reply(exchange.Result(r, []byte(`{"last":true}`)))
			}()
		case r.Era == exchange.Modern:
			r.Caller.Notify(wire.NewNotification("notifications/subscriptions/acknowledged", wire.SetMember(nil, r.Msg.ID(), "_meta", exchange.MetaSubscriptionID)))
		}
	})
	sid := s.begin("2025-11-25")
	own := s.request(t.Context(), "GET", "", sid)
	listen := `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"notifications":{}}}`
	sub := s.request(t.Context(), "POST", listen, headers{headerVersion, "2026-07-28", headerMethod, exchange.Listen})
	called := make(chan string)
	go func() {
		_, text := s.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`, sid)
		called <- text
	}()
	<-begun
	go func() {
		<-s.served.closing
		close(finish)
	}()
	go s.stop()
	if text := <-called; !strings.Contains(text, `"last":true`) {
		t.Errorf("the last call got %q", text)
	}
	if _, err := io.ReadAll(own.Body); err != nil {
		t.Errorf("the session's stream ended with %v", err)
	}
	events, err := io.ReadAll(sub.Body)
	want := `data: {"jsonrpc":"2.0","id":"l","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}`
	if err != nil || !strings.Contains(string(events), want) {
		t.Errorf("the subscription ended with %q, %v", events, err)
	}
	s.stop()
	http.DefaultClient.CloseIdleConnections()
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	buf := make([]byte, 1<<20)
	t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
}

// Large answers come whole, alone and as events, with line ends in them too.
func TestLargeAnswers(t *testing.T) {
	s := serve(t, Options{})
	large := strings.Repeat("0123456789", 300_000)
	s.answers(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Method() == "tools/call" {
			r.Caller.Notify(wire.NewNotification("notifications/message", wire.SetMember(nil, wire.Quote(large), "data")))
		}
		m, err := wire.Scan([]byte("{\"jsonrpc\":\"2.0\",\r\n \"id\":"+string(r.Msg.ID())+",\r\"result\":{\"large\":\""+large+"\"}}"), wire.Lenient)
		if err != nil {
			t.Error(err)
		}
		reply(exchange.Outcome{Msg: &m})
	})
	sid := s.begin("2025-06-18")
	_, text := s.post(`{"jsonrpc":"2.0","id":1,"method":"resources/read"}`, sid)
	if !strings.Contains(text, large) {
		t.Errorf("alone came %d bytes", len(text))
	}
	_, text = s.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, sid)
	events := readLarge(t, text)
	if len(events) != 2 || !strings.Contains(string(events[0].data), large) || !strings.Contains(string(events[1].data), large) || strings.Contains(string(events[1].data), "\r") {
		t.Errorf("as events came %d", len(events))
	}
}

func readLarge(t *testing.T, text string) []event {
	t.Helper()
	var got []event
	for er := newEventReader(strings.NewReader(text), 8<<20, nil); ; {
		e, err := er.next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
}

// A header that is too large is refused, and a body that stands still costs no more than its connection.
func TestHeaderBomb(t *testing.T) {
	s := serve(t, Options{})
	c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), Path))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\n", Path)
		for i := range 1000 {
			if _, err := fmt.Fprintf(c, "X-%d: %s\r\n", i, strings.Repeat("x", 1000)); err != nil {
				return
			}
		}
	}()
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || !strings.Contains(line, "431") {
		t.Errorf("got %q, %v", line, err)
	}
}

func FuzzPost(f *testing.F) {
	f.Add("2026-07-28", "tools/call", "x", "", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	f.Add("2025-11-25", "", "", "x", "[\n]")
	f.Add("", "initialize", "", "", fmt.Sprintf(initialize, "2025-11-25"))
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	defer l.Close()
	echo := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Kind() == wire.Request {
			reply(exchange.Result(r, []byte("{}")))
		}
	})
	s := New(l, Options{Stateless: echo, Session: func(func(error)) (exchange.Handler, func(), error) { return echo, func() {}, nil }})
	f.Fuzz(func(t *testing.T, version, method, name, session, body string) {
		r, err := http.NewRequest("POST", "http://localhost"+Path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r = r.WithContext(ctx)
		r.Header = http.Header{"Content-Type": {"application/json"}, headerVersion: {version}, headerMethod: {method}, headerName: {name}, headerSession: {session}}
		for h, v := range r.Header {
			if v[0] == "" {
				delete(r.Header, h)
			}
		}
		w := &recorder{header: http.Header{}}
		cancel() // what has no answer at once has none
		s.ServeHTTP(w, r)
		if w.status < 200 && w.written > 0 {
			t.Errorf("%d bytes without a status", w.written)
		}
	})
}

type recorder struct {
	header          http.Header
	status, written int
}

func (w *recorder) Header() http.Header { return w.header }
func (w *recorder) WriteHeader(s int)   { w.status = s }
func (w *recorder) Write(b []byte) (int, error) {
	w.written += len(b)
	return len(b), nil
}
