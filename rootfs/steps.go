//go:build linux || darwin

package rootfs

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stepDir is the directory by steps of one name each, none through a link, where the kernel cannot take a whole name.
type stepDir struct {
	dirFD
	device uint64
	mount  uint64 // under sameMount, where the system tells it
	how    how
}

func openSteps(name string, h how) (directory, error, bool) {
	fd, err := openTop(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}, true
	}
	d := &stepDir{dirFD: dirFD{fd: fd}, how: h & sameMount}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && kernelFS(fd) {
		err = SpecialFile
	}
	d.device, d.mount = uint64(st.Dev), mountOf(fd, "")
	if err != nil {
		d.close()
		return nil, err, true
	}
	return d, nil, true
}

// stat describes one name, and refuses what lies in another mount.
func (d *stepDir) stat(name string) (st unix.Stat_t, err error) {
	err = unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && d.how&sameMount != 0 && (uint64(st.Dev) != d.device || mountOf(d.fd, name) != d.mount) {
		err = Mount
	}
	return st, err
}

// openat opens one name of that kind. It looks before and after: there are systems where O_NOFOLLOW with O_DIRECTORY
// follows a link (gVisor), and what is not of the kind is better not opened at all.
func (d *stepDir) openat(name string, flags int, kind uint32) (fd int, st unix.Stat_t, err error) {
	before, err := d.stat(name)
	if err != nil {
		return -1, st, err
	}
	switch is := uint32(before.Mode) & unix.S_IFMT; {
	case is == unix.S_IFLNK:
		return -1, st, errLink
	case is == kind:
	case kind == unix.S_IFDIR:
		return -1, st, NotDirectory
	case is == unix.S_IFDIR:
		return -1, st, IsDirectory
	default:
		return -1, st, SpecialFile
	}
	fd, err = ignoringEINTR(func() (int, error) {
		return unix.Openat(d.fd, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	})
	switch err {
	case nil:
	case unix.ELOOP, unix.EMLINK, unix.ENOTDIR, unix.ENXIO:
		return -1, st, errLink // it is not what it was
	default:
		return -1, st, err
	}
	switch err = unix.Fstat(fd, &st); {
	case err != nil:
	case st.Dev != before.Dev || st.Ino != before.Ino || uint32(st.Mode)&unix.S_IFMT != kind:
		err = errLink
	case uint64(st.Dev) != d.device && kernelFS(fd):
		err = SpecialFile
	}
	if err != nil {
		unix.Close(fd)
		return -1, st, err
	}
	return fd, st, nil
}

// parent goes to the directory that name lies in. The caller closes it when it is another one than d.
func (d *stepDir) parent(name string) (in *stepDir, last string, err error) {
	dir, last := path.Split(name)
	if dir == "" {
		return d, last, nil
	}
	s, err := d.sub(dir[:len(dir)-1], 0)
	if err != nil {
		return nil, "", err
	}
	return s.(*stepDir), last, nil
}

func (d *stepDir) leave(in *stepDir) {
	if in != d {
		in.close()
	}
}

func (d *stepDir) look(name string) (fs.FileInfo, string, error) {
	in, last, err := d.parent(name)
	if err != nil {
		return nil, "", err
	}
	defer d.leave(in)
	st, err := in.stat(last)
	if err != nil {
		return nil, "", err
	}
	info := statInfo{last, &st}
	switch uint32(st.Mode) & unix.S_IFMT {
	case unix.S_IFLNK:
		buf := make([]byte, maxPath)
		n, err := unix.Readlinkat(in.fd, last, buf)
		switch {
		case err == unix.EINVAL || err == nil && n == 0:
			return nil, "", errLink // it is none any more
		case err != nil:
			return nil, "", err
		}
		return info, string(buf[:n]), nil
	case unix.S_IFDIR:
		if uint64(st.Dev) != in.device {
			// A directory of another file system: it has to be opened to be asked which. Files are asked when opened.
			s, err := in.sub(last, 0)
			if err != nil {
				return nil, "", err
			}
			s.close()
		}
	}
	return info, "", nil
}

func (d *stepDir) birth(name string) (time.Time, error) {
	in, last, err := d.parent(name)
	if err != nil {
		return time.Time{}, err
	}
	defer d.leave(in)
	st, err := in.stat(last)
	switch {
	case err != nil:
		return time.Time{}, err
	case uint32(st.Mode)&unix.S_IFMT == unix.S_IFLNK:
		return time.Time{}, errLink
	}
	return birthOf(in.fd, last, &st), nil
}

func (d *stepDir) open(name string) (*os.File, error) {
	in, last, err := d.parent(name)
	if err != nil {
		return nil, err
	}
	defer d.leave(in)
	fd, _, err := in.openat(last, unix.O_RDONLY, unix.S_IFREG)
	if err != nil {
		return nil, err
	}
	return asFile(fd, name)
}

func (d *stepDir) sub(name string, h how) (directory, error) {
	at := &stepDir{d.dirFD, d.device, d.mount, d.how | h&sameMount}
	if at.how&^d.how != 0 {
		at.mount = mountOf(d.fd, "")
	}
	for {
		e, rest, _ := strings.Cut(name, "/")
		flags := searchOnly
		if rest == "" && h&toList != 0 {
			flags = unix.O_RDONLY | unix.O_DIRECTORY
		}
		fd, st, err := at.openat(e, flags, unix.S_IFDIR)
		if at.fd != d.fd {
			at.close()
		}
		if err != nil {
			return nil, err
		}
		at = &stepDir{dirFD{fd, rest == "" && h&toList != 0}, uint64(st.Dev), at.mount, at.how}
		if rest == "" {
			return at, nil
		}
		name = rest
	}
}

func (d *stepDir) strict() bool { return true }

// statInfo is what fstatat says.
type statInfo struct {
	name string
	st   *unix.Stat_t
}

func (i statInfo) Name() string       { return i.name }
func (i statInfo) Size() int64        { return i.st.Size }
func (i statInfo) IsDir() bool        { return i.Mode().IsDir() }
func (i statInfo) ModTime() time.Time { return time.Unix(i.st.Mtim.Unix()) }

// Sys gives what package os would: the two types are made from the same one of the system.
func (i statInfo) Sys() any { return (*syscall.Stat_t)(unsafe.Pointer(i.st)) }

func (i statInfo) Mode() fs.FileMode {
	mode := uint32(i.st.Mode)
	m := fs.FileMode(mode&0o777) | typeBits(mode)
	if mode&unix.S_ISUID != 0 {
		m |= fs.ModeSetuid
	}
	if mode&unix.S_ISGID != 0 {
		m |= fs.ModeSetgid
	}
	if mode&unix.S_ISVTX != 0 {
		m |= fs.ModeSticky
	}
	return m
}
