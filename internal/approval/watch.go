package approval

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Event is news of a guard.
type Event struct {
	// Guard is whose. Without one the directory of guards cannot be read, and Err says why.
	Guard Guard
	// State is what is at its desk, and Now what it is at the moment; nil is no news.
	State *State
	Now   *Now
	// Gone is set when the guard has ended, or does not let us in: Err says why.
	Gone bool
	Err  error
}

// Watch calls f with what is at the desk of a guard and with what it is, now and with every change, until ctx ends or the guard does.
// It returns why.
func (g Guard) Watch(ctx context.Context, f func(Event)) error {
	c, in, err := g.ask(ctx, request{Do: "watch"})
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	c.SetDeadline(time.Time{})
	for {
		out, err := g.read(in)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		if out.State != nil || out.Now != nil {
			f(Event{Guard: g, State: out.State, Now: out.Now})
		}
	}
}

const (
	// lookEvery is how often new guards are looked for.
	lookEvery = time.Second
	// shunned is how long a guard is left alone that does not let us in, since it tells its person each time.
	shunned = time.Minute
)

// Watch calls f with the news of every guard in dir, until ctx ends: of one that is there or comes, first what is at its desk and
// what it is, then every change, and its end. F is called by one goroutine at a time. A guard that has nothing to tell is not asked.
func Watch(ctx context.Context, dir string, f func(Event)) {
	w := watch{f: f, known: map[string]bool{}}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	failed := ""
	for {
		w.mu.Lock()
		cards, err := readCards(dir, w.known)
		for path := range cards {
			w.known[path] = true
		}
		w.mu.Unlock()
		switch {
		case err == nil:
			failed = ""
		case err.Error() != failed:
			failed = err.Error()
			w.tell(ctx, Event{Err: fmt.Errorf("looking for guards: %w", err)})
		}
		for path, c := range cards {
			go w.follow(ctx, path, c)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

type watch struct {
	telling sync.Mutex
	f       func(Event)

	mu    sync.Mutex
	known map[string]bool // the files of guards that are watched, or left alone
}

func (w *watch) tell(ctx context.Context, e Event) {
	w.telling.Lock()
	defer w.telling.Unlock()
	if ctx.Err() == nil {
		w.f(e)
	}
}

// follow watches a guard until it ends.
func (w *watch) follow(ctx context.Context, path string, c card) {
	g := c.guard(path)
	there := false
	err := g.Watch(ctx, func(e Event) {
		there = true
		w.tell(ctx, e)
	})
	c.left(path, err)
	var said *SaidError
	refused := errors.As(err, &said)
	if there || refused {
		e := Event{Guard: g, Gone: true}
		if refused {
			e.Err = err
		}
		w.tell(ctx, e)
	}
	forget := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.known, path)
	}
	switch {
	case ctx.Err() != nil:
	case refused:
		time.AfterFunc(shunned, forget)
	default: // it may be busy, or a file of one that could not be reached yet
		time.AfterFunc(lookEvery, forget)
	}
}
