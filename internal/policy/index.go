package policy

import "sync"

// index finds the rules for a tool without looking at the others.
type index struct {
	rules []*Rule
	rest  [][]*Rule

	mu    sync.RWMutex
	tools map[[2]string][][]*Rule
}

func newIndex(rules []*Rule, defaults [][]*Rule) *index {
	return &index{rules: rules, rest: defaults, tools: map[[2]string][][]*Rule{}}
}

// maxTools is for how many tools it is kept which rules are theirs: names come from clients.
const maxTools = 4096

// groups returns the rules for a tool, and its defaults, each group in the order in which they are looked at.
func (x *index) groups(server, tool string) [][]*Rule {
	key := [2]string{server, tool}
	x.mu.RLock()
	groups, ok := x.tools[key]
	x.mu.RUnlock()
	if ok {
		return groups
	}
	groups = append(groups, ordered(x.rules, server, tool))
	for _, group := range x.rest {
		groups = append(groups, ordered(group, server, tool))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.tools) >= maxTools {
		clear(x.tools)
	}
	x.tools[key] = groups
	return groups
}

// ordered returns the rules for a tool: those that deny, those that ask, those that allow.
func ordered(rules []*Rule, server, tool string) []*Rule {
	var list []*Rule
	for v := Deny; v <= Allow; v++ {
		for _, r := range rules {
			if r.Verdict == v && r.matches(server, tool) {
				list = append(list, r)
			}
		}
	}
	return list
}
