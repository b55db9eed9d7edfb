package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/roots"
)

// wrapOptions are what `wrap` and `unwrap` are told.
type wrapOptions struct {
	all, write, print bool
	servers           []string
	dirs              []config.DirFlag
	project, program  string
}

func (a *app) wrapCommand() *cobra.Command {
	var o wrapOptions
	cmd := &cobra.Command{
		Use:     "wrap [CLIENT…]",
		Short:   "Put Rootbound in front of the servers in the configuration of MCP clients",
		GroupID: groupConfig,
		Long: `Put ` + "`rootbound run --`" + ` in front of the servers that the named clients, or with --all those of every client, have
configured. The rest of an entry stays as it is, and so does every other byte of the file. Unwrapping takes it away again.

Wrapped are the servers that are known to take directories, and those that --server names. One whose directories are broad
(a home directory, the whole disk) stays as it is, with what to write instead. Without --write the change is only shown. A
copy of each changed file is left beside it.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 a server that opens directories stays without Rootbound.`,
		Example: `  rootbound wrap --all
  rootbound wrap cursor codex --write
  rootbound wrap claude-code --server git --root ~/src --write
  rootbound wrap lmstudio --print`,
		ValidArgsFunction: completeClients,
		RunE:              func(_ *cobra.Command, clients []string) error { return a.wrap(o, clients) },
	}
	cwd, _ := os.Getwd()
	o.flags(cmd)
	f := cmd.Flags()
	f.Var(dirValue{&o.dirs, roots.ReadWrite, "--root", cwd}, "root", "a directory that the servers may read and write; may be repeated (default: their own arguments)")
	f.Var(dirValue{&o.dirs, roots.ReadOnly, "--ro", cwd}, "ro", "a directory that they may only read; may be repeated")
	f.BoolVar(&o.print, "print", false, "print what to paste, for a client whose files are not edited")
	f.StringVar(&o.program, "program", "", "the rootbound `FILE` that clients start (default: this one)")
	return cmd
}

func (a *app) unwrapCommand() *cobra.Command {
	var o wrapOptions
	cmd := &cobra.Command{
		Use:     "unwrap [CLIENT…]",
		Short:   "Take Rootbound away from in front of the servers of MCP clients",
		GroupID: groupConfig,
		Long: `Take away what ` + "`rootbound wrap`" + `, or you in the same form, put in front of the servers of the named clients, or with --all
of every client. What was there before is there again, byte for byte; what was changed meanwhile stays. Without --write the
change is only shown. The copy that wrap left is removed, if there is nothing in it that the file does not say.`,
		Example: `  rootbound unwrap --all
  rootbound unwrap cursor --server files --write`,
		ValidArgsFunction: completeClients,
		RunE:              func(_ *cobra.Command, clients []string) error { return a.unwrap(o, clients) },
	}
	o.flags(cmd)
	return cmd
}

// flags defines what both commands have.
func (o *wrapOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "every client that is known")
	f.StringArrayVar(&o.servers, "server", nil, "only the server `NAME`; may be repeated")
	f.BoolVar(&o.write, "write", false, "write the change; without it, it is only shown")
	f.StringVar(&o.project, "project", "", "the project `DIR` whose files count besides the user's (default: that of the working directory)")
}

// configured are the files in which clients look for servers.
type configured struct {
	host  clientconf.Host
	files []*clientconf.File
	also  map[string][]string // by path: other clients that read the file
}

// configured finds the files of the named clients, each once.
func (a *app) configured(o wrapOptions, ids []string) (*configured, error) {
	if len(ids) == 0 && !o.all {
		return nil, usageError{withHint(errors.New("name a client, or --all"), "there are "+strings.Join(clientNames(), ", "))}
	}
	for _, id := range ids {
		if err := knownClient(id); err != nil {
			return nil, err
		}
	}
	host, err := a.clientHost(o.project)
	if err != nil {
		return nil, err
	}
	c := &configured{host: host, also: map[string][]string{}}
	at := map[string]bool{}
	for _, f := range clientconf.Find(host) {
		switch {
		case f.Place.Role != clientconf.Servers:
		case at[f.Path]:
			c.also[f.Path] = append(c.also[f.Path], f.Client.Name)
		case o.all || slices.Contains(ids, f.Client.ID):
			at[f.Path] = true
			c.files = append(c.files, f)
		default:
			c.also[f.Path] = append(c.also[f.Path], f.Client.Name)
		}
	}
	return c, o.missing(c.files)
}

