package logindex

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/rootbound/rootbound/internal/calllog"
)

const (
	// lookEvery is how often Follow looks, restEvery how often also at files of runs that have ended.
	lookEvery = 300 * time.Millisecond
	restEvery = 30 * time.Second

	// A batch has so many records at most, and takes so long: what it holds back is other processes, and what is shown.
	batchSize = 20_000
	batchTime = time.Second

	maxTook   = 1e15    // milliseconds, as a log of ours has them at most
	maxPath   = 4096    // bytes; of a record it cannot have more
	maxKnown  = 200_000 // paths and words that are held in memory
	tailBytes = 96      // enough for a record's own hash
	manyLeft  = 20_000  // paths of no record that is there, before they are cleared away
	manyTaken = 20_000  // records that were taken in, before memory is given back
)

// State is how far the index is.
type State struct {
	// Files and Bytes are what is logged, Done how many of the bytes are indexed.
	Files       int
	Bytes, Done int64
}

// State returns how far the index is. It is what the last look has found.
func (x *Index) State() State {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state
}

// Follow updates the index until ctx is done, and calls changed after each batch of new records. An error of one update is said
// once and tried again, ever less often.
func (x *Index) Follow(ctx context.Context, changed func()) {
	var said string
	failed := 0
	for {
		err := x.update(ctx, changed)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			failed = 0
		} else if failed++; err.Error() != said {
			said = err.Error()
			x.note(said)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookAfter(failed)):
		}
	}
}

// lookAfter is when Follow looks again after so many errors in a row: what was read for a disk that is full is read for nothing.
func lookAfter(failed int) time.Duration {
	return min(lookEvery<<min(failed, 16), restEvery)
}

// Update takes into the index what the log has now. Several may run at once, in several processes.
func (x *Index) Update(ctx context.Context) error { return x.update(ctx, func() {}) }

func (x *Index) update(ctx context.Context, changed func()) error {
	x.following.Lock()
	defer x.following.Unlock()
	for again := true; ; again = false {
		err := whole(func() error { return x.look(ctx, changed) })
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case again && (isDamage(err) || errors.Is(err, errTidy)):
			x.f.close()
			x.f = nil
			if err := x.rebuild(err); err != nil {
				return fmt.Errorf("building the log's index anew: %w", err)
			}
		case err != nil:
			x.f.close()
			x.f = nil
			return fmt.Errorf("updating the log's index: %w", err)
		default:
			x.rest()
			return nil
		}
	}
}

// rest gives back the memory that taking in a long log took: what follows is little.
func (x *Index) rest() {
	if x.f.taken < manyTaken {
		return
	}
	x.f.close()
	x.f = nil
	debug.FreeOSMemory()
}

// errTidy says that the index has more that is gone from the log than what is there.
var errTidy = errors.New("most of it is gone from the log")

// look looks once at every file.
func (x *Index) look(ctx context.Context, changed func()) error {
	x.mu.Lock()
	closed := x.closed
	x.mu.Unlock()
	if closed {
		return os.ErrClosed
	}
	if x.f != nil && !x.current(x.f.c) {
		x.f.close()
		x.f = nil
	}
	if x.f == nil {
		c, err := x.open()
		if err != nil {
			return err
		}
		x.f = &follower{c: c, words: map[word]int64{}, places: map[string]int64{}}
		if err := x.f.prepare(); err != nil {
			return err
		}
	}
	return x.f.look(ctx, x, changed)
}

// follower is the connection by which the index is written.
type follower struct {
	c       *conn
	seen    int64 // the database's version when files were read
	files   map[string]*file
	rested  time.Time
	words   map[word]int64
	places  map[string]int64
	gone    bool // a file was taken out
	taken   int
	add     *statement
	end     *statement
	addWord *statement
	getWord *statement
	addPath *statement
	getPath *statement
	setFile *statement
	getFile *statement
}

// word is a text of which there are few. Roles keep the names of servers apart from those of tools.
type word struct {
	role int64
	text string
}

const (
	roleKind = iota
	roleServer
	roleSubject
	roleVerdict
	roleOutcome
)

// file is a file of the log as the index has it.
type file struct {
	id                int64
	name              string
	done, size, stamp int64
	tail              []byte
	clock             int64
	first, last       int64
	ended             bool
}

func (f *follower) close() error {
	if f != nil {
		f.c.close()
	}
	return nil
}

