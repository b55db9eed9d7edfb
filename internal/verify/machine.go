package verify

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

type suite struct {
	XMLName  xml.Name `xml:"testsuite"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Cases    []unit   `xml:"testcase"`
}

type unit struct {
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	Failure *problem `xml:"failure,omitempty"`
	Skipped *problem `xml:"skipped,omitempty"`
}

type problem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
}

// WriteJUnit writes the report as JUnit's XML, a test for each question and case.
func (r *Report) WriteJUnit(w io.Writer) error {
	s := suite{Name: "rootbound verify"}
	add := func(class, name string, v Verdict, seen string) {
		u := unit{Class: class, Name: name}
		switch v {
		case Leaked, Failed:
			u.Failure = &problem{seen, string(v)}
			s.Failures++
		case NotApplicable, Inconclusive, ByDesign:
			u.Skipped = &problem{string(v) + ": " + seen, ""}
			s.Skipped++
		}
		s.Tests++
		s.Cases = append(s.Cases, u)
	}
	for _, q := range r.Questions {
		add(q.Era+".questions", q.ID+" "+q.Question, q.Verdict, q.Seen)
	}
	for _, c := range r.Cases {
		add(c.Era+"."+c.Class, c.ID+" "+c.Attempt, c.Verdict, c.Seen)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// WriteSARIF writes what did not hold as SARIF 2.1.0.
func (r *Report) WriteSARIF(w io.Writer, version string) error {
	type object = map[string]any
	rules, results := []object{}, []object{}
	had := map[string]bool{}
	add := func(id, era, what, expected, seen string, v Verdict, s Severity) {
		if v != Leaked && v != Failed {
			return
		}
		if !had[id] {
			had[id] = true
			rules = append(rules, object{"id": id, "shortDescription": object{"text": what}, "help": object{"text": "Expected: " + expected}})
		}
		level := "warning"
		if v == Leaked && s != Low {
			level = "error"
		}
		results = append(results, object{
			"ruleId": id, "level": level, "message": object{"text": fmt.Sprintf("%s (%s): %s", what, era, seen)},
			"properties": object{"verdict": v, "severity": s},
			"locations":  []object{{"logicalLocations": []object{{"fullyQualifiedName": strings.Join(r.Server.Command, " ")}}}},
		})
	}
	for _, q := range r.Questions {
		add(q.ID, q.Era, q.Question, q.Expected, q.Seen, q.Verdict, "")
	}
	for _, c := range r.Cases {
		add(c.ID, c.Era, c.Attempt, c.Expected, c.Seen, c.Verdict, c.Severity)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{
			"tool":    object{"driver": object{"name": "rootbound verify", "version": version, "rules": rules}},
			"results": results,
		}},
	})
}
