package pathargs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// Process is the server, as far as it decides where a path leads. Without a Dir relative paths are resolved in the roots
// only, and refused when there is none.
type Process = rootfs.Process

// Verdict is what Judge says of a request.
type Verdict struct {
	Judged   []Judged   // in their order
	Unjudged []Argument // what was seen and does not count, for the log
}

// Refused returns the arguments that no root allows.
func (v Verdict) Refused() []Judged {
	var list []Judged
	for _, j := range v.Judged {
		if j.Refusal != NotRefused {
			list = append(list, j)
		}
	}
	return list
}

// Refusal says why a path is refused.
type Refusal uint8

const (
	// NotRefused: every reading leads where a root allows what the request does there.
	NotRefused Refusal = iota
	// Outside: it leads where no root is.
	Outside
	// Forbidden: it leads into a root that does not allow what the request does there.
	Forbidden
	// Unresolvable: it cannot be known where it leads; Err says why.
	Unresolvable
)

func (r Refusal) String() string {
	return [...]string{"", "outside the roots", "not allowed there", "cannot be resolved"}[r]
}

// Judged is a path argument with where it leads.
type Judged struct {
	Argument
	// Place is where it leads: of a refused one, under the reading that is refused, else as it is written.
	Place rootfs.Place
	// Places are all the places where a server may go, Place among them, unless it is refused.
	Places []rootfs.Place
	// Reading says what was done to the value before it led to Place; empty when nothing was.
	Reading string
	Refusal Refusal
	Err     error
}

// Judge asks the disk where every argument leads, under every reading, and whether set allows it. What counts by its shape
// only and has nothing on this machine is not judged.
func Judge(args []Argument, set roots.Set, server Process) Verdict {
	var v Verdict
	budget := maxWork
	for _, a := range args {
		if !a.Why.Judged() {
			v.Unjudged = append(v.Unjudged, a)
			continue
		}
		j, possible, onMachine := judge(a, set, server, &budget)
		switch {
		case !possible:
			a.Why = NotPossible
		case a.Why == ByShape && !onMachine:
			a.Why = NotOnMachine
		default:
			v.Judged = append(v.Judged, j)
			continue
		}
		a.Value = strings.ToValidUTF8(a.Value[:min(len(a.Value), 256)], "")
		v.Unjudged = append(v.Unjudged, a)
	}
	return v
}

// maxWork is how many bytes of paths are looked up for one request: a thousand of the longest.
const maxWork = 4 << 20

// judge reports also whether any process could open what the value says, and whether something of it is on this machine.
func judge(a Argument, set roots.Set, server Process, budget *int) (j Judged, possible, onMachine bool) {
	j.Argument = a
	exists := false // as it is written, for the server in its own directory
	for _, r := range readings(a, server.Home) {
		if r.weak && possible && j.Refusal == NotRefused {
			continue
		}
		for _, c := range spread(r.text, set, server) {
			if r.err == nil && tooLong(c.path) {
				continue
			}
			var place rootfs.Place
			err := r.err
			if *budget -= len(c.path) + 64; *budget < 0 {
				err = ErrTooMuch
			}
			if err == nil {
				place, err = rootfs.Locate(set, c.path, rootfs.Process{})
			}
			exists = exists || place.Exists && !c.inRoot
			onMachine = onMachine || place.Existing > r.drop && countsByShape(r.text) || place.Path == ""
			refusal := NotRefused
			switch {
			case err != nil:
				refusal = Unresolvable
			case !place.Inside:
				refusal = Outside
			case place.Dir.Access&a.Need == a.Need:
			case c.inRoot && (exists || !place.Exists):
				// Relative, and another root has no such file: the server would not go there.
			default:
				refusal = Forbidden
			}
			worse := j.Refusal == NotRefused && refusal != NotRefused
			// Of two ways outside, the one of which more is there is the one that was meant.
			nearer := j.Refusal == Outside && refusal == Outside && place.Existing > j.Place.Existing
			if !possible || worse || nearer {
				j.Place, j.Reading, j.Refusal, j.Err = place, r.how, refusal, err
			}
			possible = true
			elsewhere := c.inRoot && (exists || !place.Exists) // the server would not go there
			if !elsewhere && !slices.ContainsFunc(j.Places, func(p rootfs.Place) bool { return p.Path == place.Path }) {
				j.Places = append(j.Places, place)
			}
		}
	}
	if j.Refusal != NotRefused {
		j.Places = nil
	}
	return j, possible, onMachine
}

// countsByShape leaves out the readings in which a shape is none: a backslash or a drive that is part of a name.
func countsByShape(text string) bool {
	return filepath.IsAbs(text) || strings.HasPrefix(text, "./") || hasDotDot(text) || windows
}

// candidate is an absolute path that a text may stand for.
type candidate struct {
	path   string
	inRoot bool // because the text is relative, and a server may begin in a root that is not its working directory
}

// spread makes absolute paths of a text: in every place where a server may begin, with its ".." left to the system and
// resolved in the text.
func spread(text string, set roots.Set, server Process) []candidate {
	if len(text) > maxShaped { // no process can open it but without its "..", and then it is not joined to each root for nothing
		if text = filepath.Clean(text); len(text) > maxShaped {
			return nil
		}
	}
	var list []candidate
	add := func(path string, inRoot bool) {
		list = append(list, candidate{path, inRoot})
		if hasDotDot(path) || len(path) > maxShaped {
			list = append(list, candidate{filepath.Clean(path), inRoot})
		}
	}
	if filepath.VolumeName(text) != "" || filepath.IsAbs(text) {
		add(text, false)
		return list
	}
	join := func(base string, inRoot bool) {
		if os.IsPathSeparator(text[0]) { // Windows: from the top of the drive one is on
			add(filepath.VolumeName(base)+text, inRoot)
			return
		}
		add(strings.TrimSuffix(base, separator)+separator+text, inRoot)
	}
	if server.Dir != "" {
		join(server.Dir, false)
	}
	for _, d := range set.Dirs() {
		if !d.File && d.Access != 0 && d.Path != server.Dir {
			join(d.Path, server.Dir != "")
		}
	}
	if len(list) == 0 {
		return []candidate{{path: text}} // Locate says what is missing
	}
	return list
}

const separator = string(filepath.Separator)

// tooLong reports whether no process can open a path because of its length. One that is too long as it is written may
// still be short enough without its "..".
func tooLong(path string) bool {
	if len(path) > maxShaped {
		return true
	}
	limit := 255
	if windows {
		limit = 3 * 255 // in bytes, of as many UTF-16 units
	}
	for e := range strings.SplitSeq(path, separator) {
		if len(e) > limit {
			return true
		}
	}
	return false
}
