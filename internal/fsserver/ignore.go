package fsserver

import (
	"bytes"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rootbound/rootbound/rootfs"
)

// Ignore files are read as git reads them: .gitignore and .ignore in every directory, and .git/info/exclude in a
// repository. A rule of a deeper directory wins over one further up, a later one over an earlier one, and any rule of a
// .ignore over any of a .gitignore. A repository inside another begins anew. What is ignored is not entered, so nothing
// beneath it can be taken back. The configuration of git, which is not in the tree, is not read.

// ignoreParam is the parameter of the tools that can leave out what ignore files name.
func ignoreParam(byDefault bool) param {
	s := aBoolean.says("Leave out what .gitignore, .ignore and .git/info/exclude files leave out, and .git itself")
	if byDefault {
		s.value = "true"
	}
	return param{name: "gitignore", schema: s, extra: true}
}

const (
	// maxIgnored is how many bytes of ignore files count in one directory, from the outermost directory on; of what is longer
	// together only the beginning counts. Each file counts ignoreFileCost bytes more. In memory they are about fifty times that.
	maxIgnored     = 256 << 10
	ignoreFileCost = 256
)

// ignoring is what ignore files say in one directory. Nil ignores nothing. It does not change and may be used by several
// goroutines at once.
type ignoring struct {
	dir string // beneath the directory that the outermost rules are of, "/"-separated, "" for that one
	// The files that count, the strongest last: first all of git's, from the outermost to the deepest directory, then all .ignore.
	git, own []ignoreFile
	read     int // bytes of ignore files, also of those that a repository inside has set aside
}

// ignoreFile is an ignore file and the directory it was found in.
type ignoreFile struct {
	dir   string
	rules *ruleSet
}

// ignores reports whether an entry of the directory is ignored.
func (g *ignoring) ignores(e rootfs.Entry) bool {
	if g == nil {
		return false
	}
	dir := e.Type.IsDir()
	if e.Name == ".git" && dir {
		return true
	}
	if len(g.own) == 0 && len(g.git) == 0 {
		return false
	}
	name := path.Join(g.dir, e.Name)
	for _, files := range [...][]ignoreFile{g.own, g.git} {
		for _, f := range slices.Backward(files) {
			beneath := name
			if f.dir != "" {
				beneath = name[len(f.dir)+1:]
			}
			if r := f.rules.match(beneath, dir); r != nil {
				return !r.negated
			}
		}
	}
	return false
}

// ignoreFrom returns what is ignored in the directory at an absolute path, because of ignore files in the directories
// above it that are in the same root. Those of the directory itself are for in.
func (c *call) ignoreFrom(start string) *ignoring {
	real := c.real(start)
	d, rel, inside := c.set.Match(real)
	g := &ignoring{}
	if !inside || d.File || rel == "." {
		return g
	}
	above := d.Path
	for _, name := range strings.Split(filepath.ToSlash(rel), "/") {
		entries := make([]rootfs.Entry, 0, 3)
		for _, n := range [...]string{".gitignore", ".ignore"} {
			entries = append(entries, rootfs.Entry{Name: n})
		}
		if info, err := c.fs.Stat(filepath.Join(above, ".git")); err == nil {
			entries = append(entries, rootfs.Entry{Name: ".git", Type: info.Mode().Type()})
		}
		g = c.ignoreIn(g, entries, above, nil)
		above = filepath.Join(above, name)
		g.dir = path.Join(g.dir, name)
	}
	return g
}

// ignoreBeneath returns what is ignored in a directory of a walk that began at the absolute path start. Parent is what is
// ignored in the directory that it is in; for the first one, what ignoreFrom says. It is called inside visit.
func (c *call) ignoreBeneath(parent *ignoring, d *rootfs.Directory, start string) *ignoring {
	if parent == nil || d.Err != nil {
		return parent
	}
	g := *parent
	if d.Depth > 0 {
		g.dir = path.Join(g.dir, path.Base(d.Path))
	}
	return c.ignoreIn(&g, d.Entries, filepath.Join(start, filepath.FromSlash(d.Path)), d.Open)
}

// ignoreIn adds the ignore files among the entries of a directory. They are opened by open, or else by path.
func (c *call) ignoreIn(g *ignoring, entries []rootfs.Entry, dir string, open func(string) (*os.File, error)) *ignoring {
	byPath := func(name string) (*os.File, error) { return c.fs.Open(filepath.Join(dir, filepath.FromSlash(name))) }
	if open == nil {
		open = byPath
	}
	var has [3]bool
	for _, e := range entries {
		if len(e.Name) < 4 || e.Name[0] != '.' {
			continue
		}
		switch e.Name {
		case ".git":
			has[0] = true
		case ".gitignore":
			has[1] = true
		case ".ignore":
			has[2] = true
		}
	}
	if has == [3]bool{} {
		return g
	}
	next := *g
	if has[0] {
		next.git = nil
		next.git = next.add(next.git, ".git/info/exclude", byPath)
	}
	if has[1] {
		next.git = next.add(next.git, ".gitignore", open)
	}
	if has[2] {
		next.own = next.add(next.own, ".ignore", open)
	}
	return &next
}

