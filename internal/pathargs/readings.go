package pathargs

import (
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"unicode"
)

// reading is a path that a server may make of a value.
type reading struct {
	text string
	how  string // "", or what was done to the value, for a person
	err  error  // set when a server that reads it so leaves this machine
	drop int    // how many elements at the top say nothing when they exist
	weak bool   // not looked at when the value is inside as it is
}

const (
	maxParts  = 256 // paths in one string
	windows   = runtime.GOOS == "windows"
	maxRounds = 2 // of percent-decoding
	// maxReadings is how many ways there may be to read one path: real ones have a handful.
	maxReadings = 64
	// maxRead is how many bytes all of them may have together. One reading of the longest message is a quarter of it.
	maxRead = 256 << 20
)

var (
	errManyParts = errors.New("it lists too many paths in one string")
	errManyWays  = errors.New("it can be read in too many ways")
	errHost      = errors.New("it names another machine")
)

// readings returns every path that a server may make of a's value. The empty ones are left out.
func readings(a Argument, home string) []reading {
	r := &reader{home: home, seen: make(map[string]bool), room: maxRead}
	r.value(a.Value, a.uri)
	if a.plural {
		var parts []string
		for p := range strings.FieldsFuncSeq(a.Value, func(c rune) bool { return c == ',' || c == ';' || c == '\n' || c == '\r' }) {
			if len(parts) == maxParts {
				return []reading{{text: a.Value, err: errManyParts}}
			}
			parts = append(parts, p)
		}
		if len(parts) > 1 {
			for _, p := range parts {
				r.value(strings.TrimSpace(p), false)
			}
		}
	}
	return r.list
}

type reader struct {
	home string
	list []reading
	seen map[string]bool
	room int // how many bytes more the list may have
}

func (r *reader) add(text, how string, err error) { r.put(reading{text: text, how: how, err: err}) }

func (r *reader) put(x reading) {
	if x.text == "" || r.seen[x.text] && x.err == nil {
		return
	}
	r.seen[x.text] = true
	r.list = append(r.list, x)
	r.room -= len(x.text)
}

func (r *reader) value(s string, uri bool) {
	first := len(r.list)
	if !uri || !isFileURI(s) {
		r.add(s, "", nil)
	}
	if t := unquote(s); t != s {
		r.add(t, "without blanks and quotes", nil)
		s = t
	}
	if rest, ok := fileURI(s); ok {
		r.file(rest)
	}
	// What follows works on all that came before, and on its own results.
	for i := first; i < len(r.list); i++ {
		if len(r.list)-first > maxReadings || r.room < 0 {
			r.add(s, "", errManyWays)
			return
		}
		t := r.list[i].text
		if j := strings.IndexByte(t, 0); j >= 0 {
			r.add(t[:j], "cut at a NUL byte", nil)
		}
		if j := strings.IndexByte(t, ':'); j > 0 && filepath.IsAbs(t[:j]) && !strings.ContainsAny(t, " \t") {
			r.put(reading{text: t[:j], how: "cut at a colon", weak: true})
		}
		for range maxRounds {
			d, ok := percentDecode(t)
			if !ok {
				break
			}
			r.add(d, "percent-decoded", nil)
			t = d
		}
		if t = r.list[i].text; !windows && strings.Contains(t, `\`) {
			r.add(strings.ReplaceAll(t, `\`, "/"), `with "\" as separator`, nil)
		}
		if !windows && len(t) >= 2 && t[1] == ':' && isLetter(t[0]) && (len(t) == 2 || t[2] == '/') {
			r.put(reading{text: "/mnt/" + strings.ToLower(t[:1]) + t[2:], how: "with the drive as WSL mounts it", drop: 1})
		}
		r.expand(t)
	}
}

// file reads what follows "file:".
func (r *reader) file(rest string) {
	var err error
	if windows {
		rest = strings.ReplaceAll(rest, "/", `\`)
	}
	const sep = separator
	if after, ok := strings.CutPrefix(rest, sep+sep); ok {
		host, path, _ := strings.Cut(after, sep)
		switch {
		case host == "" || strings.EqualFold(host, "localhost"):
		case windows && len(host) == 2 && host[1] == ':':
			path = host + sep + path
		case windows:
			r.add(sep+sep+host+sep+path, "as a file URI", nil)
		default:
			err = errHost
		}
		rest = sep + path
	}
	if windows && len(rest) > 2 && rest[2] == ':' && rest[0] == '\\' {
		rest = rest[1:]
	}
	whole := len(r.list)
	r.add(rest, "as a file URI", err)
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		r.add(rest[:i], "as a file URI", err)
	}
	for i := whole; i < len(r.list); i++ { // a URI is always decoded
		if d, ok := percentDecode(r.list[i].text); ok {
			r.list[i].text = d
			r.seen[d] = true
		}
	}
}

// expand reads what a shell, or a library like one, makes of the beginning.
func (r *reader) expand(s string) {
	if r.home == "" {
		return
	}
	for _, v := range []string{"$HOME", "${HOME}"} {
		if rest, ok := strings.CutPrefix(s, v); ok && (rest == "" || rest[0] == '/' || rest[0] == '\\') {
			r.add(r.home+rest, "with "+v+" expanded", nil)
		}
	}
	rest, ok := strings.CutPrefix(s, "~")
	if !ok {
		return
	}
	user := rest
	if i := strings.IndexAny(rest, `/\`); i >= 0 {
		user, rest = rest[:i], rest[i:]
	} else {
		rest = ""
	}
	switch {
	case user == "":
		r.add(r.home+rest, "with ~ expanded", nil)
	case user == "root":
		r.add("/root"+rest, "with ~root expanded", nil)
	case isUser(user):
		r.add(filepath.Join(filepath.Dir(r.home), user)+rest, "with ~"+user+" expanded", nil)
	}
}

// isUser reports whether s can be the name of an account.
func isUser(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == "" && (isLetter(s[0]) || s[0] == '_')
}

// unquote takes away what servers trim: blanks of any kind, byte order marks, quotes.
func unquote(s string) string {
	return strings.TrimFunc(s, func(c rune) bool {
		return unicode.IsSpace(c) || c == '\ufeff' || c == '\u200b' || c == '"' || c == '\'' || c == '`'
	})
}

// percentDecode decodes every %XX once, and reports whether there was one.
func percentDecode(s string) (string, bool) {
	i := strings.IndexByte(s, '%')
	if i < 0 {
		return s, false
	}
	b := append(make([]byte, 0, len(s)), s[:i]...)
	found := false
	for ; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if hi, lo := unhex(s[i+1]), unhex(s[i+2]); hi < 16 && lo < 16 {
				b = append(b, hi<<4|lo)
				found = true
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b), found
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 16
}
