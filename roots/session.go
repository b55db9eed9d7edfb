package roots

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// lookAfter is how long it is taken for granted that directories are still there.
const lookAfter = time.Second

// SessionOptions say what a Session goes by. With the zero value nothing is configured, so nothing holds.
type SessionOptions struct {
	// Configured is what the operator gave. What holds is never wider, except with Accept.
	Configured Set
	// Mode is what the client's own list counts for. Ignore is right for a client on another machine.
	Mode Mode
	// Consented is, with Accept and nothing configured, what a person let this server have of the client's list.
	Consented Set
	// Warn is told what a person should know, in one line: a list that never came, a root that cannot be used. It is not
	// told the same again and again. It may be nil, is called without a lock, and must be safe for concurrent use.
	Warn func(text string)
}

// Session is a server's side of roots, towards one client: what holds for a request, and whether the client has to be asked
// first. It is a Tracker with a clock, a lock and a look at the disk: over stdio and in a session of HTTP make one for
// the connection, over stateless HTTP one for each request. The zero value has nothing configured.
//
// Need either says what holds or has a question, which is sent to the client as roots/list in whichever way its revision
// has: as a request of the server while it holds the client's request, or, since 2026-07-28, as an input request, in which
// case the answer comes with the next try. Whatever comes of it is given to Answer:
//
//	for {
//		state, ask, err := session.Need(ctx, roots.Client{Roots: true, ListChanged: true})
//		if err != nil {
//			return err
//		}
//		if ask == 0 {
//			return serve(state.Set)
//		}
//		list, err := askClient(ctx) // for no longer than roots.AnswerLimit
//		session.Answer(ask, list, err)
//	}
//
// The methods are safe for concurrent use.
type Session struct {
	warn func(string)

	mu      sync.Mutex
	tracker Tracker
	news    chan struct{} // closed with the next answer; nil when nobody waits
	looked  time.Time
}

// NewSession makes a session with a client that has not said anything yet.
func NewSession(o SessionOptions) *Session {
	s := &Session{warn: o.Warn, tracker: *NewTracker(o.Mode, o.Configured)}
	s.tracker.Consent(o.Consented)
	return s
}

// State returns what holds as far as is known, and asks nobody.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tracker.State()
}

// Need returns what holds for a request of a client that declared c: at the handshake, or with this request. When ask is
// not 0, the client has to be asked first: that is the number of the question, for Answer. Then state is what holds without the
// answer. Of several requests one gets the question, and the others wait here for its answer, for AnswerLimit at most. The
// error is that of ctx.
func (s *Session) Need(ctx context.Context, c Client) (state State, ask int, err error) {
	s.look()
	return s.ask(ctx, func(now time.Time) Step {
		declared := s.tracker.Client(c)
		step := s.tracker.Need(now)
		if step.Warning == "" {
			step.Warning = declared.Warning
		}
		return step
	})
}

// Denied is Need for a path that is denied to a request which came at came. The client may have forgotten to tell of a
// change, so it is asked once more, if its list is older than the request and another one could allow the path. The path
// is judged again when other roots hold than before.
func (s *Session) Denied(ctx context.Context, came time.Time, path string) (state State, ask int, err error) {
	return s.ask(ctx, func(now time.Time) Step { return s.tracker.Denied(now, came, path) })
}

// Answer tells how a question ended: with the client's list, or with err. context.DeadlineExceeded says that no answer came
// in time, and an answer may still be told; context.Canceled that the question was withdrawn, which says nothing about
// the client; errors.ErrUnsupported that the client does not know the method (-32601), so that it is not asked again.
// An answer to a question that was never asked, or that a later answer has overtaken, changes nothing.
//
// It looks at the directories of the list.
func (s *Session) Answer(question int, list []Root, err error) {
	a := Answer{Err: err}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		a.Code = methodNotFound
	case err == nil:
		a.Dirs, a.Bad = ResolveList(list, ParseURI, ResolveOptions{Access: ReadWrite, Origin: "client"})
	}
	s.event(func() Step { return s.tracker.Answer(time.Now(), question, a) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.news != nil {
		close(s.news)
		s.news = nil
	}
}

// ListChanged tells of the client's notification notifications/roots/list_changed. The client is asked by the next Need.
func (s *Session) ListChanged() {
	s.event(func() Step { return s.tracker.ListChanged() })
}

// ask puts an event into the tracker, and waits as long as another request has the question.
func (s *Session) ask(ctx context.Context, event func(now time.Time) Step) (State, int, error) {
	for {
		var state State
		var news chan struct{}
		step := s.event(func() Step {
			step := event(time.Now())
			if step.Question != 0 && !step.Ask && s.news == nil {
				s.news = make(chan struct{})
			}
			state, news = s.tracker.State(), s.news
			return step
		})
		if step.Ask || step.Question == 0 {
			return state, step.Question, nil
		}
		late := time.NewTimer(time.Until(step.Until))
		select {
		case <-news:
		case <-late.C: // the next event gives the question up
		case <-ctx.Done():
			late.Stop()
			return State{}, 0, context.Cause(ctx)
		}
		late.Stop()
	}
}

func (s *Session) event(f func() Step) Step {
	s.mu.Lock()
	step := f()
	s.mu.Unlock()
	if step.Warning != "" && s.warn != nil {
		s.warn(step.Warning)
	}
	return step
}

// look looks whether the directories that are configured and listed are still there.
func (s *Session) look() {
	s.mu.Lock()
	now, state := time.Now(), s.tracker.State()
	if !s.looked.IsZero() && now.Before(s.looked.Add(lookAfter)) {
		s.mu.Unlock()
		return
	}
	s.looked = now
	s.mu.Unlock()
	for _, d := range slices.Concat(state.Configured.dirs, state.List.dirs) {
		found, err := d.Refresh()
		s.event(func() Step { return s.tracker.Checked(d.Path, found, err) })
	}
}
