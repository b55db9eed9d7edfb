package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/consent"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/results"
	"github.com/rootbound/rootbound/internal/streamable"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

func (a *app) runCommand() *cobra.Command {
	var b boundary
	var o runOptions
	cmd := &cobra.Command{
		Use:     "run [flags] {-- COMMAND [ARG…] | --url URL}",
		Short:   "Stand between a client and a server, and keep the server inside its roots",
		GroupID: groupRun,
		Long: `Start the server COMMAND and stand between it and the client on standard input and output.

The server is told the roots, whatever the client says of them; every path that a request names is checked before the
server gets the request; links in answers that lead outside are taken out; everything is logged. Checking stops honest
mistakes: a server that means harm can read what your user can read, unless --confine lets the kernel hold it.

By rules some calls go and some are refused. Without any of yours, what writes or deletes, and what nobody knows anything
about, waits for the yes of a person (` + "`rootbound approve`" + `), unless the client is known to ask by itself. --ask client leaves
that to the client, and --preset boundary asks nothing.

With --url the server is one that is reached over HTTP, in any revision of MCP. Its disk counts as that of another machine,
wherever it runs: it is told no roots, and of the paths in its calls only file: URIs and ~/ are checked, or all by their text
with --remote-root.

Which directories: --root and --ro; else the configuration file; else the directory arguments of a known filesystem
server; else the project of the working directory. In COMMAND {roots}, {root} and {root:NAME} are filled from them, and
--root @active is the workspace that ` + "`rootbound roots use`" + ` chose.

With --listen it serves clients over HTTP instead, until a signal comes: each session of the revisions up to 2025-11-25 with a
process of the server of its own, all clients of 2026-07-28 with one.

Exit codes: the server's own. Where there is none: 0 the client closed, 1 error, 2 wrong usage; 128+N when signal N
ended the server.`,
		Example: `  rootbound run -- npx -y @modelcontextprotocol/server-filesystem ~/project
  rootbound run --root ~/project --ro docs=/usr/share/doc -- my-server {roots}
  rootbound run --confine --net api.example.com:443 --allow-env API_TOKEN --root ~/project -- my-server
  rootbound run --config mcp.json --server filesystem
  rootbound run --url https://mcp.example.com/mcp --header 'Authorization: Bearer ${env:EXAMPLE_TOKEN}'
  rootbound run --listen 127.0.0.1:8080 --root ~/project -- my-server {roots}`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.run(cmd.Context(), b.configFlags(args), o)
		},
	}
	cmd.Flags().SetInterspersed(false)
	f := cmd.Flags()
	f.BoolVar(&b.Confine, "confine", false, "let the kernel hold the server to its roots and to what it needs to run (Linux, macOS)")
	b.confineFlags(f)
	f.BoolVar(&o.refresh, "refresh", false, "install a confined server anew that a package runner (npx, uvx) would fetch")
	f.StringVar(&b.Pins, "pins", "", "where it is kept what the server says of itself: a `FILE`, or off (default: the state directory)")
	o.listen.flags(cmd)
	b.remoteFlags(cmd)
	noArgs := strings.TrimPrefix(clientconf.NoArgs, "--")
	f.Bool(noArgs, false, "written by wrap where a client's entry has no list of arguments; changes nothing")
	b.flags(a, cmd, slices.Concat(listenRarely, confineNames, remoteRarely, []string{"pins", "refresh", noArgs})...)
	return cmd
}

// runOptions say how a server is run, besides what is configured.
type runOptions struct {
	listen  listening
	refresh bool     // what is installed for it is installed anew
	learn   *learned // it is watched
}

// confineNames are the flags of confineFlags that are rarely needed.
var confineNames = []string{"allow-read", "allow-write", "allow-run", "allow-env", "allow-unix"}

