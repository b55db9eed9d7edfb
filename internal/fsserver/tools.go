package fsserver

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// tool is one tool. Each is defined beside its code. Its schema and the check of its arguments are both made of params, so
// they agree.
type tool struct {
	name, title, description string
	params                   []param // in the order of the schema
	annotations              string  // JSON
	// output is the schema of structuredContent, JSON without its opening brace; when it is "", textOutput.
	output string
	// extraOutput: the reference server has no such output schema, and in compat mode it is textOutput.
	extraOutput bool
	// extra: the reference server has no such tool, and compat mode has none either.
	extra bool
	// writes: it changes files, and there is none where nothing may be changed.
	writes bool
	// refused says why a call of a tool that writes is refused whatever is there, before that is logged as done: by the
	// rights of the roots, or because of a name. Run looks again.
	refused func(*call) error
	// run returns the answer, or an error whose text is for the model.
	run func(*call) (answer, error)
}

// param is one parameter, or one member of an object in a parameter.
type param struct {
	name string
	schema
	required bool
	// extra: the reference server has no such parameter, and in compat mode it is ignored.
	extra bool
}

// schema is what a value has to be.
type schema struct {
	kind        string // of JSON Schema
	description string
	value       string   // the default, JSON
	least       int      // items of an array
	options     []string // of a string
	items       *schema  // of an array
	members     []param  // of an object
}

// Schemas that many parameters have.
var (
	aString  = schema{kind: "string"}
	aNumber  = schema{kind: "number"}
	aBoolean = schema{kind: "boolean", value: "false"}
	aList    = schema{kind: "array", value: "[]", items: &aString}
	aPath    = param{name: "path", schema: aString, required: true}
)

// says returns the schema with a description.
func (s schema) says(description string) schema {
	s.description = description
	return s
}

// Annotations.
const (
	readOnly = `{"readOnlyHint":true,"openWorldHint":false}`
	// textOutput is the output schema of every tool that answers with text alone.
	textOutput = `"type":"object","properties":{"content":{"type":"string"}},"required":["content"],"additionalProperties":false}`
	onlyWithin = "Only works within allowed directories."
)

// tools are all there are, in the order in which they are listed. Those that are not extra have the names, titles,
// parameters and annotations of the reference server's.
var tools = []*tool{
	&readFile, &readTextFile, &readMediaFile, &readMultipleFiles, &writeFile, &editFile, &createDirectory, &listDirectory,
	&listDirectoryWithSizes, &directoryTree, &moveFile, &searchFiles, &getFileInfo, &listAllowedDirectories,
	&readLines, &searchContent,
	&appendFile, &copyFile, &deletePath, &restorePath,
}

// toolsFor returns the tools that a server with these options has.
func toolsFor(o Options) []*tool {
	var list []*tool
	for _, t := range tools {
		if t.extra && o.Compat || t.writes && o.ReadOnly {
			continue
		}
		if o.Compat {
			c := *t
			c.params = withoutExtra(t.params)
			if t.extraOutput {
				c.output = ""
			}
			t = &c
		}
		list = append(list, t)
	}
	return list
}

// withoutExtra returns the parameters, and in them the members, that the reference server has too.
func withoutExtra(params []param) []param {
	var list []param
	for _, p := range params {
		if p.extra {
			continue
		}
		if p.items != nil && p.items.members != nil {
			items := *p.items
			items.members = withoutExtra(items.members)
			p.items = &items
		}
		list = append(list, p)
	}
	return list
}

// listTools returns the members of the result of tools/list.
func listTools(tools []*tool, era exchange.Era) string {
	b := []byte(`"tools":[`)
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = t.appendDefinition(b, era)
	}
	return string(append(b, ']'))
}

// appendDefinition appends the tool as tools/list has it. The handshake revisions get what the reference server says; the
// stateless one has no execution, and its schemas are of a newer draft, which reads these alike.
func (t *tool) appendDefinition(b []byte, era exchange.Era) []byte {
	draft, execution := `{"$schema":"http://json-schema.org/draft-07/schema#",`, `,"execution":{"taskSupport":"forbidden"}`
	if era == exchange.Modern {
		draft, execution = "{", ""
	}
	b = wire.AppendQuote(append(b, `{"name":`...), t.name)
	b = wire.AppendQuote(append(b, `,"title":`...), t.title)
	b = wire.AppendQuote(append(b, `,"description":`...), t.description)
	b = append(append(append(b, `,"inputSchema":`...), draft...), `"type":"object"`...)
	b = append(appendProperties(b, t.params), `},"annotations":`...)
	b = append(append(append(b, t.annotations...), execution...), `,"outputSchema":`...)
	output := t.output
	if output == "" {
		output = textOutput
	}
	return append(append(append(b, draft...), output...), '}')
}

