package streamable

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/transport"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// The four ways in which a server over HTTP turns out to speak an era, for a client of either.
func TestErasOverHTTP(t *testing.T) {
	t.Parallel()
	refuses := func(code int, body string) func(http.ResponseWriter, *http.Request, message) {
		return func(w http.ResponseWriter, _ *http.Request, m message) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			io.WriteString(w, strings.ReplaceAll(body, "ID", string(m.ID)))
		}
	}
	list := jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"tools":[]}}`)
	ping := jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{}}`)
	legacy := func(refusal func(http.ResponseWriter, *http.Request, message)) handlers {
		return with(handshake(), handlers{"POST server/discover": refusal, "POST tools/list": list, "POST ping": ping})
	}
	stateless := func(refusal func(http.ResponseWriter, *http.Request, message)) handlers {
		return handlers{"POST initialize": refusal, "POST server/discover": discovered,
			"POST tools/list": jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"tools":[],"resultType":"complete"}}`)}
	}
	for name, h := range map[string]handlers{
		"legacy, empty 400":     legacy(refuses(400, "")),
		"legacy, 404":           legacy(refuses(404, "not here")),
		"legacy, 405":           legacy(refuses(405, "")),
		"legacy, 500":           legacy(refuses(500, "oh")),
		"legacy, in words":      legacy(refuses(400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`)),
		"legacy, unknown":       legacy(jsonAnswer(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no"}}`)),
		"modern, -32022":        stateless(refuses(400, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}}`)),
		"modern, unknown":       stateless(refuses(404, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no"}}`)),
		"modern, without words": stateless(refuses(400, "")),
	} {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(name+" for "+era, func(t *testing.T) {
				t.Parallel()
				s := newSite(t, h)
				p := dial(t, s.URL, nil)
				if era == "legacy" {
					p.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`)
					p.want(`"id":0,"result"`, `"protocolVersion":"2025-06-18"`)
					p.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
					p.say(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
					p.want(`{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`)
				} else {
					p.modern(0, "server/discover", "")
					p.want(`"id":0,"result"`, `"supportedVersions":["2026-07-28"]`)
					p.modern(1, "tools/list", "")
					p.want(`"id":1,"result":{"tools":[],"resultType":"complete"`)
				}
			})
		}
	}
}

// The HTTP of revision 2024-11-05: a stream, which says first where to post to.
func TestTheOldWay(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			out := make(chan string, 10)
			broken := make(chan struct{}, 1)
			answers := map[string]string{
				"initialize": `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`,
				"ping":       `{}`, "tools/list": `{"tools":[]}`,
			}
			s := newSite(t, handlers{
				"GET": func(w http.ResponseWriter, r *http.Request, m message) {
					sse("event: endpoint|data: /messages?sessionId=1||")(w, r, m)
					for {
						select {
						case text := <-out:
							sse("event: message|data: "+text+"||")(w, r, m)
						case <-broken:
							return
						case <-r.Context().Done():
							return
						}
					}
				},
				"POST": func(w http.ResponseWriter, r *http.Request, m message) {
					if r.URL.Path != "/messages" {
						w.WriteHeader(http.StatusNotFound)
						return
					}
					w.WriteHeader(http.StatusAccepted)
					if answer, ok := answers[m.Method]; ok {
						out <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, answer)
					}
				},
			})
			p := dial(t, s.URL+"/sse", nil)
			if era == "modern" {
				p.modern(0, "server/discover", "")
				p.want(`"id":0,"result"`)
				p.modern(1, "tools/list", "")
				p.want(`"id":1,"result":{"tools":[]`)
				return
			}
			p.greet()
			p.say(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			p.want(`{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`)
			if got := s.requests("GET"); len(got) != 1 {
				t.Errorf("%d streams were opened for one session", len(got))
			}
			// When the stream ends, what is open fails: nobody knows whether it was done. What comes then is said in a new session.
			p.call(2)
			p.until(func() bool { return len(s.requests("POST tools/call")) == 1 }, func() string { return "no call" })
			broken <- struct{}{}
			p.want(`"id":2`, `"reason":"broken"`)
			p.say(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
			p.want(`{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}`)
			if got := s.requests("POST tools/call"); len(got) != 1 {
				t.Errorf("%d calls", len(got))
			}
		})
	}
}

// An endpoint at another origin gets nothing.
func TestAnOldServerThatSendsElsewhere(t *testing.T) {
	t.Parallel()
	elsewhere := newSite(t, nil)
	s := newSite(t, handlers{
		"GET":  sse("event: endpoint|data: " + elsewhere.URL + "/x||"),
		"POST": func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(http.StatusNotFound) },
	})
	p := dial(t, s.URL, nil, transport.ProcessOptions{Protocol: "legacy"})
	p.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}`)
	p.want(`"id":0`, "no MCP server at this URL")
	p.wait("another place, " + elsewhere.URL)
	if got := elsewhere.requests(""); len(got) > 0 {
		t.Errorf("the other place got %q", got)
	}
}

// Headers say what a stateless request is, with arguments as the list of tools says.
func TestMirroredHeaders(t *testing.T) {
	t.Parallel()
	var headers http.Header
	call := func(w http.ResponseWriter, r *http.Request, m message) {
		headers = r.Header.Clone()
		if r.Header.Get("Mcp-Param-Region") == "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32020,"message":"Header mismatch"}}`, m.ID)
			return
		}
		jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"content":[],"resultType":"complete"}}`)(w, r, m)
	}
	tools := jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","tools":[
		{"name":"a","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}},
		{"name":"bad","inputSchema":{"type":"object","properties":{"x":{"type":"number","x-mcp-header":"X"}}}},
		{"name":"c","inputSchema":{"type":"object"}}]}}`)
	for _, listed := range []bool{true, false} {
		s := newSite(t, handlers{"POST server/discover": discovered, "POST tools/list": tools, "POST tools/call": call})
		p := dial(t, s.URL, nil)
		p.modern(0, "server/discover", "")
		p.want(`"id":0,"result"`)
		if listed {
			p.modern(1, "tools/list", "")
			line := p.want(`"name":"a"`, `"name":"c"`)
			if strings.Contains(line, `"bad"`) {
				t.Errorf("got %s", line)
			}
			p.wait(`was left out, which cannot be called over HTTP: "bad"`)
		}
		p.modern(2, "tools/call", `"name":"a","arguments":{"region":"Zürich"}`)
		p.want(`"id":2,"result"`)
		for name, want := range map[string]string{
			headerVersion: "2026-07-28", headerMethod: "tools/call", headerName: "a", "Mcp-Param-Region": "=?base64?WsO8cmljaA==?=", headerSession: "",
		} {
			if got := headers.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if got := len(s.requests("POST tools/call")); listed != (got == 1) || got > 2 {
			t.Errorf("listed %v: %d calls", listed, got)
		}
		p.modern(3, "tools/call", `"name":"a","arguments":{}`)
		p.want(`"id":3`, `-32020`) // a refusal that no list explains is the answer
	}
}

// The end of its stream cancels a stateless request, and nothing else says so.
func TestCancellationEndsTheStream(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	s := newSite(t, handlers{"POST server/discover": discovered, "POST tools/call": func(w http.ResponseWriter, r *http.Request, m message) {
		sse(": here||")(w, r, m)
		<-r.Context().Done()
		close(ended)
	}})
	p := dial(t, s.URL, nil)
	p.modern(0, "server/discover", "")
	p.want(`"id":0`)
	p.modern(1, "tools/call", `"name":"a"`)
	p.until(func() bool { return len(s.requests("POST tools/call")) == 1 }, func() string { return "no call" })
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-ended
	if got := s.requests("POST notifications"); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

// With a session a cancellation is a message.
func TestCancellationInASession(t *testing.T) {
	t.Parallel()
	s := newSite(t, with(handshake(), handlers{"POST tools/call": func(w http.ResponseWriter, r *http.Request, m message) {
		sse(": here||")(w, r, m)
		<-r.Context().Done()
	}}))
	p := dial(t, s.URL, nil)
	p.greet()
	p.call(1)
	p.until(func() bool { return len(s.requests("POST tools/call")) == 1 }, func() string { return "no call" })
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	p.until(func() bool { return len(s.requests("POST notifications/cancelled Mcp-Session-Id=s1")) == 1 }, func() string { return "no cancellation" })
}

// A subscription whose stream breaks is made again, and its client hears of the first acknowledgement only.
func TestASubscriptionIsMadeAgain(t *testing.T) {
	t.Parallel()
	n := 0
	s := newSite(t, handlers{"POST server/discover": discovered, "POST subscriptions/listen": func(w http.ResponseWriter, r *http.Request, m message) {
		var id json.RawMessage = m.ID
		meta := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/subscriptionId":%s}`, id)
		sse(`data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},`+meta+`}}||`)(w, r, m)
		sse(`data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{`+meta+`}}||`)(w, r, m)
		if n++; n > 1 {
			if string(id) == "5" {
				t.Error("the same id once more")
			}
			<-r.Context().Done()
		}
	}})
	p := dial(t, s.URL, nil)
	p.modern(0, "server/discover", "")
	p.want(`"id":0`)
	p.modern(5, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	p.want("acknowledged", `/subscriptionId":5`)
	p.want("list_changed")
	p.want("list_changed", `/subscriptionId":5`)
}

// Where nothing changes, a stateless request whose stream breaks is made again under another id; a call is not.
func TestOnlyWhatChangesNothingIsRepeated(t *testing.T) {
	t.Parallel()
	n := 0
	s := newSite(t, handlers{
		"POST server/discover": discovered,
		"POST tools/list": func(w http.ResponseWriter, r *http.Request, m message) {
			if n++; n == 1 {
				sse(": nothing||")(w, r, m)
				return
			}
			jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"tools":[],"resultType":"complete"}}`)(w, r, m)
		},
		"POST tools/call": sse("id: 1|data: ||"),
	})
	p := dial(t, s.URL, nil)
	p.modern(0, "server/discover", "")
	p.want(`"id":0`)
	p.modern(1, "tools/list", "")
	p.want(`"id":1,"result"`)
	p.modern(2, "tools/call", `"name":"a"`)
	p.want(`"id":2`, `"reason":"broken"`)
	if got := append(s.requests("POST tools/call"), s.requests("GET")...); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

// A server without a session has nobody to ask. Where it speaks the stateless era too, it is spoken to in that.
func TestAServerWithoutASession(t *testing.T) {
	t.Parallel()
	greets := jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`)
	asks := func(w http.ResponseWriter, r *http.Request, m message) {
		switch {
		case r.Header.Get(headerVersion) != firstStateless:
			jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"asked nobody"}]}}`)(w, r, m)
		case strings.Contains(m.raw, `"action":"accept"`):
			jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","content":[{"type":"text","text":"accepted"}]}}`)(w, r, m)
		default:
			jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","inputRequests":{"ok":{"method":"elicitation/create","params":{"message":"?"}}}}}`)(w, r, m)
		}
	}
	for name, tt := range map[string]struct {
		on    handlers
		hold  transport.Protocol
		wants []string
	}{
		"of both eras":       {handlers{"POST server/discover": discovered}, "", []string{"POST initialize", "POST server/discover", "POST tools/call", "POST tools/call"}},
		"of one":             {nil, "", []string{"POST initialize", "POST server/discover", "POST notifications/initialized", "GET", "POST tools/call"}},
		"that is held to it": {handlers{"POST server/discover": discovered}, "legacy", []string{"POST initialize", "POST notifications/initialized", "GET", "POST tools/call"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, with(handlers{"POST initialize": greets, "POST tools/call": asks}, tt.on))
			p := dial(t, s.URL, nil, transport.ProcessOptions{Protocol: tt.hold})
			p.greet()
			p.call(1)
			want := "asked nobody"
			if !slices.Contains(tt.wants, "GET") {
				line := p.want(`"method":"elicitation/create"`)
				var q message
				if err := json.Unmarshal([]byte(line), &q); err != nil {
					t.Fatal(err)
				}
				p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{}}}`, q.ID))
				want = "accepted"
			}
			p.want(`"id":1`, want)
			got, wants := s.requests(""), slices.Clone(tt.wants)
			slices.Sort(got) // the stream of what belongs to no request is opened beside
			slices.Sort(wants)
			if !slices.Equal(got, wants) {
				t.Errorf("the server got %q, want %q", got, wants)
			}
		})
	}
}

// That a server has just closed the connection that was open is no failure of what changes nothing. A call may have been done.
func TestAnIdleConnectionThatTheServerCloses(t *testing.T) {
	t.Parallel()
	closes := func(w http.ResponseWriter) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		c.Close()
	}
	n := 0
	s := newSite(t, handlers{
		"POST server/discover": discovered,
		"POST tools/list": func(w http.ResponseWriter, r *http.Request, m message) {
			if n++; n == 1 {
				closes(w)
				return
			}
			jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"tools":[],"resultType":"complete"}}`)(w, r, m)
		},
		"POST tools/call": func(w http.ResponseWriter, _ *http.Request, _ message) { closes(w) },
	})
	p := dial(t, s.URL, nil)
	p.modern(0, "server/discover", "")
	p.want(`"id":0`)
	p.modern(1, "tools/list", "")
	p.want(`"id":1,"result"`)
	p.modern(2, "tools/call", `"name":"a"`)
	p.want(`"id":2`, `"reason":"broken"`)
	if got := s.requests("POST tools/call"); len(got) != 1 {
		t.Errorf("the call was made %d times", len(got))
	}
}