// confineFlags are the flags for what a confined server may reach.
func (b *boundary) confineFlags(f *pflag.FlagSet) {
	f.StringVar(&b.Net, "net", "", "what a confined server may reach: `none|all|HOST:PORT`, several of the last with commas (default: none)")
	f.StringArrayVar(&b.AllowRead, "allow-read", nil, "a `FILE` or directory that a confined server may read besides; may be repeated")
	f.StringArrayVar(&b.AllowWrite, "allow-write", nil, "a `FILE` or directory that a confined server may write besides; may be repeated")
	f.StringArrayVar(&b.AllowRun, "allow-run", nil, "a `PROGRAM` that a confined server may run; may be repeated")
	f.StringArrayVar(&b.AllowEnv, "allow-env", nil, "the `NAME` of an environment variable that a confined server gets; may be repeated")
	f.BoolVar(&b.AllowUnix, "allow-unix", false, "let a confined server use Unix sockets")
}

// boundary is what `run` and `fs` have in common: which directories, what is asked, what is logged.
type boundary struct{ config.Flags }

// dirValue is a --root or --ro; both write into one list, which keeps their order.
type dirValue struct {
	to     *[]config.DirFlag
	access roots.Access
	flag   string
	cwd    string
}

func (v dirValue) String() string { return "" }
func (v dirValue) Type() string   { return "[NAME=]DIR" }
func (v dirValue) Set(s string) error {
	d, err := config.ParseDirFlag(v.flag, s, v.access, v.cwd)
	if err == nil {
		*v.to = append(*v.to, d)
	}
	return err
}

// choice is a flag that has one of a few values.
type choice struct {
	to     *string
	values []string
}

func (c choice) String() string {
	if c.to == nil {
		return ""
	}
	return *c.to
}
func (c choice) Type() string { return strings.Join(c.values, "|") }
func (c choice) Set(s string) error {
	if !slices.Contains(c.values, s) {
		return fmt.Errorf("%q is not one of %s", s, strings.Join(c.values, ", "))
	}
	*c.to = s
	return nil
}

