package doctor

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/splice"
	"github.com/rootbound/rootbound/roots"
)

// directory is one that a server is given.
type directory struct {
	text   clientconf.Text // the argument that it stands in
	path   string          // as the server gets it, as far as that can be told
	exact  bool            // nothing in it is left that only the running client knows
	access roots.Access
	mount  bool // into a container
}

// dirsOf returns the directories that an entry names.
func (x *examiner) dirsOf(e *entry) []directory {
	if !e.Command.Given() {
		return nil
	}
	var list []directory
	shown := calllog.RedactArgs(e.command.Args)
	add := func(d launch.Directory, mount bool) {
		if d.Arg < 0 || d.Arg >= len(e.Args) || launch.HasPlaceholder(d.Path) || len(list) >= most {
			return
		}
		if d.Arg < len(shown) && shown[d.Arg] != e.command.Args[d.Arg] { // a secret, and would be shown as what it is not
			return
		}
		filled, exact := e.client.Expand(d.Path, x.m.Host)
		if rest, ok := tilde(filled); ok && x.m.Host.Home != "" {
			filled = x.m.Host.Home + rest
		}
		list = append(list, directory{e.Args[d.Arg], filled, exact, d.Access, mount})
	}
	for _, d := range guardDirectories(e.command) {
		add(d, false)
	}
	if len(list) == 0 && e.target.Registry == launch.OCI {
		for _, d := range mounts(e.command, e.target) {
			add(d, true)
		}
	} else if len(list) == 0 && e.known {
		for _, d := range e.profile.Directories(e.target) {
			add(d, false)
		}
	}
	return list
}

// mounts returns the directories of this machine that a container is given.
func mounts(c launch.Command, t launch.Target) []launch.Directory {
	var list []launch.Directory
	for i := 0; i < t.At && i < len(c.Args); i++ {
		name, value, in := strings.Cut(c.Args[i], "=")
		if name != "-v" && name != "--volume" && name != "--mount" {
			continue
		}
		if !in {
			if i++; i >= len(c.Args) {
				break
			}
			value = c.Args[i]
		}
		d := launch.Directory{Access: roots.ReadWrite, Arg: i}
		if name == "--mount" {
			for part := range strings.SplitSeq(value, ",") {
				switch key, of, _ := strings.Cut(part, "="); {
				case key == "source" || key == "src":
					d.Path = of
				case (key == "readonly" || key == "ro") && of != "false":
					d.Access = roots.ReadOnly
				}
			}
		} else {
			drive := ""
			if ofWindows(value) && len(value) > 2 && value[1] == ':' {
				drive, value = value[:2], value[2:]
			}
			host, rest, mounted := strings.Cut(value, ":")
			if _, options, ok := strings.Cut(rest, ":"); ok && slices.Contains(strings.Split(options, ","), "ro") {
				d.Access = roots.ReadOnly
			}
			if mounted {
				d.Path = drive + host
			}
		}
		if _, home := tilde(d.Path); home || absolute(d.Path) || strings.HasPrefix(d.Path, ".") || strings.HasPrefix(d.Path, "$") {
			list = append(list, d) // else it is a volume with a name
		}
	}
	return list
}

// guardDirectories returns what --root and --ro of a rootbound run name.
func guardDirectories(c launch.Command) []launch.Directory {
	end := slices.Index(c.Args, "--")
	if end < 0 || !launch.Identify(c).Guarded {
		return nil
	}
	var list []launch.Directory
	for i := 0; i < end; i++ {
		name, value, in := strings.Cut(c.Args[i], "=")
		access := roots.ReadWrite
		switch name {
		case "--ro":
			access = roots.ReadOnly
		case "--root":
		default:
			continue
		}
		if !in {
			if i++; i >= end {
				break
			}
			value = c.Args[i]
		}
		d := launch.Directory{Access: access, Arg: i}
		if d.Name, d.Path = launch.SplitName(value, nil); d.Path != launch.Active {
			list = append(list, d)
		}
	}
	return list
}

// tilde reports whether a path begins with a home directory, and returns what follows.
func tilde(s string) (rest string, ok bool) {
	if s == "~" {
		return "", true
	}
	if strings.HasPrefix(s, "~/") || strings.HasPrefix(s, `~\`) {
		return s[1:], true
	}
	return "", false
}

var drive = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z]:([\\/]|$)`)
})