// add adds a file to files, if it can be read: one that cannot does not make a search fail.
func (g *ignoring) add(files []ignoreFile, name string, open func(string) (*os.File, error)) []ignoreFile {
	most := maxIgnored - g.read - ignoreFileCost
	if most <= 0 {
		return files
	}
	f, err := open(name)
	if err != nil {
		return files
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, int64(most)))
	g.read += len(text) + ignoreFileCost
	if len(text) == most { // the last line may be a part of one
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	rules := parseRules(string(text), false)
	if rules == nil {
		return files
	}
	return append(slices.Clip(files), ignoreFile{g.dir, rules})
}

// ruleSet are the rules of one ignore file. It is read only.
type ruleSet struct {
	rules []rule
	fold  bool
	// Positions in rules, ascending: of those that end with a name, by it; of those that end with "*.ext", by ".ext"; of
	// the rest. So few rules are tried for each path.
	names, extensions map[string][]int
	rest              []int
}

// rule is one line of an ignore file.
type rule struct {
	text     string // as it was written
	negated  bool   // "!": what matches is taken back
	dirOnly  bool   // "/" at the end
	anywhere bool   // no other "/": it matches an element at any depth
	elements []ruleElement
}

// ruleElement matches one element of a path, or with deep, any number of them.
type ruleElement struct {
	deep  bool
	steps []ruleStep
}

// ruleStep matches one character, or with star, any number of characters.
type ruleStep struct {
	star   bool
	any    bool
	not    bool // of ranges
	char   rune
	ranges [][2]rune // when it is a class
}

// parseRules reads an ignore file. It returns nil when it has no rule. With fold, letters match in both cases.
func parseRules(text string, fold bool) *ruleSet {
	s := &ruleSet{fold: fold, names: map[string][]int{}, extensions: map[string][]int{}}
	text = strings.TrimPrefix(text, "\ufeff")
	for line := range strings.SplitSeq(text, "\n") {
		r, ok := parseRule(strings.TrimSuffix(line, "\r"), fold)
		if !ok {
			continue
		}
		i := len(s.rules)
		s.rules = append(s.rules, r)
		switch name, extension := r.end(); {
		case name != "":
			s.names[name] = append(s.names[name], i)
		case extension != "":
			s.extensions[extension] = append(s.extensions[extension], i)
		default:
			s.rest = append(s.rest, i)
		}
	}
	if s.rules == nil {
		return nil
	}
	return s
}

func parseRule(line string, fold bool) (r rule, ok bool) {
	r.text = line
	// Blanks at the end do not count, unless behind a backslash.
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return r, false
	}
	if line[0] == '!' {
		r.negated, line = true, line[1:]
	}
	if strings.HasSuffix(line, "/") {
		r.dirOnly, line = true, strings.TrimSuffix(line, "/")
	}
	r.anywhere = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" || !utf8.ValidString(line) {
		return r, false
	}
	if fold {
		line = strings.ReplaceAll(foldName(line), "[:upper:]", "[:lower:]")
	}
	for e := range strings.SplitSeq(line, "/") {
		switch {
		case e == "**" && len(r.elements) > 0 && r.elements[len(r.elements)-1].deep:
		case e == "**" && !r.anywhere:
			r.elements = append(r.elements, ruleElement{deep: true})
		default:
			steps, valid := parseRuleSteps(e)
			if !valid || e == "" {
				return r, false // as git: it matches nothing
			}
			r.elements = append(r.elements, ruleElement{steps: steps})
		}
	}
	// "a/**" is what is in a, not a: git wants one element more.
	if last := len(r.elements) - 1; r.elements[last].deep {
		r.elements = append(r.elements, ruleElement{steps: []ruleStep{{star: true}}})
	}
	return r, true
}

// parseRuleSteps reads one element of a pattern: * ? [a-z] [!a-z] and \ before any character.
func parseRuleSteps(e string) (steps []ruleStep, valid bool) {
	for e != "" {
		c, n := utf8.DecodeRuneInString(e)
		e = e[n:]
		switch c {
		case '*':
			if len(steps) == 0 || !steps[len(steps)-1].star {
				steps = append(steps, ruleStep{star: true})
			}
			continue
		case '?':
			steps = append(steps, ruleStep{any: true})
			continue
		case '[':
			step, rest, ok := parseClass(e)
			if !ok {
				return nil, false
			}
			steps, e = append(steps, step), rest
			continue
		case '\\':
			if e == "" {
				return nil, false
			}
			c, n = utf8.DecodeRuneInString(e)
			e = e[n:]
		}
		steps = append(steps, ruleStep{char: c})
	}
	return steps, true
}

