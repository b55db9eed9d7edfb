package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rootbound/rootbound/roots"
)

// Links says which symbolic links are followed.
type Links uint8

const (
	// LinksWithin follows a link when it ends inside a root of the set, by whatever road.
	LinksWithin Links = iota
	// NoLinks follows none.
	NoLinks
)

// Options of an FS. The zero value is safe.
type Options struct {
	// Links says which symbolic links are followed.
	Links Links
	// StrictLinks refuses regular files with more than one hard link, to read and to replace: HardLink.
	StrictLinks bool
	// NoMounts refuses to cross a mount point beneath a root: Mount.
	NoMounts bool
	// Deny says which names are not served: Denied, for them and for all beneath, to open, write, create, move and remove.
	// They are listed and described, not entered. A name is beneath a root (the deepest one, and also each that is
	// around that one; so a directory that is a root is not denied itself), with slashes, without links, and as it is on the
	// disk; where names fold, with the letters it was asked for. It must be safe for concurrent use.
	// nil denies nothing.
	Deny func(name string) bool
	// Protect are absolute paths that stay as they are, whether something is there or not: Protected, to write, create,
	// move and remove them and what is beneath them, and to move or remove what holds them. They can be read. Each means
	// itself and, where there is a link, also what that leads to when the FS is opened.
	Protect []string

	// For tests: to take what is not the best implementation, and to ask the system whether a path names a root in other
	// letters.
	by   implementation
	fold bool
}

// FS reaches files inside a set of roots. Its methods take an absolute path under any spelling of a root, or a relative
// one, which is looked for in each root in order; with links and ".." meaning what they mean to the system. The
// methods are safe for concurrent use. Their errors are *Error, except what a function of the caller returns.
type FS struct {
	options Options
	roots   []*root
	nested  bool // a root lies in another, or is served under a name in another
	// What Options.Protect means.
	protected []position

	mu      sync.Mutex
	users   int // calls under way: while there are any, no handle is closed
	closed  bool
	cleaned map[roots.FileID]bool // directories that were looked through for stale files
}

// root is one opened root.
type root struct {
	directory // nil when the root allows nothing: a hole in another
	dir       roots.Dir
	is        fs.FileInfo // of the directory that is held open, or of the hole; nil for a hole where nothing is
	at        position    // of that directory
	only      string      // the one name in it that counts, when the root is a file
	spellings []position  // of the root, in every spelling
	beneath   []string    // its directory's names beneath the roots that it lies in
}

// position is an absolute path in elements.
type position struct {
	top   string
	elems []string
}

func (p position) equal(q position) bool { return p.top == q.top && slices.Equal(p.elems, q.elems) }

// within reports whether p is q or lies beneath it.
func (p position) within(q position) bool {
	return p.top == q.top && len(p.elems) >= len(q.elems) && slices.Equal(p.elems[:len(q.elems)], q.elems)
}

// Entry is one name in a directory.
type Entry struct {
	// Name is the name, one element of a path.
	Name string
	// Type is the type bits of what has this name: 0 for a regular file, fs.ModeDir, fs.ModeSymlink (whose target has
	// not been looked at), or others.
	Type fs.FileMode
}

// Open opens the directory of each root, or its parent for a root that is one file. It fails when one of them is gone, is
// not what it was when it was resolved, or lies in a kernel file system; Check finds out which. The caller closes the FS.
func Open(set roots.Set, o Options) (*FS, error) {
	o.fold = o.fold || namesFold
	f := &FS{options: o, protected: protect(set, o.Protect)}
	for _, d := range set.Dirs() {
		r, err := openRoot(d, o)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("opening root %q: %w", d.Path, err)
		}
		for _, q := range f.roots {
			f.nested = f.nested || overlap(r, q)
			r.liesIn(q)
			q.liesIn(r)
		}
		f.roots = append(f.roots, r)
	}
	return f, nil
}

func overlap(r, q *root) bool {
	return slices.ContainsFunc(r.spellings, func(p position) bool {
		return slices.ContainsFunc(q.spellings, func(o position) bool { return p.within(o) || o.within(p) })
	})
}

