package rootfs

import (
	"context"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rootbound/rootbound/roots"
)

// WalkOptions bound a Walk. The zero value bounds nothing.
type WalkOptions struct {
	// MaxEntries is how many entries are seen in all.
	MaxEntries int64
	// MaxDepth is how many levels are visited: with 1, only the start.
	MaxDepth int
	// Workers is how many directories are visited at once; 0 means as many as there are processors, and two at least, so that
	// one that the system keeps does not keep the rest.
	Workers int
	// Unsorted leaves Entries in the order of the directory.
	Unsorted bool
}

// Walked says what a Walk has seen and what it has left out.
type Walked struct {
	Entries, Directories int64 // that were visited
	Unreadable           int64 // directories that came with Err
	Cut                  bool  // MaxEntries ended it
	TooDeep              int64 // directories that MaxDepth kept it from entering, or a limit of the walk's own: no path leads there
}

// Directory is one directory of a Walk.
type Directory struct {
	// Path is where it is beneath the start, with slashes; "" for the start itself.
	Path string
	// Depth is how many elements Path has.
	Depth int
	// Entries are what is in it, by name. None are there when Err is set.
	Entries []Entry
	// Err says why it could not be read, or is not to be entered. It is an *Error that names Path.
	Err error
	// Parent is the directory that holds it; nil for the start.
	Parent *Directory
	// Value is the visitor's own. It may be read in a visit of what is beneath.
	Value any

	fs   *FS
	dir  directory // nil outside visit
	root *root
	name string // beneath the root; "." for the root itself
}

// Open opens a regular file in the directory, no link. It may be called only inside visit, by several goroutines at once.
// The caller closes the file.
func (d *Directory) Open(name string) (*os.File, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, asError("opening", name, err)
	}
	return f, nil
}

func (d *Directory) open(name string) (*os.File, error) {
	if err := d.check(name); err != nil {
		return nil, err
	}
	if d.denied(name) {
		return nil, Denied
	}
	if err := d.another(name); err != nil {
		return nil, err
	}
	f, err := d.fs.openIn(d.dir, name)
	if err == errLink {
		err = OutsideRoots
	}
	return f, err
}

// Stat describes what has a name in the directory, a link itself. It may be called only inside visit, by several
// goroutines at once.
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
	case !oneElement(name):
		return InvalidPath
	case reserved(name):
		return Denied
	}
	return nil
}

func oneElement(name string) bool {
	for i := range len(name) {
		if os.IsPathSeparator(name[i]) {
			return false
		}
	}
	return name != "" && name != "." && name != ".." && validName(name)
}

func (d *Directory) denied(name string) bool {
	return d.fs.options.Deny != nil && d.fs.deniedName(d.root, beneathOf(d.name, name))
}

// another refuses a file that is a root for itself, without the right to read it.
func (d *Directory) another(name string) error {
	if !d.fs.nested {
		return nil
	}
	here := position{d.root.at.top, append(d.position(), name)}
	for _, r := range d.fs.roots {
		if r.dir.Access&roots.Read == 0 && r.spellings[0].equal(here) {
			return OutsideRoots
		}
	}
	return nil
}

// position returns the elements of the directory's absolute path, in a slice of its own.
func (d *Directory) position() []string {
	elems := slices.Clone(d.root.at.elems)
	if d.name != "." {
		elems = append(elems, strings.Split(d.name, "/")...)
	}
	return elems
}

// beneathOf returns the name of what is in a directory.
func beneathOf(dir, name string) string {
	if dir == "." || dir == "" {
		return name
	}
	return dir + "/" + name
}

