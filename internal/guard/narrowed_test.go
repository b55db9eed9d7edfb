package guard_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/consent"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/results"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// slow is a client that says which roots it has after something else was done.
type slow struct {
	caller
	before func()
}

func (c slow) Ask(ctx context.Context, qs []exchange.Question, answer func([]exchange.Answer)) {
	c.before()
	c.caller.Ask(ctx, qs, answer)
}

// What is taken away while a request is open is away for all that comes after, also where nothing connects the requests of a client and so
// nothing of it hears of the change.
func TestNarrowedWhileARequestIsOpen(t *testing.T) {
	dirs := newDirs(t, 2)
	gone := dirs[1]
	list := `{"roots":[{"uri":` + string(wire.Quote(roots.FileURI(dirs[0].Path))) + `},{"uri":` + string(wire.Quote(roots.FileURI(gone.Path))) + `}]}`
	inGone := string(wire.Quote(filepath.Join(gone.Path, "f")))
	link := string(wire.Quote(roots.FileURI(filepath.Join(gone.Path, "f"))))
	for _, tt := range []struct {
		name    string
		accept  bool // the directories are the client's, and consented to
		path    bool // the call names what is in the one that goes
		when    string
		refused bool
	}{
		{"before, by the consents", true, true, "before", true},
		{"the client is asked for its roots", false, true, "client", true},
		{"the client is asked for its roots, by the consents", true, true, "client", true},
		{"it is held, because calls are paused", false, true, "paused", true},
		{"it is held, because calls are paused, by the consents", true, true, "paused", true},
		{"the server works, and asks for roots", false, true, "server", true},
		{"the server works, and asks for roots, by the consents", true, true, "server", true},
		{"the server works, and asks for roots that no path is about", false, false, "server", false},
		{"the server works, and asks for roots that no path is about, by the consents", true, false, "server", false},
		{"the server answers", false, true, "answer", false},
		{"the server answers, by the consents", true, true, "answer", false},
	} {
		for _, sessions := range []bool{false, true} {
			name := tt.name + ", without a session"
			var session *exchange.Session
			if sessions {
				name, session = tt.name+", of a session", exchange.NewSession(t.Context())
			}
			t.Run(name, func(t *testing.T) {
				file := consent.File(filepath.Join(t.TempDir(), "consents.jsonl"))
				for _, d := range dirs {
					if err := file.Allow(server, d.Path); err != nil {
						t.Fatal(err)
					}
				}
				desk := approval.NewDesk(approval.DeskOptions{})
				o := guard.Options{
					Server: server.Name, Results: &results.Options{}, Consent: file.Watch(server), ClientRoots: roots.Accept,
					Approval: guard.Approval{Desk: desk},
				}
				if !tt.accept {
					o.Configured = roots.NewSet(dirs...)
				}
				g := guard.New(o)
				narrow := func() {
					if !tt.accept {
						g.Configure(roots.NewSet(dirs[0]))
						return
					}
					if err := file.Forget(server, gone.Path); err != nil {
						t.Error(err)
					}
					if tt.when != "before" {
						g.Look()
					}
				}
				var told string
				tries := 0
				h := g.Wrap(exchange.HandlerFunc(func(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
					if r.Msg.Kind() != wire.Request {
						return
					}
					tries++
					switch {
					case tt.when == "answer":
						narrow()
						reply(exchange.Result(r, []byte(`{"resultType":"complete","content":[{"type":"resource_link","name":"f","uri":`+link+`}]}`)))
					case tt.when == "server" && tries == 1:
						narrow()
						reply(exchange.Result(r, []byte(`{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}}}`)))
					default:
						if v, ok := wire.Get(r.Msg.Params(), "inputResponses", "k"); ok {
							told = string(v)
						}
						reply(exchange.Result(r, []byte(`{"resultType":"complete","content":[]}`)))
					}
				}))
				client := slow{caller{roots: []byte(list)}, func() {
					if tt.when == "client" {
						narrow()
					}
				}}
				arguments := `{}`
				if tt.path {
					arguments = `{"path":` + inGone + `}`
				}
				call := &exchange.Request{
					Msg: wire.NewRequest([]byte("1"), "tools/call", []byte(`{"name":"t","arguments":`+arguments+`,"_meta":{"`+exchange.MetaVersion+`":"2026-07-28","`+
						exchange.MetaCapabilities+`":{"roots":{}}}}`)),
					Era: exchange.Modern, Session: session, Caller: client,
				}
				switch tt.when {
				case "before":
					narrow()
				case "paused":
					desk.Pause(true)
				}
				answered := make(chan exchange.Outcome, 1)
				h.Handle(t.Context(), call, func(o exchange.Outcome) { answered <- o })
				if tt.when == "paused" {
					for state, changed := desk.State(); len(state.Questions) == 0; state, changed = desk.State() {
						<-changed
					}
					narrow()
					desk.Pause(false)
				}
				got := string((<-answered).Msg.Bytes())
				if refused := strings.Contains(got, "Refused by Rootbound"); refused != tt.refused {
					t.Errorf("the model reads %s", got)
				}
				if strings.Contains(got, gone.Path) || strings.Contains(told, gone.Path) {
					t.Errorf("the client reads %s; the server was told %s", got, told)
				}
			})
		}
	}
}
