package guard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/wire"
)

// What a client says for its person becomes a yes only where it is one, and the log tells which no it was.
func TestAClientIsAsked(t *testing.T) {
	for _, era := range eras {
		for _, tt := range []struct {
			result string
			ran    int
			code   string // of the answer in the log
			tell   string // to the model
		}{
			{`{"action":"accept","content":{"decision":"allow once"}}`, 1, "client", "done"},
			{`{"action":"accept","content":{"decision":"deny"}}`, 0, "client", "the user said no"},
			{`{"action":"accept","content":{}}`, 0, "client", "the user said no"},
			{`{"action":"accept"}`, 0, "client", "the user said no"},
			{`{"action":"accept","content":{"decision":"allow"}}`, 0, "client", "the user said no"},
			{`{"action":"accept","content":{"decision":true}}`, 0, "client", "the user said no"},
			{`{"action":"accept","content":{"decision":["allow once"]}}`, 0, "client", "the user said no"},
			{`{"action":"decline","content":{"decision":"allow once"}}`, 0, "client-declined", "the user said no"},
			{`{"action":"cancel"}`, 0, "client-dismissed", "closed the question"},
		} {
			a := newAsked(t, policy.ForTool, nil)
			c := a.connect(era, canAsk)
			c.call("write_file", `{"path":"`+a.dir+`/new.txt","content":"one\ntwo\u202e\n"}`)
			message, enum, answer := c.elicited()
			first, _, _ := strings.Cut(message, "\n")
			if want := `files: "write_file", which writes: ` + a.dir + `/new.txt (new, in root w)`; first != want {
				t.Errorf("%v: the question begins %q, want %q", era, first, want)
			}
			for _, want := range []string{"+one", "+two⟨U+202E⟩", `"content" (`, "rules:3", "where nothing is", "tester", "digest: "} {
				if !strings.Contains(message, want) {
					t.Errorf("%v: there is no %q in %s", era, want, message)
				}
			}
			if want := []string{"deny", "allow once", "allow this session", "allow under " + a.dir}; fmt.Sprint(enum) != fmt.Sprint(want) {
				t.Errorf("%v: the choices are %q, want %q", era, enum, want)
			}
			answer(tt.result)
			if got := c.done(); !strings.Contains(got, tt.tell) {
				t.Errorf("%v: to %s the model reads %q", era, tt.result, got)
			}
			if got := a.runs(); got != tt.ran {
				t.Errorf("%v: after %s it ran %d times", era, tt.result, got)
			}
			records := a.logged(calllog.Asked, calllog.Answered)
			if len(records) > 0 && strings.Contains(fmt.Sprint(records), "one") {
				t.Errorf("%v: the log has the content: %+v", era, records)
			}
			if len(records) != 2 || records[0].Kind != calllog.Asked || records[1].Code != tt.code || records[1].From != calllog.Client || records[0].Ask != records[1].Ask {
				t.Errorf("%v: after %s the log has %+v", era, tt.result, records)
			}
		}
	}
}

