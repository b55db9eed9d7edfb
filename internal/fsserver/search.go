package fsserver

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/rootfs"
)

// maxHits is how many matches are kept to be put in order, before those are let go of that one answer does not carry.
const maxHits = 1 << 20

var searchFiles = tool{
	name:  "search_files",
	title: "Search Files",
	description: "Find files and directories by name, with a glob that is matched against the path beneath the directory: *.ext finds in " +
		"the directory itself, **/*.ext at any depth, src/**/*.{js,ts} beneath src. Upper and lower case differ, and names that " +
		"begin with a dot are found too. The answer is one absolute path a line, in order. Links are found and not followed. " + onlyWithin,
	params: []param{
		aPath,
		{name: "pattern", schema: aString, required: true},
		excludeParam,
		ignoreParam(false),
		cursorParam,
	},
	annotations: readOnly,
	run: func(c *call) (answer, error) {
		pattern, err := compileGlob(c.args.text("pattern"))
		if err != nil {
			return answer{}, err
		}
		last, err := c.cursor()
		if err != nil {
			return answer{}, err
		}
		var s *nameSearch
		w, err := c.walk(c.args.text("path"), rootfs.WalkOptions{MaxEntries: maxWalked, Unsorted: true}, func(ctx context.Context, start string) (func(*rootfs.Directory) []rootfs.Entry, error) {
			filter, err := c.filter(ctx, start)
			s = &nameSearch{call: c, pattern: pattern, filter: filter, last: last}
			return s.visit, err
		})
		if err != nil {
			return answer{}, err
		}
		return answer{text: s.text(w)}, nil
	},
}

// nameSearch is one search for names.
type nameSearch struct {
	*call
	pattern *glob
	filter  *filter
	last    string // the path of the cursor, beneath the start
	// By found:
	hits int64
	in   []*foundIn
	kept int    // the names in them
	end  string // if not "", no answer carries what is behind this path
}

// foundIn is what was found in one directory.
type foundIn struct {
	dir   string   // beneath the start
	names []string // in order
}

// searchAt is where a search is in a directory.
type searchAt struct {
	pattern globState
	filter  dirFilter
}

func (s *nameSearch) visit(d *rootfs.Directory) []rootfs.Entry {
	at := &searchAt{pattern: s.pattern.first}
	if d.Parent == nil {
		at.filter = s.filter.in(d, dirFilter{})
	} else {
		parent := d.Parent.Value.(*searchAt)
		at.pattern = s.pattern.beneath(parent.pattern, path.Base(d.Path))
		at.filter = s.filter.in(d, parent.filter)
	}
	d.Value = at
	first := upTo(d.Path, s.last)
	var names []string
	var enter []rootfs.Entry
	for _, e := range d.Entries {
		if s.filter.leavesOut(at.filter, e) {
			continue
		}
		if e.Name > first && s.pattern.matches(at.pattern, e.Name) && (!isLink(e) || s.leadsInside(d, e.Name)) {
			names = append(names, e.Name)
		}
		if e.Type.IsDir() && e.Name >= first && (s.pattern.negated || !s.pattern.beneath(at.pattern, e.Name).empty()) {
			enter = append(enter, e)
		}
	}
	if names == nil {
		return enter
	}
	slices.Sort(names)
	s.found(func() {
		s.hits += int64(len(names))
		s.keep(&foundIn{d.Path, names})
	})
	return enter
}

// keep keeps what was found, as far as it may be among the first by path that one answer carries.
func (s *nameSearch) keep(f *foundIn) {
	if s.end != "" {
		f.cutBehind(s.end)
	}
	if len(f.names) == 0 {
		return
	}
	s.in = append(s.in, f)
	if s.kept += f.weight(); s.kept <= maxHits {
		return
	}
	size := 0
	for p := range ordered(s.in) {
		if size += len("/") + len(p) + len("\n"); size > maxFound {
			s.end = p
			break
		}
	}
	s.kept = 0
	s.in = slices.DeleteFunc(s.in, func(f *foundIn) bool {
		f.cutBehind(s.end)
		if len(f.names) == 0 {
			return true
		}
		s.kept += f.weight()
		return false
	})
}

