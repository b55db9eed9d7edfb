package doctor

import (
	"fmt"
	"slices"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/launch"
)

// Startable is a server that can be started as its client would.
type Startable struct {
	// Command is its command line, with variables filled in; Env is set besides what is inherited, and not to be printed.
	Command launch.Command
	Env     []string

	row Server
}

// Title names the server.
func (s Startable) Title() string { return s.row.Name + " of " + s.row.Client }

// Printed is the command line without what looks like a secret.
func (s Startable) Printed() []string {
	words := append([]string{s.Command.Path}, calllog.RedactArgs(s.Command.Args)...)
	for i := range words {
		words[i] = calllog.Visible(words[i])
	}
	return words
}

// Startables returns the servers of files that their clients start here: each command line once.
func (m Machine) Startables(files []*clientconf.File) []Startable {
	var list []Startable
	for _, f := range files {
		if f.Dead() || f.Place.Role != clientconf.Servers || f.Place.Format.Grammar == clientconf.Shell {
			continue
		}
		for _, s := range f.Servers {
			if s.Unread || s.Disabled || !s.Command.Given() {
				continue
			}
			c := s.Launch()
			c.Path, _ = f.Client.Expand(c.Path, m.Host)
			c.Args = slices.Clone(c.Args)
			for i, a := range c.Args {
				c.Args[i], _ = f.Client.Expand(a, m.Host)
			}
			if c.Dir == "" || f.Client.IgnoresCwd {
				c.Dir = m.Host.Project
			}
			c.Dir, _ = f.Client.Expand(c.Dir, m.Host)
			one := Startable{c, s.Environ(m.Host), Server{
				Client: f.Client.ID, Name: s.Name, File: f.Path, Line: s.Pos.Line, Column: s.Pos.Column,
			}}
			same := func(o Startable) bool {
				return o.row.Client == one.row.Client && o.row.Name == one.row.Name && o.Command.Path == c.Path && slices.Equal(o.Command.Args, c.Args)
			}
			if !slices.ContainsFunc(list, same) {
				list = append(list, one)
			}
		}
	}
	return list
}

// LiveTool is a tool as a running server lists it.
type LiveTool struct {
	Name     string
	ReadOnly bool
	Params   []string
}

// Lived is a server that ran, with its tools.
type Lived struct {
	Startable
	Tools []LiveTool
}

// AddLive adds what only running servers show.
func (r *Report) AddLive(list []Lived) {
	x := &examiner{report: r}
	for i, l := range list {
		f := Finding{Client: l.row.Client, Server: l.row.Name, File: l.row.File, Line: l.row.Line, Column: l.row.Column}
		for _, t := range l.Tools {
			if t.ReadOnly && t.writes() {
				f := f
				f.ID, f.What = "HINT-LIE", fmt.Sprintf("The tool %s says that it only reads, and its name or its parameters say that it writes.", word(t.Name))
				x.add(f, nil)
			}
		}
		for _, other := range list[:i] {
			if other.row.Client != l.row.Client || other.row.Name == l.row.Name {
				continue
			}
			var both []string
			for _, t := range l.Tools {
				if slices.ContainsFunc(other.Tools, func(o LiveTool) bool { return o.Name == t.Name }) {
					both = append(both, t.Name)
				}
			}
			if len(both) > 0 {
				f := f
				f.ID, f.What = "TOOL-SHADOW", fmt.Sprintf("%s and %s both have %s.", word(other.row.Name), word(l.row.Name), words(both))
				x.add(f, nil)
			}
		}
	}
	r.sort()
}

// writes reports whether a tool changes something, by its name or by what it takes.
func (t LiveTool) writes() bool {
	return writes(t.Name) || slices.ContainsFunc(t.Params, func(p string) bool {
		return slices.Contains([]string{"content", "contents", "newText", "new_text", "new_str", "newString", "edits", "file_text"}, p)
	})
}
