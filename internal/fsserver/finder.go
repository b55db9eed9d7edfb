package fsserver

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// finder finds the lines that a pattern matches. A text that must be in every such line is looked for first, over many
// lines at once; the expression is asked about the lines that have it. It is safe for concurrent use.
type finder struct {
	re *regexp.Regexp
	// needles: each line that matches has one of them. Without any, the expression is asked about every line.
	needles []needle
	// others: each line that matches has one of each of these, too.
	others [][]needle
	// exact: each line that has the needle matches.
	exact bool
}

// needle is a text to be looked for.
type needle struct {
	text []byte
	fold bool // letters, which are all of ASCII and in lower case, in both cases
	at   int  // where its rarest byte is
}

const (
	// maxExpression is how large an expression may be: how many instructions it is made of, about. A hostile one takes time
	// in proportion to it, for each byte.
	maxExpression = 2000
	// maxNeedles is how many texts are looked for at once.
	maxNeedles = 16
)

// newFinder compiles a pattern: a literal text or an RE2 expression. The error is for the model.
func newFinder(pattern string, literal, fold bool) (*finder, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("it has %d bytes, and at most %d are read", len(pattern), maxPattern)
	}
	if literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	if fold {
		pattern = "(?i)" + pattern
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	switch {
	case err != nil:
		return nil, plainSyntaxError(err)
	case size(tree) > maxExpression:
		return nil, errors.New("it is too large when it is compiled; repeat less")
	case mustEndLine(tree):
		return nil, errors.New("it asks for a line end, and lines are searched one by one")
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, plainSyntaxError(err)
	}
	f := &finder{re: re}
	texts, others := required(tree)
	f.needles = needles(texts)
	for _, o := range others {
		f.others = append(f.others, needles(o))
	}
	f.exact = tree.Op == syntax.OpLiteral && len(texts) == 1 && texts[0].text == lowered(tree)
	return f, nil
}

func needles(texts []text) []needle {
	var list []needle
	for _, t := range texts {
		list = append(list, t.needle())
	}
	return list
}

// plainSyntaxError says what is wrong with an expression and where.
func plainSyntaxError(err error) error {
	var e *syntax.Error
	if errors.As(err, &e) {
		return fmt.Errorf("%s: %q", e.Code, clip(e.Expr, maxPatternShown))
	}
	return err
}

// size estimates how many instructions an expression has, before it is compiled.
func size(re *syntax.Regexp) int {
	n := 1
	for _, sub := range re.Sub {
		n += size(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n += len(re.Rune)
	case syntax.OpCharClass:
		n += len(re.Rune) / 16
	case syntax.OpRepeat:
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, 1<<20)
}

// mustEndLine reports whether no single line can match.
func mustEndLine(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return strings.ContainsRune(string(re.Rune), '\n')
	case syntax.OpCharClass:
		return len(re.Rune) == 2 && re.Rune[0] == '\n' && re.Rune[1] == '\n'
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		for _, sub := range re.Sub {
			if mustEndLine(sub) {
				return true
			}
		}
	case syntax.OpRepeat:
		return re.Min > 0 && mustEndLine(re.Sub[0])
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if !mustEndLine(sub) {
				return false
			}
		}
		return true
	}
	return false
}

// text is a text that a match has, in lower case where both cases do.
type text struct {
	text string
	fold bool
}

func (t text) needle() needle {
	n := needle{text: []byte(t.text), fold: t.fold}
	for i := range n.text {
		if rarity(n.text[i]) > rarity(n.text[n.at]) {
			n.at = i
		}
	}
	return n
}

// required returns texts one of which is in every match, or nil, and others of which the same is true. The first are those to
// look for: long, and few.
func required(re *syntax.Regexp) (best []text, others [][]text) {
	var r requirement
	r.add(re)
	r.endRun()
	return r.best, r.others
}

// requirement goes through what a match is made of, from left to right.
type requirement struct {
	run    text // what has just been, without a gap
	best   []text
	others [][]text
}

func (r *requirement) add(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		fold := re.Flags&syntax.FoldCase != 0
		for _, c := range lowered(re) {
			switch {
			case c == utf8.RuneError, fold && foldsWide(c):
				r.endRun() // bytes that are no character match U+FFFD
				continue
			case r.run.fold != fold && r.run.text != "":
				r.endRun()
			}
			r.run.fold = fold
			r.run.text += string(c)
		}
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			r.add(sub)
		}
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
	case syntax.OpPlus:
		r.takeAll(re.Sub[0])
	case syntax.OpRepeat:
		r.endRun()
		if re.Min > 0 {
			r.takeAll(re.Sub[0])
		}
	case syntax.OpAlternate:
		r.endRun()
		var all []text
		for _, sub := range re.Sub {
			one, _ := required(sub)
			if one == nil {
				return
			}
			all = append(all, one...)
		}
		r.take(all)
	default:
		r.endRun()
	}
}

