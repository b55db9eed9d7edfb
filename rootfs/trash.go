package rootfs

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// TrashOptions bound the trash of each root. Zero values bound nothing.
type TrashOptions struct {
	// MaxBytes is how many bytes the files in it may have together. What is larger alone is refused with TooLarge, and the
	// oldest make room for the new.
	MaxBytes int64
	// MaxAge is how long a thing stays in it; what is older goes when the next thing comes.
	MaxAge time.Duration
}

// The trash of a root is a directory at its top. A thing in it is a directory, whose name tells its time, with two
// entries: what it is, and where it was.
const (
	trashItem  = "item"
	trashFrom  = "from" // its size in bytes, a line end, and its name beneath the root
	ignoreName = ".gitignore"
)

// Trash takes a file, a link itself, or a directory with all that is in it away from its path, by moving it into a
// directory at the top of the same root that nothing else of this package shows. The id brings it back, until the bounds
// no longer hold it: then it is removed for good, when another thing has come. It needs the right to delete, and the top of
// the root has to be in the same file system (CrossDevice) and writable. A directory with a mount point in it is refused
// with Mount, one with more than a million entries beneath with Budget.
func (f *FS) Trash(path string, o TrashOptions) (id string, err error) {
	err = f.reach("moving to the trash", path, lastLink, func(p target) error {
		if p.root.only != "" {
			return IsRoot
		}
		return f.take(p, func(d directory, name string, info fs.FileInfo) error {
			size := info.Size()
			if info.IsDir() {
				if err := f.refuseDenied(p, d, name, target{}); err != nil {
					return err
				}
				if size, err = f.size(p.root, d, name, o.MaxBytes); err != nil {
					return err
				}
			}
			if o.MaxBytes > 0 && size > o.MaxBytes {
				return TooLarge
			}
			t, err := openTrash(p.root, true)
			if err != nil {
				return asError("moving to the trash", filepath.Join(p.root.dir.Path, trashName), err)
			}
			defer t.close()
			now := time.Now()
			if id, err = put(t, d, name, p.name, size, now); err == nil {
				prune(t, o, id, now)
			}
			return err
		})
	})
	return id, err
}

// size adds up the files beneath a directory, until they are more than most (0: until the end).
func (f *FS) size(r *root, d directory, name string, most int64) (int64, error) {
	var sum int64
	err := f.scan(r, d, name, sameMount, func(in directory, _ []string, e Entry) error {
		if !e.Type.IsRegular() {
			return nil
		}
		info, _, err := in.look(e.Name)
		if err != nil {
			return err
		}
		if sum += info.Size(); most > 0 && sum > most {
			return TooLarge
		}
		return nil
	})
	return sum, err
}

// openTrash opens the trash of a root, and makes it where it is missing, if it may.
func openTrash(r *root, create bool) (directory, error) {
	t, err := r.sub(trashName, sameMount)
	if err == errLink {
		err = OutsideRoots // somebody has made a link of it
	}
	if codeOf(err) != NotFound || !create {
		return t, err
	}
	if err := r.mkdir(trashName, 0o700); err != nil && codeOf(err) != Exists {
		return nil, err
	}
	if t, err = r.sub(trashName, sameMount); err != nil {
		return nil, err
	}
	if err := writeNew(t, ignoreName, []byte("*\n")); err != nil && codeOf(err) != Exists {
		t.close()
		return nil, err
	}
	return t, nil
}

func writeNew(d directory, name string, content []byte) error {
	f, err := d.create(name, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(bare(err), bare(f.Sync()), bare(f.Close())) // before the item comes: without it nobody knows where that was
}

func put(t, d directory, name, from string, size int64, now time.Time) (id string, err error) {
	id = makeID(now, strings.ToLower(rand.Text()[:8]))
	if err := t.mkdir(id, 0o700); err != nil {
		return "", err
	}
	b, err := t.sub(id, 0)
	if err == nil {
		defer b.close()
		if err = writeNew(b, trashFrom, append(strconv.AppendInt(nil, size, 10), "\n"+from...)); err == nil {
			err = rename(d, name, b, trashItem, false)
		}
		if err != nil {
			b.remove(trashFrom, false)
		}
	}
	if err != nil {
		t.remove(id, true)
		return "", err
	}
	return id, nil
}

// thing is one in the trash.
type thing struct {
	id   string
	at   time.Time
	size int64
	from string
}

func makeID(at time.Time, random string) string {
	return strconv.FormatInt(at.UnixMilli(), 36) + "-" + random
}

func parseID(id string) (time.Time, bool) {
	ms, random, ok := strings.Cut(id, "-")
	n, err := strconv.ParseInt(ms, 36, 64)
	return time.UnixMilli(n), ok && err == nil && n >= 0 && len(random) == 8 && plainID(random)
}

func plainID(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'z') })
}

// claim takes the lock of a thing, so that one brings it back or removes it, and reads where it was. The caller closes
// the directory and the file.
func claim(t directory, id string) (th thing, in directory, lockFile *os.File, err error) {
	at, ok := parseID(id)
	if !ok {
		return th, nil, nil, NotFound
	}
	in, err = t.sub(id, sameMount)
	if err != nil {
		return th, nil, nil, err
	}
	th = thing{id: id, at: at}
	if lockFile, err = in.open(trashFrom); err == nil {
		if errors.Is(lock(lockFile), errLocked) {
			err = NotFound
		} else {
			err = th.read(lockFile)
		}
		// Who had the lock may have taken it away.
		if _, _, e := in.look(trashFrom); err == nil {
			err = e
		}
		if err != nil {
			lockFile.Close()
		}
	}
	if err != nil {
		in.close()
		return th, nil, nil, err
	}
	return th, in, lockFile, nil
}

