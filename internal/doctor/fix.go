package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/splice"
)

// mend mends one finding in a text. It only looks at what is behind its own place, so that mends can be made from the end
// of a text to its beginning. Nil mends nothing.
type mend func(text []byte) ([]byte, error)

// errMoved is for a text that is not what the finding was about, or that is written in a way that a mend does not know.
var errMoved = errors.New("it is written in a way that has to be edited by hand")

// Amendment is what is to become of one file.
type Amendment struct {
	File   *clientconf.File
	Before []byte
	Draft  *clientconf.Draft
	// Mends are the findings that it mends.
	Mends []Finding
}

// Fixes returns the edits that mend the safe findings of a report, and the findings that could not be mended, with why. Of a
// file that several clients read it is the edit for the first of them that has something to mend, and of a value with several
// findings it is one: the next is found when that is written. Nothing is written here.
func Fixes(m Machine, files []*clientconf.File, r *Report) (list []Amendment, errs []error) {
	for _, f := range files {
		if slices.ContainsFunc(list, func(a Amendment) bool { return a.File.Path == f.Path }) {
			continue
		}
		a, err := fix(m, files, f, r, nil)
		if err != nil {
			errs = append(errs, err)
		}
		if len(a.Mends) > 0 {
			list = append(list, a)
		}
	}
	return list, errs
}

// fix makes the edit of one file, without what is of the servers in left.
func fix(m Machine, files []*clientconf.File, f *clientconf.File, r *Report, left []string) (Amendment, error) {
	a := Amendment{File: f, Before: f.Text()}
	mine := func(g Finding) bool {
		return g.File == f.Path && g.Client == f.Client.ID && (g.Server == "" || !slices.Contains(left, g.Server))
	}
	var due []Finding
	for _, g := range r.Findings {
		if mine(g) && (g.mend != nil || g.migrate != nil) {
			due = append(due, g)
		}
	}
	if len(due) == 0 {
		return a, nil
	}
	if !f.Client.Writable {
		return a, fmt.Errorf("%q is not edited: %s", f.Path, f.Client.ReadOnly)
	}
	text := a.Before
	slices.SortStableFunc(due, func(a, b Finding) int { // from the end
		if a.Line != b.Line {
			return b.Line - a.Line
		}
		return b.Column - a.Column
	})
	var errs []error
	last := splice.Pos{}
	for _, g := range due {
		at := splice.Pos{Line: g.Line, Column: g.Column}
		if g.mend == nil || at == last { // of two in one value, the other one is found again
			continue
		}
		next, err := g.mend(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d:%d: %s: %w", f.Path, g.Line, g.Column, g.ID, err))
			continue
		}
		text, last = next, at
		a.Mends = append(a.Mends, g)
	}
	draft, err := f.Amend(text)
	if err != nil {
		return Amendment{File: f}, errors.Join(append(errs, err)...)
	}
	a.Draft = draft
	mended := with(files, f, text)
	now := mended[slices.Index(files, f)]
	for _, g := range Examine(m, mended).Findings { // roots that are mended can be moved
		if g.migrate == nil || !mine(g) {
			continue
		}
		i := slices.IndexFunc(now.Servers, func(s *clientconf.Server) bool { return s.Name == g.Server && s.Roots != nil && !s.Unread })
		err := draft.Wrap(now.Servers[i], m.Self, g.migrate...)
		if err == nil {
			err = draft.Remove(now.Servers[i], "roots", "capabilities")
		}
		if err != nil {
			return Amendment{File: f}, errors.Join(append(errs, err)...)
		}
		a.Mends = append(a.Mends, g)
	}
	if len(a.Mends) == 0 {
		return Amendment{File: f}, errors.Join(errs...)
	}
	if g, bad := worse(m, files, f, draft.Bytes(), r, a.Mends); bad {
		err := fmt.Errorf("%q is not edited: the edit would bring %s, %s", f.Path, g.ID, g.What)
		of := func(server string) bool {
			return slices.ContainsFunc(a.Mends, func(m Finding) bool { return m.Server == server })
		}
		if of("") || !of(g.Server) { // a mend of the whole file is for all of its servers
			return Amendment{File: f}, errors.Join(append(errs, err)...)
		}
		others, rest := fix(m, files, f, r, append(left, g.Server)) // what is of others can be mended all the same
		return others, errors.Join(err, rest)
	}
	return a, errors.Join(errs...)
}

