// Package guard holds the stages between a client and a server: what roots hold, which paths a request names and whether
// they are inside, what the rules say of it and a person who is asked, whether the server is still what it was, what is in the
// answer, and the log. They are handlers in front of a handler, and work for every era and transport alike.
//
//	g := guard.New(guard.Options{Server: "files", Configured: set, Log: log})
//	handler := g.Wrap(server)
//	go g.Watch(ctx)
//
// The chain is log, roots, tools, paths, approve, pins, results, gate: each stage adds what it decided to the request's trail; the
// gate writes the trail to the log before the request goes to the server, and the log stage writes it before a refusal goes to
// the client.
//
// # Limits
//
// The guard checks what a request says before a server gets it. It stops honest mistakes. A server that means harm can
// read and write whatever its user can, whatever its requests said, and between the check and the use a link may change;
// only a confined process is held by the kernel. What a server lists is kept, as far as there is room for it: the tools that policy and the
// paths need, and their schemas.
package guard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/consent"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/pin"
	"github.com/rootbound/rootbound/internal/results"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// Options of a guard.
type Options struct {
	// Server is the server's name, for texts.
	Server string
	// Configured are the configured directories; ClientRoots says what a client's own list counts for.
	Configured  roots.Set
	ClientRoots roots.Mode
	// Strict reads the client's URIs by the letter.
	Strict bool
	// Remote says that the server is on another machine, so that this machine's directories are nothing to it: it is told of none,
	// or with Share of those that Consent allows.
	Remote, Share bool
	// Quiet declares roots to the server without listChanged, and announces no change.
	Quiet bool
	// Paths say how this server's path arguments are found, and Process how it resolves them.
	Paths   pathargs.Rules
	Process pathargs.Process
	// Defaults are arguments that a call gets when the client left them out, by tool ("*" for all) and argument; they may
	// hold {root} and {root:NAME}.
	Defaults map[string]map[string]string
	// Restart, if set, starts the server again when roots were added that its command line was not filled with and that it
	// does not ask for; it calls ready when the new one can be spoken to. What it is filled with is taken from Starting.
	Restart func(ready func()) error
	// Held says that the server cannot reach what was added since it was started, so that it is started again also when it
	// asks for the list.
	Held bool
	// RestartNarrowed starts it again also when roots were taken away.
	RestartNarrowed bool
	// Consent follows what a person lets the server have of a client's list; nil is nothing. It counts where nothing is
	// configured and ClientRoots is Accept.
	Consent *consent.Watch
	// Own are the files and directories that steer the guard, which no call may change.
	Own []string
	// Widen says how a person would open one more directory to this server, as its roots were given; nil is --root.
	Widen func(dir string) string
	// Rights says how a person would let everything be done in one of its roots; nil is --root.
	Rights func(dir string) string
	// Pins are what the server said of itself before; nil compares nothing.
	Pins *pin.Pins
	// Results say what is done about what is found in answers; nil checks nothing.
	Results *results.Options
	// Policy is what is decided about calls.
	Policy Policy
	// Approval is how a person is asked.
	Approval Approval
	// Board is told what becomes of calls, and that what Clients returns may have changed; nil is not.
	Board *approval.Board
	// Log takes the records; nil keeps none.
	Log *calllog.Log
	// Warn is told what a person should know. It may be nil.
	Warn func(text string)
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Guard is the stages around one server. It is safe for concurrent use.
type Guard struct {
	opt       Options
	catalog   *pathargs.Catalog
	tools     wire.Listed[*listedTool]
	contained bool  // the server is ours, and judges paths where it opens them
	means     means // where it goes, if it says so

	rules   atomic.Pointer[rules]
	policy  atomic.Pointer[Policy]
	results *results.Checker // nil checks nothing

	mu         sync.Mutex
	configured roots.Set
	consented  roots.Set
	given      int        // how often these two were set
	started    *roots.Set // what the server was started with; nil before
	restarting sync.Mutex // held while it is started again
	consenting sync.Mutex // held while it is found out what was consented to
	listeners  []*listener
	unshared   map[string]bool // directories of which it was said that they wait for consent to be told
	told       map[string]int  // how often something was found in answers, by what is told of it
	noted      map[string]bool // what was said and is not said again
	released   int             // how many pins it knows to be held no more
	damaged    string          // what was wrong with the consents when they were read last
	sessions   map[*exchange.Session]*session
	made       int     // sessions, ever
	stateless  *client // the last that no session connects; nil while there was none

	// Of the configured directories at the last look; see Look.
	found          []roots.Dir
	looks, changes int
}

// rules are what is done with the arguments of calls.
type rules struct {
	paths    pathargs.Rules
	defaults map[string]map[string]string
}

// SetRules puts other rules for the arguments of calls in force, as Options.Paths and Options.Defaults.
func (g *Guard) SetRules(paths pathargs.Rules, defaults map[string]map[string]string) {
	g.rules.Store(&rules{paths, defaults})
}

// SetResults puts other options for answers in force, as Options.Results. It has no effect where nothing is checked.
func (g *Guard) SetResults(o results.Options) {
	if g.results != nil {
		g.results.Set(o)
	}
}

// New makes a guard.
func New(o Options) *Guard {
	if o.Log == nil {
		o.Log = calllog.Discard()
	}
	if o.Widen == nil {
		o.Widen = func(dir string) string { return "--root " + ShellQuote(dir) }
	}
	if o.Rights == nil {
		o.Rights = func(dir string) string { return fmt.Sprintf("--root %s instead of --ro %[1]s", ShellQuote(dir)) }
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Consent != nil {
		o.Consent = o.Consent.Anew()
	}
	g := &Guard{opt: o, catalog: new(pathargs.Catalog), configured: o.Configured, sessions: map[*exchange.Session]*session{}, told: map[string]int{}, noted: map[string]bool{}}
	if o.Results != nil {
		g.results = results.New(*o.Results)
	}
	g.SetRules(o.Paths, o.Defaults)
	g.SetPolicy(o.Policy)
	if o.Pins != nil {
		g.released = o.Pins.Released()
	}
	g.consent()
	return g
}

// Wrap puts the stages in front of server.
func (g *Guard) Wrap(server exchange.Handler) exchange.Handler {
	return g.checked(exchange.Chain(g.bounded(g.checked(server)), g.logStage, g.rootsStage, g.toolsStage, g.pathsStage, g.approveStage, g.pinsStage, g.resultsStage, g.gate))
}

// WrapContained is Wrap for a server of ours that reaches nothing outside the roots of a request: its paths are judged
// where they are opened. Where it has a method Means, as that of fsserver has, a person is told where it will go.
func (g *Guard) WrapContained(server exchange.Handler) exchange.Handler {
	g.contained = true
	g.means, _ = server.(means)
	return g.checked(exchange.Chain(g.checked(server), g.logStage, g.rootsStage, g.toolsStage, g.approveStage, g.containedGate, g.againStage, g.resultsStage))
}

// checked holds a handler to one reply; a second one goes nowhere and is told.
func (g *Guard) checked(h exchange.Handler) exchange.Handler {
	return exchange.Checked(h, func(err error) {
		g.opt.Warn(err.Error())
		g.note(&calllog.Record{Kind: calllog.Note, Code: "bug", Reason: err.Error()})
	})
}

// Configure puts other configured directories in force.
func (g *Guard) Configure(set roots.Set) {
	g.mu.Lock()
	g.configured = set
	g.given++
	all := g.all()
	g.mu.Unlock()
	events(all, func(t *roots.Tracker) roots.Step { return t.Configure(set) })
}

// Configured returns the configured directories that are in force.
func (g *Guard) Configured() roots.Set {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.configured
}

// Starting returns what a server that is started now is to be given, and remembers it: what holds for the first session
// there is, or what would hold for one.
func (g *Guard) Starting() roots.Set {
	set := g.effective()
	g.mu.Lock()
	g.started = &set
	g.mu.Unlock()
	return set
}

func (g *Guard) effective() roots.Set {
	g.mu.Lock()
	all := g.all()
	g.mu.Unlock()
	if len(all) > 0 {
		return all[0].state().Set
	}
	return roots.NewTracker(g.opt.ClientRoots, g.Configured()).State().Set
}

// Again reports whether a subscription of the client still is to what holds now, so that it may be made again with a server
// that was started again. One that is not is told and logged.
func (g *Guard) Again(m *wire.Message) bool {
	if g.inside(m.Method(), m.Params(), g.effective()) {
		return true
	}
	uri := wire.GetString(m.Params(), "uri")
	if uri == "" {
		uri = "several resources"
	}
	text := fmt.Sprintf("the subscription to %.200q is not made again with the new server: it is outside the roots now", uri)
	g.opt.Warn(text)
	g.note(&calllog.Record{Kind: calllog.Note, Code: calllog.CodeOutside, Method: m.Method(), Reason: text})
	return false
}

// inside reports whether what the params of a request of a method name lies in a set.
func (g *Guard) inside(method string, params []byte, set roots.Set) bool {
	args, err := pathargs.Find(method, params, g.catalog, g.rules.Load().paths)
	return err == nil && len(g.judgeArgs(args, set).Refused()) == 0
}

// all are the sessions, the oldest first. The caller holds mu.
func (g *Guard) all() []*session {
	all := make([]*session, 0, len(g.sessions))
	for _, s := range g.sessions {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *session) int { return cmp.Compare(a.n, b.n) })
	return all
}

// Watch looks for roots that vanish, come back, are replaced or cannot be read, until ctx ends.
func (g *Guard) Watch(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			g.Look()
		}
	}
}

