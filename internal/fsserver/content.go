package fsserver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
)

var searchContent = tool{
	name:  "search_content",
	title: "Search File Contents",
	description: "Search the contents of files for a pattern, line by line, in one file or in a directory and all beneath it. The pattern " +
		"is an RE2 regular expression, or with 'literal' a text. The answer has, for each file, its path and the lines that match, with " +
		"their numbers, and at the end what was left out. Binary files and, unless 'gitignore' is false, ignored files are not " +
		"searched. Links are not followed. " + onlyWithin,
	params: []param{
		aPath,
		{name: "pattern", schema: aString, required: true},
		{name: "literal", schema: aBoolean.says("The pattern is a text and not a regular expression")},
		{name: "ignoreCase", schema: aBoolean.says("Letters match in upper and lower case")},
		{name: "includePatterns", schema: aList.says("Search only files that match one of these globs; one without a / matches names at any depth")},
		excludeParam,
		{name: "contextLines", schema: schema{kind: "number", value: "0"}.says("How many lines to show before and after each match")},
		{name: "maxResults", schema: schema{kind: "number", value: strconv.Itoa(defaultResults)}.says("How many matching lines to show")},
		ignoreParam(true),
		cursorParam,
	},
	annotations: readOnly,
	output: `"type":"object","properties":{"content":{"type":"string"},"matches":{"type":"integer","description":"Lines that match"},` +
		`"files":{"type":"integer","description":"Files that have them"},"searched":{"type":"integer","description":"Files that were searched"},` +
		`"complete":{"type":"boolean","description":"Everything, with a cursor everything behind it, was searched and is shown"},` +
		`"cursor":{"type":"string","description":"To go on with, when lines that match are not shown"}},` +
		`"required":["content","matches","files","searched","complete"],"additionalProperties":false}`,
	extra: true,
	run:   runSearchContent,
}

const (
	defaultResults = 200
	maxResults     = 10_000
	maxContext     = 50
	// searchBlock is how much of a file is searched at once, in bytes. A longer line is searched in pieces, which overlap.
	searchBlock   = 256 << 10
	searchOverlap = 4 << 10
	// maxShownLine is how much of a line is shown, in bytes, and contextBlock how much of a file is read for the context before a
	// match, and after it.
	maxShownLine = 500
	contextBlock = 16 << 10
)

// search is one search through contents.
type search struct {
	*call
	*finder
	ctx           context.Context // of call, or shorter
	filter        *filter
	include       excludes
	context, most int
	last          place // behind which it begins

	buffers chan *searchBuffer // as many as files are searched at once

	in []foundFile // the first by path, with most matches in all, and what is behind them in the last file; by found

	matches, files, searched, binary, unreadable, protected, closed, ignored, longLines, pieced atomic.Int64
}

// place is a line of a file.
type place struct {
	path string // beneath the start
	line int64
}

func (p place) cursor() string { return cursorAt(p.path + ":" + strconv.FormatInt(p.line, 10)) }

// lastPlace returns the place that the cursor of a search has, the zero place when there is no cursor.
func (c *call) lastPlace() (p place, err error) {
	last, err := c.cursor()
	if err != nil || last == "" {
		return p, err
	}
	at := strings.LastIndexByte(last, ':')
	if at < 0 {
		return p, c.badCursor()
	}
	if p.line, err = strconv.ParseInt(last[at+1:], 10, 64); err != nil || p.line < 1 {
		return p, c.badCursor()
	}
	p.path = last[:at]
	return p, nil
}

// foundFile is a file with matches.
type foundFile struct {
	path  string // beneath the start
	lines []foundLine
}

// foundLine is a line that matches, as it is shown.
type foundLine struct {
	number        int64
	text          string
	before, after []string
}

// searchBuffer is what one file is searched with.
type searchBuffer struct {
	scan
	block [searchBlock]byte
}

// searchState is where a search is in a directory.
type searchState struct {
	filter  dirFilter
	include []globState
}

