package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/roots"
)

func TestZeroDenies(t *testing.T) {
	for name, p := range map[string]*Policy{"nil": nil, "zero": {}, "without rules": New(Layers{})} {
		if d := p.Decide(Call{Tool: "read_file", Effect: Read}); d.Verdict != Deny {
			t.Errorf("%s: got %v, want deny", name, d.Verdict)
		}
	}
	var v Verdict
	if v != Deny {
		t.Errorf("the zero verdict is %v", v)
	}
}

func TestOrder(t *testing.T) {
	rule := func(at string, v Verdict, tool Glob) *Rule { return &Rule{At: at, Verdict: v, Tool: tool} }
	rules := []*Rule{
		rule("allow", Allow, "a*"), rule("ask", Ask, "ab*"), rule("deny", Deny, "abc*"), rule("later", Deny, "abcd"),
	}
	defaults := []*Rule{rule("default", Ask, "z*"), {At: "never", Verdict: Deny, Tool: "a*"}}
	p := New(Layers{Rules: rules, Defaults: [][]*Rule{defaults, {rule("last", Allow, "")}}})
	for tool, want := range map[string]string{"a": "allow", "ab": "ask", "abc": "deny", "abcd": "deny", "z": "default", "y": "last"} {
		if got := p.Decide(Call{Tool: tool}).Rule; got != want {
			t.Errorf("%q is decided by %q, want %q", tool, got, want)
		}
	}
}

func TestOutside(t *testing.T) {
	p := New(Layers{Rules: []*Rule{{At: "r", Verdict: Allow}}})
	in := Path{Arg: "/path", Given: "x", Resolved: "/srv/x", Root: "/srv", Rel: "x", Rights: roots.ReadWrite}
	if d := p.Decide(Call{Tool: "t", Paths: []Path{in}}); d.Verdict != Allow {
		t.Errorf("inside: got %v", d)
	}
	if d := p.Decide(Call{Tool: "t", Paths: []Path{in, {Arg: "/to", Given: "/etc", Resolved: "/etc"}}}); d.Verdict != Deny {
		t.Errorf("one of two outside: got %v", d)
	}
}

// What a yes is good for is bound to roots only where the call has some.
func TestRemember(t *testing.T) {
	write := Path{Arg: "/path", Resolved: "/srv/x", Root: "/srv", Need: roots.Write}
	read := Path{Arg: "/from", Resolved: "/home/u/x", Root: "/home/u", Need: roots.Read}
	for _, tt := range []struct {
		name     string
		remember Remember
		paths    []Path
		want     Remember
		touched  []string
	}{
		{"never", Never, []Path{write}, Never, []string{"/srv"}},
		{"the call", SameCall, []Path{write}, SameCall, []string{"/srv"}},
		{"the tool", ForTool, []Path{write}, ForTool, []string{"/srv"}},
		{"the root that is written in", InRoot, []Path{write, read, write}, InRoot, []string{"/srv"}},
		{"no path that is written to", InRoot, []Path{read}, InRoot, []string{"/home/u"}},
		{"no path", InRoot, nil, ForTool, nil},
	} {
		got := New(Layers{Rules: []*Rule{{At: "r", Verdict: Ask, Remember: tt.remember}}}).Decide(Call{Tool: "t", Paths: tt.paths})
		if got.Verdict != Ask || got.Remember != tt.want {
			t.Errorf("%s: got %v, %v", tt.name, got.Verdict, got.Remember)
		}
		if touched := Touched(tt.paths); !slices.Equal(touched, tt.touched) {
			t.Errorf("%s: the roots are %q", tt.name, touched)
		}
	}
}

// A layer below only makes a decision harder, whatever stands above: a rule or a default.
func TestLower(t *testing.T) {
	for _, upper := range []Rule{{Verdict: Deny}, {Verdict: Ask}, {Verdict: Ask, Remember: ForTool}, {Verdict: Allow}} {
		for _, lower := range []Rule{{Verdict: Deny}, {Verdict: Ask}, {Verdict: Ask, Remember: ForTool}, {Verdict: Allow}} {
			for _, byDefault := range []bool{false, true} {
				upper, lower := upper, lower
				upper.At, lower.At = "upper", "lower"
				l := Layers{Rules: []*Rule{&upper}, Lower: []*Rule{&lower}}
				if byDefault {
					l.Rules, l.Defaults = nil, [][]*Rule{{&upper}}
				}
				want := Decision{Verdict: min(upper.Verdict, lower.Verdict), Rule: "upper"}
				harder := lower.Verdict < upper.Verdict || lower.Verdict == upper.Verdict && lower.Remember < upper.Remember
				if harder {
					want.Rule = "lower"
				}
				d := New(l).Decide(Call{Tool: "t"})
				if got := (Decision{Verdict: d.Verdict, Rule: d.Rule}); got.Verdict != want.Verdict || got.Rule != want.Rule {
					t.Errorf("upper %v %v, lower %v %v: got %+v, want %+v", upper.Verdict, upper.Remember, lower.Verdict, lower.Remember, got, want)
				}
			}
		}
	}
}

