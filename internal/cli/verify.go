package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/doctor"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/streamable"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/verify"
	"github.com/rootbound/rootbound/roots"
)

// verifying is what the flags of `verify` say.
type verifying struct {
	config.Flags
	eras                     string
	only, tools              []string
	list, all, self, here    bool
	tell                     bool // print what is being tried as JSON, for the page, and no report
	unconfined               bool
	json, junit, sarif, html string
	race                     time.Duration
	failOn                   string
}

func (a *app) verifyCommand() *cobra.Command {
	v := verifying{eras: "both", failOn: "leaked", race: time.Second}
	cmd := &cobra.Command{
		Use:     "verify [flags] {-- COMMAND [ARG…] | --url URL | --client-config FILE --server NAME | --self}",
		Short:   "Show whether a server keeps its boundary",
		GroupID: groupLook,
		Long: `Start a server, act as a client of each era, and try what is known to get servers out of their roots: with a workspace of
its own, around which canaries lie that are recognised in whatever form they come back. The report says first what people
check by hand, then what was tried, what was expected, what came back, and what that means.

{roots} in the command stands for the roots of the workspace, {root:one}, {root:two} and {root:three} for each. Without them the server only learns of them as a client's roots.
The server is confined while it is tried (Linux, macOS), so that it is safe to try any: to the workspace and to what it needs to
run. A command that begins with rootbound is not: what that starts, it confines itself if it is told to.

A server without tools that read or write files ends as "nothing to judge", with what it opened and contacted until it had told
its tools (Linux; the network is closed to it, unless --net opens it). --tool names the tool for a role when it is not
recognised; the roles are: ` + strings.Join(verify.Roles(), ", ") + `.

--here asks only what people check by hand, of the roots that you configured (or of --root), and writes nothing in them.
--self tries rootbound fs, and a server that ignores roots with each of our layers in front, and shows what each contributes.

Exit codes: 0 nothing of what --fail-on says was found, 1 error, or the server did not go on serving, 2 wrong usage, 3 something was found.`,
		Example: `  rootbound verify -- npx -y @modelcontextprotocol/server-filesystem {roots}
  rootbound verify --json report.json --html report.html -- my-server {roots}
  rootbound verify -- rootbound run --root {root:one} --root {root:two} --root {root:three} -- my-server
  rootbound verify --here -- rootbound run -- my-server
  rootbound verify --self
  rootbound verify --tool read=fetch_document:location -- my-server`,
		RunE: func(cmd *cobra.Command, args []string) error {
			v.Command = args
			return a.verify(cmd.Context(), v)
		},
	}
	cmd.Flags().SetInterspersed(false)
	f := cmd.Flags()
	f.Var(choice{&v.eras, []string{"legacy", "modern", "both"}}, "era", "as a client of which era: legacy (the handshake revisions), modern (2026-07-28) or both")
	f.StringSliceVar(&v.only, "only", nil, "only the cases with this `ID` or of this class, with * for any characters; Q are the questions; may be repeated")
	cwd, _ := os.Getwd()
	f.StringVar(&v.URL, "url", "", "a server that is reached over HTTP, instead of COMMAND: its `URL`")
	f.BoolVar(&v.self, "self", false, "try rootbound itself, and show what each layer contributes")
	f.BoolVar(&v.here, "here", false, "ask what people check by hand of your own roots, and write nothing in them")
	f.Var(dirValue{&v.Roots, roots.ReadOnly, "--root", cwd}, "root", "with --here: a directory to ask about instead of those configured; may be repeated")
	f.BoolVar(&v.list, "list", false, "list the cases and try nothing")
	f.BoolVar(&v.all, "all", false, "show also the cases that held")
	f.StringArrayVar(&v.tools, "tool", nil, "the tool for a role, and the parameter that is its path: `ROLE=NAME[:ARG]`; may be repeated")
	f.DurationVar(&v.race, "race", v.race, "how long each race is run; 0 runs none")
	f.StringVar(&v.json, "json", "", "write the report as JSON to a `FILE`, - for standard output")
	f.StringVar(&v.junit, "junit", "", "write it as JUnit XML to a `FILE`")
	f.StringVar(&v.sarif, "sarif", "", "write it as SARIF to a `FILE`")
	f.StringVar(&v.html, "html", "", "write it as one HTML page to a `FILE`")
	f.Var(choice{&v.failOn, []string{"leaked", "any", "nothing"}}, "fail-on", "what makes the exit code 3: leaked, any (also what failed or does not tell) or nothing")
	f.StringVar(&v.Config, "client-config", "", "take the server from a configuration `FILE`, also one of a client")
	f.StringVar(&v.Server, "server", "", "the server's `NAME` in that file")
	f.BoolVar(&v.unconfined, "no-confine", false, "do not confine the server while it is tried: it runs as you")
	f.StringVar(&v.Net, "net", "", "what the server may reach while it is tried: `none|all|HOST:PORT`, several of the last with commas (default: none)")
	f.StringArrayVar(&v.AllowRead, "allow-read", nil, "a `FILE` or directory that it may read besides; may be repeated")
	f.StringArrayVar(&v.AllowRun, "allow-run", nil, "a `PROGRAM` that it may run besides; may be repeated")
	f.StringArrayVar(&v.AllowEnv, "allow-env", nil, "the `NAME` of an environment variable that it gets; may be repeated")
	f.BoolVar(&v.tell, "progress", false, "print what is being tried, one JSON object a line, and no report as text")
	cmd.RegisterFlagCompletionFunc("only", completeCases)
	cmd.RegisterFlagCompletionFunc("server", func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if _, files := a.clientFiles(v.Config); v.Config != "" && len(files) > 0 {
			return serverNames(files[0]), cobra.ShellCompDirectiveNoFileComp
		}
		return a.completeServers(&v.Config)(cmd, args, typed)
	})
	for name, values := range map[string][]string{"era": {"legacy", "modern", "both"}, "fail-on": {"leaked", "any", "nothing"}} {
		cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	rare(cmd, "allow-read", "allow-run", "allow-env", "net", "no-confine", "fail-on", "tool", "only", "progress")
	return cmd
}

