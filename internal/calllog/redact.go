package calllog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	maxShort  = 256     // bytes of a string in arguments that is written out
	maxText   = 4096    // bytes of any other string, and of a path
	minHash   = 32      // bytes of a string whose digest gives nothing away
	maxArgs   = 16384   // bytes of arguments after redaction
	maxBodies = 8 << 20 // the same, and of a string in them, with Options.Bodies
	maxDepth  = 64      // nesting that is looked into
)

// RedactText returns s with what looks like a secret replaced.
func RedactText(s string) string {
	var b []byte
	text := []byte(s)
	path := pathShaped(text)
	i := 0
	for {
		start, end, ok := nextSecret(text, i, path)
		if !ok {
			break
		}
		b = append(b, text[i:start]...)
		b = appendMarker(b, end-start)
		i = end
	}
	if i == 0 {
		return s
	}
	return string(append(b, text[i:]...))
}

// RedactArgs returns the arguments of a command with what looks like a secret replaced: also what follows an option with
// a secret's name, and what an assignment in capitals gives to an environment variable.
func RedactArgs(args []string) []string {
	out := make([]string, len(args))
	secret := false
	for i, arg := range args {
		option, assignment := "", arg
		if before, after, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") { // --env=NAME=value
			option, assignment = before+"=", after
		}
		name, value, assigned := strings.Cut(assignment, "=")
		switch {
		case secret:
			out[i] = string(appendMarker(nil, len(arg)))
		case assigned && variable(name) && !pathShaped([]byte(value)):
			out[i] = option + name + "=" + string(appendMarker(nil, len(value)))
		default:
			out[i] = RedactText(arg)
		}
		secret = !secret && secretOption([]byte(arg))
	}
	return out
}

// secretOption reports whether arg is an option whose value, a secret, comes next.
func secretOption(arg []byte) bool {
	return len(arg) > 1 && arg[0] == '-' && !bytes.ContainsAny(arg, "=: ") && secretName(arg)
}

// variable reports whether name is written as environment variables are.
func variable(name string) bool {
	for i := range len(name) {
		if c := name[i]; class[c] != upper && c != '_' && (class[c] != digit || i == 0) {
			return false
		}
	}
	return name != ""
}

func appendMarker(dst []byte, n int) []byte {
	return append(strconv.AppendInt(append(dst, '['), int64(n), 10), " bytes redacted]"...)
}

// appendJSON appends to dst the JSON value src, redacted. What it appends is always one valid JSON value: where src is not, it is
// {"bytes":n,"sha256":"…"}.
func (w *walker) appendJSON(dst, src []byte) []byte {
	w.src, w.pos, w.dst, w.most = src, 0, dst, len(dst)+maxArgs
	if w.bodies {
		w.most = len(dst) + maxBodies
	}
	sound := w.value(plain, 0) && w.space() == 0 && w.pos == len(src)
	out := w.dst
	w.src, w.dst = nil, nil
	if !sound {
		sum := sha256.Sum256(src)
		out = appendSize(out[:len(dst)], len(src), sum[:])
	}
	return out
}

func appendSize(dst []byte, n int, sum []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"bytes":`...), int64(n), 10)
	if n >= minHash {
		dst = hex.AppendEncode(append(dst, `,"sha256":"`...), sum[:4])
		dst = append(dst, '"')
	}
	return append(dst, '}')
}

// mode is how a value is treated because of the names above it.
type mode uint8

const (
	plain  mode = iota
	free        // strings become sizes
	secret      // strings and numbers become markers
)

// walker copies a JSON value from src to dst, redacting. It gives up (false) on what is not JSON, and when dst grows
// over most. It can be used again.
type walker struct {
	bodies bool // long strings and free text are written out

	src  []byte
	pos  int
	dst  []byte
	most int
	text []byte // the last string with an escape, decoded

	hash  hash.Hash // of what has escapes; nil until it is needed
	chunk [4096]byte
}

