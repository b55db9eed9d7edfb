package doctor

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/splice"
	"github.com/rootbound/rootbound/roots"
)

// rootsInside judges roots and capabilities in an entry.
func (x *examiner) rootsInside(e *entry) {
	if e.Roots == nil && e.Capabilities == nil || e.file.Dead() {
		return
	}
	x.rootURIs(e, e.Roots)
	if list := items(e.Capabilities, "roots", "roots"); list != nil {
		x.findIn("ROOT-LEVEL", e, at(e.Capabilities, "roots", "roots").Pos, "The roots stand inside capabilities, which only declare that there are some.",
			"Write them beside capabilities, as roots.")
		return
	}
	key, pos := "roots", memberPos(e.Entry, "roots")
	if e.Roots == nil {
		key, pos = "capabilities", memberPos(e.Entry, "capabilities")
	}
	if x.readByGuard(e) {
		return
	}
	x.findIn("ROOT-KEY", e, pos, fmt.Sprintf("%s does not know %s in an entry.", e.client.Name, word(key)), x.guardLine(e), x.migrating(e))
	x.mismatch(e)
}

// readByGuard reports whether a rootbound reads the entry of this very file.
func (x *examiner) readByGuard(e *entry) bool {
	c := e.command
	if !e.target.Guarded && launch.ProgramName(c.Path) == "rootbound" && slices.Contains(c.Args, "run") {
		return slices.ContainsFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, "--config") })
	}
	return false
}

// migrating gives the options with which a rootbound run takes the place of the roots of an entry, where that is safe: each
// root can be read, is no broad one, and says nothing else than the arguments.
func (x *examiner) migrating(e *entry) option {
	dirs := rootPaths(e.Roots)
	if !e.read() || !e.Command.Given() || e.target.Guarded || x.m.Self == "" || len(dirs) == 0 || len(dirs) != len(items(e.Roots)) {
		return func(*Finding) {}
	}
	var options, given []string
	for i, d := range dirs {
		if x.broad(d) != "" || ofWindows(d) != (x.m.Host.OS == "windows") {
			return func(*Finding) {}
		}
		options = append(options, "--root", named(textAt(items(e.Roots)[i], "name"), d))
	}
	for _, d := range e.dirs {
		given = append(given, d.path)
	}
	if len(given) > 0 && !sameDirectories(dirs, given) {
		return func(*Finding) {}
	}
	return func(f *Finding) { f.migrate = options }
}

// named writes a directory as --root takes it, with the name if it can have it there.
func named(name, dir string) string {
	if name == "" || strings.ContainsAny(name, `=/\{}`) {
		return dir
	}
	return name + "=" + dir
}

// guardLine is the command line with our own in front, for a person to write.
func (x *examiner) guardLine(e *entry) string {
	dirs := rootPaths(e.Roots)
	if len(dirs) == 0 || !e.Command.Given() {
		return ""
	}
	args := []string{"rootbound", "run"}
	for _, d := range dirs {
		args = append(args, "--root", d)
	}
	return fmt.Sprintf("Put %s before the command.", word(strings.Join(append(args, "--"), " ")))
}

// rootPaths returns the directories of a list of roots, as far as they can be read.
func rootPaths(list *splice.Value) []string {
	var paths []string
	for _, item := range items(list) {
		text, _ := rootText(item)
		if path, err := roots.ParseURI(text); err == nil {
			if strings.HasPrefix(path, "/") && drive().MatchString(path[1:]) { // of Windows, read on another system
				path = path[1:]
			}
			paths = append(paths, path)
		} else if absolute(text) {
			paths = append(paths, text)
		}
	}
	return paths
}

// rootText returns what an item of a list of roots names, and where: a table with uri or path, or a text.
func rootText(item *splice.Value) (string, splice.Pos) {
	if item.Kind == splice.StringKind {
		return item.Text, item.Pos
	}
	for _, key := range []string{"uri", "path"} {
		if v := at(item, key); v != nil && v.Kind == splice.StringKind {
			return v.Text, v.Pos
		}
	}
	return "", item.Pos
}

var doubleSlashDrive = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^file://[A-Za-z]:`)
})

// rootURIs judges the URIs and the names of a list of roots.
func (x *examiner) rootURIs(e *entry, list *splice.Value) {
	for _, r := range judgeURIs(list) {
		var options []option
		if r.right != "" {
			options = append(options, mending(replaceWhole(r.pos, r.text, r.right)))
		}
		x.findIn("ROOT-URI", e, r.pos, r.what, r.fix, options...)
	}
	if pos, ok := unnamed(list); ok {
		x.findIn("ROOT-NAME", e, pos, "One of several roots has no name.", "")
	}
}

