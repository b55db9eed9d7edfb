package rootfs

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/rootbound/rootbound/roots"
)

// maxHops is how many links one path may go through, as on Linux.
const maxHops = 40

// target is where a path leads: a name beneath one root's directory that has no link in it, except at its end where one
// was asked for.
type target struct {
	root   *root
	name   string
	info   fs.FileInfo // of what is there; nil when it was not looked at
	rest   []string    // what is missing beneath name, when a missing end was asked for
	slash  bool        // the path ends as only a directory's may
	denied bool        // by Options.Deny
}

func (p target) position() position {
	q := position{p.root.at.top, slices.Clip(p.root.at.elems)}
	if p.name != "." {
		q.elems = append(q.elems, strings.Split(p.name, "/")...)
	}
	q.elems = append(q.elems, p.rest...)
	return q
}

// end says how a resolution ends.
type end uint8

const (
	// lastLink: a link at the end is not followed.
	lastLink end = 1 << iota
	// missing: what the path names need not be there, except through a link.
	missing
)

// plain finds, by its text alone, the targets where a path without "." and ".." may lead. It finds none where a directory
// would not notice that there is a link after all, nor where roots nest: then every directory on the way has to be asked
// which it is.
func (f *FS) plain(top string, elems []string) []target {
	if f.nested || slices.Contains(elems, ".") || slices.Contains(elems, "..") {
		return nil
	}
	var targets []target
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
			return nil // the resolver has the words for it
		}
		denied := 0
		for i := range rest {
			if f.denied(r, rest[:i+1]) {
				denied++
			}
		}
		if denied > 1 || denied == 1 && !f.denied(r, rest) {
			return nil
		}
		targets = append(targets, target{root: r, name: join(rest), denied: denied > 0})
	}
	return targets
}

// denied asks Options.Deny for a name beneath a root.
func (f *FS) denied(r *root, elems []string) bool {
	return f.options.Deny != nil && len(elems) > 0 && f.deniedName(r, join(elems))
}

// deniedName asks for it also as it is beneath the roots around. Options.Deny is set.
func (f *FS) deniedName(r *root, name string) bool {
	return f.options.Deny(name) || slices.ContainsFunc(r.beneath, func(in string) bool { return f.options.Deny(in + "/" + name) })
}

func join(elems []string) string {
	if len(elems) == 0 {
		return "."
	}
	return strings.Join(elems, "/")
}

// find resolves the path element by element. A relative one is looked for in each root; the first root that has it wins,
// and when none has it the first root's answer counts. What is not there anywhere is found in the root that has most of
// the way to it, if no root before has something there that leads out.
func (f *FS) find(top string, elems []string, e end) (target, error) {
	if top != "" {
		v := resolver{fs: f, end: e, textEnd: none}
		return v.run(position{top: top}, elems)
	}
	var nearest target
	var first error
	for _, r := range f.roots {
		if r.directory == nil || r.only != "" && e&missing != 0 {
			continue
		}
		v := resolver{fs: f, end: e, textEnd: none}
		p, err := v.run(r.at, elems)
		switch {
		case err == nil && p.rest == nil:
			return p, nil
		case err != nil && nearest.root != nil:
		case err == OutsideRoots && e&missing != 0, err != nil && err != OutsideRoots && codeOf(err) != NotFound:
			return p, err
		case err == nil:
			if nearest.root == nil || len(p.rest) < len(nearest.rest) {
				nearest = p
			}
		case first == nil:
			first = err
		}
	}
	switch {
	case nearest.root != nil:
		return nearest, nil
	case first == nil:
		first = OutsideRoots
	}
	return target{}, first
}

// resolver is one resolution of a path. It is inside a root, or above the roots: at an absolute path that leads to one.
type resolver struct {
	fs      *FS
	end     end
	root    *root       // nil above the roots
	above   position    // when above
	at      []string    // the elements beneath the root's directory, none of them a link, except the last at the end
	info    fs.FileInfo // of what is here, where that was looked at
	file    bool        // what is here is not a directory
	denied  bool        // what is here is not to be entered
	rest    []string    // what is missing beneath
	todo    []string
	hops    int
	textEnd int // while at least so many elements are to do, they are a link's text
}