// space skips white space and returns the byte behind it, 0 at the end.
func (w *walker) space() byte {
	for ; w.pos < len(w.src); w.pos++ {
		switch c := w.src[w.pos]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

func (w *walker) value(m mode, depth int) bool {
	if len(w.dst) > w.most {
		return false
	}
	c := w.space()
	if depth > maxDepth && (c == '{' || c == '[') {
		raw := w.skip()
		sum := sha256.Sum256(raw)
		w.dst = appendSize(w.dst, len(raw), sum[:])
		return raw != nil
	}
	switch c {
	case '{':
		return w.object(m, depth)
	case '[':
		return w.array(m, depth)
	case '"':
		raw, ok := w.string()
		if ok {
			w.appendString(raw, m)
		}
		return ok
	default:
		return w.scalar(m)
	}
}

func (w *walker) object(m mode, depth int) bool {
	w.pos++
	w.dst = append(w.dst, '{')
	// {"name": "Authorization", "value": "…"}, in whatever order
	announced := false
	from, to, size := 0, 0, 0
	for first := true; ; first = false {
		c := w.space()
		if c == '}' && first {
			break
		}
		if !first {
			if c == '}' {
				break
			}
			if c != ',' {
				return false
			}
			w.pos++
			w.dst = append(w.dst, ',')
			c = w.space()
		}
		if c != '"' {
			return false
		}
		raw, ok := w.string()
		if !ok {
			return false
		}
		name := w.decode(raw)
		of := max(m, w.mode(name))
		isName := equalFold(name, "name") || equalFold(name, "key") || equalFold(name, "header")
		isValue := equalFold(name, "value")
		numbers := of == secret && m != secret && counted(name)
		w.appendText(name)
		if w.space() != ':' {
			return false
		}
		w.pos++
		w.dst = append(w.dst, ':')
		c = w.space()
		switch {
		case isName && c == '"' && of == plain:
			start := w.pos
			raw, ok := w.string()
			if !ok {
				return false
			}
			announced = announced || secretName(w.decode(raw))
			w.pos = start
		case isValue && announced:
			of = secret
		case numbers && (c == '-' || class[c] == digit):
			of = m
		}
		start, began := len(w.dst), w.pos
		if !w.value(of, depth+1) {
			return false
		}
		if isValue && of != secret {
			from, to, size = start, len(w.dst), w.pos-began
			if c == '"' {
				size -= len(`""`)
			}
		}
	}
	w.pos++
	if announced && to > 0 { // the value came before its name
		rest := bytes.Clone(w.dst[to:])
		w.dst = append(appendMarker(append(w.dst[:from], '"'), size), '"')
		w.dst = append(w.dst, rest...)
	}
	w.dst = append(w.dst, '}')
	return true
}

func (w *walker) array(m mode, depth int) bool {
	w.pos++
	w.dst = append(w.dst, '[')
	next := m // ["--token", "…"]
	for first := true; ; first = false {
		c := w.space()
		if c == ']' {
			break
		}
		if !first {
			if c != ',' {
				return false
			}
			w.pos++
			w.dst = append(w.dst, ',')
			c = w.space()
		}
		of := next
		next = m
		if c == '"' && of == plain {
			start := w.pos
			if raw, ok := w.string(); ok && len(raw) > 1 && raw[0] == '-' && secretOption(w.decode(raw)) {
				next = secret
			}
			w.pos = start
		}
		if !w.value(of, depth+1) {
			return false
		}
	}
	w.pos++
	w.dst = append(w.dst, ']')
	return true
}

// mode returns how the value under name is treated.
func (w *walker) mode(name []byte) mode {
	switch {
	case secretName(name):
		return secret
	case !w.bodies && freeName(name):
		return free
	}
	return plain
}

// scalar copies a number, true, false or null.
func (w *walker) scalar(m mode) bool {
	start := w.pos
	for w.pos < len(w.src) && (class[w.src[w.pos]] != separator && w.src[w.pos] != '/' || w.src[w.pos] == '.') {
		w.pos++
	}
	raw := w.src[start:w.pos]
	switch {
	case string(raw) == "true" || string(raw) == "false" || string(raw) == "null":
	case !number(raw):
		return false
	case m == secret:
		w.dst = append(appendMarker(append(w.dst, '"'), len(raw)), '"')
		return true
	case len(raw) > maxShort:
		sum := sha256.Sum256(raw)
		w.dst = appendSize(w.dst, len(raw), sum[:])
		return true
	}
	w.dst = append(w.dst, raw...)
	return true
}

// number reports whether s is a JSON number.
func number(s []byte) bool {
	digits := func() bool {
		n := 0
		for n < len(s) && class[s[n]] == digit {
			n++
		}
		s = s[n:]
		return n > 0
	}
	if len(s) > 0 && s[0] == '-' {
		s = s[1:]
	}
	if len(s) > 1 && s[0] == '0' && class[s[1]] == digit || !digits() {
		return false
	}
	if len(s) > 0 && s[0] == '.' {
		s = s[1:]
		if !digits() {
			return false
		}
	}
	if len(s) > 0 && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if len(s) > 0 && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false
		}
	}
	return len(s) == 0
}

