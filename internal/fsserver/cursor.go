package fsserver

import (
	"net/url"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/rootfs"
)

// cursorParam is the parameter with which a tool goes on behind an answer that it has cut. The server keeps nothing for it:
// a cursor is the place behind which the next answer begins, by its name, so it stays right when other names come or go.
var cursorParam = param{name: "cursor", schema: aString.says("To go on behind an answer that was cut: the cursor that it gives"), extra: true}

// cursorAt writes a name or a path as a cursor. It has neither blanks nor anything but ASCII, so that it comes back as it was.
func cursorAt(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// cursor returns the name or the path that the argument "cursor" has, "" when none was given.
func (c *call) cursor() (string, error) {
	path, err := url.PathUnescape(c.args.text(cursorParam.name))
	if err != nil {
		return "", c.badCursor()
	}
	return path, nil
}

func (c *call) badCursor() error {
	return refuse(codeArguments, "The cursor %q is not one of this call's. Give it as the answer before has it, with the same other arguments, "+
		"or leave it out to begin anew.", clip(c.args.text(cursorParam.name), maxPatternShown))
}

// goOn says how to go on behind an answer that was cut, as the end of a note.
func (c *call) goOn(cursor string) string {
	if c.compat {
		return ""
	}
	return ` To go on, call again with "cursor":"` + cursor + `".`
}

// upTo returns the name in a directory that leads to a path: names before it are before that path, and so is what is beneath
// them. It is "" where all names are behind the path.
func upTo(dir, path string) string {
	rest, beneath := beneathDir(path, dir)
	if !beneath {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// behind returns the entries of a directory whose names are behind one.
func behind(entries []rootfs.Entry, last string) []rootfs.Entry {
	at, found := slices.BinarySearchFunc(entries, last, compareName)
	if found {
		at++
	}
	return entries[at:]
}

// compareName orders an entry and a name.
func compareName(e rootfs.Entry, name string) int { return strings.Compare(e.Name, name) }
