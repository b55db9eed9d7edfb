package launch

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rootbound/rootbound/roots"
)

// placeholder finds {roots}, {root} and {root:NAME}, and the same in double braces, which stand for themselves.
var placeholder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{\{root(?:s|:[^{}]*)?\}\}|\{root(?:s|:[^{}]*)?\}`)
})

// UsesRoots reports whether a placeholder is in the command, so that it changes when the roots do.
func (c Command) UsesRoots() bool {
	list := append([]string{c.Path, c.Dir}, c.Args...)
	return slices.ContainsFunc(slices.AppendSeq(list, maps.Values(c.Env)), HasPlaceholder)
}

// HasPlaceholder reports whether there is something to fill in s.
func HasPlaceholder(s string) bool {
	return strings.Contains(s, "{root") && slices.ContainsFunc(placeholder().FindAllString(s, -1), func(m string) bool { return m[1] != '{' })
}

// Fill returns the command with the roots of s in the places of its placeholders:
//
//	{roots}      every directory, as separate arguments: it has to be an argument of its own
//	{root}       the first directory
//	{root:NAME}  the root with that name
//
// in the program, the arguments, the values of the environment and the working directory. A root goes in as it was
// written where that leads through a link. Double braces stand for the text itself: {{root}} becomes {root}. A root that
// may not be read is passed over. It is an error when there is nothing to put in.
func (c Command) Fill(s roots.Set) (Command, error) {
	f := filler{set: s}
	out := Command{Path: f.text(c.Path), Dir: f.text(c.Dir)}
	for _, arg := range c.Args {
		if arg != "{roots}" {
			out.Args = append(out.Args, f.text(arg))
			continue
		}
		dirs := f.dirs()
		if len(dirs) == 0 {
			f.fail(arg, "there is no root to put in; name one with --root DIR, or in the configuration file")
		}
		out.Args = append(out.Args, dirs...)
	}
	if c.Env != nil {
		out.Env = make(map[string]string, len(c.Env))
		for _, name := range slices.Sorted(maps.Keys(c.Env)) {
			out.Env[name] = f.text(c.Env[name])
		}
	}
	if f.err != nil {
		return Command{}, f.err
	}
	return out, nil
}

// FillText is Fill for one text, such as the default of a tool's argument.
func FillText(text string, s roots.Set) (string, error) {
	f := filler{set: s}
	out := f.text(text)
	return out, f.err
}

type filler struct {
	set roots.Set
	err error
}

func (f *filler) fail(in, format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("filling %q: %s", in, fmt.Sprintf(format, args...))
	}
}

func (f *filler) dirs() []string {
	var list []string
	for _, d := range f.set.Dirs() {
		if d.Access&roots.Read != 0 && !d.File {
			list = append(list, written(d))
		}
	}
	return list
}

// written is how a root was written, if that still leads to it.
func written(d roots.Dir) string {
	if n := len(d.Spellings); n > 0 {
		return d.Spellings[n-1]
	}
	return d.Path
}

func (f *filler) text(s string) string {
	if !strings.Contains(s, "{root") { // as nearly all
		return s
	}
	return placeholder().ReplaceAllStringFunc(s, func(m string) string {
		switch name, named := strings.CutPrefix(m, "{root:"); {
		case strings.HasPrefix(m, "{{"):
			return m[1 : len(m)-1]
		case m == "{roots}":
			f.fail(s, "{roots} stands for several arguments and has to be one of its own; {root} and {root:NAME} fit into a text")
		case named:
			return f.named(s, strings.TrimSuffix(name, "}"))
		default:
			if dirs := f.dirs(); len(dirs) > 0 {
				return dirs[0]
			}
			f.fail(s, "there is no root to put in; name one with --root DIR, or in the configuration file")
		}
		return m
	})
}

func (f *filler) named(in, name string) string {
	if d, ok := f.set.Find(name); ok && d.Access&roots.Read != 0 {
		return written(d)
	}
	var names []string
	for _, d := range f.set.Dirs() {
		if d.Name != "" {
			names = append(names, d.Name)
		}
	}
	switch near, ok := Nearest(name, names); {
	case ok:
		f.fail(in, "there is no root named %q, did you mean %q?", name, near)
	case len(names) > 0:
		f.fail(in, "there is no root named %q; there are %q", name, names)
	default:
		f.fail(in, "there is no root named %q, and no root has a name", name)
	}
	return ""
}

// OutsideError says that a server's own directory arguments and the roots disagree.
type OutsideError struct {
	// Outside are the directory arguments, as written, that lie in no root.
	Outside []string
	// Roots are the directories that the server may be given.
	Roots []string
	// Args are the arguments as they would be with placeholders.
	Args []string
}

// Error names both lists and the line that makes them agree.
func (e *OutsideError) Error() string {
	quoted := make([]string, len(e.Args))
	for i, arg := range e.Args {
		quoted[i] = fmt.Sprintf("%q", arg)
	}
	return fmt.Sprintf("the server's directory arguments %q are outside its roots %q: name them as roots, or write args = [%s]",
		e.Outside, e.Roots, strings.Join(quoted, ", "))
}

// CheckDirectories looks whether every directory argument of a known server lies in a root of s. Relative ones are taken
// from dir, which is absolute. It looks at the disk to follow links. An error is an *OutsideError.
func CheckDirectories(c Command, s roots.Set, dir string) error {
	t := Identify(c)
	p, ok := Lookup(t)
	if !ok {
		return nil
	}
	e := &OutsideError{}
	for _, d := range p.Directories(t) {
		if HasPlaceholder(d.Path) {
			continue
		}
		if _, _, in := s.Match(resolved(d.Path, dir)); !in {
			e.Outside = append(e.Outside, d.Path)
		}
	}
	if len(e.Outside) == 0 {
		return nil
	}
	for _, d := range s.Dirs() {
		e.Roots = append(e.Roots, d.Path)
	}
	e.Args = withPlaceholders(c, p.Directories(t))
	return e
}

// resolved is where a directory argument leads, or the place it names when nothing is there.
func resolved(path, dir string) string {
	if path != "" && !filepath.IsAbs(path) && path[0] != '~' {
		path = filepath.Join(dir, path)
	}
	if d, err := roots.Resolve(path, roots.ResolveOptions{Access: roots.ReadOnly, AllowBroad: true}); err == nil {
		return d.Path
	}
	return filepath.Clean(path)
}

// withPlaceholders writes the arguments with placeholders instead of directories.
func withPlaceholders(c Command, dirs []Directory) []string {
	var args []string
	all := false
	for i, arg := range c.Args {
		n := slices.IndexFunc(dirs, func(d Directory) bool { return d.Arg == i })
		switch {
		case n < 0:
			args = append(args, arg)
		case dirs[n].Placeholder != "{roots}":
			args = append(args, dirs[n].Placeholder)
		case !all:
			args = append(args, "{roots}")
			all = true
		}
	}
	return args
}
