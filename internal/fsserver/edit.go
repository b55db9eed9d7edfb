package fsserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
)

var editFile = tool{
	name:  "edit_file",
	title: "Edit File",
	description: "Change parts of a text file. Each edit puts newText in the place of oldText, which must be in the file exactly once; " +
		"lines that differ only in the blanks around them are found too, and keep the indentation of the file. The edits " +
		"are made one after the other, all or none. Everything else in the file stays as it is, and line ends are those of the file. " +
		"The answer is a diff of what changed, with dryRun of what would. " + onlyWithin,
	params: []param{
		aPath,
		{name: "edits", required: true, schema: schema{kind: "array", items: &schema{kind: "object", members: []param{
			{name: "oldText", schema: aString.says("The text to look for, exactly as it is in the file"), required: true},
			{name: "newText", schema: aString.says("The text to put in its place"), required: true},
			{name: "replaceAll", schema: aBoolean.says("Replace oldText wherever it is, and not only when it is there once"), extra: true},
		}}}},
		{name: "dryRun", schema: aBoolean.says("Show what would change, as a diff, and change nothing")},
		aVersion,
	},
	annotations: changes,
	writes:      true,
	refused:     refusedWrite,
	run:         runEditFile,
}

// errUnchanged ends a replacement that would change nothing.
var errUnchanged = errors.New("unchanged")

// runEditFile edits one file. It is read while it is being replaced, so that no two edits of a file begin with the same text.
func runEditFile(c *call) (answer, error) {
	// An edit has its file in memory several times.
	if err := c.slot.take(c.ctx, c.slots.large); err != nil {
		return answer{}, err
	}
	path, err := c.target(c.args.text("path"))
	if err != nil {
		return answer{}, err
	}
	edits := c.edits()
	o := rootfs.ReplaceOptions{Must: rootfs.Present, Version: c.args.text("version"), DryRun: c.args.is("dryRun")}
	var before, after *document
	info, err := c.fs.Replace(c.ctx, path, o, func(w io.Writer, old *os.File) (err error) {
		if before, err = c.readDocument(path, old); err != nil {
			return err
		}
		if after, err = before.applyEdits(c.ctx, edits, c.severalMatches()); err != nil {
			return err
		}
		if after.equal(before) {
			return errUnchanged
		}
		_, err = w.Write(after.raw())
		return err
	})
	switch {
	case errors.Is(err, rootfs.IsDirectory):
		return answer{}, c.explain(opOpen, path, err)
	case err != nil && err != errUnchanged:
		return answer{}, c.explainWrite(path, o, err)
	}
	return answer{text: showDiff(show(c.real(path)), before.text, after.text) + c.newVersion("", info)}, nil
}

// readDocument reads a file to edit.
func (c *call) readDocument(path string, f *os.File) (*document, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	raw := bytes.NewBuffer(make([]byte, 0, min(info.Size(), maxEdited)+bytes.MinRead))
	if _, err := raw.ReadFrom(io.LimitReader(f, maxEdited+1)); err != nil {
		return nil, err
	}
	if raw.Len() > maxEdited {
		return nil, refuse(codeTooLarge, "EFBIG: file too large, edit '%s': it has more than %d bytes, and edit_file takes no larger one. "+
			"Change it with a program of its own, as sed, or split it.", show(c.real(path)), maxEdited)
	}
	return parseDocument(raw.Bytes()), nil
}

// severalMatches says what can be done about a text that is found several times.
func (c *call) severalMatches() string {
	or := ", or set replaceAll to replace all of them"
	if c.compat {
		or = ""
	}
	return "Nothing was changed. Give more of the text around the one that is meant" + or + "."
}

// edits reads the argument of edit_file.
func (c *call) edits() []textEdit {
	var edits []textEdit
	for item := range wire.Items(c.args["edits"]) {
		text := func(name string) string { v, _ := wire.Get(item, name); return unquote(v) }
		all, _ := wire.Get(item, "replaceAll")
		edits = append(edits, newEdit(text("oldText"), text("newText"), !c.compat && string(all) == "true"))
	}
	return edits
}

const (
	// maxEdited is the longest file that is edited, and the longest that editing makes, in bytes.
	maxEdited = 16 << 20
	// maxEditing is how much text one call may search, in bytes: each edit searches the whole file.
	maxEditing = 2 << 30
	// maxShown is how much of a text that was not found is shown, in bytes, and maxPlaces how many places of one that was
	// found too often.
	maxShown  = 4 << 10
	maxPlaces = 10
)

const (
	codeNoMatch        = "no_match"
	codeSeveralMatches = "several_matches"
)

// textEdit is one replacement.
type textEdit struct {
	old, new []byte // with "\n" for every line end
	all      bool   // wherever old is found
	given    string // old as it came
}

