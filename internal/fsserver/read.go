package fsserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/rootbound/rootbound/rootfs"
)

var readFile = tool{
	name:        "read_file",
	title:       "Read File (Deprecated)",
	description: "Read a file as text: the old name of read_text_file, which takes the same and answers the same.",
	params:      readTextFile.params,
	annotations: readOnly,
	run:         readTextFile.run,
}

var readTextFile = tool{
	name:  "read_text_file",
	title: "Read Text File",
	description: "Read a file as text, whole or in part. It is read as UTF-8 whatever its name is, and bytes that are not UTF-8 " +
		"come as U+FFFD. With 'head' only the first lines are read, with 'tail' only the last ones; give one of them for a file " +
		"that is large. " + onlyWithin,
	params: []param{
		aPath,
		{name: "tail", schema: aNumber.says("Read only this many lines at the end of the file")},
		{name: "head", schema: aNumber.says("Read only this many lines at the beginning of the file")},
	},
	annotations: readOnly,
	run: func(c *call) (answer, error) {
		text, err := c.readText(c.args.text("path"), c.args.number("head"), c.args.number("tail"))
		return answer{bytes: text}, err
	},
}

var readMultipleFiles = tool{
	name:  "read_multiple_files",
	title: "Read Multiple Files",
	description: "Read several files as text, whole, in one call. The answer has each path with what is in the file behind it, and '---' " +
		"between them. A file that cannot be read has its error there and does not keep the others from being read. " + onlyWithin,
	params: []param{{
		name: "paths", required: true,
		schema: schema{kind: "array", description: "The paths of the files, at least one", least: 1, items: &aString},
	}},
	annotations: readOnly,
	run: func(c *call) (answer, error) {
		text, err := c.readFiles(c.args.list("paths"))
		return answer{text: text}, err
	},
}

// readFiles reads files one after the other, together not more than one answer carries.
func (c *call) readFiles(paths []string) (string, error) {
	const between = "\n---\n"
	var text strings.Builder
	for i, arg := range paths {
		if err := c.ctx.Err(); err != nil {
			return "", err
		}
		if i > 0 {
			text.WriteString(between)
		}
		if text.Len() >= maxText {
			fmt.Fprintf(&text, "%d more files were not read, because one answer carries at most %d bytes of text.", len(paths)-i, maxText)
			break
		}
		content, err := c.readText(arg, 0, 0)
		if left := maxText - text.Len(); err == nil && len(content) > left {
			err = refuse(codeTooLarge, "EFBIG: file too large: its text has %d bytes, and this answer has room for %d more. Read it in another call.", len(content), left)
		}
		if err != nil {
			note(c.request, err, true)
			fmt.Fprintf(&text, "%s: Error - %s", show(arg), c.errorText(c.request, err))
			continue
		}
		fmt.Fprintf(&text, "%s:\n%s\n", show(arg), content)
	}
	return text.String(), nil
}

// readText reads a file whole, or lines of its beginning or end. The text is gone when the next one is read.
func (c *call) readText(arg string, head, tail float64) ([]byte, error) {
	if head != 0 && tail != 0 {
		return nil, refuse(codeArguments, "Cannot specify both head and tail parameters simultaneously")
	}
	op := opOpen
	if tail != 0 {
		op = opStat
	}
	var f *os.File
	var info fs.FileInfo
	path, err := c.at(op, arg, func(path string) (err error) {
		f, info, err = c.opened(func() (*os.File, error) { return c.fs.Open(path) })
		return err
	})
	if err != nil {
		return nil, err
	}
	defer f.Close()

	var text []byte
	asked, size := "", info.Size()
	switch {
	case head < 0 || tail < 0:
		return []byte{}, nil
	case head > 0:
		asked = fmt.Sprintf("head %v", head)
		text, err = firstLines(c.ctx, f, count(math.Ceil(head)), make([]byte, firstBlock))
	case tail >= 1:
		asked = fmt.Sprintf("tail %v", tail)
		text, err = lastLines(c.ctx, f, size, count(math.Trunc(tail)), make([]byte, firstBlock))
	case size > maxText:
		err = errTooLong
	default:
		text, err = readAll(c.ctx, f, c.lent.take(int(size)+1))
	}
	switch {
	case errors.Is(err, errTooLong) && asked == "":
		return nil, refuse(codeTooLarge, "EFBIG: file too large, read '%s': it has %d bytes, and one answer carries at most %d. Read a part of it with %s.",
			show(c.real(path)), size, maxText, c.partialReads())
	case errors.Is(err, errTooLong):
		return nil, refuse(codeTooLarge, "EFBIG: file too large, read '%s': %s is more than %d bytes, and one answer carries no more. Ask for fewer lines.",
			show(c.real(path)), asked, maxText)
	case err != nil:
		return nil, c.explain(opRead, path, err)
	case tail > 0:
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	}
	if !utf8.Valid(text) {
		text = []byte(decode(text))
	}
	return text, nil
}

