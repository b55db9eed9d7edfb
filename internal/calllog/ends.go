package calllog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Run is the file of one run.
type Run struct {
	Path string
	// On is set while the run goes on.
	On bool
}

// Runs lists the runs in dir in the order of time. Files are asked for their locks and not read, so the length of a log
// does not count.
func Runs(dir string) ([]Run, error) {
	names, err := Files(dir)
	if err != nil {
		return nil, err
	}
	var all []Run
	for _, name := range names {
		path := filepath.Join(dir, name)
		f, err := os.Open(path)
		if err != nil {
			continue // pruned meanwhile, or not to be read: verifying says so
		}
		all = append(all, Run{path, locked(f)})
		f.Close()
	}
	return all, nil
}

// Ends is how a file begins and ends.
type Ends struct {
	// Start is the first record; its kind is empty when it cannot be read.
	Start Entry
	// Last are the last records in their order, those that can be read.
	Last []Entry
	// Whole is set when Last are all the records there are, so that it begins with Start.
	Whole bool
}

// ReadEnds reads the first record of a file, and as many of the last ones as fit into so many bytes, or one that does not.
// The chain is not checked, and of entries the lines are not numbered.
func ReadEnds(path string, size int64) (Ends, error) {
	var ends Ends
	f, err := os.Open(path)
	if err != nil {
		return ends, fmt.Errorf("reading the log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ends, fmt.Errorf("reading the log: %w", err)
	}
	read := func(line []byte) (e Entry, ok bool) {
		e = Entry{File: path, Line: line}
		return e, json.Unmarshal(line, &e.Record) == nil
	}
	first, _, err := readLine(bufio.NewReader(io.NewSectionReader(f, 0, min(info.Size(), maxLine))))
	if err != nil && err != io.EOF {
		return ends, fmt.Errorf("reading the log: %w", err)
	}
	if e, ok := read(first); ok && err == nil && e.Kind == Start {
		ends.Start = e
	}
	for {
		from := max(0, info.Size()-size)
		tail, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
		if err != nil {
			return ends, fmt.Errorf("reading the log: %w", err)
		}
		if from > 0 { // in the middle of a line, or at its end
			_, tail, _ = bytes.Cut(tail, []byte("\n"))
		}
		end := bytes.LastIndexByte(tail, '\n')
		if end < 0 && from > 0 && size < maxLine {
			size *= 4
			continue
		}
		ends.Whole = from == 0
		for line := range bytes.Lines(tail[:end+1]) {
			if e, ok := read(bytes.TrimSuffix(line, []byte("\n"))); ok {
				ends.Last = append(ends.Last, e)
			}
		}
		return ends, nil
	}
}
