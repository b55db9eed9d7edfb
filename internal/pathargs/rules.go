package pathargs

import (
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/wire"
)

// Where says whose paths a server's arguments are.
type Where uint8

const (
	// Local: paths of this machine.
	Local Where = iota
	// Elsewhere: of a remote server, a repository host, a container. Only "file:" URIs and "~/" are of this machine.
	Elsewhere
	// Remote: of the server's machine, where Rules.Dirs are (JudgeText).
	Remote
)

// Rules say which arguments of a server are paths. The zero value is right for a local server nobody knows.
type Rules struct {
	Where Where
	// Dirs are directories of the server's machine, absolute, to which its paths are held by their text; for Remote.
	Dirs []string
	// Filesystem is set for a known filesystem server: names that can mean something else then mean a path.
	Filesystem bool
	// Tools are exceptions by the name of a tool or prompt, or "*" for all.
	Tools map[string]ToolRules
	// Also are more arguments that are paths.
	Also []Also
}

// Also are arguments that are paths, of the tools that Tool is true for.
type Also struct {
	Tool  func(name string) bool
	Paths []string
}

// ToolRules name arguments. A name without "/" is that member at any depth; "/edits/*/file" is one place, with "*" for any
// member or element and "~1" for a "/" in a name, as in a JSON pointer (policy.CheckName says what is wrong with one). Where both
// lists name an argument, it is a path.
type ToolRules struct {
	Paths    []string
	NotPaths []string
}

type listed uint8

const (
	unlisted listed = iota
	listedPath
	listedNot
)

func (r Rules) lists(tool string, at []string) listed {
	l := unlisted
	for _, also := range r.Also {
		if also.Tool(tool) && slices.ContainsFunc(also.Paths, func(p string) bool { return names(p, at) }) {
			return listedPath
		}
	}
	for _, name := range []string{tool, "*"} {
		t := r.Tools[name]
		if slices.ContainsFunc(t.Paths, func(p string) bool { return names(p, at) }) {
			return listedPath
		}
		if slices.ContainsFunc(t.NotPaths, func(p string) bool { return names(p, at) }) {
			l = listedNot
		}
	}
	return l
}

// names reports whether a name in ToolRules is the argument at a pointer's elements. The elements of an array that is
// named are named with it.
func names(name string, at []string) bool {
	for len(at) > 0 {
		if !strings.HasPrefix(name, "/") {
			if at[len(at)-1] == wire.PointerName(name) {
				return true
			}
		} else if want := strings.Split(name[1:], "/"); slices.EqualFunc(want, at, func(w, a string) bool { return w == "*" || wire.PointerName(w) == a }) {
			return true
		}
		if !isIndex(at[len(at)-1]) {
			return false
		}
		at = at[:len(at)-1]
	}
	return false
}

func isIndex(e string) bool {
	return e != "" && strings.Trim(e, "0123456789") == ""
}
