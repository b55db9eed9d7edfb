package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/roots"
)

func (a *app) runCommand() *cobra.Command {
	o := &boundary{}
	cmd := &cobra.Command{
		Use:     "run [flags] -- COMMAND [ARG…]",
		Short:   "Stand between a client and a server, and keep the server inside its roots",
		GroupID: groupRun,
		Long: `Start the server COMMAND and stand between it and the client on standard input and output.

The server is told the roots, whatever the client says of them; every path that a request names is checked before the
server gets the request; everything is logged. Checking stops honest mistakes: a server that means harm can read what
your user can read.

Which directories: --root and --ro; else the directory arguments of a known filesystem server; else the project of the
working directory. In COMMAND {roots}, {root} and {root:NAME} are filled from them.

Exit codes: the server's own. Where there is none: 0 the client closed, 1 error, 2 wrong usage; 128+N when signal N
ended the server.`,
		Example: `  rootbound run -- npx -y @modelcontextprotocol/server-filesystem ~/project
  rootbound run --root ~/project --ro docs=/usr/share/doc -- my-server {roots}`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), o, args) },
	}
	cmd.Flags().SetInterspersed(false)
	o.flags(cmd)
	return cmd
}

// boundary is what `run` and `fs` have in common: which directories, what is asked, what is logged.
type boundary struct {
	dirs        []dirFlag
	clientRoots string
	strict      bool
	log         string
	ask         string
}

// dirFlag is a --root or --ro, in the order of the command line.
type dirFlag struct {
	value  string
	access roots.Access
	flag   string
}

// dirValue is the flag.Value that keeps the order of --root and --ro.
type dirValue struct {
	to     *[]dirFlag
	access roots.Access
	flag   string
}

func (v dirValue) String() string { return "" }
func (v dirValue) Type() string   { return "[NAME=]DIR" }
func (v dirValue) Set(s string) error {
	if s == "" {
		return errors.New("the directory is missing")
	}
	*v.to = append(*v.to, dirFlag{s, v.access, v.flag})
	return nil
}

func (o *boundary) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Var(dirValue{&o.dirs, roots.ReadWrite, "--root"}, "root", "a directory that the server may read and write; may be repeated")
	f.Var(dirValue{&o.dirs, roots.ReadOnly, "--ro"}, "ro", "a directory that the server may only read; may be repeated")
	f.StringVar(&o.clientRoots, "client-roots", "narrow", "what the client's own list counts for: narrow, ignore or accept")
	f.StringVar(&o.log, "log", "", "where the log goes: a directory, or off (default: the state directory)")
	f.BoolVar(&o.strict, "strict-protocol", false, "refuse what the protocol forbids but peers commonly do")
	f.StringVar(&o.ask, "ask", "client", "who asks a person before sensitive calls; only: client")
	complete := func(values ...string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return values, cobra.ShellCompDirectiveNoFileComp
		}
	}
	cmd.RegisterFlagCompletionFunc("client-roots", complete("narrow", "ignore", "accept"))
	cmd.RegisterFlagCompletionFunc("ask", complete("client"))
	rare(cmd, "strict-protocol", "ask")
}

// mode reads --client-roots.
func (o *boundary) mode() (roots.Mode, error) {
	if o.ask != "client" {
		return 0, usageError{withHint(fmt.Errorf("--ask %q is not known", o.ask), "the only value is client: questions are left to the client")}
	}
	switch o.clientRoots {
	case "narrow":
		return roots.Narrow, nil
	case "ignore":
		return roots.Ignore, nil
	case "accept":
		return roots.Accept, nil
	}
	return 0, usageError{withHint(fmt.Errorf("--client-roots %q is not known", o.clientRoots), "write narrow, ignore or accept")}
}

