package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// Predicate says what an argument has to be. Of what is given, everything has to hold; a list is one of several. An
// argument that is an array is each of its elements, except for MaxBytes.
type Predicate struct {
	// PathUnder are absolute directories: the path leads to one of them or beneath it.
	PathUnder []string
	// PathGlob are what the path is like that it leads to.
	PathGlob []PathGlob
	// URLHost are the hosts of a URL.
	URLHost []Host
	// OneOf are values.
	OneOf []Value
	// Regex is for the whole text.
	Regex *Regex
	// MaxBytes is how long the text is at most, or the JSON text of what is no string.
	MaxBytes *int
	// Absent: there is no such argument. Any: there is one.
	Absent, Any bool
	// Not is what it must not be.
	Not *Predicate
}

// OfPath reports whether p is about where an argument leads.
func (p *Predicate) OfPath() bool {
	return len(p.PathUnder) > 0 || len(p.PathGlob) > 0 || p.Not != nil && p.Not.OfPath()
}

// truth is how much of something is so. What cannot be known is some.
type truth uint8

const (
	none truth = iota
	some
	all
)

func is(yes bool) truth {
	if yes {
		return all
	}
	return none
}

// within is at most some.
func (t truth) within() truth { return min(t, some) }

// both sums up several of which each has to be so for it to be all.
func both(list ...truth) truth {
	least, most := list[0], list[0]
	for _, t := range list {
		least, most = min(least, t), max(most, t)
	}
	if least == most {
		return least
	}
	return some
}

// evaluation is one decision about a call.
type evaluation struct {
	call  *Call
	found map[string]found // by the name of the argument
	urls  map[string]location
}

// location reads a URL, once.
func (e *evaluation) location(text string) location {
	l, done := e.urls[text]
	if !done {
		l = locate(text)
		if e.urls == nil {
			e.urls = map[string]location{}
		}
		e.urls[text] = l
	}
	return l
}

// occurrence is a value that an argument's name is for.
type occurrence struct {
	at    string // JSON pointer
	value []byte
	exact bool    // its name is in the same letters
	text  *string // decoded, where it was a string and is needed again
}

// string decodes a value that is a string.
func (o *occurrence) string() (string, bool) {
	if o.text != nil {
		return *o.text, true
	}
	return text(o.value)
}

func (e *evaluation) argument(a *Arg) truth {
	f := e.find(a.Name)
	list := f.list
	switch {
	case f.deeper:
		return some
	case len(list) == 0:
		return is(a.Absent)
	}
	if a.Absent {
		return is(!slices.ContainsFunc(list, func(o occurrence) bool { return o.exact })).within()
	}
	var t truth
	for i, o := range list {
		one := a.holds(e, o)
		if !o.exact {
			one = one.within()
		}
		if i == 0 {
			t = one
		} else {
			t = both(t, one)
		}
	}
	return t
}

// find finds an argument, once.
func (e *evaluation) find(name string) found {
	f, done := e.found[name]
	if done {
		return f
	}
	f = find(e.call.Args, name)
	for i := range f.list {
		if s, ok := text(f.list[i].value); ok {
			f.list[i].text = &s
		}
	}
	if e.found == nil {
		e.found = map[string]found{}
	}
	e.found[name] = f
	return f
}

// holds reports how much of a value is as p says.
func (p *Predicate) holds(e *evaluation, o occurrence) truth {
	t := all
	if p.MaxBytes != nil {
		t = is(size(&o) <= *p.MaxBytes)
	}
	if p.Not != nil {
		t = min(t, all-p.Not.holds(e, o))
	}
	if t == none || len(p.PathUnder) == 0 && len(p.PathGlob) == 0 && len(p.URLHost) == 0 && len(p.OneOf) == 0 && p.Regex == nil {
		return t
	}
	return min(t, p.each(e, o, 0))
}

// maxDepth is how deep arguments are looked into. What is deeper is not certain.
const maxDepth = 64

// each is for the elements of arrays, and else for the value.
func (p *Predicate) each(e *evaluation, o occurrence, depth int) truth {
	if depth > maxDepth || len(o.value) == 0 {
		return some
	}
	if o.value[0] != '[' {
		return p.one(e, o)
	}
	var t truth
	i := 0
	for item := range wire.Items(o.value) {
		one := p.each(e, occurrence{at: o.at + "/" + strconv.Itoa(i), value: item}, depth+1)
		if i == 0 {
			t = one
		} else {
			t = both(t, one)
		}
		i++
	}
	if i == 0 {
		return some // nothing of it is so, and nothing is not
	}
	return t
}

