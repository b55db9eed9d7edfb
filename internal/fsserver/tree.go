package fsserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// maxTreeEntries is how many entries are read for a tree: more than one answer can carry.
const maxTreeEntries = 100_000

var directoryTree = tool{
	name:  "directory_tree",
	title: "Directory Tree",
	description: "Show a directory with all that is beneath it, as JSON: an array of objects with 'name', 'type' (file or directory) and, " +
		"for a directory, 'children'. Links are shown as files and not entered. A directory that cannot be read, or whose " +
		"entries are not all shown, has a 'note'. " + onlyWithin,
	params: []param{
		aPath,
		excludeParam,
		{name: "maxDepth", schema: aNumber.says("How many levels are shown; with 1, only what is in the directory itself"), extra: true},
		ignoreParam(false),
	},
	annotations: readOnly,
	run: func(c *call) (answer, error) {
		depth := 0
		if v := c.args.number("maxDepth"); c.args["maxDepth"] != nil {
			if v < 1 {
				return answer{}, refuse(codeArguments, "maxDepth is %v, and has to be 1 or more.", v)
			}
			depth = int(min(math.Trunc(v), math.MaxInt32))
		}
		var t *treeView
		o := rootfs.WalkOptions{MaxEntries: maxTreeEntries, MaxDepth: depth}
		w, err := c.walk(c.args.text("path"), o, func(ctx context.Context, start string) (func(*rootfs.Directory) []rootfs.Entry, error) {
			filter, err := c.filter(ctx, start)
			t = &treeView{filter: filter, depth: depth}
			return t.visit, err
		})
		if err != nil {
			return answer{}, err
		}
		t.choose(maxFound)
		a := answer{quoted: t.quoted(c.lent, w.start)}
		if note := t.note(w); note != "" {
			a.blocks = append(append([]byte(`,{"type":"text","text":`), wire.Quote(note)...), '}')
		}
		return a, nil
	},
}

// treeView is one tree.
type treeView struct {
	filter *filter
	depth  int     // 0: no limit
	top    *branch // the children of each branch are added by found

	hidden int // entries that are not shown
	size   int // about so many bytes are shown
}

// branch is a directory of a tree.
type branch struct {
	filter   dirFilter
	depth    int
	entries  []rootfs.Entry
	children map[string]*branch // the directories among the entries that were looked at
	err      error
	shown    int // how many of the entries are shown
}

func (t *treeView) visit(d *rootfs.Directory) []rootfs.Entry {
	b := &branch{depth: d.Depth, err: d.Err, children: map[string]*branch{}}
	d.Value = b
	if d.Parent == nil {
		b.filter = t.filter.in(d, dirFilter{})
	} else {
		b.filter = t.filter.in(d, d.Parent.Value.(*branch).filter)
	}
	var enter []rootfs.Entry
	b.entries = make([]rootfs.Entry, 0, len(d.Entries))
	for _, e := range d.Entries {
		if t.filter.leavesOut(b.filter, e) {
			continue
		}
		b.entries = append(b.entries, e)
		if e.Type.IsDir() {
			enter = append(enter, e)
		}
	}
	t.filter.c.found(func() {
		if d.Parent == nil {
			t.top = b
		} else {
			d.Parent.Value.(*branch).children[path.Base(d.Path)] = b
		}
	})
	return enter
}

// choose decides what is shown in about so many bytes: what is near the top before what is deep.
func (t *treeView) choose(most int) {
	queue := []*branch{t.top}
	for len(queue) > 0 {
		b := queue[0]
		queue = queue[1:]
		for _, e := range b.entries {
			size := 4*indent(b.depth) + len(e.Name) + 60 // of its lines
			if e.Type.IsDir() {
				size += 2*indent(b.depth) + 20
			}
			if most -= size; most < 0 {
				break
			}
			t.size += size
			b.shown++
			if c := b.children[e.Name]; c != nil {
				queue = append(queue, c)
			}
		}
		t.hidden += len(b.entries) - b.shown
	}
}

// indent returns the indentation of the entries of a directory of some depth.
func indent(depth int) int { return 2 + 4*depth }

