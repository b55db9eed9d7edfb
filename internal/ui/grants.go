package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/pin"
)

// grantsSection is Grants and pins: what was allowed for more than one call, and what servers say of themselves.
var grantsSection = section{
	name: "grants",
	routes: func(u *UI) {
		u.handle("GET /api/grants/list", u.listGrants)
		u.handle("POST /api/grants/revoke", u.revokeGrants)
		u.handle("GET /api/pins/list", u.listPins)
		u.handle("POST /api/pins/decide", u.decidePin)
	},
	run: func(ctx context.Context, u *UI) { u.whileOpen(ctx, u.tellKept) },
}

// tellKept tells the page which states of the files are there, so that it asks anew when they are others.
func (u *UI) tellKept() {
	state := func(paths ...string) string {
		text := ""
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil {
				text += strconv.FormatInt(info.ModTime().UnixNano(), 36) + "." + strconv.FormatInt(info.Size(), 36) + " "
			}
		}
		return text
	}
	u.hub.set("kept", "grants", state(u.o.Grants.Path))
	u.hub.set("kept", "pins", state(u.o.Pins.Pins, u.o.Pins.Waiting))
}

// page is how many grants are sent at a time.
const page = 100

// listGrants returns those that have not ended: of a server, and whose texts hold all words that were typed; so many behind an offset.
func (u *UI) listGrants(r *http.Request) (any, error) {
	all, err := u.o.Grants.Grants()
	if err != nil {
		return nil, problem{http.StatusUnprocessableEntity, "grants", err.Error()}
	}
	type grant struct {
		ID      string    `json:"id"`
		Server  string    `json:"server"`
		Client  string    `json:"client"`
		What    string    `json:"what"`
		Session bool      `json:"session"`
		Since   time.Time `json:"since"`
		Until   time.Time `json:"until"`
		Call    string    `json:"call"`
		By      string    `json:"by"`
	}
	q := r.URL.Query()
	words, only := strings.Fields(strings.ToLower(q.Get("q"))), q.Get("server")
	offset, _ := strconv.Atoi(q.Get("offset"))
	out := struct {
		All     int      `json:"all"`
		Found   int      `json:"found"`
		Offset  int      `json:"offset"`
		Servers []string `json:"servers"`
		List    []grant  `json:"list"`
	}{Offset: max(0, offset), Servers: []string{}, List: []grant{}}
	now := time.Now()
	newest := make([]*approval.Grant, len(all))
	for i := range all {
		newest[i] = &all[i]
	}
	slices.SortStableFunc(newest, func(a, b *approval.Grant) int { return b.Since.Compare(a.Since) })
	for _, g := range newest {
		if !now.Before(g.Until) {
			continue
		}
		out.All++
		if !slices.Contains(out.Servers, g.Server) && len(out.Servers) < page {
			out.Servers = append(out.Servers, g.Server)
		}
		what := g.String()
		text := strings.ToLower(strings.Join([]string{g.ID, g.Server, g.Client, what, g.Call, g.By}, " "))
		if only != "" && g.Server != only || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			continue
		}
		if out.Found++; out.Found > out.Offset && len(out.List) < page {
			out.List = append(out.List, grant{g.ID, approval.Cut(g.Server, 200), approval.Cut(g.Client, 200), approval.Cut(what, 1000), g.Session != "",
				g.Since, g.Until, g.Call, approval.Cut(g.By, 300)})
		}
	}
	slices.Sort(out.Servers)
	return out, nil
}

