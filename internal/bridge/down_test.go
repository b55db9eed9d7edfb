package bridge_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/bridge"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/modern"
	"github.com/rootbound/rootbound/internal/wire"
)

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`

func nested(depth int) []byte {
	return []byte(`{"message":"?","x":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`)
}

func scan(t *testing.T, line string) *wire.Message {
	t.Helper()
	m, err := wire.Scan([]byte(line), wire.Strict)
	if err != nil {
		t.Fatal(err)
	}
	return &m
}

// greetedDown is a bridge to a handshake server that was greeted, and the end of its client there. Other, if set, takes the requests that
// are of no handshake.
func greetedDown(t *testing.T, session *exchange.Session, other func(hub exchange.Caller, r *exchange.Request, reply func(exchange.Outcome))) (*bridge.Down, exchange.Caller) {
	t.Helper()
	var hub exchange.Caller
	down := bridge.NewDown(exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		switch r.Msg.Method() {
		case exchange.Listen:
			hub = r.Caller
		case "initialize":
			reply(exchange.Result(r, []byte(`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`)))
		case "ping":
			reply(exchange.Result(r, []byte("{}")))
		default:
			if other != nil {
				other(hub, r, reply)
			}
		}
	}))
	greeted := make(chan bool)
	down.Greet(&exchange.Request{Msg: scan(t, `{"jsonrpc":"2.0","id":99,"method":"server/discover","params":{`+meta+`}}`), Era: exchange.Modern, Session: session},
		func(_ exchange.Outcome, ok bool) { greeted <- ok })
	if !<-greeted {
		t.Fatal("the server was not greeted")
	}
	return down, hub
}

// A question is nested deeper in the words of the other era. One that would be too deep then is refused, in either direction.
func TestQuestionsThatAreNestedDeeply(t *testing.T) {
	for _, tt := range []struct {
		depth   int
		refused bool
	}{{9980, false}, {9990, true}, {9997, true}} {
		session := exchange.NewSession(t.Context())
		down, _ := greetedDown(t, session, func(hub exchange.Caller, r *exchange.Request, reply func(exchange.Outcome)) {
			if r.Msg.Method() == "tools/call" {
				q := exchange.Question{Method: "elicitation/create", Params: nested(tt.depth), Msg: wire.NewRequest([]byte("1"), "elicitation/create", nested(tt.depth))}
				hub.Ask(context.Background(), []exchange.Question{q}, func(a []exchange.Answer) {
					reply(exchange.Result(r, wire.SetMember(nil, a[0].Error, "refused")))
				})
			}
		})
		var out strings.Builder
		w := wire.NewWriter(&out)
		modern.NewClient(down, session, modern.Options{}).Receive(scan(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{`+meta+`,"name":"a"}}`), exchange.OnLine(w))
		if err := w.Wait(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "nested too deeply"); got != tt.refused {
			t.Errorf("down, depth %d: refused %v, want %v: %.200s", tt.depth, got, tt.refused, out.String())
		}

		asked := false
		up := bridge.NewUp(exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
			reply(exchange.Outcome{Msg: wire.NewResult(r.Msg.ID(), exchange.InputRequired([]exchange.Question{{Key: "k", Method: "elicitation/create", Params: nested(tt.depth - 4)}}, ""))})
		}))
		var told string
		r := &exchange.Request{Msg: scan(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}`), Session: session, Caller: asker(func(exchange.Question) { asked = true })}
		up.Greet(t.Context(), r.With(scan(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{"elicitation":{}}}}`)), func(exchange.Outcome, bool) {})
		up.Handle(t.Context(), r, func(o exchange.Outcome) { told = string(o.Msg.Bytes()) })
		if deep := tt.depth-4 >= 9990; asked == deep || strings.Contains(told, "nested too deeply") != deep {
			t.Errorf("up, depth %d: asked %v, told %.200s", tt.depth-4, asked, told)
		}
	}
}

// asker is a client that is told what it is asked and never answers.
type asker func(exchange.Question)

func (asker) Notify(*wire.Message) {}
func (asker) CanAsk(string) bool   { return true }
func (f asker) Ask(_ context.Context, q []exchange.Question, _ func([]exchange.Answer)) {
	f(q[0])
}

