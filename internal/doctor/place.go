package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/splice"
)

// place judges where a file is, and under which key it has its servers.
func (x *examiner) place(f *clientconf.File) {
	if len(f.Servers) > 0 && f.Client.Ended != "" {
		x.find("CLIENT-EOL", f, f.Servers[0].Pos, fmt.Sprintf("%s is not maintained any more: %s.", f.Client.Name, f.Client.Ended), "")
	}
	if len(f.Servers) == 0 {
		return
	}
	first := f.Servers[0].Pos
	switch f.Place.Role {
	case clientconf.Unread, clientconf.Settings:
		x.find("FILE-LEVEL", f, x.container(f.Servers[0]), fmt.Sprintf("%s does not look for servers in this file.", f.Client.Name), x.moveTo(f))
	case clientconf.Legacy:
		note := ""
		if f.Place.Note != "" {
			note = " (" + f.Place.Note + ")"
		}
		x.find("FILE-LEGACY", f, x.container(f.Servers[0]), fmt.Sprintf("This is a former place of the servers of %s%s.", f.Client.Name, note), x.moveTo(f))
	default:
		x.keys(f)
		x.twoPlaces(f)
	}
	x.managed(f, first)
	if f.Dead() {
		return
	}
	x.trust(f)
	x.twins(f)
}

// container is where the key stands that a server is under, or the server.
func (x *examiner) container(s *clientconf.Server) splice.Pos {
	if s.File.Tree == nil {
		return s.Pos
	}
	for _, m := range s.File.Tree.Members {
		if inside(m.Value, s.Pos) {
			return m.Pos
		}
	}
	return s.Pos
}

// inside reports whether a name at pos is somewhere in v.
func inside(v *splice.Value, pos splice.Pos) bool {
	for _, m := range v.Members {
		if m.Pos == pos || inside(m.Value, pos) {
			return true
		}
	}
	for _, item := range v.Items {
		if item.Pos == pos || inside(item, pos) {
			return true
		}
	}
	return false
}

// moveTo names the file to which servers belong.
func (x *examiner) moveTo(f *clientconf.File) string {
	scope := f.Place.Scope
	for _, p := range f.Client.Places {
		if p.Role != clientconf.Servers || p.Scope != scope {
			continue
		}
		for _, t := range slices.Concat(p.Paths, p.Linux) {
			if strings.HasPrefix(t, "{home}") || strings.HasPrefix(t, "{project}") || strings.HasPrefix(t, "{config}") {
				t = strings.NewReplacer("{home}", "~", "{project}/", "", "{config}", "~/.config").Replace(t)
				return fmt.Sprintf("Move them to %s, under %s.", t, word(strings.Join(p.Format.Containers[0].Keys, ".")))
			}
		}
	}
	return ""
}

// keys judges the key that the servers stand under.
func (x *examiner) keys(f *clientconf.File) {
	var read, stray []*clientconf.Server
	for _, s := range f.Servers {
		if s.Unread {
			stray = append(stray, s)
		} else {
			read = append(read, s)
		}
	}
	if len(stray) == 0 || f.Dead() {
		x.twoShapes(f, read)
		return
	}
	key := "no key"
	pos := x.container(stray[0])
	for _, m := range f.Tree.Members {
		if m.Pos == pos {
			key = word(m.Name)
			if pos == stray[0].Pos {
				key = "no key at all"
			}
		}
	}
	right := strings.Join(f.Place.Format.Containers[0].Keys, ".")
	if len(read) == 0 {
		var options []option
		if key != "no key at all" && len(f.Place.Format.Containers[0].Keys) == 1 && !f.Place.Format.Containers[0].List && at(f.Tree, right) == nil {
			for _, m := range f.Tree.Members {
				if m.Pos == pos && f.Place.Format.Grammar != clientconf.TOML {
					options = append(options, mending(renameKey(pos, m.Name, right)))
				}
			}
		}
		x.find("KEY-CONTAINER", f, pos, fmt.Sprintf("The servers stand under %s, and %s reads %s.", key, f.Client.Name, word(right)),
			fmt.Sprintf("Write %s.", word(right)), options...)
		return
	}
	x.find("KEY-BOTH", f, pos, fmt.Sprintf("Servers stand under %s as well as under %s, which %s reads.", key, word(right), f.Client.Name), "")
	for _, a := range read {
		for _, b := range stray {
			if a.Name != b.Name {
				continue
			}
			one, two := x.directoriesOf(a), x.directoriesOf(b)
			if len(one)+len(two) > 0 && !sameDirectories(one, two) {
				x.add(Finding{
					ID: "SCOPE-DRIFT", Client: f.Client.ID, Server: a.Name, File: f.Path, Line: b.Pos.Line, Column: b.Pos.Column,
					What: fmt.Sprintf("%s has %s under %s, and %s under %s.", word(a.Name), orNone(words(one)), word(right), orNone(words(two)), key),
				}, nil)
			}
		}
	}
}

