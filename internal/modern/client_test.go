package modern

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{},"elicitation":{}},"progressToken":%s}`

// client is a stateless client in this process, before h.
type client struct {
	t    *testing.T
	out  bytes.Buffer
	line *wire.Writer
	edge *Client
	end  func()
}

func newClient(t *testing.T, h exchange.Handler) *client {
	c := &client{t: t}
	s := exchange.NewSession(t.Context())
	c.line = wire.NewWriter(&c.out)
	c.edge = NewClient(h, s, Options{Report: func(f string, a ...any) { t.Logf(f, a...) }})
	c.end = func() { s.End(errors.New("gone")) }
	t.Cleanup(c.end)
	return c
}

// say sends a message and returns what came back meanwhile.
func (c *client) say(line string, args ...any) []string {
	c.t.Helper()
	m, err := wire.Scan([]byte(fmt.Sprintf(line, args...)), wire.Strict)
	if err != nil {
		c.t.Fatal(err)
	}
	c.out.Reset()
	c.edge.Receive(&m, exchange.OnLine(c.line))
	if err := c.line.Wait(); err != nil {
		c.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(c.out.String(), "\n"), "\n")
}

func (c *client) state(line string) string {
	c.t.Helper()
	m, err := wire.Scan([]byte(line), wire.Strict)
	if err != nil {
		c.t.Fatalf("%q: %v", line, err)
	}
	return wire.GetString(m.Result(), "requestState")
}

// asking is a handler that asks twice in mid-call, reports progress, and answers with what it heard.
func asking(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	if r.Msg.Kind() != wire.Request {
		return
	}
	r.Caller.Notify(wire.NewNotification("notifications/progress", []byte(`{"progressToken":1,"progress":1}`)))
	r.Caller.Ask(ctx, []exchange.Question{{Key: "a", Method: "roots/list"}, {Key: "b", Method: "elicitation/create", Params: []byte(`{}`)}}, func(first []exchange.Answer) {
		r.Caller.Notify(wire.NewNotification("notifications/progress", []byte(`{"progressToken":1,"progress":2}`)))
		r.Caller.Ask(ctx, []exchange.Question{{Key: "a", Method: "elicitation/create"}}, func(second []exchange.Answer) {
			text := fmt.Sprintf(`{"a":%s,"b":%s,"c":%s}`, first[0].Result, first[1].Result, second[0].Result)
			if second[0].Error != nil {
				text = fmt.Sprintf(`{"error":%s}`, second[0].Error)
			}
			reply(exchange.Result(r, []byte(text)))
		})
	})
}

func toolCall(id any, token, rest string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{`+meta+`,"name":"x","arguments":{"n":1}%s}}`, id, token, rest)
}

func TestAHandlerAsksAStatelessClientInMidCall(t *testing.T) {
	c := newClient(t, exchange.HandlerFunc(asking))
	got := c.say("%s", toolCall(1, "1", ""))
	if len(got) != 2 || !strings.Contains(got[0], `"progress":1`) {
		t.Fatalf("got %q", got)
	}
	s1 := c.state(got[1])
	if want := `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":{}},"b":{"method":"elicitation/create","params":{}}},"requestState":"` + s1 + `"}}`; got[1] != want {
		t.Fatalf("got  %s\nwant %s", got[1], want)
	}
	// One answer is missing: it is asked for again, not failed.
	got = c.say("%s", toolCall(2, "7", `,"inputResponses":{"a":{"roots":[]},"unexpected":1},"requestState":"`+s1+`"`))
	s2 := c.state(got[0])
	if len(got) != 1 || !strings.Contains(got[0], `"inputRequests":{"b":`) || s2 == s1 || s2 == "" {
		t.Fatalf("got %q", got)
	}
	// Members in another order are the same params; progress goes to the token of this try.
	got = c.say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"requestState":%q,"arguments":{ "n":1.0},"name":"x","inputResponses":{"b":{"action":"accept"}},`+meta+`}}`, s2, `"t3"`)
	if len(got) != 2 || got[0] != `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t3","progress":2}}` {
		t.Fatalf("got %q", got)
	}
	got = c.say("%s", toolCall(4, "4", `,"inputResponses":{"a":{"action":"decline"}},"requestState":"`+c.state(got[1])+`"`))
	if want := `{"jsonrpc":"2.0","id":4,"result":{"a":{"roots":[]},"b":{"action":"accept"},"c":{"action":"decline"},"resultType":"complete"}}`; got[0] != want {
		t.Errorf("got  %s\nwant %s", got[0], want)
	}
}