// liesIn notes the name of r's directory beneath a root around it.
func (r *root) liesIn(around *root) {
	if n := len(around.at.elems); around.only == "" && r.at.within(around.at) && len(r.at.elems) > n {
		r.beneath = append(r.beneath, join(r.at.elems[n:]))
	}
}

func openRoot(d roots.Dir, o Options) (*root, error) {
	r := &root{dir: d}
	path := d.Path
	if d.File {
		path, r.only = filepath.Dir(d.Path), filepath.Base(d.Path)
	}
	r.at.top, r.at.elems = split(path)
	if r.at.top == "" {
		return nil, errors.New("its path is not absolute")
	}
	for _, s := range append([]string{d.Path}, d.Spellings...) { // Path first: enter counts on it
		top, elems := split(s)
		r.spellings = append(r.spellings, position{top, elems})
	}
	var err error
	if d.Access == 0 {
		r.is, _ = os.Lstat(d.Path)
		return r, nil
	}
	var h how
	if o.NoMounts {
		h = sameMount
	}
	if r.directory, err = openDirectory(path, h, o.by); err != nil {
		return nil, err
	}
	if r.is, err = r.directory.info(); err == nil && !d.File && d.ID != (roots.FileID{}) && identify(path, r.is) != d.ID {
		err = errReplaced
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

var errReplaced = errors.New("another directory is in its place")

// Close closes the handles of the roots when the calls that are under way have ended; it does not wait for them. Later
// calls fail with fs.ErrClosed. Files that were opened stay open.
func (f *FS) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	return f.closeUnused()
}

func (f *FS) closeUnused() error {
	if f.users > 0 {
		return nil
	}
	var errs []error
	for _, r := range f.roots {
		if r.directory != nil {
			errs = append(errs, r.close())
		}
	}
	return errors.Join(errs...)
}

// use keeps the handles open until release.
func (f *FS) use() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.users++
	return nil
}

func (f *FS) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users--; f.closed {
		f.closeUnused()
	}
}

// Open opens a regular file for reading. It never waits: what is not a regular file is refused with SpecialFile or
// IsDirectory. The caller closes the file, whose Name is no path.
func (f *FS) Open(path string) (*os.File, error) {
	var file *os.File
	err := f.reach("opening", path, 0, func(p target) error {
		if p.denied {
			return Denied
		}
		return f.at(p, func(d directory, name string) (err error) {
			file, err = f.openIn(d, name)
			return err
		})
	})
	return file, err
}

// openIn opens a regular file whose name may be served.
func (f *FS) openIn(d directory, name string) (*os.File, error) {
	file, err := d.open(name)
	if err == nil && f.options.StrictLinks {
		if n, e := linkCount(file); e != nil || n > 1 {
			file.Close()
			return nil, HardLink
		}
	}
	return file, err
}

// Stat describes what a path leads to, whatever it is, without opening it.
func (f *FS) Stat(path string) (fs.FileInfo, error) {
	var info fs.FileInfo
	err := f.reach("describing", path, 0, func(p target) error {
		return f.at(p, func(d directory, name string) error {
			i, link, err := d.look(name)
			if link != "" {
				return errLink
			}
			info = i
			return err
		})
	})
	return info, err
}

// Lstat describes what has a name: a link itself, wherever it leads.
func (f *FS) Lstat(path string) (fs.FileInfo, error) {
	var info fs.FileInfo
	err := f.reach("describing", path, lastLink, func(p target) error {
		return f.at(p, func(d directory, name string) (err error) {
			info, _, err = d.look(name)
			return err
		})
	})
	return info, err
}

// Birth says when what a path leads to was made: the zero time when the file system or the system does not tell.
func (f *FS) Birth(path string) (time.Time, error) {
	var at time.Time
	err := f.reach("describing", path, 0, func(p target) error {
		return f.at(p, func(d directory, name string) (err error) {
			at, err = d.birth(name)
			return err
		})
	})
	return at, err
}

// ReadDir lists a directory by name. Links are listed as links. The files that this package makes for itself are not
// listed.
func (f *FS) ReadDir(path string) ([]Entry, error) {
	var entries []Entry
	err := f.reach("listing", path, 0, func(p target) error {
		if p.denied {
			return Denied
		}
		return f.at(p, func(d directory, name string) error {
			s, err := f.enter(p.root, d, name, toList)
			if err != nil {
				return err
			}
			defer s.close()
			entries, err = f.list(p.root, s)
			return err
		})
	})
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries, err
}

