package fsserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// listeningCaller is a client that waits for what it is told.
type listeningCaller struct{ told chan string }

func (c listeningCaller) Notify(m *wire.Message) { c.told <- string(m.Bytes()) }
func (listeningCaller) CanAsk(string) bool       { return false }
func (listeningCaller) Ask(_ context.Context, q []exchange.Question, answer func([]exchange.Answer)) {
	answer(exchange.ErrorAnswers(len(q), wire.CodeInternal, "nobody is asked"))
}

// next returns what the client is told next.
func (c listeningCaller) next(t testing.TB) string {
	t.Helper()
	select {
	case m := <-c.told:
		return m
	case <-time.After(mcptest.Patience):
		t.Fatal("the client is told nothing")
		return ""
	}
}

// client is one client of a server, with its session.
type client struct {
	listeningCaller
	t       testing.TB
	server  *Server
	session *exchange.Session
	era     exchange.Era
}

// newClient connects a client. One of a handshake listens, as the edge lets it.
func newClient(t testing.TB, s *Server, era exchange.Era) *client {
	c := &client{listeningCaller{make(chan string, 1000)}, t, s, exchange.NewSession(t.Context()), era}
	if era == exchange.Legacy {
		r := request(era, exchange.Listen, "", roots.Set{})
		r.Caller, r.Session = c.listeningCaller, c.session
		s.Handle(c.session.Context(), r, func(exchange.Outcome) {})
	}
	return c
}

// follow follows resources and returns which of them it may, and how it is ended again.
func (c *client) follow(set roots.Set, uris ...string) (accepted []string, end func()) {
	c.t.Helper()
	if c.era == exchange.Legacy {
		for _, uri := range uris {
			if got := c.ask("resources/subscribe", set, uri); got == "{}" {
				accepted = append(accepted, uri)
			}
		}
		return accepted, func() {
			for _, uri := range uris {
				c.ask("resources/unsubscribe", set, uri)
			}
		}
	}
	ctx, cancel := context.WithCancel(c.session.Context())
	r := request(c.era, exchange.Listen, `{"notifications":{"resourceSubscriptions":`+string(quoteAll(uris))+`}}`, set)
	r.Caller, r.Session = c.listeningCaller, c.session
	ended := make(chan struct{})
	c.server.Handle(ctx, r, func(o exchange.Outcome) {
		if o.Msg != nil {
			c.t.Errorf("the listen request ends with %s", o.Msg.Bytes())
		}
		close(ended)
	})
	told := c.next(c.t)
	m, err := wire.Scan([]byte(told), wire.Strict)
	if err != nil || m.Method() != "notifications/subscriptions/acknowledged" {
		c.t.Fatalf("told %s: %v", told, err)
	}
	list, _ := wire.Get(m.Params(), "notifications", "resourceSubscriptions")
	for item := range wire.Items(list) {
		accepted = append(accepted, unquote(item))
	}
	return accepted, func() { cancel(); <-ended }
}

func (c *client) ask(method string, set roots.Set, uri string) string {
	c.t.Helper()
	r := request(c.era, method, `{"uri":`+quoteJSON(uri)+`}`, set)
	r.Session = c.session
	return ask(c.t, c.server, r)
}

// updated is how a client is told of a change of a resource.
func (c *client) updated(uri string) string {
	params := `{"uri":` + quoteJSON(uri)
	if c.era == exchange.Modern {
		params += `,"_meta":{"io.modelcontextprotocol/subscriptionId":7}`
	}
	return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":` + params + `}}`
}

