package clientconf

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/splice"
)

// NoArgs is the option of rootbound run which says that the entry had no list of arguments before it was wrapped, so that
// unwrapping takes the list away again and does not leave an empty one.
const NoArgs = "--no-args"

// Guard is the part of an entry's command line that is Rootbound's.
type Guard struct {
	// Program is rootbound's, Options are what stands between run and --.
	Program string
	Options []string
	// Own is the server's own command.
	Own launch.Command
}

// Guard returns what wraps the server, if anything does in the form that Draft.Wrap writes: rootbound run [OPTION…] --
// COMMAND. A rootbound that has no command of the server behind it is no wrapping.
func (s *Server) Guard() (g Guard, ok bool) {
	n := s.guarded()
	if n < 0 {
		return Guard{}, false
	}
	g = Guard{Program: s.Command.Text, Own: launch.Command{Path: s.Args[n+1].Text, Dir: s.Cwd.Text}}
	for _, a := range s.Args[1:n] {
		g.Options = append(g.Options, a.Text)
	}
	for _, a := range s.Args[n+2:] {
		g.Own.Args = append(g.Own.Args, a.Text)
	}
	return g, true
}

// guarded returns which argument is the "--" of a wrapping, or -1.
func (s *Server) guarded() int {
	if len(s.Args) < 3 || s.Args[0].Text != "run" || !IsRootbound(s.Command.Text) {
		return -1
	}
	n := slices.IndexFunc(s.Args, func(t Text) bool { return t.Text == "--" })
	if n+1 >= len(s.Args) {
		return -1
	}
	return n
}

// IsRootbound reports whether a program is this one by its name.
func IsRootbound(program string) bool {
	return launch.Identify(launch.Command{Path: program, Args: []string{"run", "--", "x"}}).Guarded
}

// Draft is an edit of a file that is not written yet.
type Draft struct {
	file *File
	doc  *splice.Doc
}

// ErrIntricate is why an edit is refused that could be taken for another.
var ErrIntricate = errors.New("it has to be edited by hand")

// Refusal says that nothing is edited because of a problem.
func (f *File) Refusal(p Problem) error {
	return fmt.Errorf("%s:%s: %s; mend that first, `rootbound doctor` says how", f.Path, p.Pos, p.Msg)
}

// Draft begins an edit. A file that its client cannot read, or that two programs could read differently, is refused.
func (f *File) Draft() (*Draft, error) {
	if f.src == nil || !f.Client.Writable || f.Place.Format.Grammar == Shell {
		return nil, fmt.Errorf("%q: %s", f.Path, f.Client.ReadOnly)
	}
	for _, p := range f.Problems {
		if p.Fatal || p.Kind == Twice {
			return nil, f.Refusal(p)
		}
	}
	doc, err := splice.Parse(f.src.text, f.Place.Format.Grammar.splice())
	if err != nil {
		return nil, fmt.Errorf("%s:%w", f.Path, err)
	}
	return &Draft{f, doc}, nil
}

// Bytes is the text as it would be.
func (d *Draft) Bytes() []byte { return d.doc.Bytes() }

// Wrap puts program run options -- in front of the command of s, which stays as it is written. An entry that is wrapped
// stays as it is.
func (d *Draft) Wrap(s *Server, program string, options ...string) error {
	if s.guarded() >= 0 {
		return nil
	}
	if !s.Command.Given() {
		return s.intricate("it has no command")
	}
	front := append(append([]string{"run"}, options...), "--")
	command := join(s.path, s.form.Command)
	if s.form.Argv {
		return d.change(s, func(doc *splice.Doc) (*splice.Doc, error) {
			return doc.Prepend(command, values(append([]string{program}, front...))...)
		})
	}
	own, err := d.own(s, command)
	if err != nil {
		return err
	}
	return d.change(s, func(doc *splice.Doc) (*splice.Doc, error) {
		args := join(s.path, s.form.Args)
		list, there := doc.Find(args)
		switch {
		case !there:
			front = slices.Insert(front, len(front)-1, NoArgs)
			doc, err = doc.Insert(args, splice.Array(append(values(front), own)...))
		case list.Kind != splice.ArrayKind:
			return nil, fmt.Errorf("%s is %s and no list", s.form.Args, list.Kind)
		default:
			doc, err = doc.Prepend(args, append(values(front), own)...)
		}
		if err != nil {
			return nil, err
		}
		return doc.Replace(command, splice.String(program))
	})
}

// Renew puts another program in the place of the rootbound that wraps s.
func (d *Draft) Renew(s *Server, program string) error {
	if s.guarded() < 0 {
		return nil
	}
	at := join(s.path, s.form.Command)
	if s.form.Argv {
		at = join(at, 0)
	}
	return d.change(s, func(doc *splice.Doc) (*splice.Doc, error) { return doc.Replace(at, splice.String(program)) })
}

// own is the command of an entry as it is written.
func (d *Draft) own(s *Server, p splice.Path) (*splice.Value, error) {
	v, ok := d.doc.Find(p)
	if !ok || v.Kind != splice.StringKind {
		return nil, s.intricate("its command is no text")
	}
	if v.Unquoted() && strings.ContainsAny(v.Text, ",[]{}#:&*!|>%@`'\"") {
		return nil, s.intricate("put quotes around its command first")
	}
	own, err := d.doc.Verbatim(p)
	if err != nil {
		return nil, s.intricate(err.Error())
	}
	return own, nil
}

// Unwrap takes away what Wrap has put in front of the command of s, or a person in that form. An entry that is not wrapped
// stays as it is.
func (d *Draft) Unwrap(s *Server) error {
	n := s.guarded()
	if n < 0 {
		return nil
	}
	command := join(s.path, s.form.Command)
	if s.form.Argv {
		return d.change(s, func(doc *splice.Doc) (*splice.Doc, error) { return doc.Chop(command, n+2) })
	}
	return d.change(s, func(doc *splice.Doc) (*splice.Doc, error) {
		args := join(s.path, s.form.Args)
		own, err := doc.Verbatim(join(args, n+1))
		if err != nil {
			return nil, err
		}
		if own.Kind != splice.StringKind {
			return nil, fmt.Errorf("the command behind -- is %s", own.Kind)
		}
		without := slices.ContainsFunc(s.Args[:n], func(t Text) bool { return t.Text == NoArgs })
		if doc, err = doc.Replace(command, own); err != nil {
			return nil, err
		}
		if without && len(s.Args) == n+2 {
			return doc.Delete(args)
		}
		return doc.Chop(args, n+2)
	})
}

// change makes a change to the text, or none.
func (d *Draft) change(s *Server, f func(*splice.Doc) (*splice.Doc, error)) error {
	doc, err := f(d.doc)
	if err != nil {
		return s.intricate(err.Error())
	}
	d.doc = doc
	return nil
}

func (s *Server) intricate(why string) error {
	return fmt.Errorf("%s:%s: server %q: %s: %w", s.File.Path, s.Pos, s.Name, why, ErrIntricate)
}

func values(list []string) []*splice.Value { return splice.Strings(list...).Items }

func join(p splice.Path, step any) splice.Path { return append(slices.Clone(p), step) }
