package streamable

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/wire"
)

// site is a server over HTTP that does what a test says, and notes what it got.
type site struct {
	t *testing.T
	*httptest.Server
	mu  sync.Mutex
	got []string
	// by method of HTTP and, for POST, of the message: "GET", "DELETE", "POST tools/call", "POST response". "POST" is for all others.
	on map[string]func(w http.ResponseWriter, r *http.Request, m message)
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	raw    string
}

type handlers = map[string]func(w http.ResponseWriter, r *http.Request, m message)

func newSite(t *testing.T, on handlers) *site {
	s := &site{t: t, on: maps.Clone(on)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	m := message{raw: string(b)}
	json.Unmarshal(b, &m)
	key := r.Method
	if r.Method == http.MethodPost {
		key += " " + m.Method
		if m.Method == "" {
			key = "POST response"
		}
	}
	note := key
	for _, name := range []string{headerSession, headerLastEvent} {
		if v := r.Header.Get(name); v != "" {
			note += " " + name + "=" + v
		}
	}
	s.mu.Lock()
	s.got = append(s.got, note)
	h, ok := s.on[key]
	if !ok && r.Method == http.MethodPost {
		h, ok = s.on["POST"]
	}
	s.mu.Unlock()
	switch {
	case ok:
		h(w, r, m)
	case key == "POST response", strings.HasPrefix(m.Method, "notifications/"):
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodPost:
		http.Error(w, "no "+key, http.StatusBadRequest)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// set changes what the server does.
func (s *site) set(key string, h func(w http.ResponseWriter, r *http.Request, m message)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on[key] = h
}

// requests returns what came with a prefix.
func (s *site) requests(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.got), func(g string) bool { return !strings.HasPrefix(g, prefix) })
}

// jsonAnswer answers with one message. ID stands for the id of the request.
func jsonAnswer(text string) func(http.ResponseWriter, *http.Request, message) {
	return func(w http.ResponseWriter, _ *http.Request, m message) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, strings.ReplaceAll(text, "ID", string(m.ID)))
	}
}

// sse answers with a stream of what is given, and ends it. "|" is the end of a line, ID the id of the request.
func sse(text string) func(http.ResponseWriter, *http.Request, message) {
	return func(w http.ResponseWriter, _ *http.Request, m message) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, strings.ReplaceAll(strings.ReplaceAll(text, "|", "\n"), "ID", string(m.ID)))
		w.(http.Flusher).Flush()
	}
}

// handshake is a session "s1" of a server.
func handshake() handlers {
	return handlers{
		"POST initialize": func(w http.ResponseWriter, r *http.Request, m message) {
			w.Header().Set(headerSession, "s1")
			jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`)(w, r, m)
		},
		"POST tools/call": jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`),
	}
}

func with(h handlers, more handlers) handlers {
	maps.Copy(h, more)
	return h
}

// peer is a client on standard streams, in front of a server over HTTP.
type peer struct {
	t     *testing.T
	in    io.WriteCloser
	lines chan string
	notes *notes
}

type notes struct {
	mu   sync.Mutex
	text []string
	came chan struct{}
}

func (n *notes) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text = append(n.text, fmt.Sprintf(format, args...))
	select {
	case n.came <- struct{}{}:
	default:
	}
}

// wait waits for something that was noted.
func (p *peer) wait(part string) {
	p.t.Helper()
	p.until(func() bool {
		p.notes.mu.Lock()
		defer p.notes.mu.Unlock()
		return slices.ContainsFunc(p.notes.text, func(s string) bool { return strings.Contains(s, part) })
	}, func() string { return fmt.Sprintf("nothing was noted of %q, only %q", part, p.notes.text) })
}

// until waits for what a test looks at.
func (p *peer) until(ok func() bool, what func() string) {
	p.t.Helper()
	until(p.t, ok, what)
}

// until waits for what a test looks at; what says what it is that did not come.
func until(t *testing.T, ok func() bool, what func() string) {
	t.Helper()
	for deadline := time.Now().Add(mcptest.Patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what())
		}
	}
}

