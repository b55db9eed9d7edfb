package config

import (
	"embed"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/splice"
)

// Rule is a rule of a file.
type Rule struct {
	policy.Rule
	// Default is set for one that is looked at last, in the place of the usual defaults.
	Default bool

	origin Origin
}

var (
	verdictWords  = words[policy.Verdict]{{"deny", policy.Deny}, {"ask", policy.Ask}, {"allow", policy.Allow}}
	rememberWords = words[policy.Remember]{
		{"never", policy.Never}, {"call", policy.SameCall}, {"root", policy.InRoot}, {"tool", policy.ForTool},
	}
	effectWords = words[policy.Effect]{
		{"unknown", policy.Unknown}, {"read", policy.Read}, {"write", policy.Write}, {"delete", policy.Delete},
	}
	knownEffects = effectWords[1:]
	askWords     = words[policy.Mode]{
		{"auto", policy.AskAuto}, {"client", policy.AskClient}, {"always", policy.AskAlways}, {"deny", policy.AskNobody},
	}
)

// AskModes are the words of ask.
func AskModes() []string { return askWords.list() }

// oneOrMore is the schema of a value that may also be a list of such.
func oneOrMore(s schema) schema {
	return func() part { return part{"oneOf": []any{s(), part{"type": "array", "items": s(), "minItems": 1}}} }
}

var ruleKeys = []key[Rule]{
	{"match", "Which calls the rule is for. What is left out is anything.", false, object(matchKeys),
		func(d *decoder, v *splice.Value, r *Rule) { decode(d, v, matchKeys, r) }},
	{"verdict", "What becomes of them: deny, ask, or allow.", false, verdictWords.schema,
		func(d *decoder, v *splice.Value, r *Rule) { r.Verdict = enum(d, v, verdictWords).Value }},
	{"reason", "A sentence that is told to the model and the person.", false, aString,
		func(d *decoder, v *splice.Value, r *Rule) { r.Reason = strings.TrimRight(d.text(v).Value, ". ") }},
	{"remember", "What a yes of a person is good for at most: never, call, root, or tool.", true, rememberWords.schema,
		func(d *decoder, v *splice.Value, r *Rule) { r.Remember = enum(d, v, rememberWords).Value }},
	{"default", "Whether it is looked at last, in the place of the usual defaults.", true, onlyTrue,
		func(d *decoder, v *splice.Value, r *Rule) { r.Default = d.yes(v) }},
}

var matchKeys = []key[Rule]{
	{"server", "The name of the server.", false, aString,
		func(d *decoder, v *splice.Value, r *Rule) { r.Server = d.some(v) }},
	{"tool", "What the name of the tool is like: * stands for any characters, ? for one.", false, aString,
		func(d *decoder, v *splice.Value, r *Rule) { r.Tool = policy.Glob(d.some(v)) }},
	{"effect", "What is known of what the tool does: read, write, delete, or unknown; or a list of these.", false, oneOrMore(effectWords.schema),
		func(d *decoder, v *splice.Value, r *Rule) {
			for _, v := range d.several(v) {
				if e := enum(d, v, effectWords); e.Given() {
					r.Effects |= policy.Of(e.Value)
				}
			}
		}},
	{"args", "What its arguments are, by name.", false, mapOf(predicateSchema),
		func(d *decoder, v *splice.Value, r *Rule) { d.args(v, r) }},
}

