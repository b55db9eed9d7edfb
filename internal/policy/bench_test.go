package policy

import (
	"fmt"
	"strings"
	"testing"
)

// manyRules are n rules of which none is for the call: for other tools, or for other values of the arguments of its tool.
func manyRules(n int, of string) []*Rule {
	var rules []*Rule
	for i := range n {
		r := &Rule{At: fmt.Sprint(i), Verdict: Verdict(i % 3), Tool: "write_file"}
		switch of {
		case "tools":
			r.Tool = Glob(fmt.Sprintf("tool_%d", i))
		case "globs":
			r.Tool = Glob(fmt.Sprintf("tool_%d_*", i))
		case "paths":
			r.Args = []Arg{{Name: "path", Predicate: Predicate{PathUnder: []string{fmt.Sprintf("/srv/project-%d/src", i)}}}}
		case "values":
			r.Args = []Arg{{Name: "mode", Predicate: Predicate{OneOf: []Value{{Text: fmt.Sprint("mode-", i)}}}}}
		case "hosts":
			r.Args = []Arg{{Name: "url", Predicate: Predicate{URLHost: []Host{{name: fmt.Sprintf("host-%d.example.com", i)}}}}}
		}
		rules = append(rules, r)
	}
	return rules
}

// aCall is one of 1 KB.
func aCall() Call {
	return Call{
		Server: "files", Tool: "write_file", Effect: Write,
		Args:  []byte(`{"path":"/srv/project/src/main.go","mode":"plain","url":"https://docs.example.org/x","content":"` + strings.Repeat("x", 900) + `"}`),
		Paths: []Path{leads("/path", "/srv/project/src/main.go")},
	}
}

// A thousand rules cost at most twice what one costs: docs/performance.md has the numbers.
func BenchmarkDecide(b *testing.B) {
	last := [][]*Rule{{{At: "default", Verdict: Ask, Remember: InRoot, Effects: Of(Write)}}}
	for _, of := range []string{"tools", "globs", "paths", "values", "hosts"} {
		for _, n := range []int{1, 1000} {
			p := New(Layers{Rules: manyRules(n, of), Defaults: last})
			c := aCall()
			b.Run(fmt.Sprintf("%s/%d", of, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if d := p.Decide(c); d.Rule != "default" {
						b.Fatal(d.Rule)
					}
				}
			})
		}
	}
}
