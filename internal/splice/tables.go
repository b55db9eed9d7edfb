package splice

import (
	"slices"
	"strings"
)

// A TOML text is a sequence of segments: the keys before the first header, then each header with the keys behind it.
// Own-line comments right above a header belong to that header; those right behind the last key of a segment to the
// segment.

// governing returns the index of the header whose segment expression i is in, i itself for a header, -1 before the first.
func (d *Doc) governing(i int) int {
	for i >= 0 && !d.exprs[i].header() {
		i--
	}
	return i
}

// segment returns where the segment of header h (-1: the keys before the first) ends, and the index of the last
// expression in it, or -1.
func (d *Doc) segment(h int) (end, last int) {
	last = h
	for last+1 < len(d.exprs) && !d.exprs[last+1].header() {
		last++
	}
	if last < 0 {
		return 0, last
	}
	end = d.lineEnd(d.exprs[last].end)
	after := end
	for after < len(d.text) && d.commentLine(after) {
		after = d.lineEnd(after)
	}
	if last+1 < len(d.exprs) && after == d.lineStart(d.exprs[last+1].start) {
		return end, last
	}
	return after, last
}

func (d *Doc) commentLine(at int) bool {
	return strings.HasPrefix(strings.TrimLeft(d.between(span{at, d.lineEnd(at)}), " \t"), "#")
}

func (d *Doc) blankLine(at int) bool {
	end := d.lineEnd(at)
	return end > at && d.onlyBlanks(at, end)
}

// attached returns where the comments begin that stand right above the first expression of the text.
func (d *Doc) attached() int {
	at := d.lineStart(d.exprs[0].start)
	for at > 0 && d.commentLine(d.lineStart(at-1)) {
		at = d.lineStart(at - 1)
	}
	return at
}

// insertInTable puts a member into a table that is not written in one piece.
func (d *Doc) insertInTable(p Path, table *Value, name string, v *Value) ([]patch, error) {
	s, nl := d.style(), d.newline()
	if table.form == dotted {
		return d.insertDotted(p, table, name, v)
	}
	if v.Kind == ObjectKind || v.tablesOnly() {
		after := -1 // the last header of the table and what is in it
		for i := range d.exprs {
			if d.exprs[i].header() && d.exprs[i].path.hasPrefix(p) {
				after = i
			}
		}
		end, last := d.segment(after)
		if last < 0 {
			end = len(d.text)
		}
		return []patch{d.block(end, d.tableText(p.join(name), v))}, nil
	}
	line := s.member(name, v, "")
	h := -1
	if len(p) > 0 {
		h = slices.IndexFunc(d.exprs, func(e expr) bool {
			return e.header() && len(e.path) == len(p) && e.path.hasPrefix(p)
		})
		if h < 0 {
			return nil, &Error{Pos: table.Pos, Msg: "the table is there only because its sub-tables are: give it a header first"}
		}
	}
	if _, last := d.segment(h); last >= 0 {
		return []patch{d.lineAfter(last, line)}, nil
	}
	switch {
	case len(d.exprs) > 0:
		return []patch{put(d.attached(), line+nl+nl)}, nil
	case len(d.text) > 0 && d.text[len(d.text)-1] != '\n':
		return []patch{put(len(d.text), nl+line)}, nil
	}
	return []patch{put(len(d.text), line+nl)}, nil
}

// insertDotted puts a member into a table that is made by dotted keys, behind the last of them.
func (d *Doc) insertDotted(p Path, table *Value, name string, v *Value) ([]patch, error) {
	for i, e := range slices.Backward(d.exprs) {
		if e.header() || !e.path.hasPrefix(p) {
			continue
		}
		depth := len(p) - len(e.table) // how many of its keys lead to the table
		prefix := d.between(span{e.keys[0].start, e.keys[depth-1].end})
		return []patch{d.lineAfter(i, prefix+"."+d.style().member(name, v, ""))}, nil
	}
	return nil, &Error{Pos: table.Pos, Msg: "it is written with dotted keys in an inline table: edit it by hand"}
}