// A hundred clients listen at once. What is said to one of them before it was acknowledged waits for that, but not without an end; and
// nothing is followed for one who goes while it is being followed.
func TestListenRequests(t *testing.T) {
	var hub exchange.Caller
	var mu sync.Mutex
	followed := map[string]bool{}
	unfollowed := make(chan string, 10)
	var leave context.CancelFunc
	var answer func() // to what is followed late
	server := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		uri := wire.GetString(r.Msg.Params(), "uri")
		switch r.Msg.Method() {
		case exchange.Listen:
			hub = r.Caller
		case "initialize":
			reply(exchange.Result(r, []byte(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"1"}}`)))
		case "ping":
			reply(exchange.Result(r, []byte("{}")))
		case "resources/subscribe":
			mu.Lock()
			followed[uri] = true
			mu.Unlock()
			switch uri {
			case "file:///late":
				answer = func() { reply(exchange.Result(r, []byte("{}"))) }
				return
			case "file:///1":
				leave()
			}
			reply(exchange.Result(r, []byte("{}")))
		case "resources/unsubscribe":
			mu.Lock()
			delete(followed, uri)
			mu.Unlock()
			unfollowed <- uri
			reply(exchange.Result(r, []byte("{}")))
		}
	})
	down := bridge.NewDown(server)
	greeted := make(chan bool)
	down.Greet(&exchange.Request{Msg: scan(t, `{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{`+meta+`}}`), Era: exchange.Modern},
		func(_ exchange.Outcome, ok bool) { greeted <- ok })
	if !<-greeted {
		t.Fatal("the server was not greeted")
	}
	refused := ""
	listen := func(ctx context.Context, id int, notifications string) *hearer {
		h := &hearer{}
		down.Handle(ctx, &exchange.Request{
			Msg: scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"subscriptions/listen","params":{"notifications":%s,%s}}`, id, notifications, meta)), Era: exchange.Modern, Caller: h,
		}, func(o exchange.Outcome) {
			if o.Msg != nil {
				refused = wire.GetString(o.Msg.Error(), "message")
			}
		})
		return h
	}
	for id := range 100 {
		if h := listen(t.Context(), id, `{"toolsListChanged":true}`); !slices.Equal(h.told, []string{"notifications/subscriptions/acknowledged"}) {
			t.Fatalf("listener %d was told %q", id, h.told)
		}
	}
	late := listen(t.Context(), 100, `{"toolsListChanged":true,"resourceSubscriptions":["file:///late"]}`)
	hub.Notify(wire.NewNotification("notifications/resources/updated", []byte(`{"uri":"file:///late","long":"`+strings.Repeat("x", 1<<20)+`"}`)))
	for range 3000 {
		hub.Notify(wire.NewNotification("notifications/tools/list_changed", nil))
	}
	if answer(); len(late.told) != 1+1024 || late.told[0] != "notifications/subscriptions/acknowledged" {
		t.Errorf("who was acknowledged late was told %d things", len(late.told))
	}
	many := make([]string, 5_000)
	for i := range many {
		many[i] = fmt.Sprintf(`"file:///m/%d"`, i)
	}
	listen(t.Context(), 102, `{"resourceSubscriptions":[`+strings.Join(many, ",")+`]}`)
	if !strings.Contains(refused, "more than 4096 resources") {
		t.Errorf("who follows too much was told %q", refused)
	}
	var ctx context.Context
	ctx, leave = context.WithCancel(t.Context())
	defer leave()
	listen(ctx, 101, `{"resourceSubscriptions":["file:///1","file:///2"]}`)
	if uris := []string{<-unfollowed, <-unfollowed}; !slices.Contains(uris, "file:///1") || !slices.Contains(uris, "file:///2") {
		t.Errorf("%q are followed no more", uris)
	}
	mu.Lock()
	defer mu.Unlock()
	if followed["file:///1"] || followed["file:///2"] {
		t.Errorf("followed for nobody: %v", followed)
	}
}

// acknowledged is a client that keeps how it was told what it follows.
type acknowledged struct {
	hearer
	params []string
}

func (a *acknowledged) Notify(m *wire.Message) { a.params = append(a.params, string(m.Params())) }

// Who follows a resource while the server is asked for it hears what the server says, and who begins while another one stops is followed for.
func TestFollowersOfOneResource(t *testing.T) {
	var mu sync.Mutex
	var sent []string
	var answer func(ok bool)
	begun, stopping := make(chan bool), make(chan bool, 10)
	server := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		method := r.Msg.Method()
		switch method {
		case "initialize":
			reply(exchange.Result(r, []byte(`{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"1"}}`)))
			return
		case "ping":
			reply(exchange.Result(r, []byte("{}")))
			return
		case "resources/subscribe":
			answer = func(ok bool) {
				if ok {
					reply(exchange.Result(r, []byte("{}")))
				} else {
					reply(exchange.Fail(r, wire.CodeInvalidParams, "no such resource", nil))
				}
			}
			mu.Lock()
			sent = append(sent, method)
			mu.Unlock()
			select {
			case begun <- true:
			default:
			}
		case "resources/unsubscribe":
			stopping <- true
			select { // a subscription that could go first does
			case <-begun:
			case <-time.After(50 * time.Millisecond):
			}
			mu.Lock()
			sent = append(sent, method)
			mu.Unlock()
		}
	})
	down := bridge.NewDown(server)
	greeted := make(chan bool)
	down.Greet(&exchange.Request{Msg: scan(t, `{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{`+meta+`}}`), Era: exchange.Modern},
		func(_ exchange.Outcome, ok bool) { greeted <- ok })
	if !<-greeted {
		t.Fatal("the server was not greeted")
	}
	listen := func(ctx context.Context, id int) *acknowledged {
		h := &acknowledged{}
		down.Handle(ctx, &exchange.Request{
			Msg: scan(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["file:///1"]},%s}}`, id, meta)), Era: exchange.Modern, Caller: h,
		}, func(exchange.Outcome) {})
		return h
	}
	followed := func(h *acknowledged, want string) {
		t.Helper()
		if len(h.params) != 1 || !strings.Contains(h.params[0], `"resourceSubscriptions":`+want) {
			t.Fatalf("it was told that it follows %q, want %s", h.params, want)
		}
	}
	first, second := listen(t.Context(), 1), listen(t.Context(), 2)
	answer(false)
	followed(first, "[]")
	followed(second, "[]")

	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	third, fourth := listen(ctx, 3), listen(ctx, 4)
	answer(true)
	followed(third, `["file:///1"]`)
	followed(fourth, `["file:///1"]`)
	leave()
	<-stopping
	fifth := listen(t.Context(), 5)
	answer(true)
	followed(fifth, `["file:///1"]`)
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"resources/subscribe", "resources/subscribe", "resources/unsubscribe", "resources/subscribe"}; !slices.Equal(sent, want) {
		t.Errorf("the server was told %q, want %q", sent, want)
	}
}
