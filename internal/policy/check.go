package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/wire"
)

// Fault is a rule that does nothing.
type Fault struct {
	// At says where the rule, or a part of it, is written.
	At, Msg string
	// Word is a name that is wrong, of those that are Known, where it is one.
	Word  string
	Known []string
}

func (f *Fault) Error() string { return f.At + ": " + f.Msg }

// Check finds rules of one file that are never reached, because another rule of it is always there before them, and
// rules that no call can ever be for.
func Check(rules []*Rule) []*Fault {
	var faults []*Fault
	for i, r := range rules {
		for j := range r.Args {
			if msg := r.Args[j].impossible(); msg != "" {
				faults = append(faults, &Fault{At: r.Args[j].At, Msg: fmt.Sprintf("no argument is as %q has to be: %s", r.Args[j].Name, msg)})
			}
		}
		for j, o := range rules {
			first := o.Verdict < r.Verdict || o.Verdict == r.Verdict && j < i
			if i != j && first && o.covers(r) {
				why := "comes first"
				if o.Verdict != r.Verdict {
					why = fmt.Sprintf("has verdict %q, which is looked at before %q,", o.Verdict, r.Verdict)
				}
				faults = append(faults, &Fault{At: r.At, Msg: fmt.Sprintf("this rule does nothing: the rule at %s %s and is for every call that this one is for", place(o.At, r.At), why)})
				break
			}
		}
	}
	return faults
}

// place is where a rule is, in a text that is told with where another one is.
func place(at, besides string) string {
	file := func(s string) string {
		parts := strings.Split(s, ":")
		return strings.Join(parts[:max(0, len(parts)-2)], ":")
	}
	if f := file(at); f != "" && f == file(besides) {
		return "line " + strings.Split(at[len(f)+1:], ":")[0]
	}
	return at
}

// covers reports whether r is for every call that o is for. It may say no where it is so.
func (r *Rule) covers(o *Rule) bool {
	if r.Server != "" && r.Server != o.Server || !r.Tool.covers(o.Tool) || !o.Effects.within(r.Effects) {
		return false
	}
	for _, a := range r.Args {
		if !slices.ContainsFunc(o.Args, func(b Arg) bool { return a.Name == b.Name && b.implies(&a.Predicate) }) {
			return false
		}
	}
	return true
}

// implies reports whether whatever is as p says is as q says. It may say no where it is so.
func (p *Predicate) implies(q *Predicate) bool {
	values := len(p.OneOf) > 0 && !slices.ContainsFunc(p.OneOf, func(v Value) bool { return q.ofValue(v) != all })
	switch {
	case q.Absent != p.Absent:
		return false
	case q.MaxBytes != nil && (p.MaxBytes == nil || *p.MaxBytes > *q.MaxBytes),
		len(q.PathUnder) > 0 && !within(p.PathUnder, q.PathUnder, Under),
		len(q.PathGlob) > 0 && !within(p.PathGlob, q.PathGlob, func(a, b PathGlob) bool { return a.text == b.text }),
		len(q.URLHost) > 0 && !values && !within(p.URLHost, q.URLHost, func(a, b Host) bool { return b.covers(a) }),
		len(q.OneOf) > 0 && !within(p.OneOf, q.OneOf, func(a, b Value) bool { return a == b }),
		q.Regex != nil && !values && (p.Regex == nil || p.Regex.text != q.Regex.text),
		q.Not != nil && (p.Not == nil || !q.Not.implies(p.Not)):
		return false
	}
	return true
}

// within reports whether each of list is within one of others; an empty list is not.
func within[T any](list, others []T, in func(a, b T) bool) bool {
	for _, a := range list {
		if !slices.ContainsFunc(others, func(b T) bool { return in(a, b) }) {
			return false
		}
	}
	return len(list) > 0
}

// ofValue is how much of a value of a rule is as p says, apart from where a path leads.
func (p *Predicate) ofValue(v Value) truth {
	raw := []byte(v.Text)
	if !v.Bare {
		raw = wire.Quote(v.Text)
	}
	return p.holds(&evaluation{call: &Call{}}, occurrence{value: raw, exact: true})
}

// impossible says why nothing is as p says, or nothing.
func (p *Predicate) impossible() string {
	if len(p.OneOf) > 0 {
		rest := *p
		rest.OneOf = nil
		if !slices.ContainsFunc(p.OneOf, func(v Value) bool { return rest.ofValue(v) != none }) {
			return "none of the values in one_of is as the rest says"
		}
	}
	if p.Not != nil && p.implies(p.Not) {
		return "what it has to be is what it must not be"
	}
	return ""
}

// Worst is the hardest verdict that a call like this one can have, whatever its arguments are.
func (p *Policy) Worst(c Call) Verdict {
	v, _ := p.Outlook(c)
	return v
}

