package policy

import (
	"fmt"
	"strings"
)

// Rule is one rule. What is left out of its match is anything.
type Rule struct {
	// At says where it is written.
	At string
	// Server is the name of a server, Tool what the name of the tool is like.
	Server string
	Tool   Glob
	// Effects are what is known of what the tool does.
	Effects Effects
	// Args are the arguments by name; all have to be as they say.
	Args []Arg

	Verdict Verdict
	// Reason is told to the model and the person, instead of a sentence made of the rule.
	Reason string
	// Code tells the reason from others, where it is the program's own.
	Code string
	// Remember is for one that asks.
	Remember Remember
}

// Arg is an argument of a call. A name without "/" is that member at any depth; "/edits/*/file" is one place, with "*"
// for any member or element and "~1" for a "/" in a name.
type Arg struct {
	Name string
	Predicate
	// At says where it is written.
	At string
}

// Effects is a set of effects. The zero value is every one.
type Effects uint8

// Of returns the set of some effects.
func Of(list ...Effect) Effects {
	var s Effects
	for _, e := range list {
		s |= 1 << e
	}
	return s
}

// Has reports whether e is in s.
func (s Effects) Has(e Effect) bool { return s == 0 || s&(1<<e) != 0 }

// String lists them.
func (s Effects) String() string {
	var words []string
	for e := Unknown; e <= Delete; e++ {
		if s&(1<<e) != 0 {
			words = append(words, e.String())
		}
	}
	return strings.Join(words, ", ")
}

// within reports whether every effect of s is one of t.
func (s Effects) within(t Effects) bool { return t == 0 || s != 0 && s&^t == 0 }

// matches reports whether r is for a tool, whatever it does and whatever its arguments are.
func (r *Rule) matches(server, tool string) bool {
	return (r.Server == "" || r.Server == server) && r.Tool.Match(tool)
}

// applies reports whether r is for the call. What is not certain counts for a rule that denies or asks, and not for one
// that allows.
func (r *Rule) applies(e *evaluation) bool {
	if !r.Effects.Has(e.call.Effect) {
		return false
	}
	least := some
	if r.Verdict == Allow {
		least = all
	}
	for i := range r.Args {
		if e.argument(&r.Args[i]) < least {
			return false
		}
	}
	return true
}

// explain says in d why r decides so.
func (r *Rule) explain(c *Call, d *Decision) {
	if d.Reason, d.Code = r.Reason, r.Code; d.Reason != "" {
		return
	}
	d.Reason, d.Code = r.because(c), r.code()
	for _, a := range r.Args {
		d.Args = append(d.Args, a.Name)
	}
}

// because is the reason of a rule that gives none.
func (r *Rule) because(c *Call) string {
	does := ""
	switch {
	case r.Effects == 0:
	case c.Effect == Unknown:
		does = fmt.Sprintf("nobody has said what %q does", c.Tool)
	default:
		does = fmt.Sprintf("%q may %s", c.Tool, c.Effect)
	}
	about := ""
	if len(r.Args) > 0 {
		var names []string
		for _, a := range r.Args {
			names = append(names, fmt.Sprintf("%q", a.Name))
		}
		about = "of its argument " + strings.Join(names, " and ")
		if len(names) > 1 {
			about = "of its arguments " + strings.Join(names, " and ")
		}
	}
	says := map[Verdict]string{Deny: "does not allow that", Ask: "asks a person for that", Allow: "allows that"}[r.Verdict]
	switch {
	case does != "" && about != "":
		return fmt.Sprintf("a rule %s, as %s and because %s", says, does, about)
	case does != "":
		return fmt.Sprintf("a rule %s, as %s", says, does)
	case about != "":
		return fmt.Sprintf("a rule %s because %s", says, about)
	}
	return "a rule " + says
}

// code is that of the sentence that because makes.
func (r *Rule) code() string {
	code := "rule"
	if r.Effects != 0 {
		code += "-effect"
	}
	if len(r.Args) > 0 {
		code += "-arguments"
	}
	return code
}

// String is the rule in one line, for people.
func (r *Rule) String() string {
	var parts []string
	if r.Server != "" {
		parts = append(parts, fmt.Sprintf("server = %q", r.Server))
	}
	if r.Tool != "" {
		parts = append(parts, fmt.Sprintf("tool = %q", string(r.Tool)))
	}
	if r.Effects != 0 {
		parts = append(parts, "effect = "+r.Effects.String())
	}
	for _, a := range r.Args {
		parts = append(parts, fmt.Sprintf("args.%s = { %s }", a.Name, &a.Predicate))
	}
	if len(parts) == 0 {
		parts = []string{"every call"}
	}
	text := r.Verdict.String() + " " + strings.Join(parts, ", ")
	if r.Verdict == Ask {
		text += ", remember = " + r.Remember.String()
	}
	return text
}

// String is the predicate as it is written in a file.
func (p *Predicate) String() string {
	var parts []string
	add := func(key string, values []string) {
		switch len(values) {
		case 0:
		case 1:
			parts = append(parts, key+" = "+values[0])
		default:
			parts = append(parts, key+" = ["+strings.Join(values, ", ")+"]")
		}
	}
	add("path_under", quoted(p.PathUnder, func(s string) string { return s }))
	add("path_glob", quoted(p.PathGlob, PathGlob.String))
	add("url_host", quoted(p.URLHost, Host.String))
	if len(p.OneOf) > 0 {
		var values []string
		for _, v := range p.OneOf {
			if v.Bare {
				values = append(values, v.Text)
			} else {
				values = append(values, fmt.Sprintf("%q", v.Text))
			}
		}
		parts = append(parts, "one_of = ["+strings.Join(values, ", ")+"]")
	}
	if p.Regex != nil {
		parts = append(parts, fmt.Sprintf("regex = %q", p.Regex.text))
	}
	if p.MaxBytes != nil {
		parts = append(parts, fmt.Sprintf("max_bytes = %d", *p.MaxBytes))
	}
	if p.Absent {
		parts = append(parts, "absent = true")
	}
	if p.Any {
		parts = append(parts, "any = true")
	}
	if p.Not != nil {
		parts = append(parts, "not = { "+p.Not.String()+" }")
	}
	return strings.Join(parts, ", ")
}

func quoted[T any](list []T, text func(T) string) []string {
	var out []string
	for _, v := range list {
		out = append(out, fmt.Sprintf("%q", text(v)))
	}
	return out
}