func dial(t *testing.T, endpoint string, change func(*DialOptions), options ...transport.ProcessOptions) *peer {
	t.Helper()
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	n := &notes{came: make(chan struct{}, 1)}
	o := transport.ProcessOptions{}
	for _, given := range options {
		o = given
	}
	o.Report, o.Note = n.add, n.add
	remote := transport.NewRemote(func(again func()) (transport.Link, error) {
		d := DialOptions{URL: u, Report: n.add, Note: n.add, Again: again, Backoff: 10 * time.Millisecond, Agent: "test"}
		if change != nil {
			change(&d)
		}
		return Dial(d), nil
	}, o)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		transport.ServeStdio(ctx, inR, outW, remote, transport.StdioOptions{Report: n.add})
		remote.Close()
		outW.Close()
	}()
	p := &peer{t: t, in: inW, lines: make(chan string, 100), notes: n}
	go func() {
		r := bufio.NewReader(outR)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				close(p.lines)
				return
			}
			p.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	t.Cleanup(func() {
		cancel()
		inW.Close()
		<-done
	})
	return p
}

func (p *peer) say(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) next() string {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.t.Fatal("the connection ended")
		}
		return line
	case <-time.After(mcptest.Patience):
		p.notes.mu.Lock()
		defer p.notes.mu.Unlock()
		p.t.Fatalf("nothing came; noted: %q", p.notes.text)
		return ""
	}
}

// want waits for a line that has each of the parts.
func (p *peer) want(parts ...string) string {
	p.t.Helper()
	line := p.next()
	for _, part := range parts {
		if !strings.Contains(line, part) {
			p.t.Fatalf("got %s, want %q in it", line, part)
		}
	}
	return line
}

// greet makes a handshake.
func (p *peer) greet() {
	p.t.Helper()
	p.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{},"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`)
	p.want(`"id":0`, `"serverInfo"`)
	p.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func (p *peer) call(id int) {
	p.t.Helper()
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a"}}`, id))
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func (p *peer) modern(id int, method, params string) {
	p.t.Helper()
	if params != "" {
		params = "," + params
	}
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s%s}}`, id, method, modernMeta, params))
}

var discovered = jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}`)

func TestASession(t *testing.T) {
	t.Parallel()
	var version, agent, custom string
	s := newSite(t, with(handshake(), handlers{
		"POST tools/call": func(w http.ResponseWriter, r *http.Request, m message) {
			version, agent, custom = r.Header.Get(headerVersion), r.Header.Get("User-Agent"), r.Header.Get("X-Team")
			sse(`data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}||: comment|data: {"jsonrpc":"2.0",|data: "id":ID,"result":{"content":[]}}||`)(w, r, m)
		},
		"GET":    sse(`data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}||`),
		"DELETE": func(w http.ResponseWriter, _ *http.Request, _ message) {},
	}))
	p := dial(t, s.URL+"/mcp", func(o *DialOptions) { o.Header = http.Header{"X-Team": {"a"}} })
	p.greet()
	p.want("tools/list_changed")
	s.set("GET", func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(http.StatusMethodNotAllowed) })
	p.call(1)
	for line := ""; !strings.Contains(line, "notifications/message"); {
		line = p.next()
	}
	for line := ""; line != `{"jsonrpc":"2.0", "id":1,"result":{"content":[]}}`; {
		line = p.next()
	}
	if version != "2025-06-18" || agent != "test" || custom != "a" {
		t.Errorf("headers %q %q %q", version, agent, custom)
	}
	if got := s.requests("POST tools/call"); len(got) != 1 || !strings.Contains(got[0], "Mcp-Session-Id=s1") {
		t.Errorf("got %q", got)
	}
	p.in.Close()
	p.until(func() bool { return len(s.requests("DELETE Mcp-Session-Id=s1")) == 1 }, func() string { return "the session was not ended" })
}

