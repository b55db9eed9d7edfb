package doctor

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/splice"
)

// Machine is what a configuration is judged against.
type Machine struct {
	// Host says whose home and which project, on which system.
	Host clientconf.Host
	// LookPath finds a program as a shell would; nil where programs are not looked for.
	LookPath func(name string) error
	// Self is the path of this program, for what it writes into configurations.
	Self string
	// Alone judges what stands in the files and nothing else: not whether directories are there, variables are set and
	// packages are pinned. It is for a file that comes from another machine.
	Alone bool
}

// Files finds the clients' files of m. Clients are the IDs of those that are looked for, none for all.
func Files(m Machine, clients ...string) []*clientconf.File {
	return slices.DeleteFunc(clientconf.Find(m.Host), func(f *clientconf.File) bool {
		return len(clients) > 0 && f.Place.Role != clientconf.Presence && !slices.Contains(clients, f.Client.ID)
	})
}

// Examine judges files that were read.
func Examine(m Machine, files []*clientconf.File) *Report {
	x := &examiner{m: m, files: files, report: &Report{}}
	for _, f := range files {
		if f.Place.Role == clientconf.Presence {
			continue
		}
		x.grammar(f)
		for _, s := range f.Servers[:min(len(f.Servers), most)] {
			x.entries = append(x.entries, x.entry(s))
		}
	}
	for _, f := range files {
		if f.Place.Role == clientconf.Presence {
			continue
		}
		x.place(f)
		x.rootsBeside(f)
		x.approval(f)
	}
	for _, e := range x.entries {
		x.form(e)
		x.variables(e)
		x.program(e)
		x.rootsInside(e)
		x.paths(e)
		if e.read() {
			x.directories(e)
			x.client(e)
		}
	}
	x.scopes()
	x.drop()
	x.servers()
	for at, n := range x.found {
		if n > most {
			x.report.cut = append(x.report.cut, at.file)
		}
	}
	slices.Sort(x.report.cut)
	x.report.sort()
	return x.report
}

// most is how many servers of a file, directories of a server and findings of a file are looked at: a file may come from
// anybody, and what comes of it takes time by its square.
const most = 1000

// examiner is one examination.
type examiner struct {
	m       Machine
	files   []*clientconf.File
	entries []*entry
	report  *Report
	npx     map[string][]string // versions in the cache of npx, by package
	found   map[place]int       // findings by file
}

// place is a file as that of a client.
type place struct{ client, file string }

// entry is a server with what is derived of it.
type entry struct {
	*clientconf.Server
	file    *clientconf.File
	client  *clientconf.Client
	command launch.Command // as it is written
	target  launch.Target
	profile launch.Profile
	known   bool
	dirs    []directory

	shadowed, hides []*entry // of the same name: those that hold instead, and those that do not hold because of this one
}

// read reports whether the client looks at the entry at all.
func (e *entry) read() bool {
	return !e.Unread && !e.file.Dead() && e.file.Place.Role != clientconf.Unread
}

func (x *examiner) entry(s *clientconf.Server) *entry {
	e := &entry{Server: s, file: s.File, client: s.File.Client, command: s.Launch()}
	if e.Command.Given() {
		e.target = launch.Identify(e.command)
		e.profile, e.known = launch.Lookup(e.target)
	}
	e.dirs = x.dirsOf(e)
	return e
}

// kindOf returns the row of the table.
func kindOf(id string) Kind {
	i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.ID == id })
	if i < 0 {
		panic("bug: no kind of finding " + id)
	}
	return Kinds[i]
}

// option changes a finding.
type option func(*Finding)

// milder makes a finding of another severity than its kind has.
func milder(s Severity) option { return func(f *Finding) { f.Severity = s } }

// because says what comes of it, where that is not what comes of the kind.
func because(why string) option { return func(f *Finding) { f.Why = why } }

// floating says that nothing is wrong with what runs today.
func floating() option { return func(f *Finding) { f.floats = true } }

// mending gives the edit that mends it.
func mending(m mend) option { return func(f *Finding) { f.mend = m } }

// find adds a finding about a file. What is one sentence, and fix another; an empty fix is that of the kind.
func (x *examiner) find(id string, f *clientconf.File, at splice.Pos, what, fix string, options ...option) {
	x.add(Finding{ID: id, Client: f.Client.ID, File: f.Path, Line: at.Line, Column: at.Column, What: what, Fix: fix}, options)
}

// findIn adds a finding about a server.
func (x *examiner) findIn(id string, e *entry, at splice.Pos, what, fix string, options ...option) {
	x.add(Finding{
		ID: id, Client: e.client.ID, Server: e.Name, File: e.file.Path, Line: at.Line, Column: at.Column, What: what, Fix: fix,
	}, options)
}

