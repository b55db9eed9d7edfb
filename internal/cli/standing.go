package cli

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// errNotAPlace is why it cannot be told how something stands.
var errNotAPlace = errors.New("neither a path nor a host")

// standing tells what holds now for a path or a host, by the configuration: for each server, or where none is configured for any.
func (a *app) standing(what string) error {
	path, host, err := placeOrHost(what)
	if err != nil {
		return err
	}
	servers, err := a.policyServers(config.Flags{})
	if err != nil {
		return err
	}
	if len(servers) == 0 {
		servers = []string{""}
	}
	fmt.Fprintf(a.out, "%s, as it is configured now\n", printable(what))
	for _, name := range servers {
		plan, err := config.Resolve(a.system(), config.Flags{Server: name, ForAll: name == "", Partial: true})
		if err != nil {
			return err
		}
		label := name
		if name == "" {
			label = "any server"
		}
		if path != "" {
			a.standingPath(label, plan, path)
		} else {
			a.standingHost(label, plan, host)
		}
	}
	return nil
}

// placeOrHost reads what is a path that is absolute, begins with a dot or is there, or else a host or a URL.
func placeOrHost(what string) (path, host string, err error) {
	if strings.Contains(what, "://") {
		u, err := url.Parse(what)
		if err != nil || u.Host == "" || u.Scheme == "file" {
			return "", "", errNotAPlace
		}
		return "", u.Host, nil
	}
	_, missing := os.Lstat(what)
	dotted := strings.HasPrefix(what, "."+string(filepath.Separator)) || strings.HasPrefix(what, ".."+string(filepath.Separator))
	if filepath.IsAbs(what) || dotted || missing == nil {
		path, err = filepath.Abs(what)
		return path, "", err
	}
	if _, err := policy.ParseHost(what); err != nil || what != "localhost" && !strings.ContainsAny(what, ".:") {
		return "", "", errNotAPlace
	}
	return "", what, nil
}

func (a *app) standingPath(label string, plan *config.Plan, path string) {
	line := func(format string, args ...any) { fmt.Fprintf(a.out, "  "+format+"\n", args...) }
	if plan.URL.Given() {
		line("%s: reached over HTTP, and its paths count as those of another machine", printable(label))
		return
	}
	place, err := rootfs.Locate(plan.Roots, path, rootfs.Process{})
	switch {
	case err != nil:
		line("%s: it cannot be known where it leads: %v", printable(label), err)
		return
	case !place.Inside:
		dir := place.Path
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			dir = filepath.Dir(dir)
		}
		line("%s: outside its roots, so every call that names it is refused, whatever a rule says", printable(label))
		if !roots.Broad(dir) {
			line("  to allow  rootbound roots add %s", printable(guard.ShellQuote(dir)))
		}
		return
	}
	line("%s: in the root %s (%s)", printable(label), printable(place.Dir.Path), guard.LogDir(place.Dir).Access)
	at := policy.Path{Arg: "/path", Given: path, Resolved: place.Path, Exists: place.Exists, Root: place.Dir.Path, Rel: place.Rel, Rights: place.Dir.Access}
	for _, e := range []policy.Effect{policy.Read, policy.Write, policy.Delete, policy.Unknown} {
		if need := accessOf(e); place.Dir.Access&need != need {
			line("  %-8s  refused: the root does not allow it", e)
			continue
		}
		d := plan.Policy.Rules.Explain(policy.Call{Server: plan.Server, Effect: e, Paths: []policy.Path{at}})
		line("  %-8s  %-5s  %s", e, d.Verdict, printable(d.Rule))
	}
	if text := a.versionless(plan); text != "" {
		line("  tools     may do anything, says %s", printable(text))
	}
	a.standingRules(plan.Policy.Rules.About(plan.Server, &at, ""))
	line("  to change  a [[rule]] with match = { %sargs = { path = { path_under = %q } } }", printable(of(plan)), printable(place.Path))
}

// versionless says why a shipped profile says nothing of what a server's tools do, for want of a version that it knows; "" where it
// may.
func (a *app) versionless(plan *config.Plan) string {
	if !plan.Known || !plan.Profile.HasEffects() || plan.TrustAnnotations.Value {
		return ""
	}
	versions := a.versionsOf(plan, nil)
	if len(versions) > 0 && !slices.ContainsFunc(versions, func(v string) bool { return !slices.Contains(plan.Profile.Versions(), strings.TrimPrefix(v, "v")) }) {
		return ""
	}
	return unknownTo(plan.Profile, launch.Identify(plan.Command), versions)
}

// accessOf is what a root has to allow.
func accessOf(e policy.Effect) roots.Access {
	switch e {
	case policy.Write:
		return roots.Write
	case policy.Delete:
		return roots.Delete
	}
	return roots.Read
}

func (a *app) standingHost(label string, plan *config.Plan, host string) {
	line := func(format string, args ...any) { fmt.Fprintf(a.out, "  "+format+"\n", args...) }
	net, fix := plan.Net.Value, ""
	switch {
	case plan.URL.Given():
		line("%s: reached over HTTP, and not held here: it reaches what it can", printable(label))
	case !plan.Confine.Value:
		line("%s: not confined, so the process reaches every host (%s)", printable(label), plan.Confine.Origin)
		fix = "confine = true, with net = [\"HOST:PORT\"]"
	case net.All:
		line("%s: confined, and reaches every host (net, %s)", printable(label), plan.Net.Origin)
	case slices.ContainsFunc(net.Hosts, func(h string) bool { name, _, _ := strings.Cut(h, ":"); return h == host || name == host }):
		line("%s: confined, and reaches it (net, %s)", printable(label), plan.Net.Origin)
	default:
		line("%s: confined, and does not reach it (net, %s)", printable(label), plan.Net.Origin)
		fix = fmt.Sprintf("net = [\"%s\"], with a port", host)
	}
	a.standingRules(plan.Policy.Rules.About(plan.Server, nil, "https://"+host))
	if fix != "" {
		line("  to change  %s", printable(fix))
	}
	line("  of calls   a [[rule]] with match = { %sargs = { url = { url_host = %q } } }", printable(of(plan)), printable(host))
}

// of is the part of a match that names the server of a plan.
func of(plan *config.Plan) string {
	if plan.Server == "" {
		return ""
	}
	return fmt.Sprintf("server = %q, ", plan.Server)
}

func (a *app) standingRules(rules []*policy.Rule) {
	for _, r := range rules {
		fmt.Fprintf(a.out, "    rule      %s (%s)\n", printable(r.String()), printable(r.At))
	}
}
