package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/splice"
	"github.com/rootbound/rootbound/roots"
)

// decoder collects the faults of a file.
type decoder struct {
	file   *File
	faults []error
}

// newDecoder reads the grammar of a text.
func newDecoder(path string, text []byte) (*decoder, error) {
	doc, err := splice.Parse(text, grammar(path, text))
	if err != nil {
		var se *splice.Error
		if errors.As(err, &se) {
			return nil, &Error{File: path, Pos: se.Pos, Msg: se.Msg}
		}
		return nil, err
	}
	return &decoder{file: &File{Path: path, doc: doc}}, nil
}

func (d *decoder) at(p splice.Pos) Origin { return Origin{File: d.file.Path, Pos: p} }

func (d *decoder) fault(p splice.Pos, format string, args ...any) {
	d.faults = append(d.faults, &Error{File: d.file.Path, Pos: p, Msg: fmt.Sprintf(format, args...)})
}

// decode reads a table by its keys.
func decode[T any](d *decoder, v *splice.Value, keys []key[T], to *T) {
	if !d.want(v, splice.ObjectKind) {
		return
	}
	for _, m := range v.Members {
		i := slices.IndexFunc(keys, func(k key[T]) bool { return k.name == m.Name })
		if i < 0 {
			d.unknown(m, keyNames(keys))
			continue
		}
		keys[i].read(d, m.Value, to)
	}
}

func keyNames[T any](keys []key[T]) []string {
	var names []string
	for _, k := range keys {
		names = append(names, k.name)
	}
	return names
}

// containers are where clients keep their servers in forms that are not read here.
var containers = []string{"servers", "mcp_servers", "mcpServers", "context_servers", "mcp", "extensions", "amp.mcpServers"}

