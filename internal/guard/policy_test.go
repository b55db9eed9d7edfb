package guard_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/pin"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// byEffect is a policy that says what is known of a tool.
func byEffect() *policy.Policy {
	var rules []*policy.Rule
	for e, v := range map[policy.Effect]policy.Verdict{policy.Read: policy.Allow, policy.Write: policy.Ask, policy.Delete: policy.Ask, policy.Unknown: policy.Deny} {
		rules = append(rules, &policy.Rule{At: e.String(), Effects: policy.Of(e), Verdict: v})
	}
	return policy.New(policy.Layers{Rules: rules})
}

// ruledGuard is a guard in front of a server that lists a page of tools for each cursor, and answers calls.
func ruledGuard(t *testing.T, p guard.Policy, pages map[string]string) (*guard.Guard, func(method, params string) string) {
	t.Helper()
	var warned []string
	g := guard.New(guard.Options{Server: "files", Policy: p, Warn: func(text string) { warned = append(warned, text) }})
	server := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		result := `{"content":[{"type":"text","text":"done"}]}`
		if r.Msg.Method() == "tools/list" {
			result = pages[wire.GetString(r.Msg.Params(), "cursor")]
		}
		reply(exchange.Result(r, []byte(result)))
	})
	h := g.Wrap(server)
	session := exchange.NewSession(t.Context())
	return g, func(method, params string) string {
		warned = nil
		r := &exchange.Request{Msg: wire.NewRequest(exchange.NewID(), method, []byte(params)), Caller: caller{}, Session: session}
		o := exchange.Do(t.Context(), h, r)
		if o.Msg.Result() == nil {
			return string(o.Msg.Error())
		}
		if len(warned) > 0 && method == "tools/list" {
			return strings.Join(warned, "\n")
		}
		return string(o.Msg.Result())
	}
}

// What a tool does is believed from the kernel, the operator, a profile of its very definition, and the server's own words
// only where they are trusted; never from its name.
func TestEffects(t *testing.T) {
	const reads, writes, removes, silent = `{"name":"a","annotations":{"readOnlyHint":true}}`, `{"name":"a","annotations":{"destructiveHint":false}}`, `{"name":"a","annotations":{}}`, `{"name":"a"}`
	profile := func(tool, definition string) (guard.Effect, bool) {
		return guard.Effect{Effect: policy.Write, From: "a profile"}, tool == "a" && definition == pin.New(pin.Tool, "a", []byte(silent)).Hash()
	}
	operator := map[string]guard.Effect{"a": {Effect: policy.Delete, From: "file:1"}}
	others := map[string]guard.Effect{"*": {Effect: policy.Read, From: "file:2"}}
	for _, tt := range []struct {
		name, tool string
		p          guard.Policy
		want       string
	}{
		{"nothing", silent, guard.Policy{}, "unknown"},
		{"a name", `{"name":"get_x"}`, guard.Policy{}, "unknown"},
		{"annotations that nobody trusts", reads, guard.Policy{}, "unknown"},
		{"annotations", reads, guard.Policy{TrustAnnotations: true}, "read"},
		{"annotations", writes, guard.Policy{TrustAnnotations: true}, "write"},
		{"annotations", removes, guard.Policy{TrustAnnotations: true}, "delete"},
		{"trusted, and none", silent, guard.Policy{TrustAnnotations: true}, "delete"},
		{"a profile", silent, guard.Policy{Profile: profile}, "write"},
		{"a profile of another definition", reads, guard.Policy{Profile: profile}, "unknown"},
		{"the operator", silent, guard.Policy{Profile: profile, Operator: operator}, "delete"},
		{"the operator, of others", silent, guard.Policy{Operator: others}, "read"},
		{"the kernel, which is not asked for", silent, guard.Policy{Bound: true}, "unknown"},
	} {
		tt.p.Rules = byEffect()
		g, ask := ruledGuard(t, tt.p, map[string]string{"": `{"tools":[` + tt.tool + `]}`})
		ask("tools/list", `{}`)
		name := wire.GetString([]byte(tt.tool), "name")
		if c, d := g.Try(name, nil); c.Effect.String() != tt.want || d.Rule != tt.want {
			t.Errorf("%s: %v, by %q from %q, want %s", tt.name, c.Effect, d.Rule, c.From, tt.want)
		}
	}
	// A tool that was not listed is not the one that is known.
	g, _ := ruledGuard(t, guard.Policy{Rules: byEffect(), Profile: profile, TrustAnnotations: true}, nil)
	if c, _ := g.Try("a", nil); c.Effect != policy.Unknown {
		t.Errorf("a tool that was never listed: %v", c.Effect)
	}
}

