package splice

import (
	"bytes"
	"fmt"
	"slices"
)

// Replace returns the text with the value at p replaced by v. The names and everything around it stay. A TOML table that
// is made by headers or dotted keys is refused.
func (d *Doc) Replace(p Path, v *Value) (*Doc, error) {
	old, err := d.must(p)
	if err != nil {
		return nil, err
	}
	if err := v.check(d.format); err != nil {
		return nil, fmt.Errorf("replacing %s: %w", p, err)
	}
	switch {
	case old.form == aliased:
		return nil, fmt.Errorf("replacing %s: %w", p, &Error{Pos: old.Pos, Msg: "it comes from an anchor: edit it there"})
	case d.format == YAML && (old.form != written || old.end < 0):
		return nil, fmt.Errorf("replacing %s: %w", p, &Error{Pos: old.Pos, Msg: "it is not written in one piece: edit it by hand"})
	case old.form != written:
		return nil, fmt.Errorf("replacing %s: %w", p, &Error{Pos: old.Pos, Msg: "it is spread over headers or dotted keys: edit what is in it"})
	}
	want := d.root.clone()
	if len(p) == 0 {
		want = v
	} else {
		last := len(p) - 1
		parent, _ := want.Find(p[:last])
		switch step := p[last].(type) {
		case string:
			parent.Members[parent.index(step)].Value = v
		case int:
			parent.Items[step] = v
		}
	}
	text := d.style().value(v, d.indent(old.start))
	return d.apply("replacing", p, []patch{{span{old.start, old.end}, text}}, want)
}

// Insert returns the text with v put in at p: as a new last member when p ends with a name that is not there yet, or as
// a new item before the one at that position (End: behind the last). In TOML a table becomes one with a header, and an
// array that holds tables only becomes an array of tables, where what they are put into has a header or is the top.
func (d *Doc) Insert(p Path, v *Value) (*Doc, error) {
	if len(p) == 0 {
		return nil, fmt.Errorf("inserting at %s: name a member or a position", p)
	}
	if err := v.check(d.format); err != nil {
		return nil, fmt.Errorf("inserting %s: %w", p, err)
	}
	last := len(p) - 1
	parent, err := d.must(p[:last])
	if err != nil {
		return nil, err
	}
	refuse := func(msg string) (*Doc, error) {
		return nil, fmt.Errorf("inserting %s: %w", p, &Error{Pos: parent.Pos, Msg: msg})
	}
	s := d.style()
	want := d.root.clone()
	wantParent, _ := want.Find(p[:last])
	var patches []patch
	switch step := p[last].(type) {
	case string:
		if parent.Kind != ObjectKind {
			return refuse("this is " + parent.Kind.String() + " and has no names in it")
		}
		if old, there := parent.Get(step); there {
			return nil, fmt.Errorf("inserting %s: %w", p, &Error{Pos: old.Pos, Msg: "it is there already"})
		}
		wantParent.Members = append(wantParent.Members, Member{Name: step, Value: v})
		if d.format == YAML {
			if patches, err = d.yamlMember(parent, step, v); err != nil {
				return nil, fmt.Errorf("inserting %s: %w", p, err)
			}
			break
		}
		if parent.form == written {
			l := d.listOf(parent)
			patches = d.insertItem(l, len(l.items), s.member(step, v, d.itemIndent(l)), s.lines)
			break
		}
		if patches, err = d.insertInTable(p[:last], parent, step, v); err != nil {
			return nil, fmt.Errorf("inserting %s: %w", p, err)
		}
	case int:
		if parent.Kind != ArrayKind {
			return refuse("this is " + parent.Kind.String() + " and has no positions")
		}
		if d.format == YAML {
			return refuse("an array of YAML is only edited at its front")
		}
		if step == End {
			step = len(parent.Items)
		}
		if step < 0 || step > len(parent.Items) {
			return refuse(fmt.Sprintf("there are %d items only", len(parent.Items)))
		}
		wantParent.Items = slices.Insert(wantParent.Items, step, v)
		if parent.form == written {
			l := d.listOf(parent)
			lines := s.lines && (v.Kind == ObjectKind || v.Kind == ArrayKind)
			patches = d.insertItem(l, step, s.value(v, d.itemIndent(l)), lines)
			break
		}
		if v.Kind != ObjectKind {
			return refuse("only a table fits into an array of tables")
		}
		patches = d.insertInTables(p[:last], parent, step, v)
	default:
		return nil, fmt.Errorf("bug: a step of a path is neither string nor int: %v", step)
	}
	return d.apply("inserting", p, patches, want)
}

