package fsserver

import (
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/roots"
)

// Effects are what the tools do at most, by name. Nothing is taken away for good, and nothing is moved over something else: what
// delete_path and move_file do can be undone, by restore_path and by moving back.
func Effects() map[string]roots.Access {
	effects := map[string]roots.Access{}
	for _, t := range tools {
		effects[t.name] = roots.Read
		if t.writes {
			effects[t.name] = roots.Read | roots.Write
		}
	}
	return effects
}

// Lists are the results of tools/list that a server may give, by its options and the era.
func Lists() [][]byte {
	var lists [][]byte
	for _, o := range []Options{{}, {Compat: true}} {
		for _, era := range []exchange.Era{exchange.Legacy, exchange.Modern} {
			lists = append(lists, append(append([]byte{'{'}, listTools(toolsFor(o), era)...), '}'))
		}
	}
	return lists
}
