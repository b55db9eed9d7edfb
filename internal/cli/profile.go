package cli

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/sandbox"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// manyFiles is how many files of one directory are read before the directory is proposed in their place.
const manyFiles = 8

// proposal is a profile while it is made.
type proposal struct {
	home              string
	read, write       map[string]string // with a remark each
	run               map[string]string
	net               config.Net
	unix              bool
	notes             []string // why, for net and unix
	left              []string // what is not proposed
	rules             []sandbox.Rule
	excepts           []sandbox.Except
	learned           *learned
	plan              *config.Plan
	written, readOnly map[string]bool // the roots in which was written, and those in which was only read
}

// profile says in the words of a configuration file what would have let a server do what was seen, and no more.
func (l *learned) profile(c *confinement, set roots.Set) (string, error) {
	p := &proposal{
		read: map[string]string{}, write: map[string]string{}, run: map[string]string{}, learned: l, plan: c.plan,
		written: map[string]bool{}, readOnly: map[string]bool{},
	}
	p.home, _ = os.UserHomeDir()
	var err error
	if p.rules, err = l.rules(nil); err != nil {
		return "", err
	}
	seen := slices.Collect(maps.Keys(l.seen))
	sort.Slice(seen, func(i, j int) bool {
		a, b := &seen[i], &seen[j]
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(string(a.Use), string(b.Use)), strings.Compare(a.Program, b.Program)) < 0
	})
	p.excepts = (&confinement{plan: &config.Plan{Files: c.plan.Files}}).excepts(set)
	p.programs(seen)
	for _, a := range seen {
		p.file(c, set, a)
	}
	p.group()
	p.network(seen)
	return p.text(c, set), nil
}

// programs looks which programs were run that could not have been, and what they need themselves.
func (p *proposal) programs(seen []sandbox.Access) {
	var names []string
	for _, a := range seen {
		if a.Use != sandbox.Runs || allowed(p.rules, a) {
			continue
		}
		name := named(a.Path)
		if rules, err := p.learned.rules(append(slices.Clone(names), name)); err != nil {
			p.leave("%s runs %s, and that cannot be confined: %v", short(a.Program), a.Path, err)
		} else {
			names, p.rules = append(names, name), rules
			p.run[name] = "run by " + short(a.Program)
		}
	}
}

// named returns the name by which a program is found, or its path where it is not the one that is found.
func named(path string) string {
	name := filepath.Base(path)
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if real, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err == nil {
			if real == path {
				return name
			}
			break
		}
	}
	return path
}

// file takes in what was done with a file.
func (p *proposal) file(c *confinement, set roots.Set, a sandbox.Access) {
	if d, _, in := set.Match(a.Path); in && a.Use != sandbox.Sockets {
		if a.Use == sandbox.Writes {
			p.written[d.Path] = true
		} else {
			p.readOnly[d.Path] = true
		}
	}
	e, held := exceptOf(p.excepts, a.Path)
	if allowed(p.rules, a) && !(held && (a.Use == sandbox.Writes || e.Access == 0)) {
		return
	}
	if held { // it is opened as a whole
		a.Path = e.Path
	}
	why := string(a.Use) + " it: " + short(a.Program)
	switch dir, _ := filepath.Split(a.Path); {
	case a.Use == sandbox.Runs, a.Use == sandbox.Connects, a.Use == sandbox.Listens, a.Use == sandbox.Sockets:
	case filepath.Base(a.Path) == "__pycache__": // Python does without
	case inProcess().MatchString(a.Path):
		p.leave("%s %s %s, where other processes are", short(a.Program), a.Use, a.Path)
	case a.Use == sandbox.Lists && (roots.Broad(a.Path) || dir == "/" || slices.ContainsFunc(p.rules, func(r sandbox.Rule) bool { return beneath(r.Path, a.Path) })):
		p.leave("%s lists %s; to allow that would open all that is in it", short(a.Program), a.Path)
	case a.Use == sandbox.Writes:
		if what := c.ours(a.Path); what != "" || roots.Broad(a.Path) {
			p.leave("%s writes in %s, where %s is", short(a.Program), a.Path, cmp.Or(what, "much else"))
			return
		}
		p.write[a.Path] = why
	default:
		p.read[a.Path] = why
	}
}

