package streamable

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/wire"
)

// features is a server of one era that has a little of everything, and notes what it hears.
type features struct {
	era exchange.Era

	mu      sync.Mutex
	heard   []string
	listens map[string]exchange.Caller // by the id of their request, as JSON
	level   string
	hanging chan struct{}
	ended   chan struct{}
}

func newFeatures(era exchange.Era) *features {
	return &features{era: era, listens: map[string]exchange.Caller{}, hanging: make(chan struct{}, 1), ended: make(chan struct{}, 1)}
}

const offered = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}}`

// tell tells who listens.
func (f *features) tell(method, params string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, caller := range f.listens {
		p := []byte(params)
		if f.era == exchange.Modern {
			p = wire.SetMember(p, []byte(id), "_meta", exchange.MetaSubscriptionID)
		}
		caller.Notify(wire.NewNotification(method, p))
	}
}

func (f *features) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	m := r.Msg
	f.mu.Lock()
	f.heard = append(f.heard, string(m.Bytes()))
	f.mu.Unlock()
	result := func(text string) {
		v := []byte(text)
		if f.era == exchange.Modern {
			v = wire.SetMember(v, []byte(`{"name":"s","version":"1"}`), "_meta", exchange.MetaServer)
			if slices.Contains([]string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read", "server/discover"}, m.Method()) {
				v = wire.SetMember(wire.SetMember(v, []byte("60000"), "ttlMs"), []byte(`"public"`), "cacheScope")
			}
		}
		reply(exchange.Result(r, v))
	}
	fail := func(code int, text, data string) {
		var d []byte
		if data != "" {
			d = []byte(data)
		}
		reply(exchange.Fail(r, code, text, d))
	}
	method, name := m.Method(), wire.GetString(m.Params(), "name")
	switch {
	case method == exchange.Listen && r.Era != f.era: // the edge's own
		context.AfterFunc(ctx, func() { reply(exchange.Cancelled) })
	case method == exchange.Listen:
		id := string(m.ID())
		f.mu.Lock()
		f.listens[id] = r.Caller
		f.mu.Unlock()
		context.AfterFunc(ctx, func() {
			f.mu.Lock()
			delete(f.listens, id)
			f.mu.Unlock()
			reply(exchange.Cancelled)
		})
		if f.era == exchange.Modern {
			honoured, _ := wire.Get(m.Params(), "notifications")
			p := wire.SetMember(wire.SetMember(nil, honoured, "notifications"), m.ID(), "_meta", exchange.MetaSubscriptionID)
			r.Caller.Notify(wire.NewNotification("notifications/subscriptions/acknowledged", p))
		}
	case m.Kind() != wire.Request:
	case r.Era != f.era:
		fail(wire.CodeMethodNotFound, "not here", "")
	case method == "initialize":
		result(`{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"},"capabilities":` + offered + `}`)
	case method == "server/discover":
		result(`{"supportedVersions":["2026-07-28"],"capabilities":` + offered + `}`)
	case method == "ping", strings.HasPrefix(method, "resources/") && strings.HasSuffix(method, "subscribe"):
		result(`{}`)
	case method == "logging/setLevel":
		f.mu.Lock()
		f.level = wire.GetString(m.Params(), "level")
		f.mu.Unlock()
		result(`{}`)
	case method == "tools/list":
		result(`{"tools":[{"name":"a","inputSchema":{"type":"object"},"x-unknown":1}],"nextCursor":"next"}`)
	case method == "prompts/list":
		result(`{"prompts":[{"name":"p"}]}`)
	case method == "prompts/get" && name == "p":
		result(`{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}`)
	case method == "resources/list":
		result(`{"resources":[{"uri":"x:1","name":"one"}]}`)
	case method == "resources/templates/list":
		result(`{"resourceTemplates":[{"uriTemplate":"x:{n}","name":"t"}]}`)
	case method == "resources/read" && wire.GetString(m.Params(), "uri") == "x:1":
		result(`{"contents":[{"uri":"x:1","text":"one"}]}`)
	case method == "resources/read" && f.era == exchange.Modern:
		fail(wire.CodeInvalidParams, "there is none", "")
	case method == "resources/read":
		fail(-32002, "there is none", "")
	case method == "completion/complete":
		result(`{"completion":{"values":["v"],"total":1}}`)
	case method == "tools/call" && name == "progress":
		token, _ := wire.Get(m.Meta(), "progressToken")
		for i := range 2 {
			r.Caller.Notify(wire.NewNotification("notifications/progress", fmt.Appendf(nil, `{"progressToken":%s,"progress":%d}`, token, i+1)))
		}
		result(`{"content":[],"trace":` + string(wire.Quote(wire.GetString(m.Meta(), "traceparent"))) + `}`)
	case method == "tools/call" && name == "log":
		level := wire.GetString(m.Meta(), exchange.MetaLogLevel)
		if f.era == exchange.Legacy {
			f.mu.Lock()
			level = f.level
			f.mu.Unlock()
		}
		if level != "" {
			r.Caller.Notify(wire.NewNotification("notifications/message", []byte(`{"level":"error","data":"said"}`)))
		}
		result(`{"content":[]}`)
	case method == "tools/call" && name == "touch":
		f.tell("notifications/resources/updated", `{"uri":"x:1"}`)
		f.tell("notifications/tools/list_changed", `{}`)
		result(`{"content":[]}`)
	case method == "tools/call" && name == "hang":
		context.AfterFunc(ctx, func() {
			f.ended <- struct{}{}
			reply(exchange.Cancelled)
		})
		f.hanging <- struct{}{}
	case method == "tools/call" && name == "sample" && f.era == exchange.Modern && !r.Caller.CanAsk("sampling/createMessage"):
		fail(-32021, "it needs sampling", `{"requiredCapabilities":{"sampling":{}}}`)
	case method == "tools/call" && name == "sample":
		r.Caller.Ask(ctx, []exchange.Question{{Key: "q", Method: "sampling/createMessage", Params: []byte(`{"messages":[],"maxTokens":1}`)}}, func(a []exchange.Answer) {
			if a[0].Error != nil {
				fail(wire.CodeInternal, "the client refuses", "")
				return
			}
			result(`{"content":[{"type":"text","text":` + string(wire.Quote(wire.GetString(a[0].Result, "model"))) + `}]}`)
		})
	default:
		fail(wire.CodeMethodNotFound, "there is no "+method, "")
	}
}

