package doctor

import "github.com/rootbound/rootbound/internal/splice"

// at returns the value that names lead to, or nil.
func at(v *splice.Value, names ...string) *splice.Value {
	for _, n := range names {
		if v == nil || v.Kind != splice.ObjectKind {
			return nil
		}
		v, _ = v.Get(n)
	}
	return v
}

// textAt returns the string that names lead to, or "".
func textAt(v *splice.Value, names ...string) string {
	if v = at(v, names...); v == nil || v.Kind != splice.StringKind {
		return ""
	}
	return v.Text
}

// isTrue reports whether names lead to true.
func isTrue(v *splice.Value, names ...string) bool {
	v = at(v, names...)
	return v != nil && v.Kind == splice.BoolKind && v.Text == "true"
}

// items returns the items of the list that names lead to.
func items(v *splice.Value, names ...string) []*splice.Value {
	if v = at(v, names...); v == nil || v.Kind != splice.ArrayKind {
		return nil
	}
	return v.Items
}

// members returns what is in the table that names lead to.
func members(v *splice.Value, names ...string) []splice.Member {
	if v = at(v, names...); v == nil || v.Kind != splice.ObjectKind {
		return nil
	}
	return v.Members
}

// memberPos returns where a name stands in a table.
func memberPos(v *splice.Value, name string) splice.Pos {
	for _, m := range members(v) {
		if m.Name == name {
			return m.Pos
		}
	}
	return splice.Pos{}
}

// texts returns the strings of a list, with their places.
func texts(v *splice.Value, names ...string) []*splice.Value {
	var list []*splice.Value
	for _, item := range items(v, names...) {
		if item.Kind == splice.StringKind {
			list = append(list, item)
		}
	}
	return list
}
