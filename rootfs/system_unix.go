//go:build unix

package rootfs

import (
	"io/fs"
	"runtime"
	"strings"
	"syscall"

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

// split cuts a path into its elements, "." and ".." kept, and says what it starts from: "/", or "" when relative.
func split(path string) (top string, elems []string) {
	if strings.HasPrefix(path, "/") {
		top = "/"
	}
	for e := range strings.SplitSeq(path, "/") {
		if e != "" {
			elems = append(elems, e)
		}
	}
	return top, elems
}

// validName says whether an element can name something and names only that.
func validName(e string) bool { return !strings.Contains(e, "\x00") }
