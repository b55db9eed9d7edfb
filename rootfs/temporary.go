package rootfs

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/rootbound/rootbound/roots"
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

// temporaryRandom is how many random characters follow the prefix, of [a-z2-7].
const temporaryRandom = 16

// isTemporary says whether createTemporary makes such names. Only these are ever removed: another file whose name begins
// alike may be somebody's.
func isTemporary(name string) bool {
	random, ok := strings.CutPrefix(name, temporaryPrefix)
	return ok && len(random) == temporaryRandom && plainID(random)
}

// createTemporary makes a temporary file in d. Its lock is what tells it from one that a killed process left.
func createTemporary(d directory, perm fs.FileMode) (*os.File, string, error) {
	for {
		name := temporaryPrefix + strings.ToLower(rand.Text()[:temporaryRandom])
		f, err := d.create(name, perm)
		if err != nil {
			return nil, "", err
		}
		// Somebody who cleans may have had the lock before, or have it now.
		locked := errors.Is(lock(f), errLocked)
		_, _, err = d.look(name)
		if err == nil && !locked {
			return f, name, nil
		}
		f.Close()
		if err != nil && codeOf(err) != NotFound {
			d.remove(name, false)
			return nil, "", err
		}
	}
}

// staleAfter is the age from which a temporary file is stale on a file system that knows no locks.
const staleAfter = time.Hour

// cleanTemporary removes the temporary files of processes that are gone.
func cleanTemporary(d directory, entries []Entry) {
	for _, e := range entries {
		if e.Type.IsRegular() && isTemporary(e.Name) {
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

// cleanOnce looks through a directory that is written to, the first time in the life of f.
func (f *FS) cleanOnce(d directory) {
	info, err := d.info()
	if err != nil {
		return
	}
	id := identify("", info)
	f.mu.Lock()
	done := f.cleaned[id]
	if !done {
		if len(f.cleaned) >= maxCleaned || f.cleaned == nil {
			f.cleaned = map[roots.FileID]bool{}
		}
		f.cleaned[id] = true
	}
	f.mu.Unlock()
	if done {
		return
	}
	if s, err := d.sub(".", toList); err == nil {
		defer s.close()
		entries, _ := s.entries()
		cleanTemporary(s, entries)
	}
}

// maxCleaned bounds what f remembers.
const maxCleaned = 4096

// CleanTemporary removes the temporary files that killed processes left beneath all roots that may be written, and looks
// at about so many entries in all (0: at every one). A directory is cleaned, too, whenever it is listed, and when it is
// first written to; this is for what lies where nobody looks, and to be called at the start. Files of processes that live
// are left. An error is that of ctx.
func (f *FS) CleanTemporary(ctx context.Context, entries int64) error {
	for _, r := range f.roots {
		if r.directory == nil || r.dir.Access&roots.Write == 0 {
			continue
		}
		if r.only != "" {
			if err := f.use(); err != nil {
				return asError("cleaning", r.dir.Path, err)
			}
			f.cleanOnce(r)
			f.release()
			continue
		}
		o := WalkOptions{MaxEntries: entries, Unsorted: true}
		w, err := f.Walk(ctx, r.dir.Path, o, func(d *Directory) []Entry { return d.Entries })
		if err != nil && (ctx.Err() != nil || errors.Is(err, fs.ErrClosed)) {
			return err
		}
		if entries > 0 {
			if entries -= w.Entries; entries <= 0 {
				break
			}
		}
	}
	return nil
}