// Walk calls visit once for each directory beneath path, from several goroutines at once, parents before children. visit
// returns the entries whose directories are to be entered; what is no directory among them is passed over. Links are
// never entered, nor what Options.Deny denies, nor a root that may not be read. A directory that is not entered for such a
// reason, or cannot be read, comes with Err, and the walk goes on. An error is of the start or of ctx; what was seen until
// then is told beside it.
//
// A walk keeps a bounded number of directories open, and in memory the entries and the path of those beneath which it has
// something to do. So it goes no deeper beneath a root than a path may be long.
func (f *FS) Walk(ctx context.Context, path string, o WalkOptions, visit func(d *Directory) []Entry) (Walked, error) {
	start := &Directory{fs: f}
	err := f.reach("walking", path, 0, func(p target) error {
		if p.denied {
			return Denied
		}
		start.root, start.name = p.root, p.name
		return f.at(p, func(d directory, name string) (err error) {
			start.dir, err = f.enter(p.root, d, name, toList)
			return err
		})
	})
	if err != nil {
		return Walked{}, err
	}
	w := &walker{ctx: ctx, options: o, visit: visit, atOnce: !f.nested && start.dir.strict(), running: 1}
	w.change.L = &w.mu
	if o.Workers <= 0 {
		w.options.Workers = max(2, min(runtime.GOMAXPROCS(0), runtime.NumCPU()))
	}
	w.see(start, nil, "")
	w.workers.Add(1)
	w.work()
	w.workers.Wait()
	return Walked{
		Entries: w.entries.Load(), Directories: w.directories.Load(), Unreadable: w.unreadable.Load(),
		Cut: w.cut.Load(), TooDeep: w.tooDeep.Load(),
	}, ctx.Err()
}

// walker is one Walk. Its workers share a stack, so it goes deep before it goes wide: then little waits, and few
// directories are held open for what waits.
type walker struct {
	ctx     context.Context
	options WalkOptions
	visit   func(d *Directory) []Entry
	atOnce  bool // a way of several elements may be opened in one step

	entries, directories, unreadable, tooDeep atomic.Int64
	cut                                       atomic.Bool
	anchors                                   atomic.Int64 // those that are open

	workers sync.WaitGroup
	mu      sync.Mutex
	change  sync.Cond
	stack   []*waiting
	running int // workers there are
	idle    int // those of them that wait for work
}

// waiting are directories that are still to be entered, in a directory that was visited.
type waiting struct {
	in      *Directory
	from    *anchor
	way     string // from there to in; "" for itself
	entries []Entry
}

// anchor is a directory that stays open for those beneath it, until its last user lets go of it.
type anchor struct {
	directory
	users atomic.Int64
}

const (
	// The first directories with something beneath them are held, up to so many; after that one in so many levels, or bytes
	// of way; and never more than maxAnchors. What would need more is too deep.
	freeAnchors  = 64
	maxAnchors   = 1024
	anchorLevels = 16
	anchorBytes  = 3000
)

func (w *walker) letGo(a *anchor) {
	if a != nil && a.users.Add(-1) == 0 {
		a.close()
		w.anchors.Add(-1)
	}
}

func (w *walker) stopped() bool { return w.cut.Load() || w.ctx.Err() != nil }

// work enters directories until there are none.
func (w *walker) work() {
	defer w.workers.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if w.stopped() {
			for _, p := range w.stack {
				w.letGo(p.from)
			}
			w.stack = nil
		}
		for len(w.stack) == 0 {
			if w.idle++; w.idle == w.running {
				w.change.Broadcast() // the last one that works has found nothing: it is over
				return
			}
			if w.change.Wait(); w.idle == w.running {
				return
			}
			w.idle--
		}
		last := len(w.stack) - 1
		p := w.stack[last]
		e := p.entries[0]
		if p.entries = p.entries[1:]; len(p.entries) == 0 {
			w.stack[last] = nil
			w.stack = w.stack[:last]
		} else {
			p.from.users.Add(1)
		}
		switch {
		case len(w.stack) == 0:
		case w.idle > 0:
			w.change.Signal()
		case w.running < w.options.Workers:
			w.running++
			w.workers.Add(1)
			go w.work()
		}
		w.mu.Unlock()
		w.enter(p, e.Name)
		w.letGo(p.from)
		w.mu.Lock()
	}
}

// enter opens and visits one of the directories that wait.
func (w *walker) enter(p *waiting, name string) {
	if len(p.in.name)+len("/")+len(name) > maxPath {
		w.tooDeep.Add(1)
		return
	}
	d := &Directory{
		Path: beneathOf(p.in.Path, name), Depth: p.in.Depth + 1, Parent: p.in,
		fs: p.in.fs, root: p.in.root, name: beneathOf(p.in.name, name),
	}
	way := beneathOf(p.way, name)
	var err error
	switch {
	case !oneElement(name):
		err = InvalidPath
	case reserved(name) || p.in.denied(name):
		err = Denied
	case w.atOnce:
		d.dir, err = p.from.sub(way, toList)
	default:
		err = d.step(p.from, way)
	}
	if err == errLink {
		err = NotDirectory
	}
	if err != nil {
		d.Err = asError("listing", d.Path, err)
	}
	w.see(d, p.from, way)
}

