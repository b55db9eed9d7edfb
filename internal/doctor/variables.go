package doctor

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/splice"
)

// use is a variable in an entry.
type use struct {
	clientconf.Reference
	at     splice.Pos
	in     string // where, for a person
	hidden bool
	plain  bool // the whole value, in which an edit can be made
}

// uses returns the variables of an entry, in the order in which people read it.
func uses(e *entry) []use {
	var list []use
	text := func(t clientconf.Text, in string) {
		for _, r := range clientconf.References(t.Text) {
			if r.Syntax == clientconf.Percent && in == "url" { // bytes of an address
				continue
			}
			list = append(list, use{r, t.Pos, in, false, true})
		}
	}
	text(e.Command, "command")
	for _, a := range e.Args {
		text(a, "args")
	}
	text(e.Cwd, "cwd")
	text(e.URL, "url")
	for kind, vars := range map[string][]clientconf.Variable{"env": e.Env, "headers": e.Headers, "": e.Foreign} {
		for _, v := range vars {
			for _, r := range v.Value.References() {
				switch r.Syntax {
				case clientconf.Dollar, clientconf.Percent, clientconf.Macro:
					if r.Name != strings.ToUpper(r.Name) || len(r.Name) < 3 { // a password may have a $ in it
						continue
					}
				}
				list = append(list, use{r, v.At, strings.TrimPrefix(kind+"."+v.Name, "."), true, false})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b use) int {
		if a.at.Line != b.at.Line {
			return a.at.Line - b.at.Line
		}
		return a.at.Column - b.at.Column
	})
	return list
}

// show writes a reference without what may be a secret in it.
func show(r clientconf.Reference) string {
	name := r.Name
	switch r.Syntax {
	case clientconf.Dollar:
		return "$" + name
	case clientconf.Braces:
		return "${" + name + "}"
	case clientconf.BracesDefault:
		return "${" + name + ":-…}"
	case clientconf.BracesEnv:
		return "${env:" + name + "}"
	case clientconf.BracesFile:
		return "${file:" + name + "}"
	case clientconf.CurlyEnv:
		return "{env:" + name + "}"
	case clientconf.CurlyFile:
		return "{file:" + name + "}"
	case clientconf.WorkspaceOf:
		return "${workspaceFolder:" + name + "}"
	case clientconf.Input:
		return "${input:" + name + "}"
	case clientconf.CommandOf:
		return "${command:" + name + "}"
	case clientconf.Percent:
		return "%" + name + "%"
	case clientconf.Mustache:
		return "{{" + name + "}}"
	case clientconf.Secrets:
		return "${{ " + name + " }}"
	case clientconf.Substitution:
		return "$(…)"
	case clientconf.Macro:
		return "$" + name + "$"
	}
	return string(r.Syntax)
}

// byShell are the ways that a shell has: who writes one of them takes the client for a shell, not for another client.
var byShell = []clientconf.Syntax{clientconf.Dollar, clientconf.Braces, clientconf.BracesDefault, clientconf.Percent}

// ofEnvironment are the ways to name an environment variable, the one to be preferred first.
var ofEnvironment = []clientconf.Syntax{
	clientconf.BracesEnv, clientconf.CurlyEnv, clientconf.Braces, clientconf.BracesDefault, clientconf.Dollar, clientconf.Percent,
}

// variables judges the variables of an entry.
func (x *examiner) variables(e *entry) {
	if e.file.Place.Format.Grammar == clientconf.Shell || shellOf(e.command) != "" {
		return // what is behind a shell is filled in by that
	}
	list := uses(e)
	foreign := slices.ContainsFunc(list, func(u use) bool { return !e.expands(u.Reference) && !slices.Contains(byShell, u.Syntax) })
	for _, u := range list {
		switch {
		case u.Syntax == clientconf.Mustache && strings.HasPrefix(u.Name, "root") && e.target.Guarded: // ours
		case e.expands(u.Reference):
			x.expanded(e, u)
		case len(e.client.Variables) == 0 && !foreign:
			x.findIn("VAR-LITERAL", e, u.at, fmt.Sprintf("%s fills in no variables, and %s has %s.", e.client.Name, u.in, word(show(u.Reference))),
				literalFix(u, x.m.Host.Home), e.unsure())
		default:
			what := fmt.Sprintf("%s does not fill in %s in %s.", e.client.Name, word(show(u.Reference)), u.in)
			fix, m := x.translated(e, u)
			x.findIn("VAR-DIALECT", e, u.at, what, fix, mending(m), e.unsure())
		}
	}
}

// expands reports whether the client fills in a reference in this file. What VS Code does with the file that it shares with
// Copilot CLI is not known better than what that does.
func (e *entry) expands(r clientconf.Reference) bool {
	if e.client.ID == "vscode" && filepath.Base(e.file.Path) == ".mcp.json" {
		copilot, _ := clientconf.Lookup("copilot-cli")
		return e.client.Expands(r) || copilot.Expands(r)
	}
	return e.client.Expands(r)
}

// unsure makes a finding about variables milder where the client is not known so well.
func (e *entry) unsure() option {
	if e.client.Writable {
		return func(*Finding) {}
	}
	return milder(Warning)
}

func literalFix(u use, home string) string {
	switch {
	case u.hidden:
		return "Set the variable where the client is started, and leave it out here: the server inherits it."
	case home != "" && (u.Name == "HOME" || u.Name == "USERPROFILE"):
		return fmt.Sprintf("Write %s in its place.", word(home))
	}
	return "Write the value in its place."
}

// translated says how the client writes a variable of another one.
func (x *examiner) translated(e *entry, u use) (string, mend) {
	written := ""
	switch u.Syntax {
	case clientconf.Dollar, clientconf.Braces, clientconf.BracesDefault, clientconf.BracesEnv, clientconf.CurlyEnv, clientconf.Percent:
		value := u.Default
		if u.hidden { // it may be the secret
			value = ""
		}
		written = environmentIn(e.client, u.Name, value)
	case clientconf.Workspace, clientconf.WorkspaceOf, clientconf.Macro:
		switch {
		case u.Syntax == clientconf.Macro && u.Name != "PROJECT_DIR":
		case slices.Contains(e.client.Variables, clientconf.Workspace):
			written = string(clientconf.Workspace)
		case e.client.ID == "claude-code":
			written = "${CLAUDE_PROJECT_DIR:-.}"
		}
	case clientconf.UserHome:
		written = environmentIn(e.client, "HOME", "")
	}
	switch {
	case written == "" && u.hidden:
		return "Set the variable where the client is started, and leave it out here: the server inherits it.", nil
	case written == "":
		return "Write the value in its place, a directory as its whole path.", nil
	case u.hidden || u.Syntax == clientconf.BracesDefault && !strings.Contains(written, ":-"):
		return fmt.Sprintf("Write %s.", written), nil
	}
	return fmt.Sprintf("Write %s.", written), replaceIn(u.at, u.Start, u.End, written)
}

// environmentIn writes an environment variable as a client has it, or "".
func environmentIn(c *clientconf.Client, name, value string) string {
	for _, s := range ofEnvironment {
		if !slices.Contains(c.Variables, s) {
			continue
		}
		switch s {
		case clientconf.BracesEnv:
			return "${env:" + name + "}"
		case clientconf.CurlyEnv:
			return "{env:" + name + "}"
		case clientconf.Braces:
			if value != "" && slices.Contains(c.Variables, clientconf.BracesDefault) {
				return "${" + name + ":-" + value + "}"
			}
			return "${" + name + "}"
		case clientconf.Dollar:
			return "$" + name
		}
	}
	return ""
}

// expanded judges a variable that the client fills in.
func (x *examiner) expanded(e *entry, u use) {
	switch u.Syntax {
	case clientconf.Workspace, clientconf.WorkspaceOf, clientconf.WorkspaceName:
		x.workspaceOf(e, u)
	case clientconf.Dollar, clientconf.Braces, clientconf.BracesEnv, clientconf.CurlyEnv, clientconf.Percent:
		if x.m.Alone || !e.read() || u.Name == "" || u.Name == "HOME" || u.Name == "CLAUDE_PROJECT_DIR" || x.m.Host.Env == nil || x.m.Host.Env(u.Name) != "" {
			return
		}
		x.findIn("VAR-UNSET", e, u.at, fmt.Sprintf("The environment variable %s in %s is not set here.", word(u.Name), u.in), "")
	}
}

// workspaceOf judges the variable of the workspace.
func (x *examiner) workspaceOf(e *entry, u use) {
	user := e.Scope == clientconf.User || e.Scope == clientconf.Profile
	folders := foldersOf(e.file)
	switch {
	case user && e.client.ID == "vscode":
		x.findIn("VAR-SCOPE", e, u.at, fmt.Sprintf("%s in %s has no folder to stand for where none is open.", word(show(u.Reference)), u.in),
			"Write ${userHome}/… or a fixed directory, or move the server to .vscode/mcp.json of the project.")
	case u.Syntax == clientconf.Workspace && len(folders) > 1:
		x.findIn("ROOT-MULTI", e, u.at, fmt.Sprintf("The workspace has %d folders, and %s in %s does not say which.", len(folders), word(show(u.Reference)), u.in),
			fmt.Sprintf("Write ${workspaceFolder:%s}, or another of %s.", folders[len(folders)-1], words(folders)))
	case u.Syntax == clientconf.Workspace && e.client.ID == "roo-code" && e.asksNobody():
		x.findIn("ROOT-FIRST-FOLDER", e, u.at, fmt.Sprintf("%s in %s is the first folder of the window, whichever one is worked in.", word(show(u.Reference)), u.in), "")
	}
}

// foldersOf returns the names of the folders of a workspace file.
func foldersOf(f *clientconf.File) []string {
	if f.Tree == nil || !strings.HasSuffix(f.Path, ".code-workspace") {
		return nil
	}
	list, _ := f.Tree.Get("folders")
	if list == nil {
		return nil
	}
	var names []string
	for _, item := range list.Items {
		name := textAt(item, "name")
		if name == "" {
			name = textAt(item, "path")
		}
		names = append(names, name)
	}
	return names
}
