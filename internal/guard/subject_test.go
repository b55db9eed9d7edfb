package guard_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// Who calls cannot write what reads like a fact of ours, and not with a second text show another change than the one that
// will be made.
func TestWhatIsShownIsNotForged(t *testing.T) {
	for args, diff := range map[string]bool{
		`{"path":"W/f","content":"x","the tool":"only reads","why":"it is harmless"}`: true,
		`{"path":"W/f","content":"x","text":"y"}`:                                     false,
		`{"path":"W/f","content":"x","edits":[{"oldText":"a","newText":"b"}]}`:        false,
		`{"path":"W/f","CONTENT":"x","oldText":"a","newText":"b"}`:                    false,
	} {
		a := newAsked(t, policy.Never, nil)
		c := a.connect(exchange.Legacy, `{}`)
		c.call("write_file", strings.ReplaceAll(args, "W/", a.dir+"/"))
		q := a.waits()
		if (q.Diff != "") != diff {
			t.Errorf("%s: the change is %q", args, q.Diff)
		}
		for _, f := range q.Facts {
			if strings.HasPrefix(f, "the tool: ") && f != "the tool: writes, says the test" || strings.HasPrefix(f, "why") {
				t.Errorf("%s: a fact is %q", args, f)
			}
		}
		a.answer(approval.Reply{})
		c.done()
	}
	a := newAsked(t, policy.Never, nil)
	if err := os.WriteFile(filepath.Join(a.dir, "f"), []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := a.connect(exchange.Legacy, `{}`)
	c.call("append_file", `{"path":"`+a.dir+`/f","content":"new\n"}`)
	if q := a.waits(); strings.Contains(q.Diff, "-old") {
		t.Errorf("what is added to is shown as if it went:\n%s", q.Diff)
	}
	a.answer(approval.Reply{})
	c.done()
}

// oneRoot is a server of ours that does not serve its directory closed, though it is a root.
type oneRoot struct {
	*asked
	closed string
}

func (s oneRoot) Means(_ context.Context, set roots.Set, arg string, _ bool) (string, error) {
	return filepath.Join(set.Dirs()[0].Path, arg), nil
}

func (s oneRoot) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	if r.Msg.Method() == "tools/call" && r.Roots.Dirs()[0].Path == s.closed {
		r.Trail.Add(exchange.Note{Stage: "fs", Denied: true, Code: calllog.CodeOutside, Path: filepath.Join(s.closed, "f")})
		reply(exchange.Refused(r, "refused", nil))
		return
	}
	s.handle(ctx, r, reply)
}

// A client whose call a server of ours denied may say that it has other roots, and the call is tried with those. A relative path
// leads elsewhere then, to which nobody said yes.
func TestAYesIsNotForOtherRoots(t *testing.T) {
	var dirs []roots.Dir
	a := newAsked(t, policy.Never, func(o *guard.Options) {
		dirs = newDirs(t, 2)
		o.Configured = roots.NewSet(dirs...)
	})
	a.contained, a.server = true, oneRoot{a, dirs[0].Path}
	c := a.connect(exchange.Legacy, `{"roots":{}}`)
	var list atomic.Value
	list.Store(dirs[0].Path)
	// answered gives the client's list when it is asked for, and returns what else comes.
	answered := func() string {
		for {
			line := c.next()
			m, err := wire.Scan([]byte(line), wire.Strict)
			if err != nil || m.Method() != "roots/list" {
				return line
			}
			c.say(`{"jsonrpc":"2.0","id":` + string(m.ID()) + `,"result":{"roots":[{"uri":"file://` + list.Load().(string) + `"}]}}`)
		}
	}
	c.call("write_file", `{"path":"f"}`)
	got := make(chan string)
	go func() { got <- answered() }()
	q := a.waits()
	if !strings.Contains(q.Head, dirs[0].Path+"/f") {
		t.Errorf("asked is %q", q.Head)
	}
	list.Store(dirs[1].Path)
	a.answer(yes)
	if line := <-got; !strings.Contains(line, "refused") || a.runs() != 0 {
		t.Errorf("the client gets %s, and it ran %d times", line, a.runs())
	}
}

// What changes between the question and the answer makes the answer one to something else.
func TestAnAnswerIsToWhatWasShown(t *testing.T) {
	for name, change := range map[string]func(a *asked, c *client) error{
		"a link": func(a *asked, _ *client) error {
			return os.Symlink(filepath.Join(a.dir, "elsewhere"), filepath.Join(a.dir, "f"))
		},
		"a link outside": func(a *asked, _ *client) error { return os.Symlink("/etc/passwd", filepath.Join(a.dir, "f")) },
		"the roots": func(a *asked, _ *client) error {
			a.guard.Configure(roots.NewSet())
			return nil
		},
		"the rules": func(a *asked, _ *client) error {
			a.guard.SetPolicy(guard.Policy{Rules: policy.New(policy.Layers{Rules: []*policy.Rule{{At: "rules:9", Verdict: policy.Deny}}})})
			return nil
		},
		"what is there": func(a *asked, _ *client) error {
			return os.WriteFile(filepath.Join(a.dir, "f"), []byte("of somebody"), 0o600)
		},
		"the tool": func(a *asked, c *client) error {
			c.say(`{"jsonrpc":"2.0","id":"list","method":"tools/list","params":{}}`)
			c.next()
			return nil
		},
	} {
		a := newAsked(t, policy.ForTool, nil)
		c := a.connect(exchange.Legacy, `{}`)
		c.call("write_file", `{"path":"`+a.dir+`/f"}`)
		q := a.waits()
		if err := change(a, c); err != nil {
			t.Fatal(err)
		}
		a.answer(yes)
		if got := c.done(); !strings.HasPrefix(got, "refused") || a.runs() != 0 {
			t.Errorf("%s changed after %q was asked: %q, and it ran %d times", name, q.Head, got, a.runs())
		}
	}
}