func (d *decoder) unknown(m splice.Member, known []string) {
	hint := "known are " + strings.Join(known, ", ")
	if near, ok := launch.Nearest(m.Name, known); ok {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	if slices.Contains(known, "server") && slices.Contains(containers, m.Name) {
		hint = "servers are tables [server.NAME]; of clients' files only mcpServers in JSON and [[mcp.servers]] in TOML are read"
	}
	d.fault(m.Pos, "unknown key %q: %s", m.Name, hint)
}

func (d *decoder) want(v *splice.Value, k splice.Kind) bool {
	if v.Kind != k {
		d.fault(v.Pos, "this is %s and has to be %s", v.Kind, k)
		return false
	}
	return true
}

func (d *decoder) text(v *splice.Value) Setting[string] {
	if !d.want(v, splice.StringKind) {
		return Setting[string]{}
	}
	if strings.ContainsRune(v.Text, 0) {
		d.fault(v.Pos, "a NUL has no place here")
	}
	return Setting[string]{v.Text, d.at(v.Pos)}
}

func (d *decoder) bool(v *splice.Value) Setting[bool] {
	if !d.want(v, splice.BoolKind) {
		return Setting[bool]{}
	}
	return Setting[bool]{v.Text == "true", d.at(v.Pos)}
}

func (d *decoder) number(v *splice.Value) Setting[int] {
	if !d.want(v, splice.NumberKind) {
		return Setting[int]{}
	}
	n, err := strconv.Atoi(v.Text)
	if err != nil || n < 1 {
		d.fault(v.Pos, "this has to be a whole number from 1 on")
	}
	return Setting[int]{n, d.at(v.Pos)}
}

func (d *decoder) texts(v *splice.Value) Setting[[]string] {
	list := []string{}
	if d.want(v, splice.ArrayKind) {
		for _, item := range v.Items {
			list = append(list, d.text(item).Value)
		}
	}
	return Setting[[]string]{list, d.at(v.Pos)}
}

func (d *decoder) textMap(v *splice.Value) Setting[map[string]string] {
	m := map[string]string{}
	if d.want(v, splice.ObjectKind) {
		for _, member := range v.Members {
			m[member.Name] = d.text(member.Value).Value
		}
	}
	return Setting[map[string]string]{m, d.at(v.Pos)}
}

func enum[T comparable](d *decoder, v *splice.Value, w words[T]) Setting[T] {
	if !d.want(v, splice.StringKind) {
		return Setting[T]{}
	}
	value, ok := w.value(v.Text)
	if !ok {
		hint := "known are " + strings.Join(w.list(), ", ")
		if near, ok := launch.Nearest(v.Text, w.list()); ok {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		d.fault(v.Pos, "unknown value %q: %s", v.Text, hint)
	}
	return Setting[T]{value, d.at(v.Pos)}
}

func (d *decoder) uri(v *splice.Value) string {
	uri := d.text(v).Value
	path, err := roots.ParseURI(uri)
	if err != nil && uri != "" {
		d.fault(v.Pos, "%v", err)
	}
	return path
}

func (d *decoder) roots(v *splice.Value) Setting[[]Root] {
	list := []Root{}
	if d.want(v, splice.ArrayKind) {
		for _, item := range v.Items {
			if item.Kind != splice.ObjectKind {
				d.fault(item.Pos, "this is %s and has to be a table, such as { path = \"/srv/repo\" }", item.Kind)
				continue
			}
			r := Root{Access: roots.ReadWrite, Origin: d.at(item.Pos)}
			decode(d, item, rootKeys, &r)
			_, path := item.Get("path")
			_, uri := item.Get("uri")
			switch {
			case path == uri:
				d.fault(item.Pos, "a root has either a path or a uri")
			case r.Path == "" && len(d.faults) == 0:
				d.fault(item.Pos, "a root's path is empty")
			}
			list = append(list, r)
		}
	}
	return Setting[[]Root]{list, d.at(v.Pos)}
}

// names refuses two roots of one list with the same name.
func (d *decoder) names() {
	check := func(list []Root) {
		seen := map[string]bool{}
		for _, r := range list {
			if r.Name != "" && seen[r.Name] {
				d.fault(r.Origin.Pos, "two roots are named %q", r.Name)
			}
			seen[r.Name] = true
		}
	}
	check(d.file.Roots.Value)
	for _, s := range d.file.Servers {
		check(s.Roots.Value)
	}
}

// capabilities are what a client declares, in the words of the protocol. Only roots are for us.
var capabilities = []string{"roots", "sampling", "elicitation", "experimental", "tasks", "extensions"}

// clientFile reads a client's file, or a fragment. What is not ours is left alone.
func (d *decoder) clientFile(root *splice.Value) {
	if rules, ok := root.Get("rule"); ok { // a client has no such key, so it was meant for us
		d.fault(rules.Pos, "rules are not read from a client's file: write them to your own, rootbound.toml")
	}
	d.clientSettings(root, &d.file.Settings, false)
	if servers, ok := root.Get("mcpServers"); ok && d.file.doc.Format() != splice.TOML {
		if d.want(servers, splice.ObjectKind) {
			for _, m := range servers.Members {
				d.clientServer(m.Name, m.Pos, m.Value)
			}
		}
		return
	}
	servers, _ := root.Find(splice.Path{"mcp", "servers"})
	if servers == nil {
		return
	}
	for _, item := range servers.Items {
		if !d.want(item, splice.ObjectKind) {
			continue
		}
		name, ok := item.Get("name")
		if !ok || name.Kind != splice.StringKind || name.Text == "" {
			d.fault(item.Pos, "a server needs a name")
			continue
		}
		if _, twice := d.file.Server(name.Text); twice {
			d.fault(name.Pos, "two servers are named %q", name.Text)
		}
		d.clientServer(name.Text, item.Pos, item)
	}
}

func (d *decoder) clientServer(name string, pos splice.Pos, v *splice.Value) {
	s := &Server{Name: name, origin: d.at(pos)}
	d.file.Servers = append(d.file.Servers, s)
	if !d.want(v, splice.ObjectKind) {
		return
	}
	for _, m := range v.Members {
		switch m.Name {
		case "command":
			s.Command = d.text(m.Value)
		case "args":
			s.Args = d.texts(m.Value)
		case "cwd":
			s.Cwd = d.text(m.Value)
		case "env":
			s.Env = d.clientEnv(m.Value)
		case "url":
			s.URL = d.url(m.Value)
		case "headers":
			s.Headers = d.headers(m.Value)
		}
	}
	d.oneWay(s, pos)
	d.clientSettings(v, &s.Settings, d.file.ListChanged.Given())
}

// oneWay refuses a server that is in two places, and headers that go nowhere.
func (d *decoder) oneWay(s *Server, pos splice.Pos) {
	switch {
	case s.URL.Given() && s.Command.Given():
		d.fault(pos, "the server %q has a command and a URL: it is started here, or it is there", s.Name)
	case s.Headers.Given() && !s.URL.Given():
		d.fault(pos, "the server %q has headers and no URL", s.Name)
	}
}

// clientEnv takes what clients take: numbers as they are written, and null for not set.
func (d *decoder) clientEnv(v *splice.Value) Setting[map[string]string] {
	env := map[string]string{}
	if d.want(v, splice.ObjectKind) {
		for _, m := range v.Members {
			switch m.Value.Kind {
			case splice.NullKind:
			case splice.NumberKind, splice.BoolKind:
				env[m.Name] = m.Value.Text
			default:
				env[m.Name] = d.text(m.Value).Value
			}
		}
	}
	return Setting[map[string]string]{env, d.at(v.Pos)}
}

// clientSettings reads roots and capabilities. In these forms listChanged has to be asked for: where it is absent, roots
// do not change. Above says that the file has answered that for every server.
func (d *decoder) clientSettings(v *splice.Value, s *Settings, above bool) {
	list, hasRoots := v.Get("roots")
	if hasRoots {
		s.Roots = d.roots(list)
	}
	declared, ok := v.Get("capabilities")
	switch {
	case !ok && hasRoots && !above:
		s.ListChanged = Setting[bool]{false, d.at(list.Pos)}
	case ok && d.want(declared, splice.ObjectKind):
		s.ListChanged = Setting[bool]{false, d.at(declared.Pos)}
		for _, m := range declared.Members {
			switch {
			case m.Name == "roots" && d.want(m.Value, splice.ObjectKind):
				for _, r := range m.Value.Members {
					if r.Name == "listChanged" {
						s.ListChanged = d.bool(r.Value)
						continue
					}
					d.unknown(r, []string{"listChanged"})
				}
			case !slices.Contains(capabilities, m.Name):
				d.unknown(m, capabilities)
			}
		}
	}
}
