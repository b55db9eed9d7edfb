package guard_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/policy"
)

// A yes that is good for more is good for just that.
func TestGrants(t *testing.T) {
	for _, tt := range []struct {
		remember policy.Remember
		choice   approval.Choice
		then     map[string]bool // whether a call is asked about afterwards, by tool and arguments
	}{
		{policy.ForTool, approval.Choice{Allow: true}, map[string]bool{`write_file {"path":"W/a","content":"x"}`: true}},
		{policy.ForTool, approval.Choice{Allow: true, Session: true}, map[string]bool{
			`write_file {"path":"W/sub/b"}`: false, `other {"path":"W/a","content":"x"}`: true, `write_file {}`: false,
		}},
		{policy.InRoot, approval.Choice{Allow: true, Session: true}, map[string]bool{
			`write_file {"path":"W/sub/b"}`: false, `other {"path":"W/a"}`: false, `write_file {}`: true, `delete {"path":"W/a"}`: true,
		}},
		{policy.SameCall, approval.Choice{Allow: true, Session: true}, map[string]bool{
			`write_file {"content":"x","path":"W/a"}`: false, `write_file {"path":"W/a","content":"y"}`: true,
		}},
		{policy.ForTool, approval.Choice{Allow: true, Under: "W/sub"}, map[string]bool{
			`write_file {"path":"W/sub/b"}`: false, `write_file {"path":"W/b"}`: true, `write_file {"path":"W/sub/../b"}`: true,
			`other {"path":"W/sub/b"}`: true, `write_file {"path":"W/sub/b","to":"https://example.com"}`: true,
			`write_file {"path":"W/sub/.env"}`: true,
		}},
		{policy.InRoot, approval.Choice{Allow: true, Under: "W/sub"}, map[string]bool{`write_file {"path":"W/sub/b"}`: false, `write_file {"path":"W/b"}`: true}},
		{policy.ForTool, approval.Choice{Allow: true, For: time.Hour}, map[string]bool{
			`write_file {"path":"W/b"}`: false, `write_file {"path":"W/.env"}`: true, `other {"path":"W/a"}`: true,
		}},
		{policy.InRoot, approval.Choice{Allow: true, For: time.Hour}, map[string]bool{`write_file {"path":"W/b"}`: false, `write_file {}`: true}},
		{policy.SameCall, approval.Choice{Allow: true, For: time.Hour}, map[string]bool{
			`write_file {"path":"W/a","content":"x"}`: false, `write_file {"path":"W/a","content":"y"}`: true,
		}},
	} {
		for then, asks := range tt.then {
			a := newAsked(t, tt.remember, nil)
			if err := os.Mkdir(filepath.Join(a.dir, "sub"), 0o700); err != nil {
				t.Fatal(err)
			}
			c := a.connect(exchange.Legacy, `{}`)
			path, choice := "W/a", tt.choice
			if tt.choice.Under != "" {
				path = "W/sub/a"
				choice.Under = strings.ReplaceAll(choice.Under, "W", a.dir)
			}
			c.call("write_file", strings.ReplaceAll(`{"path":"`+path+`","content":"x"}`, "W", a.dir))
			a.answer(approval.Reply{Choice: choice})
			if got := c.done(); got != "done" {
				t.Fatalf("%v, %+v: got %q", tt.remember, choice, got)
			}
			tool, args, _ := strings.Cut(then, " ")
			c.call(tool, strings.ReplaceAll(args, "W/", a.dir+"/"))
			if asks {
				a.answer(approval.Reply{})
			}
			if got := c.done(); strings.HasPrefix(got, "refused") != asks {
				t.Errorf("%v, %+v, then %s: %q", tt.remember, tt.choice, then, got)
			}
			if r := a.logged(calllog.Answered); !asks && (len(r) != 2 || r[1].Code != "grant") {
				t.Errorf("%v, %+v, then %s: the log has %+v", tt.remember, tt.choice, then, r)
			}
			if tt.choice.Session { // another session is asked
				other := a.connect(exchange.Legacy, `{}`)
				other.call(tool, strings.ReplaceAll(args, "W/", a.dir+"/"))
				a.answer(approval.Reply{})
				if got := other.done(); !strings.HasPrefix(got, "refused") {
					t.Errorf("%v, %+v, then %s in another session: %q", tt.remember, tt.choice, then, got)
				}
			}
			if err := a.grants.Store().End("run"); err != nil {
				t.Error(err)
			}
			if left, err := a.grants.Store().Grants(); err != nil || (len(left) > 0) != (tt.choice.Under != "" || tt.choice.For > 0) {
				t.Errorf("%v, %+v: at the end there are %v, %v", tt.remember, tt.choice, left, err)
			}
		}
	}
}