func runSearchContent(c *call) (answer, error) {
	s := &search{call: c, most: int(min(max(c.args.number("maxResults"), 1), maxResults)), context: int(min(max(c.args.number("contextLines"), 0), maxContext))}
	pattern := c.args.text("pattern")
	var err error
	if pattern == "" {
		err = errors.New("it is empty")
	} else {
		s.finder, err = newFinder(pattern, c.args.is("literal"), c.args.is("ignoreCase"))
		if err != nil && !c.args.is("literal") {
			err = fmt.Errorf("%w. It is read as an RE2 expression, which looks neither ahead nor behind; with literal it is a text", err)
		}
	}
	if err != nil {
		return answer{}, refuse(codeArguments, "The pattern %q cannot be used: %v.", clip(pattern, maxPatternShown), err)
	}
	if s.include, err = compileIncludes(c.args.list("includePatterns")); err != nil {
		return answer{}, err
	}
	if s.last, err = c.lastPlace(); err != nil {
		return answer{}, err
	}
	if err := c.slot.take(c.ctx, c.slots.walks); err != nil {
		return answer{}, err
	}
	workers := min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	s.buffers = make(chan *searchBuffer, workers)
	for range workers {
		s.buffers <- nil // made when it is first used
	}
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithTimeout(c.ctx, c.slots.waits.walk)
	defer cancel()
	var one bool
	path, err := c.at(opScandir, c.args.text("path"), func(path string) error {
		info, err := c.fs.Stat(path)
		if err != nil || info.IsDir() {
			return err
		}
		one = true
		file, err := c.fs.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		s.searchFile(file, "")
		return nil
	})
	w := walked{start: path}
	if err == nil && !one {
		w, err = c.walk(path, rootfs.WalkOptions{MaxEntries: maxWalked, Unsorted: true}, func(ctx context.Context, start string) (_ func(*rootfs.Directory) []rootfs.Entry, err error) {
			s.filter, err = c.filter(ctx, start)
			return s.visit, err
		})
	}
	if err != nil {
		return answer{}, err
	}
	return s.answer(w), nil
}

// compileIncludes compiles globs of files; one without a separator matches at any depth.
func compileIncludes(patterns []string) (excludes, error) {
	var list excludes
	for _, p := range patterns {
		if body := strings.TrimLeft(p, "!"); !strings.Contains(body, "/") {
			p = p[:len(p)-len(body)] + "**/" + body
		}
		g, err := compileGlob(p)
		if err != nil {
			return nil, err
		}
		list = append(list, g)
	}
	return list, nil
}

// visit searches the files of a directory.
func (s *search) visit(d *rootfs.Directory) []rootfs.Entry {
	if d.Err != nil {
		if errors.Is(d.Err, rootfs.Denied) {
			s.protected.Add(1)
			s.closed.Add(1)
		}
		return nil
	}
	at := &searchState{include: s.include.start()}
	if d.Parent == nil {
		at.filter = s.filter.in(d, dirFilter{})
	} else {
		above := d.Parent.Value.(*searchState)
		at.filter, at.include = s.filter.in(d, above.filter), s.include.beneath(above.include, path.Base(d.Path))
	}
	d.Value = at
	first := upTo(d.Path, s.last.path)
	var enter []rootfs.Entry
	var files []string
	for _, e := range d.Entries {
		switch {
		case s.ctx.Err() != nil:
			return nil
		case e.Name < first, e.Name == first && e.Type.IsRegular() && path.Join(d.Path, first) != s.last.path: // before the cursor
		case !e.Type.IsDir() && !e.Type.IsRegular(), s.filter.excludes.matches(at.filter.excludes, e.Name):
		case e.Type.IsRegular() && len(s.include) > 0 && !s.include.matches(at.include, e.Name):
		case at.filter.ignoring.ignores(e):
			if e.Name != ".git" {
				s.ignored.Add(1)
			}
		case e.Type.IsDir():
			enter = append(enter, e)
		default:
			files = append(files, e.Name)
		}
	}
	// Other directories are searched at the same time, if there are any: a directory with many files uses all processors.
	var next atomic.Int64
	search := func() {
		for i := next.Add(1) - 1; int(i) < len(files) && s.ctx.Err() == nil; i = next.Add(1) - 1 {
			s.searchIn(d, files[i])
		}
	}
	var helpers sync.WaitGroup
	for range min(cap(s.buffers)-1, len(files)/16) {
		helpers.Go(search)
	}
	search()
	helpers.Wait()
	return enter
}