// step opens the directory element by element, so that no exchange of directories leads over a link or from one root's
// rights into another root.
func (d *Directory) step(from *anchor, way string) error {
	at, open := from.directory, false
	for rest, more := way, true; more; {
		var e string
		e, rest, more = strings.Cut(rest, "/")
		var next directory
		var err error
		if more {
			next, err = d.fs.enter(d.root, at, e, 0)
		} else {
			next, err = at.sub(e, toList)
		}
		if open {
			at.close()
		}
		if err != nil {
			return err
		}
		at, open = next, true
	}
	if d.fs.nested {
		if err := d.begin(at); err != nil {
			at.close()
			return err
		}
	}
	d.dir = at
	return nil
}

// begin goes on in the root that begins at a directory, if one does.
func (d *Directory) begin(at directory) error {
	info, err := at.info()
	if err != nil {
		return err
	}
	here := position{d.root.at.top, d.position()}
	for _, r := range d.fs.roots {
		if r == d.root || r.dir.File || !r.spellings[0].equal(here) && !sameFile(info, r.is) {
			continue
		}
		if r.dir.Access&roots.Read == 0 {
			return OutsideRoots
		}
		d.root, d.name = r, "."
		return nil
	}
	return nil
}

// see reads a directory that was opened, lets it be visited, and keeps what is to be entered.
func (w *walker) see(d *Directory, from *anchor, way string) {
	if w.stopped() {
		d.close()
		return
	}
	if d.Err == nil {
		var err error
		if d.Entries, err = d.fs.list(d.root, d.dir); err != nil {
			d.Entries, d.Err = nil, asError("listing", d.Path, err)
		}
	}
	n := int64(len(d.Entries))
	if over := w.entries.Add(n) - w.options.MaxEntries; w.options.MaxEntries > 0 && over > 0 {
		over = min(over, n)
		w.entries.Add(-over)
		d.Entries = d.Entries[:n-over]
		w.cut.Store(true)
	}
	w.directories.Add(1)
	if d.Err != nil {
		w.unreadable.Add(1)
	}
	if !w.options.Unsorted {
		slices.SortFunc(d.Entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	}
	enter := directories(w.visit(d))
	if d.Err != nil || w.stopped() {
		enter = nil
	}
	if w.options.MaxDepth > 0 && d.Depth+1 >= w.options.MaxDepth {
		w.tooDeep.Add(int64(len(enter)))
		enter = nil
	}
	if len(enter) == 0 {
		d.close()
		return
	}
	w.keep(&waiting{in: d, from: from, way: way, entries: enter})
}

// directories returns those among entries, in a slice of its own.
func directories(entries []Entry) []Entry {
	n := 0
	for _, e := range entries {
		if e.Type.IsDir() {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	list := make([]Entry, 0, n)
	for _, e := range entries {
		if e.Type.IsDir() {
			list = append(list, e)
		}
	}
	return list
}

func (d *Directory) close() {
	if d.dir != nil {
		d.dir.close()
		d.dir = nil
	}
}

// keep puts directories on the stack, and decides from where they will be opened.
func (w *walker) keep(p *waiting) {
	// No way may lead through the beginning of another root.
	must := p.from == nil || p.in.name == "." || strings.Count(p.way, "/") >= anchorLevels || len(p.way) > anchorBytes
	switch open := w.anchors.Add(1); {
	case open <= freeAnchors, must && open <= maxAnchors:
		p.from, p.way = &anchor{directory: p.in.dir}, ""
		p.in.dir = nil
	case must:
		w.anchors.Add(-1)
		w.tooDeep.Add(int64(len(p.entries)))
		p.in.close()
		return
	default:
		w.anchors.Add(-1)
		p.in.close()
	}
	p.from.users.Add(1)
	w.mu.Lock()
	w.stack = append(w.stack, p)
	w.mu.Unlock()
}
