package splice

import (
	"fmt"
	"strconv"
	"strings"
)

// Format is the grammar of a text.
type Format uint8

const (
	// JSON is the grammar of RFC 8259: no comments, no trailing commas.
	JSON Format = iota + 1
	// JSONC is JSON with comments and trailing commas.
	JSONC
	// TOML is TOML 1.0, with what 1.1 allows in inline tables.
	TOML
	// Commented is JSON with comments, and without trailing commas.
	Commented
	// YAML is one YAML 1.1 document, as most programs take it.
	YAML
)

// String returns the name of the format.
func (f Format) String() string {
	switch f {
	case JSON:
		return "JSON"
	case JSONC:
		return "JSONC"
	case TOML:
		return "TOML"
	case Commented:
		return "JSON with comments"
	case YAML:
		return "YAML"
	}
	return "Format(" + strconv.Itoa(int(f)) + ")"
}

// Kind tells values apart.
type Kind uint8

const (
	// ObjectKind is a JSON object, a TOML table or inline table.
	ObjectKind Kind = iota + 1
	// ArrayKind is an array, or a TOML array of tables.
	ArrayKind
	// StringKind is a string.
	StringKind
	// NumberKind is a number of any form.
	NumberKind
	// BoolKind is true or false.
	BoolKind
	// NullKind is JSON's null.
	NullKind
	// TimeKind is TOML's dates and times.
	TimeKind
)

// String returns what a person calls values of the kind, with an article.
func (k Kind) String() string {
	switch k {
	case ObjectKind:
		return "a table"
	case ArrayKind:
		return "an array"
	case StringKind:
		return "a string"
	case NumberKind:
		return "a number"
	case BoolKind:
		return "true or false"
	case NullKind:
		return "null"
	case TimeKind:
		return "a date or time"
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}

// Pos is a place in a text: line and column, both from 1, the column in characters. The zero Pos is no place.
type Pos struct{ Line, Column int }

// String returns "line:column".
func (p Pos) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Column) }

// Error is a fault of a text, or an edit that its layout does not allow.
type Error struct {
	Pos   Pos
	Msg   string
	Fault Fault
}

// Fault tells the faults of a text apart. The zero Fault is one of any other kind.
type Fault uint8

const (
	// Marked is a byte order mark. Parse takes it.
	Marked Fault = iota + 1
	// Comment is a comment where the grammar has none.
	Comment
	// TrailingComma is a comma with nothing behind it where the grammar has none.
	TrailingComma
	// Escape is an escape that the grammar does not have.
	Escape
	// Twice is a name that is given twice in one object or table.
	Twice
)

// Error returns "line:column: message".
func (e *Error) Error() string { return e.Pos.String() + ": " + e.Msg }

// Value is one value of a text, or one to be put in. Values that come from a Doc must not be changed.
type Value struct {
	Kind Kind
	// Text is what a string says, and how a number, true, false, null or a date is written.
	Text string
	// Members are those of an object, in the order of the text. No name occurs twice.
	Members []Member
	// Items are those of an array.
	Items []*Value
	// Pos is where the value begins: for a TOML table the first key that makes it.
	Pos Pos

	form       form
	plain      bool   // a YAML scalar without quotes
	raw        string // of a value to be put in: how it is written
	start, end int    // of a value written in one piece; -1 where that is not known
	pairs      []pair // what an object written in one piece holds, as it is written
}

// Member is a name and its value.
type Member struct {
	Name  string
	Value *Value
	// Pos is where the name stands.
	Pos Pos
}

// form says how a value stands in its text.
type form uint8

const (
	written form = iota // in one piece: all of JSON, in TOML what stands behind "="
	headed              // a table with its own [header]
	implied             // a table that is there because a longer [header] names it
	dotted              // a table that is there because dotted keys name it
	tables              // an array of [[tables]]
	block               // a YAML collection that is made by indentation
	aliased             // a YAML value that is written elsewhere, behind an anchor
)

// pair is a member as it is written, with a dotted key perhaps.
type pair struct {
	keys       []string
	start, end int
}

// String returns a string value.
func String(s string) *Value { return &Value{Kind: StringKind, Text: s} }

// Bool returns a true or a false.
func Bool(b bool) *Value { return &Value{Kind: BoolKind, Text: strconv.FormatBool(b)} }

// Array returns an array.
func Array(items ...*Value) *Value { return &Value{Kind: ArrayKind, Items: items} }

// Strings returns an array of strings.
func Strings(list ...string) *Value {
	v := Array()
	for _, s := range list {
		v.Items = append(v.Items, String(s))
	}
	return v
}

// Object returns an object, or a table.
func Object(members ...Member) *Value { return &Value{Kind: ObjectKind, Members: members} }

// Unquoted reports whether v is a YAML scalar without quotes, whose kind a reader of another version may see otherwise.
func (v *Value) Unquoted() bool { return v.plain }

// Aliased reports whether v stands in YAML for what is written elsewhere, behind an anchor.
func (v *Value) Aliased() bool { return v.form == aliased }

// Span returns where v stands in the text it was read from, in bytes behind a byte order mark; ok is false where it is not
// known where it ends.
func (v *Value) Span() (start, end int, ok bool) {
	return v.start, v.end, v.end >= v.start && v.form == written
}

// Get returns the member with that name.
func (v *Value) Get(name string) (*Value, bool) {
	if i := v.index(name); i >= 0 {
		return v.Members[i].Value, true
	}
	return nil, false
}

func (v *Value) index(name string) int {
	for i := range v.Members {
		if v.Members[i].Name == name {
			return i
		}
	}
	return -1
}

// Equal reports whether two values say the same. The order of members does not count.
func (v *Value) Equal(w *Value) bool {
	if v.Kind != w.Kind || v.Text != w.Text || len(v.Items) != len(w.Items) || len(v.Members) != len(w.Members) {
		return false
	}
	for i := range v.Items {
		if !v.Items[i].Equal(w.Items[i]) {
			return false
		}
	}
	if len(v.Members) == 0 {
		return true
	}
	theirs := make(map[string]*Value, len(w.Members))
	for _, m := range w.Members {
		theirs[m.Name] = m.Value
	}
	for _, m := range v.Members {
		if t, ok := theirs[m.Name]; !ok || !m.Value.Equal(t) {
			return false
		}
	}
	return true
}

// End as the last step of a path to Insert is the place behind the last item of an array.
const End = -1

// Path leads from the top of a text to a value: a string is the name of a member, an int the position in an array.
type Path []any

// String returns the path as a person writes it: server.fs.roots[0].
func (p Path) String() string {
	if len(p) == 0 {
		return "the whole text"
	}
	var b strings.Builder
	for _, step := range p {
		switch step := step.(type) {
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(tomlKey(step))
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		}
	}
	return b.String()
}

func (p Path) hasPrefix(q Path) bool {
	if len(p) < len(q) {
		return false
	}
	for i := range q {
		if p[i] != q[i] {
			return false
		}
	}
	return true
}

// join returns a path of its own memory.
func (p Path) join(steps ...any) Path {
	return append(append(make(Path, 0, len(p)+len(steps)), p...), steps...)
}

// Find returns the value that p leads to.
func (v *Value) Find(p Path) (*Value, bool) {
	for _, step := range p {
		switch step := step.(type) {
		case string:
			m, ok := v.Get(step)
			if !ok {
				return nil, false
			}
			v = m
		case int:
			if step < 0 || step >= len(v.Items) {
				return nil, false
			}
			v = v.Items[step]
		default:
			return nil, false
		}
	}
	return v, true
}
