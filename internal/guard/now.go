package guard

import (
	"bytes"
	"slices"
	"time"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

const (
	// maxWord is how long a word of a peer may be in what is told of it, and maxSentence a sentence with its words, in bytes: that is told
	// to each who looks, with every change.
	maxWord     = 200
	maxSentence = 4096
)

// client is what a client without a handshake says of itself with each request.
type client struct {
	info []byte // as it came
	exchange.Client
}

// meet notes who the client of a stateless request is: of a session once, and of those that nothing connects who was the last.
func (s *session) meet(r *exchange.Request) {
	g := s.g
	if g.opt.Board == nil {
		return
	}
	s.mu.Lock()
	known := s.client
	s.mu.Unlock()
	if s.of == nil {
		g.mu.Lock()
		known = g.stateless
		g.mu.Unlock()
	} else if known != nil {
		return
	}
	meta := r.Msg.Meta()
	info, ok := wire.Get(meta, exchange.MetaClient)
	if !ok || known != nil && bytes.Equal(info, known.info) {
		return
	}
	c := &client{info: bytes.Clone(info)}
	c.Name, c.Version, c.Revision = wire.GetString(info, "name"), wire.GetString(info, "version"), wire.GetString(meta, exchange.MetaVersion)
	if s.of == nil {
		g.mu.Lock()
		g.stateless = c
		g.mu.Unlock()
		return
	}
	s.mu.Lock()
	s.client = c
	s.mu.Unlock()
}

// count counts a call that ended, and keeps why it was refused. What else ended may have told who the client is.
func (g *Guard) count(r *exchange.Request, o exchange.Outcome, notes []exchange.Note, refused bool, at time.Time) {
	b := g.opt.Board
	switch {
	case b == nil:
	case refused:
		rec := g.call(r)
		last := approval.Refusal{Call: rec.Call, Time: at.UTC().Truncate(time.Millisecond), Method: approval.Cut(rec.Method, maxWord), Tool: approval.Cut(rec.Tool, maxWord),
			Reason: approval.Cut(rec.Reason, maxSentence), Code: rec.Code, Fix: approval.Cut(rec.Fix, maxSentence)}
		if i := slices.IndexFunc(rec.Paths, func(p calllog.Path) bool { return p.Verdict == calllog.Deny }); i >= 0 {
			last.Path = approval.Cut(rec.Paths[i].Place(), maxSentence)
		}
		b.Count(at, approval.Counts{Denied: 1}, &last)
	case o.Msg == nil || !acts(r.Msg.Method()):
		b.Changed()
	case slices.ContainsFunc(notes, func(n exchange.Note) bool { return n.Code == codeApproved }):
		b.Count(at, approval.Counts{Approved: 1}, nil)
	default:
		b.Count(at, approval.Counts{Allowed: 1}, nil)
	}
}

// Clients returns the clients that are there, the oldest first, and last the last one that nothing connects. Of each is said
// what holds for it now, and not what is spoken with the server. There are at most so many of them; more says how many are left out.
func (g *Guard) Clients(most int) (list []approval.Client, more int) {
	g.mu.Lock()
	all, stateless := g.all(), g.stateless
	g.mu.Unlock()
	for _, s := range all {
		c := s.of.Client()
		s.mu.Lock()
		state := s.tracker.State()
		if c.Revision == "" && s.client != nil {
			c = s.client.Client
		}
		s.mu.Unlock()
		switch {
		case c.Revision == "": // it has said nothing yet
		case len(list) >= most:
			more++
		default:
			list = append(list, seen(s.of.ID, c, state))
		}
	}
	if stateless != nil {
		if len(list) >= most {
			return list, more + 1
		}
		list = append(list, seen("", stateless.Client, g.would()))
	}
	return list, more
}

func seen(session string, c exchange.Client, state roots.State) approval.Client {
	return approval.Client{Session: session, Name: approval.Cut(c.Name, maxWord), Version: approval.Cut(c.Version, maxWord), Revision: approval.Cut(c.Revision, maxWord), Roots: nowRoots(state), Why: approval.Cut(state.String(), maxSentence), WhyCode: whyCodes[state.Why]}
}

// whyCodes tell the cases of what holds.
var whyCodes = [...]string{
	roots.NothingConfigured: "nothing-configured", roots.NotAsked: "not-asked", roots.Unanswered: "unanswered", roots.Narrowed: "narrowed",
	roots.NoOverlap: "no-overlap", roots.Revoked: "revoked", roots.OnlyBad: "only-bad", roots.Accepted: "accepted",
}

// Would returns what would hold for a client that comes now, of which nothing else is known.
func (g *Guard) Would() approval.Client { return seen("", exchange.Client{}, g.would()) }

func (g *Guard) would() roots.State {
	set := g.Configured()
	t := roots.NewTracker(g.opt.ClientRoots, set)
	for _, d := range set.Dirs() {
		now, err := d.Refresh()
		t.Checked(d.Path, now, err)
	}
	return t.State()
}

// nowRoots are the directories of a state: what holds, what is lost of it, and what is configured or listed and does not hold.
func nowRoots(state roots.State) []approval.Root {
	list := []approval.Root{}
	add := func(d roots.Dir, s approval.RootState) *approval.Root {
		list = append(list, approval.Root{
			Name: approval.Cut(d.Name, maxWord), Path: d.Path, Access: access(d.Access), Source: d.Origin, Pinned: d.Pinned, File: d.File, State: s,
		})
		return &list[len(list)-1]
	}
	lost := map[string]*roots.Error{}
	for _, e := range state.Lost {
		lost[e.Root] = e
	}
	for _, d := range state.Set.Dirs() {
		if lost[d.Path] == nil {
			add(d, approval.Open)
		}
	}
	offered := state.Configured.Dirs()
	if state.Why == roots.Accepted {
		offered = state.List.Dirs()
	}
	for _, d := range offered {
		_, _, waits := state.Waiting.Match(d.Path)
		switch e := lost[d.Path]; {
		case e != nil:
			r := add(d, approval.Unavailable)
			r.Reason, r.Code = e.Text(), string(e.Reason)
		case waits:
			add(d, approval.WaitsForConsent)
		case !slices.ContainsFunc(state.Set.Dirs(), func(o roots.Dir) bool { return policy.Under(o.Path, d.Path) }):
			add(d, approval.Closed)
		}
	}
	return list
}
