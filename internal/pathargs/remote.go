package pathargs

import (
	"errors"
	"path"
	"path/filepath"
	"strings"

	"github.com/rootbound/rootbound/rootfs"
)

var errTheirHome = errors.New("it begins in a home directory of the server's machine, which is not known")

// JudgeText holds arguments to directories of the server's machine, of which nothing is known but their names: by their text, under
// every reading. A relative path may lead anywhere but up and out of where it begins.
func JudgeText(args []Argument, dirs []string) Verdict {
	var v Verdict
	for _, a := range args {
		if !a.Why.Judged() {
			v.Unjudged = append(v.Unjudged, a)
			continue
		}
		j := Judged{Argument: a}
		possible := false
		for _, r := range readings(a, "") {
			text := filepath.ToSlash(r.text)
			if r.weak || r.drop > 0 || a.Why == ByShape && !path.IsAbs(text) && text[0] != '~' && !hasDotDot(r.text) {
				continue
			}
			clean, refusal, err := textual(text, dirs)
			if r.err != nil {
				refusal, err = Unresolvable, r.err
			}
			if !possible || j.Refusal == NotRefused && refusal != NotRefused {
				j.Place, j.Reading, j.Refusal, j.Err = rootfs.Place{Path: clean}, r.how, refusal, err
			}
			possible = true
		}
		if !possible {
			a.Why = NotPossible
			v.Unjudged = append(v.Unjudged, a)
			continue
		}
		v.Judged = append(v.Judged, j)
	}
	return v
}

// textual says where a text leads by its words.
func textual(text string, dirs []string) (clean string, refusal Refusal, err error) {
	clean = path.Clean(text)
	switch {
	case text[0] == '~', strings.HasPrefix(text, "$HOME"), strings.HasPrefix(text, "${HOME}"):
		return clean, Unresolvable, errTheirHome
	case len(text) > 1 && text[1] == ':' && isLetter(text[0]):
		return clean, Outside, nil // a drive
	case !path.IsAbs(text):
		if clean == ".." || strings.HasPrefix(clean, "../") {
			return clean, Outside, nil
		}
		return clean, NotRefused, nil
	}
	for _, dir := range dirs {
		if clean == dir || strings.HasPrefix(clean, strings.TrimSuffix(dir, "/")+"/") {
			return clean, NotRefused, nil
		}
	}
	return clean, Outside, nil
}
