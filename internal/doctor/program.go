package doctor

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/splice"
)

// shells run what their options give them.
var shells = []string{"sh", "bash", "dash", "zsh", "fish", "ksh", "powershell", "pwsh"}

// shellOf returns the name of the shell that a command line hands a script to, or "".
func shellOf(c launch.Command) string {
	name := launch.ProgramName(c.Path)
	switch {
	case slices.Contains(shells, name):
		if slices.ContainsFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, "-") && strings.ContainsAny(a, "cC") }) {
			return name
		}
	case name == "cmd" && len(c.Args) > 0 && strings.Contains(c.Args[len(c.Args)-1], " ") && launch.Identify(c).Name == "":
		return name
	}
	return ""
}

// program judges what an entry runs.
func (x *examiner) program(e *entry) {
	if e.file.Dead() {
		return
	}
	x.secrets(e)
	if e.file.Place.Format.Grammar == clientconf.Shell {
		for _, u := range uses(e) {
			if u.Syntax == clientconf.Substitution {
				x.findIn("EXEC-IN-CONFIG", e, u.at, fmt.Sprintf("%s runs a command for this when it reads the file.", e.client.Name), "")
				break
			}
		}
	}
	if pos := memberPos(e.Entry, "headersHelper"); pos.Line > 0 {
		x.findIn("EXEC-IN-CONFIG", e, pos, "headersHelper runs a command whenever the server is connected.", "Write the headers, with variables for what is secret.")
	}
	if !e.Command.Given() {
		return
	}
	name := launch.ProgramName(e.command.Path)
	switch {
	case shellOf(e.command) != "":
		x.findIn("EXEC-IN-CONFIG", e, e.Command.Pos, fmt.Sprintf("The command is a script for %s.", word(name)), "Write the server's own command and arguments.")
	case name == "cmd":
		x.findIn("WRAP-SHELL", e, e.Command.Pos, fmt.Sprintf("The command is cmd, which starts %s.", word(e.target.String())), "")
	}
	x.guard(e)
	x.packageOf(e)
}

// secrets finds credentials that are written out.
func (x *examiner) secrets(e *entry) {
	fix := func(name string) string {
		if written := environmentIn(e.client, name, ""); written != "" {
			return fmt.Sprintf("Write %s, and set %s in the environment that the client is started in.", written, name)
		}
		return "Set it in the environment that the client is started in, and leave it out here."
	}
	own := strings.ToUpper(strings.Join(nameWords(e.Name), "_")) + "_TOKEN"
	named := func(in string, list []clientconf.Variable) {
		for _, v := range list {
			if v.Value.Literal() && v.Value.Test(func(value string) bool { return secret(v.Name, value) }) {
				variable := own
				if in == "env." {
					variable = v.Name
				}
				x.findIn("SECRET-INLINE", e, posOr(v.At, v.Pos), fmt.Sprintf("%s holds a credential.", word(in+v.Name)), fix(variable))
			}
		}
	}
	named("env.", e.Env)
	named("headers.", e.Headers)
	named("", e.Foreign)
	args := e.command.Args
	for i, redacted := range calllog.RedactArgs(args) {
		if redacted == args[i] || i >= len(e.Args) {
			continue
		}
		value := args[i]
		if _, after, ok := strings.Cut(value, "="); ok {
			value = after
		}
		if strings.TrimSpace(clientconf.WithoutReferences(value)) == "" {
			continue // only variables
		}
		x.findIn("SECRET-INLINE", e, e.Args[i].Pos, fmt.Sprintf("The argument %d holds a credential.", i+1), "Most servers take it from their environment. "+fix(own))
	}
	if url := e.URL.Text; url != "" && calllog.RedactText(url) != url && clientconf.WithoutReferences(url) == url {
		x.findIn("SECRET-INLINE", e, e.URL.Pos, "The address holds a credential.", "Put it into a header, with a variable: an address is logged on its way.")
	}
}

// secret reports whether a value under a name is a credential.
func secret(name, value string) bool {
	if value == "" || value == "true" || value == "false" || value == "null" {
		return false
	}
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return false
	}
	line := name + "=" + value
	return calllog.RedactText(line) != line || calllog.RedactText(value) != value
}

// guard judges whether a rootbound that stands before the server is there.
func (x *examiner) guard(e *entry) {
	at, path, pos := -1, e.command.Path, e.Command.Pos
	if launch.ProgramName(path) != "rootbound" { // behind cmd /c or env
		at = slices.IndexFunc(e.command.Args, func(a string) bool { return launch.ProgramName(a) == "rootbound" })
		if at < 0 || !e.target.Guarded {
			return
		}
		path, pos = e.command.Args[at], e.Args[at].Pos
	}
	if x.m.LookPath == nil || len(clientconf.References(path)) > 0 || ofWindows(path) != (x.m.Host.OS == "windows") && absolute(path) {
		return
	}
	if err := x.m.LookPath(path); err == nil {
		return
	}
	if x.m.Alone && !absolute(path) {
		return // where the file comes from it may be in the PATH
	}
	fix, m := "", mend(nil)
	if x.m.Self != "" {
		fix, m = fmt.Sprintf("Write %s.", word(x.m.Self)), replaceWhole(pos, path, x.m.Self)
	}
	x.findIn("WRAP-DEAD", e, pos, fmt.Sprintf("The server is started by %s, which is not there.", word(path)), fix, mending(m))
}

