package rootfs

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/roots"
)

// Directory is one directory of a Walk.
type Directory struct {
	// Path is where it is beneath the start, with slashes; "" for the start itself.
	Path string
	// Depth is how many elements Path has.
	Depth int
	// Entries are what is in it, by name. None are there when Err is set.
	Entries []Entry
	// Err says why it could not be read. It is an *Error that names Path.
	Err error
	// Parent is the directory that holds it; nil for the start.
	Parent *Directory
	// Value is the visitor's own.
	Value any

	fs   *FS
	dir  directory
	root *root
	name []string // beneath the root
}

// Open opens a regular file in the directory, no link. It may be called only inside visit. The caller closes the file.
func (d *Directory) Open(name string) (*os.File, error) {
	if err := d.check(name); err != nil {
		return nil, asError("opening", name, err)
	}
	if d.fs.denied(append(slices.Clip(d.name), name)) {
		return nil, asError("opening", name, Denied)
	}
	f, err := d.fs.openIn(d.dir, name)
	if err == errLink {
		err = OutsideRoots
	}
	if err != nil {
		return nil, asError("opening", name, err)
	}
	return f, nil
}

// Stat describes what has a name in the directory, a link itself. It may be called only inside visit.
func (d *Directory) Stat(name string) (fs.FileInfo, error) {
	err := d.check(name)
	if err == nil {
		var info fs.FileInfo
		if info, _, err = d.dir.look(name); err == nil {
			return info, nil
		}
	}
	return nil, asError("describing", name, err)
}

func (d *Directory) check(name string) error {
	switch {
	case d.dir == nil:
		return NotFound
	case name == "" || name == "." || name == ".." || !validName(name) || strings.ContainsFunc(name, func(r rune) bool { return r < 256 && os.IsPathSeparator(uint8(r)) }):
		return InvalidPath
	case reserved(name):
		return Denied
	}
	return nil
}

// WalkOptions bound a Walk. The zero value bounds nothing.
type WalkOptions struct {
	// MaxEntries is how many entries are read in all; the directory that reaches it is the last.
	MaxEntries int64
	// MaxDepth is how deep directories are entered: with 1, the start and what is in it.
	MaxDepth int
	// Workers is how many goroutines walk; 0 means GOMAXPROCS.
	Workers int
	// Unsorted leaves Entries in the order of the directory.
	Unsorted bool
}

// Walked says what a Walk has seen.
type Walked struct {
	Entries, Directories int64
	Unreadable           int64 // directories that came with Err
	Cut                  bool  // MaxEntries ended it
	TooDeep              int64 // directories that MaxDepth kept it from entering
}

// Walk calls visit once for each directory beneath path, from several goroutines at once, parents before children. visit
// returns the entries whose directories are to be entered; what is no directory among them is passed over. Links are never entered, nor what Options.Deny denies, nor a
// root that allows nothing. A directory that cannot be read comes with Err, and the walk goes on. An error is of the start
// or of ctx.
func (f *FS) Walk(ctx context.Context, path string, o WalkOptions, visit func(d *Directory) []Entry) (Walked, error) {
	var w Walked
	err := f.reach("walking", path, 0, func(p place) error {
		if p.denied {
			return Denied
		}
		return f.at(p, func(d directory, name string) error {
			s, err := f.enter(p.root, d, name, toList)
			if err != nil {
				return err
			}
			start := &Directory{fs: f, dir: s, root: p.root}
			if p.name != "." {
				start.name = strings.Split(p.name, "/")
			}
			w = Walked{}
			return f.walk(ctx, start, o, &w, visit)
		})
	})
	return w, err
}

func (f *FS) walk(ctx context.Context, d *Directory, o WalkOptions, w *Walked, visit func(d *Directory) []Entry) error {
	if d.dir != nil {
		defer func() { d.dir.close(); d.dir = nil }()
		var err error
		if d.Entries, err = list(d.dir); err != nil {
			d.Entries, d.Err = nil, asError("listing", d.Path, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	w.Directories++
	if d.Err != nil {
		w.Unreadable++
	}
	if left := o.MaxEntries - w.Entries; o.MaxEntries > 0 && int64(len(d.Entries)) >= left {
		d.Entries, w.Cut = d.Entries[:left], true
	}
	w.Entries += int64(len(d.Entries))
	if !o.Unsorted {
		slices.SortFunc(d.Entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	}
	for _, e := range visit(d) {
		if w.Cut {
			break
		}
		if !e.Type.IsDir() {
			continue
		}
		if o.MaxDepth > 0 && d.Depth+1 >= o.MaxDepth {
			w.TooDeep++
			continue
		}
		c := f.child(d, e.Name)
		if err := f.walk(ctx, c, o, w, visit); err != nil {
			return err
		}
	}
	return nil
}

// child opens a directory in another, with the rights that hold there.
func (f *FS) child(d *Directory, name string) *Directory {
	c := &Directory{Depth: d.Depth + 1, Parent: d, Path: name, fs: f, root: d.root, name: append(slices.Clip(d.name), name)}
	if d.Path != "" {
		c.Path = d.Path + "/" + name
	}
	err := d.check(name)
	if err == nil && f.denied(c.name) {
		err = Denied
	}
	if err == nil {
		c.dir, err = d.dir.sub(name, toList)
	}
	if err == nil && f.nested {
		err = c.enter()
	}
	if err == errLink {
		err = NotDirectory
	}
	if err != nil {
		if c.dir != nil {
			c.dir.close()
			c.dir = nil
		}
		c.Err = asError("listing", c.Path, err)
	}
	return c
}

// enter goes on in the root that begins here, if one does.
func (d *Directory) enter() error {
	info, err := d.dir.info()
	if err != nil {
		return err
	}
	here := position{d.root.at.top, slices.Concat(d.root.at.elems, d.name)}
	for _, r := range d.fs.roots {
		if r == d.root || r.only != "" || !r.spellings[0].equal(here) && (r.is == nil || !os.SameFile(info, r.is)) {
			continue
		}
		if r.dir.Access&roots.Read == 0 {
			return OutsideRoots
		}
		d.root, d.name = r, nil
	}
	return nil
}

func (f *FS) cleanAll(ctx context.Context, entries int64) error {
	for _, r := range f.roots {
		if r.directory == nil || r.only != "" || r.dir.Access&roots.Write == 0 {
			continue
		}
		w, err := f.Walk(ctx, r.dir.Path, WalkOptions{MaxEntries: entries}, func(d *Directory) []Entry { return d.Entries })
		if err != nil {
			return err
		}
		if entries > 0 {
			if entries -= w.Entries; entries <= 0 {
				break
			}
		}
	}
	return nil
}
