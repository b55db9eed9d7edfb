package bridge_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/bridge"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/legacy"
	"github.com/rootbound/rootbound/internal/wire"
)

// twoRounds is a stateless handler that wants roots, and then a confirmation, before it answers.
func twoRounds(_ context.Context, r *exchange.Request) exchange.Outcome {
	p := r.Msg.Params()
	version := wire.GetString(r.Msg.Meta(), exchange.MetaVersion)
	switch {
	case r.Msg.Method() == "server/discover":
		return exchange.Result(r, []byte(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m"}}}`))
	case r.Msg.Method() == exchange.Listen:
		<-r.Session.Context().Done()
		return exchange.Cancelled
	case version != "2026-07-28" || exchange.Capability(r, "elicitation") == nil:
		return exchange.Fail(r, -1, "not stateless: "+string(p), nil)
	case wire.GetString(p, "requestState") == "":
		return exchange.Outcome{Msg: wire.NewResult(r.Msg.ID(), exchange.InputRequired([]exchange.Question{{Key: "r", Method: "roots/list"}}, "one"))}
	case wire.GetString(p, "requestState") == "one":
		return exchange.Outcome{Msg: wire.NewResult(r.Msg.ID(), exchange.InputRequired(
			[]exchange.Question{{Key: "e", Method: "elicitation/create", Params: []byte(`{"message":"ok?"}`)}}, "two "+string(first(wire.Get(p, "inputResponses", "r")))))}
	}
	answer, _ := wire.Get(p, "inputResponses", "e")
	return exchange.Result(r, []byte(fmt.Sprintf(`{"content":[],"state":%s,"answer":%s}`, wire.Quote(wire.GetString(p, "requestState")), answer)))
}

func first(b []byte, _ bool) []byte { return b }

func TestAHandshakeClientBeforeAStatelessHandler(t *testing.T) {
	pr, pw := io.Pipe()
	session := exchange.NewSession(t.Context())
	out := exchange.OnLine(wire.NewWriter(pw))
	c := legacy.NewClient(out, bridge.NewUp(exchange.Work(twoRounds)), session, legacy.Options{})
	lines := bufio.NewScanner(pr)
	say := func(line string) {
		m, err := wire.Scan([]byte(line), wire.Strict)
		if err != nil {
			t.Fatal(err)
		}
		go c.Receive(&m, out)
	}
	hear := func(want string) {
		t.Helper()
		lines.Scan()
		if got := lines.Text(); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
	say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"elicitation":{}}}}`)
	lines.Scan()
	if got := lines.Text(); !strings.Contains(got, `"protocolVersion":"2025-11-25"`) || !strings.Contains(got, `"serverInfo":{"name":"m"}`) || !strings.Contains(got, `"capabilities":{"tools":{}}`) {
		t.Fatalf("initialize got %s", got)
	}
	say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`)
	lines.Scan()
	ask, err := wire.Scan([]byte(lines.Text()), wire.Strict)
	if err != nil || ask.Method() != "roots/list" {
		t.Fatalf("the client got %s", lines.Text())
	}
	say(`{"jsonrpc":"2.0","id":` + string(ask.ID()) + `,"result":{"roots":[]}}`)
	lines.Scan()
	ask, err = wire.Scan([]byte(lines.Text()), wire.Strict)
	if err != nil || ask.Method() != "elicitation/create" || string(ask.Params()) != `{"message":"ok?"}` {
		t.Fatalf("the client got %s", lines.Text())
	}
	// An error, which the stateless era has no word for, cancels an elicitation.
	say(`{"jsonrpc":"2.0","id":` + string(ask.ID()) + `,"error":{"code":-32603,"message":"no"}}`)
	hear(`{"jsonrpc":"2.0","id":1,"result":{"content":[],"state":"two {\"roots\":[]}","answer":{"action":"cancel"}}}`)
	session.End(nil)
}
