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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/egress"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/sandbox"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/roots"
)

// confinement is how the kernel holds the server of one run, each time that it is started. What it is configured to be
// holds for the whole run; the roots are those of the moment.
type confinement struct {
	run   *running
	plan  *config.Plan
	learn *learned // set when the server is not held, but watched
	again bool     // what is fetched is fetched again
	level sandbox.Level
	hosts []egress.Host
	proxy *egress.Proxy
	tmp   string // the server's own directory for temporary files
	// version is that of the package that was installed, where one was.
	version string
	told    sync.Once
	// partsOpen is set when what was to be held back in the roots turned out not to be.
	partsOpen atomic.Bool

	mu     sync.Mutex
	held   sandbox.Policy  // what the server was started with last
	denied map[denial]bool // what was told already
}

// newConfinement looks whether a server can be confined as the plan says. Nil is for a plan that does not say it.
func newConfinement(plan *config.Plan, learn *learned) (*confinement, error) {
	if !plan.Confine.Value {
		return nil, nil
	}
	c := &confinement{plan: plan, learn: learn}
	if learn != nil {
		var err error
		if c.level, err = (sandbox.Watch{}).Able(); err != nil {
			err = fmt.Errorf("watching the server: %w", err)
		}
		return c, err
	}
	policy := sandbox.Policy{Unix: plan.AllowUnix.Value, Net: sandbox.Net{All: plan.Net.Value.All}, Excepts: c.excepts(plan.Roots)}
	if len(plan.Net.Value.Hosts) > 0 {
		var err error
		if c.hosts, err = egress.ParseHosts(plan.Net.Value.Hosts); err != nil {
			return nil, fmt.Errorf("%s: %w", plan.Net.Origin, err)
		}
		policy.Net.Proxy = 1 // any: only whether it can be had is asked for
	}
	var err error
	if c.level, err = policy.Able(); err != nil {
		err = fmt.Errorf("confining the server, as %s wants: %w", plan.Confine.Origin, err)
		if errors.Is(err, errors.ErrUnsupported) {
			err = withHint(err, "Linux 6.2 or later can do it, with Landlock among its security modules, and macOS with sandbox-exec; without confinement the server is told and checked only, and runs as you")
		}
		return nil, err
	}
	return c, nil
}

// start makes what the server needs that is ours: a directory, and the way to the hosts it may reach. It returns the
// command that is started in place of one that fetches the server, and looks whether it can be started confined. The
// caller closes, also after an error.
func (c *confinement) start(ctx context.Context, r *running, command launch.Command, dir string) (launch.Command, error) {
	c.run = r
	if err := c.keep(c.plan.Roots, nil); err != nil {
		return command, err
	}
	for _, note := range c.open(c.plan.Roots) {
		r.warn(note)
	}
	var err error
	if c.tmp, err = os.MkdirTemp("", "rootbound-"+filepath.Base(r.name)+"-"); err == nil {
		c.tmp, err = filepath.EvalSymlinks(c.tmp)
	}
	if err != nil {
		return command, fmt.Errorf("making the server's directory for temporary files: %w", err)
	}
	if install, ok := command.Install(); ok {
		if command, err = c.installed(ctx, install); err != nil {
			return command, err
		}
	}
	if filled, err := command.Fill(c.plan.Roots); err == nil { // else there may be something to fill in later
		needs, err := c.needs(filled, c.plan.Roots, dir)
		if err == nil {
			err = c.keep(c.plan.Roots, needs.Files)
		}
		if err != nil {
			return command, err
		}
	}
	if c.learn != nil {
		c.proxy, err = egress.ListenAny(c.learn.reach)
		return command, err
	}
	if len(c.hosts) == 0 {
		return command, nil
	}
	c.proxy, err = egress.Listen(c.hosts, func(a egress.Attempt) {
		if a.Refused != "" {
			r.report("the server wanted to connect to %q: %s", a.Host, a.Refused)
			return
		}
		r.note("the server connects to %q", a.Host)
	})
	return command, err
}

