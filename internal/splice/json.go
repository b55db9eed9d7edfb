package splice

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

func (d *Doc) parseJSON() {
	if at, deep := d.tooDeep(); deep {
		d.fault(d.errorf(at, "nested more than %d levels deep", maxDepth))
		return
	}
	// hujson keeps slices of what it is given, and wants a line end behind a comment.
	v, err := hujson.Parse(append(bytes.Clone(d.text), '\n'))
	if err != nil {
		d.fault(d.jsonFault(err))
		return
	}
	if d.format != JSONC && !v.IsStandard() {
		d.extras()
	}
	d.root = d.jsonValue(&v, &locator{text: d.text, pos: Pos{1, 1}})
}

// jsonFault says where and what the parser's error is.
func (d *Doc) jsonFault(err error) *Error {
	var line, column int
	if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); scanErr != nil {
		return d.errorf(0, "%v", err)
	}
	at := d.offset(line, column)
	if fault := errors.Unwrap(err); !strings.HasPrefix(fault.Error(), "invalid literal") {
		return d.errorf(at, "%v", fault)
	}
	at, msg, kind := d.literalFault(at)
	e := d.errorf(at, "%s", msg)
	e.Fault = kind
	return e
}

// literal is what a literal says. Most strings are written as they read.
func literal(l hujson.Literal) string {
	if len(l) > 1 && l[0] == '"' && bytes.IndexByte(l, '\\') < 0 && utf8.Valid(l) {
		return string(l[1 : len(l)-1])
	}
	return l.String()
}

func (d *Doc) jsonValue(v *hujson.Value, at *locator) *Value {
	out := &Value{start: v.StartOffset, end: v.EndOffset, Pos: at.of(v.StartOffset)}
	switch t := v.Value.(type) {
	case *hujson.Object:
		out.Kind = ObjectKind
		var seen map[string]int // of objects that are so large that it pays
		if len(t.Members) > 16 {
			seen = make(map[string]int, len(t.Members))
		}
		out.Members, out.pairs = make([]Member, 0, len(t.Members)), make([]pair, 0, len(t.Members))
		for i := range t.Members {
			m := &t.Members[i]
			name := literal(m.Name.Value.(hujson.Literal))
			pos := at.of(m.Name.StartOffset)
			value := d.jsonValue(&m.Value, at)
			i, twice := seen[name]
			if seen == nil {
				i = out.index(name)
				twice = i >= 0
			}
			if twice {
				d.fault(twiceGiven(name, out.Members[i].Pos, pos))
				out.Members[i] = Member{Name: name, Value: value, Pos: pos}
				continue
			}
			if seen != nil {
				seen[name] = len(out.Members)
			}
			out.Members = append(out.Members, Member{Name: name, Value: value, Pos: pos})
			out.pairs = append(out.pairs, pair{keys: []string{name}, start: m.Name.StartOffset, end: value.end})
		}
	case *hujson.Array:
		out.Kind = ArrayKind
		out.Items = make([]*Value, 0, len(t.Elements))
		for i := range t.Elements {
			out.Items = append(out.Items, d.jsonValue(&t.Elements[i], at))
		}
	case hujson.Literal:
		out.Text = literal(t)
		switch t.Kind() {
		case '"':
			out.Kind = StringKind
		case '0':
			out.Kind = NumberKind
		case 'n':
			out.Kind = NullKind
		default:
			out.Kind = BoolKind
		}
	}
	return out
}

func twiceGiven(name string, first, second Pos) *Error {
	return &Error{Pos: second, Msg: fmt.Sprintf("%q is given twice, first on line %d", name, first.Line), Fault: Twice}
}

// literalFault says what is wrong with the literal at n, without repeating it: it may be a secret.
func (d *Doc) literalFault(n int) (at int, msg string, kind Fault) {
	if d.text[n] != '"' {
		return n, "this is neither a number nor true, false or null", 0
	}
	for i := n + 1; i < len(d.text) && d.text[i] != '"'; i++ {
		switch c := d.text[i]; {
		case c < ' ':
			return i, fmt.Sprintf("the character %q has to be written as an escape in a string", rune(c)), 0
		case c == '\\':
			i++
			if i < len(d.text) && !strings.ContainsRune(`"\/bfnrtu`, rune(d.text[i])) {
				return i - 1, "this is no escape of JSON: a backslash itself is written twice", Escape
			}
		}
	}
	return n, "there is a bad \\u escape in this string", Escape
}

// tooDeep finds nesting that would be too much for a parser that calls itself.
func (d *Doc) tooDeep() (at int, deep bool) {
	depth := 0
	for i := 0; i < len(d.text); {
		switch c := d.text[i]; c {
		case '"':
			for i++; i < len(d.text) && d.text[i] != '"'; i++ {
				if d.text[i] == '\\' {
					i++
				}
			}
			i++
		case '/':
			i = max(i+1, d.skipComment(i))
		case '{', '[':
			if depth++; depth > maxDepth {
				return i, true
			}
			i++
		case '}', ']':
			depth--
			i++
		default:
			i++
		}
	}
	return 0, false
}

// extras finds the comments and trailing commas of a text that is valid with them, as far as the format has none.
func (d *Doc) extras() {
	at := &locator{text: d.text, pos: Pos{1, 1}}
	comma := -1 // the last comma, as long as nothing but comments stands behind it
	for i := 0; i < len(d.text); {
		next := i + 1
		switch c := d.text[i]; c {
		case '"':
			for ; d.text[next] != '"'; next++ {
				if d.text[next] == '\\' {
					next++
				}
			}
			next++
			comma = -1
		case '/':
			if d.format == JSON {
				d.fault(&Error{Pos: at.of(i), Msg: "comments are not allowed here", Fault: Comment})
			}
			next = d.skipComment(i)
		case ',':
			comma = i
		case '}', ']':
			if comma >= 0 {
				d.fault(&Error{Pos: at.of(comma), Msg: "a trailing comma is not allowed here", Fault: TrailingComma})
			}
			comma = -1
		case ' ', '\t', '\r', '\n':
		default:
			comma = -1
		}
		i = next
	}
}
