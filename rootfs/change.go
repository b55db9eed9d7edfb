package rootfs

import (
	"io/fs"
	"slices"
	"strings"
)

// maxLevels is how many directories one MkdirAll makes at most.
const maxLevels = 256

// MkdirAll makes the directory at path and all that are missing on the way. A directory that is there already is fine; a
// file there is Exists, one on the way NotDirectory.
func (f *FS) MkdirAll(path string) error {
	return f.reach("making directory", path, missing, func(p target) error {
		switch err := f.may(ToMake, p); {
		case err != nil:
			return err
		case p.rest == nil && p.info != nil && !p.info.IsDir():
			return Exists
		case p.rest == nil:
			return nil
		case p.root.only != "":
			return NotDirectory
		case len(p.rest) > maxLevels:
			return InvalidPath
		}
		return f.makeAll(p)
	})
}

func (f *FS) makeAll(p target) error {
	first := p
	first.rest = p.rest[:1]
	return f.hold(first, func(d directory, _ string) error {
		made := func() error { return nil }
		defer func() { made() }()
		for i, e := range p.rest {
			switch err := d.mkdir(e, 0o777); {
			case codeOf(err) == Exists:
				// Another has come first.
			case err != nil:
				return err
			}
			s, err := f.enter(p.root, d, e, 0)
			if err == NotDirectory && i == len(p.rest)-1 {
				err = Exists
			}
			if err != nil {
				return err
			}
			made()
			d, made = s, s.close
		}
		return nil
	})
}

// Remove removes a file, a link itself, or an empty directory.
func (f *FS) Remove(path string) error {
	return f.reach("removing", path, lastLink, func(p target) error {
		return f.take(p, func(d directory, name string, info fs.FileInfo) error {
			err := d.remove(name, info.IsDir())
			if codeOf(err) != NotEmpty {
				return err
			}
			s, err := f.enter(p.root, d, name, toList)
			if err != nil {
				return err
			}
			defer s.close()
			entries, err := s.entries()
			if err != nil {
				return err
			}
			cleanTemporary(s, entries)
			return d.remove(name, true)
		})
	})
}

// take gives do what may be moved away or removed.
func (f *FS) take(p target, do func(d directory, name string, info fs.FileInfo) error) error {
	if err := f.may(ToTake, p); err != nil {
		return err
	}
	return f.hold(p, func(d directory, name string) error {
		info, _, err := d.look(name)
		if err != nil {
			return err
		}
		if f.holdsRoot(p, info) {
			return IsRoot
		}
		return do(d, name, info)
	})
}

// holdsRoot says whether a target is a root, or holds one, by its name or as the same directory.
func (f *FS) holdsRoot(p target, info fs.FileInfo) bool {
	here := p.position()
	return slices.ContainsFunc(f.roots, func(r *root) bool {
		return r.only == "" && sameFile(info, r.is) ||
			slices.ContainsFunc(r.spellings, func(s position) bool { return f.within(s, here) })
	})
}

// within reports whether p is q or lies beneath it, in any letter case where names fold.
func (f *FS) within(p, q position) bool {
	same := func(a, b string) bool { return a == b || f.options.fold && strings.EqualFold(a, b) }
	return same(p.top, q.top) && len(p.elems) >= len(q.elems) && slices.EqualFunc(p.elems[:len(q.elems)], q.elems, same)
}

// Move gives a file, a link itself, or a directory another path. Nothing is replaced: Exists. It never copies, so between
// two file systems it is CrossDevice. Both roots' rights must allow it. Under Options.Deny a directory is searched first,
// and refused with Denied when it holds such a name, here or there, or with Budget when it has more than a million entries.
func (f *FS) Move(from, to string) error {
	return f.reach("moving", from, lastLink, func(p target) error {
		return f.take(p, func(d directory, name string, info fs.FileInfo) error {
			return f.seek("moving", to, lastLink|missing, func(q target) error {
				return f.move(p, d, name, info, q)
			})
		})
	})
}

func (f *FS) move(p target, d directory, name string, info fs.FileInfo, q target) error {
	from, into := p.position(), q.position()
	switch err := f.may(ToPut, q); {
	case q.rest == nil && !(q.info != nil && sameFile(info, q.info) && f.within(from, into) && !from.equal(into)):
		return Exists // in other letters it may be the same
	case err != nil:
		return err
	case info.IsDir() && len(into.elems) > len(from.elems) && f.within(into, from):
		return IntoItself
	case len(q.rest) > 1:
		return NotFound
	case q.slash && !info.IsDir():
		return NotDirectory
	}
	if info.IsDir() {
		if err := f.refuseDenied(p, d, name, q); err != nil {
			return err
		}
	}
	return f.hold(q, func(to directory, as string) error {
		return rename(d, name, to, as, q.rest == nil)
	})
}

// rename waits for the last step of a Replace, which looks at what has the name and then replaces it.
func rename(d directory, name string, to directory, as string, replace bool) error {
	unlock, err := lockNames(d, name, to, as)
	if err != nil {
		return err
	}
	defer unlock()
	return d.rename(name, to, as, replace)
}

// maxScanned is how many entries of a directory are looked at before it is moved.
const maxScanned = 1 << 20

// refuseDenied looks beneath a directory that is to be moved for names that are denied, where they are or where they will
// be: a pattern may hold only there.
func (f *FS) refuseDenied(p target, d directory, name string, q target) error {
	if f.options.Deny == nil {
		return nil
	}
	from := strings.Split(p.name, "/")
	var into []string
	if q.root != nil {
		into = append(strings.Split(q.name, "/"), q.rest...)
		if q.name == "." {
			into = into[1:]
		}
	}
	return f.scan(p.root, d, name, 0, func(_ directory, beneath []string, _ Entry) error {
		if f.denied(p.root, slices.Concat(from, beneath)) || q.root != nil && f.denied(q.root, slices.Concat(into, beneath)) {
			return Denied
		}
		return nil
	})
}

// scan calls each for what is beneath a directory, with the directory that holds it, in no order; links are not entered.
func (f *FS) scan(r *root, d directory, name string, h how, each func(in directory, beneath []string, e Entry) error) error {
	seen := 0
	for todo := [][]string{nil}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		path := join(append([]string{name}, at...))
		if len(path) >= maxPath { // with the byte that ends it
			return Budget
		}
		s, err := d.sub(path, toList|h)
		if err != nil {
			return err
		}
		entries, err := s.entries()
		for _, e := range entries {
			if err != nil {
				break
			}
			if seen++; seen > maxScanned {
				err = Budget
				break
			}
			beneath := append(slices.Clip(at), e.Name)
			if err = each(s, beneath, e); err == nil && e.Type.IsDir() {
				todo = append(todo, beneath)
			}
		}
		s.close()
		if err != nil {
			return err
		}
	}
	return nil
}
