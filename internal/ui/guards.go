package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/unseen"
)

// guardsSection is Now and Questions: what guards tell, and what they are told.
var guardsSection = section{
	name: "guards",
	routes: func(u *UI) {
		u.handle("POST /api/pause", u.pause)
		u.handle("POST /api/question", u.question)
		u.handle("POST /api/answers", u.answers)
	},
	run: func(ctx context.Context, u *UI) {
		u.tellPaused()
		approval.Watch(ctx, u.o.Dir, u.guardTold)
	},
}

// desks are the guards that tell us something, and the ids of what waits there.
type desks struct {
	mu     sync.Mutex
	guards map[string]*desk
}

type desk struct {
	guard  approval.Guard
	paused bool
	waits  map[string]bool
	now    *approval.Now // nil until it told
}

// guardValue is what the page is told of a guard, by its key.
type guardValue struct {
	Server string        `json:"server"`
	PID    int           `json:"pid"`
	Since  time.Time     `json:"since"`
	Paused bool          `json:"paused"`
	Now    *approval.Now `json:"now"` // nil until it told
}

// waitingValue is what the page is told of a question before it asks for all of it, by the guard's key, a blank and the id.
type waitingValue struct {
	Guard  string    `json:"guard"`
	ID     string    `json:"id"`
	Server string    `json:"server"`
	Tool   string    `json:"tool"`
	Client string    `json:"client"`
	Effect string    `json:"effect"`
	Why    string    `json:"why"`
	Place  string    `json:"place"` // the first, or a host
	More   int       `json:"more"`  // how many others there are
	Asked  time.Time `json:"asked"`
	Until  time.Time `json:"until,omitzero"`
	Paused bool      `json:"paused"`
	Behind int       `json:"behind"`
	Digest string    `json:"digest"`
}

// guardTold takes the news of a guard.
func (u *UI) guardTold(e approval.Event) {
	if e.Guard == (approval.Guard{}) {
		u.few.tell("guard", "%v", e.Err)
		return
	}
	key := e.Guard.Key()
	u.desks.mu.Lock()
	defer u.desks.mu.Unlock()
	d := u.desks.guards[key]
	if e.Gone {
		if d != nil {
			for id := range d.waits {
				u.hub.drop("question", key+" "+id)
			}
			delete(u.desks.guards, key)
			u.hub.drop("guard", key)
		}
		if e.Err != nil {
			u.few.tell("guard", "%v", e.Err)
		}
		return
	}
	if d == nil {
		d = &desk{guard: e.Guard, waits: map[string]bool{}}
		u.desks.guards[key] = d
		u.hub.set("guard", key, guardValue{Server: e.Guard.Server, PID: e.Guard.PID, Since: e.Guard.Since})
	}
	if e.State != nil {
		if d.paused != e.State.Paused {
			d.paused = e.State.Paused
			go u.tellPaused()
		}
		waits := map[string]bool{}
		for i := range e.State.Questions {
			q := &e.State.Questions[i]
			waits[q.ID] = true
			u.hub.set("question", key+" "+q.ID, waitingAt(key, q))
		}
		for id := range d.waits {
			if !waits[id] {
				u.hub.drop("question", key+" "+id)
			}
		}
		d.waits = waits
	}
	if e.Now != nil {
		d.now = e.Now
		u.hub.set("guard", key, guardValue{e.Guard.Server, e.Guard.PID, e.Guard.Since, e.Now.Paused, e.Now})
	}
}

func waitingAt(key string, q *approval.Question) waitingValue {
	v := waitingValue{
		Guard: key, ID: q.ID, Server: approval.Cut(q.Server, 200), Tool: approval.Cut(q.Tool, 200), Client: approval.Cut(q.Client, 200), Effect: q.Effect,
		Why: approval.Cut(q.Why, 400), Asked: q.Asked, Until: q.Until, Paused: q.Paused, Behind: q.Behind, Digest: q.Digest,
	}
	if n := len(q.Targets) + len(q.Hosts); n > 0 {
		v.More = n - 1
		if len(q.Targets) > 0 {
			v.Place = approval.Cut(q.Targets[0], 400)
		} else {
			v.Place = approval.Cut(q.Hosts[0], 400)
		}
	}
	return v
}