// lineAfter puts a line behind that of an expression, indented as it is.
func (d *Doc) lineAfter(i int, line string) patch {
	e := d.exprs[i]
	line = d.indent(e.start) + line
	at := d.lineEnd(e.end)
	if d.text[at-1] != '\n' {
		return put(at, d.newline()+line)
	}
	return put(at, line+d.newline())
}

// insertInTables puts a table into an array of tables.
func (d *Doc) insertInTables(p Path, array *Value, i int, v *Value) []patch {
	text := d.tableText(p.join(i), v)
	if i < len(array.Items) {
		item := p.join(i)
		next := slices.IndexFunc(d.exprs, func(e expr) bool { return e.path.hasPrefix(item) })
		if next == 0 {
			return []patch{put(d.attached(), text+d.newline())}
		}
		end, _ := d.segment(d.governing(next - 1))
		return []patch{d.block(end, text)}
	}
	before := p.join(i - 1)
	last := 0
	for n := range d.exprs {
		if d.exprs[n].path.hasPrefix(before) {
			last = n
		}
	}
	end, _ := d.segment(d.governing(last))
	return []patch{d.block(end, text)}
}

// block puts tables in at the end of a segment, with a blank line before them.
func (d *Doc) block(at int, text string) patch {
	nl := d.newline()
	switch {
	case at == 0:
		return put(at, text)
	case d.text[at-1] == '\n':
		return put(at, nl+text)
	}
	return put(at, nl+nl+strings.TrimSuffix(text, nl))
}

// tableText writes a table, or an array of tables, with headers.
func (d *Doc) tableText(p Path, v *Value) string {
	s, nl := d.style(), d.newline()
	var names []string
	for _, step := range p {
		if name, ok := step.(string); ok {
			names = append(names, tomlKey(name))
		}
	}
	header := strings.Join(names, ".")
	if _, item := p[len(p)-1].(int); item || v.Kind == ArrayKind {
		header = "[" + header + "]"
	}
	list := v.Items
	if v.Kind == ObjectKind {
		list = []*Value{v}
	}
	var b strings.Builder
	for i, table := range list {
		if i > 0 {
			b.WriteString(nl)
		}
		b.WriteString("[" + header + "]" + nl)
		for _, m := range table.Members {
			b.WriteString(s.member(m.Name, m.Value, "") + nl)
		}
	}
	return b.String()
}

// tablesOnly reports whether v is an array that can be written as an array of tables.
func (v *Value) tablesOnly() bool {
	return v.Kind == ArrayKind && len(v.Items) > 0 &&
		!slices.ContainsFunc(v.Items, func(item *Value) bool { return item.Kind != ObjectKind })
}

// deleteExprs takes out every expression that makes p or a part of it, by runs with nothing else between.
func (d *Doc) deleteExprs(p Path) []patch {
	var patches []patch
	for i := 0; i < len(d.exprs); i++ {
		first := i
		for i < len(d.exprs) && d.exprs[i].path.hasPrefix(p) {
			i++
		}
		if i > first {
			patches = append(patches, cut(d.run(first, i)))
		}
	}
	return patches
}

// run returns the lines of the expressions from first to before next, and one blank line with them where tables go.
func (d *Doc) run(first, next int) (start, end int) {
	start = d.lineStart(d.exprs[first].start)
	end = d.lineEnd(d.exprs[next-1].end)
	if h := d.governing(next - 1); h >= first {
		end, _ = d.segment(h)
	}
	prev := d.lineStart(max(start-1, 0))
	open := start == 0 || d.blankLine(prev)
	headers := d.exprs[first].header() || next < len(d.exprs) && d.exprs[next].header()
	switch {
	case first == 0 && headers && open && d.blankLine(end):
		end = d.lineEnd(end)
	case d.exprs[first].header() && start > 0 && open:
		start = prev
	}
	// A text without a line end at its end stays one.
	if end == len(d.text) && start > 0 && d.text[end-1] != '\n' {
		start--
		if start > 0 && d.text[start-1] == '\r' {
			start--
		}
	}
	return start, end
}
