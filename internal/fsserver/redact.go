package fsserver

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/roots"
)

// errorText is the text of an error for the client of a request.
func (s *Server) errorText(r *exchange.Request, err error) string {
	if !s.redact {
		return err.Error()
	}
	return redact(err.Error(), r.Roots, s.home)
}

// redact takes the paths of this machine out of a text: what is beneath a root is written as a relative path, as every tool
// takes it, and a root as its name. What a client wrote itself and lies in no root stays.
func redact(text string, set roots.Set, home string) string {
	var replacements [][2]string // a path and what stands for it
	for _, d := range set.Dirs() {
		name := cmp.Or(d.Name, filepath.Base(d.Path))
		for _, path := range append([]string{d.Path}, d.Spellings...) {
			replacements = append(replacements, [2]string{path, name}, [2]string{roots.FileURI(path), name})
			if d.File { // a relative path is beneath its directory
				dir := filepath.Dir(path)
				replacements = append(replacements, [2]string{dir, "."}, [2]string{roots.FileURI(dir), "."})
			}
		}
	}
	if home != "" {
		replacements = append(replacements, [2]string{home, "~"}, [2]string{roots.FileURI(home), "~"})
	}
	slices.SortStableFunc(replacements, func(a, b [2]string) int { return cmp.Compare(len(b[0]), len(a[0])) }) // the deepest first
	for _, r := range replacements {
		if path := r[0]; path != "" && filepath.Dir(path) != path {
			text = replacePath(text, path, r[1])
		}
	}
	return text
}

// replacePath puts a name in the place of a path, and nothing in the place of its beginning of a longer one, unless the name
// is the home directory's.
func replacePath(text, path, name string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, path)
		if i < 0 {
			return b.String() + text
		}
		b.WriteString(text[:i])
		switch rest := text[i+len(path):]; {
		case rest != "" && (os.IsPathSeparator(rest[0]) || rest[0] == '/'):
			if name == "~" {
				b.WriteString("~/")
			}
			text = rest[1:]
		case rest == "" || strings.IndexByte(" '\",:;)\n", rest[0]) >= 0, rest == ".", strings.HasPrefix(rest, ". "):
			b.WriteString(name)
			text = rest
		default: // the beginning of another name
			b.WriteString(path)
			text = rest
		}
	}
}