func (s *search) searchIn(d *rootfs.Directory, name string) {
	file, err := d.Open(name)
	switch {
	case errors.Is(err, rootfs.Denied):
		s.protected.Add(1)
		return
	case errors.Is(err, rootfs.NotFound):
		return // it was there a moment ago
	case err != nil:
		s.unreadable.Add(1)
		return
	}
	defer file.Close()
	s.searchFile(file, path.Join(d.Path, name))
}

// searchFile searches one file, whose path is beneath the start, "" for the start.
func (s *search) searchFile(file *os.File, name string) {
	b := <-s.buffers
	if b == nil {
		b = &searchBuffer{scan: scan{finder: s.finder}}
	}
	defer func() { s.buffers <- b }()
	skip := int64(0)
	if name == s.last.path {
		skip = s.last.line
	}
	lines, count, err := s.lines(file, b, skip, s.room(name))
	switch {
	case err == errBinary:
		s.binary.Add(1)
	case err != nil:
		s.unreadable.Add(1)
	default:
		s.searched.Add(1)
	}
	if count > 0 {
		s.matches.Add(count)
		s.files.Add(1)
		s.keep(foundFile{name, lines})
	}
}

var errBinary = errors.New("binary file")

// lines searches a file behind a line, and returns the first lines that match, up to so many, and how many there are.
func (s *search) lines(file io.ReaderAt, b *searchBuffer, behind int64, most int) (lines []foundLine, count int64, err error) {
	var (
		held    int        // bytes in the block
		offset  int64      // of the block in the file
		number  = int64(1) // of the line that the block begins with, or in
		begun   int64      // where that line is in the file
		counted int64      // the last line that has matched
	)
	for first := true; s.ctx.Err() == nil; first = false {
		s.slot.moves()
		n, err := file.ReadAt(b.block[held:], offset+int64(held))
		last := err == io.EOF
		if err != nil && !last {
			return lines, count, err
		}
		text := b.block[:held+n]
		end := len(text)
		if first {
			if bytes.IndexByte(text, 0) >= 0 {
				return nil, 0, errBinary
			}
			if bytes.HasPrefix(text, byteOrderMark) {
				text, end, offset = text[len(byteOrderMark):], end-len(byteOrderMark), int64(len(byteOrderMark))
				begun = offset
			}
		}
		piece := false
		if !last {
			if end = bytes.LastIndexByte(text, '\n') + 1; end == 0 {
				end, piece = len(text), true
				s.pieced.Add(1)
			}
		}
		b.start(text[:end])
		at, line := 0, number
		for from := 0; ; {
			start, stop, after := b.line(from)
			if start < 0 {
				break
			}
			line += int64(bytes.Count(text[at:start], newline))
			at, from = start, after
			if line <= max(counted, behind) {
				continue // it can be another piece of the same line
			}
			counted = line
			count++
			if len(lines) < most {
				l := foundLine{number: line, text: s.show(text[start:stop])}
				if s.context > 0 {
					beginning := offset + int64(start)
					if line == number {
						beginning = begun
					}
					l.before = s.before(file, beginning)
					l.after = s.after(file, offset+int64(stop))
				}
				lines = append(lines, l)
			}
		}
		if last {
			return lines, count, nil
		}
		number = line + int64(bytes.Count(text[at:end], newline))
		if piece {
			end -= searchOverlap
		} else {
			begun = offset + int64(end)
		}
		offset += int64(end)
		held = copy(b.block[:], text[end:])
	}
	return lines, count, nil
}

var newline = []byte("\n")

