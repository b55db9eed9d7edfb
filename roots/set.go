package roots

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// namesFold says whether one file usually answers to several spellings of its name here. What lies beneath what is
// then decided by identity as well as by text. Elsewhere it is not: an inode number may be given to another directory
// later, and then identity would answer for the wrong one.
const namesFold = runtime.GOOS == "windows" || runtime.GOOS == "darwin" || runtime.GOOS == "ios"

// Set is an ordered set of resolved roots. The zero value is empty and allows nothing. A Set never changes; it is safe
// for concurrent use.
//
// Roots may nest. What may be done at a path is what the deepest root that holds it allows, so a read-only root inside
// a writable one is read-only, and one that allows nothing is a hole.
type Set struct {
	dirs []Dir
}

// NewSet makes a set of dirs in their order. Of dirs that are the same place it keeps the first, with the spellings of
// all, the rights that all have, and pinned only when all are.
func NewSet(dirs ...Dir) Set { return newSet(dirs, namesFold) }

func newSet(dirs []Dir, byID bool) Set {
	var s Set
	for _, d := range dirs {
		if i := s.index(d, byID); i >= 0 {
			s.dirs[i] = merge(s.dirs[i], d)
		} else {
			s.dirs = append(s.dirs, d.clone())
		}
	}
	return s
}

// Dirs returns the roots in order.
func (s Set) Dirs() []Dir {
	dirs := make([]Dir, len(s.dirs))
	for i, d := range s.dirs {
		dirs[i] = d.clone()
	}
	return dirs
}

// Len returns how many roots there are.
func (s Set) Len() int { return len(s.dirs) }

// Equal reports whether both sets hold equal roots in the same order.
func (s Set) Equal(t Set) bool { return slices.EqualFunc(s.dirs, t.dirs, Dir.Equal) }

// Find returns the first root with that name.
func (s Set) Find(name string) (Dir, bool) {
	if i := slices.IndexFunc(s.dirs, func(d Dir) bool { return d.Name == name }); i >= 0 && name != "" {
		return s.dirs[i].clone(), true
	}
	return Dir{}, false
}

// Roots returns the list told to a server: each URI once, in order, under every spelling, with names. A root that
// allows nothing is not told.
func (s Set) Roots() []Root {
	var list []Root
	told := make(map[string]bool)
	for _, d := range s.dirs {
		if d.Access == 0 {
			continue
		}
		for _, path := range d.paths() {
			if uri := FileURI(path); !told[uri] {
				told[uri] = true
				list = append(list, Root{URI: uri, Name: d.Name})
			}
		}
	}
	return list
}

// Match returns the root that path lies in by its text, the deepest of several, and the rest of the path: "." for the
// root itself. It is for messages, and never for access: it looks at no link and no disk. Use rootfs to reach files.
func (s Set) Match(path string) (d Dir, rel string, ok bool) {
	if !filepath.IsAbs(path) {
		return Dir{}, "", false
	}
	path = filepath.Clean(path)
	best := -1
	for i, e := range s.dirs {
		for _, p := range e.paths() {
			r, in := below(path, p, namesFold)
			if !in || e.File && r != "." {
				continue
			}
			if best < 0 || r == "." || rel != "." && len(r) < len(rel) {
				best, rel = i, r
			}
		}
	}
	if best < 0 {
		return Dir{}, "", false
	}
	return s.dirs[best].clone(), rel, true
}

// Intersect returns what both sets allow, in the order of s: for each pair of which one lies in the other the deeper
// one, with the rights that both sets give there, and pinned only when it is in both. At every path the intersection
// allows exactly what both sets allow.
func (s Set) Intersect(t Set) Set { return s.intersect(t, namesFold) }

func (s Set) intersect(t Set, byID bool) Set {
	var out Set
	for n, a := range s.dirs {
		for _, b := range t.dirs {
			var d Dir
			switch {
			case a.holds(b, byID):
				d = b
			case b.holds(a, byID):
				d = a
			default:
				continue
			}
			i, j := s.index(d, byID), t.index(d, byID)
			if i >= 0 && i != n || out.index(d, byID) >= 0 {
				continue // it has its own turn, or had it
			}
			if i >= 0 && j >= 0 {
				d = merge(a, t.dirs[j])
			}
			x, y := s.at(d, byID), t.at(d, byID)
			d.Access, d.Pinned = x.Access&y.Access, x.Pinned && y.Pinned
			out.dirs = append(out.dirs, d.clone())
		}
	}
	return out
}

// Covers reports whether s allows, at every path, all that t allows there.
func (s Set) Covers(t Set) bool { return s.covers(t, namesFold) }

func (s Set) covers(t Set, byID bool) bool {
	// What a set allows changes only where one of its roots begins.
	for _, d := range slices.Concat(s.dirs, t.dirs) {
		if t.at(d, byID).Access&^s.at(d, byID).Access != 0 {
			return false
		}
	}
	return true
}

// at returns the deepest root that holds d; the zero Dir, which allows nothing, when none does.
func (s Set) at(d Dir, byID bool) Dir {
	var best Dir
	found := false
	for _, e := range s.dirs {
		if e.holds(d, byID) && (!found || best.holds(e, byID)) {
			best, found = e, true
		}
	}
	return best
}

// index returns where the set has the place that d is, or -1.
func (s Set) index(d Dir, byID bool) int {
	return slices.IndexFunc(s.dirs, func(e Dir) bool { return e.holds(d, byID) && d.holds(e, byID) })
}

// merge makes one root of two that are the same place.
func merge(a, b Dir) Dir {
	paths := a.paths()
	for _, p := range b.paths() {
		if !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	a.Spellings = paths
	if a.Name == "" {
		a.Name = b.Name
	}
	a.Access &= b.Access
	a.Pinned = a.Pinned && b.Pinned
	return a
}

// paths returns every spelling of d, Path first.
func (d Dir) paths() []string {
	paths := []string{d.Path}
	for _, p := range d.Spellings {
		if !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	return paths
}

// holds reports whether e is d, or lies beneath it.
func (d Dir) holds(e Dir, byID bool) bool {
	if d.File {
		// Two names of one file in one directory are two roots, as they are elsewhere: only the letters may differ.
		return e.File && (d.Path == e.Path || byID && d.ID != FileID{} && d.ID == e.ID &&
			strings.EqualFold(filepath.Base(d.Path), filepath.Base(e.Path)) &&
			len(d.ancestors) > 0 && len(e.ancestors) > 0 && d.ancestors[0] == e.ancestors[0])
	}
	if rel, ok := below(e.Path, d.Path, false); ok {
		return rel != "." || !e.File
	}
	return byID && d.ID != FileID{} && (d.ID == e.ID && !e.File || slices.Contains(e.ancestors, d.ID))
}

// below cuts base and a separator from the front of path, both absolute and clean. The rest of base itself is ".".
func below(path, base string, fold bool) (rel string, ok bool) {
	if len(path) < len(base) || path[:len(base)] != base && !(fold && strings.EqualFold(path[:len(base)], base)) {
		return "", false
	}
	switch rel = path[len(base):]; {
	case rel == "":
		return ".", true
	case base != "" && rel[0] == filepath.Separator:
		return rel[1:], true
	case base != "" && base[len(base)-1] == filepath.Separator: // "/" and "C:\"
		return rel, true
	}
	return "", false
}
