package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// DefaultLimit is the longest line a reader takes when it is not told otherwise, in bytes.
const DefaultLimit = 64 << 20

// Reader cuts a stream into lines. It is not safe for concurrent use. It does not close what it reads from.
type Reader struct {
	src   *bufio.Reader
	limit int
}

// NewReader returns a reader of lines up to limit bytes; 0 is DefaultLimit.
func NewReader(r io.Reader, limit int) *Reader {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Reader{src: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// Next returns the next line that is not blank, without its line end. The line belongs to the caller. A line over the
// limit is skipped and reported as a *Refusal, with its id when it has one; the line after it can be read. The last line
// counts also without a line end. At the end of the stream the error is io.EOF.
func (r *Reader) Next() ([]byte, error) {
	for {
		line, err := r.next()
		if err != nil || len(bytes.TrimSpace(line)) > 0 {
			return line, err
		}
	}
}

func (r *Reader) next() ([]byte, error) {
	part, err := r.src.ReadSlice('\n')
	if err == nil && len(part) <= r.limit {
		return join(nil, part), nil
	}
	var chunks [][]byte
	for size := 0; ; {
		size += len(bytes.TrimSuffix(part, []byte("\n")))
		ended := err == nil || errors.Is(err, io.EOF)
		switch {
		case errors.Is(err, io.EOF) && size == 0:
			return nil, io.EOF
		case !ended && !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case size > r.limit:
			return nil, r.skip(append(chunks, part), ended)
		case ended:
			return join(chunks, part), nil
		}
		chunks = append(chunks, bytes.Clone(part))
		part, err = r.src.ReadSlice('\n')
	}
}

// join makes one line, with a line end behind it that Writer finds there.
func join(chunks [][]byte, last []byte) []byte {
	last = bytes.TrimSuffix(last, []byte("\n"))
	size := len(last)
	for _, c := range chunks {
		size += len(c)
	}
	line := make([]byte, 0, size+1)
	for _, c := range chunks {
		line = append(line, c...)
	}
	return append(append(line, last...), '\n')[:size]
}

// skip goes to the end of a line that is too long, where it has not ended yet, looking for its id on the way.
func (r *Reader) skip(read [][]byte, ended bool) error {
	var f finder
	for _, c := range read {
		f.scan(c)
	}
	for !ended {
		part, err := r.src.ReadSlice('\n')
		f.scan(part)
		switch {
		case err == nil, errors.Is(err, io.EOF):
			ended = true
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
	return &Refusal{
		Code:   CodeInvalidRequest,
		ID:     f.id(),
		Kind:   f.kind(),
		Reason: fmt.Sprintf("a message longer than %d bytes", r.limit),
	}
}