// string reads a string and returns what is between its quotes.
func (w *walker) string() (raw []byte, ok bool) {
	rest := w.src[w.pos+1:]
	end := bytes.IndexByte(rest, '"')
	for i := 0; end >= 0; {
		n := bytes.IndexByte(rest[i:end], '\\')
		if n < 0 {
			w.pos += end + 2
			return rest[:end], true
		}
		if i += n + 2; i > end { // the quote was escaped
			if end = bytes.IndexByte(rest[min(i, len(rest)):], '"'); end >= 0 {
				end += i
			}
		}
	}
	return nil, false
}

// skip passes over one value, whose brackets it counts, and returns its bytes, nil when it does not end.
func (w *walker) skip() []byte {
	start, depth := w.pos, 0
	for w.pos < len(w.src) {
		switch w.src[w.pos] {
		case '"':
			if _, ok := w.string(); !ok {
				return nil
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		w.pos++
		if depth == 0 {
			return w.src[start:w.pos]
		}
	}
	return nil
}

// decode returns the text of a string; it is good until the next call.
func (w *walker) decode(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	w.text = appendUnescaped(w.text[:0], raw)
	return w.text
}

func (w *walker) appendString(raw []byte, m mode) {
	switch {
	case len(raw) == 0:
		w.dst = append(w.dst, `""`...)
	case m == secret:
		w.dst = append(appendMarker(append(w.dst, '"'), unescapedLen(raw)), '"')
	case m == plain && (len(raw) <= maxShort || w.bodies || pathShaped(raw) && pathShaped(w.decode(raw))):
		w.appendText(w.decode(raw))
	default:
		n, sum := w.measure(raw)
		w.dst = appendSize(w.dst, n, sum[:])
	}
}

func (w *walker) appendText(text []byte) {
	limit := maxText
	if w.bodies {
		limit = maxBodies
	}
	w.dst = appendRedacted(w.dst, text, limit)
}

// appendRedacted appends text as a JSON string: secrets replaced, nothing in it that a terminal obeys, and what is over
// limit cut off.
func appendRedacted(dst, text []byte, limit int) []byte {
	path := pathShaped(text)
	seen, cut := text, len(text)
	if cut > limit {
		cut = limit
		for cut > limit-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
			cut--
		}
		seen = text[:min(len(text), cut+maxText)] // a secret that the cut goes through is still seen
	}
	dst = append(dst, '"')
	i := 0
	for i < cut {
		start, end, ok := nextSecret(seen, i, path)
		if !ok || start >= cut {
			break
		}
		dst = appendEscaped(dst, text[i:start])
		dst = appendMarker(dst, end-start)
		i = end
	}
	if i < cut {
		dst = appendEscaped(dst, text[i:cut])
		i = cut
	}
	if i < len(text) {
		dst = append(dst, "… [+"...)
		dst = append(strconv.AppendInt(dst, int64(len(text)-i), 10), " bytes]"...)
	}
	return append(dst, '"')
}

const hexDigits = "0123456789abcdef"

// appendEscaped appends what stands for text in a JSON string. What is no visible character is escaped, and bad UTF-8
// becomes U+FFFD.
func appendEscaped(dst, text []byte) []byte {
	done := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < 0x7f && c != '"' && c != '\\' {
			i++
			continue
		}
		r, n := rune(c), 1
		if c >= utf8.RuneSelf {
			if r, n = utf8.DecodeRune(text[i:]); r != utf8.RuneError && unicode.IsGraphic(r) {
				i += n
				continue
			}
		}
		dst = append(dst, text[done:i]...)
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			dst = appendU(appendU(dst, high), low)
		default:
			dst = appendU(dst, r)
		}
		i += n
		done = i
	}
	return append(dst, text[done:]...)
}