// badURI is a root that is no file URI by the letter.
type badURI struct {
	pos                    splice.Pos
	text, right, what, fix string
}

func judgeURIs(list *splice.Value) []badURI {
	var bad []badURI
	for _, item := range items(list) {
		if at(item, "uri") == nil && at(item, "path") != nil { // our own form, which says that it is a path
			continue
		}
		text, pos := rootText(item)
		if text == "" {
			continue
		}
		_, err := roots.StrictURI(text)
		if doubleSlashDrive().MatchString(text) || drive().MatchString(text) {
			err = errDrive
		}
		if err == nil {
			continue
		}
		b := badURI{pos: pos, text: text, right: rightURI(text)}
		b.what = fmt.Sprintf("The root %s is no file URI by the letter: %s.", word(text), reasonOf(text, err))
		if b.right != "" {
			b.fix = fmt.Sprintf("Write %s.", word(b.right))
		}
		bad = append(bad, b)
	}
	return bad
}

var errDrive = errors.New("the drive stands where a host does")

func reasonOf(text string, err error) string {
	switch {
	case doubleSlashDrive().MatchString(text):
		return "the drive stands where a host does"
	case drive().MatchString(text) || !strings.Contains(text, ":") && absolute(text):
		return "it is a bare path"
	case strings.HasPrefix(text, "file:/") && !strings.HasPrefix(text, "file://"):
		return "it has one slash"
	case strings.ContainsAny(text, "#?"):
		return "a # or ? in it begins another part"
	}
	var e *roots.Error
	if errors.As(err, &e) {
		return strings.TrimSuffix(e.Fix, ".")
	}
	return err.Error()
}

// rightURI writes what is most likely meant as a file URI, or returns "".
func rightURI(text string) string {
	path := text
	if rest, ok := strings.CutPrefix(text, "file:"); ok {
		trimmed := strings.TrimLeft(rest, "/")
		switch slashes := len(rest) - len(trimmed); {
		case drive().MatchString(trimmed):
			path = trimmed
		case slashes == 2: // a host, perhaps: nobody can tell
			return ""
		default:
			path = "/" + trimmed
		}
		path = strings.NewReplacer("#", "%23", "?", "%3F").Replace(path)
		if !ofWindows(path) {
			decoded, err := roots.ParseURI("file://" + path)
			if err != nil {
				return ""
			}
			return fileURI(decoded)
		}
		return fileURI(path)
	}
	if !absolute(path) {
		return ""
	}
	return fileURI(path)
}

