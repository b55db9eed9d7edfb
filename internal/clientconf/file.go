package clientconf

import (
	"path/filepath"

	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/splice"
)

// File is one file of a client as it was read.
type File struct {
	Client *Client
	Place  Place
	// Path is where it was found.
	Path string
	// Project is the directory that a file of a project belongs to.
	Project string
	// Size is that of the file in bytes.
	Size int64
	// Tree is what the file says; nil where it cannot be read. Values of environment variables and headers are empty in it.
	Tree *splice.Value
	// Servers are those that the client finds in it, and those in containers that it does not look into (Server.Unread).
	Servers []*Server
	// Problems are what is wrong with the text, in its order.
	Problems []Problem

	src *source
}

// source is the text of a file. It is behind a pointer, so that a File can be printed.
type source struct{ text []byte }

// Dead reports whether the client cannot read the file at all, so that none of its servers is there for it.
func (f *File) Dead() bool {
	for _, p := range f.Problems {
		if p.Fatal {
			return true
		}
	}
	return false
}

// Kind tells problems apart.
type Kind string

// The kinds of problems.
const (
	Unreadable    Kind = "unreadable" // the file itself: rights, a directory, too large
	BOM           Kind = "bom"
	Comment       Kind = "comment"
	TrailingComma Kind = "trailing-comma"
	Escape        Kind = "escape" // an escape that the grammar does not have
	Twice         Kind = "twice"  // a name that is given twice
	Malformed     Kind = "syntax" // everything else
	CaseTwin      Kind = "case-twin"
	Control       Kind = "control" // a control character in an argument, a command, a directory
	Shape         Kind = "shape"   // servers that are no table, an entry that is none
)

// Problem is something that is wrong with a text.
type Problem struct {
	Kind Kind
	Pos  splice.Pos
	// Msg says what is wrong, without repeating values.
	Msg string
	// Fatal says that the client does not read the file at all because of it.
	Fatal bool
}

// Server is an entry of a file.
type Server struct {
	File *File
	Name string
	// Pos is where its name stands.
	Pos   splice.Pos
	Scope Scope
	// Project is the directory that the entry is for, where a file of a user has entries for projects.
	Project string
	// Unread says that it stands where the client does not look.
	Unread bool

	Type    Text
	Command Text
	Args    []Text
	Cwd     Text
	URL     Text
	// Env and Headers have the names; what they are set to is hidden. Foreign are those under keys that the client does not
	// read.
	Env, Headers, Foreign []Variable
	// Disabled says that the entry is switched off.
	Disabled bool
	// Roots and Capabilities are what stands under these keys, nil for nothing.
	Roots, Capabilities *splice.Value
	// Entry is all of it, in the order of the text. Values of environment variables and headers are empty in it.
	Entry *splice.Value

	form Entry       // under which keys it has what
	path splice.Path // of the table that has the command
}

// Text is a string of a file and where it stands. The zero Text is not given.
type Text struct {
	Text string
	Pos  splice.Pos
}

// Given reports whether it stands in the file.
func (t Text) Given() bool { return t.Pos.Line > 0 }

// Variable is an environment variable or a header.
type Variable struct {
	Name  string
	Pos   splice.Pos // of the name
	Value Hidden
	At    splice.Pos // of the value
}

// Hidden is a value that is not printed. The zero Hidden is empty.
type Hidden struct{ text *string }

func hide(s string) Hidden { return Hidden{&s} }

// String returns a word in place of the value.
func (h Hidden) String() string { return "(hidden)" }

// GoString returns a word in place of the value.
func (h Hidden) GoString() string { return "(hidden)" }

// MarshalText returns a word in place of the value.
func (h Hidden) MarshalText() ([]byte, error) { return []byte("(hidden)"), nil }

// Test reports what a function says of the value, which it must not keep.
func (h Hidden) Test(f func(value string) bool) bool {
	if h.text == nil {
		return f("")
	}
	return f(*h.text)
}

// References returns the variables that the value refers to.
func (h Hidden) References() []Reference {
	if h.text == nil {
		return nil
	}
	return References(*h.text)
}

// Literal reports whether there is anything in the value besides references to variables and a word for the kind of a
// credential ("Bearer").
func (h Hidden) Literal() bool {
	return h.text != nil && literal(*h.text)
}

// Launch is the command line of the server as it is written.
func (s *Server) Launch() launch.Command {
	c := launch.Command{Path: s.Command.Text, Dir: s.Cwd.Text}
	for _, a := range s.Args {
		c.Args = append(c.Args, a.Text)
	}
	return c
}

// Dir is the directory in which the client starts the server; ok is false where that depends on where the client was
// started.
func (s *Server) Dir(h Host) (dir string, ok bool) {
	c := s.File.Client
	switch {
	case filepath.IsAbs(s.Cwd.Text) && !c.IgnoresCwd:
		return s.Cwd.Text, true
	case s.Scope == Project || s.Scope == Local:
		return s.Project, s.Project != ""
	case c.StartsIn != "":
		return h.fill(c.StartsIn)
	}
	return "", false
}

// Remote reports whether the server is reached by an address and not started.
func (s *Server) Remote() bool { return !s.Command.Given() && s.URL.Given() }