// weight is how many matches it counts for: a long path takes more memory than a name.
func (f *foundIn) weight() int { return len(f.names) + len(f.dir)/32 }

// cutBehind lets go of the names that are behind a path.
func (f *foundIn) cutBehind(end string) {
	n, found := slices.BinarySearchFunc(f.names, end, func(name, end string) int { return comparePaths(path.Join(f.dir, name), end) })
	if found {
		n++
	}
	if n < len(f.names) {
		f.names = slices.Clone(f.names[:n])
	}
}

// leadsInside reports whether a link leads to something inside the roots: what is outside is not told, not even whether it
// is there.
func (s *nameSearch) leadsInside(d *rootfs.Directory, name string) bool {
	_, err := s.fs.Stat(joined(s.filter.start, path.Join(d.Path, name)))
	return err == nil
}

// text is the answer: the paths in order, each directory before what is in it, and what is missing.
func (s *nameSearch) text(w walked) string {
	var b strings.Builder
	left := s.hits
	last := "" // that is listed
	for p := range ordered(s.in) {
		if b.Len() >= maxFound {
			break
		}
		left--
		last = p
		b.WriteString(show(joined(w.start, p)))
		b.WriteByte('\n')
	}
	switch {
	case last == "" && s.last == "":
		b.WriteString("No matches found\n")
	case last == "":
		b.WriteString("No more matches found\n")
	}
	if left > 0 {
		fmt.Fprintf(&b, "%s not listed, because one answer carries at most %d bytes of them.%s\n",
			plural(left, "more match is", "more matches are"), maxFound, s.goOn(cursorAt(last)))
	}
	switch {
	case w.stuck:
		fmt.Fprintf(&b, "The search ended after %v and %d entries, and there may be more: a file system in it did not answer. Search a directory beneath this one, or leave "+
			"something out with excludePatterns.\n", maxWalk, w.Entries)
	case w.late:
		fmt.Fprintf(&b, "The search ended after %v and %d entries, and there may be more. Search a directory beneath this one.\n", maxWalk, w.Entries)
	case w.Cut:
		fmt.Fprintf(&b, "The search ended after %d entries, and there may be more. Search a directory beneath this one.\n", w.Entries)
	}
	if w.Unreadable > 0 {
		fmt.Fprintf(&b, "%s could not be entered.\n", plural(w.Unreadable, "directory", "directories"))
	}
	if w.TooDeep > 0 {
		fmt.Fprintf(&b, "%s too far down, where no path leads.\n", plural(w.TooDeep, "directory is", "directories are"))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ordered yields the paths that were found, beneath the start: by name, and each directory before what is in it. Only the
// directories are sorted, and what is in them comes in between, since there may be very many.
func ordered(found []*foundIn) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		slices.SortFunc(found, func(a, b *foundIn) int { return comparePaths(a.dir, b.dir) })
		var open []foundIn // the directory that we are in and those above it, with the names that are still to come
		upTo := func(last string) bool {
			top := &open[len(open)-1]
			for len(top.names) > 0 && (last == "" || top.names[0] <= last) {
				if !yield(path.Join(top.dir, top.names[0])) {
					return false
				}
				top.names = top.names[1:]
			}
			return true
		}
		for _, f := range found {
			for len(open) > 0 {
				rest, beneath := beneathDir(f.dir, open[len(open)-1].dir)
				first, _, _ := strings.Cut(rest, "/")
				if !upTo(first) {
					return
				}
				if beneath {
					break
				}
				open = open[:len(open)-1]
			}
			open = append(open, *f)
		}
		for ; len(open) > 0; open = open[:len(open)-1] {
			if !upTo("") {
				return
			}
		}
	}
}

// beneathDir returns the path of a directory beneath another one, "" when it is not there.
func beneathDir(dir, above string) (rest string, ok bool) {
	if above == "" {
		return dir, true
	}
	rest, ok = strings.CutPrefix(dir, above)
	if !ok || !strings.HasPrefix(rest, "/") {
		return "", false
	}
	return rest[1:], true
}
