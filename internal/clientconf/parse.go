package clientconf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/splice"
)

// parse reads the text by the grammar of the place.
func (f *File) parse(text []byte) {
	f.src = &source{text: text}
	format := f.Place.Format
	if f.Place.Role == Presence {
		return
	}
	if format.Grammar == Shell {
		f.shell(string(text))
		return
	}
	tree, faults := splice.Read(text, format.Grammar.splice())
	for _, e := range faults {
		f.fault(e, format)
	}
	if tree == nil {
		return
	}
	twins(tree, f)
	for _, c := range format.Containers {
		f.container(tree, c)
	}
	if f.Place.Role == Servers || f.Place.Role == Legacy {
		f.strays(tree)
	}
	f.Tree = scrub(tree)
	slices.SortStableFunc(f.Problems, func(a, b Problem) int {
		if a.Pos.Line != b.Pos.Line {
			return a.Pos.Line - b.Pos.Line
		}
		return a.Pos.Column - b.Pos.Column
	})
}

// fault takes up what is wrong with the text, and whether the client stumbles over it.
func (f *File) fault(e *splice.Error, format Format) {
	p := Problem{Kind: Malformed, Pos: e.Pos, Msg: e.Msg, Fatal: true}
	switch e.Fault {
	case splice.Marked:
		p.Kind, p.Fatal = BOM, !format.BOM
	case splice.Comment:
		p.Kind = Comment
	case splice.TrailingComma:
		p.Kind = TrailingComma
	case splice.Escape:
		p.Kind = Escape
	case splice.Twice:
		p.Kind, p.Fatal = Twice, format.Grammar == TOML || format.Grammar == YAML
	}
	f.Problems = append(f.Problems, p)
}

// twins finds names of one object that differ only in letter case.
func twins(v *splice.Value, f *File) {
	if len(v.Members) == 1 {
		twins(v.Members[0].Value, f)
		return
	}
	seen := make(map[string]splice.Member, len(v.Members))
	for _, m := range v.Members {
		folded := strings.ToLower(m.Name)
		if first, twice := seen[folded]; twice {
			f.Problems = append(f.Problems, Problem{Kind: CaseTwin, Pos: m.Pos, Msg: fmt.Sprintf(
				"%q and %q on line %d differ only in letter case", m.Name, first.Name, first.Pos.Line)})
		}
		seen[folded] = m
		twins(m.Value, f)
	}
	for _, item := range v.Items {
		twins(item, f)
	}
}

// container takes up the servers of one container, if the file has it.
func (f *File) container(tree *splice.Value, c Container) {
	type step struct {
		value   *splice.Value
		path    splice.Path
		project string
	}
	at := []step{{value: tree}}
	for _, key := range c.Keys {
		var next []step
		for _, s := range at {
			for _, m := range s.value.Members {
				if m.Name != key && key != "*" {
					continue
				}
				n := step{m.Value, append(slices.Clone(s.path), m.Name), s.project}
				if key == "*" {
					n.project = m.Name
				}
				next = append(next, n)
			}
		}
		at = next
	}
	for _, s := range at {
		switch {
		case s.value.Kind == splice.ObjectKind:
			for _, m := range s.value.Members {
				f.server(m.Name, m.Pos, m.Value, append(slices.Clone(s.path), m.Name), s.project, c)
			}
		case s.value.Kind == splice.ArrayKind && c.List:
			for i, item := range s.value.Items {
				name, _ := item.Get("name")
				f.server(textOf(name).Text, item.Pos, item, append(slices.Clone(s.path), i), s.project, c)
			}
		case s.value.Kind == splice.NullKind:
		default:
			f.Problems = append(f.Problems, Problem{Kind: Shape, Pos: s.value.Pos, Msg: strings.Join(c.Keys, ".") + " is " + s.value.Kind.String() + ", not a table of servers"})
		}
	}
}

// server takes up one entry.
func (f *File) server(name string, pos splice.Pos, entry *splice.Value, path splice.Path, project string, c Container) {
	if typed, _ := entry.Get("type"); slices.Contains(c.Except, name) && !textOf(typed).Given() {
		return
	}
	s := &Server{File: f, Name: name, Pos: pos, Scope: f.Place.Scope, Project: project, Unread: c.Unread || f.Place.Role == Unread, path: path}
	if c.Scope != "" {
		s.Scope = c.Scope
	}
	if s.Project == "" {
		s.Project = f.Project
	}
	f.Servers = append(f.Servers, s)
	if entry.Kind != splice.ObjectKind {
		f.Problems = append(f.Problems, Problem{Kind: Shape, Pos: entry.Pos, Msg: fmt.Sprintf("%q is %s, not a table", name, entry.Kind)})
		s.Entry = entry
		return
	}
	e := f.Place.Format.Entry
	if c.stray {
		e = plain
	}
	s.form = e
	s.take(entry, e)
	for key, nested := range e.Nested {
		if v, ok := entry.Get(key); ok && v.Kind == splice.ObjectKind {
			s.form, s.path = nested, append(slices.Clone(path), key)
			s.take(v, nested)
		}
	}
	s.Roots, _ = entry.Get("roots")
	s.Capabilities, _ = entry.Get("capabilities")
	s.Entry = scrub(entry)
	f.control(s)
}

