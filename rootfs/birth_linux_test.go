package rootfs

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/roots"
)

// When something was made is told of whatever it is, and stays what it was when its metadata change.
func TestBirth(t *testing.T) {
	w := tree(t, map[string]string{"R/f": "text", "R/d/in": "text", "R/link": "->d", "R/out": "->../S", "S/f": ""})
	if err := syscall.Mkfifo(w+"/R/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(w+"/R/d", 0o700); err != nil {
		t.Fatal(err)
	}
	everyOne(t, func(t *testing.T, open func(*testing.T, Options, ...roots.Dir) *FS) {
		f := open(t, Options{}, dir(t, w+"/R", roots.ReadOnly))
		for path, at := range map[string]string{".": "R", "f": "R/f", "d": "R/d", "link": "R/d", "link/in": "R/d/in", "fifo": "R/fifo"} {
			var x unix.Statx_t
			if err := unix.Statx(unix.AT_FDCWD, w+"/"+at, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &x); err != nil {
				t.Fatal(err)
			}
			want := time.Unix(x.Btime.Sec, int64(x.Btime.Nsec))
			if x.Mask&unix.STATX_BTIME == 0 || f.options.by == osRoot { // not told by the file system, or not by package os
				want = time.Time{}
			}
			if got, err := f.Birth(path); err != nil || !got.Equal(want) {
				t.Errorf("Birth(%q) = %v, %v, want %v", path, got, err, want)
			}
		}
		if at, err := f.Birth("out/f"); !errors.Is(err, OutsideRoots) || !at.IsZero() {
			t.Errorf("outside: %v, %v", at, err)
		}
	})
}
