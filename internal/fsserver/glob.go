package fsserver

import (
	"fmt"
	"math/bits"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Globs are read as the reference server reads them: "*" and "?" stop at "/", "**" as a whole element is any number of
// directories, and braces, classes, "?( )", "*( )", "+( )" and "@( )" are as in a shell. Names that begin with a dot are names
// like any other, letters count, and a "!" at the beginning turns the whole pattern round. What is not closed is literal.
//
// A pattern is matched element by element on the way down a tree. So a path is never put together to be matched, a
// directory beneath which nothing can match is not entered, and the time is linear in the length of a name.

// Bounds of a pattern.
const (
	maxPattern      = 4096  // bytes
	maxAlternatives = 64    // that braces with more than plain names in them make
	maxRange        = 1000  // numbers of one {1..N}
	maxElements     = 256   // of all alternatives; globState has a bit for each
	maxProgram      = 10000 // instructions of the program of one element
	maxGlobNesting  = 50
)

// glob is a compiled pattern. It is safe for concurrent use.
type glob struct {
	elements []globElem // of all alternatives, each followed by an end
	first    globState
	negated  bool
}

// globElem is one element of a pattern.
type globElem struct {
	kind                   elemKind
	prefix, middle, suffix string         // what a name begins with, has in it, and ends with
	rest                   *regexp.Regexp // what the whole name is like; nil when these say it all
}

type elemKind uint8

const (
	elemName  elemKind = iota
	elemExact          // the name is prefix
	elemDeep           // "**": any number of directories
	elemEnd            // what got here is matched
)

// globState is where in a pattern a directory is: a bit for each element that the next name may be.
type globState [maxElements / 64]uint64

func (s globState) empty() bool { return s == globState{} }

// compileGlob compiles a pattern. The error is for the model.
func compileGlob(pattern string) (*glob, error) {
	g := &glob{}
	body := strings.TrimLeft(pattern, "!")
	g.negated = (len(pattern)-len(body))%2 == 1
	if err := g.add(body); err != nil {
		return nil, refuse(codeArguments, "The pattern %s cannot be used: %v.", strconv.Quote(clip(pattern, maxPatternShown)), err)
	}
	return g, nil
}

// maxPatternShown is how much of a pattern an error shows, in bytes.
const maxPatternShown = 200

// add adds the alternatives of a pattern.
func (g *glob) add(pattern string) error {
	if len(pattern) > maxPattern {
		return fmt.Errorf("it has %d bytes, and at most %d are read", len(pattern), maxPattern)
	}
	alternatives, err := expandBraces(strings.ToValidUTF8(pattern, "\ufffd"))
	if err != nil {
		return err
	}
	for _, a := range alternatives {
		if err := g.addAlternative(splitElements(a)); err != nil {
			return err
		}
	}
	return nil
}

// addLiteral adds a path as it is.
func (g *glob) addLiteral(path string) error {
	var elements []globElem
	for name := range strings.SplitSeq(path, "/") {
		elements = append(elements, globElem{kind: elemExact, prefix: name})
	}
	return g.append(elements)
}

func (g *glob) addAlternative(names []string) error {
	if names[0] == "" || names[len(names)-1] == "" {
		return nil // no path begins or ends with a separator
	}
	var elements []globElem
	for _, name := range names {
		if name == "**" {
			if n := len(elements); n == 0 || elements[n-1].kind != elemDeep {
				elements = append(elements, globElem{kind: elemDeep})
			}
			continue
		}
		e, err := compileElement(name)
		if err != nil {
			return err
		}
		elements = append(elements, e)
	}
	if elements[len(elements)-1].kind == elemDeep {
		elements = append(elements, globElem{}) // what is beneath, not the directory itself
	}
	return g.append(elements)
}

func (g *glob) append(elements []globElem) error {
	start := len(g.elements)
	if start+len(elements)+1 > maxElements {
		return fmt.Errorf("its alternatives have more than %d elements", maxElements)
	}
	g.elements = append(append(g.elements, elements...), globElem{kind: elemEnd})
	g.reach(&g.first, start)
	return nil
}

// reach adds to a state that the next name may be element i.
func (g *glob) reach(s *globState, i int) {
	s[i/64] |= 1 << (i % 64)
	if g.elements[i].kind == elemDeep { // of no directory
		s[(i+1)/64] |= 1 << ((i + 1) % 64)
	}
}

// splitElements cuts a pattern at its separators, several of which are one, and takes out "name/..".
func splitElements(pattern string) []string {
	var names []string
	parts := strings.Split(pattern, "/")
	for i, p := range parts {
		n := len(names)
		switch {
		case p == "" && 0 < i && i < len(parts)-1:
		case p == ".." && n > 0 && !slices.Contains([]string{"", ".", "..", "**"}, names[n-1]):
			names = names[:n-1]
		default:
			names = append(names, p)
		}
	}
	if len(names) == 0 { // nothing, or only what went up again
		return []string{""}
	}
	return names
}

// beneath returns the state in a directory with this name, of the state that holds the directory. When it is empty, nothing
// in it or beneath it is matched by the pattern before it is turned round.
func (g *glob) beneath(s globState, name string) globState {
	var next globState
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			switch e := &g.elements[i]; {
			case e.kind == elemDeep:
				g.reach(&next, i)
			case e.kind != elemEnd && e.matches(name):
				g.reach(&next, i+1)
			}
		}
	}
	return next
}

