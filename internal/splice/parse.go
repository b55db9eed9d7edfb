package splice

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Doc is a text and the tree of what it says. It never changes: an edit makes a new one. It is safe for concurrent use.
type Doc struct {
	format Format
	bom    bool
	text   []byte // without the byte order mark
	root   *Value
	exprs  []expr // the top-level expressions of TOML, in order
	faults []*Error
}

const (
	bom      = "\ufeff"
	maxDepth = 10_000
)

// Parse reads a text. An error is an *Error.
func Parse(text []byte, f Format) (*Doc, error) {
	d := read(text, f)
	if len(d.faults) > 0 {
		return nil, d.faults[0]
	}
	return d, nil
}

// Read reads a text as far as it can be read, and returns all that its grammar does not allow, in the order of the text.
// Of a name that is given twice the last one counts, as for most programs. The value is nil where nothing can be read.
func Read(text []byte, f Format) (*Value, []*Error) {
	d := read(text, f)
	if d.bom {
		d.faults = append([]*Error{{Pos: Pos{1, 1}, Msg: "the text begins with a byte order mark", Fault: Marked}}, d.faults...)
	}
	return d.root, d.faults
}

func read(text []byte, f Format) *Doc {
	d := &Doc{format: f, text: bytes.Clone(text)}
	if bytes.HasPrefix(text, []byte(bom)) {
		d.bom, d.text = true, d.text[len(bom):]
	}
	if !utf8.Valid(d.text) {
		d.fault(d.errorf(invalidUTF8(d.text), "this is not UTF-8 text"))
		return d
	}
	switch f {
	case JSON, JSONC, Commented:
		d.parseJSON()
	case TOML:
		d.parseTOML()
	case YAML:
		d.parseYAML()
	default:
		panic("bug: splice.Parse of " + f.String())
	}
	slices.SortStableFunc(d.faults, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return d
}

func (d *Doc) fault(e *Error) { d.faults = append(d.faults, e) }

// Format returns the grammar the text was read by.
func (d *Doc) Format() Format { return d.format }

// Root returns the value of the whole text.
func (d *Doc) Root() *Value { return d.root }

// Find returns the value that p leads to.
func (d *Doc) Find(p Path) (*Value, bool) { return d.root.Find(p) }

// Bytes returns the text.
func (d *Doc) Bytes() []byte {
	if d.bom {
		return append([]byte(bom), d.text...)
	}
	return bytes.Clone(d.text)
}

func (d *Doc) errorf(offset int, format string, args ...any) *Error {
	at := locator{text: d.text, pos: Pos{1, 1}}
	return &Error{Pos: at.of(min(offset, len(d.text))), Msg: fmt.Sprintf(format, args...)}
}

// locator tells the places of offsets that come in order, in one pass over the text.
type locator struct {
	text   []byte
	offset int
	pos    Pos
}

func (l *locator) of(offset int) Pos {
	if offset < l.offset {
		l.offset, l.pos = 0, Pos{1, 1}
	}
	passed := l.text[l.offset:offset]
	if n := bytes.Count(passed, []byte("\n")); n > 0 {
		l.pos.Line += n
		l.pos.Column = 1
		passed = passed[bytes.LastIndexByte(passed, '\n')+1:]
	}
	l.pos.Column += utf8.RuneCount(passed)
	l.offset = offset
	return l.pos
}

// offset is the inverse of a line and a column that counts bytes.
func (d *Doc) offset(line, column int) int {
	n := 0
	for ; line > 1; line-- {
		i := bytes.IndexByte(d.text[n:], '\n')
		if i < 0 {
			return len(d.text)
		}
		n += i + 1
	}
	return min(n+column-1, len(d.text))
}

func invalidUTF8(text []byte) int {
	n := 0
	for {
		r, size := utf8.DecodeRune(text[n:])
		if r == utf8.RuneError && size <= 1 {
			return n
		}
		n += size
	}
}
