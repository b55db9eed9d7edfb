package calllog

import "bytes"

// Classes of bytes in text: what a token is made of.
const (
	separator = iota
	upper
	lower
	digit
	joint // binds a token together without saying anything about it
	slash // joins in text, separates in a path
)

var class = func() (t [256]uint8) {
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = lower, upper
	}
	for c := '0'; c <= '9'; c++ {
		t[c] = digit
	}
	t['_'], t['-'], t['+'], t['/'] = joint, joint, joint, slash
	return t
}()

// nextSecret finds the first secret in text at or after i. In a path only what cannot be part of an ordinary path
// counts. It is one pass, so that it can stand on the way of every call.
func nextSecret(text []byte, i int, path bool) (start, end int, ok bool) {
	glue := uint8(slash)
	if path {
		glue = joint
	}
	for i < len(text) {
		if c := class[text[i]]; c == separator || c > glue {
			if text[i] == ':' && hasPrefix(text[i:], "://") {
				if start, end, ok := userinfo(text, i+3); ok {
					return start, end, true
				}
			}
			i++
			continue
		}
		t := token{start: i}
		for i < len(text) && class[text[i]] != separator && class[text[i]] <= glue {
			i++
		}
		t.end = i
		if start, end, ok := t.value(text); ok {
			return start, end, true
		}
		name := text[t.start:t.end]
		if len(name) < minShaped && !hasPrefix(name, beginPEM) {
			continue
		}
		t.count(name)
		element := path && (t.start == 0 || text[t.start-1] == '/' || text[t.start-1] == '\\' || text[t.start-1] == '.')
		if t.shaped(name, element) || t.random(name, element) {
			return t.start, t.shapedEnd(text, glue), true
		}
	}
	return 0, 0, false
}

const (
	// minShaped is the length of the shortest token that is taken for a secret by its shape, PEM apart.
	minShaped = 16
	beginPEM  = "-----BEGIN"

	maxUserinfo = 1024 // bytes of a URL in which a password is looked for
)

// token is a run of letters, digits and joints.
type token struct {
	start, end          int
	upper, lower, digit int
	turns               int // changes between the three, over joints
}

// count looks at what the token, whose bytes are name, is made of.
func (t *token) count(name []byte) {
	var count [slash + 1]int
	last := uint8(separator)
	for _, b := range name {
		c := class[b]
		count[c]++
		if c < joint {
			if c != last && last != separator {
				t.turns++
			}
			last = c
		}
	}
	t.upper, t.lower, t.digit = count[upper], count[lower], count[digit]
}

// value finds the secret that a name announces: `password=x`, `"token": "x"`, `Authorization: …`, `Bearer x`.
func (t token) value(text []byte) (start, end int, ok bool) {
	i := t.end
	if i == len(text) {
		return 0, 0, false
	}
	name := text[t.start:t.end]
	if text[i] == ' ' {
		if !equalFold(name, "bearer") && !equalFold(name, "basic") {
			return 0, 0, false
		}
		start, end = i+1, i+1
		shaped := false
		for ; end < len(text) && text[end] > ' ' && text[end] != '"' && text[end] != '\''; end++ {
			shaped = shaped || class[text[end]] == digit || class[text[end]] == upper || text[end] == '='
		}
		return start, end, shaped && end-start >= 8
	}
	if i = quote(text, i); i == len(text) {
		return 0, 0, false
	}
	sign := text[i]
	var before byte
	if t.start > 0 {
		before = text[t.start-1]
	}
	switch {
	case sign != '=' && sign != ':', hasPrefix(text[i:], "://"),
		before == '/', before == '\\', bytes.IndexByte(name, '/') >= 0: // the end of a path: "/etc/passwd: no such file"
		return 0, 0, false
	}
	inQuery := sign == '=' && (before == '?' || before == '&')
	if !secretName(name) && !(inQuery && (string(name) == "key" || string(name) == "code" || string(name) == "signature")) {
		return 0, 0, false
	}
	for i++; i < len(text) && (text[i] == ' ' || text[i] == '\t'); i++ {
	}
	start = quote(text, i)
	var stop string
	switch {
	case start > i: // up to the same quote
		stop = string(text[start-1])
	case sign == ':': // a header or a line of YAML: all of it
		stop = "\r\n"
	default:
		stop = " \t\r\n&;,\"'"
	}
	end = len(text)
	if n := bytes.IndexAny(text[start:], stop); n >= 0 {
		end = start + n
	}
	return start, end, end > start
}

