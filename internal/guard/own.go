package guard

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/roots"
)

// CodeOwn is the code, in the log, of a path to a file that steers the guard itself, which nothing opens to a server.
const CodeOwn = "own-file"

// judgeArgs judges arguments against a set, and refuses besides that a server changes what holds it.
func (g *Guard) judgeArgs(args []pathargs.Argument, set roots.Set) pathargs.Verdict {
	if paths := g.rules.Load().paths; paths.Where == pathargs.Remote {
		return pathargs.JudgeText(args, paths.Dirs)
	}
	v := pathargs.Judge(args, set, g.opt.Process)
	for i := range v.Judged {
		if j := &v.Judged[i]; j.Refusal == pathargs.NotRefused && g.own(j.Place.Path, j.Need) {
			j.Refusal = pathargs.Forbidden
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
	for _, p := range g.opt.Own {
		p = resolved(p)
		if within(path, p) || need&roots.Delete != 0 && within(p, path) {
			return true
		}
		a, err := os.Stat(path)
		if err != nil {
			continue
		}
		if b, err := os.Stat(p); err == nil && os.SameFile(a, b) {
			return true
		}
	}
	return false
}

// resolved is where a path leads, as far as it exists.
func resolved(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

// within reports whether path is dir or in it. Where names fold it is by letters: what is refused too much is a name like
// one of ours.
func within(path, dir string) bool {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		path, dir = strings.ToLower(path), strings.ToLower(dir)
	}
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || os.IsPathSeparator(rest[0]))
}
