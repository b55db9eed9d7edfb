package splice

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// style is how a text writes what is new in it.
type style struct {
	format       Format
	colon, comma string
	nl, unit     string
	lines        bool // the text is laid out over lines
}

func (d *Doc) style() style {
	s := style{format: d.format, colon: ": ", comma: ", ", nl: d.newline(), unit: d.unit()}
	json := d.format != TOML && d.format != YAML
	s.lines = json && d.root.Kind == ObjectKind && d.hasLineEnd(d.root.start, d.root.end)
	if json && len(d.root.Members) > 0 {
		keyEnd := d.keyEnd(d.root.pairs[0].start)
		colon := d.between(span{keyEnd, d.root.Members[0].Value.start})
		switch strings.Trim(colon, " \t") {
		case ":":
			s.colon = colon
		}
		if colon == ":" {
			s.comma = ","
		}
	}
	return s
}

// keyEnd returns the end of the quoted name at n.
func (d *Doc) keyEnd(n int) int {
	for n++; d.text[n] != '"'; n++ {
		if d.text[n] == '\\' {
			n++
		}
	}
	return n + 1
}

// value writes v. Indent is that of the line it begins on.
func (s style) value(v *Value, indent string) string {
	if v.raw != "" {
		return v.raw
	}
	switch v.Kind {
	case StringKind:
		return s.string(v.Text)
	case ArrayKind, ObjectKind:
	default:
		return v.Text
	}
	var parts []string
	over := s.lines && s.spread(v)
	inner := indent + s.unit
	for _, item := range v.Items {
		parts = append(parts, s.value(item, inner))
	}
	for _, m := range v.Members {
		parts = append(parts, s.member(m.Name, m.Value, inner))
	}
	open, closing := "[", "]"
	if v.Kind == ObjectKind {
		open, closing = "{", "}"
	}
	switch {
	case len(parts) == 0:
		return open + closing
	case over:
		return open + s.nl + inner + strings.Join(parts, ","+s.nl+inner) + s.nl + indent + closing
	case s.format == TOML && v.Kind == ObjectKind:
		return "{ " + strings.Join(parts, s.comma) + " }"
	}
	return open + strings.Join(parts, s.comma) + closing
}

func (s style) member(name string, v *Value, indent string) string {
	if s.format == TOML {
		return tomlKey(name) + " = " + s.value(v, indent)
	}
	return quote(name) + s.colon + s.value(v, indent)
}

// spread reports whether a value is written over several lines: when there are objects or arrays in it.
func (s style) spread(v *Value) bool {
	for _, item := range v.Items {
		if item.Kind == ObjectKind || item.Kind == ArrayKind {
			return true
		}
	}
	for _, m := range v.Members {
		if m.Value.Kind == ObjectKind || m.Value.Kind == ArrayKind {
			return true
		}
	}
	return false
}

// string writes a string; in TOML one with backslashes as a literal, so that Windows paths stay readable.
func (s style) string(text string) string {
	if s.format == TOML && strings.ContainsRune(text, '\\') && !strings.ContainsFunc(text, func(r rune) bool {
		return r == '\'' || r < ' ' || r == 0x7f
	}) {
		return "'" + text + "'"
	}
	return quote(text)
}

// quote writes a string as both JSON and a TOML basic string take it.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func tomlKey(name string) string {
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return quote(name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}

// check refuses what the format cannot say.
func (v *Value) check(f Format) error {
	switch v.Kind {
	case StringKind:
		if !utf8.ValidString(v.Text) {
			return fmt.Errorf("%q is not UTF-8 text", v.Text)
		}
	case NullKind:
		if f == TOML {
			return fmt.Errorf("TOML has no null")
		}
	case TimeKind:
		if f != TOML && f != YAML {
			return fmt.Errorf("%s has no dates", f)
		}
	}
	names := map[string]bool{}
	for _, m := range v.Members {
		if names[m.Name] {
			return fmt.Errorf("%q is given twice", m.Name)
		}
		names[m.Name] = true
		if !utf8.ValidString(m.Name) {
			return fmt.Errorf("%q is not UTF-8 text", m.Name)
		}
		if err := m.Value.check(f); err != nil {
			return err
		}
	}
	for _, item := range v.Items {
		if err := item.check(f); err != nil {
			return err
		}
	}
	return nil
}
