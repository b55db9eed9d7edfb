package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/config"
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
		GroupID: groupAdopt,
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
	o.flags(a, cmd)
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
		GroupID: groupAdopt,
		Long: `Take away what ` + "`rootbound wrap`" + `, or you in the same form, put in front of the servers of the named clients, or with --all
of every client. What was there before is there again, byte for byte; what was changed meanwhile stays. Without --write the
change is only shown. The copy that wrap left is removed, if there is nothing in it that the file does not say.`,
		Example: `  rootbound unwrap --all
  rootbound unwrap cursor --server files --write`,
		ValidArgsFunction: completeClients,
		RunE:              func(_ *cobra.Command, clients []string) error { return a.unwrap(o, clients) },
	}
	o.flags(a, cmd)
	return cmd
}

// flags defines what both commands have.
func (o *wrapOptions) flags(a *app, cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.all, "all", false, "every client that is known")
	f.StringArrayVar(&o.servers, "server", nil, "only the server `NAME`; may be repeated")
	cmd.RegisterFlagCompletionFunc("server", a.completeConfigured(o))
	f.BoolVar(&o.write, "write", false, "write the change; without it, it is only shown")
	f.StringVar(&o.project, "project", "", "the project `DIR` whose files count besides the user's (default: that of the working directory)")
}

// completeConfigured completes the name of a server of the clients that are named already, or of all.
func (a *app) completeConfigured(o *wrapOptions) cobra.CompletionFunc {
	return func(_ *cobra.Command, ids []string, _ string) ([]string, cobra.ShellCompDirective) {
		host, err := a.clientHost(o.project)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, f := range clientconf.Find(host) {
			for _, s := range f.Servers {
				if f.Place.Role == clientconf.Servers && (len(ids) == 0 || slices.Contains(ids, f.Client.ID)) && !slices.Contains(names, s.Name) {
					names = append(names, s.Name)
				}
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// configured are the files in which clients look for servers.
type configured struct {
	host  clientconf.Host
	files []*clientconf.File
	also  map[string][]string // by where it is: other clients that read the file
	dark  bool                // in a file that cannot be read there may be servers
}

// realPath is where a file is that links lead to.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// configured finds the files of the named clients, each once.
func (a *app) configured(o wrapOptions, ids []string) (*configured, error) {
	if len(ids) == 0 && !o.all {
		return nil, usageError{Err: withHint(errors.New("name a client, or --all"), "there are "+strings.Join(clientNames(), ", "))}
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
	at, found := map[string]bool{}, map[string]bool{}
	for _, f := range clientconf.Find(host) {
		if f.Place.Role != clientconf.Servers {
			continue
		}
		found[f.Client.ID] = true
		path := realPath(f.Path)
		switch {
		case !at[path] && (o.all || slices.Contains(ids, f.Client.ID)):
			at[path] = true
			c.files = append(c.files, f)
		default:
			c.also[path] = append(c.also[path], f.Client.Name)
		}
	}
	for _, id := range ids {
		if !found[id] {
			client, _ := clientconf.Lookup(id)
			fmt.Fprintf(a.err, "rootbound: no file of %s was found; docs/clients.md says where they are\n", client.Name)
		}
	}
	for _, f := range c.files {
		if i := slices.IndexFunc(f.Problems, func(p clientconf.Problem) bool { return p.Fatal }); i >= 0 && len(f.Servers) == 0 {
			c.dark = true
			fmt.Fprintf(a.err, "rootbound: error: %s\n", printable(f.Refusal(f.Problems[i]).Error()))
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
		hint := "`rootbound doctor` shows each server, and the file that it is in"
		if len(names) > 0 {
			slices.Sort(names)
			hint = among(name, slices.Compact(names))
		}
		return withHint(fmt.Errorf("there is no server %q in the files that were found", name), hint)
	}
	return nil
}

// clientHost is this machine, its user and the project.
func (a *app) clientHost(project string) (clientconf.Host, error) {
	h := clientconf.Host{OS: runtime.GOOS, Env: a.env}
	var err error
	if h.Home, err = os.UserHomeDir(); err != nil {
		return h, withHint(fmt.Errorf("finding the home directory: %w", err), "set that variable of the environment")
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

// done says that a server is changed, or is to be where nothing is written.
func (o wrapOptions) done(client *clientconf.Client, changed string) string {
	if o.write && client.Writable {
		return "is " + changed
	}
	return "is to be " + changed
}

func (a *app) wrap(o wrapOptions, ids []string) error {
	if o.print && o.write {
		return usageError{Err: errors.New("--print writes nothing: give it without --write")}
	}
	if writer, ok := clientconf.Written(ids); ok {
		return withHint(fmt.Errorf("%s: %s", writer.Name, writer.ReadOnly),
			fmt.Sprintf("put there what `rootbound wrap %s --print` prints", strings.Join(writer.Writes, " ")))
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
	e := edits{failed: c.dark}
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
	e := edits{failed: c.dark}
	for _, f := range c.files {
		var list []verdict
		for _, s := range f.Servers {
			switch {
			case !o.wants(s):
			case wrapped(s) && !f.Client.Writable:
				list = append(list, verdict{server: s, why: "stays as it is: take it out by hand, as " + f.Client.ReadOnly})
			case wrapped(s):
				list = append(list, verdict{server: s, change: true, why: o.done(f.Client, "unwrapped")})
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
