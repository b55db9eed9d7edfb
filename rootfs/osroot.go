package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"time"
)

// osRootDir is the directory for every system, by os.Root.
type osRootDir struct {
	root    *os.Root // it
	top     *os.Root // the one that it was opened from, at first
	at      string   // where it was beneath top
	device  uint64
	how     how
	escapes error // what os.Root says, and does not export, when a link leads out
}

func openOSRoot(name string, h how) (directory, error) {
	r, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	_, err = r.Lstat("..")
	d := &osRootDir{root: r, top: r, at: ".", how: h & sameMount, escapes: errors.Unwrap(err)}
	info, err := r.Lstat(".")
	if err == nil {
		d.device = device(info)
		err = d.refuseKernel()
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return d, nil
}

// refuseKernel asks for the file system.
func (d *osRootDir) refuseKernel() error {
	f, err := d.root.Open(".")
	if err != nil {
		return d.errLinked(err)
	}
	defer f.Close()
	if ofKernel(f) {
		return SpecialFile
	}
	return nil
}

// errLinked turns an escape into errLink: names have no links, so one has just come.
func (d *osRootDir) errLinked(err error) error {
	if d.escapes != nil && errors.Is(err, d.escapes) {
		return errLink
	}
	return err
}

func (d *osRootDir) look(name string) (fs.FileInfo, string, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return nil, "", d.errLinked(err)
	}
	if isLink(info.Mode()) {
		link, err := d.root.Readlink(name)
		return info, link, d.errLinked(err)
	}
	if device(info) != d.device && d.how&sameMount != 0 {
		return nil, "", Mount
	}
	if device(info) != d.device && info.IsDir() {
		// A directory of another file system: it has to be opened to be asked which. Files are asked when opened.
		s, err := d.sub(name, 0)
		if err != nil {
			return nil, "", err
		}
		s.close()
	}
	return info, "", nil
}

func (d *osRootDir) birth(name string) (time.Time, error) {
	info, err := d.root.Lstat(name)
	switch {
	case err != nil:
		return time.Time{}, d.errLinked(err)
	case isLink(info.Mode()):
		return time.Time{}, errLink
	}
	return birthIn(info), nil
}

func (d *osRootDir) open(name string) (*os.File, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return nil, d.errLinked(err)
	}
	// Nothing but these is opened; what changes between the two calls is seen afterwards, and opening never blocks.
	if err := regular(info.Mode()); err != nil {
		return nil, err
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, d.errLinked(err)
	}
	if info, err = f.Stat(); err == nil {
		err = regular(info.Mode())
	}
	if err == nil && device(info) != d.device {
		switch {
		case d.how&sameMount != 0:
			err = Mount
		case ofKernel(f):
			err = SpecialFile
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (d *osRootDir) sub(name string, h how) (directory, error) {
	info, err := d.root.Lstat(name)
	switch {
	case err != nil:
		return nil, d.errLinked(err)
	case isLink(info.Mode()):
		return nil, errLink
	case !info.IsDir():
		return nil, NotDirectory
	}
	r, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, d.errLinked(err)
	}
	s := &osRootDir{root: r, top: d.top, at: path.Join(d.at, name), device: d.device, how: d.how | h&sameMount, escapes: d.escapes}
	if info, err = r.Lstat("."); err == nil && device(info) != d.device {
		if s.how&sameMount != 0 {
			err = Mount
		} else {
			s.device = device(info)
			err = s.refuseKernel()
		}
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return s, nil
}

func (d *osRootDir) info() (fs.FileInfo, error) { return d.root.Lstat(".") }

func (d *osRootDir) entries() ([]Entry, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	entries := make([]Entry, len(list))
	for i, e := range list {
		entries[i] = Entry{e.Name(), e.Type()}
	}
	return entries, err
}

func (d *osRootDir) create(name string, perm fs.FileMode) (*os.File, error) {
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	return f, d.errLinked(err)
}

func (d *osRootDir) mkdir(name string, perm fs.FileMode) error {
	return d.errLinked(d.root.Mkdir(name, perm))
}

func (d *osRootDir) remove(name string, dir bool) error {
	info, err := d.root.Lstat(name)
	switch {
	case err != nil:
		return d.errLinked(err)
	case dir && !info.IsDir():
		return NotDirectory
	case !dir && info.IsDir():
		return IsDirectory
	}
	return d.errLinked(d.root.Remove(name))
}

func (d *osRootDir) rename(name string, to directory, as string, replace bool) error {
	t, ok := to.(*osRootDir)
	if !ok || t.top != d.top {
		return CrossDevice // os.Root cannot
	}
	if t == d && replace {
		return d.errLinked(d.root.Rename(name, as))
	}
	from, into := path.Join(d.at, name), path.Join(t.at, as)
	if replace {
		return d.errLinked(d.top.Rename(from, into))
	}
	info, err := d.top.Lstat(from)
	if err != nil {
		return d.errLinked(err)
	}
	if !info.IsDir() {
		switch err := d.top.Link(from, into); {
		case err == nil:
			err := d.root.Remove(name)
			if now, e := t.root.Lstat(as); err != nil && e == nil && sameFile(info, now) {
				t.root.Remove(as) // it stays where it was
			}
			return d.errLinked(err)
		case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist), errors.Is(err, d.escapes):
			return d.errLinked(err)
		}
		// A file system without hard links.
	}
	if _, err := d.top.Lstat(into); err == nil {
		return Exists
	}
	return d.errLinked(d.top.Rename(from, into))
}

func (d *osRootDir) sync() error { return syncRoot(d.root) }

func (d *osRootDir) strict() bool { return false }
func (d *osRootDir) close() error { return d.root.Close() }
