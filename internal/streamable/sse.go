package streamable

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// event is one event of an event stream.
type event struct {
	// id is what a client names to go on behind this event, if hasID is set.
	id    string
	hasID bool
	// name is the type; "" is "message".
	name string
	// data may be empty: a server gives an id in advance by such an event.
	data []byte
	// retry is how long a client should wait before it comes back; 0 when nothing is said.
	retry time.Duration
}

// keepAlive is a comment, which nobody reads, between events.
const keepAlive = ": keep-alive\n\n"

// appendEvent appends e as it is written. A line end within the data, which in JSON stands only between values, begins
// another line of the event.
func appendEvent(b []byte, e event) []byte {
	if e.name != "" {
		b = append(append(append(b, "event: "...), e.name...), '\n')
	}
	if e.hasID {
		b = append(append(append(b, "id: "...), e.id...), '\n')
	}
	if e.retry > 0 {
		b = append(strconv.AppendInt(append(b, "retry: "...), e.retry.Milliseconds(), 10), '\n')
	}
	for data := e.data; ; {
		b = append(b, "data: "...)
		i := lineEnd(data)
		if i < 0 {
			return append(append(b, data...), "\n\n"...)
		}
		b = append(append(b, data[:i]...), '\n')
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			i++
		}
		data = data[i+1:]
	}
}

// lineEnd returns where the first line of b ends, -1 when it does not.
func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// errEventTooLong ends a stream whose next event is longer than its reader takes.
var errEventTooLong = errors.New("an event of the stream is too long")

// eventReader cuts a stream into events, each as soon as it is there. It is not safe for concurrent use.
type eventReader struct {
	src   *bufio.Reader
	limit int
	alive func()
	begun bool // the stream's first bytes were read
	cr    bool // the last line ended with CR, so that an LF that follows belongs to it
	size  int  // of the event so far
}

// newEventReader returns a reader of events of at most limit bytes. Alive, if set, is called for each line, comments too: the
// other end is alive.
func newEventReader(r io.Reader, limit int, alive func()) *eventReader {
	return &eventReader{src: bufio.NewReader(r), limit: limit, alive: alive}
}

// next returns the next event that has data or an id. At the end of the stream the error is io.EOF; an event that the end
// cuts off counts as not sent.
func (r *eventReader) next() (event, error) {
	var e event
	r.size = 0
	seen, lines := false, 0
	for {
		line, err := r.line()
		if err != nil {
			return event{}, err
		}
		if r.alive != nil {
			r.alive()
		}
		if len(line) == 0 {
			if seen {
				return e, nil
			}
			e, lines, r.size = event{}, 0, 0
			continue
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "data":
			if lines++; lines > 1 {
				e.data = append(e.data, '\n')
			}
			if lines == 1 {
				e.data = value // the line is ours
			} else {
				e.data = append(e.data, value...)
			}
			seen = true
		case "event":
			e.name = string(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				e.id, e.hasID, seen = string(value), true, true
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// line returns the next line without its end, in bytes of its own.
func (r *eventReader) line() ([]byte, error) {
	var line []byte
	for {
		if _, err := r.src.Peek(1); err != nil {
			return nil, err
		}
		part, _ := r.src.Peek(r.src.Buffered())
		if !r.begun {
			r.begun = true
			if part[0] == 0xEF { // a byte order mark; what else begins so is no field
				if mark, _ := r.src.Peek(3); string(mark) == "\uFEFF" {
					r.src.Discard(3)
				}
				continue
			}
		}
		if r.cr {
			r.cr = false
			if part[0] == '\n' {
				r.src.Discard(1)
				continue
			}
		}
		end := lineEnd(part)
		n := len(part)
		if end >= 0 {
			n = end
		}
		if r.size += n; r.size > r.limit {
			return nil, errEventTooLong
		}
		line = append(line, part[:n]...)
		if end >= 0 {
			r.cr = part[end] == '\r'
			r.src.Discard(end + 1)
			return line, nil
		}
		r.src.Discard(n)
	}
}
