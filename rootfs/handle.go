package rootfs

import (
	"errors"
	"io/fs"
	"os"
)

// handle is one directory, held open, and the only way to what is beneath it. A name is "." or clean and relative, with
// slashes. No method leaves the directory. Methods are safe for concurrent use until close.
type handle interface {
	// look describes what is at name and, when that is a link, says its text.
	look(name string) (info fs.FileInfo, link string, err error)
	// open opens what is at name for reading, without blocking. A handle that is strict answers errLink when any
	// element of name is a link; another one may follow a link that stays beneath the directory.
	open(name string, directory bool) (*os.File, error)
	// entries lists what is in the directory at name, in no order. It treats links as open does.
	entries(name string) ([]Entry, error)
	strict() bool
	close() error
}

// errLink is a strict handle's answer to a name with a link in it.
const errLink Code = "link"

// openHandle opens the directory at path, which has no links.
func openHandle(path string, portable bool) (handle, error) {
	if !portable {
		if h, err, ok := openKernel(path); ok {
			return h, err
		}
	}
	r, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	_, err = r.Lstat("..")
	h := &osRoot{root: r, escapes: errors.Unwrap(err)}
	f, err := h.openFile(".") // no device is known yet: it is asked for its file system
	if err != nil {
		r.Close()
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		r.Close()
		return nil, err
	}
	h.device = device(info)
	return h, nil
}

// osRoot is the handle for every system, by os.Root.
type osRoot struct {
	root    *os.Root
	device  uint64
	escapes error // what os.Root says, and does not export, when a link leads out
}

// errLinked turns an escape into errLink: names have no links, so one has just come.
func (h *osRoot) errLinked(err error) error {
	if h.escapes != nil && errors.Is(err, h.escapes) {
		return errLink
	}
	return err
}

func (h *osRoot) look(name string) (fs.FileInfo, string, error) {
	info, err := h.root.Lstat(name)
	if err != nil {
		return nil, "", h.errLinked(err)
	}
	if isLink(info.Mode()) {
		link, err := h.root.Readlink(name)
		return info, link, h.errLinked(err)
	}
	if device(info) != h.device && info.IsDir() {
		// A directory of another file system: it has to be opened to be asked which. Files are asked when opened.
		f, err := h.openFile(name)
		if err != nil {
			return nil, "", err
		}
		f.Close()
	}
	return info, "", nil
}

func (h *osRoot) open(name string, directory bool) (*os.File, error) {
	info, err := h.root.Lstat(name)
	if err != nil {
		return nil, h.errLinked(err)
	}
	// Nothing but these is opened; what changes between the two calls is seen afterwards, and opening never blocks.
	if err := want(info.Mode(), directory); err != nil {
		return nil, err
	}
	f, err := h.openFile(name)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = want(info.Mode(), directory)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (h *osRoot) openFile(name string) (*os.File, error) {
	f, err := h.root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, h.errLinked(err)
	}
	info, err := f.Stat()
	if err == nil && device(info) != h.device && ofKernel(f) {
		err = SpecialFile
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (h *osRoot) entries(name string) ([]Entry, error) {
	f, err := h.open(name, true)
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

func (h *osRoot) strict() bool { return false }
func (h *osRoot) close() error { return h.root.Close() }

// isLink also says yes to a Windows junction.
func isLink(m fs.FileMode) bool { return m&(fs.ModeSymlink|fs.ModeIrregular) != 0 }

// want says why something of this mode is not the file, or the directory, that was wanted.
func want(m fs.FileMode, directory bool) error {
	switch {
	case directory && !m.IsDir():
		return NotDirectory
	case directory:
		return nil
	case m.IsDir():
		return IsDirectory
	case isLink(m):
		return errLink
	case !m.IsRegular():
		return SpecialFile
	}
	return nil
}
