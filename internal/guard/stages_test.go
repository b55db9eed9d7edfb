package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/results"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// caller is a client in this process that answers questions for roots in one of several ways.
type caller struct {
	roots []byte // its answer; nil never answers
}

func (caller) Notify(*wire.Message)      {}
func (caller) CanAsk(method string) bool { return true }
func (c caller) Ask(ctx context.Context, qs []exchange.Question, answer func([]exchange.Answer)) {
	if c.roots == nil {
		context.AfterFunc(ctx, func() { answer(exchange.ErrorAnswers(len(qs), wire.CodeInternal, "withdrawn")) })
		return
	}
	answers := make([]exchange.Answer, len(qs))
	for i := range answers {
		answers[i].Result = c.roots
	}
	answer(answers)
}

// newDirs makes directories that may be read and written.
func newDirs(t *testing.T, n int) []roots.Dir {
	t.Helper()
	dirs := make([]roots.Dir, n)
	for i := range dirs {
		var err error
		if dirs[i], err = roots.Resolve(t.TempDir(), roots.ResolveOptions{Access: roots.ReadWrite}); err != nil {
			t.Fatal(err)
		}
	}
	return dirs
}

// FuzzStages holds the chain to its contract before a server that replies at once, twice, late, never, or asks in
// mid-call, and a client that answers well, badly or never: each request that the server answers is answered once, and
// none that the server never got is left open when its client goes.
func FuzzStages(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7})
	f.Add([]byte{0x10, 0x21, 0x32, 0x43, 0x54, 0x65, 0x76, 0x87, 0x98, 0xa9})
	dir, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	root, err := roots.Resolve(dir, roots.ResolveOptions{Access: roots.ReadWrite})
	if err != nil {
		f.Fatal(err)
	}
	inside := filepath.Join(dir, "f")
	if err := os.WriteFile(inside, nil, 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 64 {
			return
		}
		ctx, leave := context.WithCancel(t.Context())
		session := exchange.NewSession(ctx)
		session.SetClient(exchange.Client{Capabilities: []byte(`{"roots":{"listChanged":true}}`)})
		var late sync.WaitGroup
		server := exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
			if r.Msg.Kind() != wire.Request {
				return
			}
			ok := exchange.Result(r, []byte(`{"content":[]}`))
			switch wire.GetString(r.Msg.Params(), "arguments", "how") {
			case "twice":
				reply(ok)
				reply(ok)
			case "late":
				late.Go(func() { reply(ok) })
			case "never":
				context.AfterFunc(ctx, func() { reply(exchange.Cancelled) })
			case "asks":
				r.Caller.Ask(ctx, []exchange.Question{{Key: "k", Method: "roots/list"}}, func([]exchange.Answer) { reply(ok) })
			default:
				reply(ok)
			}
		})
		log, err := calllog.Create(t.TempDir(), calllog.Record{Server: "s"}, calllog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		g := guard.New(guard.Options{Server: "s", Configured: roots.NewSet(root), Log: log})
		h := g.Wrap(server)
		handle := func(line string, c exchange.Caller, reply func(exchange.Outcome)) {
			m, err := wire.Scan([]byte(line), wire.Strict)
			if err != nil {
				t.Fatal(err)
			}
			h.Handle(ctx, &exchange.Request{Msg: &m, Session: session, Caller: c}, reply)
		}
		handle(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}`, caller{}, func(exchange.Outcome) {})
		handle(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, nil)
		var mu sync.Mutex
		replies := make([]int, len(ops))
		for i, op := range ops {
			how := []string{"now", "twice", "late", "never", "asks"}[int(op&7)%5]
			c := []caller{{}, {roots: []byte(`{"roots":[]}`)}, {roots: []byte(`{"roots":[{"uri":"` + roots.FileURI(dir) + `"}]}`)}, {roots: []byte(`[]`)}}[op>>3&3]
			path := inside
			if op&0x20 != 0 {
				path = "/etc/passwd"
			}
			if op&0x40 != 0 {
				handle(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, nil, nil)
			}
			handle(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","arguments":{"path":%s,"how":%q}}}`, i, wire.Quote(path), how),
				c, func(exchange.Outcome) {
					mu.Lock()
					defer mu.Unlock()
					replies[i]++
				})
		}
		leave()
		late.Wait()
		deadline := time.Now().Add(mcptest.Patience)
		for {
			mu.Lock()
			open := -1
			for i, n := range replies {
				if n > 1 {
					t.Fatalf("request %d of %v was answered %d times", i, ops, n)
				}
				if n == 0 {
					open = i
				}
			}
			mu.Unlock()
			if open < 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("request %d of %v was never answered", open, ops)
			}
			time.Sleep(time.Millisecond)
		}
		log.Close(0, "")
	})
}

