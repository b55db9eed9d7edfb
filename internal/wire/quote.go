package wire

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

// Quote returns s as a JSON string.
func Quote(s string) []byte {
	return AppendQuote(make([]byte, 0, len(s)+len(s)/16+8), s) // escapes are few, and to grow a long text is to copy it often
}

// AppendQuote appends s as a JSON string. Ill-formed parts become U+FFFD. It looks at eight bytes at a time: most text has
// nothing to escape in most of them.
func AppendQuote(dst []byte, s string) []byte {
	return AppendQuoteBytes(dst, unsafe.Slice(unsafe.StringData(s), len(s))) // they are only read
}

// AppendQuoteBytes is AppendQuote of a text that is at hand as bytes.
func AppendQuoteBytes(dst, s []byte) []byte {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	dst = append(dst, '"')
	done, i := 0, 0 // of s: what is in dst, and where to look
	for i < len(s) {
		if i+8 <= len(s) {
			x := binary.LittleEndian.Uint64(s[i:])
			quote, slash := x^ones*'"', x^ones*'\\'
			// The highest bit of the lowest byte that is a control character, a quote, a backslash, or not ASCII. Bits above it may
			// be wrong.
			m := ((x-ones*0x20)&^x | (quote-ones)&^quote | (slash-ones)&^slash | x) & highs
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) / 8
		}
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[done:i]...), "\ufffd"...)
				done = i + 1
			}
			i += n
			continue
		case c == '"' || c == '\\':
			dst = append(append(dst, s[done:i]...), '\\', c)
		case c >= 0x20:
			i++
			continue
		case escapes[c] != 0:
			dst = append(append(dst, s[done:i]...), '\\', escapes[c])
		default:
			const digits = "0123456789abcdef"
			dst = append(append(dst, s[done:i]...), '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		i++
		done = i
	}
	return append(append(dst, s[done:]...), '"')
}

// escapes are the control characters that have a short form.
var escapes = [0x20]byte{'\b': 'b', '\t': 't', '\n': 'n', '\f': 'f', '\r': 'r'}