func appendProperties(b []byte, params []param) []byte {
	b = append(b, `,"properties":{`...)
	var required []string
	for i, p := range params {
		if i > 0 {
			b = append(b, ',')
		}
		b = p.schema.append(append(wire.AppendQuote(b, p.name), ':'))
		if p.required {
			required = append(required, p.name)
		}
	}
	b = append(b, '}')
	if required != nil {
		b = append(append(b, `,"required":`...), quoteAll(required)...)
	}
	return b
}

func (s schema) append(b []byte) []byte {
	b = append(b, '{')
	if s.value != "" {
		b = append(append(append(b, `"default":`...), s.value...), ',')
	}
	if s.description != "" {
		b = append(wire.AppendQuote(append(b, `"description":`...), s.description), ',')
	}
	b = wire.AppendQuote(append(b, `"type":`...), s.kind)
	if s.options != nil {
		b = append(append(b, `,"enum":`...), quoteAll(s.options)...)
	}
	if s.least > 0 {
		b = strconv.AppendInt(append(b, `,"minItems":`...), int64(s.least), 10)
	}
	if s.items != nil {
		b = s.items.append(append(b, `,"items":`...))
	}
	if s.members != nil {
		b = appendProperties(b, s.members)
	}
	return append(b, '}')
}

// arguments are the arguments of a call that were found to be what the tool's schema says, as JSON, by name. One with a
// default has it when it was not given.
type arguments map[string][]byte

// check reads the arguments of a call. What the schema does not name is ignored. The error lists, in the reference
// server's words, everything that is wrong.
func (t *tool) check(value []byte) (arguments, error) {
	args := arguments{}
	var wrong []string
	switch kind := typeOf(value); kind {
	case "undefined", "null", "object":
		for _, p := range t.params {
			v, given := wire.Get(value, p.name)
			if !given && p.value != "" {
				v = []byte(p.value)
			}
			if v == nil && !p.required {
				continue
			}
			args[p.name] = v
			wrong = p.schema.check(wrong, v, p.name)
		}
	default:
		wrong = []string{"Invalid input: expected object, received " + kind}
	}
	if wrong != nil {
		if len(wrong) > maxFaults {
			wrong = append(wrong[:maxFaults], "…")
		}
		return nil, refuse(codeArguments, "MCP error -32602: Input validation error: Invalid arguments for tool %s: %s", t.name, strings.Join(wrong, "\n"))
	}
	return args, nil
}

// maxFaults is how many faults of the arguments of one call are told.
const maxFaults = 20

// check appends what is wrong with a value at a place in the arguments.
func (s schema) check(wrong []string, value []byte, place string) []string {
	if len(wrong) > maxFaults {
		return wrong
	}
	kind := typeOf(value)
	if kind == "number" {
		switch f, _ := strconv.ParseFloat(string(value), 64); {
		case f > math.MaxFloat64:
			kind = "Infinity"
		case f < -math.MaxFloat64:
			kind = "-Infinity"
		}
	}
	if s.options != nil && (kind != s.kind || !slices.Contains(s.options, unquote(value))) {
		return append(wrong, `Invalid option: expected one of "`+strings.Join(s.options, `"|"`)+`" at `+place)
	} else if kind != s.kind {
		return append(wrong, fmt.Sprintf("Invalid input: expected %s, received %s at %s", s.kind, kind, place))
	}
	n := 0
	if s.items != nil {
		for item := range wire.Items(value) {
			wrong = s.items.check(wrong, item, fmt.Sprintf("%s[%d]", place, n))
			n++
		}
	}
	if n < s.least {
		wrong = append(wrong, fmt.Sprintf("Too small: expected array to have >=%d items at %s", s.least, place))
	}
	for _, m := range s.members {
		if v, given := wire.Get(value, m.name); given || m.required {
			wrong = m.schema.check(wrong, v, place+"."+m.name)
		}
	}
	return wrong
}

func unquote(value []byte) string {
	if typeOf(value) != "string" {
		return ""
	}
	s, _ := wire.Unquote(value)
	return s
}

// text returns the text of an argument, "" when it was not given.
func (a arguments) text(name string) string { return unquote(a[name]) }

// number returns a number, 0 when it was not given.
func (a arguments) number(name string) float64 {
	f, _ := strconv.ParseFloat(string(a[name]), 64)
	return f
}

// is reports whether a boolean is true.
func (a arguments) is(name string) bool { return string(a[name]) == "true" }

// list returns the texts of an array.
func (a arguments) list(name string) []string {
	var list []string
	for item := range wire.Items(a[name]) {
		list = append(list, unquote(item))
	}
	return list
}

// typeOf names the type of a JSON value; nil is undefined.
func typeOf(value []byte) string {
	if len(value) == 0 {
		return "undefined"
	}
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}
