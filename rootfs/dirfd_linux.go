package rootfs

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

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

// birthOf says when what has a name in a directory was made, or what a descriptor is of when there is no name.
func birthOf(fd int, name string, _ *unix.Stat_t) time.Time {
	var x unix.Statx_t
	err := unix.Statx(fd, name, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &x)
	if err != nil || x.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}
	}
	return time.Unix(x.Btime.Sec, int64(x.Btime.Nsec))
}

func renameNoReplace(from int, name string, to int, as string) error {
	return unix.Renameat2(from, name, to, as, unix.RENAME_NOREPLACE)
}