func (th *thing) read(r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, maxPath+32))
	if err != nil {
		return err
	}
	size, from, ok := bytes.Cut(b, []byte("\n"))
	if th.size, err = strconv.ParseInt(string(size), 10, 64); err != nil || !ok || th.size < 0 {
		return NotFound
	}
	th.from = string(from)
	return nil
}

// prune removes what is too old, what was left half done, and the oldest until the rest is within the bounds. What has just
// come, under the id newest, stays.
func prune(t directory, o TrashOptions, newest string, now time.Time) {
	l, err := t.sub(".", toList)
	if err != nil {
		return
	}
	entries, err := l.entries()
	l.close()
	if err != nil {
		return
	}
	// What claims to be larger than what is taken goes alone: for a lie about its size the others would go.
	tooLarge := func(th thing) bool { return o.MaxBytes > 0 && th.size > o.MaxBytes }
	var things []thing
	sum := int64(0)
	for _, e := range entries {
		at, ok := parseID(e.Name)
		if !ok || !e.Type.IsDir() {
			continue
		}
		th := thing{id: e.Name, at: at}
		f, err := t.open(e.Name + "/" + trashFrom)
		if err == nil {
			_, _, err = t.look(e.Name + "/" + trashItem) // a killed process leaves none, before it has come and when it was brought back
			if th.read(f) == nil && err == nil && !tooLarge(th) {
				sum += th.size
			}
			f.Close()
		}
		if codeOf(err) == NotFound && now.Sub(at) > staleAfter { // what cannot be looked at now is no reason
			removeAll(t, e.Name)
			continue
		}
		things = append(things, th)
	}
	slices.SortFunc(things, func(a, b thing) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.id, b.id)) })
	for _, th := range things {
		if th.id != newest && (o.MaxAge > 0 && now.Sub(th.at) > o.MaxAge || o.MaxBytes > 0 && sum > o.MaxBytes || tooLarge(th)) {
			_, in, lockFile, err := claim(t, th.id)
			if err != nil {
				continue
			}
			in.close()
			if removeAll(t, th.id) == nil && !tooLarge(th) {
				sum -= th.size
			}
			lockFile.Close()
		}
	}
}

// removeAll removes a directory and all that is in it; it follows no link and enters no mount.
func removeAll(d directory, name string) error {
	for again := true; again; {
		top, err := d.sub(name, toList|sameMount)
		if err != nil {
			return err
		}
		again, err = empty(top, top, 0)
		top.close()
		if err != nil {
			return err
		}
	}
	return d.remove(name, true)
}

// empty removes what is in d. What lies deep it moves up to top, where it has to be called again: then no more than some
// directories are open at once, however deep they lie.
func empty(top, d directory, depth int) (again bool, err error) {
	const deepest = 64
	entries, err := d.entries()
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		switch {
		case !e.Type.IsDir():
			err = d.remove(e.Name, false)
		case depth == deepest:
			again = true
			err = d.rename(e.Name, top, strings.ToLower(rand.Text()), false)
		default:
			var s directory
			if s, err = d.sub(e.Name, toList|sameMount); err == nil {
				var more bool
				more, err = empty(top, s, depth+1)
				s.close()
				again = again || more
			}
			if err == nil {
				err = d.remove(e.Name, true)
			}
		}
		if err != nil && codeOf(err) != NotFound {
			return again, err
		}
	}
	return again, nil
}

// Restore brings back what Trash has taken, to the path where it was; directories on the way that are gone are made again.
// When something is there now, it is Exists, and the thing stays in the trash. path is absolute.
func (f *FS) Restore(id string) (path string, err error) {
	if err := f.use(); err != nil {
		return "", asError("restoring", id, err)
	}
	defer f.release()
	if _, ok := parseID(id); !ok {
		return "", asError("restoring", id, NotFound)
	}
	var unusable error
	for _, r := range f.roots {
		if r.directory == nil || r.only != "" {
			continue
		}
		t, err := openTrash(r, false)
		if err != nil {
			switch codeOf(err) {
			case NotFound, OutsideRoots, NotDirectory: // there is none, or somebody has put something else in its place
			default:
				unusable = cmp.Or(unusable, err) // the thing may lie in another
			}
			continue
		}
		path, err = f.restore(r, t, id)
		t.close()
		if codeOf(err) != NotFound {
			if err != nil {
				return "", asError("restoring", id, err)
			}
			return path, nil
		}
	}
	return "", asError("restoring", id, cmp.Or(unusable, error(NotFound)))
}

func (f *FS) restore(r *root, t directory, id string) (string, error) {
	th, b, lockFile, err := claim(t, id)
	switch codeOf(err) {
	case "":
	case errLink, IsDirectory, NotDirectory, SpecialFile: // somebody else made it
		return "", NotFound
	default:
		return "", err
	}
	defer b.close()
	defer lockFile.Close()
	if _, _, err := b.look(trashItem); err != nil {
		return "", err
	}
	path := filepath.Join(r.dir.Path, filepath.FromSlash(th.from))
	err = f.seek("restoring", path, lastLink|missing, func(q target) error {
		switch err := f.may(ToPut, q); {
		case q.rest == nil:
			return Exists
		case err != nil:
			return err
		case q.root.only != "":
			return Exists
		}
		if len(q.rest) > 1 {
			last := len(q.rest) - 1
			up := q
			up.rest = q.rest[:last]
			if err := f.makeAll(up); err != nil {
				return err
			}
			return errLink // now its parent is there
		}
		return f.hold(q, func(to directory, as string) error { return rename(b, trashItem, to, as, false) })
	})
	if err != nil {
		return "", err
	}
	b.remove(trashFrom, false)
	t.remove(id, true)
	return path, nil
}