func (c *confinement) close() {
	if c.proxy != nil {
		c.proxy.Close()
	}
	if c.tmp == "" {
		return
	}
	if err := os.RemoveAll(c.tmp); err != nil {
		c.run.report("removing the server's temporary files: %v", err)
	}
}

const partsOpen = "what is to be held back in the roots is open to the server: nothing can be mounted for it"

// reached is told what holds the server, each time that it was started.
func (c *confinement) reached(l sandbox.Level) {
	c.run.note("the server runs %s", l)
	if c.level.Parts && !l.Parts {
		c.partsOpen.Store(true)
		c.run.board.Changed()
		c.run.report(partsOpen)
	}
}

// String says for people what the kernel enforces.
func (c *confinement) String() string {
	text := c.level.String()
	if len(c.hosts) > 0 {
		var names []string
		for _, h := range c.hosts {
			names = append(names, h.String())
		}
		text = strings.Replace(text, c.level.Net.String(), "network to "+strings.Join(names, ", "), 1)
	}
	return text + c.heldBack()
}

// command is the server's command, confined to the roots that hold now and to what it needs to run.
func (c *confinement) command(filled launch.Command, set roots.Set, dir string) (transport.Command, error) {
	policy, needs, err := c.policy(filled, set, dir, nil)
	if err != nil {
		return transport.Command{}, err
	}
	env, withheld := launch.Environment(inherited(), c.plan.AllowEnv.Value)
	if c.learn != nil {
		env, withheld = inherited(), nil
	}
	c.told.Do(func() {
		for _, note := range needs.Notes {
			c.run.warn(note)
		}
		if len(withheld) > 0 {
			c.run.warn(fmt.Sprintf("%d variables of the environment are withheld from the server; --allow-env NAME passes one", len(withheld)))
			c.run.note("variables of the environment that the server does not get: %s", strings.Join(withheld, " "))
		}
	})
	c.mu.Lock()
	c.held = policy
	c.mu.Unlock()
	vars := map[string]string{"TMPDIR": c.tmp, loggedBy: cmp.Or(c.run.log.Path(), logOff), askedBy: strconv.Itoa(os.Getpid())}
	if c.proxy != nil {
		policy.Net.Proxy = c.proxy.Port()
		for _, v := range c.proxy.Environ() {
			name, value, _ := strings.Cut(v, "=")
			vars[name] = value
		}
	}
	env = environment(slices.Clone(env), vars, needs.Command.Env, filled.Env)
	command := transport.Command{Args: append([]string{needs.Command.Path}, needs.Command.Args...), Env: env, Dir: dir, Confine: policy}
	if c.learn != nil {
		command.Confine = c.watched(filled, set, dir)
	}
	return command, nil
}

// policy is what holds a server to the roots and to what it needs to run, with more programs that it may run besides.
func (c *confinement) policy(filled launch.Command, set roots.Set, dir string, programs []string) (sandbox.Policy, launch.Needs, error) {
	plan := c.plan
	needs, err := c.needs(filled, set, dir, programs...)
	if err == nil {
		err = c.keep(set, needs.Files)
	}
	policy := sandbox.Policy{
		Rules: rulesOf(set, needs.Files),
		Net:   sandbox.Net{All: plan.Net.Value.All},
		Unix:  plan.AllowUnix.Value,
	}
	policy.Excepts = c.excepts(set)
	policy.Rules = append(policy.Rules, sandbox.Rule{Path: c.tmp, Access: roots.ReadWrite})
	for access, paths := range map[roots.Access][]string{roots.ReadOnly: plan.AllowRead.Value, roots.ReadWrite: plan.AllowWrite.Value} {
		for _, path := range paths {
			real, rerr := c.resolve(set, path)
			err = cmp.Or(err, rerr)
			policy.Rules = append(policy.Rules, sandbox.Rule{Path: real, Access: access})
		}
	}
	return policy, needs, err
}

