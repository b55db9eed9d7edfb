package verify

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// check is a requirement of the specification that a client can see.
type check struct {
	id       string
	what     string
	expected string
	severity Severity
	allowed  string // why it is no fault when it is not as expected
	// see says what was seen and whether it is right; "" is not applicable.
	see func(s *session, listed list) (seen string, ok bool)
}

func (s *session) check(c check, listed list) error {
	res := Result{ID: c.id, Era: s.era.String(), Class: "protocol", Attempt: c.what, Expected: c.expected, Verdict: Held}
	if s.gone != "" {
		res.Verdict, res.Seen = Inconclusive, s.gone
		s.report.Cases = append(s.report.Cases, res)
		return nil
	}
	seen, ok := c.see(s, listed)
	res.Seen = seen
	switch {
	case seen == "":
		res.Verdict, res.Seen = NotApplicable, "there is no occasion"
	case !ok && c.allowed != "":
		res.Verdict, res.Seen = ByDesign, seen+"; "+c.allowed
	case !ok:
		res.Verdict, res.Severity = Failed, c.severity
	}
	s.report.Cases = append(s.report.Cases, res)
	if why := s.alive(); why != "" {
		return s.renew("the check " + c.id)
	}
	return nil
}

// isToolName reports whether a tool may be called so. (An expression for it would cost each start of the program.)
func isToolName(s string) bool {
	return s != "" && len(s) <= 128 && strings.TrimLeft(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.") == ""
}

// protocol returns the checks of an era.
func protocol(era exchange.Era) []check {
	all := []check{
		{"TC-26", "the schema of each tool's parameters", "an object of type object", Low, "", func(_ *session, listed list) (string, bool) {
			var bad []string
			n := 0
			for item := range wire.Items(listed.items) {
				n++
				if schema, ok := wire.Get(item, "inputSchema"); !ok || schema[0] != '{' || wire.GetString(schema, "type") != "object" {
					bad = append(bad, wire.GetString(item, "name"))
				}
			}
			return seenOf(n, bad, "all are objects", "are no objects")
		}},
		{"TC-27", "the names of the tools", "unique, of at most 128 letters, digits, '_', '-' and '.'", Low, "", func(_ *session, listed list) (string, bool) {
			var bad []string
			had := map[string]bool{}
			for item := range wire.Items(listed.items) {
				name := wire.GetString(item, "name")
				if had[name] || !isToolName(name) {
					bad = append(bad, name)
				}
				had[name] = true
			}
			return seenOf(len(had), bad, "all are", "are not")
		}},
		{"TC-25", "the list of tools, fetched again", "the same, in the same order", Low, "", func(s *session, listed list) (string, bool) {
			if !listed.ok() {
				return "", true
			}
			a, b := s.peer.listAll("tools/list", "tools"), s.peer.listAll("tools/list", "tools")
			same := bytes.Equal(a.items, b.items) && bytes.Equal(a.items, listed.items)
			return choose(same, "the same", "another"), same
		}},
		{"PG-01", "the pages of the list of tools", "they end", Low, "", func(_ *session, listed list) (string, bool) {
			if listed.endless != "" {
				return listed.endless, false
			}
			if !listed.ok() {
				return fmt.Sprintf("page %d did not come", listed.pages+1), false
			}
			return fmt.Sprintf("%d", listed.pages), true
		}},
		{"TC-21", "a call of a tool that is not there", "an error", Low, "", func(s *session, _ list) (string, bool) {
			return refusal(s.peer.call("rootbound_no_such_tool", []byte("{}")))
		}},
		{"TC-22", "a call without the arguments that it needs", "an error", Low, "", func(s *session, _ list) (string, bool) {
			t := s.tools[roleRead]
			if t == nil {
				return "", true
			}
			return refusal(s.peer.call(t.name, []byte("{}")))
		}},
		{"EC-04", "a method that is not there", fmt.Sprintf("the error %d", wire.CodeMethodNotFound), Low, "", func(s *session, _ list) (string, bool) {
			r := s.peer.request("rootbound/no-such-method", nil)
			return describe(r), r.code() == wire.CodeMethodNotFound
		}},
		{"TC-15", "tools that say that they only read", "they change nothing", High, "", func(s *session, _ list) (string, bool) {
			return s.readOnlyTools()
		}},
	}
	if era == exchange.Legacy {
		return append(all, handshakeChecks...)
	}
	return append(append(all, statelessChecks...), roundChecks...)
}

var handshakeChecks = []check{
	{"VD-02", "a handshake in a revision that is not there", "one that the server has", Low, "", func(s *session, _ list) (string, bool) {
		p, first, err := s.connect(exchange.Legacy, peerOptions{revision: "1999-01-01"})
		if err != nil {
			return err.Error(), false
		}
		defer p.close()
		v := wire.GetString(first.result, "protocolVersion")
		if !first.ok() {
			return refusal(first) // an example of the specification has it so
		}
		return fmt.Sprintf("it answered with %q", v), regexp.MustCompile(`^202\d-\d\d-\d\d$`).MatchString(v)
	}},
	{"VD-02o", "a handshake in the oldest revision", "that revision, or one that the server has", Low, "", func(s *session, _ list) (string, bool) {
		p, first, err := s.connect(exchange.Legacy, peerOptions{revision: "2024-11-05"})
		if err != nil {
			return err.Error(), false
		}
		defer p.close()
		if !first.ok() {
			return refusal(first)
		}
		return fmt.Sprintf("it answered with %q", wire.GetString(first.result, "protocolVersion")), wire.GetString(first.result, "protocolVersion") != ""
	}},
	{"SQ-03", "questions for roots while no request is open", "none", Low, "no dated revision forbids it", func(s *session, _ list) (string, bool) {
		n := s.peer.looked().alone
		return fmt.Sprintf("%d", n), n == 0
	}},
}

var statelessChecks = []check{
	{"VD-12", "server/discover", "the revisions and the capabilities", Low, "", func(s *session, _ list) (string, bool) {
		r := s.peer.request("server/discover", nil)
		versions, _ := wire.Get(r.result, "supportedVersions")
		_, caps := wire.Get(r.result, "capabilities")
		return "revisions " + string(versions), strings.Contains(string(versions), stateless) && caps
	}},
	{"VD-10", "a request in a revision that is not there", "the error -32022", Low, "", func(s *session, _ list) (string, bool) {
		old := s.peer.opt.revision
		s.peer.opt.revision = "1999-01-01"
		r := s.peer.request("tools/list", nil)
		s.peer.opt.revision = old
		return describe(r), r.code() == -32022
	}},
	{"VD-07", "a request without its revision", "the error -32602", Low, "", func(s *session, _ list) (string, bool) {
		if slices.Contains(s.report.Server.Eras, exchange.Legacy.String()) {
			return "", true // it is one of the handshake revisions
		}
		r, _ := s.peer.once("tools/list", []byte(`{"_meta":{"`+exchange.MetaCapabilities+`":{}}}`))
		return refusal(r)
	}},
	{"MR-18", "the kind of a result", `"resultType"`, Low, "", func(s *session, _ list) (string, bool) {
		r := s.peer.request("tools/list", nil)
		if !r.ok() {
			return choose(r.hung, describe(r), ""), !r.hung
		}
		t := wire.GetString(r.result, "resultType")
		return fmt.Sprintf("%q", t), t == "complete" || t == ""
	}},
	{"VD-24", "a method of the handshake revisions, with the words of the stateless one", "an error", Low, "", func(s *session, _ list) (string, bool) {
		r := s.peer.request("logging/setLevel", []byte(`{"level":"debug"}`))
		return refusal(r)
	}},
}

func seenOf(n int, bad []string, good, wrong string) (string, bool) {
	switch {
	case n == 0:
		return "", true
	case len(bad) == 0:
		return good, true
	}
	return fmt.Sprintf("%s %s", strings.Join(bad, ", "), wrong), false
}

// refusal is for what has to be refused.
func refusal(r reply) (seen string, ok bool) { return describe(r), r.refused() && !r.hung }

func describe(r reply) string {
	switch {
	case r.hung:
		return "no answer"
	case r.err != nil:
		return fmt.Sprintf("the error %d: %s", r.code(), clip(r.text()))
	case r.refused():
		return "a result that says that it failed: " + clip(r.text())
	}
	return "a result: " + clip(r.text())
}

func clip(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 100 {
		return string(r[:100]) + "…"
	}
	return s
}

// readOnlyTools calls the tools that change something and say that they do not.
func (s *session) readOnlyTools() (string, bool) {
	var lies, said []string
	for _, r := range []role{roleWrite, roleAppend, roleEdit, roleMkdir, roleMove, roleCopy, roleDelete} {
		t := s.tools[r]
		if t == nil || !t.says.readOnly {
			continue
		}
		said = append(said, t.name)
		if s.changesSomething(r) {
			lies = append(lies, t.name)
		}
	}
	for _, r := range []role{roleRead, roleList, roleTree, roleSearch, roleStat} {
		if t := s.tools[r]; t != nil && t.says.readOnly {
			said = append(said, t.name)
			if s.changesSomething(r) {
				lies = append(lies, t.name)
			}
		}
	}
	switch {
	case len(said) == 0:
		return "", true
	case len(lies) > 0:
		return strings.Join(lies, ", ") + " changed what is in the root", false
	}
	return fmt.Sprintf("%d tools say so and change nothing", len(said)), true
}

// changesSomething calls the tool of a role inside the root and looks whether anything there is another afterwards.
func (s *session) changesSomething(r role) bool {
	p, err := s.w.place("TC-15")
	if err != nil {
		return false
	}
	defer s.clear(p)
	before := snapshot(p.root)
	ok, fresh := p.in("ok.txt"), p.in("fresh")
	values := map[role]map[string][]byte{
		roleWrite: text("path", fresh, "content", "x"), roleAppend: text("path", ok, "content", "x"), roleEdit: text("path", ok, "old", "ok", "new", "ko"),
		roleMkdir: text("path", fresh), roleMove: text("from", ok, "to", fresh), roleCopy: text("from", ok, "to", fresh), roleDelete: text("path", ok),
		roleRead: text("path", ok), roleList: text("path", p.root), roleTree: text("path", p.root), roleSearch: text("path", p.root, "pattern", "**"),
		roleStat: text("path", ok),
	}[r]
	s.peer.call(s.tools[r].name, s.tools[r].arguments(values))
	return snapshot(p.root) != before
}
