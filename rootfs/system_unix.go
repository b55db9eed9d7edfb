//go:build unix

package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/roots"
)

// openNonblock keeps the opening of a FIFO from waiting for its other end.
const openNonblock = syscall.O_NONBLOCK

// namesFold says whether names that differ in case are usually one file here.
const namesFold = runtime.GOOS == "darwin"

func device(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev)
	}
	return 0
}

// identify says which file it is that info describes. The path is not looked at.
func identify(_ string, info fs.FileInfo) roots.FileID {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return roots.FileID{Volume: uint64(st.Dev), Index: st.Ino}
	}
	return roots.FileID{}
}

// birthIn says when what is described was made: what package os says of a file does not tell everywhere.
func birthIn(fs.FileInfo) time.Time { return time.Time{} }

// sameFile knows also the infos that os.SameFile does not. Nil is no file.
func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return false
	}
	id := identify("", a)
	return id != roots.FileID{} && id == identify("", b)
}

// split cuts a path into its elements, "." and ".." kept, and says what it starts from: "/", or "" when relative.
func split(path string) (top string, elems []string) {
	if strings.HasPrefix(path, "/") {
		top = "/"
	}
	elems = make([]string, 0, strings.Count(path, "/")+1)
	for e := range strings.SplitSeq(path, "/") {
		if e != "" {
			elems = append(elems, e)
		}
	}
	return top, elems
}

// validName says whether an element can name something and names only that.
func validName(e string) bool { return !strings.Contains(e, "\x00") }

// identity is what tells one state of a file from another, beside its size and time.
func identity(info fs.FileInfo) [4]int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		sec, nsec := ctime(st)
		return [4]int64{int64(st.Dev), int64(st.Ino), sec, nsec}
	}
	return [4]int64{}
}

// linkCount says how many hard links a file has.
func linkCount(f *os.File) (uint64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	return uint64(st.Nlink), nil
}

var errLocked error = syscall.EWOULDBLOCK

// lock takes the lock of a file, which ends with the process at the latest, or says errLocked.
func lock(f *os.File) error {
	return control(f, func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
}

func control(f *os.File, do func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	if e := c.Control(func(fd uintptr) { err = do(int(fd)) }); e != nil {
		return e
	}
	return err
}

// keep gives a new file what an old one has: owner, attributes, permission bits.
func keep(f, old *os.File, was fs.FileInfo) error {
	perm := was.Mode().Perm()
	st, ok := was.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.ErrUnsupported
	}
	if f.Chown(int(st.Uid), int(st.Gid)) != nil && f.Chown(-1, int(st.Gid)) != nil && int(st.Gid) != gid(f) {
		perm &^= 0o070 &^ (perm & 0o007 << 3) // another group has no more than everybody
	}
	keepAttributes(f, old)
	err := f.Chmod(perm)
	if info, e := f.Stat(); e == nil && info.Mode().Perm() == perm {
		return nil // as it is with file systems that have one mode for all
	}
	return err
}

func gid(f *os.File) int {
	if info, err := f.Stat(); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			return int(st.Gid)
		}
	}
	return -1
}

// mayWrite says why this process may not write a file.
func mayWrite(f *os.File, info fs.FileInfo) error {
	if err := mayWriteByKernel(f); err == nil || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Permission
	}
	groups, _ := os.Getgroups()
	bit := fs.FileMode(0o002)
	switch {
	case os.Geteuid() == 0:
		return nil
	case os.Geteuid() == int(st.Uid):
		bit = 0o200
	case os.Getegid() == int(st.Gid), slices.Contains(groups, int(st.Gid)):
		bit = 0o020
	}
	if info.Mode()&bit == 0 {
		return Permission
	}
	return nil
}

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