// ofWindows reports whether a path is written as Windows has it.
func ofWindows(s string) bool { return drive().MatchString(s) || strings.HasPrefix(s, `\\`) }

// absolute reports whether a path begins at a top, of either kind of system.
func absolute(s string) bool { return strings.HasPrefix(s, "/") || ofWindows(s) }

// beneath cuts a directory, and what separates it, from the front of a path that is in it: by their text, both whole and clean as
// this system has them.
func beneath(path, dir string) (rest string, ok bool) {
	const separator = string(filepath.Separator)
	return strings.CutPrefix(path, strings.TrimSuffix(dir, separator)+separator)
}

// elements splits a path of either kind of system.
func elements(s string) []string {
	return strings.FieldsFunc(s, func(c rune) bool { return c == '/' || c == '\\' })
}

// pathWord is a word of an entry that is a path.
type pathWord struct {
	path  string
	text  clientconf.Text
	start int // where the path begins in the text
	in    string
}

// pathWords returns what is a path for certain: directories of servers that are known, and of the others what is written
// as only paths are.
func (e *entry) pathWords() []pathWord {
	var list []pathWord
	add := func(path string, t clientconf.Text, start int, in string) {
		if path != "" && !strings.ContainsFunc(path, unicode.IsControl) { // which is told of the text
			list = append(list, pathWord{path, t, start, in})
		}
	}
	if c := e.Command.Text; strings.ContainsAny(c, `/\`) && !strings.ContainsAny(c, " \t") {
		add(c, e.Command, 0, "the command")
	}
	if len(e.dirs) > 0 {
		for _, d := range e.dirs {
			path := d.text.Text
			if i := strings.LastIndex(path, "="); i >= 0 && !absolute(path) {
				path = path[i+1:]
			}
			add(path, d.text, len(d.text.Text)-len(path), "a directory argument")
		}
	} else if !e.known {
		for _, a := range e.Args {
			word := a.Text
			if name, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(name, "-") {
				word = value
			}
			if _, home := tilde(word); home || word == "." || word == ".." || strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../") ||
				strings.HasPrefix(word, `.\`) || strings.HasPrefix(word, `..\`) {
				add(word, a, len(a.Text)-len(word), "an argument")
			}
		}
	}
	add(e.Cwd.Text, e.Cwd, 0, "the working directory")
	return list
}

// paths judges how the paths of an entry are written.
func (x *examiner) paths(e *entry) {
	if e.file.Place.Format.Grammar == clientconf.Shell || shellOf(e.command) != "" || e.file.Dead() {
		return
	}
	pinned := absolute(e.Cwd.Text) && !e.client.IgnoresCwd // relative paths start there
	if refs := clientconf.References(e.Cwd.Text); !e.client.IgnoresCwd && len(refs) > 0 && refs[0].Start == 0 && e.client.Expands(refs[0]) {
		pinned = true
	}
	if e.Cwd.Given() && e.client.IgnoresCwd && e.read() {
		x.findIn("CWD-IGNORED", e, e.Cwd.Pos, fmt.Sprintf("%s does not start the server in %s.", e.client.Name, word(e.Cwd.Text)), "")
	}
	for _, w := range e.pathWords() {
		refs := clientconf.References(w.path)
		switch rest, home := tilde(w.path); {
		case home && e.expandsTilde(w):
		case home:
			x.tilde(e, w, rest)
		case !e.read(): // nothing is started from there
		case absolute(w.path) || len(refs) > 0 && refs[0].Start == 0: // a variable leads to where it leads
			if slices.Contains(elements(w.path), "..") {
				x.findIn("PATH-PARENT", e, w.text.Pos, fmt.Sprintf("%s is %s, which climbs.", upper(w.in), word(w.path)), "")
			}
		case pinned && w.in != "the working directory":
		case w.in == "the command" && !strings.HasPrefix(w.path, "."): // bin/serve is looked up in its own way
			x.relative(e, w)
		case slices.Contains(elements(w.path), ".."):
			x.findIn("PATH-PARENT", e, w.text.Pos, fmt.Sprintf("%s is %s, which climbs out of where the server is started.", upper(w.in), word(w.path)), "")
		default:
			x.relative(e, w)
		}
	}
}

// startsIn is where clients start servers, if that is no project.
func startsIn(e *entry) string {
	switch {
	case e.client.ID == "cursor" && e.Scope == clientconf.User:
		return "the home directory"
	case e.client.ID == "cline", e.client.ID == "zed":
		return "/"
	}
	return ""
}

func (x *examiner) relative(e *entry, w pathWord) {
	fix := ""
	if p := x.project(e); p != "" && !x.m.Alone {
		fix = fmt.Sprintf("Write the whole path, such as %s.", word(filepath.Join(p, w.path)))
	}
	what := fmt.Sprintf("%s is %s, which depends on where %s was started.", upper(w.in), word(w.path), e.client.Name)
	switch in := startsIn(e); {
	case in == "the home directory" && (path.Clean(w.path) == "." || len(e.dirs) > 0):
		x.findIn("ROOT-HOME-CWD", e, w.text.Pos, fmt.Sprintf("%s is %s, and %s starts this server in %s.", upper(w.in), word(w.path), e.client.Name, in), fix)
		return
	case in != "":
		what = fmt.Sprintf("%s is %s, and %s may start the server in %s.", upper(w.in), word(w.path), e.client.Name, word(in))
	}
	x.findIn("PATH-RELATIVE", e, w.text.Pos, what, fix)
}

// expandsTilde reports whether the path is for a program of ours, which takes ~/ for the home directory.
func (e *entry) expandsTilde(w pathWord) bool {
	if w.in != "a directory argument" {
		return false
	}
	return e.target.Name == "rootbound fs" || len(guardDirectories(e.command)) > 0
}

func (x *examiner) tilde(e *entry, w pathWord, rest string) {
	options := []option{}
	if w.in == "a directory argument" && expandsHome(e.target) {
		options = append(options, milder(Warning), because("This server expands it by itself; others, and other clients' variables beside it, are not expanded."))
	}
	fix := ""
	if home := x.m.Host.Home; home != "" {
		fix = fmt.Sprintf("Write %s.", word(home+rest))
		options = append(options, mending(replaceIn(w.text.Pos, w.start, w.start+1, home)))
	}
	x.findIn("PATH-TILDE", e, w.text.Pos, fmt.Sprintf("%s does not expand the ~ in %s, %s.", e.client.Name, word(w.path), w.in), fix, options...)
}

// upper begins a sentence.
func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// directories judges where the directories of an entry lead.
func (x *examiner) directories(e *entry) {
	for _, d := range e.dirs {
		if !d.exact || !absolute(d.path) {
			continue
		}
		if wide := x.broad(d.path); wide != "" {
			fix := ""
			p := x.project(e)
			if _, in := beneath(p, filepath.Clean(d.path)); in && !x.m.Alone && x.broad(p) == "" {
				fix = fmt.Sprintf("Name the directory that the work is in, such as %s.", word(p))
			}
			x.findIn("ROOT-BROAD", e, d.text.Pos, fmt.Sprintf("The directory %s is %s.", word(d.path), wide), fix)
			continue
		}
		if x.m.Alone {
			continue
		}
		if ofWindows(d.path) != (x.m.Host.OS == "windows") {
			if e.profile.Paths == launch.Local || d.mount {
				x.findIn("ROOT-WSL", e, d.text.Pos, fmt.Sprintf("The directory %s is written as another system has it than this one.", word(d.path)), "")
			}
			continue
		}
		if e.profile.Paths == launch.Local || d.mount {
			x.there(e, d)
		}
	}
	if program := launch.ProgramName(e.command.Path); program == "wsl" {
		for _, a := range e.Args {
			if drive().MatchString(a.Text) {
				x.findIn("ROOT-WSL", e, a.Pos, fmt.Sprintf("The server runs inside WSL, and %s is a path of Windows.", word(a.Text)),
					fmt.Sprintf("Write %s.", word("/mnt/"+strings.ToLower(a.Text[:1])+strings.ReplaceAll(a.Text[2:], `\`, "/"))))
			}
		}
	}
	if x.m.Alone || !absolute(e.Cwd.Text) || e.client.IgnoresCwd || ofWindows(e.Cwd.Text) != (x.m.Host.OS == "windows") {
		return
	}
	if info, err := os.Stat(e.Cwd.Text); err != nil {
		x.findIn("PATH-MISSING", e, e.Cwd.Pos, fmt.Sprintf("The working directory %s is not there.", word(e.Cwd.Text)), "", milder(Error),
			because("The client cannot start the server in it."))
	} else if !info.IsDir() {
		x.findIn("PATH-FILE", e, e.Cwd.Pos, fmt.Sprintf("The working directory %s is a file.", word(e.Cwd.Text)), "", milder(Error),
			because("The client cannot start the server in it."))
	}
}

// there looks at a directory.
func (x *examiner) there(e *entry, d directory) {
	got, err := roots.Resolve(d.path, roots.ResolveOptions{Access: d.access, AllowBroad: true})
	var refused *roots.Error
	switch {
	case errors.As(err, &refused) && refused.Reason == roots.Missing:
		fix := ""
		if near := nearestAbove(d.path); near != "" {
			fix = fmt.Sprintf("Make it, or correct the path: %s is there.", word(near))
		}
		x.findIn("PATH-MISSING", e, d.text.Pos, fmt.Sprintf("The directory %s is not there.", word(d.path)), fix)
	case err != nil:
		x.findIn("PATH-MISSING", e, d.text.Pos, fmt.Sprintf("The directory %s cannot be opened.", word(d.path)), "Let this user read it, or take it out.")
	case got.File:
		x.findIn("PATH-FILE", e, d.text.Pos, fmt.Sprintf("%s is a file.", word(d.path)), fmt.Sprintf("Name the directory: %s.", word(filepath.Dir(d.path))))
	default:
		if info, err := os.Lstat(d.path); err == nil && info.Mode()&os.ModeSymlink != 0 {
			x.findIn("PATH-SYMLINK", e, d.text.Pos, fmt.Sprintf("The directory %s is a link to %s.", word(d.path), word(got.Path)),
				fmt.Sprintf("Write %s.", word(got.Path)))
		}
	}
}

// nearestAbove returns the deepest directory above a path that is there, unless that says nothing.
func nearestAbove(path string) string {
	for up := filepath.Dir(path); up != filepath.Dir(up); up = filepath.Dir(up) {
		if info, err := os.Stat(up); err == nil && info.IsDir() {
			return up
		}
	}
	return ""
}

// keys are directories in a home that hold keys, or the configuration of what runs with them.
var keys = map[string]string{
	".ssh": "where keys are", ".gnupg": "where keys are", ".aws": "where keys are", ".azure": "where keys are", ".kube": "where keys are",
	".docker": "where keys are", ".password-store": "where passwords are", ".config": "where programs keep their configuration and keys",
	".local": "where programs keep what they know", "Library": "where programs keep their configuration and keys",
	"AppData": "where programs keep their configuration and keys",
}

var homesOfWindows = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^[a-z]:[\\/]+(users|documents and settings)([\\/]+[^\\/]+)?[\\/]*$`)
})