// flags defines the flags. Only --help-all shows those of the command's own that are rarely needed.
func (b *boundary) flags(a *app, cmd *cobra.Command, rarely ...string) {
	cwd, _ := os.Getwd() // without one, relative directories fail when they are resolved
	f := cmd.Flags()
	f.Var(dirValue{&b.Roots, roots.ReadWrite, "--root", cwd}, "root", "a directory that the server may read and write; may be repeated")
	f.Var(dirValue{&b.Roots, roots.ReadOnly, "--ro", cwd}, "ro", "a directory that the server may only read; may be repeated")
	f.StringVar(&b.Config, "config", "", "a configuration `FILE`, also one of a client, instead of the user's")
	f.StringVar(&b.Server, "server", "", "the server `NAME` of the configuration file")
	f.StringVar(&b.Log, "log", "", "where the log goes: a `DIR`, or off (default: the state directory)")
	f.Var(choice{&b.ClientRoots, []string{"narrow", "ignore", "accept"}}, "client-roots", "what the client's own list of roots counts for")
	f.BoolVar(&b.StrictProtocol, "strict-protocol", false, "refuse what the protocol forbids but peers commonly do")
	f.Var(choice{&b.Ask, config.AskModes()}, "ask", "who asks a person, where a rule wants one asked (default: auto)")
	f.StringVar(&b.Preset, "preset", "", "which rules are looked at last: `NAME` is standard (the default), boundary, cautious or readonly")
	fixed := func(values ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	cmd.RegisterFlagCompletionFunc("client-roots", fixed("narrow", "ignore", "accept"))
	cmd.RegisterFlagCompletionFunc("ask", fixed(config.AskModes()...))
	cmd.RegisterFlagCompletionFunc("preset", fixed(config.Presets()...))
	cmd.RegisterFlagCompletionFunc("server", a.completeServers(&b.Config))
	rare(cmd, append(rarely, "client-roots", "strict-protocol", "preset")...)
}

func (b *boundary) configFlags(command []string) config.Flags {
	f := b.Flags
	f.Command = command
	return f
}

func (a *app) system() config.System {
	cwd, _ := os.Getwd()
	return config.System{Env: a.env, Dir: cwd, GOOS: runtime.GOOS}
}

// plan resolves the configuration for a command that runs something.
func (a *app) plan(f config.Flags) (*config.Plan, error) {
	plan, err := config.Resolve(a.system(), f)
	if err != nil {
		return nil, err
	}
	for _, n := range plan.Notes {
		fmt.Fprintf(a.err, "rootbound: %s\n", printable(n))
	}
	return plan, nil
}

func (a *app) run(ctx context.Context, f config.Flags, o runOptions) error {
	plan, err := a.plan(f)
	if err != nil {
		return err
	}
	if err := plan.Runnable(); err != nil {
		command := "run"
		if o.learn != nil {
			command = "learn"
		}
		return usageError{Err: withHint(err, fmt.Sprintf("write `rootbound %s -- COMMAND`; see `rootbound %[1]s --help`", command))}
	}
	if plan.URL.Given() {
		return a.runRemote(ctx, f, plan, o)
	}
	command := plan.Command
	cwd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("finding the working directory: %w", err)
	}
	dir := childDir(command, plan.Roots, cwd)
	if err := launch.CheckDirectories(command, plan.Roots, dir); err != nil {
		return err
	}
	confined, err := newConfinement(plan, o.learn)
	if err != nil {
		return err
	}
	ln, clients, err := o.listen.open(a)
	if err != nil {
		return err
	}
	if ln != nil {
		defer ln.Close()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, err := a.newRun(plan, serverName(plan, dir), dir, func() []approval.Layer { return childLayers(confined) })
	if err != nil {
		return err
	}
	fault := faultOf(command, plan.Roots, dir, confined != nil)
	if fault != nil && o.learn != nil {
		return r.fail(fault.told())
	}
	if confined != nil && fault != nil { // nothing can be made ready for it: so it is not started at all
		r.never = fault
	} else if confined != nil {
		defer confined.close()
		confined.again = o.refresh
		if command, err = confined.start(ctx, r, command, dir); err != nil {
			return r.fail(err)
		}
		r.confined = confined
	}
	home, _ := os.UserHomeDir() // without one, "~" in a path is a name like any other
	r.runs = identity(plan.Command, cwd)
	r.profile = a.profileOf(plan, confined)
	opt, err := r.options(plan, pathargs.Process{Dir: dir, Home: home})
	if err != nil {
		return r.fail(err)
	}
	opt.Held = confined != nil && o.learn == nil
	pins, file, err := r.pins(plan)
	if err != nil {
		return r.fail(err)
	}
	if opt.Pins = pins; pins != nil {
		opt.Own = append(opt.Own, file)
	}
	newPost := func(lost func(error)) *post {
		p := &post{}
		process := transport.NewProcess(func() (transport.Command, error) {
			return r.command(p.guard, command, dir)
		}, transport.ProcessOptions{
			Strict: plan.StrictProtocol.Value, Report: r.reportOfServer, Note: r.note, Memory: a.eras(identity(command, cwd), r.report),
			Again:    func(m *wire.Message) bool { return p.guard.Again(m) },
			Protocol: transport.Protocol(plan.ServerProtocol.Value),
			Confined: confined.reached,
			Said:     confined.listener(),
			Exited: func(e *transport.ExitError, gone bool) {
				r.report("%s", e.Error())
				if gone {
					lost(e)
				}
			},
		})
		opt := opt
		if (opt.Held || command.UsesRoots()) && plan.OnChange.Value != config.Notify {
			opt.Restart, opt.RestartNarrowed = process.Restart, plan.OnChange.Value == config.Restart
		}
		p.guard, p.close, p.revision = guard.New(opt), process.Close, process.Revision
		server := exchange.Handler(process)
		if r.never == nil {
			server = confined.explain(server)
		}
		p.handler = transport.Hold(transport.Protocol(plan.ClientProtocol.Value), p.guard.Wrap(server))
		return p
	}
	a.startLine(r, plan, childWords(confined))
	if fault != nil {
		r.complain(fault)
	}
	err = r.attend(ctx, f, plan, ln, clients, newPost, func(err error) { cancel(err) }, fault)
	if o.learn != nil {
		err = cmp.Or(o.learn.propose(confined, plan.Roots), err)
	}
	return err
}

// attend serves one client on standard input and output, or those that come to ln, each in front of a post. Lost is called when
// the only client's session is lost. Fault is why the server could not be started from the beginning.
func (r *running) attend(ctx context.Context, f config.Flags, plan *config.Plan, ln net.Listener, clients *streamable.Options,
	newPost func(lost func(error)) *post, lost func(error), fault *startFault) error {
	if ln != nil {
		all := newPost(func(error) {}) // which the next request starts again
		r.posts.add(ctx, all)
		clients.Stateless = all.handler
		clients.Session = func(lost func(error)) (exchange.Handler, func(), error) {
			one := newPost(lost)
			r.posts.add(ctx, one)
			return one.handler, func() {
				one.close()
				r.posts.remove(one)
			}, nil
		}
		return r.serve(ctx, f, plan, r.listen(ln, clients), func() *transport.ExitError {
			defer transport.KillDescendants()
			all.close()
			return nil
		})
	}
	one := newPost(lost)
	r.posts.add(ctx, one)
	return r.serve(ctx, f, plan, r.stdio(one.handler), func() *transport.ExitError {
		defer transport.KillDescendants()
		exit := one.close()
		if fault != nil && (exit == nil || exit.State == fault.Error()) {
			return transport.NotStarted(fault.program, errors.New(fault.reason()))
		}
		return exit
	})
}

// running is one server with its guard.
type running struct {
	app      *app
	name     string
	runs     string // what its name stands for, for consents; empty: what its name says
	log      *calllog.Log
	loggedBy string // where the guard in front of this one logs, when this one does not
	posts    posts
	policy   calllog.Policy
	confined *confinement                // of the server's process; nil for none
	never    *startFault                 // why the server is never started; nil where it may be
	limits   *limits                     // what is taken off what a configuration says; nil for nothing
	rules    pathargs.Rules              // for the arguments of calls, as at the start
	profile  profile                     // what is known of the server's tools; nil for nothing
	ours     bool                        // the server is our own, in this process
	answers  results.Actions             // what is done about what is in answers, where nobody says
	plan     atomic.Pointer[config.Plan] // of the configuration as it was read last
	fault    string                      // what was wrong with it when it was read last
	approve  approver                    // how a person is asked
	board    *approval.Board             // tells what this is now
	layers   func() []approval.Layer     // by what the server is held now
	// listening is where clients reach it over HTTP; nil on standard input.
	listening atomic.Pointer[string]

	mu         sync.Mutex
	reports    map[string]int // how often each kind of oddity was reported
	complained string         // what was said last of a start that failed
	stderr     chan string    // what waits to be printed: nobody waits for whoever reads it
}

// newRun opens the log of a server. Layers say by what it is held.
func (a *app) newRun(plan *config.Plan, name, dir string, layers func() []approval.Layer) (*running, error) {
	log, policy, err := a.openLog(plan, name, dir, held(layers()))
	if err != nil {
		return nil, err
	}
	r := &running{app: a, name: name, log: log, policy: policy, answers: results.Defaults(), reports: map[string]int{}, stderr: make(chan string, 256)}
	r.board, r.layers = approval.NewBoard(nil), layers
	r.posts.board = r.board
	r.plan.Store(plan)
	go r.print()
	return r, nil
}

// fail ends the log of a run that could not begin, and returns its error.
func (r *running) fail(err error) error {
	r.flush()
	r.approve.end() // it had nothing to say yet
	if cerr := r.log.Close(exitError, err.Error()); cerr != nil {
		return fmt.Errorf("%w; closing the log: %w", err, cerr)
	}
	return err
}

func (r *running) warn(text string) {
	select {
	case r.stderr <- fmt.Sprintf("rootbound: %s: %s\n", printable(r.name), printable(text)):
	default: // it is in the log
	}
}

// print prints what warn was given.
func (r *running) print() {
	for text := range r.stderr {
		io.WriteString(r.app.err, text)
	}
}

// flush waits until what was to be printed is, as far as somebody reads it.
func (r *running) flush() {
	for deadline := time.Now().Add(time.Second); len(r.stderr) > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// report takes an oddity of a peer: to the person and to the log.
func (r *running) report(format string, v ...any) {
	r.mu.Lock()
	r.reports[format]++
	n := r.reports[format]
	r.mu.Unlock()
	if n > 16 && n&(n-1) != 0 {
		return // a peer that goes on like this fills no disk
	}
	text := fmt.Sprintf(format, v...)
	if n > 16 {
		text += fmt.Sprintf(" (%d times now)", n)
	}
	r.warn(text)
	if err := r.log.Append(&calllog.Record{Kind: calllog.Note, Code: "protocol", Reason: text}); err != nil {
		r.warn("the log: " + err.Error())
	}
}

// reportOfServer is report for what stands before the server, which also tells of starts that failed.
func (r *running) reportOfServer(format string, v ...any) {
	if len(v) == 1 && format == "%v" {
		if err, ok := v[0].(error); ok {
			r.complain(err)
			return
		}
	}
	r.report(format, v...)
}

// complain tells why the server could not be started, each time that it is something else.
func (r *running) complain(err error) {
	if fault := (*startFault)(nil); errors.As(err, &fault) {
		err = fault.told()
	} else {
		err = unstarted(err)
	}
	text := complaint(err)
	r.mu.Lock()
	again := r.complained == text
	r.complained = text
	r.mu.Unlock()
	if again {
		return
	}
	select {
	case r.stderr <- text:
	default: // it is in the log
	}
	if hint := (hintError{}); errors.As(err, &hint) {
		r.note("%v; %s", err, hint.hint)
		return
	}
	r.note("%v", err)
}

// note takes what is only for the log.
func (r *running) note(format string, v ...any) {
	if err := r.log.Append(&calllog.Record{Kind: calllog.Note, Code: "protocol", Reason: fmt.Sprintf(format, v...)}); err != nil {
		r.warn("the log: " + err.Error())
	}
}

// command is what the server is started with now: with the roots that hold filled in.
func (r *running) command(g *guard.Guard, c launch.Command, dir string) (transport.Command, error) {
	if r.never != nil {
		return transport.Command{}, r.never
	}
	set := g.Starting()
	filled, err := c.Fill(set)
	if err != nil {
		return transport.Command{}, fmt.Errorf("filling the roots into the command: %w", err)
	}
	if fault := unstartable(filled, dir); fault != nil {
		return transport.Command{}, fault
	}
	if c.UsesRoots() || r.confined != nil {
		rec := calllog.Record{Kind: calllog.RootsChanged, Code: guard.CodeStarted, Reason: "the server is started with them", After: guard.LogDirs(set)}
		if err := r.log.Append(&rec); err != nil {
			return transport.Command{}, fmt.Errorf("logging which roots the server is started with: %w", err)
		}
	}
	if filled.Dir != "" {
		dir = filled.Dir
	}
	if r.confined != nil {
		return r.confined.command(filled, set, dir)
	}
	env := environment(inherited(), map[string]string{askedBy: strconv.Itoa(os.Getpid())}, filled.Env)
	return transport.Command{Args: append([]string{filled.Path}, filled.Args...), Env: env, Dir: dir}, nil
}

// options makes the guard's options of a plan.
func (r *running) options(plan *config.Plan, process pathargs.Process) (guard.Options, error) {
	tools, defaults, err := toolRules(plan)
	if err != nil {
		return guard.Options{}, err
	}
	r.rules = pathRules(plan, r.name, tools)
	r.rules.Filesystem = r.rules.Filesystem || r.ours
	own := slices.DeleteFunc(slices.Clone(plan.Watched), func(path string) bool { return slices.Contains(plan.Missing, path) })
	if dir, err := r.app.logDir(); err == nil {
		own = append(own, filepath.Dir(dir)) // the log, and the consents
	}
	if path := r.log.Path(); path != "" {
		own = append(own, filepath.Dir(path))
	}
	var consents *consent.Watch
	if plan.ClientRoots.Value == roots.Accept || plan.URL.Given() && plan.ShareRoots.Value {
		file, err := r.app.consents()
		if err != nil {
			return guard.Options{}, err
		}
		consents = file.Watch(consent.Server{Name: r.name, Runs: cmp.Or(r.runs, r.name)})
	}
	answers := plan.Results.Options(r.answers)
	asks := r.approver(plan)
	if r.approve.dir != "" {
		own = append(own, r.approve.dir)
	}
	return guard.Options{
		Server: r.name, Configured: plan.Roots, ClientRoots: plan.ClientRoots.Value, Strict: plan.StrictProtocol.Value,
		Quiet: plan.ListChanged.Given() && !plan.ListChanged.Value, Paths: r.rules, Process: process, Defaults: defaults,
		Policy:  r.guardPolicy(plan),
		Consent: consents, Own: own, Results: &answers, Approval: asks, Board: r.board, Log: r.log, Warn: r.warn, Widen: r.widen,
		Rights: func(dir string) string { return r.app.rights(r.plan.Load(), dir) },
	}, nil
}

// pathRules say which arguments of a server's tools are paths, and of which machine.
func pathRules(plan *config.Plan, name string, tools map[string]pathargs.ToolRules) pathargs.Rules {
	rules := pathargs.Rules{Filesystem: plan.Known && plan.Profile.Filesystem, Tools: tools, Also: rulePaths(plan, name)}
	switch {
	case plan.URL.Given() && len(plan.RemoteRoots.Value) > 0:
		rules.Where, rules.Dirs = pathargs.Remote, plan.RemoteRoots.Value
	case plan.Paths.Value == launch.Elsewhere:
		rules.Where = pathargs.Elsewhere
	}
	return rules
}

// toolRules are the exceptions for the arguments of tools, and what is filled in for missing ones.
func toolRules(plan *config.Plan) (map[string]pathargs.ToolRules, map[string]map[string]string, error) {
	rules, defaults := map[string]pathargs.ToolRules{}, map[string]map[string]string{}
	for name, t := range plan.Tools {
		for _, list := range []config.Setting[[]string]{t.Paths, t.NotPaths} {
			for _, arg := range list.Value {
				if err := policy.CheckName(arg); err != nil {
					return nil, nil, fmt.Errorf("%s: argument %q of the tool %q: %w", list.Origin, arg, name, err)
				}
			}
		}
		rules[name] = pathargs.ToolRules{Paths: t.Paths.Value, NotPaths: t.NotPaths.Value}
		if len(t.Defaults.Value) > 0 {
			defaults[name] = t.Defaults.Value
		}
	}
	return rules, defaults, nil
}

// widen says how one more directory is opened, where the roots came from: another source would take the place of theirs.
func (r *running) widen(dir string) string {
	plan := r.plan.Load()
	dir = guard.ShellQuote(dir)
	if list := listOf(plan); list != nil && list.Active {
		return "rootbound roots use " + dir + ", which switches to it"
	}
	switch plan.Source {
	case config.FromArguments:
		return "add " + dir + " to the server's own arguments"
	case config.FromFile:
		return "rootbound roots add " + r.app.listFlags(plan) + dir
	case config.FromWorkspace:
		all := ""
		for _, d := range plan.Roots.Dirs() {
			all += "--root " + guard.ShellQuote(d.Path) + " "
		}
		return all + "--root " + dir
	}
	return "--root " + dir + ", beside the options that are there"
}

// listFlags are those that lead `rootbound roots` to the list of a file that the roots of a plan are in.
func (a *app) listFlags(plan *config.Plan) string {
	flags := ""
	if file, err := a.system().UserFile(); err != nil || plan.RootsFile != file {
		flags = "--config " + guard.ShellQuote(plan.RootsFile) + " "
	}
	if plan.OwnRoots { // else it would be the beginning of a list that takes the place of the one for all
		flags += "--server " + guard.ShellQuote(plan.Server) + " "
	}
	return flags
}

// rights says how everything is let be done in a root of a plan.
func (a *app) rights(plan *config.Plan, dir string) string {
	dir = guard.ShellQuote(dir)
	if plan.Source == config.FromFile {
		return "rootbound roots set " + a.listFlags(plan) + dir + " --access rw"
	}
	return fmt.Sprintf("--root %s instead of --ro %[1]s", dir)
}

// stdio returns what serves the client on standard input and output.
func (r *running) stdio(h exchange.Handler) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		// Two reads wait nearly always. Where they have all processors of the runtime, a watch looks every 20 µs whether one is to be
		// taken away, in the time of what is passed on.
		runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0)))
		return transport.ServeStdio(ctx, r.app.in, r.app.out, h, transport.StdioOptions{Report: r.report})
	}
}