// inProcess matches the directory of processes, and what is in one of them.
var inProcess = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/proc(/[0-9]+(/.*)?)?$`)
})

// ours says what of ours or of clients is at a path or beneath it, or nothing.
func (c *confinement) ours(path string) string {
	for _, own := range c.own() {
		if beneath(own.path, path) || beneath(path, own.path) {
			return own.what
		}
	}
	return ""
}

// group takes one directory for what lies in it, and for many files.
func (p *proposal) group() {
	inner := func(list map[string]string, path string) bool {
		for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
			if info, err := os.Stat(dir); list[dir] != "" && err == nil && info.IsDir() {
				return true
			}
			if dir == filepath.Dir(dir) {
				return false
			}
		}
	}
	for use, list := range map[sandbox.Use]map[string]string{sandbox.Reads: p.read, sandbox.Writes: p.write} {
		files := map[string]int{}
		for path := range list {
			files[filepath.Dir(path)]++
		}
		for dir, n := range files {
			if n > manyFiles && !roots.Broad(dir) && filepath.Dir(dir) != "/" {
				list[dir] = fmt.Sprintf("%s %d files of it", use, n)
			}
		}
	}
	for path := range maps.Clone(p.write) {
		if inner(p.write, path) {
			delete(p.write, path)
		}
	}
	for path := range maps.Clone(p.read) {
		if inner(p.read, path) || inner(p.write, path) || p.write[path] != "" {
			delete(p.read, path)
		}
	}
}

// resolvers are sockets where names are looked up; without them that is done in other ways, or by our proxy.
var resolvers = []string{"/run/systemd/resolve/", "/run/nscd/", "/var/run/nscd/", "/run/dbus/system_bus_socket"}

// network takes in where it connected to.
func (p *proposal) network(seen []sandbox.Access) {
	hosts := slices.Sorted(maps.Keys(p.learned.hosts))
	p.net.Hosts = hosts
	var direct []string
	add := func(to *[]string, text string) {
		if !slices.Contains(*to, text) {
			*to = append(*to, text)
		}
	}
	const names = 53
	for _, a := range seen {
		switch {
		case a.Use == sandbox.Listens:
			add(&direct, short(a.Program)+" listens")
		case a.Use == sandbox.Sockets && slices.ContainsFunc(resolvers, func(r string) bool { return strings.HasPrefix(a.Path, r) }):
		case a.Use == sandbox.Sockets:
			p.unix = true
			add(&p.notes, fmt.Sprintf("allow_unix: %s uses %s", short(a.Program), a.Path))
		case a.Use != sandbox.Connects, a.Address.Port() == names, a.Address.Port() == 0:
		case a.Address.Addr().IsLoopback() && a.Address.Port() == p.learned.proxy && p.learned.proxy != 0:
		case a.UDP && a.Address.Port() == 9: // only to see which way it would go
		default:
			over := ""
			if a.UDP {
				over = " over UDP"
			}
			add(&direct, fmt.Sprintf("%s connects to %s%s by itself, without asking a proxy", short(a.Program), a.Address, over))
		}
	}
	if len(direct) > 0 {
		p.net = config.Net{All: true}
		for _, d := range direct {
			p.notes = append(p.notes, "net: "+d)
		}
	}
	if p.unix && len(p.net.Hosts) > 0 {
		p.net = config.Net{All: true}
		p.notes = append(p.notes, "net: with Unix sockets it can be all or nothing: "+strings.Join(hosts, ", "))
	}
}

func (p *proposal) leave(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(p.left, text) {
		p.left = append(p.left, text)
	}
}

// allowed reports whether rules let that be done.
func allowed(rules []sandbox.Rule, a sandbox.Access) bool {
	return slices.ContainsFunc(rules, func(r sandbox.Rule) bool {
		if !beneath(a.Path, r.Path) {
			return false
		}
		switch a.Use {
		case sandbox.Lists:
			return r.List || r.Access&roots.Read != 0
		case sandbox.Reads:
			return r.Access&roots.Read != 0
		case sandbox.Writes:
			return r.Access&roots.Write != 0
		case sandbox.Runs:
			return r.Execute
		}
		return false
	})
}

func short(program string) string { return cmp.Or(filepath.Base(program), "it") }

// text writes the profile.
func (p *proposal) text(c *confinement, set roots.Set) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	quoted := func(s string) string { return string(wire.Quote(s)) }
	remark := func(s string) string { return printable(strings.ReplaceAll(s, "\n", " ")) }
	list := func(key string, values map[string]string) {
		if len(values) == 0 {
			return
		}
		line("%s = [", key)
		for _, v := range slices.Sorted(maps.Keys(values)) {
			note := values[v]
			if p.home != "" && beneath(v, p.home) && filepath.IsAbs(v) {
				note += "; it is in your home"
			}
			line("  %s, # %s", quoted(v), remark(note))
		}
		line("]")
	}
	line("# What %s did while it was watched. Its own files and what every program of its kind needs are not listed: they are found.", remark(c.run.name))
	for _, note := range p.notes {
		line("# %s", remark(note))
	}
	for _, text := range p.left {
		line("# Not proposed: %s.", remark(text))
	}
	line("# Not seen: which variables of the environment it reads (allow_env).")
	line("[server.%s]", quoted(c.run.name))
	command := p.plan.Command
	args := calllog.RedactArgs(append([]string{command.Path}, command.Args...))[1:] // profiles are shown to others
	for i, arg := range args {
		if arg != command.Args[i] {
			line("# Left out, as it looks like a secret: argument %d. Write it in, or let the server take it from its environment (allow_env).", i+1)
		}
	}
	line("command = %s", quoted(command.Path))
	if len(args) > 0 {
		var words []string
		for _, arg := range args {
			words = append(words, quoted(arg))
		}
		line("args = [%s]", strings.Join(words, ", "))
	}
	if command.Dir != "" {
		line("cwd = %s", quoted(command.Dir))
	}
	line("confine = true")
	words := []string{"--confine"}
	if set.Len() > 0 {
		line("roots = [")
		for _, d := range set.Dirs() {
			entry, flag, note := "path = "+quoted(d.Path), "--root", ""
			if d.Name != "" {
				entry += ", name = " + quoted(d.Name)
			}
			switch used := p.readOnly[d.Path]; {
			case p.written[d.Path]:
				if d.Access != roots.ReadWrite {
					entry += ", access = " + quoted(guard.LogDir(d).Access)
				}
			case d.Access&roots.Write != 0:
				note = " # was only read"
				fallthrough
			default:
				if entry, flag = entry+`, access = "ro"`, "--ro"; !used {
					note = " # was not looked at"
				}
			}
			line("  { %s },%s", entry, note)
			words = append(words, flag, guard.ShellQuote(d.Path))
		}
		line("]")
	}
	list("allow_read", p.read)
	list("allow_write", p.write)
	list("allow_run", p.run)
	env := map[string]string{}
	for _, name := range p.plan.AllowEnv.Value {
		env[name] = "was allowed already"
		words = append(words, "--allow-env", guard.ShellQuote(name))
	}
	list("allow_env", env)
	switch {
	case p.net.All:
		line(`net = "all"`)
	case len(p.net.Hosts) > 0:
		var hosts []string
		for _, h := range p.net.Hosts {
			hosts = append(hosts, quoted(h))
		}
		line("net = [%s]", strings.Join(hosts, ", "))
	}
	if p.net.Any() {
		words = append(words, "--net", p.net.String())
	}
	if p.unix {
		line("allow_unix = true")
		words = append(words, "--allow-unix")
	}
	for _, of := range []struct {
		flag   string
		values map[string]string
	}{{"--allow-read", p.read}, {"--allow-write", p.write}, {"--allow-run", p.run}} {
		for _, v := range slices.Sorted(maps.Keys(of.values)) {
			words = append(words, of.flag, guard.ShellQuote(v))
		}
	}
	words = append(words, "--", guard.ShellQuote(command.Path))
	for _, arg := range args {
		words = append(words, guard.ShellQuote(arg))
	}
	line("# The same as a command: rootbound run %s", remark(strings.Join(words, " ")))
	return b.String()
}
