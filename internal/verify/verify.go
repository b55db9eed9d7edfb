package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// Setup is what a server is started with.
type Setup struct {
	Era exchange.Era
	// Dir is its working directory, Roots what its command line is filled with.
	Dir   string
	Roots []string
}

// Options of a run.
type Options struct {
	// Dir is a directory for the workspace, empty but for directories that are called as Roots says. It is empty afterwards.
	Dir string
	// Start starts the server. It is called more than once.
	Start func(ctx context.Context, s Setup) (Running, error)
	// Here are directories of the user's: only the questions are asked, of these as roots, and nothing is written in them.
	Here []string
	// Command is the server's command line, for the report.
	Command []string
	// Filled says that the command line holds the roots, so that they hold whatever a client says.
	Filled bool
	// Elsewhere says that the server is on another machine: the command is its URL.
	Elsewhere bool
	// Guarded says that a guard is part of the command already.
	Guarded bool
	// Eras are those that are tried; none is both.
	Eras []exchange.Era
	// Only chooses the cases that are tried, as CheckOnly takes them; none is all.
	Only []string
	// Tools are those that were named for a role, with the parameter that is the path ("" is the usual).
	Tools map[string][2]string
	// Race is how long each race is run; 0 is a second, less than 0 runs none.
	Race time.Duration
	// Opened says of a server that has nothing to judge what it opened and contacted. It may be nil.
	Opened func(ctx context.Context, s Setup) ([]string, error)
	// Limit is how long an answer may take; 0 is three seconds. What looks harmless may take two thirds of it.
	Limit time.Duration
	// Progress is told what is being done. It may be nil.
	Progress func(done, all int, what string)
}

// run is one run.
type run struct {
	Options
	ctx    context.Context
	w      *workspace
	report *Report
	done   int
	all    int
}

// Run tries everything and returns what came back. The error is about the trying: a server that cannot be started, a
// workspace that cannot be made, or that ctx ended. Everything that it made on the disk is removed.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if len(o.Eras) == 0 {
		o.Eras = []exchange.Era{exchange.Legacy, exchange.Modern}
	}
	if o.Limit == 0 {
		o.Limit = callLimit
	}
	if o.Race == 0 {
		o.Race = time.Second
	}
	if o.Progress == nil {
		o.Progress = func(int, int, string) {}
	}
	w, err := newWorkspace(o.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	r := &run{Options: o, ctx: ctx, w: w, report: &Report{
		Server: Server{Command: o.Command, Eras: []string{}}, Tools: []Found{}, Questions: []Answered{}, Cases: []Result{},
	}}
	var silent error
	for _, era := range o.Eras {
		spoken, err := r.era(era)
		if err != nil {
			return nil, err
		}
		if spoken == nil {
			r.report.Server.Eras = append(r.report.Server.Eras, era.String())
		} else if silent == nil {
			silent = fmt.Errorf("talking to the server in the %s: %w", eraName(era.String()), spoken)
		}
	}
	if len(r.report.Server.Eras) == 0 {
		return nil, silent
	}
	r.report.Score = r.report.score()
	if len(r.report.Tools) == 0 {
		r.report.Score = "nothing to judge but the protocol: " + r.report.Score
		if err := r.opened(); err != nil {
			return nil, err
		}
	}
	return r.report, nil
}

// opened looks what a server does that has nothing to judge.
func (r *run) opened() error {
	if r.Opened == nil {
		return nil
	}
	list, err := r.Opened(r.ctx, Setup{Dir: r.w.outside, Roots: []string{r.w.one, r.w.two, r.w.three}})
	if context.Cause(r.ctx) != nil {
		return context.Cause(r.ctx)
	}
	if err != nil {
		r.report.Server.Notes = append(r.report.Server.Notes, "what it opened and contacted cannot be told: "+err.Error())
		return nil
	}
	if len(list) == 0 {
		list = []string{"nothing besides what it needs to run"}
	}
	r.report.Server.Opened = list
	return nil
}

// start starts the server for a client.
func (r *run) start(ctx context.Context, era exchange.Era) (Running, error) {
	list := []string{r.w.one, r.w.two, r.w.three}
	if len(r.Here) > 0 {
		list = r.Here
	}
	return r.Start(ctx, Setup{Era: era, Dir: r.w.outside, Roots: list})
}