// begun is after what time a client has its first answer, nearly always: what it need not wait for begins then.
const begun = 200 * time.Millisecond

// serve has clients served until there are none any more, a signal comes or the server is lost, follows the configuration meanwhile,
// and closes everything behind it.
func (r *running) serve(ctx context.Context, f config.Flags, plan *config.Plan, clients func(context.Context) error, end func() *transport.ExitError) error {
	if err := transport.Adopt(); err != nil {
		r.report("descendants that leave the server's process group will not be found: %v", err)
	}
	watch, stop := context.WithCancel(ctx)
	f.Server, f.ForAll = plan.Server, plan.Server == "" // also when one is added to the file, where it was the only one
	prune := sync.OnceFunc(func() {
		if path := r.log.Path(); path != "" {
			calllog.Prune(filepath.Dir(path), r.policy) // what cannot be removed now is removed another time
		}
	})
	time.AfterFunc(begun, func() {
		if watch.Err() == nil {
			go prune()
			config.Watch(watch, r.app.system(), f, plan, r.changed) // it first looks what changed since the plan was made
		}
	})
	err := clients(ctx)
	stop()
	signalled := ctx.Err() != nil
	exit := end()
	if aerr := r.approve.end(); aerr != nil {
		r.report("%v", aerr)
	}
	var lost *transport.ExitError
	reason, code := "the client closed", exitDone
	switch failed := exit != nil && !exit.Stopped && exit.Code != 0; {
	case failed || errors.As(context.Cause(ctx), &lost): // also where the client, who was told, closed at once
		reason, err = exit.Error(), nil
		if failed {
			code, err = exit.Code, exitStatus(exit.Code)
		}
	case errors.Is(context.Cause(ctx), errStarterGone):
		reason, err = errStarterGone.Error(), nil
	case signalled:
		reason, err = "a signal", nil
	case err != nil:
		reason, code = err.Error(), exitError
	}
	r.flush()
	prune()
	if cerr := r.log.Close(code, reason); err == nil && cerr != nil {
		err = fmt.Errorf("closing the log: %w", cerr)
	}
	return err
}