// lined is a link to a server on a stream in this process.
type lined struct {
	*wire.Writer
	out  io.Reader
	done chan struct{}
	end  func()
}

func (l *lined) Sessionless() bool { return false }

func (l *lined) Receive(take func(m *wire.Message, refused *wire.Refusal, of string)) {
	for r := wire.NewReader(l.out, 0); ; {
		line, err := r.Next()
		if err != nil {
			<-l.done
			return
		}
		if m, err := wire.Scan(line, wire.Lenient); err == nil {
			take(&m, nil, "")
		}
	}
}

func (l *lined) Close() error {
	l.end()
	return nil
}

// talker is a client of one era, on a stream or over HTTP.
type talker struct {
	t       *testing.T
	era     exchange.Era
	url     string // "" on a stream
	session string
	in      io.Writer
	n       int

	mu   sync.Mutex
	told []string
	came chan struct{}
	got  map[string]chan string
	said []string // everything that it was told and answered
}

func (c *talker) take(line string) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	json.Unmarshal([]byte(line), &m)
	c.mu.Lock()
	c.said = append(c.said, line)
	waiting := c.got[string(m.ID)]
	if m.Method != "" {
		c.told = append(c.told, line)
	}
	c.mu.Unlock()
	if m.Method == "" && waiting != nil {
		waiting <- line
	}
	select {
	case c.came <- struct{}{}:
	default:
	}
}

