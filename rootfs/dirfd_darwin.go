package rootfs

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// readEntries takes the types from the directory itself. Where that leaves one out, os.File.ReadDir would look it up by
// path: the file gets a name that no path has, and then each name is asked for.
func readEntries(fd int) ([]Entry, error) {
	dup, err := ignoringEINTR(func() (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0) })
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(dup), "\x00")
	defer f.Close()
	list, err := f.ReadDir(-1)
	if err == nil {
		entries := make([]Entry, len(list))
		for i, e := range list {
			entries[i] = Entry{e.Name(), e.Type()}
		}
		return entries, nil
	}
	if !errors.Is(err, unix.EINVAL) {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	var entries []Entry
	for _, name := range names {
		var st unix.Stat_t
		if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			entries = append(entries, Entry{name, typeBits(uint32(st.Mode))})
		}
	}
	return entries, err
}

// birthOf says when what is described was made.
func birthOf(_ int, _ string, st *unix.Stat_t) time.Time { return time.Unix(st.Btim.Unix()) }

func renameNoReplace(from int, name string, to int, as string) error {
	return unix.RenameatxNp(from, name, to, as, unix.RENAME_EXCL)
}
