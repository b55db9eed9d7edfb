// Package unseen finds characters that a person does not see and a model reads, or that a terminal obeys: control
// characters and escape sequences, marks that turn the direction of text, characters of no width, and the tag characters
// that spell out hidden text.
//
//	unseen.Describe("ok\u202e")  // "U+202E (direction)"
//	unseen.Visible("ok\u202e")   // "ok⟨U+202E⟩"
//
// What ordinary text needs is spared: the line end, the tab and the form feed, a byte order mark at the beginning, the
// joiners of scripts and emoji that need them, single variation selectors, the flags of regions, and the marks of direction
// that turn nothing but their neighbours.
//
// # Limits
//
// Letters that look like others are not found, nor text that is hidden by its colour, its size or its place.
package unseen

import (
	"fmt"
	"iter"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Kind is why a character is not seen.
type Kind uint8

const (
	// Control is a control character, such as the escape that begins what a terminal obeys.
	Control Kind = iota + 1
	// Direction turns the direction of the text behind it: what is read is not what is shown.
	Direction
	// Width is a character of no width where no script needs one.
	Width
	// Tag spells out text that nobody is shown.
	Tag
)

func (k Kind) String() string {
	return [...]string{"", "control", "direction", "no width", "tag"}[k]
}

// Found is a character and where it is: its bytes are s[Start:End].
type Found struct {
	Start, End int
	Rune       rune
	Kind       Kind
}

// All yields what is not seen in s, in order. Bytes that are not UTF-8 are passed over.
func All(s string) iter.Seq[Found] {
	return func(yield func(Found) bool) {
		before := rune(-1) // the last one
		flag := 0          // up to where tags are those of a flag
		for i := 0; i < len(s); {
			r, size := rune(s[i]), 1
			if r >= utf8.RuneSelf {
				r, size = utf8.DecodeRuneInString(s[i:])
			}
			k := kind(r)
			switch {
			case r == blackFlag:
				flag = i + size + flagTags(s[i+size:])
			case k == Tag && i < flag, i == 0 && r == '\ufeff':
				k = 0
			case k == Width && (r == '\u200c' || r == '\u200d') && joins(before):
				if next, _ := utf8.DecodeRuneInString(s[i+size:]); joins(next) {
					k = 0
				}
			case selector(r) && selector(before):
				k = Tag // several in a row are an alphabet
			}
			if k != 0 && !yield(Found{i, i + size, r, k}) {
				return
			}
			before = r
			i += size
		}
	}
}

const blackFlag = '\U0001f3f4'

// flagTags returns the length of the tags that spell the region of a flag, with the one that ends them, else 0.
func flagTags(s string) int {
	for i, n := 0, 0; n <= 7; n++ {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case r == '\U000e007f' && n > 0:
			return i
		case r < '\U000e0030' || r > '\U000e007a':
			return 0
		}
	}
	return 0
}

// joins reports whether a character may be joined to another one: a letter or mark beyond Latin, or a symbol.
func joins(r rune) bool { return r >= 0x300 && r != utf8.RuneError && kind(r) == 0 || selector(r) }

func selector(r rune) bool {
	return r >= '\ufe00' && r <= '\ufe0f' || r >= '\U000e0100' && r <= '\U000e01ef'
}

func kind(r rune) Kind {
	switch {
	case r < 0x20:
		if r == '\n' || r == '\t' || r == '\r' || r == '\f' {
			return 0
		}
		return Control
	case r < 0x7f:
		return 0
	case r <= 0x9f:
		return Control
	case r < 0x180e:
		return 0
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
		return Direction
	case r >= '\u200b' && r <= '\u200d', r >= '\u2060' && r <= '\u2065', r >= '\u206a' && r <= '\u206f', r == '\ufeff', r == '\u180e', r == '\u3164', r == '\uffa0':
		return Width
	case r >= '\U000e0000' && r <= '\U000e007f':
		return Tag
	}
	return 0
}

// Any reports whether there is something in s that is not seen.
func Any(s string) bool {
	for range All(s) {
		return true
	}
	return false
}

// Describe names what is not seen in s, the first few of them; "" when there is nothing.
func Describe(s string) string {
	var names []string
	more := 0
	seen := map[rune]bool{}
	for f := range All(s) {
		switch {
		case seen[f.Rune]:
		case len(names) == 3:
			more++
		default:
			names = append(names, fmt.Sprintf("U+%04X (%s)", f.Rune, f.Kind))
		}
		seen[f.Rune] = true
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// JSON returns a JSON text with each character of its strings that is not seen written as an escape: it means the same.
func JSON(text string) string {
	if !Any(text) {
		return text
	}
	var b strings.Builder
	at := 0
	for f := range All(text) {
		b.WriteString(text[at:f.Start])
		if r1, r2 := utf16.EncodeRune(f.Rune); f.Rune > 0xffff {
			fmt.Fprintf(&b, `\u%04x\u%04x`, r1, r2)
		} else {
			fmt.Fprintf(&b, `\u%04x`, f.Rune)
		}
		at = f.End
	}
	b.WriteString(text[at:])
	return b.String()
}

// Visible returns s with each character that is not seen written out.
func Visible(s string) string {
	var b strings.Builder
	at := 0
	for f := range All(s) {
		fmt.Fprintf(&b, "%s⟨U+%04X⟩", s[at:f.Start], f.Rune)
		at = f.End
	}
	if at == 0 {
		return s
	}
	b.WriteString(s[at:])
	return b.String()
}