// matches reports whether a name in a directory of this state is matched.
func (g *glob) matches(s globState, name string) bool {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			e := &g.elements[i]
			if (e.kind == elemName || e.kind == elemExact) && g.elements[i+1].kind == elemEnd && e.matches(name) {
				return !g.negated
			}
		}
	}
	return g.negated
}

func (e *globElem) matches(name string) bool {
	if e.kind == elemExact {
		return name == e.prefix
	}
	return len(name) >= len(e.prefix)+len(e.suffix) && strings.HasPrefix(name, e.prefix) && strings.HasSuffix(name, e.suffix) &&
		(e.middle == "" || strings.Contains(name[len(e.prefix):len(name)-len(e.suffix)], e.middle)) &&
		(e.rest == nil || e.rest.MatchString(name))
}

// compileElement compiles a name with wildcards. One with one star, or with one text between two, is decided without a
// program; every other name is looked at by a program only when its literal ends are there.
func compileElement(name string) (globElem, error) {
	p := elemParser{in: name, closed: closedParens(name)}
	p.sequence("")
	if p.err != nil {
		return globElem{}, p.err
	}
	literal := func(n node) bool { return n.kind == nodeLiteral }
	first := slices.IndexFunc(p.out, func(n node) bool { return !literal(n) })
	if first < 0 {
		return globElem{kind: elemExact, prefix: join(p.out)}, nil
	}
	last := len(p.out)
	for literal(p.out[last-1]) {
		last--
	}
	e := globElem{prefix: join(p.out[:first]), suffix: join(p.out[last:])}
	inner := p.out[first:last]
	if n := len(inner); inner[0].kind == nodeStar && inner[n-1].kind == nodeStar && (n == 1 || !slices.ContainsFunc(inner[1:n-1], func(n node) bool { return !literal(n) })) {
		if n > 1 {
			e.middle = join(inner[1 : n-1])
		}
		return e, nil
	}
	var text strings.Builder
	for _, n := range p.out {
		text.WriteString(n.expression())
	}
	re, err := compileBounded(`^(?s:` + text.String() + `)$`)
	e.rest = re
	return e, err
}

// compileBounded compiles a regular expression that is not too large.
func compileBounded(text string) (*regexp.Regexp, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > maxProgram {
		return nil, fmt.Errorf("it is too large when it is compiled")
	}
	return regexp.Compile(text)
}

// node is a part of an element.
type node struct {
	kind nodeKind
	text string // what it is, or a regular expression of it
}

type nodeKind uint8

const (
	nodeLiteral nodeKind = iota
	nodeStar
	nodeOther // text is a regular expression
)

func (n node) expression() string {
	switch n.kind {
	case nodeLiteral:
		return regexp.QuoteMeta(n.text)
	case nodeStar:
		return ".*"
	}
	return n.text
}

