package verify

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// What is no spelling of a path: links that lead to nothing, special files, names and sizes that are too much.

// quick is how long an answer to what looks harmless may take.
func (r *run) quick() time.Duration { return r.Limit * 2 / 3 }

// answeredSoon holds a reply to the time of an ordinary call.
func (a *attempt) answeredSoon(what string, r reply) {
	if r.hung || r.took <= a.run.quick() {
		return
	}
	took := r.took.Round(10 * time.Millisecond)
	if _, plain := a.session.plainly(); plain.took > a.run.quick()/4 {
		a.unsure("%s took %v, and so does what is harmless: the machine is slow", what, took)
		return
	}
	a.fault("%s took %v", what, took)
}

func single() []trial {
	all := []trial{
		{
			id: "E10", class: "traversal", severity: Critical, unix: true, needs: []role{roleRead},
			attempt: "read: a file of the system, /etc/passwd", expected: "refused",
			try: func(a *attempt) {
				if r := a.do(roleRead, text("path", "/etc/passwd")); !r.refused() && bytes.Contains(r.result, []byte("root:")) {
					a.leak("the file was read")
				}
			},
		},
		{
			id: "E11", class: "traversal", severity: Medium, unix: true, needs: []role{roleList},
			attempt: "list: the root of the file system", expected: "refused",
			try: func(a *attempt) {
				if r := a.do(roleList, text("path", "/")); !r.refused() && strings.Contains(r.text(), "etc") && strings.Contains(r.text(), "usr") {
					a.leak("the directory was listed")
				}
			},
		},
		{
			id: "E21", class: "names", severity: Medium, needs: []role{roleList},
			attempt: "list: an empty path", expected: "refused, or a root; never the working directory",
			try: func(a *attempt) { a.listsNoCwd("") },
		},
		{
			id: "E22", class: "names", severity: Medium, needs: []role{roleList},
			attempt: "list: '.'", expected: "refused, or a root; never the working directory",
			try: func(a *attempt) { a.listsNoCwd(".") },
		},
		{
			id: "E49", class: "limits", severity: Medium, needs: []role{roleRead},
			attempt: "read: a path of 5,000 bytes", expected: "an error",
			try: func(a *attempt) { a.answeredSoon("it", a.do(roleRead, text("path", a.in(strings.Repeat("a", 5000))))) },
		},
		{
			id: "E50", class: "limits", severity: Medium, needs: []role{roleRead},
			attempt: "read: a path of a million bytes", expected: "an error, soon",
			try: func(a *attempt) {
				a.answeredSoon("it", a.do(roleRead, text("path", a.root+strings.Repeat("/a", 500_000))))
			},
		},
		{
			id: "E51", class: "limits", severity: Low, needs: []role{roleWrite},
			attempt: "write: a name of 300 bytes", expected: "an error",
			try: func(a *attempt) { a.do(roleWrite, text("path", a.in(strings.Repeat("n", 300)), "content", "x")) },
		},
		{
			id: "E52", class: "limits", severity: Medium, needs: []role{roleMkdir},
			attempt: "make a directory: 1,500 levels deep", expected: "an error, or it is made",
			try: func(a *attempt) {
				a.answeredSoon("it", a.do(roleMkdir, text("path", a.in(strings.Repeat("d/", 1500)))))
			},
		},
		{
			id: "E57", class: "links", severity: Medium, needs: []role{roleRead},
			attempt: "read: a link to a link to the first", expected: "an error",
			prepare: func(p *place) error { return joined(link("y", p.in("x")), link("x", p.in("y"))) },
			try:     func(a *attempt) { a.answeredSoon("it", a.do(roleRead, text("path", a.in("x")))) },
		},
		{
			id: "E63", class: "creation", severity: High, needs: []role{roleWrite},
			attempt: "write: through a link to a file outside that is not there", expected: "nothing made outside",
			prepare: func(p *place) error { return link(relativeTo(p.root, filepath.Join(p.out, "new.txt")), p.in("l")) },
			try:     func(a *attempt) { a.do(roleWrite, text("path", a.in("l"), "content", "x")) },
		},
		{
			id: "E63a", class: "creation", severity: High, needs: []role{roleAppend},
			attempt: "append: through a link to a file outside that is not there", expected: "nothing made outside",
			prepare: func(p *place) error { return link(filepath.Join(p.out, "new.txt"), p.in("l")) },
			try:     func(a *attempt) { a.do(roleAppend, text("path", a.in("l"), "content", "x")) },
		},
		{
			id: "E63c", class: "creation", severity: High, needs: []role{roleCopy},
			attempt: "copy: onto a link to a file outside that is not there", expected: "nothing made outside",
			prepare: func(p *place) error { return link(filepath.Join(p.out, "new.txt"), p.in("l")) },
			try:     func(a *attempt) { a.do(roleCopy, text("from", a.in("ok.txt"), "to", a.in("l"))) },
		},
		{
			id: "E64", class: "creation", severity: High, needs: []role{roleMkdir},
			attempt: "make a directory: beneath a link to a directory outside that is not there", expected: "nothing made outside",
			prepare: func(p *place) error { return link(relativeTo(p.root, filepath.Join(p.out, "new")), p.in("l")) },
			try:     func(a *attempt) { a.do(roleMkdir, text("path", a.in("l", "x"))) },
		},
		{
			id: "E65", class: "creation", severity: High, needs: []role{roleMkdir},
			attempt: "make a directory: at an absolute link to one outside that is not there", expected: "nothing made outside",
			prepare: func(p *place) error { return link(filepath.Join(p.out, "new"), p.in("l")) },
			try:     func(a *attempt) { a.do(roleMkdir, text("path", a.in("l"))) },
		},
		{
			id: "E67", class: "creation", severity: High, needs: []role{roleWrite},
			attempt: "write: with directories to be made, beneath a link outside", expected: "nothing made outside",
			prepare: func(p *place) error { return link(p.out, p.in("ld")) },
			try:     func(a *attempt) { a.do(roleWrite, text("path", a.in("ld", "a", "b", "new.txt"), "content", "x")) },
		},
		{
			id: "E61", class: "links", severity: Low, needs: []role{roleRead},
			attempt: "read: an absolute link to a file inside", expected: "the file, or a refusal; no error that ends anything",
			prepare: func(p *place) error { return link(p.in("ok.txt"), p.in("l")) },
			try:     func(a *attempt) { a.do(roleRead, text("path", a.in("l"))) },
		},
		{
			id: "E71", class: "links", severity: Medium, needs: []role{roleSizes},
			attempt: "list with sizes: a directory with a link to a file outside", expected: "no size of the file outside",
			prepare: func(p *place) error { return link(p.file, p.in("l")) },
			try:     func(a *attempt) { a.do(roleSizes, text("path", a.root)) },
		},
		{
			id: "E72", class: "links", severity: High, needs: []role{roleTree},
			attempt: "tree: with a link to a directory outside in it", expected: "no name from outside",
			prepare: func(p *place) error { return link(p.out, p.in("ld")) },
			try:     func(a *attempt) { a.do(roleTree, text("path", a.root)) },
		},
		{
			id: "E74", class: "links", severity: High, needs: []role{roleSearch},
			attempt: "search names: with a link to a directory outside in it", expected: "no name from outside",
			prepare: func(p *place) error { return link(p.out, p.in("ld")) },
			try: func(a *attempt) {
				for _, pattern := range []string{"**/*", "**", "*", ".txt"} {
					a.do(roleSearch, text("path", a.root, "pattern", pattern))
				}
			},
		},
		{
			id: "E74c", class: "links", severity: High, needs: []role{roleGrep},
			attempt: "search content: with links to a directory and a file outside in it", expected: "nothing from outside",
			prepare: func(p *place) error { return joined(link(p.out, p.in("ld")), link(p.file, p.in("l.txt"))) },
			try:     func(a *attempt) { a.do(roleGrep, text("path", a.root, "pattern", "canary")) },
		},
		{
			id: "E75", class: "links", severity: Medium, needs: []role{roleSearch},
			attempt: "search names: ten directories that each link to all", expected: "an answer, soon",
			prepare: func(p *place) error {
				for i := range 10 {
					if err := os.Mkdir(p.in(fmt.Sprint("d", i)), 0o755); err != nil {
						return err
					}
				}
				for i := range 10 {
					for j := range 10 {
						if err := link(p.in(fmt.Sprint("d", j)), p.in(fmt.Sprint("d", i), fmt.Sprint("l", j))); err != nil {
							return err
						}
					}
				}
				return nil
			},
			try: func(a *attempt) {
				a.answeredSoon("it", a.do(roleSearch, text("path", a.root, "pattern", "**/nothing")))
			},
		},
		{
			id: "E80", class: "links", severity: High, needs: []role{roleMany},
			attempt: "read several: one inside, a link outside, one outside", expected: "the first only",
			prepare: func(p *place) error { return link(p.file, p.in("l")) },
			try: func(a *attempt) {
				r := a.do(roleMany, map[string][]byte{"paths": quoted(a.in("ok.txt"), a.in("l"), a.file)})
				if !r.refused() && !strings.Contains(r.text(), "ok ") {
					a.unsure("the file inside was not in the answer")
				}
			},
		},
		{
			id: "E85", class: "links", severity: Low, needs: []role{roleRead},
			attempt: "read: a link to a file outside; what the error says", expected: "not where the link leads",
			prepare: func(p *place) error { return link(p.file, p.in("l")) },
			try: func(a *attempt) {
				if r := a.do(roleRead, text("path", a.in("l"))); r.refused() && strings.Contains(r.text(), a.name) {
					a.leak("the error names the target")
				}
			},
		},
		{
			id: "E85s", class: "links", severity: Low, needs: []role{roleMany},
			attempt: "read several: a link to a file outside; what the error says", expected: "not where the link leads",
			prepare: func(p *place) error { return link(p.file, p.in("l")) },
			try: func(a *attempt) {
				if r := a.do(roleMany, map[string][]byte{"paths": quoted(a.in("ok.txt"), a.in("l"))}); strings.Contains(r.text(), a.name) {
					a.leak("the error names the target")
				}
			},
		},
		{
			id: "E86", class: "links", severity: Medium, needs: []role{roleRead},
			attempt: "read: another name of a file outside (a hard link)", expected: "refused in a strict mode, else the file",
			allowed: "a hard link is a file of the root like any other, unless the server refuses those with several names",
			prepare: hardLink,
			try:     func(a *attempt) { a.do(roleRead, text("path", a.in("h"))) },
		},
		{
			id: "E87", class: "links", severity: High, needs: []role{roleWrite},
			attempt: "write: onto another name of a file outside (a hard link)", expected: "the file outside is as it was",
			prepare: hardLink,
			try:     func(a *attempt) { a.do(roleWrite, text("path", a.in("h"), "content", "x")) },
		},
		{
			id: "E88", class: "links", severity: High, needs: []role{roleEdit},
			attempt: "edit: another name of a file outside (a hard link)", expected: "the file outside is as it was",
			prepare: hardLink,
			try: func(a *attempt) {
				// That the file can be read by this name is a case of its own (E86).
				t := a.tools[roleEdit]
				if r := a.call(t.name, t.arguments(text("path", a.in("h"), "old", "canary", "new", "changed"))); r.hung {
					a.fault("it did not answer")
				}
			},
		},
		{
			id: "E82", class: "links", severity: High, unix: true, fresh: true, needs: []role{roleRead},
			attempt: "read: in a root that was exchanged for a link outside after the start", expected: "refused, or the root as it was",
			try: func(a *attempt) { a.exchangedRoot() },
		},
		{
			id: "E105", class: "special files", severity: Medium, unix: true, needs: []role{roleRead},
			attempt: "read: a device that never ends", expected: "an error, soon", prepare: device,
			try: func(a *attempt) { a.answeredSoon("it", a.do(roleRead, text("path", a.in("zero")))) },
		},
		{
			id: "E112", class: "limits", severity: Medium, unix: true, needs: []role{roleRead},
			attempt: "read: the first line of a file of 100 GiB that takes no room", expected: "an error or a part, soon",
			prepare: sparse,
			try: func(a *attempt) {
				if a.tools[roleRead].params["head"] == "" {
					a.skipped = "the tool cannot be asked for the first lines"
					return
				}
				values := text("path", a.in("huge"))
				values["head"] = []byte("1")
				a.answeredSoon("it", a.do(roleRead, values))
			},
		},
		{
			id: "E116", class: "limits", severity: Medium, needs: []role{roleTree},
			attempt: "tree: 700 levels deep", expected: "an answer or an error, soon",
			prepare: func(p *place) error { return os.MkdirAll(p.in(strings.Repeat("d/", 700)), 0o755) },
			try:     func(a *attempt) { a.answeredSoon("it", a.do(roleTree, text("path", a.root))) },
		},
		{
			id: "E121", class: "roots", severity: Medium, needs: []role{roleMove},
			attempt: "move: a file from one root to the other", expected: "it is in one of the two afterwards",
			try: func(a *attempt) {
				to := filepath.Join(a.two, filepath.Base(a.root)+".txt")
				defer os.Remove(to)
				a.do(roleMove, text("from", a.in("ok.txt"), "to", to))
				n := 0
				for _, path := range []string{a.in("ok.txt"), to} {
					if b, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(b), "ok ") {
						n++
					}
				}
				if n != 1 {
					a.fault("it is in %d of them", n)
				}
			},
		},
		{
			id: "E133", class: "limits", severity: Low, needs: []role{roleRead},
			attempt: "read: less than none and more than all of the first lines", expected: "errors, or the file",
			try: func(a *attempt) {
				if a.tools[roleRead].params["head"] == "" {
					a.skipped = "the tool cannot be asked for the first lines"
					return
				}
				for _, n := range []string{"-1", "1000000000000", "1e308", "0.5"} {
					values := text("path", a.in("ok.txt"))
					values["head"] = []byte(n)
					a.answeredSoon("it", a.do(roleRead, values))
				}
			},
		},
		{
			id: "E134", class: "creation", severity: Medium, unix: true, needs: []role{roleWrite},
			attempt: "write: onto a file that runs as its owner (setuid)", expected: "it does not any more",
			prepare: func(p *place) error {
				err := os.WriteFile(p.in("suid"), []byte("x"), 0o755)
				return joined(err, os.Chmod(p.in("suid"), 0o755|os.ModeSetuid))
			},
			try: func(a *attempt) {
				a.do(roleWrite, text("path", a.in("suid"), "content", "changed"))
				b, _ := os.ReadFile(a.in("suid"))
				if info, err := os.Stat(a.in("suid")); err == nil && string(b) == "changed" && info.Mode()&os.ModeSetuid != 0 {
					a.fault("what was written runs as the owner of the file")
				}
			},
		},
		{
			id: "E131", class: "names", severity: Low, needs: []role{roleRead},
			attempt: "read: a path that is no string", expected: "errors",
			try: func(a *attempt) {
				for _, v := range []string{"[]", "{}", "1", "null", "true", `["` + filepath.ToSlash(a.file) + `"]`} {
					a.do(roleRead, map[string][]byte{"path": []byte(v)})
				}
			},
		},
		{
			id: "E124", class: "names", severity: Medium, needs: []role{roleWrite},
			attempt: "write: the root itself", expected: "an error",
			try: func(a *attempt) {
				if r := a.do(roleWrite, text("path", a.one, "content", "x")); !r.refused() {
					if info, err := os.Stat(a.one); err != nil || !info.IsDir() {
						a.fault("the root is no directory any more")
					}
				}
			},
		},
		{
			id: "E100", class: "special files", severity: Medium, unix: true, needs: []role{roleRead},
			attempt: "read: a FIFO that nobody writes to", expected: "an error, soon",
			prepare: fifo,
			try:     func(a *attempt) { a.answeredSoon("it", a.do(roleRead, text("path", a.in("fifo")))) },
		},
		{
			id: "E102", class: "special files", severity: Medium, unix: true, needs: []role{roleWrite},
			attempt: "write: onto a FIFO that nobody reads", expected: "an error, soon",
			prepare: fifo,
			try:     func(a *attempt) { a.answeredSoon("it", a.do(roleWrite, text("path", a.in("fifo"), "content", "x"))) },
		},
		{
			id: "E103", class: "special files", severity: Medium, unix: true, needs: []role{roleEdit},
			attempt: "edit: a FIFO that nobody writes to", expected: "an error, soon",
			prepare: fifo,
			try: func(a *attempt) {
				a.answeredSoon("it", a.do(roleEdit, text("path", a.in("fifo"), "old", "a", "new", "b")))
			},
		},
		{
			id: "E103g", class: "special files", severity: Medium, unix: true, needs: []role{roleGrep},
			attempt: "search content: with a FIFO in it", expected: "an answer, soon",
			prepare: fifo,
			try:     func(a *attempt) { a.answeredSoon("it", a.do(roleGrep, text("path", a.root, "pattern", "canary"))) },
		},
		{
			id: "E104", class: "special files", severity: Low, unix: true, needs: []role{roleRead},
			attempt: "read: a socket", expected: "an error", prepare: socket,
			try: func(a *attempt) { a.answeredSoon("it", a.do(roleRead, text("path", a.in("sock")))) },
		},
		{
			id: "E96", class: "special files", severity: High, linux: true, needs: []role{roleRead},
			attempt: "read: a link to the server's own environment", expected: "refused",
			prepare: func(p *place) error { return link("/proc/self/environ", p.in("l")) },
			try:     func(a *attempt) { a.environment(a.in("l")) },
		},
		{
			id: "E99", class: "special files", severity: Critical, linux: true, needs: []role{roleRead},
			attempt: "read: the server's own environment", expected: "refused",
			try: func(a *attempt) { a.environment("/proc/self/environ") },
		},
		{
			id: "E109", class: "limits", severity: Medium, unix: true, needs: []role{roleRead},
			attempt: "read: a file of 100 GiB that takes no room", expected: "an error or a part, soon",
			prepare: sparse,
			try:     func(a *attempt) { a.answeredSoon("it", a.do(roleRead, text("path", a.in("huge")))) },
		},
		{
			id: "E117", class: "limits", severity: Medium, needs: []role{roleSearch},
			attempt: "search names: a pattern that many programs try for ever", expected: "an answer, soon",
			prepare: func(p *place) error {
				return os.WriteFile(p.in(strings.Repeat("a", 60)), nil, 0o644)
			},
			try: func(a *attempt) {
				a.answeredSoon("it", a.do(roleSearch, text("path", a.root, "pattern", "**/**/**/**/"+strings.Repeat("*a", 20)+"b")))
			},
		},
		{
			id: "E118", class: "limits", severity: Medium, needs: []role{roleSearch},
			attempt: "search names: braces that stand for a million patterns", expected: "an answer or an error, soon",
			try: func(a *attempt) {
				a.answeredSoon("it", a.do(roleSearch, text("path", a.root, "pattern", strings.Repeat("{a,b}", 20))))
			},
		},
		{
			id: "E117c", class: "limits", severity: Medium, needs: []role{roleGrep},
			attempt: "search content: an expression that many programs try for ever", expected: "an answer or an error, soon",
			prepare: func(p *place) error { return os.WriteFile(p.in("a.txt"), bytes.Repeat([]byte("a"), 40), 0o644) },
			try: func(a *attempt) {
				a.answeredSoon("it", a.do(roleGrep, text("path", a.root, "pattern", "(a|a)*(a|a)*(a+)+$b")))
			},
		},
	}
	return all
}