// write puts a file in place in one step: one that is made and then written changes twice.
func write(t testing.TB, path, text string) {
	t.Helper()
	made := filepath.Join(t.TempDir(), "made")
	if err := os.WriteFile(made, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(made, path); err != nil {
		t.Fatal(err)
	}
}

func TestFollowedResources(t *testing.T) {
	for _, era := range eras {
		t.Run(era.String(), func(t *testing.T) {
			outside := old(t, tree(t, map[string]string{"secret": "s"}))
			dir := old(t, tree(t, map[string]string{"a": "a", "sub/x": "x", "b": "b"}))
			set := roots.NewSet(resolve(t, dir, roots.ReadOnly))
			s := newServer(t)
			c := newClient(t, s, era)
			in := func(name string) string { return roots.FileURI(filepath.Join(dir, name)) }
			accepted, end := c.follow(set, in("a"), roots.FileURI(filepath.Join(outside, "secret")), in("nothing"), in("sub"), in("a"), "https://example.org/")
			want := []string{in("a"), in("sub")}
			if era == exchange.Legacy {
				want = append(want, in("a")) // it is answered, and followed once
			}
			if diff := cmp.Diff(want, accepted); diff != "" {
				t.Errorf("accepted (-want +got):\n%s", diff)
			}
			told := func(what, uri string) {
				t.Helper()
				if got := c.next(t); got != c.updated(uri) {
					t.Fatalf("%s: told %s, want %s", what, got, c.updated(uri))
				}
			}
			write(t, filepath.Join(dir, "a"), "changed")
			told("a file changed", in("a"))
			write(t, filepath.Join(dir, "b"), "changed") // nobody follows that
			write(t, filepath.Join(dir, "new"), "")
			write(t, filepath.Join(dir, "sub", "new"), "")
			told("a file in a directory", in("sub"))
			if err := os.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "a")); err != nil {
				t.Fatal(err)
			}
			told("a file replaced", in("a"))
			if err := os.Remove(filepath.Join(dir, "a")); err != nil {
				t.Fatal(err)
			}
			told("a file removed", in("a"))
			write(t, filepath.Join(dir, "a"), "back")
			told("a file made again", in("a"))

			end()
			s.subscriptions.running.Wait() // nothing is followed
			write(t, filepath.Join(dir, "a"), "changed again")
			accepted, end = c.follow(set, in("sub")) // and again
			write(t, filepath.Join(dir, "sub", "newer"), "")
			told("followed again", in("sub"))
			c.session.End(nil)
			s.subscriptions.running.Wait() // nothing is followed
			end()
			if len(accepted) != 1 || len(c.told) != 0 {
				t.Errorf("accepted %q, told %d more", accepted, len(c.told))
			}
		})
	}
}

// A link that is followed, in the place of a file that is, leads outside: what happens there is not told.
func TestNothingIsToldOfWhatIsOutside(t *testing.T) {
	outside := old(t, tree(t, map[string]string{"secret": "s"}))
	for _, era := range eras {
		dir := old(t, tree(t, map[string]string{"a": "a", "b": "b"}))
		set := roots.NewSet(resolve(t, dir, roots.ReadOnly))
		s := newServer(t)
		c := newClient(t, s, era)
		a, b := roots.FileURI(filepath.Join(dir, "a")), roots.FileURI(filepath.Join(dir, "b"))
		c.follow(set, a, b)
		if err := os.Remove(filepath.Join(dir, "a")); err != nil {
			t.Fatal(err)
		}
		if got := c.next(t); got != c.updated(a) {
			t.Fatalf("removed: told %s", got)
		}
		if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "a")); err != nil {
			if runtime.GOOS == "windows" {
				return // links need a right
			}
			t.Fatal(err)
		}
		if got := c.next(t); got != c.updated(a) { // it is refused for another reason now
			t.Fatalf("a link outside: told %s", got)
		}
		write(t, filepath.Join(outside, "secret"), "changed "+era.String())
		write(t, filepath.Join(dir, "b"), "changed")
		if got := c.next(t); got != c.updated(b) {
			t.Errorf("told %s, want only what changed inside", got)
		}
	}
}