// show returns what is shown of a line that matches: the part around the match.
func (s *search) show(line []byte) string {
	if len(line) <= maxShownLine {
		return decode(line)
	}
	s.longLines.Add(1)
	from := 0
	if m := s.re.FindIndex(line); m != nil {
		from = max(0, min(m[0]-maxShownLine/4, len(line)-maxShownLine))
	}
	return cutLine(line, from)
}

// cutLine returns maxShownLine bytes of a line, from a place on, and signs where something is left out. It cuts no character.
func cutLine(line []byte, from int) string {
	end := min(from+maxShownLine, len(line))
	for from > 0 && from < end && line[from]&0xc0 == 0x80 {
		from++
	}
	for end < len(line) && end > from && line[end]&0xc0 == 0x80 {
		end--
	}
	text := decode(line[from:end])
	if from > 0 {
		text = "…" + text
	}
	if end < len(line) {
		text += "…"
	}
	return text
}

// before returns the lines before a place in a file, which is the beginning of a line.
func (s *search) before(file io.ReaderAt, at int64) []string {
	b := make([]byte, min(at, contextBlock))
	n, _ := file.ReadAt(b, at-int64(len(b)))
	if n < len(b) || n == 0 {
		return nil // it was cut meanwhile, or this is the first line
	}
	return s.contextOf(bytes.Split(bytes.TrimSuffix(b, newline), newline), func(lines [][]byte) [][]byte {
		return lines[max(0, len(lines)-s.context):]
	})
}

// after returns the lines behind a line that ends at a place in a file.
func (s *search) after(file io.ReaderAt, at int64) []string {
	b := make([]byte, contextBlock)
	n, _ := file.ReadAt(b, at)
	_, rest, found := bytes.Cut(b[:n], newline)
	if !found || len(rest) == 0 {
		return nil
	}
	return s.contextOf(bytes.SplitN(bytes.TrimSuffix(rest, newline), newline, s.context+1), func(lines [][]byte) [][]byte {
		return lines[:min(len(lines), s.context)]
	})
}

func (s *search) contextOf(lines [][]byte, choose func([][]byte) [][]byte) []string {
	var list []string
	for _, line := range choose(lines) {
		list = append(list, cutLine(bytes.TrimSuffix(line, []byte("\r")), 0))
	}
	return list
}

// room returns how many lines of a file can be among those that are shown, as far as that is known.
func (s *search) room(name string) int {
	s.Lock()
	defer s.Unlock()
	most := s.most
	for _, f := range s.in {
		if comparePaths(f.path, name) > 0 {
			break
		}
		most -= len(f.lines)
	}
	return max(most, 0)
}

// keep puts a file where it belongs, and lets go of what is not going to be shown.
func (s *search) keep(f foundFile) {
	if len(f.lines) == 0 {
		return
	}
	s.Lock()
	defer s.Unlock()
	if s.over {
		return
	}
	at, _ := slices.BinarySearchFunc(s.in, f, func(a, b foundFile) int { return comparePaths(a.path, b.path) })
	s.in = slices.Insert(s.in, at, f)
	shown := 0
	for i, f := range s.in {
		if shown >= s.most {
			s.in = slices.Delete(s.in, i, len(s.in))
			break
		}
		if over := shown + len(f.lines) - s.most; over > 0 {
			s.in[i].lines = f.lines[:len(f.lines)-over]
		}
		shown += len(f.lines)
	}
}

// comparePaths orders paths as a tree is read: what is in a directory stands together, behind the directory.
func comparePaths(a, b string) int {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == b[i]:
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		default:
			return cmp.Compare(a[i], b[i])
		}
	}
	return cmp.Compare(len(a), len(b))
}

