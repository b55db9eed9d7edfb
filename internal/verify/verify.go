package verify

import (
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
	// Guarded says that a guard is part of the command already.
	Guarded bool
	// Eras are those that are tried; none is both.
	Eras []exchange.Era
	// Only are the ids of the cases that are tried, or the beginnings of ids; none is all.
	Only []string
	// Tools are those that were named for a role, with the parameter that is the path ("" is the usual).
	Tools map[string][2]string
	// Race is how long each race is run; 0 is a second, less than 0 runs none.
	Race time.Duration
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
		} else {
			silent = spoken
		}
	}
	if len(r.report.Server.Eras) == 0 {
		return nil, fmt.Errorf("talking to the server: %w", silent)
	}
	r.report.Score = r.report.score()
	if len(r.report.Tools) == 0 {
		r.report.Score = "nothing to judge but the protocol: " + r.report.Score
	}
	return r.report, nil
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
}

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
	listed := p.request("tools/list", nil)
	s.tools = find(listed.result, r.Tools)
	if len(r.report.Tools) == 0 {
		r.report.Tools = s.tools.found()
	}
	for role, named := range r.Tools {
		if t := s.tools[roleOf(role)]; t == nil || t.name != named[0] {
			return nil, fmt.Errorf("the server has no tool %q that could be for %q", named[0], role)
		}
	}
	trials := slices.DeleteFunc(battery(r.Race > 0, r.Filled), func(t trial) bool { return !r.wanted(t.id) })
	checks := slices.DeleteFunc(protocol(era), func(c check) bool { return !r.wanted(c.id) })
	if len(s.tools) == 0 {
		r.report.Server.Notes = appendOnce(r.report.Server.Notes, "no tool of the server reads or writes files as far as names and parameters tell: there is nothing to judge but the protocol")
		trials = nil
	}
	if len(r.Here) > 0 {
		return nil, s.questions(r.Here)
	}
	r.all += len(trials) + len(checks)
	if len(s.tools) > 0 && r.wanted("Q") {
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

// Cases returns what can be tried, without results.
func Cases() []Result {
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
	return list
}

func roleOf(name string) role { return role(name) }

func appendOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func (r *run) wanted(id string) bool {
	if len(r.Only) == 0 {
		return true
	}
	return slices.ContainsFunc(r.Only, func(only string) bool {
		return id == only || strings.HasPrefix(id, only+"/") || strings.HasPrefix(only, "Q") && id == "Q"
	})
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
	a := &attempt{place: p, peer: s.peer, tools: s.tools, trial: &t, run: s.run}
	t.try(a)
	if err := context.Cause(s.ctx); err != nil {
		return err
	}
	why := ""
	if !t.fresh {
		if why = s.peer.alive(s.tools, s.w); why != "" {
			a.fault("afterwards %s", why)
		}
	}
	s.report.Cases = append(s.report.Cases, a.result(p.changed()))
	if a.hurt() || why != "" {
		if err := s.again(); err != nil {
			return err
		}
		if why := s.peer.alive(s.tools, s.w); why != "" {
			return fmt.Errorf("after case %s, with a new process: %s", t.id, why)
		}
	}
	return s.clear(p)
}

// hurt reports whether the server may not be what it was.
func (a *attempt) hurt() bool { return len(a.faults) > 0 }

// clear removes what a case made, so that no other finds it.
func (s *session) clear(p *place) error {
	err := errors.Join(os.RemoveAll(p.root), os.RemoveAll(p.out))
	if err != nil {
		return fmt.Errorf("clearing up behind a case: %w", err)
	}
	return nil
}