// predicateKeys are those that can also be denied with not.
var predicateKeys = []key[policy.Predicate]{
	{"path_under", "It leads to this directory or beneath it, or to one of a list.", false, oneOrMore(aString),
		func(d *decoder, v *splice.Value, p *policy.Predicate) {
			for _, v := range d.several(v) {
				if dir := d.some(v); dir != "" {
					p.PathUnder = append(p.PathUnder, d.resolved(dir)...)
				}
			}
		}},
	{"path_glob", "Where it leads is like this, or like one of a list.", false, oneOrMore(aString),
		func(d *decoder, v *splice.Value, p *policy.Predicate) {
			for _, v := range d.several(v) {
				if text := d.some(v); text != "" {
					g, err := policy.ParsePathGlob(expandHome(text))
					d.check(v, err)
					p.PathGlob = append(p.PathGlob, g)
				}
			}
		}},
	{"url_host", "It is a URL with this host, or one of a list.", false, oneOrMore(aString),
		func(d *decoder, v *splice.Value, p *policy.Predicate) {
			for _, v := range d.several(v) {
				if text := d.some(v); text != "" {
					h, err := policy.ParseHost(text)
					d.check(v, err)
					p.URLHost = append(p.URLHost, h)
				}
			}
		}},
	{"one_of", "It is one of these.", false, someValues,
		func(d *decoder, v *splice.Value, p *policy.Predicate) {
			if !d.want(v, splice.ArrayKind) {
				return
			}
			for _, v := range d.several(v) {
				switch v.Kind {
				case splice.StringKind:
					p.OneOf = append(p.OneOf, policy.Value{Text: v.Text})
				case splice.NumberKind, splice.BoolKind:
					p.OneOf = append(p.OneOf, policy.Value{Text: v.Text, Bare: true})
				default:
					d.fault(v.Pos, "this is %s and has to be a string, a number or a boolean", v.Kind)
				}
			}
		}},
	{"regex", "All of its text is as this regular expression (RE2) says.", false, aString,
		func(d *decoder, v *splice.Value, p *policy.Predicate) {
			if text := d.some(v); text != "" {
				var err error
				p.Regex, err = policy.ParseRegex(text)
				d.check(v, err)
			}
		}},
	{"max_bytes", "It is not longer than this.", false, aSize,
		func(d *decoder, v *splice.Value, p *policy.Predicate) {
			n := 0
			if d.want(v, splice.NumberKind) && v.Text != "0" {
				n = d.number(v).Value
			}
			p.MaxBytes = &n
		}},
}

func aSize() part { return part{"type": "integer", "minimum": 0} }

func someValues() part {
	return part{"type": "array", "minItems": 1, "items": part{"type": []string{"string", "number", "boolean"}}}
}

func predicateSchema() part {
	s := object(argKeys)()
	s["minProperties"] = 1
	return s
}

var argKeys = append([]key[policy.Predicate]{
	{"absent", "There is no such argument.", false, onlyTrue,
		func(d *decoder, v *splice.Value, p *policy.Predicate) { p.Absent = d.yes(v) }},
	{"any", "There is one, whatever it is.", false, onlyTrue,
		func(d *decoder, v *splice.Value, p *policy.Predicate) { p.Any = d.yes(v) }},
	{"not", "What it must not be.", false, object(predicateKeys),
		func(d *decoder, v *splice.Value, p *policy.Predicate) {
			p.Not = new(policy.Predicate)
			if decode(d, v, predicateKeys, p.Not); v.Kind == splice.ObjectKind && len(v.Members) == 0 {
				d.fault(v.Pos, "this says nothing: known are %s", strings.Join(keyNames(predicateKeys), ", "))
			}
		}},
}, predicateKeys...)

// args reads what arguments are.
func (d *decoder) args(v *splice.Value, r *Rule) {
	if !d.want(v, splice.ObjectKind) {
		return
	}
	if len(v.Members) == 0 {
		d.fault(v.Pos, "there is no argument in it")
	}
	for _, m := range v.Members {
		a := policy.Arg{Name: m.Name, At: d.place(m.Pos)}
		if err := policy.CheckName(m.Name); err != nil {
			d.fault(m.Pos, "argument %q: %v", m.Name, err)
		}
		decode(d, m.Value, argKeys, &a.Predicate)
		if m.Value.Kind == splice.ObjectKind {
			switch n := len(m.Value.Members); {
			case n == 0:
				d.fault(m.Value.Pos, "this says nothing: known are %s", strings.Join(keyNames(argKeys), ", "))
			case n > 1 && a.Absent:
				d.fault(m.Value.Pos, "an argument that is absent is nothing else besides")
			case n > 1 && a.Any:
				d.fault(m.Value.Pos, "any says nothing besides others")
			}
		}
		r.Args = append(r.Args, a)
	}
}

func ruleSchema() part {
	s := object(ruleKeys)()
	s["required"] = []string{"match", "verdict"}
	return s
}

