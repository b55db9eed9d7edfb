package policy

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rootbound/rootbound/roots"
)

// index finds the rules for a tool without looking at the others.
type index struct {
	layers Layers

	mu    sync.RWMutex
	tools map[[2]string]*ordered
}

// ordered are the rules for one tool.
type ordered struct {
	upper []group // of the highest layer, and the defaults
	lower group
}

func newIndex(l Layers) *index { return &index{layers: l, tools: map[[2]string]*ordered{}} }

// maxTools is for how many tools it is kept which rules are theirs, and maxName how long their names may be together with that of the
// server, in bytes: names come from clients.
const (
	maxTools = 4096
	maxName  = 512
)

func (x *index) of(server, tool string) *ordered {
	key := [2]string{server, tool}
	x.mu.RLock()
	its, ok := x.tools[key]
	x.mu.RUnlock()
	if ok {
		return its
	}
	its = &ordered{lower: newGroup(x.layers.Lower, server, tool)}
	for _, rules := range append([][]*Rule{x.layers.Rules}, x.layers.Defaults...) {
		its.upper = append(its.upper, newGroup(rules, server, tool))
	}
	if len(server)+len(tool) > maxName {
		return its
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.tools) >= maxTools {
		clear(x.tools)
	}
	x.tools[key] = its
	return its
}

// group are the rules for one tool, in the order in which they are looked at: those that deny, those that ask, those that
// allow. Where there are many, those about values, directories and hosts are found by what the call has of these.
type group struct {
	rules   []*Rule
	plain   []int // those that are looked at for every call, by their number
	lookups []lookup
}

// lookup finds rules by what they say of one argument.
type lookup struct {
	arg  string
	by   way
	at   map[string][]int
	list []int // all of them
}

// way is what rules are found by.
type way uint8

const (
	byValue way = iota
	byDirectory
	byHost
)

// few is how many rules are looked at one after the other.
const few = 16

func newGroup(rules []*Rule, server, tool string) group {
	var g group
	for v := Deny; v <= Allow; v++ {
		for _, r := range rules {
			if r.Verdict == v && r.matches(server, tool) {
				g.rules = append(g.rules, r)
			}
		}
	}
	for i, r := range g.rules {
		if len(g.rules) <= few || !g.add(i, r) {
			g.plain = append(g.plain, i)
		}
	}
	return g
}

// add puts a rule where it is found by one of its arguments, if it has one that serves.
func (g *group) add(i int, r *Rule) bool {
	for j := range r.Args {
		a := &r.Args[j]
		var keys []string
		var by way
		switch {
		case len(a.OneOf) > 0:
			by = byValue
			for _, v := range a.OneOf {
				keys = append(keys, v.Text)
			}
		case len(a.PathUnder) > 0 && !foldsNames:
			by, keys = byDirectory, a.PathUnder
		case len(a.URLHost) > 0:
			by = byHost
			for _, h := range a.URLHost {
				keys = append(keys, h.name)
			}
		default:
			continue
		}
		n := slices.IndexFunc(g.lookups, func(l lookup) bool { return l.arg == a.Name && l.by == by })
		if n < 0 {
			n = len(g.lookups)
			g.lookups = append(g.lookups, lookup{arg: a.Name, by: by, at: map[string][]int{}})
		}
		l := &g.lookups[n]
		l.list = append(l.list, i)
		for _, key := range keys {
			if list := l.at[key]; len(list) == 0 || list[len(list)-1] != i {
				l.at[key] = append(list, i)
			}
		}
		return true
	}
	return false
}

// first is the first rule that is for the call.
func (g *group) first(e *evaluation) *Rule {
	best := len(g.rules)
	look := func(list []int) {
		for _, i := range list {
			if i >= best {
				return
			}
			if g.rules[i].applies(e) {
				best = i
				return
			}
		}
	}
	look(g.plain)
	for i := range g.lookups {
		l := &g.lookups[i]
		keys, certain := l.keys(e)
		if !certain {
			look(l.list)
			continue
		}
		for _, key := range keys {
			look(l.at[key])
		}
	}
	if best == len(g.rules) {
		return nil
	}
	return g.rules[best]
}

// keys are what rules of l may have that are for the call; not certain is that it may be any.
func (l *lookup) keys(e *evaluation) (keys []string, certain bool) {
	f := e.find(l.arg)
	switch {
	case f.deeper || len(f.list) > 1:
		return nil, false
	case len(f.list) == 0:
		return nil, true // nothing that is not there has a value
	}
	o := &f.list[0]
	text, ok := o.string()
	if !ok {
		return nil, false
	}
	switch l.by {
	case byValue:
		if _, err := strconv.ParseFloat(text, 64); err == nil || errors.Is(err, strconv.ErrRange) {
			return nil, false // it may be another number's text
		}
		return []string{text}, true
	case byDirectory:
		for i := range e.call.Paths {
			p := &e.call.Paths[i]
			if p.Arg != o.at {
				continue
			}
			if p.Need&roots.Delete != 0 {
				return nil, false
			}
			for dir := p.Resolved; ; dir = filepath.Dir(dir) {
				keys = append(keys, dir)
				if parent := filepath.Dir(dir); parent == dir {
					break
				}
			}
		}
		return keys, keys != nil
	}
	at := e.location(text)
	if !at.certain && !at.readable {
		return nil, false
	}
	for name := at.name; name != ""; {
		keys = append(keys, name)
		_, name, _ = strings.Cut(name, ".")
	}
	return keys, true
}