// The kernel holds a server as it was started.
func TestHeldReadOnly(t *testing.T) {
	dir := t.TempDir()
	set := func(a roots.Access) roots.Set {
		d, err := roots.Resolve(dir, roots.ResolveOptions{Access: a})
		if err != nil {
			t.Fatal(err)
		}
		return roots.NewSet(d)
	}
	for _, tt := range []struct {
		access  roots.Access
		bound   bool
		started bool
		want    policy.Effect
	}{
		{roots.ReadOnly, true, true, policy.Read}, {roots.ReadOnly, true, false, policy.Unknown}, {roots.ReadOnly, false, true, policy.Unknown},
		{roots.ReadWrite, true, true, policy.Unknown}, {roots.Read | roots.Write, true, true, policy.Unknown},
	} {
		g := guard.New(guard.Options{Policy: guard.Policy{Rules: byEffect(), Bound: tt.bound}, Configured: set(tt.access)})
		if tt.started {
			g.Starting()
		}
		if tt.started && tt.access == roots.ReadOnly { // what is added later is not what it was started with
			g.Configure(set(roots.ReadWrite))
		}
		if c, _ := g.Try("x", nil); c.Effect != tt.want {
			t.Errorf("%+v: %v", tt, c.Effect)
		}
	}
}

// A call that names nothing is none that a rule could be about.
func TestNamelessCalls(t *testing.T) {
	rules := policy.New(policy.Layers{Rules: []*policy.Rule{{At: "deny", Tool: "delete", Verdict: policy.Deny}, {At: "allow", Verdict: policy.Allow}}})
	_, ask := ruledGuard(t, guard.Policy{Rules: rules}, nil)
	for params, want := range map[string]string{
		`{"name":"read"}`:                                "done",
		`{"name":"read","arguments":null}`:               "done",
		`{"name":"delete"}`:                              "a rule does not allow that",
		`{"n\u0061me":"delete"}`:                         "a rule does not allow that",
		`{"arguments":{}}`:                               "does not say in the protocol's way",
		`{"name":["delete"]}`:                            "does not say in the protocol's way",
		`{"name":"read","arguments":"{\"path\":\"x\"}"}`: "does not say in the protocol's way",
	} {
		if got := ask("tools/call", params); !strings.Contains(got, want) {
			t.Errorf("%s: %s", params, got)
		}
	}
}

