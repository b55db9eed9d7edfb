package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/fsserver"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/results"
	"github.com/rootbound/rootbound/internal/sandbox"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// fsFlags is what the command line says of a filesystem server.
type fsFlags struct {
	readOnly, compat, redact bool
	links                    string
	strictLinks, noMounts    bool
	deny                     []string
	noDefaultDeny            bool
	noLandlock               bool
}

func (a *app) fsCommand() *cobra.Command {
	var b boundary
	var f fsFlags
	var l listening
	cmd := &cobra.Command{
		Use:     "fs [flags] [NAME=]DIR…",
		Short:   "Serve files of these directories and of nothing else",
		GroupID: groupRun,
		Long: `Serve files on standard input and output, in place of the reference filesystem server: its tools, and more of them,
and the directories and what is in them as resources. Everything is opened beneath a handle of a root, so nothing outside
can be reached: not by "..", not by a link, not by a race. Where the kernel can (Linux 6.2 and later), it holds the process
to the same directories; the first line on standard error says whether it does.

A call that writes, deletes or moves waits for the yes of a person (` + "`rootbound approve`" + `), unless the client is known to ask
by itself. --ask client leaves that to the client, and --preset boundary asks nothing.

Where the client has roots of its own, they narrow the directories and never widen them. One of several that is not there is
served as soon as it is.

Without a directory the roots of the configuration file are served, else the project that the working directory lies in: what
version control says is its top, or else the nearest directory with a project file such as package.json. Where there is none
of these, every call is refused, unless --client-roots accept takes the directories that the client opens and you consent to.
The first line on standard error says what is served, and why.

Files that hold keys and passwords by their names, such as .env and id_rsa, are listed and not opened. --deny denies
more, and --deny '!NAME' spares one.

With --listen it serves clients over HTTP instead, until a signal comes.

` + exitCodes,
		Example: `  rootbound fs ~/project
  rootbound fs frontend=~/frontend --ro docs=/usr/share/doc
  rootbound fs --read-only --deny 'secrets/' ~/project
  rootbound fs --listen 127.0.0.1:8080 ~/project`,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		RunE: func(cmd *cobra.Command, args []string) error {
			cwd, _ := os.Getwd()
			var dirs []config.DirFlag
			for _, arg := range args {
				d, err := config.ParseDirFlag("DIR", arg, roots.ReadWrite, cwd)
				if err != nil {
					return usageError{Err: err}
				}
				dirs = append(dirs, d)
			}
			b.Roots = append(dirs, b.Roots...) // a relative path begins in the first
			return a.serveFiles(cmd.Context(), b.configFlags(nil), f, l)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.readOnly, "read-only", false, "nothing may be changed, whatever a directory allows")
	fl.StringArrayVar(&f.deny, "deny", nil, "a `PATTERN`, as in .gitignore, of names that are not opened; may be repeated")
	fl.BoolVar(&f.noDefaultDeny, "no-default-deny", false, "open also what holds keys and passwords by its name")
	f.links = "within"
	fl.Var(choice{&f.links, []string{"none", "within"}}, "links", "which symbolic links are followed: none, or those that end within the directories")
	fl.BoolVar(&f.strictLinks, "strict-links", false, "refuse files with a second name (hard links)")
	fl.BoolVar(&f.noMounts, "no-mounts", false, "refuse to cross into file systems that are mounted in a directory")
	fl.BoolVar(&f.compat, "compat", false, "exactly what the reference filesystem server has, and files of keys too")
	fl.BoolVar(&f.redact, "redact-errors", false, "name no path of this machine in errors")
	fl.BoolVar(&f.noLandlock, "no-landlock", false, "do not let the kernel hold this process to the directories too")
	cmd.RegisterFlagCompletionFunc("links", cobra.FixedCompletions([]string{"none", "within"}, cobra.ShellCompDirectiveNoFileComp))
	l.flags(cmd)
	cmd.Flags().Lookup("max-sessions").Usage = "how many sessions there may be at a time: `N` (default 1024)"
	b.flags(a, cmd, append(listenRarely, "no-default-deny", "links", "strict-links", "no-mounts", "redact-errors", "no-landlock")...)
	return cmd
}

// referenceStarted is what the reference server says on standard error when it is ready, for programs that wait for it. Of
// its other lines, which tell of roots, none is printed: the guard tells of them in its own words.
const referenceStarted = "Secure MCP Filesystem Server running on stdio"

// loggedBy is the variable in which a server that is started confined finds where its guard logs, or logOff. It may not write
// there itself.
const (
	loggedBy = "ROOTBOUND_LOGGED_BY"
	logOff   = "off"
)

func (a *app) serveFiles(ctx context.Context, flags config.Flags, f fsFlags, clients listening) error {
	deny, err := fsserver.NewDeny(f.deny, !f.compat && !f.noDefaultDeny)
	if err != nil {
		return usageError{Err: fmt.Errorf("reading --deny: %w", err)}
	}
	flags.Partial = true
	plan, err := a.plan(flags)
	if err != nil {
		return err
	}
	ln, at, err := clients.open(a) // before the kernel holds this process
	if err != nil {
		return err
	}
	if ln != nil {
		defer ln.Close()
	}
	l := &limits{readOnly: f.readOnly}
	switch _, err := sandbox.Supported(); {
	case f.noLandlock:
		l.off = "--no-landlock is given"
	case err != nil:
		l.off = err.Error()
	case slices.ContainsFunc(flags.Roots, func(d config.DirFlag) bool { return d.Dir == launch.Active }):
		l.off = "the active workspace may become another one"
	}
	allowed := *plan
	allowed.Roots = l.narrowed(plan.Roots)
	guarded := a.env(loggedBy)
	if o := plan.Log.Enabled.Origin; plan.Log.Dir.Given() || o.File != "" || strings.HasPrefix(o.Word, "--") {
		guarded = "" // somebody has said what is logged
	}
	if guarded != "" { // whoever confines this process has logged each call before it comes here
		allowed.Log.Enabled = config.Setting[bool]{Origin: config.Origin{Word: loggedBy}}
	}
	r, err := a.newRun(&allowed, "fs", "", func() []approval.Layer {
		return []approval.Layer{{Name: layerContained, Holds: true, Text: "opened by handle"}, {Name: layerConfined, Holds: l.enforced(), Text: l.String()}}
	})
	if err != nil {
		return err
	}
	r.answers = results.Nothing() // what the user's own files hold is looked at when it is asked for
	r.ours = true
	if guarded != logOff {
		r.loggedBy = guarded
	}
	opt, err := r.options(&allowed, pathargs.Process{})
	if err != nil {
		return r.fail(err)
	}
	g := guard.New(opt)
	if l.confine(r, plan); plan.Confine.Value && !l.level.Enforced() {
		return r.fail(fmt.Errorf("confining this process, as %s wants: %s", plan.Confine.Origin, l.why))
	}
	r.limits = l
	a.startLine(r, &allowed, "opened by handle; "+l.String())
	if f.compat {
		fmt.Fprintln(a.err, referenceStarted)
	}
	home, _ := os.UserHomeDir() // without one, "~" in a path is a name like any other
	links := rootfs.LinksWithin
	if f.links == "none" {
		links = rootfs.NoLinks
	}
	server := fsserver.New(fsserver.Options{
		Name: "rootbound-fs", Title: "Rootbound filesystem", Version: version(), Home: home,
		Compat: f.compat, ReadOnly: f.readOnly, Redact: f.redact,
		Protection: func() string { return "every file is opened by handle beneath its directory; " + l.String() },
		Own:        opt.Own, OwnNames: config.FileNames(), Deny: deny,
		Files: rootfs.Options{Links: links, StrictLinks: f.strictLinks, NoMounts: f.noMounts},
	})
	one := &post{guard: g, handler: g.WrapContained(server)}
	r.posts.add(ctx, one)
	serve := r.stdio(one.handler)
	if ln != nil {
		at.Stateless, at.Sessions = one.handler, cmp.Or(at.Sessions, 1024)
		at.Session = func(func(error)) (exchange.Handler, func(), error) { return one.handler, func() {}, nil }
		serve = r.listen(ln, at)
	}
	return r.serve(ctx, flags, plan, serve, func() *transport.ExitError { server.Close(); return nil })
}

// limits are what holds a server of ours beside its configuration: nothing may be changed, and what the kernel enforces,
// which nothing takes back while the process lives.
type limits struct {
	readOnly bool
	off      string    // why the kernel is not to enforce anything
	ceiling  roots.Set // what it allows, when it enforces something

	mu    sync.Mutex // held to change these, which one goroutine does, and by others to read them
	level sandbox.Level
	why   string // it enforces nothing
	wider string // what it allows beyond the directories, and what for; "" for nothing
}

// String says for people what the kernel enforces now. It is safe for concurrent use.
func (l *limits) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.level.Enforced():
		return l.level.String() + " (" + l.why + ")"
	case l.wider != "":
		return l.level.String() + ", to " + l.wider
	}
	return l.level.String()
}

