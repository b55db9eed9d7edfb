package verify

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/rootbound/rootbound/roots"
)

// A shape is a way to spell a path that leads outside. Each is tried with every operation that the server has: what is held
// for a read may be open for a move.
type shape struct {
	id, class, what string
	severity        Severity
	unix, linux     bool
	skip            func(o operation) bool // has no meaning with this operation
	// prepare puts it on the disk; it may move what is outside to another place (p.out).
	prepare func(p *place) error
	// spell writes the path of target, which is in p.out or p.out itself.
	spell func(p *place, target string) string
}

func relative(p *place, target string) string {
	rel, _ := filepath.Rel(p.root, target)
	return filepath.ToSlash(rel)
}

// sibling moves what is outside to a place beside the root whose name begins as the root's does.
func sibling(suffix string) func(p *place) error {
	return func(p *place) error {
		to := p.one + suffix
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		if err := os.Rename(p.out, to); err != nil {
			return err
		}
		p.file = filepath.Join(to, filepath.Base(p.file))
		p.out = to
		return nil
	}
}

// beneath spells target as if it were in the directory at path.
func beneath(p *place, path, target string) string {
	if rel, _ := filepath.Rel(p.out, target); rel != "." {
		return filepath.Join(path, rel)
	}
	return path
}

func dotsEncoded(s string) string { return strings.ReplaceAll(s, "..", "%2e%2e") }

