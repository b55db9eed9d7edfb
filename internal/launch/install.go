package launch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Install says how the server of a command that a package runner fetches each time (npx, npm exec, pnpm dlx, yarn dlx,
// bunx; uvx, uv tool run, pipx run) is installed once, so that it can be run without a runner and without a network.
type Install struct {
	// Spec is the package as it is asked for: "name@version".
	Spec     string
	registry Registry
	runner   string // what would fetch it
	name     string
	bin      string // the program of it that is run; empty for the one that is there, or has the package's name
	args     []string
	of       Command
}

// Install returns how the command's server is installed; ok is false where no runner fetches it, where it is in no registry
// that is known, and where the runner is told more than the package and its program.
func (c Command) Install() (i Install, ok bool) {
	t := Identify(c)
	program := ProgramName(c.Path)
	if t.Name == "" || t.At < 1 || runner(program) == nil {
		return Install{}, false
	}
	i = Install{Spec: t.Name, registry: t.Registry, runner: program, name: t.Name, args: t.Args, of: c}
	word := c.Args[t.At-1]
	if word == "--" && t.At > 1 {
		word = c.Args[t.At-2]
	}
	switch t.Registry {
	case NPM:
		if t.Version != "" {
			i.Spec += "@" + t.Version
		}
	case PyPI:
		i.Spec = t.Spec
		if !plainly(c.Args[:t.At]) {
			return Install{}, false
		}
	default:
		return Install{}, false
	}
	if word != i.Spec {
		i.bin = word
	}
	return i, true
}

// Key is a path for what is kept of it.
func (i Install) Key() string {
	return filepath.Join(string(i.registry), strings.NewReplacer("/", "+", `\`, "+").Replace(i.Spec))
}

// Prepare makes dir ready for the installer.
func (i Install) Prepare(dir string) error {
	name, text := "package.json", "{}\n"
	if i.registry == PyPI {
		name, text = pythonStarter, pythonStart
	}
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
}

// Command installs the package into dir, in the version if one is given, and runs nothing of it. Has says which programs
// there are. Look it up with Look.Install, and with the programs that are returned besides.
func (i Install) Command(dir, version string, has func(program string) bool) (Command, []string, error) {
	if i.registry == PyPI {
		return i.python(dir, version, has)
	}
	return i.node(dir, version, has)
}

// Installed is a package that is there.
type Installed struct {
	// Version is the one that was installed, and Integrity the print of its archive that the registry gave; empty where the
	// installer does not tell.
	Version, Integrity string
	// Command runs it.
	Command Command
}

// In returns what is installed in dir. Has says which programs there are.
func (i Install) In(dir string, has func(program string) bool) (Installed, error) {
	if _, err := os.Stat(dir); err != nil {
		return Installed{}, err
	}
	in, err := i.inNode, error(nil)
	if i.registry == PyPI {
		in = i.inPython
	}
	found, err := in(dir, has)
	if errors.Is(err, fs.ErrNotExist) { // a part of it: it is not as it was
		err = fmt.Errorf("looking for %s in %q: %v", i.name, dir, err)
	}
	return found, err
}

// program returns which of a package's programs is run.
func (i Install) program(programs []string, short string) (string, error) {
	bin := i.bin
	switch {
	case len(programs) == 0:
		return "", fmt.Errorf("looking for the program of %s: it has none", i.name)
	case bin == "" && slices.Contains(programs, short):
		bin = short
	case bin == "" && len(programs) == 1:
		bin = programs[0]
	}
	if !slices.Contains(programs, bin) {
		slices.Sort(programs)
		option := map[Registry]string{NPM: "--package", PyPI: "--from"}[i.registry]
		return "", fmt.Errorf("looking for the program of %s: it has %q; name one with %s %s", i.name, programs, option, i.Spec)
	}
	return bin, nil
}

// Cached returns the versions of a package that npx keeps in npm's cache directory, oldest first. Npx runs one of them as
// long as it fits what is asked for, and asks the registry otherwise.
func Cached(cache, name string) []string {
	if name == "" || strings.Contains(name, "..") {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(cache, "_npx", "*", "node_modules", filepath.FromSlash(name), "package.json"))
	var versions []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		var p struct{ Version string }
		if err == nil && json.Unmarshal(text, &p) == nil && p.Version != "" && !slices.Contains(versions, p.Version) {
			versions = append(versions, p.Version)
		}
	}
	slices.SortFunc(versions, func(a, b string) int {
		x, _ := numbers(a)
		y, _ := numbers(b)
		return cmp.Or(slices.Compare(x, y), strings.Compare(a, b))
	})
	return versions
}
