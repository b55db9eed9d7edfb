package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/roots"
)

// verdict is what becomes of a server, and why.
type verdict struct {
	server *clientconf.Server
	change bool
	open   bool // it opens directories and stays without Rootbound
	why    string
	hint   string
	entry  []string // to be written by hand
}

// judge decides about one server.
func (c *configured) judge(s *clientconf.Server, o wrapOptions, set roots.Set) verdict {
	stays := func(why string) verdict { return verdict{server: s, why: "stays as it is: " + why} }
	command := s.Launch()
	target := launch.Identify(command)
	profile, known := launch.Lookup(target)
	named := slices.Contains(o.servers, s.Name)
	client := s.File.Client
	g, already := s.Guard()
	switch {
	case already && gone(g.Program):
		return verdict{server: s, change: true, why: fmt.Sprintf("is wrapped by %q, which is not there: by this program from now on", g.Program)}
	case already:
		return verdict{server: s, why: "is wrapped already"}
	case target.Guarded:
		return stays("there is a rootbound in front of it already")
	case clientconf.IsRootbound(command.Path), target.Name == "rootbound fs":
		return stays("it is Rootbound itself")
	case s.File.Place.Scope == clientconf.Managed:
		return stays("the file belongs to who administers this machine")
	case s.Remote():
		v := stays("it is reached by an address, and not started here")
		v.hint = "to put Rootbound in front of it, give the client this command in its place: rootbound run --url URL"
		return v
	case !s.Command.Given():
		return stays("it has no command")
	case !named && target.Registry == launch.OCI:
		return stays(fmt.Sprintf("it runs in a container, whose paths are its own; --server %s wraps it", guard.ShellQuote(s.Name)))
	case !named && !(known && profile.Filesystem):
		return stays(fmt.Sprintf("it is not known to take directories; --server %s wraps it", guard.ShellQuote(s.Name)))
	}
	v := verdict{server: s, open: known && profile.Filesystem && target.Registry != launch.OCI}
	dirs := profile.Directories(target)
	if set.Len() > 0 {
		return c.judgeRoots(v, o, set, dirs)
	}
	fixed := false // it names a directory whatever the client has open
	for _, d := range dirs {
		path, ok := c.place(s, d.Path)
		fixed = fixed || ok && len(clientconf.References(d.Path)) == 0
		if ok && roots.Broad(path) {
			v.why = fmt.Sprintf("stays as it is: %q is too broad to be a boundary", d.Path)
			v.hint = "name a directory, and write: " + byHand(command, "DIR")
			return v
		}
	}
	if v.open && len(dirs) == 0 {
		v.why = "stays as it is: it names no directory"
		v.hint = fmt.Sprintf("name one: rootbound wrap %s --server %s --root %s --write", client.ID, guard.ShellQuote(s.Name), c.proposal(s))
		if client.Roots.Sends == clientconf.Yes {
			v.hint += "; what holds is the part of it that " + client.Name + " has open"
		}
		return v
	}
	v.change, v.open, v.why = true, false, o.done(client, "wrapped")
	if client.Roots.Sends == clientconf.Yes && s.Project == "" && fixed { // else it is for one project
		v.hint = fmt.Sprintf("%s sends what it has open, and only what lies both there and in the arguments holds; for a boundary that follows what is open, write: %s",
			client.Name, byHand(command, c.proposal(s)))
	}
	return v
}

// judgeRoots decides about a server that gets roots of its own.
func (c *configured) judgeRoots(v verdict, o wrapOptions, set roots.Set, dirs []launch.Directory) verdict {
	command := v.server.Launch()
	for _, d := range dirs {
		path, ok := c.place(v.server, d.Path)
		if !ok {
			continue
		}
		if _, _, in := set.Match(place(path)); !in {
			var list []string
			for _, r := range set.Dirs() {
				list = append(list, r.Path)
			}
			own := d.Path
			if shown := calllog.RedactArgs(command.Args); d.Arg >= 0 && d.Arg < len(shown) && shown[d.Arg] != command.Args[d.Arg] {
				own = shown[d.Arg]
			}
			v.why = fmt.Sprintf("stays as it is: its own %q is not in %s", own, strings.Join(list, ", "))
			v.hint = "write: " + byHand(command, list...)
			return v
		}
	}
	v.change, v.open, v.why = true, false, o.done(v.server.File.Client, "wrapped")
	return v
}

// place is the directory that an argument leads to, as far as that can be known before the client runs.
func (c *configured) place(s *clientconf.Server, text string) (path string, ok bool) {
	text, ok = s.File.Client.Expand(text, c.host)
	if !ok || launch.HasPlaceholder(text) {
		return "", false
	}
	if rest, home := strings.CutPrefix(text, "~"); home && (rest == "" || rest[0] == '/' || rest[0] == filepath.Separator) {
		text = c.host.Home + rest
	}
	if !filepath.IsAbs(text) {
		dir, ok := s.Dir(c.host)
		if !ok {
			return "", false
		}
		text = filepath.Join(dir, text)
	}
	return filepath.Clean(text), true
}

// proposal is a directory that holds the project and its neighbours, or else the project; for an entry of one project, that.
func (c *configured) proposal(s *clientconf.Server) string {
	project := cmp.Or(s.Project, c.host.Project)
	if up := filepath.Dir(project); project != "" && s.Project == "" && !roots.Broad(up) {
		return guard.ShellQuote(up)
	}
	if project != "" && !roots.Broad(project) {
		return guard.ShellQuote(project)
	}
	return "DIR"
}

// byHand is a command line with roots, to be written by a person, with what the roots are filled into in its arguments.
func byHand(c launch.Command, dirs ...string) string {
	words := []string{"rootbound", "run"}
	for _, d := range dirs {
		words = append(words, "--root", d)
	}
	args := c.Args
	var outside *launch.OutsideError
	if errors.As(launch.CheckDirectories(c, roots.Set{}, string(filepath.Separator)), &outside) {
		args = outside.Args
	}
	words = append(words, "--", c.Path)
	for _, arg := range calllog.RedactArgs(args) {
		if !launch.HasPlaceholder(arg) {
			arg = guard.ShellQuote(arg)
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// boundary are the options that say which directories, and the directories.
func (o wrapOptions) boundary() (options []string, set roots.Set, err error) {
	var list []roots.Dir
	for _, f := range o.dirs {
		d, err := roots.Resolve(f.Dir, roots.ResolveOptions{Name: f.Name, Access: f.Access, AllowBroad: true})
		if err != nil {
			return nil, set, usageError{Err: fmt.Errorf("looking at %s: %w", f.Flag, err)}
		}
		list = append(list, d)
		value := d.Spellings[len(d.Spellings)-1]
		if f.Name != "" {
			value = f.Name + "=" + value
		}
		options = append(options, f.Flag, value)
	}
	return options, roots.NewSet(list...), nil
}
