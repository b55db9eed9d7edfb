package fsserver

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/roots"
)

// Where a file system holds up as many calls as may be, those that would wait for them are refused in words.
func TestLargeFilesDoNotWaitForEver(t *testing.T) {
	dir := old(t, tree(t, map[string]string{"large": strings.Repeat("x", large+1)}))
	set := roots.NewSet(resolve(t, dir, roots.ReadOnly))
	s := newServer(t)
	s.slots.waits.slot = time.Millisecond
	s.slots.heldUp.Store(maxHeldUp)
	for range maxLarge {
		s.slots.large <- struct{}{}
	}
	if got := ask(t, s, request(exchange.Legacy, "tools/call", `{"name":"read_file","arguments":{"path":"large"}}`, set)); !strings.Contains(got, `"A file system does not answer, `) || !strings.Contains(got, `"held_up"`) {
		t.Errorf("a tool answers %s", got)
	}
	uri := quoteJSON(roots.FileURI(filepath.Join(dir, "large")))
	if got := ask(t, s, request(exchange.Modern, "resources/read", `{"uri":`+uri+`}`, set)); !strings.Contains(got, `"reason":"held_up"`) {
		t.Errorf("a resource is %s", got)
	}
}

// A client that asks for many large files at once, and reads no answer, has only some of them in memory. Small ones and
// the end of a call that waits are answered meanwhile.
func TestLargeFilesWaitForTheClient(t *testing.T) {
	dir := old(t, tree(t, map[string]string{"large": strings.Repeat("x", large+1), "small": "s"}))
	set := roots.NewSet(resolve(t, dir, roots.ReadOnly))
	s := newServer(t)
	read := func(name string) *exchange.Request {
		return request(exchange.Legacy, "tools/call", `{"name":"read_file","arguments":{"path":`+quoteJSON(filepath.Join(dir, name))+`}}`, set)
	}
	written, answered := make(chan bool), make(chan exchange.Outcome)
	for range maxLarge {
		s.Handle(t.Context(), read("large"), func(o exchange.Outcome) {
			answered <- o
			<-written
		})
	}
	for range maxLarge {
		if o := <-answered; o.Msg == nil {
			t.Error("cancelled")
		}
	}
	if n := len(s.slots.large); n != maxLarge {
		t.Errorf("%d places are taken", n)
	}
	if got := ask(t, s, read("small")); !strings.Contains(got, `"s"`) {
		t.Errorf("a small file: %s", got)
	}
	for _, r := range []*exchange.Request{read("large"), request(exchange.Modern, "resources/read", `{"uri":`+quoteJSON(roots.FileURI(filepath.Join(dir, "large")))+`}`, set)} {
		ctx, cancel := context.WithCancel(t.Context())
		go s.Handle(ctx, r, func(o exchange.Outcome) { answered <- o })
		cancel()
		if o := <-answered; o.Msg != nil {
			t.Errorf("there is an answer: %.100s", o.Msg.Bytes())
		}
	}
	close(written)
	for range 2 * maxLarge {
		if got := ask(t, s, read("large")); !strings.Contains(got, "xxx") {
			t.Errorf("later: %.100s", got)
		}
	}
}
