// Package policy decides from values alone what becomes of a call: it is refused, a person is asked, or it goes on; and says
// which rule decided, why, and what would change it. It knows no clock, no files and no network.
//
//	p := policy.New(rules, defaults)
//	d := p.Decide(policy.Call{Server: "files", Tool: "write_file", Args: args, Paths: paths, Effect: policy.Write})
//	if d.Verdict == policy.Ask {
//		…
//	}
//
// The order is fixed: what leads outside the roots is denied; then every rule that denies is looked at, every one that asks,
// every one that allows; then the defaults, in the same order. There are no priorities.
//
// # Limits
//
// A rule sees what a call says, not what a server does with it. What a tool does is believed from a shipped profile, from
// the operator and from the kernel; a server that does more than that is held by confinement only.
package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/roots"
)

// Verdict is what becomes of a call. The zero value denies.
type Verdict uint8

const (
	// Deny refuses the call.
	Deny Verdict = iota
	// Ask lets a person decide.
	Ask
	// Allow lets it go on.
	Allow
)

// String returns the word as a rule has it.
func (v Verdict) String() string { return [...]string{"deny", "ask", "allow"}[min(v, Allow)] }

// Effect is what a call does at most. What is unknown may be anything.
type Effect uint8

const (
	// Unknown: nobody who is believed has said.
	Unknown Effect = iota
	// Read: it changes nothing.
	Read
	// Write: it makes or changes things, or takes them away so that it can be undone.
	Write
	// Delete: it takes things away, or moves them.
	Delete
)

// String returns the word as a rule has it.
func (e Effect) String() string {
	return [...]string{"unknown", "read", "write", "delete"}[min(e, Delete)]
}

// Remember says what a yes of a person is good for at most. The zero value is this one call.
type Remember uint8

const (
	// Never: each call is asked for.
	Never Remember = iota
	// SameCall: the same tool with the same arguments.
	SameCall
	// InRoot: whatever the same rule asks for in the same roots.
	InRoot
	// ForTool: whatever the same rule asks for the same tool.
	ForTool
)

// String returns the word as a rule has it.
func (r Remember) String() string {
	return [...]string{"never", "call", "root", "tool"}[min(r, ForTool)]
}

// Call is a call of a tool with all that a decision depends on. Nothing in it is kept or changed.
type Call struct {
	// Server is the server's name in the configuration.
	Server string
	Tool   string
	// Args are the arguments as they came: a JSON object without duplicate names, or nil.
	Args []byte
	// Paths are the arguments that are paths, as they were resolved. One argument has several where it is not certain where
	// the server will go.
	Paths []Path
	// Effect is what is known of what the tool does, and From who says so, for people.
	Effect Effect
	From   string
	// FromCode tells who that is, where it is not a file.
	FromCode string
}

// Path is where a path argument leads.
type Path struct {
	// Arg is the JSON pointer of the argument beneath the arguments.
	Arg string
	// Given is the argument as it came, Resolved the absolute path without links that it leads to.
	Given, Resolved string
	// Exists is set when there is something.
	Exists bool
	// Root is the path of the root that holds it, and Rel the path beneath that root; Root is empty outside of all.
	Root, Rel string
	// Rights are what the root allows, and Need what the call seems to do there.
	Rights, Need roots.Access
}

// Decision is what Decide says.
type Decision struct {
	Verdict Verdict
	// Rule says where the rule is that decided, as "FILE:LINE:COLUMN", or which default it was.
	Rule string
	// Reason is one sentence without a full stop, for people and models.
	Reason string
	// Code tells the reason from others where it is the program's own: "rule", "rule-effect", "rule-arguments" and
	// "rule-effect-arguments" for a sentence that is made of a rule, which is about the arguments Args; else that of the rule.
	Code string
	Args []string
	// Change says what would change the decision, for the person, a line each. It may be empty.
	Change string
	// Remember is the most that a yes may be good for, where a person is asked.
	Remember Remember
	// Default is set when no rule of the operator decided.
	Default bool
}

// Layers are the rules of a policy, in the order in which they are written.
type Layers struct {
	// Rules are those of the highest layer, which may allow.
	Rules []*Rule
	// Lower are those of the layers below: they only make a decision harder.
	Lower []*Rule
	// Defaults are for what Rules leave open: the first group that has a rule for a call decides.
	Defaults [][]*Rule
}

