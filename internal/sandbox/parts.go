package sandbox

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/roots"
)

// above returns the directories between a path and the rule that lets it be written, the highest first.
func (p Policy) above(path string) []string {
	var dirs []string
	for _, r := range p.Rules {
		if r.Access&roots.Write == 0 || !strings.HasPrefix(path, strings.TrimSuffix(r.Path, "/")+"/") {
			continue
		}
		for dir := filepath.Dir(path); len(dir) > len(r.Path); dir = filepath.Dir(dir) {
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	slices.Sort(dirs)
	return dirs
}