// A yes for one host is for no call that may lead elsewhere as well, however that is written.
func TestAGrantForAHost(t *testing.T) {
	for args, asks := range map[string]bool{
		`{"url":"https://good.example/y","note":"a word"}`:                         false,
		`{"url":"https://good.example","more":["https://good.example/z"]}`:         false,
		`{"url":"https://evil.example","note":"https://good.example"}`:             true,
		`{"url":"https://good.example\\@evil.example","n":"https://good.example"}`: true,
		`{"url":"https:evil.example","n":"https://good.example"}`:                  true,
		`{"url":"https:///evil.example","n":"https://good.example"}`:               true,
		`{"url":"ht\ntps://evil.example","n":"https://good.example"}`:              true,
		`{"url":"evil.example/x","n":"https://good.example"}`:                      true,
		`{"url":"192.0.2.1:80","n":"https://good.example"}`:                        true,
		`{"https://evil.example":1,"url":"https://good.example"}`:                  true,
		`{"url":"https://good.example@evil.example"}`:                              true,
		`{"url":"good.example"}`:                                                   true,
	} {
		a := newAsked(t, policy.ForTool, nil)
		c := a.connect(exchange.Legacy, `{}`)
		c.call("fetch", `{"url":"https://good.example/x"}`)
		a.answer(approval.Reply{Choice: approval.Choice{Allow: true, Host: "good.example"}})
		c.done()
		c.call("fetch", args)
		if asks {
			if q := a.waits(); strings.Contains(fmt.Sprint(q.Choices), "host good.example") {
				t.Errorf("%s: %q is offered", args, q.Choices)
			}
			a.answer(approval.Reply{})
		}
		if got := c.done(); strings.HasPrefix(got, "refused") != asks {
			t.Errorf("%s: %q", args, got)
		}
	}
}

func TestADeleteIsNeverRemembered(t *testing.T) {
	a := newAsked(t, policy.InRoot, nil)
	c := a.connect(exchange.Legacy, `{}`)
	c.call("delete", `{"path":"`+a.dir+`/a"}`)
	q := a.waits()
	if len(q.Choices) != 2 || q.Remember {
		t.Errorf("the choices are %v", q.Choices)
	}
	if err := a.desk.Answer(q.ID, approval.Reply{Choice: approval.Choice{Allow: true, Session: true}}, approval.ByTerminal, ""); err == nil {
		t.Error("it is remembered")
	}
	a.answer(approval.Reply{})
	c.done()
}

// A yes that cannot be kept is good for the call that it was said to.
func TestAYesThatCannotBeKept(t *testing.T) {
	var mu sync.Mutex
	var warned []string
	a := newAsked(t, policy.ForTool, func(o *guard.Options) {
		o.Warn = func(text string) {
			mu.Lock()
			defer mu.Unlock()
			warned = append(warned, text)
		}
		o.Approval.Grants = approval.NewGrants(approval.Store{Path: "/dev/null/grants.json", Lock: "/dev/null/lock"})
	})
	c := a.connect(exchange.Legacy, `{}`)
	c.call("write_file", `{}`)
	a.answer(approval.Reply{Choice: approval.Choice{Allow: true, Session: true}})
	if got := c.done(); got != "done" || a.runs() != 1 {
		t.Errorf("%q, and it ran %d times", got, a.runs())
	}
	c.call("write_file", `{}`)
	a.answer(approval.Reply{})
	got := c.done()
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(got, "said no") || !strings.Contains(strings.Join(warned, "\n"), "is good for this call alone") {
		t.Errorf("%q, after %q", got, warned)
	}
}