// changed puts a saved configuration in force; an invalid one is told, and the one before stays.
func (r *running) changed(plan *config.Plan, err error) {
	if err != nil {
		if r.fault != err.Error() {
			r.report("the changed configuration is not in force%s: %v", r.limits.hint(err), err)
		}
		r.fault = err.Error()
		return
	}
	tools, defaults, err := toolRules(plan)
	if err != nil {
		r.changed(plan, err)
		return
	}
	r.fault = ""
	before := r.plan.Swap(plan)
	defer r.board.Changed()
	rules := r.rules // what the server is stays as it was started
	rules.Tools, rules.Also = tools, rulePaths(plan, r.name)
	r.posts.set(rules, defaults, plan.Results.Options(r.answers), r.guardPolicy(plan), r.limits.of(r, plan))
	var now, later []string
	values := map[string]string{}
	for _, row := range plainRows(plan) {
		values[row.Key] = row.Value
	}
	for _, row := range plan.Changed(before) {
		text := fmt.Sprintf("%s = %q", row.Key, values[row.Key])
		if row.Value == "" {
			text = row.Key + " taken out"
		}
		switch key := row.Key; {
		case key == "active", key == "roots", strings.HasPrefix(key, "roots["): // the guard says what that changes
		case strings.HasPrefix(key, "tool."), strings.HasPrefix(key, "results."), ofPolicy(key):
			now = append(now, text)
		default:
			later = append(later, text)
		}
	}
	if len(now) > 0 {
		r.report("the configuration changed, which holds now: %s", strings.Join(now, ", "))
	}
	if len(later) > 0 {
		r.report("the configuration changed, which holds from the next start of this guard on: %s", strings.Join(later, ", "))
	}
	for _, note := range plan.Notes {
		if !slices.Contains(before.Notes, note) {
			r.report("%s", note)
		}
	}
}

