package streamable

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/transport"
)

// fault is what one of the two ways between a client and a server suffers: it is cut behind so many bytes (a negative number is never),
// what is sent comes in pieces, or late.
type fault struct {
	cut   int
	split bool
	late  *rand.Rand
}

// network is where a server listens, and its clients connect: the ways there and back have faults, which the first connection that
// reaches them suffers, and the others not.
type network struct {
	there, back direction
	conns       chan net.Conn
	closed      chan struct{}
	once        sync.Once
}

// direction counts what goes one way.
type direction struct {
	mu   sync.Mutex
	f    fault
	n    int
	gone bool // it was cut
}

func newNetwork(there, back fault) *network {
	return &network{there: direction{f: there}, back: direction{f: back}, conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

func (n *network) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case n.conns <- &way{far, &n.back}:
		return &way{near, &n.there}, nil
	case <-n.closed:
	case <-ctx.Done():
	}
	return nil, net.ErrClosed
}

// way is one end of a connection.
type way struct {
	net.Conn
	d *direction
}

func (w *way) Write(b []byte) (int, error) {
	w.d.mu.Lock()
	f, n, gone := w.d.f, w.d.n, w.d.gone
	w.d.n += len(b)
	cut := !gone && f.cut >= 0 && n+len(b) > f.cut
	w.d.gone = gone || cut
	var late time.Duration
	if f.late != nil {
		late = time.Duration(f.late.IntN(300)) * time.Millisecond
	}
	w.d.mu.Unlock()
	time.Sleep(late) // not with the lock, for which nobody waits in the time of the bubble
	if cut {
		w.Conn.Write(b[:max(0, f.cut-n)])
		w.Conn.Close()
		return 0, net.ErrClosed
	}
	if !f.split {
		return w.Conn.Write(b)
	}
	for i := range b {
		if _, err := w.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

// world is a client over HTTP, a guard and a server over HTTP.
type world struct {
	client exchange.Era
	server *exchange.Era // nil for both
	faults [4]fault      // client to guard, guard to client, guard to server, server to guard
	outer  *network
	inner  *network
	tools  *mcptest.Counted
	wrong  []string
	heard  []string
}

func (w *world) play(t *testing.T) {
	w.outer, w.inner = newNetwork(w.faults[0], w.faults[1]), newNetwork(w.faults[2], w.faults[3])
	w.tools = mcptest.NewCounted(w.server)
	ctx, stop := context.WithCancel(t.Context())
	var served sync.WaitGroup
	serve := func(l *network, o Options) {
		served.Go(func() { New(l, o).Serve(ctx, l) })
	}
	serve(w.inner, Options{Stateless: w.tools, Session: func(func(error)) (exchange.Handler, func(), error) { return w.tools, func() {}, nil }})
	u, err := url.Parse("http://127.0.0.1/mcp")
	if err != nil {
		t.Fatal(err)
	}
	guarded := func() (exchange.Handler, func()) {
		remote := transport.NewRemote(func(again func()) (transport.Link, error) {
			l := Dial(DialOptions{URL: u, Again: again, Agent: "test"})
			l.client.Transport.(*http.Transport).DialContext = w.inner.dial
			l.client.Transport.(*http.Transport).Proxy = nil
			return l, nil
		}, transport.ProcessOptions{})
		return guard.New(guard.Options{Server: "s"}).Wrap(remote), remote.Close
	}
	all, end := guarded()
	serve(w.outer, Options{Stateless: all, Session: func(func(error)) (exchange.Handler, func(), error) {
		h, end := guarded()
		return h, end, nil
	}})
	tr := &http.Transport{DialContext: w.outer.dial}
	w.talk(&http.Client{Transport: tr, Timeout: time.Hour})
	tr.CloseIdleConnections()
	stop()
	served.Wait()
	end()
	synctest.Wait()
}

// post sends a message, and returns what comes on its stream until its answer does; answers go to questions as they come.
func (w *world) post(c *http.Client, session *string, line string) (answer map[string]json.RawMessage) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	json.Unmarshal([]byte(line), &m)
	r, err := http.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(line))
	if err != nil {
		return nil
	}
	r.GetBody = nil // it is sent once
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if w.client == exchange.Modern {
		r.Header.Set(headerVersion, firstStateless)
		r.Header.Set(headerMethod, m.Method)
		if m.Params.Name != "" {
			r.Header.Set(headerName, m.Params.Name)
		}
	} else if *session != "" {
		r.Header.Set(headerSession, *session)
		r.Header.Set(headerVersion, "2025-11-25")
	}
	resp, err := c.Do(r)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	if id := resp.Header.Get(headerSession); id != "" {
		*session = id
	}
	took := func(data []byte) bool {
		got := map[string]json.RawMessage{}
		if json.Unmarshal(data, &got) != nil {
			return false // cut
		}
		w.heard = append(w.heard, string(data))
		switch {
		case string(got["method"]) == `"elicitation/create"`:
			go w.post(c, session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{}}}`, got["id"]))
		case got["method"] != nil:
		case string(got["id"]) != string(m.ID) && string(got["id"]) != "null":
			w.wrong = append(w.wrong, string(data))
		default:
			answer = got
			return true
		}
		return false
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		if body, err := io.ReadAll(resp.Body); err == nil {
			took(body)
		}
		return answer
	}
	for events := newEventReader(resp.Body, 1<<20, nil); ; {
		e, err := events.next()
		if err != nil || len(bytes.TrimSpace(e.data)) > 0 && took(e.data) {
			return answer
		}
	}
}

func (w *world) talk(c *http.Client) {
	session, id := "", 0
	var ask func(method, params, more string) map[string]json.RawMessage
	ask = func(method, params, more string) map[string]json.RawMessage {
		id++
		full := params + more
		if w.client == exchange.Modern {
			full = strings.Trim(params+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`, ",") + more
		}
		got := w.post(c, &session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, method, full))
		var result struct {
			ResultType, RequestState string
			InputRequests            map[string]any
		}
		json.Unmarshal(got["result"], &result)
		if result.ResultType != "input_required" {
			return got
		}
		for key := range result.InputRequests {
			again := fmt.Sprintf(`,"inputResponses":{%q:{"action":"accept","content":{}}},"requestState":%q`, key, result.RequestState)
			got = ask(method, params, again)
			ask(method, params, again) // and once more: it is good once
		}
		return got
	}
	if w.client == exchange.Modern {
		ask("server/discover", "", "")
	} else {
		ask("initialize", `"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}`, "")
		w.post(c, &session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	for i, tool := range []string{"do", "ask", "do"} {
		n := strconv.Itoa(i + 1)
		got := ask("tools/call", fmt.Sprintf(`"name":%q,"arguments":{"n":"%s"}`, tool, n), "")
		if result := string(got["result"]); result != "" && !strings.Contains(result, " "+n+`"`) {
			w.wrong = append(w.wrong, fmt.Sprintf("the call %s was answered with %s", n, result))
		}
	}
}

// Whatever happens to a connection, and wherever: no answer is another one's, nothing is done twice, and nothing is left. In this time, which is
// not the real one, a goroutine that is left fails the test.
func TestChaos(t *testing.T) {
	legacy, modern := exchange.Legacy, exchange.Modern
	names := []string{"client to guard", "guard to client", "guard to server", "server to guard"}
	for _, client := range []exchange.Era{legacy, modern} {
		for _, server := range []*exchange.Era{&legacy, &modern} {
			t.Run(client.String()+"-"+server.String(), func(t *testing.T) {
				t.Parallel()
				run := func(at int, f fault) (w *world) {
					synctest.Test(t, func(t *testing.T) {
						w = &world{client: client, server: server, faults: [4]fault{{cut: -1}, {cut: -1}, {cut: -1}, {cut: -1}}}
						w.faults[at] = f
						w.play(t)
						for n, times := range w.tools.Done() {
							if times > 1 {
								w.wrong = append(w.wrong, fmt.Sprintf("the call %s was done %d times", n, times))
							}
						}
						if len(w.wrong) > 0 {
							t.Errorf("%s, with %+v: %s\nthe client heard %s", names[at], f, strings.Join(w.wrong, "\n"), strings.Join(w.heard, "\n"))
						}
					})
					return w
				}
				clean := run(0, fault{cut: -1})
				if done := clean.tools.Done(); done["1"] != 1 || done["2"] != 1 || done["3"] != 1 {
					t.Fatalf("without a fault the calls were done %v times; the client heard %s", done, strings.Join(clean.heard, "\n"))
				}
				step := 7
				switch {
				case os.Getenv("ROOTBOUND_CHAOS") == "every": // offset, which takes a minute or two
					step = 1
				case mcptest.Race:
					step = 101
				}
				for at, d := range []*direction{&clean.outer.there, &clean.outer.back, &clean.inner.there, &clean.inner.back} {
					for cut := 0; cut <= d.n && !t.Failed(); cut += step {
						run(at, fault{cut: cut})
					}
					run(at, fault{cut: -1, split: true})
					for seed := range uint64(3) {
						run(at, fault{cut: -1, late: rand.New(rand.NewPCG(seed, uint64(at)))})
					}
				}
			})
		}
	}
}
