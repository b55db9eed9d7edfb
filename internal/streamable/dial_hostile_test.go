package streamable

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rootbound/rootbound/internal/transport"
)

// A server that never answers, and does not even hear that the session ends, keeps nobody: neither a client that cancels, nor the
// end of this program.
func TestAServerThatHangs(t *testing.T) {
	t.Parallel()
	hang := func(_ http.ResponseWriter, r *http.Request, _ message) { <-r.Context().Done() }
	s := newSite(t, with(handshake(), handlers{
		"POST tools/call": hang, "DELETE": hang,
		"GET": func(w http.ResponseWriter, r *http.Request, m message) {
			sse(": here||")(w, r, m)
			<-r.Context().Done()
		},
	}))
	p := dial(t, s.URL, nil)
	p.greet()
	for id := 1; id <= 3; id++ {
		p.call(id)
	}
	p.until(func() bool { return len(s.requests("POST tools/call")) == 3 }, func() string { return "no calls" })
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	p.until(func() bool { return len(s.requests("POST notifications/cancelled")) == 1 }, func() string { return "no cancellation" })
	p.say(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
	p.want(`"id":9`)
	p.in.Close()
	for range p.lines { // up to the end
	}
}

// A stream without an end, or with things in it that are no answer, holds up only its own request.
func TestStreamsWithOtherThings(t *testing.T) {
	t.Parallel()
	s := newSite(t, with(handshake(), handlers{
		"POST tools/call": func(w http.ResponseWriter, r *http.Request, m message) {
			switch string(m.ID) {
			case "1": // without an end
				for r.Context().Err() == nil {
					sse(`data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"nobody's"}}||`)(w, r, m)
				}
			case "2": // no JSON, ambiguous, of another, a line end in a string; then the answer, on several lines and with an answer behind it
				sse("event: other|data: {}||data: what||"+`data: {"jsonrpc":"2.0","id":77,"result":{},"result":{}}||data: {"jsonrpc":"2.0","id":99,"result":{}}||`+
					"data: {\"jsonrpc\":\"2.0\",\"method\":\"x|data: y\"}||"+
					"data: {|data:   \"jsonrpc\": \"2.0\",|data:   \"id\": ID,|data:   \"result\": {\"content\": []}|data: }||"+
					`data: {"jsonrpc":"2.0","id":ID,"result":{"content":"again"}}||`)(w, r, m)
			case "3": // refused, as it could be read in two ways
				sse(`data: {"jsonrpc":"2.0","id":ID,"result":{"a":1,"a":2}}||`)(w, r, m)
			case "4": // an error for nobody is for who asked
				sse(`data: {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"oh"}}||`)(w, r, m)
			default: // the same id in another spelling, and pretty
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
				io.WriteString(w, "\n{\n \"jsonrpc\": \"2.0\",\r\n \"id\": 5.0,\n \"result\": {}\n}\n")
			}
		},
	}))
	p := dial(t, s.URL, nil)
	p.greet()
	p.call(1)
	answer := func(id int) string {
		t.Helper()
		p.call(id)
		for {
			line := p.next()
			if strings.Contains(line, fmt.Sprintf(`id":%d,`, id)) || strings.Contains(line, fmt.Sprintf(`"id": %d,`, id)) {
				return line
			}
			if strings.Contains(line, "again") {
				t.Errorf("got %s", line)
			}
		}
	}
	for id, want := range map[int]string{2: `"result": {"content": []}`, 3: "the server's answer was refused: duplicate name", 4: `"code":-32000,"message":"oh"`, 5: `"result": {}`} {
		if got := answer(id); !strings.Contains(got, want) || strings.ContainsAny(got, "\r\n") {
			t.Errorf("%d: %q, want %s", id, got, want)
		}
	}
	p.wait("answered \"99\", which is not open")
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
}

// A batch answers its own request, in the one revision that has batches.
func TestABatchAsAnAnswer(t *testing.T) {
	t.Parallel()
	h := handshake()
	h["POST initialize"] = jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`)
	h["POST tools/call"] = jsonAnswer(`[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}},{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}]`)
	s := newSite(t, h)
	p := dial(t, s.URL, nil)
	p.greet()
	p.call(1)
	p.want("notifications/message")
	p.want(`"id":1,"result":{"content":[]}`)
}

// Held to an era, a server that speaks both is spoken to in that one.
func TestAServerOfBothErasThatIsHeldToOne(t *testing.T) {
	t.Parallel()
	both := func() handlers {
		return with(handshake(), handlers{
			"POST server/discover": discovered, "POST ping": jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{}}`),
			"POST tools/list": jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"tools":[],"resultType":"complete"}}`),
		})
	}
	for held, tt := range map[transport.Protocol]struct{ never, once string }{
		"legacy": {"POST server/discover", "POST initialize"}, "modern": {"POST initialize", "POST server/discover"},
	} {
		for _, client := range []string{"legacy", "modern"} {
			s := newSite(t, both())
			p := dial(t, s.URL, nil, transport.ProcessOptions{Protocol: held})
			if client == "legacy" {
				p.greet()
				p.say(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			} else {
				p.modern(0, "server/discover", "")
				p.want(`"id":0,"result"`)
				p.modern(1, "tools/list", "")
			}
			p.want(`"id":1,"result"`)
			if never, once := s.requests(tt.never), s.requests(tt.once); len(never) > 0 || len(once) != 1 {
				t.Errorf("a %s client, held to %s: the server got %q", client, held, s.requests(""))
			}
		}
	}
}

// Many at once: each has its own answer, and no more are with the server than there may be.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	open, most := 0, 0
	s := newSite(t, with(handshake(), handlers{"POST tools/call": func(w http.ResponseWriter, r *http.Request, m message) {
		mu.Lock()
		open++
		most = max(most, open)
		mu.Unlock()
		jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"of":ID}}`)(w, r, m)
		mu.Lock()
		open--
		mu.Unlock()
	}}))
	p := dial(t, s.URL, nil)
	p.greet()
	const n = 1000
	go func() {
		for id := 1; id <= n; id++ {
			io.WriteString(p.in, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a"}}`+"\n", id))
		}
	}()
	var got []int
	for range n {
		var id, of int
		if _, err := fmt.Sscanf(p.next(), `{"jsonrpc":"2.0","id":%d,"result":{"of":%d}}`, &id, &of); err != nil || id != of {
			t.Fatalf("%d has the answer of %d: %v", id, of, err)
		}
		got = append(got, id)
	}
	slices.Sort(got)
	if len(slices.Compact(got)) != n || most > maxPosts {
		t.Errorf("%d answers, %d at once", len(got), most)
	}
}
