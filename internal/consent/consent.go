// Package consent keeps which directories of a client's list a person lets a server have. Configured directories need no
// consent: that somebody wrote them down is it.
//
//	file := consent.File("/home/me/.local/state/rootbound/consents.jsonl")
//	files := consent.Server{Name: "files", Runs: "npm:@modelcontextprotocol/server-filesystem"}
//	err := file.Ask(files, "/srv/repo")   // the guard: this waits for a person
//	err = file.Allow(files, "/srv/repo")  // the person
//	entries, err := file.Entries()        // [{files /srv/repo allowed}]
//
// Every change is one line that is appended with one write, so guards and commands need no lock between them. What holds
// is what the last line about a server and a directory says. A guard follows the file with a Watch.
//
// # Limits
//
// The file is for its user alone to write, and one that others may write to is refused. A program of the same user can
// write it; a server that is not confined can consent for its person.
//
// Consent is to a program by its name, not to its version or content: what is run under that name tomorrow has it too.
package consent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/rootbound/rootbound/internal/statefile"
	"github.com/rootbound/rootbound/roots"
)

// Server is who is let have something: the name that people use, and what runs, since two may share a name.
type Server struct {
	Name string `json:"server"`
	Runs string `json:"runs"`
}

// Entry is what holds for a server and a directory: a person allowed it, or it waits for one.
type Entry struct {
	Server
	Dir     string
	Allowed bool
	// Since is when that was said.
	Since time.Time
}

// File is the path of a file of consents, which need not be there. It is safe for concurrent use, also by several
// processes.
type File string

// Deeds are what a line can say.
const (
	asked     = "asked"
	allowed   = "allowed"
	forgotten = "forgotten"
)

type line struct {
	Time time.Time `json:"time"`
	Deed string    `json:"deed"`
	Server
	URI string `json:"uri"` // not a path, which need not be text
}

// maxWaiting is how many directories wait for a server: a client's list is as long as it likes.
const maxWaiting = 64

// Entries returns what holds, by server and directory. A line that cannot be read is an error, and then nothing holds: it
// may be one that takes something back.
func (f File) Entries() ([]Entry, error) {
	text, err := os.ReadFile(string(f))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading consents: %w", err)
	}
	if info, err := os.Stat(string(f)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("reading consents: %q may be written by others: make it yours alone with chmod 600", string(f))
	}
	var entries []Entry
	number := 0
	for text := range bytes.Lines(text) {
		number++
		var l line
		err := json.Unmarshal(text, &l)
		dir := ""
		if err == nil {
			dir, err = roots.ParseURI(l.URI)
		}
		if err == nil && !slices.Contains([]string{asked, allowed, forgotten}, l.Deed) {
			err = fmt.Errorf("%q is not known", l.Deed)
		}
		if err != nil {
			return nil, fmt.Errorf("reading consents: %s:%d: %v: mend the line or remove the file; until then no consent holds", string(f), number, err)
		}
		entries = l.apply(entries, dir)
	}
	sort.Slice(entries, func(i, j int) bool {
		a, b := &entries[i], &entries[j]
		return a.Name+"\x00"+a.Runs+"\x00"+a.Dir < b.Name+"\x00"+b.Runs+"\x00"+b.Dir
	})
	return entries, nil
}

func (l *line) apply(entries []Entry, dir string) []Entry {
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.Server == l.Server && e.Dir == dir })
	e := Entry{Server: l.Server, Dir: dir, Allowed: l.Deed == allowed, Since: l.Time}
	switch {
	case l.Deed == forgotten && i >= 0:
		return slices.Delete(entries, i, i+1)
	case l.Deed == forgotten, l.Deed == asked && i >= 0:
		return entries
	case i >= 0:
		entries[i] = e
		return entries
	}
	return append(entries, e)
}

// Ask notes that directories wait for a person, those that do not yet. It takes no consent away.
func (f File) Ask(s Server, dirs ...string) error {
	entries, err := f.Entries()
	if err != nil {
		return err
	}
	waiting := 0
	for _, e := range entries {
		if e.Server == s && !e.Allowed {
			waiting++
		}
	}
	for _, dir := range dirs {
		if slices.ContainsFunc(entries, func(e Entry) bool { return e.Server == s && e.Dir == dir }) {
			continue
		}
		if waiting++; waiting > maxWaiting {
			return nil
		}
		if err := f.append(asked, s, dir); err != nil {
			return err
		}
	}
	return nil
}

// Allow consents: the server may have the directory, and what is in it, when a client has it in its list. What in it waited for that
// does not any more. A directory that is there must not be broad.
func (f File) Allow(s Server, dir string) error {
	entries, err := f.Entries()
	if err != nil {
		return err
	}
	var broad *roots.Error
	d, err := roots.Resolve(dir, roots.ResolveOptions{Access: roots.ReadWrite})
	if errors.As(err, &broad) && broad.Reason == roots.TooBroad {
		return err
	}
	if err := f.append(allowed, s, dir); err != nil {
		return err
	}
	if err != nil {
		return nil // it is gone, and so is what was in it
	}
	for _, e := range entries {
		if _, _, in := roots.NewSet(d).Match(e.Dir); in && !e.Allowed && e.Server == s && e.Dir != dir {
			if err := f.Forget(s, e.Dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// Forget takes back whatever there is about a server and a directory.
func (f File) Forget(s Server, dir string) error { return f.append(forgotten, s, dir) }

func (f File) append(deed string, s Server, dir string) error {
	text, err := json.Marshal(line{Time: time.Now().UTC(), Deed: deed, Server: s, URI: roots.FileURI(dir)})
	if err != nil {
		return fmt.Errorf("writing consents: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(string(f)), 0o700); err != nil {
		return fmt.Errorf("writing consents: %w", err)
	}
	file, err := os.OpenFile(string(f), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("writing consents: %w", err)
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing consents: %w", err)
	}
	return nil
}

// Watch follows what a file says of one server. It is safe for concurrent use.
type Watch struct {
	file   File
	server Server

	mu    sync.Mutex
	begun bool
	seen  statefile.Stamp
}

// Watch follows what f says of s.
func (f File) Watch(s Server) *Watch { return &Watch{file: f, server: s} }

// Anew returns a watch of the same that was told nothing yet. Whoever shares a watch misses what another one was told.
func (w *Watch) Anew() *Watch { return w.file.Watch(w.server) }

// Changed returns the directories that the server may have, and whether the file changed since the last call; the first
// call always says so. When it did not, dirs is nil. With an error there are none.
func (w *Watch) Changed() (dirs []string, changed bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := statefile.StampOf(string(w.file))
	if w.begun && now == w.seen {
		return nil, false, nil
	}
	w.begun, w.seen = true, now
	entries, err := w.file.Entries()
	for _, e := range entries {
		if e.Server == w.server && e.Allowed {
			dirs = append(dirs, e.Dir)
		}
	}
	return dirs, true, err
}

// Ask notes that directories wait for a person.
func (w *Watch) Ask(dirs ...string) error { return w.file.Ask(w.server, dirs...) }