func join(nodes []node) string {
	var b strings.Builder
	for _, n := range nodes {
		b.WriteString(n.text)
	}
	return b.String()
}

// elemParser reads one element.
type elemParser struct {
	in     string
	closed map[int]bool // the "(" of "@(" and its like that are closed
	at     int
	depth  int
	out    []node
	err    error
}

// sequence reads up to one of the stops, which it leaves, or to the end.
func (p *elemParser) sequence(stops string) {
	for p.at < len(p.in) && p.err == nil {
		c := p.in[p.at]
		if strings.IndexByte(stops, c) >= 0 {
			return
		}
		rest := p.in[p.at:]
		switch {
		case c == '\\' && len(rest) > 1:
			_, n := utf8.DecodeRuneInString(rest[1:])
			p.literal(rest[1:1+n], 1+n)
		case p.closed[p.at+1]:
			p.extended(c)
		case c == groupOpen:
			p.other("(?:"+p.alternatives(1, groupComma, groupClose)+")", 0)
		case c == '*':
			if n := len(p.out); n == 0 || p.out[n-1].kind != nodeStar {
				p.out = append(p.out, node{kind: nodeStar})
			}
			p.at++
		case c == '?':
			p.other(".", 1)
		default:
			if c == '[' {
				if expression, n := readClass(rest); n > 0 {
					p.other(expression, n)
					continue
				}
			}
			_, n := utf8.DecodeRuneInString(rest)
			p.literal(rest[:n], n)
		}
	}
}

func (p *elemParser) literal(s string, size int) {
	p.out = append(p.out, node{nodeLiteral, s})
	p.at += size
}

func (p *elemParser) other(expression string, size int) {
	p.out = append(p.out, node{nodeOther, expression})
	p.at += size
}

// extended reads "@(a|b)" and its like.
func (p *elemParser) extended(c byte) {
	start := p.at
	inner, after := p.alternatives(2, '|', ')'), string(c)
	switch {
	case c == '!' && p.err == nil:
		p.err = fmt.Errorf("%s asks for what does not match in a part of a name, which is not supported; a ! at the beginning turns the whole pattern round",
			strconv.Quote(clip(p.in[start:p.at], maxPatternShown)))
	case c == '@':
		after = ""
	}
	p.other("(?:"+inner+")"+after, 0)
}

// alternatives reads what stands behind so many bytes up to the byte that closes it, as a regular expression.
func (p *elemParser) alternatives(skip int, between, closing byte) string {
	if p.depth == maxGlobNesting {
		p.err = fmt.Errorf("it is nested more than %d deep", maxGlobNesting)
		return ""
	}
	var b strings.Builder
	sub := elemParser{in: p.in, closed: p.closed, at: p.at + skip, depth: p.depth + 1}
	for {
		sub.sequence(string([]byte{between, closing}))
		if sub.err != nil {
			p.err = sub.err
			return ""
		}
		for _, n := range sub.out {
			b.WriteString(n.expression())
		}
		sub.out = nil
		sub.at++
		if sub.in[sub.at-1] == closing {
			p.at = sub.at
			return b.String()
		}
		b.WriteByte('|')
	}
}

// closedParens finds each "(" behind one of "?*+@!" that is closed.
func closedParens(s string) map[int]bool {
	var closed map[int]bool
	var open []int
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '[':
			if _, n := readClass(s[i:]); n > 0 {
				i += n - 1
			}
		case strings.IndexByte("?*+@!", c) >= 0 && i+1 < len(s) && s[i+1] == '(':
			i++
			open = append(open, i)
		case c == ')' && len(open) > 0:
			if closed == nil {
				closed = map[int]bool{}
			}
			closed[open[len(open)-1]] = true
			open = open[:len(open)-1]
		}
	}
	return closed
}

// posixClasses are the named classes, as regular expressions have them.
var posixClasses = map[string]string{
	"alnum": `\p{L}\p{Nl}\p{Nd}`, "alpha": `\p{L}\p{Nl}`, "ascii": `\x00-\x7f`, "blank": `\p{Zs}\t`, "cntrl": `\p{Cc}`, "digit": `\p{Nd}`,
	"graph": `\x21-\x7e\x{a1}-\x{10ffff}`, "lower": `\p{Ll}`, "print": `\x20-\x7e\x{a0}-\x{10ffff}`, "punct": `\p{P}`, "space": `\p{Z}\t\r\n\v\f`, "upper": `\p{Lu}`,
	"word": `\p{L}\p{Nl}\p{Nd}\p{Pc}`, "xdigit": "A-Fa-f0-9",
}