// Outlook is Worst with where the rule is that says so.
func (p *Policy) Outlook(c Call) (Verdict, string) {
	if p == nil || p.index == nil {
		return Deny, "no policy"
	}
	its := p.index.of(c.Server, c.Tool)
	worst, rule, certain := Allow, "", false
	harder := func(r *Rule) {
		if r.Verdict < worst || rule == "" {
			worst, rule = r.Verdict, r.At
		}
	}
	for _, group := range its.upper {
		for _, r := range group.rules {
			if r.Effects.Has(c.Effect) && !certain {
				harder(r)
				certain = len(r.Args) == 0
			}
		}
	}
	if !certain {
		worst, rule = Deny, noRule
	}
	for _, r := range its.lower.rules {
		if !r.Effects.Has(c.Effect) {
			continue
		}
		if harder(r); rule == noRule && r.Verdict == Deny && len(r.Args) == 0 { // it is for each of them, and says why
			rule = r.At
		}
	}
	return worst, rule
}

// Named returns the rules that name a server.
func (p *Policy) Named() []*Rule {
	if p == nil {
		return nil
	}
	return slices.DeleteFunc(p.all(), func(r *Rule) bool { return r.Server == "" })
}

// Tool is what a server says of a tool, as far as rules can be wrong about it.
type Tool struct {
	Name string
	// Args are the names of its arguments, at any depth. Open says that there may be others.
	Args []string
	Open bool
}

// NewTool reads the schema of a tool's arguments.
func NewTool(name string, schema []byte) Tool {
	t := Tool{Name: name}
	t.read(schema, 0)
	more, ok := wire.Get(schema, "additionalProperties")
	_, patterns := wire.Get(schema, "patternProperties")
	t.Open = len(t.Args) == 0 || ok && string(more) != "false" || patterns
	return t
}

func (t *Tool) read(v []byte, depth int) {
	if depth > maxDepth || len(v) == 0 {
		return
	}
	switch v[0] {
	case '{':
		for name, value := range wire.Members(v) {
			if name == "properties" && len(value) > 0 && value[0] == '{' {
				for arg := range wire.Members(value) {
					if !slices.Contains(t.Args, arg) {
						t.Args = append(t.Args, arg)
					}
				}
			}
			t.read(value, depth+1)
		}
	case '[':
		for value := range wire.Items(v) {
			t.read(value, depth+1)
		}
	}
}

// CheckTools finds the rules that name a server and are for none of its tools, or for an argument that none of the tools
// has that they are for.
func (p *Policy) CheckTools(server string, tools []Tool) []*Fault {
	if p == nil {
		return nil
	}
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	var faults []*Fault
	for _, r := range p.all() {
		if r.Server != server {
			continue
		}
		var its []Tool
		for _, t := range tools {
			if r.Tool.Match(t.Name) {
				its = append(its, t)
			}
		}
		if len(its) == 0 {
			faults = append(faults, &Fault{At: r.At, Msg: fmt.Sprintf("the server %q has no tool %q", server, r.Tool), Word: string(r.Tool), Known: names})
			continue
		}
		for _, a := range r.Args {
			name := lastName(a.Name)
			var known []string
			has := func(t Tool) bool {
				known = append(known, t.Args...)
				return t.Open || slices.Contains(t.Args, name)
			}
			if name == "*" || slices.ContainsFunc(its, has) {
				continue
			}
			of := fmt.Sprintf("the tool %q of the server %q has", its[0].Name, server)
			if len(its) > 1 {
				of = fmt.Sprintf("none of the tools %q of the server %q has", r.Tool, server)
				faults = append(faults, &Fault{At: a.At, Msg: fmt.Sprintf("%s an argument %q", of, name), Word: name, Known: known})
				continue
			}
			faults = append(faults, &Fault{At: a.At, Msg: fmt.Sprintf("%s no argument %q", of, name), Word: name, Known: known})
		}
	}
	return faults
}

// lastName is the member that the name of an argument ends in.
func lastName(name string) string {
	parts := strings.Split(name, "/")
	for i := len(parts) - 1; i >= 0; i-- {
		if parts[i] != "*" && strings.Trim(parts[i], "0123456789") != "" {
			return wire.PointerName(parts[i])
		}
	}
	return "*"
}

// all are the rules of every layer, and the defaults.
func (p *Policy) all() []*Rule {
	return slices.Concat(append([][]*Rule{p.layers.Rules, p.layers.Lower}, p.layers.Defaults...)...)
}

// About returns the rules that speak of a place, or of the host of a URL; one of the two is given.
func (p *Policy) About(server string, place *Path, url string) []*Rule {
	if p == nil {
		return nil
	}
	var list []*Rule
	for _, r := range p.all() {
		if (r.Server == "" || r.Server == server) && slices.ContainsFunc(r.Args, func(a Arg) bool { return a.speaksOf(place, url) }) {
			list = append(list, r)
		}
	}
	return list
}

// speaksOf reports whether p, or what it must not be, is about this place or URL.
func (p *Predicate) speaksOf(place *Path, url string) bool {
	switch {
	case place != nil && len(p.PathUnder) > 0 && underAny(p.PathUnder, place) != none,
		place != nil && slices.ContainsFunc(p.PathGlob, func(g PathGlob) bool { return g.match(place) }),
		place == nil && len(p.URLHost) > 0 && locate(url).on(p.URLHost) != none:
		return true
	}
	return p.Not != nil && p.Not.speaksOf(place, url)
}