// openLog opens the log of this run.
func (a *app) openLog(plan *config.Plan, name, dir string, layers []string) (*calllog.Log, calllog.Policy, error) {
	policy := calllog.Policy{Age: time.Duration(plan.Log.KeepDays.Value) * 24 * time.Hour, Bytes: int64(plan.Log.MaxMB.Value) << 20}
	if plan.Log.Enabled.Given() && !plan.Log.Enabled.Value {
		return calllog.Discard(), policy, nil
	}
	hint := "name a directory with --log DIR, or write --log off"
	where := plan.Log.Dir.Value
	if where == "" {
		var err error
		if where, err = a.logDir(); err != nil {
			return nil, policy, withHint(err, hint)
		}
	}
	start := calllog.Record{
		Server: name, Version: version(), PID: os.Getpid(), Cwd: dir, ClientRoots: modeWord(plan.ClientRoots.Value), Dirs: guard.LogDirs(plan.Roots),
		Layers: layers,
	}
	if u, err := config.ParseURL(plan.URL.Value); err == nil {
		start.Command = []string{config.PlainURL(u)}
	}
	if plan.Command.Path != "" {
		start.Command = append([]string{plan.Command.Path}, plan.Command.Args...)
		start.Env = slices.Sorted(maps.Keys(plan.Command.Env))
	}
	log, err := calllog.Create(where, start, calllog.Options{Sync: plan.Log.Sync.Value, Bodies: plan.Log.Bodies.Value})
	if err != nil {
		return nil, policy, withHint(err, hint)
	}
	return log, policy, nil
}

