package ui

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/consent"
	"github.com/rootbound/rootbound/roots"
)

// rootsSection is Roots: the directories of the configuration file, and what servers were let have of a client's list.
var rootsSection = section{
	name: "roots",
	routes: func(u *UI) {
		u.handle("GET /api/roots/now", func(*http.Request) (any, error) { return u.rootsNow(), nil })
		u.handle("GET /api/roots/pick", u.pickRoot)
		u.handle("POST /api/roots/plan", u.planRoots)
		u.handle("POST /api/roots/save", u.saveRoots)
		u.handle("GET /api/roots/told", u.toldRoots)
		u.handle("POST /api/roots/consent", u.consentRoot)
	},
	run: func(ctx context.Context, u *UI) {
		u.whileOpen(ctx, func() { u.hub.set("roots", "", u.rootsNow()) })
	},
}

// lookEvery is how often is looked whether files and directories changed, while a page is open.
const lookEvery = time.Second

// whileOpen calls f now and then while a page is open, until ctx ends.
func (u *UI) whileOpen(ctx context.Context, f func()) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if u.hub.open() {
				f()
			}
		case <-ctx.Done():
			return
		}
	}
}

// rootsValue is what the page is told of the configured roots.
type rootsValue struct {
	File  string      `json:"file"`
	Error string      `json:"error,omitempty"` // the file cannot be read, or is not valid
	Lists []listValue `json:"lists"`
	// Consents are what servers were let have of a client's list, and what waits for that; Fault is why they cannot be read.
	Consents []consentValue `json:"consents"`
	Fault    string         `json:"fault,omitempty"`
}

type listValue struct {
	Server string      `json:"server"`
	Given  bool        `json:"given"`
	Roots  []rootValue `json:"roots"`
}

// rootValue is a root of a file. Place is as it is written there, Path where that leads.
type rootValue struct {
	Name   string `json:"name"`
	Place  string `json:"place"`
	Path   string `json:"path"`
	Access string `json:"access"`
	Pin    bool   `json:"pin"`
	Active bool   `json:"active"`
	Work   bool   `json:"work"`
	Reason string `json:"reason,omitempty"` // why it is not to be had now
	Code   string `json:"code,omitempty"`
}

type consentValue struct {
	Name    string    `json:"name"`
	Runs    string    `json:"runs"`
	Dir     string    `json:"dir"`
	Allowed bool      `json:"allowed"`
	Since   time.Time `json:"since"`
}

func (u *UI) rootsNow() rootsValue {
	v := rootsValue{Lists: []listValue{}, Consents: []consentValue{}}
	file, err := u.o.File()
	if err != nil {
		v.Error = err.Error()
	} else {
		v.File = file
		lists, err := config.Lists(file)
		if err != nil {
			v.Error = err.Error()
		}
		for _, l := range lists {
			lv := listValue{Server: l.Server, Given: l.Given, Roots: []rootValue{}}
			for _, p := range l.Roots {
				r := rootOf(p)
				r.Work = r.Code == "" && r.Path != "" && u.works.is(r.Path)
				lv.Roots = append(lv.Roots, r)
			}
			v.Lists = append(v.Lists, lv)
		}
	}
	entries, err := u.o.Consents.Entries()
	if err != nil {
		v.Fault = err.Error()
	}
	for _, e := range entries {
		v.Consents = append(v.Consents, consentValue{e.Name, e.Runs, e.Dir, e.Allowed, e.Since})
	}
	return v
}

func rootOf(p config.Placed) rootValue {
	v := rootValue{Name: p.Name, Place: p.Place, Path: p.Dir.Path, Access: p.AccessWord(), Pin: p.Pin, Active: p.Active}
	if p.Err != nil {
		v.Reason, v.Code = p.Err.Text(), string(p.Err.Reason)
	}
	return v
}

// works knows for a while which directories are the tops of work trees: to find out, whole directories may have to be read.
type works struct {
	mu    sync.Mutex
	since time.Time
	known map[string]bool
}

// worksFor is for how long.
const worksFor = 30 * time.Second

