package streamable

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rootbound/rootbound/internal/wire"
)

// Names of headers, in the spelling of http.Header's keys.
const (
	headerVersion   = "Mcp-Protocol-Version"
	headerSession   = "Mcp-Session-Id"
	headerLastEvent = "Last-Event-Id"
	headerMethod    = "Mcp-Method"
	headerName      = "Mcp-Name"
	paramPrefix     = "Mcp-Param-"
)

// JSON-RPC error codes of the stateless era that go with the status 400.
const (
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// A value that a header cannot hold as it is stands in it as base64 between these.
const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// encodeValue makes a header value of text.
func encodeValue(text string) string {
	encoded := strings.HasPrefix(text, encodedPrefix) && strings.HasSuffix(text, encodedSuffix)
	if !encoded && plain(text) && strings.Trim(text, " \t") == text {
		return text
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(text)) + encodedSuffix
}

// decodeValue returns the text that a header value stands for.
func decodeValue(value string) (string, error) {
	if !plain(value) {
		return "", errors.New("it has characters that a header must not have")
	}
	rest, ok := strings.CutPrefix(value, encodedPrefix)
	if !ok || !strings.HasSuffix(rest, encodedSuffix) {
		return value, nil
	}
	b, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSuffix(rest, encodedSuffix))
	if err != nil {
		return "", errors.New("it is not base64")
	}
	if !utf8.Valid(b) {
		return "", errors.New("it is not UTF-8")
	}
	return string(b), nil
}

// plain reports whether a header can hold s.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '\t' && (c < ' ' || c > '~') {
			return false
		}
	}
	return true
}

// mirrored returns what Mcp-Name says of a request, and whether it says anything.
func mirrored(m *wire.Message) (string, bool) {
	var name string
	switch method := m.Method(); {
	case method == "tools/call", method == "prompts/get":
		name = "name"
	case method == "resources/read":
		name = "uri"
	case method == "tasks/get", method == "tasks/update", method == "tasks/cancel":
		name = "taskId"
	default:
		return "", false
	}
	v, ok := wire.Get(m.Params(), name)
	if !ok || v[0] != '"' {
		return "", false
	}
	s, err := wire.Unquote(v)
	return s, err == nil
}

// one returns the value of a header, and whether it is there. Several that differ are none that could be relied on.
func one(h http.Header, name string) (value string, ok bool, err error) {
	values := h[name]
	if len(values) == 0 {
		return "", false, nil
	}
	for _, v := range values[1:] {
		if v != values[0] {
			return "", true, fmt.Errorf("the header %s is there more than once", name)
		}
	}
	return values[0], true, nil
}

// param is an argument of a tool that is mirrored into a header.
type param struct {
	header string // the header's key
	path   []string
}

const (
	annotation = "x-mcp-header"
	// maxSchemaDepth is how deep a schema with annotations may be.
	maxSchemaDepth = 64
)

// mirroredParams reads from a tool's input schema which arguments are mirrored. A schema that says so in a way that it must
// not is an error: its tool cannot be called over HTTP.
func mirroredParams(schema []byte) ([]param, error) {
	if !bytes.Contains(schema, []byte(annotation)) {
		return nil, nil
	}
	var params []param
	seen := map[string]bool{}
	var walk func(schema []byte, path []string, reachable bool, depth int) error
	walk = func(schema []byte, path []string, reachable bool, depth int) error {
		if len(schema) == 0 || schema[0] != '{' && schema[0] != '[' {
			return nil
		}
		if depth > maxSchemaDepth {
			return errors.New("its schema is nested too deeply")
		}
		if schema[0] == '[' {
			for item := range wire.Items(schema) {
				if err := walk(item, nil, false, depth+1); err != nil {
					return err
				}
			}
			return nil
		}
		for key, v := range wire.Members(schema) {
			var err error
			switch key {
			case annotation:
				var p param
				if p, err = newParam(schema, v, path, reachable); err == nil {
					if seen[p.header] {
						return fmt.Errorf("two arguments are mirrored into %s", p.header)
					}
					seen[p.header] = true
					params = append(params, p)
				}
			case "properties":
				for name, v := range wire.Members(v) {
					if err := walk(v, append(path[:len(path):len(path)], name), reachable, depth+1); err != nil {
						return err
					}
				}
			case "default", "examples", "enum", "const":
			default:
				err = walk(v, nil, false, depth+1)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(bytes.TrimSpace(schema), nil, true, 0); err != nil {
		return nil, err
	}
	return params, nil
}

func newParam(schema, name []byte, path []string, reachable bool) (param, error) {
	text, err := wire.Unquote(name)
	switch {
	case err != nil || name[0] != '"' || !token(text):
		return param{}, fmt.Errorf("%s is not a name that a header can have: %.100q", annotation, name)
	case !reachable || len(path) == 0:
		return param{}, fmt.Errorf("%s %q does not stand at a property that always has one place", annotation, text)
	}
	switch t := wire.GetString(schema, "type"); t {
	case "string", "integer", "boolean":
	default:
		return param{}, fmt.Errorf("%s %q stands at an argument that is no string, integer or boolean", annotation, text)
	}
	return param{header: http.CanonicalHeaderKey(paramPrefix + text), path: path}, nil
}

// token reports whether s can be part of a header's name.
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// value returns the text that stands for the argument in its header, before it is encoded, and whether there is one: nothing
// stands for an argument that is missing, null, or of another kind.
func (p param) value(arguments []byte) (string, bool) {
	v, ok := wire.Get(arguments, p.path...)
	if !ok {
		return "", false
	}
	switch v[0] {
	case '"':
		s, err := wire.Unquote(v)
		return s, err == nil
	case 't', 'f':
		return string(v), true
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if n, ok := integer(string(v)); ok {
			return strconv.FormatInt(n, 10), true
		}
	}
	return "", false
}

// integer reads a number that is one in JavaScript too.
func integer(s string) (int64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.Trim(s, "0123456789+-.eE") != "" || f != math.Trunc(f) || math.Abs(f) > 1<<53-1 {
		return 0, false
	}
	return int64(f), true
}

// check compares a call's arguments with its headers.
func (p param) check(h http.Header, arguments []byte) error {
	want, wanted := p.value(arguments)
	value, ok, err := one(h, p.header)
	switch {
	case err != nil:
		return err
	case !ok && !wanted:
		return nil
	case !ok:
		return fmt.Errorf("the header %s is missing", p.header)
	case !wanted:
		return fmt.Errorf("the header %s is there, and its argument is not", p.header)
	}
	got, err := decodeValue(value)
	if err != nil {
		return fmt.Errorf("reading the header %s: %w", p.header, err)
	}
	if got == want {
		return nil
	}
	v, _ := wire.Get(arguments, p.path...)
	if n, ok := integer(got); ok && v[0] != '"' && strconv.FormatInt(n, 10) == want {
		return nil
	}
	return fmt.Errorf("the header %s does not say what its argument says", p.header)
}
