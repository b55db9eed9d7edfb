package rootfs

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"
)

// What this package makes for itself has these names. They are listed nowhere, and no path reaches them.
const (
	trashName       = ".rootbound-trash"
	temporaryPrefix = ".rootbound-tmp-"
)

// reserved also says yes to other letters, wherever it runs: a disk may fold names that the system does not.
func reserved(name string) bool {
	return len(name) >= len(temporaryPrefix) && name[0] == '.' &&
		(strings.EqualFold(name, trashName) || strings.EqualFold(name[:len(temporaryPrefix)], temporaryPrefix))
}

// createTemporary makes a temporary file in d. Its lock is what tells it from one that a killed process left.
func createTemporary(d directory, perm fs.FileMode) (*os.File, string, error) {
	for {
		name := temporaryPrefix + strings.ToLower(rand.Text()[:16])
		f, err := d.create(name, perm)
		if err != nil {
			return nil, "", err
		}
		if err := lock(f); err == nil || !errors.Is(err, errLocked) {
			// Somebody who cleans may have had the lock before.
			if _, _, err := d.look(name); err == nil {
				return f, name, nil
			}
		}
		f.Close()
	}
}

// staleAfter is the age from which a temporary file is stale on a file system that knows no locks.
const staleAfter = time.Hour

// cleanTemporary removes the temporary files of processes that are gone.
func cleanTemporary(d directory, entries []Entry) {
	for _, e := range entries {
		if e.Type.IsRegular() && reserved(e.Name) {
			removeStale(d, e.Name)
		}
	}
}

func removeStale(d directory, name string) {
	f, err := d.open(name)
	if err != nil {
		return
	}
	defer f.Close()
	switch err := lock(f); {
	case err == nil:
	case errors.Is(err, errLocked):
		return
	default:
		if info, err := f.Stat(); err != nil || time.Since(info.ModTime()) < staleAfter {
			return
		}
	}
	d.remove(name, false)
}

// CleanTemporary removes the temporary files that killed processes left, beneath all roots that may be written, and looks
// at no more than so many entries in all (0: without limit). A directory is also cleaned whenever it is written to or
// listed; this is for what is left where nobody looks. Files of processes that live are left.
func (f *FS) CleanTemporary(ctx context.Context, entries int64) error {
	return f.cleanAll(ctx, entries)
}