// resolve makes the configured directories: of the flags, else of a known server's own arguments, else of the work that
// the working directory lies in. Source says which.
func (o *boundary) resolve(own []dirFlag, ownSource string) (set roots.Set, source string, err error) {
	dirs, source := o.dirs, ""
	if len(dirs) == 0 {
		dirs, source = own, ownSource
	}
	var list []roots.Dir
	for _, d := range dirs {
		isDir := func(s string) bool { info, err := os.Stat(s); return err == nil && info.IsDir() }
		name, dir := launch.SplitName(d.value, isDir)
		r, err := roots.Resolve(dir, roots.ResolveOptions{Name: name, Access: d.access, AllowBroad: true, Origin: d.flag})
		if err != nil {
			return set, "", err
		}
		list = append(list, r)
		if source == "" {
			source = d.flag
		}
	}
	if len(list) > 0 {
		return roots.NewSet(list...), source, nil
	}
	cwd, err := os.Getwd()
	if err != nil {
		return set, "", nil // nothing is configured then
	}
	if work, ok := roots.Workspace(cwd); ok {
		r, err := roots.Resolve(work, roots.ResolveOptions{Access: roots.ReadWrite, Origin: "working directory"})
		if err != nil {
			return set, "", err
		}
		return roots.NewSet(r), "the project of the working directory", nil
	}
	return set, "", nil
}

