package fsserver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// tool is one tool. Its schema and the check of its arguments are both made of params, so they agree.
type tool struct {
	name, title, description string
	params                   []param // in the order of the schema
	annotations              string  // JSON
	// run returns the answer's text, or an error whose text is for the model.
	run func(*call) (string, error)
}

// param is one parameter.
type param struct {
	name        string
	kind        string // of JSON Schema
	description string
	required    bool
}

const (
	readOnly = `{"readOnlyHint":true,"openWorldHint":false}`
	// textOutput is the output schema of every tool that answers with text.
	textOutput = `"type":"object","properties":{"content":{"type":"string"}},"required":["content"],"additionalProperties":false}`
	onlyWithin = "Only works within allowed directories."
)

// tools are all there are, in the order in which they are listed. They have the names, titles, parameters and
// annotations of the reference server's.
var tools = []*tool{
	{
		name:  "read_text_file",
		title: "Read Text File",
		description: "Read a file as text, whole or in part. It is read as UTF-8 whatever its name is, and bytes that are not UTF-8 " +
			"come as U+FFFD. With 'head' only the first lines are read, with 'tail' only the last ones; give one of them for a file " +
			"that is large. " + onlyWithin,
		params: []param{
			{name: "path", kind: "string", required: true},
			{name: "tail", kind: "number", description: "Read only this many lines at the end of the file"},
			{name: "head", kind: "number", description: "Read only this many lines at the beginning of the file"},
		},
		annotations: readOnly,
		run:         readTextFile,
	},
	{
		name:  "list_directory",
		title: "List Directory",
		description: "List what is in a directory, one name a line, with [DIR] before the name of a directory and [FILE] before every " +
			"other. What is in its subdirectories is not listed. A name that cannot be written as text comes as a file:// URI, which " +
			"every tool takes as a path. " + onlyWithin,
		params:      []param{{name: "path", kind: "string", required: true}},
		annotations: readOnly,
		run:         listDirectory,
	},
	{
		name:  "list_allowed_directories",
		title: "List Allowed Directories",
		description: "List the directories that this server may reach; everything beneath them can be reached too. Use it first, to " +
			"know which paths the other tools take.",
		annotations: readOnly,
		run:         listAllowedDirectories,
	},
}

// The members of the results of tools/list.
var legacyTools, modernTools = listTools(exchange.Legacy), listTools(exchange.Modern)

func listTools(era exchange.Era) string {
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
	schema, execution := `{"$schema":"http://json-schema.org/draft-07/schema#",`, `,"execution":{"taskSupport":"forbidden"}`
	if era == exchange.Modern {
		schema, execution = "{", ""
	}
	b = wire.AppendQuote(append(b, `{"name":`...), t.name)
	b = wire.AppendQuote(append(b, `,"title":`...), t.title)
	b = wire.AppendQuote(append(b, `,"description":`...), t.description)
	b = append(append(append(b, `,"inputSchema":`...), schema...), `"type":"object","properties":{`...)
	var required []string
	for i, p := range t.params {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(wire.AppendQuote(b, p.name), ":{"...)
		if p.description != "" {
			b = append(wire.AppendQuote(append(b, `"description":`...), p.description), ',')
		}
		b = append(wire.AppendQuote(append(b, `"type":`...), p.kind), '}')
		if p.required {
			required = append(required, p.name)
		}
	}
	b = append(b, '}')
	if required != nil {
		b = append(append(b, `,"required":`...), quoteAll(required)...)
	}
	b = append(append(b, `},"annotations":`...), t.annotations...)
	b = append(append(b, execution...), `,"outputSchema":`...)
	return append(append(append(b, schema...), textOutput...), '}')
}

func findTool(name string) *tool {
	if i := slices.IndexFunc(tools, func(t *tool) bool { return t.name == name }); i >= 0 {
		return tools[i]
	}
	return nil
}

// arguments are the arguments of a call that were found to be what the tool's schema says, as JSON, by name.
type arguments map[string][]byte

// check reads the arguments of a call. What the schema does not name is ignored. The error lists, in the reference
// server's words, everything that is wrong.
func (t *tool) check(value []byte) (arguments, error) {
	const prefix = "MCP error -32602: Input validation error: Invalid arguments for tool "
	args := arguments{}
	switch kind := typeOf(value); kind {
	case "undefined", "null", "object":
	default:
		return nil, refusal(prefix + t.name + ": Invalid input: expected object, received " + kind)
	}
	var wrong []string
	for _, p := range t.params {
		v, given := wire.Get(value, p.name)
		if !given && !p.required {
			continue
		}
		if kind := typeOf(v); kind != p.kind {
			wrong = append(wrong, fmt.Sprintf("Invalid input: expected %s, received %s at %s", p.kind, kind, p.name))
			continue
		}
		args[p.name] = v
	}
	if wrong != nil {
		return nil, refusal(prefix + t.name + ": " + strings.Join(wrong, "\n"))
	}
	return args, nil
}

// text returns the text of an argument, "" when it was not given.
func (a arguments) text(name string) string {
	if a[name] == nil {
		return ""
	}
	s, _ := wire.Unquote(a[name])
	return s
}

// number returns a number, 0 when it was not given. One that is too large for a float64 is infinite.
func (a arguments) number(name string) float64 {
	f, _ := strconv.ParseFloat(string(a[name]), 64)
	return f
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
