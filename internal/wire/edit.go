package wire

import "bytes"

// Get returns the value at a path of member names, and whether it is there. Value must be valid JSON.
func Get(value []byte, path ...string) ([]byte, bool) {
	for _, name := range path {
		s, ok := find(value, name)
		if !ok {
			return nil, false
		}
		value = value[s.Start:s.End:s.End]
	}
	return value, value != nil
}

// GetString returns the text at a path of member names; "" when it is not there or no string.
func GetString(value []byte, path ...string) string {
	v, ok := Get(value, path...)
	if !ok || len(v) == 0 || v[0] != '"' {
		return ""
	}
	s, _ := Unquote(v)
	return s
}

func find(object []byte, name string) (Span, bool) {
	for n, v := range members(object) {
		if nameIs(object[n.Start:n.End], name) {
			return v, true
		}
	}
	return Span{}, false
}

func nameIs(quoted []byte, name string) bool {
	raw := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw) == name
	}
	s, _ := Unquote(quoted)
	return s == name
}

// SetMember returns object with the member at path set to value; the rest stays as it is. Objects on the way that are
// missing are made. Object must be a valid JSON value; nil, and what is no object, count as an empty one.
func SetMember(object, value []byte, path ...string) []byte {
	if len(path) == 0 {
		return value
	}
	if s, ok := find(object, path[0]); ok {
		inner := SetMember(object[s.Start:s.End], value, path[1:]...)
		return replace(object, s, inner)
	}
	inner := SetMember(nil, value, path[1:]...)
	open := skipBlanks(object, 0)
	if at(object, open) != '{' {
		return append(append(AppendQuote([]byte{'{'}, path[0]), ':'), append(inner, '}')...)
	}
	end := bytes.LastIndexByte(object, '}')
	last := bytes.TrimRight(object[:end], " \t\r\n")
	add := []byte{}
	if len(bytes.TrimSpace(object[open+1:end])) > 0 {
		add = append(add, ',')
	}
	add = append(append(AppendQuote(add, path[0]), ':'), inner...)
	return replace(object, Span{len(last), len(last)}, add)
}

// DeleteMember returns object without the member at path, which has one name at least; the rest stays as it is.
func DeleteMember(object []byte, path ...string) []byte {
	if len(path) > 1 {
		s, ok := find(object, path[0])
		if !ok {
			return object
		}
		return replace(object, s, DeleteMember(object[s.Start:s.End], path[1:]...))
	}
	var before, after int // end of the value before, start of the name after
	var name, value Span
	for n, v := range members(object) {
		switch {
		case value.End != 0:
			after = n.Start
		case nameIs(object[n.Start:n.End], path[0]):
			name, value = n, v
			continue
		default:
			before = v.End
		}
		if after != 0 {
			break
		}
	}
	switch {
	case value.End == 0:
		return object
	case after != 0:
		return replace(object, Span{name.Start, after}, nil)
	case before != 0:
		return replace(object, Span{before, value.End}, nil)
	}
	return replace(object, Span{name.Start, value.End}, nil)
}

// DeleteMembers returns object without the members for which drop is true; the others stay as they are. A peer may send very many of
// them: each is looked at once.
func DeleteMembers(object []byte, drop func(name string, value []byte) bool) []byte {
	out, dropped := []byte{'{'}, false
	for n, v := range members(object) {
		name, _ := Unquote(object[n.Start:n.End])
		if drop(name, object[v.Start:v.End:v.End]) {
			dropped = true
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, object[n.Start:v.End]...)
	}
	if !dropped {
		return object
	}
	return append(out, '}')
}

func replace(b []byte, s Span, with []byte) []byte {
	out := make([]byte, 0, len(b)-(s.End-s.Start)+len(with))
	out = append(out, b[:s.Start]...)
	out = append(out, with...)
	return append(out, b[s.End:]...)
}
