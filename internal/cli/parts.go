package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/sandbox"
	"github.com/rootbound/rootbound/roots"
)

// runsLater are names at the top of a root whose content is run, or obeyed, by programs of the user that nothing holds: a
// confined server does not write them.
var runsLater = []string{
	".git/hooks", ".git/config", ".vscode", ".idea", ".cursor", ".claude", ".mcp.json", ".envrc", ".husky", "rootbound.toml", "rootbound.json",
}

// closedNames are names at the top of a root of files that hold keys and passwords: a confined server does not read them.
var closedNames = []string{".env", ".env.*", ".netrc", ".npmrc", ".pypirc"}

// samples are endings of files that have the form of such and no secrets.
var samples = []string{".example", ".sample", ".template", ".dist"}

// excepts are what in the roots is not open to the server: what the user would run later, what holds keys by its name, and
// roots that allow less than the one that they lie in. What --allow-write and --allow-read name stays open.
func (c *confinement) excepts(set roots.Set) []sandbox.Except {
	var list []sandbox.Except
	add := func(path string, access roots.Access) {
		if real, err := filepath.EvalSymlinks(path); err != nil || real != path { // not there, or somewhere else
			return
		}
		if i := slices.IndexFunc(list, func(e sandbox.Except) bool { return e.Path == path }); i >= 0 {
			list[i].Access &= access
			return
		}
		list = append(list, sandbox.Except{Path: path, Access: access})
	}
	named := func(path string, lists ...[]string) bool {
		return slices.ContainsFunc(slices.Concat(lists...), func(allowed string) bool { return beneath(path, allowed) })
	}
	write, read := c.plan.AllowWrite.Value, c.plan.AllowRead.Value
	for _, d := range set.Dirs() {
		if d.File || d.Access == 0 {
			continue
		}
		if d.Access&roots.Write != 0 {
			for _, name := range runsLater {
				if path := filepath.Join(d.Path, name); !named(path, write) {
					add(path, roots.ReadOnly)
				}
			}
			for _, file := range c.plan.Files {
				if real, err := filepath.EvalSymlinks(file); err == nil && beneath(real, d.Path) && !named(real, write) {
					add(real, roots.ReadOnly)
				}
			}
		}
		for _, name := range closedNames {
			found, _ := filepath.Glob(filepath.Join(globQuoted(d.Path), name))
			for _, path := range found {
				sample := slices.ContainsFunc(samples, func(end string) bool { return strings.HasSuffix(path, end) })
				if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && !sample && !named(path, write, read) {
					add(path, 0)
				}
			}
		}
	}
	for _, inner := range set.Dirs() {
		for _, outer := range set.Dirs() {
			if less(inner, outer) && inner.Access&roots.Write == 0 {
				add(inner.Path, inner.Access)
			}
		}
	}
	return list
}

// less reports whether a root lies in another one, and allows less.
func less(inner, outer roots.Dir) bool {
	return inner.Path != outer.Path && outer.Access&^inner.Access != 0 && beneath(inner.Path, outer.Path)
}

// globQuoted is a path as a pattern that matches itself.
func globQuoted(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// heldBack says for people what in the roots is not open to the server, and whether that holds.
func (c *confinement) heldBack() string {
	list := c.excepts(c.plan.Roots)
	if len(list) == 0 || c.learn != nil {
		return ""
	}
	var written, closed []string
	for _, e := range list {
		name := e.Path
		if d, rel, in := c.plan.Roots.Match(e.Path); in && rel != "" && rel != "." {
			if name = filepath.ToSlash(rel); c.plan.Roots.Len() > 1 {
				name = filepath.ToSlash(filepath.Join(filepath.Base(d.Path), rel))
			}
		}
		if e.Access == 0 {
			closed = append(closed, name)
		} else {
			written = append(written, name)
		}
	}
	var parts []string
	if len(written) > 0 {
		parts = append(parts, "not written: "+strings.Join(written, ", "))
	}
	if len(closed) > 0 {
		parts = append(parts, "not read: "+strings.Join(closed, ", "))
	}
	text := strings.Join(parts, "; ")
	if c.level.Parts {
		return ", in the roots " + text
	}
	return fmt.Sprintf(", in the roots to be %s, and the kernel does not hold that (%v)", text, sandbox.Parts())
}

// exceptOf returns what is held back at a path or above it.
func exceptOf(list []sandbox.Except, path string) (sandbox.Except, bool) {
	i := slices.IndexFunc(list, func(e sandbox.Except) bool { return beneath(path, e.Path) })
	if i < 0 {
		return sandbox.Except{}, false
	}
	return list[i], true
}

// heldBackDenial says what of a path is held back in a root.
func heldBackDenial(e sandbox.Except, path string) denial {
	option, doing, why := "--allow-write ", "writing", "it is in a root, and what is written there can be run or obeyed by programs of yours"
	if e.Access == 0 {
		option, doing, why = "--allow-read ", "reading", "it is in a root, and by its name it holds keys or passwords"
	}
	return denial{fmt.Sprintf("%s %q", doing, path), path, why, option + guard.ShellQuote(e.Path)}
}
