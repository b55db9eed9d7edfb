package bridge_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rootbound/rootbound/internal/bridge"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// hearer is a client that counts what it is told and asked.
type hearer struct {
	told  []string
	asked int
}

func (h *hearer) Notify(m *wire.Message) { h.told = append(h.told, m.Method()) }
func (h *hearer) CanAsk(string) bool     { return true }
func (h *hearer) Ask(_ context.Context, q []exchange.Question, answer func([]exchange.Answer)) {
	h.asked++
	answer([]exchange.Answer{{Result: []byte(`{"action":"accept"}`)}})
}

// Requests without a session may be of several clients. What a server says to nobody in particular is for the only one that it can
// be for, and for nobody where there are two.
func TestWhatCouldBeForTwoClientsIsForNeither(t *testing.T) {
	for _, tt := range []struct {
		clients int
		session *exchange.Session
		method  string
		asked   []int
		refused bool
		logs    []int
	}{
		{1, nil, "elicitation/create", []int{1}, false, []int{1}},
		{2, nil, "elicitation/create", []int{0, 0}, true, []int{0, 0}},
		{2, nil, "roots/list", []int{1, 0}, false, []int{0, 0}},
		{2, exchange.NewSession(t.Context()), "elicitation/create", []int{1, 0}, false, []int{1, 0}},
	} {
		down, hub := greetedDown(t, tt.session, nil)
		logged := meta[:len(meta)-1] + `,"io.modelcontextprotocol/logLevel":"debug"}`
		request := func(id int, method string) *exchange.Request {
			return &exchange.Request{Msg: scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, method, logged)), Era: exchange.Modern, Session: tt.session}
		}
		clients := make([]*hearer, tt.clients)
		for i := range clients {
			clients[i] = &hearer{}
			r := request(i, "tools/call")
			r.Caller = clients[i]
			down.Handle(t.Context(), r, func(exchange.Outcome) {})
		}
		var answer exchange.Answer
		q := exchange.Question{Method: tt.method, Msg: wire.NewRequest([]byte("1"), tt.method, []byte(`{}`)), Params: []byte(`{}`)}
		hub.Ask(t.Context(), []exchange.Question{q}, func(a []exchange.Answer) { answer = a[0] })
		hub.Notify(wire.NewNotification("notifications/message", []byte(`{"level":"info","data":"x"}`)))
		for i, c := range clients {
			if c.asked != tt.asked[i] || len(c.told) != tt.logs[i] {
				t.Errorf("%d clients, session %v, %s: client %d was asked %d times, and told %q", tt.clients, tt.session != nil, tt.method, i, c.asked, c.told)
			}
		}
		if (answer.Error != nil) != tt.refused {
			t.Errorf("%d clients, session %v, %s: the answer is %s%s", tt.clients, tt.session != nil, tt.method, answer.Result, answer.Error)
		}
	}
}

// A server that asks while one request of a client carries a question that nobody answered asks for another one: the work of the
// first waits for its answer.
func TestAnUnansweredQuestionHoldsUpNoOther(t *testing.T) {
	var hub exchange.Caller
	server := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		switch r.Msg.Method() {
		case exchange.Listen:
			hub = r.Caller
		case "initialize":
			reply(exchange.Result(r, []byte(`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`)))
		case "ping":
			reply(exchange.Result(r, []byte("{}")))
		}
	})
	session := exchange.NewSession(t.Context())
	down := bridge.NewDown(server)
	greeted := make(chan bool)
	request := func(method string) *exchange.Request {
		return &exchange.Request{Msg: scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, meta)), Era: exchange.Modern, Session: session}
	}
	down.Greet(request("server/discover"), func(_ exchange.Outcome, ok bool) { greeted <- ok })
	if !<-greeted {
		t.Fatal("the server was not greeted")
	}
	asked := map[string]int{}
	call := func(name string) {
		r := request("tools/call")
		r.Caller = asker(func(exchange.Question) { asked[name]++ })
		down.Handle(t.Context(), r, func(exchange.Outcome) {})
	}
	ask := func() {
		q := exchange.Question{Method: "elicitation/create", Msg: wire.NewRequest([]byte("1"), "elicitation/create", []byte(`{}`)), Params: []byte(`{}`)}
		hub.Ask(t.Context(), []exchange.Question{q}, func([]exchange.Answer) {})
	}
	call("first")
	ask()
	call("second")
	ask()
	ask() // both wait now, and it is the oldest that asks twice
	if asked["first"] != 2 || asked["second"] != 1 {
		t.Errorf("asked were %v", asked)
	}
}

// slow is a client that gives no roots, and one at whose side another request comes while it is looked at whether it does.
type slow struct {
	hearer
	meanwhile func()
}

func (c *slow) CanAsk(string) bool {
	if f := c.meanwhile; f != nil {
		c.meanwhile = nil
		f()
	}
	return false
}

// A question for roots that no open request can carry is carried by one that comes while that is found out.
func TestARequestThatComesWhileAQuestionIsParked(t *testing.T) {
	down, hub := greetedDown(t, exchange.NewSession(t.Context()), nil)
	request := func(method string) *exchange.Request {
		return &exchange.Request{Msg: scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, meta)), Era: exchange.Modern, Session: exchange.NewSession(t.Context())}
	}
	gives := &hearer{}
	first := request("tools/call")
	first.Caller = &slow{meanwhile: func() {
		r := request("tools/call")
		r.Caller = gives
		down.Handle(t.Context(), r, func(exchange.Outcome) {})
	}}
	down.Handle(t.Context(), first, func(exchange.Outcome) {})
	answers := 0
	hub.Ask(t.Context(), []exchange.Question{{Method: "roots/list", Msg: wire.NewRequest([]byte("1"), "roots/list", nil)}}, func([]exchange.Answer) { answers++ })
	if gives.asked != 1 || answers != 1 {
		t.Errorf("it was asked %d times, and the server had %d answers", gives.asked, answers)
	}
}