const none = int(^uint(0) >> 1)

func (v *resolver) run(from position, elems []string) (target, error) {
	slash := false
	if v.end != 0 {
		for n := len(elems); n > 0 && elems[n-1] == "."; n-- {
			elems, slash = elems[:n-1], true
		}
	}
	if err := v.jump(from); err != nil {
		return target{}, err
	}
	v.todo = slices.Clone(elems)
	for len(v.todo) > 0 {
		e := v.todo[0]
		v.todo = v.todo[1:]
		if v.file {
			return target{}, NotDirectory
		}
		if v.denied && e != "." {
			return target{}, Denied
		}
		var err error
		switch {
		case e == ".":
		case e == "..":
			err = v.up()
		case v.root == nil:
			err = v.jump(position{v.above.top, append(slices.Clip(v.above.elems), e)})
		default:
			err = v.down(e)
		}
		if err != nil {
			if len(v.todo) >= v.textEnd && codeOf(err) == NotFound {
				err = OutsideRoots // a link that leads nowhere
			}
			return target{}, err
		}
	}
	switch {
	case v.root == nil:
		return target{}, OutsideRoots
	case v.root.dir.Access&roots.Read == 0:
		return target{}, Permission
	case slash && v.file:
		return target{}, NotDirectory
	}
	return target{v.root, join(v.at), v.info, v.rest, slash, v.denied}, nil
}

// jump goes to an absolute path: into the deepest root that holds it, or above the roots where it leads to one. Only
// what is text already gets here, never what has to be looked up: the elements of a resolved root, or of a spelling.
func (v *resolver) jump(p position) error {
	var best *root
	depth := -1
	leads := false
	for _, r := range v.fs.roots {
		for _, s := range r.spellings {
			if p.within(s) && len(s.elems) > depth {
				best, depth = r, len(s.elems)
			}
			leads = leads || s.within(p)
		}
	}
	if best == nil && v.fs.options.fold {
		best, depth = v.fs.rootAt(p), len(p.elems)
		leads = leads || len(v.todo) > 0 // it may lead to one in other letters
	}
	switch {
	case best != nil && best.directory == nil:
		return OutsideRoots
	case best != nil:
		v.root, v.at, v.above = best, slices.Clone(p.elems[depth:]), position{}
		v.info, v.file, v.denied = nil, false, false
		for i := range v.at {
			v.denied = v.denied || v.fs.denied(v.root, v.at[:i+1])
		}
		if best.only != "" {
			v.at = nil
			return v.down(best.only)
		}
	case leads:
		v.root, v.at, v.above, v.info, v.file, v.denied = nil, nil, p, nil, false, false
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
		it := r.is
		if r.only != "" && r.directory != nil {
			if it, _, err = r.look(r.only); err != nil {
				continue
			}
		}
		if sameFile(info, it) {
			return r
		}
	}
	return nil
}

func (v *resolver) up() error {
	if v.root != nil && len(v.at) > 0 {
		v.at, v.info = v.at[:len(v.at)-1], nil
		return nil
	}
	p := v.above
	if v.root != nil {
		p = v.root.at
	}
	if n := len(p.elems); n > 0 {
		p.elems = p.elems[:n-1]
	}
	return v.jump(p)
}

func (v *resolver) down(e string) error {
	here := append(slices.Clip(v.at), e)
	name := join(here)
	if len(name) > maxPath {
		return InvalidPath
	}
	info, link, err := v.root.look(name)
	if codeOf(err) == NotFound && v.root.only == "" && !ascii(e) {
		var as string
		if as, err = v.sameName(e); err == nil {
			e, here = as, append(slices.Clip(v.at), as)
			info, link, err = v.root.look(join(here))
		}
	}
	if codeOf(err) == NotFound && v.end&missing != 0 && len(v.todo) < v.textEnd {
		return v.absent(e)
	}
	if err != nil {
		return err
	}
	denied := v.fs.denied(v.root, here)
	if link != "" {
		if v.end&lastLink == 0 || len(v.todo) > 0 {
			if denied {
				return Denied
			}
			return v.follow(link)
		}
		v.at, v.info, v.file, v.denied = here, info, true, denied
		return nil
	}
	if v.root.only != "" && info.IsDir() {
		return OutsideRoots // the root is a file; this directory has come in its place
	}
	v.at, v.info, v.file, v.denied = here, info, !info.IsDir(), denied
	return v.enter(info)
}

