package clientconf

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// Text is the file as it was read. It may hold secrets.
func (f *File) Text() []byte {
	if f.src == nil {
		return nil
	}
	return bytes.Clone(f.src.text)
}

// With reads another text as this file.
func (f *File) With(text []byte) *File {
	g := &File{Client: f.Client, Place: f.Place, Path: f.Path, Size: int64(len(text))}
	g.parse(text)
	g.belongs(f.Project)
	return g
}

// ReadAs reads a file as one of a client, wherever it lies; nil when there is none. One that lies where the client would look
// is one of that place.
func ReadAs(c *Client, h Host, path string) *File {
	for _, p := range c.Places {
		for _, at := range h.locate(p) {
			if at.path == path {
				f := Read(c, p, path)
				if f != nil {
					f.belongs(at.project)
				}
				return f
			}
		}
	}
	return Read(c, c.placeOf(path), path)
}

// Environ are the environment variables of the server as its client sets them on this machine, NAME=value, to start it with.
// They are not to be printed.
func (s *Server) Environ(h Host) []string {
	var list []string
	for _, v := range s.Env {
		v.Value.Test(func(value string) bool {
			filled, _ := s.File.Client.Expand(value, h)
			list = append(list, v.Name+"="+filled)
			return true
		})
	}
	return list
}

// Below returns the files of a name in the directories below one, two levels deep, without what is hidden or installed there.
// It looks into so many directories that a person would not notice.
func Below(dir, name string) []string {
	const deepest, most = 2, 2000
	type level struct {
		dir   string
		depth int
	}
	var found []string
	for queue, looked := []level{{dir, 0}}, 0; len(queue) > 0 && looked < most; looked++ {
		at := queue[0]
		queue = queue[1:]
		entries, err := os.ReadDir(at.dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			switch {
			case e.Name() == name && at.depth > 0:
				found = append(found, filepath.Join(at.dir, name))
			case !e.IsDir() || at.depth == deepest || strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || e.Name() == "vendor":
			default:
				queue = append(queue, level{filepath.Join(at.dir, e.Name()), at.depth + 1})
			}
		}
	}
	return found
}
