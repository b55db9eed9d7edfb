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

// listDirectory lists one directory, by name.
func listDirectory(c *call) (string, error) {
	var entries []rootfs.Entry
	path, err := c.at(opScandir, func(path string) (err error) {
		entries, err = c.fs.ReadDir(path)
		return err
	})
	if err != nil {
		return "", err
	}
	return list(entries, maxList, func(name string) string { return roots.FileURI(filepath.Join(c.real(path), name)) }), nil
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

// listAllowedDirectories lists the roots, under every spelling.
func listAllowedDirectories(c *call) (string, error) {
	return "Allowed directories:\n" + strings.Join(c.allowed(), "\n"), nil
}
