package rootfs

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rootbound/rootbound/roots"
)

// TrashOptions bound the trash of each root. Zero values bound nothing.
type TrashOptions struct {
	// MaxBytes is how much the files in it may have together. What is larger alone is refused with TooLarge, and the
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
// directory at the top of the same root that nothing else of this package shows. The id brings it back. What the bounds
// no longer hold is removed for good; mounts in it are left alone. It needs the right to delete, and the top of the root
// has to be in the same file system (CrossDevice) and writable.
func (f *FS) Trash(path string, o TrashOptions) (id string, err error) {
	err = f.reach("moving to the trash", path, lastLink, func(p place) error {
		if p.root.only != "" {
			return IsRoot
		}
		return f.take(p, func(d directory, name string, info fs.FileInfo) error {
			size := info.Size()
			if info.IsDir() {
				if err := f.refuseDenied(p, d, name, place{}); err != nil {
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
				return err
			}
			defer t.close()
			now := time.Now()
			prune(t, o, size, now)
			id, err = put(t, d, name, p.name, size, now)
			return err
		})
	})
	return id, err
}

// size adds up the files beneath a directory, until they are more than most (0: until the end).
func (f *FS) size(r *root, d directory, name string, most int64) (int64, error) {
	var sum int64
	err := f.scan(r, d, name, 0, func(in directory, _ []string, e Entry) error {
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
func openTrash(r *root, make bool) (directory, error) {
	t, err := r.sub(trashName, sameMount)
	if codeOf(err) != NotFound || !make {
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
	return errors.Join(bare(err), bare(f.Close()))
}

func put(t, d directory, name, from string, size int64, now time.Time) (id string, err error) {
	id = strconv.FormatInt(now.UnixMilli(), 36) + "-" + strings.ToLower(rand.Text()[:8])
	if err := t.mkdir(id, 0o700); err != nil {
		return "", err
	}
	b, err := t.sub(id, 0)
	if err == nil {
		defer b.close()
		if err = writeNew(b, trashFrom, append(strconv.AppendInt(nil, size, 10), "\n"+from...)); err == nil {
			err = d.rename(name, b, trashItem, false)
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

func parseID(id string) (time.Time, bool) {
	ms, random, ok := strings.Cut(id, "-")
	n, err := strconv.ParseInt(ms, 36, 64)
	return time.UnixMilli(n), ok && err == nil && n >= 0 && len(random) == 8 && reservedID(random)
}

func reservedID(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'z') })
}

// readThing reads where a thing was.
func readThing(t directory, id string) (thing, error) {
	at, ok := parseID(id)
	if !ok {
		return thing{}, NotFound
	}
	f, err := t.open(id + "/" + trashFrom)
	if err != nil {
		return thing{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxPath+32))
	if err != nil {
		return thing{}, err
	}
	size, from, ok := bytes.Cut(b, []byte("\n"))
	n, err := strconv.ParseInt(string(size), 10, 64)
	if err != nil || !ok || n < 0 {
		return thing{}, NotFound
	}
	return thing{id, at, n, string(from)}, nil
}

// prune removes what is too old, what is broken, and the oldest until there is room for more bytes.
func prune(t directory, o TrashOptions, more int64, now time.Time) {
	l, err := t.sub(".", toList)
	if err != nil {
		return
	}
	entries, err := l.entries()
	l.close()
	if err != nil {
		return
	}
	var things []thing
	for _, e := range entries {
		at, ok := parseID(e.Name)
		if !ok || !e.Type.IsDir() {
			continue
		}
		th, err := readThing(t, e.Name)
		if err != nil {
			th = thing{id: e.Name, at: at}
		}
		more += th.size
		things = append(things, th)
	}
	slices.SortFunc(things, func(a, b thing) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.id, b.id)) })
	for _, th := range things {
		if o.MaxAge > 0 && now.Sub(th.at) > o.MaxAge || o.MaxBytes > 0 && more > o.MaxBytes {
			if removeAll(t, th.id) == nil {
				more -= th.size
			}
		}
	}
}

// removeAll removes a directory and all beneath it; it follows no link and enters no mount. A directory that lies deep is
// moved up first, so that no name gets too long.
func removeAll(d directory, name string) error {
	const deep = 64
	for todo := [][]string{{name}}; len(todo) > 0; {
		at := todo[len(todo)-1]
		s, err := d.sub(join(at), toList|sameMount)
		if err != nil {
			return err
		}
		entries, err := s.entries()
		below := false
		for _, e := range entries {
			switch {
			case err != nil:
			case !e.Type.IsDir():
				err = s.remove(e.Name, false)
			case len(at) > deep:
				up := strings.ToLower(rand.Text()[:16])
				var top directory
				if top, err = d.sub(name, 0); err == nil {
					err = s.rename(e.Name, top, up, false)
					top.close()
				}
				todo = slices.Insert(todo, 1, []string{name, up})
			default:
				todo, below = append(todo, append(slices.Clip(at), e.Name)), true
			}
		}
		s.close()
		if err != nil {
			return err
		}
		if below {
			continue
		}
		parent := d
		if len(at) > 1 {
			if parent, err = d.sub(join(at[:len(at)-1]), sameMount); err != nil {
				return err
			}
		}
		err = parent.remove(at[len(at)-1], true)
		if parent != d {
			parent.close()
		}
		if err != nil && len(todo) > 1 || err != nil && codeOf(err) != NotEmpty {
			return err
		}
		if err == nil {
			todo = slices.DeleteFunc(todo, func(o []string) bool { return slices.Equal(o, at) })
		}
	}
	return nil
}

// Restore brings back what Trash has taken, to the path where it was; directories on the way that are gone are made again.
// When something is there now, it is Exists, and the thing stays in the trash. path is absolute.
func (f *FS) Restore(id string) (path string, err error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return "", asError("restoring", id, fs.ErrClosed)
	}
	if _, ok := parseID(id); !ok {
		return "", asError("restoring", id, NotFound)
	}
	for _, r := range f.roots {
		if r.directory == nil || r.only != "" {
			continue
		}
		t, err := openTrash(r, false)
		if err != nil {
			if codeOf(err) != NotFound {
				return "", asError("restoring", id, err)
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
	return "", asError("restoring", id, NotFound)
}

func (f *FS) restore(r *root, t directory, id string) (string, error) {
	th, err := readThing(t, id)
	if err != nil {
		return "", err
	}
	path := filepath.Join(r.dir.Path, filepath.FromSlash(th.from))
	b, err := t.sub(id, 0)
	if err != nil {
		return "", err
	}
	defer b.close()
	if _, _, err := b.look(trashItem); err != nil {
		return "", err
	}
	err = f.seek("restoring", path, lastLink|missing, func(q place) error {
		switch {
		case q.rest == nil:
			return Exists
		case q.denied:
			return Denied
		case q.root.dir.Access&roots.Write == 0:
			return ReadOnly
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
		return f.hold(q, func(to directory, as string) error { return b.rename(trashItem, to, as, false) })
	})
	if err != nil {
		return "", err
	}
	b.remove(trashFrom, false)
	t.remove(id, true)
	return path, nil
}
