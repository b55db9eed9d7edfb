package launch

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rootbound/rootbound/roots"
)

// Paths says what a server means by the paths in its calls.
type Paths uint8

const (
	// Local paths are paths of this disk: all of them are judged.
	Local Paths = iota
	// Elsewhere means that they are paths of a repository, a drive or another machine: only file URIs and ~/ are judged.
	Elsewhere
)

// String returns "local" or "elsewhere".
func (p Paths) String() string {
	if p == Elsewhere {
		return "elsewhere"
	}
	return "local"
}

// Profile is what is known of a server.
type Profile struct {
	// Name is for people.
	Name string
	// Filesystem is set for servers whose purpose is the files of this machine.
	Filesystem bool
	// Paths says what the paths in its calls mean.
	Paths Paths

	names []string // what Lookup finds it by: "npm:NAME", or the name of a program
	read  string   // the newest version whose code was read, empty when it has no number
	dirs  arguments

	effects *effects // what its tools do, where that was read
}

// Directory is an argument that names a directory.
type Directory struct {
	// Path is as it is written.
	Path string
	// Name is for rootbound's own [NAME=]DIR.
	Name string
	// Access is what the server is told to do with it.
	Access roots.Access
	// Arg is the index in Command.Args.
	Arg int
	// Placeholder is what to write in its place to have it filled from the roots.
	Placeholder string
}

// arguments says which arguments of a server are directories.
type arguments struct {
	words  bool // those that are no options
	named  bool // a directory may be written NAME=DIR
	values string
	dirs   map[string]option
}

// option is one whose value names a directory.
type option struct {
	access roots.Access
	path   func(value string) string // nil: the value is the directory
}

var everyWord = arguments{words: true}

// Versions: as read in November 2026. See docs/configuration.md for what a profile changes.
var profiles = []Profile{
	{
		Name: "Rootbound's filesystem server", Filesystem: true,
		names: []string{"rootbound fs"},
		dirs: arguments{
			words: true, named: true,
			values: "--client-roots --log --ask --config --server",
			dirs:   map[string]option{"--root": {access: roots.ReadWrite}, "--ro": {access: roots.ReadOnly}},
		},
	},
	{
		Name: "the reference filesystem server", Filesystem: true,
		names: []string{"npm:@modelcontextprotocol/server-filesystem", "oci:mcp/filesystem"},
		read:  "2026.8.31", dirs: everyWord, effects: &filesystemEffects,
	},
	{
		// The program of that name comes from both packages; the second takes its directories by an option.
		Name: "a filesystem server on Node", Filesystem: true,
		names: []string{"npm:@agent-infra/mcp-server-filesystem", "mcp-server-filesystem"},
		read:  "1.2.29",
		dirs: arguments{
			words: true, values: "--host --port",
			dirs: map[string]option{"--allowed-directories": {access: roots.ReadWrite}},
		},
	},
	{
		Name: "mcp-filesystem-server", Filesystem: true,
		names: []string{"mcp-filesystem-server", "go:github.com/mark3labs/mcp-filesystem-server"},
		dirs:  everyWord,
	},
	{
		Name: "mcp-file-tools", Filesystem: true,
		names: []string{"mcp-file-tools", "go:github.com/dimitar-grigorov/mcp-file-tools/cmd/mcp-file-tools"},
		dirs:  everyWord,
	},
	{
		Name: "rust-mcp-filesystem", Filesystem: true,
		names: []string{"rust-mcp-filesystem"},
		read:  "0.4.2",
		dirs:  arguments{words: true, values: "-d --disable-tools"},
	},
	{
		Name: "filesystem-mcp-rs", Filesystem: true,
		names: []string{"filesystem-mcp-rs"},
		read:  "0.1.11",
		dirs:  arguments{words: true, values: "-p --port -b --bind -l --log --http-allowlist-domain --s3-allowlist-bucket"},
	},
	{
		Name: "mcp-filesystem", Filesystem: true,
		names: []string{"mcp-filesystem", "pypi:mcp-filesystem"},
		dirs:  arguments{words: true, values: "-t --transport -p --port"},
	},
	{
		Name: "mcp-workspace", Filesystem: true,
		names: []string{"mcp-workspace", "pypi:mcp-workspace"},
		dirs: arguments{
			values: "--log-level --log-file",
			dirs: map[string]option{
				"--project-dir":       {access: roots.ReadWrite},
				"--reference-project": {access: roots.ReadOnly, path: referenceProject},
			},
		},
	},
	{
		Name: "Desktop Commander", Filesystem: true, // its directories are in its own configuration
		names: []string{"npm:@wonderwhy-er/desktop-commander", "desktop-commander"},
	},
	{
		Name: "fast-filesystem-mcp", Filesystem: true, // has no directory arguments
		names: []string{"npm:fast-filesystem-mcp", "fast-filesystem-mcp"},
	},

	{
		Name:  "the reference memory server",
		names: []string{"npm:@modelcontextprotocol/server-memory"},
		read:  "2026.8.31", effects: &memoryEffects,
	},
	{
		Name:  "the reference server for sequential thinking",
		names: []string{"npm:@modelcontextprotocol/server-sequential-thinking"},
		read:  "2026.8.31", effects: &thinkingEffects,
	},

	{
		Name: "the GitHub server", Paths: Elsewhere,
		names: []string{"github-mcp-server", "npm:@modelcontextprotocol/server-github", "oci:ghcr.io/github/github-mcp-server"},
		read:  "2025.4.8",
	},
	{
		Name: "the GitLab server", Paths: Elsewhere,
		names: []string{"npm:@modelcontextprotocol/server-gitlab"},
		read:  "2025.4.25",
	},
	{
		Name: "the Google Drive server", Paths: Elsewhere,
		names: []string{"npm:@modelcontextprotocol/server-gdrive"},
		read:  "2025.1.14",
	},
	{
		Name: "a remote server behind mcp-remote", Paths: Elsewhere,
		names: []string{"npm:mcp-remote", "mcp-remote"},
	},
}