func (a *app) run(ctx context.Context, o *boundary, args []string) error {
	mode, err := o.mode()
	if err != nil {
		return err
	}
	command := launch.Command{Path: args[0], Args: args[1:]}
	target := launch.Identify(command)
	profile, known := launch.Lookup(target)
	var own []dirFlag
	if known {
		for _, d := range profile.Directories(target) {
			if !launch.HasPlaceholder(d.Path) {
				access := d.Access
				if access == 0 {
					access = roots.ReadWrite
				}
				value := d.Path
				if d.Name != "" {
					value = d.Name + "=" + d.Path
				}
				own = append(own, dirFlag{value, access, "argument"})
			}
		}
	}
	configured, source, err := o.resolve(own, "the arguments of "+profile.Name)
	if err != nil {
		return err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("finding the working directory: %w", err)
	}
	if err := launch.CheckDirectories(command, configured, cwd); err != nil {
		return err
	}
	name := serverName(target, args[0])
	dir := childDir(command, configured, cwd)
	rules := pathargs.Rules{}
	if known {
		rules.Filesystem = profile.Filesystem
		if profile.Paths == launch.Elsewhere {
			rules.Where = pathargs.Elsewhere
		}
	}
	log, err := a.openLog(o.log, calllog.Record{
		Server: name, Command: args, Cwd: dir, ClientRoots: o.clientRoots, Dirs: logDirs(configured), Layers: []string{"told", "checked"},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	warn := func(text string) { fmt.Fprintf(a.err, "rootbound: %s: %s\n", name, text) }
	report := func(format string, v ...any) {
		text := fmt.Sprintf(format, v...)
		warn(text)
		log.Append(&calllog.Record{Kind: calllog.Note, Code: "protocol", Reason: text})
	}
	var g *guard.Guard
	process := transport.NewProcess(func() (transport.Command, error) {
		filled, err := command.Fill(g.Effective())
		if err != nil {
			return transport.Command{}, err
		}
		return transport.Command{Args: append([]string{filled.Path}, filled.Args...), Dir: dir}, nil
	}, transport.ProcessOptions{
		Strict: o.strict, Report: report,
		Exited: func(e *transport.ExitError, lost bool) {
			report("%s", e.Error())
			if lost {
				cancel(e)
			}
		},
	})
	opt := guard.Options{
		Server: name, Configured: configured, ClientRoots: mode, Strict: o.strict, Paths: rules,
		Process: pathargs.Process{Dir: dir, Home: a.env("HOME")}, Log: log, Warn: warn,
	}
	if command.UsesRoots() {
		opt.Restart = process.Restart
	}
	g = guard.New(opt)
	a.startLine(name, configured, source, mode, log)
	return a.serve(ctx, g, g.Wrap(process), log, report, func() error {
		exit := process.Close()
		transport.KillDescendants()
		if exit != nil && !exit.Stopped && exit.Code != 0 {
			return exitStatus(exit.Code)
		}
		return nil
	})
}

// serve serves the client on standard input and output until it closes, a signal comes or the server is lost, and closes
// everything behind it.
func (a *app) serve(ctx context.Context, g *guard.Guard, h exchange.Handler, log *calllog.Log, report func(string, ...any), end func() error) error {
	if err := transport.Adopt(); err != nil {
		report("descendants that leave the server's process group will not be found: %v", err)
	}
	watch, stop := context.WithCancel(ctx)
	go g.Watch(watch)
	err := transport.ServeStdio(ctx, a.in, a.out, h, transport.StdioOptions{Report: report})
	stop()
	var lost *transport.ExitError
	reason := "the client closed"
	switch {
	case errors.As(err, &lost):
		reason = lost.Error()
		err = nil
	case ctx.Err() != nil:
		reason, err = "a signal", nil
	case err != nil:
		reason = err.Error()
	}
	if e := end(); err == nil {
		err = e
	}
	code := exitDone
	var status exitStatus
	if errors.As(err, &status) {
		code = int(status)
	} else if err != nil {
		code = exitError
	}
	if cerr := log.Close(code, reason); err == nil && cerr != nil {
		err = fmt.Errorf("closing the log: %w", cerr)
	}
	return err
}

// openLog opens the log of this run.
func (a *app) openLog(where string, start calllog.Record) (*calllog.Log, error) {
	if where == "off" {
		return calllog.Discard(), nil
	}
	dir, err := a.dirOf(where)
	if err != nil {
		return nil, withHint(err, "name a directory with --log DIR, or write --log off")
	}
	start.Version, start.PID = version(), os.Getpid()
	log, err := calllog.Create(dir, start, calllog.Options{})
	if err != nil {
		return nil, withHint(err, "name another directory with --log DIR, or write --log off")
	}
	go calllog.Prune(dir, calllog.Policy{}) // what cannot be removed now is removed some other time
	return log, nil
}

// startLine says in one line what holds.
func (a *app) startLine(server string, set roots.Set, source string, mode roots.Mode, log *calllog.Log) {
	var b strings.Builder
	fmt.Fprintf(&b, "rootbound: %s: ", server)
	if set.Len() == 0 {
		b.WriteString("no directory is configured")
		if mode == roots.Accept {
			b.WriteString(": the client's list will be the boundary")
		} else {
			b.WriteString(": calls that name local paths are refused (configure one with --root DIR)")
		}
	} else {
		b.WriteString("roots ")
		for i, d := range set.Dirs() {
			if i > 0 {
				b.WriteString(", ")
			}
			if d.Name != "" {
				b.WriteString(d.Name + "=")
			}
			fmt.Fprintf(&b, "%s (%s)", d.Path, guard.LogDir(d).Access)
			if roots.Broad(d.Path) {
				b.WriteString(" — a broad one")
			}
		}
		b.WriteString(" from " + source)
	}
	b.WriteString("; told and checked, not confined")
	if p := log.Path(); p != "" {
		b.WriteString("; log " + p)
	}
	fmt.Fprintln(a.err, b.String())
}

func logDirs(set roots.Set) []calllog.Dir {
	var out []calllog.Dir
	for _, d := range set.Dirs() {
		out = append(out, guard.LogDir(d))
	}
	return out
}

// serverName is a short name for texts and the log.
func serverName(t launch.Target, program string) string {
	name := t.Name
	if name == "" {
		name = program
	}
	name = filepath.Base(name)
	return strings.TrimSuffix(strings.TrimPrefix(name, "server-"), ".exe")
}

// childDir is where the server starts: in the first root, unless the inherited directory lies in one, or the command is
// relative to it.
func childDir(c launch.Command, set roots.Set, cwd string) string {
	if strings.ContainsRune(c.Path, filepath.Separator) && !filepath.IsAbs(c.Path) || set.Len() == 0 {
		return cwd
	}
	for _, d := range set.Dirs() {
		if _, _, ok := set.Match(cwd); ok || d.File {
			return cwd
		}
		return d.Path
	}
	return cwd
}