// partialReads names what reads a part of a file.
func (c *call) partialReads() string {
	if c.compat {
		return "head or tail"
	}
	return "head or tail, or with " + readLines.name
}

const (
	// block is how much of a file is read between two looks at whether the client still waits, in bytes.
	block = 64 << 10
	// firstBlock is the same for a few lines, which are mostly short.
	firstBlock = 16 << 10
)

// errTooLong: more than maxText bytes.
var errTooLong = errors.New("too long")

// count makes a number of lines of a number.
func count(f float64) int64 {
	const many = 1 << 62
	if f >= many {
		return many
	}
	return int64(f)
}

// readAll reads to the end, into memory that has room for a byte more than is expected.
func readAll(ctx context.Context, r io.Reader, text []byte) ([]byte, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
		n, err := r.Read(text[len(text):min(cap(text), len(text)+block)])
		text = text[:len(text)+n]
		switch {
		case len(text) > maxText:
			return nil, errTooLong
		case err == io.EOF:
			return text, nil
		case err != nil:
			return nil, err
		}
	}
}

// firstLines returns the first n lines without the last line end. It reads by buf, and not more than it must.
func firstLines(ctx context.Context, r io.Reader, n int64, buf []byte) ([]byte, error) {
	var text []byte
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		got, err := r.Read(buf)
		part := buf[:got]
		for end := 0; ; {
			i := bytes.IndexByte(part[end:], '\n')
			if i < 0 {
				break
			}
			if n--; n == 0 {
				return bounded(append(text, part[:end+i]...))
			}
			end += i + 1
		}
		text = append(text, part...)
		switch {
		case err == io.EOF:
			return bounded(bytes.TrimSuffix(text, []byte("\n")))
		case err != nil:
			return nil, err
		case len(text) > maxText+1: // one line end may still be cut off
			return nil, errTooLong
		}
	}
}

// bounded returns a text, or errTooLong.
func bounded(text []byte) ([]byte, error) {
	if len(text) > maxText {
		return nil, errTooLong
	}
	return text, nil
}

// lastLines returns the last n lines of a file of size bytes, where the text behind the last line end is a line too, also
// when it is empty. It looks for them backwards, by buf.
func lastLines(ctx context.Context, r io.ReaderAt, size, n int64, buf []byte) ([]byte, error) {
	start := size
	for start > 0 && n > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if size-start > maxText {
			return nil, errTooLong
		}
		part := buf[:min(int64(len(buf)), start)]
		start -= int64(len(part))
		if err := readAt(r, part, start); err != nil {
			return nil, err
		}
		for i := len(part); ; {
			if i = bytes.LastIndexByte(part[:i], '\n'); i < 0 {
				break
			}
			if n--; n == 0 {
				start += int64(i) + 1
				break
			}
		}
	}
	if size-start > maxText {
		return nil, errTooLong
	}
	text := make([]byte, size-start)
	return text, readAt(r, text, start)
}

// readAt fills b. A file that was cut meanwhile is an error.
func readAt(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	}
	return err
}

// decode reads UTF-8 as browsers do: each part of what could have become a character is one U+FFFD.
func decode(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	s.Grow(len(b))
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			n = begun(b)
		}
		s.WriteRune(r)
		b = b[n:]
	}
	return s.String()
}

// begun returns how many bytes at the beginning of b, which is no character, could be the beginning of one; at least 1.
func begun(b []byte) int {
	size, low, high := 1, byte(0x80), byte(0xbf) // of the second byte
	switch c := b[0]; {
	case 0xc2 <= c && c <= 0xdf:
		size = 2
	case 0xe0 <= c && c <= 0xef:
		size = 3
	case 0xf0 <= c && c <= 0xf4:
		size = 4
	}
	switch b[0] {
	case 0xe0:
		low = 0xa0
	case 0xed:
		high = 0x9f
	case 0xf0:
		low = 0x90
	case 0xf4:
		high = 0x8f
	}
	n := 1
	for n < size && n < len(b) && low <= b[n] && b[n] <= high {
		n, low, high = n+1, 0x80, 0xbf
	}
	return n
}

const (
	// defaultLines is how many lines read_lines reads when it is not told.
	defaultLines = 2000
	// maxNumbered is how much read_lines answers, in bytes.
	maxNumbered = 1 << 20
	// maxLineShown is how much of one line it shows, in bytes.
	maxLineShown = 64 << 10
)

