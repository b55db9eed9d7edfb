package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// pythonStarter is the file that starts what is installed beside it: its first argument is the entry, "module:function",
// the second what the program is called.
const (
	pythonStarter = "start.py"
	pythonStart   = `import importlib, os, site, sys

top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")
sys.path[0] = top
site.addsitedir(top)
module, _, function = sys.argv[1].partition(":")
sys.argv = sys.argv[2:]
run = importlib.import_module(module)
for name in function.split("."):
    run = getattr(run, name)
sys.exit(run())
`
)

// plainly reports whether the words before a runner's program name the package and say nothing else about it.
func plainly(words []string) bool {
	named := false
	for _, w := range words {
		option, _, value := strings.Cut(w, "=")
		switch {
		case named:
			named = false
		case option == "--from" || option == "--spec":
			named = !value
		case strings.HasPrefix(w, "-") && !slices.Contains([]string{"-q", "--quiet", "--no-progress", "--offline", "--isolated", "--refresh", "--"}, w):
			return false
		}
	}
	return true
}

var pythonSpec = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([^\[@=]+(?:\[[^\]]*\])?)(?:(?:==|@)(.*))?$`)
})

// requirement is a package as pip wants it, in the version if one is given, else as it was asked for.
func requirement(spec, version string) string {
	m := pythonSpec().FindStringSubmatch(spec)
	if m == nil {
		return spec
	}
	if version == "" && m[2] != "latest" {
		version = m[2]
	}
	if version == "" {
		return m[1]
	}
	return m[1] + "==" + version
}

// python installs from Python's registry: with uv, where that is the runner, and else with pip. Only what is built already
// is taken: to build runs what is in a package.
func (i Install) python(dir, version string, has func(string) bool) (Command, []string, error) {
	site, cache := filepath.Join(dir, "site"), filepath.Join(dir, "cache")
	if !has("python3") {
		return Command{}, nil, fmt.Errorf("looking for something that runs %s: python3 is not in PATH", i.Spec)
	}
	if (i.runner == "uv" || i.runner == "uvx") && has("uv") {
		return Command{Path: "uv", Dir: dir, Env: map[string]string{"UV_CACHE_DIR": cache, "UV_NO_PROGRESS": "1"}, Args: []string{
			"pip", "install", "--python", "python3", "--target", site, "--only-binary", ":all:", requirement(i.Spec, version),
		}}, []string{"python3"}, nil
	}
	return Command{Path: "python3", Dir: dir, Env: map[string]string{"PIP_CACHE_DIR": cache}, Args: []string{
		"-m", "pip", "install", "--target", site, "--only-binary", ":all:", "--no-input", "--disable-pip-version-check",
		"--no-warn-script-location", "--report", filepath.Join(dir, "report.json"), requirement(i.Spec, version),
	}}, nil, nil
}

func (i Install) inPython(dir string, _ func(string) bool) (Installed, error) {
	infos, err := filepath.Glob(filepath.Join(dir, "site", "*.dist-info"))
	if err != nil {
		return Installed{}, err
	}
	info, version := "", ""
	for _, path := range infos {
		base := strings.TrimSuffix(filepath.Base(path), ".dist-info")
		if name, v, ok := strings.Cut(base, "-"); ok && pypiName(name) == i.name {
			info, version = path, v
		}
	}
	if info == "" {
		return Installed{}, fmt.Errorf("looking for %s in %q: it is not installed", i.name, dir)
	}
	text, err := os.ReadFile(filepath.Join(info, "entry_points.txt"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Installed{}, fmt.Errorf("reading what is installed in %q: %w", dir, err)
	}
	entries, in := map[string]string{}, false
	var names []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		name, entry, ok := strings.Cut(line, "=")
		switch {
		case strings.HasPrefix(line, "["):
			in = line == "[console_scripts]"
		case in && ok:
			entry, _, _ = strings.Cut(entry, "[")
			name = strings.TrimSpace(name)
			entries[name] = strings.TrimSpace(entry)
			names = append(names, name)
		}
	}
	short := i.name
	for _, name := range names {
		if pypiName(name) == i.name {
			short = name
		}
	}
	bin, err := i.program(names, short)
	if err != nil {
		return Installed{}, err
	}
	if !pythonEntry().MatchString(entries[bin]) {
		return Installed{}, fmt.Errorf("looking for the program of %s: %q is no entry", i.name, entries[bin])
	}
	c := i.of
	c.Path, c.Args = "python3", append([]string{"-s", filepath.Join(dir, pythonStarter), entries[bin], bin}, i.args...)
	return Installed{version, reported(dir, i.name), c}, nil
}

var pythonEntry = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$`)
})

// reported returns the print of a package's archive that pip has told.
func reported(dir, name string) string {
	var report struct {
		Install []struct {
			Metadata     struct{ Name string }
			DownloadInfo struct {
				ArchiveInfo struct{ Hashes map[string]string } `json:"archive_info"`
			} `json:"download_info"`
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil || json.Unmarshal(text, &report) != nil {
		return ""
	}
	for _, p := range report.Install {
		if hash := p.DownloadInfo.ArchiveInfo.Hashes["sha256"]; pypiName(p.Metadata.Name) == name && hash != "" {
			return "sha256:" + hash
		}
	}
	return ""
}