// take takes up what stands in a table of an entry.
func (s *Server) take(v *splice.Value, e Entry) {
	get := func(key string) *splice.Value {
		m, _ := v.Get(key)
		return m
	}
	if t := textOf(get("type")); t.Given() {
		s.Type = t
	}
	command := get(e.Command)
	switch {
	case command == nil:
	case e.Argv && command.Kind == splice.ArrayKind:
		for i, item := range command.Items {
			if i == 0 {
				s.Command = textOf(item)
			} else {
				s.Args = append(s.Args, textOf(item))
			}
		}
	case command.Kind == splice.StringKind:
		s.Command = textOf(command)
	}
	if args := get(e.Args); args != nil && args.Kind == splice.ArrayKind && !e.Argv {
		s.Args = nil
		for _, item := range args.Items {
			s.Args = append(s.Args, Text{textOf(item).Text, item.Pos})
		}
	}
	if t := textOf(get(e.Cwd)); t.Given() {
		s.Cwd = t
	}
	for _, key := range e.URL {
		if t := textOf(get(key)); t.Given() {
			s.URL = t
			break
		}
	}
	s.Env = append(s.Env, variables(get(e.Env))...)
	s.Headers = append(s.Headers, variables(get(e.Headers))...)
	for _, key := range hiddenKeys {
		if key != e.Env && key != e.Headers {
			s.Foreign = append(s.Foreign, variables(get(key))...)
		}
	}
	if d := get(e.Disabled); d != nil && d.Kind == splice.BoolKind && d.Text == "true" {
		s.Disabled = true
	}
	if d := get(e.Enabled); d != nil && d.Kind == splice.BoolKind && d.Text == "false" {
		s.Disabled = true
	}
}

// wrappers are the keys under which clients keep servers.
var wrappers = [][]string{
	{"mcpServers"}, {"servers"}, {"mcp_servers"}, {"context_servers"}, {"extensions"}, {"mcp", "servers"}, {"mcp"}, {"amp.mcpServers"}, {},
}

// strays takes up servers that stand under the key of another client, or under none.
func (f *File) strays(tree *splice.Value) {
	for _, keys := range wrappers {
		if slices.ContainsFunc(f.Place.Format.Containers, func(c Container) bool {
			return len(keys) > 0 && slices.Contains(c.Keys, keys[0])
		}) {
			continue
		}
		found, path := tree, splice.Path{}
		for _, key := range keys {
			if found != nil {
				found, _ = found.Get(key)
			}
			path = append(path, key)
		}
		if found == nil {
			continue
		}
		if len(keys) == 0 && slices.ContainsFunc(found.Members, func(m splice.Member) bool { return !entryLike(m.Value) }) {
			continue // settings
		}
		for _, m := range found.Members {
			if entryLike(m.Value) {
				f.server(m.Name, m.Pos, m.Value, append(slices.Clone(path), m.Name), "", Container{Keys: keys, Unread: true, stray: true})
			}
		}
	}
}

// entryLike reports whether a value is the entry of a server, of whichever client.
func entryLike(v *splice.Value) bool {
	return v.Kind == splice.ObjectKind && slices.ContainsFunc(v.Members, func(m splice.Member) bool {
		switch m.Name {
		case "command", "cmd":
			return true
		case "url", "uri", "serverUrl", "httpUrl":
			return strings.Contains(m.Value.Text, "://")
		}
		return false
	})
}

func textOf(v *splice.Value) Text {
	if v == nil || v.Kind == splice.ObjectKind || v.Kind == splice.ArrayKind || v.Kind == splice.NullKind {
		return Text{}
	}
	return Text{v.Text, v.Pos}
}

func variables(v *splice.Value) []Variable {
	if v == nil {
		return nil
	}
	var list []Variable
	for _, m := range v.Members {
		list = append(list, Variable{Name: m.Name, Pos: m.Pos, Value: hide(m.Value.Text), At: m.Value.Pos})
	}
	return list
}

// control finds control characters where a person would not have put them.
func (f *File) control(s *Server) {
	for _, t := range slices.Concat([]Text{s.Command, s.Cwd, s.URL}, s.Args) {
		if strings.ContainsFunc(t.Text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			f.Problems = append(f.Problems, Problem{Kind: Control, Pos: t.Pos, Msg: "there is a control character in this text"})
		}
	}
}

// hiddenKeys are the names of tables whose values may be secrets, in the files of all clients.
var hiddenKeys = []string{"env", "environment", "envs", "headers", "http_headers"}

// scrub returns the tree without the values of environment variables and headers. What has none is the same in both.
func scrub(v *splice.Value) *splice.Value {
	c := v
	copied := func() *splice.Value {
		if c == v {
			own := *v
			own.Items, own.Members = slices.Clone(v.Items), slices.Clone(v.Members)
			c = &own
		}
		return c
	}
	for i, item := range v.Items {
		if clean := scrub(item); clean != item {
			copied().Items[i] = clean
		}
	}
	for i, m := range v.Members {
		if slices.Contains(hiddenKeys, m.Name) {
			copied().Members[i].Value = emptied(m.Value)
		} else if clean := scrub(m.Value); clean != m.Value {
			copied().Members[i].Value = clean
		}
	}
	return c
}

// emptied returns a value with nothing in its strings.
func emptied(v *splice.Value) *splice.Value {
	c := *v
	c.Text = ""
	c.Items, c.Members = nil, nil
	for _, item := range v.Items {
		c.Items = append(c.Items, emptied(item))
	}
	for _, m := range v.Members {
		m.Value = emptied(m.Value)
		c.Members = append(c.Members, m)
	}
	return &c
}