// one is for a value that is no array.
func (p *Predicate) one(e *evaluation, o occurrence) truth {
	t := all
	if len(p.OneOf) > 0 {
		t = oneOf(p.OneOf, &o)
	}
	if len(p.PathUnder) > 0 || len(p.PathGlob) > 0 {
		t = min(t, p.path(e, o))
	}
	if p.Regex == nil && len(p.URLHost) == 0 {
		return t
	}
	text, ok := o.string()
	if !ok {
		return t.within() // a server may make a text of it
	}
	if p.Regex != nil {
		t = min(t, is(p.Regex.re.MatchString(text)))
	}
	if len(p.URLHost) > 0 {
		t = min(t, e.location(text).on(p.URLHost))
	}
	return t
}

// path is for where a value leads. What was not resolved is not known.
func (p *Predicate) path(e *evaluation, o occurrence) truth {
	t, seen := all, false
	for i := range e.call.Paths {
		path := &e.call.Paths[i]
		if path.Arg != o.at {
			continue
		}
		one := all
		if len(p.PathUnder) > 0 {
			one = underAny(p.PathUnder, path)
		}
		if len(p.PathGlob) > 0 {
			one = min(one, is(slices.ContainsFunc(p.PathGlob, func(g PathGlob) bool { return g.match(path) })))
		}
		if !seen {
			t, seen = one, true
		} else {
			t = both(t, one)
		}
	}
	if !seen {
		return some
	}
	return t
}

// underAny is some for a directory above that is taken away with all that is in it.
func underAny(dirs []string, p *Path) truth {
	t := none
	for _, dir := range dirs {
		switch {
		case Under(p.Resolved, dir):
			return all
		case p.Need&roots.Delete != 0 && Under(dir, p.Resolved):
			t = some
		}
	}
	return t
}

// Under reports whether path is dir or beneath it, by their letters: both are absolute and without links.
func Under(path, dir string) bool {
	const separator = string(filepath.Separator)
	dir = strings.TrimSuffix(dir, separator)
	if len(path) < len(dir) || !sameName(path[:len(dir)], dir) {
		return false
	}
	return len(path) == len(dir) || path[len(dir)] == filepath.Separator
}

func sameName(a, b string) bool {
	if foldsNames {
		return strings.EqualFold(a, b)
	}
	return a == b
}

func text(value []byte) (string, bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	s, err := wire.Unquote(value)
	return s, err == nil
}

func size(o *occurrence) int {
	if s, ok := o.string(); ok {
		return len(s)
	}
	return len(o.value)
}

// Regex is a regular expression (RE2) for a whole text, in which "." is any character.
type Regex struct {
	text string
	re   *regexp.Regexp
}

// ParseRegex reads one.
func ParseRegex(text string) (*Regex, error) {
	if _, err := regexp.Compile(text); err != nil { // by itself: a ")" of it must not end what is put around it
		return nil, fmt.Errorf("reading the regular expression: %w", err)
	}
	re, err := regexp.Compile(`(?s)\A(?:` + text + `)\z`)
	if err != nil {
		return nil, fmt.Errorf("reading the regular expression: %w", err)
	}
	return &Regex{text, re}, nil
}

// Value is a string, a number or a boolean.
type Value struct {
	// Text is the string, or the JSON text of the others.
	Text string
	// Bare is set for the others.
	Bare bool
}

// oneOf is some where a server could read the value as one of the list.
func oneOf(list []Value, o *occurrence) truth {
	s, quoted := o.string()
	if !quoted {
		s = string(o.value)
	}
	t := none
	for _, v := range list {
		switch {
		case v.Text == s && v.Bare != quoted:
			return all
		case v.Text == s, sameNumber(v.Text, s):
			t = some
		}
	}
	return t
}

// sameNumber reports whether a reader of 64-bit floating point takes two numbers for one.
func sameNumber(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return false
	}
	y, err := strconv.ParseFloat(b, 64)
	return (err == nil || errors.Is(err, strconv.ErrRange)) && x == y
}
