package fsserver

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// maxList is the longest list, in bytes.
const maxList = 1 << 20

var listDirectory = tool{
	name:  "list_directory",
	title: "List Directory",
	description: "List what is in a directory, one name a line, with [DIR] before the name of a directory and [FILE] before every " +
		"other. What is in its subdirectories is not listed. A name that cannot be written as text comes as a file:// URI, which " +
		"every tool takes as a path. " + onlyWithin,
	params:      []param{aPath},
	annotations: readOnly,
	run:         runListDirectory,
}

// runListDirectory lists one directory, by name.
func runListDirectory(c *call) (answer, error) {
	var entries []rootfs.Entry
	path, err := c.at(opScandir, c.args.text("path"), func(path string) (err error) {
		entries, err = c.fs.ReadDir(path)
		return err
	})
	if err != nil {
		return answer{}, err
	}
	uri := func(name string) string { return roots.FileURI(filepath.Join(c.real(path), name)) }
	return answer{text: list(entries, maxList, uri)}, nil
}

// list writes the names one a line, up to about a number of bytes, and how many are left out. A name that is not text is
// written as uri has it.
func list(entries []rootfs.Entry, most int, uri func(name string) string) string {
	var text strings.Builder
	for i, e := range entries {
		if text.Len() >= most {
			fmt.Fprintf(&text, "\n%d more names are not listed, because one answer carries at most %d bytes of them.", len(entries)-i, most)
			break
		}
		if i > 0 {
			text.WriteByte('\n')
		}
		kind, name := "[FILE] ", e.Name
		if e.Type == fs.ModeDir {
			kind = "[DIR] "
		}
		if !utf8.ValidString(name) {
			name = uri(name)
		}
		text.WriteString(kind)
		text.WriteString(name)
	}
	return text.String()
}

var listAllowedDirectories = tool{
	name:  "list_allowed_directories",
	title: "List Allowed Directories",
	description: "List the directories that this server may reach; everything beneath them can be reached too. Use it first, to " +
		"know which paths the other tools take.",
	annotations: readOnly,
	run: func(c *call) (answer, error) {
		return answer{text: "Allowed directories:\n" + strings.Join(c.allowed(), "\n")}, nil
	},
}