// A server of ours lists the roots, and tells of a change of them: both by what the request brings.
func TestRequestsBringTheRootsThatHold(t *testing.T) {
	dirs := newDirs(t, 2)
	got := map[string]roots.Set{}
	server := exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		got[r.Msg.Method()] = r.Roots
		if r.Msg.Kind() == wire.Request {
			reply(exchange.Result(r, []byte(`{}`)))
		}
	})
	g := guard.New(guard.Options{Server: "s", Configured: roots.NewSet(dirs...), Log: calllog.Discard()})
	h := g.WrapContained(server)
	session := exchange.NewSession(t.Context())
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"resources/list"}`,
	} {
		m, err := wire.Scan([]byte(line), wire.Strict)
		if err != nil {
			t.Fatal(err)
		}
		r := &exchange.Request{Msg: &m, Session: session}
		if m.Kind() == wire.Request {
			r.Caller = caller{}
		}
		h.Handle(t.Context(), r, func(exchange.Outcome) {})
	}
	if want := roots.NewSet(dirs...); !got["resources/list"].Equal(want) {
		t.Errorf("resources/list brings %v, want %v", got["resources/list"], want)
	}
	g.Configure(roots.NewSet(dirs[1]))
	if want := roots.NewSet(dirs[1]); !got["notifications/roots/list_changed"].Equal(want) {
		t.Errorf("the change brings %v, want %v", got["notifications/roots/list_changed"], want)
	}
}

// A handshake server behind stateless clients may ask for its roots while it is started again with others: there was no handshake
// of a client to begin anything of ours with.
func TestAQuestionDuringAStartAnewWithoutAHandshake(t *testing.T) {
	dirs := newDirs(t, 2)
	begun := make(chan struct{})
	g := guard.New(guard.Options{
		Server: "files", Configured: roots.NewSet(dirs[0]), ClientRoots: roots.Ignore, Held: true,
		Restart: func(func()) error { close(begun); return nil },
	})
	g.Starting()
	asks := exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		g.Configure(roots.NewSet(dirs...))
		<-begun
		r.Caller.Ask(ctx, []exchange.Question{{Method: "roots/list"}}, func(a []exchange.Answer) { reply(exchange.Result(r, a[0].Result)) })
	})
	r := &exchange.Request{
		Msg: wire.NewRequest([]byte("1"), "tools/list", []byte(`{"_meta":{}}`)), Era: exchange.Modern, Session: exchange.NewSession(t.Context()), Caller: caller{},
	}
	if got := string(exchange.Do(t.Context(), g.Wrap(asks), r).Msg.Result()); !strings.Contains(got, roots.FileURI(dirs[1].Path)) {
		t.Errorf("the server was told %s", got)
	}
}

// A list is as long as its client likes, and a record of the log is not.
func TestALongListIsLoggedInPart(t *testing.T) {
	dir := t.TempDir()
	log, err := calllog.Create(dir, calllog.Record{Server: "files"}, calllog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := guard.New(guard.Options{Server: "files", ClientRoots: roots.Accept, Log: log})
	long := `{"uri":"file:///` + strings.Repeat("a", 1<<20) + `"}`
	list := `{"roots":[` + long + strings.Repeat(`,{"uri":"file:///gone"}`, 3_000) + `]}`
	r := &exchange.Request{
		Msg: wire.NewRequest([]byte("1"), "tools/call", []byte(`{"name":"t","_meta":{"`+exchange.MetaCapabilities+`":{"roots":{}}}}`)),
		Era: exchange.Modern, Session: exchange.NewSession(t.Context()), Caller: caller{roots: []byte(list)},
	}
	exchange.Do(t.Context(), g.Wrap(exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		reply(exchange.Result(r, []byte(`{}`)))
	})), r)
	log.Close(0, "")
	for e, err := range calllog.ReadDir(dir, calllog.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == calllog.RootsAnswered {
			if len(e.Roots) != 1000 || len(e.Line) > 100_000 {
				t.Errorf("%d roots are in the log, in %d bytes", len(e.Roots), len(e.Line))
			}
			return
		}
	}
	t.Error("the answer is not in the log")
}

// A subscription on another machine is made again by what its paths are held to, as it was made.
func TestAgainOnAnotherMachine(t *testing.T) {
	g := guard.New(guard.Options{Server: "files", Remote: true, Paths: pathargs.Rules{Where: pathargs.Remote, Dirs: []string{"/srv/repo"}}})
	for uri, want := range map[string]bool{"file:///srv/repo/a": true, "file:///etc/passwd": false} {
		m := wire.NewRequest([]byte("1"), "resources/subscribe", fmt.Appendf(nil, `{"uri":%q}`, uri))
		if got := g.Again(m); got != want {
			t.Errorf("%s is made again: %v", uri, got)
		}
	}
}

// A session may end while one of its requests is answered, and another one be on its way.
func TestARequestOfASessionThatEnded(t *testing.T) {
	dir, err := roots.Resolve(t.TempDir(), roots.ResolveOptions{Access: roots.ReadWrite})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := exchange.NewSession(t.Context())
		server := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
			if r.Msg.Method() != "resources/read" {
				reply(exchange.Result(r, []byte(`{}`)))
				return
			}
			s.End(nil)
			time.Sleep(time.Millisecond) // of the bubble: all that the end brings about is done
			reply(exchange.Result(r, []byte(`{"contents":[{"uri":"file:///etc/passwd","text":"x"}]}`)))
		})
		h := guard.New(guard.Options{Server: "files", Configured: roots.NewSet(dir), Results: &results.Options{Actions: results.Defaults()}}).Wrap(server)
		request := func(id, method, params string) *exchange.Request {
			return &exchange.Request{Msg: wire.NewRequest([]byte(id), method, []byte(params)), Session: s, Caller: caller{}}
		}
		answered := 0
		h.Handle(t.Context(), request("1", "resources/read", `{"uri":"`+roots.FileURI(dir.Path)+`/x"}`), func(exchange.Outcome) {
			answered++
			h.Handle(t.Context(), request("2", "ping", `{}`), func(exchange.Outcome) { answered++ })
		})
		if synctest.Wait(); answered != 2 {
			t.Errorf("%d of 2 were answered", answered)
		}
	})
}

// What steers the guard is not changed by a server, by whichever path it goes there, and whether it is there yet.
func TestOwnFiles(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(top, "dotfiles/config/there"), 0o755), os.Symlink("dotfiles/config", filepath.Join(top, ".config")),
		os.WriteFile(filepath.Join(top, "dotfiles/config/there/own.toml"), nil, 0o644),
		os.Link(filepath.Join(top, "dotfiles/config/there/own.toml"), filepath.Join(top, "dotfiles/other.toml"))); err != nil {
		t.Fatal(err)
	}
	dir, err := roots.Resolve(filepath.Join(top, "dotfiles"), roots.ResolveOptions{Access: roots.ReadWrite})
	if err != nil {
		t.Fatal(err)
	}
	server := exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		reply(exchange.Result(r, []byte(`{"content":[{"type":"text","text":"done"}]}`)))
	})
	h := guard.New(guard.Options{Server: "files", Configured: roots.NewSet(dir),
		Own: []string{filepath.Join(top, ".config/there/own.toml"), filepath.Join(top, ".config/missing/sub/own.toml")}}).Wrap(server)
	session := exchange.NewSession(t.Context())
	for _, tt := range []struct {
		tool, path string
		refused    bool
	}{
		{"write_file", "config/there/own.toml", true}, {"read_file", "config/there/own.toml", false}, {"write_file", "config/there/another.toml", false},
		{"write_file", "other.toml", true}, {"delete_directory", "config/there", true}, {"create_directory", "config/there", false},
		{"write_file", "config/missing/sub/own.toml", true}, {"write_file", "config/missing/sub/another.toml", false}, {"delete_directory", "config/missing", true},
	} {
		params := fmt.Sprintf(`{"name":%q,"arguments":{"path":%s}}`, tt.tool, wire.Quote(filepath.Join(top, "dotfiles", tt.path)))
		r := &exchange.Request{Msg: wire.NewRequest([]byte("1"), "tools/call", []byte(params)), Session: session, Caller: caller{}}
		got := string(exchange.Do(t.Context(), h, r).Msg.Bytes())
		if refused := strings.Contains(got, "a file that decides what this server may do"); refused != tt.refused || refused == strings.Contains(got, "done") {
			t.Errorf("%s %s: %s", tt.tool, tt.path, got)
		}
	}
}

// hears is a client whose notifications are kept.
type hears struct {
	caller
	got *[]string
}

func (h hears) Notify(m *wire.Message) { *h.got = append(*h.got, wire.GetString(m.Params(), "uri")) }

// A change of what is followed is told by the roots that hold when it comes, also where nothing connects the requests of a client and so
// nothing of it hears that they are others.
func TestAChangeOutsideIsNotTold(t *testing.T) {
	dirs := newDirs(t, 2)
	uris := []string{roots.FileURI(filepath.Join(dirs[0].Path, "f.txt")), roots.FileURI(filepath.Join(dirs[1].Path, "f.txt"))}
	for name, session := range map[string]*exchange.Session{"without a session": nil, "of a session": exchange.NewSession(t.Context())} {
		t.Run(name, func(t *testing.T) {
			var client exchange.Caller
			g := guard.New(guard.Options{Server: "files", Configured: roots.NewSet(dirs...)})
			h := g.Wrap(exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, _ func(exchange.Outcome)) { client = r.Caller }))
			var got []string
			list, err := json.Marshal(uris)
			if err != nil {
				t.Fatal(err)
			}
			h.Handle(t.Context(), &exchange.Request{
				Msg: wire.NewRequest([]byte("1"), exchange.Listen, []byte(`{"notifications":{"resourceSubscriptions":`+string(list)+`},"_meta":{}}`)),
				Era: exchange.Modern, Session: session, Caller: hears{got: &got},
			}, func(o exchange.Outcome) { t.Errorf("it was answered %v", o.Msg) })
			tell := func() (told []string) {
				got = nil
				for _, uri := range uris {
					client.Notify(wire.NewNotification("notifications/resources/updated", append(wire.AppendQuote([]byte(`{"uri":`), uri), '}')))
				}
				return got
			}
			for _, tt := range []struct {
				set  roots.Set
				told []string
			}{{roots.NewSet(dirs...), uris}, {roots.NewSet(dirs[1]), uris[1:]}, {roots.NewSet(dirs...), uris}} {
				g.Configure(tt.set)
				if told := tell(); !slices.Equal(told, tt.told) {
					t.Errorf("with %v it was told of %q, want %q", tt.set, told, tt.told)
				}
			}
		})
	}
}

// A server that does not read what it is told of a change holds up neither what is in force for the other sessions, nor the change that
// comes next.
func TestAServerThatDoesNotReadHoldsUpNoChange(t *testing.T) {
	dirs := newDirs(t, 3)
	synctest.Test(t, func(t *testing.T) {
		stuck, holds := make(chan struct{}), 0
		g := guard.New(guard.Options{Server: "files", Configured: roots.NewSet(dirs...)})
		h := g.Wrap(exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
			if r.Msg.Method() == "notifications/roots/list_changed" {
				<-stuck
				return
			}
			holds = r.Roots.Len()
			echo(ctx, r, reply)
		}))
		sessions := []*exchange.Session{exchange.NewSession(t.Context()), exchange.NewSession(t.Context())}
		for _, s := range sessions {
			drive(t, t.Context(), h, s, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`)
			h.Handle(t.Context(), &exchange.Request{Msg: wire.NewNotification("notifications/initialized", nil), Session: s}, nil)
		}
		change := func(n int, change func()) {
			done, began := make(chan struct{}), time.Now()
			go func() {
				defer close(done)
				change()
			}()
			synctest.Wait()
			for i, s := range sessions {
				if drive(t, t.Context(), h, s, `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`); holds != n {
					t.Errorf("%d directories are in force in session %d, want %d", holds, i, n)
				}
			}
			<-done
			if took := time.Since(began); took > time.Second {
				t.Errorf("the next change waits for %v, with %d sessions", took, len(sessions))
			}
		}
		for n := len(dirs); n > 1; n-- {
			change(n, func() { g.Configure(roots.NewSet(dirs[:n]...)) })
		}
		if err := os.Remove(dirs[1].Path); err != nil {
			t.Fatal(err)
		}
		change(1, g.Look)
		close(stuck)
	})
}
