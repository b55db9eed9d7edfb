package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/splice"
	"github.com/rootbound/rootbound/internal/statefile"
	"github.com/rootbound/rootbound/roots"
)

// Change is an edit of a file that is not written yet.
type Change struct {
	File string
	// Before is what the file holds, nil when it is not there. After is what it would hold.
	Before, After []byte
}

// ErrChanged is the error of Change.Write for a file that holds something else now.
var ErrChanged = errors.New("the file was changed meanwhile")

// newFile is what a file begins with that an edit makes.
const newFile = "# Rootbound: see rootbound config example, and docs/configuration.md for every key.\n"

// AddRoot puts a root into a file: into the list of a server, or with no server into the one for all. The file need not
// be there. R.Path is absolute, and is written as where it leads: it has to be there, and not be broad. A root with the same
// directory or the same name is refused.
func AddRoot(file, server string, r Root) (Change, error) {
	d, err := roots.Resolve(r.Path, roots.ResolveOptions{Name: r.Name, Access: r.Access})
	if err != nil {
		return Change{}, err
	}
	r.Path = d.Path
	return edit(file, func(f *File) (*splice.Doc, error) {
		p, list, err := f.scope(server)
		if err != nil {
			return nil, err
		}
		for _, old := range list.Value {
			if samePlace(f.placeOf(old), r.Path) {
				return nil, old.Origin.errorf("root %q is there already", r.Path)
			}
			if r.Name != "" && old.Name == r.Name {
				return nil, old.Origin.errorf("there is a root named %q already", r.Name)
			}
		}
		item := f.rootValue(r)
		if list.Given() {
			return f.doc.Insert(append(p, "roots", splice.End), item)
		}
		return f.doc.Insert(append(p, "roots"), splice.Array(item))
	})
}

// RemoveRoot takes a root out of a file, by its name or its directory. What is left when it was the last one is an empty
// list, which allows nothing: not the absence of one.
func RemoveRoot(file, server, root string) (Change, error) {
	return edit(file, func(f *File) (*splice.Doc, error) {
		p, list, err := f.scope(server)
		if err != nil {
			return nil, err
		}
		i := f.indexOf(list.Value, root)
		if i < 0 {
			return nil, errors.Join(noRoot(f.Path, root, list.Value), f.elsewhere(server, root))
		}
		old := list.Value[i]
		if a := f.Active; a.Given() && (a.Value == old.Name || samePlace(absolute(filepath.Dir(f.Path), a.Value), f.placeOf(old))) {
			return nil, a.Origin.errorf("%q is the active workspace: rootbound roots use another one first", root)
		}
		doc, err := f.doc.Delete(append(p, "roots", i))
		if err != nil {
			return nil, err
		}
		if _, left := doc.Find(append(p, "roots")); !left {
			doc, err = doc.Insert(append(p, "roots"), splice.Array())
		}
		return doc, err
	})
}

// SetRoot gives a root of a file, by its name or its directory, another name, other rights, or another pin, as change has it of what
// it was; its path stays. Where it is the active workspace by its name, that follows.
func SetRoot(file, server, root string, change func(Root) Root) (Change, error) {
	return edit(file, func(f *File) (*splice.Doc, error) {
		p, list, err := f.scope(server)
		if err != nil {
			return nil, err
		}
		i := f.indexOf(list.Value, root)
		if i < 0 {
			return nil, errors.Join(noRoot(f.Path, root, list.Value), f.elsewhere(server, root))
		}
		old := list.Value[i]
		to := change(old)
		for j, other := range list.Value {
			if j != i && to.Name != "" && other.Name == to.Name {
				return nil, other.Origin.errorf("there is a root named %q already", to.Name)
			}
		}
		if to.Name != old.Name && old.Name != "" {
			if s := f.fills(server, old.Name); s != nil {
				return nil, old.Origin.errorf("the server %q is filled in with {root:%s}: write another name there first", s.Name, old.Name)
			}
		}
		active := f.Active.Given() && f.Active.Value == old.Name && old.Name != "" && to.Name != old.Name
		doc := f.doc
		set := func(name string, v *splice.Value, given bool) {
			at := append(slices.Clone(p), "roots", i, name)
			_, there := doc.Find(at)
			switch {
			case err != nil:
			case given && there:
				doc, err = doc.Replace(at, v)
			case given:
				doc, err = doc.Insert(at, v)
			case there:
				doc, err = doc.Delete(at)
			}
		}
		if to.Name != old.Name {
			set("name", splice.String(to.Name), to.Name != "")
		}
		if to.Access != old.Access {
			set("access", splice.String(word(accessWords, to.Access)), to.Access != roots.ReadWrite)
		}
		if to.Pin != old.Pin {
			set("pin", splice.Bool(true), to.Pin)
		}
		if active && err == nil {
			value := to.Name
			if value == "" {
				value = f.placeOf(old)
			}
			doc, err = doc.Replace(splice.Path{"active"}, splice.String(value))
		}
		return doc, err
	})
}