// rules reads a list of rules.
func (d *decoder) rules(v *splice.Value) []*Rule {
	if !d.want(v, splice.ArrayKind) {
		return nil
	}
	var list []*Rule
	for _, item := range v.Items {
		r := &Rule{origin: d.at(item.Pos)}
		r.At, r.Remember = d.place(item.Pos), policy.ForTool
		decode(d, item, ruleKeys, r)
		if item.Kind != splice.ObjectKind {
			continue
		}
		for _, must := range []string{"match", "verdict"} {
			if _, ok := item.Get(must); !ok {
				hint := ""
				if must == "match" {
					hint = " (match = {} is every call)"
				}
				d.fault(item.Pos, "a rule needs %s%s", must, hint)
			}
		}
		if remember, ok := item.Get("remember"); ok && r.Verdict != policy.Ask {
			d.fault(remember.Pos, "remember is for rules with verdict = \"ask\"")
		}
		list = append(list, r)
	}
	return list
}

// place is where something is written, as errors have it.
func (d *decoder) place(p splice.Pos) string { return fmt.Sprintf("%s:%s", d.file.Path, p) }

// yes reads a setting that is true or left out.
func (d *decoder) yes(v *splice.Value) bool {
	b := d.bool(v)
	if b.Given() && !b.Value {
		d.fault(v.Pos, "this is true or left out")
	}
	return b.Value
}

// some reads a text with something in it.
func (d *decoder) some(v *splice.Value) string {
	t := d.text(v)
	if t.Given() && t.Value == "" {
		d.fault(v.Pos, "this is empty")
	}
	return t.Value
}

// several are the elements of a list that has some, or the one value.
func (d *decoder) several(v *splice.Value) []*splice.Value {
	if v.Kind != splice.ArrayKind {
		return []*splice.Value{v}
	}
	if len(v.Items) == 0 {
		d.fault(v.Pos, "there is nothing in this list")
	}
	return v.Items
}

func (d *decoder) check(v *splice.Value, err error) {
	if err != nil {
		d.fault(v.Pos, "%v", err)
	}
}

// resolved is where a directory of a rule is, as paths of calls are resolved, and as it is written where that is another.
func (d *decoder) resolved(dir string) []string {
	written := filepath.Clean(absolute(filepath.Dir(d.file.Path), dir))
	if real := RealPath(written); real != written {
		return []string{real, written}
	}
	return []string{written}
}

