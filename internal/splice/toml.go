package splice

import (
	"bytes"
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// expr is a top-level expression of a TOML text: a header, or a key and its value.
type expr struct {
	kind       unstable.Kind // Table, ArrayTable or KeyValue
	start, end int           // from the first bracket or key, to behind the last bracket or the value
	keys       []key
	table      Path // the table that a KeyValue stands in
	path       Path // what it makes
}

func (e *expr) header() bool { return e.kind != unstable.KeyValue }

// key is one part of a key as it is written.
type key struct {
	name       string
	start, end int
}

func (d *Doc) parseTOML() {
	// The decoder knows every rule of the language, and is asked first. The tree is made from the parser beneath it.
	var all map[string]any
	if err := toml.Unmarshal(d.text, &all); err != nil {
		var de *toml.DecodeError
		at := 0
		if errors.As(err, &de) {
			err, at = de, d.offset(de.Position())
		}
		d.fault(d.errorf(at, "%s", strings.TrimPrefix(err.Error(), "toml: ")))
		d.faults[0].Fault = d.tomlFault(at, err.Error())
		return
	}
	d.root = &Value{Kind: ObjectKind, form: headed, Pos: Pos{1, 1}}
	at := &locator{text: d.text, pos: Pos{1, 1}}
	table, tablePath := d.root, Path(nil)
	p := unstable.Parser{}
	p.Reset(d.text)
	for p.NextExpression() {
		n := p.Expression()
		e := expr{kind: n.Kind, keys: tomlKeys(n)}
		last := len(e.keys) - 1
		switch n.Kind {
		case unstable.KeyValue:
			e.start, e.end = int(n.Raw.Offset), int(n.Raw.Offset+n.Raw.Length)
			pos := at.of(e.start)
			value := d.tomlValue(n.Value(), d.behindEqual(e.keys[last].end), at)
			e.table, e.path = tablePath, tablePath.join()
			for _, k := range e.keys {
				e.path = append(e.path, k.name)
			}
			addDotted(table, e.keys, value, pos)
		case unstable.Table, unstable.ArrayTable:
			e.start = d.lineStart(e.keys[0].start)
			e.start += bytes.IndexByte(d.text[e.start:], '[')
			e.end = e.keys[last].end + bytes.IndexByte(d.text[e.keys[last].end:], ']') + 1
			if n.Kind == unstable.ArrayTable {
				e.end++
			}
			table, tablePath = d.root, nil
			for _, k := range e.keys[:last] {
				table, tablePath = d.step(table, tablePath, k, at)
			}
			table, tablePath = d.open(table, tablePath, e.keys[last], n.Kind, at)
			e.path = tablePath
		}
		d.exprs = append(d.exprs, e)
	}
	if err := p.Error(); err != nil {
		d.fault(d.errorf(0, "bug: %v", err))
	}
}

// tomlFault tells the fault at n by the decoder's words for it.
func (d *Doc) tomlFault(n int, msg string) Fault {
	switch {
	case strings.Contains(msg, "already"):
		return Twice
	case strings.Contains(msg, "escape"), strings.Contains(msg, "unicode char"):
		return Escape
	}
	return 0
}

func tomlKeys(n *unstable.Node) []key {
	var keys []key
	for it := n.Key(); it.Next(); {
		k := it.Node()
		start := int(k.Raw.Offset)
		keys = append(keys, key{string(k.Data), start, start + int(k.Raw.Length)})
	}
	return keys
}

// step goes from a table to the one that the next key of a header names, the last one of an array of tables.
func (d *Doc) step(table *Value, p Path, k key, at *locator) (*Value, Path) {
	p = p.join(k.name)
	next, ok := table.Get(k.name)
	if !ok {
		next = &Value{Kind: ObjectKind, form: implied, Pos: at.of(k.start)}
		table.Members = append(table.Members, Member{k.name, next, next.Pos})
	}
	if next.form == tables {
		last := len(next.Items) - 1
		return next.Items[last], append(p, last)
	}
	return next, p
}

// open makes the table of a header.
func (d *Doc) open(table *Value, p Path, k key, kind unstable.Kind, at *locator) (*Value, Path) {
	p = p.join(k.name)
	pos := at.of(k.start)
	next, there := table.Get(k.name)
	if kind == unstable.Table {
		if !there {
			next = &Value{Kind: ObjectKind}
			table.Members = append(table.Members, Member{k.name, next, pos})
		}
		next.form, next.Pos = headed, pos
		return next, p
	}
	if !there {
		next = &Value{Kind: ArrayKind, form: tables, Pos: pos}
		table.Members = append(table.Members, Member{k.name, next, pos})
	}
	item := &Value{Kind: ObjectKind, form: headed, Pos: pos}
	next.Items = append(next.Items, item)
	return item, append(p, len(next.Items)-1)
}

// addDotted puts a value into a table under a key that may be dotted.
func addDotted(table *Value, keys []key, value *Value, pos Pos) {
	last := len(keys) - 1
	for _, k := range keys[:last] {
		next, ok := table.Get(k.name)
		if !ok {
			next = &Value{Kind: ObjectKind, form: dotted, Pos: pos}
			table.Members = append(table.Members, Member{k.name, next, pos})
		}
		table = next
	}
	table.Members = append(table.Members, Member{keys[last].name, value, pos})
}

// tomlValue makes the value of a node that begins at start. The parser does not say where arrays and inline tables end.
func (d *Doc) tomlValue(n *unstable.Node, start int, at *locator) *Value {
	v := &Value{start: start, Pos: at.of(start), Text: string(n.Data)}
	end := int(n.Raw.Offset + n.Raw.Length)
	switch n.Kind {
	case unstable.String:
		v.Kind = StringKind
	case unstable.Bool:
		v.Kind = BoolKind
	case unstable.Integer, unstable.Float:
		v.Kind = NumberKind
	case unstable.LocalDate, unstable.LocalTime, unstable.LocalDateTime, unstable.DateTime:
		v.Kind = TimeKind
	case unstable.Array:
		v.Kind, v.Text, end = ArrayKind, "", start+1
		for it := n.Children(); it.Next(); {
			item := d.tomlValue(it.Node(), d.skipBetween(end), at)
			v.Items = append(v.Items, item)
			end = item.end
		}
		end = d.skipBetween(end) + 1
	case unstable.InlineTable:
		v.Kind, v.Text, end = ObjectKind, "", start+1
		for it := n.Children(); it.Next(); {
			kv := it.Node()
			keys := tomlKeys(kv)
			pos := at.of(int(kv.Raw.Offset))
			value := d.tomlValue(kv.Value(), d.behindEqual(keys[len(keys)-1].end), at)
			addDotted(v, keys, value, pos)
			p := pair{start: int(kv.Raw.Offset), end: value.end}
			for _, k := range keys {
				p.keys = append(p.keys, k.name)
			}
			v.pairs = append(v.pairs, p)
			end = value.end
		}
		end = d.skipBetween(end) + 1
	}
	v.end = end
	return v
}

// behindEqual returns where the value begins whose key ends at n.
func (d *Doc) behindEqual(n int) int {
	n += bytes.IndexByte(d.text[n:], '=') + 1
	for d.text[n] == ' ' || d.text[n] == '\t' {
		n++
	}
	return n
}

// skipBetween skips what may stand between two items: blanks, comments and a comma.
func (d *Doc) skipBetween(n int) int {
	for {
		switch n = d.skipExtra(n); {
		case n < len(d.text) && d.text[n] == ',':
			n++
		default:
			return n
		}
	}
}
