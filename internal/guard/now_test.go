package guard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// What a guard says of its clients: who they are, also without a handshake, what holds for each, and what does not.
func TestWhatAGuardSaysOfItsClients(t *testing.T) {
	w := newWorld(t)
	b := approval.NewBoard(nil)
	g := guard.New(guard.Options{Server: "files", Configured: w.set(t, "A", "B:ro"), Board: b})
	h := g.Wrap(exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Kind() == wire.Request {
			reply(exchange.Result(r, []byte(`{"content":[]}`)))
		}
	}))
	do := func(s *exchange.Session, era exchange.Era, c exchange.Caller, method, params string) {
		t.Helper()
		exchange.Do(t.Context(), h, &exchange.Request{Msg: wire.NewRequest([]byte("1"), method, []byte(params)), Era: era, Session: s, Caller: c})
	}
	list := func(names ...string) caller {
		var items []string
		for _, n := range names {
			items = append(items, `{"uri":"`+roots.FileURI(w.names[n])+`"}`)
		}
		return caller{roots: []byte(`{"roots":[` + strings.Join(items, ",") + `]}`)}
	}
	want := func(texts ...string) {
		t.Helper()
		clients, more := g.Clients(2)
		var got []string
		for _, c := range clients {
			text := fmt.Sprintf("%s %s %s %s:", c.Session, c.Name, c.Version, c.Revision)
			for _, r := range c.Roots {
				text += fmt.Sprintf(" %s %s %s", r.Name, r.Access, r.State)
			}
			got = append(got, text)
		}
		if more > 0 {
			got = append(got, fmt.Sprint(more, " more"))
		}
		if g, w := strings.Join(got, "\n"), strings.Join(texts, "\n"); g != w {
			t.Errorf("the clients are\n%s\nwant\n%s", g, w)
		}
	}
	want()
	first, end := context.WithCancel(t.Context())
	one := exchange.NewSession(first)
	do(one, exchange.Legacy, caller{}, "ping", "{}") // it has not said who it is
	want()
	one.SetClient(exchange.Client{Name: "editor", Version: "1", Revision: "2025-11-25", Capabilities: []byte(`{"roots":{"listChanged":true}}`)})
	do(one, exchange.Legacy, list("A"), "initialize", "{}")
	want(one.ID + " editor 1 2025-11-25: a rw open b ro open")
	do(one, exchange.Legacy, list("A"), "tools/call", `{"name":"t","arguments":{"path":`+string(wire.Quote(w.names["OUT"]))+`}}`)
	want(one.ID + " editor 1 2025-11-25: a rw open b ro closed")

	meta := func(name string) string {
		return `"_meta":{"` + exchange.MetaVersion + `":"2026-07-28","` + exchange.MetaCapabilities + `":{},"` + exchange.MetaClient + `":{"name":"` + name + `","version":"2"}}`
	}
	two := exchange.NewSession(t.Context())
	do(two, exchange.Modern, caller{}, "tools/call", `{"name":"t","arguments":{},`+meta("agent")+`}`)
	want(one.ID+" editor 1 2025-11-25: a rw open b ro closed", two.ID+" agent 2 2026-07-28: a rw open b ro open")
	for _, name := range []string{"x", "y"} {
		do(nil, exchange.Modern, caller{}, "tools/call", `{"name":"t","arguments":{},`+meta(name)+`}`)
	}
	want(one.ID+" editor 1 2025-11-25: a rw open b ro closed", two.ID+" agent 2 2026-07-28: a rw open b ro open", "1 more")
	end()
	for len(func() []approval.Client { c, _ := g.Clients(9); return c }()) > 2 {
	}
	want(two.ID+" agent 2 2026-07-28: a rw open b ro open", " y 2 2026-07-28: a rw open b ro open")

	// A directory goes away.
	if err := os.Rename(w.names["B"], w.names["B"]+"-gone"); err != nil {
		t.Fatal(err)
	}
	g.Look()
	want(two.ID+" agent 2 2026-07-28: a rw open b ro unavailable", " y 2 2026-07-28: a rw open b ro unavailable")
	if c := g.Would(); len(c.Roots) != 2 || c.Roots[1].Reason != "it does not exist" || c.Roots[1].Code != string(roots.Missing) || !strings.Contains(c.Why, "refusing root") || c.WhyCode != "not-asked" && c.WhyCode != "unanswered" {
		t.Errorf("%+v", c)
	}
}

// With nothing configured, what the client opens waits for consent.
func TestWhatWaitsForConsentIsSaid(t *testing.T) {
	w := newWorld(t)
	if err := w.consents.Allow(server, w.names["A"]); err != nil {
		t.Fatal(err)
	}
	g := guard.New(guard.Options{Server: server.Name, ClientRoots: roots.Accept, Consent: w.consents.Watch(server), Board: approval.NewBoard(nil)})
	h := g.Wrap(exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		reply(exchange.Result(r, []byte(`{}`)))
	}))
	s := exchange.NewSession(t.Context())
	s.SetClient(exchange.Client{Name: "editor", Revision: "2025-11-25", Capabilities: []byte(`{"roots":{}}`)})
	answer := []byte(`{"roots":[{"uri":"` + roots.FileURI(w.names["A"]) + `","name":"a"},{"uri":"` + roots.FileURI(w.names["B"]) + `","name":"b"}]}`)
	for _, method := range []string{"initialize", "tools/call"} {
		exchange.Do(t.Context(), h, &exchange.Request{Msg: wire.NewRequest([]byte("1"), method, []byte(`{"name":"t","arguments":{"path":"/x"}}`)), Session: s, Caller: caller{roots: answer}})
	}
	clients, _ := g.Clients(1)
	if len(clients) != 1 || len(clients[0].Roots) != 2 {
		t.Fatalf("%+v", clients)
	}
	for i, want := range []approval.RootState{approval.Open, approval.WaitsForConsent} {
		if got := clients[0].Roots[i]; got.State != want {
			t.Errorf("%+v, want %s", got, want)
		}
	}
}

// What is told of a client is short, whatever it says of itself.
func TestWhatIsToldOfAClientIsShort(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	w := newWorld(t)
	board := approval.NewBoard(nil)
	g := guard.New(guard.Options{Server: "files", Configured: w.set(t, "A"), Board: board})
	h := g.Wrap(exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		reply(exchange.Result(r, []byte("{}")))
	}))
	s := exchange.NewSession(t.Context())
	s.SetClient(exchange.Client{Name: long, Version: long, Revision: "2025-11-25", Capabilities: []byte(`{"roots":{}}`)})
	client := caller{roots: []byte(`{"roots":[{"uri":` + string(wire.Quote(roots.FileURI(w.names["A"]))) + `,"name":"` + long + `"},{"uri":"` + long + `"}]}`)}
	for _, params := range []string{`{"name":"` + long + `","arguments":{"path":"/` + long + `"}}`, `{"name":"` + long + `","arguments":{"path":"/etc/passwd"}}`} {
		exchange.Do(t.Context(), h, &exchange.Request{Msg: wire.NewRequest([]byte("1"), "tools/call", []byte(params)), Session: s, Caller: client})
	}
	clients, _ := g.Clients(10)
	if text, err := json.Marshal(clients); err != nil || len(clients) != 1 || len(text) > 10_000 {
		t.Errorf("of %d clients %d bytes are told, %v", len(clients), len(text), err)
	}
}