// RealPath is where the links of a path lead, as far as there is something.
func RealPath(path string) string {
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if filepath.Dir(at) == at {
			return path
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// ruleFaults finds rules of a file that do nothing.
func (d *decoder) ruleFaults() {
	for _, last := range []bool{false, true} {
		var list []*policy.Rule
		for _, r := range d.file.Rules {
			if r.Default == last {
				list = append(list, &r.Rule)
			}
		}
		for _, f := range policy.Check(list) {
			d.faults = append(d.faults, f)
		}
	}
}

//go:embed presets
var presetFiles embed.FS

// presets are from the strictest on.
var presets = []string{"readonly", "cautious", "standard", "boundary"}

func presetWords() words[string] {
	var w words[string]
	for _, name := range presets {
		w = append(w, struct{ word, value string }{name, name})
	}
	return w
}

func presetSchema() part { return presetWords().schema() }

// Presets are the names of the presets, from the strictest on.
func Presets() []string { return slices.Clone(presets) }

// Preset returns the file of a preset, which is one of rules like any other.
func Preset(name string) ([]byte, error) {
	text, err := presetFiles.ReadFile("presets/" + name + ".toml")
	if err != nil {
		hint := "known are " + strings.Join(presets, ", ")
		if near, ok := launch.Nearest(name, presets); ok {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return nil, fmt.Errorf("there is no preset %q: %s", name, hint)
	}
	return text, nil
}

// presetRules are the rules of a preset: those that hold whatever is allowed elsewhere, and the defaults.
func presetRules(name string) (rules, defaults []*policy.Rule, err error) {
	text, err := Preset(name)
	if err != nil {
		return nil, nil, err
	}
	f, err := Parse("preset "+name, text)
	if err != nil {
		return nil, nil, fmt.Errorf("bug: %w", err)
	}
	for _, r := range f.Rules {
		if r.Rule.Reason != "" {
			r.Rule.Code = name + "-" + strings.ReplaceAll(r.Rule.Effects.String(), ", ", "-")
		}
		if r.Default {
			defaults = append(defaults, &r.Rule)
		} else {
			rules = append(rules, &r.Rule)
		}
	}
	return rules, defaults, nil
}

// Policy is what a plan says of calls.
type Policy struct {
	Rules *policy.Policy
	// Effects are what the operator says of tools, by name.
	Effects map[string]Setting[policy.Effect]
	// Paths are arguments that rules need to have resolved.
	Paths []PathArgs
	// Rows are the rules of the files, for people.
	Rows []Row
}

// PathArgs are arguments that rules hold to be paths: of tools of a server, or of any where it has no name.
type PathArgs struct {
	Server string
	Tool   policy.Glob
	Args   []string
}

// policy puts the rules of all layers together. The highest layer with rules of its own may allow; what is below only asks
// and denies.
func (r *resolver) policy() error {
	p := r.p
	if w := r.flags.Ask; w != "" {
		mode, ok := askWords.value(w)
		if !ok {
			return UsageError{fmt.Errorf("reading --ask %q: known are %s", w, strings.Join(askWords.list(), ", "))}
		}
		r.flagged.Ask = Setting[policy.Mode]{mode, Origin{Word: "--ask"}}
	}
	if w := r.flags.Preset; w != "" {
		if _, err := Preset(w); err != nil {
			return UsageError{fmt.Errorf("reading --preset: %w", err)}
		}
		r.flagged.Preset = Setting[string]{w, Origin{Word: "--preset"}}
	}
	p.Ask = narrow(r, "ask", func(s Settings) Setting[policy.Mode] { return s.Ask }, usual(policy.AskAuto),
		policy.AskNobody, policy.AskAlways, policy.AskAuto, policy.AskClient)
	p.Preset = narrow(r, "preset", func(s Settings) Setting[string] { return s.Preset }, usual("standard"), presets...)
	p.TrustAnnotations = narrow(r, "trust_annotations", func(s Settings) Setting[bool] { return s.TrustAnnotations }, usual(false), false, true)
	p.PublishAnnotations = narrow(r, "publish_annotations", func(s Settings) Setting[bool] { return s.PublishAnnotations }, usual(false), true, false)

	var l policy.Layers
	above := "" // the file of a layer that says what is allowed, so that those below it do not
	for _, f := range []*File{r.layers.managed, r.layers.operator, r.layers.project} {
		if f == nil {
			continue
		}
		var defaults []*policy.Rule
		for _, rule := range f.Rules {
			p.Policy.need(rule)
			text := rule.String()
			if rule.Default {
				text += ", by default"
			}
			p.Policy.Rows = append(p.Policy.Rows, Row{Value: text, Origin: rule.origin.String()})
			switch {
			case above != "" && f != r.layers.project && (rule.Verdict == policy.Allow || rule.Default):
				return rule.origin.errorf("%s has rules or a preset, so a file below it only asks and denies: take this rule out, or have it written there", above)
			case rule.Default:
				defaults = append(defaults, &rule.Rule)
			case f == r.layers.project, above != "":
				l.Lower = append(l.Lower, &rule.Rule)
			default:
				l.Rules = append(l.Rules, &rule.Rule)
			}
		}
		if len(defaults) > 0 {
			l.Defaults = append(l.Defaults, defaults)
		}
		if above == "" && (len(f.Rules) > 0 || f == r.layers.managed && r.managed.Preset.Given()) {
			above = f.Path
		}
	}
	rules, defaults, err := presetRules(p.Preset.Value)
	if err != nil {
		return err
	}
	l.Lower, l.Defaults = append(l.Lower, rules...), append(l.Defaults, defaults)
	p.Policy.Rules = policy.New(l)
	p.Policy.Effects = map[string]Setting[policy.Effect]{}
	for name, t := range p.Tools {
		if t.Effect.Given() {
			p.Policy.Effects[name] = t.Effect
		}
	}
	return nil
}

// need notes which arguments a rule needs to have resolved.
func (p *Policy) need(r *Rule) {
	var args []string
	for _, a := range r.Args {
		if a.OfPath() {
			args = append(args, a.Name)
		}
	}
	if len(args) > 0 {
		p.Paths = append(p.Paths, PathArgs{r.Server, r.Tool, args})
	}
}
