package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/splice"
	"github.com/rootbound/rootbound/roots"
)

// Plan is what holds for one server, or where none was chosen for any. It is a value; nothing in it may be changed.
type Plan struct {
	// Server is the name of the chosen server of the file, or empty.
	Server string
	// Servers are the names of all that are configured.
	Servers []string
	// Command starts the server; its placeholders are not filled yet. Path is empty when nothing says what to start.
	Command       launch.Command
	CommandOrigin Origin
	// Remote says where the server is, if it is not started.
	Remote
	// Profile is what is known of the server; Known says whether anything is.
	Profile launch.Profile
	Known   bool

	// Roots are the configured directories, and Source is the first of the sources that gave any.
	Roots  roots.Set
	Source Source
	// RootsFile is the file whose list gave them, when Source is FromFile; OwnRoots says that it is the list of the server,
	// and not the one for all.
	RootsFile string
	OwnRoots  bool

	Choices
	Tools  map[string]Tool
	Policy Policy
	Log    Log
	// Active is the active workspace as it is written, not Given where there is none.
	Active Setting[string]

	// Notes are for a person: what is written and has no effect, and why.
	Notes []string
	// Files are those that were read, the one that binds the others first. Guarded servers may not write them.
	Files []string
	// Watched are those that were read or looked for.
	Watched []string
	// Missing are the directories that were left out because they are not there (see Flags.Partial).
	Missing []string

	print print
}

// Source says where the configured directories come from.
type Source uint8

const (
	// FromNowhere: there are none.
	FromNowhere Source = iota
	// FromFlags: --root and --ro.
	FromFlags
	// FromFile: a configuration file.
	FromFile
	// FromArguments: the server's own directory arguments.
	FromArguments
	// FromWorkspace: the work tree of the working directory.
	FromWorkspace
)

// String returns the source as a start line says it.
func (s Source) String() string {
	switch s {
	case FromFlags:
		return "the command line"
	case FromFile:
		return "the configuration file"
	case FromArguments:
		return "the server's own arguments"
	case FromWorkspace:
		return "the work tree of the working directory"
	}
	return "nowhere"
}

// Code tells the source from others: "flags", "file", "arguments", "workspace", or "nowhere".
func (s Source) Code() string {
	return [...]string{"nowhere", "flags", "file", "arguments", "workspace"}[min(s, FromWorkspace)]
}

// Runnable says why the plan starts no server, or nil.
func (p *Plan) Runnable() error {
	switch {
	case p.Command.Path != "", p.URL.Given():
		return nil
	case p.Server != "":
		return p.CommandOrigin.errorf("the server %q has neither a command nor a URL", p.Server)
	case len(p.Servers) > 0:
		return fmt.Errorf("choosing a server: name one of %q with --server, or write the command behind --", p.Servers)
	}
	return errors.New("choosing a server: write its command behind --, or its URL behind --url")
}

// layers are the files of one resolution.
type layers struct {
	managed, operator, project *File
	files, watched             []string
	texts                      map[string][]byte // of files, by path
	print                      print
}

// print tells states of the files apart.
type print [sha256.Size]byte

// printOf takes the print of files as they were read, and of the others as they are now.
func printOf(paths []string, texts map[string][]byte) print {
	hash := sha256.New()
	for _, path := range paths {
		text, ok := texts[path]
		if !ok {
			var err error
			if text, err = os.ReadFile(path); err != nil {
				text = nil
			}
			if errors.Is(err, fs.ErrNotExist) {
				fmt.Fprintf(hash, "%q -\n", path)
				continue
			}
		}
		fmt.Fprintf(hash, "%q %d\n%s\n", path, len(text), text)
	}
	return print(hash.Sum(nil))
}