// newEdit reads an edit as it came. What is all may only be in a server that has that parameter.
func newEdit(old, new string, all bool) textEdit {
	e := textEdit{old: foldLineEnds([]byte(old)), new: foldLineEnds([]byte(new)), all: all, given: old}
	if rest, ok := bytes.CutPrefix(e.old, byteOrderMark); ok {
		e.old, e.new = rest, bytes.TrimPrefix(e.new, byteOrderMark)
	}
	return e
}

func foldLineEnds(text []byte) []byte {
	return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
}

// applyEdits makes the edits one after the other, each in what the one before made, or none of them. Several says in the
// words for the model what can be done about a text that is found several times.
func (d *document) applyEdits(ctx context.Context, edits []textEdit, several string) (*document, error) {
	work := 0
	for i, e := range edits {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if work += len(d.text) + len(e.old); work > maxEditing {
			return nil, refuse(codeTooLarge, "These are too many edits for a file of %d bytes, so none was made: give them in several calls.", len(d.text))
		}
		spans, size, err := d.find(e, several)
		if err != nil {
			if len(edits) > 1 {
				err = inEdit(err, i, len(edits))
			}
			return nil, err
		}
		if size > maxEdited {
			return nil, refuse(codeTooLarge, "The file would have %d bytes, and edit_file makes at most %d. Nothing was changed.", size, maxEdited)
		}
		d = d.splice(spans, size)
	}
	return d, nil
}

// inEdit adds to a refusal which of several edits it is about.
func inEdit(err error, i, n int) error {
	r, ok := err.(refusal)
	if !ok {
		return err
	}
	r.text += fmt.Sprintf("\n\nThis is edit %d of %d. None of them was made.", i+1, n)
	return r
}

// find returns what an edit replaces, and how long the text will be then: its text, or, when that is nowhere, the lines that
// are alike but for blanks around them.
func (d *document) find(e textEdit, several string) (spans iter.Seq[span], size int, err error) {
	if len(e.old) == 0 {
		return nil, 0, refuse(codeArguments, "oldText is empty, so it says nothing about where. To insert text, give the line before or behind that place as oldText, "+
			"and again in newText. To fill a file, use write_file.")
	}
	places := findAll(d.text, e.old, 1+maxCount)
	var one span
	switch {
	case len(places) == 0:
		if one, err = d.findLoosely(e); err != nil {
			return nil, 0, err
		}
	case e.all:
		return d.everywhere(e), len(d.text) + bytes.Count(d.text, e.old)*(len(e.new)-len(e.old)), nil
	case len(places) > 1:
		return nil, 0, refuse(codeSeveralMatches, "Found %s, so it is not clear which is meant:\n%s\n\n%s",
			d.places(places), clip(e.given, maxShown), several)
	default:
		one = span{places[0], places[0] + len(e.old), e.new}
	}
	return func(yield func(span) bool) { yield(one) }, len(d.text) + len(one.new) - (one.end - one.start), nil
}

// everywhere returns each place where an edit's text is, without overlap.
func (d *document) everywhere(e textEdit) iter.Seq[span] {
	return func(yield func(span) bool) {
		for at := 0; ; at += len(e.old) {
			i := bytes.Index(d.text[at:], e.old)
			if i < 0 {
				return
			}
			at += i
			if !yield(span{at, at + len(e.old), e.new}) {
				return
			}
		}
	}
}

// maxCount is up to how many matches are counted.
const maxCount = 100

// findAll returns where a text begins in another, up to a number of places, which may overlap.
func findAll(text, old []byte, most int) []int {
	var places []int
	for at := 0; len(places) < most; at++ {
		i := bytes.Index(text[at:], old)
		if i < 0 {
			break
		}
		at += i
		places = append(places, at)
	}
	return places
}

// places says how many matches there are, and in which lines.
func (d *document) places(offsets []int) string {
	count := fmt.Sprint(len(offsets), " matches")
	if len(offsets) > maxCount {
		count = fmt.Sprint("more than ", maxCount, " matches")
	}
	var list []string
	line, at := 1, 0
	for _, o := range offsets[:min(len(offsets), maxPlaces)] {
		line += bytes.Count(d.text[at:o], []byte("\n"))
		at = o
		list = append(list, fmt.Sprint(line))
	}
	more := ""
	if len(offsets) > maxPlaces {
		more = " and more"
	}
	return count + " for edit, at lines " + strings.Join(list, ", ") + more
}

