//go:build linux || darwin

package rootfs

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// dirFD is the descriptor of a directory, with the operations of a directory on one name in it.
type dirFD struct {
	fd   int
	list bool // it can be read
}

func (d dirFD) descriptor() int { return d.fd }

func (d dirFD) info() (fs.FileInfo, error) {
	fd, err := ignoringEINTR(func() (int, error) { return unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0) })
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	return f.Stat()
}

// reopen opens the directory itself for reading: the descriptor may be good for looking up only.
func (d dirFD) reopen() (int, error) {
	return ignoringEINTR(func() (int, error) {
		return unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
}

func (d dirFD) entries() ([]Entry, error) {
	if d.list {
		return readEntries(d.fd)
	}
	fd, err := d.reopen()
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return readEntries(fd)
}

func (d dirFD) create(name string, perm fs.FileMode) (*os.File, error) {
	fd, err := ignoringEINTR(func() (int, error) {
		return unix.Openat(d.fd, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(perm.Perm()))
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (d dirFD) mkdir(name string, perm fs.FileMode) error {
	return unix.Mkdirat(d.fd, name, uint32(perm.Perm()))
}

func (d dirFD) remove(name string, dir bool) error {
	flags := 0
	if dir {
		flags = unix.AT_REMOVEDIR
	}
	err := unix.Unlinkat(d.fd, name, flags)
	if err == unix.EPERM && !dir {
		// What some systems say of a directory.
		var st unix.Stat_t
		if unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return IsDirectory
		}
	}
	return err
}

func (d dirFD) rename(name string, to directory, as string, replace bool) error {
	t, ok := to.(interface{ descriptor() int })
	if !ok {
		return CrossDevice
	}
	if replace {
		return unix.Renameat(d.fd, name, t.descriptor(), as)
	}
	err := renameNoReplace(d.fd, name, t.descriptor(), as)
	if err != unix.EINVAL && err != unix.ENOSYS && err != unix.ENOTSUP {
		return err
	}
	return d.renameByLink(name, t.descriptor(), as)
}

// renameByLink renames where the file system has no renaming without replacing. For a directory there is a moment between
// the question and the renaming; an empty directory that comes in it is replaced.
func (d dirFD) renameByLink(name string, to int, as string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if err := unix.Linkat(d.fd, name, to, as, 0); err != nil {
			return err
		}
		err := unix.Unlinkat(d.fd, name, 0)
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
	return unix.Renameat(d.fd, name, to, as)
}

func (d dirFD) sync() error {
	fd, err := d.reopen()
	if err == nil {
		defer unix.Close(fd)
		err = unix.Fsync(fd)
	}
	return unsynced(err)
}

func (d dirFD) close() error { return unix.Close(d.fd) }

// asFile makes a file of the descriptor of a regular one that was opened without blocking. It blocks from now on: the runtime
// would wait in its poller for what does not block, and a file system in user space can hold that up, and with it the
// whole process.
func asFile(fd int, name string) (*os.File, error) {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, 0); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
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