var repository = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+(@[A-Za-z0-9._-]+)?$`)
})

// packageOf judges the package that an entry runs.
func (x *examiner) packageOf(e *entry) {
	t := e.target
	if e.command.Path == "" {
		return
	}
	pos := e.Command.Pos
	if t.Spec != "" && t.SpecAt >= 0 && t.SpecAt < len(e.Args) {
		pos = e.Args[t.SpecAt].Pos
	}
	if t.Name == "" && repository().MatchString(t.Spec) && npmRunner(e.command) {
		text := e.Args[t.SpecAt].Text
		x.findIn("PKG-SCOPE", e, pos, fmt.Sprintf("The package is written %s.", word(t.Spec)), fmt.Sprintf("Write %s.", word("@"+t.Spec)),
			mending(replaceIn(pos, len(text)-len(t.Spec), len(text)-len(t.Spec), "@")))
		return
	}
	if t.Name == "" || t.Registry == "" {
		return
	}
	if v, ok := exactVersion(t); ok {
		x.version(e, pos, v, "")
		return
	}
	if x.m.Alone || !e.read() {
		return
	}
	ran := x.cached(t)
	for _, v := range ran {
		if faultOf(t, v) != "" {
			x.version(e, pos, v, " in the cache of npx")
			return
		}
	}
	what := fmt.Sprintf("%s is of no fixed version", word(t.String()))
	fix := ""
	if n := len(ran); n > 0 {
		what += fmt.Sprintf("; npx has %s here", word(ran[n-1]))
		fix = fmt.Sprintf("Write %s.", word(t.Name+"@"+ran[n-1]))
	} else if p, ok := launch.Lookup(t); ok && p.Newest() != "" && t.Registry == launch.NPM {
		fix = fmt.Sprintf("Write %s, or another version that you looked at.", word(t.Name+"@"+p.Newest()))
	}
	x.findIn("PKG-VERSION", e, pos, what+".", fix, because("What runs is what the registry serves on that day."), floating())
}

func npmRunner(c launch.Command) bool {
	for _, w := range append([]string{c.Path}, c.Args...) {
		switch launch.ProgramName(w) {
		case "npx", "pnpx", "bunx", "npm", "pnpm", "yarn", "bun":
			return true
		}
	}
	return false
}

var versionNumber = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^v?[0-9]+(\.[0-9]+)*([-+][0-9A-Za-z.-]+)?$`)
})

// exactVersion returns the one version that a command asks for. A digest of an image is one.
func exactVersion(t launch.Target) (string, bool) {
	if strings.HasPrefix(t.Version, "sha256:") {
		return t.Version, true
	}
	return t.Version, versionNumber().MatchString(t.Version) && (t.Registry != launch.NPM || strings.Count(t.Version, ".") > 1)
}

// cached returns the versions that npx has of a package.
func (x *examiner) cached(t launch.Target) []string {
	if t.Registry != launch.NPM {
		return nil
	}
	if v, ok := x.npx[t.Name]; ok {
		return v
	}
	cache := ""
	if x.m.Host.Env != nil {
		cache = x.m.Host.Env("npm_config_cache")
	}
	switch {
	case cache != "":
	case x.m.Host.OS == "windows" && x.m.Host.Env != nil && x.m.Host.Env("LOCALAPPDATA") != "":
		cache = filepath.Join(x.m.Host.Env("LOCALAPPDATA"), "npm-cache")
	case x.m.Host.Home != "":
		cache = filepath.Join(x.m.Host.Home, ".npm")
	default:
		return nil
	}
	if x.npx == nil {
		x.npx = map[string][]string{}
	}
	x.npx[t.Name] = launch.Cached(cache, t.Name)
	return x.npx[t.Name]
}

// version judges the version of a package.
func (x *examiner) version(e *entry, pos splice.Pos, v, where string) {
	fault := faultOf(e.target, v)
	if fault == "" {
		return
	}
	fix := ""
	if e.profile.Newest() != "" {
		fix = fmt.Sprintf("Write %s.", word(e.target.Name+"@"+e.profile.Newest()))
	}
	x.findIn("PKG-VERSION", e, pos, fmt.Sprintf("%s%s %s.", word(e.target.Name+"@"+v), where, fault), fix,
		because("A version behind it has that mended."))
}

// The reference filesystem server got the fixes of two published faults with 2025.7.1, and roots with 2025.7.29. Its
// versions were 0.x before, are years and months, and have been 2.x since October 2026.
const reference = "@modelcontextprotocol/server-filesystem"

// faultOf says what is publicly known to be wrong with a version, or "".
func faultOf(t launch.Target, version string) string {
	if t.Registry != launch.NPM || t.Name != reference {
		return ""
	}
	switch {
	case before(version, 1), strings.HasPrefix(version, "2024.") || strings.HasPrefix(version, "2025.") && before(version, 2025, 7, 1):
		return "lets calls out of its directories (CVE-2025-53109, CVE-2025-53110)"
	case strings.HasPrefix(version, "2025.") && before(version, 2025, 7, 29):
		return "does not know roots: it goes by its arguments alone"
	}
	return ""
}

// before reports whether a version comes before the one that is given by its numbers.
func before(version string, than ...int) bool {
	var have []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return false
		}
		have = append(have, n)
	}
	return slices.Compare(have, than) < 0
}

// replacesArguments reports whether a server drops its directory arguments when the client has roots.
func replacesArguments(t launch.Target) bool {
	if t.Registry != launch.NPM || t.Name != reference {
		return false
	}
	v, exact := exactVersion(t)
	return !exact || !(before(v, 1) || strings.HasPrefix(v, "2024.") || before(v, 2025, 7, 29) && strings.HasPrefix(v, "2025."))
}

// expandsHome reports whether a server takes ~/ in its arguments for the home directory.
func expandsHome(t launch.Target) bool {
	return t.Registry == launch.NPM && t.Name == reference || t.Name == "rootbound fs"
}
