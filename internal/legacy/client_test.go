package legacy_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/legacy"
	"github.com/rootbound/rootbound/internal/wire"
)

// An initialize that is refused, since its id is that of another request, is not the one whose answer later ones wait for.
func TestAnInitializeWhoseIDIsTaken(t *testing.T) {
	var out strings.Builder
	line := wire.NewWriter(&out)
	h := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Method() == "initialize" {
			reply(exchange.Result(r, []byte(`{"protocolVersion":"2025-11-25"}`)))
		}
	})
	c := legacy.NewClient(exchange.OnLine(line), h, exchange.NewSession(t.Context()), legacy.Options{})
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, // which is not answered yet
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`,
		`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}`,
	} {
		m, err := wire.Scan([]byte(text), wire.Strict)
		if err != nil {
			t.Fatal(err)
		}
		c.Receive(&m, exchange.OnLine(line))
	}
	if got := out.String(); !strings.Contains(got, `"id":1,"error"`) || !strings.Contains(got, `"id":2,"result"`) {
		t.Errorf("got %s", got)
	}
}
