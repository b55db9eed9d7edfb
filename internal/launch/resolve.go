package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Resolve returns the path with all links followed. Through is the first link on the way that lies where a program can
// write, in the words of writable, when it leads out of there: that program decides where it leads. It is empty otherwise.
// Writable is asked about paths without links; nil says that nothing is writable.
func Resolve(path string, writable func(dir string) bool) (real, through string, err error) {
	if writable == nil {
		writable = func(string) bool { return false }
	}
	if !filepath.IsAbs(path) {
		return "", "", fmt.Errorf("resolving %q: it is not absolute", path)
	}
	const most = 255 // links, as in the kernel
	separator := string(filepath.Separator)
	volume := filepath.VolumeName(path) + separator
	at, left := volume, path[len(volume)-1:]
	for links := 0; ; {
		left = strings.TrimLeft(left, separator)
		if left == "" {
			break
		}
		var name string
		name, left, _ = strings.Cut(left, separator)
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil {
			return "", "", err
		}
		if info.Mode()&os.ModeSymlink == 0 {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", "", err
		}
		if links++; links > most {
			return "", "", fmt.Errorf("resolving %q: it is a circle of links", path)
		}
		if through == "" && writable(at) {
			through = next
		}
		if filepath.IsAbs(target) {
			at = volume
		}
		left = target + separator + left
	}
	if writable(at) {
		through = ""
	}
	return at, through, nil
}