// missing says that a server which was named is in none of the files.
func (o wrapOptions) missing(files []*clientconf.File) error {
	var names []string
	for _, f := range files {
		for _, s := range f.Servers {
			names = append(names, s.Name)
		}
	}
	for _, name := range o.servers {
		if slices.Contains(names, name) {
			continue
		}
		err := fmt.Errorf("there is no server %q in the files that were found", name)
		if near, ok := launch.Nearest(name, names); ok {
			return withHint(err, fmt.Sprintf("did you mean %q?", near))
		}
		return err
	}
	return nil
}

// clientHost is this machine, its user and the project.
func (a *app) clientHost(project string) (clientconf.Host, error) {
	h := clientconf.Host{OS: runtime.GOOS, Env: a.env}
	var err error
	if h.Home, err = os.UserHomeDir(); err != nil {
		return h, fmt.Errorf("finding the home directory: %w", err)
	}
	if project != "" {
		h.Project, err = filepath.Abs(project)
		return h, err
	}
	if h.Project, err = os.Getwd(); err != nil {
		return h, fmt.Errorf("finding the working directory: %w", err)
	}
	if top, ok := roots.Workspace(h.Project); ok {
		h.Project = top
	}
	return h, nil
}

func (o wrapOptions) wants(s *clientconf.Server) bool {
	return !s.Unread && (len(o.servers) == 0 || slices.Contains(o.servers, s.Name))
}

// verdict is what becomes of a server, and why.
type verdict struct {
	server *clientconf.Server
	change bool
	open   bool // it opens directories and stays without Rootbound
	why    string
	hint   string
	entry  []string // to be written by hand
}

func (a *app) wrap(o wrapOptions, ids []string) error {
	if o.print && o.write {
		return usageError{errors.New("--print writes nothing: give it without --write")}
	}
	c, err := a.configured(o, ids)
	if err != nil {
		return err
	}
	program, err := a.programPath(o.program)
	if err != nil {
		return err
	}
	options, set, err := o.boundary()
	if err != nil {
		return err
	}
	var e edits
	for _, f := range c.files {
		var list []verdict
		for _, s := range f.Servers {
			if o.wants(s) {
				list = append(list, c.judge(s, o, set))
			}
		}
		var d *clientconf.Draft
		if o.print || !f.Client.Writable {
			for i, v := range list {
				if v.change {
					list[i].entry = v.server.Snippet(program, words(v.server, options))
				}
			}
		} else {
			d = e.change(f, list, func(d *clientconf.Draft, s *clientconf.Server) error {
				if wrapped(s) {
					return d.Renew(s, program)
				}
				return d.Wrap(s, program, options...)
			})
		}
		a.printVerdicts(c, f, list)
		if d == nil {
			continue
		}
		// A copy that is there is that of the state before, if this is not the first server that is wrapped.
		keep := slices.ContainsFunc(f.Servers, wrapped)
		e.show(a, o, c, f, d, func() error { return f.Save(keep) })
	}
	return e.end(a, o)
}

func wrapped(s *clientconf.Server) bool {
	_, ok := s.Guard()
	return ok
}

func (a *app) unwrap(o wrapOptions, ids []string) error {
	c, err := a.configured(o, ids)
	if err != nil {
		return err
	}
	var e edits
	for _, f := range c.files {
		var list []verdict
		for _, s := range f.Servers {
			switch {
			case !o.wants(s):
			case wrapped(s) && !f.Client.Writable:
				list = append(list, verdict{server: s, why: "stays as it is: take it out by hand, as " + f.Client.ReadOnly})
			case wrapped(s):
				list = append(list, verdict{server: s, change: true, why: "is unwrapped"})
			case launch.Identify(s.Launch()).Guarded:
				list = append(list, verdict{server: s, why: "stays as it is: Rootbound is in its command in another form; take it out by hand"})
			}
		}
		d := e.change(f, list, (*clientconf.Draft).Unwrap)
		a.printVerdicts(c, f, list)
		if d != nil {
			e.show(a, o, c, f, d, func() error { return nil })
		}
	}
	return e.end(a, o)
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
		return verdict{server: s, why: "is wrapped"}
	case target.Guarded:
		return stays("there is a rootbound in front of it already")
	case isRootbound(command.Path):
		return stays("it is Rootbound itself")
	case s.File.Place.Scope == clientconf.Managed:
		return stays("the file belongs to who administers this machine")
	case s.Remote():
		return stays("it is reached by an address, and not started here")
	case !s.Command.Given():
		return stays("it has no command")
	case !named && !(known && profile.Filesystem):
		return stays(fmt.Sprintf("it is not known to take directories; --server %s wraps it", guard.ShellQuote(s.Name)))
	}
	v := verdict{server: s, open: known && profile.Filesystem}
	dirs := profile.Directories(target)
	if set.Len() > 0 {
		return c.judgeRoots(v, set, dirs)
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
		v.hint = fmt.Sprintf("name one: rootbound wrap %s --server %s --root %s --write", client.ID, guard.ShellQuote(s.Name), c.proposal())
		if client.Roots.Sends == clientconf.Yes {
			v.hint += "; what holds is the part of it that " + client.Name + " has open"
		}
		return v
	}
	v.change, v.open, v.why = true, false, "is wrapped"
	if client.Roots.Sends == clientconf.Yes && s.Scope != clientconf.Project && fixed {
		v.hint = fmt.Sprintf("%s also says what it has open, and what holds is in both; to follow that, write: %s", client.Name, byHand(command, c.proposal()))
	}
	return v
}

