package guard_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/pin"
	"github.com/rootbound/rootbound/internal/wire"
)

// hearer is a client that hears what belongs to no request, and is asked nothing.
type hearer struct{ heard []string }

func (h *hearer) Notify(m *wire.Message) { h.heard = append(h.heard, string(m.Bytes())) }
func (h *hearer) CanAsk(string) bool     { return false }
func (h *hearer) Ask(_ context.Context, q []exchange.Question, answer func([]exchange.Answer)) {
	answer(exchange.ErrorAnswers(len(q), wire.CodeMethodNotFound, "nobody answers"))
}

// When a person accepts what was held, clients that hear of changed lists are told of one, each in the words of its era.
func TestAcceptedIsTold(t *testing.T) {
	dir := t.TempDir()
	store := pin.Store{Pins: filepath.Join(dir, "pins.json"), Waiting: filepath.Join(dir, "waiting.json"), Lock: filepath.Join(dir, "lock")}
	tools := `{"tools":[{"name":"a","description":"A."}]}`
	server := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		switch r.Msg.Method() {
		case exchange.Listen: // open for as long as the client
		case "initialize":
			reply(exchange.Result(r, []byte(`{"capabilities":{"tools":{"listChanged":true}}}`)))
		case "tools/list":
			reply(exchange.Result(r, []byte(tools)))
		default:
			reply(exchange.Result(r, []byte(`{"content":[]}`)))
		}
	})
	pins := pin.NewPins(store, pin.Owner{Server: "files", Runs: "files"})
	g := guard.New(guard.Options{Server: "files", Pins: pins})
	h := g.Wrap(server)
	// Over HTTP each session has a guard of its own, with the same pins.
	beside := guard.New(guard.Options{Server: "files", Pins: pins})
	besides := &hearer{}
	beside.Wrap(server).Handle(t.Context(), &exchange.Request{
		Msg: wire.NewRequest([]byte(`"l"`), exchange.Listen, []byte(`{"notifications":{"toolsListChanged":true}}`)), Era: exchange.Modern, Caller: besides,
	}, func(exchange.Outcome) { t.Error("a listen request was answered") })
	session := exchange.NewSession(t.Context())
	do := func(method, params string) string {
		r := &exchange.Request{Msg: wire.NewRequest([]byte("1"), method, []byte(params)), Session: session}
		return string(exchange.Do(t.Context(), h, r).Msg.Bytes())
	}
	listen := func(era exchange.Era, s *exchange.Session, wanted string) *hearer {
		client := &hearer{}
		params := `{"notifications":{` + wanted + `}}`
		h.Handle(t.Context(), &exchange.Request{Msg: wire.NewRequest([]byte(`"l"`), exchange.Listen, []byte(params)), Era: era, Session: s, Caller: client},
			func(exchange.Outcome) { t.Error("a listen request was answered") })
		return client
	}
	legacy := listen(exchange.Legacy, session, "")
	quiet := listen(exchange.Legacy, exchange.NewSession(t.Context()), "") // its server said nothing of changes
	modern := listen(exchange.Modern, nil, `"toolsListChanged":true`)
	deaf := listen(exchange.Modern, nil, `"promptsListChanged":true`)

	do("initialize", "{}")
	do("tools/list", "{}")
	tools = `{"tools":[{"name":"a","description":"A. You must."}]}`
	do("tools/list", "{}")
	g.Look()
	if got := do("tools/call", `{"name":"a"}`); !strings.Contains(got, "is held") {
		t.Errorf("what waits is answered %s", got)
	}
	waiting, err := store.Waits()
	if err != nil || store.Reviewed(waiting) != nil {
		t.Fatal(err)
	}
	if _, err := store.Accept(func(pin.Entry) bool { return true }); err != nil {
		t.Fatal(err)
	}
	g.Look()
	g.Look()
	beside.Look()
	for name, c := range map[string]struct {
		client *hearer
		want   []string
	}{
		"handshake":                      {legacy, []string{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`}},
		"stateless":                      {modern, []string{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}`}},
		"one whose server does not tell": {quiet, nil},
		"one that did not ask":           {deaf, nil},
		"one of another session":         {besides, []string{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}`}},
	} {
		if !slices.Equal(c.client.heard, c.want) {
			t.Errorf("%s: the client heard %q, want %q", name, c.client.heard, c.want)
		}
	}
	if got := do("tools/call", `{"name":"a"}`); strings.Contains(got, "held") {
		t.Errorf("what was accepted is answered %s", got)
	}
}

// A client that does not read what it is told of pins does not keep the guard from looking again.
func TestAClientThatDoesNotReadHoldsUpNoLook(t *testing.T) {
	dir := t.TempDir()
	store := pin.Store{Pins: filepath.Join(dir, "pins.json"), Waiting: filepath.Join(dir, "waiting.json"), Lock: filepath.Join(dir, "lock")}
	synctest.Test(t, func(t *testing.T) {
		said := "A."
		g := guard.New(guard.Options{Server: "files", Pins: pin.NewPins(store, pin.Owner{Server: "files", Runs: "files"})})
		h := g.Wrap(exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
			if r.Msg.Method() == "tools/list" {
				reply(exchange.Result(r, []byte(`{"tools":[{"name":"a","description":"`+said+`"}]}`)))
			}
		}))
		reads := make(chan struct{})
		h.Handle(t.Context(), &exchange.Request{
			Msg: wire.NewRequest([]byte(`"l"`), exchange.Listen, []byte(`{"notifications":{"toolsListChanged":true}}`)), Era: exchange.Modern, Caller: deaf{reads: reads},
		}, func(exchange.Outcome) {})
		for _, said = range []string{"A.", "A. You must."} {
			exchange.Do(t.Context(), h, &exchange.Request{Msg: wire.NewRequest([]byte("1"), "tools/list", nil)})
		}
		waiting, err := store.Waits()
		if err != nil || store.Reviewed(waiting) != nil {
			t.Fatal(err)
		}
		if _, err := store.Accept(func(pin.Entry) bool { return true }); err != nil {
			t.Fatal(err)
		}
		looked := make(chan struct{})
		go func() {
			defer close(looked)
			g.Look()
		}()
		select {
		case <-looked:
		case <-time.After(time.Minute):
			t.Error("the guard looks no more")
		}
		close(reads)
	})
}

// deaf is a client that takes nothing before reads is closed.
type deaf struct {
	*hearer
	reads chan struct{}
}

func (d deaf) Notify(*wire.Message) { <-d.reads }
