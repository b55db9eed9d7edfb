package verify

import (
	"bufio"
	_ "embed"
	"html"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

//go:embed report.css
var style string

// markup is a piece of the page. A constant becomes it by itself, a string does not; so what a server says can only be put where
// the piece has a {}, where it is text, or the value of an attribute that no browser follows or runs.
//
// The page is not made by html/template. What a template may call is found by name when it runs, so the linker has to keep every
// method of every type of the program, whoever imports it (arch_test.go).
type markup string

// page is the page as it is written. Its writer keeps the first error.
type page struct{ w *bufio.Writer }

// put writes a piece, with the values where it has {}.
func (p page) put(m markup, values ...string) {
	pieces := strings.Split(string(m), "{}")
	if len(pieces) != len(values)+1 {
		panic("bug: a piece of the page has " + strconv.Itoa(len(pieces)-1) + " places for " + strconv.Itoa(len(values)) + " values")
	}
	for i, piece := range pieces {
		p.w.WriteString(piece)
		if i < len(values) {
			p.w.WriteString(html.EscapeString(values[i]))
		}
	}
}

// some writes a piece with one value, unless there is none.
func (p page) some(m markup, value string) {
	if value != "" {
		p.put(m, value)
	}
}

// table begins a table.
func (p page) table(columns ...string) {
	p.put("<table>\n<thead><tr>")
	for _, c := range columns {
		p.put(`<th scope="col">{}</th>`, c)
	}
	p.put("</tr></thead>\n<tbody>")
}

func (p page) endTable() { p.put("\n</tbody></table>\n") }

// WriteHTML writes the report as one page that needs nothing else.
func (r *Report) WriteHTML(w io.Writer) error {
	p := page{bufio.NewWriter(w)}
	p.head(&r.Server)
	p.put("<main>\n")
	p.score(r)
	p.questions(r.Questions)
	p.broken(r.Cases)
	p.classes(r.Cases)
	if len(r.Server.Opened) > 0 {
		p.put("<h2>What it opened and contacted until it had told its tools</h2>\n<ul>")
		for _, o := range r.Server.Opened {
			p.put("<li><code>{}</code></li>", o)
		}
		p.put("</ul>\n")
	}
	p.tools(r.Tools)
	p.put("</main>\n</body>\n</html>\n")
	return p.w.Flush()
}

func (p page) head(s *Server) {
	command := strings.Join(s.Command, " ")
	p.put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Boundary report: {}</title>
<style>
`, command)
	p.put(markup(style)) // a file of ours
	p.put(`</style>
</head>
<body>
<header>
<h1>Does it keep its boundary?</h1>
<code class="command">{}</code>
<dl>
`, command)
	if s.Name != "" {
		p.put("<dt>Server</dt><dd>{} {}</dd>\n", s.Name, s.Version)
	}
	eras := make([]string, len(s.Eras))
	for i, e := range s.Eras {
		eras[i] = eraName(e)
	}
	p.put("<dt>Speaks</dt><dd>{}</dd>\n", strings.Join(eras, ", "))
	p.some("<dt>Meanwhile</dt><dd>{}</dd>\n", s.Confined)
	p.put("</dl>\n")
	for _, n := range s.Notes {
		p.put("<p class=\"note\">{}.</p>\n", n)
	}
	p.put("</header>\n")
}

func (p page) score(r *Report) {
	class, says := "", "Nothing of what was tried got out."
	switch {
	case r.Count(Leaked) > 0:
		class, says = "leaked", "Something outside its roots was read, changed or told of."
	case r.Count(Failed) > 0:
		class, says = "failed", "Nothing got out. Some of what a client relies on is not as it should be."
	}
	p.put(`<div class="score {}"><strong>{}</strong>
<p class="note">{} A report shows what was tried, and not that nothing else would succeed.</p></div>
`, class, r.Score, says)
}

func (p page) questions(list []Answered) {
	if len(list) == 0 {
		return
	}
	p.put("<h2>What people check by hand</h2>\n")
	p.table("Verdict", "Question", "Expected", "Seen")
	for _, q := range list {
		p.put("\n<tr>")
		p.verdict(q.Verdict)
		p.put(`<div class="soft">{}</div></td><td>{}</td><td data-label="Expected">{}</td><td data-label="Seen">{}`,
			shortEra(q.Era), q.Question, q.Expected, q.Seen)
		p.some(`<div class="note">This means: {}.</div>`, q.Means)
		p.some(`<div class="note">This closes it: <code>{}</code></div>`, q.Closes)
		p.put("</td></tr>")
	}
	p.endTable()
}

// broken writes the cases that did not hold, the worst first.
func (p page) broken(cases []Result) {
	var list []*Result
	for i, c := range cases {
		if c.Verdict == Leaked || c.Verdict == Failed {
			list = append(list, &cases[i])
		}
	}
	if len(list) == 0 {
		return
	}
	slices.SortStableFunc(list, func(a, b *Result) int {
		return slices.Index(severities, b.Severity) - slices.Index(severities, a.Severity)
	})
	p.put("<h2>What did not hold</h2>\n")
	p.table("Case", "Verdict", "Attempt", "Seen")
	for _, c := range list {
		p.attempt(c)
		p.put(`<td data-label="Seen">{}</td></tr>`, c.Seen)
	}
	p.endTable()
	p.put(`<p class="note">Critical: whoever can call the server can read or change what is outside. High: so can one who can also put something into the roots, or times it well.
Medium: the server can be stopped, or tells names and sizes. Low: against a rule, and harms nobody by itself.</p>
`)
}

func (p page) classes(cases []Result) {
	if len(cases) == 0 {
		return
	}
	p.put("<h2>All that was tried</h2>\n")
	var names []string
	of := map[string][]*Result{}
	for i, c := range cases {
		if of[c.Class] == nil {
			names = append(names, c.Class)
		}
		of[c.Class] = append(of[c.Class], &cases[i])
	}
	for _, name := range names {
		p.class(name, of[name])
	}
}

func (p page) class(name string, cases []*Result) {
	count := map[string]int{}
	for _, c := range cases {
		switch c.Verdict {
		case Held, Leaked, Failed:
			count[string(c.Verdict)]++
		default:
			count["other"]++
		}
	}
	p.put("<details>\n<summary>{}", name)
	for _, c := range []struct{ class, word string }{{"held", "held"}, {"leaked", "leaked"}, {"failed", "failed"}, {"soft", "other"}} {
		if n := count[c.word]; n > 0 {
			p.put(`<span class="{}">{} {}</span>`, c.class, strconv.Itoa(n), c.word)
		}
	}
	p.put("</summary>\n")
	p.table("Case", "Verdict", "Attempt", "Expected", "Seen")
	for _, c := range cases {
		p.attempt(c)
		p.put(`<td data-label="Expected">{}</td><td data-label="Seen">{}</td></tr>`, c.Expected, c.Seen)
	}
	p.endTable()
	p.put("</details>\n")
}

// attempt begins a row about a case.
func (p page) attempt(c *Result) {
	p.put("\n"+`<tr><td class="id"><code>{}</code><div class="soft">{}</div></td>`, c.ID, shortEra(c.Era))
	p.verdict(c.Verdict)
	p.some(`<div class="soft">{}</div>`, string(c.Severity))
	p.put("</td><td>{}</td>", c.Attempt)
}

// verdict begins a cell.
func (p page) verdict(v Verdict) {
	p.put(`<td class="verdict {}">{} {}`, strings.ReplaceAll(string(v), " ", "-"), marks[v], string(v))
}

func (p page) tools(list []Found) {
	if len(list) == 0 {
		return
	}
	p.put("<h2>Tools that were recognised</h2>\n")
	p.table("Tool", "For", "Parameters")
	for _, t := range list {
		p.put(`<tr><td><code>{}</code></td><td data-label="For">{}</td><td data-label="Parameters">`, t.Name, t.Role)
		for _, means := range slices.Sorted(maps.Keys(t.Arguments)) {
			p.put("<code>{}</code> ({}) ", t.Arguments[means], means)
		}
		p.put("</td></tr>")
	}
	p.endTable()
}

func shortEra(era string) string {
	if era == "modern" {
		return "stateless"
	}
	return "handshake"
}