func (a *app) verify(ctx context.Context, v verifying) error {
	if err := verify.CheckOnly(v.only); err != nil {
		return usageError{Err: withHint(fmt.Errorf("--only: %w", err), "`rootbound verify --list` lists the cases")}
	}
	if v.list {
		rows := [][]string{}
		for _, c := range verify.Cases(v.only...) {
			rows = append(rows, []string{c.ID, c.Class, c.Attempt})
		}
		return table(a.out, rows)
	}
	tools, err := namedTools(v.tools)
	if err != nil {
		return usageError{Err: err}
	}
	if err := transport.Adopt(); err != nil { // so that nothing that leaves a server's process group stays
		return fmt.Errorf("adopting what servers start: %w", err)
	}
	if v.self {
		if len(v.Command) > 0 || v.URL != "" {
			return usageError{Err: errors.New("--self tries rootbound itself, and no other server")}
		}
		return a.verifySelf(ctx, v)
	}
	dir, err := os.MkdirTemp("", "rootbound-verify-")
	if err != nil {
		return fmt.Errorf("making the workspace: %w", err)
	}
	defer os.RemoveAll(dir)
	t, err := a.newTested(ctx, v, dir)
	if err != nil {
		return err
	}
	defer t.close()
	o := v.options(a, t.start, dir)
	o.Opened, o.Elsewhere = t.opened, t.remote != nil
	o.Command, o.Filled, o.Guarded, o.Tools, o.Here = t.words, t.command.UsesRoots(), launch.Identify(t.command).Guarded, tools, t.here
	report, err := verify.Run(ctx, o)
	a.progressEnd()
	if err != nil {
		return t.said(ctx, fmt.Errorf("verifying the server: %w", err))
	}
	report.Server.Confined = t.held()
	if err := a.writeReport(report, v); err != nil {
		return err
	}
	switch rest := report.Count(verify.Failed) + report.Count(verify.Inconclusive); {
	case v.failOn == "nothing":
		return nil
	case report.Count(verify.Leaked) > 0, v.failOn == "any" && rest > 0:
		return exitStatus(exitFindings)
	case report.Unfinished != "":
		return t.said(ctx, fmt.Errorf("verifying the server: %s", report.Unfinished))
	}
	return nil
}