// A person in a terminal may be the first to answer. A client that was asked too has its question withdrawn; a stateless one,
// which cannot be told, finds it done when it comes back, and not before.
func TestTheTerminalIsFirst(t *testing.T) {
	a := newAsked(t, policy.Never, nil)
	c := a.connect(exchange.Legacy, canAsk)
	c.call("write_file", `{"path":"`+a.dir+`/f"}`)
	_, enum, _ := c.elicited()
	if fmt.Sprint(enum) != "[deny allow once]" {
		t.Errorf("the choices are %q", enum)
	}
	a.answer(yes)
	if line := c.next(); !strings.Contains(line, "notifications/cancelled") || !strings.Contains(line, "answered elsewhere") {
		t.Errorf("the client hears %s", line)
	}
	if got := c.done(); got != "done" || a.runs() != 1 {
		t.Errorf("%q, and it ran %d times", got, a.runs())
	}
	if r := a.logged(calllog.Answered); r[0].Code != "terminal" || r[0].From != calllog.Person || !strings.Contains(r[0].Reason, "process 7") {
		t.Errorf("the log has %+v", r)
	}

	for result, want := range map[string]string{
		`{"action":"cancel"}`: "done",
		`{"action":"accept","content":{"decision":"allow once"}}`: "done",
		`{"action":"decline"}`:                              "said no",
		`{"action":"accept","content":{"decision":"deny"}}`: "said no",
		"": "done", // it comes again without an answer
	} {
		a := newAsked(t, policy.Never, nil)
		c := a.connect(exchange.Modern, canAsk)
		c.call("write_file", `{"path":"`+a.dir+`/f"}`)
		_, _, answer := c.elicited()
		a.answer(yes)
		if a.runs() != 0 {
			t.Error("it ran while the client had it back")
		}
		answer(result)
		if got := c.done(); !strings.Contains(got, want) || a.runs() != map[bool]int{true: 1}[want == "done"] {
			t.Errorf("after a yes in the terminal and %s: %q, and it ran %d times", result, got, a.runs())
		}
	}

	a = newAsked(t, policy.Never, nil)
	c = a.connect(exchange.Modern, canAsk)
	c.call("write_file", `{"path":"`+a.dir+`/f"}`)
	_, _, answer := c.elicited()
	a.answer(approval.Reply{Note: "not in this\x1b[2J repository"})
	answer(`{"action":"accept","content":{"decision":"allow once"}}`)
	if got := c.done(); !strings.Contains(got, `the user said no, and says: not in this⟨U+001B⟩[2J repository`) || a.runs() != 0 {
		t.Errorf("after a no in the terminal: %q, and it ran %d times", got, a.runs())
	}
}

func TestAClientThatCannotAskIsAnsweredInATerminal(t *testing.T) {
	for _, caps := range []string{`{}`, `{"elicitation":{"url":{}}}`} {
		a := newAsked(t, policy.ForTool, nil)
		c := a.connect(exchange.Legacy, caps)
		c.progress = true
		c.call("fetch", `{"url":"https://Example.com:8443/x","n":1}`)
		if line := c.next(); !strings.Contains(line, `"progressToken":"p","progress":0.0`) {
			t.Errorf("the client hears %s", line)
		}
		q := a.waits()
		if want := `files: "fetch", which may do anything, also over the network: host example.com:8443`; q.Head != want {
			t.Errorf("the question is %q, want %q", q.Head, want)
		}
		if got := q.Choices[3].Word(); got != "allow host example.com:8443" {
			t.Errorf("the last choice is %q", got)
		}
		a.answer(yes)
		if got := c.done(); got != "done" {
			t.Errorf("got %q", got)
		}
	}
}