// load reads the files of a system.
func load(sys System, f Flags) (*layers, error) {
	texts := map[string][]byte{}
	l := &layers{texts: texts}
	var faults []error
	read := func(path string, must bool) *File {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) && !must {
			return nil
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("reading configuration %q: %w", path, reason(err)))
			return nil
		}
		l.files = append(l.files, path)
		texts[path] = text
		file, err := Parse(path, text)
		if err != nil {
			faults = append(faults, err)
		}
		return file
	}
	layer := func(dir string) *File {
		path, candidates, err := sys.pick(dir)
		l.watched = append(l.watched, candidates...)
		switch {
		case err != nil:
			faults = append(faults, err)
			return nil
		case path == "" || slices.ContainsFunc(l.files, func(read string) bool { return same(read, path) }):
			return nil
		}
		return read(path, false)
	}
	l.managed = layer(sys.managedDir())
	if f.Config != "" {
		path := f.Config
		if !filepath.IsAbs(path) {
			path = filepath.Join(sys.Dir, path)
		}
		l.watched = append(l.watched, path)
		l.operator = read(path, true)
	} else {
		l.operator = layer(sys.userDir())
	}
	l.project = layer(sys.projectDir())
	if l.project != nil {
		faults = append(faults, projectFaults(l.project)...)
	}
	l.print = printOf(l.watched, texts)
	return l, errors.Join(faults...)
}

// projectFaults finds what is not for a project to say.
func projectFaults(f *File) []error {
	var faults []error
	refuse := func(o Origin, name string) {
		faults = append(faults, o.errorf(
			"a project's file only narrows, and cannot give %q: write it to your own file, or name this one with --config", name))
	}
	if f.form != ours {
		for _, s := range f.Servers {
			if s.Command.Given() {
				refuse(s.Command.Origin, "command")
			}
		}
		return faults
	}
	root := f.doc.Root()
	operatorKeys(f, root, fileKeys(), refuse)
	approvalTable := func(v *splice.Value) {
		if t, ok := v.Get("approval"); ok {
			operatorKeys(f, t, approvalKeys, refuse)
		}
	}
	approvalTable(root)
	for _, r := range f.Rules {
		if r.Verdict == policy.Allow {
			faults = append(faults, r.origin.errorf("a project's file only narrows, and its rules only ask and deny"))
		}
	}
	if rules, ok := root.Get("rule"); ok {
		for _, r := range rules.Items {
			operatorKeys(f, r, ruleKeys, refuse)
		}
	}
	if servers, ok := root.Get("server"); ok {
		for _, s := range servers.Members {
			operatorKeys(f, s.Value, serverKeys(), refuse)
			approvalTable(s.Value)
			if tools, ok := s.Value.Get("tool"); ok {
				for _, t := range tools.Members {
					operatorKeys(f, t.Value, toolKeys, refuse)
				}
			}
		}
	}
	return faults
}

// operatorKeys calls found with each key of a table that a project cannot give.
func operatorKeys[T any](f *File, table *splice.Value, keys []key[T], found func(Origin, string)) {
	for _, m := range table.Members {
		if slices.ContainsFunc(keys, func(k key[T]) bool { return k.name == m.Name && k.operator }) {
			found(Origin{File: f.Path, Pos: m.Pos}, m.Name)
		}
	}
}

// Resolve reads the files and makes the plan for the server that the flags choose: the one that --server names; without
// it, and without a command, the only one of the file; with a command the only one of the file that --config names. The
// error holds every fault that was found.
func Resolve(sys System, f Flags) (*Plan, error) {
	l, err := load(sys, f)
	if err != nil {
		return nil, err
	}
	r := &resolver{sys: sys, flags: f, layers: l}
	return r.plan()
}

// resolver makes one plan.
type resolver struct {
	sys    System
	flags  Flags
	layers *layers
	p      *Plan
	// What each layer says for the chosen server.
	managed, operator, project, flagged Settings
}

func (r *resolver) note(format string, args ...any) {
	r.p.Notes = append(r.p.Notes, fmt.Sprintf(format, args...))
}

func (r *resolver) plan() (*Plan, error) {
	l := r.layers
	r.p = &Plan{Files: l.files, Watched: l.watched, print: l.print}
	server, err := r.choose()
	if err != nil {
		return nil, err
	}
	name := ""
	if server != nil {
		name = server.Name
	}
	r.managed, r.operator, r.project = settings(l.managed, name), settings(l.operator, name), settings(l.project, name)
	r.command(server)
	if err := r.remote(server); err != nil {
		return nil, err
	}
	r.p.Profile, r.p.Known = launch.Lookup(launch.Identify(r.p.Command))
	if err := r.settings(); err != nil {
		return nil, err
	}
	r.results()
	r.approval()
	r.pins()
	r.tools(name)
	if err := r.policy(); err != nil {
		return nil, err
	}
	r.log()
	if err := r.roots(); err != nil {
		return nil, err
	}
	if len(r.p.Missing) > 0 {
		r.p.Watched = slices.Concat(r.p.Watched, r.p.Missing)
		r.p.print = printOf(r.p.Watched, l.texts)
	}
	return r.p, nil
}

