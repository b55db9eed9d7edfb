package rootfs

import (
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/roots"
)

// maxHops is how many links one path may go through, as on Linux.
const maxHops = 40

// place is where a path leads: a name beneath one root's handle that has no link in it.
type place struct {
	root *root
	name string
}

// plain finds, by its text alone, the places where a path without "." and ".." may lead. It finds none where a handle would
// not notice that there is a link after all, nor where roots nest: then every directory on the way has to be asked which
// it is.
func (f *FS) plain(top string, elems []string) []place {
	if f.nested || slices.Contains(elems, ".") || slices.Contains(elems, "..") {
		return nil
	}
	var places []place
	p := position{top, elems}
	for _, r := range f.roots {
		rest := elems
		if top != "" {
			i := slices.IndexFunc(r.spellings, p.within)
			if i < 0 {
				continue
			}
			rest = elems[len(r.spellings[i].elems):]
		}
		if r.only != "" || r.dir.Access&roots.Read == 0 || !r.strict() {
			return nil // the walk has the words for it
		}
		places = append(places, place{r, join(rest)})
	}
	return places
}

func join(elems []string) string {
	if len(elems) == 0 {
		return "."
	}
	return strings.Join(elems, "/")
}

// find walks the path element by element. A relative one is looked for in each root; the first root that has it wins,
// and when none has it the first root's answer counts.
func (f *FS) find(top string, elems []string) (place, error) {
	if top != "" {
		w := walk{fs: f, textEnd: none}
		return w.run(position{top: top}, elems)
	}
	var first error
	for _, r := range f.roots {
		if r.handle == nil {
			continue
		}
		w := walk{fs: f, textEnd: none}
		p, err := w.run(r.at, elems)
		if err == nil || err != OutsideRoots && codeOf(err) != NotFound {
			return p, err
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		first = OutsideRoots
	}
	return place{}, first
}

// walk is one resolution. It is inside a root, or above the roots: at an absolute path that leads to one.
type walk struct {
	fs      *FS
	root    *root    // nil above the roots
	above   position // when above
	at      []string // the elements beneath the root's handle, none of them a link
	file    bool     // what is here is not a directory
	todo    []string
	hops    int
	textEnd int // while at least so many elements are to do, they are a link's text
}

const none = int(^uint(0) >> 1)

func (w *walk) run(from position, elems []string) (place, error) {
	if err := w.jump(from); err != nil {
		return place{}, err
	}
	w.todo = slices.Clone(elems)
	for len(w.todo) > 0 {
		e := w.todo[0]
		w.todo = w.todo[1:]
		if w.file {
			return place{}, NotDirectory
		}
		var err error
		switch {
		case e == ".":
		case e == "..":
			err = w.up()
		case w.root == nil:
			err = w.jump(position{w.above.top, append(slices.Clip(w.above.elems), e)})
		default:
			err = w.down(e)
		}
		if err != nil {
			if len(w.todo) >= w.textEnd && codeOf(err) == NotFound {
				err = OutsideRoots // a link that leads nowhere
			}
			return place{}, err
		}
	}
	if w.root == nil {
		return place{}, OutsideRoots
	}
	if w.root.dir.Access&roots.Read == 0 {
		return place{}, Permission
	}
	return place{w.root, join(w.at)}, nil
}

// jump goes to an absolute path: into the deepest root that holds it, or above the roots where it leads to one. Only
// what is text already gets here, never what has to be looked up: the elements of a resolved root, or of a spelling.
func (w *walk) jump(p position) error {
	var best *root
	depth := -1
	leads := false
	for _, r := range w.fs.roots {
		for _, s := range r.spellings {
			if p.within(s) && len(s.elems) > depth {
				best, depth = r, len(s.elems)
			}
			leads = leads || s.within(p)
		}
	}
	if best == nil && w.fs.options.fold {
		best, depth = w.fs.rootAt(p), len(p.elems)
		leads = leads || len(w.todo) > 0 // it may lead to one in other letters
	}
	switch {
	case best != nil && best.handle == nil:
		return OutsideRoots
	case best != nil:
		w.root, w.at, w.above, w.file = best, slices.Clone(p.elems[depth:]), position{}, false
		if best.only != "" {
			w.at = nil
			return w.down(best.only)
		}
	case leads:
		w.root, w.at, w.above, w.file = nil, nil, p, false
	default:
		return OutsideRoots
	}
	return nil
}

// rootAt finds the root that an absolute path names in other letters, by asking the system. The root is then used
// through its handle, so nothing depends on what the path names later.
func (f *FS) rootAt(p position) *root {
	if strings.HasPrefix(p.top, `\`) && !slices.ContainsFunc(f.roots, func(r *root) bool { return r.at.top == p.top }) {
		return nil // a share or a device of Windows, where no root is: to look is to connect already
	}
	info, err := os.Stat(p.top + strings.Join(p.elems, string(os.PathSeparator)))
	if err != nil {
		return nil
	}
	for _, r := range f.roots {
		it := r.info
		if r.only != "" && r.handle != nil {
			if it, _, err = r.look(r.only); err != nil {
				continue
			}
		}
		if os.SameFile(info, it) {
			return r
		}
	}
	return nil
}

func (w *walk) up() error {
	if w.root != nil && len(w.at) > 0 {
		w.at = w.at[:len(w.at)-1]
		return nil
	}
	p := w.above
	if w.root != nil {
		p = w.root.at
	}
	if n := len(p.elems); n > 0 {
		p.elems = p.elems[:n-1]
	}
	return w.jump(p)
}

func (w *walk) down(e string) error {
	here := append(slices.Clip(w.at), e)
	name := join(here)
	if len(name) > maxPath {
		return InvalidPath
	}
	info, link, err := w.root.look(name)
	if err != nil {
		return err
	}
	if link != "" {
		return w.follow(link)
	}
	if w.root.only != "" && info.IsDir() {
		return OutsideRoots // the root is a file; this directory has come in its place
	}
	w.at, w.file = here, !info.IsDir()
	return w.enter(info)
}

// enter goes on in the root that begins here, if one does inside another: its rights hold. A directory is such a root when
// it is the same directory, under whatever name, and also when it has its name.
func (w *walk) enter(info fs.FileInfo) error {
	here := position{w.root.at.top, slices.Concat(w.root.at.elems, w.at)}
	for _, r := range w.fs.roots {
		switch {
		case r == w.root || w.root.only != "":
		case !r.spellings[0].equal(here) && !(r.only == "" && os.SameFile(info, r.info)):
		case r.handle == nil:
			return OutsideRoots
		case r.only != "" && w.file:
			w.root, w.at = r, []string{r.only}
			return nil
		case r.only == "" && !w.file:
			w.root, w.at = r, nil
			return nil
		}
	}
	return nil
}

func (w *walk) follow(link string) error {
	if w.fs.options.Links == NoLinks {
		return OutsideRoots
	}
	if w.hops++; w.hops > maxHops {
		return Loop
	}
	top, elems, err := parse(link)
	if err != nil {
		return OutsideRoots
	}
	if len(w.todo) < w.textEnd {
		w.textEnd = len(w.todo)
	}
	w.todo = append(elems, w.todo...)
	switch {
	case top != "":
		return w.jump(position{top: top})
	case w.root.only != "":
		return w.jump(w.root.at)
	}
	return nil
}
