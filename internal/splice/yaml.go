package splice

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxRepeated is how many values the aliases and merge keys of a YAML text may stand for together.
const maxRepeated = 20_000

func (d *Doc) parseYAML() {
	dec := yaml.NewDecoder(bytes.NewReader(d.text))
	var n yaml.Node
	switch err := dec.Decode(&n); {
	case errors.Is(err, io.EOF):
		d.root = &Value{Kind: NullKind, Pos: Pos{1, 1}, end: -1}
		return
	case err != nil:
		d.fault(d.yamlFault(err))
		return
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		d.fault(&Error{Pos: Pos{n.Line, n.Column}, Msg: "there is more than one document in this text"})
		return
	}
	t := yamlTree{d: d, open: map[*yaml.Node]bool{}, at: yamlLocator{text: d.text, line: 1, column: 1}}
	d.root = t.value(n.Content[0], false)
	if t.stop != nil {
		d.root = nil
		d.fault(t.stop)
	}
}

// yamlFault says where the library's error is, which names a line at most.
func (d *Doc) yamlFault(err error) *Error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if _, err := fmt.Sscanf(msg, "line %d:", &line); err == nil {
		_, msg, _ = strings.Cut(msg, ": ")
	}
	at := d.offset(line, 1)
	var fault Fault
	if strings.Contains(msg, "escape") || strings.Contains(msg, "hexdecimal") {
		fault = Escape
		if i := bytes.IndexByte(d.text[at:d.lineEnd(at)], '\\'); i >= 0 {
			at += i
		}
		msg = "this is no escape of YAML: in double quotes a backslash itself is written twice"
	}
	e := d.errorf(at, "%s", msg)
	e.Fault = fault
	return e
}

// yamlTree makes the tree of the library's nodes.
type yamlTree struct {
	d    *Doc
	at   yamlLocator
	open map[*yaml.Node]bool
	stop *Error

	repeated int
}

// value makes a value. Repeated says that it is not written here but stands for what is written elsewhere.
func (t *yamlTree) value(n *yaml.Node, repeated bool) *Value {
	out := &Value{Kind: NullKind, Pos: Pos{n.Line, n.Column}, start: -1, end: -1}
	if repeated {
		out.form = aliased
	} else {
		out.start = t.at.of(n.Line, n.Column)
	}
	if repeated {
		t.repeated++
	}
	if t.repeated > maxRepeated {
		t.fail(n, "there are too many aliases in this text")
	}
	if t.stop != nil {
		return out
	}
	switch n.Kind {
	case yaml.AliasNode:
		if t.open[n.Alias] {
			t.fail(n, "an alias stands for what it is in")
			return out
		}
		return t.value(n.Alias, true)
	case yaml.MappingNode, yaml.SequenceNode:
		t.open[n] = true
		defer delete(t.open, n)
		flow := n.Style&yaml.FlowStyle != 0
		if !repeated {
			out.form = block
			if flow {
				out.form = written
			}
		}
		if n.Kind == yaml.MappingNode {
			out.Kind = ObjectKind
			t.members(out, n, repeated)
		} else {
			out.Kind = ArrayKind
			for _, item := range n.Content {
				out.Items = append(out.Items, t.value(item, repeated))
			}
		}
		if flow && !repeated {
			out.end = t.d.flowEnd(out)
		}
	case yaml.ScalarNode:
		out.Text = n.Value
		switch n.ShortTag() {
		case "!!int", "!!float":
			out.Kind = NumberKind
		case "!!bool":
			out.Kind = BoolKind
		case "!!null":
			out.Kind = NullKind
		case "!!timestamp":
			out.Kind = TimeKind
		default:
			out.Kind = StringKind
		}
		out.plain = n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) == 0
		if !repeated {
			out.end = t.d.scalarEnd(out.start, n)
		}
	}
	return out
}