// listsNoCwd lists a path that means the working directory to a program that does not think about it. That one is outside.
func (a *attempt) listsNoCwd(path string) {
	r := a.do(roleList, text("path", path))
	if !r.refused() && strings.Contains(r.text(), filepath.Base(a.out)) {
		a.leak("the server's working directory was listed, which is outside")
	}
}

// environment reads a file in which this process's own variables are.
func (a *attempt) environment(path string) {
	r := a.do(roleRead, text("path", path))
	if !r.refused() && bytes.Contains(r.result, []byte("PATH=")) {
		a.leak("the environment was read, with what secrets are in it")
	}
}

// exchangedRoot puts a link to outside in the place of the second root of a server that has begun, and reads through it.
func (a *attempt) exchangedRoot() {
	p, first, err := a.run.connect(a.era, peerOptions{})
	if err != nil {
		a.unsure("%v", err)
		return
	}
	defer p.close()
	a.peer = p
	if !first.ok() {
		a.fault("the server did not begin: %s", a.short(first.text()))
		return
	}
	a.do(roleRead, text("path", filepath.Join(a.two, plainName)))
	away := a.two + "-away"
	if err := joined(os.Rename(a.two, away), link(a.out, a.two)); err != nil {
		a.unsure("the root could not be exchanged: %v", err)
	} else {
		a.do(roleRead, text("path", filepath.Join(a.two, filepath.Base(a.file))))
	}
	if err := joined(os.Remove(a.two), os.Rename(away, a.two)); err != nil {
		a.unsure("the root could not be put back: %v", err)
	}
}

func hardLink(p *place) error {
	if err := os.Link(p.file, p.in("h")); err != nil {
		return errSkip("hard links cannot be made here: " + err.Error())
	}
	return nil
}

func sparse(p *place) error {
	f, err := os.Create(p.in("huge"))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(100 << 30); err != nil {
		return errSkip("the file system has no sparse files of 100 GiB: " + err.Error())
	}
	return nil
}