// Delete returns the text without the value at p, its name, the separator that belongs to it, and the comment on its
// line when nothing else is on that line. A table goes with all that is in it. What existed only to hold it goes too: a
// TOML table without a header of its own, an array of tables without a table.
func (d *Doc) Delete(p Path) (*Doc, error) {
	if len(p) == 0 {
		return nil, fmt.Errorf("deleting %s: name a member or a position", p)
	}
	old, err := d.must(p)
	if err != nil {
		return nil, err
	}
	want := d.root.clone()
	want.remove(p)
	var patches []patch
	if d.format == YAML {
		parent, _ := d.root.Find(p[:len(p)-1])
		name, ok := p[len(p)-1].(string)
		if !ok {
			return nil, fmt.Errorf("deleting %s: %w", p, &Error{Pos: old.Pos, Msg: "an array of YAML is only edited at its front"})
		}
		if patches, err = d.yamlDelete(parent, name); err != nil {
			return nil, fmt.Errorf("deleting %s: %w", p, err)
		}
	} else if holder, rest := d.writtenAbove(p); holder != nil {
		i := holder.find(rest)
		if i < 0 {
			return nil, fmt.Errorf("deleting %s: %w", p, &Error{Pos: old.Pos, Msg: "it is written with dotted keys: delete what is in it"})
		}
		patches = d.deleteItem(d.listOf(holder), i)
	} else {
		patches = d.deleteExprs(p)
	}
	return d.apply("deleting", p, patches, want)
}

// writtenAbove returns the nearest value above p that is written in one piece, and the way on from it.
func (d *Doc) writtenAbove(p Path) (*Value, Path) {
	for i := len(p) - 1; i >= 0; i-- {
		if v, _ := d.root.Find(p[:i]); v.form == written {
			return v, p[i:]
		}
	}
	return nil, nil
}

// find returns which item of a value written in one piece p leads to, or -1.
func (v *Value) find(p Path) int {
	if i, ok := p[0].(int); ok {
		return i
	}
	return slices.IndexFunc(v.pairs, func(pr pair) bool {
		return slices.EqualFunc(pr.keys, p, func(k string, step any) bool { return step == k })
	})
}

func (d *Doc) must(p Path) (*Value, error) {
	v, ok := d.root.Find(p)
	if !ok {
		return nil, fmt.Errorf("there is no %s", p)
	}
	return v, nil
}

// itemIndent is the indentation that a further item of a list has.
func (d *Doc) itemIndent(l list) string {
	if n := len(l.items); n > 0 {
		return d.indent(l.items[n-1].start)
	}
	return d.indent(l.open) + d.unit()
}

// apply makes the new text and holds it against what it should say.
func (d *Doc) apply(doing string, p Path, patches []patch, want *Value) (*Doc, error) {
	if at := d.oddBreak(); d.format == YAML && at >= 0 {
		return nil, fmt.Errorf("%s %s: %w", doing, p, d.errorf(at, "a line ends here in a way that few programs know: edit it by hand"))
	}
	var out bytes.Buffer
	if d.bom {
		out.WriteString(bom)
	}
	done := 0
	for _, c := range patches {
		out.Write(d.text[done:c.start])
		out.WriteString(c.with)
		done = c.end
	}
	out.Write(d.text[done:])
	next, err := Parse(out.Bytes(), d.format)
	if d.format == YAML && (err != nil || !next.root.Equal(want)) { // whose layouts are too many to know them all
		return nil, fmt.Errorf("%s %s: the edit would change more than that: edit it by hand", doing, p)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: bug: the result would not be readable: %w", doing, p, err)
	}
	if !next.root.Equal(want) {
		return nil, fmt.Errorf("%s %s: bug: the edit would change other values", doing, p)
	}
	return next, nil
}

func (v *Value) clone() *Value {
	c := *v
	c.Items = slices.Clone(v.Items)
	for i, item := range c.Items {
		c.Items[i] = item.clone()
	}
	c.Members = slices.Clone(v.Members)
	for i := range c.Members {
		c.Members[i].Value = c.Members[i].Value.clone()
	}
	return &c
}

// remove takes the value at p out of the tree, and what existed only to hold it.
func (v *Value) remove(p Path) {
	for len(p) > 0 {
		last := len(p) - 1
		parent, _ := v.Find(p[:last])
		switch step := p[last].(type) {
		case string:
			i := parent.index(step)
			parent.Members = slices.Delete(parent.Members, i, i+1)
		case int:
			parent.Items = slices.Delete(parent.Items, step, step+1)
		}
		held := len(parent.Members) + len(parent.Items)
		if held > 0 || parent.form == written || parent.form == headed || parent.form == block {
			return
		}
		p = p[:last]
	}
}
