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
	Links Links

	// For tests: to take os.Root also where the kernel can do better, and to ask the system whether a path names a root
	// in other letters.
	portable, fold bool
}

// FS reaches files inside a set of roots. Its methods take an absolute path under any spelling of a root, or a relative
// one, which is looked for in each root in order; with links and ".." meaning what they mean to the system. The
// methods are safe for concurrent use. Their errors are *Error.
type FS struct {
	options Options
	roots   []*root
	nested  bool // a root lies in another, or is served under a name in another

	mu     sync.RWMutex // held for reading while a handle is used, so that none is closed under it
	closed bool
}

// root is one opened root.
type root struct {
	handle    // nil when the root allows nothing: a hole in another
	dir       roots.Dir
	info      fs.FileInfo // of the directory that is held open
	at        position    // of that directory
	only      string      // the one name in it that counts, when the root is a file
	spellings []position  // of the root, in every spelling
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
	Name string
	// Type is the type bits of what has this name: 0 for a regular file, fs.ModeDir, fs.ModeSymlink (whose target has
	// not been looked at), or others.
	Type fs.FileMode
}

// Open opens the directory of each root, or its parent for a root that is one file. It fails when one of them is gone, is
// not what it was when it was resolved, or lies in a kernel file system; Check finds out which. The caller closes the FS.
func Open(set roots.Set, o Options) (*FS, error) {
	o.fold = o.fold || namesFold
	f := &FS{options: o}
	for _, d := range set.Dirs() {
		r, err := openRoot(d, o)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("opening root %q: %w", d.Path, err)
		}
		for _, q := range f.roots {
			f.nested = f.nested || overlap(r, q)
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
		r.info, _ = os.Lstat(d.Path)
		return r, nil
	}
	if r.handle, err = openHandle(path, o.portable); err != nil {
		return nil, err
	}
	if r.info, _, err = r.look("."); err == nil && !d.File && d.ID != (roots.FileID{}) && identify(path, r.info) != d.ID {
		err = errReplaced
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

var errReplaced = errors.New("another directory is in its place")

// Close closes the handles of the roots. Files that were opened stay open.
func (f *FS) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	var errs []error
	for _, r := range f.roots {
		if r.handle != nil {
			errs = append(errs, r.close())
		}
	}
	return errors.Join(errs...)
}

// Open opens a regular file for reading. It never waits: what is not a regular file is refused with SpecialFile or
// IsDirectory. The caller closes the file, which has no name.
func (f *FS) Open(path string) (*os.File, error) {
	var file *os.File
	err := f.reach("opening", path, func(r *root, name string) (err error) {
		file, err = r.open(name, false)
		return err
	})
	return file, err
}

// Stat describes what a path leads to, whatever it is, without opening it.
func (f *FS) Stat(path string) (fs.FileInfo, error) {
	var info fs.FileInfo
	err := f.reach("describing", path, func(r *root, name string) error {
		i, link, err := r.look(name)
		if link != "" {
			return errLink
		}
		info = i
		return err
	})
	return info, err
}

// ReadDir lists a directory by name. Links are listed as links.
func (f *FS) ReadDir(path string) ([]Entry, error) {
	var entries []Entry
	err := f.reach("listing", path, func(r *root, name string) (err error) {
		entries, err = r.entries(name)
		return err
	})
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries, err
}

// maxPath is the longest path, in bytes, that is looked at: as long as the longest that Linux takes.
const maxPath = 4096

// reach finds where path leads and does something there, or makes an Error. The name that do gets has no link in it, or
// had none a moment ago; when do answers errLink it is searched for again.
func (f *FS) reach(op, path string, do func(r *root, name string) error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return asError(op, path, fs.ErrClosed)
	}
	top, elems, err := parse(path)
	if err != nil {
		return asError(op, path, err)
	}
	err = errLink
	for _, p := range f.plain(top, elems) {
		if err = do(p.root, p.name); codeOf(err) != NotFound {
			break
		}
	}
	for try := 0; err == errLink || err == Changed; try++ {
		if try == 16 {
			return asError(op, path, Changed)
		}
		var p place
		if p, err = f.find(top, elems); err == nil {
			err = do(p.root, p.name)
		}
	}
	if err != nil {
		return asError(op, path, err)
	}
	return nil
}

// parse cuts a path, from a caller or from a link, into what the walk takes: a separator at the end becomes a ".".
func parse(path string) (top string, elems []string, err error) {
	if path == "" || len(path) > maxPath {
		return "", nil, InvalidPath
	}
	top, elems = split(path)
	for _, e := range elems {
		if !validName(e) {
			return "", nil, InvalidPath
		}
	}
	if len(elems) > 0 && os.IsPathSeparator(path[len(path)-1]) {
		elems = append(elems, ".")
	}
	return top, elems, nil
}