// fileURI is roots.FileURI for paths of either kind of system.
func fileURI(path string) string {
	if !ofWindows(path) {
		return roots.FileURI(path)
	}
	path = strings.ReplaceAll(path, `\`, "/")
	if strings.HasPrefix(path, "//") {
		return "file:" + path
	}
	return roots.FileURI("/" + path)
}

// unnamed finds a root without a name among several.
func unnamed(list *splice.Value) (splice.Pos, bool) {
	all := items(list)
	if len(all) < 2 {
		return splice.Pos{}, false
	}
	for _, item := range all {
		if textAt(item, "name") == "" {
			return item.Pos, true
		}
	}
	return splice.Pos{}, false
}

// mismatch compares the directory arguments of an entry with its roots.
func (x *examiner) mismatch(e *entry) {
	told := rootPaths(e.Roots)
	if len(told) == 0 || len(e.dirs) == 0 {
		return
	}
	var given []string
	for _, d := range e.dirs {
		given = append(given, d.path)
	}
	if sameDirectories(told, given) {
		return
	}
	x.findIn("ROOT-MISMATCH", e, e.dirs[0].text.Pos, fmt.Sprintf("The arguments name %s, and the roots %s.", words(given), words(told)), x.guardLine(e))
}

// sameDirectories reports whether two lists name the same places, by their text.
func sameDirectories(a, b []string) bool {
	clean := func(list []string) []string {
		var out []string
		for _, s := range list {
			if ofWindows(s) {
				s = strings.ToLower(strings.ReplaceAll(s, `\`, "/"))
			}
			s = filepath.Clean(s)
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(clean(a), clean(b))
}

// rootsBeside judges roots at the top of a client's file.
func (x *examiner) rootsBeside(f *clientconf.File) {
	if f.Dead() || f.Tree == nil || len(f.Servers) == 0 {
		return
	}
	list := at(f.Tree, "roots")
	if list == nil || list.Kind != splice.ArrayKind {
		return
	}
	x.find("ROOT-LEVEL", f, memberPos(f.Tree, "roots"), "The roots stand beside the servers of this file, and in such a file they are read in each server.",
		"Move them into the entry of each server that has them, or write them in rootbound.toml, where they may be for all.")
	for _, r := range judgeURIs(list) {
		x.find("ROOT-URI", f, r.pos, r.what, r.fix, mending(replaceWhole(r.pos, r.text, r.right)))
	}
	if pos, ok := unnamed(list); ok {
		x.find("ROOT-NAME", f, pos, "One of several roots has no name.", "")
	}
}

// client judges what an entry gets by what its client does about roots.
func (x *examiner) client(e *entry) {
	if !e.known || !e.profile.Filesystem || e.Disabled || e.target.Guarded || e.Remote() || !e.profile.TakesDirectories() {
		return
	}
	sends := e.client.Roots.Sends
	if len(e.dirs) == 0 {
		switch sends {
		case clientconf.No:
			x.findIn("ROOT-NONE", e, posOr(e.Command.Pos, e.Pos), fmt.Sprintf("%s gets no directory in its arguments, and %s sends no roots.", upper(e.profile.Name), e.client.Name), x.withDirectory(e))
		case clientconf.Empty:
			x.findIn("ROOT-EMPTY", e, posOr(e.Command.Pos, e.Pos), fmt.Sprintf("%s declares roots and answers with none.", e.client.Name), x.withDirectory(e))
		case clientconf.Yes:
			x.findIn("ROOT-DEPRECATED", e, posOr(e.Command.Pos, e.Pos), fmt.Sprintf("%s gets its directories from the roots of %s alone.", upper(e.profile.Name), e.client.Name), x.withDirectory(e))
			if e.client.Roots.Announces == clientconf.No {
				x.findIn("ROOT-STALE", e, posOr(e.Command.Pos, e.Pos), fmt.Sprintf("%s never says that its roots changed.", e.client.Name), "")
			}
		}
		return
	}
	switch sends {
	case clientconf.Empty:
		x.findIn("ROOT-EMPTY", e, e.dirs[0].text.Pos, fmt.Sprintf("%s declares roots and answers with none.", e.client.Name),
			fmt.Sprintf("Put rootbound run before the command, for which an empty list is no opinion: %s.", wrapping(e.client.ID, e.Name)))
	case clientconf.Yes:
		x.replaced(e)
	}
}

// replaced judges directory arguments that the client's roots take the place of.
func (x *examiner) replaced(e *entry) {
	if !replacesArguments(e.target) {
		return
	}
	var given []string
	all := true // the arguments are what the client sends anyway
	for _, d := range e.dirs {
		given = append(given, d.text.Text)
		all = all && x.isProject(e, d)
	}
	folders := foldersOf(e.file)
	if all && len(folders) < 2 {
		return
	}
	sent := "its own list"
	switch {
	case len(folders) > 1:
		sent = fmt.Sprintf("every folder of the workspace (%s)", words(folders))
	case e.client.Roots.Text != "":
		sent = strings.TrimSuffix(e.client.Roots.Text, ".")
	}
	x.findIn("ROOT-REPLACED", e, e.dirs[0].text.Pos, fmt.Sprintf("The arguments name %s, and %s sends roots: %s.", words(given), e.client.Name, sent),
		fmt.Sprintf("Put rootbound run before the command, and the client's list can only narrow them: %s.", wrapping(e.client.ID, e.Name)))
}

// withDirectory says what the arguments are with a directory.
func (x *examiner) withDirectory(e *entry) string {
	dir := "/path/to/the/project"
	if p := x.project(e); p != "" && !x.m.Alone && x.broad(p) == "" {
		dir = p
	}
	return fmt.Sprintf("Write the directory behind the command: args = %s.", quotedList(append(calllog.RedactArgs(e.command.Args), dir)))
}

// isProject reports whether a directory is the one that is worked in, as far as can be told.
func (x *examiner) isProject(e *entry, d directory) bool {
	if refs := clientconf.References(d.text.Text); len(refs) == 1 && refs[0].Start == 0 && refs[0].End == len(d.text.Text) {
		switch r := refs[0]; {
		case r.Syntax == clientconf.Workspace, r.Name == "CLAUDE_PROJECT_DIR":
			return true
		case r.Syntax == clientconf.WorkspaceOf, x.m.Alone && e.Scope != clientconf.User:
			return r.Syntax != clientconf.WorkspaceOf
		}
	}
	project := e.Project
	if e.Scope == clientconf.User || e.Scope == clientconf.Profile { // it holds for whatever is opened
		return false
	}
	if x.m.Alone && e.Server.Project == e.file.Project {
		// The file may have been moved here from anywhere; one directory may be the project, two cannot.
		return len(e.dirs) == 1
	}
	return project != "" && sameDirectories([]string{d.path}, []string{project})
}
