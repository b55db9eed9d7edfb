package config

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/pelletier/go-toml/v2"
	"github.com/rootbound/rootbound/internal/splice"
)

func TestJSONSchema(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal(JSONSchema(), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	valid := func(text string, format splice.Format) error {
		var v any
		var err error
		if format == splice.TOML {
			m := map[string]any{}
			err = toml.Unmarshal([]byte(text), &m)
			v = m
		} else {
			err = json.Unmarshal([]byte(text), &v)
		}
		if err != nil {
			t.Fatal(err)
		}
		return resolved.Validate(v)
	}
	for _, text := range []string{full, string(Example(splice.TOML, "rootbound", []string{"/srv"})), newFile, "", fullRules} {
		if err := valid(text, splice.TOML); err != nil {
			t.Errorf("%s\nis not valid: %v", text, err)
		}
	}
	if err := valid(fullJSON, splice.JSON); err != nil {
		t.Errorf("%s\nis not valid: %v", fullJSON, err)
	}
	if err := valid(fullRulesJSON, splice.JSON); err != nil {
		t.Errorf("%s\nis not valid: %v", fullRulesJSON, err)
	}
	// What the schema refuses the decoder refuses, and the other way round.
	for _, text := range []string{
		"x = 1", "active = 1", "client_roots = \"all\"", "roots = [\"/a\"]", "roots = [{ name = \"a\" }]", "roots = [{ path = \"/a\", uri = \"file:///a\" }]",
		"roots = [{ path = \"/a\", access = \"w\" }]", "[log]\nkeep_days = 0", "[log]\nx = 1", "[server.a]\ncomand = \"x\"",
		"[server.a]\nargs = [1]", "[server.a]\nenv = { A = 1 }", "[server.a.tool.t]\npath = [\"x\"]", "[server]\na = 1", "strict_protocol = \"yes\"",
		"pins = true", "[results]\nsecrets = true", "[results]\nsecrets = \"warm\"", "[results]\nlimits = \"redact\"", "[results]\nmax_mb = 0", "[results]\nsecret = \"off\"",
		"ask = \"never\"", "preset = \"strict\"", "trust_annotations = 1", "[rule]\nmatch = {}", "[[rule]]\nverdict = \"deny\"", "[[rule]]\nmatch = {}",
		rule("", "allowed"), rule("tools = \"x\"", "deny"), rule("effect = \"writes\"", "deny"), rule("effect = []", "deny"),
		rule("args = { a = {} }", "deny"), rule("args = { a = { under = \"/x\" } }", "deny"), rule("args = { a = { absent = false } }", "deny"),
		rule("args = { a = { one_of = [] } }", "deny"), rule("args = { a = { one_of = [[1]] } }", "deny"), rule("args = { a = { max_bytes = -1 } }", "deny"),
		rule("args = { a = { path_under = 1 } }", "deny"), rule("args = { a = { not = { any = true } } }", "deny"),
		"[[rule]]\nmatch = {}\nverdict = \"ask\"\nremember = \"always\"", "[[rule]]\nmatch = {}\nverdict = \"ask\"\ndefault = false",
		"[server.a.tool.t]\neffect = \"unknown\"",
	} {
		if err := valid(text, splice.TOML); err == nil {
			t.Errorf("the schema takes %q", text)
		}
		if _, err := Parse("/c/c.toml", []byte(text)); err == nil {
			t.Errorf("the decoder takes %q", text)
		}
	}
}

// rule is a file with one rule.
func rule(match, verdict string) string {
	return "[[rule]]\nmatch = { " + match + " }\nverdict = \"" + verdict + "\"\n"
}

// TestEveryKeyIsDocumented holds docs/configuration.md, the schema and the decoder together: each key that the schema has
// is described there, and each that is described there exists.
func TestEveryKeyIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var described []string
	for line := range strings.Lines(string(text)) {
		if cell, ok := strings.CutPrefix(line, "| `"); ok {
			if name, _, _ := strings.Cut(cell, "`"); !strings.HasPrefix(name, "--") { // a table of options
				described = append(described, name)
			}
		}
	}
	var s map[string]any
	if err := json.Unmarshal(JSONSchema(), &s); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	var walk func(s map[string]any)
	walk = func(s map[string]any) {
		properties, _ := s["properties"].(map[string]any)
		for name, p := range properties {
			known[name] = true
			part := p.(map[string]any)
			if part["description"] == "" {
				t.Errorf("%s has no description", name)
			}
			walk(part)
			for _, inner := range []string{"additionalProperties", "items"} {
				if m, ok := part[inner].(map[string]any); ok {
					walk(m)
				}
			}
		}
	}
	walk(s)
	if len(known) < 25 {
		t.Fatalf("only %d keys were found in the schema", len(known))
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !slices.Contains(described, name) {
			t.Errorf("docs/configuration.md does not describe %q", name)
		}
	}
	for _, name := range described {
		if !known[name] {
			t.Errorf("docs/configuration.md describes %q, which is no key", name)
		}
	}
}

// TestDocumentedFilesAreRead reads every TOML and JSON block of docs/configuration.md.
func TestDocumentedFilesAreRead(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, ext := range []string{"toml", "json"} {
		for i, part := range strings.Split(string(text), "```"+ext+"\n") {
			if i == 0 {
				continue
			}
			block, _, _ := strings.Cut(part, "```")
			n++
			if _, err := Parse("/docs/block."+ext, []byte(block)); err != nil {
				t.Errorf("%s\n%v", block, err)
			}
		}
	}
	if n < 5 {
		t.Errorf("only %d blocks were found", n)
	}
}