// send sends a message; what comes on its stream is taken until it ends.
func (c *talker) send(ctx context.Context, line string) {
	if c.url == "" {
		io.WriteString(c.in, line+"\n")
		return
	}
	var m struct {
		Method string
		Params struct{ Name, URI string }
	}
	json.Unmarshal([]byte(line), &m)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(line))
	if err != nil {
		c.t.Error(err)
		return
	}
	c.head(r)
	if c.era == exchange.Modern {
		r.Header.Set(headerMethod, m.Method)
		if name := m.Params.Name + m.Params.URI; name != "" && m.Method != exchange.Listen && m.Method != "completion/complete" {
			r.Header.Set(headerName, name)
		}
	}
	c.read(r)
}

func (c *talker) head(r *http.Request) {
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.era == exchange.Modern {
		r.Header.Set(headerVersion, firstStateless)
	} else if c.session != "" {
		r.Header.Set(headerVersion, "2025-11-25")
		r.Header.Set(headerSession, c.session)
	}
}

func (c *talker) read(r *http.Request) {
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if id := resp.Header.Get(headerSession); id != "" {
		c.session = id
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		if b, err := io.ReadAll(resp.Body); err == nil && len(b) > 0 {
			c.take(string(b))
		}
		return
	}
	for events := newEventReader(resp.Body, 1<<20, nil); ; {
		e, err := events.next()
		if err != nil {
			return
		}
		if len(e.data) > 0 {
			c.take(string(e.data))
		}
	}
}