// quote returns where the text goes on behind a quote at i, which may be escaped, or i when there is none.
func quote(text []byte, i int) int {
	j := i
	for j < len(text) && text[j] == '\\' {
		j++
	}
	if j < len(text) && (text[j] == '"' || text[j] == '\'') {
		return j + 1
	}
	return i
}

// shapes are beginnings of credentials that say what they are.
var shapes = map[byte][]string{
	'A': {"AIza", "AGE-SECRET-KEY-"},
	'd': {"dop_v1_"},
	'e': {"eyJ"},
	'g': {"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gsk_"},
	'h': {"hf_"},
	'l': {"lin_api_"},
	'n': {"npm_", "ntn_"},
	'p': {"pypi-", "pk_live_", "pat-"},
	'r': {"rk_live_", "rk_test_"},
	's': {"sk-", "sk_", "shpat_", "sq0"},
	'w': {"whsec_"},
	'x': {"xox", "xapp-"},
}

// shaped reports whether a token begins as a credential of a known kind, or PEM, does. In an element of a path it has to
// look drawn as well.
func (t token) shaped(name []byte, element bool) bool {
	if hasPrefix(name, beginPEM) {
		return true
	}
	n := t.upper + t.lower + t.digit
	if (hasPrefix(name, "AKIA") || hasPrefix(name, "ASIA")) && len(name) == 20 && t.upper+t.digit == 20 {
		return true
	}
	for _, s := range shapes[name[0]] {
		if hasPrefix(name, s) {
			return s == "eyJ" || t.digit > 0 && (!element || t.turns*4 >= n) // not /tmp/sk-learn-2
		}
	}
	return false
}

// random reports whether a token looks drawn rather than written: digits among letters of both cases, or many changes
// between letters and digits, as in hexadecimal and base 32. Words joined together change seldom.
// In an element of a path only the first counts: hashes are ordinary there.
func (t token) random(name []byte, element bool) bool {
	n := t.upper + t.lower + t.digit
	mixed := t.upper > 0 && t.lower > 0 && t.digit >= 2 && t.turns*100 >= n*45
	if element {
		return mixed && n >= 32
	}
	if mixed && n >= 24 {
		return true
	}
	return n >= 32 && t.digit >= 3 && t.turns*4 >= n && !uuid(name)
}

// uuid reports whether name has the shape of a UUID: an identifier, and readable.
func uuid(name []byte) bool {
	return len(name) == 36 && name[8] == '-' && name[13] == '-' && name[18] == '-' && name[23] == '-'
}

// shapedEnd is where the secret that begins with t ends: behind the parts that points and padding join to it, and for PEM
// behind its end line.
func (t token) shapedEnd(text []byte, glue uint8) int {
	if hasPrefix(text[t.start:], beginPEM) {
		for _, mark := range []string{"-----END", "-----"} {
			n := bytes.Index(text[t.end:], []byte(mark))
			if n < 0 {
				return len(text)
			}
			t.end += n + len(mark)
		}
		return t.end
	}
	i := t.end
	for i < len(text) && (class[text[i]] != separator && class[text[i]] <= glue || text[i] == '.' || text[i] == '=' || text[i] == '~') {
		i++
	}
	return i
}

// userinfo finds the password in a URL whose authority begins at i. A raw `/` in a password is taken for a part of it
// unless what stands before it is a port.
func userinfo(text []byte, i int) (start, end int, ok bool) {
	rest := text[i:min(len(text), i+maxUserinfo)]
	if n := bytes.IndexAny(rest, " \t\r\n\"'<>"); n >= 0 {
		rest = rest[:n]
	}
	authority := rest
	if n := bytes.IndexAny(rest, "/?#"); n >= 0 {
		authority = rest[:n]
	}
	colon := bytes.IndexByte(authority, ':')
	if colon < 0 {
		return 0, 0, false
	}
	at := bytes.LastIndexByte(authority, '@')
	if at < colon {
		if port(authority[colon+1:]) {
			return 0, 0, false
		}
		at = bytes.LastIndexByte(rest, '@')
	}
	start, end = i+colon+1, i+at
	return start, end, end > start
}