// choose finds the server.
func (r *resolver) choose() (*Server, error) {
	files := []*File{r.layers.operator, r.layers.managed}
	for _, f := range files {
		if f == nil {
			continue
		}
		for _, name := range f.serverNames() {
			if !slices.Contains(r.p.Servers, name) {
				r.p.Servers = append(r.p.Servers, name)
			}
		}
	}
	name := r.flags.Server
	switch {
	case r.flags.ForAll:
		return nil, nil
	case name != "":
	case len(r.p.Servers) == 1 && (len(r.flags.Command) == 0 && r.flags.URL == "" || r.flags.Config != ""):
		name = r.p.Servers[0]
	default:
		return nil, nil
	}
	for _, f := range files {
		if f == nil {
			continue
		}
		if s, ok := f.Server(name); ok {
			r.p.Server = name
			return s, nil
		}
	}
	hint := "no server is configured"
	if near, ok := launch.Nearest(name, r.p.Servers); ok {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if len(r.p.Servers) > 0 {
		hint = fmt.Sprintf("there are %q", r.p.Servers)
	}
	return nil, fmt.Errorf("choosing server %q: there is none of that name: %s", name, hint)
}

func settings(f *File, server string) Settings {
	if f == nil {
		return Settings{}
	}
	s, _ := f.Server(server)
	return f.of(s)
}

// command takes the command line from the flags, or else from the file.
func (r *resolver) command(s *Server) {
	c := &r.p.Command
	if s != nil {
		*c = launch.Command{Path: s.Command.Value, Args: s.Args.Value, Env: s.Env.Value, Dir: s.Cwd.Value}
		r.p.CommandOrigin = first(s.Command, Setting[string]{Origin: s.origin}).Origin
		if c.Dir != "" && !strings.HasPrefix(c.Dir, "{") {
			c.Dir = r.startDir(s)
		}
	}
	if words := r.flags.Command; len(words) > 0 {
		c.Path, c.Args = words[0], words[1:]
		r.p.CommandOrigin = Origin{Word: "the command line"}
	}
}

// startDir is the configured working directory, absolute: beside our own file, or for a client's file, whose relative
// directories start where the client does, beside the working directory.
func (r *resolver) startDir(s *Server) string {
	file := r.layers.operator
	if file == nil || s.Cwd.Origin.File != file.Path {
		file = r.layers.managed
	}
	if file.form != ours {
		return absolute(r.sys.Dir, s.Cwd.Value)
	}
	return absolute(filepath.Dir(file.Path), s.Cwd.Value)
}

func absolute(dir, path string) string {
	if path = expandHome(path); filepath.IsAbs(path) {
		return path
	}
	return dir + string(filepath.Separator) + path
}

func expandHome(path string) string {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return home + path[1:]
}

// settings resolves those that have a stricter and a looser value.
func (r *resolver) settings() error {
	p := r.p
	if w := r.flags.ClientRoots; w != "" {
		mode, ok := clientRootsWords.value(w)
		if !ok {
			return UsageError{fmt.Errorf("reading --client-roots %q: known are %s", w, strings.Join(clientRootsWords.list(), ", "))}
		}
		r.flagged.ClientRoots = Setting[roots.Mode]{mode, Origin{Word: "--client-roots"}}
	}
	if r.flags.StrictProtocol {
		r.flagged.StrictProtocol = Setting[bool]{true, Origin{Word: "--strict-protocol"}}
	}
	usualPaths := usual(launch.Local)
	if p.Known && p.Profile.Paths != launch.Local {
		usualPaths = Setting[launch.Paths]{p.Profile.Paths, Origin{Word: "the profile of " + p.Profile.Name}}
	}
	if p.URL.Given() {
		usualPaths = Setting[launch.Paths]{launch.Elsewhere, Origin{Word: "a server with a URL"}}
	}
	p.ClientRoots = narrow(r, "client_roots", func(s Settings) Setting[roots.Mode] { return s.ClientRoots },
		usual(roots.Narrow), roots.Narrow, roots.Ignore, roots.Accept)
	p.OnChange = narrow(r, "on_change", func(s Settings) Setting[OnChange] { return s.OnChange }, usual(Auto), Restart, Auto, Notify)
	p.Paths = narrow(r, "paths", func(s Settings) Setting[launch.Paths] { return s.Paths }, usualPaths, launch.Local, launch.Elsewhere)
	p.ListChanged = narrow(r, "list_changed", func(s Settings) Setting[bool] { return s.ListChanged }, usual(true), false, true)
	p.AllowBroad = narrow(r, "allow_broad", func(s Settings) Setting[bool] { return s.AllowBroad }, usual(false), false, true)
	p.StrictProtocol = narrow(r, "strict_protocol", func(s Settings) Setting[bool] { return s.StrictProtocol }, usual(false), true, false)
	r.speaks()
	return r.confine()
}

var byDefault = Origin{Word: "default"}

func usual[T any](v T) Setting[T] { return Setting[T]{v, byDefault} }

// narrow resolves one setting: what the flags, the operator's file or the managed one say, whichever comes first, or the
// usual value; then not looser than the managed file says, and not looser for what the project's file says. The values
// are given with the strictest first.
func narrow[T comparable](r *resolver, name string, of func(Settings) Setting[T], usual Setting[T], strict ...T) Setting[T] {
	return narrowBy(r, name, of, usual, func(a, b T) bool { return slices.Index(strict, a) < slices.Index(strict, b) })
}

// narrowBy is narrow for values of which stricter says which one of two it is.
func narrowBy[T any](r *resolver, name string, of func(Settings) Setting[T], usual Setting[T], stricter func(a, b T) bool) Setting[T] {
	managed, project := of(r.managed), of(r.project)
	s := first(of(r.flagged), of(r.operator), managed, usual)
	if managed.Given() && stricter(managed.Value, s.Value) {
		r.note("%s: %s has no effect: %s is stricter", s.Origin, name, managed.Origin)
		s = managed
	}
	switch {
	case !project.Given():
	case stricter(project.Value, s.Value):
		s = project
	case stricter(s.Value, project.Value):
		r.note("%s: %s has no effect: a project's file only narrows", project.Origin, name)
	}
	return s
}

// tools puts the tools of all layers together. A project only adds arguments that are paths.
func (r *resolver) tools(server string) {
	r.p.Tools = map[string]Tool{}
	for _, f := range []*File{r.layers.operator, r.layers.managed, r.layers.project} {
		if f == nil {
			continue
		}
		s, ok := f.Server(server)
		if !ok {
			continue
		}
		for name, t := range s.Tools {
			have := r.p.Tools[name]
			if t.Paths.Given() {
				have.Paths.Origin = first(have.Paths, t.Paths).Origin
				have.Paths.Value = slices.Concat(have.Paths.Value, t.Paths.Value)
			}
			have.NotPaths = first(have.NotPaths, t.NotPaths)
			have.Defaults = first(have.Defaults, t.Defaults)
			if t.Effect.Value > have.Effect.Value { // the managed file may say that it does more, and not less
				have.Effect = t.Effect
			}
			r.p.Tools[name] = have
		}
	}
}

// log resolves where the log goes: what the managed file says about it holds, whatever was typed.
func (r *resolver) log() {
	var managed, operator, flagged Log
	if r.layers.managed != nil {
		managed = r.layers.managed.Log
	}
	if r.layers.operator != nil {
		operator = r.layers.operator.Log
	}
	given := Origin{Word: "--log"}
	switch r.flags.Log {
	case "":
	case "off":
		flagged.Enabled = Setting[bool]{false, given}
	default:
		flagged.Enabled = Setting[bool]{true, given}
		flagged.Dir = Setting[string]{absolute(r.sys.Dir, r.flags.Log), given}
	}
	if managed.Dir.Given() {
		managed.Enabled = first(managed.Enabled, Setting[bool]{true, managed.Dir.Origin})
	}
	if managed.Enabled.Given() && flagged.Enabled.Given() {
		r.note("--log has no effect: %s decides", managed.Enabled.Origin)
	}
	r.p.Log = Log{
		Enabled:  first(managed.Enabled, flagged.Enabled, operator.Enabled, usual(true)),
		Dir:      first(managed.Dir, flagged.Dir, operator.Dir),
		Bodies:   first(managed.Bodies, operator.Bodies, usual(false)),
		Sync:     first(managed.Sync, operator.Sync, usual(false)),
		KeepDays: first(managed.KeepDays, operator.KeepDays),
		MaxMB:    first(managed.MaxMB, operator.MaxMB),
	}
}
