package launch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Install says how the server of a command that a package runner fetches each time (npx, npm exec, pnpm dlx, yarn dlx,
// bunx) is installed once, so that it can be run without a runner and without a network.
type Install struct {
	// Spec is the package as it is asked for: "name@version".
	Spec string
	name string
	bin  string // the program of it that is run; empty for the one that is there, or has the package's name
	args []string
	of   Command
}

// Install returns how the command's server is installed; ok is false where it is not from npm's registry, or no runner
// fetches it.
func (c Command) Install() (i Install, ok bool) {
	t := Identify(c)
	if t.Registry != NPM || t.Name == "" || t.At < 1 || runner(ProgramName(c.Path)) == nil {
		return Install{}, false
	}
	i = Install{Spec: t.Name, name: t.Name, args: t.Args, of: c}
	if t.Version != "" {
		i.Spec += "@" + t.Version
	}
	word := c.Args[t.At-1]
	if word == "--" && t.At > 1 {
		word = c.Args[t.At-2]
	}
	if word != i.Spec {
		i.bin = word
	}
	return i, true
}

// Command installs the package into dir, and runs nothing of it. Look it up with Look.Install.
func (i Install) Command(dir string) Command {
	return Command{
		Path: "npm", Dir: dir,
		Args: []string{"install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--save-exact", "--", i.Spec},
		Env: map[string]string{
			"npm_config_cache": filepath.Join(dir, "cache"), "npm_config_logs_max": "0", "npm_config_update_notifier": "false",
		},
	}
}

// Installed is a package that is there.
type Installed struct {
	// Version is the one that was installed, and Integrity the print of its archive that the registry gave.
	Version, Integrity string
	// Command runs it.
	Command Command
}

// In returns what is installed in dir.
func (i Install) In(dir string) (Installed, error) {
	var lock struct {
		Packages map[string]struct {
			Version, Integrity string
			Bin                any
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return Installed{}, err
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return Installed{}, fmt.Errorf("reading what is installed in %q: %w", dir, err)
	}
	p, ok := lock.Packages["node_modules/"+i.name]
	if !ok {
		return Installed{}, fmt.Errorf("looking for %s in %q: it is not installed", i.name, dir)
	}
	bin := i.bin
	switch programs := p.Bin.(type) {
	case string:
		bin = path.Base(i.name)
	case map[string]any:
		short := path.Base(i.name)
		if _, has := programs[short]; bin == "" && has {
			bin = short
		}
		if bin == "" && len(programs) == 1 {
			for bin = range programs {
			}
		}
		if _, has := programs[bin]; !has {
			var names []string
			for name := range programs {
				names = append(names, name)
			}
			slices.Sort(names)
			return Installed{}, fmt.Errorf("looking for the program of %s: it has %q; name one with --package %s", i.name, names, i.Spec)
		}
	default:
		return Installed{}, fmt.Errorf("looking for the program of %s: it has none", i.name)
	}
	if strings.ContainsAny(bin, `/\`) || bin == ".." {
		return Installed{}, fmt.Errorf("looking for the program of %s: %q is no name", i.name, bin)
	}
	c := i.of
	c.Path, c.Args = filepath.Join(dir, "node_modules", ".bin", bin), i.args
	return Installed{p.Version, p.Integrity, c}, nil
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
