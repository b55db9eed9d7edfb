package splice

import "strings"

// list is what stands between a pair of brackets: the items of an array or the members of an object.
type list struct {
	open, close int // of the brackets themselves
	items       []span
}

type span struct{ start, end int }

// patch replaces a span of the text.
type patch struct {
	span
	with string
}

func cut(start, end int) patch          { return patch{span: span{start, end}} }
func put(at int, s string) patch        { return patch{span: span{at, at}, with: s} }
func (d *Doc) between(s span) string    { return string(d.text[s.start:s.end]) }
func (d *Doc) hasLineEnd(a, b int) bool { return strings.Contains(d.between(span{a, b}), "\n") }
func (d *Doc) onlyBlanks(a, b int) bool { return strings.Trim(d.between(span{a, b}), " \t\r\n") == "" }
func (d *Doc) skipLineBlanks(at int) int {
	return at + len(d.text[at:]) - len(strings.TrimLeft(string(d.text[at:]), " \t"))
}

func (d *Doc) listOf(v *Value) list {
	l := list{open: v.start, close: v.end - 1}
	for _, p := range v.pairs {
		l.items = append(l.items, span{p.start, p.end})
	}
	for _, item := range v.Items {
		l.items = append(l.items, span{item.start, item.end})
	}
	return l
}

// comma returns where the comma behind an item stands, or -1.
func (d *Doc) comma(item span) int {
	if n := d.skipExtra(item.end); d.text[n] == ',' {
		return n
	}
	return -1
}

// before looks at what stands before item i: where the blanks begin, whether a line begins in them, and whether a
// comment that ends with its line stands before them.
func (d *Doc) before(l list, i int) (blanks int, startsLine, lineComment bool) {
	from := l.open + 1
	if i > 0 {
		from = l.items[i-1].end
	}
	blanks, lineComment = d.solid(from, l.items[i].start)
	return blanks, d.hasLineEnd(blanks, l.items[i].start), lineComment
}

// gap is what stands between items of one line.
func (d *Doc) gap(l list) string {
	if len(l.items) > 1 {
		if s := d.between(span{d.comma(l.items[0]) + 1, l.items[1].start}); strings.Trim(s, " \t") == "" {
			return s
		}
	}
	return " "
}

// insertItem puts a text in as item i. Lines says that it should have a line of its own where the layout leaves a choice.
func (d *Doc) insertItem(l list, i int, text string, lines bool) []patch {
	nl := d.newline()
	switch n := len(l.items); {
	case n == 0:
		return d.insertOnly(l, text, lines)
	case i < n:
		if blanks, startsLine, _ := d.before(l, i); !startsLine {
			gap := d.gap(l)
			if i > 0 {
				gap = d.between(span{blanks, l.items[i].start})
			}
			return []patch{put(l.items[i].start, text+","+gap)}
		}
		at := l.open + 1
		if i > 0 {
			at = d.comma(l.items[i-1]) + 1
		}
		if end, alone := d.tail(at); alone {
			at = end
		}
		return []patch{put(at, nl+d.indent(l.items[i].start)+text+",")}
	default:
		last := l.items[n-1]
		comma, at := d.comma(last), last.end
		if comma >= 0 {
			at = comma + 1
		}
		_, ownLine, _ := d.before(l, n-1)
		// A comment that runs to the end of the line, or to the bracket, is about the item before.
		if end, alone := d.tail(at); alone || d.skipExtra(end) == l.close {
			_, lineComment := d.solid(at, end)
			ownLine = ownLine || lineComment
			at = end
		}
		between := d.gap(l)
		if ownLine {
			between = nl + d.indent(last.start)
		}
		if comma >= 0 {
			return []patch{put(at, between+text+",")}
		}
		return []patch{put(last.end, ","), put(at, between+text)}
	}
}

func (d *Doc) insertOnly(l list, text string, lines bool) []patch {
	nl, closing := d.newline(), d.indent(l.open)
	inner := closing + d.unit()
	if d.onlyBlanks(l.open+1, l.close) {
		if lines || d.hasLineEnd(l.open+1, l.close) {
			return []patch{{span{l.open + 1, l.close}, nl + inner + text + nl + closing}}
		}
		return []patch{put(l.open+1, d.between(span{l.open + 1, l.close})+text)}
	}
	end, _ := d.solid(l.open+1, l.close) // behind the last comment
	if d.hasLineEnd(end, l.close) {
		return []patch{put(end, nl+inner+text)}
	}
	return []patch{put(end, " "+text)}
}

// deleteItem takes out item i with its comma, and with its line when nothing else is on it but a comment.
func (d *Doc) deleteItem(l list, i int) []patch {
	item, n := l.items[i], len(l.items)
	blanks, startsLine, afterLineComment := d.before(l, i)
	tail := item.end
	comma := d.comma(item)
	if comma >= 0 {
		tail = comma + 1
	}
	end, alone := d.tail(tail)
	idle := -1 // the comma that goes because nothing follows it any more
	if i > 0 && i == n-1 && comma < 0 {
		idle = d.comma(l.items[i-1])
	}
	var patches []patch
	switch {
	case n == 1 && startsLine && blanks == l.open+1 && d.onlyBlanks(end, l.close):
		return []patch{cut(blanks, l.close)}
	case startsLine && alone:
		patches = []patch{cut(blanks, end)}
	case i == n-1 && !afterLineComment:
		patches = []patch{cut(blanks, tail)}
	case i == 0 || startsLine || afterLineComment:
		patches = []patch{cut(item.start, d.skipLineBlanks(tail))}
	default:
		patches = []patch{cut(blanks, tail)}
	}
	if idle >= 0 {
		patches = append([]patch{cut(idle, idle+1)}, patches...)
	}
	return patches
}

// unit is one step of indentation.
func (d *Doc) unit() string {
	for line := range strings.Lines(string(d.text)) {
		rest := strings.TrimLeft(line, " \t")
		if in := line[:len(line)-len(rest)]; in != "" && strings.TrimSpace(rest) != "" {
			if in[0] == '\t' {
				return "\t"
			}
			return in
		}
	}
	return "  "
}