// with returns the files with another text in one, for each client that reads it.
func with(files []*clientconf.File, f *clientconf.File, text []byte) []*clientconf.File {
	all := slices.Clone(files)
	for i, g := range all {
		if g.Path == f.Path && g.Place.Role != clientconf.Presence {
			all[i] = g.With(text)
		}
	}
	return all
}

// worse returns what is to be said of an amended file that was not said before. A file that could not be read has more to it,
// and so has a server whose package is known only now, as long as that is no error.
func worse(m Machine, files []*clientconf.File, f *clientconf.File, text []byte, before *Report, mends []Finding) (Finding, bool) {
	left := map[string]int{}
	for _, g := range before.Findings {
		left[g.Client+"\x00"+g.File+"\x00"+g.Server+"\x00"+g.ID]++
	}
	dead := f.Dead()
	for _, g := range Examine(m, with(files, f, text)).Findings {
		key := g.Client + "\x00" + g.File + "\x00" + g.Server + "\x00" + g.ID
		if left[key]--; left[key] >= 0 || dead || g.File != f.Path {
			continue
		}
		if g.Severity != Error && slices.ContainsFunc(mends, func(m Finding) bool { return m.ID == "PKG-SCOPE" && m.Server == g.Server }) {
			continue
		}
		return g, true
	}
	return Finding{}, false
}

const bom = "\xef\xbb\xbf"

func cutBOM(text []byte) ([]byte, error) {
	if !bytes.HasPrefix(text, []byte(bom)) {
		return nil, errMoved
	}
	return bytes.Clone(text[len(bom):]), nil
}

// offset returns where a place is in a text.
func offset(text []byte, p splice.Pos) (int, error) {
	at := 0
	if bytes.HasPrefix(text, []byte(bom)) {
		at = len(bom)
	}
	for line := 1; line < p.Line; line++ {
		n := bytes.IndexByte(text[at:], '\n')
		if n < 0 {
			return 0, errMoved
		}
		at += n + 1
	}
	for column := 1; column < p.Column; column++ {
		if at >= len(text) || text[at] == '\n' {
			return 0, errMoved
		}
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at, nil
}

func put(text []byte, start, end int, s string) []byte {
	return slices.Concat(text[:start], []byte(s), text[end:])
}

// cutComma takes out the comma at a place.
func cutComma(p splice.Pos) mend {
	return func(text []byte) ([]byte, error) {
		at, err := offset(text, p)
		if err != nil || at >= len(text) || text[at] != ',' {
			return nil, errMoved
		}
		return put(text, at, at+1, ""), nil
	}
}

// token is a string, key or plain word as it is written: its quotes, and what is in between.
type token struct {
	start, end int // of what is between the quotes
	quote      byte
}

func tokenAt(text []byte, p splice.Pos) (token, error) {
	at, err := offset(text, p)
	if err != nil || at >= len(text) {
		return token{}, errMoved
	}
	t := token{start: at}
	if c := text[at]; c == '"' || c == '\'' {
		t.quote = c
		t.start++
		for t.end = t.start; t.end < len(text) && text[t.end] != c; t.end++ {
			if text[t.end] == '\n' {
				return token{}, errMoved
			}
			if c == '"' && text[t.end] == '\\' {
				t.end++
			}
		}
		if t.end >= len(text) {
			return token{}, errMoved
		}
		return t, nil
	}
	for t.end = at; t.end < len(text) && !bytes.ContainsAny(text[t.end:t.end+1], " \t\r\n,]}#:="); t.end++ {
	}
	return t, nil
}

// plainText reports whether a text means the same in every kind of quotes, and without.
func plainText(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == '"' || r == '\'' || r == '\\' || r == 0x7f })
}

