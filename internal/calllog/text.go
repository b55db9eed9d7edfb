package calllog

import "bytes"

// Text is something to look for in records. It is not safe for concurrent use.
type Text struct {
	needle []byte
	line   []byte // the last line, in lower case
}

// NewText returns what finds s. Letters of ASCII are found in either case, others as they are.
func NewText(s string) *Text {
	return &Text{needle: lowerASCII(nil, appendEscaped(nil, []byte(s)))}
}

// In reports whether a line of a log holds the text in one of its values, in a string or in a number. Names of members, the
// number and the time of the record, and what chains it are no values.
func (t *Text) In(line []byte) bool {
	t.line = lowerASCII(t.line[:0], line)
	if len(t.needle) == 0 || !bytes.Contains(t.line, t.needle) { // most lines do not have it anywhere
		return len(t.needle) == 0
	}
	for rest := values(t.line); ; {
		quote := bytes.IndexByte(rest, '"')
		if quote < 0 {
			return bytes.Contains(rest, t.needle)
		}
		if bytes.Contains(rest[:quote], t.needle) {
			return true
		}
		rest = rest[quote+1:]
		end := stringEnd(rest)
		if end < 0 {
			return false // not a record
		}
		text := rest[:end]
		rest = rest[end+1:]
		if isName := len(rest) > 0 && rest[0] == ':'; !isName && bytes.Contains(text, t.needle) {
			return true
		}
	}
}

// values is the part of a line between the time of the record and what chains it.
func values(line []byte) []byte {
	const head, chain = `{"seq":`, len(`,"prev":"","hash":""}`) + 2*len(digits{})
	if n := len(line) - chain; n > 0 && hasPrefix(line[n:], `,"prev":"`) {
		line = line[:n]
	}
	if hasPrefix(line, head) {
		if _, rest, ok := bytes.Cut(line, []byte(`","`)); ok { // behind the time
			line = line[len(line)-len(rest)-1:]
		}
	}
	return line
}

// stringEnd returns where the string ends that s begins with, behind its first quote: the place of the last one, or -1.
func stringEnd(s []byte) int {
	for i := 0; ; i++ {
		n := bytes.IndexByte(s[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		escapes := 0
		for escapes < i && s[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
}

func lowerASCII(dst, s []byte) []byte {
	for _, c := range s {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}