// classes are the named ones that people write.
var classes = map[string][][2]rune{
	"alnum":  {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}},
	"alpha":  {{'A', 'Z'}, {'a', 'z'}},
	"digit":  {{'0', '9'}},
	"lower":  {{'a', 'z'}},
	"space":  {{'\t', '\r'}, {' ', ' '}},
	"upper":  {{'A', 'Z'}},
	"punct":  {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}},
	"xdigit": {{'0', '9'}, {'A', 'F'}, {'a', 'f'}},
}

// parseClass reads what is behind a "[".
func parseClass(e string) (step ruleStep, rest string, ok bool) {
	if e != "" && (e[0] == '!' || e[0] == '^') {
		step.not, e = true, e[1:]
	}
	for first := true; e != ""; first = false {
		if e[0] == ']' && !first {
			return step, e[1:], true
		}
		if name, after, found := strings.Cut(strings.TrimPrefix(e, "[:"), ":]"); found && strings.HasPrefix(e, "[:") {
			if classes[name] == nil {
				return step, "", false
			}
			step.ranges, e = append(step.ranges, classes[name]...), after
			continue
		}
		low, after, ok := classChar(e)
		if !ok {
			return step, "", false
		}
		high := low
		if len(after) > 1 && after[0] == '-' && after[1] != ']' {
			if high, after, ok = classChar(after[1:]); !ok {
				return step, "", false
			}
		}
		step.ranges, e = append(step.ranges, [2]rune{low, high}), after
	}
	return step, "", false
}

func classChar(e string) (c rune, rest string, ok bool) {
	if e != "" && e[0] == '\\' {
		e = e[1:]
	}
	if e == "" {
		return 0, "", false
	}
	c, n := utf8.DecodeRuneInString(e)
	return c, e[n:], true
}

// end returns the name that every path ends with that a rule matches, or the extension, with its dot.
func (r *rule) end() (name, extension string) {
	var b strings.Builder
	steps := r.elements[len(r.elements)-1].steps
	starred := steps[0].star
	if starred {
		steps = steps[1:]
	}
	for _, s := range steps {
		if s.star || s.any || s.ranges != nil {
			return "", ""
		}
		b.WriteRune(s.char)
	}
	switch text := b.String(); {
	case !starred:
		return text, ""
	case strings.LastIndexByte(text, '.') == 0:
		return "", text
	}
	return "", ""
}

// match returns the last rule that matches a path beneath the directory of the rules, or nil. It takes time proportional
// to the product of the lengths of path and rule, for each rule, at most.
func (s *ruleSet) match(name string, dir bool) *rule {
	if s.fold {
		name = foldName(name)
	}
	base := name[strings.LastIndexByte(name, '/')+1:]
	best := -1
	try := func(list []int) {
		for _, i := range slices.Backward(list) {
			if i < best {
				return
			}
			if s.rules[i].matches(name, base, dir) {
				best = i
				return
			}
		}
	}
	try(s.names[base])
	if dot := strings.LastIndexByte(base, '.'); dot >= 0 {
		try(s.extensions[base[dot:]])
	}
	try(s.rest)
	if best < 0 {
		return nil
	}
	return &s.rules[best]
}

func (r *rule) matches(name, base string, dir bool) bool {
	switch {
	case r.dirOnly && !dir:
		return false
	case r.anywhere:
		return matchSteps(r.elements[0].steps, base)
	}
	return matchElements(r.elements, name)
}

// matchElements matches a whole path. When it fails behind a "**", it goes back to the last one only: an earlier one could
// match no more than the last can.
func matchElements(elements []ruleElement, name string) bool {
	back, again := -1, ""
	rest, more := name, true
	for i := 0; ; {
		if i < len(elements) && elements[i].deep {
			back, again = i, rest
			i++
			continue
		}
		if !more && i == len(elements) {
			return true
		}
		if more && i < len(elements) {
			e, after, further := strings.Cut(rest, "/")
			if matchSteps(elements[i].steps, e) {
				rest, more = after, further
				i++
				continue
			}
		}
		if back < 0 {
			return false
		}
		_, after, further := strings.Cut(again, "/")
		if !further {
			return false
		}
		i, rest, more, again = back+1, after, true, after
	}
}

// matchSteps matches one element, in the same way.
func matchSteps(steps []ruleStep, name string) bool {
	back, again := -1, 0
	at := 0
	for i := 0; ; {
		switch {
		case i < len(steps) && steps[i].star:
			back, again = i, at
			i++
			continue
		case at == len(name) && i == len(steps):
			return true
		case at < len(name) && i < len(steps):
			c, n := utf8.DecodeRuneInString(name[at:])
			if steps[i].matches(c) {
				at += n
				i++
				continue
			}
		}
		if back < 0 || again == len(name) {
			return false
		}
		_, n := utf8.DecodeRuneInString(name[again:])
		again += n
		i, at = back+1, again
	}
}

func (s ruleStep) matches(c rune) bool {
	switch {
	case s.any:
		return true
	case s.ranges == nil:
		return s.char == c
	}
	in := slices.ContainsFunc(s.ranges, func(r [2]rune) bool { return r[0] <= c && c <= r[1] })
	return in != s.not
}
