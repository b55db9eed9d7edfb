package rootfs

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/rootbound/rootbound/roots"
)

// Presence is what must be at a path before it is replaced.
type Presence uint8

const (
	// Anything: a file, or nothing.
	Anything Presence = iota
	// Absent: nothing, else Exists.
	Absent
	// Present: a file, else NotFound.
	Present
)

// ReplaceOptions say on which conditions a file is replaced.
type ReplaceOptions struct {
	// Must says whether there has to be a file at the path.
	Must Presence
	// Version, when it is not empty, is the Version that the file must have when it is replaced, else Changed.
	Version string
	// Perm are the permission bits, less the umask, of a file that is made; 0 means 0666.
	Perm fs.FileMode
	// DryRun changes nothing. What would keep the file from being replaced is an error all the same, as far as it is known
	// before; what is written is dropped, and the info is nil.
	DryRun bool
}

// Replace puts a new content in the place of the regular file at path, or makes it where it is missing and its directory
// is not, in one step: who reads sees the old content or the new one. write gets the old file, open for reading (nil when
// there is none; Replace closes it), and writes the whole new content to w.
//
// The file keeps its permission bits without setuid and setgid, its owner and extended attributes as far as this process
// may give them; when the group cannot be kept, the group gets no more than everybody. A file that this process may not
// read and write is refused with Permission, though its directory would allow it. A link is followed to its file; nothing
// is made through one that leads nowhere. Other hard links of the file keep the old content.
//
// Replacements of one file in this process wait for each other, through whatever FS and path. An error of write is
// returned as it is; it, and the end of ctx, leave the file as it was. When another process changed the file after old was
// opened it is left, and the error is Changed; between that last look and the step itself there is a moment in which a
// change is lost, if it is not by Replace. The info is of the new file. The content is on the disk when Replace returns.
func (f *FS) Replace(ctx context.Context, path string, o ReplaceOptions, write func(w io.Writer, old *os.File) error) (fs.FileInfo, error) {
	var info fs.FileInfo
	err := f.reach("replacing", path, missing, func(p target) error {
		switch err := f.may(ToWrite, p); {
		case err != nil:
			return err
		case p.name == "." && p.rest == nil, p.rest != nil && p.slash:
			return IsDirectory
		case len(p.rest) > 1:
			return NotFound
		}
		return f.hold(p, func(d directory, name string) error {
			unlock, err := lockName(ctx, d, name)
			if err != nil {
				return err
			}
			defer unlock()
			f.cleanOnce(d)
			r := replacement{fs: f, ctx: ctx, d: d, name: name, o: o}
			info, err = r.run(write)
			return err
		})
	})
	return info, err
}

// replacement is one Replace, where its file has been found.
type replacement struct {
	fs   *FS
	ctx  context.Context
	d    directory
	name string
	o    ReplaceOptions
}

func (r *replacement) run(write func(io.Writer, *os.File) error) (fs.FileInfo, error) {
	old, was, err := r.open()
	if err != nil {
		return nil, err
	}
	perm := cmp.Or(r.o.Perm.Perm(), 0o666) // less the umask
	if old != nil {
		defer old.Close()
		perm = 0o600 // nobody else's until it is whole
	}
	if r.o.DryRun {
		if err := write(io.Discard, old); err != nil {
			return nil, foreign{err}
		}
		return nil, nil
	}
	tmp, tmpName, err := createTemporary(r.d, perm)
	if err != nil {
		return nil, err
	}
	done := false
	defer func() {
		tmp.Close()
		if !done {
			r.d.remove(tmpName, false)
		}
	}()
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	if err := write(&contentWriter{r.ctx, tmp}, old); err != nil {
		return nil, foreign{err}
	}
	info, err := r.finish(tmp, tmpName, old, was)
	if err == errLink {
		err = Changed // write is called once
	}
	done = info != nil
	return info, err
}

// finish puts the new file in the place of the old one. There is an info when it has.
func (r *replacement) finish(tmp *os.File, tmpName string, old *os.File, was fs.FileInfo) (fs.FileInfo, error) {
	if old != nil {
		if err := keep(tmp, old, was); err != nil {
			return nil, err
		}
	}
	if err := tmp.Sync(); err != nil {
		return nil, err
	}
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	switch err := r.step(tmpName, old, was); {
	case err == nil:
	case codeOf(err) == Exists && r.o.Must == Absent:
		return nil, Exists
	case codeOf(err) == Exists:
		return nil, Changed
	default:
		return nil, err
	}
	info, err := tmp.Stat()
	if err != nil {
		return nil, err
	}
	return renamed{info, r.name}, r.d.sync()
}