// readClass reads the "[a-z]" at the beginning of s as a regular expression, and says how long it is: 0 when it is not
// closed. One that holds nothing, as a range that goes backwards does, matches nothing.
func readClass(s string) (expression string, size int) {
	i, not := 1, ""
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i, not = i+1, "^"
	}
	var set strings.Builder
	for first := true; ; first = false {
		switch {
		case i >= len(s):
			return "", 0
		case s[i] == ']' && !first && set.Len() == 0 && not == "":
			return `[^\x00-\x{10ffff}]`, i + 1
		case s[i] == ']' && !first && set.Len() == 0:
			return ".", i + 1
		case s[i] == ']' && !first:
			return "[" + not + set.String() + "]", i + 1
		case strings.HasPrefix(s[i:], "[:"):
			if name, _, ok := strings.Cut(s[i+2:], ":]"); ok && posixClasses[name] != "" {
				set.WriteString(posixClasses[name])
				i += len(name) + 4
				continue
			}
		}
		low, n := classRune(s[i:])
		i += n
		high := low
		if len(s) > i+1 && s[i] == '-' && s[i+1] != ']' {
			high, n = classRune(s[i+1:])
			i += n + 1
		}
		if low <= high {
			fmt.Fprintf(&set, `\x{%x}-\x{%x}`, low, high)
		}
	}
}

func classRune(s string) (rune, int) {
	if s[0] == '\\' && len(s) > 1 {
		r, n := utf8.DecodeRuneInString(s[1:])
		return r, n + 1
	}
	return utf8.DecodeRuneInString(s)
}

// expandBraces returns the alternatives that the braces of a pattern stand for. Braces around plain parts of a name stay,
// so their number does not multiply: a program tries them all at once.
func expandBraces(pattern string) ([]string, error) {
	if !strings.Contains(pattern, "{") {
		return []string{pattern}, nil
	}
	keep := !strings.ContainsAny(pattern, "[(\\") // what braces in a class or beside an escape are is decided when they are gone
	e := expander{keep: keep}
	list := e.expand(pattern, 0)
	return list, e.err
}

// What braces become that stay: bytes that no text has.
const (
	groupOpen  = 0xff
	groupComma = 0xfe
	groupClose = 0xfd
)

type expander struct {
	keep bool // braces around plain parts of a name stay
	err  error
}

func (e *expander) expand(s string, depth int) []string {
	if depth > maxGlobNesting {
		e.err = fmt.Errorf("its braces are nested more than %d deep", maxGlobNesting)
	}
	for from := 0; e.err == nil; {
		open := indexUnescaped(s, '{', from)
		if open < 0 {
			break
		}
		parts, end := braceParts(s[open:])
		if open > 0 && s[open-1] == '$' || parts == nil { // "${" is a variable in many languages, and never braces
			from = open + 1
			continue
		}
		if len(parts) == 1 {
			numbers, err := braceRange(parts[0])
			if e.err = err; err != nil {
				return nil
			}
			if numbers == nil { // one alternative: the braces are literal, and what is in them counts
				from = open + 1
				continue
			}
			parts = numbers
		}
		if e.keep && !slices.ContainsFunc(parts, func(p string) bool { return p == "" || strings.ContainsAny(p, "/*?[](){}|!+@$\\") }) {
			tails := e.expand(s[open+end:], depth)
			group := s[:open] + string([]byte{groupOpen}) + strings.Join(parts, string([]byte{groupComma})) + string([]byte{groupClose})
			for i := range tails {
				tails[i] = group + tails[i]
			}
			return tails
		}
		tails := e.expand(s[open+end:], depth)
		var list []string
		for _, part := range parts {
			for _, p := range e.expand(part, depth+1) {
				for _, t := range tails {
					if list = append(list, s[:open]+p+t); len(list) > maxAlternatives {
						e.err = fmt.Errorf("its braces stand for more than %d alternatives", maxAlternatives)
						return nil
					}
				}
			}
		}
		return list
	}
	return []string{s}
}