// completeCases are the ids and the classes of the cases.
func completeCases(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	words := []string{"Q\tquestions"}
	for _, c := range verify.Cases() {
		for _, word := range []string{c.ID + "\t" + c.Attempt, c.Class + "\tall of the class"} {
			if !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// trying is what is being tried, as --progress prints it.
type trying struct {
	Done int    `json:"done"`
	All  int    `json:"all"`
	What string `json:"what"`
}

// options are those that do not depend on the server.
func (v verifying) options(a *app, start func(context.Context, verify.Setup) (verify.Running, error), dir string) verify.Options {
	o := verify.Options{Dir: dir, Start: start, Only: v.only, Race: v.race, Progress: a.progress()}
	if v.race == 0 {
		o.Race = -1
	}
	if v.tell {
		o.Progress = func(done, all int, what string) {
			if line, err := json.Marshal(trying{done, all, what}); err == nil {
				fmt.Fprintf(a.out, "%s\n", line)
			}
		}
	}
	switch v.eras {
	case "legacy":
		o.Eras = []exchange.Era{exchange.Legacy}
	case "modern":
		o.Eras = []exchange.Era{exchange.Modern}
	}
	return o
}

// namedTools reads the values of --tool.
func namedTools(list []string) (map[string][2]string, error) {
	named := map[string][2]string{}
	for _, s := range list {
		role, tool, ok := strings.Cut(s, "=")
		name, arg, _ := strings.Cut(tool, ":")
		switch {
		case !ok || name == "":
			return nil, fmt.Errorf("--tool %q: want ROLE=NAME or ROLE=NAME:ARG", s)
		case !slices.Contains(verify.Roles(), role):
			return nil, fmt.Errorf("--tool %q: there is no role %q; the roles are %s", s, role, strings.Join(verify.Roles(), ", "))
		}
		named[role] = [2]string{name, arg}
	}
	return named, nil
}

// writeReport writes the report in each form that was asked for. Without one for programs on standard output it is text.
func (a *app) writeReport(r *verify.Report, v verifying) error {
	forms := []struct {
		file  string
		write func(io.Writer) error
	}{
		{v.json, r.WriteJSON}, {v.junit, r.WriteJUnit}, {v.html, r.WriteHTML},
		{v.sarif, func(w io.Writer) error { return r.WriteSARIF(w, version()) }},
	}
	text := !v.tell
	for _, f := range forms {
		var err error
		switch f.file {
		case "":
			continue
		case "-":
			text = false
			err = f.write(a.out)
		default:
			err = writeFile(f.file, f.write)
		}
		if err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	if !text {
		return nil
	}
	return r.WriteText(a.out, v.all)
}

// writeFile writes a file as a whole or not at all.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".rootbound-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// progress tells on a terminal what is being tried, at most ten times a second.
func (a *app) progress() func(done, all int, what string) {
	if !a.terminal() {
		return nil
	}
	var last time.Time
	return func(done, all int, what string) {
		if time.Since(last) < 100*time.Millisecond {
			return
		}
		last = time.Now()
		if r := []rune(what); len(r) > 60 {
			what = string(r[:60]) + "…"
		}
		fmt.Fprintf(a.err, "\r\x1b[K%d of %d: %s", done, all, calllog.Visible(what))
	}
}

func (a *app) progressEnd() {
	if a.terminal() {
		fmt.Fprint(a.err, "\r\x1b[K")
	}
}

// terminal reports whether standard error is one.
func (a *app) terminal() bool {
	f, ok := a.err.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && a.env("TERM") != "dumb"
}

// tested is a server that is tried: how it is started, and what holds it meanwhile.
type tested struct {
	command  launch.Command
	words    []string
	own      bool     // the command is this program, which may confine a server itself
	quiet    *os.File // where it says what nobody reads, but for the end of it
	last     *tail
	confined *confinement
	remote   func(e exchange.Era) *transport.Remote // of a server on another machine; nil for others
	here     []string                               // the user's own roots, when they are asked about
}

// tail keeps the end of what a server says on its standard error.
type tail struct {
	mu   sync.Mutex
	text []byte
	over chan struct{} // closed when no process has the other end any more
}

const maxTail = 2048

func (t *tail) read(r *os.File) {
	io.Copy(t, r)
	r.Close()
	close(t.over)
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-maxTail):]
	return len(b), nil
}

// said adds to an error what the server said last, if it said something.
func (t *tested) said(ctx context.Context, err error) error {
	if t.quiet == nil || ctx.Err() != nil {
		return err
	}
	t.quiet.Close()
	select {
	case <-t.last.over:
	case <-time.After(time.Second): // something that it started lives
	}
	t.last.mu.Lock()
	defer t.last.mu.Unlock()
	if text := strings.TrimSpace(string(t.last.text)); text != "" {
		return withHint(err, "the server said last:\n"+printableLines(text))
	}
	return err
}

// newTested finds the server that is meant, and makes what confines it: to the whole workspace. The caller closes it.
func (a *app) newTested(ctx context.Context, v verifying, workspace string) (*tested, error) {
	flags := v.Flags
	switch {
	case !v.here && len(v.Roots) > 0:
		return nil, usageError{Err: errors.New("--root says what --here asks about; else the roots are those of a workspace")}
	case !v.here:
		for _, name := range verify.Roots {
			dir := filepath.Join(workspace, name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				return nil, fmt.Errorf("making the workspace: %w", err)
			}
			flags.Roots = append(flags.Roots, config.DirFlag{Name: name, Dir: dir, Access: roots.ReadWrite, Flag: "--root"})
		}
	}
	if flags.Confine = !v.unconfined; flags.Confine {
		flags.AllowWrite = []string{workspace} // so that what leaks out of the roots in it can be seen
	}
	plan, err := a.tryPlan(flags)
	if err != nil {
		return nil, err
	}
	if err := plan.Runnable(); err != nil {
		return nil, usageError{Err: withHint(err, "write `rootbound verify -- COMMAND`; see `rootbound verify --help`")}
	}
	var here []string
	if v.here {
		for _, d := range plan.Roots.Dirs() {
			if d.Access&roots.Read != 0 && !d.File {
				here = append(here, d.Path)
			}
		}
		if len(here) == 0 {
			return nil, withHint(errors.New("asking about your own roots: none is configured"), "name them with --root DIR")
		}
	}
	if plan.URL.Value != "" {
		t, err := a.testedRemote(plan)
		if t != nil {
			t.here = here
		}
		return t, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the working directory: %w", err)
	}
	if fault := faultOf(plan.Command, plan.Roots, cwd, !v.unconfined); fault != nil {
		return nil, fault.told()
	}
	t := &tested{
		command: startable(plan.Command, cwd), words: calllog.RedactArgs(append([]string{plan.Command.Path}, plan.Command.Args...)), // a report is for others
		own: strings.TrimSuffix(filepath.Base(plan.Command.Path), ".exe") == "rootbound", here: here,
	}
	if !v.unconfined && !t.own {
		if err := t.hold(ctx, a, plan, cwd); err != nil {
			return nil, err
		}
	}
	t.last = &tail{over: make(chan struct{})}
	r, w, err := os.Pipe()
	if err != nil {
		t.close()
		return nil, err
	}
	t.quiet = w
	go t.last.read(r)
	return t, nil
}

// tryPlan is the plan of a server that is tried. One of a client's file is started as that client would start it, but for the directories
// in its arguments: where roots are given, they take the places of those.
func (a *app) tryPlan(flags config.Flags) (*config.Plan, error) {
	s, err := a.clientServer(flags.Config, flags.Server)
	if err != nil {
		return nil, err
	}
	if s == nil {
		plan, err := config.Resolve(a.system(), flags)
		if err != nil && a.isRemote(flags.Config, flags.Server) {
			err = fmt.Errorf("%s: the URL of %q is not read in this form: try it with `rootbound verify --url URL`, and --header for what it has to be sent",
				flags.Config, flags.Server)
		}
		return plan, err
	}
	command := startable(s.Command, s.Command.Dir)
	var outside *launch.OutsideError
	if len(flags.Roots) > 0 && errors.As(launch.CheckDirectories(command, roots.Set{}, string(filepath.Separator)), &outside) {
		command.Args = outside.Args
	}
	flags.Config, flags.Server, flags.Command = "", "", append([]string{command.Path}, command.Args...)
	plan, err := config.Resolve(a.system(), flags)
	if err != nil {
		return nil, err
	}
	plan.Command.Env = map[string]string{}
	for _, v := range s.Env {
		name, value, _ := strings.Cut(v, "=")
		plan.Command.Env[name] = value
	}
	return plan, nil
}

// clientServer is a server that is started here, of a file where a client looks for it. It is nil for one of another file, and for one
// with a URL.
func (a *app) clientServer(file, name string) (*doctor.Startable, error) {
	if file == "" || name == "" {
		return nil, nil
	}
	host, files := a.clientFiles(file)
	var names []string
	for _, f := range files {
		one := *f
		one.Servers = slices.DeleteFunc(slices.Clone(f.Servers), func(s *clientconf.Server) bool { return s.Name != name })
		if list := (doctor.Machine{Host: host}).Startables([]*clientconf.File{&one}); len(list) > 0 {
			return &list[0], nil
		}
		names = append(names, serverNames(f)...)
	}
	if len(names) > 0 && !slices.Contains(names, name) {
		return nil, usageError{Err: withHint(fmt.Errorf("%s: there is no server %q", file, name), among(name, names))}
	}
	return nil, nil
}

// isRemote reports whether a client's file has a server of that name with a URL.
func (a *app) isRemote(file, name string) bool {
	_, files := a.clientFiles(file)
	return slices.ContainsFunc(files, func(f *clientconf.File) bool {
		return slices.ContainsFunc(f.Servers, func(s *clientconf.Server) bool { return s.Name == name && s.Remote() })
	})
}

// clientFiles are a file as the clients read it that look for it there.
func (a *app) clientFiles(file string) (clientconf.Host, []*clientconf.File) {
	host, err := a.clientHost("")
	file, absent := filepath.Abs(file)
	if err != nil || absent != nil { // without a home nobody's places are known
		return host, nil
	}
	return host, slices.DeleteFunc(clientconf.Find(host), func(f *clientconf.File) bool {
		return f.Place.Role != clientconf.Servers || realPath(f.Path) != realPath(file)
	})
}

// serverNames are those of the servers that a client finds in a file.
func serverNames(f *clientconf.File) []string {
	var names []string
	for _, s := range f.Servers {
		if !s.Unread && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// testedRemote is a server on another machine.
func (a *app) testedRemote(plan *config.Plan) (*tested, error) {
	u, err := config.ParseURL(plan.URL.Value)
	if err != nil {
		return nil, fmt.Errorf("%s: reading the URL: %w", plan.URL.Origin, err)
	}
	header, err := a.headers(plan)
	if err != nil {
		return nil, err
	}
	auth, err := a.authorizer(u, header)
	if err != nil {
		return nil, err
	}
	return &tested{words: []string{config.PlainURL(u)}, remote: func(e exchange.Era) *transport.Remote {
		return transport.NewRemote(func(again func()) (transport.Link, error) {
			return streamable.Dial(streamable.DialOptions{URL: u, Header: header, Auth: auth, Agent: "rootbound/" + version(), Again: again,
				Report: func(string, ...any) {}, Note: func(string, ...any) {}}), nil
		}, transport.ProcessOptions{Protocol: transport.Protocol(e.String())})
	}}, nil
}

// startable is a command that can be started from elsewhere: its server begins in a directory that is none of its roots.
func startable(c launch.Command, cwd string) launch.Command {
	if strings.ContainsRune(c.Path, filepath.Separator) && !filepath.IsAbs(c.Path) {
		c.Path = filepath.Join(cwd, c.Path)
	}
	c.Args = slices.Clone(c.Args)
	for i, arg := range c.Args {
		if arg == "" || arg[0] == '-' || filepath.IsAbs(arg) {
			continue
		}
		if _, err := os.Stat(filepath.Join(cwd, arg)); err == nil {
			c.Args[i] = filepath.Join(cwd, arg)
		}
	}
	return c
}

func (t *tested) hold(ctx context.Context, a *app, plan *config.Plan, cwd string) error {
	c, err := newConfinement(plan, nil)
	if err != nil {
		return withHint(err, "--no-confine tries the server unconfined: it then runs as you")
	}
	r := &running{app: a, name: serverName(plan, cwd), log: calllog.Discard(), reports: map[string]int{}, stderr: make(chan string, 256)}
	go r.print()
	if t.command, err = c.start(ctx, r, t.command, cwd); err != nil {
		c.close()
		return err
	}
	t.confined = c
	return nil
}

func (t *tested) close() {
	if t.quiet != nil {
		t.quiet.Close()
	}
	if t.confined != nil {
		t.confined.close()
	}
	transport.KillDescendants()
}

// held says what the kernel held the server to.
func (t *tested) held() string {
	switch {
	case t.remote != nil:
		return "reached over HTTP, and held by nothing here"
	case t.own:
		return "not confined by this check, since the command is rootbound"
	case t.confined == nil:
		return "not confined"
	}
	return t.confined.String()
}

// filled is the command with the roots in it.
func (t *tested) filled(dirs []string) (roots.Set, launch.Command, error) {
	var list []roots.Dir
	for _, dir := range dirs {
		d, err := roots.Resolve(dir, roots.ResolveOptions{Name: filepath.Base(dir), Access: roots.ReadWrite})
		if err != nil {
			return roots.Set{}, launch.Command{}, err
		}
		list = append(list, d)
	}
	set := roots.NewSet(list...)
	filled, err := t.command.Fill(set)
	return set, filled, err
}

func (t *tested) startCommand(filled launch.Command, set roots.Set, dir string) (transport.Command, error) {
	if t.confined != nil {
		return t.confined.command(filled, t.confined.plan.Roots, dir)
	}
	return transport.Command{Args: append([]string{filled.Path}, filled.Args...), Env: environment(inherited(), filled.Env), Dir: dir}, nil
}

// start starts the server once more.
func (t *tested) start(_ context.Context, s verify.Setup) (verify.Running, error) {
	if t.remote != nil {
		r := t.remote(s.Era)
		return verify.Running{Handler: r, Close: r.Close}, nil
	}
	set, filled, err := t.filled(s.Roots)
	if err != nil {
		return verify.Running{}, err
	}
	process := transport.NewProcess(func() (transport.Command, error) {
		return t.startCommand(filled, set, s.Dir)
	}, transport.ProcessOptions{Stderr: t.quiet, Protocol: transport.Protocol(s.Era.String())})
	return verify.Running{Handler: process, Close: func() { process.Close() }}, nil
}