// Look looks once.
func (g *Guard) Look() {
	g.consent()
	g.lookPins()
	// Over HTTP there may be a thousand sessions with the same directories: they are looked at once, and each session is told of
	// what changed. What a directory is beneath changes without it; so now and then each looks for itself.
	var found []roots.Dir
	changed := false
	for _, d := range g.Configured().Dirs() {
		now, err := d.Refresh()
		changed = changed || err != nil
		found = append(found, now)
	}
	g.mu.Lock()
	all := g.all()
	other := changed || !slices.EqualFunc(found, g.found, roots.Dir.Equal)
	if g.looks++; other || g.looks%fullLooks == 0 {
		g.changes++
	}
	g.found = found
	changes := g.changes
	g.mu.Unlock()
	if other {
		g.opt.Board.Changed()
	}
	var others []*session
	for _, s := range all {
		if s.saw(changes) && s.look() {
			others = append(others, s)
		}
	}
	announce(others)
}

// fullLooks is after how many looks each session looks for itself.
const fullLooks = 10

// session returns what is kept of the session of r, which has come through the roots stage.
func (g *Guard) session(r *exchange.Request) *session {
	if c, ok := r.Caller.(*rootsCaller); ok {
		return c.s
	}
	return g.enter(r, nil)
}

// enter returns what is kept of the session of r for those behind the roots stage. It is kept for this request only where nothing connects
// requests, or where next is nil: then the session may have ended.
func (g *Guard) enter(r *exchange.Request, next exchange.Handler) *session {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.sessions[r.Session]; s != nil {
		return s
	}
	s := &session{g: g, next: next, of: r.Session, given: g.given, tracker: roots.NewTracker(g.opt.ClientRoots, g.configured)}
	s.tracker.Consent(g.consented)
	if r.Session != nil && next != nil {
		g.made++
		s.n = g.made
		g.sessions[r.Session] = s
		context.AfterFunc(r.Session.Context(), func() {
			g.mu.Lock()
			delete(g.sessions, r.Session)
			g.mu.Unlock()
			g.opt.Board.Changed()
		})
	}
	return s
}
