package splice

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

func (d *Doc) parseJSON() error {
	if at, deep := d.tooDeep(); deep {
		return d.errorf(at, "nested more than %d levels deep", maxDepth)
	}
	// hujson keeps slices of what it is given, and wants a line end behind a comment.
	v, err := hujson.Parse(append(bytes.Clone(d.text), '\n'))
	if err != nil {
		var line, column int
		if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); scanErr != nil {
			return d.errorf(0, "%v", err)
		}
		at := d.offset(line, column)
		if fault := errors.Unwrap(err); !strings.HasPrefix(fault.Error(), "invalid literal") {
			return d.errorf(at, "%v", fault)
		}
		at, msg := d.literalFault(at)
		return d.errorf(at, "%s", msg)
	}
	if d.format == JSON && !v.IsStandard() {
		return d.errorf(d.firstExtra(), "comments and trailing commas are not allowed here")
	}
	d.root, err = d.jsonValue(&v, &locator{text: d.text, pos: Pos{1, 1}})
	return err
}

func (d *Doc) jsonValue(v *hujson.Value, at *locator) (*Value, error) {
	out := &Value{start: v.StartOffset, end: v.EndOffset, Pos: at.of(v.StartOffset)}
	switch t := v.Value.(type) {
	case *hujson.Object:
		out.Kind = ObjectKind
		seen := make(map[string]Pos, len(t.Members))
		for i := range t.Members {
			m := &t.Members[i]
			name := m.Name.Value.(hujson.Literal).String()
			pos := at.of(m.Name.StartOffset)
			if first, twice := seen[name]; twice {
				return nil, &Error{Pos: pos, Msg: fmt.Sprintf("%q is given twice, first on line %d", name, first.Line)}
			}
			seen[name] = pos
			value, err := d.jsonValue(&m.Value, at)
			if err != nil {
				return nil, err
			}
			out.Members = append(out.Members, Member{Name: name, Value: value, Pos: pos})
			out.pairs = append(out.pairs, pair{keys: []string{name}, start: m.Name.StartOffset, end: value.end})
		}
	case *hujson.Array:
		out.Kind = ArrayKind
		for i := range t.Elements {
			item, err := d.jsonValue(&t.Elements[i], at)
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, item)
		}
	case hujson.Literal:
		out.Text = t.String()
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
	return out, nil
}

// literalFault says what is wrong with the literal at n, without repeating it: it may be a secret.
func (d *Doc) literalFault(n int) (at int, msg string) {
	if d.text[n] != '"' {
		return n, "this is neither a number nor true, false or null"
	}
	for i := n + 1; i < len(d.text) && d.text[i] != '"'; i++ {
		switch c := d.text[i]; {
		case c < ' ':
			return i, fmt.Sprintf("the character %q has to be written as an escape in a string", rune(c))
		case c == '\\':
			i++
			if i < len(d.text) && !strings.ContainsRune(`"\/bfnrtu`, rune(d.text[i])) {
				return i - 1, "this is no escape of JSON: a backslash itself is written twice"
			}
		}
	}
	return n, "there is a bad \\u escape in this string"
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

// firstExtra finds the first comment or trailing comma of a text that is valid with them.
func (d *Doc) firstExtra() int {
	comma := -1 // the last comma, as long as nothing stands behind it
	for i := 0; i < len(d.text); {
		switch c := d.text[i]; c {
		case '"':
			for i++; d.text[i] != '"'; i++ {
				if d.text[i] == '\\' {
					i++
				}
			}
			comma = -1
		case '/':
			return i
		case ',':
			comma = i
		case '}', ']':
			if comma >= 0 {
				return comma
			}
		case ' ', '\t', '\r', '\n':
		default:
			comma = -1
		}
		i++
	}
	return 0
}
