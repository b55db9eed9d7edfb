package launch

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

var versioned = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^v?\d+\.\d+[\w.+-]*$|[-_@]v?\d+\.\d+\.\d+[\w.+-]*$`)
})

// Lasting reports whether a program that is installed at path is likely to be there after its next version is: not so in a
// directory for temporary files, of a package runner's cache, or with a version in its name, as package managers have them.
func Lasting(path, temp string) bool {
	if temp != "" {
		if rel, err := filepath.Rel(temp, path); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return false
		}
	}
	parts := strings.Split(slashed(filepath.Dir(path)), "/")
	for i, part := range parts {
		switch {
		case versioned().MatchString(part), part == "_npx", strings.HasPrefix(part, "go-build"):
			return false
		case part == "store" && i > 0 && parts[i-1] == "nix":
			return false
		}
	}
	return true
}
