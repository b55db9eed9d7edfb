package pin

import (
	"strings"
	"unicode"
)

const (
	dangerWords  = "new text tells a model what to do, or speaks of what it has no need to"
	dangerMuch   = "there is much new text"
	dangerScript = "there is new text in a script that was not there"
)

// maxNewWords is how many words may be new in a text without being much.
const maxNewWords = 80

// steering says why a change of words is one of meaning, or nothing. What counts is what is new: sentences that differ from
// an old one in numbers, letter case or punctuation only are not.
func steering(before, after string, known scripts) string {
	old := map[string]bool{}
	for _, s := range sentences(before) {
		old[plain(s)] = true
	}
	words := 0
	for i, s := range sentences(after) {
		p := plain(s)
		if p == "" || old[p] {
			continue
		}
		words += len(strings.Fields(p))
		if speaksOf(strings.ToLower(s)) || obliges(" "+p+" ") || i > 0 && commands(p) {
			return dangerWords
		}
	}
	switch {
	case words > maxNewWords:
		return dangerMuch
	case scriptOf(after)&^known&^scriptOf(before)&^latin != 0:
		return dangerScript
	}
	return ""
}

// sentences cuts a text where sentences end, at line ends too.
func sentences(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(".!?;\n\r。！？；", r) })
}

// plain is a sentence as its words: in lower case, each number as 0, and no punctuation.
func plain(s string) string {
	var b strings.Builder
	last := ' '
	for _, r := range s {
		switch {
		case r == '\'' || r == '’':
			continue
		case unicode.IsDigit(r):
			r = '0'
		case unicode.IsLetter(r) || unicode.IsMark(r):
			r = unicode.ToLower(r)
		default:
			r = ' '
		}
		if r == last && (r == ' ' || r == '0') {
			continue
		}
		b.WriteRune(r)
		last = r
	}
	return strings.TrimSpace(b.String())
}

// targets are what no description of a tool needs to speak of anew without somebody looking.
var targets = []string{
	"~/", "/etc", "/root", "/proc", ".ssh", ".env", "id_rsa", ".aws", "http:", "https:", "curl ", "wget ", "base64", "<", "`$(",
	"password", "passwd", "credential", "secret", "api key", "api_key", "apikey", "access token", "private key", "cookie", "system prompt",
	"jailbreak",
}

func speaksOf(s string) bool {
	for _, t := range targets {
		if strings.Contains(s, t) {
			return true
		}
	}
	return false
}

// duties are words that oblige somebody, or speak to a model.
var duties = []string{
	"must", "always", "never", "mandatory", "do not", "dont", "should", "shall", "need to", "needs to", "have to", "has to", "ensure",
	"make sure", "important", "critical", "ignore", "disregard", "forget", "override", "bypass", "instead", "before", "prior to", "first",
	"afterwards", "secretly", "silently", "without telling", "without asking", "you", "your", "assistant", "the model", "the user", "users",
	"instruction", "instructions", "prompt", "conversation", "other tools", "other tool", "remember", "required step", "on behalf",
	"immer", "niemals", "ignoriere", "siempre", "nunca", "ignora", "toujours", "jamais", "ignorez", "必须", "务必", "不要", "忽略", "始终",
}

// obliges is given words with a blank before and behind.
func obliges(words string) bool {
	for _, d := range duties {
		if d[0] >= 0x80 && strings.Contains(words, d) || strings.Contains(words, " "+d+" ") {
			return true
		}
	}
	return false
}

// verbs begin a sentence that commands. The first sentence of a description says in this form what a tool does.
var verbs = func() map[string]bool {
	m := map[string]bool{}
	for _, v := range strings.Fields("add append ask attach call check copy execute fetch follow forward get give include insert keep list load" +
		" mention note open pass pay post provide put read reply respond return run save say send set show start stop submit tell treat" +
		" upload use write") {
		m[v] = true
	}
	return m
}()

func commands(words string) bool {
	first, _, _ := strings.Cut(words, " ")
	return verbs[first]
}

// scripts are those that a text is written in, as bits.
type scripts uint32

const latin scripts = 1

var scriptTables = []*unicode.RangeTable{
	unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Arabic,
	unicode.Hebrew, unicode.Devanagari, unicode.Thai, unicode.Bengali, unicode.Tamil, unicode.Armenian, unicode.Georgian,
}

func scriptOf(s string) scripts {
	var found scripts
	for _, r := range s {
		if r < 0x80 || !unicode.IsLetter(r) {
			continue
		}
		bit := scripts(1) << 31 // another one
		for i, t := range scriptTables {
			if unicode.Is(t, r) {
				bit = 1 << i
				break
			}
		}
		found |= bit
	}
	return found
}