// environment is env with other values, each variable once: of two, programs do not agree which one counts.
func environment(env []string, values ...map[string]string) []string {
	for _, vars := range values {
		for name, value := range vars {
			env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
			env = append(env, name+"="+value)
		}
	}
	return env
}

// needs finds what a command needs to run, besides its roots.
func (c *confinement) needs(filled launch.Command, set roots.Set, dir string, programs ...string) (launch.Needs, error) {
	look := launch.Look{Dir: dir, Getenv: os.Getenv, Net: c.plan.Net.Value.Any(), Writable: c.writable(set, ""), Tmp: c.tmp}
	needs, err := filled.Needs(look, slices.Concat(c.plan.AllowRun.Value, programs)...)
	if err != nil {
		err = fmt.Errorf("finding what the confined server needs to run: %w", err)
	}
	return needs, err
}

// rulesOf are the rules for the roots and for what a program needs. Nothing is run from where the server can write,
// except the files that it is known to be: only a file of its own is both.
func rulesOf(set roots.Set, needs []launch.Need) []sandbox.Rule {
	var rules []sandbox.Rule
	for _, d := range set.Dirs() {
		if d.Access != 0 {
			rules = append(rules, sandbox.Rule{Path: d.Path, Access: d.Access})
		}
	}
	for _, n := range needs {
		if info, err := os.Stat(n.Path); err == nil && info.IsDir() && n.Execute && overlaps(set, n.Path) {
			n.Execute = false
		}
		rules = append(rules, sandbox.Rule{Path: n.Path, Access: n.Access, Execute: n.Execute, List: n.List})
	}
	return rules
}

// overlaps reports whether a directory shares something with a root in which can be written.
func overlaps(set roots.Set, dir string) bool {
	if d, _, in := set.Match(dir); in && d.Access&roots.Write != 0 {
		return true
	}
	return slices.ContainsFunc(set.Dirs(), func(d roots.Dir) bool {
		return d.Access&roots.Write != 0 && beneath(d.Path, dir)
	})
}

func beneath(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// writable says where the server can write, besides one directory.
func (c *confinement) writable(set roots.Set, but string) func(dir string) bool {
	var tops []string
	for _, d := range set.Dirs() {
		if d.Access&roots.Write != 0 {
			tops = append(tops, d.Path)
		}
	}
	for _, path := range c.plan.AllowWrite.Value {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			tops = append(tops, real)
		}
	}
	return func(dir string) bool {
		return slices.ContainsFunc(tops, func(top string) bool { return top != but && beneath(dir, top) })
	}
}

// resolve returns the path without links. It refuses one that leads where the server wants: whoever can change a link may have
// done so when it ran before.
func (c *confinement) resolve(set roots.Set, path string) (string, error) {
	real, _, err := launch.Resolve(path, nil)
	if err != nil {
		return "", fmt.Errorf("confining the server to %q: %w", path, err)
	}
	if _, through, err := launch.Resolve(path, c.writable(set, real)); err == nil && through != "" {
		return "", withHint(fmt.Errorf("confining the server to %q: it is %q, because of the link %q, and the server can change that", path, real, through),
			"where that is meant, write "+guard.ShellQuote(real))
	}
	return real, nil
}

