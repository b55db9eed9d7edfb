package wire

import "bytes"

// finder looks for the id and the kind of something that is not held, or is no message: the line that is too long (its
// id may come last), and the line that is refused. It follows strings and nesting only, in constant memory.
type finder struct {
	depth    int
	done     bool // the first message has ended
	inString bool
	escaped  bool
	isValue  bool   // a top-level name and its colon were read
	name     []byte // the last top-level string outside a value
	text     []byte // the top-level scalar that is being read
	overflow bool
	longID   bool // there is an id, and it is too long to be kept
	idText   []byte
	method   bool
	response bool
}

func (f *finder) scan(p []byte) {
	for i := 0; i < len(p) && !f.done; i++ {
		c := p[i]
		if f.inString {
			if f.depth > 1 || f.overflow { // nobody wants these bytes: go to the next one that matters
				if !f.escaped {
					n := bytes.IndexAny(p[i:], "\"\\")
					if n < 0 {
						return
					}
					i += n
					c = p[i]
				}
			} else {
				f.keep(c)
			}
			switch {
			case f.escaped:
				f.escaped = false
			case c == '\\':
				f.escaped = true
			case c == '"':
				f.inString = false
			}
			continue
		}
		switch c {
		case '"':
			f.inString = true
			if f.depth == 1 {
				f.text, f.overflow = f.text[:0], false
				f.keep(c)
			}
		case '{', '[':
			if f.depth == 1 {
				f.text = append(f.text[:0], c)
			}
			f.depth++
		case '}', ']':
			f.depth--
			if f.depth <= 0 {
				f.endMember()
				f.done = true
			}
		case ':':
			if f.depth == 1 && !f.isValue {
				f.isValue = true
				f.name = append(f.name[:0], f.text...)
				f.text, f.overflow = f.text[:0], false
			}
		case ',':
			if f.depth == 1 {
				f.endMember()
			}
		case ' ', '\t', '\r', '\n':
		default:
			if f.depth == 1 {
				f.keep(c)
			}
		}
	}
}

func (f *finder) keep(c byte) {
	if len(f.text) > maxID {
		f.overflow = true
		return
	}
	f.text = append(f.text, c)
}

func (f *finder) endMember() {
	if f.isValue && f.overflow && string(f.name) == `"id"` {
		f.longID = true
	}
	if f.isValue && !f.overflow {
		switch string(f.name) {
		case `"id"`:
			f.idText = append(f.idText[:0], f.text...)
		case `"method"`:
			f.method = true
		}
	}
	if f.isValue && (string(f.name) == `"result"` || string(f.name) == `"error"`) {
		f.response = true
	}
	f.isValue = false
	f.text, f.overflow = f.text[:0], false
}

// id returns the id's bytes when they are one.
func (f *finder) id() []byte {
	if !validID(f.idText) {
		return nil
	}
	return bytes.Clone(f.idText)
}

func (f *finder) kind() Kind {
	switch {
	case f.method && (len(f.idText) > 0 || f.longID):
		return Request
	case f.method:
		return Notification
	case f.response:
		return Response
	}
	return Invalid
}
