package verify

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
)

// What people check by hand, in order.

// settle is how long a server may take to fetch roots that changed.
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

// serves reports whether the plain file of a root is served.
func (s *session) serves(root string) (bool, reply) {
	var r reply
	if t := s.tools[roleRead]; t != nil {
		r = s.peer.call(t.name, t.arguments(text("path", filepath.Join(root, plainName))))
		return !r.refused() && bytes.Contains(r.result, []byte(s.w.inside[root])), r
	}
	if t := s.tools[roleList]; t != nil {
		r = s.peer.call(t.name, t.arguments(text("path", root)))
		return !r.refused() && bytes.Contains(r.result, []byte(plainName)), r
	}
	return false, reply{err: []byte(`{"message":"there is no tool to read or list with"}`)}
}

func (s *session) questions() error {
	if s.tools[roleRead] == nil && s.tools[roleList] == nil {
		return nil
	}
	if err := s.again(); err != nil {
		return err
	}
	p, err := s.w.place("Q")
	if err != nil {
		return err
	}
	p.look()
	add := func(id, question, expected, seen string, ok bool, means, closes string) {
		q := Answered{ID: id, Era: s.era.String(), Question: question, Expected: expected, Seen: seen, Verdict: Held}
		if !ok {
			q.Verdict, q.Means, q.Closes = Failed, means, s.closes(closes)
			if id == "Q3" {
				q.Verdict = Leaked
			}
		}
		s.report.Questions = append(s.report.Questions, q)
	}
	declared := `in the handshake: {"listChanged":true}`
	if s.era == exchange.Modern {
		declared = `with each request: {}`
	}
	add("Q1", "Were roots declared to the server, and how?", "yes", "yes, "+declared, true, "", "")

	one, oneReply := s.serves(s.w.one)
	two, twoReply := s.serves(s.w.two)
	until(settle, func() bool { return s.peer.looked().asked > 0 })
	asked := s.peer.looked()
	told := strings.Join(uris(s.w.one, s.w.two), ", ")
	seen := fmt.Sprintf("asked %d times, answered %s", asked.asked, told)
	if asked.asked == 0 {
		seen = "not asked"
	}
	add("Q2", "Was roots/list asked, and what was answered?", "asked, and answered with the roots in force", s.hide(seen), asked.asked > 0,
		"the server does not ask: what a client says of its roots has no effect on it", "asks and checks for it")

	a := &attempt{place: p, peer: s.peer, tools: s.tools, trial: &trial{severity: Critical}, run: s.run}
	switch {
	case s.tools[roleRead] != nil:
		a.do(roleRead, text("path", p.file))
	default:
		a.do(roleList, text("path", p.out))
	}
	res := a.result(p.changed())
	add("Q3", "Is a read outside refused?", "refused", res.Seen, res.Verdict == Held,
		"roots are not in force, or the server does not check them", "refuses it")

	seen, ok := "both are served", one && two
	switch {
	case !one && !two:
		seen = "none is served: " + a.short(oneReply.text())
	case !one:
		seen = "the first is not served: " + a.short(oneReply.text())
	case !two:
		seen = "the second is not served: " + a.short(twoReply.text())
	}
	all := seen
	allOK := ok

	before := s.peer.looked().asked
	s.peer.setRoots(uris(s.w.three)...)
	if s.era == exchange.Legacy {
		until(settle, func() bool { return s.peer.looked().askedChanged > 0 })
	}
	newServed, newReply := s.serves(s.w.three) // where no change is told, it is asked for when a path needs it
	oldServed, _ := s.serves(s.w.one)
	fetched := s.peer.looked().asked > before
	parts := []string{}
	if s.era == exchange.Legacy {
		parts = append(parts, "list_changed sent")
	}
	parts = append(parts, choose(fetched, "the list was fetched again", "the list was not fetched again"),
		choose(!oldServed, "the old root is refused", "the old root is still served"),
		choose(newServed, "the new root is served", "the new root is not served ("+a.short(newReply.text())+")"))
	means := "a change of the workspace is ignored, or overwritten by the server's own list"
	if fetched {
		means = "the list is fetched and does not take effect"
	}
	add("Q4", "Does a switch of the workspace take effect?", "the list is fetched again, the old root is refused, the new one served",
		strings.Join(parts, ", "), fetched && !oldServed && newServed, means, "obeys the switch")
	add("Q5", "Are all repositories served?", "each root is served", all, allOK,
		"a root is missing from what is in force", "serves all of them")
	if err := s.clear(p); err != nil {
		return err
	}
	return s.again()
}

func choose(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// hide takes our directory out of a text.
func (s *session) hide(text string) string { return strings.ReplaceAll(text, s.w.dir, "WORKSPACE") }

// closes is the command that closes a gap, for a server that has no guard yet.
func (s *session) closes(string) string {
	if s.Guarded {
		return ""
	}
	return "rootbound run --root DIR -- " + strings.Join(s.Command, " ")
}