// Those who listen keep nobody from calling, however many they are.
func TestManyListenAndOneCalls(t *testing.T) {
	t.Parallel()
	s := newSite(t, handlers{
		"POST server/discover": discovered,
		"POST tools/call":      jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"content":[],"resultType":"complete"}}`),
		"POST subscriptions/listen": func(w http.ResponseWriter, r *http.Request, m message) {
			sse(`data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":`+string(m.ID)+`}}}||`)(w, r, m)
			<-r.Context().Done()
		},
	})
	p := dial(t, s.URL, nil)
	p.modern(0, "server/discover", "")
	p.want(`"id":0`)
	const listeners = maxPosts + 10
	for i := range listeners {
		p.modern(i+1, "subscriptions/listen", `"notifications":{}`)
	}
	for range listeners {
		p.want("acknowledged")
	}
	p.modern(1000, "tools/call", `"name":"a"`)
	p.want(`"id":1000,"result"`)
}

// A server that ends a stream as soon as it has begun is not asked again and again without a pause.
func TestAStreamThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, handlers{"POST server/discover": discovered, "POST subscriptions/listen": sse(": here||")})
	p := dial(t, s.URL, nil)
	p.modern(0, "server/discover", "")
	p.want(`"id":0`)
	p.modern(1, "subscriptions/listen", `"notifications":{}`)
	p.until(func() bool { return len(s.requests("POST subscriptions/listen")) > 5 }, func() string { return "it is not made again" })
	time.Sleep(500 * time.Millisecond)
	if n := len(s.requests("POST subscriptions/listen")); n > 50 {
		t.Errorf("it was made %d times", n)
	}
}
