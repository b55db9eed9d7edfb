package guard_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/policy"
)

// with is a yes to other arguments.
func with(args string) approval.Reply {
	return approval.Reply{Choice: approval.Choice{Allow: true}, Args: json.RawMessage(args)}
}

// texts is every text that the model reads in the next answer.
func (c *client) texts() (list []string) {
	c.t.Helper()
	line := c.next()
	var m struct {
		Result struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil || len(m.Result.Content) == 0 {
		c.t.Fatalf("no answer came: %s", line)
	}
	for _, b := range m.Result.Content {
		list = append(list, b.Text)
	}
	return list
}

// What runs is what a person wrote, the model hears of it, and so does the log, without the values.
func TestArgumentsAreChanged(t *testing.T) {
	for _, era := range eras {
		a := newAsked(t, policy.ForTool, nil)
		a.connect(exchange.Legacy, "{}").list()
		c := a.connect(era, canAsk)
		for range 2 { // the client is asked, too, and what is first counts
			c.call("write_file", `{"path":"`+a.dir+`/a.txt","content":"one","big":9007199254740993,"old":true}`)
			_, _, fromClient := c.elicited()
			q := a.waits()
			args := "{\n  \"path\": \"" + a.dir + "/b.txt\",\n  \"content\": \"two\\n\", \"big\": 9007199254740995, \"new\": 1e2 }"
			shown, err := a.desk.Question(q.ID, []byte(args))
			if err != nil {
				t.Fatal(err)
			}
			if shown.Targets[0] != a.dir+"/b.txt" || !strings.Contains(shown.Diff, "+two") || shown.Digest == q.Digest {
				t.Errorf("%v: it is shown as %+v", era, shown)
			}
			r := with(args)
			r.Digest = shown.Digest
			a.answer(r)
			if era == exchange.Legacy {
				if line := c.next(); !strings.Contains(line, "notifications/cancelled") {
					t.Fatal(line)
				}
			} else { // it finds it done when it comes back
				fromClient(`{"action":"cancel"}`)
			}
			got := c.texts()
			if len(got) != 2 || got[1] != "done" || !strings.HasPrefix(got[0], "The user changed the arguments of this call before it ran (call ") {
				t.Errorf("%v: the model reads %q", era, got)
			}
			for _, want := range []string{`"path" was changed: "` + a.dir + `/b.txt"`, `"content" was changed: "two\n"`, `"big" was changed: 9007199254740995`, `"new" was added: 100`, `"old" was taken out`} {
				if !strings.Contains(got[0], want) {
					t.Errorf("%v: the model does not read %s in %s", era, want, got[0])
				}
			}
		}
		want := `{"path":"` + a.dir + `/b.txt","content":"two\n","big":9007199254740995,"new":1e2}`
		if a.runs() != 2 || a.ran[0] != want || a.ran[1] != want {
			t.Errorf("%v: it ran %q", era, a.ran)
		}
		answered := a.logged(calllog.Answered)[0]
		if !strings.Contains(answered.Reason, `"content" was changed`) || strings.Contains(fmt.Sprint(answered), "two") {
			t.Errorf("%v: the log has the answer %+v", era, answered)
		}
		call := a.logged(calllog.Call)
		ran := call[len(call)-1]
		if len(ran.Paths) != 1 || ran.Paths[0].Resolved != a.dir+"/b.txt" || ran.Verdict != calllog.Allow || !strings.Contains(string(ran.Args), "b.txt") {
			t.Errorf("%v: the log has the call %+v", era, ran)
		}
		if all, err := a.grants.Store().Grants(); err != nil || len(all) != 0 {
			t.Errorf("%v: %+v was granted, %v", era, all, err)
		}
	}
}

// list lists the tools.
func (c *client) list() {
	c.t.Helper()
	c.say(`{"jsonrpc":"2.0","id":"list","method":"tools/list"}`)
	c.next()
}

// What a person writes is judged as if the model had written it, and the question stays until it is right.
func TestChangedArgumentsAreJudged(t *testing.T) {
	a := newAsked(t, policy.ForTool, nil)
	outside := filepath.Join(filepath.Dir(a.dir), "secret")
	if err := os.Symlink(filepath.Dir(a.dir), filepath.Join(a.dir, "link")); err != nil {
		t.Fatal(err)
	}
	c := a.connect(exchange.Legacy, "{}")
	c.list()
	c.call("write_file", `{"path":"`+a.dir+`/a.txt","content":"one"}`)
	q := a.waits()
	for name, r := range map[string]approval.Reply{
		"a path outside":            with(`{"path":"` + outside + `","content":"x"}`),
		"a link that leads outside": with(`{"path":"` + a.dir + `/link/secret","content":"x"}`),
		"a missing member":          with(`{"path":"` + a.dir + `/a.txt"}`),
		"another type":              with(`{"path":"` + a.dir + `/a.txt","content":7}`),
		"a name twice":              with(`{"path":"` + a.dir + `/a.txt","path":"` + a.dir + `/b.txt","content":"x"}`),
		"a list":                    with(`[]`),
		"a string":                  with(`"x"`),
		"nothing":                   with(`null`),
		"no JSON":                   with(`{`),
		"another member of params":  with(`{"path":"` + a.dir + `/a.txt","content":"x"},"name":"never"`),
		"for the session":           {Choice: approval.Choice{Allow: true, Session: true}, Args: json.RawMessage(`{"path":"` + a.dir + `/b","content":"x"}`)},
		"another digest":            {Choice: approval.Choice{Allow: true}, Args: json.RawMessage(`{"path":"` + a.dir + `/b","content":"x"}`), Digest: q.Digest},
		"the same, not as shown":    {Choice: approval.Choice{Allow: true}, Digest: "0123456789abcdef"},
	} {
		if err := a.desk.Answer(q.ID, r, approval.ByTerminal, "process 7"); err == nil {
			t.Fatalf("%s: it is taken", name)
		}
		if a.waits().ID != q.ID || a.runs() > 0 {
			t.Fatalf("%s: the question is gone, or it ran", name)
		}
	}
	if err := a.desk.Answer(q.ID, approval.Reply{Args: json.RawMessage(`{`), Note: "rather not"}, approval.ByTerminal, ""); err != nil {
		t.Errorf("a no is a no whatever else it says: %v", err)
	}
	if got := c.done(); !strings.Contains(got, "rather not") || a.runs() > 0 {
		t.Errorf("the model reads %q", got)
	}
}

// A rule that denies is no less a rule since a person wrote the arguments.
func TestARuleHoldsForChangedArguments(t *testing.T) {
	a := newAsked(t, policy.ForTool, nil)
	c := a.connect(exchange.Legacy, "{}")
	c.call("write_file", `{"path":"`+a.dir+`/a.txt","content":"one"}`)
	a.waits()
	a.deny("write_file", "denied by the test")
	if _, err := a.desk.Question(a.waits().ID, []byte(`{"path":"`+a.dir+`/b.txt","content":"two"}`)); err == nil || !strings.Contains(err.Error(), "denied by the test (rules:9)") {
		t.Errorf("it is judged %v", err)
	}
	a.answer(approval.Reply{})
	c.done()
}

func (a *asked) deny(tool policy.Glob, reason string) {
	rules := policy.New(policy.Layers{Rules: []*policy.Rule{{At: "rules:9", Tool: tool, Verdict: policy.Deny, Reason: reason}}})
	a.guard.SetPolicy(guard.Policy{Rules: rules, Ask: policy.AskAlways, Operator: effects})
}

// A server that gives a changed call back gets the changed one again, without a second question.
func TestAChangedCallThatIsGivenBack(t *testing.T) {
	a := newAsked(t, policy.ForTool, nil)
	a.once = true
	c := a.connect(exchange.Modern, `{"elicitation":{}}`)
	c.call("write_file", `{"path":"`+a.dir+`/a.txt","content":"one"}`)
	_, _, fromClient := c.elicited()
	a.answer(with(`{"path":"` + a.dir + `/b.txt","content":"two"}`))
	fromClient(`{"action":"cancel"}`)
	var m struct{ Result struct{ RequestState string } }
	line := c.next()
	if err := json.Unmarshal([]byte(line), &m); err != nil || m.Result.RequestState == "" {
		t.Fatal(line)
	}
	c.again(m.Result.RequestState, `{"own":{"action":"accept","content":{}}}`)
	if got := c.texts(); len(got) != 2 || got[1] != "done" {
		t.Errorf("the model reads %q", got)
	}
	if a.runs() != 1 || a.ran[0] != `{"path":"`+a.dir+`/b.txt","content":"two"}` {
		t.Errorf("it ran %q", a.ran)
	}
}

// A call that waits because everything does has no arguments that were judged, and one that was told to come again is not there.
func TestNotEveryCallCanBeChanged(t *testing.T) {
	a := newAsked(t, policy.ForTool, nil)
	c := a.connect(exchange.Legacy, "{}")
	a.desk.Pause(true)
	c.call("write_file", `{"path":"`+a.dir+`/a.txt"}`)
	if err := a.desk.Answer(a.waits().ID, with(`{"path":"`+a.dir+`/b.txt"}`), approval.ByTerminal, ""); err == nil || !strings.Contains(err.Error(), "cannot be changed") {
		t.Errorf("it is answered %v", err)
	}
	a.answer(approval.Reply{})
	c.done()
}

// What a call would be with other arguments is looked at in any moment, also when it goes on.
func TestArgumentsAreLookedAtWhenTheCallGoesOn(t *testing.T) {
	var slow atomic.Bool
	a := newAsked(t, policy.Never, func(o *guard.Options) {
		o.Now = func() time.Time {
			now := time.Now()
			if slow.Load() {
				time.Sleep(50 * time.Millisecond) // so that it mostly goes on while it is looked at
			}
			return now
		}
	})
	c := a.connect(exchange.Legacy, "{}")
	c.call("write_file", `{"path":"`+a.dir+`/f","content":"one"}`)
	q := a.waits()
	args := []byte(`{"path":"` + a.dir + `/f","content":"` + strings.Repeat("x", 1<<20) + `"}`)
	begun := make(chan struct{})
	var looks sync.WaitGroup
	for range 4 {
		looks.Go(func() {
			begun <- struct{}{}
			a.desk.Question(q.ID, args) // which may be answered by then
		})
		<-begun
	}
	slow.Store(true)
	a.answer(yes)
	if got := c.done(); got != "done" {
		t.Errorf("the answer is %q", got)
	}
	looks.Wait()
}
