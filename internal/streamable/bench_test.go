package streamable

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/exchange"
)

// BenchmarkCall is what a call of 1 KB costs here beside a handler of net/http that only reads and writes it.
func BenchmarkCall(b *testing.B) {
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	answer := []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 900) + `"}],"resultType":"complete"}`)
	echo := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Method() != exchange.Listen {
			go reply(exchange.Result(r, answer))
		}
	})
	ctx, cancel := context.WithCancel(b.Context())
	s := New(l, Options{Stateless: echo, Session: func(func(error)) (exchange.Handler, func(), error) { return echo, func() {}, nil }})
	done := make(chan error)
	go func() { done <- s.Serve(ctx, l) }()
	defer func() { cancel(); <-done }()
	least := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c := make(chan []byte)
		go func() { c <- body }()
		w.Header().Set("Content-Type", "application/json")
		w.Write(<-c)
	}))
	defer least.Close()
	client := &http.Client{}
	post := func(url, body string, h headers) *http.Response {
		req, err := http.NewRequest("POST", url, strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		for i := 0; i < len(h); i += 2 {
			req.Header[h[i]] = []string{h[i+1]}
		}
		resp, err := client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		var got bytes.Buffer
		if got.ReadFrom(resp.Body); resp.StatusCode != 200 || got.Len() < 900 && !strings.Contains(body, "initialize") {
			b.Fatalf("got %s %s", resp.Status, got.Bytes())
		}
		resp.Body.Close()
		return resp
	}
	stateless, h := modernCall("1", "x", "}")
	stateless = strings.Replace(stateless, `"name"`, `"arguments":{"text":"`+strings.Repeat("x", 700)+`"},"name"`, 1)
	url := "http://" + l.Addr().String() + Path
	plain := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"text":"` + strings.Repeat("x", 900) + `"}}}`
	sid := headers{headerSession, post(url, strings.Replace(initialize, "%q", `"2025-11-25"`, 1), nil).Header.Get(headerSession)}
	for _, c := range []struct {
		name, url, body string
		h               headers
	}{{"least", least.URL, plain, nil}, {"session", url, plain, sid}, {"stateless", url, stateless, h}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				post(c.url, c.body, c.h)
			}
		})
	}
}
