package streamable

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/transport"
)

// What a client shows to say who it is goes on with what it asks, and with nothing of another one; and only where that is wanted.
func TestWhatClientsShowIsHandedOn(t *testing.T) {
	t.Parallel()
	for _, wanted := range []bool{true, false} {
		var mu sync.Mutex
		var shown []string
		note := func(h func(http.ResponseWriter, *http.Request, message)) func(http.ResponseWriter, *http.Request, message) {
			return func(w http.ResponseWriter, r *http.Request, m message) {
				mu.Lock()
				shown = append(shown, r.Method+" "+m.Method+" "+r.Header.Get("Authorization"))
				mu.Unlock()
				h(w, r, m)
			}
		}
		h := with(handshake(), handlers{
			"POST server/discover":           discovered,
			"POST notifications/initialized": func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(http.StatusAccepted) },
			"POST tools/list":                jsonAnswer(`{"jsonrpc":"2.0","id":ID,"result":{"tools":[],"resultType":"complete"}}`),
			"GET":                            func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(http.StatusMethodNotAllowed) },
		})
		for key := range h {
			h[key] = note(h[key])
		}
		s := newSite(t, h)
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		remote := func() *transport.Remote {
			var r *transport.Remote
			r = transport.NewRemote(func(again func()) (transport.Link, error) {
				o := DialOptions{URL: u, Again: again}
				if wanted {
					o.Forwarded = r.Shown
				}
				return Dial(o), nil
			}, transport.ProcessOptions{})
			return r
		}
		all := remote()
		ln, err := Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		server := New(ln, Options{Stateless: all, Session: func(func(error)) (exchange.Handler, func(), error) {
			one := remote()
			return one, one.Close, nil
		}})
		go func() {
			defer close(done)
			server.Serve(ctx, ln)
			all.Close()
		}()
		post := func(who, session, body string, more ...string) *http.Response {
			t.Helper()
			req, err := http.NewRequest(http.MethodPost, "http://"+ln.Addr().String()+Path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(more); i += 2 {
				req.Header.Set(more[i], more[i+1])
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			if who != "" {
				req.Header.Set("Authorization", "Bearer "+who)
			}
			if session != "" {
				req.Header.Set(headerSession, session)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			return resp
		}
		// Clients of the stateless era share one way, and one of these shows nothing.
		for _, who := range []string{"ada", "", "bob"} {
			post(who, "", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+modernMeta+`}}`, headerVersion, "2026-07-28", headerMethod, "tools/list")
		}
		session := post("eve", "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`).Header.Get(headerSession)
		post("eve", session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		post("eve", session, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		cancel()
		<-done
		mu.Lock()
		got := slices.DeleteFunc(slices.Clone(shown), func(s string) bool { return strings.HasPrefix(s, "DELETE") })
		mu.Unlock()
		want := []string{"POST tools/list Bearer ada", "POST tools/list ", "POST tools/list Bearer bob", "POST initialize Bearer eve",
			"GET  Bearer eve", "POST notifications/initialized Bearer eve", "POST tools/list Bearer eve"}
		if !wanted {
			for i := range want {
				want[i], _, _ = strings.Cut(want[i], "Bearer")
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("wanted %v: the server was shown %q, want %q", wanted, got, want)
		}
	}
}
