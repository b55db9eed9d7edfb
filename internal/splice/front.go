package splice

import (
	"fmt"
	"slices"
	"strings"
)

// Verbatim returns the value at p as one to put in elsewhere in the same text, written as it is written there. A value
// that is not written in one piece is refused.
func (d *Doc) Verbatim(p Path) (*Value, error) {
	v, err := d.must(p)
	if err != nil {
		return nil, err
	}
	if v.form != written || v.end < 0 {
		return nil, fmt.Errorf("copying %s: %w", p, &Error{Pos: v.Pos, Msg: "it is not written in one piece"})
	}
	return &Value{Kind: v.Kind, Text: v.Text, Members: v.Members, Items: v.Items, raw: d.between(span{v.start, v.end})}, nil
}

// Prepend returns the text with items put in front of those of the array at p, laid out as they are. Chop takes them back,
// byte for byte.
func (d *Doc) Prepend(p Path, items ...*Value) (*Doc, error) {
	v, err := d.array("prepending to", p)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		if err := item.check(d.format); err != nil {
			return nil, fmt.Errorf("prepending to %s: %w", p, err)
		}
	}
	want := d.root.clone()
	wantArray, _ := want.Find(p)
	wantArray.Items = append(slices.Clone(items), wantArray.Items...)
	s := d.style()
	var parts []string
	for _, item := range items {
		parts = append(parts, s.value(item, ""))
	}
	if len(v.Items) == 0 {
		return d.apply("prepending to", p, []patch{put(v.start+1, strings.Join(parts, ", "))}, want)
	}
	at := v.Items[0].start
	before := d.between(span{v.start, at}) // the bracket, or the dash, and what stands behind it
	sep := ", "
	switch {
	case v.form == block:
		indent := d.between(span{d.lineStart(v.start), v.start})
		if strings.Trim(before, " \t") != "-" || before == "-" || strings.Trim(indent, " ") != "" {
			return nil, fmt.Errorf("prepending to %s: %w", p, &Error{Pos: v.Pos, Msg: "the layout leaves no place: edit it by hand"})
		}
		sep = d.newline() + indent + before
	case d.onlyBlanks(v.start+1, at) && strings.Contains(before, "\n"):
		sep = "," + before[1:]
	case d.compact(v):
		sep = ","
	}
	return d.apply("prepending to", p, []patch{put(at, strings.Join(parts, sep)+sep)}, want)
}

// Chop returns the text without the first n items of the array at p, with what stands between them.
func (d *Doc) Chop(p Path, n int) (*Doc, error) {
	v, err := d.array("taking from", p)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > len(v.Items) {
		return nil, fmt.Errorf("taking from %s: %w", p, &Error{Pos: v.Pos, Msg: fmt.Sprintf("there are %d items only", len(v.Items))})
	}
	want := d.root.clone()
	wantArray, _ := want.Find(p)
	wantArray.Items = slices.Delete(wantArray.Items, 0, n)
	from, with, to := v.Items[0].start, "", 0
	last := v.Items[n-1]
	switch {
	case n < len(v.Items):
		to = v.Items[n].start
	case last.end < 0:
		return nil, fmt.Errorf("taking from %s: %w", p, &Error{Pos: last.Pos, Msg: "it is not written in one piece"})
	case v.form == block: // an empty one is not written by indentation
		from = len(strings.TrimRight(string(d.text[:v.start]), " \t\r\n"))
		if from == 0 || d.text[from-1] != ':' {
			return nil, fmt.Errorf("taking from %s: %w", p, &Error{Pos: v.Pos, Msg: "the layout leaves no place: edit it by hand"})
		}
		with, to = " []", last.end
	default:
		to = last.end
		if at := d.skipExtra(to); at < len(d.text) && d.text[at] == ',' {
			to = at + 1
		}
		// Where each item has a line, none is left for nothing.
		if v.end > to && d.onlyBlanks(v.start+1, from) && d.hasLineEnd(v.start+1, from) && d.onlyBlanks(to, v.end-1) {
			from, to = v.start+1, v.end-1
		}
	}
	return d.apply("taking from", p, []patch{{span{from, to}, with}}, want)
}

// array returns the array at p, if its items can be told apart in the text.
func (d *Doc) array(doing string, p Path) (*Value, error) {
	v, err := d.must(p)
	if err != nil {
		return nil, err
	}
	refuse := func(msg string) (*Value, error) {
		return nil, fmt.Errorf("%s %s: %w", doing, p, &Error{Pos: v.Pos, Msg: msg})
	}
	switch {
	case v.Kind != ArrayKind:
		return refuse("this is " + v.Kind.String() + " and no array")
	case v.form == aliased:
		return refuse("it comes from an anchor: edit it there")
	case v.form != written && v.form != block:
		return refuse("it is an array of tables")
	case v.form == written && d.text[v.start] != '[':
		return refuse("it has an anchor or a tag: edit it by hand")
	}
	if slices.ContainsFunc(v.Items, func(item *Value) bool { return item.start < 0 }) {
		return refuse("a part of it comes from an anchor: edit it by hand")
	}
	return v, nil
}

// compact reports whether nothing stands between the items of an array but commas.
func (d *Doc) compact(v *Value) bool {
	return len(v.Items) > 1 && v.Items[0].end > 0 && d.between(span{v.Items[0].end, v.Items[1].start}) == ","
}
