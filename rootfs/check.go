package rootfs

import (
	"errors"
	"io/fs"
	"os"

	"github.com/rootbound/rootbound/roots"
)

// Trouble says why a root cannot be used as it was resolved.
type Trouble uint8

const (
	// Gone: there is nothing at its path.
	Gone Trouble = iota + 1
	// Replaced: something else is at its path. For a root that is a file, something that is not a file.
	Replaced
	// Unreadable: this process may not read it any longer.
	Unreadable
	// Unreachable: asking the system ends with another error.
	Unreachable
)

// String is the trouble in a word.
func (t Trouble) String() string {
	return [...]string{"usable", "gone", "replaced", "unreadable", "unreachable"}[t]
}

// Problem is a root that cannot be used.
type Problem struct {
	Dir     roots.Dir // the root, as it was resolved
	Trouble Trouble   // why it cannot be used
}

// Check returns the roots of a set that cannot be used now, in their order; none when all can. It makes two system calls
// a root. A file that was saved by replacing it is not a problem.
func Check(set roots.Set) []Problem {
	var list []Problem
	for _, d := range set.Dirs() {
		if d.Access == 0 {
			continue
		}
		if t := check(d); t != 0 {
			list = append(list, Problem{d, t})
		}
	}
	return list
}

func check(d roots.Dir) Trouble {
	info, err := os.Lstat(d.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err != nil && codeOf(err) == NotDirectory:
		return Gone
	case errors.Is(err, fs.ErrPermission):
		return Unreadable
	case err != nil:
		return Unreachable
	case info.IsDir() == d.File, d.File && !info.Mode().IsRegular():
		return Replaced
	case !d.File && d.ID != (roots.FileID{}) && identify(d.Path, info) != d.ID:
		return Replaced
	}
	f, err := os.OpenFile(d.Path, os.O_RDONLY|openNonblock, 0)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return Unreadable
	case errors.Is(err, fs.ErrNotExist):
		return Gone
	case err != nil:
		return Unreachable
	}
	f.Close()
	return 0
}
