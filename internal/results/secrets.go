package results

import (
	"bytes"
	"strings"
	"sync"
)

// credential is a kind of secret that says what it is by how it begins. The log leaves out whatever might be one; here a
// finding disturbs somebody, so only what is hardly anything else counts.
type credential struct {
	what   string
	prefix string
	least  int    // how many characters follow
	exact  bool   // no more than that
	also   string // what may follow besides letters and digits
	upper  bool   // letters are upper case
}

var credentials = []credential{
	{"an AWS access key", "AKIA", 16, true, "", true},
	{"an AWS access key", "ASIA", 16, true, "", true},
	{"a Google API key", "AIza", 35, true, "_-", false},
	{"an age secret key", "AGE-SECRET-KEY-1", 50, false, "", true},
	{"a DigitalOcean token", "dop_v1_", 64, true, "", false},
	{"a JSON Web Token", "eyJ", 10, false, "_-.=", false},
	{"a GitHub token", "ghp_", 36, false, "", false},
	{"a GitHub token", "gho_", 36, false, "", false},
	{"a GitHub token", "ghu_", 36, false, "", false},
	{"a GitHub token", "ghs_", 36, false, "", false},
	{"a GitHub token", "ghr_", 36, false, "", false},
	{"a GitHub token", "github_pat_", 50, false, "_", false},
	{"a GitLab token", "glpat-", 20, false, "_-.", false},
	{"a Groq key", "gsk_", 40, false, "", false},
	{"a Hugging Face token", "hf_", 30, false, "", false},
	{"an npm token", "npm_", 36, true, "", false},
	{"a PyPI token", "pypi-AgE", 50, false, "_-", false},
	{"a Stripe key", "rk_live_", 20, false, "", false},
	{"a Stripe key", "sk_live_", 20, false, "", false},
	{"an Anthropic key", "sk-ant-", 24, false, "_-", false},
	{"an OpenAI key", "sk-proj-", 24, false, "_-", false},
	{"an OpenAI key", "sk-", 40, false, "", false},
	{"a Shopify token", "shpat_", 32, true, "", false},
	{"a webhook secret", "whsec_", 24, false, "+/=", false},
	{"a Slack token", "xoxb-", 20, false, "-", false},
	{"a Slack token", "xoxp-", 20, false, "-", false},
	{"a Slack token", "xoxa-", 20, false, "-", false},
	{"a Slack token", "xoxe-", 20, false, "-", false},
	{"a Slack token", "xapp-", 20, false, "-", false},
}

var byFirst = sync.OnceValue(func() *[256][]credential {
	var t [256][]credential
	for _, c := range credentials {
		t[c.prefix[0]] = append(t[c.prefix[0]], c)
	}
	return &t
})

// seconds has for a first character of a credential the second ones, as bits of their lower halves: most words are told from
// credentials by two characters.
var seconds = func() (t [256]uint32) {
	for _, c := range credentials {
		t[c.prefix[0]] |= 1 << (c.prefix[1] & 31)
	}
	t[beginPEM[0]] |= 1 << (beginPEM[1] & 31)
	return t
}()

const beginPEM = "-----BEGIN "

// mayBegin reports whether a token that begins b may be a secret.
func mayBegin(b []byte) bool {
	if len(b) < 2 || seconds[b[0]]&(1<<(b[1]&31)) == 0 {
		return false
	}
	if b[0] == '-' {
		return bytes.HasPrefix(b, []byte(beginPEM))
	}
	for _, c := range byFirst()[b[0]] {
		if len(b) >= len(c.prefix) && string(b[:len(c.prefix)]) == c.prefix {
			return true
		}
	}
	return false
}

// secrets notes the secrets in a text, and returns it without those that are to be taken out.
func (r *run) secrets(text, of string) string {
	var out strings.Builder
	at, b := 0, []byte(text)
	begins := true
	for i := 0; i < len(b); i++ {
		start, end, what := 0, 0, ""
		switch {
		case bytesOf[b[i]] == escape:
			i++
			begins = true
			continue
		case b[i] == ':' && bytes.HasPrefix(b[i:], []byte("://")):
			if s, e, ok := userinfo(b[i+3:]); ok {
				start, end, what = i+3+s, i+3+e, "a password in an address"
			}
		case begins && bytesOf[b[i]] == ordinary:
			if n, name := secret(b[i:]); n > 0 {
				start, end, what = i, i+n, name
			}
		}
		begins = bytesOf[b[i]] != ordinary
		if what == "" {
			continue
		}
		if r.found(Secrets, "what looks like %s in %.60q", what, of) {
			out.WriteString(text[at:start] + "[" + what + ", taken out by Rootbound]")
			at = end
		}
		i = end - 1
		begins = false
	}
	if at == 0 {
		return text
	}
	out.WriteString(text[at:])
	return out.String()
}

// secret returns the length of the secret that b begins with, and what it is.
func secret(b []byte) (int, string) {
	if bytes.HasPrefix(b, []byte(beginPEM)) {
		return privateKey(b)
	}
	for _, c := range byFirst()[b[0]] {
		if !bytes.HasPrefix(b, []byte(c.prefix)) {
			continue
		}
		n, digits := len(c.prefix), 0
		for n < len(b) && (isLetter(b[n]) && !(c.upper && b[n] >= 'a') || isDigit(b[n]) || strings.IndexByte(c.also, b[n]) >= 0) {
			if isDigit(b[n]) {
				digits++
			}
			n++
		}
		rest := n - len(c.prefix)
		switch {
		case rest < c.least, c.exact && rest != c.least, n < len(b) && isLetter(b[n]), digits == 0:
		case c.prefix == "eyJ" && bytes.Count(b[:n], []byte(".")) < 2:
		default:
			return n, c.what
		}
	}
	return 0, ""
}

// privateKey is for a key as PEM has it, with its end when that is there.
func privateKey(b []byte) (int, string) {
	line := b[len(beginPEM):min(len(b), len(beginPEM)+64)]
	const mark = "PRIVATE KEY-----"
	i := bytes.Index(line, []byte(mark))
	if i < 0 || bytes.ContainsAny(line[:i], "\n-") {
		return 0, ""
	}
	begin := len(beginPEM) + i + len(mark)
	const end = "-----END "
	if n := bytes.Index(b[begin:], []byte(end)); n >= 0 {
		if m := bytes.Index(b[begin+n+len(end):], []byte("-----")); m >= 0 && m < 64 {
			return begin + n + len(end) + m + len("-----"), "a private key"
		}
	}
	return len(b), "a private key"
}

// maxAddress is how many bytes of an address are looked through for a password.
const maxAddress = 512

// userinfo finds the password in an address whose authority begins b. Placeholders and variables are none.
func userinfo(b []byte) (start, end int, ok bool) {
	b = b[:min(len(b), maxAddress)]
	if n := bytes.IndexAny(b, "/?# \t\r\n\"'<>\\`)"); n >= 0 {
		b = b[:n]
	}
	at := bytes.LastIndexByte(b, '@')
	colon := bytes.IndexByte(b, ':')
	if at < 0 || colon < 0 || colon >= at-1 {
		return 0, 0, false
	}
	password := string(b[colon+1 : at])
	if strings.ContainsAny(password, "${}<[*") {
		return 0, 0, false
	}
	switch strings.ToLower(password) {
	case "password", "pass", "passwd", "pwd", "secret", "xxx", "xxxx", "changeme":
		return 0, 0, false
	}
	return colon + 1, at, true
}

func isLetter(c byte) bool { return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