// broad says what a directory is that is too wide, or "".
func (x *examiner) broad(dir string) string {
	switch {
	case strings.Trim(dir, `/\`) == "" || drive().MatchString(dir) && strings.Trim(dir[2:], `/\`) == "":
		return "the whole disk"
	case homesOfWindows().MatchString(dir):
		return "a home directory, or holds them"
	case ofWindows(dir) && x.m.Host.OS != "windows":
		return ""
	}
	clean := filepath.Clean(dir)
	if home := x.m.Host.Home; home != "" {
		if clean == home {
			return "the home directory"
		}
		if _, above := beneath(home, clean); above {
			return "above the home directory"
		}
		if rest, ok := beneath(clean, home); ok {
			names := elements(rest)
			if is, ok := keys[names[0]]; ok && (len(names) == 1 || names[0] == ".ssh" || names[0] == ".gnupg") {
				return is
			}
			if len(names) == 1 && slices.Contains(ownDirectories, names[0]) {
				return "the configuration of a client"
			}
		}
	}
	if !x.m.Alone && roots.Broad(clean) || x.m.Alone && homesOfUnix().MatchString(clean) {
		return "a home directory, or holds them"
	}
	return ""
}

var homesOfUnix = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/(home|Users|var/home|usr/home|export/home)(/[^/]+)?$|^/root$`)
})

// ownDirectories are those of clients in a home.
var ownDirectories = []string{
	".claude", ".cursor", ".codex", ".gemini", ".cline", ".copilot", ".codeium", ".continue", ".kiro", ".warp", ".lmstudio", ".junie", ".ai",
}

// posOr is the first place that is one.
func posOr(list ...splice.Pos) splice.Pos {
	for _, p := range list {
		if p.Line > 0 {
			return p
		}
	}
	return splice.Pos{}
}
