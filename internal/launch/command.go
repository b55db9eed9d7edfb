package launch

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Command is a command line as it is configured.
type Command struct {
	// Path is the program, as it would be typed.
	Path string
	// Args are its arguments.
	Args []string
	// Env is set besides what is inherited.
	Env map[string]string
	// Dir is the working directory. Empty means that none is configured.
	Dir string
}

// Registry is where a package comes from.
type Registry string

// The registries. The empty Registry is a program of this machine.
const (
	NPM  Registry = "npm"
	PyPI Registry = "pypi"
	Go   Registry = "go"
	OCI  Registry = "oci" // container images
)

// Target is what a command line runs when its launchers have done their work. The zero Target is not known.
type Target struct {
	Registry Registry
	// Name is that of the package, image or program. It is empty when it cannot be known.
	Name string
	// Version is the one that was asked for, as it was written: empty, "latest", "1.2.3", a tag or a digest.
	Version string
	// Args are the arguments that reach it: Command.Args from At on.
	Args []string
	At   int
	// Guarded is set when a rootbound run stands in between.
	Guarded bool
	// Spec is what a package runner was asked for, as it is written, also where that is no package of its registry.
	// SpecAt is the argument that it stands in.
	Spec   string
	SpecAt int
}

// String returns the target as a person writes it, "npm:@scope/name@1.2.3".
func (t Target) String() string {
	s := t.Name
	if s == "" {
		return "an unknown program"
	}
	if t.Registry != "" {
		s = string(t.Registry) + ":" + s
	}
	if t.Version != "" {
		s += "@" + t.Version
	}
	return s
}

// Identify returns what a command line runs.
func Identify(c Command) Target {
	l := line{words: append([]string{c.Path}, c.Args...)}
	for l.at < len(l.words) {
		before := l.at
		l.next()
		if l.done || l.at <= before {
			break
		}
	}
	if l.target.Name == "" {
		return Target{Guarded: l.target.Guarded, Spec: l.target.Spec, SpecAt: l.target.SpecAt}
	}
	l.target.At = min(l.at, len(l.words)) - 1
	l.target.Args = slices.Clone(l.words[l.target.At+1:])
	return l.target
}

// line is a command line while it is read: the words before at belong to launchers.
type line struct {
	words  []string
	at     int
	done   bool
	target Target
}

// next reads one program: it is a launcher, and at moves on to what that starts, or the target.
func (l *line) next() {
	program, args := ProgramName(l.words[l.at]), l.words[l.at+1:]
	word := func(i int) string {
		if i < len(args) {
			return args[i]
		}
		return ""
	}
	switch program {
	case "cmd":
		i := slices.IndexFunc(args, func(s string) bool { return strings.EqualFold(s, "/c") })
		if i < 0 || strings.Contains(word(i+1), " ") {
			l.unknown()
			return
		}
		l.at += i + 2
	case "env":
		o := options(args, "-u --unset -C --chdir", "")
		i := o.rest
		for strings.Contains(word(i), "=") {
			i++
		}
		if o.has("-S") || o.has("--split-string") {
			l.unknown()
			return
		}
		l.at += i + 1
	case "sh", "bash", "dash", "zsh", "fish", "ksh", "powershell", "pwsh":
		l.unknown()
	case "rootbound":
		l.rootbound(args)
	case "npx", "pnpx", "bunx":
		l.npm(args, 0)
	case "npm", "pnpm", "yarn", "bun":
		o := options(args, npmValues, "")
		switch sub := word(o.rest); {
		case program == "npm" && (sub == "exec" || sub == "x"), program == "bun" && sub == "x", program[0] != 'n' && sub == "dlx":
			l.npm(args, o.rest+1)
		case program == "bun":
			l.script(args)
		default:
			l.unknown()
		}
	case "node", "tsx", "deno":
		l.script(args)
	case "uvx":
		l.python(args, 0, "--from")
	case "uv":
		i := options(args, uvValues, "").rest
		switch {
		case word(i) == "tool" && word(i+1) == "run":
			l.python(args, i+2, "--from")
		case word(i) == "run":
			o := options(args[i+1:], uvValues, "-m")
			if module := o.last("-m"); module != "" {
				l.found(Target{Registry: PyPI, Name: moduleName(module)}, i+1+o.rest)
				return
			}
			l.at += 1 + i + 1 + o.rest
		default:
			l.unknown()
		}
	case "pipx":
		if word(0) != "run" {
			l.unknown()
			return
		}
		l.python(args, 1, "--spec")
	case "python", "python3":
		o := options(args, "-m -c -W -X", "-m")
		module := o.last("-m")
		if module == "" {
			l.unknown()
			return
		}
		l.found(Target{Registry: PyPI, Name: moduleName(module)}, o.rest)
	case "go":
		o := options(args[min(1, len(args)):], "-C -mod -modfile -tags -ldflags -gcflags -exec -o -p", "")
		i := 1 + o.rest
		name, version, ok := strings.Cut(word(i), "@")
		if word(0) != "run" || !ok {
			l.unknown()
			return
		}
		l.found(Target{Registry: Go, Name: name, Version: version}, i+1)
	case "docker", "podman":
		o := options(args[min(1, len(args)):], dockerValues, "")
		i := 1 + o.rest
		if word(0) != "run" || word(i) == "" {
			l.unknown()
			return
		}
		name, version := imageName(word(i))
		l.found(Target{Registry: OCI, Name: name, Version: version}, i+1)
	default:
		if program == "" {
			l.unknown()
			return
		}
		l.found(Target{Name: program}, 0)
	}
}