func (t *yamlTree) fail(n *yaml.Node, msg string) {
	if t.stop == nil {
		t.stop = &Error{Pos: Pos{n.Line, n.Column}, Msg: msg}
	}
}

// members makes the members of a mapping: its own, and those that a merge key brings in and it has not itself.
func (t *yamlTree) members(out *Value, n *yaml.Node, repeated bool) {
	var merged []*yaml.Node
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.ShortTag() == "!!merge":
			merged = append(merged, value)
			continue
		case key.Kind != yaml.ScalarNode:
			t.fail(key, "names have to be plain text here")
			return
		}
		start := -1
		if !repeated {
			start = t.at.of(key.Line, key.Column)
		}
		m := Member{Name: key.Value, Pos: Pos{key.Line, key.Column}, Value: t.value(value, repeated)}
		if at, twice := seen[m.Name]; twice {
			t.d.fault(twiceGiven(m.Name, out.Members[at].Pos, m.Pos))
			out.Members[at] = m
			continue
		}
		seen[m.Name] = len(out.Members)
		out.Members = append(out.Members, m)
		out.pairs = append(out.pairs, pair{keys: []string{m.Name}, start: start, end: m.Value.end})
	}
	for _, value := range merged {
		from := t.value(value, true)
		list := []*Value{from}
		if from.Kind == ArrayKind {
			list = from.Items
		}
		for _, v := range list {
			for _, m := range v.Members {
				if _, own := seen[m.Name]; !own {
					seen[m.Name] = len(out.Members)
					out.Members = append(out.Members, m)
				}
			}
		}
	}
}

