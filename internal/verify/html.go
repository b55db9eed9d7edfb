package verify

import (
	_ "embed"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"
)

//go:embed report.html
var page string

// pageTemplate is made when a page is written: each start of the program would wait for it.
var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("report").Funcs(template.FuncMap{
		"mark": func(v Verdict) string { return marks[v] },
		"kind": func(v Verdict) string { return strings.ReplaceAll(string(v), " ", "-") },
		"era":  eraName,
		"short": func(era string) string {
			if era == "modern" {
				return "stateless"
			}
			return "handshake"
		},
		"join": func(list []string) string { return strings.Join(list, " ") },
	}).Parse(page))
})

// classOf is the cases of a class, for the page.
type classOf struct {
	Name                 string
	Cases                []Result
	Held, Leaked, Failed int
	Other                int
}

// WriteHTML writes the report as one page that needs nothing else.
func (r *Report) WriteHTML(w io.Writer) error {
	var classes []*classOf
	var broken []Result
	at := map[string]*classOf{}
	for _, c := range r.Cases {
		k := at[c.Class]
		if k == nil {
			k = &classOf{Name: c.Class}
			at[c.Class] = k
			classes = append(classes, k)
		}
		k.Cases = append(k.Cases, c)
		if c.Verdict == Leaked || c.Verdict == Failed {
			broken = append(broken, c)
		}
		switch c.Verdict {
		case Held:
			k.Held++
		case Leaked:
			k.Leaked++
		case Failed:
			k.Failed++
		default:
			k.Other++
		}
	}
	slices.SortStableFunc(broken, func(a, b Result) int {
		return slices.Index(severities, b.Severity) - slices.Index(severities, a.Severity)
	})
	return pageTemplate().Execute(w, struct {
		*Report
		Classes []*classOf
		Broken  []Result
		Leaks   int
		Faults  int
	}{r, classes, broken, r.Count(Leaked), r.Count(Failed)})
}
