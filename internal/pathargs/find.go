package pathargs

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// Why says why a string counts as a path, or why it does not.
type Why uint8

const (
	ByRule  Why = iota + 1 // the configuration says so
	ByName                 // the argument's name, or its schema's format
	ByShape                // it looks like one, and something of it is on this machine
	ByURI                  // it is a "file:" URI

	NotByRule    // the configuration says that it is none
	NotFree      // the argument's name speaks of text
	NotHere      // the server's paths are not of this machine
	NotAddress   // it is an address of another scheme
	NotShaped    // neither its name nor its shape say that it is one
	NotOnMachine // it has the shape of a path of which nothing is on this machine
	NotPossible  // it is too long to be one
)

// Judged reports whether a string with this reason is judged.
func (w Why) Judged() bool { return w >= ByRule && w < NotByRule }

func (w Why) String() string {
	return [...]string{
		"", "by rule", "by name", "by shape", "by URI",
		"not by rule", "free text", "paths are elsewhere", "an address", "not shaped like a path",
		"nothing of it is on this machine", "too long for a path",
	}[w]
}

// Argument is a string in a request that is a path, may be one, or looks a little like one.
type Argument struct {
	// Pointer says where it is: a JSON pointer below the arguments of a tool or prompt, else below params.
	Pointer string
	// Key is set when it is the name of the member at Pointer.
	Key bool
	// Value is the string. What is not judged is cut after 256 bytes.
	Value string
	// Why says why it counts, or why not. A ByShape still has to be looked for on this machine, which Judge does.
	Why Why
	// Need is what the request does there.
	Need roots.Access

	uri    bool // it is used as a URI, never as a path
	plural bool // it may be several in one string
}

const (
	maxJudged   = 10_000 // paths in one request
	maxDepth    = 1_000  // levels of nesting
	maxUnjudged = 32     // strings that are told of without being judged
)

// ErrTooMuch is Find's answer to a request that nobody would write: it cannot be judged in reasonable time.
var ErrTooMuch = errors.New("more paths, or deeper ones, than can be judged")

// Judges reports whether requests of this method carry paths.
func Judges(method string) bool {
	switch method {
	case "tools/call", "prompts/get", "completion/complete", "resources/read", "resources/subscribe", "subscriptions/listen":
		return true
	}
	return false
}

// Find returns the strings of a request that are paths, or may be, or look a little like one, in their order. Params must
// be valid JSON without duplicate names; catalog may be nil. Names that a decoder which ignores case takes for one it
// knows count too.
func Find(method string, params []byte, catalog *Catalog, rules Rules) ([]Argument, error) {
	f := finder{rules: rules}
	switch method {
	case "tools/call":
		f.name = text(params, "name")
		f.tool = catalog.tool(f.name)
		for v := range called(params, "arguments") {
			f.value(v, nil, name{}, f.tool.input())
		}
	case "prompts/get":
		f.name = text(params, "name")
		for v := range called(params, "arguments") {
			f.value(v, nil, name{}, schema{})
		}
	case "completion/complete":
		f.completion(params)
	case "resources/read", "resources/subscribe":
		for v := range called(params, "uri") {
			f.value(v, []string{"uri"}, name{kind: kindURL}, schema{})
		}
	case "subscriptions/listen":
		for v := range called(params, "notifications") {
			for uris := range called(v, "resourcesubscriptions") {
				f.value(uris, []string{"notifications", "resourceSubscriptions"}, name{kind: kindURL}, schema{})
			}
		}
	}
	if f.tooMuch {
		return nil, ErrTooMuch
	}
	return f.found, nil
}

// called yields the members with a name as a decoder may read it.
func called(object []byte, name string) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for n, v := range wire.Members(object) {
			if fold(n) == name && !yield(v) {
				return
			}
		}
	}
}

func text(object []byte, name string) string {
	if s := wire.GetString(object, name); s != "" {
		return s
	}
	for v := range called(object, name) {
		if s, ok := str(v); ok {
			return s
		}
	}
	return ""
}

func str(v []byte) (string, bool) {
	if len(v) == 0 || v[0] != '"' {
		return "", false
	}
	s, err := wire.Unquote(v)
	return s, err == nil
}

type finder struct {
	rules    Rules
	name     string // of the tool or prompt
	tool     *tool
	found    []Argument
	judged   int
	unjudged int
	tooMuch  bool
}

// completion judges what is being typed by the name of its argument, what was typed before, and a resource that is named
// without being a template.
func (f *finder) completion(params []byte) {
	for ref := range called(params, "ref") {
		f.name = text(ref, "name")
		for v := range called(ref, "uri") {
			if s, ok := str(v); ok && !strings.Contains(s, "{") {
				f.value(v, []string{"ref", "uri"}, name{kind: kindURL}, schema{})
			}
		}
	}
	for argument := range called(params, "argument") {
		for v := range called(argument, "value") {
			at := []string{"argument", "value"}
			f.value(v, at, understand(text(argument, "name")), schema{})
		}
	}
	for context := range called(params, "context") {
		for v := range called(context, "arguments") {
			f.value(v, []string{"context", "arguments"}, name{}, schema{})
		}
	}
}