func (r *requirement) endRun() {
	if r.run.text != "" {
		r.take([]text{r.run})
	}
	r.run = text{}
}

// takeAll takes what a part requires.
func (r *requirement) takeAll(part *syntax.Regexp) {
	r.endRun()
	best, others := required(part)
	r.take(best)
	for _, o := range others {
		r.take(o)
	}
}

// maxOthers is how many other texts are looked for in a line before the expression is asked.
const maxOthers = 4

// take keeps texts, the best of them to look for.
func (r *requirement) take(texts []text) {
	if len(texts) == 0 || len(texts) > maxNeedles {
		return
	}
	if worth(texts) > worth(r.best) {
		texts, r.best = r.best, texts
	}
	if texts != nil && len(r.others) < maxOthers {
		r.others = append(r.others, texts)
	}
}

func worth(texts []text) int {
	if texts == nil {
		return 0
	}
	least := 8
	for _, t := range texts {
		least = min(least, len(t.text))
	}
	return least*(maxNeedles+1) - len(texts)
}

// lowered returns the text of a literal.
func lowered(re *syntax.Regexp) string {
	if re.Flags&syntax.FoldCase != 0 {
		return strings.ToLower(string(re.Rune))
	}
	return string(re.Rune)
}

// foldsWide reports whether a character has another case outside of ASCII: also "k" and "s" have.
func foldsWide(c rune) bool { return c >= utf8.RuneSelf || c == 'k' || c == 's' }

// common are bytes of texts and programs, about in the order of how many there are.
const common = " etaoinsrlcdpmufhgby_.,()-=\n\tv\"0/:;w1x'k2{}*STEAICRNDPLOM3>F<[]UBj45G8qz6#HV97W$&|+Y@K\\X!?Jq`Q%Z^~\r"

// rarities is how rare each byte is.
var rarities = func() (table [256]uint8) {
	for c := range table {
		table[c] = 255
	}
	for i := range len(common) {
		table[common[i]] = uint8(i)
	}
	return table
}()

func rarity(c byte) uint8 { return rarities[c] }

// scan is the search through one part of a file.
type scan struct {
	*finder
	text []byte
	next []int // where each needle is next, in either case; len(text) when nowhere any more
}

// start begins with a text. It reuses what scans before have made.
func (s *scan) start(text []byte) {
	s.text = text
	s.next = s.next[:0]
	for range s.needles {
		s.next = append(s.next, -1, -1)
	}
}

// line returns the next line that matches and begins at from or behind, without its end, and where the one behind it begins.
// From is the beginning of a line. Start is negative when there is none.
func (s *scan) line(from int) (start, end, after int) {
	for from < len(s.text) {
		at := s.candidate(from)
		if at == len(s.text) {
			break
		}
		start, end, after = from+bytes.LastIndexByte(s.text[from:at], '\n')+1, len(s.text), len(s.text)
		if i := bytes.IndexByte(s.text[at:], '\n'); i >= 0 {
			end, after = at+i, at+i+1
		}
		if end > start && s.text[end-1] == '\r' && after > end {
			end--
		}
		if s.exact || s.hasOthers(s.text[start:end]) && s.re.Match(s.text[start:end]) {
			return start, end, after
		}
		from = after
	}
	return -1, 0, 0
}

// hasOthers reports whether a line has what a match must have beside the needle. It is much cheaper to ask than the expression,
// which is slow on a long line.
func (s *scan) hasOthers(line []byte) bool {
	for _, o := range s.others {
		if !slices.ContainsFunc(o, func(n needle) bool {
			return n.index(line, 0, false) < len(line) || n.index(line, 0, true) < len(line)
		}) {
			return false
		}
	}
	return true
}

// candidate returns the first place at or behind from where a match may be.
func (s *scan) candidate(from int) int {
	if len(s.needles) == 0 {
		return from
	}
	least := len(s.text)
	for i := range s.next {
		if s.next[i] < from {
			s.next[i] = s.needles[i/2].index(s.text, from, i%2 == 1)
		}
		least = min(least, s.next[i])
	}
	return least
}

// index returns where the needle is at or behind from, else len(text); with upper, where its rarest byte is in upper case.
func (n *needle) index(text []byte, from int, upper bool) int {
	c := n.text[n.at]
	if upper {
		if !n.fold || c < 'a' || c > 'z' {
			return len(text)
		}
		c -= 'a' - 'A'
	}
	for {
		i := bytes.IndexByte(text[min(from+n.at, len(text)):], c)
		if i < 0 || from+i+len(n.text) > len(text) {
			return len(text)
		}
		from += i
		if n.is(text[from : from+len(n.text)]) {
			return from
		}
		from++
	}
}

func (n *needle) is(text []byte) bool {
	if !n.fold {
		return bytes.Equal(text, n.text)
	}
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != n.text[i] {
			return false
		}
	}
	return true
}