// Policy decides about calls. The zero value, and nil, deny everything. It does not change and is safe for concurrent use.
type Policy struct {
	layers  Layers
	index   *index
	ofPaths bool
}

// New makes a policy. The rules may not be changed afterwards.
func New(l Layers) *Policy {
	p := &Policy{layers: l, index: newIndex(l)}
	p.ofPaths = slices.ContainsFunc(p.all(), func(r *Rule) bool {
		return slices.ContainsFunc(r.Args, func(a Arg) bool { return a.OfPath() })
	})
	return p
}

// OfPaths reports whether a rule is about where arguments lead. Where none is, the paths of a call change nothing of whether it
// is allowed.
func (p *Policy) OfPaths() bool { return p != nil && p.ofPaths }

// Decide decides. Where a call goes on it says which rule decided, and no more: Explain does.
func (p *Policy) Decide(c Call) Decision {
	if p == nil || p.index == nil {
		return Decision{Rule: "no policy", Reason: "there is no policy"}
	}
	for i := range c.Paths {
		if c.Paths[i].Root == "" {
			return Decision{Rule: "the roots", Reason: fmt.Sprintf("%q leads outside the roots", c.Paths[i].Arg), Default: true,
				Change: "a root that holds it; no rule opens what is outside"}
		}
	}
	e := &evaluation{call: &c}
	its := p.index.of(c.Server, c.Tool)
	d := Decision{Rule: noRule, Reason: "no rule is for it", Default: true}
	for i := range its.upper {
		if r := its.upper[i].first(e); r != nil {
			d = decide(r, &c, i > 0)
			break
		}
	}
	if r := its.lower.first(e); r != nil {
		if h := decide(r, &c, false); h.Verdict < d.Verdict || h.Verdict == d.Verdict && (h.Remember < d.Remember || d.Rule == noRule) {
			d = h
		}
	}
	return d
}

// noRule is in the place of a rule where none is for a call.
const noRule = "no rule"

// Explain is Decide with why and what would change it, whatever is decided.
func (p *Policy) Explain(c Call) Decision {
	d := p.Decide(c)
	if d.Verdict != Allow {
		return d
	}
	all := p.all()
	if i := slices.IndexFunc(all, func(r *Rule) bool { return r.At == d.Rule }); i >= 0 {
		all[i].explain(&c, &d)
	}
	d.Change = fmt.Sprintf("a [[rule]] with match = { %s } and verdict = \"ask\" or \"deny\"", matching(&c))
	return d
}

func decide(r *Rule, c *Call, byDefault bool) Decision {
	d := Decision{Verdict: r.Verdict, Rule: r.At, Default: byDefault}
	if r.Verdict != Allow || r.Reason != "" {
		r.explain(c, &d)
	}
	switch r.Verdict {
	case Ask:
		if d.Remember = r.Remember; d.Remember == InRoot && len(c.Paths) == 0 {
			d.Remember = ForTool
		}
		if byDefault {
			d.Change = allowRule(c)
		} else {
			d.Change = "the rule at " + r.At
		}
	case Deny:
		d.Change = "the rule at " + r.At
	}
	return d
}

// Touched are the roots in which a call changes something; where none of its paths says so, all that it has paths in.
func Touched(paths []Path) []string {
	var changed, all []string
	for _, p := range paths {
		if !slices.Contains(all, p.Root) {
			all = append(all, p.Root)
		}
		if p.Need&^roots.Read != 0 && !slices.Contains(changed, p.Root) {
			changed = append(changed, p.Root)
		}
	}
	if len(changed) > 0 {
		return changed
	}
	return all
}

func allowRule(c *Call) string {
	change := fmt.Sprintf("a [[rule]] with match = { %s } and verdict = \"allow\"", matching(c))
	if c.Effect == Unknown {
		change += fmt.Sprintf("\neffect = \"read\" (or \"write\", \"delete\") for the tool %q, if you know that it does no more", c.Tool)
	}
	return change
}

// matching is the match of a rule for the tool of a call.
func matching(c *Call) string {
	var parts []string
	if c.Server != "" {
		parts = append(parts, fmt.Sprintf("server = %q", c.Server))
	}
	return strings.Join(append(parts, fmt.Sprintf("tool = %q", literal(c.Tool))), ", ")
}
