package logindex

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/rootbound/rootbound/internal/calllog"
)

const (
	window  = 256 << 10 // bytes of a file that are read at once
	maxOpen = 64        // files that are open together
)

// readers read lines of files in the order of time, or against it, and so most of them from what is in memory already.
type readers struct {
	dir  string
	open map[string]*span
}

// span is an open file, and the bytes of it that were read last.
type span struct {
	file *os.File
	at   int64
	buf  []byte
}

func (r *readers) close() {
	for _, s := range r.open {
		s.file.Close()
	}
	r.open = nil
}

// line returns a line of a file, without its end, which is good until the next call. It is not ok when there is none.
func (r *readers) line(name string, at, size int64, up bool) ([]byte, bool) {
	s := r.open[name]
	if s == nil {
		if len(r.open) >= maxOpen {
			r.close()
		}
		f, err := os.Open(filepath.Join(r.dir, name))
		if err != nil {
			return nil, false
		}
		if r.open == nil {
			r.open = map[string]*span{}
		}
		s = &span{file: f}
		r.open[name] = s
	}
	if at < s.at || at+size > s.at+int64(len(s.buf)) {
		from := at
		n := max(size, window)
		if !up {
			from = max(0, at+size-n)
			n = at + size - from
		}
		if int64(cap(s.buf)) < n {
			s.buf = make([]byte, n)
		}
		got, err := s.file.ReadAt(s.buf[:n], from)
		s.at, s.buf = from, s.buf[:got]
		if err != nil && at+size > from+int64(got) {
			return nil, false
		}
	}
	return s.buf[at-s.at:][:size], true
}

// parse reads a line.
func parse(line []byte) (calllog.Entry, bool) {
	e := calllog.Entry{Line: line}
	return e, json.Unmarshal(line, &e.Record) == nil
}
