package policy

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Glob is what a name is like: "*" stands for any characters and "?" for one. The zero value is any name.
type Glob string

// Match reports whether a name is like g.
func (g Glob) Match(name string) bool {
	if g == "" || g == "*" {
		return true
	}
	return like(string(g), name)
}

// Literal reports whether g is one name.
func (g Glob) Literal() bool { return g != "" && !strings.ContainsAny(string(g), "*?") }

// covers reports whether g is like every name that h is like. It may say no where it is so.
func (g Glob) covers(h Glob) bool {
	return g == "" || g == "*" || h != "" && like(string(g), string(h)) && (!strings.Contains(string(h), "*") || !strings.Contains(string(g), "?"))
}

// like matches in time of at most the product of the lengths.
func like(glob, name string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(name) {
		_, n := utf8.DecodeRuneInString(name[j:])
		switch {
		case i < len(glob) && glob[i] == '*':
			star, mark = i, j
			i++
		case i < len(glob) && glob[i] == '?':
			i++
			j += n
		case i < len(glob) && glob[i] == name[j]:
			i++
			j++
		case star >= 0:
			_, n := utf8.DecodeRuneInString(name[mark:])
			mark += n
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(glob) && glob[i] == '*' {
		i++
	}
	return i == len(glob)
}

// literal is a glob for one name, as far as there is one.
func literal(name string) string { return strings.ReplaceAll(name, "*", "?") }

// PathGlob is what a path is like. A glob that begins with "/" (or a drive) is for the whole path, any other for the path
// beneath its root. "*" and "?" stay within one element, "**" goes through any number of them, "{a,b}" is one of several
// and "[a-z]" one character.
type PathGlob struct {
	text     string
	absolute bool
	re       *regexp.Regexp
}

// String returns it as it was written.
func (g PathGlob) String() string { return g.text }

// ParsePathGlob reads a glob.
func ParsePathGlob(text string) (PathGlob, error) { return parsePathGlob(text, foldsNames) }

// parsePathGlob ignores letter case with fold.
func parsePathGlob(text string, fold bool) (PathGlob, error) {
	if text == "" {
		return PathGlob{}, errors.New("a glob is empty")
	}
	slashed := strings.ReplaceAll(text, `\`, "/")
	g := PathGlob{text: text, absolute: strings.HasPrefix(slashed, "/") || len(slashed) > 2 && slashed[1:3] == ":/"}
	if !fold && strings.Contains(text, `\`) {
		return PathGlob{}, errors.New(`a glob has no "\": write [*] for a "*" that is one`)
	}
	pattern, err := translate(slashed)
	if err != nil {
		return PathGlob{}, err
	}
	if fold {
		pattern = "(?i)" + pattern
	}
	if g.re, err = regexp.Compile(pattern); err != nil {
		return PathGlob{}, fmt.Errorf("the glob cannot be read: %w", errors.Unwrap(err))
	}
	return g, nil
}

// match matches where an argument leads.
func (g PathGlob) match(p *Path) bool {
	text := p.Rel
	if g.absolute {
		text = p.Resolved
	}
	return g.re.MatchString(strings.ReplaceAll(text, `\`, "/"))
}

// translate makes a regular expression of a glob: what it needs to match is linear in the length of the path.
func translate(glob string) (string, error) {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	depth := 0
	for i := 0; i < len(glob); {
		rest := glob[i:]
		start := i == 0 || glob[i-1] == '/'
		switch {
		case start && strings.HasPrefix(rest, "**/"):
			b.WriteString(`(?:[^/]+/)*`)
			i += 3
		case rest == "/**":
			b.WriteString(`(?:/.*)?`) // what is in a directory, and the directory
			i += 3
		case start && rest == "**":
			b.WriteString(`.*`)
			i += 2
		case strings.HasPrefix(rest, "**"):
			return "", errors.New(`"**" stands alone between slashes`)
		case rest[0] == '*':
			b.WriteString(`[^/]*`)
			i++
		case rest[0] == '?':
			b.WriteString(`[^/]`)
			i++
		case rest[0] == '{':
			depth++
			b.WriteString(`(?:`)
			i++
		case rest[0] == '}' && depth > 0:
			depth--
			b.WriteString(`)`)
			i++
		case rest[0] == ',' && depth > 0:
			b.WriteString(`|`)
			i++
		case rest[0] == '[':
			end := strings.IndexByte(rest[1:], ']')
			if end < 1 {
				return "", errors.New(`a "[" has no end`)
			}
			class := rest[1 : 1+end]
			not := ""
			if class[0] == '!' || class[0] == '^' {
				not, class = "^/", class[1:]
			}
			if class == "" || strings.ContainsAny(class, `[\/`) {
				return "", fmt.Errorf("%q is no set of characters", rest[:end+2])
			}
			b.WriteString("[" + not + strings.ReplaceAll(class, "^", `\^`) + "]")
			i += end + 2
		default:
			_, n := utf8.DecodeRuneInString(rest)
			b.WriteString(regexp.QuoteMeta(rest[:n]))
			i += n
		}
	}
	if depth > 0 {
		return "", errors.New(`a "{" has no end`)
	}
	return b.String() + `\z`, nil
}