func modeWord(m roots.Mode) string {
	switch m {
	case roots.Ignore:
		return "ignore"
	case roots.Accept:
		return "accept"
	}
	return "narrow"
}

// startLine says in one line what holds. Layers is by what.
func (a *app) startLine(r *running, plan *config.Plan, layers string) {
	var b strings.Builder
	if plan.Roots.Len() == 0 {
		b.WriteString("no directory is configured: ")
		if plan.ClientRoots.Value == roots.Accept {
			b.WriteString("the boundary is what the client opens and you consent to")
		} else {
			b.WriteString("calls that name local paths are refused (configure one with --root DIR)")
		}
	} else {
		b.WriteString("roots ")
		for i, d := range plan.Roots.Dirs() {
			if i > 0 {
				b.WriteString(", ")
			}
			if d.Name != "" {
				b.WriteString(d.Name + "=")
			}
			fmt.Fprintf(&b, "%s (%s)", d.Path, guard.LogDir(d).Access)
			if roots.Broad(d.Path) {
				b.WriteString(", which is very wide,")
			}
		}
		b.WriteString(" from " + plan.Source.String())
	}
	b.WriteString("; " + layers)
	switch p := r.log.Path(); {
	case p != "":
		b.WriteString("; log " + p)
	case r.loggedBy != "":
		b.WriteString("; logged by the guard in front, in " + r.loggedBy)
	default:
		b.WriteString("; nothing is logged")
	}
	asks := (plan.Ask.Value == policy.AskAuto || plan.Ask.Value == policy.AskAlways) && !r.app.askedInFront()
	if asks && r.approve.open && strings.HasSuffix(layers, "not confined") {
		b.WriteString("; without --confine a hostile server could answer for you")
	}
	r.warn(b.String())
}

