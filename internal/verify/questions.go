package verify

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
)

// What people check by hand, in order.

// settle is how long a server may take to fetch roots that changed, and to go by them.
const settle = time.Second

// until waits until cond holds, and reports whether it did.
func until(limit time.Duration, cond func() bool) bool {
	for end := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		if cond() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// serves reports whether what is in a root is served: its plain file, or of a root of the user's the directory itself.
func (s *session) serves(root string) (bool, reply) {
	file, text0 := filepath.Join(root, plainName), s.w.inside[root]
	if text0 == "" {
		file = firstFile(root)
	}
	if t := s.tools[roleList]; t != nil && (text0 == "" || s.tools[roleRead] == nil) {
		r := s.peer.call(t.name, t.arguments(text("path", root)))
		return !r.refused() && (text0 == "" || bytes.Contains(r.result, []byte(plainName))), r
	}
	if t := s.tools[roleRead]; t != nil && file != "" {
		r := s.peer.call(t.name, t.arguments(text("path", file)))
		return !r.refused() && bytes.Contains(r.result, []byte(text0)), r
	}
	return false, reply{err: []byte(`{"message":"there is no tool, or no file, to try it with"}`)}
}

// comes reports whether what is in a root is served soon: what a server fetched may be in force a moment later.
func (s *session) comes(root string) (served bool, r reply) {
	until(settle, func() bool {
		served, r = s.serves(root)
		return served
	})
	return served, r
}

// firstFile is a file in a directory of the user's that may be read to see whether it is served.
func firstFile(dir string) string {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && info.Size() < 64<<10 && e.Name()[0] != '.' {
			return filepath.Join(dir, e.Name())
		}
	}
	return ""
}

// asking puts the answers to the questions together.
type asking struct {
	*session
	*attempt
}

func (q *asking) add(id, question, expected, seen string, v Verdict, means string) {
	a := Answered{ID: id, Era: q.session.era.String(), Question: question, Expected: expected, Seen: seen, Verdict: v}
	if v == Failed || v == Leaked {
		a.Means, a.Closes = means, q.closes()
	}
	q.report.Questions = append(q.report.Questions, a)
}

func verdict(ok bool) Verdict {
	if ok {
		return Held
	}
	return Failed
}

// questions asks what people check by hand, of the workspace or of directories of the user's.
func (s *session) questions(own []string) error {
	if s.tools[roleRead] == nil && s.tools[roleList] == nil {
		return nil
	}
	if len(own) > 0 { // with which there is no plain file of ours
		if err := s.again(); err != nil {
			return err
		}
	} else if err := s.renew("the list of tools"); err != nil || s.gone != "" {
		return err
	}
	p, err := s.w.place("Q")
	if err != nil {
		return err
	}
	p.look()
	q := &asking{s, &attempt{place: p, session: s, peer: s.peer, tools: s.tools, trial: &trial{severity: Critical}, run: s.run, usual: s.usual}}
	served, next := []string{s.w.one, s.w.two}, s.w.three
	if len(own) > 0 {
		served, next = s.told(), ""
		if len(own) > 1 {
			next = own[len(own)-1]
		}
	}
	declared := `in the handshake: {"listChanged":true}`
	if s.era == exchange.Modern {
		declared = `with each request: {}`
	}
	q.add("Q1", "Were roots declared to the server, and how?", "yes", "yes, "+declared, Held, "")
	missing := q.missing(served)
	q.asked(served)
	q.outsideRead(p)
	q.switched(served, next)
	q.add("Q5", "Are all repositories served?", "each root is served", choose(missing == "", "each is served", missing), verdict(missing == ""),
		"a root is missing from what is in force")
	if err := s.clear(p); err != nil {
		return err
	}
	if len(own) > 0 {
		return nil
	}
	return s.renew("the questions")
}

// missing says which roots are not served, "" when all are.
func (q *asking) missing(dirs []string) string {
	var list []string
	for _, dir := range dirs {
		if ok, r := q.comes(dir); !ok {
			list = append(list, fmt.Sprintf("%s is not served: %s", q.hide(dir), q.short(r.text())))
		}
	}
	return strings.Join(list, "; ")
}

func (q *asking) asked(dirs []string) {
	until(settle, func() bool { return q.session.peer.looked().asked > 0 })
	n := q.session.peer.looked().asked
	seen := "not asked"
	if n > 0 {
		seen = choose(n == 1, "asked once", fmt.Sprintf("asked %d times", n)) + ", answered"
		for i, uri := range uris(dirs...) {
			served, _ := q.serves(dirs[i])
			seen += fmt.Sprintf("%s %s (%s)", choose(i > 0, ",", ""), uri, choose(served, "served", "not served"))
		}
	}
	q.add("Q2", "Was roots/list asked, and what was answered?", "asked, and answered with the roots in force", q.hide(seen), verdict(n > 0),
		"the server does not ask: what a client says of its roots has no effect on it")
}

func (q *asking) outsideRead(p *place) {
	if q.session.tools[roleRead] != nil {
		q.do(roleRead, text("path", p.file))
	} else {
		q.do(roleList, text("path", p.out))
	}
	res := q.result(p.changed())
	q.add("Q3", "Is a read outside refused?", "refused", res.Seen, res.Verdict, "roots are not in force, or the server does not check them")
}

// switched switches to next alone. "" is nothing to switch to.
func (q *asking) switched(before []string, next string) {
	const question, expected = "Does a switch of the workspace take effect?", "the list is fetched again, the old root is refused, the new one served"
	if next == "" {
		q.add("Q4", question, expected, "there is one root only, and none to switch to", NotApplicable, "")
		return
	}
	peer := q.session.peer
	asked := peer.looked().asked
	peer.setRoots(uris(next)...)
	var parts []string
	if q.session.era == exchange.Legacy {
		parts = append(parts, "list_changed sent")
		until(settle, func() bool { return peer.looked().askedChanged > 0 })
	}
	newServed, r := q.comes(next) // where no change is told, it is asked for when a path needs it
	refused := until(settle, func() bool {
		served, _ := q.serves(before[0])
		return !served
	})
	fetched := peer.looked().asked > asked
	parts = append(parts, choose(fetched, "the list was fetched again", "the list was not fetched again"),
		choose(refused, "the old root is refused", "the old root is still served"),
		choose(newServed, "the new root is served", "the new root is not served ("+q.short(r.text())+")"))
	means := "a change of the workspace is ignored, or overwritten by the server's own list"
	if fetched {
		means = "the list is fetched and does not take effect"
	}
	q.add("Q4", question, expected, strings.Join(parts, ", "), verdict(fetched && refused && newServed), means)
}

func choose(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// hide takes our directory out of a text.
func (s *session) hide(text string) string { return strings.ReplaceAll(text, s.w.dir, "WORKSPACE") }

// closes is the command that closes a gap, for a server that has no guard yet. The paths of one with a URL are held by --remote-root alone.
func (s *session) closes() string {
	if s.Guarded {
		return ""
	}
	if s.Elsewhere {
		return "rootbound run --remote-root DIR --url " + strings.Join(s.Command, " ")
	}
	return "rootbound run --root DIR -- " + strings.Join(s.Command, " ")
}