// enforced reports whether the kernel enforces something now. It is safe for concurrent use.
func (l *limits) enforced() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.level.Enforced()
}

// narrowed takes off a set what may not be done anywhere.
func (l *limits) narrowed(set roots.Set) roots.Set {
	if !l.readOnly {
		return set
	}
	dirs := set.Dirs()
	for i := range dirs {
		dirs[i].Access &= roots.ReadOnly
	}
	return roots.NewSet(dirs...)
}

// of returns the configured directories of a plan that can hold, and reports the others. Nil takes nothing off.
func (l *limits) of(r *running, plan *config.Plan) roots.Set {
	if l == nil {
		return plan.Roots
	}
	set := l.narrowed(plan.Roots)
	if held := l.level.Enforced(); !held || l.wider != "" && len(plan.Missing) == 0 {
		before := l.String()
		if l.confine(r, plan); l.level.Enforced() && l.String() != before {
			r.warn(fmt.Sprintf("this process is %s now", l))
		}
		if !held {
			return set
		}
	}
	for _, d := range set.Dirs() {
		if !l.ceiling.Covers(roots.NewSet(d)) {
			r.report("%s (%s) is configured now, and the kernel holds this process to what it was started with, so that holds from the next start on",
				d.Path, guard.LogDir(d).Access)
		}
	}
	return set.Intersect(l.ceiling)
}