func TestLeaves(t *testing.T) {
	for _, tt := range []struct {
		mode     Mode
		client   string
		readOnly bool
		want     bool
	}{
		{AskAuto, "claude-code", false, true},
		{AskAuto, "claude-code", true, true},
		{AskAuto, "Visual Studio Code", false, true},
		{AskAuto, "Visual Studio Code", true, false}, // it would not ask
		{AskAuto, "", false, false},
		{AskAuto, "Claude-Code", false, false},
		{AskAuto, "goose", false, false}, // it approves by default
		{AskAlways, "claude-code", false, false},
		{AskNobody, "claude-code", false, false},
		{AskClient, "", true, true},
		{Mode(9), "claude-code", false, false},
	} {
		if why, got := tt.mode.Leaves(tt.client, tt.readOnly); got != tt.want || got != (why != "") {
			t.Errorf("%v, %q, read-only %v: %v (%q), want %v", tt.mode, tt.client, tt.readOnly, got, why, tt.want)
		}
	}
	for _, c := range Clients {
		if c.Name == "" || c.Title == "" || c.Source == "" || len(c.Date) != len("2026-01-01") {
			t.Errorf("%+v is not told with its source and date", c)
		}
	}
}

// A sentence that is made of a rule has a code, and says which arguments it is about; what somebody wrote has none.
func TestReasonsOfOurOwnHaveACode(t *testing.T) {
	args := []Arg{{Name: "to", Predicate: Predicate{Any: true}}, {Name: "cc", Predicate: Predicate{Any: true}}}
	for _, tt := range []struct {
		rule Rule
		want string
	}{
		{Rule{}, "rule []"},
		{Rule{Effects: Of(Write)}, "rule-effect []"},
		{Rule{Args: args}, "rule-arguments [to cc]"},
		{Rule{Effects: Of(Write), Args: args}, "rule-effect-arguments [to cc]"},
		{Rule{Args: args, Reason: "so it is"}, " []"},
		{Rule{Reason: "so it is", Code: "ours"}, "ours []"},
	} {
		tt.rule.Verdict, tt.rule.At = Ask, "here"
		d := New(Layers{Rules: []*Rule{&tt.rule}}).Decide(Call{Tool: "send", Effect: Write, Args: []byte(`{"to":"a","cc":"b"}`)})
		if got := fmt.Sprint(d.Code, " ", d.Args); got != tt.want || d.Verdict != Ask {
			t.Errorf("%+v: got %q, want %q", tt.rule, got, tt.want)
		}
	}
}

// What a lower layer refuses is refused for its reason, also where nothing above it is for the call.
func TestALowerLayerSaysWhy(t *testing.T) {
	lower := []*Rule{{At: "lower", Verdict: Deny, Effects: Of(Write), Reason: "only reading is allowed"}, {At: "question", Verdict: Ask, Effects: Of(Unknown)}}
	p := New(Layers{Lower: lower, Defaults: [][]*Rule{{{At: "default", Verdict: Allow, Effects: Of(Read)}}}})
	for effect, want := range map[Effect]string{Write: "lower: only reading is allowed", Unknown: "no rule: no rule is for it", Read: "default: "} {
		c := Call{Tool: "t", Effect: effect}
		d := p.Decide(c)
		if got := d.Rule + ": " + d.Reason; got != want {
			t.Errorf("%v: got %q, want %q", effect, got, want)
		}
		if v, rule := p.Outlook(c); v != d.Verdict || rule != d.Rule {
			t.Errorf("%v: the outlook is %v by %q, and the decision %v by %q", effect, v, rule, d.Verdict, d.Rule)
		}
	}
}

// What is explained has its code, so that the page can say it in another language.
func TestWhatIsExplainedHasItsCode(t *testing.T) {
	p := New(Layers{Rules: []*Rule{{At: "r", Verdict: Allow, Effects: Of(Read), Args: []Arg{{Name: "mode", Predicate: Predicate{Any: true}}}}}})
	d := p.Explain(Call{Tool: "t", Effect: Read, Args: []byte(`{"mode":1}`)})
	if want := `a rule allows that, as "t" may read and because of its argument "mode"`; d.Reason != want || d.Code != "rule-effect-arguments" || len(d.Args) != 1 {
		t.Errorf("got %q, code %q, about %q; want %q", d.Reason, d.Code, d.Args, want)
	}
}

// Of names that are very long nothing is kept.
func TestLongNamesAreNotKept(t *testing.T) {
	p := New(Layers{Rules: []*Rule{{At: "r", Verdict: Allow}}})
	for _, name := range []string{"short", strings.Repeat("long", maxName)} {
		if d := p.Decide(Call{Tool: name}); d.Verdict != Allow {
			t.Errorf("%.10s: %v", name, d.Verdict)
		}
	}
	if n := len(p.index.tools); n != 1 {
		t.Errorf("%d names are kept, want 1", n)
	}
}
