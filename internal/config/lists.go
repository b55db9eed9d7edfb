package config

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/rootbound/rootbound/roots"
)

// RootList is one list of roots of a file.
type RootList struct {
	// Server is whose it is; "" is the one for all.
	Server string
	// Given is set when it is in the file; a server without one has the one for all.
	Given bool
	Roots []Placed
}

// Placed is a root of a file with where it is.
type Placed struct {
	Root
	// Place is its directory, absolute, as it is written.
	Place string
	// Dir is where that leads, and Err why it leads nowhere.
	Dir roots.Dir
	Err *roots.Error
	// Active is set for the active workspace.
	Active bool
}

// AccessWord is what may be done there, as a file has it.
func (r Root) AccessWord() string { return word(accessWords, r.Access) }

// AccessOf are the rights that a word of a file stands for.
func AccessOf(text string) (roots.Access, bool) { return accessWords.value(text) }

// Lists returns the lists of roots of a file, the one for all first, and looks where they lead. A file that is not there has none.
func Lists(file string) (list []RootList, err error) {
	f, err := Load(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []RootList{{}}, nil
	case err != nil:
		return nil, err
	}
	list = f.lists()
	for i := range list {
		for j := range list[i].Roots {
			p := &list[i].Roots[j]
			d, err := resolve(filepath.Dir(f.Path), p.Path, roots.ResolveOptions{Name: p.Name, Access: p.Access, Pinned: p.Pin, AllowBroad: f.AllowBroad.Value})
			if p.Dir = d; err != nil && !errors.As(err, &p.Err) {
				p.Err = &roots.Error{Root: p.Place, Reason: roots.Unopenable, Err: err}
			}
		}
	}
	return list, nil
}

// lists are the lists of roots of a file, as they are written.
func (f *File) lists() []RootList {
	active := f.activePlace()
	place := func(server string, s Setting[[]Root]) RootList {
		l := RootList{Server: server, Given: s.Given()}
		for _, r := range s.Value {
			at := filepath.Clean(f.placeOf(r))
			l.Roots = append(l.Roots, Placed{Root: r, Place: at, Active: active != "" && samePlace(at, active)})
		}
		return l
	}
	list := []RootList{place("", f.Roots)}
	for _, s := range f.Servers {
		list = append(list, place(s.Name, s.Roots))
	}
	return list
}

// activePlace is the directory of the active workspace; "" for none.
func (f *File) activePlace() string {
	if !f.Active.Given() {
		return ""
	}
	dir, _ := f.active()
	return filepath.Clean(dir)
}

// active returns the directory of the active workspace, and its name when it is a root of the file.
func (f *File) active() (dir, name string) {
	for _, r := range f.allRoots() {
		if r.Name == f.Active.Value {
			return f.placeOf(r), r.Name
		}
	}
	return absolute(filepath.Dir(f.Path), f.Active.Value), ""
}

// Effect is what an edit changes for the servers that follow one list of a file, or its active workspace.
type Effect struct {
	// Server is whose list it is, "" the one for all. Active is set for the active workspace instead.
	Server string
	Active bool
	// Gained and Lost are what they have and had not, and the other way round; Changed are other names, rights or pins.
	Gained, Lost, Changed []Placed
	// Begun is set for a server that had the roots for all, and has a list of its own from now on. Emptied is set where a list
	// has nothing in it any more, which allows nothing.
	Begun, Emptied bool
}

