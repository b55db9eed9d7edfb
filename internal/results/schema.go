package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rootbound/rootbound/internal/wire"
)

// Learn takes a result of tools/list; the cursor is that of the request.
func (c *Checker) Learn(cursor string, list []byte) {
	tools, ok := wire.Get(list, "tools")
	if !ok {
		return
	}
	page := map[string]*schema{} // nil for a tool that says nothing of what it answers
	for t := range wire.Items(tools) {
		name := wire.GetString(t, "name")
		if name == "" {
			continue
		}
		page[name] = nil
		if output, ok := wire.Get(t, "outputSchema"); ok {
			page[name] = &schema{text: bytes.Clone(output)}
			if have := c.schema(name); have != nil && bytes.Equal(have.text, output) {
				page[name] = have // it was made ready
			}
		}
	}
	c.tools.Learn(cursor, page, wire.GetString(list, "nextCursor"))
}

func (c *Checker) schema(tool string) *schema {
	s, _ := c.tools.Get(tool)
	return s
}

// Valid says why a value is none of a schema, which may refer to parts of itself and to nothing else. Unusable is why it cannot be
// checked against that schema.
func Valid(text, value []byte) (invalid, unusable error) {
	if scan(value, false, false).depth > maxValidated {
		return nil, errors.New("the value is too deep to be checked")
	}
	s := schema{text: text}
	return s.validate(value)
}

// schema is what a tool says of its structured content. It is made ready when it is first needed.
type schema struct {
	text []byte

	once     sync.Once
	resolved *jsonschema.Resolved
	tree     bool // it refers to nothing: to check takes as long as it and the value are, multiplied
	err      error
	slow     atomic.Bool
}

const (
	// patience is how long a value may take to check: a schema can be made to take for ever.
	patience = time.Second
	// maxAtOnce is how many bytes a schema that refers to nothing, and a value, may have multiplied, to be checked without looking at
	// the time: what they take then is a fraction of a second at worst, where each element is compared with each of a list.
	maxAtOnce = 4 << 20
)

// checking has a place for each value that is being checked otherwise. One that takes for ever keeps its place,
// since nothing ends a check from outside: so that is all of the machine that such schemas can take.
var checking = make(chan struct{}, 4)

var (
	errSlow = fmt.Errorf("checking against it takes longer than %v", patience)
	errBusy = fmt.Errorf("checks against other schemas have not ended within %v", patience)
)

// validate checks a value. Unusable is why the schema cannot be checked against.
func (s *schema) validate(value []byte) (invalid, unusable error) {
	s.once.Do(func() {
		s.resolved, s.err = ready(s.text)
		s.tree = !bytes.Contains(bytes.ToLower(s.text), []byte(`ref"`)) && !bytes.Contains(s.text, []byte(`\u`))
	})
	switch {
	case s.err != nil:
		return nil, s.err
	case s.slow.Load():
		return nil, errSlow
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return err, nil
	}
	if s.atOnce(value) {
		return s.resolved.Validate(v), nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case checking <- struct{}{}:
	case <-timer.C:
		return nil, errBusy
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-checking }()
		done <- s.resolved.Validate(v)
	}()
	timer.Reset(patience)
	select {
	case err := <-done:
		return err, nil
	case <-timer.C:
		s.slow.Store(true)
		return nil, errSlow
	}
}

// atOnce reports whether a value is checked without looking at the time.
func (s *schema) atOnce(value []byte) bool {
	return s.tree && int64(len(s.text))*int64(len(value)) <= maxAtOnce
}

// ready reads a schema. It may refer to parts of itself and to nothing else: nothing is fetched for a server.
func ready(text []byte) (*jsonschema.Resolved, error) {
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	if err := finite(root); err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("reading the schema: %v", err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("resolving the schema: %v", err)
	}
	return resolved, nil
}

var (
	errLoop   = errors.New("it refers to itself without end")
	errRefers = errors.New("it refers to something that is not followed")
	errDeep   = errors.New("it is too deep")
	errTwice  = errors.New("it has a keyword twice, in other letters")
)

// maxSteps is how many schemas may lead from one to the next for one value: who follows them calls itself for each.
const maxSteps = 1_000

// inPlace are the keywords whose schemas are for the same value as the one that they are in, and named those whose members are schemas, by
// names that mean nothing. In those of data nothing is a schema.
var (
	inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
	named   = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
	data    = []string{"const", "enum", "default", "examples"}
)

// keyword reports whether a name is one of these, in whatever letters: who reads the schema takes "$Ref" for "$ref".
func keyword(name string, list ...string) bool {
	return slices.ContainsFunc(list, func(k string) bool { return strings.EqualFold(name, k) })
}