// replaceIn puts text in the place of a part of the value at a place.
func replaceIn(p splice.Pos, from, to int, with string) mend {
	return func(text []byte) ([]byte, error) {
		t, err := tokenAt(text, p)
		if err != nil {
			return nil, err
		}
		if t.quote == 0 && from > 0 { // what is plain may be longer than it looks
			return nil, errMoved
		}
		if t.quote == '"' && bytes.IndexByte(text[t.start:t.end], '\\') >= 0 || !plainText(with) || from > to || t.quote != 0 && t.start+to > t.end {
			return nil, errMoved
		}
		return put(text, t.start+from, t.start+to, with), nil
	}
}

// replaceWhole puts a value in the place of another one.
func replaceWhole(p splice.Pos, old, with string) mend {
	if with == "" {
		return nil
	}
	return func(text []byte) ([]byte, error) {
		t, err := tokenAt(text, p)
		if err != nil {
			return nil, err
		}
		if t.quote == 0 {
			if !bytes.HasPrefix(text[t.start:], []byte(old)) {
				return nil, errMoved
			}
			t.end = t.start + len(old)
		}
		if string(text[t.start:t.end]) != old && !(t.quote == '"' && string(bytes.ReplaceAll(text[t.start:t.end], []byte(`\\`), []byte(`\`))) == old) || !plainText(with) {
			return nil, errMoved
		}
		return put(text, t.start, t.end, with), nil
	}
}

// renameKey writes another key.
func renameKey(p splice.Pos, old, with string) mend { return replaceWhole(p, old, with) }

var windowsPath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[A-Za-z]:\\|\\)`)
})

// doubleBackslashes doubles the single backslashes of the text that the place is in, if that is a path of Windows.
func doubleBackslashes(p splice.Pos) mend {
	return func(text []byte) ([]byte, error) {
		at, err := offset(text, p)
		if err != nil {
			return nil, err
		}
		line := bytes.LastIndexByte(text[:at], '\n') + 1
		for i := line; i <= at && i < len(text); i++ { // the strings of the line, up to the one that has the place
			if text[i] != '"' {
				continue
			}
			end := i + 1
			for end < len(text) && text[end] != '"' && text[end] != '\n' {
				if text[end] == '\\' && end+1 < len(text) && text[end+1] == '\\' {
					end++
				}
				end++
			}
			if end >= len(text) || text[end] != '"' {
				return nil, errMoved
			}
			if at > end {
				i = end
				continue
			}
			inner := text[i+1 : end]
			if !windowsPath().Match(inner) {
				return nil, errMoved
			}
			single := bytes.ReplaceAll(inner, []byte(`\\`), []byte(`\`))
			return put(text, i+1, end, string(bytes.ReplaceAll(single, []byte(`\`), []byte(`\\`)))), nil
		}
		return nil, errMoved
	}
}

// Mask returns a piece of a file's text without the values of environment variables and headers, and without what looks like
// a secret.
func Mask(f *clientconf.File, text string) string {
	for _, s := range f.Servers {
		for _, v := range slices.Concat(s.Env, s.Headers, s.Foreign) {
			v.Value.Test(func(value string) bool {
				if v.Value.Literal() {
					text = hide(text, value)
				}
				for _, r := range clientconf.References(value) {
					text = hide(text, r.Default)
				}
				return true
			})
		}
		args := s.Launch().Args
		for i, redacted := range calllog.RedactArgs(args) {
			if redacted != args[i] {
				text = hide(text, args[i])
			}
		}
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = calllog.RedactText(line)
	}
	return strings.Join(lines, "\n")
}

// hide takes a value out of a text, also as it is written in JSON. Very short ones are everywhere.
func hide(text, value string) string {
	written, _ := json.Marshal(value)
	for _, s := range []string{value, strings.Trim(string(written), `"`)} {
		if len(s) > 3 {
			text = strings.ReplaceAll(text, s, "(hidden)")
		}
	}
	return text
}
