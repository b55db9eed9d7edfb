package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/splice"
)

// Net is what a confined server may reach over the network. The zero value is nothing.
type Net struct {
	// All is everything.
	All bool
	// Hosts are the only ones, as HOST:PORT.
	Hosts []string
}

// Any reports whether there is anything that it may reach.
func (n Net) Any() bool { return n.All || len(n.Hosts) > 0 }

// String returns it as --net has it.
func (n Net) String() string {
	switch {
	case n.All:
		return "all"
	case len(n.Hosts) == 0:
		return "none"
	}
	return strings.Join(n.Hosts, ",")
}

// within reports whether all that n allows is allowed by m.
func (n Net) within(m Net) bool {
	return m.All || !n.All && !slices.ContainsFunc(n.Hosts, func(h string) bool { return !slices.Contains(m.Hosts, h) })
}

// parseNet reads the value of --net: none, all, or hosts with commas between them.
func parseNet(s string) (Net, error) {
	switch s {
	case "none":
		return Net{}, nil
	case "all":
		return Net{All: true}, nil
	}
	hosts := strings.Split(s, ",")
	for _, h := range hosts {
		if !strings.Contains(h, ":") {
			return Net{}, fmt.Errorf("%q is none of \"none\", \"all\" and HOST:PORT", h)
		}
	}
	return Net{Hosts: hosts}, nil
}

func netSchema() part {
	return part{"oneOf": []any{part{"enum": []string{"none", "all"}}, stringList()}}
}

func (d *decoder) net(v *splice.Value) Setting[Net] {
	if v.Kind == splice.ArrayKind {
		hosts := d.texts(v)
		for i, h := range hosts.Value {
			if !strings.Contains(h, ":") {
				d.fault(v.Items[i].Pos, "%q is no HOST:PORT", h)
			}
		}
		return Setting[Net]{Net{Hosts: hosts.Value}, hosts.Origin}
	}
	text := d.text(v)
	if text.Value != "none" && text.Value != "all" && text.Given() {
		d.fault(v.Pos, "unknown value %q: known are none, all, and a list of HOST:PORT", text.Value)
	}
	return Setting[Net]{Net{All: text.Value == "all"}, text.Origin}
}

// paths reads files and directories; a relative one starts at this file's directory.
func (d *decoder) paths(v *splice.Value) Setting[[]string] {
	list := d.texts(v)
	for i := range list.Value {
		list.Value[i] = absolute(filepath.Dir(d.file.Path), list.Value[i])
	}
	return list
}

// programs reads names and paths of programs: only a name is looked up in PATH.
func (d *decoder) programs(v *splice.Value) Setting[[]string] {
	list := d.texts(v)
	for i, p := range list.Value {
		if strings.Contains(p, "/") {
			list.Value[i] = absolute(filepath.Dir(d.file.Path), p)
		}
	}
	return list
}

// confine resolves how a server is confined. What is allowed besides the roots is for the operator to say, unless the
// managed file says it.
func (r *resolver) confine() error {
	p := r.p
	if r.flags.Confine {
		r.flagged.Confine = Setting[bool]{true, Origin{Word: "--confine"}}
	}
	if r.flags.AllowUnix {
		r.flagged.AllowUnix = Setting[bool]{true, Origin{Word: "--allow-unix"}}
	}
	p.Confine = narrow(r, "confine", func(s Settings) Setting[bool] { return s.Confine }, usual(false), true, false)
	p.AllowUnix = narrow(r, "allow_unix", func(s Settings) Setting[bool] { return s.AllowUnix }, usual(false), false, true)
	if r.flags.Net != "" {
		net, err := parseNet(r.flags.Net)
		if err != nil {
			return UsageError{fmt.Errorf("reading --net %q: %w", r.flags.Net, err)}
		}
		r.flagged.Net = Setting[Net]{net, Origin{Word: "--net"}}
	}
	p.Net = r.net()
	list := func(name string, typed []string, of func(Settings) Setting[[]string]) Setting[[]string] {
		managed, operator := of(r.managed), of(r.operator)
		flag := "--" + strings.ReplaceAll(name, "_", "-")
		if managed.Given() {
			if len(typed) > 0 || operator.Given() {
				r.note("%s of you has no effect: %s decides", name, managed.Origin)
			}
			return managed
		}
		if len(typed) == 0 {
			return operator
		}
		return Setting[[]string]{slices.Concat(operator.Value, typed), Origin{Word: flag}}
	}
	absolutes := func(typed []string, names bool) []string {
		typed = slices.Clone(typed)
		for i, path := range typed {
			if !names || strings.Contains(path, "/") {
				typed[i] = absolute(r.sys.Dir, path)
			}
		}
		return typed
	}
	p.AllowRead = list("allow_read", absolutes(r.flags.AllowRead, false), func(s Settings) Setting[[]string] { return s.AllowRead })
	p.AllowWrite = list("allow_write", absolutes(r.flags.AllowWrite, false), func(s Settings) Setting[[]string] { return s.AllowWrite })
	p.AllowRun = list("allow_run", absolutes(r.flags.AllowRun, true), func(s Settings) Setting[[]string] { return s.AllowRun })
	p.AllowEnv = list("allow_env", r.flags.AllowEnv, func(s Settings) Setting[[]string] { return s.AllowEnv })
	if p.Confine.Value {
		return nil
	}
	for _, s := range []struct {
		name string
		Origin
	}{
		{"net", p.Net.Origin}, {"allow_read", p.AllowRead.Origin}, {"allow_write", p.AllowWrite.Origin}, {"allow_run", p.AllowRun.Origin},
		{"allow_env", p.AllowEnv.Origin}, {"allow_unix", p.AllowUnix.Origin},
	} {
		if strings.HasPrefix(s.Word, "--") {
			return UsageError{fmt.Errorf("%s is for a server that is confined: give --confine too", s.Word)}
		}
		if s.File != "" && s.File != r.managedFile() {
			r.note("%s: %s has no effect without confine", s.Origin, s.name)
		}
	}
	return nil
}

func (r *resolver) managedFile() string {
	if r.layers.managed == nil {
		return ""
	}
	return r.layers.managed.Path
}

// net is narrow for what may be reached.
func (r *resolver) net() Setting[Net] {
	managed, project := r.managed.Net, r.project.Net
	s := first(r.flagged.Net, r.operator.Net, managed, usual(Net{}))
	if managed.Given() && !s.Value.within(managed.Value) {
		r.note("%s: net has no effect: %s is stricter", s.Origin, managed.Origin)
		s = managed
	}
	switch {
	case !project.Given():
	case project.Value.within(s.Value):
		s = project
	default:
		r.note("%s: net has no effect: a project's file only narrows", project.Origin)
	}
	return s
}

// showConfined adds the rows of what a confined server may reach.
func (p *Plan) showConfined(add func(key, value string, origin any)) {
	add("confine", fmt.Sprint(p.Confine.Value), p.Confine.Origin)
	if p.Confine.Value {
		add("net", p.Net.Value.String(), p.Net.Origin)
	}
	for _, l := range []struct {
		key string
		Setting[[]string]
	}{{"allow_read", p.AllowRead}, {"allow_write", p.AllowWrite}, {"allow_run", p.AllowRun}, {"allow_env", p.AllowEnv}} {
		if l.Given() {
			add(l.key, strings.Join(l.Value, " "), l.Origin)
		}
	}
	if p.AllowUnix.Value {
		add("allow_unix", "true", p.AllowUnix.Origin)
	}
}
