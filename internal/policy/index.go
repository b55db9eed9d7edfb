package policy

import "sync"

// index finds the rules for a tool without looking at the others.
type index struct {
	layers Layers

	mu    sync.RWMutex
	tools map[[2]string]*ordered
}

// ordered are the rules for one tool, in the order in which they are looked at: of each group those that deny, those that
// ask, those that allow.
type ordered struct {
	upper [][]*Rule // of the highest layer, and the defaults
	lower []*Rule
}

func newIndex(l Layers) *index { return &index{layers: l, tools: map[[2]string]*ordered{}} }

// maxTools is for how many tools it is kept which rules are theirs: names come from clients.
const maxTools = 4096

func (x *index) of(server, tool string) *ordered {
	key := [2]string{server, tool}
	x.mu.RLock()
	its, ok := x.tools[key]
	x.mu.RUnlock()
	if ok {
		return its
	}
	its = &ordered{lower: order(x.layers.Lower, server, tool)}
	for _, group := range append([][]*Rule{x.layers.Rules}, x.layers.Defaults...) {
		its.upper = append(its.upper, order(group, server, tool))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.tools) >= maxTools {
		clear(x.tools)
	}
	x.tools[key] = its
	return its
}

func order(rules []*Rule, server, tool string) []*Rule {
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