// scalarEnd returns where a scalar ends that stands on one line and has neither anchor nor tag; else -1.
func (d *Doc) scalarEnd(start int, n *yaml.Node) int {
	if n.Anchor != "" || n.Style&(yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0 || start >= len(d.text) {
		return -1
	}
	rest := d.text[start:d.lineEnd(start)]
	switch {
	case n.Style&yaml.SingleQuotedStyle != 0:
		for i := 1; i < len(rest); i++ {
			if rest[i] != '\'' {
				continue
			}
			if i+1 < len(rest) && rest[i+1] == '\'' {
				i++
				continue
			}
			return start + i + 1
		}
	case n.Style&yaml.DoubleQuotedStyle != 0:
		for i := 1; i < len(rest); i++ {
			switch rest[i] {
			case '\\':
				i++
			case '"':
				return start + i + 1
			}
		}
	case n.Value != "" && bytes.HasPrefix(rest, []byte(n.Value)):
		return start + len(n.Value)
	}
	return -1
}

// flowEnd returns where a flow collection ends, or -1.
func (d *Doc) flowEnd(v *Value) int {
	if v.start >= len(d.text) || d.text[v.start] != '[' && d.text[v.start] != '{' {
		return -1
	}
	end := v.start + 1
	last := end
	for _, item := range v.Items {
		last = item.end
	}
	for _, p := range v.pairs {
		last = p.end
	}
	if len(v.pairs) != len(v.Members) || last < 0 {
		return -1
	}
	end = last
	for end < len(d.text) {
		switch c := d.text[end]; {
		case blank(c) || c == ',':
			end++
		case c == '#' && blank(d.text[end-1]):
			end = d.lineEnd(end)
		case c == ']' || c == '}':
			return end + 1
		default:
			return -1
		}
	}
	return -1
}

// yamlLocator is the inverse of the lines and columns of the library, which come in order, nearly.
type yamlLocator struct {
	text                 []byte
	offset, line, column int
}

func (l *yamlLocator) of(line, column int) int {
	if line < l.line || line == l.line && column < l.column {
		l.offset, l.line, l.column = 0, 1, 1
	}
	for l.offset < len(l.text) && (l.line < line || l.column < column) {
		r, size := utf8.DecodeRune(l.text[l.offset:])
		l.offset += size
		switch {
		case r == '\r' && l.offset < len(l.text) && l.text[l.offset] == '\n':
			l.offset++
			fallthrough
		case r == '\n', r == '\r', r == '\u0085', r == '\u2028', r == '\u2029':
			l.line++
			l.column = 1
		default:
			l.column++
		}
	}
	return l.offset
}

// oddBreak returns where a line of YAML ends with something else than a line feed, or -1.
func (d *Doc) oddBreak() int {
	for i, c := range d.text {
		if c == '\r' && (i+1 == len(d.text) || d.text[i+1] != '\n') {
			return i
		}
	}
	return bytes.IndexAny(d.text, "\u0085\u2028\u2029")
}

// yamlMember puts a member into a mapping: behind the line of its last member that is a scalar.
func (d *Doc) yamlMember(parent *Value, name string, v *Value) ([]patch, error) {
	for i := len(parent.pairs) - 1; i >= 0; i-- {
		p := parent.pairs[i]
		if m, _ := parent.Get(p.keys[0]); p.end < 0 || m.Kind == ObjectKind || m.Kind == ArrayKind {
			continue
		}
		text := quoteKey(name) + ": " + d.style().value(v, "")
		if parent.form == written {
			return []patch{put(p.end, ", "+text)}, nil
		}
		indent, ok := d.blockIndent(p.start)
		if !ok {
			break
		}
		at := d.lineEnd(p.end)
		if d.text[at-1] != '\n' {
			return []patch{put(at, d.newline()+indent+text)}, nil
		}
		return []patch{put(at, indent+text+d.newline())}, nil
	}
	return nil, &Error{Pos: parent.Pos, Msg: "the layout leaves no place for it: put it in by hand"}
}

// blockIndent is what a further name needs before it to stand below the one at n: blanks, also where a dash stands there.
func (d *Doc) blockIndent(n int) (string, bool) {
	before := string(d.text[d.lineStart(n):n])
	blanks := strings.ReplaceAll(before, "-", " ")
	return blanks, strings.Trim(blanks, " ") == ""
}

// yamlDelete takes a member out of a mapping: one on one line, or a list with a line for each of its items.
func (d *Doc) yamlDelete(parent *Value, name string) ([]patch, error) {
	for i, p := range parent.pairs {
		if p.keys[0] != name {
			continue
		}
		value := parent.Members[i].Value
		end, lines := p.end, false
		if n := len(value.Items); value.form == block && n > 0 && d.lineStart(p.start) < d.lineStart(value.start) {
			end, lines = value.Items[n-1].end, true
		}
		switch {
		case end < 0 || !lines && d.hasLineEnd(p.start, end):
		case parent.form == written && i > 0 && parent.pairs[i-1].end > 0:
			return []patch{cut(parent.pairs[i-1].end, p.end)}, nil
		case parent.form == block && d.onlyBlanks(d.lineStart(p.start), p.start) && len(parent.pairs) > 1:
			if _, alone := d.tail(end); !alone {
				break
			}
			start, end := d.lineStart(p.start), d.lineEnd(end)
			if end == len(d.text) && d.text[end-1] != '\n' && start > 0 {
				start--
				if start > 0 && d.text[start-1] == '\r' {
					start--
				}
			}
			return []patch{cut(start, end)}, nil
		}
		return nil, &Error{Pos: parent.Pos, Msg: fmt.Sprintf("the layout is too intricate to take out %q: do it by hand", name)}
	}
	return nil, &Error{Pos: parent.Pos, Msg: fmt.Sprintf("%q comes from an anchor: edit it there", name)}
}

// quoteKey writes a name of YAML: without quotes where it is no word that means something.
func quoteKey(name string) string {
	if len(name) > 3 && (name[0] == '_' || name[0] >= 'A') && !slices.Contains([]string{"true", "false", "null"}, strings.ToLower(name)) {
		return tomlKey(name)
	}
	return quote(name)
}
