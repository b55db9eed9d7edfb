package calllog

import (
	"bufio"
	"bytes"
	"container/heap"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	suffix  = ".jsonl"
	maxLine = 64 << 20 // bytes of a line that is read; a record has less

	// pollEvery is how often Follow looks. Watching by the kernel would hold every file of the directory open on macOS.
	pollEvery = 200 * time.Millisecond
)

// Entry is a record as it was read.
type Entry struct {
	Record
	// File is the path of the file it is in, Line its bytes without the line end, Offset where it begins there.
	File   string
	Line   []byte
	Offset int64
}

// Filter selects records. The zero value selects all; several conditions must all hold.
type Filter struct {
	// Server is the name of the server. It selects also what a guard of ours behind that server logged (see Create).
	Server string
	// Call is the short id of a call.
	Call string
	// Since is the earliest time.
	Since time.Time
	// Denied selects requests that were refused, and what the kernel kept a confined server from.
	Denied bool
	// Roots selects what is about roots: questions, answers, changes, and notifications of a changed roots list.
	Roots bool
}

// Match reports whether f selects r.
func (f Filter) Match(r *Record) bool {
	switch {
	case f.Server != "" && r.Server != f.Server && !strings.HasPrefix(r.Server, f.Server+"/"),
		f.Call != "" && r.Call != f.Call,
		r.Time.Before(f.Since),
		f.Denied && !((r.Kind == Call || r.Kind == Note) && r.Verdict == Deny),
		f.Roots && !aboutRoots(r):
		return false
	}
	return true
}

// may reports whether a line can hold a record that f selects: what Match would say, without reading it.
func (f Filter) may(line []byte) bool {
	return (!f.Denied || bytes.Contains(line, []byte(`"verdict":"deny"`))) &&
		(!f.Roots || bytes.Contains(line, []byte(`"kind":"roots-`)) || bytes.Contains(line, []byte(`"kind":"list-`))) &&
		(f.Call == "" || bytes.Contains(line, []byte(f.Call)))
}

func aboutRoots(r *Record) bool {
	switch r.Kind {
	case RootsAsked, RootsAnswered, RootsChanged:
		return true
	case ListChanged:
		return r.Method == "notifications/roots/list_changed"
	}
	return false
}

// UnreadableError is a line of a log file that is not a record.
type UnreadableError struct {
	File string
	Line int
	Err  error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("reading %s:%d: not a record: %v", e.File, e.Line, e.Err)
}

func (e *UnreadableError) Unwrap() error { return e.Err }

// Read yields the records of one file. A line that is not a record yields an *UnreadableError and reading goes on; any
// other error is the last thing yielded. The incomplete last line of a run that goes on or crashed is left out. Read
// does not check the chain: Verify does.
func Read(path string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		r := NewReader(path, 0)
		defer r.Close()
		for {
			e, err := r.Next()
			if err == io.EOF || !yield(e, err) || fatal(err) {
				return
			}
		}
	}
}

// Reader reads the records of one file from a place on, as far as they are written, and what is written later. It is not
// safe for concurrent use. Whoever made it closes it.
type Reader struct{ tail tail }

// NewReader returns a reader of the file path. Offset is where a record begins, or the end of the last one. Nothing is opened
// before the first Next.
func NewReader(path string, offset int64) *Reader {
	return &Reader{tail{path: path, offset: offset}}
}

// Next returns the next record, with errors as of Read, of which lines are counted from where the reader began. At the end it
// returns io.EOF; it can be called again when the file has grown.
func (r *Reader) Next() (Entry, error) { return r.tail.next(Filter{}) }

// Offset is how far was read: what follows is no line yet, or was not read.
func (r *Reader) Offset() int64 { return r.tail.offset }

// Close closes the file. A reader that is used again opens it again.
func (r *Reader) Close() { r.tail.close() }

// ReadDir yields the records of all files in dir that f selects, in the order of time; those of one file keep their
// order whatever the clock did. Errors are as with Read. A missing directory is an error that is fs.ErrNotExist.
func ReadDir(dir string, f Filter) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		d := directory{path: dir, filter: f}
		if err := d.list(); err != nil {
			yield(Entry{}, err)
			return
		}
		d.read(yield)
	}
}