// hint is what stands before an error of a configuration that the kernel may have kept from being read.
func (l *limits) hint(err error) string {
	if l == nil || !l.level.Enforced() || !strings.Contains(err.Error(), syscall.EACCES.Error()) {
		return ""
	}
	return " (the kernel holds this process to what it was started with, so what is new holds from the next start on)"
}

// most returns the directories that the kernel is to allow for what a plan says, or why it is not to. What is not there
// cannot be allowed, and what comes in its place later is served: so what it would lie in is allowed instead, which wider names.
func (l *limits) most(plan *config.Plan) (most roots.Set, wider, why string) {
	switch {
	case l.off != "":
		return most, "", l.off
	case plan.Roots.Len() == 0:
		return most, "", "no directory is configured"
	}
	dirs := l.narrowed(plan.Roots).Dirs()
	access := roots.ReadWrite
	if l.readOnly {
		access = roots.ReadOnly
	}
	var beyond []string
	for _, missing := range plan.Missing {
		above, err := nearest(missing, access)
		if err != nil {
			return most, "", missing + " is not there yet, and what it would lie in is not known, or too much to allow"
		}
		if i := slices.IndexFunc(dirs, func(d roots.Dir) bool { return d.Path == above.Path }); i >= 0 {
			dirs[i].Access |= access
		} else {
			dirs = append(dirs, above)
		}
		beyond = append(beyond, fmt.Sprintf("all of %s for %s, which is not there yet", above.Path, missing))
	}
	return roots.NewSet(dirs...), strings.Join(beyond, ", and "), ""
}