func indexUnescaped(s string, c byte, from int) int {
	for i := from; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case c:
			return i
		}
	}
	return -1
}

// braceParts cuts what is in the braces at the beginning of s at its commas and says how long it is with them. Nil: they are
// not closed.
func braceParts(s string) (parts []string, size int) {
	depth, start := 0, 1
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			depth++
		case ',':
			if depth == 1 {
				parts, start = append(parts, s[start:i]), i+1
			}
		case '}':
			if depth--; depth == 0 {
				return append(parts, s[start:i]), i + 1
			}
		}
	}
	return nil, 0
}

// braceRange returns what "1..3", "a..c" or "1..9..2" stands for, nil when it is something else.
func braceRange(s string) ([]string, error) {
	ends := strings.Split(s, "..")
	if len(ends) != 2 && len(ends) != 3 {
		return nil, nil
	}
	low, err1 := strconv.ParseInt(ends[0], 10, 32)
	high, err2 := strconv.ParseInt(ends[1], 10, 32)
	letters := err1 != nil && err2 != nil && len(ends[0]) == 1 && len(ends[1]) == 1 && isLetter(ends[0][0]) && isLetter(ends[1][0])
	if letters {
		low, high = int64(ends[0][0]), int64(ends[1][0])
	} else if err1 != nil || err2 != nil {
		return nil, nil
	}
	step := int64(1)
	if len(ends) == 3 {
		n, err := strconv.ParseInt(ends[2], 10, 32)
		if err != nil {
			return nil, nil
		}
		step = max(n, -n, 1)
	}
	if (max(low, high)-min(low, high))/step >= maxRange {
		return nil, fmt.Errorf("{%s} stands for more than %d alternatives", s, maxRange)
	}
	width := 0
	if padded(ends[0]) || padded(ends[1]) {
		width = max(len(ends[0]), len(ends[1]))
	}
	if low > high {
		step = -step
	}
	var list []string
	for n := low; step > 0 && n <= high || step < 0 && n >= high; n += step {
		if letters {
			list = append(list, string(rune(n)))
		} else {
			list = append(list, fmt.Sprintf("%0*d", width, n))
		}
	}
	return list, nil
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// padded reports whether a number has zeros before it.
func padded(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return len(s) > 1 && s[0] == '0'
}

// excludes are patterns of what is left out, with all beneath it. A pattern without "*" means what has this path or name
// anywhere; one with "*" is matched against the path beneath the start.
type excludes []*glob

func compileExcludes(patterns []string) (excludes, error) {
	const most = 200
	if len(patterns) > most {
		return nil, refuse(codeArguments, "There are %d excludePatterns, and at most %d are read. One pattern with braces stands for several.", len(patterns), most)
	}
	var list excludes
	for _, pattern := range patterns {
		plain := strings.TrimRight(pattern, "/")
		switch {
		case pattern == "":
			continue
		case strings.Contains(pattern, "*"):
			g, err := compileGlob(pattern)
			if err != nil {
				return nil, err
			}
			list = append(list, g)
		default:
			g := &glob{}
			err := g.addLiteral(plain)
			if err == nil {
				err = g.add("**/" + plain)
			}
			if err != nil {
				return nil, refuse(codeArguments, "The pattern %s cannot be used: %v.", strconv.Quote(clip(pattern, maxPatternShown)), err)
			}
			list = append(list, g)
		}
	}
	return list, nil
}

func (x excludes) start() []globState {
	s := make([]globState, len(x))
	for i, g := range x {
		s[i] = g.first
	}
	return s
}

func (x excludes) beneath(s []globState, name string) []globState {
	next := make([]globState, len(x))
	for i, g := range x {
		next[i] = g.beneath(s[i], name)
	}
	return next
}

func (x excludes) matches(s []globState, name string) bool {
	for i, g := range x {
		if g.matches(s[i], name) {
			return true
		}
	}
	return false
}
