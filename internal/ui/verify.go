package ui

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// verifySection runs the boundary test against a server that is configured.
var verifySection = section{name: "verify", routes: (*UI).verifyRoutes, run: endTrial}

// Configured is a server that can be tried.
type Configured struct {
	// ID tells it from the others.
	ID string `json:"id"`
	// Name is its name where it is configured, From the client whose file that is, or "" for our own.
	Name string `json:"name"`
	From string `json:"from,omitempty"`
	File string `json:"file,omitempty"`
	// Command is its command line, or its URL.
	Command []string `json:"command"`
	// Why says why it cannot be tried.
	Why string `json:"why,omitempty"`
}

// Trial is a run of the boundary test.
type Trial struct {
	// ID is that of the server.
	ID string
	// Quick asks only what people check by hand.
	Quick bool
	// Progress is told what is being tried.
	Progress func(done, all int, what string)
}

// Tried is what came out.
type Tried struct {
	// Score is the report in a sentence.
	Score string `json:"score"`
	// Held, Leaked, Failed and Other are how many questions and cases ended so.
	Held   int `json:"held"`
	Leaked int `json:"leaked"`
	Failed int `json:"failed"`
	Other  int `json:"other"`
	// Page is the report as a page of its own.
	Page []byte `json:"-"`
}

// trials are those of this run of the program. There is one at a time, since it takes the machine.
type trials struct {
	mu     sync.Mutex
	over   bool                    // the program ends
	stop   context.CancelCauseFunc // nil when none runs
	done   chan struct{}           // closed when the last one has ended
	number int
	page   []byte
}

var (
	errStopped = errors.New("stopped")
	errClosing = errors.New("rootbound ui ends")
)

func (u *UI) verifyRoutes() {
	u.handle("GET /api/verify/servers", func(*http.Request) (any, error) {
		list := []Configured{}
		if u.o.Configured != nil {
			list = append(list, u.o.Configured()...)
		}
		return map[string]any{"servers": list}, nil
	})
	u.handle("POST /api/verify/start", u.startTrial)
	u.handle("POST /api/verify/stop", func(*http.Request) (any, error) {
		u.trials.mu.Lock()
		defer u.trials.mu.Unlock()
		if u.trials.stop != nil {
			u.trials.stop(errStopped)
		}
		return struct{}{}, nil
	})
	u.mux.Handle("GET /api/verify/report", u.private(http.HandlerFunc(u.trialReport)))
}

// trial is how a trial stands, as pages follow it.
type trial struct {
	Number int        `json:"number"`
	Server Configured `json:"server"`
	State  string     `json:"state"` // running, stopped, failed or done
	Done   int        `json:"done"`
	All    int        `json:"all"`
	What   string     `json:"what"`
	Begun  time.Time  `json:"begun"`
	Ended  *time.Time `json:"ended,omitempty"`
	Error  string     `json:"error,omitempty"`
	Tried  *Tried     `json:"tried,omitempty"`
}

func (u *UI) startTrial(r *http.Request) (any, error) {
	var in struct {
		ID    string
		Quick bool
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	var server *Configured
	if u.o.Configured != nil {
		for _, c := range u.o.Configured() {
			if c.ID == in.ID {
				server = &c
			}
		}
	}
	if server == nil || u.o.Verify == nil {
		return nil, problem{http.StatusNotFound, "gone", "there is no such server any more"}
	}
	t := &u.trials
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over:
		return nil, problem{http.StatusServiceUnavailable, "", errClosing.Error()}
	case t.stop != nil:
		return nil, problem{http.StatusConflict, "running", "a server is being tried already"}
	}
	// It goes on when the page is closed, and ends with the program.
	ctx, stop := context.WithCancelCause(context.WithoutCancel(r.Context()))
	t.number++
	t.stop, t.done, t.page = stop, make(chan struct{}), nil
	state := trial{Number: t.number, Server: *server, State: "running", Begun: time.Now()}
	u.hub.set("verify", "", state)
	go u.tryOut(ctx, state, in.Quick, t.done)
	return struct{}{}, nil
}

func (u *UI) tryOut(ctx context.Context, state trial, quick bool, done chan struct{}) {
	defer close(done)
	var mu sync.Mutex
	var last time.Time
	tried, err := u.o.Verify(ctx, Trial{ID: state.Server.ID, Quick: quick, Progress: func(n, all int, what string) {
		mu.Lock()
		defer mu.Unlock()
		state.Done, state.All, state.What = n, all, what
		if time.Since(last) >= 100*time.Millisecond {
			last = time.Now()
			u.hub.set("verify", "", state)
		}
	}})
	mu.Lock()
	defer mu.Unlock()
	now := time.Now()
	state.Ended, state.What = &now, ""
	switch {
	case context.Cause(ctx) != nil:
		state.State = "stopped"
	case err != nil:
		state.State, state.Error = "failed", err.Error()
	default:
		state.State, state.Tried = "done", tried
	}
	t := &u.trials
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop(nil)
	t.stop = nil
	if tried != nil {
		t.page = tried.Page
	}
	u.hub.set("verify", "", state) // before another one can begin
}

// endTrial stops what runs when the program ends, and waits for it. Nothing begins after that.
func endTrial(ctx context.Context, u *UI) {
	<-ctx.Done()
	t := &u.trials
	t.mu.Lock()
	t.over = true
	done := t.done
	if t.stop != nil {
		t.stop(errClosing)
	}
	t.mu.Unlock()
	if done != nil {
		<-done
	}
}

// trialReport is the report as a page of its own. It has its styles in it, and nothing that runs.
func (u *UI) trialReport(w http.ResponseWriter, _ *http.Request) {
	u.trials.mu.Lock()
	page := u.trials.page
	u.trials.mu.Unlock()
	if page == nil {
		refuse(w, problem{http.StatusNotFound, "gone", "there is no report"})
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	w.Write(page)
}
