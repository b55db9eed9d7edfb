package fsserver

import (
	"bytes"
	"iter"
	"slices"
)

// byteOrderMark may stand at the beginning of a file. It belongs to the file and is no text to edit.
var byteOrderMark = []byte("\ufeff")

// document is the text of a file that is edited: with "\n" for every line end, and a note of which are "\r\n" in the file.
// What is not UTF-8 stays as it is.
type document struct {
	marked  bool // it begins with a byte order mark, which is not in text
	text    []byte
	returns []int32 // offsets in text of each "\n" that is "\r\n" in the file, ascending
}

func parseDocument(raw []byte) *document {
	d := &document{}
	d.text, d.marked = bytes.CutPrefix(raw, byteOrderMark)
	n := bytes.Count(d.text, []byte("\r\n"))
	if n == 0 {
		return d
	}
	d.returns = make([]int32, 0, n)
	folded := make([]byte, 0, len(d.text)-n)
	for rest := d.text; ; {
		line, after, found := bytes.Cut(rest, []byte("\r\n"))
		folded = append(folded, line...)
		if !found {
			break
		}
		d.returns = append(d.returns, int32(len(folded)))
		folded = append(folded, '\n')
		rest = after
	}
	d.text = folded
	return d
}

// raw returns the bytes of the file.
func (d *document) raw() []byte {
	b := make([]byte, 0, len(byteOrderMark)+len(d.text)+len(d.returns))
	if d.marked {
		b = append(b, byteOrderMark...)
	}
	at := 0
	for _, r := range d.returns {
		b = append(append(b, d.text[at:r]...), '\r', '\n')
		at = int(r) + 1
	}
	return append(b, d.text[at:]...)
}

// equal reports whether two documents are the same bytes.
func (d *document) equal(e *document) bool {
	return d == e || d.marked == e.marked && bytes.Equal(d.text, e.text) && slices.Equal(d.returns, e.returns)
}

// span is a part of a document's text and what comes in its place.
type span struct {
	start, end int
	new        []byte
}

// splice returns the document with spans, which are in order, replaced; size is the length of its text. Line ends that come
// in take after those of the span, one after the other, and when it has too few, after its last one; when it has none, after
// that of its line.
func (d *document) splice(spans iter.Seq[span], size int) *document {
	to := &document{marked: d.marked, text: make([]byte, 0, size)}
	from := marks{d.returns}
	if len(d.returns) > 0 {
		to.returns = make([]int32, 0, len(d.returns))
	}
	at, next, own := 0, -1, false // next: where the line that the span ends in ends; own: its line end is "\r\n"
	keep := func(until int) {
		for _, r := range from.until(until) {
			to.returns = append(to.returns, r+int32(len(to.text)-at))
		}
		to.text = append(to.text, d.text[at:until]...)
		at = until
	}
	for s := range spans {
		if len(d.returns) > 0 {
			s = s.narrow(d.text) // the line ends of what stays alike stay theirs
		}
		keep(s.start)
		ends := from.until(s.end)
		if len(d.returns) > 0 && bytes.IndexByte(s.new, '\n') >= 0 {
			if next < s.end {
				if next = lineEnd(d.text, s.end); next < len(d.text) {
					own = from.has(next)
				} else {
					own = d.lastStyle()
				}
			}
			style, old := own, d.text[s.start:s.end]
			for i := range s.new {
				if s.new[i] != '\n' {
					continue
				}
				if j := bytes.IndexByte(old, '\n'); j >= 0 {
					place := int32(s.end - len(old) + j)
					style = len(ends) > 0 && ends[0] == place
					if style {
						ends = ends[1:]
					}
					old = old[j+1:]
				}
				if style {
					to.returns = append(to.returns, int32(len(to.text)+i))
				}
			}
		}
		to.text = append(to.text, s.new...)
		at = s.end
	}
	keep(len(d.text))
	return to
}

// marks are offsets, ascending, that are taken from the front.
type marks struct{ left []int32 }

// until takes those before an offset.
func (m *marks) until(offset int) []int32 {
	n, _ := slices.BinarySearch(m.left, int32(offset))
	taken := m.left[:n]
	m.left = m.left[n:]
	return taken
}

// has reports whether an offset that is not taken yet is one.
func (m *marks) has(offset int) bool {
	_, found := slices.BinarySearch(m.left, int32(offset))
	return found
}

// lastStyle reports whether the last line end is "\r\n" in the file.
func (d *document) lastStyle() bool {
	i := bytes.LastIndexByte(d.text, '\n')
	return i >= 0 && (&marks{d.returns}).has(i)
}

// lineEnd returns where the line that goes on at an offset ends, without its line end.
func lineEnd(text []byte, offset int) int {
	if i := bytes.IndexByte(text[offset:], '\n'); i >= 0 {
		return offset + i
	}
	return len(text)
}

// narrow takes what stays alike at both ends off a span.
func (s span) narrow(text []byte) span {
	n := commonPrefix(text[s.start:s.end], s.new)
	s.start, s.new = s.start+n, s.new[n:]
	n = commonSuffix(text[s.start:s.end], s.new)
	s.end, s.new = s.end-n, s.new[:len(s.new)-n]
	return s
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-n-1] == b[len(b)-n-1] {
		n++
	}
	return n
}
