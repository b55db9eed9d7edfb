package rootfs

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

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

// beneathKernel is the directory by openat2.
type beneathKernel struct {
	held
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
	return &beneathKernel{held{fd: fd}, st.Dev, resolution(beneath, h)}, nil, true
}

func resolution(resolve uint64, h how) uint64 {
	if h&sameMount != 0 {
		resolve |= unix.RESOLVE_NO_XDEV
	}
	return resolve
}

// openat opens name and refuses what lies in a kernel file system.
func (d *beneathKernel) openat(name string, flags, resolve uint64) (fd int, st unix.Stat_t, err error) {
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

func (d *beneathKernel) look(name string) (fs.FileInfo, string, error) {
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

func (d *beneathKernel) open(name string) (*os.File, error) {
	fd, st, err := d.openat(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, d.resolve)
	if err != nil {
		return nil, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return os.NewFile(uintptr(fd), name), nil
	case unix.S_IFDIR:
		err = IsDirectory
	default:
		err = SpecialFile
	}
	unix.Close(fd)
	return nil, err
}

func (d *beneathKernel) sub(name string, h how) (directory, error) {
	flags, list := uint64(unix.O_PATH|unix.O_DIRECTORY), h&toList != 0
	if list {
		flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_DIRECTORY
	}
	resolve := resolution(d.resolve, h)
	fd, st, err := d.openat(name, flags, resolve)
	if err != nil {
		return nil, err
	}
	return &beneathKernel{held{fd, list}, st.Dev, resolve}, nil
}

func (d *beneathKernel) strict() bool { return true }

// listBuffers are for reading directories.
var listBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// readEntries takes the types from the directory itself: os.File.ReadDir would look up by path what has none there.
func readEntries(fd int) ([]Entry, error) {
	buf := listBuffers.Get().(*[32 << 10]byte)
	defer listBuffers.Put(buf)
	var list []Entry
	for {
		n, err := unix.Getdents(fd, buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return list, err
		}
		list = appendEntries(list, fd, buf[:n])
	}
}

// appendEntries reads records of struct linux_dirent64. Their names share one string: most directories are read only to
// see what is in them.
func appendEntries(list []Entry, dir int, b []byte) []Entry {
	count, size := 0, 0
	for rest := b; len(rest) > 0; count++ {
		name, _, after := direntOf(rest)
		size, rest = size+len(name), after
	}
	list = slices.Grow(list, count)
	var names strings.Builder
	names.Grow(size)
	for len(b) > 0 {
		name, kind, after := direntOf(b)
		b = after
		if string(name) == "." || string(name) == ".." {
			continue
		}
		names.Write(name)
		s := names.String()
		s = s[len(s)-len(name):]
		mode := typeBits(uint32(kind) << 12)
		if kind == unix.DT_UNKNOWN {
			var err error
			if mode, err = lookMode(dir, s); err != nil {
				continue // it went away
			}
		}
		list = append(list, Entry{s, mode})
	}
	return list
}

// direntOf cuts the first record off: inode (8 bytes), offset (8), record length (2), type (1), name.
func direntOf(b []byte) (name []byte, kind byte, rest []byte) {
	n := binary.NativeEndian.Uint16(b[16:])
	name = b[19:n]
	return name[:bytes.IndexByte(name, 0)], b[18], b[n:]
}

// lookMode asks for the type where the file system leaves it out.
func lookMode(dir int, name string) (fs.FileMode, error) {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return typeBits(st.Mode), err
}

func renameNoReplace(from int, name string, to int, as string) error {
	return unix.Renameat2(from, name, to, as, unix.RENAME_NOREPLACE)
}

// ofKernel says whether f lies in a file system that shows the kernel's or a process's insides.
func ofKernel(f *os.File) bool {
	yes := true // not to be asked: refuse
	if c, err := f.SyscallConn(); err == nil {
		c.Control(func(fd uintptr) { yes = kernelFS(int(fd)) })
	}
	return yes
}

func kernelFS(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) != nil || kernelMagic[uint32(st.Type)]
}

func kernelFSPath(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) != nil || kernelMagic[uint32(st.Type)]
}

// kernelMagic does not hold devtmpfs, which calls itself tmpfs: what is dangerous there are devices, which are refused.
var kernelMagic = map[uint32]bool{
	unix.AAFS_MAGIC:            true,
	unix.BINDERFS_SUPER_MAGIC:  true,
	unix.BINFMTFS_MAGIC:        true,
	unix.BPF_FS_MAGIC:          true,
	unix.CGROUP2_SUPER_MAGIC:   true,
	unix.CGROUP_SUPER_MAGIC:    true,
	unix.DEBUGFS_MAGIC:         true,
	unix.DEVPTS_SUPER_MAGIC:    true,
	unix.EFIVARFS_MAGIC:        true,
	unix.NSFS_MAGIC:            true,
	unix.OPENPROM_SUPER_MAGIC:  true,
	unix.PID_FS_MAGIC:          true,
	unix.PROC_SUPER_MAGIC:      true,
	unix.PSTOREFS_MAGIC:        true,
	unix.RDTGROUP_SUPER_MAGIC:  true,
	unix.SECURITYFS_MAGIC:      true,
	unix.SELINUX_MAGIC:         true,
	unix.SMACK_MAGIC:           true,
	unix.SYSFS_MAGIC:           true,
	unix.TRACEFS_MAGIC:         true,
	unix.USBDEVICE_SUPER_MAGIC: true,
	unix.XENFS_SUPER_MAGIC:     true,
	configfsMagic:              true,
	fusectlMagic:               true,
	rpcPipefsMagic:             true,
}

// Not in x/sys.
const (
	configfsMagic  = 0x62656570
	fusectlMagic   = 0x65735543
	rpcPipefsMagic = 0x67596969
)
