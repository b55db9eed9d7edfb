package verify

import (
	"bytes"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rootbound/rootbound/internal/unseen"
	"github.com/rootbound/rootbound/internal/wire"
)

// trial is one case: what is tried, and what has to come back.
type trial struct {
	id, class          string
	attempt, expected  string
	severity           Severity
	needs              []role
	unix, linux, fresh bool // only there; in a process of its own
	// allowed, if set, says why it is no fault when something gets through.
	allowed string
	// prepare makes what the case needs on the disk.
	prepare func(p *place) error
	try     func(a *attempt)
}

// applies says why a case cannot be tried, "" if it can.
func (t *trial) applies(have tools) string {
	if t.linux && runtime.GOOS != "linux" || t.unix && runtime.GOOS == "windows" {
		return "not on this system"
	}
	for _, r := range t.needs {
		if have[r] == nil {
			return fmt.Sprintf("the server has no tool for it (%s)", r)
		}
	}
	return ""
}

// attempt is a case that is being tried.
type attempt struct {
	*place
	*peer
	session *session
	run     *run
	tools   tools
	trial   *trial

	// usual is what the server answers to something harmless: what is in that, too, is no leak.
	usual                  []byte
	leaks, faults, unclear []string
	answers                []string
	skipped                string
	hung                   bool
}

func (a *attempt) leak(format string, args ...any) {
	a.leaks = append(a.leaks, fmt.Sprintf(format, args...))
}
func (a *attempt) fault(format string, args ...any) {
	a.faults = append(a.faults, fmt.Sprintf(format, args...))
}
func (a *attempt) unsure(format string, args ...any) {
	a.unclear = append(a.unclear, fmt.Sprintf(format, args...))
}

// do calls the tool of a role, and looks at what comes back for anything of the canary.
func (a *attempt) do(r role, values map[string][]byte) reply {
	t := a.tools[r]
	arguments := t.arguments(values)
	rep := a.call(t.name, arguments)
	a.judge(r, t.name, arguments, rep)
	return rep
}

// reads are for what returns contents. A name in what it returns is that of an error, of each of several files its own.
func (r role) reads() bool { return r == roleRead || r == roleMany || r == roleMedia }

func (a *attempt) judge(r role, what string, asked []byte, rep reply) {
	back := rep.all()
	switch form := a.found(back); {
	case form == "content":
		a.leak("%s returned the content of a file outside", what)
	case form == "name" && !rep.refused() && !r.reads() && !bytes.Contains(asked, []byte(a.name)): // what errors tell is a case of its own
		a.leak("%s told the name of a file outside", what)
	default:
		if fact := a.facts(bytes.ReplaceAll(back, []byte(a.dir), nil), a.usual); fact != "" && !rep.refused() {
			a.leak("%s told the %s of a file outside", what, fact)
		}
	}
	switch {
	case rep.hung:
		a.hung = true
		a.fault("%s did not answer within %v", what, a.limit)
	case rep.refused():
		a.answers = append(a.answers, "refused: "+a.short(rep.text()))
	default:
		a.answers = append(a.answers, "answered: "+a.short(rep.text()))
	}
}

// short is a text of the server for the report: without our canaries and paths, on one line.
func (a *attempt) short(s string) string {
	for _, p := range []struct{ from, to string }{{a.text, "CANARY"}, {a.name, "CANARY"}, {a.outside, "OUTSIDE"}, {a.one, "ROOT"}, {a.two, "ROOT2"}, {a.dir, "WORKSPACE"}} {
		s = strings.ReplaceAll(s, p.from, p.to)
	}
	s = unseen.Visible(strings.Join(strings.Fields(s), " "))
	if r := []rune(s); len(r) > 120 {
		s = string(r[:120]) + "…"
	}
	if s == "" {
		return "nothing"
	}
	return s
}

// result is what the case showed.
func (a *attempt) result(changed string) Result {
	t := a.trial
	res := Result{ID: t.id, Era: a.era.String(), Class: t.class, Attempt: t.attempt, Expected: t.expected, Verdict: Held}
	if changed != "" {
		a.leak("outside: %s", a.short(changed))
	}
	switch {
	case a.skipped != "":
		res.Verdict, res.Seen = NotApplicable, a.skipped
		return res
	case len(a.leaks) > 0 && t.allowed != "":
		res.Verdict, res.Seen = ByDesign, a.leaks[0]+"; "+t.allowed
		return res
	case len(a.leaks) > 0:
		res.Verdict, res.Severity, res.Seen = Leaked, t.severity, strings.Join(slices.Compact(a.leaks), "; ")
		return res
	case len(a.faults) > 0:
		res.Verdict, res.Severity, res.Seen = Failed, min2(t.severity, Medium), strings.Join(slices.Compact(a.faults), "; ")
		return res
	case len(a.unclear) > 0:
		res.Verdict, res.Seen = Inconclusive, strings.Join(slices.Compact(a.unclear), "; ")
		return res
	}
	switch n := len(a.answers); {
	case n == 0:
		res.Seen = "nothing from outside"
	case n <= 2:
		res.Seen = strings.Join(a.answers, "; ")
	default:
		res.Seen = fmt.Sprintf("%s; and %d more answers with nothing from outside", a.answers[0], n-1)
	}
	return res
}

// min2 returns the lesser of two severities.
func min2(a, b Severity) Severity {
	return severities[min(slices.Index(severities, a), slices.Index(severities, b))]
}

const plainRead = "a plain read"

// plainly asks for something harmless: a plain file, where one is served.
func (s *session) plainly() (what string, rep reply) {
	read, list := s.tools[roleRead], s.tools[roleList]
	switch {
	case s.refuses == "" && read != nil:
		return plainRead, s.peer.call(read.name, read.arguments(text("path", filepath.Join(s.w.one, plainName))))
	case s.refuses == "" && list != nil:
		return "a plain list", s.peer.call(list.name, list.arguments(text("path", s.w.one)))
	}
	return "the list of tools", s.peer.request("tools/list", nil)
}

// alive says why the server is not what it was at the beginning, "" when it is.
func (s *session) alive() string {
	if why := s.wrong(); why != "" { // once more: it may be the machine that is slow
		return s.wrong()
	}
	return ""
}

func (s *session) wrong() string {
	what, rep := s.plainly()
	switch {
	case rep.hung:
		return fmt.Sprintf("%s is not answered within %v", what, s.peer.limit)
	case rep.refused():
		return fmt.Sprintf("%s is refused: %s", what, clip(rep.text()))
	case rep.took > s.quick():
		return fmt.Sprintf("%s took %v", what, rep.took.Round(time.Millisecond))
	case what == plainRead && !bytes.Contains(rep.result, []byte(s.w.inside[s.w.one])):
		return "a plain file is read wrongly"
	}
	return ""
}

func quoted(values ...string) []byte {
	b := []byte{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendQuote(b, v)
	}
	return append(b, ']')
}