// revokeGrants takes back those with these ids, or all of a server.
func (u *UI) revokeGrants(r *http.Request) (any, error) {
	var in struct {
		IDs    []string
		Server string
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	if len(in.IDs) == 0 && in.Server == "" {
		return nil, problem{http.StatusBadRequest, "request", "it does not say which"}
	}
	gone, err := u.o.Grants.Revoke(func(g approval.Grant) bool {
		return slices.Contains(in.IDs, g.ID) || in.Server != "" && g.Server == in.Server
	})
	if err != nil {
		return nil, problem{http.StatusUnprocessableEntity, "grants", err.Error()}
	}
	u.tellKept()
	return map[string]int{"revoked": len(gone)}, nil
}

// pinValue is a definition that waits for a person, or that one refused.
type pinValue struct {
	Server  string    `json:"server"`
	Runs    string    `json:"runs"`
	Kind    pin.Kind  `json:"kind"`
	Name    string    `json:"name"`
	For     string    `json:"for"` // the file; "" for the user's own
	Hash    string    `json:"hash"`
	Since   time.Time `json:"since"`
	Refused bool      `json:"refused"`
	First   bool      `json:"first"` // it was never accepted
	Reasons []string  `json:"reasons"`
	Changes []pinDiff `json:"changes"`
	More    int       `json:"more,omitempty"` // changes that are left out
}

type pinDiff struct {
	Path   string `json:"path"`
	Danger string `json:"danger,omitempty"`
	Diff   string `json:"diff"`
	Cut    int    `json:"cut,omitempty"` // bytes of it that are left out
}

const (
	// maxWaits is how many definitions that wait are sent at a time, maxDiffs how many changes of one, and maxDiff how much of one.
	maxWaits = 100
	maxDiffs = 50
	maxDiff  = 32 << 10
)

// listPins returns what waits, with how it differs, and how much is pinned of whom.
func (u *UI) listPins(r *http.Request) (any, error) {
	s := u.o.Pins
	waiting, err := s.Waits()
	if err != nil {
		return nil, problem{http.StatusUnprocessableEntity, "pins", err.Error()}
	}
	pinned, err := s.Pinned()
	if err != nil {
		return nil, problem{http.StatusUnprocessableEntity, "pins", err.Error()}
	}
	type owner struct {
		Server string    `json:"server"`
		Runs   string    `json:"runs"`
		N      int       `json:"n"`
		Since  time.Time `json:"since"` // of the newest
	}
	out := struct {
		All    int        `json:"all"`
		Waits  []pinValue `json:"waits"`
		Pinned []*owner   `json:"pinned"`
	}{All: len(waiting), Waits: []pinValue{}, Pinned: []*owner{}}
	by := map[pin.Owner]*owner{}
	for _, e := range pinned {
		o := by[e.Owner]
		if o == nil {
			o = &owner{Server: approval.Cut(e.Server, 200), Runs: approval.Cut(e.Runs, 200)}
			by[e.Owner] = o
			out.Pinned = append(out.Pinned, o)
		}
		if o.N++; e.Since.After(o.Since) {
			o.Since = e.Since
		}
	}
	var first, refused []pin.Entry
	for _, e := range waiting {
		if e.Refused {
			refused = append(refused, e)
		} else {
			first = append(first, e)
		}
	}
	waiting = append(first, refused...)
	reviews, err := s.Review(waiting[:min(len(waiting), maxWaits)])
	if err != nil {
		return nil, problem{http.StatusUnprocessableEntity, "pins", err.Error()}
	}
	for _, rv := range reviews {
		v := pinValue{
			Server: rv.Server, Runs: rv.Runs, Kind: rv.Kind, Name: rv.Name, Hash: rv.Hash(), Since: rv.Since, Refused: rv.Refused, First: rv.First,
			Reasons: rv.Reasons, Changes: []pinDiff{},
		}
		if rv.For != s.Pins {
			v.For = rv.For
		}
		changes := rv.Changes
		if rv.First {
			changes = []pin.Change{{After: string(rv.Text)}}
		}
		for i, c := range changes {
			if i == maxDiffs {
				v.More = len(changes) - i
				break
			}
			v.Changes = append(v.Changes, diffOf(c))
		}
		out.Waits = append(out.Waits, v)
	}
	return out, nil
}

// diffOf is a change with its values as text: a text as its lines, all else as JSON that is laid out.
func diffOf(c pin.Change) pinDiff {
	text := func(value string) string {
		var s string
		var b bytes.Buffer
		switch {
		case value == "":
			return ""
		case json.Unmarshal([]byte(value), &s) == nil:
			return s + "\n"
		case json.Indent(&b, []byte(value), "", "  ") == nil:
			return b.String() + "\n"
		}
		return value + "\n"
	}
	d := pinDiff{Path: approval.Cut(c.Path, 300), Danger: c.Danger}
	d.Diff = udiff.Unified("before", "after", text(c.Before), text(c.After))
	if cut := approval.Cut(d.Diff, maxDiff); len(cut) < len(d.Diff) {
		d.Cut, d.Diff = len(d.Diff)-len(cut), cut
	}
	return d
}

// decidePin accepts a definition that waits, or refuses it, as the person was shown it: another one is not meant.
func (u *UI) decidePin(r *http.Request) (any, error) {
	var in struct {
		Server, Runs, Name, For, Hash string
		Kind                          pin.Kind
		Accept                        bool
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	s := u.o.Pins
	if in.For != "" {
		s = s.In(in.For)
	}
	meant := func(e pin.Entry) bool {
		return e.Owner == pin.Owner{Server: in.Server, Runs: in.Runs} && e.Kind == in.Kind && e.Name == in.Name && e.For == s.Pins && e.Hash() == in.Hash
	}
	waiting, err := s.Waits()
	if err != nil {
		return nil, problem{http.StatusUnprocessableEntity, "pins", err.Error()}
	}
	waiting = slices.DeleteFunc(waiting, func(e pin.Entry) bool { return !meant(e) })
	gone := problem{http.StatusConflict, "changed", "it is another one now, or was decided about"}
	if len(waiting) == 0 {
		return nil, gone
	}
	if err := s.Reviewed(waiting); err != nil {
		return nil, err
	}
	decide := s.Refuse
	if in.Accept {
		decide = s.Accept
	}
	decided, err := decide(meant)
	switch {
	case errors.Is(err, pin.ErrNotReviewed):
		return nil, gone
	case err != nil:
		return nil, err
	case len(decided) == 0 && !waiting[0].Refused:
		return nil, gone
	}
	u.tellKept()
	return struct{}{}, nil
}
