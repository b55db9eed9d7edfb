package wire

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math/bits"
)

// What was scanned is valid JSON, so finding a part of it again needs no parser: only strings and nesting are followed.
// On bytes that are not valid JSON the walk ends early, and never outside of them.

// Items yields the elements of a JSON array. It yields nothing when array is not an array. Array must be valid JSON.
func Items(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := skipBlanks(array, 0)
		if at(array, i) != '[' {
			return
		}
		for i = skipBlanks(array, i+1); i < len(array) && array[i] != ']'; {
			end := skipValue(array, i)
			if end == i || !yield(array[i:end:end]) {
				return
			}
			if i = skipBlanks(array, end); at(array, i) == ',' {
				i = skipBlanks(array, i+1)
			}
		}
	}
}

// members yields where the names and values of an object are.
func members(object []byte) iter.Seq2[Span, Span] {
	return func(yield func(Span, Span) bool) {
		i := skipBlanks(object, 0)
		if at(object, i) != '{' {
			return
		}
		for i = skipBlanks(object, i+1); at(object, i) == '"'; {
			name := Span{i, skipString(object, i)}
			if i = skipBlanks(object, name.End); at(object, i) != ':' {
				return
			}
			value := Span{Start: skipBlanks(object, i+1)}
			value.End = skipValue(object, value.Start)
			if value.End == value.Start || !yield(name, value) {
				return
			}
			if i = skipBlanks(object, value.End); at(object, i) == ',' {
				i = skipBlanks(object, i+1)
			}
		}
	}
}

// at returns a byte, 0 behind the end.
func at(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}

func skipBlanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// skipString returns the end of the string that begins at i. It looks at eight bytes at a time: in texts with many escapes,
// as source is, a search for one byte finds the wrong one too often.
func skipString(b []byte, i int) int {
	for i++; i < len(b); {
		if i+8 <= len(b) {
			word := binary.LittleEndian.Uint64(b[i:])
			found := has(word, '"') | has(word, '\\')
			if found == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(found) / 8
		}
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i += 2
		default:
			i++
		}
	}
	return len(b)
}

// has returns a word whose lowest bit that is set belongs to the first byte of word that is c; 0 when there is none.
func has(word uint64, c byte) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	word ^= ones * uint64(c)
	return (word - ones) &^ word & highs
}

// skipValue returns the end of the value that begins at i.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			i++
			continue
		default: // a number, a word, a colon
			i++
			if depth == 0 && i < len(b) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(b[i])) {
				continue
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}
