package calllog

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Options say how a log is written. The zero value is the usual way.
type Options struct {
	// Sync makes every record durable before Append returns: it costs what an fsync costs.
	Sync bool
	// Bodies writes free text and long strings of arguments out instead of their sizes, up to 8 MiB a call. Secrets are
	// redacted all the same.
	Bodies bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Log is the log of one run. It is safe for use by any goroutine. Whoever created it closes it.
type Log struct {
	path    string
	server  string
	sync    bool
	now     func() time.Time
	discard bool

	ids struct {
		sync.Mutex
		first, n uint32
	}

	mu      sync.Mutex
	file    file // nil when closed
	size    int64
	seq     uint64
	prev    digits
	enc     encoder
	waiting []byte // whole lines that are not written yet
	timed   bool   // they will be, soon
	fault   error  // why nothing can be appended any more
}

const (
	soon       = 50 * time.Millisecond
	maxWaiting = 64 << 10 // bytes
)

// file is what a Log needs of its file.
type file interface {
	io.WriteCloser
	Truncate(size int64) error
	Sync() error
}

// digits is a SHA-256 in hex.
type digits [64]byte

// noPrev is the prev of a first record.
var noPrev = digits([]byte(strings.Repeat("0", 64)))

// Create makes a log file in dir, which it makes too where it is missing (mode 0700), and writes start, whose kind it
// sets, as its first record. Start.Server names the server and Start.PID this process. When a guard that logs to the same
// directory started this process as its own server, the records carry both names, GUARDED/SERVER: two logs, one story.
func Create(dir string, start Record, o Options) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the log directory: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if above := above(dir, os.Getppid()); above != "" {
		start.Server = above + "/" + start.Server
	}
	path := filepath.Join(dir, fileName(o.Now(), start.Server, start.PID))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("creating the log: %w", err)
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking the log: %w", err)
	}
	l := newLog(f, path, start.Server, o)
	start.Kind = Start
	if err := l.Append(&start); err != nil {
		f.Close()
		os.Remove(path)
		return nil, err
	}
	return l, nil
}

func newLog(f file, path, server string, o Options) *Log {
	l := &Log{path: path, server: server, sync: o.Sync, now: o.Now, file: f, prev: noPrev}
	l.enc.walker.bodies = o.Bodies
	return l
}

// Discard returns a log that keeps nothing, for `--log off`.
func Discard() *Log { return &Log{discard: true} }

// above returns what the process pid guards, as it logs to dir; "" when it does not.
func above(dir string, pid int) string {
	d, err := os.Open(dir)
	if err != nil {
		return "" // that nothing can be logged there is found out at once
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1) // there may be thousands, so only those of the process are looked at
	part := "-" + strconv.Itoa(pid) + "-"
	names = slices.DeleteFunc(names, func(name string) bool {
		if !strings.Contains(name, part) {
			return true
		}
		_, ours := began(name)
		return !ours
	})
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		path := filepath.Join(dir, name)
		if parts := strings.Split(name, "-"); len(parts) != 4 || parts[2] != strconv.Itoa(pid) || !runs(path) {
			continue
		}
		if ends, err := ReadEnds(path, 1); err == nil && ends.Start.PID == pid {
			return ends.Start.Server
		}
	}
	return ""
}

// fileName returns a name for a run of server that begins at t in the process pid.
func fileName(t time.Time, server string, pid int) string {
	clean := []rune(server)
	clean = clean[:min(len(clean), 40)]
	for i, r := range clean {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' {
			clean[i] = '_' // also for '-', which separates the parts of the name
		}
	}
	var random [4]byte
	rand.Read(random[:])
	return t.UTC().Format(nameLayout) + "-" + string(clean) + "-" + strconv.Itoa(pid) + "-" + hex.EncodeToString(random[:]) + suffix
}

// Discards reports whether nothing is kept, so that no record needs to be made.
func (l *Log) Discards() bool { return l.discard }

// Path returns the name of the log's file, "" when nothing is kept.
func (l *Log) Path() string { return l.path }

// NewID returns a short id for a call or a question, like c7f3a2. The first 16 million ids of a run differ from each
// other.
func (l *Log) NewID() string {
	l.ids.Lock()
	if l.ids.n == 0 {
		var random [4]byte
		rand.Read(random[:])
		l.ids.first = uint32(random[0])<<16 | uint32(random[1])<<8 | uint32(random[2])
	}
	l.ids.n++
	n := l.ids.first + l.ids.n*0x9e3779 // odd, so that every number of 24 bits has its turn
	l.ids.Unlock()
	return string([]byte{hexDigits[n>>20&15], hexDigits[n>>16&15], hexDigits[n>>12&15], hexDigits[n>>8&15], hexDigits[n>>4&15], hexDigits[n&15]})
}

// Append writes r as the next record. When it returns an error r is not in the log, and what r is about must not happen.
// A record that could be written only in part is taken back, so that the next one can follow; where that is not
// possible, every later Append returns the error. R is not changed and not kept.
func (l *Log) Append(r *Record) error {
	if l.discard {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.append(r)
}

// AppendSoon is Append for a record on which nothing depends: it is written together with the next one, and when none comes,
// soon. What is still waiting when the process is killed is lost. An error is that of the record itself or of one before it.
func (l *Log) AppendSoon(r *Record) error {
	if l.discard {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sync || len(l.waiting) > maxWaiting {
		return l.append(r)
	}
	if err := l.usable(); err != nil {
		return err
	}
	l.waiting = append(l.waiting, l.line(r)...)
	if !l.timed {
		l.timed = true
		time.AfterFunc(soon, l.flush)
	}
	return nil
}

// flush writes what is waiting. When that fails it waits on, and the next Append says why.
func (l *Log) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timed = false
	if len(l.waiting) > 0 && l.usable() == nil {
		l.write()
	}
}

func (l *Log) usable() error {
	switch {
	case l.fault != nil:
		return l.fault
	case l.file == nil:
		return fmt.Errorf("appending to the log: %w", os.ErrClosed)
	}
	return nil
}

func (l *Log) append(r *Record) error {
	if err := l.usable(); err != nil {
		return err
	}
	seq, prev, before := l.seq, l.prev, len(l.waiting)
	l.waiting = append(l.waiting, l.line(r)...)
	if err := l.write(); err != nil {
		l.seq, l.prev, l.waiting = seq, prev, l.waiting[:before]
		return err
	}
	return nil
}

// line returns r as the next line of the log.
func (l *Log) line(r *Record) []byte {
	line, hash := l.enc.line(r, l.seq+1, l.now(), l.server, l.prev)
	l.seq++
	l.prev = hash
	return line
}

// write writes what is waiting, all of it or nothing.
func (l *Log) write() error {
	n, err := l.file.Write(l.waiting)
	if err == nil && l.sync {
		err = l.file.Sync()
	}
	if err == nil && n < len(l.waiting) {
		err = io.ErrShortWrite
	}
	if err != nil {
		err = fmt.Errorf("appending to the log: %w", err)
		if undo := l.file.Truncate(l.size); undo != nil {
			l.fault = fmt.Errorf("%w (and taking the part of a record back: %v)", err, undo)
			return l.fault
		}
		return err
	}
	l.size += int64(n)
	if l.waiting = l.waiting[:0]; cap(l.waiting) > maxKept {
		l.waiting = nil
	}
	return nil
}

// Close writes the exit record and closes the file. A second Close does nothing.
func (l *Log) Close(status int, reason string) error {
	if l.discard {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.append(&Record{Kind: Exit, Status: status, Reason: reason})
	err = errors.Join(err, l.file.Close())
	l.file = nil
	return err
}
