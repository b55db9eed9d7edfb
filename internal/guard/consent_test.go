package guard_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rootbound/rootbound/internal/consent"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// Over HTTP each session has a guard of its own. All of them know what a person consented to, not only the first.
func TestEachGuardKnowsTheConsents(t *testing.T) {
	dir, err := roots.Resolve(t.TempDir(), roots.ResolveOptions{Access: roots.ReadWrite})
	if err != nil {
		t.Fatal(err)
	}
	file := consent.File(filepath.Join(t.TempDir(), "consents.jsonl"))
	if err := file.Allow(server, dir.Path); err != nil {
		t.Fatal(err)
	}
	asks := exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Kind() == wire.Request {
			r.Caller.Ask(ctx, []exchange.Question{{Method: "roots/list"}}, func(a []exchange.Answer) { reply(exchange.Result(r, a[0].Result)) })
		}
	})
	o := guard.Options{Server: server.Name, Configured: roots.NewSet(dir), Remote: true, Share: true, Consent: file.Watch(server)}
	for _, which := range []string{"first", "second"} {
		h := guard.New(o).Wrap(asks)
		r := &exchange.Request{Msg: wire.NewRequest([]byte("1"), "tools/call", []byte(`{"name":"t"}`)), Session: exchange.NewSession(t.Context()), Caller: caller{}}
		if got := string(exchange.Do(t.Context(), h, r).Msg.Bytes()); !strings.Contains(got, roots.FileURI(dir.Path)) {
			t.Errorf("the server of the %s guard was told %s", which, got)
		}
	}
}

// What is taken out of a root is nothing that a server could be told of, and waits for nobody.
func TestAHoleNeedsNoConsent(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "hole"), 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := roots.Resolve(dir, roots.ResolveOptions{Access: roots.ReadWrite})
	if err != nil {
		t.Fatal(err)
	}
	hole, err := roots.Resolve(filepath.Join(dir, "hole"), roots.ResolveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	file := consent.File(filepath.Join(t.TempDir(), "consents.jsonl"))
	var told strings.Builder
	asks := exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		r.Caller.Ask(ctx, []exchange.Question{{Method: "roots/list"}}, func(a []exchange.Answer) { reply(exchange.Result(r, a[0].Result)) })
	})
	g := guard.New(guard.Options{
		Server: server.Name, Configured: roots.NewSet(root, hole), Remote: true, Share: true, Consent: file.Watch(server),
		Warn: func(text string) { told.WriteString(text + "\n") },
	})
	r := &exchange.Request{Msg: wire.NewRequest([]byte("1"), "tools/list", nil), Session: exchange.NewSession(t.Context()), Caller: caller{}}
	if got := string(exchange.Do(t.Context(), g.Wrap(asks), r).Msg.Result()); got != `{"roots":[]}` {
		t.Errorf("the server was told %s", got)
	}
	if text := told.String(); !strings.Contains(text, root.Path) || strings.Contains(text, hole.Path) {
		t.Errorf("it was said that these wait: %s", text)
	}
}

// A client that nothing connects is told what is so for it, as any other: that the directory that it opened waits for consent.
func TestAClientWithoutASessionHearsOfConsent(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := consent.File(filepath.Join(t.TempDir(), "consents.jsonl"))
	server := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		reply(exchange.Result(r, []byte(`{"content":[]}`)))
	})
	h := guard.New(guard.Options{Server: "files", ClientRoots: roots.Accept, Consent: file.Watch(consent.Server{Name: "files"})}).Wrap(server)
	params := `{"name":"read","arguments":{"path":` + string(wire.Quote(filepath.Join(dir, "x"))) + `},"_meta":{"` + exchange.MetaVersion + `":"2026-07-28","` +
		exchange.MetaCapabilities + `":{"roots":{}}}}`
	r := &exchange.Request{Msg: wire.NewRequest([]byte("1"), "tools/call", []byte(params)), Era: exchange.Modern,
		Caller: caller{roots: []byte(`{"roots":[{"uri":` + string(wire.Quote(roots.FileURI(dir))) + `}]}`)}}
	if got := string(exchange.Do(t.Context(), h, r).Msg.Bytes()); !strings.Contains(got, "rootbound roots allow files") {
		t.Errorf("the model reads %s", got)
	}
}

// To tell the server that a consent was taken back may take until it is given again. What holds in the other sessions then is what was
// said last.
func TestAConsentThatIsGivenAgainMeanwhile(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	told, goOn := make(chan struct{}), make(chan struct{})
	var block atomic.Bool
	s := exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Method() == "notifications/roots/list_changed" && block.Swap(false) {
			close(told)
			<-goOn
		}
		echo(ctx, r, reply)
	})
	file := consent.File(filepath.Join(t.TempDir(), "consents.jsonl"))
	if err := file.Allow(server, dir); err != nil {
		t.Fatal(err)
	}
	g := guard.New(guard.Options{Server: server.Name, ClientRoots: roots.Accept, Consent: file.Watch(server)})
	h := g.Wrap(s)
	client := caller{roots: []byte(`{"roots":[{"uri":` + string(wire.Quote(roots.FileURI(dir))) + `}]}`)}
	read := wire.NewRequest([]byte("1"), "tools/call", []byte(`{"name":"read","arguments":{"path":`+string(wire.Quote(filepath.Join(dir, "x")))+`}}`))
	refused := func(s *exchange.Session) bool {
		return strings.Contains(string(exchange.Do(t.Context(), h, &exchange.Request{Msg: read, Session: s, Caller: client}).Msg.Bytes()), "Refused")
	}
	sessions := []*exchange.Session{exchange.NewSession(t.Context()), exchange.NewSession(t.Context())}
	for _, s := range sessions {
		s.SetClient(exchange.Client{Capabilities: []byte(`{"roots":{"listChanged":true}}`)})
		drive(t, t.Context(), h, s, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{"roots":{"listChanged":true}}}}`)
		h.Handle(t.Context(), &exchange.Request{Msg: wire.NewNotification("notifications/initialized", nil), Session: s}, nil)
		if refused(s) {
			t.Fatal("what somebody consented to is refused")
		}
	}
	if err := file.Forget(server, dir); err != nil {
		t.Fatal(err)
	}
	block.Store(true)
	forgotten := make(chan struct{})
	go func() {
		defer close(forgotten)
		g.Look()
	}()
	<-told
	if err := file.Allow(server, dir); err != nil {
		t.Fatal(err)
	}
	g.Look()
	close(goOn)
	<-forgotten
	for i, s := range sessions {
		if refused(s) {
			t.Errorf("session %d does not have what somebody consented to", i+1)
		}
	}
}
