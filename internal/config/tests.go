package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/splice"
)

// Test is a call with what is to become of it.
type Test struct {
	// Server is the name of the server, Tool that of the tool, and Arguments a JSON object.
	Server, Tool string
	Arguments    []byte
	// Effect is what the tool does, where the test says so.
	Effect Setting[policy.Effect]
	Want   policy.Verdict
	// Reason is a part of the sentence that says why; empty is any.
	Reason string
	// At is where the test is written.
	At string
}

// Tests are those of a file.
type Tests struct{ Tests []Test }

// LoadTests reads a file of tests. Path is absolute.
func LoadTests(path string) ([]Test, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading tests %q: %w", path, reason(err))
	}
	return parseTests(path, text)
}

// parseTests reads the text of a file of tests, in the grammars of a configuration. The error holds every fault.
func parseTests(path string, text []byte) ([]Test, error) {
	d, err := newDecoder(path, text)
	if err != nil {
		return nil, err
	}
	var t Tests
	root := d.file.doc.Root()
	decode(d, root, testsKeys, &t)
	if len(t.Tests) == 0 && len(d.faults) == 0 {
		d.fault(root.Pos, "there is no test in it: a test is a table [[test]]")
	}
	if err := errors.Join(d.faults...); err != nil {
		return nil, err
	}
	return t.Tests, nil
}

var testsKeys = []key[Tests]{
	{"test", "The tests.", false, nil, func(d *decoder, v *splice.Value, t *Tests) {
		if !d.want(v, splice.ArrayKind) {
			return
		}
		for _, item := range v.Items {
			one := Test{At: d.place(item.Pos)}
			decode(d, item, testKeys, &one)
			for _, must := range []string{"tool", "want"} {
				if _, ok := item.Get(must); !ok && item.Kind == splice.ObjectKind {
					d.fault(item.Pos, "a test needs %s", must)
				}
			}
			t.Tests = append(t.Tests, one)
		}
	}},
}

var testKeys = []key[Test]{
	{"server", "", false, nil, func(d *decoder, v *splice.Value, t *Test) { t.Server = d.some(v) }},
	{"tool", "", false, nil, func(d *decoder, v *splice.Value, t *Test) { t.Tool = d.some(v) }},
	{"arguments", "", false, nil, func(d *decoder, v *splice.Value, t *Test) {
		if d.want(v, splice.ObjectKind) {
			t.Arguments = d.json(nil, v)
		}
	}},
	{"effect", "", false, nil, func(d *decoder, v *splice.Value, t *Test) { t.Effect = enum(d, v, effectWords) }},
	{"want", "", false, nil, func(d *decoder, v *splice.Value, t *Test) { t.Want = enum(d, v, verdictWords).Value }},
	{"reason", "", false, nil, func(d *decoder, v *splice.Value, t *Test) { t.Reason = d.some(v) }},
}

// json appends a value as JSON.
func (d *decoder) json(b []byte, v *splice.Value) []byte {
	quote := func(s string) []byte {
		text, err := json.Marshal(s)
		if err != nil {
			panic("bug: " + err.Error())
		}
		return text
	}
	switch v.Kind {
	case splice.ObjectKind:
		b = append(b, '{')
		for i, m := range v.Members {
			if i > 0 {
				b = append(b, ',')
			}
			b = d.json(append(append(b, quote(m.Name)...), ':'), m.Value)
		}
		return append(b, '}')
	case splice.ArrayKind:
		b = append(b, '[')
		for i, item := range v.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = d.json(b, item)
		}
		return append(b, ']')
	case splice.StringKind:
		return append(b, quote(v.Text)...)
	case splice.NullKind:
		return append(b, "null"...)
	case splice.BoolKind:
		return append(b, v.Text...)
	case splice.NumberKind:
		text := strings.ReplaceAll(v.Text, "_", "")
		if !json.Valid([]byte(text)) { // TOML has more forms of numbers
			if n, err := strconv.ParseInt(text, 0, 64); err == nil {
				text = strconv.FormatInt(n, 10)
			} else if text = strings.TrimPrefix(text, "+"); !json.Valid([]byte(text)) {
				d.fault(v.Pos, "JSON has no such number")
				text = "0"
			}
		}
		return append(b, text...)
	}
	d.fault(v.Pos, "JSON has no %s", v.Kind)
	return append(b, "null"...)
}
