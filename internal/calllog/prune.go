package calllog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Policy says how much of the log is kept. A zero member has its default.
type Policy struct {
	// Age is how long a file is kept after its last record; 90 days by default.
	Age time.Duration
	// Bytes is how much is kept altogether; 512 MiB by default. The oldest runs go first.
	Bytes int64
	// Now is the time from which the age counts; time.Now() by default.
	Now time.Time
}

// fresh is how long a file is let alone though nobody holds it: it may just have been made.
const fresh = time.Minute

// Prune removes the oldest log files from dir until it is within the policy, and returns the paths of those it removed.
// Files of runs that go on, and files that are no logs, are never touched. It can run in several processes at once.
func Prune(dir string, p Policy) (removed []string, err error) {
	if p.Age == 0 {
		p.Age = 90 * 24 * time.Hour
	}
	if p.Bytes == 0 {
		p.Bytes = 512 << 20
	}
	if p.Now.IsZero() {
		p.Now = time.Now()
	}
	names, err := Files(dir)
	if err != nil {
		return nil, err
	}
	type candidate struct {
		path string
		os.FileInfo
	}
	var all []candidate
	var total int64
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue // removed meanwhile, or not ours
		}
		all = append(all, candidate{path, info})
		total += info.Size()
	}
	for _, c := range all {
		age := p.Now.Sub(c.ModTime())
		if age <= p.Age && total <= p.Bytes || age < fresh || runs(c.path) {
			continue
		}
		switch err := os.Remove(c.path); {
		case err == nil:
			removed = append(removed, c.path)
		case !errors.Is(err, fs.ErrNotExist): // another process was faster
			return removed, fmt.Errorf("pruning the log: %w", err)
		}
		total -= c.Size()
	}
	return removed, nil
}

// runs reports whether the file is that of a run that goes on. What cannot be opened is taken for one.
func runs(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	return locked(f)
}
