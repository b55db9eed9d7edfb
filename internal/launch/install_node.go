package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// node installs from npm's registry: with npm, or where there is none, with the runner's own installer.
func (i Install) node(dir, version string, has func(string) bool) (Command, []string, error) {
	cache, spec := filepath.Join(dir, "cache"), i.Spec
	if version != "" {
		spec = i.name + "@" + version
	}
	env := map[string]string{
		"XDG_CACHE_HOME": cache, "XDG_DATA_HOME": cache, "XDG_STATE_HOME": cache, "BUN_INSTALL_CACHE_DIR": cache,
		"npm_config_cache": cache, "npm_config_logs_max": "0", "npm_config_update_notifier": "false", "pnpm_config_update_notifier": "false",
	}
	switch {
	case has("npm"):
		return Command{Path: "npm", Dir: dir, Env: env, Args: []string{
			"install", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--save-exact", "--", spec,
		}}, nil, nil
	case (i.runner == "pnpm" || i.runner == "pnpx") && has("pnpm"):
		return Command{Path: "pnpm", Dir: dir, Env: env, Args: []string{
			"add", "--dir", dir, "--ignore-scripts", "--save-exact", "--store-dir", cache, "--config.manage-package-manager-versions=false", spec,
		}}, []string{"node"}, nil
	case (i.runner == "bun" || i.runner == "bunx") && has("bun"):
		return Command{Path: "bun", Dir: dir, Env: env, Args: []string{"add", "--cwd", dir, "--ignore-scripts", "--exact", spec}}, nil, nil
	}
	return Command{}, nil, fmt.Errorf("looking for something that installs %s: neither npm nor %s's own installer is in PATH", i.Spec, i.runner)
}

func (i Install) inNode(dir string, has func(string) bool) (Installed, error) {
	var p struct {
		Version string
		Bin     any
	}
	at := filepath.Join(dir, "node_modules", filepath.FromSlash(i.name))
	text, err := os.ReadFile(filepath.Join(at, "package.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return Installed{}, fmt.Errorf("looking for %s in %q: it is not installed", i.name, dir)
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return Installed{}, fmt.Errorf("reading what is installed in %q: %w", dir, err)
	}
	files := map[string]string{}
	switch bin := p.Bin.(type) {
	case string:
		files[path.Base(i.name)] = bin
	case map[string]any:
		for name, file := range bin {
			files[name], _ = file.(string)
		}
	}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	if _, one := p.Bin.(string); one && i.bin != "" { // a package with one program, which may be called as one likes
		names, files = []string{i.bin}, map[string]string{i.bin: files[path.Base(i.name)]}
	}
	bin, err := i.program(names, path.Base(i.name))
	if err != nil {
		return Installed{}, err
	}
	file := filepath.FromSlash(strings.TrimPrefix(files[bin], "./"))
	if !filepath.IsLocal(file) {
		return Installed{}, fmt.Errorf("looking for the program of %s: %q is not in the package", i.name, files[bin])
	}
	c := i.of
	c.Path, c.Args = filepath.Join(at, file), i.args
	if !has("node") && (i.runner == "bun" || i.runner == "bunx") {
		c.Path, c.Args = "bun", append([]string{c.Path}, i.args...)
	}
	return Installed{p.Version, integrity(dir, i.name, p.Version), c}, nil
}

// integrity returns the print that a registry gave of a package's archive, as the installer has it in its lock file.
func integrity(dir, name, version string) string {
	var lock struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	if text, err := os.ReadFile(filepath.Join(dir, "package-lock.json")); err == nil && json.Unmarshal(text, &lock) == nil {
		return lock.Packages["node_modules/"+name].Integrity
	}
	id := regexp.QuoteMeta(name + "@" + version)
	for file, form := range map[string]string{
		"bun.lock":       `\["` + id + `",.*"(sha512-[A-Za-z0-9+/=]+)"\]`,
		"pnpm-lock.yaml": `(?m)^  '?` + id + `'?:\n    resolution: \{integrity: (sha512-[A-Za-z0-9+/=]+)`,
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			continue
		}
		if m := regexp.MustCompile(form).FindSubmatch(text); m != nil {
			return string(m[1])
		}
	}
	return ""
}
