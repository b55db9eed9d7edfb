package guard

import (
	"os"
	"slices"

	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// CodeOwn is the code, in the log, of a path to a file that steers the guard itself, which nothing opens to a server.
const CodeOwn = "own-file"

// unserved are the codes of paths that a server of ours does not open, whatever the roots are: for their names, for having several, and
// for lying behind a mount point. The text has the way out.
var unserved = []string{"protected-name", "hard-link", "mount"}

// judgeArgs judges arguments against a set, and refuses besides that a server changes what holds it.
func (g *Guard) judgeArgs(args []pathargs.Argument, set roots.Set) pathargs.Verdict {
	if paths := g.rules.Load().paths; paths.Where == pathargs.Remote {
		return pathargs.JudgeText(args, paths.Dirs)
	}
	v := pathargs.Judge(args, set, g.opt.Process)
	for i := range v.Judged {
		j := &v.Judged[i]
		// A server may read the value in any of the ways that were judged.
		if at := slices.IndexFunc(j.Places, func(p rootfs.Place) bool { return g.own(p.Path, j.Need) }); at >= 0 {
			j.Place, j.Places, j.Refusal = j.Places[at], nil, pathargs.Forbidden
		}
	}
	return v
}

// own reports whether need, done at a path, may change a file of ours: it is one, lies in a directory of them, or would be
// taken away with what holds it.
func (g *Guard) own(path string, need roots.Access) bool {
	if need&^roots.Read == 0 {
		return false
	}
	there, err := os.Stat(path)
	for _, p := range g.opt.Own {
		if place, err := rootfs.Locate(roots.Set{}, p, rootfs.Process{}); err == nil { // where it would be made, too
			p = place.Path
		}
		if policy.Under(path, p) || need&roots.Delete != 0 && policy.Under(p, path) {
			return true
		}
		if err != nil { // nothing is there that could be ours under another name
			continue
		}
		if ours, err := os.Stat(p); err == nil && os.SameFile(there, ours) {
			return true
		}
	}
	return false
}
