// Package sandbox lets the kernel hold this process to a set of directories, as a second layer behind the code that is
// meant to stay in them: when that code is wrong, the kernel refuses.
//
//	level, err := sandbox.Restrict([]sandbox.Rule{{Path: "/srv/docs", Access: roots.ReadOnly}})
//	if errors.Is(err, errors.ErrUnsupported) {
//		// the first layer holds alone: say so
//	}
//
// On Linux this is Landlock, from version 3 of its interface on (Linux 6.2). Older ones cannot forbid to truncate a file,
// and nothing is restricted then. On other systems nothing is.
//
// # Limits
//
// What is open stays open with the rights it had. Looking at a file without opening it (stat, a watch for changes) is not
// restricted, nor are mode, owner and times of files elsewhere. A rule holds for a file or a directory, not for its name:
// what takes its place later is outside. A directory in a directory cannot be taken out of it again, so a read-only root
// in a writable one is writable to the kernel. A Rule for one file that may be replaced has to be one for its directory.
// A restriction is never lifted.
package sandbox

import (
	"fmt"

	"github.com/rootbound/rootbound/roots"
)

// Rule lets the process reach what is at Path, and, when that is a directory, everything beneath it. Reading is reading
// files and listing directories; nothing is ever executable. Links in Path are followed. Writing includes taking names
// away, because a file that is replaced in one step takes one away; only directories can be removed with roots.Delete
// alone.
type Rule struct {
	Path   string
	Access roots.Access
}

// Level says what the kernel enforces. The zero value is nothing.
type Level struct {
	// Landlock is the version of the interface that is in force, 0 when none is.
	Landlock int
}

// Enforced reports whether the kernel enforces anything.
func (l Level) Enforced() bool { return l.Landlock > 0 }

// String says it in a line for people.
func (l Level) String() string {
	if !l.Enforced() {
		return "not confined by the kernel"
	}
	return fmt.Sprintf("confined by the kernel (Landlock %d)", l.Landlock)
}
