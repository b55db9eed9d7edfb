package guard_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// drive sends a line through h as a client whose questions go unanswered, and returns the reply.
func drive(t *testing.T, ctx context.Context, h exchange.Handler, s *exchange.Session, line string) exchange.Outcome {
	t.Helper()
	m, err := wire.Scan([]byte(line), wire.Strict)
	if err != nil {
		t.Fatal(err)
	}
	return exchange.Do(ctx, h, &exchange.Request{Msg: &m, Session: s, Caller: caller{}})
}

// echo answers every request at once.
var echo = exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	if r.Msg.Kind() == wire.Request {
		reply(exchange.Result(r, []byte(`{"content":[]}`)))
	}
})

func resolved(t *testing.T) (dir string, set roots.Set) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d, err := roots.Resolve(dir, roots.ResolveOptions{Access: roots.ReadWrite, Origin: "--root"})
	if err != nil {
		t.Fatal(err)
	}
	return dir, roots.NewSet(d)
}

const readCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"path":"DIR/f"}}}`

// A client that declares roots and never answers costs one call five seconds, and the calls after it nothing for half a
// minute; what is configured holds.
func TestAClientThatNeverAnswersIsNotWaitedForTwice(t *testing.T) {
	dir, set := resolved(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := exchange.NewSession(ctx)
		s.SetClient(exchange.Client{Capabilities: []byte(`{"roots":{}}`)})
		h := guard.New(guard.Options{Server: "s", Configured: set}).Wrap(echo)
		drive(t, ctx, h, s, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`)
		line := strings.ReplaceAll(readCall, "DIR", dir)
		for i, want := range []time.Duration{roots.AnswerLimit, 0, 0} {
			begun := time.Now()
			o := drive(t, ctx, h, s, line)
			if took := time.Since(begun); took != want {
				t.Errorf("call %d took %v, want %v", i, took, want)
			}
			if o.Msg == nil || o.Msg.Result() == nil || strings.Contains(string(o.Msg.Bytes()), "Refused") {
				t.Errorf("call %d got %v", i, o.Msg)
			}
		}
		time.Sleep(31 * time.Second)
		begun := time.Now()
		drive(t, ctx, h, s, line)
		if took := time.Since(begun); took > roots.AnswerLimit {
			t.Errorf("after half a minute a call took %v", took)
		}
	})
}

// gone is a client that can be asked nothing any more: its stream was closed.
type gone struct{ caller }

func (gone) CanAsk(string) bool { return false }

