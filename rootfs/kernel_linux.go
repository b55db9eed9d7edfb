package rootfs

import (
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
	// retries of an open that the kernel could not finish because of renames elsewhere (measured: two at most).
	retries = 128
)

// kernelCan says whether openat2 is there: not on kernels before 5.6, not under some container filters.
var kernelCan = sync.OnceValue(func() bool {
	fd, err := openat2(unix.AT_FDCWD, ".", unix.O_PATH|unix.O_DIRECTORY, beneath)
	if err != nil {
		return err != unix.ENOSYS && err != unix.EPERM && err != unix.E2BIG && err != unix.EINVAL
	}
	unix.Close(fd)
	return true
})

func openat2(dir int, name string, flags, resolve uint64) (fd int, err error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: resolve}
	for range retries {
		fd, err = unix.Openat2(dir, name, &how)
		if err != unix.EAGAIN && err != unix.EINTR {
			return fd, err
		}
	}
	return fd, errLink
}

// kernelDir is the directory by openat2.
type kernelDir struct {
	dirFD
	device  uint64
	resolve uint64
}

func openKernel(path string, h how) (d directory, err error, ok bool) {
	if !kernelCan() {
		return nil, nil, false
	}
	fd, err := openat2(unix.AT_FDCWD, path, unix.O_PATH|unix.O_DIRECTORY, unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}, true
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}, true
	}
	if kernelFS(fd) {
		unix.Close(fd)
		return nil, SpecialFile, true
	}
	return &kernelDir{dirFD{fd: fd}, st.Dev, resolution(beneath, h)}, nil, true
}

func resolution(resolve uint64, h how) uint64 {
	if h&sameMount != 0 {
		resolve |= unix.RESOLVE_NO_XDEV
	}
	return resolve
}

// openat opens name and refuses what lies in a kernel file system.
func (d *kernelDir) openat(name string, flags, resolve uint64) (fd int, st unix.Stat_t, err error) {
	fd, err = openat2(d.fd, name, flags, resolve)
	switch err {
	case nil:
	case unix.ELOOP:
		return -1, st, errLink
	case unix.EXDEV:
		if resolve&unix.RESOLVE_NO_XDEV != 0 {
			return -1, st, Mount
		}
		return -1, st, errLink // names are clean: the kernel says this when a directory is moved out while it walks through
	default:
		return -1, st, err
	}
	if err = unix.Fstat(fd, &st); err == nil && st.Dev != d.device && kernelFS(fd) {
		err = SpecialFile
	}
	if err != nil {
		unix.Close(fd)
		return -1, st, err
	}
	return fd, st, nil
}

func (d *kernelDir) look(name string) (fs.FileInfo, string, error) {
	fd, st, err := d.openat(name, unix.O_PATH|unix.O_NOFOLLOW, d.resolve)
	if err != nil {
		return nil, "", err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	info, err := f.Stat()
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return info, "", err
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return nil, "", err
	}
	return info, string(buf[:n]), nil
}

func (d *kernelDir) birth(name string) (time.Time, error) {
	fd, st, err := d.openat(name, unix.O_PATH|unix.O_NOFOLLOW, d.resolve)
	if err != nil {
		return time.Time{}, err
	}
	defer unix.Close(fd)
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return time.Time{}, errLink
	}
	return birthOf(fd, "", &st), nil
}

func (d *kernelDir) open(name string) (*os.File, error) {
	fd, st, err := d.openat(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, d.resolve)
	if err != nil {
		return nil, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return asFile(fd, name)
	case unix.S_IFDIR:
		err = IsDirectory
	default:
		err = SpecialFile
	}
	unix.Close(fd)
	return nil, err
}

func (d *kernelDir) sub(name string, h how) (directory, error) {
	flags, list := uint64(unix.O_PATH|unix.O_DIRECTORY), h&toList != 0
	if list {
		flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_DIRECTORY
	}
	resolve := resolution(d.resolve, h)
	fd, st, err := d.openat(name, flags, resolve)
	if err != nil {
		return nil, err
	}
	return &kernelDir{dirFD{fd, list}, st.Dev, resolve}, nil
}

func (d *kernelDir) strict() bool { return true }
