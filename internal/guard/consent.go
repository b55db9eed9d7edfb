package guard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/roots"
)

// codeConsent is the code of a path in a directory of the client's list that waits for a person's consent.
const codeConsent = "consent"

// consent puts in force what a person consented to, if that changed.
func (g *Guard) consent() {
	if g.opt.Consent == nil {
		return
	}
	g.consenting.Lock() // or what was said before would be in force last
	paths, changed, err := g.opt.Consent.Changed()
	if !changed {
		g.consenting.Unlock()
		return
	}
	var dirs []roots.Dir
	for _, path := range paths {
		d, err := roots.Resolve(path, roots.ResolveOptions{Access: roots.ReadWrite, Origin: "consent"})
		if err == nil { // what is gone, nothing in the client's list can be in
			dirs = append(dirs, d)
		}
	}
	set := roots.NewSet(dirs...)
	fault := ""
	if err != nil {
		fault = err.Error()
	}
	g.mu.Lock()
	told, same := g.damaged == fault, g.consented.Equal(set)
	g.consented, g.damaged = set, fault
	g.given++
	all := g.all()
	g.mu.Unlock()
	g.consenting.Unlock()
	if fault != "" && !told {
		g.opt.Warn(fault)
		g.note(&calllog.Record{Kind: calllog.Note, Code: codeConsent, Reason: fault})
	}
	events(all, func(t *roots.Tracker) roots.Step { // somebody else may have read something newer meanwhile
		g.mu.Lock()
		defer g.mu.Unlock()
		return t.Consent(g.consented)
	})
	if g.opt.Share && !same {
		announce(all)
	}
}

// shared is what of a set a server on another machine may be told: what a person consented to. The rest waits for that.
func (g *Guard) shared(set roots.Set) roots.Set {
	if !g.opt.Remote {
		return set
	}
	if !g.opt.Share {
		return roots.Set{}
	}
	g.mu.Lock()
	consented := g.consented
	var allowed []roots.Dir
	var waiting []string
	for _, d := range set.Dirs() {
		switch {
		case consented.Covers(roots.NewSet(d)):
			allowed = append(allowed, d)
		case !g.unshared[d.Path]:
			if g.unshared == nil {
				g.unshared = map[string]bool{}
			}
			g.unshared[d.Path] = true
			waiting = append(waiting, d.Path)
		}
	}
	g.mu.Unlock()
	if len(waiting) > 0 {
		text := fmt.Sprintf("the server, which is on another machine, wants to know the roots, and nobody consented that it is told of %q; %s lets it know", waiting, g.allow(""))
		g.opt.Warn(text)
		g.note(&calllog.Record{Kind: calllog.Note, Code: codeConsent, Reason: text})
		if g.opt.Consent != nil {
			if err := g.opt.Consent.Ask(waiting...); err != nil {
				g.opt.Warn(err.Error())
			}
		}
	}
	return roots.NewSet(allowed...)
}

// waits says that directories of the client's list wait for consent, and how it is given.
func (s *session) waits(dirs []roots.Dir) {
	var paths, names []string
	for _, d := range dirs {
		paths, names = append(paths, d.Path), append(names, fmt.Sprintf("%q", d.Path))
	}
	text := fmt.Sprintf("the client opened %s, which no configuration names and nobody consented to yet; %s lets this server have it",
		strings.Join(names, ", "), s.g.allow(paths[0]))
	if len(paths) > 1 {
		text = strings.TrimSuffix(text, "it") + "the first, and " + s.g.allow("") + " all of them"
	}
	s.g.opt.Warn(text)
	s.g.note(&calllog.Record{Kind: calllog.Note, Session: s.id(), Code: codeConsent, Reason: text})
	if s.g.opt.Consent == nil {
		return
	}
	if err := s.g.opt.Consent.Ask(paths...); err != nil {
		s.g.opt.Warn(err.Error())
	}
}

// allow is the command that consents to a directory, or to all that wait.
func (g *Guard) allow(dir string) string {
	words := "`rootbound roots allow " + ShellQuote(g.opt.Server)
	if dir != "" {
		words += " " + ShellQuote(dir)
	}
	return words + "`"
}

// consentText is for the model, which gets no path that it did not write itself.
func consentText(what, allow, id string) string {
	return fmt.Sprintf("Refused by Rootbound (call %s): %s is in a directory that the client opened and the user has not let this server have. "+
		"Ask the user to run %s in a terminal, and then try again.", id, what, allow)
}

// orConsent is for the outcome of a request that a server of ours denied: it is kept, unless what is missing is a person's
// consent to where the path leads, or to any directory at all.
func (s *session) orConsent(r *exchange.Request, path string, o exchange.Outcome) exchange.Outcome {
	notes, state := r.Trail.Notes(), s.state()
	if !slices.ContainsFunc(notes, func(n exchange.Note) bool { return n.Denied || n.Part }) {
		return o
	}
	d, _, waits := state.Waiting.Match(path)
	if !waits && (state.Waiting.Len() == 0 || state.Set.Len() > 0) {
		return o
	}
	what, text := "what you asked for", "what was asked for"
	if waits {
		what, text = "the path", fmt.Sprintf("%q", path)
	}
	text += " is in a directory that waits for your consent"
	allow := s.g.allow(d.Path)
	r.Trail.Add(exchange.Note{Stage: "roots", Denied: true, Code: codeConsent, Text: text, Fix: strings.Trim(allow, "`")})
	s.g.opt.Warn(fmt.Sprintf("refused %s (call %s): %s (%s)", method(r), r.Trail.ID, text, allow))
	return exchange.Refused(r, consentText(what, s.g.allow(""), r.Trail.ID), []byte(`{"reason":"consent"}`))
}
