package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/rootbound/rootbound/roots"
)

// Report is what an examination found.
type Report struct {
	Servers  []Server  `json:"servers"`
	Findings []Finding `json:"findings"`

	clients []clientFacts
	cut     []string // files of which not all findings are told
}

// Server is one entry of a configuration.
type Server struct {
	Client string `json:"client"`
	Scope  string `json:"scope"`
	// For is the project that the entry is for, where its file has several.
	For  string `json:"for,omitempty"`
	Name string `json:"name"`
	// File, Line and Column are where it lives.
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Runs is what its command line really runs, or where it is.
	Runs string `json:"runs"`
	// Touches are the directories it is given; Unbounded says what holds where there are none.
	Touches   []Touch `json:"touches"`
	Unbounded string  `json:"unbounded,omitempty"`
	// SendsRoots is yes, no, empty or ?.
	SendsRoots string `json:"sends_roots"`
	Approves   string `json:"approves"`
	// Guarded is set when a rootbound stands before it.
	Guarded bool `json:"guarded"`
	// Disabled is set when the client does not start it.
	Disabled bool `json:"disabled,omitempty"`
	// Order says which other entry of the name holds instead, or does not hold because of this one.
	Order string `json:"order,omitempty"`

	filesystem bool // its purpose is the files of this machine
}

// Touch is a directory that a server is given.
type Touch struct {
	// Path is where it leads, or what is written where nothing is there.
	Path string `json:"path"`
	// Written is how it stands in the file, where that differs.
	Written string `json:"written,omitempty"`
	Access  string `json:"access"`
	// Note says what is to be known: missing, a link, broad.
	Note string `json:"note,omitempty"`
}

// Finding is one thing that is wrong, at one place.
type Finding struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	Client   string   `json:"client"`
	Server   string   `json:"server"`
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	// Message is What and Why.
	Message string `json:"message"`
	Fix     string `json:"fix"`

	// What is wrong here, and Why it matters: a sentence each.
	What string `json:"-"`
	Why  string `json:"-"`

	floats  bool // only that a version is not fixed, which by itself is no fault
	mend    mend
	migrate []string // the options of the rootbound run that takes the place of roots in the entry
}

// Empty reports whether there was nothing to judge.
func (r *Report) Empty() bool { return len(r.clients) == 0 }

// Worst returns the highest severity that was found, or "".
func (r *Report) Worst() Severity {
	worst := Severity("")
	for _, f := range r.Findings {
		if rank(f.Severity) > rank(worst) {
			worst = f.Severity
		}
	}
	return worst
}

func rank(s Severity) int { return slices.Index([]Severity{"", Information, Warning, Error}, s) }

// sort puts findings in the order of reading: file, place, then the worse one first.
func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(rank(b.Severity), rank(a.Severity)), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Message, b.Message))
	})
	r.Findings = slices.CompactFunc(r.Findings, func(a, b Finding) bool {
		return a.ID == b.ID && a.File == b.File && a.Line == b.Line && a.Column == b.Column && a.Client == b.Client && a.Message == b.Message
	})
}

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	out := struct {
		Servers  []Server  `json:"servers"`
		Findings []Finding `json:"findings"`
	}{append([]Server{}, r.Servers...), append([]Finding{}, r.Findings...)}
	for i := range out.Servers {
		out.Servers[i].Touches = append([]Touch{}, out.Servers[i].Touches...)
	}
	return writeJSON(w, out)
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// WriteSARIF writes the findings as SARIF 2.1.0, for code scanning.
func (r *Report) WriteSARIF(w io.Writer, version string) error {
	type text struct {
		Text string `json:"text"`
	}
	type level struct {
		Level string `json:"level"`
	}
	type rule struct {
		ID      string `json:"id"`
		Short   text   `json:"shortDescription"`
		Full    text   `json:"fullDescription"`
		Help    text   `json:"help"`
		Default level  `json:"defaultConfiguration"`
	}
	type artifact struct {
		URI string `json:"uri"`
	}
	type region struct {
		Line   int `json:"startLine"`
		Column int `json:"startColumn,omitempty"`
	}
	type physical struct {
		Artifact artifact `json:"artifactLocation"`
		Region   *region  `json:"region,omitempty"`
	}
	type logical struct {
		Name string `json:"fullyQualifiedName"`
	}
	type location struct {
		Physical physical  `json:"physicalLocation"`
		Logical  []logical `json:"logicalLocations,omitempty"`
	}
	type result struct {
		ID        string     `json:"ruleId"`
		Index     int        `json:"ruleIndex"`
		Level     string     `json:"level"`
		Message   text       `json:"message"`
		Locations []location `json:"locations"`
	}
	rules := make([]rule, len(Kinds))
	for i, k := range Kinds {
		rules[i] = rule{k.ID, text{sentence(k.Means)}, text{k.Why}, text{k.Fix}, level{sarifLevel(k.Severity)}}
	}
	results := []result{}
	for _, f := range r.Findings {
		at := location{Physical: physical{Artifact: artifact{roots.FileURI(f.File)}}}
		if f.Line > 0 {
			at.Physical.Region = &region{f.Line, f.Column}
		}
		if f.Server != "" {
			at.Logical = []logical{{f.Client + "/" + f.Server}}
		}
		results = append(results, result{
			f.ID, slices.IndexFunc(Kinds, func(k Kind) bool { return k.ID == f.ID }), sarifLevel(f.Severity),
			text{f.Message + " " + f.Fix}, []location{at},
		})
	}
	type driver struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Rules   []rule `json:"rules"`
	}
	type run struct {
		Tool struct {
			Driver driver `json:"driver"`
		} `json:"tool"`
		Columns string   `json:"columnKind"`
		Results []result `json:"results"`
	}
	one := run{Columns: "unicodeCodePoints", Results: results}
	one.Tool.Driver = driver{"rootbound doctor", version, rules}
	return writeJSON(w, struct {
		Schema  string `json:"$schema"`
		Version string `json:"version"`
		Runs    []run  `json:"runs"`
	}{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []run{one}})
}

func sarifLevel(s Severity) string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	}
	return "note"
}

// sentence makes one of a description.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf("%c%s.", s[0]-'a'+'A', s[1:])
}
