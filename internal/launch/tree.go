package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
)

// entry is what a print has of one thing in a directory.
type entry struct {
	path, what string
	sum        [sha256.Size]byte // of a file's content
	err        error
}

// Print returns a print of all that is in a directory: names, contents, where links lead and what can be run. It is another
// one when anything of that is. A server that is installed has thousands of files and a client waits for it, so they are read
// while others are still found, each into memory that is there, and by as many threads as there are processors.
func Print(dir string) (string, error) {
	work := make(chan *entry, 1024)
	var done sync.WaitGroup
	for range max(2, runtime.GOMAXPROCS(0)) {
		done.Go(func() {
			s := summer{sha256.New(), make([]byte, 64<<10)}
			for e := range work {
				e.err = s.sum(e.path, e.sum[:0])
			}
		})
	}
	var entries []*entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		rel = strconv.Quote(filepath.ToSlash(rel))
		e := &entry{path: path}
		entries = append(entries, e)
		switch mode := d.Type(); {
		case mode.IsRegular():
			info, err := d.Info()
			if err != nil {
				return err
			}
			e.what = "file " + rel + " " + strconv.FormatBool(info.Mode()&0o111 != 0)
			work <- e
		case mode.IsDir():
			e.what = "directory " + rel
		case mode&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			e.what = "link " + rel + " " + strconv.Quote(target)
		default:
			return fmt.Errorf("%q is neither a file nor a directory nor a link", path)
		}
		return nil
	})
	close(work)
	done.Wait()
	if err != nil {
		return "", err
	}
	all := sha256.New()
	var line []byte
	for _, e := range entries { // in the order of the names
		if e.err != nil {
			return "", e.err
		}
		line = hex.AppendEncode(append(append(line[:0], e.what...), ' '), e.sum[:])
		all.Write(append(line, '\n'))
	}
	return "sha256:" + hex.EncodeToString(all.Sum(nil)), nil
}

// summer makes sums of files, one after the other.
type summer struct {
	hash   hash.Hash
	buffer []byte
}

// sum appends the sum of a file's content to b, which has room for it. It is read by the system's calls alone: os.File has
// four more for each file, to learn that none of them is waited for by poll.
func (s summer) sum(path string, b []byte) error {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	for err == syscall.EINTR { // some file systems do that
		fd, err = syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer syscall.Close(fd)
	s.hash.Reset()
	for {
		n, err := syscall.Read(fd, s.buffer)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return &fs.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			s.hash.Sum(b)
			return nil
		default:
			s.hash.Write(s.buffer[:n])
		}
	}
}
