package doctor

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/roots"
)

// clientFacts is what is known of a client that was found.
type clientFacts struct {
	id, name, ended string
	sends           string // whether it sends roots, in a word
	roots, approval string
	order           string
	announces       string // whether it tells of changes, in a word
	restart         string
}

// servers makes the table of what was found.
func (x *examiner) servers() {
	for _, f := range x.files {
		c := f.Client
		if f.Place.Role == clientconf.Presence || len(x.report.clients) > 0 && x.report.clients[len(x.report.clients)-1].id == c.ID {
			continue
		}
		x.report.clients = append(x.report.clients, clientFacts{c.ID, c.Name, c.Ended, c.Roots.Sends.String(), c.Roots.Text, c.Approval.Text, c.Precedence, c.Roots.Announces.String(), c.Restart})
	}
	for _, e := range x.entries {
		if !e.read() {
			continue
		}
		s := Server{
			Client: e.client.ID, Scope: string(e.Scope), Name: e.Name, File: e.file.Path, Line: e.Pos.Line, Column: e.Pos.Column,
			Runs: runs(e), SendsRoots: e.client.Roots.Sends.String(), Approves: e.approves(), Guarded: e.target.Guarded || e.target.Name == "rootbound fs",
			Disabled: e.Disabled, filesystem: e.known && e.profile.Filesystem && e.profile.Paths == launch.Local,
		}
		if e.Scope == clientconf.Local {
			s.For = e.Project
		}
		for _, d := range e.dirs {
			s.Touches = append(s.Touches, x.touch(e, d))
		}
		if len(s.Touches) == 0 {
			s.Unbounded = x.unbounded(e)
		}
		s.Order = x.order(e)
		x.report.Servers = append(x.report.Servers, s)
	}
}

// runs says what an entry runs, without its arguments.
func runs(e *entry) string {
	if !e.Command.Given() {
		if e.URL.Given() {
			return address(e.URL.Text)
		}
		return "nothing"
	}
	if e.target.Name == "" && e.target.Spec == "" {
		return calllog.Visible(calllog.RedactText(launch.ProgramName(e.command.Path))) + " …"
	}
	if e.target.Name == "" {
		return calllog.Visible(calllog.RedactText(e.target.Spec))
	}
	return calllog.Visible(calllog.RedactText(e.target.String()))
}

// address is the scheme and the host of a URL: what follows may hold a secret.
func address(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return "an address"
	}
	host := rest
	if i := strings.IndexAny(host, "/?#"); i >= 0 {
		host = host[:i]
	}
	if i := strings.LastIndex(host, "@"); i >= 0 {
		host = host[i+1:]
	}
	return calllog.Visible(scheme + "://" + host)
}

// touch resolves a directory for the table.
func (x *examiner) touch(e *entry, d directory) Touch {
	started := ""
	if d.exact && !absolute(d.path) && !x.m.Alone {
		if started = x.startDir(e); started != "" {
			d.path = filepath.Join(started, d.path)
		}
	}
	t := Touch{Path: calllog.Visible(d.path), Access: accessWord(d.access)}
	if d.text.Text != d.path {
		t.Written = calllog.Visible(d.text.Text)
	}
	switch {
	case !d.exact:
		t.Note = "by a variable"
	case !absolute(d.path):
		t.Note = "relative"
	case x.broad(d.path) != "":
		t.Note = x.broad(d.path)
	case started != "":
		t.Note = "if started in " + calllog.Visible(x.short(started))
	case x.m.Alone || ofWindows(d.path) != (x.m.Host.OS == "windows"):
	default:
		got, err := roots.Resolve(d.path, roots.ResolveOptions{Access: d.access, AllowBroad: true})
		switch {
		case err != nil:
			t.Note = "not there"
			if _, err := os.Lstat(d.path); err == nil {
				t.Note = "cannot be opened"
			}
		case got.Path != d.path:
			t.Written, t.Path, t.Note = t.Path, calllog.Visible(got.Path), "a link"
		case got.File:
			t.Note = "a file"
		}
	}
	return t
}

// startDir is where the client starts an entry, as far as that can be told.
func (x *examiner) startDir(e *entry) string {
	switch in := startsIn(e); {
	case absolute(e.Cwd.Text) && !e.client.IgnoresCwd:
		return e.Cwd.Text
	case in == "the home directory":
		return x.m.Host.Home
	case in != "":
		return in
	}
	return x.project(e)
}

// project is the one that an entry is for, or else the one that is worked in.
func (x *examiner) project(e *entry) string { return cmp.Or(e.Project, x.m.Host.Project) }

func accessWord(a roots.Access) string {
	if a&roots.Write == 0 {
		return "ro"
	}
	return "rw"
}

// unbounded says what a server may touch that is given no directory.
func (x *examiner) unbounded(e *entry) string {
	switch {
	case e.Remote():
		return "nothing here: it is remote"
	case e.known && e.profile.Paths == launch.Elsewhere:
		return "what its container or service has"
	case e.target.Guarded || e.target.Name == "rootbound fs":
		return "by rootbound config show"
	case e.known && e.profile.Filesystem && e.profile.TakesDirectories() && e.client.Roots.Sends == clientconf.Yes:
		return "what the client sends as roots"
	case e.known && e.profile.Filesystem && e.profile.TakesDirectories() && e.client.Roots.Sends != clientconf.Unknown:
		return "nothing, or everything: no directory is named"
	}
	return "whatever you may: nothing bounds it"
}

// approves says who approves the calls of an entry.
func (e *entry) approves() string {
	switch {
	case isTrue(e.Entry, "trust") && e.client.ID == "gemini-cli", e.asksNobody():
		return "nobody"
	case isTrue(e.Entry, "sandboxEnabled") && e.client.ID == "vscode":
		return "nobody, within its sandbox"
	case e.client.Approval.Text == "":
		return "not known"
	}
	return e.client.Approval.Text
}

// order says which entry of a name holds.
func (x *examiner) order(e *entry) string {
	var list []string
	name := func(verb string, others []*entry) {
		for _, o := range others {
			list = append(list, fmt.Sprintf("%s%s %s:%d", verb, o.Scope, x.short(o.file.Path), o.Pos.Line))
			verb = ""
		}
	}
	name("gives way to ", e.shadowed)
	name("wins over ", e.hides)
	return strings.Join(list, ", ")
}
