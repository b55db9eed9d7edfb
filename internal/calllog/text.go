package calllog

import (
	"bytes"
	"strings"
)

// Text is something to look for in records.
type Text struct {
	needle []byte // in lower case
	rare   int    // where it has its rarest byte: most lines are done with when they do not have that
}

// NewText returns what finds s. Letters of ASCII are found in either case, others as they are.
func NewText(s string) *Text {
	t := &Text{needle: appendEscaped(nil, []byte(s))}
	best := -1
	for i, c := range t.needle {
		t.needle[i] = lowerASCII(c)
		if n := strings.IndexByte(byFrequency, lowerASCII(c)); n < 0 || n > best {
			t.rare, best = i, n
			if n < 0 {
				best = len(byFrequency)
			}
		}
	}
	return t
}

// byFrequency are the bytes that a line of a log has most, the most frequent first.
const byFrequency = `"e,:a0rst1l42odn3c5679i8bfp_h/m-uvg.kyxj `

// within reports whether s has the text, in whatever case.
func (t *Text) within(s []byte) bool {
	if len(t.needle) == 0 {
		return true
	}
	low := t.needle[t.rare]
	if t.byByte(s, low) {
		return true
	}
	return 'a' <= low && low <= 'z' && t.byByte(s, low-'a'+'A')
}

// byByte is within for texts whose rarest byte is written as c.
func (t *Text) byByte(s []byte, c byte) bool {
	for from := t.rare; from < len(s); from++ {
		n := bytes.IndexByte(s[from:], c)
		if n < 0 {
			return false
		}
		from += n
		if begin := from - t.rare; begin+len(t.needle) <= len(s) && t.is(s[begin:]) {
			return true
		}
	}
	return false
}

func (t *Text) is(s []byte) bool {
	for i, c := range t.needle {
		if lowerASCII(s[i]) != c {
			return false
		}
	}
	return true
}

func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// In reports whether a line of a log holds the text in one of its values, in a string or in a number. Names of members, the
// number and the time of the record, and what chains it are no values.
func (t *Text) In(line []byte) bool {
	if !t.within(line) {
		return false
	}
	for rest := values(line); ; {
		quote := bytes.IndexByte(rest, '"')
		if quote < 0 {
			return t.within(rest)
		}
		if t.within(rest[:quote]) {
			return true
		}
		rest = rest[quote+1:]
		end := stringEnd(rest)
		if end < 0 {
			return false // not a record
		}
		text := rest[:end]
		rest = rest[end+1:]
		if isName := len(rest) > 0 && rest[0] == ':'; !isName && t.within(text) {
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