var readLines = tool{
	name:  "read_lines",
	title: "Read Lines",
	description: "Read some lines of a text file of any size. Each line comes with its number and a tab before it; they are not part of the " +
		"file. When there are more lines, the answer says where to go on. " + onlyWithin,
	params: []param{
		aPath,
		{name: "offset", schema: schema{kind: "number", description: "The number of the first line to read; the first of a file is 1", value: "1"}},
		{name: "limit", schema: schema{kind: "number", description: "How many lines to read at most", value: strconv.Itoa(defaultLines)}},
	},
	annotations: readOnly,
	extra:       true,
	run: func(c *call) (answer, error) {
		offset, limit := c.args.number("offset"), c.args.number("limit")
		if offset < 1 || limit < 1 {
			return answer{}, refuse(codeArguments, "The first line is 1, and at least 1 line is read: offset is %v and limit is %v.", offset, limit)
		}
		var f *os.File
		path, err := c.at(opOpen, c.args.text("path"), func(path string) (err error) {
			f, _, err = c.opened(func() (*os.File, error) { return c.fs.Open(path) })
			return err
		})
		if err != nil {
			return answer{}, err
		}
		defer f.Close()
		ctx, cancel := context.WithTimeout(c.ctx, maxWalk)
		defer cancel()
		var read atomic.Int64
		defer c.report(&read, "bytes read")()
		text, err := numberedLines(ctx, countingReader{f, &read}, count(offset), count(limit), make([]byte, block))
		var late tooFar
		switch {
		case errors.As(err, &late):
			return answer{}, refuse(rootfs.Budget, "Looking for line %d of '%s' was ended after %v, at line %d. Lines before that can be read; "+
				"what is behind can be found with %s.", count(offset), show(c.real(path)), maxWalk, late, searchContent.name)
		case err != nil:
			return answer{}, c.explain(opRead, path, err)
		}
		return answer{text: text}, nil
	},
}

// tooFar is how many the lines are that there was time for, when none of them is to be shown.
type tooFar int64

func (n tooFar) Error() string { return fmt.Sprintf("there was time for %d lines", int64(n)) }

// numberedLines returns up to limit lines from the line with the number first on, and a line that says where to go on. It
// reads by buf, and keeps not more than the answer. When ctx is over in time, it returns the lines that there are, or tooFar.
func numberedLines(ctx context.Context, r io.Reader, first, limit int64, buf []byte) (string, error) {
	var text strings.Builder
	var line []byte // what has come of this line, as far as it is shown
	var cut int64   // how much of it is not
	begun := false  // something of it has come
	number := int64(1)
	end := func(all bool) {
		fmt.Fprintf(&text, "%d\t%s", number, decode(bytes.TrimSuffix(line, []byte("\r"))))
		switch {
		case !all:
			text.WriteString("… [this line goes on]")
		case cut > 0:
			fmt.Fprintf(&text, "… [%d more bytes in this line]", cut)
		}
		text.WriteByte('\n')
		line, cut = line[:0], 0
	}
	more := func() string {
		fmt.Fprintf(&text, "[More lines follow: go on with offset %d]", number)
		return text.String()
	}
	for {
		switch err := ctx.Err(); {
		case err == context.DeadlineExceeded && number >= first && begun:
			end(false)
			fallthrough
		case err == context.DeadlineExceeded && number > first:
			fmt.Fprintf(&text, "[Reading was ended here, because it took too long. What follows can be found with %s]", searchContent.name)
			return text.String(), nil
		case err == context.DeadlineExceeded:
			return "", tooFar(number)
		case err != nil:
			return "", err
		}
		got, err := r.Read(buf)
		for part := buf[:got]; len(part) > 0; {
			if number >= first && (number-first >= limit || text.Len() >= maxNumbered) {
				return more(), nil
			}
			begun = true
			i := bytes.IndexByte(part, '\n')
			piece := part
			if i >= 0 {
				piece = part[:i]
			}
			if number >= first {
				shown := piece[:min(len(piece), maxLineShown-len(line))]
				line = append(line, shown...)
				cut += int64(len(piece) - len(shown))
			}
			if i < 0 {
				break
			}
			if number >= first {
				end(true)
			}
			number, begun, part = number+1, false, part[i+1:]
		}
		switch {
		case err == io.EOF && begun && number >= first:
			end(true)
			number++
			fallthrough
		case err == io.EOF && number > first:
			return strings.TrimSuffix(text.String(), "\n"), nil
		case err == io.EOF:
			last := number - 1
			if begun {
				last++
			}
			if last == 0 {
				return "[The file is empty]", nil
			}
			return fmt.Sprintf("[The file ends with line %d]", last), nil
		case err != nil:
			return "", err
		}
	}
}
