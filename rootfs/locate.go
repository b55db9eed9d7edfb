package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/roots"
)

// Process is the process that will use a path, as far as that decides where the path leads.
type Process struct {
	// Dir is its working directory, absolute. Without it a relative path is an error.
	Dir string
	// Home is what it makes of "~" at the beginning of a path; without it, a file name like any other.
	Home string
}

// Place says where a path leads another process.
type Place struct {
	// Path is the absolute path without links: resolved as far as something exists, the rest as it is written.
	Path string
	// Existing is how many elements of Path exist.
	Existing int
	// Exists is set when all do.
	Exists bool
	// Inside is set when a root holds it that allows anything: Dir is the deepest one, and Rel the path beneath it, "."
	// for the root itself.
	Inside bool
	Dir    roots.Dir
	Rel    string
}

// Locate says where path will lead another process that opens it the plain way: through links, also those that end
// outside; ".." after a link goes up from where the link led; what does not exist yet counts where it would be made, behind
// a dangling link too. The place is inside when a root of the set, as the disk has it now, holds it; where names fold,
// that is decided by the identity of the directories and not by letters.
//
// An error means that it cannot be known: a directory may not be searched, too many links, a name that the system reads
// its own way, a kernel file system (which shows each process something else). The place is then not inside, and Path
// says how far it went.
func Locate(set roots.Set, path string, by Process) (Place, error) {
	return locate(set, path, by, namesFold)
}

func locate(set roots.Set, path string, by Process, fold bool) (Place, error) {
	l := locator{set: set, fold: fold}
	err := l.run(path, by)
	p := Place{Path: l.path(), Existing: l.existing()}
	if err != nil {
		return p, fmt.Errorf("resolving %q: %w", path, err)
	}
	p.Exists = l.missing == 0
	p.Dir, p.Rel, p.Inside = l.inside()
	return p, nil
}

// locator is one resolution, on plain paths: it has to do as the other process will.
type locator struct {
	set     roots.Set
	fold    bool
	top     string
	at      []step
	missing int // how many steps at the end do not exist
	hops    int
}

type step struct {
	name string
	info fs.FileInfo // nil when missing
}

func (l *locator) path() string {
	var b strings.Builder
	b.WriteString(l.top)
	for i, s := range l.at {
		if i > 0 {
			b.WriteByte(filepath.Separator)
		}
		b.WriteString(s.name)
	}
	return b.String()
}

func (l *locator) existing() int {
	n := slices.IndexFunc(l.at, func(s step) bool { return s.info == nil })
	if n < 0 {
		n = len(l.at)
	}
	return n
}

func (l *locator) run(path string, by Process) error {
	if rest, ok := strings.CutPrefix(path, "~"); ok && by.Home != "" && (rest == "" || os.IsPathSeparator(rest[0])) {
		path = by.Home + rest
	}
	top, elems, err := parse(path)
	if err != nil {
		return err
	}
	if top == "" {
		var base []string
		if top, base, err = parse(by.Dir); err != nil || top == "" {
			return errors.New("the directory it is relative to is not known")
		}
		elems = slices.Concat(base, elems)
	}
	if err := l.start(top); err != nil {
		return err
	}
	return l.follow(elems)
}

// start goes to the top of a file system.
func (l *locator) start(top string) error {
	if !filepath.IsAbs(top) {
		return errors.New("it depends on the state of the process")
	}
	// A share or a device of Windows: to look is to connect already, so only where a root is.
	if strings.HasPrefix(top, `\`) && !slices.ContainsFunc(l.set.Dirs(), func(d roots.Dir) bool { t, _ := split(d.Path); return t == top }) {
		return errors.New("it is on another machine, or names a device")
	}
	if _, err := os.Lstat(top); err != nil {
		return bare(err)
	}
	l.top, l.at, l.missing = top, nil, 0
	return nil
}

func (l *locator) follow(todo []string) error {
	for len(todo) > 0 {
		e := todo[0]
		todo = todo[1:]
		switch e {
		case ".":
			continue
		case "..":
			if n := len(l.at); n > 0 {
				l.at = l.at[:n-1]
				l.missing = max(l.missing-1, 0)
			}
			continue
		}
		l.at = append(l.at, step{name: e})
		if l.missing > 0 {
			l.missing++
			continue
		}
		info, err := os.Lstat(l.path())
		switch {
		case err == nil:
		case errors.Is(err, fs.ErrNotExist) || codeOf(err) == NotDirectory: // nothing can be beneath a file
			l.missing = 1
			continue
		default:
			return bare(err)
		}
		l.at[len(l.at)-1].info = info
		if l.ofKernel(info) {
			return errors.New("it is in a file system of the kernel")
		}
		if !isLink(info.Mode()) {
			continue
		}
		link, err := os.Readlink(l.path())
		if err != nil {
			return bare(err)
		}
		if l.hops++; l.hops > maxHops {
			return Loop
		}
		top, elems, err := parse(link)
		if err != nil {
			return err
		}
		l.at = l.at[:len(l.at)-1]
		if top != "" {
			if err := l.start(top); err != nil {
				return err
			}
		}
		todo = slices.Concat(elems, todo)
		if len(todo) > maxPath {
			return InvalidPath
		}
	}
	return nil
}

// ofKernel looks at the file system only where a new one begins.
func (l *locator) ofKernel(info fs.FileInfo) bool {
	if n := len(l.at); n > 1 && device(l.at[n-2].info) == device(info) {
		return false
	}
	path := l.path()
	if isLink(info.Mode()) {
		path = filepath.Dir(path) // a link's own file system, not its target's
	}
	return kernelFSPath(path)
}

// inside finds the deepest root that holds where we are.
func (l *locator) inside() (dir roots.Dir, rel string, ok bool) {
	deepest, usable := -1, false
	for _, d := range l.set.Dirs() {
		if n, u := l.depth(d); n > deepest {
			dir, deepest, usable = d, n, u
		}
	}
	if !usable || dir.Access == 0 {
		return roots.Dir{}, "", false
	}
	var names []string
	for _, s := range l.at[deepest:] {
		names = append(names, s.name)
	}
	return dir, filepath.Join(append([]string{"."}, names...)...), true
}

// depth returns how many steps lead to d, or -1 when d does not hold where we are. The root is usable when what was
// resolved as d is there still, else nobody knows what is there now; then no root around it may answer either.
func (l *locator) depth(d roots.Dir) (n int, usable bool) {
	info, err := os.Lstat(d.Path)
	usable = err == nil && !isLink(info.Mode()) && info.IsDir() != d.File &&
		(d.File || d.ID == roots.FileID{} || identify(d.Path, info) == d.ID)

	top, elems := split(d.Path)
	n = len(elems)
	if top == l.top && n <= len(l.at) && slices.EqualFunc(elems, l.at[:n], func(e string, s step) bool { return e == s.name }) {
		if d.File && n < len(l.at) {
			return -1, false
		}
		return n, usable
	}
	if !l.fold || !usable {
		return -1, false // where names do not fold, one directory under two names is a mount: what is above it differs
	}
	for n := len(l.at) - l.missing; n > 0; n-- {
		if os.SameFile(l.at[n-1].info, info) {
			if d.File && (n < len(l.at) || !strings.EqualFold(l.at[n-1].name, filepath.Base(d.Path))) {
				return -1, false
			}
			return n, true
		}
	}
	return -1, false
}
