package clientconf

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/rootbound/rootbound/internal/statefile"
)

// ErrChanged is the error of Write for a file that does not hold what was read any more.
var ErrChanged = errors.New("it was changed meanwhile; try again")

// Backup is what the copy of a file is called that Write leaves beside it.
func (f *File) Backup() string { return f.Path + ".rootbound-backup" }

// Write puts a draft on the disk, whole or not at all: through a link into the file it leads to, with the mode that is
// there, and while the client holds no lock of its own. If the file holds something else than what was read, it stays.
func (d *Draft) Write() error {
	if err := d.write(); err != nil {
		return fmt.Errorf("writing %q: %w", d.file.Path, reason(err))
	}
	return nil
}

func (d *Draft) write() error {
	if _, err := os.Stat(d.file.Path); err != nil {
		return err
	}
	unlock, err := d.file.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return statefile.ReplaceIf(d.file.Path, d.Bytes(), func() error {
		now, err := read(d.file.Path)
		if err == nil && !bytes.Equal(now, d.file.src.text) {
			err = ErrChanged
		}
		return err
	})
}

// Save leaves a copy of the file as it was read beside it, with the same rights. One that is there already stays when keep
// says so, as it is that of an earlier state.
func (f *File) Save(keep bool) error {
	if _, err := os.Lstat(f.Backup()); err == nil && keep {
		return nil
	}
	info, err := os.Stat(f.Path)
	if err == nil {
		err = statefile.PutLike(f.Backup(), f.src.text, info)
	}
	if err != nil {
		return fmt.Errorf("saving %q: %w", f.Backup(), reason(err))
	}
	return nil
}

// Unsave removes the copy that Save left.
func (f *File) Unsave() error {
	if err := os.Remove(f.Backup()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing %q: %w", f.Backup(), reason(err))
	}
	return nil
}

const (
	lockWait  = 5 * time.Second // how long a client may hold its lock
	lockStep  = 20 * time.Millisecond
	lockStale = time.Minute // a lock that is held is touched every few seconds, and clients take one over sooner than this
)

// lock takes the lock that the client itself takes to write the file: a directory beside it. Others have none.
func (f *File) lock() (unlock func(), err error) {
	if !f.Place.Locks {
		return func() {}, nil
	}
	name := f.Path + ".lock"
	for end := time.Now().Add(lockWait); ; time.Sleep(lockStep) {
		err := os.Mkdir(name, 0o700)
		switch {
		case err == nil:
			return func() { os.Remove(name) }, nil
		case !errors.Is(err, fs.ErrExist):
			return nil, err
		}
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > lockStale {
			os.Remove(name)
		} else if time.Now().After(end) {
			return nil, fmt.Errorf("%s holds the lock %q", f.Client.Name, name)
		}
	}
}

// Forget removes the copy that Save left, if it says nothing that the file as it is here does not.
func (f *File) Forget() error {
	text, err := read(f.Backup())
	if err != nil || !bytes.Equal(text, f.src.text) {
		return nil
	}
	return f.Unsave()
}