// The id of a request that was given back is free for its client. Another one under it is another one for those behind, too: what is
// said of it is not said of the first.
func TestTheIDOfARequestThatWasGivenBack(t *testing.T) {
	var asked, other, cancelled string
	c := newClient(t, exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		switch {
		case r.Msg.Kind() == wire.Notification:
			id, _ := wire.Get(r.Msg.Params(), "requestId")
			cancelled = string(id)
		case asked == "":
			asked = r.Msg.Key()
			asking(ctx, r, reply)
		default:
			other = r.Msg.Key()
		}
	}))
	s := c.state(c.say("%s", toolCall(1, "1", ""))[1])
	c.say("%s", strings.Replace(toolCall(1, "2", ""), `"name":"x"`, `"name":"y"`, 1))
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if asked != "1" || other == "1" || wire.IDKey([]byte(cancelled)) != other {
		t.Errorf("given back: %s, the other one: %s, cancelled: %s", asked, other, cancelled)
	}
	got := c.say("%s", toolCall(1, "1", `,"inputResponses":{"a":{"roots":[]},"b":{"action":"accept"}},"requestState":"`+s+`"`))
	if !strings.Contains(got[len(got)-1], `"id":1,"result":{"resultType":"input_required"`) {
		t.Errorf("got %q", got)
	}
	if len(c.edge.known) != 1 {
		t.Errorf("known are %v", c.edge.known)
	}
}

// Nor is another one known by the id of a request that is given up before those behind have heard that.
func TestTheIDOfARequestThatIsGivenUp(t *testing.T) {
	var c *client
	var other string
	c = newClient(t, exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		switch {
		case r.Msg.Kind() == wire.Notification && other == "": // and while they hear it, its client uses the id again
			other = "none"
			m, err := wire.Scan([]byte(toolCall(1, "1", "")), wire.Strict)
			if err != nil {
				t.Error(err)
			}
			c.edge.Receive(&m, exchange.OnLine(c.line))
		case other == "none":
			other = r.Msg.Key()
		default:
			asking(ctx, r, reply)
		}
	}))
	s := c.state(c.say("%s", toolCall(1, "1", ""))[1])
	c.say("%s", strings.Replace(toolCall(2, "1", `,"requestState":"`+s+`"`), `"n":1`, `"n":2`, 1))
	if other == "none" || other == "1" {
		t.Errorf("the other request is known as %s, which is cancelled", other)
	}
	if len(c.edge.known) != 1 {
		t.Errorf("known are %v", c.edge.known)
	}
}

// A timer that rings as its request is tried again, and given back once more, gives nothing up.
func TestATimerOfAnEarlierState(t *testing.T) {
	c := newClient(t, exchange.HandlerFunc(asking))
	s := c.state(c.say("%s", toolCall(1, "1", ""))[1])
	k := c.edge.parked[0]
	got := c.say("%s", toolCall(2, "1", `,"inputResponses":{"a":{"roots":[]}},"requestState":"`+s+`"`))
	k.abandon(s)
	got = c.say("%s", toolCall(3, "1", `,"inputResponses":{"b":{"action":"accept"}},"requestState":"`+c.state(got[0])+`"`))
	if !strings.Contains(got[len(got)-1], `"id":3,"result"`) {
		t.Errorf("got %q", got)
	}
}

