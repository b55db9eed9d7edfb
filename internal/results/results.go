package results

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/rootbound/rootbound/internal/wire"
)

// Action is what is done about a finding. The zero value withholds the result.
type Action uint8

const (
	// Block withholds the whole result.
	Block Action = iota
	// Redact takes out what was found.
	Redact
	// Warn tells of it.
	Warn
	// Off does not look.
	Off
)

func (a Action) String() string { return [...]string{"block", "redact", "warn", "off"}[a] }

// Check is one of the checks.
type Check uint8

const (
	// Limits holds the size, the depth and the number of parts.
	Limits Check = iota
	// Paths judges the "file:" URIs of resources and of links to them.
	Paths
	// Schema holds the structured content to the schema that the tool has for it.
	Schema
	// Agreement compares the structured content, which a client acts on, with the text that a model reads.
	Agreement
	// Types compares what data is called with what it begins with.
	Types
	// Characters finds what a person does not see and a model reads, and what a terminal obeys.
	Characters
	// Secrets finds what looks like a credential.
	Secrets

	// Count is how many checks there are.
	Count = iota
)

// Checks returns all checks, in order.
func Checks() []Check {
	list := make([]Check, Count)
	for i := range list {
		list[i] = Check(i)
	}
	return list
}

func (c Check) String() string {
	return [...]string{"limits", "paths", "schema", "agreement", "types", "characters", "secrets"}[c]
}

// About says what is wrong with a result in which the check found something, for a model.
func (c Check) About() string {
	return [...]string{
		"it is larger than is allowed",
		"it names a file outside the directories that are open to this server",
		"it is not what the tool says it answers",
		"its structured content says something else than its text",
		"it holds data that is not what it is called",
		"it holds characters that a person does not see",
		"it holds what looks like a secret",
	}[c]
}

// Redacts reports whether the check can take out what it finds.
func (c Check) Redacts() bool { return c == Paths || c == Types || c == Characters || c == Secrets }

// Actions are what is done about the findings of each check.
type Actions [Count]Action

// Defaults returns what holds when nothing is said. Text is never changed: a tool could write it back.
func Defaults() Actions {
	return Actions{
		Limits: Block, Paths: Redact, Schema: Warn, Agreement: Warn, Types: Warn, Characters: Warn, Secrets: Warn,
	}
}

// Nothing returns the actions of no check at all.
func Nothing() Actions {
	var a Actions
	for i := range a {
		a[i] = Off
	}
	return a
}

// Bounds are the limits of a result. What is zero is as in DefaultBounds.
type Bounds struct {
	// Bytes is the size of the result as it came.
	Bytes int
	// Depth is how deep its values are nested.
	Depth int
	// Parts is how many parts it has: of content, messages, contents or resources.
	Parts int
}

// DefaultBounds are wide: more than that is a fault or an attack.
var DefaultBounds = Bounds{Bytes: 32 << 20, Depth: 500, Parts: 10_000}

// Options of a checker.
type Options struct {
	Actions Actions
	Bounds  Bounds
}

// Checker checks the results of one server. It is safe for concurrent use.
type Checker struct {
	opt   atomic.Pointer[Options]
	tools wire.Listed[*schema] // what they say of what they answer
}

// New makes a checker.
func New(o Options) *Checker {
	c := &Checker{}
	c.Set(o)
	return c
}

// Set puts other options in force.
func (c *Checker) Set(o Options) {
	for _, b := range []struct{ to, usual *int }{
		{&o.Bounds.Bytes, &DefaultBounds.Bytes}, {&o.Bounds.Depth, &DefaultBounds.Depth}, {&o.Bounds.Parts, &DefaultBounds.Parts},
	} {
		if *b.to == 0 {
			*b.to = *b.usual
		}
	}
	c.opt.Store(&o)
}

// Checks reports whether answers to requests of this method are checked.
func (c *Checker) Checks(method string) bool {
	switch method {
	case "tools/call", "prompts/get", "resources/read", "resources/list":
		return c.opt.Load().Actions != Nothing()
	}
	return false
}

// Result is the answer to a request.
type Result struct {
	// Method is that of the request, Tool the tool it called.
	Method, Tool string
	// Value is the result, or the error object, as it came.
	Value []byte
	// Failed is set for an error object.
	Failed bool
	// Outside says whether a URI leads to a file of this machine outside the roots. It may look at the disk. Nil is never.
	Outside func(uri string) bool

	opt  *Options // nil until it was looked at
	seen scanned
}