// Effects say what a change of a file changes, for whom.
func (c Change) Effects() ([]Effect, error) {
	before, err := Parse(c.File, c.Before)
	if c.Before == nil {
		before, err = &File{Path: c.File}, nil
	}
	if err != nil {
		return nil, err
	}
	after, err := Parse(c.File, c.After)
	if err != nil {
		return nil, err
	}
	all := before.lists()
	var effects []Effect
	for _, now := range after.lists() {
		e := Effect{Server: now.Server}
		was := all[0]
		for _, l := range all {
			if l.Server == now.Server {
				was = l
			}
		}
		if now.Server != "" && !was.Given {
			if !now.Given {
				continue // it follows the one for all
			}
			e.Begun, was = true, all[0]
		}
		e.compare(was.Roots, now.Roots)
		e.Emptied = now.Given && len(now.Roots) == 0 && len(was.Roots) > 0
		if len(e.Gained)+len(e.Lost)+len(e.Changed) > 0 {
			effects = append(effects, e)
		}
	}
	if was, now := before.activePlace(), after.activePlace(); was != now {
		e := Effect{Active: true}
		if was != "" {
			e.Lost = []Placed{{Place: was}}
		}
		if now != "" {
			e.Gained = []Placed{{Place: now}}
		}
		effects = append(effects, e)
	}
	return effects, nil
}

func (e *Effect) compare(was, now []Placed) {
	at := func(list []Placed, p Placed) int {
		return slices.IndexFunc(list, func(o Placed) bool { return o.Place == p.Place })
	}
	for _, p := range now {
		switch i := at(was, p); {
		case i < 0:
			e.Gained = append(e.Gained, p)
		case p.Name != was[i].Name || p.Access != was[i].Access || p.Pin != was[i].Pin:
			e.Changed = append(e.Changed, p)
		}
	}
	for _, p := range was {
		if at(now, p) < 0 {
			e.Lost = append(e.Lost, p)
		}
	}
}

// Diff is the change as a unified diff; "" when there is none.
func (c Change) Diff() string {
	name := filepath.Base(c.File)
	return udiff.Unified(name, name, string(c.Before), string(c.After))
}

// ResolveTyped is roots.Resolve for a path that a person typed somewhere else than in a shell: it is absolute, or begins with "~/".
func ResolveTyped(path string) (roots.Dir, error) {
	full := expandHome(path)
	if !filepath.IsAbs(full) {
		return roots.Dir{}, &roots.Error{Root: path, Reason: roots.NotAbsolute}
	}
	return roots.Resolve(full, roots.ResolveOptions{Access: roots.ReadWrite})
}

// Pick is a directory that could become a root.
type Pick struct {
	Path string
	// Work is set for the top of a work tree or a project, Broad for a directory that is too wide to be a root unasked.
	Work, Broad bool
}

// maxPicked is how many entries of a directory are looked at.
const maxPicked = 10_000

// Picks returns the directories to which a path that is being typed can be completed, in their order, at most so many, and whether
// there are more. What begins with a dot is among them only when that was typed. "~/" is the home directory.
func Picks(typed string, most int) (list []Pick, more bool, err error) {
	path := expandHome(typed)
	if path == "" || path == "~" {
		path = expandHome("~/")
	}
	if !filepath.IsAbs(path) {
		return nil, false, &roots.Error{Root: typed, Reason: roots.NotAbsolute}
	}
	dir, prefix := filepath.Split(path)
	d, err := os.Open(dir)
	if err != nil {
		return nil, false, reason(err)
	}
	defer d.Close()
	entries, _ := d.ReadDir(maxPicked) // what was read before an error is worth showing
	slices.SortFunc(entries, func(a, b fs.DirEntry) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Name()), strings.ToLower(b.Name())), strings.Compare(a.Name(), b.Name()))
	})
	for _, e := range entries {
		name := e.Name()
		if len(name) < len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) || name[0] == '.' && prefix == "" {
			continue
		}
		full := filepath.Join(dir, name)
		if !e.IsDir() && (e.Type()&fs.ModeSymlink == 0 || !isDir(full)) {
			continue
		}
		if len(list) == most {
			return list, true, nil
		}
		p := Pick{Path: full, Broad: roots.Broad(full)}
		if top, ok := roots.Workspace(full); ok {
			real, err := filepath.EvalSymlinks(full)
			p.Work = err == nil && top == real
		}
		list = append(list, p)
	}
	return list, len(entries) == maxPicked, nil
}