func (w *works) is(path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); w.known == nil || now.Sub(w.since) > worksFor {
		w.since, w.known = now, map[string]bool{}
	}
	is, ok := w.known[path]
	if !ok {
		top, in := roots.Workspace(path)
		is = in && top == path
		w.known[path] = is
	}
	return is
}

// pickRoot completes a directory, and says whether what was typed can be a root.
func (u *UI) pickRoot(r *http.Request) (any, error) {
	type pick struct {
		Path  string `json:"path"`
		Work  bool   `json:"work,omitempty"`
		Broad bool   `json:"broad,omitempty"`
	}
	var out struct {
		List []pick `json:"list"`
		More bool   `json:"more"`
		// Path is where the typed one leads, when it can be a root; Reason and Code say why it cannot, and Inside is the work tree
		// that it lies in.
		Path   string `json:"path,omitempty"`
		Work   bool   `json:"work"`
		Inside string `json:"inside,omitempty"`
		Reason string `json:"reason,omitempty"`
		Code   string `json:"code,omitempty"`
	}
	typed := r.URL.Query().Get("path")
	const most = 50
	list, more, err := config.Picks(typed, most)
	out.List, out.More = []pick{}, more
	for _, p := range list {
		out.List = append(out.List, pick(p))
	}
	if err != nil {
		out.Reason = err.Error()
	}
	d, err := config.ResolveTyped(typed)
	var e *roots.Error
	switch {
	case err == nil:
		out.Path, out.Reason = d.Path, ""
		if top, ok := roots.Workspace(d.Path); ok && top == d.Path {
			out.Work = true
		} else if ok {
			out.Inside = top
		}
	case errors.As(err, &e):
		out.Reason, out.Code = e.Text(), string(e.Reason)
	default:
		out.Reason = err.Error()
	}
	return out, nil
}

// rootsEdit is an edit of the file that a person wants.
type rootsEdit struct {
	// Do is "add", "remove", "set" or "use".
	Do     string
	Server string // whose list; "" is the one for all
	Root   string // its name, or its place; for "add" the directory
	Name   string
	Access string
	Pin    bool
	// Print is that of the file as it was when the person was shown what changes.
	Print string
}

func (u *UI) changeOf(in rootsEdit) (config.Change, error) {
	file, err := u.o.File()
	if err != nil {
		return config.Change{}, err
	}
	access, ok := config.AccessOf(in.Access)
	if !ok && (in.Do == "add" || in.Do == "set") {
		return config.Change{}, problem{http.StatusBadRequest, "request", "these are no rights"}
	}
	switch in.Do {
	case "add":
		d, err := config.ResolveTyped(in.Root)
		if err != nil {
			return config.Change{}, err
		}
		return config.AddRoot(file, in.Server, config.Root{Path: d.Path, Name: in.Name, Access: access, Pin: in.Pin})
	case "remove":
		return config.RemoveRoot(file, in.Server, in.Root)
	case "set":
		return config.SetRoot(file, in.Server, in.Root, func(r config.Root) config.Root {
			r.Name, r.Access, r.Pin = in.Name, access, in.Pin
			return r
		})
	case "use":
		return config.Use(file, in.Root)
	}
	return config.Change{}, problem{http.StatusBadRequest, "request", "there is no such edit"}
}

func printOf(c config.Change) string {
	if c.Before == nil {
		return "none"
	}
	sum := sha256.Sum256(c.Before)
	return hex.EncodeToString(sum[:])
}

// refusedEdit turns why an edit cannot be into what the page shows: it is the person's to mend.
func refusedEdit(err error) error {
	var p problem
	if err == nil || errors.As(err, &p) {
		return err
	}
	if errors.Is(err, config.ErrChanged) {
		return problem{http.StatusConflict, "changed", err.Error()}
	}
	var e *roots.Error
	if errors.As(err, &e) {
		return problem{http.StatusUnprocessableEntity, string(e.Reason), e.Text()}
	}
	return problem{http.StatusUnprocessableEntity, "", err.Error()}
}

