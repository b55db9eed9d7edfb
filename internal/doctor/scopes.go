package doctor

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/clientconf"
)

// scopes judges names that are given at several levels, and notes for the table which of them holds.
func (x *examiner) scopes() {
	type name struct{ client, server string }
	before := map[name][]*entry{}
	for _, e := range x.entries {
		if !e.read() || e.file.Place.Role != clientconf.Servers {
			continue
		}
		n := name{e.client.ID, e.Name}
		for _, o := range before[n] {
			if meet(o, e) {
				x.shadow(o, e)
			}
		}
		if len(before[n]) < 100 { // projects of one file, mostly
			before[n] = append(before[n], e)
		}
	}
	for _, f := range x.files {
		x.nested(f)
	}
}

// meet reports whether two entries of a name can be there at once: those of different projects cannot.
func meet(a, b *entry) bool {
	if a.file.Path == b.file.Path && a.Project == b.Project && a.Scope == b.Scope {
		return false // twice in one table, which is told of the text
	}
	if a.Scope == b.Scope && a.Entry != nil && b.Entry != nil && a.Entry.Equal(b.Entry) {
		return false // it does not matter which one
	}
	if a.Project == "" || b.Project == "" || a.Scope == clientconf.User || b.Scope == clientconf.User {
		return true
	}
	return sameDirectories([]string{a.Project}, []string{b.Project})
}

// strength returns the place of a scope in the order that a client has, 0 for the strongest; -1 where it is not known.
func strength(c *clientconf.Client, s clientconf.Scope) int {
	order, _, _ := strings.Cut(c.Precedence, ";")
	list := strings.Split(order, ", ")
	return slices.Index(list, string(s))
}

// shadow tells that one of two entries of a name hides the other one.
func (x *examiner) shadow(a, b *entry) {
	winner, loser := a, b
	one, two := strength(a.client, a.Scope), strength(b.client, b.Scope)
	sure := one >= 0 && two >= 0 && one != two
	if sure && two < one {
		winner, loser = b, a
	}
	in := ""
	if winner.Scope == clientconf.Local && winner.Project != "" {
		in = " in " + word(x.short(winner.Project))
	}
	loser.shadowed = append(loser.shadowed, winner)
	winner.hides = append(winner.hides, loser)
	switch {
	case sure:
		x.findIn("SCOPE-SHADOW", loser, loser.Pos, fmt.Sprintf("%s is also in the %s scope (%s:%d), which holds%s, with %s.", word(loser.Name), winner.Scope,
			x.short(winner.file.Path), winner.Pos.Line, in, orNone(words(x.directoriesOf(winner.Server)))), "")
	default:
		x.findIn("SCOPE-SHADOW", loser, loser.Pos, fmt.Sprintf("%s is also in %s, line %d, with %s, and which one holds is not documented.", word(loser.Name),
			word(x.short(winner.file.Path)), winner.Pos.Line, orNone(words(x.directoriesOf(winner.Server)))), "")
	}
}

// nested finds a portable file in a directory above, or below, that has a server of the same name.
func (x *examiner) nested(f *clientconf.File) {
	if f.Client.ID != "claude-code" || filepath.Base(f.Path) != ".mcp.json" || f.Place.Scope != clientconf.Project || f.Dead() {
		return
	}
	dir := filepath.Dir(f.Path)
	var others []*clientconf.File
	add := func(path string) {
		for _, g := range x.files {
			if g.Path == path && g.Client == f.Client {
				others = append(others, g)
				return
			}
		}
		if g := clientconf.Read(f.Client, f.Place, path); g != nil {
			others = append(others, g)
		}
	}
	for up := filepath.Dir(dir); up != filepath.Dir(up); up = filepath.Dir(up) {
		add(filepath.Join(up, ".mcp.json"))
		if up == x.m.Host.Home {
			break
		}
	}
	for _, path := range clientconf.Below(dir, ".mcp.json") {
		add(path)
	}
	for _, s := range f.Servers {
		for _, g := range others {
			i := slices.IndexFunc(g.Servers, func(o *clientconf.Server) bool { return o.Name == s.Name && !o.Unread })
			if i < 0 || s.Unread || g.Dead() {
				continue
			}
			x.server("SCOPE-NESTED", s, fmt.Sprintf("%s is also in %s.", word(s.Name), word(x.short(g.Path))), "")
			break
		}
	}
}