// tellPaused tells the page what is paused.
func (u *UI) tellPaused() {
	u.pausing.Lock() // or what was found out before is told last
	defer u.pausing.Unlock()
	all, servers, err := approval.Paused(u.o.Dir)
	u.hub.set("paused", "", map[string]any{"all": all || err != nil, "servers": servers})
}

// errGone is why nothing can be said to a guard.
var errGone = problem{http.StatusNotFound, "gone", "this question was answered or withdrawn meanwhile, or its guard has ended"}

func (u *UI) guardOf(key string) (approval.Guard, error) {
	u.desks.mu.Lock()
	defer u.desks.mu.Unlock()
	if d := u.desks.guards[key]; d != nil {
		return d.guard, nil
	}
	return approval.Guard{}, errGone
}

func (u *UI) pause(r *http.Request) (any, error) {
	var in struct {
		Server string
		Paused bool
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	_, err := approval.Pause(r.Context(), u.o.Dir, in.Server, in.Paused)
	u.tellPaused()
	return struct{}{}, err
}

// said turns what a guard says into what the page has words for.
func said(err error) error {
	var text *approval.SaidError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, approval.ErrNoQuestion):
		return errGone
	case errors.As(err, &text) && text.Code == "changed":
		return problem{http.StatusConflict, text.Code, text.Text}
	case errors.As(err, &text):
		return problem{http.StatusUnprocessableEntity, "", text.Text}
	}
	return err
}

// maxShown is how much of the arguments is shown before somebody asks for all of them, and maxEdited how much can be edited.
const (
	maxShown  = 64 << 10
	maxEdited = 1 << 20
)

// question is all of a question, and with args, what it would be if the arguments were these.
func (u *UI) question(r *http.Request) (any, error) {
	var in struct {
		Guard, ID string
		Args      json.RawMessage
		All       bool
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	g, err := u.guardOf(in.Guard)
	if err != nil {
		return nil, err
	}
	q, err := g.Question(r.Context(), in.ID, in.Args)
	if err != nil {
		return nil, said(err)
	}
	var text bytes.Buffer
	if json.Indent(&text, q.Args, "", "  ") != nil {
		text.Reset()
	}
	out := struct {
		approval.Question
		Args *struct{} `json:"args,omitempty"` // not twice
		Text string    `json:"text"`
		Cut  bool      `json:"cut"`
		// Edit says whether the arguments can be edited here.
		Edit bool `json:"edit"`
	}{Question: q, Text: unseen.JSON(text.String()), Edit: !q.Paused && len(q.Args) > 0 && text.Len() <= maxEdited}
	if len(out.Text) > maxShown && !in.All {
		out.Text, out.Cut = approval.Cut(out.Text, maxShown), true
	}
	return out, nil
}

// answers answers questions, each by itself.
func (u *UI) answers(r *http.Request) (any, error) {
	type one struct {
		Guard, ID string
		Reply     approval.Reply
	}
	var in struct{ Answers []one }
	if err := read(r, &in); err != nil {
		return nil, err
	}
	type ended struct {
		ID   string `json:"id"`
		Code string `json:"code,omitempty"`
		Text string `json:"text,omitempty"`
	}
	out := make([]ended, len(in.Answers))
	few := make(chan struct{}, 8)
	var all sync.WaitGroup
	for i, a := range in.Answers {
		out[i].ID = a.ID
		few <- struct{}{}
		all.Go(func() {
			defer func() { <-few }()
			g, err := u.guardOf(a.Guard)
			if a.Reply.Page = true; err == nil {
				err = said(g.Answer(r.Context(), a.ID, a.Reply))
			}
			var p problem
			if errors.As(err, &p) {
				out[i].Code, out[i].Text = p.code, p.text
			} else if err != nil {
				out[i].Text = err.Error()
			}
		})
	}
	all.Wait()
	return out, nil
}
