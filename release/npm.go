package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

var (
	//go:embed npm/rootbound.cjs
	shim []byte
	//go:embed npm/README.md
	npmReadme []byte
)

// npmPackage is what package.json says, in the order in which people read it.
type npmPackage struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Description  string            `json:"description"`
	License      string            `json:"license"`
	Homepage     string            `json:"homepage"`
	Repository   npmRepository     `json:"repository"`
	Keywords     []string          `json:"keywords,omitempty"`
	Bin          map[string]string `json:"bin,omitempty"`
	Man          []string          `json:"man,omitempty"`
	OS           []string          `json:"os,omitempty"`
	CPU          []string          `json:"cpu,omitempty"`
	Unplugged    bool              `json:"preferUnplugged,omitempty"` // a program inside of an archive cannot be started
	Engines      map[string]string `json:"engines,omitempty"`
	Dependencies map[string]string `json:"optionalDependencies,omitempty"`
}

type npmRepository struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

// node names a platform as Node does.
func (p platform) node() string {
	name := func(s string) string {
		switch s {
		case "windows":
			return "win32"
		case "amd64":
			return "x64"
		}
		return s
	}
	return name(p.os) + "-" + name(p.arch)
}

// npm makes a package for each platform, which has its program, and the one that people install. That one names all of them as
// optional dependencies, of which npm installs the one that is for the machine: so nothing has to be downloaded or run
// when it is installed.
func (r *release) npm(built []*program, _ string) error {
	notice, err := r.text("NOTICE")
	if err != nil {
		return err
	}
	license, err := r.text("LICENSE")
	if err != nil {
		return err
	}
	common := npmPackage{
		Version: r.version, Description: summary, License: "Apache-2.0", Homepage: home,
		Repository: npmRepository{"git", "git+" + home + ".git"},
	}
	for _, b := range built {
		system, cpu, _ := strings.Cut(b.node(), "-")
		p := common
		p.Name, p.OS, p.CPU, p.Unplugged = "@rootbound/"+b.node(), []string{system}, []string{cpu}, true
		p.Description = fmt.Sprintf("The program of rootbound for %s", b.platform)
		readme := fmt.Sprintf("# %s\n\nThe program of [rootbound](%s) for %s. Install `rootbound`, which brings this along.\n", p.Name, home, b.platform)
		if err := r.pack(p, "rootbound-"+b.node(), []file{
			executable(b.file(), b.data), plain("README.md", []byte(readme)), plain("LICENSE", license), plain("NOTICE", notice),
			plain("LICENSES.txt", licenses(b)), plain("parts.cdx.json", r.made[r.partsName(b)]),
		}); err != nil {
			return err
		}
	}
	p := common
	p.Name, p.Bin, p.Engines = "rootbound", map[string]string{"rootbound": "bin/rootbound.cjs"}, map[string]string{"node": ">=20"}
	p.Keywords = []string{"mcp", "model-context-protocol", "roots", "sandbox", "security", "filesystem"}
	p.Dependencies = map[string]string{}
	for _, known := range platforms { // also those that this run leaves out: the package is the same
		p.Dependencies["@rootbound/"+known.node()] = r.version
	}
	manual := below("man/man1", r.manual)
	for _, m := range manual {
		p.Man = append(p.Man, "./"+m.name)
	}
	files := []file{executable("bin/rootbound.cjs", shim), plain("README.md", npmReadme), plain("LICENSE", license), plain("NOTICE", notice)}
	return r.pack(p, "rootbound", slices.Concat(files, manual, below("completions", r.complete)))
}

// pack makes a package as npm pack does.
func (r *release) pack(p npmPackage, name string, files []file) error {
	about, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the package.json of %s: %w", p.Name, err)
	}
	packed, err := tarGz(append([]file{plain("package.json", append(about, '\n'))}, files...), "package/", r.time)
	if err != nil {
		return fmt.Errorf("packing %s: %w", p.Name, err)
	}
	r.made[fmt.Sprintf("%s-%s.tgz", name, r.version)] = packed
	return nil
}