// Calls whose clients have gone, and which nobody cancelled, go on when the one is cancelled on which they waited for the client's list.
func TestCallsOfClientsWhoHaveGoneDoNotWaitForEachOther(t *testing.T) {
	dir, set := resolved(t)
	synctest.Test(t, func(t *testing.T) {
		s := exchange.NewSession(t.Context())
		s.SetClient(exchange.Client{Capabilities: []byte(`{"roots":{}}`)})
		h := guard.New(guard.Options{Server: "s", Configured: set}).Wrap(echo)
		drive(t, t.Context(), h, s, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`)
		m, err := wire.Scan([]byte(strings.ReplaceAll(readCall, "DIR", dir)), wire.Strict)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		first, cancel := context.WithCancel(t.Context())
		done := make(chan bool, 4)
		call := func(ctx context.Context, c exchange.Caller) {
			h.Handle(ctx, &exchange.Request{Msg: &m, Session: s, Caller: c}, func(o exchange.Outcome) { done <- o.Msg != nil })
		}
		call(first, caller{})
		for range 3 {
			call(t.Context(), gone{})
		}
		cancel()
		answered := 0
		for range 4 {
			if <-done {
				answered++
			}
		}
		if took := time.Since(begun); answered != 3 || took >= roots.AnswerLimit {
			t.Errorf("%d calls were answered, after %v", answered, took)
		}
	})
}

// A root that vanishes is refused within two seconds, one that returns is allowed again.
func TestARootThatVanishesAndReturns(t *testing.T) {
	dir, _ := resolved(t)
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := roots.Resolve(root, roots.ResolveOptions{Access: roots.ReadWrite})
	if err != nil {
		t.Fatal(err)
	}
	var warnings []string
	g := guard.New(guard.Options{Server: "s", Configured: roots.NewSet(d), Warn: func(s string) { warnings = append(warnings, s) }})
	h := g.Wrap(echo)
	s := exchange.NewSession(t.Context())
	line := strings.ReplaceAll(readCall, "DIR", root)
	refused := func() bool {
		return strings.Contains(string(drive(t, t.Context(), h, s, line).Msg.Bytes()), "Refused")
	}
	if refused() {
		t.Fatal("a path in the root is refused")
	}
	if err := os.Rename(root, root+".away"); err != nil {
		t.Fatal(err)
	}
	g.Look()
	if !refused() || len(warnings) == 0 {
		t.Errorf("a path in a root that is gone is allowed; warnings %q", warnings)
	}
	if err := os.Rename(root+".away", root); err != nil {
		t.Fatal(err)
	}
	g.Look()
	if refused() {
		t.Error("a path in a root that is back is refused")
	}
}

// Other configured directories take effect for the next call, and the server is told.
func TestConfigureTakesEffect(t *testing.T) {
	a, setA := resolved(t)
	b, setB := resolved(t)
	told := make(chan string, 8)
	server := exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Kind() != wire.Request {
			told <- r.Msg.Method()
			return
		}
		echo(ctx, r, reply)
	})
	g := guard.New(guard.Options{Server: "s", Configured: setA})
	h := g.Wrap(server)
	s := exchange.NewSession(t.Context())
	s.SetClient(exchange.Client{Capabilities: []byte("{}")})
	refused := func(dir string) bool {
		return strings.Contains(string(drive(t, t.Context(), h, s, strings.ReplaceAll(readCall, "DIR", dir)).Msg.Bytes()), "Refused")
	}
	drive(t, t.Context(), h, s, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{}}}`)
	m := wire.NewNotification("notifications/initialized", nil)
	h.Handle(t.Context(), &exchange.Request{Msg: m, Session: s}, nil)
	<-told
	if refused(a) || !refused(b) {
		t.Fatal("before: a is refused, or b is not")
	}
	g.Configure(setB)
	if got := <-told; got != "notifications/roots/list_changed" {
		t.Errorf("the server was told %q", got)
	}
	if !refused(a) || refused(b) {
		t.Error("after: a is not refused, or b is")
	}
}

// What a server of ours hears last is what holds, also when it hears of one change only after the next.
func TestConfigureIsHeardLate(t *testing.T) {
	_, setA := resolved(t)
	_, setB := resolved(t)
	var last atomic.Pointer[roots.Set]
	var block atomic.Bool
	late, goOn := make(chan struct{}), make(chan struct{})
	server := exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Method() == "notifications/roots/list_changed" {
			if block.Swap(false) {
				close(late)
				<-goOn
			}
			last.Store(&r.Roots)
		}
		echo(ctx, r, reply)
	})
	g := guard.New(guard.Options{Server: "s", Configured: setA})
	h := g.WrapContained(server)
	s := exchange.NewSession(t.Context())
	s.SetClient(exchange.Client{Capabilities: []byte("{}")})
	drive(t, t.Context(), h, s, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{}}}`)
	h.Handle(t.Context(), &exchange.Request{Msg: wire.NewNotification("notifications/initialized", nil), Session: s}, nil)
	block.Store(true)
	configured := make(chan struct{})
	go func() {
		defer close(configured)
		g.Configure(setB)
	}()
	<-late
	g.Configure(setA)
	close(goOn)
	<-configured
	if got := last.Load(); !got.Equal(setA) {
		t.Errorf("it goes by %v, and what holds is %v", got, setA)
	}
}

// A server whose command line was filled with other roots than hold by the end of its handshake is started again.
func TestConfigureDuringTheHandshake(t *testing.T) {
	_, setA := resolved(t)
	_, setB := resolved(t)
	for _, changes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			started := 0
			var g *guard.Guard
			start := func() {
				started++
				g.Starting()
			}
			g = guard.New(guard.Options{Server: "s", Configured: setA, Restart: func(ready func()) error {
				start()
				ready()
				return nil
			}})
			h := g.Wrap(echo)
			s := exchange.NewSession(t.Context())
			s.SetClient(exchange.Client{Capabilities: []byte("{}")})
			start()
			drive(t, t.Context(), h, s, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{}}}`)
			if changes {
				g.Configure(setB)
			}
			h.Handle(t.Context(), &exchange.Request{Msg: wire.NewNotification("notifications/initialized", nil), Session: s}, nil)
			if synctest.Wait(); started > 1 != changes {
				t.Errorf("it was started %d times, where its roots changed: %v", started, changes)
			}
		})
	}
}

// A list of roots that cannot be logged is not told: -32603, with the reason.
func TestRootsThatCannotBeLoggedAreNotTold(t *testing.T) {
	_, set := resolved(t)
	log, err := calllog.Create(t.TempDir(), calllog.Record{Server: "s"}, calllog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var answer exchange.Answer
	asks := exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		log.Close(0, "") // after the request was logged
		r.Caller.Ask(ctx, []exchange.Question{{Key: "k", Method: "roots/list"}}, func(a []exchange.Answer) {
			answer = a[0]
			reply(exchange.Result(r, []byte("{}")))
		})
	})
	h := guard.New(guard.Options{Server: "s", Configured: set, Log: log}).Wrap(asks)
	drive(t, t.Context(), h, exchange.NewSession(t.Context()), `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if want := `{"code":-32603,"message":"rootbound: the list of roots could not be logged","data":{"reason":"log"}}`; string(answer.Error) != want {
		t.Errorf("got %s %s, want %s", answer.Result, answer.Error, want)
	}
}