// finite refuses a schema for which checking a value would never end: one that leads to itself for the same value. And
// it refuses references that are not plain pointers into the schema, and keywords that are there twice, of which it could not tell.
func finite(root any) error {
	const open, done = 1, 2
	states := map[string]int{} // by pointer
	within := 0                // how many schemas for one value lead from one to the next
	var visit func(at string, node any) error
	sub := func(at string, node any, names bool) error {
		switch n := node.(type) {
		case []any:
			for i, v := range n {
				if err := visit(fmt.Sprintf("%s/%d", at, i), v); err != nil {
					return err
				}
			}
		case map[string]any:
			if !names {
				return visit(at, n)
			}
			for name, v := range n {
				if err := visit(at+wire.Pointer(name), v); err != nil {
					return err
				}
			}
		}
		return nil
	}
	visit = func(at string, node any) error {
		n, ok := node.(map[string]any)
		if !ok || states[at] == done {
			return nil
		}
		if states[at] == open {
			return errLoop
		}
		if within++; within > maxSteps {
			return errDeep
		}
		defer func() { within-- }()
		states[at] = open
		had := map[string]bool{}
		for name, v := range n {
			folded := strings.ToLower(strings.ToUpper(name))
			if had[folded] {
				return errTwice
			}
			had[folded] = true
			var err error
			switch {
			case keyword(name, "$dynamicRef", "$recursiveRef") && v != nil, keyword(name, "$id") && v != nil && at != "":
				err = errRefers
			case keyword(name, "$ref"):
				if ref, ok := v.(string); ok {
					target, found := follow(root, ref)
					if !found {
						return errRefers
					}
					err = visit(strings.TrimPrefix(ref, "#"), target)
				}
			case keyword(name, inPlace...):
				err = sub(at+wire.Pointer(name), v, keyword(name, named...))
			}
			if err != nil {
				return err
			}
		}
		states[at] = done
		return nil
	}
	// Every schema there is, as deep as it lies, may be the one that a loop begins at.
	var every func(at string, node any, names bool, depth int) error
	every = func(at string, node any, names bool, depth int) error {
		if depth > 200 {
			return errDeep
		}
		switch n := node.(type) {
		case []any:
			for i, v := range n {
				if err := every(fmt.Sprintf("%s/%d", at, i), v, false, depth+1); err != nil {
					return err
				}
			}
		case map[string]any:
			if !names {
				if err := visit(at, n); err != nil {
					return err
				}
			}
			for name, v := range n {
				if !names && slices.Contains(data, name) {
					continue
				}
				if err := every(at+wire.Pointer(name), v, !names && keyword(name, named...), depth+1); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return every("", root, false, 0)
}

// follow finds what a plain pointer into the schema leads to.
func follow(root any, ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || strings.Contains(pointer, "%") || pointer != "" && pointer[0] != '/' {
		return nil, false
	}
	node := root
	for e := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		switch n := node.(type) {
		case map[string]any:
			node = n[wire.PointerName(e)]
		case []any:
			i, err := strconv.Atoi(e)
			if err != nil || i < 0 || i >= len(n) {
				return nil, false
			}
			node = n[i]
		default:
			return nil, false
		}
	}
	return node, node != nil
}

// content holds the structured content to the tool's schema, and compares it with the text.
func (r *run) content(depth int) {
	if s := r.c.schema(r.Tool); r.does(Schema) && s != nil && !r.isError {
		switch {
		case r.structured == nil:
			r.found(Schema, "the structured content is missing that the tool says it has")
		case depth > maxValidated:
			r.found(Schema, "the structured content is too deep to be checked against the tool's schema")
		default:
			invalid, unusable := s.validate(r.structured)
			if invalid != nil {
				r.found(Schema, "the structured content is not what the tool says it is: %.300s", visible(invalid.Error()))
			}
			if unusable != nil {
				r.found(Schema, "the tool's schema for structured content cannot be used: %.300s", visible(unusable.Error()))
			}
		}
	}
	if r.does(Agreement) && r.structured != nil && !r.agrees(r.structured) {
		r.found(Agreement, "the structured content says something else than the text")
	}
}

// maxValidated is how deep a value may be that is checked against a schema.
const maxValidated = 100

// agrees compares structured content with the texts that are JSON; where none is, there is nothing to compare. It may be
// wrapped as "result", and be spread over several texts, as servers do whose tools return no object.
func (r *run) agrees(value []byte) bool {
	var canonical []byte
	var texts [][]byte
	for block := range wire.Items(r.items) {
		text := wire.GetString(block, "text")
		if !jsonText(text) {
			continue
		}
		if text == string(value) {
			return true
		}
		b := []byte(text)
		if !json.Valid(b) {
			continue
		}
		if canonical == nil {
			canonical = wire.Canonical(value)
		}
		if b = wire.Canonical(b); bytes.Equal(b, canonical) {
			return true
		}
		texts = append(texts, b)
	}
	if len(texts) == 0 {
		return true
	}
	inner, ok := wire.Get(canonical, "result")
	if !ok {
		return false
	}
	joined := append(append([]byte{'['}, bytes.Join(texts, []byte(","))...), ']')
	return bytes.Equal(inner, texts[0]) || bytes.Equal(inner, joined)
}

// jsonText reports whether a text looks like a JSON object or array.
func jsonText(s string) bool {
	s = strings.TrimSpace(s)
	return len(s) > 1 && (s[0] == '{' && s[len(s)-1] == '}' || s[0] == '[' && s[len(s)-1] == ']')
}