func TestAStateIsRefusedWhenUsedOrForAnotherRequest(t *testing.T) {
	const refused = `"error":{"code":-32602,"message":"rootbound: the request state is not valid for this request, was used, or is too old"`
	for name, retry := range map[string]func(state string) []string{
		"changed params": func(s string) []string { return []string{strings.Replace(toolCall(2, "1", s), `"n":1`, `"n":2`, 1)} },
		"another tool": func(s string) []string {
			return []string{strings.Replace(toolCall(2, "1", s), `"name":"x"`, `"name":"y"`, 1)}
		},
		"another method": func(s string) []string {
			return []string{strings.Replace(toolCall(2, "1", s), `tools/call`, `prompts/get`, 1)}
		},
		"changed state":       func(s string) []string { return []string{toolCall(2, "1", strings.Replace(s, "rbp1.", "rbp1.x", 1))} },
		"twice":               func(s string) []string { return []string{toolCall(2, "1", s), toolCall(3, "1", s)} },
		"a state of nobody's": func(string) []string { return []string{toolCall(2, "1", `,"requestState":"rbs1.AAAA"`)} },
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, exchange.HandlerFunc(asking))
			s := c.state(c.say("%s", toolCall(1, "1", ""))[1])
			var got []string
			for _, line := range retry(`,"inputResponses":{},"requestState":"` + s + `"`) {
				got = c.say("%s", line)
			}
			if len(got) != 1 || !strings.Contains(got[0], refused) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestWhatStagesHoldIsSealedAroundTheServersState(t *testing.T) {
	var seen []string
	server := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		seen = append(seen, fmt.Sprintf("%s|%s", wire.GetString(r.Msg.Params(), "requestState"), r.Held["stage"]))
		if r.Held != nil {
			reply(exchange.Result(r, []byte(`{"content":[]}`)))
			return
		}
		reply(exchange.Outcome{
			Msg:  wire.NewResult(r.Msg.ID(), []byte(`{"resultType":"input_required","inputRequests":{"e":{"method":"elicitation/create"}},"requestState":"theirs"}`)),
			Hold: exchange.Held{"stage": []byte("kept")},
		})
	})
	c := newClient(t, server)
	first := c.say("%s", toolCall(1, "1", ""))[0]
	s := c.state(first)
	if s == "theirs" || strings.Contains(first, "kept") {
		t.Fatalf("got %s", first)
	}
	retry := `,"inputResponses":{"e":{"action":"accept"}},"requestState":"` + s + `"`
	if got := c.say("%s", strings.Replace(toolCall(2, "1", retry), `"n":1`, `"n":2`, 1)); !strings.Contains(got[0], "-32602") {
		t.Errorf("another request with this state got %q", got)
	}
	if got := c.say("%s", toolCall(3, "1", retry)); !strings.Contains(got[0], `"id":3,"result":{"content":[]`) {
		t.Errorf("got %q", got)
	}
	if got := c.say("%s", toolCall(4, "1", retry)); !strings.Contains(got[0], "-32602") {
		t.Errorf("a used state got %q", got)
	}
	if want := "[| theirs|kept]"; fmt.Sprint(seen) != want {
		t.Errorf("the server saw %q, want %s", seen, want)
	}
}

func TestASealedStateGetsTooOld(t *testing.T) {
	now := time.Now()
	s := newSealer(nil, func() time.Time { return now })
	state, err := s.seal(sealed{Digest: []byte("d")})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(stateLifetime + time.Second)
	if _, err := s.open(state, []byte("d")); !errors.Is(err, errState) {
		t.Errorf("got %v", err)
	}
}

func TestARequestThatIsNotTriedAgainIsGivenUp(t *testing.T) {
	var causes []error
	var told []string
	h := exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Kind() != wire.Request {
			told = append(told, string(r.Msg.Params()))
			return
		}
		r.Caller.Ask(context.Background(), []exchange.Question{{Key: "a", Method: "roots/list"}}, func(a []exchange.Answer) {
			causes = append(causes, context.Cause(ctx))
			reply(exchange.Fail(r, 1, "late", nil))
		})
	})
	c := newClient(t, h)
	c.say("%s", toolCall(1, "1", ""))
	k := c.edge.parked[0]
	k.abandon(k.state)
	<-k.ctx.Done()
	if len(told) != 1 || !strings.Contains(told[0], `"requestId":1`) {
		t.Errorf("those behind were told %q", told)
	}
	if c.out.Len() > 0 && strings.Contains(c.out.String(), "late") {
		t.Errorf("the client got %s", c.out.String())
	}
}