func (l *line) unknown() { l.done = true }

// asked notes what a package runner is asked for, which is one of its arguments or the end of one.
func (l *line) asked(spec string, args []string) {
	l.target.Spec = spec
	l.target.SpecAt = l.at + slices.IndexFunc(args, func(arg string) bool { return strings.HasSuffix(arg, spec) })
}

// found ends the line: the arguments of the target begin n words behind the program.
func (l *line) found(t Target, n int) {
	if t.Name == "rootbound" && (t.Registry == NPM || t.Registry == "") { // our own package, which has the program
		l.at += n
		l.rootbound(l.words[l.at+1:])
		return
	}
	t.Guarded, t.Spec, t.SpecAt = l.target.Guarded, l.target.Spec, l.target.SpecAt
	l.target, l.done = t, true
	l.at += 1 + n
}

const (
	npmValues = "-p --package -c --call -w --workspace --registry --cache --prefix --userconfig --loglevel --node-options --dir -C --cwd"
	uvValues  = "--from --with --with-requirements --with-editable --python -p --index --index-url --extra-index-url --directory " +
		"--project --extra --group --env-file --cache-dir --config-file --spec --pip-args -m --module"
	dockerValues = "-a --attach --add-host --annotation -c --cap-add --cap-drop --cidfile --cpus --device --dns --entrypoint -e --env " +
		"--env-file --expose --gpus --group-add -h --hostname --init-path --ip -l --label --label-file --link --log-driver --log-opt " +
		"-m --memory --memory-swap --mount --name --net --network --network-alias --pid --pids-limit --platform -p --publish " +
		"--pull --restart --runtime --security-opt --shm-size --stop-signal --stop-timeout --storage-opt --sysctl --tmpfs --ulimit " +
		"-u --user --userns -v --volume --volume-driver --volumes-from -w --workdir"
)

// rootbound reads what stands behind our own program: run, fs, or what serves nobody.
func (l *line) rootbound(args []string) {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	switch command {
	case "run":
		i := slices.Index(args, "--")
		if i < 0 {
			l.unknown()
			return
		}
		l.target = Target{Guarded: true}
		l.at += i + 2
	case "fs":
		l.found(Target{Name: "rootbound fs"}, 1)
	default:
		l.unknown()
	}
}

// npm reads npx, npm exec, pnpm dlx, yarn dlx and bunx, from args[i] on.
func (l *line) npm(args []string, i int) {
	o := options(args[i:], npmValues, "")
	at := i + o.rest
	if o.has("-c") || o.has("--call") || at >= len(args) {
		l.unknown()
		return
	}
	spec := args[at]
	if packages := o.all("-p", "--package"); len(packages) > 1 {
		l.unknown()
		return
	} else if len(packages) == 1 {
		spec = packages[0]
	}
	l.asked(spec, args)
	name, version, ok := npmName(spec)
	if !ok {
		l.unknown()
		return
	}
	at++
	if i > 0 && at < len(args) && args[at] == "--" { // npm exec PACKAGE -- ARGS
		at++
	}
	l.found(Target{Registry: NPM, Name: name, Version: version}, at)
}

// python reads uvx, uv tool run and pipx run, from args[i] on. From is the option that names the package.
func (l *line) python(args []string, i int, from string) {
	o := options(args[i:], uvValues, "")
	at := i + o.rest
	if at >= len(args) {
		l.unknown()
		return
	}
	spec := args[at]
	if s := o.last(from); s != "" {
		spec = s
	}
	l.asked(spec, args)
	name, version, ok := pypiSpec(spec)
	if !ok {
		l.unknown()
		return
	}
	l.found(Target{Registry: PyPI, Name: name, Version: version}, at+1)
}