// serverName is a short name for texts and the log.
func serverName(plan *config.Plan, dir string) string {
	if plan.Server != "" {
		return plan.Server
	}
	name := launch.Identify(plan.Command).Name
	if name == "" {
		if script := plan.Command.Script(); script != "" {
			return launch.ScriptName(script, dir)
		}
		name = plan.Command.Path
	}
	if strings.Contains(plan.Command.Path, "://") { // an address in the wrong place, which may hold a secret
		name, _, _ = strings.Cut(name, "?")
	}
	name = string([]rune(name)) // as it is kept in files
	return strings.TrimPrefix(strings.TrimSuffix(filepath.Base(name), ".exe"), "server-")
}

// childDir is where the server starts: in the first root, unless the inherited directory lies in one, or the command, or
// the script that it runs, is relative to it.
func childDir(c launch.Command, set roots.Set, cwd string) string {
	if strings.ContainsRune(c.Path, filepath.Separator) && !filepath.IsAbs(c.Path) {
		return cwd
	}
	first := c.Script()
	if i := slices.IndexFunc(c.Args, func(arg string) bool { return !strings.HasPrefix(arg, "-") }); first == "" && i >= 0 {
		first = c.Args[i]
	}
	if info, err := os.Stat(filepath.Join(cwd, first)); err == nil && info.Mode().IsRegular() && !filepath.IsAbs(first) {
		return cwd
	}
	if _, _, inside := set.Match(cwd); inside {
		return cwd
	}
	for _, d := range set.Dirs() {
		if !d.File && d.Access != 0 {
			return d.Path
		}
	}
	return cwd
}