func (f *follower) prepare() error {
	for _, s := range []struct {
		stmt **statement
		sql  string
	}{
		{&f.add, "INSERT OR IGNORE INTO entry VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"},
		{&f.end, "UPDATE entry SET outcome = ?, ms = ?, bytes = ? WHERE call = ? AND file = ? AND kind = ?"},
		{&f.addWord, "INSERT OR IGNORE INTO word (role, text) VALUES (?, ?)"},
		{&f.getWord, "SELECT id FROM word WHERE role = ? AND text = ?"},
		{&f.addPath, "INSERT OR IGNORE INTO place (path) VALUES (?)"},
		{&f.getPath, "SELECT id FROM place WHERE path = ?"},
		{&f.setFile, "UPDATE file SET done = ?, size = ?, stamp = ?, tail = ?, clock = ?, first = ?, last = ?, ended = ? WHERE id = ?"},
		{&f.getFile, "SELECT id, name, done, size, stamp, tail, clock, first, last, ended FROM file WHERE name = ?"},
	} {
		stmt, err := f.c.prepare(s.sql)
		if err != nil {
			return err
		}
		*s.stmt = stmt
	}
	return f.c.exec("PRAGMA cache_size = -12000")
}

func (f *follower) look(ctx context.Context, x *Index, changed func()) error {
	if err := f.load(); err != nil {
		return err
	}
	names, err := calllog.Files(x.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	x.mu.Lock()
	suspect := x.suspect
	x.suspect = map[string]bool{}
	x.mu.Unlock()
	all := time.Since(f.rested) >= restEvery
	if all {
		f.rested = time.Now()
	}
	var state State
	var grown []*file
	there := make(map[string]bool, len(names))
	for _, name := range names {
		there[name] = true
		k := f.files[name]
		if k != nil && k.ended && !all && !suspect[name] {
			state.Files, state.Bytes, state.Done = state.Files+1, state.Bytes+k.done, state.Done+k.done
			continue
		}
		info, err := os.Stat(filepath.Join(x.dir, name))
		if err != nil || !info.Mode().IsRegular() {
			delete(there, name) // pruned meanwhile, or not ours
			continue
		}
		size, stamp := info.Size(), info.ModTime().UnixNano()
		state.Files, state.Bytes = state.Files+1, state.Bytes+size
		switch {
		case k == nil:
			grown = append(grown, &file{name: name, size: size, stamp: stamp})
			continue
		case suspect[name], size < k.done, size == k.size && stamp != k.stamp, size != k.size && !k.goesOn(x.dir):
			if done, err := f.forget(k); err != nil {
				return err
			} else if done {
				grown = append(grown, &file{name: name, size: size, stamp: stamp})
			}
		case size != k.size:
			state.Done += k.done
			k.size, k.stamp = size, stamp
			grown = append(grown, k)
		default:
			state.Done += k.done
		}
	}
	for name, k := range f.files {
		if !there[name] {
			if done, err := f.forget(k); err != nil {
				return err
			} else if done {
				changed()
			}
		}
	}
	x.setState(state)
	if err := f.tidy(); err != nil {
		return err
	}
	for _, k := range slices.Backward(grown) { // what is newest is looked for first
		before := k.done
		err := f.follow(ctx, x, k, func() {
			state.Done += k.done - before
			before = k.done
			x.setState(state)
			changed()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) setState(s State) {
	x.mu.Lock()
	x.state = s
	x.mu.Unlock()
}

// goesOn reports whether the file still has what was indexed last.
func (k *file) goesOn(dir string) bool {
	f, err := os.Open(filepath.Join(dir, k.name))
	if err != nil {
		return false
	}
	defer f.Close()
	tail := make([]byte, len(k.tail))
	_, err = f.ReadAt(tail, k.done-int64(len(tail)))
	return err == nil && bytes.Equal(tail, k.tail)
}

// load reads what the index knows of files, when somebody else has written to it.
func (f *follower) load() error {
	v, err := f.c.number("PRAGMA data_version")
	if err != nil || f.files != nil && v == f.seen {
		return err
	}
	f.files, f.seen = map[string]*file{}, v
	s, err := f.c.query("SELECT id, name, done, size, stamp, tail, clock, first, last, ended FROM file")
	if err != nil {
		return err
	}
	defer s.close()
	for s.step() {
		k := readFile(s)
		f.files[k.name] = k
	}
	return s.err
}

func readFile(s *statement) *file {
	return &file{
		id: s.int(0), name: s.text(1), done: s.int(2), size: s.int(3), stamp: s.int(4),
		tail: s.blob(5, nil), clock: s.int(6), first: s.int(7), last: s.int(8), ended: s.int(9) != 0,
	}
}

// forget takes a file out of the index, unless another process has gone on with it, or was faster: then the next look is for that.
func (f *follower) forget(k *file) (done bool, err error) {
	end, err := f.c.begin()
	if err != nil {
		return false, err
	}
	defer end(&err)
	now, err := f.get(k.name)
	if err != nil || now == nil || now.id != k.id || now.done != k.done || now.size != k.size || now.stamp != k.stamp {
		f.seen = -1
		return false, err
	}
	for _, sql := range []string{
		fmt.Sprintf("DELETE FROM entry WHERE key BETWEEN %d AND %d AND file = %d", now.first, now.last, now.id),
		fmt.Sprintf("DELETE FROM file WHERE id = %d", now.id),
	} {
		if err := f.c.exec(sql); err != nil {
			return false, err
		}
	}
	f.gone = true
	delete(f.files, k.name)
	return true, nil
}

// get reads what the index has of a file; nil when that is nothing.
func (f *follower) get(name string) (k *file, err error) {
	f.getFile.bind(1, name)
	if f.getFile.step() {
		k = readFile(f.getFile)
	}
	return k, errors.Join(f.getFile.err, f.getFile.reset())
}

// tidy says when the index is to be built anew, because most of the paths in it are of records that are gone.
func (f *follower) tidy() error {
	if !f.gone {
		return nil
	}
	f.gone = false
	places, err := f.c.number("SELECT count(*) FROM place")
	if err != nil || places < manyLeft {
		return err
	}
	entries, err := f.c.number("SELECT count(*) FROM entry")
	if err == nil && places-entries >= manyLeft {
		err = errTidy
	}
	return err
}

// follow takes in what is new in a file, batch by batch.
func (f *follower) follow(ctx context.Context, x *Index, k *file, changed func()) error {
	path := filepath.Join(x.dir, k.name)
	var r *calllog.Reader
	defer func() {
		if r != nil {
			r.Close()
		}
	}()
	for {
		n, more, err := f.batch(ctx, k, path, func(offset int64) *calllog.Reader {
			if r == nil || r.Offset() != offset { // the first one, or another process has gone on
				if r != nil {
					r.Close()
				}
				r = calllog.NewReader(path, offset)
			}
			return r
		})
		if err != nil {
			return err
		}
		f.taken += n
		if n > 0 {
			changed()
		}
		if !more {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// batch takes in some records, in one transaction, and reports how many and whether there may be more.
func (f *follower) batch(ctx context.Context, k *file, path string, reader func(offset int64) *calllog.Reader) (n int, more bool, err error) {
	end, err := f.c.begin()
	if err != nil {
		return 0, false, err
	}
	defer func() {
		if err != nil { // what was found in it is not there
			clear(f.words)
			clear(f.places)
			f.files = nil
		}
	}()
	defer end(&err)
	if is, err := f.current(k, path); err != nil || !is {
		return 0, false, err
	}
	r := reader(k.done)
	for begun := time.Now(); n < batchSize && ctx.Err() == nil; n++ {
		e, err := r.Next()
		if err == io.EOF || errors.Is(err, fs.ErrNotExist) {
			return n, false, f.save(k, r.Offset())
		}
		if _, bad := errors.AsType[*calllog.UnreadableError](err); bad {
			continue
		} else if err != nil {
			return n, false, err
		}
		if err := f.take(k, &e); err != nil {
			return n, false, err
		}
		if n%100 == 99 && time.Since(begun) > batchTime {
			n++
			break
		}
	}
	return n, true, f.save(k, r.Offset())
}

// current makes k what the index has of the file at path now, since another process may follow it too; or makes it known, if it still is
// there.
func (f *follower) current(k *file, path string) (is bool, err error) {
	now, err := f.get(k.name)
	if err != nil {
		return false, err
	}
	if now != nil {
		now.size, now.stamp = k.size, k.stamp
		*k = *now
		f.files[k.name] = k
		return true, nil
	}
	// Another process may have taken it out, because it is pruned. Nobody takes it out while this transaction lasts.
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	s, err := f.c.query("INSERT INTO file (name, done, size, stamp, tail, clock, first, last, ended) VALUES (?, 0, 0, 0, x'', 0, 0, 0, 0)")
	if err != nil {
		return false, err
	}
	defer s.close()
	s.bind(1, k.name)
	if err := s.exec(); err != nil {
		return false, err
	}
	*k = file{id: f.c.c.LastInsertRowID(), name: k.name, size: k.size, stamp: k.stamp}
	f.files[k.name] = k
	return true, nil
}

// save writes how far the file was read. Size and time of change are those of one look before that: only together they tell a file that
// was changed in place from one that has grown.
func (f *follower) save(k *file, done int64) error {
	k.done = done
	s := f.setFile
	s.bind(1, k.done)
	s.bind(2, k.size)
	s.bind(3, k.stamp)
	s.bind(4, k.tail)
	s.bind(5, k.clock)
	s.bind(6, k.first)
	s.bind(7, k.last)
	s.bind(8, k.ended)
	s.bind(9, k.id)
	return s.exec()
}

// take takes in a record.
func (f *follower) take(k *file, e *calllog.Entry) error {
	k.clock = max(k.clock, min(max(e.Time.UnixMicro(), 0), maxTime))
	k.ended = k.ended || e.Kind == calllog.Exit
	tail := e.Line[max(0, len(e.Line)+1-tailBytes):]
	k.tail = append(append(k.tail[:0], tail...), '\n')

	kind, err := f.word(roleKind, string(e.Kind))
	if err != nil {
		return err
	}
	server, err := f.word(roleServer, e.Server)
	if err != nil {
		return err
	}
	subject, err := f.word(roleSubject, subjectOf(&e.Record))
	if err != nil {
		return err
	}
	verdict, err := f.word(roleVerdict, string(e.Verdict))
	if err != nil {
		return err
	}
	outcome, err := f.word(roleOutcome, string(e.Outcome))
	if err != nil {
		return err
	}
	places, err := f.placesOf(&e.Record)
	if err != nil {
		return err
	}
	key := max(k.clock<<keyBits, k.last+1)
	s := f.add
	s.bind(2, k.id)
	s.bind(3, e.Offset)
	s.bind(4, int64(len(e.Line)))
	s.bind(5, kind)
	s.bind(6, server)
	s.bind(7, subject)
	s.bind(8, verdict)
	s.bind(9, places)
	bindCall(s, 10, e.Call)
	s.bind(11, outcome)
	took := min(max(e.MS, 0), maxTook)
	s.bind(12, took)
	s.bind(13, e.Bytes)
	for {
		s.bind(1, key)
		if err := s.exec(); err != nil {
			return err
		}
		if f.c.c.Changes() > 0 {
			break
		}
		key++ // another file has a record of this time
	}
	if k.first == 0 {
		k.first = key
	}
	k.last = key
	if e.Kind != calllog.End || e.Call == "" {
		return nil
	}
	call, err := f.word(roleKind, string(calllog.Call))
	if err != nil {
		return err
	}
	s = f.end
	s.bind(1, outcome)
	s.bind(2, took)
	s.bind(3, e.Bytes)
	bindCall(s, 4, e.Call)
	s.bind(5, k.id)
	s.bind(6, call)
	return s.exec()
}

func bindCall(s *statement, i int, call string) {
	if call == "" {
		s.bind(i, nil)
		return
	}
	s.bind(i, cut(call))
}

// cut returns s without what no record of ours has: a long name, and a zero, at which SQLite may end a text.
func cut(s string) string {
	if len(s) > maxPath {
		s = s[:maxPath]
	}
	if i := bytes.IndexByte([]byte(s), 0); i >= 0 {
		s = s[:i]
	}
	return s
}

// subjectOf is the tool, or where there is none the method.
func subjectOf(r *calllog.Record) string {
	if r.Tool != "" {
		return r.Tool
	}
	return r.Method
}

func (f *follower) word(role int64, text string) (int64, error) {
	w := word{role, cut(text)}
	if id, ok := f.words[w]; ok {
		return id, nil
	}
	f.addWord.bind(1, role)
	f.addWord.bind(2, w.text)
	f.getWord.bind(1, role)
	f.getWord.bind(2, w.text)
	id, err := find(f.addWord, f.getWord)
	if err == nil {
		if len(f.words) >= maxKnown {
			clear(f.words)
		}
		f.words[w] = id
	}
	return id, err
}

// placesOf returns the paths of a record, as ids.
func (f *follower) placesOf(r *calllog.Record) ([]byte, error) {
	var list []byte
	add := func(path string) error {
		if path = cut(path); path == "" {
			return nil
		}
		id, ok := f.places[path]
		if !ok {
			f.addPath.bind(1, path)
			f.getPath.bind(1, path)
			var err error
			if id, err = find(f.addPath, f.getPath); err != nil {
				return err
			}
			if len(f.places) >= maxKnown {
				clear(f.places)
			}
			f.places[path] = id
		}
		list = binary.AppendUvarint(list, uint64(id))
		return nil
	}
	for i := range r.Paths {
		p := &r.Paths[i]
		if err := add(p.Resolved); err != nil {
			return nil, err
		}
		if p.Given != p.Resolved {
			if err := add(p.Given); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// find adds a row unless it is there, and returns its id.
func find(add, get *statement) (int64, error) {
	if err := add.exec(); err != nil {
		return 0, err
	}
	get.step()
	id := get.int(0)
	return id, get.reset()
}