// nearest returns the nearest directory above a path that is there, with what may be done beneath it. A broad one is an error,
// and so is a link that leads nowhere: it does not say what lies above its target.
func nearest(path string, access roots.Access) (roots.Dir, error) {
	for info := fs.FileInfo(nil); info == nil || !info.IsDir(); info, _ = os.Stat(path) {
		if l, err := os.Lstat(path); err == nil && l.Mode()&fs.ModeSymlink != 0 {
			return roots.Dir{}, fmt.Errorf("%s is a link that leads nowhere", path)
		}
		path = filepath.Dir(path)
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return roots.Dir{}, err
	}
	return roots.Resolve(path, roots.ResolveOptions{Access: access, Origin: "missing"})
}

// codeConfined marks the record of the moment from which on the kernel holds the process.
const codeConfined = "confined"

// confine lets the kernel hold this process to the directories of a plan, and to what it needs itself, as far as it can.
// The log has it when it is so. What the kernel holds it to already stays, and is narrowed.
func (l *limits) confine(r *running, plan *config.Plan) {
	held := l.level.Enforced()
	set, wider, why := l.most(plan)
	if held {
		set = set.Intersect(l.ceiling)
	}
	var level sandbox.Level
	if why == "" {
		var err error
		if level, err = sandbox.Restrict(append(rulesFor(set), r.ownRules(plan)...)); err != nil {
			why = err.Error()
			if !errors.Is(err, errors.ErrUnsupported) {
				r.report("%v", err)
			}
		}
	}
	if held && !level.Enforced() {
		return
	}
	l.mu.Lock()
	l.level, l.why, l.wider = level, why, wider
	l.mu.Unlock()
	r.board.Changed()
	if !level.Enforced() {
		return
	}
	l.ceiling = set
	rec := calllog.Record{Kind: calllog.Note, Code: codeConfined, Reason: "this process is " + l.String(), After: guard.LogDirs(set)}
	if err := r.log.Append(&rec); err != nil {
		r.warn("the log: " + err.Error())
	}
}

// rulesFor are the rules for a set of roots. A file is replaced by another one when it is saved, so the rule for a file is
// one for the directory that it is in.
func rulesFor(set roots.Set) []sandbox.Rule {
	var rules []sandbox.Rule
	for _, d := range set.Dirs() {
		path := d.Path
		if d.File {
			path = filepath.Dir(path)
		}
		if d.Access != 0 {
			rules = append(rules, sandbox.Rule{Path: path, Access: d.Access})
		}
	}
	return rules
}

// ownRules are the rules for what the process itself reads and writes: its log, the consents, and the configuration. A
// directory that is ours may get other files; of another one only the file that is there now is read.
func (r *running) ownRules(plan *config.Plan) []sandbox.Rule {
	var rules []sandbox.Rule
	add := func(path string, access roots.Access) {
		if _, err := os.Stat(path); err == nil {
			rules = append(rules, sandbox.Rule{Path: path, Access: access})
		}
	}
	if path := r.log.Path(); path != "" {
		add(filepath.Dir(path), roots.ReadWrite)
	}
	if consents, err := r.app.consents(); err == nil && plan.ClientRoots.Value == roots.Accept {
		add(filepath.Dir(string(consents)), roots.ReadWrite)
	}
	if r.approve.store != nil {
		add(filepath.Dir(r.approve.store.Path), roots.ReadWrite)
	}
	if r.approve.door != nil {
		add(r.approve.door.Dir(), roots.ReadWrite)
		add("/proc", roots.ReadOnly) // what the process that answers descends from
	}
	for _, path := range plan.Watched {
		if dir := filepath.Dir(path); filepath.Base(dir) == "rootbound" {
			path = dir
		}
		add(path, roots.ReadOnly)
	}
	return rules
}