// session is a server with a client in front, which is begun anew after a case that breaks it.
type session struct {
	*run
	era   exchange.Era
	peer  *peer
	tools tools
	// usual is what it answers to something harmless, refuses what it says when it serves nothing from the beginning.
	usual   []byte
	refuses string
	// hangs counts the cases that it did not answer; gone says why nothing more is tried.
	hangs int
	gone  string
}

const (
	// A server that hangs again and again gets less time for each answer, and is left alone in the end.
	patientHangs, mostHangs = 3, 20
	lessLimit               = time.Second
)

func (r *run) connect(era exchange.Era, o peerOptions) (*peer, reply, error) {
	if o.roots == nil {
		o.roots = uris(r.w.one, r.w.two)
		if len(r.Here) > 0 {
			o.roots = uris(r.told()...)
		}
	}
	p, first, err := connect(r.ctx, r.start, era, o)
	if err != nil {
		return nil, first, fmt.Errorf("starting the server: %w", err)
	}
	if context.Cause(r.ctx) != nil {
		p.close()
		return nil, first, context.Cause(r.ctx)
	}
	p.limit = r.Limit
	return p, first, nil
}

// era tries everything in one era. Spoken says why the server does not speak it.
func (r *run) era(era exchange.Era) (spoken, err error) {
	p, first, err := r.connect(era, peerOptions{})
	if err != nil {
		return nil, err
	}
	s := &session{run: r, era: era, peer: p}
	defer func() { s.peer.close() }()
	if !first.ok() {
		if first.hung {
			return errors.New("its first answer did not come in time"), nil
		}
		return errors.New(first.text()), nil
	}
	r.identify(era, first)
	listed := p.listAll("tools/list", "tools")
	s.tools = find(listed.items, r.Tools)
	if len(r.report.Tools) == 0 {
		r.report.Tools = s.tools.found()
	}
	for what, named := range r.Tools {
		if t := s.tools[role(what)]; t == nil || t.name != named[0] {
			return nil, fmt.Errorf("the server has no tool %q that could be for %q", named[0], what)
		}
	}
	trials := slices.DeleteFunc(battery(r.Race > 0, r.Filled), func(t trial) bool { return !r.wanted(t.id, t.class) })
	checks := slices.DeleteFunc(protocol(era), func(c check) bool { return !r.wanted(c.id, "protocol") })
	if len(s.tools) == 0 {
		r.report.Server.Notes = appendOnce(r.report.Server.Notes, "no tool of the server reads or writes files as far as names and parameters tell: there is nothing to judge but the protocol")
		trials = nil
	}
	if len(r.Here) > 0 {
		return nil, s.questions(r.Here)
	}
	r.all += len(trials) + len(checks)
	if err := s.begin(); err != nil {
		return nil, err
	}
	if len(s.tools) > 0 && r.wanted(questionsID, "questions") {
		if err := s.questions(nil); err != nil {
			return nil, err
		}
	}
	for _, t := range trials {
		r.Progress(r.done, r.all, t.attempt)
		r.done++
		if err := s.try(t); err != nil {
			return nil, err
		}
	}
	for _, c := range checks {
		r.Progress(r.done, r.all, c.what)
		r.done++
		if err := s.check(c, listed); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// battery are all cases but those of the protocol.
func battery(raced, filled bool) []trial {
	all := slices.Concat(crossed(), single())
	if raced {
		all = append(all, races()...)
	}
	return append(all, rootTrials(filled)...)
}

// Cases returns what can be tried, without results; words choose as CheckOnly takes them, none choose all.
func Cases(words ...string) []Result {
	var list []Result
	for _, t := range battery(true, true) {
		list = append(list, Result{ID: t.id, Class: t.class, Attempt: t.attempt, Expected: t.expected, Severity: t.severity})
	}
	had := map[string]bool{}
	for _, era := range []exchange.Era{exchange.Legacy, exchange.Modern} {
		for _, c := range protocol(era) {
			if !had[c.id] {
				had[c.id] = true
				list = append(list, Result{ID: c.id, Class: "protocol", Attempt: c.what, Expected: c.expected, Severity: c.severity})
			}
		}
	}
	return slices.DeleteFunc(list, func(c Result) bool {
		return len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool { return chosen(word, c.ID, c.Class) })
	})
}

func appendOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// told are the directories of the user's that a server is told of first: all but the one that is switched to.
func (r *run) told() []string { return r.Here[:max(1, len(r.Here)-1)] }

// identify notes what the server says it is.
func (r *run) identify(era exchange.Era, first reply) {
	info, ok := wire.Get(first.result, "serverInfo")
	if era == exchange.Modern {
		if v, has := wire.Get(first.result, "_meta", exchange.MetaServer); has {
			info, ok = v, true
		}
	}
	if ok && r.report.Server.Name == "" {
		r.report.Server.Name, r.report.Server.Version = wire.GetString(info, "name"), wire.GetString(info, "version")
	}
}

// begin looks what the server answers to something harmless.
func (s *session) begin() error {
	what, rep := s.plainly()
	if len(s.tools) > 0 && !rep.hung {
		switch {
		case rep.refused():
			s.refuses = clip(rep.text())
		case what == plainRead && !bytes.Contains(rep.result, []byte(s.w.inside[s.w.one])):
			if _, rep = s.plainly(); !bytes.Contains(rep.result, []byte(s.w.inside[s.w.one])) {
				s.refuses = "what it reads is not what is in the file"
			}
		}
	}
	if s.refuses != "" {
		s.report.Server.Notes = appendOnce(s.report.Server.Notes,
			"the server serves nothing of its roots ("+strings.ReplaceAll(s.refuses, s.w.dir, "WORKSPACE")+"): what held may have held for that alone")
	}
	if s.usual = rep.all(); rep.hung {
		return s.renew("something harmless, before the first case,")
	}
	return nil
}

// renew begins anew after something that the server did not stand. That it does not begin again ends what is tried.
func (s *session) renew(after string) error {
	if s.gone != "" {
		return nil
	}
	if s.hangs >= mostHangs {
		s.gone = fmt.Sprintf("not tried: the server had not answered %d times; --only tries single cases", s.hangs)
		s.report.Unfinished = s.gone
		return nil
	}
	if err := s.w.mend(); err != nil {
		return err
	}
	err := s.again()
	if err != nil { // once more: a machine may have a bad moment
		err = s.again()
	}
	if context.Cause(s.ctx) != nil {
		return context.Cause(s.ctx)
	}
	why := ""
	if err != nil {
		why = err.Error()
	} else {
		why = s.alive()
	}
	if why != "" {
		s.gone = fmt.Sprintf("not tried: after %s a new process did not serve: %s", after, strings.ReplaceAll(why, s.w.dir, "WORKSPACE"))
		s.report.Unfinished = s.gone
	}
	return nil
}

// again begins a new session with a new process.
func (s *session) again() error {
	s.peer.close()
	p, first, err := s.connect(s.era, peerOptions{})
	if err != nil {
		return err
	}
	s.peer = p
	if !first.ok() {
		return fmt.Errorf("starting the server again: %s", first.text())
	}
	if s.hangs >= patientHangs {
		p.limit = min(lessLimit, s.Limit)
	}
	return nil
}

// try tries one case.
func (s *session) try(t trial) error {
	result := func(v Verdict, seen string) {
		s.report.Cases = append(s.report.Cases, Result{ID: t.id, Era: s.era.String(), Class: t.class, Attempt: t.attempt, Expected: t.expected, Seen: seen, Verdict: v})
	}
	if why := t.applies(s.tools); why != "" {
		result(NotApplicable, why)
		return nil
	}
	if s.gone != "" {
		result(Inconclusive, s.gone)
		return nil
	}
	p, err := s.w.place(strings.ReplaceAll(t.id, "/", "-"))
	if err != nil {
		return err
	}
	p.race = s.Race
	if t.prepare != nil {
		var skip errSkip
		if err := t.prepare(p); errors.As(err, &skip) {
			result(NotApplicable, string(skip))
			return nil
		} else if err != nil {
			return fmt.Errorf("preparing case %s: %w", t.id, err)
		}
	}
	p.look()
	a := &attempt{place: p, session: s, peer: s.peer, tools: s.tools, trial: &t, run: s.run, usual: s.usual}
	t.try(a)
	if err := context.Cause(s.ctx); err != nil {
		return err
	}
	if !t.fresh && len(a.faults) == 0 {
		if why := s.alive(); why != "" {
			a.fault("afterwards %s", a.short(why))
		}
	}
	s.report.Cases = append(s.report.Cases, a.result(p.changed()))
	if a.hung {
		s.hangs++
	}
	if len(a.faults) > 0 {
		if err := s.renew("case " + t.id); err != nil {
			return err
		}
	}
	return s.clear(p)
}

// clear removes what a case made, so that no other finds it.
func (s *session) clear(p *place) error {
	err := errors.Join(os.RemoveAll(p.root), os.RemoveAll(p.out))
	if err != nil {
		return fmt.Errorf("clearing up behind a case: %w", err)
	}
	return nil
}