// The client is told what is believed; what the server says stays where it is right.
func TestPublishedAnnotations(t *testing.T) {
	pages := map[string]string{
		"":  `{"tools":[{"name":"read","annotations":{"readOnlyHint":true,"title":"R"},"x":1},{"name":"write"}],"nextCursor":"2"}`,
		"2": `{"tools":[{"name":"asked","annotations":{"readOnlyHint":true,"destructiveHint":false}},{"name":"new","annotations":{"readOnlyHint":true,"idempotentHint":true}}]}`,
	}
	rules := policy.New(policy.Layers{
		Rules:    []*policy.Rule{{At: "r", Tool: "asked", Verdict: policy.Ask, Args: []policy.Arg{{Name: "x", Predicate: policy.Predicate{Any: true}}}}},
		Defaults: [][]*policy.Rule{{{Verdict: policy.Allow, Effects: policy.Of(policy.Read)}, {Verdict: policy.Ask, Effects: policy.Of(policy.Unknown, policy.Write)}}},
	})
	p := guard.Policy{Rules: rules, Ask: policy.AskAuto, PublishAnnotations: true, Operator: map[string]guard.Effect{
		"read": {Effect: policy.Read}, "write": {Effect: policy.Write}, "asked": {Effect: policy.Read},
	}}
	_, ask := ruledGuard(t, p, pages)
	want := []string{
		`{"tools":[{"name":"read","annotations":{"readOnlyHint":true,"title":"R"},"x":1},` +
			`{"name":"write","annotations":{"readOnlyHint":false,"destructiveHint":false}}],"nextCursor":"2"}`,
		`{"tools":[{"name":"asked","annotations":{"readOnlyHint":false,"destructiveHint":false}},` +
			`{"name":"new","annotations":{"readOnlyHint":false,"destructiveHint":true,"openWorldHint":true}}]}`,
	}
	got := []string{ask("tools/list", `{}`), ask("tools/list", `{"cursor":"2"}`)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p.PublishAnnotations = false
	_, ask = ruledGuard(t, p, pages)
	if got := ask("tools/list", `{}`); got != pages[""] {
		t.Errorf("where nothing is published: %s", got)
	}
}

// Rules that are for nothing that the server has are told when its list is whole, once each.
func TestRulesForNothing(t *testing.T) {
	rules := policy.New(policy.Layers{Rules: []*policy.Rule{
		{At: "f:1", Server: "files", Tool: "raed", Verdict: policy.Deny},
		{At: "f:2", Server: "files", Tool: "r*", Verdict: policy.Deny, Args: []policy.Arg{{Name: "pth", At: "f:2:9", Predicate: policy.Predicate{Any: true}}}},
		{At: "f:3", Server: "files", Tool: "open", Verdict: policy.Deny, Args: []policy.Arg{{Name: "anything", Predicate: policy.Predicate{Any: true}}}},
		{At: "f:4", Server: "files", Tool: "read", Verdict: policy.Deny, Args: []policy.Arg{{Name: "/edits/*/text", Predicate: policy.Predicate{Any: true}}}},
		{At: "f:5", Server: "others", Tool: "nothing", Verdict: policy.Deny}, {At: "f:6", Tool: "nothing", Verdict: policy.Deny},
	}})
	_, ask := ruledGuard(t, guard.Policy{Rules: rules}, map[string]string{
		"":  `{"tools":[{"name":"read","inputSchema":{"type":"object","properties":{"path":{},"edits":{"items":{"properties":{"text":{}}}}}}}],"nextCursor":"2"}`,
		"2": `{"tools":[{"name":"open","inputSchema":{"type":"object","properties":{"x":{}},"additionalProperties":true}}]}`,
	})
	if got := ask("tools/list", `{}`); !strings.HasPrefix(got, `{"tools"`) {
		t.Errorf("with half a list: %s", got)
	}
	want := `a rule does nothing: f:1: the server "files" has no tool "raed": did you mean "read"?
a rule does nothing: f:2:9: the tool "read" of the server "files" has no argument "pth": did you mean "path"?`
	if diff := cmp.Diff(want, ask("tools/list", `{"cursor":"2"}`)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ask("tools/list", `{}`)
	if got := ask("tools/list", `{"cursor":"2"}`); !strings.HasPrefix(got, `{"tools"`) {
		t.Errorf("the second time: %s", got)
	}
}

// However much a server has said of, what comes new is told.
func TestWhatIsNewIsToldAfterVeryMuch(t *testing.T) {
	rules := policy.New(policy.Layers{Rules: []*policy.Rule{{At: "f:1", Server: "files", Tool: "x", Verdict: policy.Deny}}})
	pages := map[string]string{}
	_, ask := ruledGuard(t, guard.Policy{Rules: rules, PublishAnnotations: true}, pages)
	for round := range 3 {
		list := []string{`{"name":"x"}`}
		for i := range 2048 {
			list = append(list, fmt.Sprintf(`{"name":"t%d","annotations":{"n":%d}}`, i, round))
		}
		pages[""] = `{"tools":[` + strings.Join(list, ",") + `]}`
		if got := ask("tools/list", `{}`); !strings.HasPrefix(got, `{"tools"`) {
			t.Fatalf("the list is %.200s", got)
		}
	}
	pages[""] = `{"tools":[{"name":"y"}]}`
	if got := ask("tools/list", `{}`); !strings.Contains(got, "a rule does nothing: f:1") {
		t.Errorf("nothing is told: %s", got)
	}
}

// Rules about directories hold where a path leads, however it is written.
func TestRulesOfPaths(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"w/keys", "w/plain", "v"} {
		if err := os.MkdirAll(filepath.Join(top, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var dirs []roots.Dir
	for _, d := range []string{"w", "v"} {
		dir, err := roots.Resolve(filepath.Join(top, d), roots.ResolveOptions{Access: roots.ReadWrite})
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	about := func(v policy.Verdict, dir string) *policy.Rule {
		return &policy.Rule{At: dir, Verdict: v, Args: []policy.Arg{{Name: "where", Predicate: policy.Predicate{PathUnder: []string{filepath.Join(top, dir)}}}}}
	}
	rules := policy.New(policy.Layers{
		Rules: []*policy.Rule{about(policy.Deny, "w/keys"), about(policy.Allow, "w")}, Defaults: [][]*policy.Rule{{{At: "default", Verdict: policy.Ask}}},
	})
	g := guard.New(guard.Options{
		Configured: roots.NewSet(dirs...), Process: pathargs.Process{Dir: filepath.Join(top, "w")}, Policy: guard.Policy{Rules: rules},
		Paths: pathargs.Rules{Also: []pathargs.Also{{Tool: func(string) bool { return true }, Paths: []string{"where"}}}},
	})
	for where, want := range map[string]string{
		`"TOP/w/keys/a"`: "w/keys", `"keys/a"`: "w/keys", `"plain/../keys"`: "w/keys", `"keys%2Fa"`: "w/keys", `"file://TOP/w/keys/a"`: "w/keys",
		`["plain", "keys"]`: "w/keys", `"TOP/w/plain/a"`: "w", `"a"`: "w", `["a", "plain"]`: "w", `"TOP/v/a"`: "default", `["a", "TOP/v/a"]`: "default",
		`"TOP/w"`: "w", `"TOP/a"`: "the roots", `7`: "w/keys", `{"a": 1}`: "w/keys",
	} {
		args := strings.ReplaceAll(`{"where":`+where+`}`, "TOP", top)
		if _, d := g.Try("look", []byte(args)); d.Rule != want {
			t.Errorf("%s: decided by %q (%s), want %q", args, d.Rule, d.Reason, want)
		}
	}
	// A directory that is taken away is what is in it, too.
	if _, d := g.Try("delete_directory", fmt.Appendf(nil, `{"where":%q}`, top+"/w")); d.Rule != "w/keys" {
		t.Errorf("deleting what holds keys: decided by %q", d.Rule)
	}
	if !slices.Equal(g.Faults(), nil) {
		t.Error("rules without a server are for any")
	}
}