// container is what holds for every image: the paths in it are not those of this disk.
var container = Profile{Name: "a server in a container", Paths: Elsewhere}

// Lookup returns the profile of what a command line runs.
func Lookup(t Target) (Profile, bool) {
	name := t.Name
	if t.Registry != "" {
		name = string(t.Registry) + ":" + name
	}
	i := slices.IndexFunc(profiles, func(p Profile) bool { return slices.Contains(p.names, name) })
	switch {
	case t.Name == "":
		return Profile{}, false
	case t.Registry == OCI:
		p := container
		if i >= 0 {
			p.Name, p.Filesystem = profiles[i].Name+" in a container", profiles[i].Filesystem
		}
		return p, true
	case i < 0:
		return Profile{}, false
	}
	return profiles[i], true
}

// Newest is the newest version whose code was read, empty when it has no number.
func (p Profile) Newest() string { return p.read }

// Covers reports whether version is one that the profile was made from, or an older one: not so for a newer version, for
// a name such as "latest", and where no version was asked for.
func (p Profile) Covers(version string) bool {
	asked, ok := numbers(version)
	known, has := numbers(p.read)
	return ok && has && slices.Compare(asked, known) <= 0
}

func numbers(version string) ([]int, bool) {
	var list []int
	for part := range strings.SplitSeq(strings.TrimPrefix(version, "v"), ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, false
		}
		list = append(list, n)
	}
	return list, true
}

// TakesDirectories reports whether the server is given its directories as arguments.
func (p Profile) TakesDirectories() bool { return p.dirs.words || len(p.dirs.dirs) > 0 }

// Directories returns the arguments of t that name directories, in order.
func (p Profile) Directories(t Target) []Directory {
	var list []Directory
	add := func(d Directory, i int) {
		d.Arg = t.At + i
		if p.dirs.named {
			d.Name, d.Path = SplitName(d.Path, nil)
		}
		if d.Path != "" && d.Path != Active {
			list = append(list, d)
		}
	}
	values := strings.Fields(p.dirs.values)
	options := true
	for i := 0; i < len(t.Args); i++ {
		word := t.Args[i]
		if !options || !strings.HasPrefix(word, "-") {
			if p.dirs.words {
				add(Directory{Path: word, Access: roots.ReadWrite, Placeholder: "{roots}"}, i)
			}
			continue
		}
		if word == "--" {
			options = false
			continue
		}
		name, value, inWord := strings.Cut(word, "=")
		o, dir := p.dirs.dirs[name]
		if !inWord && (dir || slices.Contains(values, name)) && i+1 < len(t.Args) {
			i++
			value = t.Args[i]
		}
		if !dir {
			continue
		}
		d := Directory{Path: value, Access: o.access, Placeholder: "{root}"}
		switch {
		case o.path != nil:
			d.Path, d.Placeholder = o.path(value), t.Args[i]
		case inWord:
			d.Placeholder = name + "={root}"
		}
		add(d, i)
	}
	return list
}

// referenceProject finds the directory in "name=N,path=DIR,url=U".
func referenceProject(value string) string {
	for pair := range strings.SplitSeq(value, ",") {
		if dir, ok := strings.CutPrefix(pair, "path="); ok {
			return dir
		}
	}
	return ""
}

// Active is what is written instead of a directory for the active workspace.
const Active = "@active"

// SplitName splits [NAME=]DIR at the first "=". It is all DIR when what stands before has a separator in it, or when
// isDir (nil: never) says that there is a directory of the whole name.
func SplitName(s string, isDir func(string) bool) (name, dir string) {
	name, dir, ok := strings.Cut(s, "=")
	if !ok || strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator) || isDir != nil && isDir(s) {
		return "", s
	}
	return name, dir
}
