package splice

import "bytes"

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// skipComment returns the end of the comment that begins at n, without the line end; n when none does.
func (d *Doc) skipComment(n int) int {
	rest := d.text[n:]
	switch {
	case (d.format == TOML || d.format == YAML) && bytes.HasPrefix(rest, []byte("#")),
		d.format != TOML && d.format != YAML && bytes.HasPrefix(rest, []byte("//")):
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			end = len(rest)
		}
		return n + len(bytes.TrimRight(rest[:end], "\r"))
	case d.format != TOML && d.format != YAML && bytes.HasPrefix(rest, []byte("/*")):
		if end := bytes.Index(rest[2:], []byte("*/")); end >= 0 {
			return n + 2 + end + 2
		}
		return len(d.text)
	}
	return n
}

// skipExtra skips blanks and comments.
func (d *Doc) skipExtra(n int) int {
	for n < len(d.text) {
		next := d.skipComment(n)
		if blank(d.text[n]) {
			next = n + 1
		}
		if next == n {
			break
		}
		n = next
	}
	return n
}

// solid returns where the last thing ends that is no blank, between two offsets that have blanks, comments and commas
// between them, and whether that is a comment that ends with its line.
func (d *Doc) solid(from, to int) (end int, lineComment bool) {
	end = from
	for n := from; n < to; {
		next := d.skipComment(n)
		switch {
		case next > n:
			end, lineComment = next, d.text[n] == '#' || d.text[n+1] == '/'
		case !blank(d.text[n]):
			next = n + 1
			end, lineComment = next, false
		default:
			next = n + 1
		}
		n = next
	}
	return end, lineComment
}

// tail looks at the rest of the line from n: end is behind the comments that stand there, and alone says that nothing
// else follows on the line. A comment over several lines counts as something else.
func (d *Doc) tail(n int) (end int, alone bool) {
	end = n
	for n < len(d.text) {
		switch c := d.text[n]; {
		case c == '\n':
			return end, true
		case blank(c):
			n++
		default:
			next := d.skipComment(n)
			if next == n || bytes.IndexByte(d.text[n:next], '\n') >= 0 {
				return end, false
			}
			n, end = next, next
		}
	}
	return end, true
}

func (d *Doc) lineStart(n int) int { return bytes.LastIndexByte(d.text[:n], '\n') + 1 }

// lineEnd returns where the line after n begins.
func (d *Doc) lineEnd(n int) int {
	if i := bytes.IndexByte(d.text[n:], '\n'); i >= 0 {
		return n + i + 1
	}
	return len(d.text)
}

// indent returns the blanks at the beginning of the line that n is on.
func (d *Doc) indent(n int) string {
	start := d.lineStart(n)
	end := start
	for end < len(d.text) && (d.text[end] == ' ' || d.text[end] == '\t') {
		end++
	}
	return string(d.text[start:min(end, max(n, start))])
}

// newline returns the line end that the text uses first.
func (d *Doc) newline() string {
	if i := bytes.IndexByte(d.text, '\n'); i > 0 && d.text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