// sameName finds the one name here that is e in other characters of the same meaning.
func (v *resolver) sameName(e string) (string, error) {
	d, err := v.root.sub(join(v.at), toList)
	if err != nil {
		return "", err
	}
	defer d.close()
	entries, err := d.entries()
	if err != nil {
		return "", err
	}
	return sameName(entries, e)
}

func sameName(entries []Entry, e string) (string, error) {
	found, want := "", norm.NFC.String(e)
	for _, o := range entries {
		if !ascii(o.Name) && norm.NFC.String(o.Name) == want {
			if found != "" {
				return "", AmbiguousName
			}
			found = o.Name
		}
	}
	if found == "" {
		return "", NotFound
	}
	return found, nil
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// absent ends the resolution where e and all behind it is missing. Where a root was that is gone, nothing is made.
func (v *resolver) absent(e string) error {
	v.rest = []string{e}
	for _, e := range v.todo {
		switch e {
		case ".":
		case "..":
			return NotFound
		default:
			v.rest = append(v.rest, e)
		}
	}
	v.todo, v.info = nil, nil
	if len(join(v.at))+len(join(v.rest)) >= maxPath {
		return InvalidPath
	}
	here := position{v.root.at.top, slices.Concat(v.root.at.elems, v.at)}
	for i, e := range v.rest {
		here.elems = append(here.elems, e)
		v.denied = v.denied || v.fs.denied(v.root, slices.Concat(v.at, v.rest[:i+1]))
		for _, r := range v.fs.roots {
			switch {
			case r == v.root || !v.fs.within(r.spellings[0], here) || len(r.spellings[0].elems) > len(here.elems):
			case r.directory != nil && r.only != "" && len(v.rest) == 1:
				v.root, v.at, v.rest = r, nil, []string{r.only}
				v.denied = v.fs.denied(r, v.rest)
				return nil
			default:
				return OutsideRoots
			}
		}
	}
	return nil
}

// isFile reports whether a root is the file at a place, in other letters: there are file systems that take them for one.
func (r *root) isFile(here position, info fs.FileInfo) bool {
	if r.only == "" || r.directory == nil || !slices.EqualFunc(r.spellings[0].elems, here.elems, strings.EqualFold) {
		return false
	}
	is, _, err := r.look(r.only)
	return err == nil && sameFile(info, is)
}

// enter goes on in the root that begins here, if one does inside another: its rights hold. A directory is such a root when
// it is the same directory, under whatever name, and also when it has its name.
func (v *resolver) enter(info fs.FileInfo) error {
	here := position{v.root.at.top, slices.Concat(v.root.at.elems, v.at)}
	for _, r := range v.fs.roots {
		switch {
		case r == v.root || v.root.only != "":
		case !r.spellings[0].equal(here) && !(r.only == "" && sameFile(info, r.is)) && !r.isFile(here, info):
		case r.directory == nil:
			return OutsideRoots
		case r.only != "" && v.file:
			v.root, v.at = r, []string{r.only}
			v.denied = v.fs.denied(r, v.at)
			return nil
		case r.only == "" && !v.file:
			v.root, v.at, v.denied = r, nil, false
			return nil
		}
	}
	return nil
}

func (v *resolver) follow(link string) error {
	if v.fs.options.Links == NoLinks {
		return OutsideRoots
	}
	if v.hops++; v.hops > maxHops {
		return Loop
	}
	top, elems, err := parse(link)
	if err != nil {
		return OutsideRoots
	}
	if len(v.todo) < v.textEnd {
		v.textEnd = len(v.todo)
	}
	v.todo = append(elems, v.todo...)
	switch {
	case top != "":
		return v.jump(position{top: top})
	case v.root.only != "":
		return v.jump(v.root.at)
	}
	return nil
}