func TestNobodyIsThere(t *testing.T) {
	a := newAsked(t, policy.Never, func(o *guard.Options) { o.Approval.Terminal, o.Approval.Nobody = false, "run `rootbound approve`" })
	c := a.connect(exchange.Legacy, `{}`)
	c.call("write_file", `{"path":"`+a.dir+`/f"}`)
	if got := c.done(); !strings.Contains(got, "refused: ") || !strings.Contains(got, "nobody can be asked here") || strings.Contains(got, "rule") {
		t.Errorf("the model reads %q", got)
	}
	if r := a.logged(calllog.Call)[1:]; len(r) != 1 || r[0].Code != "nobody-asked" || !strings.Contains(r[0].Fix, "rootbound approve") || !strings.Contains(r[0].Fix, "[[rule]]") && !strings.Contains(r[0].Fix, "rules:3") {
		t.Errorf("the log has %+v", r)
	}
	c = a.connect(exchange.Legacy, canAsk)
	c.call("write_file", `{"path":"`+a.dir+`/f"}`)
	line := c.next()
	id := line[strings.Index(line, `"id":`)+5:]
	id = id[:strings.IndexAny(id, ",}")]
	c.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"no"}}`)
	if got := c.done(); !strings.Contains(got, "the client brought no answer") || a.runs() != 0 {
		t.Errorf("the model reads %q", got)
	}
	for mode, want := range map[policy.Mode]string{policy.AskNobody: "nobody is asked here", policy.AskClient: "done"} {
		a := newAsked(t, policy.Never, func(o *guard.Options) { o.Policy.Ask = mode })
		c := a.connect(exchange.Legacy, canAsk)
		c.call("write_file", `{"path":"`+a.dir+`/f"}`)
		if got := c.done(); !strings.Contains(got, want) {
			t.Errorf("with %v the model reads %q", mode, got)
		}
	}
}

func TestARuleRefuses(t *testing.T) {
	a := newAsked(t, policy.Never, nil)
	c := a.connect(exchange.Legacy, `{}`)
	c.call("never", `{}`)
	if got := c.done(); !strings.Contains(got, "it is never to be called") || a.runs() != 0 {
		t.Errorf("the model reads %q", got)
	}
	c.call("look", `{}`)
	if got := c.done(); got != "done" || len(a.logged(calllog.Asked)) != 0 {
		t.Errorf("the model reads %q", got)
	}
}

// A client that gives up soon is told to come again, and gets the answer then.
func TestPending(t *testing.T) {
	a := newAsked(t, policy.Never, func(o *guard.Options) { o.Approval.Pending = time.Nanosecond })
	c := a.connect(exchange.Legacy, `{}`)
	args := `{"path":"` + a.dir + `/f"}`
	c.call("write_file", args)
	if got := c.done(); !strings.Contains(got, "Call this tool again with the same arguments") {
		t.Errorf("the model reads %q", got)
	}
	a.answer(yes)
	if a.runs() != 0 {
		t.Error("it ran with nobody who called")
	}
	c.call("write_file", `{"path":"`+a.dir+`/other"}`)
	c.done()
	a.answer(approval.Reply{})
	c.call("write_file", args)
	if got := c.done(); got != "done" || a.runs() != 1 {
		t.Errorf("the model reads %q, and it ran %d times", got, a.runs())
	}
	c.call("write_file", args)
	if got := c.done(); !strings.Contains(got, "Call this tool again") || a.runs() != 1 {
		t.Errorf("the model reads %q, and it ran %d times", got, a.runs())
	}
	a.answer(approval.Reply{Note: "enough"})
	c.call("write_file", args)
	if got := c.done(); !strings.Contains(got, "says: enough") || a.runs() != 1 {
		t.Errorf("the model reads %q, and it ran %d times", got, a.runs())
	}
}

// away is a client that has a request back, and does not come again.
type away struct {
	caller
	asked chan struct{}
}

func (c away) Ask(ctx context.Context, qs []exchange.Question, answer func([]exchange.Answer)) {
	c.caller.Ask(ctx, qs, answer)
	close(c.asked)
}

// A yes to a call whose client never comes back for it runs nothing, and the call ends with the client.
func TestAYesToAClientThatIsGone(t *testing.T) {
	a := newAsked(t, policy.Never, nil)
	ctx, leave := context.WithCancel(t.Context())
	c := away{asked: make(chan struct{})}
	m := wire.NewRequest([]byte("1"), "tools/call", []byte(`{"name":"write_file","arguments":{"path":"`+a.dir+`/f"}}`))
	ended := make(chan exchange.Outcome, 1)
	r := &exchange.Request{Msg: m, Era: exchange.Modern, Session: exchange.NewSession(ctx), Caller: c}
	a.guard.Wrap(a.server).Handle(ctx, r, func(o exchange.Outcome) { ended <- o })
	<-c.asked
	a.answer(yes)
	leave()
	select {
	case o := <-ended:
		if o.Msg != nil || a.runs() != 0 {
			t.Errorf("it ended with %+v, and ran %d times", o, a.runs())
		}
	case <-time.After(mcptest.Patience):
		t.Error("it did not end")
	}
}

// moments is a context that tells of each who wants to know of its end, which does not come.
type moments struct {
	context.Context
	done chan struct{}
	tell func()
}

func (m moments) Done() <-chan struct{} { return m.done }

func (m moments) AfterFunc(func()) (stop func() bool) {
	m.tell()
	return func() bool { return true }
}

// A question may be answered elsewhere before its client is asked. Then a stateless client does not get the call back: what it has
// back does not run without its retry.
func TestAYesBeforeTheClientIsAsked(t *testing.T) {
	a := newAsked(t, policy.Never, nil)
	c := away{asked: make(chan struct{})}
	m := wire.NewRequest([]byte("1"), "tools/call", []byte(`{"name":"write_file","arguments":{"path":"`+a.dir+`/f"}}`))
	waits := 0
	ctx := moments{t.Context(), make(chan struct{}), func() {
		if s, _ := a.desk.State(); len(s.Questions) == 0 {
			return
		}
		if waits++; waits == 2 { // the desk waits for it, and now who asks the client
			a.answer(yes)
		}
	}}
	ended := make(chan exchange.Outcome, 1)
	r := &exchange.Request{Msg: m, Era: exchange.Modern, Session: exchange.NewSession(t.Context()), Caller: c}
	a.guard.Wrap(a.server).Handle(ctx, r, func(o exchange.Outcome) { ended <- o })
	select {
	case o := <-ended:
		if o.Msg == nil || a.runs() != 1 {
			t.Errorf("it ended with %+v, and ran %d times", o, a.runs())
		}
	case <-c.asked:
		t.Error("the client has the call back")
	case <-time.After(mcptest.Patience):
		t.Error("it did not end")
	}
}

// Who reads that a call waits can answer it.
func TestACallWaitsWhenThatIsTold(t *testing.T) {
	told := make(chan int, 1)
	var a *asked
	a = newAsked(t, policy.Never, func(o *guard.Options) {
		o.Warn = func(text string) {
			if strings.Contains(text, "waits for you") {
				s, _ := a.desk.State()
				told <- len(s.Questions)
			}
		}
	})
	c := a.connect(exchange.Legacy, "{}")
	c.call("write_file", `{}`)
	if n := <-told; n != 1 {
		t.Errorf("it is told while %d questions wait", n)
	}
	a.answer(yes)
	if got := c.done(); got != "done" {
		t.Errorf("the answer is %q", got)
	}
}

func TestACancelledCallIsNotAskedAbout(t *testing.T) {
	a := newAsked(t, policy.Never, nil)
	c := a.connect(exchange.Legacy, canAsk)
	c.call("write_file", `{"path":"`+a.dir+`/f"}`)
	c.elicited()
	q := a.waits()
	c.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, c.id))
	if line := c.next(); !strings.Contains(line, "notifications/cancelled") {
		t.Errorf("the client hears %s", line)
	}
	for deadline := time.Now().Add(mcptest.Patience); ; time.Sleep(time.Millisecond) {
		if s, _ := a.desk.State(); len(s.Questions) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the question stays")
		}
	}
	if err := a.desk.Answer(q.ID, yes, approval.ByTerminal, ""); err != approval.ErrNoQuestion {
		t.Errorf("the answer to it: %v", err)
	}
	c.call("look", `{}`)
	if got := c.done(); got != "done" || a.runs() != 1 {
		t.Errorf("%q, and it ran %d times", got, a.runs())
	}
}

// A stateless server may give back what a person allowed. Its retry is the same call, and nobody is asked again; another
// guard does not know it.
func TestTheServersOwnQuestionsComeAfterAYes(t *testing.T) {
	a := newAsked(t, policy.Never, nil)
	a.once, a.list = true, true
	c := a.connect(exchange.Modern, canAsk)
	c.call("write_file", `{"path":"`+a.dir+`/f"}`)
	_, _, answer := c.elicited()
	answer(`{"action":"accept","content":{"decision":"allow once"}}`)
	state := func() string {
		t.Helper()
		var m struct {
			Result struct {
				RequestState  string
				InputRequests map[string]any
			}
		}
		line := c.next()
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Result.InputRequests["own"] == nil {
			t.Fatalf("the server's question did not come: %s", line)
		}
		return m.Result.RequestState
	}
	sealed := state()
	if !strings.HasPrefix(sealed, "rbs1.") {
		t.Errorf("the state is %q", sealed)
	}
	c.again(sealed, `{"own":{"action":"accept","content":{}}}`)
	if got := c.done(); got != "done" || a.runs() != 1 {
		t.Errorf("%q, and it ran %d times", got, a.runs())
	}
	c.again(sealed, `{"own":{"action":"accept","content":{}}}`)
	if got := c.done(); !strings.Contains(got, "request state is not valid") || a.runs() != 1 {
		t.Errorf("the same state again: %q, and it ran %d times", got, a.runs())
	}
	if n := len(a.logged(calllog.Asked)); n != 1 {
		t.Errorf("a person was asked %d times", n)
	}
}

// A question of ours that another guard put is put again: a yes is for the guard that asked.
func TestAnotherGuardAsksAgain(t *testing.T) {
	a, b := newAsked(t, policy.Never, nil), newAsked(t, policy.Never, nil)
	at, other := a.connect(exchange.Modern, canAsk), b.connect(exchange.Modern, canAsk)
	at.call("write_file", `{"n":1}`)
	var m struct{ Result struct{ RequestState string } }
	if err := json.Unmarshal([]byte(at.next()), &m); err != nil {
		t.Fatal(err)
	}
	other.tool, other.args = at.tool, at.args
	other.again(m.Result.RequestState, `{"rootbound.approve":{"action":"accept","content":{"decision":"allow once"}}}`)
	_, _, answer := other.elicited()
	if b.runs() != 0 {
		t.Error("the second guard ran it without a yes")
	}
	answer(`{"action":"accept","content":{"decision":"deny"}}`)
	if got := other.done(); !strings.Contains(got, "said no") || a.runs()+b.runs() != 0 {
		t.Errorf("%q, and it ran %d times", got, a.runs()+b.runs())
	}
	at.again(m.Result.RequestState, `{"rootbound.approve":{"action":"accept","content":{"decision":"allow once"}}}`)
	if got := at.done(); got != "done" || a.runs() != 1 {
		t.Errorf("%q, and it ran %d times", got, a.runs())
	}
	at.again(m.Result.RequestState, `{"rootbound.approve":{"action":"accept","content":{"decision":"allow once"}}}`)
	if got := at.done(); !strings.Contains(got, "request state is not valid") || a.runs() != 1 {
		t.Errorf("the same state again: %q, and it ran %d times", got, a.runs())
	}
}

func TestToolsThatAreAskedForAreMarked(t *testing.T) {
	a := newAsked(t, policy.Never, func(o *guard.Options) { o.Approval.AlwaysAsk = true })
	c := a.connect(exchange.Legacy, `{}`)
	c.say(`{"jsonrpc":"2.0","id":"list","method":"tools/list","params":{}}`)
	if got, want := c.next(), `{"tools":[{"name":"write_file","inputSchema":`+writeSchema+`,"_meta":{"anthropic/requiresUserInteraction":true}},{"name":"look"}]}`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What cannot be logged is neither asked nor run.
func TestAFullDiskIsANo(t *testing.T) {
	a := newAsked(t, policy.Never, nil)
	c := a.connect(exchange.Legacy, `{}`)
	c.call("write_file", `{}`)
	a.waits()
	a.log.Close(0, "")
	a.answer(yes)
	if got := c.done(); !strings.Contains(got, "could not be logged") || a.runs() != 0 {
		t.Errorf("%q, and it ran %d times", got, a.runs())
	}
	c.call("write_file", `{}`)
	if got := c.done(); !strings.Contains(got, "could not be logged") || a.runs() != 0 {
		t.Errorf("%q, and it ran %d times", got, a.runs())
	}
}

// A stateless client that is asked has the call back, and may never come again. The same call, sent anew, is not to wait for that.
func TestTheSameCallDoesNotWaitForOneThatNeverComesBack(t *testing.T) {
	a := newAsked(t, policy.Never, nil)
	c := a.connect(exchange.Modern, canAsk)
	var answer func(string)
	for range 3 {
		c.call("write_file", `{"n":1}`)
		_, _, answer = c.elicited()
	}
	answer(`{"action":"accept","content":{"decision":"allow once"}}`)
	if got := c.done(); got != "done" || a.runs() != 1 {
		t.Errorf("%q, and it ran %d times", got, a.runs())
	}
}