// quoted is the tree as JSON, in the form of the reference server, and that as a JSON string: its quotes and line ends are
// escaped as they are written, since every third byte of it is one.
func (t *treeView) quoted(l *lent, start string) []byte {
	if t.top.shown == 0 {
		return []byte(`"[]"`)
	}
	s := append(l.take(t.size+t.size/3+100), '"')
	return append(t.append(s, t.top, start), '"')
}

// append appends the entries of a branch as an array. Dir is its absolute path.
func (t *treeView) append(s []byte, b *branch, dir string) []byte {
	in := `\n` + strings.Repeat(" ", indent(b.depth))
	begin, kind := in+"{"+in+`  \"name\": `, ","+in+`  \"type\": \"`
	s = append(s, '[')
	for i, e := range b.entries[:b.shown] {
		if i > 0 {
			s = append(s, ',')
		}
		s = append(appendTwiceQuoted(append(s, begin...), shownName(e.Name, dir)), kind...)
		if e.Type == fs.ModeDir {
			s = t.appendChildren(append(s, `directory\"`...), b, e, in, dir)
		} else {
			s = append(s, `file\"`...)
		}
		s = append(append(s, in...), '}')
	}
	if b.shown > 0 {
		s = append(s, in[:len(in)-2]...)
	}
	return append(s, ']')
}

// shownName is a name in a directory, or a URI where it is no text.
func shownName(name, dir string) string {
	if utf8.ValidString(name) {
		return name
	}
	return roots.FileURI(joined(dir, name))
}

// appendTwiceQuoted appends a text as a JSON string within a JSON string.
func appendTwiceQuoted(s []byte, text string) []byte {
	var small [128]byte
	once := wire.AppendQuote(small[:0], text)
	from := len(s)
	s = wire.AppendQuoteBytes(s, once)
	return append(s[:from], s[from+1:len(s)-1]...) // without the outer quotes
}

func (t *treeView) appendChildren(s []byte, b *branch, e rootfs.Entry, in, dir string) []byte {
	if t.depth > 0 && b.depth+1 >= t.depth {
		return s // nobody has looked
	}
	s = append(append(append(s, ','), in...), `  \"children\": `...)
	c, note := b.children[e.Name], ""
	switch {
	case c == nil:
		s = append(s, "[]"...)
		note = "it was not looked at"
	default:
		s = t.append(s, c, joined(dir, e.Name))
		switch hidden := len(c.entries) - c.shown; {
		case c.err != nil:
			note = "it cannot be entered: " + reason(c.err)
		case hidden > 0:
			note = plural(int64(hidden), "more entry is", "more entries are") + " not shown"
		}
	}
	if note != "" {
		s = appendTwiceQuoted(append(append(append(s, ','), in...), `  \"note\": `...), note)
	}
	return s
}

// note says what the tree leaves out, "" when that is nothing.
func (t *treeView) note(w walked) string {
	var notes []string
	if t.hidden > 0 {
		notes = append(notes, fmt.Sprintf("%s not shown, because one answer carries at most %d bytes of a tree.", plural(int64(t.hidden), "entry is", "entries are"), maxFound))
	}
	switch {
	case w.stuck:
		notes = append(notes, fmt.Sprintf("Not everything was looked at: a file system in it did not answer within %v.", maxWalk))
	case w.late:
		notes = append(notes, fmt.Sprintf("Not everything was looked at: the tree took longer than %v.", maxWalk))
	case w.Cut:
		notes = append(notes, fmt.Sprintf("Not everything was looked at: there are more than %d entries.", w.Entries))
	}
	if notes != nil {
		notes = append(notes, "Ask for a directory beneath this one, leave something out with excludePatterns, or list one directory with list_directory.")
	}
	if w.Unreadable > 0 {
		notes = append(notes, plural(w.Unreadable, "directory", "directories")+" could not be entered.")
	}
	return strings.Join(notes, " ")
}

// reason says why, without a path.
func reason(err error) string {
	var e *rootfs.Error
	switch {
	case !errors.As(err, &e):
		return err.Error()
	case e.Code == rootfs.IO && e.Err != nil:
		return e.Err.Error()
	}
	return e.Code.Error()
}
