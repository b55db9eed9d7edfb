package guard_test

import (
	"context"
	"path/filepath"
	"strings"
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