// isRootbound reports whether a program is this one by its name.
func isRootbound(program string) bool {
	return launch.Identify(launch.Command{Path: program, Args: []string{"run", "--", "x"}}).Guarded
}

// judgeRoots decides about a server that gets roots of its own.
func (c *configured) judgeRoots(v verdict, set roots.Set, dirs []launch.Directory) verdict {
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
			v.why = fmt.Sprintf("stays as it is: its own %q is not in %s", d.Path, strings.Join(list, ", "))
			v.hint = "write: " + byHand(command, list...)
			return v
		}
	}
	v.change, v.open, v.why = true, false, "is wrapped"
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
		if !filepath.IsAbs(s.Cwd.Text) || s.File.Client.IgnoresCwd {
			return "", false
		}
		text = filepath.Join(s.Cwd.Text, text)
	}
	return filepath.Clean(text), true
}

// proposal is a directory that holds the project and its neighbours, or else the project.
func (c *configured) proposal() string {
	if up := filepath.Dir(c.host.Project); c.host.Project != "" && !roots.Broad(up) {
		return guard.ShellQuote(up)
	}
	if c.host.Project != "" && !roots.Broad(c.host.Project) {
		return guard.ShellQuote(c.host.Project)
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
			return nil, set, usageError{fmt.Errorf("looking at %s: %w", f.Flag, err)}
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

func (a *app) printVerdicts(c *configured, f *clientconf.File, list []verdict) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(a.out, "%s (%s, %s", printable(f.Path), f.Client.Name, f.Place.Scope)
	if also := c.also[f.Path]; len(also) > 0 {
		fmt.Fprintf(a.out, "; also read by %s", strings.Join(also, ", "))
	}
	fmt.Fprintln(a.out, ")")
	for _, v := range list {
		name := v.server.Name
		if v.server.Scope == clientconf.Local {
			name += " of " + v.server.Project
		}
		if v.entry != nil {
			v.why = "is to be wrapped by hand: " + v.server.File.Client.ReadOnly
			if v.server.File.Client.Writable {
				v.why = "would be wrapped as this; the rest of its entry stays"
			}
		}
		fmt.Fprintf(a.out, "  %s %s\n", printable(name), printable(v.why))
		for _, line := range v.entry {
			fmt.Fprintf(a.out, "    %s\n", printable(line))
		}
		if v.hint != "" {
			fmt.Fprintf(a.out, "    %s\n", printable(v.hint))
		}
	}
}

// words are the arguments of a wrapped server.
func words(s *clientconf.Server, options []string) []string {
	return slices.Concat([]string{"run"}, options, []string{"--"}, calllog.RedactArgs(append([]string{s.Command.Text}, s.Launch().Args...)))
}

// edits are the changes of one command.
type edits struct {
	n       int
	failed  bool // a server could not be changed that should have been
	open    bool // one that opens directories stays without Rootbound
	restart []string
}

// change makes the edits of one file that the verdicts ask for, and says in the verdicts which could not be made. There is no
// draft where there is no edit.
func (e *edits) change(f *clientconf.File, list []verdict, edit func(*clientconf.Draft, *clientconf.Server) error) *clientconf.Draft {
	d, err := (*clientconf.Draft)(nil), error(nil)
	changed := false
	for i := range list {
		v := &list[i]
		if v.change && d == nil && err == nil {
			d, err = f.Draft()
		}
		if v.change {
			fault := err
			if fault == nil {
				fault = edit(d, v.server)
			}
			if fault != nil {
				e.failed = true
				v.change, v.why, v.hint = false, "stays as it is: "+fault.Error(), ""
			}
			changed = changed || fault == nil
		}
		e.open = e.open || v.open
	}
	if !changed {
		return nil
	}
	return d
}

// show shows an edit of a file, and writes it where that is asked for.
func (e *edits) show(a *app, o wrapOptions, c *configured, f *clientconf.File, d *clientconf.Draft, before func() error) {
	after := f.With(d.Bytes())
	path := printable(f.Path)
	fmt.Fprint(a.out, "\n", printableLines(udiff.Unified(path, path, shown(f), shown(after))), "\n", c.writers(f))
	e.n++
	if restart := f.Client.Name + ": " + f.Client.Restart; !slices.Contains(e.restart, restart) {
		e.restart = append(e.restart, restart)
	}
	if !o.write {
		return
	}
	err := errors.Join(before(), d.Write())
	if err == nil && !slices.ContainsFunc(after.Servers, wrapped) {
		err = after.Forget()
	}
	if err != nil {
		e.n--
		e.failed = true
		fmt.Fprintf(a.err, "rootbound: error: %s\n", printable(err.Error()))
		return
	}
	saved := "saved " + path
	if slices.ContainsFunc(after.Servers, wrapped) {
		saved += "; what it was is in " + printable(filepath.Base(f.Backup()))
	}
	fmt.Fprint(a.out, saved, "\n\n")
}

// end says what is to be done next.
func (e *edits) end(a *app, o wrapOptions) error {
	switch {
	case e.n == 0 && !e.failed && !o.print:
		fmt.Fprintf(a.out, "No file is to be changed.\n")
	case e.n > 0 && !o.write:
		fmt.Fprintln(a.out, "Nothing was written; --write does it.")
	}
	if o.write && e.n > 0 {
		fmt.Fprintf(a.out, "Now, for it to count:\n  %s\n", strings.Join(e.restart, "\n  "))
	}
	switch {
	case e.failed:
		return exitStatus(exitError)
	case e.open:
		return exitStatus(exitFindings)
	}
	return nil
}

// writers says that the file is written by another program, which takes an edit back.
func (c *configured) writers(f *clientconf.File) string {
	var b strings.Builder
	for w, path := range f.Writers(c.host) {
		fmt.Fprintf(&b, "%s is here (%s), and %s: wrap the server there, too, with what --print prints.\n\n", w.Name, printable(path), w.ReadOnly)
	}
	return b.String()
}

// longLine is how long a line of a file may be to be shown as one.
const longLine = 500

// shown is the text of a file for a diff: without what may be a secret, and with long lines broken where values begin.
func shown(f *clientconf.File) string {
	var b strings.Builder
	// In comments there may be secrets, too. Of a text that is masked already nothing is left to measure.
	text := strings.ReplaceAll(calllog.RedactText(f.Masked(calllog.RedactArgs)), "[3 bytes redacted]", "…")
	for line := range strings.Lines(text) {
		if len(line) > longLine {
			line = strings.NewReplacer(`,"`, ",\n\"", `, "`, ",\n\"", `{"`, "{\n\"").Replace(line)
		}
		b.WriteString(line)
	}
	return b.String()
}

// gone reports whether a program that is named by an absolute path is not there.
func gone(program string) bool {
	if !filepath.IsAbs(program) {
		return false
	}
	_, err := os.Stat(program)
	return errors.Is(err, fs.ErrNotExist)
}

// programPath is the rootbound that clients are to start: one that is still there after the next upgrade.
func (a *app) programPath(given string) (string, error) {
	if given != "" {
		path, err := filepath.Abs(given)
		if err == nil {
			var info fs.FileInfo
			if info, err = os.Stat(path); err == nil && !info.Mode().IsRegular() {
				err = errors.New("it is no file")
			}
		}
		if err == nil && !isRootbound(path) {
			err = errors.New("it has to be called rootbound, by which unwrap knows it")
		}
		if err != nil {
			return "", usageError{fmt.Errorf("looking at --program %q: %w", given, err)}
		}
		return path, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", withHint(fmt.Errorf("finding this program: %w", err), "name it with --program FILE")
	}
	name := "rootbound"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	var candidates []string
	for _, dir := range filepath.SplitList(a.env("PATH")) {
		if filepath.IsAbs(dir) {
			candidates = append(candidates, filepath.Join(dir, name))
		}
	}
	me, err := os.Stat(self)
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	for _, path := range append(candidates, self) {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, me) && launch.Lasting(path, os.TempDir()) {
			return path, nil
		}
	}
	return "", withHint(fmt.Errorf("this program is %q, which may be gone after its next version", self),
		"put it, or a link to it, into a directory of PATH, or name it with --program "+cmp.Or(given, "FILE"))
}