// begin asks without waiting. Meta is more of a stateless request's _meta.
func (c *talker) begin(ctx context.Context, method, params, meta string) (id string, answer chan string) {
	c.n++
	id = fmt.Sprint(c.n)
	var members []string
	if params != "" {
		members = append(members, params)
	}
	if c.era == exchange.Modern {
		meta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},` + meta
	}
	if meta = strings.Trim(meta, ","); meta != "" {
		members = append(members, `"_meta":{`+meta+`}`)
	}
	answer = make(chan string, 1)
	c.mu.Lock()
	c.got[id] = answer
	c.mu.Unlock()
	go c.send(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, id, method, strings.Join(members, ",")))
	return id, answer
}

func (c *talker) ask(method, params, meta string) string {
	c.t.Helper()
	_, answer := c.begin(c.t.Context(), method, params, meta)
	select {
	case line := <-answer:
		return line
	case <-time.After(mcptest.Patience):
		c.t.Fatalf("%s is not answered", method)
		return ""
	}
}

// hears waits for something that it is told.
func (c *talker) hears(parts ...string) {
	c.t.Helper()
	late := time.After(mcptest.Patience)
	for {
		c.mu.Lock()
		found := slices.ContainsFunc(c.told, func(line string) bool {
			return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
		})
		told := slices.Clone(c.told)
		c.mu.Unlock()
		if found {
			return
		}
		select {
		case <-c.came:
		case <-late:
			c.t.Fatalf("it does not hear %q, only %q", parts, told)
		}
	}
}

// connect sets a client of one era before a server of another, each on a stream or over HTTP, with what stands between eras between them.
func connect(t *testing.T, client exchange.Era, clientHTTP bool, f *features, serverHTTP bool) *talker {
	t.Helper()
	var dial func(func()) (transport.Link, error)
	if serverHTTP {
		s := New(nowhereListens{}, Options{Stateless: f, Session: func(func(error)) (exchange.Handler, func(), error) { return f, func() {}, nil }, Hosts: []string{"127.0.0.1"}})
		hs := httptest.NewServer(s)
		t.Cleanup(func() {
			hs.CloseClientConnections()
			hs.Close()
		})
		u, err := url.Parse(hs.URL + Path)
		if err != nil {
			t.Fatal(err)
		}
		dial = func(again func()) (transport.Link, error) {
			return Dial(DialOptions{URL: u, Again: again, Agent: "test"}), nil
		}
	} else {
		dial = func(func()) (transport.Link, error) {
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			l := &lined{Writer: wire.NewWriter(inW), out: outR, done: make(chan struct{})}
			over := make(chan struct{})
			go func() {
				defer close(over)
				transport.ServeStdio(context.Background(), inR, outW, f, transport.StdioOptions{})
				outW.Close()
			}()
			l.end = sync.OnceFunc(func() {
				inW.Close()
				<-over
				close(l.done)
			})
			return l, nil
		}
	}
	remote := transport.NewRemote(dial, transport.ProcessOptions{})
	c := &talker{t: t, era: client, got: map[string]chan string{}, came: make(chan struct{}, 1)}
	if clientHTTP {
		s := New(nowhereListens{}, Options{Stateless: remote, Session: func(func(error)) (exchange.Handler, func(), error) { return remote, func() {}, nil }, Hosts: []string{"127.0.0.1"}})
		hs := httptest.NewServer(s)
		t.Cleanup(func() {
			hs.CloseClientConnections()
			hs.Close()
			remote.Close()
		})
		c.url = hs.URL + Path
	} else {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			transport.ServeStdio(context.Background(), inR, outW, remote, transport.StdioOptions{})
			remote.Close()
			outW.Close()
		}()
		go func() {
			for r := bufio.NewReader(outR); ; {
				line, err := r.ReadString('\n')
				if err != nil {
					return
				}
				c.take(strings.TrimSpace(line))
			}
		}()
		c.in = inW
		t.Cleanup(func() {
			inW.Close()
			<-served
		})
	}
	if client == exchange.Modern {
		c.ask("server/discover", "", "")
		return c
	}
	c.ask("initialize", `"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}`, "")
	c.send(t.Context(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if clientHTTP {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.head(r)
		go c.read(r)
	}
	return c
}

// The four pairs of eras, on a stream and over HTTP on either side, are the same to a client: what a server has, what it tells, how it is
// stopped, and what it refuses. Nothing that one hop says for itself is seen on the other.
func TestPairsOfEras(t *testing.T) {
	eras := []exchange.Era{exchange.Legacy, exchange.Modern}
	for _, client := range eras {
		for _, server := range eras {
			for _, ways := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
				way := map[bool]string{false: "stdio", true: "http"}
				t.Run(fmt.Sprintf("%v %s, %v %s", client, way[ways[0]], server, way[ways[1]]), func(t *testing.T) {
					t.Parallel()
					f := newFeatures(server)
					c := connect(t, client, ways[0], f, ways[1])
					pairOf(t, c, f)
				})
			}
		}
	}
}

func pairOf(t *testing.T, c *talker, f *features) {
	modern := c.era == exchange.Modern
	cached := []string{`"resultType":"complete"`, `"ttlMs":`, `"cacheScope":`}
	want := func(method, params, meta string, parts ...string) {
		t.Helper()
		got := c.ask(method, params, meta)
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("%s %s gave %s, want %s", method, params, got, part)
			}
		}
		list := strings.HasSuffix(method, "/list") || method == "resources/read" && strings.Contains(got, `"result"`)
		for _, part := range cached {
			if has := strings.Contains(got, part); has != (modern && (list || part == cached[0] && strings.Contains(got, `"result"`))) {
				t.Errorf("%s gave %s: it has %s: %v", method, got, part, has)
			}
		}
	}
	want("tools/list", "", "", `"tools":[{"name":"a","inputSchema":{"type":"object"},"x-unknown":1}]`, `"nextCursor":"next"`)
	want("prompts/list", "", "", `"prompts":[{"name":"p"}]`)
	want("prompts/get", `"name":"p"`, "", `"text":"hi"`)
	want("prompts/get", `"name":"none"`, "", `"code":-32601`)
	want("resources/list", "", "", `"uri":"x:1"`)
	want("resources/templates/list", "", "", `"uriTemplate":"x:{n}"`)
	want("resources/read", `"uri":"x:1"`, "", `"text":"one"`)
	missing := `"code":-32602`
	if !modern && f.era == exchange.Legacy {
		missing = `"code":-32002`
	}
	want("resources/read", `"uri":"x:2"`, "", missing)
	want("completion/complete", `"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"}`, "", `"values":["v"]`)
	want("no/such", "", "", `"code":-32601`)
	if modern {
		want("ping", "", "", `"code":-32601`)
	} else {
		want("ping", "", "", `"result":{}`)
	}

	// Progress has the client's token, and what a trace is called goes through.
	want("tools/call", `"name":"progress"`, `"progressToken":"mine","traceparent":"00-aa-bb-01"`, `"trace":"00-aa-bb-01"`)
	c.hears(`"progressToken":"mine"`, `"progress":2`)

	// Log messages come to who asked for them.
	want("tools/call", `"name":"log"`, "", `"content":[]`)
	if c.mu.Lock(); slices.ContainsFunc(c.told, func(line string) bool { return strings.Contains(line, "notifications/message") }) {
		t.Errorf("it hears log messages that it did not ask for: %q", c.told)
	}
	c.mu.Unlock()
	level := ""
	if modern {
		level = `"io.modelcontextprotocol/logLevel":"info"`
	} else {
		want("logging/setLevel", `"level":"info"`, "", `"result":{}`)
	}
	want("tools/call", `"name":"log"`, level, `"content":[]`)
	c.hears("notifications/message", `"data":"said"`)

	// Changes, as each era asks for them.
	tag := ""
	if modern {
		id, _ := c.begin(t.Context(), exchange.Listen, `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x:1"]}`, "")
		tag = `"io.modelcontextprotocol/subscriptionId":` + id
		c.hears("notifications/subscriptions/acknowledged", tag, `"toolsListChanged":true`, `"x:1"`)
	} else {
		want("resources/subscribe", `"uri":"x:1"`, "", `"result":{}`)
	}
	want("tools/call", `"name":"touch"`, "", `"content":[]`)
	c.hears("notifications/resources/updated", `"uri":"x:1"`, tag)
	c.hears("notifications/tools/list_changed", tag)

	// Cancelled, by a word or by leaving.
	ctx, leave := context.WithCancel(t.Context())
	id, _ := c.begin(ctx, "tools/call", `"name":"hang"`, "")
	wait := func(what string, ch chan struct{}) {
		t.Helper()
		select {
		case <-ch:
		case <-time.After(mcptest.Patience):
			t.Fatalf("the call is not %s", what)
		}
	}
	wait("begun", f.hanging)
	if modern && c.url != "" {
		leave()
	} else {
		c.send(t.Context(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
	}
	wait("ended", f.ended)
	leave()

	// What the client does not declare is refused, in the words of its era.
	switch {
	case f.era == exchange.Legacy:
		want("tools/call", `"name":"sample"`, "", `"code":-32603`, "the client refuses")
	case modern:
		want("tools/call", `"name":"sample"`, "", `"code":-32021`, `"requiredCapabilities":{"sampling":{}}`)
	default:
		want("tools/call", `"name":"sample"`, "", `"code":-32602`, `"requiredCapabilities":{"sampling":{}}`)
	}

	const reserved = "io.modelcontextprotocol/"
	c.mu.Lock()
	defer c.mu.Unlock()
	if all := strings.Join(c.said, "\n"); !modern && (strings.Contains(all, reserved) || strings.Contains(all, "resultType")) {
		t.Errorf("the client hears words of the other era: %s", all)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range f.heard {
		if f.era == exchange.Legacy && strings.Contains(line, reserved) && !strings.Contains(line, `"server/discover"`) {
			t.Errorf("the server hears words of the other era: %s", line)
		}
	}
}

// nowhereListens is where a server listens whose connections come from elsewhere.
type nowhereListens struct{}

func (nowhereListens) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (nowhereListens) Close() error              { return nil }
func (nowhereListens) Addr() net.Addr            { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