// planRoots says what an edit would change, for whom.
func (u *UI) planRoots(r *http.Request) (any, error) {
	var in rootsEdit
	if err := read(r, &in); err != nil {
		return nil, err
	}
	c, err := u.changeOf(in)
	if err != nil {
		return nil, refusedEdit(err)
	}
	effects, err := c.Effects()
	if err != nil {
		return nil, refusedEdit(err)
	}
	type who struct {
		Server string `json:"server"`
		PID    int    `json:"pid"`
		Client string `json:"client"`
	}
	type effect struct {
		Server  string      `json:"server"`
		Active  bool        `json:"active"`
		Gained  []rootValue `json:"gained"`
		Lost    []rootValue `json:"lost"`
		Changed []rootValue `json:"changed"`
		Begun   bool        `json:"begun"`
		Emptied bool        `json:"emptied"`
		Guards  []who       `json:"guards"`
	}
	values := func(list []config.Placed) []rootValue {
		out := []rootValue{}
		for _, p := range list {
			out = append(out, rootOf(p))
		}
		return out
	}
	out := struct {
		File    string   `json:"file"`
		Print   string   `json:"print"`
		Diff    string   `json:"diff"`
		Effects []effect `json:"effects"`
	}{c.File, printOf(c), c.Diff(), []effect{}}
	for _, e := range effects {
		ev := effect{e.Server, e.Active, values(e.Gained), values(e.Lost), values(e.Changed), e.Begun, e.Emptied, []who{}}
		for _, n := range u.nows() {
			l := n.List
			if l == nil || filepath.Clean(l.File) != filepath.Clean(c.File) || l.Active != e.Active {
				continue
			}
			if !e.Active && l.Server != e.Server && !(e.Begun && l.Server == "" && n.Server == e.Server) {
				continue
			}
			w := who{Server: n.Server, PID: n.PID}
			if len(n.Clients) > 0 {
				w.Client = n.Clients[0].Name
			}
			ev.Guards = append(ev.Guards, w)
		}
		out.Effects = append(out.Effects, ev)
	}
	return out, nil
}

// saveRoots makes an edit, if the file is what it was when the person was shown what changes.
func (u *UI) saveRoots(r *http.Request) (any, error) {
	var in rootsEdit
	if err := read(r, &in); err != nil {
		return nil, err
	}
	c, err := u.changeOf(in)
	if err != nil {
		return nil, refusedEdit(err)
	}
	if printOf(c) != in.Print {
		return nil, problem{http.StatusConflict, "changed", config.ErrChanged.Error()}
	}
	if err := c.Write(); err != nil {
		return nil, refusedEdit(err)
	}
	now := u.rootsNow()
	u.hub.set("roots", "", now)
	return now, nil
}

// nows are what the guards are now, as far as they told.
func (u *UI) nows() []*approval.Now {
	u.desks.mu.Lock()
	defer u.desks.mu.Unlock()
	var list []*approval.Now
	for _, d := range u.desks.guards {
		if d.now != nil {
			list = append(list, d.now)
		}
	}
	return list
}

// toldRoots says which servers were told of which directories, as the log has it.
func (u *UI) toldRoots(*http.Request) (any, error) {
	list, err := u.o.Told()
	if err != nil {
		return nil, err
	}
	type told struct {
		Server string    `json:"server"`
		Dir    string    `json:"dir"`
		Last   time.Time `json:"last"`
	}
	out := []told{}
	for _, t := range list {
		out = append(out, told(t))
	}
	return out, nil
}

// consentRoot consents to a directory for a server, or takes that back.
func (u *UI) consentRoot(r *http.Request) (any, error) {
	var in struct {
		Name, Runs, Dir string
		Allow           bool
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	entries, err := u.o.Consents.Entries()
	if err != nil {
		return nil, problem{http.StatusUnprocessableEntity, "", err.Error()}
	}
	s := consent.Server{Name: in.Name, Runs: in.Runs}
	for _, e := range entries {
		if e.Server != s || e.Dir != in.Dir {
			continue
		}
		if in.Allow {
			err = u.o.Consents.Allow(s, in.Dir)
		} else {
			err = u.o.Consents.Forget(s, in.Dir)
		}
		now := u.rootsNow()
		u.hub.set("roots", "", now)
		return now, refusedEdit(err)
	}
	return nil, problem{http.StatusNotFound, "gone", "it does not wait any more"}
}
