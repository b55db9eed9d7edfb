package config

import (
	"sync"

	"github.com/rootbound/rootbound/internal/results"
	"github.com/rootbound/rootbound/internal/splice"
)

// Results says what is done about what is found in the answers of servers.
type Results struct {
	// Actions are by check.
	Actions [results.Count]Setting[results.Action]
	// MaxMB is in MiB.
	MaxMB, MaxDepth, MaxParts Setting[int]
}

// Options are the options of a checker. What nobody said is as in usual.
func (r Results) Options(usual results.Actions) results.Options {
	o := results.Options{Bounds: results.Bounds{Bytes: r.MaxMB.Value << 20, Depth: r.MaxDepth.Value, Parts: r.MaxParts.Value}}
	for _, c := range results.Checks() {
		o.Actions[c] = usual[c]
		if a := r.Actions[c]; a.Origin != byDefault {
			o.Actions[c] = a.Value
		}
	}
	return o
}

// before returns what r says, and where it says nothing what other says.
func (r Results) before(other Results) Results {
	for i := range r.Actions {
		r.Actions[i] = first(r.Actions[i], other.Actions[i])
	}
	r.MaxMB, r.MaxDepth, r.MaxParts = first(r.MaxMB, other.MaxMB), first(r.MaxDepth, other.MaxDepth), first(r.MaxParts, other.MaxParts)
	return r
}

// actionWords are the words for what a check does.
func actionWords(c results.Check) words[results.Action] {
	var w words[results.Action]
	for _, a := range []results.Action{results.Off, results.Warn, results.Redact, results.Block} {
		if a != results.Redact || c.Redacts() {
			w = append(w, struct {
				word  string
				value results.Action
			}{a.String(), a})
		}
	}
	return w
}

var resultsKeys = sync.OnceValue(func() []key[Results] {
	docs := [results.Count]string{
		"An answer that is too large, too deep or of too many parts.",
		"A resource, or a link to one, that is a file outside the roots.",
		"Structured content that is not what the tool's schema says.",
		"Structured content that says something else than the text.",
		"Data that is not of the type it is said to be.",
		"Characters that a person does not see, or that a terminal obeys.",
		"What looks like a secret.",
	}
	var keys []key[Results]
	for _, c := range results.Checks() {
		w := actionWords(c)
		keys = append(keys, key[Results]{c.String(), docs[c], false, w.schema,
			func(d *decoder, v *splice.Value, r *Results) { r.Actions[c] = enum(d, v, w) }})
	}
	return append(keys,
		key[Results]{"max_mb", "How many MiB an answer may have.", false, aNumber,
			func(d *decoder, v *splice.Value, r *Results) { r.MaxMB = d.number(v) }},
		key[Results]{"max_depth", "How deep an answer may be nested.", false, aNumber,
			func(d *decoder, v *splice.Value, r *Results) { r.MaxDepth = d.number(v) }},
		key[Results]{"max_parts", "How many parts an answer may have.", false, aNumber,
			func(d *decoder, v *splice.Value, r *Results) { r.MaxParts = d.number(v) }},
	)
})

func resultsSchema() part { return object(resultsKeys())() }

// results resolves what is done about answers: a project's file makes it stricter only.
func (r *resolver) results() {
	p := &r.p.Results
	defaults := results.Defaults()
	for _, c := range results.Checks() {
		p.Actions[c] = narrow(r, "results."+c.String(), func(s Settings) Setting[results.Action] { return s.Results.Actions[c] },
			usual(defaults[c]), results.Block, results.Redact, results.Warn, results.Off)
	}
	b := results.DefaultBounds
	smaller := func(a, b int) bool { return a < b }
	p.MaxMB = narrowBy(r, "results.max_mb", func(s Settings) Setting[int] { return s.Results.MaxMB }, usual(b.Bytes>>20), smaller)
	p.MaxDepth = narrowBy(r, "results.max_depth", func(s Settings) Setting[int] { return s.Results.MaxDepth }, usual(b.Depth), smaller)
	p.MaxParts = narrowBy(r, "results.max_parts", func(s Settings) Setting[int] { return s.Results.MaxParts }, usual(b.Parts), smaller)
}