// keep refuses to confine to what the server itself decides, and to what steers this program or its clients.
func (c *confinement) keep(set roots.Set, needs []launch.Need) error {
	paths := slices.Concat(c.plan.AllowRead.Value, c.plan.AllowWrite.Value)
	for _, d := range set.Dirs() {
		paths = append(paths, d.Spellings...)
	}
	for _, path := range paths {
		if _, err := c.resolve(set, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return c.keepOwn(set, needs)
}

// keepOwn refuses roots and what a server needs, if in them lies what steers this program or its clients: the kernel cannot
// take a part out of a directory again.
func (c *confinement) keepOwn(set roots.Set, needs []launch.Need) error {
	for _, own := range c.own() {
		if _, err := os.Lstat(own.path); err != nil {
			continue
		}
		paths := []string{own.path}
		if real, err := filepath.EvalSymlinks(own.path); err == nil {
			paths = append(paths, real)
		}
		for _, path := range paths {
			if d, _, in := set.Match(path); in && d.Access != 0 {
				return withHint(fmt.Errorf("confining the server to the root %q: %s is in it, at %q", d.Path, own.what, path),
					"choose a narrower root: what is in a root is open to a confined server")
			}
			for _, allowed := range c.plan.AllowWrite.Value {
				if real, err := filepath.EvalSymlinks(allowed); err == nil && beneath(path, real) {
					return fmt.Errorf("letting the server write %q: %s is in it, at %q", allowed, own.what, path)
				}
			}
			for _, n := range needs {
				if beneath(path, n.Path) {
					return withHint(fmt.Errorf("confining the server, which needs %q (%s): %s is in it, at %q", n.Path, n.Why, own.what, path),
						"move the server to a directory of its own")
				}
			}
		}
	}
	return c.keepPins(set)
}

// keepPins refuses that the file of pins, which a team may have among its own, can be written by the server. It need not be
// there yet.
func (c *confinement) keepPins(set roots.Set) error {
	file := c.plan.PinsFile()
	if file == "" {
		return nil
	}
	paths := []string{file}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil {
		paths = append(paths, filepath.Join(dir, filepath.Base(file)))
	}
	for _, path := range paths {
		if d, _, in := set.Match(path); in && d.Access&roots.Write != 0 {
			return withHint(fmt.Errorf("confining the server to the root %q: the file of pins is in it, at %q, and a server may not write that", d.Path, path),
				"keep the pins elsewhere, or open a narrower root, or this one with --ro")
		}
		for _, written := range c.plan.AllowWrite.Value {
			if beneath(path, written) {
				return withHint(fmt.Errorf("confining the server, which may write %q: the file of pins is in it, at %q", written, path), "keep the pins elsewhere")
			}
		}
	}
	return nil
}

type ownPath struct{ path, what string }

func (c *confinement) own() []ownPath {
	var list []ownPath
	if path := c.run.log.Path(); path != "" {
		list = append(list, ownPath{filepath.Dir(path), "our log"})
	}
	if dir, err := c.run.app.logDir(); err == nil {
		list = append(list, ownPath{filepath.Dir(dir), "our state"})
	}
	if file, err := c.run.app.system().UserFile(); err == nil {
		list = append(list, ownPath{filepath.Dir(file), "our configuration"})
	}
	if dir, err := packages(); err == nil {
		list = append(list, ownPath{dir, "what we installed"})
	}
	if home, err := os.UserHomeDir(); err == nil {
		for _, name := range clientFiles {
			list = append(list, ownPath{filepath.Join(home, name), "the configuration of a client"})
		}
	}
	return list
}

// open says what is in the roots, and open to the server, though it is not meant to be: the kernel cannot take a part out
// of a directory again.
func (c *confinement) open(set roots.Set) []string {
	var notes []string
	for _, inner := range set.Dirs() {
		for _, outer := range set.Dirs() {
			if less(inner, outer) && !(c.level.Parts && inner.Access&roots.Write == 0) {
				notes = append(notes, fmt.Sprintf("%s (%s) lies in %s (%s), and to the kernel it is open as that is: only calls are held to less",
					inner.Path, guard.LogDir(inner).Access, outer.Path, guard.LogDir(outer).Access))
			}
		}
	}
	if c.level.Parts {
		return notes
	}
	for _, file := range c.plan.Files {
		if d, _, in := set.Match(file); in && d.Access&roots.Write != 0 {
			notes = append(notes, fmt.Sprintf("the configuration %s lies in a root, where the server can change it", file))
		}
	}
	return notes
}

// clientFiles are where clients keep what they start, from the home directory.
var clientFiles = []string{
	".claude.json", ".claude", ".cursor", ".codex", ".gemini", ".vscode", ".windsurf", ".codeium", ".config/Claude", ".config/Code", ".config/zed",
	"Library/Application Support/Claude", "Library/Application Support/Code",
}
