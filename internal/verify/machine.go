package verify

import (
	"bufio"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteJUnit writes the report as JUnit's XML, a test for each question and case. It is written piece by piece: an encoder that
// finds its way by reflection is 0.1 MB of a program that a client waits for.
func (r *Report) WriteJUnit(w io.Writer) error {
	b := bufio.NewWriter(w)
	element := func(name string, attributes ...string) { // names and values in turns; the element is left open
		b.WriteString("<" + name)
		for i := 0; i+1 < len(attributes); i += 2 {
			b.WriteString(" " + attributes[i] + `="`)
			xml.EscapeText(b, []byte(attributes[i+1]))
			b.WriteString(`"`)
		}
	}
	add := func(class, name string, v Verdict, seen string) {
		b.WriteString("\n  ")
		element("testcase", "classname", class, "name", name)
		b.WriteString(">")
		switch v {
		case Leaked, Failed:
			element("failure", "message", seen, "type", string(v))
			b.WriteString("/>")
		case NotApplicable, Inconclusive, ByDesign:
			element("skipped", "message", string(v)+": "+seen)
			b.WriteString("/>")
		}
		b.WriteString("</testcase>")
	}
	b.WriteString(xml.Header)
	element("testsuite", "name", "rootbound verify", "tests", strconv.Itoa(len(r.Questions)+len(r.Cases)),
		"failures", strconv.Itoa(r.Count(Leaked)+r.Count(Failed)),
		"skipped", strconv.Itoa(r.Count(NotApplicable)+r.Count(Inconclusive)+r.Count(ByDesign)))
	b.WriteString(">")
	for _, q := range r.Questions {
		add(q.Era+".questions", q.ID+" "+q.Question, q.Verdict, q.Seen)
	}
	for _, c := range r.Cases {
		add(c.Era+"."+c.Class, c.ID+" "+c.Attempt, c.Verdict, c.Seen)
	}
	b.WriteString("\n</testsuite>\n")
	return b.Flush() // it keeps the first error
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
