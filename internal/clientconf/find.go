package clientconf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/rootbound/rootbound/internal/splice"
)

// Host is the machine and the user whose files are looked for.
type Host struct {
	// Home is the user's home directory, Project the one that is worked in; either may be empty.
	Home, Project string
	// OS is as runtime.GOOS.
	OS string
	// Env looks up an environment variable; nil for none.
	Env func(name string) string
}

func (h Host) env(name string) string {
	if h.Env == nil {
		return ""
	}
	return h.Env(name)
}

// maxSize is how large a file may be that is read.
const maxSize = 64 << 20

// Find reads the files of every client that are there. A file that is there and cannot be read has a Problem.
func Find(h Host) []*File {
	var list []*File
	for _, c := range clients {
		list = append(list, FindOf(c, h)...)
	}
	return list
}

// FindOf reads the files of one client.
func FindOf(c *Client, h Host) []*File {
	var list []*File
	seen := map[string]bool{}
	for _, p := range c.Places {
		for _, at := range h.locate(p) {
			if seen[at.path] {
				continue
			}
			seen[at.path] = true
			if f := Read(c, p, at.path); f != nil {
				f.belongs(at.project)
				list = append(list, f)
			}
		}
	}
	return list
}

// Read reads a file of a client as one of a place; nil when there is none.
func Read(c *Client, p Place, path string) *File {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || p.Role == Presence && err != nil {
		return nil
	}
	f := &File{Client: c, Place: p, Path: path}
	if p.Role == Presence {
		return f
	}
	if err == nil {
		f.Size = info.Size()
		err = regular(info)
	}
	var text []byte
	if err == nil {
		text, err = read(path)
	}
	if err != nil {
		f.Problems = []Problem{{Kind: Unreadable, Pos: splice.Pos{Line: 1, Column: 1}, Msg: "it cannot be read: " + reason(err).Error(), Fatal: true}}
		return f
	}
	f.parse(text)
	return f
}

// belongs notes the project of a file, which is that of its servers that are for no other.
func (f *File) belongs(project string) {
	f.Project = project
	for _, s := range f.Servers {
		if s.Project == "" {
			s.Project = project
		}
	}
}

// ParseAs reads text as a file of a client that is called path.
func ParseAs(c *Client, path string, text []byte) *File {
	f := &File{Client: c, Place: c.placeOf(path), Path: path, Size: int64(len(text))}
	f.parse(text)
	return f
}

// placeOf returns the place whose paths end as path does, with most names in common. Where they end alike, it is the
// project's for a path that has all of the template's names in it, and else the user's.
func (c *Client) placeOf(path string) Place {
	best, most := c.Places[0], 0
	for _, p := range c.Places {
		for _, t := range slices.Concat(p.Paths, p.Linux, p.Darwin, p.Windows) {
			n, whole := common(t, filepath.ToSlash(path))
			score := 2 * n
			if n > 0 && whole == (p.Scope == Project) {
				score++
			}
			if score > most {
				best, most = p, score
			}
		}
	}
	return best
}

// common counts the names that a template and a path have in common at their ends, and tells whether those are all that
// the template has. What may be any name does not count.
func common(template, path string) (n int, whole bool) {
	a, b := strings.Split(template, "/"), strings.Split(path, "/")
	if strings.HasPrefix(a[0], "{") {
		a = a[1:]
	}
	i := 0
	for i < len(a) && i < len(b) {
		name := a[len(a)-1-i]
		if ok, err := filepath.Match(name, b[len(b)-1-i]); err != nil || !ok {
			break
		}
		if name != "*" {
			n++
		}
		i++
	}
	return n, i == len(a)
}

func regular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return errors.New("it is a directory")
	case !info.Mode().IsRegular():
		return errors.New("it is no regular file")
	case info.Size() > maxSize:
		return fmt.Errorf("it is larger than %d MiB", maxSize>>20)
	}
	return nil
}

// read reads a file that was regular, and never more of it than may be.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(text) > maxSize {
		err = fmt.Errorf("it is larger than %d MiB", maxSize>>20)
	}
	return text, err
}

// reason takes the path out of an error of the system.
func reason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// location is a path where a file may be, and the project it belongs to.
type location struct{ path, project string }

// locate fills in the paths of a place.
func (h Host) locate(p Place) []location {
	templates := slices.Clone(p.Paths)
	switch h.OS {
	case "darwin":
		templates = append(templates, p.Darwin...)
	case "windows":
		templates = append(templates, p.Windows...)
	default:
		templates = append(templates, p.Linux...)
	}
	var list []location
	for _, t := range templates {
		if !strings.HasPrefix(t, "{project}") {
			if path, ok := h.fill(t); ok {
				list = append(list, glob(path, "")...)
				if p.First {
					break
				}
			}
			continue
		}
		dirs := []string{h.Project}
		if p.Up {
			dirs = h.above()
		}
		for _, dir := range dirs {
			if dir != "" {
				list = append(list, glob(filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(t, "{project}"))), dir)...)
			}
		}
	}
	return list
}

// fill puts directories in for the names in braces at the beginning of a template.
func (h Host) fill(t string) (string, bool) {
	if !strings.HasPrefix(t, "{") {
		return filepath.FromSlash(t), true
	}
	name, rest, _ := strings.Cut(t[1:], "}")
	dir := ""
	under := func(names ...string) {
		if dir == "" && h.Home != "" {
			dir = filepath.Join(append([]string{h.Home}, names...)...)
		}
	}
	switch name {
	case "home":
		under()
	case "config":
		if d := h.env("XDG_CONFIG_HOME"); filepath.IsAbs(d) {
			dir = d
		}
		under(".config")
	case "appdata":
		dir = h.env("APPDATA")
		under("AppData", "Roaming")
	case "localappdata":
		dir = h.env("LOCALAPPDATA")
		under("AppData", "Local")
	case "programdata":
		if dir = h.env("ProgramData"); dir == "" {
			dir = `C:\ProgramData`
		}
	default:
		dir = h.env(name)
	}
	return filepath.Join(dir, filepath.FromSlash(rest)), dir != ""
}

// glob returns the paths that there are for a pattern; a path without a star is returned in any case.
func glob(pattern, project string) []location {
	if !strings.Contains(pattern, "*") {
		return []location{{pattern, project}}
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}
	var list []location
	for _, p := range paths {
		list = append(list, location{p, project})
	}
	return list
}

// above returns the project and the directories that hold it, up to the home directory or the top of the disk.
func (h Host) above() []string {
	var list []string
	for dir := h.Project; dir != ""; {
		list = append(list, dir)
		up := filepath.Dir(dir)
		if dir == h.Home || up == dir {
			break
		}
		dir = up
	}
	return list
}