// answer writes what was found, and what was not searched or is not shown.
func (s *search) answer(w walked) answer {
	var b strings.Builder
	shown, last := int64(0), s.last
	for _, f := range s.in {
		if b.Len() > maxList {
			break
		}
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString(show(joined(w.start, f.path)) + "\n")
		n := writeLines(&b, f.lines)
		shown += int64(n)
		last = place{f.path, f.lines[n-1].number}
	}
	anew := s.last == place{}
	switch {
	case b.Len() > 0:
	case anew:
		b.WriteString("No matches found\n")
	default:
		b.WriteString("No more matches found\n")
	}
	b.WriteByte('\n')
	note := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	matches, files := s.matches.Load(), s.files.Load()
	late := w.late || s.ctx.Err() != nil
	if matches > 0 {
		note("%s in %s; %s searched.", plural(matches, "line matches", "lines match"), plural(files, "file", "files"), plural(s.searched.Load(), "file", "files"))
	} else {
		note("%s searched.", plural(s.searched.Load(), "file", "files"))
	}
	if !anew {
		note("Only what is behind the cursor is counted.")
	}
	var cursor []byte
	if shown < matches {
		note("Shown are the first %d by path. Narrow the search, or ask for more with maxResults.%s", shown, s.goOn(last.cursor()))
		cursor = wire.AppendQuote([]byte(`,"cursor":`), last.cursor())
	}
	switch {
	case w.stuck:
		note("The search was ended after %v and is not complete: a file system in it did not answer. Search a smaller directory, or leave more out.", maxWalk)
	case late:
		note("The search was ended after %v and is not complete. Search a smaller directory, or leave more out.", maxWalk)
	case w.Cut:
		note("The search was ended after %d entries and is not complete. Search a smaller directory, or leave more out.", w.Entries)
	}
	var out []string
	for _, o := range []struct {
		n         int64
		one, many string
	}{
		{s.ignored.Load(), "entry that ignore files name (gitignore: false searches it)", "entries that ignore files name (gitignore: false searches them)"},
		{s.binary.Load(), "binary file", "binary files"},
		{s.protected.Load(), "protected name", "protected names"},
		{s.unreadable.Load(), "file that cannot be read", "files that cannot be read"},
		{w.Unreadable - s.closed.Load(), "directory that cannot be read", "directories that cannot be read"},
		{w.TooDeep, "directory too far down", "directories too far down"},
	} {
		if o.n > 0 {
			out = append(out, plural(o.n, o.one, o.many))
		}
	}
	if out != nil {
		note("Not searched: %s.", strings.Join(out, ", "))
	}
	if n := s.longLines.Load(); n > 0 {
		note("Of lines longer than %d bytes a part is shown.", maxShownLine)
	}
	if n := s.pieced.Load(); n > 0 {
		note("Lines longer than %d bytes were searched in pieces.", searchBlock)
	}
	complete := !late && !w.Cut && shown == matches && s.unreadable.Load() == 0 && w.Unreadable == s.closed.Load() && w.TooDeep == 0
	members := fmt.Appendf(nil, `,"matches":%d,"files":%d,"searched":%d,"complete":%t`, matches, files, s.searched.Load(), complete)
	return answer{text: strings.TrimSuffix(b.String(), "\n"), members: append(members, cursor...)}
}

// writeLines writes the lines of a file with their numbers: ":" behind that of a line that matches, "-" behind that of another,
// and "--" where lines are left out between two of them, if there is context. It returns how many of the lines it has written,
// at least one.
func writeLines(b *strings.Builder, lines []foundLine) (n int) {
	last := int64(0)
	context := slices.ContainsFunc(lines, func(l foundLine) bool { return l.before != nil || l.after != nil })
	for i, l := range lines {
		if i > 0 && b.Len() > maxList {
			return n
		}
		first := l.number - int64(len(l.before))
		if context && last > 0 && first > last+1 {
			b.WriteString("--\n")
		}
		for j, text := range l.before {
			if number := first + int64(j); number > last {
				fmt.Fprintf(b, "%d-%s\n", number, text)
			}
		}
		fmt.Fprintf(b, "%d:%s\n", l.number, l.text)
		last = l.number
		n++
		for _, text := range l.after {
			if i+1 < len(lines) && last+1 >= lines[i+1].number {
				break
			}
			last++
			fmt.Fprintf(b, "%d-%s\n", last, text)
		}
	}
	return n
}
