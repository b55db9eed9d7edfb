package clientconf

import (
	"regexp"
	"strings"
	"sync"
)

// Syntax is a way to write a variable.
type Syntax string

// The ways, by example.
const (
	Dollar        Syntax = "$NAME"
	Braces        Syntax = "${NAME}"
	BracesDefault Syntax = "${NAME:-default}"
	BracesEnv     Syntax = "${env:NAME}"
	BracesFile    Syntax = "${file:path}"
	CurlyEnv      Syntax = "{env:NAME}"
	CurlyFile     Syntax = "{file:path}"
	Workspace     Syntax = "${workspaceFolder}"
	WorkspaceOf   Syntax = "${workspaceFolder:name}"
	WorkspaceName Syntax = "${workspaceFolderBasename}"
	UserHome      Syntax = "${userHome}"
	Separator     Syntax = "${pathSeparator}"
	Input         Syntax = "${input:id}"
	CommandOf     Syntax = "${command:id}"
	Percent       Syntax = "%NAME%"
	Mustache      Syntax = "{{NAME}}"
	Secrets       Syntax = "${{ secrets.NAME }}"
	Substitution  Syntax = "$(command)"
	Macro         Syntax = "$NAME$"
)

// Reference is a variable that a text refers to.
type Reference struct {
	Syntax  Syntax
	Name    string
	Default string // of BracesDefault
	// Start and End are where it stands in the text, in bytes.
	Start, End int
}

// references are tried in this order at each place: what is longer and says more comes first.
var references = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`` +
		`(?P<secrets>\$\{\{[^{}]*\}\})` +
		`|(?P<mustache>\{\{[^{}]*\}\})` +
		`|(?P<braces>\$\{[^{}]*\})` +
		`|(?P<curly>\{(?:env|file):[^{}]*\})` +
		`|(?P<substitution>\$\([^()]*\))` +
		`|(?P<macro>\$[A-Z][A-Z0-9_]*\$)` +
		`|(?P<dollar>\$[A-Za-z_][A-Za-z0-9_]*)` +
		`|(?P<percent>%[A-Za-z_][A-Za-z0-9_()]*%)`)
})

// References returns the variables that a text refers to, whichever client would fill them in.
func References(text string) []Reference {
	var list []Reference
	names := references().SubexpNames()
	for _, m := range references().FindAllStringSubmatchIndex(text, -1) {
		r := Reference{Start: m[0], End: m[1]}
		all := text[m[0]:m[1]]
		for i := 1; i < len(names); i++ {
			if m[2*i] < 0 {
				continue
			}
			switch names[i] {
			case "secrets":
				r.Syntax, r.Name = Secrets, strings.TrimSpace(all[3:len(all)-2])
			case "mustache":
				r.Syntax, r.Name = Mustache, strings.TrimSpace(all[2:len(all)-2])
			case "braces":
				r.braces(all[2 : len(all)-1])
			case "curly":
				kind, name, _ := strings.Cut(all[1:len(all)-1], ":")
				r.Syntax, r.Name = CurlyEnv, name
				if kind == "file" {
					r.Syntax = CurlyFile
				}
			case "substitution":
				r.Syntax, r.Name = Substitution, all[2:len(all)-1]
			case "macro":
				r.Syntax, r.Name = Macro, all[1:len(all)-1]
			case "dollar":
				r.Syntax, r.Name = Dollar, all[1:]
			case "percent":
				r.Syntax, r.Name = Percent, all[1:len(all)-1]
			}
		}
		list = append(list, r)
	}
	return list
}

func (r *Reference) braces(inner string) {
	if name, value, ok := strings.Cut(inner, ":-"); ok {
		r.Syntax, r.Name, r.Default = BracesDefault, name, value
		return
	}
	kind, rest, colon := strings.Cut(inner, ":")
	r.Name = rest
	switch {
	case colon && kind == "env":
		r.Syntax = BracesEnv
	case colon && kind == "file":
		r.Syntax = BracesFile
	case colon && kind == "input":
		r.Syntax = Input
	case colon && kind == "command":
		r.Syntax = CommandOf
	case colon && kind == "workspaceFolder":
		r.Syntax = WorkspaceOf
	case inner == "workspaceFolder":
		r.Syntax, r.Name = Workspace, inner
	case inner == "workspaceFolderBasename":
		r.Syntax, r.Name = WorkspaceName, inner
	case inner == "userHome":
		r.Syntax, r.Name = UserHome, inner
	case inner == "pathSeparator" || inner == "/":
		r.Syntax, r.Name = Separator, inner
	default:
		r.Syntax, r.Name = Braces, inner
	}
}

// Expands reports whether the client fills the reference in.
func (c *Client) Expands(r Reference) bool {
	for _, s := range c.Variables {
		if s == r.Syntax {
			return true
		}
	}
	return false
}

// Expand fills a text in as the client would on this machine. Ok is false when something remains that only the running
// client knows, or that is not set.
func (c *Client) Expand(text string, h Host) (filled string, ok bool) {
	var b strings.Builder
	ok = true
	done := 0
	for _, r := range References(text) {
		if !c.Expands(r) {
			continue
		}
		value, known := h.value(r)
		if !known {
			ok = false
			continue
		}
		b.WriteString(text[done:r.Start])
		b.WriteString(value)
		done = r.End
	}
	b.WriteString(text[done:])
	return b.String(), ok
}

// value is what a reference is on this machine.
func (h Host) value(r Reference) (string, bool) {
	switch r.Syntax {
	case Workspace:
		return h.Project, h.Project != ""
	case UserHome:
		return h.Home, h.Home != ""
	case Separator:
		if h.OS == "windows" {
			return `\`, true
		}
		return "/", true
	case Dollar, Braces, BracesDefault, BracesEnv, CurlyEnv, Percent:
		if r.Name == "CLAUDE_PROJECT_DIR" && h.Project != "" { // what the default stands for, too
			return h.Project, true
		}
		if v := h.env(r.Name); v != "" {
			return v, true
		}
		if r.Name == "HOME" || r.Name == "USERPROFILE" {
			return h.Home, h.Home != ""
		}
		return r.Default, r.Syntax == BracesDefault
	}
	return "", false
}

var credential = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^\s*(?:bearer|basic|token|apikey)?\s*$`)
})

// literal reports whether a text says anything by itself.
func literal(text string) bool { return !credential().MatchString(WithoutReferences(text)) }

// WithoutReferences is a text without the variables that it refers to.
func WithoutReferences(text string) string {
	var b strings.Builder
	done := 0
	for _, r := range References(text) {
		b.WriteString(text[done:r.Start])
		done = r.End
	}
	return b.String() + text[done:]
}