func port(s []byte) bool {
	for _, c := range s {
		if class[c] != digit {
			return false
		}
	}
	return true
}

// secretName reports whether a name says that its value is a secret. Case and joints do not matter.
func secretName(name []byte) bool {
	var buf [64]byte
	n := normal(buf[:], name)
	switch string(n) {
	case "auth", "basicauth", "proxyauth", "pass", "pw", "pwd", "pin", "otp", "totp", "mfacode", "pat", "jwt", "sid", "sig",
		"sessionid", "hmac", "pgpass", "dsn":
		return true
	case "progresstoken":
		return false
	}
	for i, c := range n {
		switch c {
		case 'a':
			if hasPrefix(n[i:], "apikey") || hasPrefix(n[i:], "authorization") || hasPrefix(n[i:], "accesskey") || hasPrefix(n[i:], "authkey") {
				return true
			}
		case 'b':
			if hasPrefix(n[i:], "bearer") {
				return true
			}
		case 'c':
			if hasPrefix(n[i:], "credential") || hasPrefix(n[i:], "cookie") || hasPrefix(n[i:], "connectionstring") {
				return true
			}
		case 'e':
			if hasPrefix(n[i:], "encryptionkey") {
				return true
			}
		case 'p':
			if hasPrefix(n[i:], "password") || hasPrefix(n[i:], "passwd") || hasPrefix(n[i:], "passphrase") ||
				hasPrefix(n[i:], "passcode") || hasPrefix(n[i:], "privatekey") {
				return true
			}
		case 's':
			if hasPrefix(n[i:], "secret") || hasPrefix(n[i:], "signingkey") || hasPrefix(n[i:], "sharedkey") || hasPrefix(n[i:], "sessionkey") {
				return true
			}
		case 't':
			if hasPrefix(n[i:], "token") {
				return true
			}
		}
	}
	return false
}

// freeName reports whether a name holds text that is not looked into.
func freeName(name []byte) bool {
	var buf [64]byte
	switch string(normal(buf[:], name)) {
	case "content", "contents", "text", "body", "message", "messages", "description", "query", "prompt", "code", "sql",
		"oldtext", "newtext", "oldstring", "newstring", "oldstr", "newstr", "filetext", "data", "blob", "instructions", "html",
		"markdown", "comment", "patch", "diff", "script", "snippet", "note", "notes", "summary", "document", "stdin":
		return true
	}
	return false
}

// normal puts name into buf in lower case without joints; of a long name its end.
func normal(buf, name []byte) []byte {
	n := 0
	for _, c := range name[max(0, len(name)-len(buf)):] {
		switch class[c] {
		case upper:
			c += 'a' - 'A'
		case joint:
			continue
		case separator:
			if c == '.' || c == ' ' {
				continue
			}
		}
		buf[n] = c
		n++
	}
	return buf[:n]
}

// counted reports whether a secret-looking name holds a number that is none: max_tokens.
func counted(name []byte) bool {
	var buf [64]byte
	return bytes.Contains(normal(buf[:], name), []byte("tokens"))
}

func hasPrefix(s []byte, prefix string) bool {
	return len(s) >= len(prefix) && string(s[:len(prefix)]) == prefix
}

func equalFold(s []byte, word string) bool {
	if len(s) != len(word) {
		return false
	}
	for i, c := range s {
		if class[c] == upper {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// pathShaped reports whether text is written as a path is: such text stays readable.
func pathShaped(s []byte) bool {
	if len(s) == 0 || len(s) > maxText || bytes.IndexByte(s, '\n') >= 0 {
		return false
	}
	switch s[0] {
	case '/', '\\':
		return true
	case '~', '.':
		return len(s) == 1 || hasPrefix(s[1:], "/") || hasPrefix(s[1:], "\\") || hasPrefix(s, "../") || hasPrefix(s, `..\`) || string(s) == ".."
	}
	if len(s) > 2 && s[1] == ':' && (s[2] == '\\' || s[2] == '/') && (class[s[0]] == upper || class[s[0]] == lower) {
		return true
	}
	return len(s) > 5 && equalFold(s[:5], "file:")
}
