package pin

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/rootbound/rootbound/internal/unseen"
)

// schema compares JSON Schemas. Input says that they are of what a tool takes: there what is wider is dangerous. In those of
// what it answers only words are.
func (c *comparison) schema(path string, a, b any, input bool) {
	danger := func(why string) string {
		if input {
			return why
		}
		return ""
	}
	x, okA := object(a)
	y, okB := object(b)
	if !okA || !okB { // true, false, or nonsense
		c.add(path, a, b, danger(dangerSchema))
		return
	}
	if b == (absent{}) {
		c.add(path, a, b, danger(dangerWider))
		return
	}
	if a == (absent{}) {
		x = map[string]any{}
	}
	c.members(path, x, y, func(path, name string, a, b any) {
		switch name {
		case "title", "description", "$comment":
			c.text(path, a, b)
		case "$schema", "$id", "examples", "deprecated", "readOnly", "writeOnly", "contentMediaType", "contentEncoding":
			c.add(path, a, b, "")
		case "properties", "patternProperties":
			c.objects(path, a, b, danger(dangerSchema), func(path, _ string, a, b any) {
				switch {
				case a == (absent{}):
					c.add(path, a, b, danger(dangerParameter))
				case b == (absent{}):
					c.add(path, a, b, "")
				default:
					c.schema(path, a, b, input)
				}
			})
		case "$defs", "definitions", "dependentSchemas":
			c.objects(path, a, b, danger(dangerSchema), func(path, _ string, a, b any) {
				if a == (absent{}) || b == (absent{}) {
					c.add(path, a, b, "") // what refers to it changes as well
					return
				}
				c.schema(path, a, b, input)
			})
		case "items", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "additionalProperties":
			switch {
			case a != (absent{}) && b != (absent{}) && isObject(a) && isObject(b):
				c.schema(path, a, b, input && name != "not" && name != "if")
				if name == "not" || name == "if" {
					c.add(path, a, b, danger(dangerSchema))
				}
			case a == (absent{}) && b == true, a == true && b == (absent{}):
				c.add(path, a, b, "")
			case b == false && name != "not" && name != "if", a == (absent{}) && name != "if" && name != "then" && name != "else":
				c.add(path, a, b, "")
			default:
				c.add(path, a, b, danger(dangerWider))
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			c.alternatives(path, a, b, input, name == "anyOf" || name == "oneOf")
		case "required":
			more := false
			for _, v := range list(b) {
				more = more || !contains(list(a), v)
			}
			if more {
				c.add(path, a, b, danger(dangerRequired))
				return
			}
			c.add(path, a, b, "")
		case "default":
			if b == (absent{}) {
				c.add(path, a, b, "")
				return
			}
			c.add(path, a, b, danger(dangerDefault))
		case "enum", "type":
			c.add(path, a, b, danger(widened(a, b)))
		case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains":
			c.add(path, a, b, danger(bound(a, b, 1)))
		case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains":
			c.add(path, a, b, danger(bound(a, b, -1)))
		case "const", "pattern", "format", "multipleOf", "uniqueItems", "dependentRequired":
			if a == (absent{}) {
				c.add(path, a, b, "") // it takes less
				return
			}
			c.add(path, a, b, danger(dangerWider))
		default:
			c.add(path, a, b, danger(dangerSchema))
		}
	})
}

// alternatives compares lists of schemas: one by one, or where one got shorter or longer, by what is left or was there.
func (c *comparison) alternatives(path string, a, b any, input, widens bool) {
	x, y := list(a), list(b)
	danger := ""
	switch {
	case !input:
	case a == (absent{}) || b == (absent{}):
		danger = dangerSchema
	case len(x) == len(y):
	case widens && !all(x, y), !widens && !all(y, x):
		danger = dangerWider
	}
	if len(x) != len(y) || danger != "" {
		c.add(path, a, b, danger)
		return
	}
	for i := range x {
		if encoded(x[i]) != encoded(y[i]) {
			c.schema(path+"["+strconv.Itoa(i)+"]", x[i], y[i], input)
		}
	}
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// list returns the elements of a list, or what is no list as the only one.
func list(v any) []any {
	switch v := v.(type) {
	case absent:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

func contains(list []any, v any) bool {
	return slices.ContainsFunc(list, func(e any) bool { return encoded(e) == encoded(v) })
}

// all reports whether every element of some is in a list.
func all(list, some []any) bool {
	return !slices.ContainsFunc(some, func(v any) bool { return !contains(list, v) })
}

// widened compares lists of what is taken; none takes everything.
func widened(a, b any) string {
	if a == (absent{}) {
		return ""
	}
	if b == (absent{}) {
		return dangerWider
	}
	for _, v := range list(b) {
		if !contains(list(a), v) && !(encoded(v) == `"integer"` && contains(list(a), "number")) {
			return dangerWider
		}
	}
	return ""
}

// bound compares bounds: sign is 1 for an upper one and -1 for a lower one.
func bound(a, b any, sign float64) string {
	number := func(v any) (float64, bool) {
		n, ok := v.(json.Number)
		if !ok {
			return 0, false
		}
		f, err := n.Float64()
		return f * sign, err == nil
	}
	x, okA := number(a)
	y, okB := number(b)
	switch {
	case a == (absent{}), okA && okB && y <= x:
		return ""
	}
	return dangerWider
}

// visible is a text of a server in which nothing is left that is not seen.
func visible(s string) string { return strings.ToValidUTF8(unseen.Visible(blanks.Replace(s)), "�") }