func TestAResultThatComesMeanwhileGoesToTheRetry(t *testing.T) {
	var answer func(exchange.Outcome)
	var req *exchange.Request
	h := exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		answer, req = reply, r
		r.Caller.Ask(ctx, []exchange.Question{{Key: "a", Method: "roots/list"}}, func([]exchange.Answer) {})
	})
	c := newClient(t, h)
	s := c.state(c.say("%s", toolCall(1, "1", ""))[0])
	answer(exchange.Result(req, []byte(`{"content":[]}`)))
	got := c.say("%s", toolCall("\"two\"", "1", `,"inputResponses":{},"requestState":"`+s+`"`))
	if want := `{"jsonrpc":"2.0","id":"two","result":{"content":[],"resultType":"complete"}}`; got[0] != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

func TestACancelledRequestIsNotAnswered(t *testing.T) {
	h := exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Kind() == wire.Request {
			context.AfterFunc(ctx, func() { reply(exchange.Cancelled) })
		}
	})
	c := newClient(t, h)
	c.say("%s", toolCall(1, "1", ""))
	k := c.edge.open["1"]
	if got := c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`); got[0] != "" {
		t.Errorf("got %q", got)
	}
	<-k.ctx.Done()
}

func TestDrainedWhenEverythingWasAnswered(t *testing.T) {
	var answer []func(exchange.Outcome)
	c := newClient(t, exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		answer = append(answer, func(o exchange.Outcome) { o.Msg = o.Msg.WithID(r.Msg.ID()); reply(o) })
	}))
	closed := func() bool {
		select {
		case <-c.edge.Drained():
			return true
		default:
			return false
		}
	}
	if !closed() {
		t.Error("not drained before the first request")
	}
	c.say("%s", toolCall(1, "1", ""))
	c.say("%s", strings.Replace(toolCall(2, "1", ""), "tools/call", exchange.Listen, 1))
	if closed() {
		t.Error("drained with an open request")
	}
	answer[0](exchange.Outcome{Msg: wire.NewResult([]byte("1"), []byte("{}"))})
	if !closed() {
		t.Error("not drained although only a subscription is open")
	}
}

// Edges with one key are one to a client that retries now here and now there: what one of them asked before it sent the request on, and what
// a try had brought, the other knows. Without the key it refuses what it cannot know, and asks anew where there is nothing to know.
func TestEdgesWithOneKey(t *testing.T) {
	key := bytes.Repeat([]byte{7}, KeySize)
	var got []string
	server := exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Kind() != wire.Request {
			return
		}
		qs := []exchange.Question{{Key: "ours", Method: "roots/list", Unsent: true, Portable: true}}
		r.Caller.Ask(ctx, qs, func(a []exchange.Answer) {
			if a[0].Error != nil { // the test is over
				reply(exchange.Cancelled)
				return
			}
			got = append(got, fmt.Sprintf("%s %s", a[0].Result, r.Msg.Params()))
			reply(exchange.Result(r, []byte(`{"resultType":"input_required","inputRequests":{"theirs":{"method":"elicitation/create"}},"requestState":"s1"}`)))
		})
	})
	edge := func(key []byte) *client {
		c := newClient(t, server)
		c.edge = NewClient(server, c.edge.session, Options{Key: key})
		return c
	}
	a, b, other := edge(key), edge(key), edge(nil)
	const ours, theirs = `,"inputResponses":{"ours":{"roots":[]}},"requestState":%q`, `,"inputResponses":{"theirs":{"action":"accept"}},"requestState":%q`
	first := a.state(a.say("%s", toolCall(1, "1", ""))[0])
	if s := b.state(b.say("%s", toolCall(2, "1", fmt.Sprintf(ours, first)))[0]); s != "s1" {
		t.Fatalf("the retry at another edge was given back with %q", s)
	}
	// The server's state and the answer to it come along when this edge asks first.
	second := a.state(a.say("%s", toolCall(3, "1", fmt.Sprintf(theirs, "s1")))[0])
	if len(got) != 1 || !strings.HasPrefix(second, "rba1.") {
		t.Fatalf("the server got %q, and the state is %q", got, second)
	}
	b.say("%s", toolCall(4, "1", fmt.Sprintf(ours, second)))
	if len(got) != 2 || !strings.Contains(got[1], `"inputResponses":{"theirs":{"action":"accept"}},"requestState":"s1"`) && !strings.Contains(got[1], `"requestState":"s1","inputResponses":{"theirs":{"action":"accept"}}`) {
		t.Errorf("the server got %q", got)
	}
	for name, said := range map[string][]string{
		"twice":           b.say("%s", toolCall(5, "1", fmt.Sprintf(ours, second))),
		"another request": b.say("%s", strings.Replace(toolCall(6, "1", fmt.Sprintf(ours, second)), `"n":1`, `"n":2`, 1)),
		"without the key": other.say("%s", toolCall(7, "1", fmt.Sprintf(ours, second))),
	} {
		if len(said) != 1 || !strings.Contains(said[0], "the request state is not valid") {
			t.Errorf("%s: %q", name, said)
		}
	}
	if s := other.state(other.say("%s", toolCall(8, "1", fmt.Sprintf(ours, first)))[0]); s != "s1" || len(got) != 3 {
		t.Errorf("without the key, with nothing to know: %q, and the server got %q", s, got)
	}
}

// So many requests may be given back and not tried again; for one more the oldest is given up, and those behind are told.
func TestTheOldestIsGivenUpForANewOne(t *testing.T) {
	var cancelled []string
	contexts := map[string]context.Context{}
	told := make(chan string, 1)
	c := newClient(t, exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Kind() != wire.Request {
			id, _ := wire.Get(r.Msg.Params(), "requestId")
			told <- string(id)
			return
		}
		contexts[string(r.Msg.ID())] = ctx
		r.Caller.Ask(ctx, []exchange.Question{{Key: "a", Method: "elicitation/create"}}, func(a []exchange.Answer) {
			if a[0].Error != nil {
				reply(exchange.Cancelled)
				return
			}
			reply(exchange.Result(r, []byte(`{"got":`+string(a[0].Result)+`}`)))
		})
	}))
	var states []string
	for id := range maxParked + 1 {
		states = append(states, c.state(c.say("%s", toolCall(id, "1", ""))[0]))
	}
	cancelled = append(cancelled, <-told)
	<-contexts["0"].Done()
	if !slices.Equal(cancelled, []string{"0"}) || !errors.Is(context.Cause(contexts["0"]), ErrAbandoned) {
		t.Errorf("those behind are told of %q, and the context of the oldest ends with %v", cancelled, context.Cause(contexts["0"]))
	}
	answer := `,"inputResponses":{"a":{"action":"accept"}},"requestState":%q`
	if got := c.say("%s", toolCall(1000, "1", fmt.Sprintf(answer, states[0]))); !strings.Contains(got[0], "the request state is not valid") {
		t.Errorf("the oldest is answered %q", got)
	}
	for _, i := range []int{1, maxParked} {
		if got := c.say("%s", toolCall(1000+i, "1", fmt.Sprintf(answer, states[i]))); !strings.Contains(got[0], `"got":{"action":"accept"}`) {
			t.Errorf("number %d is answered %q", i, got)
		}
	}
	// Long ones are fewer: the newest has the room that all had.
	c.say("%s", toolCall(2000, `1,"long":"`+strings.Repeat("x", maxParkedBytes)+`"`, ""))
	for range maxParked - 2 { // the others are answered
		<-told
	}
	if len(c.edge.parked) != 1 {
		t.Errorf("%d are kept", len(c.edge.parked))
	}
}
