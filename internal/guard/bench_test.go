package guard_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/pin"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/results"
	"github.com/rootbound/rootbound/internal/wire"
)

// BenchmarkCall is a call that is allowed with an answer of 1 KB, through the stages without pins and checks of answers, with
// them, and with rules as well: the difference is what these cost.
func BenchmarkCall(b *testing.B) {
	line := strings.Repeat("The quick brown fox jumps over it. ", 28)
	files := `{"files":[` + strings.Repeat(`{"name":"main.go","size":1234,"dir":false},`, 9) + `{"name":"x","size":1,"dir":true}]}`
	const list = `{"tools":[{"name":"read"},{"name":"list","outputSchema":{"type":"object","properties":{"files":{"type":"array","items":{"type":"object",
		"properties":{"name":{"type":"string"},"size":{"type":"integer"},"dir":{"type":"boolean"}},"required":["name","size"]}}}}}]}`
	answers := map[string]string{
		"read": `{"content":[{"type":"text","text":"` + line + `"}]}`,
		"list": `{"content":[{"type":"text","text":` + string(wire.Quote(files)) + `}],"structuredContent":` + files + `}`,
	}
	server := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		result := list
		if r.Msg.Method() == "tools/call" {
			result = answers[wire.GetString(r.Msg.Params(), "name")]
		}
		reply(exchange.Outcome{Msg: wire.NewResult(r.Msg.ID(), []byte(result))})
	})
	checked := results.Options{Actions: results.Defaults()}
	dir := b.TempDir()
	store := pin.Store{Pins: filepath.Join(dir, "pins.json"), Waiting: filepath.Join(dir, "waiting.json"), Lock: filepath.Join(dir, "lock")}
	rules := guard.Policy{
		Rules: policy.New(policy.Layers{Rules: []*policy.Rule{{At: "a", Tool: "write*", Verdict: policy.Ask}, {At: "b", Effects: policy.Of(policy.Read), Verdict: policy.Allow}}}),
		Ask:   policy.AskAlways, Operator: map[string]guard.Effect{"*": {Effect: policy.Read}},
	}
	approvals := guard.Approval{Desk: approval.NewDesk(approval.DeskOptions{}), Terminal: true}
	for _, bb := range []struct {
		name string
		opt  guard.Options
	}{
		{"without", guard.Options{}},
		{"with", guard.Options{Results: &checked, Pins: pin.NewPins(store, pin.Owner{Server: "files", Runs: "files"})}},
		{"with rules", guard.Options{Results: &checked, Pins: pin.NewPins(store, pin.Owner{Server: "files", Runs: "files"}), Policy: rules, Approval: approvals}},
	} {
		for _, tool := range []string{"read", "list"} {
			b.Run(tool+" "+bb.name, func(b *testing.B) {
				h := guard.New(bb.opt).Wrap(server)
				session := exchange.NewSession(b.Context())
				do := func(method, params string) exchange.Outcome {
					return exchange.Do(b.Context(), h, &exchange.Request{Msg: wire.NewRequest([]byte("1"), method, []byte(params)), Caller: caller{}, Session: session})
				}
				do("tools/list", "{}")
				params := `{"name":"` + tool + `","arguments":{"n":1}}`
				if o := do("tools/call", params); string(o.Msg.Result()) != answers[tool] {
					b.Fatalf("the answer is %s", o.Msg.Bytes())
				}
				b.ReportAllocs()
				for b.Loop() {
					do("tools/call", params)
				}
			})
		}
	}
}
