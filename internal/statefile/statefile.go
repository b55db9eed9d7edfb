// Package statefile changes files of ours that several processes change: one at a time, and each file as a whole.
//
//	err := statefile.Locked("/home/me/.local/state/rootbound/pins.lock", func() error {
//		text, err := os.ReadFile(path)
//		…
//		return statefile.Replace(path, changed)
//	})
//
// # Limits
//
// The lock is between programs that ask for it. Who opens the file otherwise, such as an editor, is not held back.
package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
func Replace(path string, text []byte) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".rootbound-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Chmod(f.Name(), mode); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
