package rootfs

import (
	"io/fs"
	"os"
	"time"
)

// directory is one directory, held open: the only way to what is in it and beneath it. No method leaves it. A name of
// look, open and sub is "." or clean and relative, with slashes; a name of the other methods is one element. Methods are
// safe for concurrent use until close, except entries.
//
// A directory that is strict answers errLink when any element of a name is a link, and sees to it that what it holds open
// is beneath it; another one may follow a link that stays beneath it.
type directory interface {
	// look describes what is at name and, when that is a link, says its text.
	look(name string) (info fs.FileInfo, link string, err error)
	// birth says when what is at name was made, the zero time when the system does not tell. A link at name is errLink.
	birth(name string) (time.Time, error)
	// open opens the regular file at name for reading, without blocking.
	open(name string) (*os.File, error)
	// sub opens the directory at name.
	sub(name string, h how) (directory, error)
	// info describes the directory itself.
	info() (fs.FileInfo, error)
	// entries lists the directory in no order, with the types that the directory itself tells. It may be called once on
	// a directory that was opened toList; it is slower on another.
	entries() ([]Entry, error)
	// create makes an empty regular file, opened for reading and writing.
	create(name string, perm fs.FileMode) (*os.File, error)
	mkdir(name string, perm fs.FileMode) error
	// rename moves what has a name, a link itself, into a directory of the same kind. What has the other name is
	// replaced, if replace is set, or else is Exists.
	rename(name string, to directory, as string, replace bool) error
	// remove takes away a directory that is empty, or what is not a directory.
	remove(name string, dir bool) error
	// sync waits until the names in it are on the disk.
	sync() error
	strict() bool
	close() error
}

// how says what a directory is opened for.
type how uint8

const (
	// toList: the entries will be read.
	toList how = 1 << iota
	// sameMount: it, and what is opened from it, must lie in the mount of the directory it is opened from.
	sameMount
)

// errLink is a strict directory's answer to a name with a link in it, or to one that changes while it is looked for.
const errLink Code = "link"

// implementation is a way to hold a directory.
type implementation uint8

const (
	best   implementation = iota // of those that this system has
	kernel                       // openat2, on Linux
	steps                        // one name after the other, on Linux and macOS
	osRoot                       // os.Root, on every system
)

// openDirectory opens the directory at path, which has no links.
func openDirectory(path string, h how, by implementation) (directory, error) {
	if by == best && onlyOSRoot {
		by = osRoot
	}
	if by == best || by == kernel {
		if d, err, ok := openKernel(path, h); ok {
			return d, err
		}
	}
	if by == best || by == steps {
		if d, err, ok := openSteps(path, h); ok {
			return d, err
		}
	}
	return openOSRoot(path, h)
}

// isLink also says yes to a Windows junction.
func isLink(m fs.FileMode) bool { return m&(fs.ModeSymlink|fs.ModeIrregular) != 0 }

// regular says why something of this mode is not a regular file.
func regular(m fs.FileMode) error {
	switch {
	case m.IsDir():
		return IsDirectory
	case isLink(m):
		return errLink
	case !m.IsRegular():
		return SpecialFile
	}
	return nil
}
