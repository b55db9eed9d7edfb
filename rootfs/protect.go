package rootfs

import (
	"path/filepath"
	"slices"

	"github.com/rootbound/rootbound/roots"
)

// protect returns where the paths of Options.Protect are, without links: each itself, and what it leads to.
func protect(set roots.Set, paths []string) []position {
	var list []position
	for _, path := range paths {
		path = filepath.Clean(path)
		link := path
		if dir, err := Locate(set, filepath.Dir(path), Process{}); err == nil {
			link = filepath.Join(dir.Path, filepath.Base(path))
		}
		for _, p := range []string{link, whereTo(set, path)} {
			top, elems := split(p)
			if q := (position{top, elems}); !slices.ContainsFunc(list, q.equal) {
				list = append(list, q)
			}
		}
	}
	return list
}

// whereTo is where a path leads, or the path where that cannot be known.
func whereTo(set roots.Set, path string) string {
	if p, err := Locate(set, path, Process{}); err == nil {
		return p.Path
	}
	return path
}

// protects says whether a target is one of Options.Protect, or beneath one.
func (f *FS) protects(p target) bool {
	if f.protected == nil {
		return false
	}
	here := p.position()
	return slices.ContainsFunc(f.protected, func(q position) bool { return f.within(here, q) })
}

// protectsAround says so too of a target that holds one, or would if that were there.
func (f *FS) protectsAround(p target) bool {
	if f.protected == nil {
		return false
	}
	here := p.position()
	return slices.ContainsFunc(f.protected, func(q position) bool { return f.within(here, q) || f.within(q, here) })
}