// A question goes to the request on whose stream it came, and its answer back to the server.
func TestQuestionsOnAStream(t *testing.T) {
	t.Parallel()
	answered := make(chan string, 1)
	s := newSite(t, with(handshake(), handlers{
		"POST tools/call": func(w http.ResponseWriter, r *http.Request, m message) {
			sse(`data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}||`)(w, r, m)
			sse(`data: {"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":`+<-answered+`}]}}||`)(w, r, m)
		},
		"POST response": func(w http.ResponseWriter, _ *http.Request, m message) {
			answered <- string(m.Result)
			w.WriteHeader(http.StatusAccepted)
		},
	}))
	p := dial(t, s.URL, nil)
	p.greet()
	p.call(1)
	p.want(`"id":"q"`, "elicitation/create")
	p.say(`{"jsonrpc":"2.0","id":"q","result":"yes"}`)
	p.want(`"id":1`, `"text":"yes"`)
}

// A stream that breaks behind an event with an id is taken up there; the call is made once.
func TestABrokenStreamIsTakenUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, with(handshake(), handlers{
		"POST tools/call": sse(`id: 7|retry: 1|data: ||data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}||`),
	}))
	p := dial(t, s.URL, nil)
	p.greet()
	p.until(func() bool { return len(s.requests("GET")) == 1 }, func() string { return "no stream" })
	n := 0
	s.set("GET", func(w http.ResponseWriter, r *http.Request, m message) {
		switch n++; n {
		case 1: // a proxy's
			w.WriteHeader(http.StatusBadGateway)
		case 2: // and it breaks again
			sse("id: 8|data: ||")(w, r, m)
		default:
			sse(`data: {"jsonrpc":"2.0","id":1,"result":{"content":[]}}||`)(w, r, m)
		}
	})
	p.call(1)
	for line := ""; !strings.Contains(line, `"id":1,"result"`); {
		line = p.next()
	}
	if got := s.requests("GET Mcp-Session-Id=s1 Last"); !slices.Equal(got, []string{"GET Mcp-Session-Id=s1 Last-Event-Id=7", "GET Mcp-Session-Id=s1 Last-Event-Id=7", "GET Mcp-Session-Id=s1 Last-Event-Id=8"}) {
		t.Errorf("taken up with %q", got)
	}
	if got := s.requests("POST tools/call"); len(got) != 1 {
		t.Errorf("%d calls", len(got))
	}
}

// Without an id, or with a server that does not go on, a call whose stream breaks fails, and is not made again.
func TestABrokenCallIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	cut := func(w http.ResponseWriter, r *http.Request, m message) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "{")
	}
	for name, h := range map[string]func(http.ResponseWriter, *http.Request, message){
		"no id":     sse(`data: {"jsonrpc":"2.0","method":"x"}||`),
		"no resume": sse(`id: 1|data: ||`),
		"cut":       cut,
		"abort":     func(http.ResponseWriter, *http.Request, message) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, with(handshake(), handlers{"POST tools/call": h}))
			p := dial(t, s.URL, nil)
			p.greet()
			p.call(1)
			line := ""
			for !strings.Contains(line, `"id":1,`) {
				line = p.next()
			}
			if !strings.Contains(line, `"code":-32603,"message":"rootbound: `) || !strings.Contains(line, `"data":{"reason":"broken"}`) || !strings.Contains(line, "it is not known whether") {
				t.Errorf("got %s", line)
			}
			if got := s.requests("POST tools/call"); len(got) != 1 {
				t.Errorf("%d calls", len(got))
			}
		})
	}
}