var shapes = []shape{
	{id: "E01", class: "traversal", what: "'..' out of the root", severity: Critical,
		spell: func(p *place, target string) string { return p.root + "/" + relative(p, target) }},
	{id: "E02", class: "traversal", what: "'..' behind a directory that is not there", severity: Critical,
		spell: func(p *place, target string) string { return p.root + "/a/../" + relative(p, target) }},
	{id: "E03", class: "traversal", what: "a relative path with '..'", severity: Critical,
		spell: func(p *place, target string) string { return "../" + filepath.ToSlash(relativeTo(p.dir, target)) }},
	{id: "E23", class: "traversal", what: "a relative path that is in the server's working directory", severity: Critical,
		spell: func(p *place, target string) string { return filepath.ToSlash(relativeTo(p.outside, target)) }},
	{id: "E24", class: "traversal", what: "'~', which a shell would make the home directory", severity: Critical, unix: true,
		prepare: func(*place) error {
			if home, err := os.UserHomeDir(); err != nil || !filepath.IsAbs(home) {
				return errSkip("there is no home directory")
			}
			return nil
		}, spell: func(_ *place, target string) string {
			home, _ := os.UserHomeDir()
			return "~/" + filepath.ToSlash(relativeTo(home, target))
		}},
	{id: "E05", class: "traversal", what: "'..' between double slashes", severity: Critical,
		spell: func(p *place, target string) string {
			return p.root + "//" + strings.ReplaceAll(relative(p, target), "/", "//")
		}},
	{id: "E06", class: "traversal", what: "'..' between single dots", severity: Critical,
		spell: func(p *place, target string) string {
			return p.root + "/./" + strings.ReplaceAll(relative(p, target), "/", "/./")
		}},
	{id: "E07", class: "traversal", what: "'..' between backslashes", severity: Critical,
		spell: func(p *place, target string) string {
			return p.root + `\` + strings.ReplaceAll(relative(p, target), "/", `\`)
		}},
	{id: "E09", class: "traversal", what: "the absolute path of what is outside", severity: Critical,
		spell: func(_ *place, target string) string { return target }},
	{id: "E12", class: "traversal", what: "a directory beside the root whose name begins with the root's", severity: Critical,
		prepare: sibling("evil"), spell: func(_ *place, target string) string { return target }},
	{id: "E13", class: "names", what: "a directory beside the root with the root's name and a space", severity: Critical, unix: true,
		prepare: sibling(" "), spell: func(_ *place, target string) string { return target }},
	{id: "E15", class: "names", what: "a directory beside the root with the root's name and a quote", severity: Critical, unix: true,
		prepare: sibling("'"), spell: func(_ *place, target string) string { return target }},
	{id: "E18", class: "names", what: "a directory beside the root with the root's name and a line end", severity: Critical, unix: true,
		prepare: sibling("\n"), spell: func(_ *place, target string) string { return target }},
	{id: "E20", class: "names", what: "the root in capital letters, which is another directory", severity: Critical,
		prepare: func(p *place) error {
			to := filepath.Join(p.dir, "ONE")
			if a, err := os.Stat(to); err == nil {
				if b, err := os.Stat(p.one); err == nil && os.SameFile(a, b) {
					return errSkip("this file system does not tell capital letters")
				}
				if err := os.RemoveAll(to); err != nil {
					return err
				}
			}
			if err := os.Rename(p.out, to); err != nil {
				return err
			}
			p.file, p.out = filepath.Join(to, filepath.Base(p.file)), to
			return nil
		}, spell: func(_ *place, target string) string { return target }},
	{id: "E27", class: "names", what: "a NUL in the path", severity: Critical,
		spell: func(p *place, target string) string { return target + "\x00" + p.root }},
	{id: "E28", class: "names", what: "percent-encoded dots", severity: Critical,
		spell: func(p *place, target string) string { return p.root + "/" + dotsEncoded(relative(p, target)) }},
	{id: "E29", class: "names", what: "twice encoded slashes", severity: Critical,
		spell: func(p *place, target string) string {
			return p.root + "/" + strings.ReplaceAll(relative(p, target), "/", "%252f")
		}},
	{id: "E30", class: "URIs", what: "a file URI as a path", severity: Critical,
		spell: func(_ *place, target string) string { return roots.FileURI(target) }},
	{id: "E31", class: "URIs", what: "a file URI with a host", severity: Critical,
		spell: func(_ *place, target string) string {
			return "file://localhost" + (&url.URL{Path: filepath.ToSlash(target)}).EscapedPath()
		}},
	{id: "E30b", class: "URIs", what: "a file URI with encoded dots", severity: Critical,
		spell: func(p *place, target string) string {
			return roots.FileURI(p.root) + "/" + dotsEncoded(relative(p, target))
		}},
	{id: "E34", class: "names", what: "full-width dots", severity: Critical,
		spell: func(p *place, target string) string {
			return p.root + "/" + strings.ReplaceAll(relative(p, target), "..", "．．")
		}},
	{id: "E39", class: "names", what: "'..' with a space behind", severity: Critical,
		spell: func(p *place, target string) string {
			return p.root + "/" + strings.ReplaceAll(relative(p, target), "..", ".. ")
		}},
	{id: "E55", class: "links", what: "a link to a directory outside", severity: High,
		prepare: func(p *place) error { return link(relativeTo(p.root, p.out), p.in("l")) },
		spell:   func(p *place, target string) string { return beneath(p, p.in("l"), target) }},
	{id: "E54", class: "links", what: "an absolute link to a directory outside", severity: High,
		prepare: func(p *place) error { return link(p.out, p.in("l")) },
		spell:   func(p *place, target string) string { return beneath(p, p.in("l"), target) }},
	{id: "E59", class: "links", what: "a link to a directory outside, with a slash behind", severity: High,
		skip:    func(o operation) bool { return o.file },
		prepare: func(p *place) error { return link(p.out, p.in("l")) },
		spell:   func(p *place, target string) string { return beneath(p, p.in("l"), target) + "/" }},
	{id: "E56", class: "links", what: "a chain of links, inside, inside, outside", severity: High,
		prepare: func(p *place) error {
			return joined(os.Mkdir(p.in("a"), 0o755), link(filepath.Join("a", "l2"), p.in("l1")), link(p.out, p.in("a", "l2")))
		},
		spell: func(p *place, target string) string { return beneath(p, p.in("l1"), target) }},
	{id: "E53", class: "links", what: "a link to a file outside", severity: High,
		skip:    func(o operation) bool { return !o.file },
		prepare: func(p *place) error { return link(relativeTo(p.root, p.file), p.in("l")) },
		spell:   func(p *place, _ string) string { return p.in("l") }},
	{id: "E58", class: "links", what: "a link to the root of the file system", severity: High, unix: true,
		prepare: func(p *place) error { return link("/", p.in("l")) },
		spell:   func(p *place, target string) string { return p.in("l") + target }},
	{id: "E35", class: "links", what: "a link whose name is written in another form of Unicode", severity: High, unix: true,
		prepare: func(p *place) error { return link(p.out, p.in("cafe\u0301")) },
		spell:   func(p *place, target string) string { return beneath(p, p.in("caf\u00e9"), target) }},
	{id: "E93", class: "special files", what: "by way of /proc/self/root", severity: Critical, linux: true,
		spell: func(_ *place, target string) string { return "/proc/self/root" + target }},
	{id: "E95", class: "special files", what: "a link to /proc/self/root", severity: High, linux: true,
		prepare: func(p *place) error { return link("/proc/self/root", p.in("l")) },
		spell:   func(p *place, target string) string { return p.in("l") + target }},
}

// An operation is a way to use a tool on something outside. It is what is tried with each shape.
type operation struct {
	name  string
	needs role
	file  bool // on the canary's file, which is there
	try   func(a *attempt, spell func(target string) string)
}

var operations = []operation{
	{"read", roleRead, true, func(a *attempt, spell func(string) string) { a.do(roleRead, text("path", spell(a.file))) }},
	{"read several", roleMany, true, func(a *attempt, spell func(string) string) {
		a.do(roleMany, map[string][]byte{"paths": quoted(a.in("ok.txt"), spell(a.file))})
	}},
	{"read media", roleMedia, true, func(a *attempt, spell func(string) string) { a.do(roleMedia, text("path", spell(a.file))) }},
	{"stat", roleStat, true, func(a *attempt, spell func(string) string) { a.do(roleStat, text("path", spell(a.file))) }},
	{"list", roleList, false, func(a *attempt, spell func(string) string) { a.do(roleList, text("path", spell(a.out))) }},
	{"list with sizes", roleSizes, false, func(a *attempt, spell func(string) string) { a.do(roleSizes, text("path", spell(a.out))) }},
	{"tree", roleTree, false, func(a *attempt, spell func(string) string) { a.do(roleTree, text("path", spell(a.out))) }},
	{"search names", roleSearch, false, func(a *attempt, spell func(string) string) {
		for _, pattern := range []string{"**", "*.txt", ".txt"} {
			a.do(roleSearch, text("path", spell(a.out), "pattern", pattern))
		}
	}},
	{"search content", roleGrep, false, func(a *attempt, spell func(string) string) {
		a.do(roleGrep, text("path", spell(a.out), "pattern", "canary"))
	}},
	{"write", roleWrite, false, func(a *attempt, spell func(string) string) {
		a.do(roleWrite, text("path", spell(filepath.Join(a.out, "new.txt")), "content", "x"))
	}},
	{"overwrite", roleWrite, true, func(a *attempt, spell func(string) string) {
		a.do(roleWrite, text("path", spell(a.file), "content", "x"))
	}},
	{"append", roleAppend, true, func(a *attempt, spell func(string) string) {
		a.do(roleAppend, text("path", spell(a.file), "content", "x"))
	}},
	{"edit", roleEdit, true, func(a *attempt, spell func(string) string) {
		a.do(roleEdit, text("path", spell(a.file), "old", "canary", "new", "changed"))
	}},
	{"make a directory", roleMkdir, false, func(a *attempt, spell func(string) string) {
		a.do(roleMkdir, text("path", spell(filepath.Join(a.out, "new", "deep"))))
	}},
	{"move out", roleMove, false, func(a *attempt, spell func(string) string) {
		a.do(roleMove, text("from", a.in("ok.txt"), "to", spell(filepath.Join(a.out, "moved.txt"))))
	}},
	{"move in", roleMove, true, func(a *attempt, spell func(string) string) {
		a.do(roleMove, text("from", spell(a.file), "to", a.in("got.txt")))
		a.readBack("got.txt")
	}},
	{"copy out", roleCopy, false, func(a *attempt, spell func(string) string) {
		a.do(roleCopy, text("from", a.in("ok.txt"), "to", spell(filepath.Join(a.out, "copied.txt"))))
	}},
	{"copy in", roleCopy, true, func(a *attempt, spell func(string) string) {
		a.do(roleCopy, text("from", spell(a.file), "to", a.in("got.txt")))
		a.readBack("got.txt")
	}},
	{"delete", roleDelete, true, func(a *attempt, spell func(string) string) { a.do(roleDelete, text("path", spell(a.file))) }},
}

// readBack looks itself whether the content of the canary is in a file of the root now: that is where a server would read it.
// A link that was moved as a link is none of it.
func (a *attempt) readBack(name string) {
	path := a.in(name)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return
	}
	if b, err := os.ReadFile(path); err == nil && a.found(b) != "" {
		a.leak("the content of a file outside is inside now")
	}
}

// crossed are the shapes with all operations.
func crossed() []trial {
	var all []trial
	for _, s := range shapes {
		for _, o := range operations {
			if s.skip != nil && s.skip(o) {
				continue
			}
			all = append(all, trial{
				id: s.id + "/" + strings.ReplaceAll(o.name, " ", "-"), class: s.class, severity: s.severity, unix: s.unix, linux: s.linux,
				attempt:  fmt.Sprintf("%s: %s", o.name, s.what),
				expected: "refused, or nothing from outside; nothing changed outside",
				needs:    []role{o.needs}, prepare: s.prepare,
				try: func(a *attempt) {
					o.try(a, func(target string) string { return s.spell(a.place, target) })
				},
			})
		}
	}
	return all
}

// errSkip says why a case cannot be tried here.
type errSkip string

func (e errSkip) Error() string { return string(e) }

func link(to, at string) error {
	if err := os.Symlink(to, at); err != nil {
		return errSkip("links cannot be made here: " + err.Error())
	}
	return nil
}

func relativeTo(from, to string) string {
	rel, _ := filepath.Rel(from, to)
	return rel
}

func joined(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