// findLoosely finds the one row of lines that are those of the edit but for blanks around them, and fits the new lines in.
func (d *document) findLoosely(e textEdit) (span, error) {
	old, ended := bytes.CutSuffix(e.old, []byte("\n"))
	wanted, text := trimLines(old), trimLines(d.text)
	var places []int
	if len(bytes.Trim(wanted, "\n")) > 0 {
		places = findAll(text, wanted, 1+maxCount)
	}
	if len(places) == 0 {
		return span{}, refuse(codeNoMatch, "Could not find exact match for edit:\n%s%s", clip(e.given, maxShown), d.advise(old))
	}
	n := bytes.Count(old, []byte("\n")) + 1
	starts := make([]int, len(places)) // in the document's text
	line, at, offset := 0, 0, 0
	for i, p := range places {
		for skip := bytes.Count(text[at:p], []byte("\n")); skip > 0; skip-- {
			offset = lineEnd(d.text, offset) + 1
			line++
		}
		at, starts[i] = p, offset
	}
	if len(places) > 1 {
		return span{}, refuse(codeSeveralMatches, "Found no exact match for edit, and, leaving out blanks around the lines, %s, so it is not clear which is meant:\n%s\n\n"+
			"Nothing was changed. Give the text exactly as it is in the file, with its indentation.", d.places(starts), clip(e.given, maxShown))
	}
	s := span{start: starts[0]}
	s.end = s.start
	for i := range n {
		s.end = lineEnd(d.text, s.end)
		if i < n-1 {
			s.end++
		}
	}
	new := e.new
	if ended {
		new = bytes.TrimSuffix(new, []byte("\n"))
	}
	split := func(b []byte) [][]byte { return bytes.Split(b, []byte("\n")) }
	s.new = bytes.Join(reindent(split(d.text[s.start:s.end]), split(old), split(new), d.text), []byte("\n"))
	switch {
	case !ended || bytes.HasSuffix(e.new, []byte("\n")):
	case s.end < len(d.text):
		s.end++ // with its line end, as oldText has it and newText has not
	}
	return s, nil
}

// trimLines returns the lines of a text without the blanks around them, and a line end at either end, so that whole lines
// are found by searching for text.
func trimLines(text []byte) []byte {
	b := make([]byte, 1, len(text)+2)
	b[0] = '\n'
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		b = append(append(b, bytes.TrimSpace(line)...), '\n')
	}
	return b
}

// advise returns what may help to find a text that is not there.
func (d *document) advise(old []byte) string {
	var b strings.Builder
	if strings.ContainsRune(string(old), '\ufffd') {
		b.WriteString("\n\nU+FFFD in oldText stands for bytes of the file that are no UTF-8 and matches none of them. Give text without it.")
	}
	if bytes.IndexByte(d.text, 0) >= 0 {
		b.WriteString("\n\nThe file has NUL bytes: it may be binary, or text in UTF-16, which edit_file does not write.")
	}
	if start, lines := d.nearest(old); lines != nil {
		b.WriteString("\n\nThe nearest lines of the file are:")
		for i, l := range lines {
			fmt.Fprintf(&b, "\n%6d: %s", start+i+1, clip(decode(l), maxLine))
		}
	}
	return b.String()
}

const (
	// maxNearest is in how many lines the nearest are looked for, and maxNear how many are shown, each up to maxLine bytes.
	maxNearest = 100_000
	maxNear    = 12
	maxLine    = 300
)

// nearest returns the lines of the document that are most like a text, and the number of those before them; nil when none
// is like it.
func (d *document) nearest(old []byte) (start int, lines [][]byte) {
	wanted := bytes.SplitN(old, []byte("\n"), maxNearest+1)
	index := map[string]int{} // of a line in wanted
	longest := []byte(nil)
	longestAt := 0
	for i, l := range wanted[:min(len(wanted), maxNearest)] {
		l = bytes.TrimSpace(l)
		if len(l) > len(longest) {
			longest, longestAt = l, i
		}
		if _, ok := index[string(l)]; !ok && len(l) > 0 {
			index[string(l)] = i
		}
	}
	text := bytes.SplitN(d.text, []byte("\n"), maxNearest+1)
	text = text[:min(len(text), maxNearest)]
	votes := make([]int, len(text)) // for the place where wanted begins: how many of its lines are there
	best, most := -1, 0
	similar, score := -1, len(longest)/2
	for i, l := range text {
		l = bytes.TrimSpace(l)
		if j, ok := index[string(l)]; ok {
			at := max(0, i-j)
			if votes[at]++; votes[at] > most {
				best, most = at, votes[at]
			}
		}
		n := commonPrefix(l, longest)
		if n += commonSuffix(l[n:], longest[n:]); n > score {
			similar, score = max(0, i-longestAt), n
		}
	}
	if best < 0 {
		best = similar
	}
	if best < 0 {
		return 0, nil
	}
	return best, text[best:min(len(text), best+min(len(wanted), maxNear))]
}