// A session that the server has forgotten is begun anew, with the level and the subscriptions; what it refused is sent to the
// new one. Servers say it with 404, or with 400 in words.
func TestAForgottenSession(t *testing.T) {
	t.Parallel()
	for name, forgets := range map[string]func(http.ResponseWriter, *http.Request, message){
		"404": func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(http.StatusNotFound) },
		"400": func(w http.ResponseWriter, r *http.Request, m message) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sessions := 0
			h := handlers{
				"POST initialize": func(w http.ResponseWriter, r *http.Request, m message) {
					sessions++
					w.Header().Set(headerSession, fmt.Sprint("s", sessions))
					jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18","capabilities":{"logging":{}},"serverInfo":{"name":"s","version":"1"}}}`)(w, r, m)
				},
				"POST": func(w http.ResponseWriter, r *http.Request, m message) {
					switch id := r.Header.Get(headerSession); {
					case m.Method == "tools/call" && id == "s1":
						forgets(w, r, m)
					case m.ID == nil:
						w.WriteHeader(http.StatusAccepted)
					default:
						jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"in":"`+id+`"}}`)(w, r, m)
					}
				},
			}
			s := newSite(t, h)
			p := dial(t, s.URL, nil)
			p.greet()
			p.say(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`)
			p.want(`"in":"s1"`)
			p.say(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"x:y"}}`)
			p.want(`"in":"s1"`)
			p.call(3)
			p.call(4)
			got := []string{p.next(), p.next()}
			slices.Sort(got)
			if want := []string{`{"jsonrpc":"2.0","id":3,"result":{"in":"s2"}}`, `{"jsonrpc":"2.0","id":4,"result":{"in":"s2"}}`}; !slices.Equal(got, want) {
				t.Errorf("got %q", got)
			}
			p.wait("the server has forgotten its session; a new one is begun")
			for _, want := range []string{"POST logging/setLevel Mcp-Session-Id=s2", "POST resources/subscribe Mcp-Session-Id=s2", "POST notifications/initialized Mcp-Session-Id=s2"} {
				p.until(func() bool { return len(s.requests(want)) == 1 }, func() string { return fmt.Sprintf("no %s in %q", want, s.requests("")) })
			}
		})
	}
}

// A request whose turn comes when the session has just been forgotten waits for the next one, and is not sent without a session.
func TestARequestWhoseSessionIsForgottenBeforeItIsSent(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	l := Dial(DialOptions{URL: u})
	defer l.Close()
	for range maxPosts {
		l.slots <- struct{}{}
	}
	if err := l.Send(wire.NewRequest([]byte("1"), "tools/call", nil)); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.lost = true
	l.mu.Unlock()
	<-l.slots
	for parked := false; !parked && len(s.requests("")) == 0; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		parked = len(l.parked) > 0
		l.mu.Unlock()
	}
	if got := s.requests(""); len(got) > 0 {
		t.Errorf("it was sent: %q", got)
	}
}

// A server that begins no other session is told of, and asked again by the next request.
func TestASessionThatCannotBeBegunAgain(t *testing.T) {
	t.Parallel()
	up := true
	h := handshake()
	greet := h["POST initialize"]
	h["POST initialize"] = func(w http.ResponseWriter, r *http.Request, m message) {
		if !up {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		greet(w, r, m)
	}
	s := newSite(t, h)
	p := dial(t, s.URL, nil)
	p.greet()
	p.until(func() bool { return len(s.requests("GET")) == 1 }, func() string { return "no stream" })
	s.mu.Lock()
	up = false
	s.mu.Unlock()
	s.set("POST tools/call", func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(http.StatusNotFound) })
	p.call(1)
	p.want(`"id":1`, `"code":-32603,"message":"rootbound: the server has forgotten the session, and begins no other: `, `"data":{"reason":"session lost"}`)
	s.mu.Lock()
	up = true
	s.mu.Unlock()
	s.set("POST tools/call", jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`))
	p.wait("the next request asks for one")
	p.call(2)
	p.want(`"id":2,"result"`)
}

// What is wrong with a server is said so that somebody can do something about it.
func TestClearErrors(t *testing.T) {
	t.Parallel()
	status := func(code int, kind, body string) func(http.ResponseWriter, *http.Request, message) {
		return func(w http.ResponseWriter, _ *http.Request, _ message) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			io.WriteString(w, body)
		}
	}
	elsewhere := newSite(t, nil)
	for name, tt := range map[string]struct {
		h    func(http.ResponseWriter, *http.Request, message)
		want []string
	}{
		"401": {status(401, "text/plain", "who?"), []string{`"code":-32603,"message":"`, `"data":{"reason":"unauthorized"}`, "rootbound login", `said \"who?\"`}},
		"403": {status(403, "text/plain", ""), []string{`"data":{"reason":"forbidden"}`, "does not let us"}},
		"404": {status(404, "text/html", "<html>"), []string{`"code":-32603,"message":"`, `"data":{"reason":"not found"}`, "no MCP server at this URL", "with a web page"}},
		"405": {status(405, "text/plain", ""), []string{`"data":{"reason":"not found"}`}},
		"429": {func(w http.ResponseWriter, r *http.Request, m message) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(429)
		}, []string{`"code":-32603,"message":"`, `"data":{"reason":"refused"}`, `after \"30\"`}},
		"500":       {status(500, "text/plain", "oh"), []string{`"code":-32603,"message":"rootbound: `, `"data":{"reason":"server error"}`, "the server failed"}},
		"html":      {status(200, "text/html", "<html>"), []string{"a web page", `"data":{"reason":"not found"}`}},
		"202":       {status(202, "", ""), []string{"gave no answer", `"data":{"reason":"no answer"}`}},
		"not it":    {status(200, "application/json", `{"jsonrpc":"2.0","id":99,"result":{}}`), []string{"is not the answer", `"data":{"reason":"no answer"}`}},
		"no JSON":   {status(200, "application/json", `oh`), []string{"is not the answer"}},
		"long":      {status(200, "application/json", `{"jsonrpc":"2.0","id":0,"result":"`+strings.Repeat("x", 5000)+`"}`), []string{`"data":{"reason":"too long"}`}},
		"long line": {sse("data: " + strings.Repeat("x", 5000) + "||"), []string{`"data":{"reason":"too long"}`}},
		"redirect": {func(w http.ResponseWriter, r *http.Request, _ message) {
			http.Redirect(w, r, elsewhere.URL+"/a?secret", http.StatusTemporaryRedirect)
		}, []string{`"data":{"reason":"redirected"}`, "another place, " + elsewhere.URL + "/a;"}},
		"lost body": {func(w http.ResponseWriter, r *http.Request, _ message) { http.Redirect(w, r, "/b", http.StatusFound) }, []string{`"data":{"reason":"redirected"}`, "drops what was sent"}},
		"circle": {func(w http.ResponseWriter, r *http.Request, _ message) {
			http.Redirect(w, r, "/c", http.StatusTemporaryRedirect)
		}, []string{"in circles"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, handlers{"POST": tt.h})
			p := dial(t, s.URL, func(o *DialOptions) { o.Limit = 4000 }, transport.ProcessOptions{Protocol: "legacy"})
			p.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`)
			p.want(append(tt.want, `"id":0`, `"error"`)...)
			if got := elsewhere.requests(""); len(got) != 0 {
				t.Errorf("the other place got %q", got)
			}
		})
	}
}

func TestServersThatAreNotThere(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = quiet()
	secure.StartTLS()
	t.Cleanup(secure.Close)
	plain := newSite(t, nil)
	for u, want := range map[string]string{
		gone.URL + "/?key=hunter2": "nothing listens there",
		secure.URL:                 "is not one that this machine trusts",
		strings.Replace(plain.URL, "http:", "https:", 1): "does not speak TLS",
		"http://does-not-exist.invalid/":                 "does-not-exist.invalid",
	} {
		p := dial(t, u, nil)
		p.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`)
		if line := p.want(want, `"code":-32603,"message":"rootbound: reaching `, `"data":{"reason":"unreachable"}`); strings.Contains(line, "hunter2") {
			t.Errorf("got %s", line)
		}
	}
}

// A server that was not reached is tried anew, in whatever era it turns out to speak.
func TestAServerThatComesLater(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.on = handlers{"POST": func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(http.StatusUnauthorized) }}
	p := dial(t, s.URL, nil)
	p.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`)
	p.want(`"reason":"unauthorized"`)
	if got := s.requests(""); len(got) != 1 {
		t.Errorf("got %q", got)
	}
	s.mu.Lock()
	s.on = handlers{"POST server/discover": discovered}
	s.mu.Unlock()
	p.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`)
	p.want(`"id":1,"result"`, `"protocolVersion":"2025-06-18"`)
}