// twoShapes judges a file that has servers in two forms of one client.
func (x *examiner) twoShapes(f *clientconf.File, read []*clientconf.Server) {
	if len(f.Place.Format.Containers) < 2 || f.Client.ID != "opencode" || f.Dead() {
		return
	}
	second := at(f.Tree, "mcp", "servers")
	var inner, outer *clientconf.Server
	for _, s := range read {
		if second != nil && inside(second, s.Pos) {
			inner = s
		} else {
			outer = s
		}
	}
	if inner != nil && outer != nil {
		x.find("KEY-BOTH", f, outer.Pos, "Servers stand in mcp, as in version 1 of opencode, and in mcp.servers, as in version 2.", "Keep the form of the version that is installed.")
	}
}

func orNone(s string) string {
	if s == "" {
		return "no directory"
	}
	return s
}

// directoriesOf returns the directories of a server, as they reach it.
func (x *examiner) directoriesOf(s *clientconf.Server) []string {
	var list []string
	for _, e := range x.entries {
		if e.Server == s {
			for _, d := range e.dirs {
				list = append(list, d.path)
			}
		}
	}
	return list
}

// twoPlaces judges files of one client of which only one is read.
func (x *examiner) twoPlaces(f *clientconf.File) {
	if f.Client.ID != "claude-desktop" && f.Client.ID != "antigravity" {
		return
	}
	for _, g := range x.files {
		if g == f {
			return // the one that counts comes first
		}
		if g.Client == f.Client && g.Place.Role == clientconf.Servers && !sameServers(f, g) {
			x.find("FILE-LEGACY", f, f.Servers[0].Pos, fmt.Sprintf("%s has %s, too, with other servers, and only one of the two is read.", f.Client.Name, word(x.short(g.Path))),
				fmt.Sprintf("Keep the servers in %s, and take them out here.", word(x.short(g.Path))))
			return
		}
	}
}

func sameServers(f, g *clientconf.File) bool {
	if len(f.Servers) != len(g.Servers) {
		return false
	}
	for i := range f.Servers {
		a, b := f.Servers[i], g.Servers[i]
		if a.Name != b.Name || a.Entry == nil || b.Entry == nil || !a.Entry.Equal(b.Entry) {
			return false
		}
	}
	return true
}

// switched are the files that CC Switch writes, by client.
var switched = map[string]string{
	"claude-code": ".claude.json", "codex": "config.toml", "gemini-cli": "settings.json", "opencode": "opencode.json",
}

// managed judges files that somebody else writes, or that do not count.
func (x *examiner) managed(f *clientconf.File, pos splice.Pos) {
	for _, g := range x.files {
		switch {
		case g.Client.ID == "cc-switch" && g.Place.Role == clientconf.Presence && f.Place.Scope == clientconf.User && switched[f.Client.ID] == filepath.Base(f.Path):
			x.find("MANAGED", f, pos, "CC Switch is on this machine and writes this file when it syncs.", "Change the server in CC Switch, and sync.")
		case g.Client == f.Client && g != f && g.Place.Scope == clientconf.Managed && f.Client.ID == "claude-code" && g.Place.Role == clientconf.Servers:
			x.find("MANAGED", f, pos, fmt.Sprintf("An administrator's file, %s, takes the place of this one.", word(g.Path)), "Ask the administrator of this machine.")
		}
	}
}

