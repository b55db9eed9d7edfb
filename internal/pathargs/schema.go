package pathargs

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rootbound/rootbound/internal/wire"
)

// Catalog knows the tools of one server, as it listed them. The zero value knows none. It is safe for concurrent use.
type Catalog struct{ tools wire.Listed[*tool] }

// Learn takes a result of tools/list; the cursor is that of the request.
func (c *Catalog) Learn(cursor string, result []byte) {
	list, ok := wire.Get(result, "tools")
	if !ok {
		return
	}
	page := map[string]*tool{}
	for t := range wire.Items(list) {
		if name := wire.GetString(t, "name"); name != "" {
			page[name] = newTool(t)
		}
	}
	c.tools.Learn(cursor, page, wire.GetString(result, "nextCursor"))
}

func (c *Catalog) tool(name string) *tool {
	if c == nil {
		return nil
	}
	t, _ := c.tools.Get(name)
	return t
}

// tool is what a server says about one of its tools.
type tool struct {
	readOnly *bool // nil when it does not say
	raw      []byte
	once     sync.Once
	schema   schema
}

func newTool(object []byte) *tool {
	t := &tool{}
	if v, ok := wire.Get(object, "annotations", "readOnlyHint"); ok && (string(v) == "true" || string(v) == "false") {
		yes := string(v) == "true"
		t.readOnly = &yes
	}
	if v, ok := wire.Get(object, "inputSchema"); ok {
		t.raw = slices.Clone(v)
	}
	return t
}

// input returns the schema of the arguments.
func (t *tool) input() schema {
	if t == nil {
		return schema{}
	}
	t.once.Do(func() {
		var root any
		d := json.NewDecoder(bytes.NewReader(t.raw))
		d.UseNumber()
		if d.Decode(&root) == nil {
			t.schema = expand(root, []any{root})
		}
	})
	return t.schema
}

// schema is what may be said about one value: the nodes of a JSON Schema that apply, all alternatives together.
type schema struct {
	root  any
	nodes []map[string]any
}

// maxNodes bounds what a schema that refers to itself in many ways can make of us.
const maxNodes = 64

// expand follows references and takes every alternative.
func expand(root any, from []any) schema {
	s := schema{root: root}
	todo := from
	seen := make(map[string]bool)
	for len(todo) > 0 && len(s.nodes) < maxNodes {
		node, ok := todo[0].(map[string]any)
		todo = todo[1:]
		if !ok {
			continue
		}
		s.nodes = append(s.nodes, node)
		if ref, ok := node["$ref"].(string); ok && !seen[ref] {
			seen[ref] = true
			todo = append(todo, resolve(root, ref))
		}
		for _, k := range []string{"anyOf", "oneOf", "allOf"} {
			if list, ok := node[k].([]any); ok {
				todo = append(todo, list...)
			}
		}
		for _, k := range []string{"if", "then", "else"} {
			todo = append(todo, node[k])
		}
	}
	return s
}

// resolve finds what a reference inside the same document points to.
func resolve(root any, ref string) any {
	ref, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	node := root
	for e := range strings.SplitSeq(strings.TrimPrefix(ref, "/"), "/") {
		if e == "" {
			continue
		}
		switch n := node.(type) {
		case map[string]any:
			node = n[wire.PointerName(e)]
		case []any:
			i, err := strconv.Atoi(e)
			if err != nil || i < 0 || i >= len(n) {
				return nil
			}
			node = n[i]
		default:
			return nil
		}
	}
	return node
}

// member returns the schema of a member, and whether it is one that the schema names.
func (s schema) member(name string) (m schema, named bool) {
	var next []any
	for _, n := range s.nodes {
		if p, ok := n["properties"].(map[string]any); ok {
			if v, ok := p[name]; ok {
				next, named = append(next, v), true
			}
		}
	}
	if !named {
		for _, n := range s.nodes {
			if p, ok := n["patternProperties"].(map[string]any); ok {
				for _, v := range p {
					next = append(next, v)
				}
			}
			next = append(next, n["additionalProperties"])
		}
	}
	return expand(s.root, next), named
}

// item returns the schema of an element.
func (s schema) item(i int) schema {
	var next []any
	for _, n := range s.nodes {
		if p, ok := n["prefixItems"].([]any); ok && i < len(p) {
			next = append(next, p[i])
		}
		if list, ok := n["items"].([]any); ok { // before 2020-12
			if i < len(list) {
				next = append(next, list[i])
			}
		} else {
			next = append(next, n["items"])
		}
	}
	return expand(s.root, next)
}

// keys returns the schema of the names of the members.
func (s schema) keys() schema {
	var next []any
	for _, n := range s.nodes {
		next = append(next, n["propertyNames"])
	}
	return expand(s.root, next)
}

// structured reports whether an array or an object is expected.
func (s schema) structured() bool {
	return slices.ContainsFunc(s.nodes, func(n map[string]any) bool {
		list, ok := n["type"].([]any)
		if !ok {
			list = []any{n["type"]}
		}
		return slices.Contains(list, any("array")) || slices.Contains(list, any("object"))
	})
}

var (
	pathFormats = set{words: "path path-reference file file-path filepath file_path filename file-name directory directory-path dir folder local-path"}
	uriFormats  = set{words: "uri uri-reference iri iri-reference url"}
)

// format returns what the formats say.
func (s schema) format() kind {
	k := kindOther
	for _, n := range s.nodes {
		switch f, _ := n["format"].(string); {
		case pathFormats.has(strings.ToLower(f)):
			return kindPath
		case uriFormats.has(strings.ToLower(f)):
			k = kindURL
		}
		if _, ok := n["contentEncoding"]; ok && k == kindOther {
			k = kindFree
		}
	}
	return k
}
