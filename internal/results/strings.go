package results

import (
	"bytes"
	"iter"

	"github.com/rootbound/rootbound/internal/unseen"
	"github.com/rootbound/rootbound/internal/wire"
)

// scanned is what one pass over the bytes of a value tells: enough to leave ordinary ones alone.
type scanned struct {
	depth int
	// characters and secrets are set when strings have to be read to know.
	characters, secrets bool
	// parts is set when a string may be the name of a member that is looked at in parts, besides when one may be that of another one
	// that is looked at.
	parts, besides bool
}

// scan looks at a valid JSON value.
func scan(b []byte, characters, secrets bool) scanned {
	var s scanned
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
			s.depth = max(s.depth, depth)
		case '}', ']':
			depth--
		case '"':
			begin := i + 1
			if i = s.str(b, begin, characters, secrets); i-begin <= maxNamed {
				s.named(b[begin:min(i, len(b))])
			}
		}
	}
	return s
}

// maxNamed is the length of the longest name in named, each of whose characters may be escaped.
const maxNamed = len("structuredContent") * len(`\u0000`)

// named takes a string that may be the name of a member. What is written with escapes may be any.
func (s *scanned) named(raw []byte) {
	switch string(raw) {
	case "uri", "resource", "data", "blob":
		s.parts = true
	case "structuredContent", "isError":
		s.besides = true
	default:
		if bytes.IndexByte(raw, '\\') >= 0 {
			s.parts, s.besides = true, true
		}
	}
}

// What a byte in a string is for the scan.
const (
	ordinary = iota
	between  // tokens: what may begin a secret stands behind it
	escape
	quote
	lead // may begin a character that is not seen
)

var bytesOf = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c == '\\':
			t[c] = escape
		case c == '"':
			t[c] = quote
		case c == 0xc2, c == 0xe1, c == 0xe2, c == 0xe3, c == 0xef, c == 0xf3:
			t[c] = lead
		case c < 0x20, c == 0x7f:
			t[c] = lead // where a reader was lenient
		case c == '_', c == '-', c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= 0x80:
		default:
			t[c] = between
		}
	}
	return t
}()

// str looks at the string whose text begins at i, and returns where its end quote is.
func (s *scanned) str(b []byte, i int, characters, secrets bool) int {
	begins := true // a token
	for ; i < len(b); i++ {
		c := b[i]
		switch bytesOf[c] {
		case ordinary:
			if begins && secrets && !s.secrets && mayBegin(b[i:]) {
				s.secrets = true
			}
			for begins = false; i+1 < len(b) && bytesOf[b[i+1]] == ordinary; {
				i++
			}
		case between:
			if secrets && c == ':' && bytes.HasPrefix(b[i:], []byte("://")) && !s.secrets {
				if _, _, ok := userinfo(b[i+3:]); ok {
					s.secrets = true
				}
			}
			begins = true
		case escape:
			i++
			if i < len(b) && b[i] == 'u' {
				s.characters = s.characters || characters && mayHide(b[i:])
				i += 4
			} else if i+1 < len(b) && b[i] == '\\' && (b[i+1] == 'n' || b[i+1] == 'r' || b[i+1] == 't') {
				i++ // a line end in text that is JSON itself
			}
			begins = true
		case quote:
			return i
		case lead:
			s.characters = s.characters || characters && hides(b[i:])
			begins = true
		}
	}
	return i
}

// hides reports whether a character that may not be seen begins b. What is spared is for unseen to say.
func hides(b []byte) bool {
	if len(b) < 3 {
		return false
	}
	switch b[0] {
	case 0xc2:
		return b[1] < 0xa0
	case 0xe1:
		return b[1] == 0xa0 && b[2] == 0x8e
	case 0xe2:
		return b[1] == 0x80 && (b[2] >= 0x8b && b[2] <= 0x8d || b[2] >= 0xaa && b[2] <= 0xae) || b[1] == 0x81 && b[2] >= 0xa0 && b[2] <= 0xaf
	case 0xe3:
		return b[1] == 0x85 && b[2] == 0xa4
	case 0xef:
		return b[1] == 0xbb && b[2] == 0xbf || b[1] == 0xbe && b[2] == 0xa0 || b[1] == 0xb8 && len(b) >= 6 && (b[3] == 0xef || b[3] == 0xf3)
	case 0xf3:
		return b[1] == 0xa0
	}
	return true
}

// mayHide reports whether the escape that goes on with b, `uXXXX`, may stand for a character that is not seen.
func mayHide(b []byte) bool {
	if len(b) < 5 {
		return false
	}
	switch string(bytes.ToLower(b[1:3])) {
	case "00", "18", "20", "31", "db", "fe", "ff":
		return true
	}
	return false
}

// raw is a string in a JSON value.
type raw struct {
	start, end int  // with its quotes
	name       bool // of a member
	of         string
}

// all yields the strings of a valid JSON value in order. Of is the name of the member that the string is or is the name of,
// or the last one before it.
func all(b []byte) iter.Seq[raw] {
	return func(yield func(raw) bool) {
		of := ""
		for i := 0; i < len(b); i++ {
			if b[i] != '"' {
				continue
			}
			s := raw{start: i, of: of}
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			s.end = min(i+1, len(b))
			rest := bytes.TrimLeft(b[s.end:], " \t\r\n")
			if s.name = len(rest) > 0 && rest[0] == ':'; s.name {
				of, _ = wire.Unquote(b[s.start:s.end])
				s.of = of
			}
			if !yield(s) {
				return
			}
		}
	}
}

// steers are members that mean something to a client: text is not put into them.
func steers(name string) bool {
	switch name {
	case "uri", "mimeType", "type", "data", "blob", "resultType", "nextCursor":
		return true
	}
	return false
}

// strings reads the strings in which characters or secrets may be, and takes out what is to be.
func (r *run) strings(s scanned) {
	var out []byte
	at := 0
	for str := range all(r.Value) {
		if str.of == "data" || str.of == "blob" {
			continue
		}
		text, err := wire.Unquote(r.Value[str.start:str.end])
		if err != nil {
			continue
		}
		clean := text
		if s.secrets {
			clean = r.secrets(clean, str.of)
		}
		if s.characters {
			if what := unseen.Describe(clean); what != "" && r.found(Characters, "%s in %.60q", what, str.of) {
				clean = unseen.Visible(clean)
			}
		}
		if clean != text && !str.name && !steers(str.of) {
			out = wire.AppendQuote(append(out, r.Value[at:str.start]...), clean)
			at = str.end
		}
	}
	if at > 0 {
		r.Value, r.edited = append(out, r.Value[at:]...), true
	}
}

// visible is a text of others for people: short, of one line, and with nothing in it that is not seen.
func visible(s string) string {
	return unseen.Visible(string(bytes.ReplaceAll([]byte(s), []byte("\n"), []byte(" "))))
}
