package fsserver

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/rootfs"
)

// What the system refuses has the name that the system has for it, and both names where there are two: a disk that is full or
// read-only is not a permission that can be given.
func TestWhatTheSystemRefuses(t *testing.T) {
	inEveryVariant(t, variants[:1], func(t *testing.T, _ variant) {
		c := newTrial(t, map[string]string{"R/tiny/": "", "R/ro/f": "text", "R/m/": "", "R/holds/m/": "", "R/over/": "", "lower/d/f": "text", "layers/": ""}, rootfs.Options{})
		for _, m := range [][4]string{
			{"$W/R/ro", "$W/R/ro", "", ""},
			{"none", "$W/R/m", "tmpfs", ""},
			{"none", "$W/R/holds/m", "tmpfs", ""},
			{"none", "$W/R/tiny", "tmpfs", "size=64k"},
			{"none", "$W/layers", "tmpfs", ""},
			{"none", "$W/R/over", "overlay", "redirect_dir=off,lowerdir=$W/lower,upperdir=$W/layers/upper,workdir=$W/layers/work"},
		} {
			if m[2] == "overlay" {
				if err := errors.Join(os.Mkdir(c.w+"/layers/upper", 0o755), os.Mkdir(c.w+"/layers/work", 0o755)); err != nil {
					t.Fatal(err)
				}
			}
			flags := uintptr(0)
			if m[2] == "" {
				flags = unix.MS_BIND
			}
			to := c.path(m[1])
			if err := unix.Mount(c.path(m[0]), to, m[2], flags, c.path(m[3])); err != nil {
				t.Logf("left out: mounting %s: %v", m[1], err)
				return
			}
			t.Cleanup(func() { unix.Unmount(to, unix.MNT_DETACH) })
		}
		if err := unix.Mount("none", c.w+"/R/ro", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		elsewhere := "It cannot be moved to the trash, so nothing was deleted: %s. It is in another file system, or a directory of a lower layer (overlayfs), as in a " +
			"container. A person can delete it, with a program of their own."
		for _, s := range [][3]string{
			{"write_file", `{"path":"$W/R/tiny/f","content":"` + strings.Repeat("x", 1<<20) + `"}`, "ENOSPC: no space left on device, open '$W/R/tiny/f'"},
			{"write_file", `{"path":"$W/R/ro/f","content":"x"}`, "EROFS: read-only file system, open '$W/R/ro/f'"},
			{"create_directory", `{"path":"$W/R/ro/d"}`, "EROFS: read-only file system, mkdir '$W/R/ro/d'"},
			{"move_file", `{"source":"$W/R/ro/f","destination":"$W/R/ro/g"}`, "EROFS: read-only file system, rename '$W/R/ro/f' -> '$W/R/ro/g'"},
			{"move_file", `{"source":"$W/R/m","destination":"$W/R/n"}`, "EBUSY: resource busy or locked, rename '$W/R/m' -> '$W/R/n'"},
			{"delete_path", `{"path":"$W/R/m"}`, "It is a mount point, or holds one, so nothing was deleted: $W/R/m"},
			{"delete_path", `{"path":"$W/R/holds"}`, "It is a mount point, or holds one, so nothing was deleted: $W/R/holds"},
			{"delete_path", `{"path":"$W/R/ro/f"}`, fmt.Sprintf(elsewhere, "$W/R/ro/f")},
			{"move_file", `{"source":"$W/R/over/d","destination":"$W/R/over/e"}`, "EXDEV: cross-device link not permitted, rename '$W/R/over/d' -> '$W/R/over/e'. " +
				"They are in different file systems, or it is a directory of a lower layer (overlayfs), as in a container: copy_file copies it"},
		} {
			if got := c.call(t, s[0], s[1]); !got.isError || got.text != c.path(s[2]) {
				t.Errorf("%s %.100s: %s, want %s", s[0], s[1], got, s[2])
			}
		}
		c.report(t)
	})
}