func appendU(dst []byte, r rune) []byte {
	return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// unescape reads the escape at the beginning of s: what it stands for, and how long it is. An escape that is none stands
// for itself.
func unescape(s []byte) (r rune, n int) {
	if len(s) < 2 {
		return '\\', 1
	}
	switch s[1] {
	case 'n':
		return '\n', 2
	case 't':
		return '\t', 2
	case 'r':
		return '\r', 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'u':
		if r = hex4(s[2:]); r < 0 {
			return '\\', 1
		}
		if utf16.IsSurrogate(r) {
			if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
				if both := utf16.DecodeRune(r, hex4(s[8:])); both != utf8.RuneError {
					return both, 12
				}
			}
			r = utf8.RuneError
		}
		return r, 6
	default:
		return rune(s[1]), 2
	}
}

// hex4 reads four hex digits, -1 when there are none.
func hex4(s []byte) (r rune) {
	if len(s) < 4 {
		return -1
	}
	for _, c := range s[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

func appendUnescaped(dst, raw []byte) []byte {
	for {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:n]...)
		r, size := unescape(raw[n:])
		dst = utf8.AppendRune(dst, r)
		raw = raw[n+size:]
	}
}

func unescapedLen(raw []byte) (total int) {
	for {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 {
			return total + len(raw)
		}
		r, size := unescape(raw[n:])
		total += n + utf8.RuneLen(r)
		raw = raw[n+size:]
	}
}

// measure returns the length and the SHA-256 of a string's text, which it does not hold.
func (w *walker) measure(raw []byte) (size int, sum [sha256.Size]byte) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return len(raw), sha256.Sum256(raw)
	}
	if len(raw) <= len(w.chunk) {
		text := appendUnescaped(w.chunk[:0], raw)
		return len(text), sha256.Sum256(text)
	}
	if w.hash == nil {
		w.hash = sha256.New()
	}
	w.hash.Reset()
	chunk := w.chunk[:0]
	flush := func() {
		size += len(chunk)
		w.hash.Write(chunk)
		chunk = w.chunk[:0]
	}
	for len(raw) > 0 {
		if len(chunk) > len(w.chunk)/2 {
			flush()
		}
		part := raw[:min(len(raw), len(w.chunk)/4)]
		n := bytes.IndexByte(part, '\\')
		if n < 0 {
			chunk = append(chunk, part...)
			raw = raw[len(part):]
			continue
		}
		chunk = append(chunk, part[:n]...)
		r, skip := unescape(raw[n:])
		chunk = utf8.AppendRune(chunk, r)
		raw = raw[n+skip:]
	}
	flush()
	w.hash.Sum(w.chunk[:0])
	return size, [sha256.Size]byte(w.chunk[:])
}