// Follow yields what ReadDir yields, and then what is new, also in new files, until ctx is done. It waits for a
// directory that is missing.
func Follow(ctx context.Context, dir string, f Filter) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		d := directory{path: dir, filter: f}
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for {
			if err := d.list(); err != nil && !errors.Is(err, fs.ErrNotExist) {
				yield(Entry{}, err)
				return
			}
			if !d.read(yield) {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}

// Files returns the names of the log files in dir in the order of time. A missing directory is an error that is fs.ErrNotExist.
func Files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing the log: %w", err)
	}
	var names []string
	for _, e := range entries {
		if _, ok := began(e.Name()); ok && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// began returns when the run began whose file has this name, and whether the name is that of a log file at all. A name
// that cannot be shown as it is was not given by us.
func began(name string) (time.Time, bool) {
	stamp, rest, ok := strings.Cut(name, "-")
	if !ok || !strings.HasSuffix(rest, suffix) || Visible(name) != name {
		return time.Time{}, false
	}
	t, err := time.Parse(nameLayout, stamp)
	return t, err == nil
}

// directory is a directory that is being read, once or again and again.
type directory struct {
	path   string
	filter Filter
	tails  []*tail // in the order of time
	known  map[string]bool
}

// list takes notice of files that are new.
func (d *directory) list() error {
	names, err := Files(d.path)
	if d.known == nil {
		d.known = map[string]bool{}
	}
	for _, name := range names {
		if !d.known[name] {
			d.known[name] = true
			at, _ := began(name)
			d.tails = append(d.tails, &tail{path: filepath.Join(d.path, name), at: at})
		}
	}
	return err
}

// read yields what is new, in the order of time, and reports whether to go on. Only files that overlap in time are open
// together.
func (d *directory) read(yield func(Entry, error) bool) bool {
	var grown []*tail
	d.tails = slices.DeleteFunc(d.tails, func(t *tail) bool {
		info, err := os.Stat(t.path)
		if err == nil && info.Size() > t.offset && !info.ModTime().Before(d.filter.Since) {
			grown = append(grown, t)
		}
		return err != nil || t.ended // pruned, or done with
	})
	slices.SortStableFunc(grown, func(a, b *tail) int { return a.at.Compare(b.at) })
	var q queue
	defer func() {
		for _, h := range q {
			h.tail.close()
		}
	}()
	for {
		for len(grown) > 0 && (len(q) == 0 || !grown[0].at.After(q[0].tail.at)) {
			q.advance(grown[0], d.filter)
			grown = grown[1:]
		}
		if len(q) == 0 {
			return true
		}
		h := heap.Pop(&q).(head)
		if !yield(h.entry, h.err) {
			h.tail.close()
			return false
		}
		if fatal(h.err) {
			h.tail.ended = true
			h.tail.close()
			continue
		}
		q.advance(h.tail, d.filter)
	}
}

// fatal reports whether err ends the reading of a file.
func fatal(err error) bool {
	return err != nil && !errors.As(err, new(*UnreadableError))
}

// head is the next thing to yield of a file.
type head struct {
	entry Entry
	err   error
	tail  *tail
}

// queue has the earliest head first.
type queue []head

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].tail.at.Before(q[j].tail.at) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(h any)        { *q = append(*q, h.(head)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// advance puts in what comes next of t, if anything.
func (q *queue) advance(t *tail, f Filter) {
	e, err := t.next(f)
	if err != io.EOF && !errors.Is(err, fs.ErrNotExist) { // pruned meanwhile
		heap.Push(q, head{e, err, t})
	}
}

// tail is a file of which all before offset was read.
type tail struct {
	path   string
	at     time.Time // of the last record read, or of the file's beginning; never goes back
	offset int64
	line   int
	ended  bool // the exit record was read

	file  *os.File // nil unless something is being read
	lines *bufio.Reader
}

func (t *tail) close() {
	if t.file != nil {
		t.file.Close()
		t.file, t.lines = nil, nil
	}
}

// next reads the next record that f selects. At the end it returns io.EOF and closes the file; it can be called again
// when the file has grown.
func (t *tail) next(f Filter) (Entry, error) {
	if t.file == nil {
		file, err := os.Open(t.path)
		if err != nil {
			return Entry{}, fmt.Errorf("reading the log: %w", err)
		}
		t.file, t.lines = file, bufio.NewReaderSize(io.NewSectionReader(file, t.offset, 1<<62), 64<<10)
	}
	for {
		line, n, err := readLine(t.lines)
		if err != nil {
			t.close()
			if err == io.EOF {
				return Entry{}, io.EOF
			}
			return Entry{}, fmt.Errorf("reading the log: %w", err)
		}
		t.offset += n
		t.line++
		e := Entry{File: t.path, Line: line, Offset: t.offset - n}
		switch {
		case line == nil:
			err = errLong
		case !f.may(line) && !bytes.Contains(line, []byte(`"kind":"exit"`)):
			continue
		default:
			err = json.Unmarshal(line, &e.Record)
		}
		if err != nil {
			return Entry{File: t.path}, &UnreadableError{t.path, t.line, err}
		}
		if e.Time.After(t.at) {
			t.at = e.Time
		}
		t.ended = t.ended || e.Kind == Exit
		if f.Match(&e.Record) {
			return e, nil
		}
	}
}

var errLong = fmt.Errorf("longer than %d bytes", maxLine)

// readLine reads up to the end of a line: the line without it, nil when it is too long, and how many bytes were read. What
// has no end is not a line: then the error is io.EOF and line is what there is.
func readLine(r *bufio.Reader) (line []byte, n int64, err error) {
	long := false
	for {
		part, err := r.ReadSlice('\n')
		n += int64(len(part))
		if long = long || len(line)+len(part) > maxLine; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
		case err != nil:
			return line, n, err
		case long:
			return nil, n, nil
		default:
			return line[:len(line)-1], n, nil
		}
	}
}