// value walks a JSON value. Its name is that of the member it is, or that it is in as an element.
func (f *finder) value(v []byte, at []string, n name, s schema) {
	if len(at) > maxDepth || f.judged > maxJudged {
		f.tooMuch = true
	}
	if len(v) == 0 || f.tooMuch {
		return
	}
	switch v[0] {
	case '"':
		f.str(v, at, n, s)
	case '[':
		i := 0
		for item := range wire.Items(v) {
			f.value(item, append(at, strconv.Itoa(i)), n, s.item(i))
			i++
		}
	case '{':
		keys := s.keys().format()
		for key, item := range wire.Members(v) {
			at := append(at, key)
			inner, named := s.member(key)
			in := understand(key)
			if !named && f.key(key, at, n, keys) {
				in = name{kind: kindFree} // what a file named so is to hold
			}
			f.value(item, at, in, inner)
		}
	}
}

// key judges a member's name, which is a path in maps of files, and reports whether it is one.
func (f *finder) key(key string, at []string, of name, format kind) bool {
	n := name{}
	if format == kindPath || of.kind == kindPath && strings.ContainsAny(key, `/\.`) {
		n.kind = kindPath
	}
	why := f.why(key, n, unlisted)
	if !why.Judged() {
		return false
	}
	f.add(Argument{Key: true, Value: key, Why: why}, at)
	return true
}

func (f *finder) str(v []byte, at []string, n name, s schema) {
	l := f.rules.lists(f.name, at)
	if n.kind == kindFree && l != listedPath && len(v) > 6*maxShaped {
		return // a file's content: nothing that long is told of either
	}
	if n.kind == kindFree && l == unlisted && manyLines(v) && s.format() != kindPath && s.format() != kindURL && !s.structured() {
		return // nor of several lines, however short
	}
	value, ok := str(v)
	if !ok || value == "" {
		return
	}
	if n.kind != kindPath {
		switch k := s.format(); {
		case k == kindPath:
			n.kind = k
		case k == kindURL && (n.kind == kindOther || n.kind == kindFree):
			n.kind = k
		case k == kindFree && n.kind == kindOther:
			n.kind = k
		}
	}
	why := f.why(value, n, l)
	f.add(Argument{Value: value, Why: why, uri: n.kind == kindURL, plural: n.plural}, at)

	// A list or an object that a client sent as text, where one is expected.
	if c := value[0]; (c == '[' || c == '{') && (n.kind == kindPath || s.structured()) && valid(value) {
		f.value([]byte(value), at, n, s)
	}
}

// manyLines reports whether a JSON string has a line end in it that is written as it mostly is.
func manyLines(quoted []byte) bool {
	for {
		i := bytes.IndexByte(quoted, '\\')
		if i < 0 || i+1 == len(quoted) {
			return false
		}
		if c := quoted[i+1]; c == 'n' || c == 'r' {
			return true
		}
		quoted = quoted[i+2:]
	}
}

func (f *finder) add(a Argument, at []string) {
	if !a.Why.Judged() {
		switch {
		case a.Why == NotShaped && !looksLike(a.Value), a.Why == NotFree && !shaped(a.Value), f.unjudged == maxUnjudged:
			return
		}
		f.unjudged++
		if len(a.Value) > 256 {
			a.Value = strings.ToValidUTF8(a.Value[:256], "")
		}
	} else {
		f.judged++
		argument := ""
		for _, e := range at { // the last member's name; that of a key says nothing about what is done there
			if !isIndex(e) && !(a.Key && e == at[len(at)-1]) {
				argument = e
			}
		}
		a.Need = need(f.name, f.tool, argument)
	}
	a.Pointer = wire.Pointer(at...)
	f.found = append(f.found, a)
}

// why decides. The order matters: what is listed, then what a server elsewhere can mean here, then names, then shapes.
func (f *finder) why(s string, n name, l listed) Why {
	switch {
	case l == listedPath:
		return ByRule
	case l == listedNot:
		return NotByRule
	case n.kind == kindFree:
		return NotFree
	}
	uri := isFileURI(s)
	switch {
	case f.rules.Where == Elsewhere:
		switch {
		case uri && (n.kind != kindOther || shaped(s)):
			return ByURI
		case beginsAtHome(s) && (n.kind == kindPath || shaped(s)):
			return ByShape
		}
		return NotHere
	case uri && (n.kind == kindPath || n.kind == kindURL || n.kind == kindAmbiguous && oneLine(s)):
		return ByURI
	case isAddress(s) && (n.kind != kindPath || !climbs(s)):
		return NotAddress
	case n.kind == kindPath:
		return ByName
	case n.kind == kindAmbiguous && oneLine(s) && (shaped(s) || f.rules.Filesystem):
		return ByName
	case shaped(s):
		return ByShape
	}
	return NotShaped
}