// script reads node FILE and its kind: the package is known when the file lies in node_modules, or is named as npm:NAME.
func (l *line) script(args []string) {
	o := options(args, "-r --require --import --loader --experimental-loader -C --conditions -e --eval -p --print -c --config", "")
	i := o.rest
	if i < len(args) && args[i] == "run" { // deno run, bun run
		i += 1 + options(args[i+1:], "-c --config", "").rest
	}
	if i >= len(args) || o.has("-e") || o.has("--eval") || o.has("-p") || o.has("--print") {
		l.unknown()
		return
	}
	if spec, ok := strings.CutPrefix(args[i], "npm:"); ok {
		if name, version, ok := npmName(strings.TrimPrefix(spec, "/")); ok {
			l.found(Target{Registry: NPM, Name: name, Version: version}, i+1)
			return
		}
	}
	file := slashed(args[i])
	at := strings.LastIndex("/"+file, "/node_modules/")
	if at < 0 {
		l.unknown()
		return
	}
	parts := strings.Split(("/" + file)[at+len("/node_modules/"):], "/")
	if len(parts) == 2 && parts[0] == ".bin" { // a link to the program of a package, by the name that it has as a program
		l.found(Target{Name: ProgramName(parts[1])}, i+1)
		return
	}
	n := 1
	if strings.HasPrefix(parts[0], "@") {
		n = 2
	}
	if len(parts) <= n {
		l.unknown()
		return
	}
	l.found(Target{Registry: NPM, Name: strings.Join(parts[:n], "/")}, i+1)
}

// flags are the options before the first word that is none.
type flags struct {
	given  []string            // in order
	values map[string][]string // of those that have one
	rest   int                 // where the first word that is no option is
}

// options reads options. Those that are listed in values take the next word, unless they are written --name=value.
// The option final is the last one: the words behind its value are no options of this program.
func options(args []string, values, final string) flags {
	o := flags{values: map[string][]string{}}
	takes := strings.Fields(values)
	for o.rest < len(args) && strings.HasPrefix(args[o.rest], "-") && args[o.rest] != "-" {
		word := args[o.rest]
		o.rest++
		if word == "--" {
			break
		}
		name, value, has := strings.Cut(word, "=")
		if !has && slices.Contains(takes, name) && o.rest < len(args) {
			value, has = args[o.rest], true
			o.rest++
		}
		o.given = append(o.given, name)
		if has {
			o.values[name] = append(o.values[name], value)
		}
		if name == final {
			break
		}
	}
	return o
}

func (o flags) has(name string) bool { return slices.Contains(o.given, name) }

func (o flags) all(names ...string) []string {
	var list []string
	for _, name := range names {
		list = append(list, o.values[name]...)
	}
	return list
}

func (o flags) last(names ...string) string {
	list := o.all(names...)
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

func slashed(s string) string { return strings.ReplaceAll(s, `\`, "/") }

// ProgramName returns what a program is called, without directory and without what Windows puts behind.
func ProgramName(s string) string {
	name := path.Base(slashed(s))
	if s == "" || name == "." || name == "/" {
		return ""
	}
	if ext := strings.ToLower(path.Ext(name)); ext == ".exe" || ext == ".cmd" || ext == ".bat" || ext == ".ps1" {
		name = strings.ToLower(name[:len(name)-len(ext)])
	}
	if version, ok := strings.CutPrefix(name, "python"); ok && strings.Trim(version, "0123456789.") == "" {
		return "python3"
	}
	return name
}

var (
	npmSpec = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^((?:@[^/@:]+/)?[^/@:.][^/@:]*)(?:@([^/:]*))?$`)
	})
	pypiSpecRE = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?(?:(?:==|@)([^/:]*))?$`)
	})
	pypiRuns = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`[-_.]+`)
	})
)

// npmName splits what npm calls a package spec. What is not a package of the registry (a path, a URL, owner/repository)
// has no name.
func npmName(spec string) (name, version string, ok bool) {
	m := npmSpec().FindStringSubmatch(spec)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

func pypiSpec(spec string) (name, version string, ok bool) {
	m := pypiSpecRE().FindStringSubmatch(spec)
	if m == nil {
		return "", "", false
	}
	return pypiName(m[1]), m[2], true
}

// pypiName returns the one form of the many in which a Python package can be named.
func pypiName(s string) string {
	return strings.ToLower(pypiRuns().ReplaceAllString(s, "-"))
}

// moduleName returns the package that a module is expected to come from.
func moduleName(s string) string {
	s, _, _ = strings.Cut(s, ".")
	return pypiName(s)
}

// imageName splits a container image from its tag or digest.
func imageName(s string) (name, version string) {
	if name, version, ok := strings.Cut(s, "@"); ok {
		return name, version
	}
	slash := strings.LastIndex(s, "/")
	if i := strings.LastIndex(s, ":"); i > slash {
		return s[:i], s[i+1:]
	}
	return s, ""
}