// step renames the new file, if what is there is still the old one. No move of this process comes between, and no Replace of
// another one. To exchange the two names and look at what came out would keep everybody out; but who watches the directory is
// then told last that the file went away.
func (r *replacement) step(tmpName string, old *os.File, was fs.FileInfo) error {
	unlock, err := lockNames(r.d, r.name, r.d, r.name)
	if err != nil {
		return err
	}
	defer unlock()
	if old != nil {
		lockOld(old)
		if now, link, err := r.d.look(r.name); err != nil || link != "" || Version(now) != Version(was) {
			return Changed
		}
	}
	return r.d.rename(tmpName, r.d, r.name, old != nil)
}

// lockOld takes the lock that two processes which replace one file both want for the last step. Who has it for long is
// another program, and is not waited for. It ends when the file is closed.
func lockOld(f *os.File) {
	for range 100 {
		if !errors.Is(lock(f), errLocked) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// open opens the file that is there, if one is and may be, and describes it.
func (r *replacement) open() (*os.File, fs.FileInfo, error) {
	if r.o.Must == Absent {
		_, _, err := r.d.look(r.name)
		switch {
		case err == nil:
			return nil, nil, Exists
		case codeOf(err) != NotFound:
			return nil, nil, err
		}
	}
	old, err := r.fs.openIn(r.d, r.name)
	switch {
	case err == nil:
	case codeOf(err) != NotFound:
		return nil, nil, err
	case r.o.Version != "":
		return nil, nil, Changed
	case r.o.Must == Present:
		return nil, nil, NotFound
	default:
		return nil, nil, nil
	}
	was, err := old.Stat()
	switch {
	case err != nil:
	case r.o.Must == Absent:
		err = Exists
	case r.o.Version != "" && r.o.Version != Version(was):
		err = Changed
	default:
		err = mayWrite(old, was)
	}
	if err != nil {
		old.Close()
		return nil, nil, err
	}
	return old, was, nil
}

// contentWriter ends with its context, and names no file in its errors.
type contentWriter struct {
	ctx context.Context
	f   *os.File
}

func (w *contentWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.f.Write(p)
	return n, bare(err)
}

// renamed describes a file under its later name.
type renamed struct {
	fs.FileInfo
	name string
}

func (r renamed) Name() string { return r.name }

// foreign is an error of a caller's function.
type foreign struct{ error }

// nameKey is one name in one directory.
type nameKey struct {
	dir  roots.FileID
	name string
	step bool // only for the one step that changes what has the name, and the look before it
}

// keyOf makes one key of names that are one on some file system; elsewhere they wait without need.
func keyOf(d directory, name string, step bool) (nameKey, error) {
	info, err := d.info()
	if err != nil {
		return nameKey{}, err
	}
	return nameKey{identify("", info), strings.ToLower(norm.NFC.String(name)), step}, nil
}

func (k nameKey) compare(l nameKey) int {
	return cmp.Or(cmp.Compare(k.dir.Volume, l.dir.Volume), cmp.Compare(k.dir.Index, l.dir.Index), strings.Compare(k.name, l.name))
}

// turns are the names that are being changed in this process.
var turns = struct {
	sync.Mutex
	of map[nameKey]*turn
}{of: map[nameKey]*turn{}}

type turn struct {
	taken chan struct{} // holds one
	users int
}

// lockName waits for the turn to replace what has a name.
func lockName(ctx context.Context, d directory, name string) (unlock func(), err error) {
	key, err := keyOf(d, name, false)
	if err != nil {
		return nil, err
	}
	return lockKey(ctx, key)
}

// lockNames waits for the turn to change what has one of two names, which may be the same one. It is had for a moment only.
func lockNames(d directory, name string, to directory, as string) (unlock func(), err error) {
	first, err := keyOf(d, name, true)
	if err != nil {
		return nil, err
	}
	second, err := keyOf(to, as, true)
	if err != nil {
		return nil, err
	}
	keys := []nameKey{first, second}
	slices.SortFunc(keys, nameKey.compare) // all take them in one order
	unlock = func() {}
	for _, k := range slices.Compact(keys) {
		one, _ := lockKey(context.Background(), k) // which does not end
		rest := unlock
		unlock = func() { one(); rest() }
	}
	return unlock, nil
}

func lockKey(ctx context.Context, key nameKey) (unlock func(), err error) {
	turns.Lock()
	t := turns.of[key]
	if t == nil {
		t = &turn{taken: make(chan struct{}, 1)}
		turns.of[key] = t
	}
	t.users++
	turns.Unlock()
	leave := func() {
		turns.Lock()
		defer turns.Unlock()
		if t.users--; t.users == 0 {
			delete(turns.of, key)
		}
	}
	select {
	case t.taken <- struct{}{}:
		return func() { <-t.taken; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// bare drops the path that the system adds: the caller's is in the text already.
func bare(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	var c *os.SyscallError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	case errors.As(err, &c):
		return c.Err
	}
	return err
}
