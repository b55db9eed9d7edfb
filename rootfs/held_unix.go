//go:build unix

package rootfs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// held is the descriptor of a directory with what can be done there with one name.
type held struct {
	fd   int
	list bool // it can be read
}

func (h held) descriptor() int { return h.fd }

func (h held) info() (fs.FileInfo, error) {
	fd, err := ignoringEINTR(func() (int, error) { return unix.FcntlInt(uintptr(h.fd), unix.F_DUPFD_CLOEXEC, 0) })
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	return f.Stat()
}

// reopen opens the directory itself for reading: the descriptor may be good for looking up only.
func (h held) reopen() (int, error) {
	return ignoringEINTR(func() (int, error) {
		return unix.Openat(h.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
}

func (h held) entries() ([]Entry, error) {
	if h.list {
		return readEntries(h.fd)
	}
	fd, err := h.reopen()
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return readEntries(fd)
}

func (h held) create(name string, perm fs.FileMode) (*os.File, error) {
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Openat(h.fd, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(perm.Perm()))
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (h held) mkdir(name string, perm fs.FileMode) error {
	return unix.Mkdirat(h.fd, name, uint32(perm.Perm()))
}

func (h held) remove(name string, dir bool) error {
	flags := 0
	if dir {
		flags = unix.AT_REMOVEDIR
	}
	err := unix.Unlinkat(h.fd, name, flags)
	if err == unix.EPERM && !dir {
		// What some systems say of a directory.
		var st unix.Stat_t
		if unix.Fstatat(h.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return IsDirectory
		}
	}
	return err
}

func (h held) rename(name string, to directory, as string, replace bool) error {
	t, ok := to.(interface{ descriptor() int })
	if !ok {
		return CrossDevice
	}
	if replace {
		return unix.Renameat(h.fd, name, t.descriptor(), as)
	}
	err := renameNoReplace(h.fd, name, t.descriptor(), as)
	if err != unix.EINVAL && err != unix.ENOSYS && err != unix.ENOTSUP {
		return err
	}
	return h.linkOver(name, t.descriptor(), as)
}

// linkOver renames where the file system has no renaming without replacing. For a directory there is a moment between
// the question and the renaming; an empty directory that comes in it is replaced.
func (h held) linkOver(name string, to int, as string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(h.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if err := unix.Linkat(h.fd, name, to, as, 0); err != nil {
			return err
		}
		err := unix.Unlinkat(h.fd, name, 0)
		if err != nil {
			unix.Unlinkat(to, as, 0) // it stays where it was
		}
		return err
	}
	switch err := unix.Fstatat(to, as, &st, unix.AT_SYMLINK_NOFOLLOW); err {
	case unix.ENOENT:
	case nil:
		return Exists
	default:
		return err
	}
	return unix.Renameat(h.fd, name, to, as)
}

func (h held) sync() error {
	fd, err := h.reopen()
	if err == nil {
		defer unix.Close(fd)
		err = unix.Fsync(fd)
	}
	return unsynced(err)
}

func (h held) close() error { return unix.Close(h.fd) }

// unsynced drops the errors of a directory that may not be read and of a file system that does not sync directories.
func unsynced(err error) error {
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

func syncRoot(r *os.Root) error {
	f, err := r.Open(".")
	if err == nil {
		defer f.Close()
		err = f.Sync()
	}
	return unsynced(err)
}

func ignoringEINTR(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if err != unix.EINTR {
			return n, err
		}
	}
}

func typeBits(mode uint32) fs.FileMode {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return 0
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFLNK:
		return fs.ModeSymlink
	case unix.S_IFIFO:
		return fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return fs.ModeSocket
	case unix.S_IFCHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		return fs.ModeDevice
	}
	return fs.ModeIrregular
}
