// Package statefile writes a file as a whole, lets one process at a time change a file of ours that several change, and tells that one changed.
//
//	err := statefile.Locked("/home/me/.local/state/rootbound/pins.lock", func() error {
//		text, err := os.ReadFile(path)
//		…
//		return statefile.Replace(path, changed)
//	})
//
// What a save that was killed has left beside its file is removed by the next save in that directory.
//
// # Limits
//
// The lock is between programs that ask for it. Who opens the file otherwise, such as an editor, is not held back; what it
// writes between the last look (ReplaceIf) and the renaming is lost.
package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// Locked calls f while no other process that asks for the same lock is in its own. The file of the lock is made with its
// directory where it is missing.
func Locked(lock string, f func() error) error {
	if err := os.MkdirAll(filepath.Dir(lock), 0o700); err != nil {
		return err
	}
	unlock, err := lockedfile.MutexAt(lock).Lock()
	if err != nil {
		return fmt.Errorf("locking: %w", err)
	}
	defer unlock()
	return f()
}

// Replace puts a text in the place of a file, as a whole: who reads it has the old one or the new one. A link leads to the
// file that is replaced, and a file keeps its mode; a new one is for its user alone.
func Replace(path string, text []byte) error { return ReplaceIf(path, text, nil) }

// ReplaceIf is Replace where nothing speaks against it: still is asked when the text is written, right before it takes its place.
func ReplaceIf(path string, text []byte, still func() error) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	was, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return put(path, text, was, still)
}

// PutLike is Replace for a file that is to have the mode of another one, and its owner where we may give it to somebody.
func PutLike(path string, text []byte, like fs.FileInfo) error { return put(path, text, like, nil) }

// temporary begins the name of a text that is being written.
const temporary = ".rootbound-save-"

func put(path string, text []byte, like fs.FileInfo, still func() error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), temporary+"*") // for its user alone
	if err != nil {
		return err
	}
	defer hold(f.Name())()
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if like != nil {
		err = errors.Join(err, keepOwner(f, like), os.Chmod(f.Name(), like.Mode().Perm()))
	}
	now, serr := f.Stat()
	if err = errors.Join(err, serr, f.Close()); err != nil {
		return err
	}
	sweep(filepath.Dir(path), now.ModTime())
	if still != nil {
		if err = still(); err != nil {
			return err
		}
	}
	return os.Rename(f.Name(), path)
}

// leftBehind is how long nobody has written to what counts as left behind. It only covers what a lock does not: the moment
// before it is held, and systems and disks that have none.
const leftBehind = 15 * time.Minute

// sweep removes what saves that were killed have left in a directory, by the clock of the disk. What another one is about to
// put in its place stays: it is younger, or held.
func sweep(dir string, now time.Time) {
	entries, _ := os.ReadDir(dir) // where it may not be read, nothing is found
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), temporary) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) < leftBehind {
			continue
		}
		if path := filepath.Join(dir, e.Name()); left(path, info) {
			os.Remove(path)
		}
	}
}
