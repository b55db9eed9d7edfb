package streamable

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/wire"
)

// A call whose headers were refused is sent once more, also where the refusal came on a stream that does not end.
func TestHeadersRefusedOnAStreamWithoutAnEnd(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	s := newSite(t, handlers{"POST server/discover": discovered,
		"POST tools/list": jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","tools":[
			{"name":"a","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}}`),
		"POST tools/call": func(w http.ResponseWriter, r *http.Request, m message) {
			if r.Header.Get("Mcp-Param-Region") == "" {
				sse(`data: {"jsonrpc":"2.0","id":ID,"error":{"code":-32020,"message":"Header mismatch"}}||`)(w, r, m)
				<-r.Context().Done()
				close(ended)
				return
			}
			<-ended
			jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"content":[],"resultType":"complete"}}`)(w, r, m)
		},
	})
	p := dial(t, s.URL, nil)
	p.modern(0, "server/discover", "")
	p.want(`"id":0,"result"`)
	p.modern(2, "tools/call", `"name":"a","arguments":{"region":"x"}`)
	p.want(`"id":2,"result"`)
}

// An answer in a batch, which the stateless revision has not, is a refusal, and not silence.
func TestABatchWhereThereIsNone(t *testing.T) {
	t.Parallel()
	s := newSite(t, handlers{"POST server/discover": discovered, "POST tools/call": jsonAnswer(`[{"jsonrpc":"2.0","id":ID,"result":{"content":[],"resultType":"complete"}}]`)})
	p := dial(t, s.URL, nil)
	p.modern(0, "server/discover", "")
	p.want(`"id":0,"result"`)
	p.modern(1, "tools/call", `"name":"a"`)
	p.want(`"id":1,"error"`, "it came in a batch")
}

// A server that takes every handshake and forgets its session at once is not greeted for ever: neither for the calls of its client nor
// for what it is told anew.
func TestAServerThatForgetsEverySession(t *testing.T) {
	t.Parallel()
	gone := func(w http.ResponseWriter, _ *http.Request, _ message) {
		http.Error(w, "no such session", http.StatusNotFound)
	}
	s := newSite(t, with(handshake(), handlers{"POST tools/call": gone}))
	p := dial(t, s.URL, nil)
	p.greet()
	const calls = 30
	for id := range calls {
		p.call(id + 1)
		p.want(fmt.Sprintf(`"id":%d`, id+1), "forgotten the session")
	}
	if n := len(s.requests("POST initialize")); n < 2 || n > calls {
		t.Errorf("it was greeted %d times", n)
	}
}

// A client that says twice that its handshake is complete is heard once: the second time the server may have forgotten the session already.
func TestAHandshakeThatIsCompletedTwice(t *testing.T) {
	t.Parallel()
	again, twice := make(chan struct{}), make(chan struct{})
	forgets := func(w http.ResponseWriter, _ *http.Request, _ message) {
		http.Error(w, "no such session", http.StatusNotFound)
	}
	s := newSite(t, handshake())
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 10)
	l := Dial(DialOptions{URL: u, Again: func() { close(again) }})
	t.Cleanup(func() { l.Close() })
	go l.Receive(func(m *wire.Message, _ *wire.Refusal, _ string) { said <- string(m.Bytes()) })
	send := func(line string) {
		m, err := wire.Scan([]byte(line), wire.Strict)
		if err != nil {
			t.Fatal(err)
		}
		l.Send(&m)
	}
	const begin = `{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{}}`
	send(fmt.Sprintf(begin, 0))
	wait(t, said, "the answer to the handshake")
	send(initialized)
	s.set("POST tools/call", func(w http.ResponseWriter, r *http.Request, m message) {
		select {
		case <-twice:
		case <-r.Context().Done():
		}
		forgets(w, r, m)
	})
	s.set("POST notifications/initialized", func(w http.ResponseWriter, r *http.Request, m message) {
		close(twice)
		select {
		case <-again:
		case <-r.Context().Done():
		}
		forgets(w, r, m)
	})
	send(fmt.Sprintf(call, 1))
	send(initialized)
	wait(t, again, "that the handshake is to be said again")
	s.set("POST tools/call", handshake()["POST tools/call"])
	s.set("POST notifications/initialized", func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(http.StatusAccepted) })
	send(fmt.Sprintf(begin, 2))
	wait(t, said, "the answer to the other handshake")
	send(initialized)
	if got := wait(t, said, "the answer to the call"); !strings.Contains(got, `"id":1,"result"`) {
		t.Errorf("the call got %s", got)
	}
}