// fills returns a server that is filled in with a root of a list by its name, or nil.
func (f *File) fills(list, name string) *Server {
	placeholder := "{root:" + name + "}"
	has := func(text string) bool { return strings.Contains(text, placeholder) }
	for _, s := range f.Servers {
		if s.Name != list && (list != "" || s.Roots.Given()) {
			continue
		}
		texts := append([]string{s.Command.Value, s.Cwd.Value}, s.Args.Value...)
		texts = slices.AppendSeq(texts, maps.Values(s.Env.Value))
		for _, t := range s.Tools {
			texts = slices.AppendSeq(texts, maps.Values(t.Defaults.Value))
		}
		if slices.ContainsFunc(texts, has) {
			return s
		}
	}
	return nil
}

// Use makes a root of a file, by its name, or a directory the active workspace.
func Use(file, root string) (Change, error) {
	return edit(file, func(f *File) (*splice.Doc, error) {
		if f.form != ours {
			return nil, &Error{File: f.Path, Msg: "this is a client's file: the active workspace belongs into your own, rootbound.toml"}
		}
		lists, value := f.allRoots(), root
		if !slices.ContainsFunc(lists, func(r Root) bool { return r.Name == root && root != "" }) {
			d, err := roots.Resolve(root, roots.ResolveOptions{Access: roots.ReadOnly, AllowBroad: true})
			if err != nil {
				return nil, fmt.Errorf("%w; as a directory: %w", noRoot(f.Path, root, lists), err)
			}
			value = d.Spellings[len(d.Spellings)-1]
		}
		if f.Active.Given() {
			return f.doc.Replace(splice.Path{"active"}, splice.String(value))
		}
		return f.doc.Insert(splice.Path{"active"}, splice.String(value))
	})
}

func edit(file string, change func(*File) (*splice.Doc, error)) (Change, error) {
	c := Change{File: file}
	text, err := os.ReadFile(file)
	switch {
	case err == nil:
		c.Before = append([]byte{}, text...)
	case errors.Is(err, fs.ErrNotExist):
		if grammar(file, nil) == splice.TOML {
			text = []byte(newFile)
		} else {
			text = []byte("{}\n")
		}
	default:
		return Change{}, fmt.Errorf("reading configuration %q: %w", file, reason(err))
	}
	f, err := Parse(file, text)
	if err != nil {
		return Change{}, err
	}
	doc, err := change(f)
	if err != nil {
		var se *splice.Error
		if errors.As(err, &se) {
			return Change{}, &Error{File: file, Pos: se.Pos, Msg: se.Msg}
		}
		return Change{}, err
	}
	c.After = doc.Bytes()
	if _, err := Parse(file, c.After); err != nil {
		return Change{}, fmt.Errorf("bug: the edit would make the file invalid: %w", err)
	}
	return c, nil
}