// trust judges servers of a project that do not run because nobody said so.
func (x *examiner) trust(f *clientconf.File) {
	switch f.Client.ID {
	case "codex":
		if f.Place.Scope == clientconf.Project && !x.codexTrusts(f.Project) {
			x.find("TRUST", f, f.Servers[0].Pos, "Codex reads a project's file only when the user's config.toml trusts the project.", x.codexTrustLine(f.Project))
		}
	case "gemini-cli":
		allowed, excluded := texts(f.Tree, "mcp", "allowed"), texts(f.Tree, "mcp", "excluded")
		named := func(list []*splice.Value, name string) bool {
			return slices.ContainsFunc(list, func(v *splice.Value) bool { return v.Text == name })
		}
		for _, s := range f.Servers {
			switch {
			case s.Unread:
			case named(excluded, s.Name):
				x.server("TRUST", s, fmt.Sprintf("mcp.excluded has %s.", word(s.Name)), "Take it out of mcp.excluded, or take the server out.")
			case len(allowed) > 0 && !named(allowed, s.Name):
				x.server("TRUST", s, fmt.Sprintf("mcp.allowed does not have %s.", word(s.Name)), "Write it into mcp.allowed, or take the server out.")
			}
		}
		if f.Place.Scope == clientconf.Project && f.Project != "" && f.Project == x.m.Host.Home {
			x.find("FILE-LEVEL", f, f.Servers[0].Pos, "Gemini CLI does not read the settings of a project that is the home directory.", "")
		}
	case "claude-code":
		if f.Place.Scope != clientconf.Project {
			return
		}
		for _, s := range f.Servers {
			if where := x.claudeDisabled(s.Name, f.Project); where != "" && !s.Unread {
				x.server("TRUST", s, fmt.Sprintf("disabledMcpjsonServers in %s has %s.", word(x.short(where)), word(s.Name)), "Enable it with /mcp, or take the server out.")
			}
		}
	case "copilot-cli":
		if f.Place.Scope == clientconf.Project && !x.m.Alone && !inRepository(filepath.Dir(f.Path)) {
			x.find("FILE-LEVEL", f, f.Servers[0].Pos, "Copilot CLI reads a project's file only in a git repository, and this is none.", "Run git init there, or move the servers to ~/.copilot/mcp-config.json.", milder(Warning))
		}
		for _, s := range f.Servers {
			if !s.Unread && s.Entry != nil && at(s.Entry, "tools") == nil && filepath.Base(f.Path) != ".mcp.json" {
				x.server("ENTRY-INVALID", s, "The entry does not say which tools it offers.", "Write \"tools\": [\"*\"], or a list of their names.", milder(Warning),
					because("Copilot CLI may offer none of them."))
			}
		}
	}
}

// server adds a finding about a server at its name.
func (x *examiner) server(id string, s *clientconf.Server, what, fix string, options ...option) {
	x.add(Finding{
		ID: id, Client: s.File.Client.ID, Server: s.Name, File: s.File.Path, Line: s.Pos.Line, Column: s.Pos.Column, What: what, Fix: fix,
	}, options)
}

func inRepository(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

// codexTrusts reports whether the user's file of Codex trusts a project.
func (x *examiner) codexTrusts(project string) bool {
	for _, g := range x.files {
		if g.Client.ID != "codex" || g.Place.Scope != clientconf.User || g.Tree == nil {
			continue
		}
		for _, p := range members(g.Tree, "projects") {
			if project != "" && sameDirectories([]string{p.Name}, []string{project}) && textAt(p.Value, "trust_level") == "trusted" {
				return true
			}
		}
	}
	return false
}

func (x *examiner) codexTrustLine(project string) string {
	if project == "" {
		return "Trust the project in Codex, or write trust_level = \"trusted\" for it in ~/.codex/config.toml."
	}
	return fmt.Sprintf("Trust it in Codex, which writes [projects.%q] with trust_level = \"trusted\" into ~/.codex/config.toml.", project)
}

// claudeDisabled returns the file that switches a project's server off, or "".
func (x *examiner) claudeDisabled(name, project string) string {
	for _, g := range x.files {
		if g.Client.ID != "claude-code" || g.Tree == nil {
			continue
		}
		list := texts(g.Tree, "disabledMcpjsonServers")
		for _, p := range members(g.Tree, "projects") {
			if project != "" && sameDirectories([]string{p.Name}, []string{project}) {
				list = append(list, texts(p.Value, "disabledMcpjsonServers")...)
			}
		}
		if slices.ContainsFunc(list, func(v *splice.Value) bool { return v.Text == name }) {
			return g.Path
		}
	}
	return ""
}

// twins finds projects of Claude Code whose keys differ only in letter case and separators.
func (x *examiner) twins(f *clientconf.File) {
	if f.Client.ID != "claude-code" {
		return
	}
	seen := map[string]string{}
	for _, m := range members(f.Tree, "projects") {
		same := strings.TrimRight(strings.ReplaceAll(m.Name, `\`, "/"), "/")
		if ofWindows(m.Name) {
			same = strings.ToLower(same)
		}
		if first, ok := seen[same]; ok {
			x.find("SCOPE-DUP-PROJECT", f, m.Pos, fmt.Sprintf("%s and %s are keys for one project.", word(first), word(m.Name)), "")
			continue
		}
		seen[same] = m.Name
	}
}
