package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/fsserver"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/pin"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/roots"
)

// askedBy is the variable by which a server knows that a guard in front of it asks for it, so that nobody is asked twice. It
// has the process of the guard, and counts for what that started and not for what the server starts in turn: the guard sees
// nothing of calls there.
const askedBy = "ROOTBOUND_ASKED_BY"

// askedInFront reports whether the guard that started this process asks for it.
func (a *app) askedInFront() bool { return a.env(askedBy) == strconv.Itoa(os.Getppid()) }

// profile is what is known of a tool with a definition of this print.
type profile func(tool, definition string) (guard.Effect, bool)

// guardPolicy is what a plan says of the calls of the server, as it was started.
func (r *running) guardPolicy(plan *config.Plan) guard.Policy {
	p := guard.Policy{
		Rules: plan.Policy.Rules, Ask: plan.Ask.Value, Operator: map[string]guard.Effect{}, Profile: r.profile, Bound: r.confined.bound(),
		TrustAnnotations: plan.TrustAnnotations.Value, PublishAnnotations: plan.PublishAnnotations.Value,
	}
	if r.app.askedInFront() && p.Ask != policy.AskNobody {
		p.Ask = policy.AskClient
	}
	if r.ours {
		for tool, access := range fsserver.Effects() {
			p.Operator[tool] = guard.Effect{Effect: effectOf(access), From: "this program, whose tool it is", Code: "own"}
		}
	}
	for tool, e := range plan.Policy.Effects {
		p.Operator[tool] = guard.Effect{Effect: e.Value, From: e.Origin.String()}
	}
	return p
}

// ofPolicy reports whether a key of the configuration is one of those that make a guard's policy.
func ofPolicy(key string) bool {
	return strings.HasPrefix(key, "rule[") || slices.Contains([]string{"ask", "preset", "trust_annotations", "publish_annotations"}, key)
}

// bound reports whether the kernel keeps the server from everything that it could change but its roots.
func (c *confinement) bound() bool {
	return c != nil && c.learn == nil && !c.plan.Net.Value.Any() && len(c.plan.AllowWrite.Value) == 0 && !c.plan.AllowUnix.Value
}

// rulePaths are the arguments that rules need to have resolved.
func rulePaths(plan *config.Plan, server string) []pathargs.Also {
	var also []pathargs.Also
	for _, need := range plan.Policy.Paths {
		if need.Server == "" || need.Server == server {
			also = append(also, pathargs.Also{Tool: need.Tool.Match, Paths: need.Args})
		}
	}
	return also
}

// profileOf is what is known of the tools of the server of a plan, or nil.
func (a *app) profileOf(plan *config.Plan, c *confinement) profile {
	target := launch.Identify(plan.Command)
	switch {
	case target.Name == "rootbound fs" && target.Registry == "":
		return ownEffects
	case !plan.Known || !plan.Profile.HasEffects():
		return nil
	}
	versions := sync.OnceValue(func() []string { // the first time that it is asked for: then npx has what it runs in its cache
		return a.versionsOf(plan, c)
	})
	return func(tool, definition string) (guard.Effect, bool) {
		var most roots.Access
		for _, v := range versions() {
			access, ok := plan.Profile.Effect(v, tool, definition)
			if !ok {
				most = 0
				break
			}
			most |= access
		}
		if most == 0 { // it says so itself, where nobody else is believed after it
			return guard.Effect{From: unknownTo(plan.Profile, target, versions())}, !plan.TrustAnnotations.Value
		}
		return guard.Effect{Effect: effectOf(most), From: "the profile of " + plan.Profile.Name, Code: "profile"}, true
	}
}

// versionsOf are the versions of the server that a command can run; none where that is not known.
func (a *app) versionsOf(plan *config.Plan, c *confinement) []string {
	target := launch.Identify(plan.Command)
	switch {
	case c != nil && c.version != "":
		return []string{c.version}
	case target.Version != "":
		return []string{target.Version}
	case slices.Contains([]string{"npx", "npm"}, launch.ProgramName(plan.Command.Path)):
		return launch.Cached(a.npmCache(), target.Name)
	}
	return nil
}

// unknownTo says of a profile why it does not say what a tool does, and what would help.
func unknownTo(p launch.Profile, target launch.Target, versions []string) string {
	known := p.Versions()
	newest := known[len(known)-1] + ", the newest that it knows"
	if target.Registry == launch.NPM {
		newest = target.Name + "@" + newest
	}
	i := slices.IndexFunc(versions, func(v string) bool { return !slices.Contains(known, strings.TrimPrefix(v, "v")) })
	text := "the profile of " + p.Name
	switch {
	case len(versions) == 0:
		return text + ", as the command names no version: write " + newest
	case i < 0:
		return text + ", which does not know the tool as the server describes it"
	case target.Version == "":
		return fmt.Sprintf("%s, which does not know the version %s that the command may run: write %s", text, printable(versions[i]), newest)
	case strings.IndexAny(strings.TrimPrefix(versions[i], "v"), "0123456789") != 0:
		return fmt.Sprintf("%s, as %s is no version: write %s", text, printable(versions[i]), newest)
	}
	return fmt.Sprintf("%s, which does not know the version %s: write %s", text, printable(versions[i]), newest)
}

func effectOf(a roots.Access) policy.Effect {
	switch {
	case a&roots.Delete != 0:
		return policy.Delete
	case a&roots.Write != 0:
		return policy.Write
	}
	return policy.Read
}

// npmCache is the directory in which npm keeps what npx runs.
func (a *app) npmCache() string {
	for _, name := range []string{"npm_config_cache", "NPM_CONFIG_CACHE"} {
		if dir := a.env(name); dir != "" {
			return dir
		}
	}
	if runtime.GOOS == "windows" {
		return filepath.Join(a.env("LOCALAPPDATA"), "npm-cache")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".npm")
}

// ownPrints are the prints of the definitions of our own tools, with their names.
var ownPrints = sync.OnceValue(func() map[string]string {
	prints := map[string]string{}
	for _, list := range fsserver.Lists() {
		for _, d := range pin.Definitions("tools/list", list) {
			prints[d.Hash()] = d.Name
		}
	}
	return prints
})

// ownEffects is the profile of our own filesystem server.
func ownEffects(tool, definition string) (guard.Effect, bool) {
	access, ok := fsserver.Effects()[tool]
	return guard.Effect{Effect: effectOf(access), From: "this program, whose tool it is", Code: "own"}, ok && ownPrints()[definition] == tool
}