func (x *examiner) add(f Finding, options []option) {
	if x.found == nil {
		x.found = map[place]int{}
	}
	if x.found[place{f.Client, f.File}]++; x.found[place{f.Client, f.File}] > most {
		return
	}
	k := kindOf(f.ID)
	f.Severity, f.Why = k.Severity, k.Why
	if f.Fix == "" {
		f.Fix = k.Fix
	}
	for _, o := range options {
		o(&f)
	}
	f.Message = f.What + " " + f.Why
	x.report.Findings = append(x.report.Findings, f)
}

// covered are findings that are left out where another one of the same server, or file, says what has to be mended first.
var covered = []struct {
	id   string
	by   []string
	file bool // of the same file is enough
}{
	{"ROOT-REPLACED", []string{
		"ROOT-BROAD", "ROOT-MULTI", "ROOT-HOME-CWD", "ROOT-MISMATCH", "SCOPE-DRIFT", "SCOPE-SHADOW", "PATH-TILDE", "PATH-RELATIVE", "PATH-PARENT",
		"PATH-CONTROL-CHAR", "VAR-DIALECT", "VAR-LITERAL", "VAR-SCOPE", "YAML-SCALAR", "EXEC-IN-CONFIG",
	}, false},
	{"ROOT-REPLACED", []string{"MANAGED"}, true},
	{"ROOT-EMPTY", []string{"EXEC-IN-CONFIG"}, false},
	{"APPROVE-WRITE", []string{"APPROVE-ALL", "APPROVE-TRUST"}, true},
	{"CLIENT-EOL", nil, true}, // by anything
}

// drop takes out what is covered.
func (x *examiner) drop() {
	of := map[place][]Finding{}
	type name struct{ client, server string }
	shadowed := map[name]bool{} // a name at several levels is one question, wherever it is told
	for _, f := range x.report.Findings {
		at := place{f.Client, f.File}
		of[at] = append(of[at], f)
		if f.ID == "SCOPE-SHADOW" {
			shadowed[name{f.Client, f.Server}] = true
		}
	}
	x.report.Findings = slices.DeleteFunc(x.report.Findings, func(f Finding) bool {
		for _, c := range covered {
			if c.id != f.ID {
				continue
			}
			if slices.Contains(c.by, "SCOPE-SHADOW") && shadowed[name{f.Client, f.Server}] {
				return true
			}
			if slices.ContainsFunc(of[place{f.Client, f.File}], func(g Finding) bool {
				return (c.file || g.Server == f.Server) && (c.by == nil && rank(g.Severity) > rank(f.Severity) || slices.Contains(c.by, g.ID))
			}) {
				return true
			}
		}
		return false
	})
}

// word quotes something of a file for a person, without what may be a secret and without what a terminal would obey.
func word(s string) string { return fmt.Sprintf("%q", calllog.Visible(calllog.RedactText(s))) }

// words quotes several, at most six.
func words(list []string) string {
	const most = 6
	quoted := make([]string, 0, most)
	for i, s := range list {
		if i == most {
			return strings.Join(quoted, ", ") + fmt.Sprintf(" and %d more", len(list)-most)
		}
		quoted = append(quoted, word(s))
	}
	return strings.Join(quoted, ", ")
}

// wrapping is the command that puts Rootbound before a server.
func wrapping(client, server string) string {
	how := "--write"
	if c, ok := clientconf.Lookup(client); ok && !c.Writable {
		how = "--print"
	}
	if strings.ContainsFunc(server, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		server = "'" + strings.ReplaceAll(server, "'", `'\''`) + "'"
	}
	return fmt.Sprintf("rootbound wrap %s --server %s %s", client, server, how)
}

// short is a path as a person reads it.
func (x *examiner) short(path string) string { return shorten(path, x.m.Host.Home) }

// shorten writes a home directory as ~.
func shorten(path, home string) string {
	switch rest, in := beneath(path, home); {
	case home == "" || filepath.Dir(home) == home:
	case path == home:
		return "~"
	case in:
		return "~" + string(filepath.Separator) + rest
	}
	return path
}

// FilesOf reads one file as that of a client, for Examine. For cc-switch it is the client whose file has that name.
func FilesOf(m Machine, client, path string) ([]*clientconf.File, error) {
	c, ok := clientconf.Lookup(client)
	if !ok {
		return nil, fmt.Errorf("there is no client %q", client)
	}
	var files []*clientconf.File
	if c.ID == "cc-switch" {
		files = append(files, &clientconf.File{Client: c, Place: c.Places[0]})
		written := ""
		for id, name := range switched {
			if name == filepath.Base(path) {
				written = id
			}
		}
		if c, ok = clientconf.Lookup(written); !ok {
			return nil, fmt.Errorf("CC Switch writes no file that is called %q", filepath.Base(path))
		}
	}
	f := clientconf.ReadAs(c, m.Host, path)
	if f == nil {
		return nil, fmt.Errorf("reading %q: %w", path, fs.ErrNotExist)
	}
	return append(files, f), nil
}
