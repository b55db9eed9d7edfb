package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
)

// Print returns a print of all that is in a directory: names, contents, where links lead and what can be run. It is another
// one when anything of that is.
func Print(dir string) (string, error) {
	type entry struct {
		path, what string
		sum        [sha256.Size]byte
		err        error
	}
	var entries []*entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		e := &entry{path: path}
		switch mode := info.Mode(); {
		case mode.IsRegular():
			e.what = fmt.Sprintf("file %q %v", filepath.ToSlash(rel), mode&0o111 != 0)
		case mode.IsDir():
			e.what, e.path = fmt.Sprintf("directory %q", filepath.ToSlash(rel)), ""
		case mode&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			e.what, e.path = fmt.Sprintf("link %q %q", filepath.ToSlash(rel), target), ""
		default:
			return fmt.Errorf("%q is neither a file nor a directory nor a link", path)
		}
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		return "", err
	}
	work := make(chan *entry)
	var done sync.WaitGroup
	for range max(2, runtime.GOMAXPROCS(0)) {
		done.Go(func() {
			for e := range work {
				e.sum, e.err = sum(e.path)
			}
		})
	}
	for _, e := range entries {
		if e.path != "" {
			work <- e
		}
	}
	close(work)
	done.Wait()
	all := sha256.New()
	for _, e := range entries { // in the order of the names
		if e.err != nil {
			return "", e.err
		}
		fmt.Fprintf(all, "%s %x\n", e.what, e.sum)
	}
	return "sha256:" + hex.EncodeToString(all.Sum(nil)), nil
}

func sum(path string) (sum [sha256.Size]byte, err error) {
	file, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	return sum, nil
}