// scope returns where the roots of a server stand, or those for all.
func (f *File) scope(server string) (splice.Path, Setting[[]Root], error) {
	if server == "" {
		return nil, f.Roots, nil
	}
	i := slices.IndexFunc(f.Servers, func(s *Server) bool { return s.Name == server })
	if i < 0 {
		msg := fmt.Sprintf("there is no server %q", server)
		if near, ok := launch.Nearest(server, f.serverNames()); ok {
			msg += fmt.Sprintf(", did you mean %q?", near)
		}
		return nil, Setting[[]Root]{}, &Error{File: f.Path, Msg: msg}
	}
	p := splice.Path{"server", server}
	if f.form == client {
		p = splice.Path{"mcpServers", server}
		if f.doc.Format() == splice.TOML {
			p = splice.Path{"mcp", "servers", i}
		}
	}
	return p, f.Servers[i].Roots, nil
}

// rootValue writes a root in the form of the file.
func (f *File) rootValue(r Root) *splice.Value {
	where := splice.Member{Name: "path", Value: splice.String(r.Path)}
	if f.form != ours {
		where = splice.Member{Name: "uri", Value: splice.String(roots.FileURI(r.Path))}
	}
	members := []splice.Member{where}
	if r.Name != "" {
		members = append(members, splice.Member{Name: "name", Value: splice.String(r.Name)})
	}
	if r.Access != roots.ReadWrite {
		members = append(members, splice.Member{Name: "access", Value: splice.String(word(accessWords, r.Access))})
	}
	if r.Pin {
		members = append(members, splice.Member{Name: "pin", Value: splice.Bool(true)})
	}
	return splice.Object(members...)
}

func (f *File) placeOf(r Root) string { return absolute(filepath.Dir(f.Path), r.Path) }

// indexOf finds a root by its name, or else by its directory.
func (f *File) indexOf(list []Root, root string) int {
	if i := slices.IndexFunc(list, func(r Root) bool { return r.Name == root && root != "" }); i >= 0 {
		return i
	}
	place := root
	if abs, err := filepath.Abs(expandHome(root)); err == nil {
		place = abs
	}
	return slices.IndexFunc(list, func(r Root) bool { return samePlace(f.placeOf(r), place) })
}

// samePlace reports whether two paths name one place, be it there or not.
func samePlace(a, b string) bool { return filepath.Clean(a) == filepath.Clean(b) || same(a, b) }

// elsewhere says in which other lists of the file a root is that is not in the one of a server; nil when in none.
func (f *File) elsewhere(server, root string) error {
	var faults []error
	if server != "" && f.indexOf(f.Roots.Value, root) >= 0 {
		faults = append(faults, f.Roots.Origin.errorf("it is among the roots for all: leave out --server"))
	}
	for _, s := range f.Servers {
		if s.Name != server && f.indexOf(s.Roots.Value, root) >= 0 {
			faults = append(faults, s.Roots.Origin.errorf("it is among the roots of the server %q: --server %[1]s", s.Name))
		}
	}
	return errors.Join(faults...)
}

func noRoot(file, root string, list []Root) error {
	var names []string
	for _, r := range list {
		if r.Name != "" {
			names = append(names, r.Name)
		}
	}
	msg := fmt.Sprintf("there is no root %q", root)
	if near, ok := launch.Nearest(root, names); ok {
		msg += fmt.Sprintf(", did you mean %q?", near)
	}
	return &Error{File: file, Msg: msg}
}

// Write puts the change on the disk, whole or not at all: through a link into the file it leads to, with the mode that is
// there. A file that does not hold Before any more is ErrChanged, and stays.
func (c Change) Write() error {
	if err := c.write(); err != nil {
		return fmt.Errorf("writing configuration %q: %w", c.File, reason(err))
	}
	return nil
}

func (c Change) write() error {
	return statefile.ReplaceIf(c.File, c.After, func() error {
		now, err := os.ReadFile(c.File)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if c.Before != nil {
				return ErrChanged
			}
		case err != nil:
			return err
		case c.Before == nil || !bytes.Equal(now, c.Before):
			return ErrChanged
		}
		return nil
	})
}
