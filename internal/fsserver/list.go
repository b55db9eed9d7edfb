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
	var text strings.Builder
	real := ""
	for i, e := range entries {
		name := e.Name
		if !utf8.ValidString(name) {
			if real == "" {
				real = c.real(path)
			}
			name = roots.FileURI(filepath.Join(real, name))
		}
		if text.Len()+len(name) > maxList {
			fmt.Fprintf(&text, "\n%d more names are not listed, because one answer carries at most %d bytes of them.", len(entries)-i, maxList)
			break
		}
		if i > 0 {
			text.WriteByte('\n')
		}
		kind := "[FILE] "
		if e.Type == fs.ModeDir {
			kind = "[DIR] "
		}
		text.WriteString(kind)
		text.WriteString(name)
	}
	return text.String(), nil
}

// maxList is the longest list, in bytes.
const maxList = 1 << 20

// listAllowedDirectories lists the roots, under every spelling.
func listAllowedDirectories(c *call) (string, error) {
	return "Allowed directories:\n" + strings.Join(c.allowed(), "\n"), nil
}
