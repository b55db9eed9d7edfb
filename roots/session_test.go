package roots

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// workspace makes directories and returns them resolved, with all rights.
func workspace(t *testing.T, names ...string) []Dir {
	t.Helper()
	top := t.TempDir()
	var dirs []Dir
	for _, name := range names {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		d, err := Resolve(path, ResolveOptions{Access: ReadWrite, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, d)
	}
	return dirs
}

func told(dirs ...Dir) []Root { return NewSet(dirs...).Roots() }

func names(s Set) string {
	var list []string
	for _, d := range s.Dirs() {
		if d.Access != 0 {
			list = append(list, d.Name)
		}
	}
	return strings.Join(list, " ")
}

// rootsClient is a client with a handshake that tells of changes.
var rootsClient = Client{Roots: true, ListChanged: true}

// need calls Need and checks what it returns.
func need(t *testing.T, s *Session, c Client, wantSet string, wantAsk int) {
	t.Helper()
	state, ask, err := s.Need(t.Context(), c)
	if got := names(state.Set); got != wantSet || ask != wantAsk || err != nil {
		t.Errorf("Need: %q holds, question %d, error %v; want %q, %d", got, ask, err, wantSet, wantAsk)
	}
}

func TestSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs := workspace(t, "a", "b", "c")
		a, b, c := dirs[0], dirs[1], dirs[2]
		var warned []string
		s := NewSession(SessionOptions{Configured: NewSet(a, b), Warn: func(text string) { warned = append(warned, text) }})

		need(t, s, Client{}, "a b", 0)
		need(t, s, rootsClient, "a b", 1)
		s.Answer(1, told(b, c), nil)
		need(t, s, rootsClient, "b", 0)

		s.ListChanged()
		need(t, s, rootsClient, "b", 2)
		s.Answer(2, []Root{}, nil)
		need(t, s, rootsClient, "", 0)

		s.ListChanged()
		need(t, s, rootsClient, "", 3)
		s.Answer(3, append(told(a), Root{URI: "file:///nowhere/at/all"}, Root{URI: "vscode-remote://x/y"}), nil)
		need(t, s, rootsClient, "a", 0)

		s.ListChanged()
		need(t, s, rootsClient, "a", 4)
		s.Answer(4, []Root{{URI: "%%%"}}, nil)
		need(t, s, rootsClient, "", 0)

		s.ListChanged()
		need(t, s, rootsClient, "", 5)
		s.Answer(5, nil, fmt.Errorf("not this time (%w)", errors.ErrUnsupported))
		s.ListChanged()
		need(t, s, rootsClient, "", 0) // it has no roots/list, so it is not asked again
		if len(warned) != 4 {
			t.Errorf("warned of: %s", strings.Join(warned, "\n"))
		}
	})
}

func TestSessionOfNothing(t *testing.T) {
	dirs := workspace(t, "a")
	var s Session
	need(t, &s, rootsClient, "", 0)
	s.Answer(1, told(dirs...), nil) // nobody asked
	need(t, &s, rootsClient, "", 0)

	accepts := NewSession(SessionOptions{Mode: Accept})
	need(t, accepts, rootsClient, "", 1)
	accepts.Answer(1, told(dirs...), nil)
	need(t, accepts, rootsClient, "", 0) // nobody consented
	if got := names(accepts.State().Waiting); got != "a" {
		t.Errorf("%q waits for consent, want a", got)
	}

	consented := NewSession(SessionOptions{Mode: Accept, Consented: NewSet(dirs...)})
	need(t, consented, rootsClient, "", 1)
	consented.Answer(1, told(dirs...), nil)
	need(t, consented, rootsClient, "a", 0)
}

// A client that never answers costs one wait, and then none for half a minute.
func TestSessionSilentClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs := workspace(t, "a", "b")
		s := NewSession(SessionOptions{Configured: NewSet(dirs...)})
		need(t, s, rootsClient, "a b", 1)
		begun := time.Now()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { need(t, s, rootsClient, "a b", 0) })
		}
		wg.Wait()
		if waited := time.Since(begun); waited != AnswerLimit {
			t.Errorf("they waited for %v, want %v", waited, AnswerLimit)
		}
		need(t, s, rootsClient, "a b", 0)
		if time.Since(begun) != AnswerLimit {
			t.Error("the next one waited too")
		}
		s.Answer(1, told(dirs[1]), nil) // late, and still the first list there is
		need(t, s, rootsClient, "b", 0)

		s.ListChanged()
		need(t, s, rootsClient, "b", 2)
		s.Answer(2, nil, context.DeadlineExceeded)
		need(t, s, rootsClient, "b", 0) // the last list stays
		time.Sleep(time.Minute)
		need(t, s, rootsClient, "b", 3)
		s.Answer(2, told(dirs[0]), nil)
		need(t, s, rootsClient, "a", 0) // an answer to an earlier question is one
		s.Answer(3, told(dirs...), nil)
		s.Answer(2, told(dirs[0]), nil) // which a later one has overtaken
		need(t, s, rootsClient, "a b", 0)
	})
}

func TestSessionConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs := workspace(t, "a", "b")
		s := NewSession(SessionOptions{Configured: NewSet(dirs...)})
		var mu sync.Mutex
		asked := 0
		answer := func(ask int, list []Root, err error) {
			mu.Lock()
			asked++
			mu.Unlock()
			time.Sleep(time.Second)
			s.Answer(ask, list, err)
		}
		run := func(list []Root, want string) {
			t.Helper()
			begun := time.Now()
			defer func() {
				if waited := time.Since(begun); waited != time.Second {
					t.Errorf("they waited for %v, and the client took a second", waited)
				}
			}()
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					for {
						state, ask, err := s.Need(t.Context(), rootsClient)
						if err != nil {
							t.Error(err)
							return
						}
						if ask == 0 {
							if got := names(state.Set); got != want {
								t.Errorf("%q holds, want %q", got, want)
							}
							return
						}
						answer(ask, list, nil)
					}
				})
			}
			wg.Wait()
		}
		run(told(dirs[0]), "a")
		for range 10_000 { // a storm is one question
			s.ListChanged()
		}
		run(told(dirs[1]), "b")
		if asked != 2 {
			t.Errorf("the client was asked %d times, want 2", asked)
		}

		// A question that is withdrawn is asked by the next one that waits; a request that ends stops waiting.
		s.ListChanged()
		need(t, s, rootsClient, "b", 3)
		gone, cancel := context.WithCancelCause(t.Context())
		next := make(chan int)
		go func() { _, ask, _ := s.Need(t.Context(), rootsClient); next <- ask }()
		ended := make(chan error)
		go func() { _, _, err := s.Need(gone, rootsClient); ended <- err }()
		synctest.Wait()
		why := errors.New("changed my mind")
		cancel(why)
		if err := <-ended; !errors.Is(err, why) {
			t.Errorf("a request that ended: %v", err)
		}
		s.Answer(3, nil, context.Canceled)
		if ask := <-next; ask != 4 {
			t.Errorf("question %d, want 4", ask)
		}
	})
}

func TestSessionDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs := workspace(t, "a", "b")
		s := NewSession(SessionOptions{Configured: NewSet(dirs...)})
		stateless := Client{Roots: true}
		came := time.Now()
		need(t, s, stateless, "a b", 1)
		s.Answer(1, told(dirs[0]), nil)
		if _, ask, _ := s.Denied(t.Context(), came, dirs[1].Path); ask != 0 {
			t.Error("asked again though the list is newer than the request")
		}
		time.Sleep(time.Second)
		came = time.Now()
		time.Sleep(time.Second)
		if _, ask, _ := s.Denied(t.Context(), came, "/etc/passwd"); ask != 0 {
			t.Error("asked again for what no list can allow")
		}
		_, ask, _ := s.Denied(t.Context(), came, dirs[1].Path)
		if ask != 2 {
			t.Fatalf("question %d, want 2", ask)
		}
		// Another denied request waits for that answer, and is judged again by it.
		other := make(chan State)
		go func() {
			state, ask, err := s.Denied(t.Context(), came, dirs[1].Path)
			if ask != 0 || err != nil {
				t.Errorf("question %d, error %v", ask, err)
			}
			other <- state
		}()
		synctest.Wait()
		s.Answer(2, told(dirs[1]), nil)
		if got := names((<-other).Set); got != "b" {
			t.Errorf("%q holds, want b", got)
		}
	})
}

func TestSessionVanishedDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs := workspace(t, "a", "b")
		s := NewSession(SessionOptions{Configured: NewSet(dirs...)})
		need(t, s, rootsClient, "a b", 1)
		s.Answer(1, told(dirs...), nil)
		need(t, s, rootsClient, "a b", 0)
		if err := os.Remove(dirs[0].Path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookAfter)
		need(t, s, rootsClient, "b", 0)
		if lost := s.State().Lost; len(lost) != 1 || lost[0].Reason != Missing {
			t.Errorf("lost: %v", lost)
		}
		if err := os.WriteFile(dirs[0].Path, nil, 0o600); err != nil { // a file in its place is another thing
			t.Fatal(err)
		}
		time.Sleep(lookAfter)
		need(t, s, rootsClient, "b", 0)
		if err := os.Remove(dirs[0].Path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dirs[0].Path, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookAfter)
		need(t, s, rootsClient, "a b", 0)
	})
}