// Finding is something that a check found.
type Finding struct {
	Check Check
	// Action is what was done about it.
	Action Action
	// Text says what was found, for a person and the log: it may quote a little of the result.
	Text string
}

// String returns the finding with the name of its check behind it: before it, the log would take a name such as "secrets" for
// that of a secret.
func (f Finding) String() string { return fmt.Sprintf("%s (%s)", f.Text, f.Check) }

// Verdict is what the checks say of a result.
type Verdict struct {
	// Value is what goes on: the bytes that came when nothing was taken out; nil when the result is withheld.
	Value []byte
	// Edited is set when something was taken out.
	Edited bool
	// Findings are what was found, at most a few of each check.
	Findings []Finding
}

// Blocked returns the finding for which the result is withheld.
func (v Verdict) Blocked() (Finding, bool) {
	i := slices.IndexFunc(v.Findings, func(f Finding) bool { return f.Action == Block })
	if i < 0 {
		return Finding{}, false
	}
	return v.Findings[i], true
}

// maxFindings is how many findings of one check are told of.
const maxFindings = 4

// run is one result on its way through the checks.
type run struct {
	c *Checker
	*Options
	Result
	members
	edited   bool
	findings []Finding
	counts   [Count]int
}

func (r *run) does(c Check) bool { return r.Actions[c] != Off }

// found notes a finding, and reports whether what was found is to be taken out.
func (r *run) found(c Check, format string, args ...any) bool {
	a := r.Actions[c]
	if a == Redact && !c.Redacts() {
		a = Block
	}
	if r.counts[c]++; r.counts[c] <= maxFindings {
		r.findings = append(r.findings, Finding{c, a, fmt.Sprintf(format, args...)})
	}
	return a == Redact
}

// members are those of a result that are looked at; what is not there is nil.
type members struct {
	items      []byte // the list of parts
	structured []byte
	isError    bool
}

// Check checks a result. It takes as long as the result is, apart from what Outside does.
func (c *Checker) Check(result Result) Verdict {
	c.look(&result)
	r := &run{c: c, Options: result.opt, Result: result}
	if r.tooLong() {
		r.found(Limits, "it is %d bytes long, more than %d", len(r.Value), r.Bounds.Bytes)
		return r.verdict()
	}
	s := r.seen
	if r.does(Limits) && s.depth > r.Bounds.Depth {
		r.found(Limits, "it is nested %d levels deep, more than %d", s.depth, r.Bounds.Depth)
		return r.verdict()
	}
	if !r.Failed {
		many := r.does(Limits) && len(r.Value) > 2*r.Bounds.Parts // each is a byte and a comma at least
		if s.parts || s.besides || many {
			for name, v := range wire.Members(r.Value) {
				switch name {
				case lists[r.Method]:
					r.items = v
				case "structuredContent":
					r.structured = v
				case "isError":
					r.isError = string(v) == "true"
				}
			}
		}
		if r.Method == "tools/call" {
			r.content(s.depth)
		}
		if s.parts || many {
			r.parts()
		}
	}
	if s.characters || s.secrets {
		r.strings(s)
	}
	return r.verdict()
}

func (r *run) verdict() Verdict {
	v := Verdict{Value: r.Value, Edited: r.edited, Findings: r.findings}
	if _, blocked := v.Blocked(); blocked {
		v.Value, v.Edited = nil, false
	}
	return v
}

// Asks reports whether Check may ask Outside for something in a result.
func (c *Checker) Asks(result *Result) bool {
	if c.look(result); result.Failed || !result.seen.parts {
		return false
	}
	items, _ := wire.Get(result.Value, lists[result.Method])
	for part := range partsOf(result.Method, items) {
		for range uris(part) {
			return true
		}
	}
	return false
}

// look goes over the bytes of a result, once for all that is asked about it.
func (c *Checker) look(r *Result) {
	if r.opt != nil {
		return
	}
	if r.opt = c.opt.Load(); !r.tooLong() {
		r.seen = scan(r.Value, r.opt.Actions[Characters] != Off, r.opt.Actions[Secrets] != Off)
	}
}

func (r *Result) tooLong() bool {
	return r.opt.Actions[Limits] != Off && len(r.Value) > r.opt.Bounds.Bytes
}

func textOf(v []byte) string {
	if len(v) == 0 || v[0] != '"' {
		return ""
	}
	s, _ := wire.Unquote(v)
	return s
}