// When the roots of a client are narrowed, what it follows outside of them goes silent.
func TestRootsTakenAwayAreFollowedNoMore(t *testing.T) {
	dir := old(t, tree(t, map[string]string{"one/a": "a", "two/b": "b"}))
	one, two := resolve(t, filepath.Join(dir, "one"), roots.ReadOnly), resolve(t, filepath.Join(dir, "two"), roots.ReadOnly)
	for _, era := range eras {
		s := newServer(t)
		c := newClient(t, s, era)
		a, b := roots.FileURI(filepath.Join(dir, "one", "a")), roots.FileURI(filepath.Join(dir, "two", "b"))
		c.follow(roots.NewSet(one, two), a, b)
		if era == exchange.Legacy {
			m := &exchange.Request{Msg: wire.NewNotification("notifications/roots/list_changed", nil), Session: c.session, Roots: roots.NewSet(two)}
			s.Handle(t.Context(), m, func(exchange.Outcome) { t.Error("a notification was answered") })
			if got, want := c.next(t), `{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`; got != want {
				t.Errorf("told %s, want %s", got, want)
			}
		} else {
			c.ask("resources/read", roots.NewSet(two), b) // a request brings the roots that hold
		}
		if got := c.next(t); got != c.updated(a) {
			t.Errorf("%v: told %s, want that it cannot be reached any more", era, got)
		}
		write(t, filepath.Join(dir, "one", "a"), "changed "+era.String())
		write(t, filepath.Join(dir, "two", "b"), "changed "+era.String())
		if got := c.next(t); got != c.updated(b) {
			t.Errorf("%v: told %s, want only what is in the roots", era, got)
		}
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	files := map[string]string{}
	for i := range maxSubscriptions + 1 {
		files[fmt.Sprint(i)] = ""
	}
	dir := old(t, tree(t, files))
	set := roots.NewSet(resolve(t, dir, roots.ReadOnly))
	var uris []string
	for i := range maxSubscriptions + 1 {
		uris = append(uris, roots.FileURI(filepath.Join(dir, fmt.Sprint(i))))
	}
	for _, era := range eras {
		s := newServer(t)
		c := newClient(t, s, era)
		accepted, end := c.follow(set, uris...)
		if diff := cmp.Diff(uris[:maxSubscriptions], accepted); diff != "" {
			t.Errorf("%v: accepted (-want +got):\n%s", era, diff)
		}
		if era == exchange.Legacy {
			if got := c.ask("resources/subscribe", set, uris[maxSubscriptions]); !strings.Contains(got, `"reason":"too_many"`) {
				t.Errorf("one more: %s", got)
			}
		} else if more, _ := c.follow(set, uris[maxSubscriptions]); more != nil {
			t.Errorf("another request: accepted %q", more)
		}
		if other, _ := newClient(t, s, era).follow(set, uris[0]); len(other) != 1 {
			t.Errorf("%v: another client: accepted %q", era, other)
		}
		end()
		if again, _ := c.follow(set, uris[maxSubscriptions]); len(again) != 1 {
			t.Errorf("%v: when there is room again: accepted %q", era, again)
		}
	}
	s := newServer(t)
	c := newClient(t, s, exchange.Modern)
	for range maxListeners {
		c.follow(set)
	}
	r := request(exchange.Modern, exchange.Listen, `{"notifications":{}}`, set)
	r.Caller, r.Session = c.listeningCaller, c.session
	if got, want := ask(t, s, r), `{"code":-32602,"message":"a client listens with at most 32 requests at one time"}`; got != want {
		t.Errorf("one more listen request: %s, want %s", got, want)
	}
}

func TestWithoutAWayToTell(t *testing.T) {
	dir := old(t, tree(t, map[string]string{"a": ""}))
	set := roots.NewSet(resolve(t, dir, roots.ReadOnly))
	params := `{"uri":` + quoteJSON(roots.FileURI(filepath.Join(dir, "a"))) + `}`
	if got := ask(t, newServer(t), request(exchange.Legacy, "resources/subscribe", params, set)); !strings.Contains(got, "no way to tell of changes") {
		t.Errorf("got %s", got)
	}
	if got := ask(t, newServer(t), request(exchange.Legacy, "resources/unsubscribe", params, set)); got != "{}" {
		t.Errorf("got %s", got)
	}
}

// The clock on files ticks slowly: a change may leave the time of the one before it.
func TestAChangeInTheSameTickIsTold(t *testing.T) {
	dir := old(t, tree(t, map[string]string{"a": "old"}))
	set := roots.NewSet(resolve(t, dir, roots.ReadOnly))
	path := filepath.Join(dir, "a")
	now := time.Now()
	if err := os.Chtimes(path, now, now); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, newServer(t), exchange.Legacy)
	if accepted, _ := c.follow(set, roots.FileURI(path)); accepted == nil {
		t.Fatal("not followed")
	}
	write(t, path, "new")
	if err := os.Chtimes(path, now, now); err != nil {
		t.Fatal(err)
	}
	if got := c.next(t); got != c.updated(roots.FileURI(path)) {
		t.Errorf("told %s", got)
	}
}

// A resource in a file system that does not answer does not keep changes of others from being told, and is told of when it answers.
func TestAResourceThatDoesNotAnswer(t *testing.T) {
	dir := old(t, tree(t, map[string]string{"still": "old", "a": "old"}))
	set := roots.NewSet(resolve(t, dir, roots.ReadOnly))
	var silent atomic.Bool
	answers, asked := make(chan bool), make(chan bool, 100)
	s := New(Options{Files: rootfs.Options{Deny: func(name string) bool {
		if name == "still" && silent.Load() {
			asked <- true
			<-answers
		}
		return false
	}}})
	t.Cleanup(s.Close)
	c := newClient(t, s, exchange.Legacy)
	still, a := roots.FileURI(filepath.Join(dir, "still")), roots.FileURI(filepath.Join(dir, "a"))
	if accepted, _ := c.follow(set, still, a); len(accepted) != 2 {
		t.Fatalf("%q are followed", accepted)
	}
	silent.Store(true)
	write(t, filepath.Join(dir, "still"), "new")
	<-asked
	for _, text := range []string{"new", "newer"} {
		write(t, filepath.Join(dir, "a"), text)
		if got := c.next(t); got != c.updated(a) {
			t.Errorf("told %s", got)
		}
	}
	silent.Store(false)
	close(answers)
	if got := c.next(t); got != c.updated(still) {
		t.Errorf("told %s", got)
	}
	if n := len(asked); n > 1 {
		t.Errorf("it is looked at %d times at once", n)
	}
}