// list leaves out our own names, and removes what is stale of them if it may.
func (f *FS) list(r *root, d directory) ([]Entry, error) {
	entries, err := d.entries()
	if r.dir.Access&roots.Write != 0 {
		cleanTemporary(d, entries)
	}
	return slices.DeleteFunc(entries, func(e Entry) bool { return reserved(e.Name) }), err
}

// maxPath is the longest path, in bytes, that is looked at: as long as the longest that Linux takes.
const maxPath = 4096

// reach finds where path leads and does something there, or makes an Error. The target's name has no link in it, or had
// none a moment ago; when do answers errLink it is searched for again.
func (f *FS) reach(op, path string, e end, do func(p target) error) error {
	if err := f.use(); err != nil {
		return asError(op, path, err)
	}
	defer f.release()
	return f.seek(op, path, e, do)
}

func (f *FS) seek(op, path string, e end, do func(p target) error) error {
	top, elems, err := parse(path)
	if err != nil {
		return asError(op, path, err)
	}
	err = errLink
	if e&missing == 0 {
		for _, p := range f.plain(top, elems) {
			if err = do(p); !notFound(err) {
				break
			}
		}
		if notFound(err) && !ascii(path) {
			err = errLink // it may have another spelling
		}
	}
	for try := 0; err == errLink; try++ {
		if try == 16 {
			return asError(op, path, Changed)
		}
		var p target
		if p, err = f.find(top, elems, e); err == nil {
			err = do(p)
		}
	}
	if err != nil {
		return asError(op, path, err)
	}
	return nil
}

// notFound leaves out what another path than the one that is sought has said.
func notFound(err error) bool {
	var e *Error
	return codeOf(err) == NotFound && !errors.As(err, &e)
}

// at gives do the directory that a target's name is reached from. Where roots nest it goes there step by step, holding
// each directory, so that no exchange of directories leads from one root's rights into another root.
func (f *FS) at(p target, do func(d directory, name string) error) error {
	if !f.nested || p.name == "." {
		return do(p.root, p.name)
	}
	return f.hold(p, do)
}

// hold opens the directory that a target, which is no root's top, lies in. name is one element.
func (f *FS) hold(p target, do func(d directory, name string) error) error {
	elems := append(strings.Split(p.name, "/"), p.rest...)
	if p.name == "." {
		elems = elems[1:]
	}
	last := len(elems) - 1
	if !f.nested {
		d, err := p.root.sub(join(elems[:last]), 0)
		if err != nil {
			return err
		}
		defer d.close()
		return do(d, elems[last])
	}
	d, err := p.root.sub(".", 0)
	if err != nil {
		return err
	}
	for _, e := range elems[:last] {
		next, err := f.enter(p.root, d, e, 0)
		d.close()
		if err != nil {
			return err
		}
		d = next
	}
	defer d.close()
	return do(d, elems[last])
}

// enter opens a directory in one of r's, and sees to it that it is not another root.
func (f *FS) enter(r *root, d directory, name string, h how) (directory, error) {
	s, err := d.sub(name, h)
	if err != nil || !f.nested {
		return s, err
	}
	info, err := s.info()
	if err == nil && f.isRoot(info, r) {
		err = errLink
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// isRoot says whether a directory is a root other than r.
func (f *FS) isRoot(info fs.FileInfo, r *root) bool {
	return slices.ContainsFunc(f.roots, func(o *root) bool { return o != r && o.only == "" && sameFile(info, o.is) })
}

// parse cuts a path, from a caller or from a link, into what the resolver takes: a separator at the end becomes a ".".
func parse(path string) (top string, elems []string, err error) {
	if path == "" || len(path) > maxPath {
		return "", nil, InvalidPath
	}
	top, elems = split(path)
	for _, e := range elems {
		if !validName(e) {
			return "", nil, InvalidPath
		}
		if reserved(e) {
			return "", nil, Denied
		}
	}
	if len(elems) > 0 && os.IsPathSeparator(path[len(path)-1]) {
		elems = append(elems, ".")
	}
	return top, elems, nil
}
