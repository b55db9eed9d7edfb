package guard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/legacy"
	"github.com/rootbound/rootbound/internal/modern"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/wire"
)

// Whatever is said and done in whatever order, nothing runs that nobody said yes to, and nothing twice for one yes: with
// answers by each road, time-outs, cancellations, retries, repeats, and guards that are killed and started again.
func TestNoOrderOfThingsRunsWhatNobodyAllowed(t *testing.T) {
	ran, asked := 0, 0
	for seed := range int64(300) {
		synctest.Test(t, func(t *testing.T) {
			d := disorder(t, seed)
			ran, asked = ran+d.total, asked+len(d.yes)
		})
		if t.Failed() {
			return
		}
	}
	if ran < 300 || asked < 300 {
		t.Errorf("this proves little: %d calls ran, after %d yeses", ran, asked)
	}
}

// FuzzApproval is the same for any seed.
func FuzzApproval(f *testing.F) {
	f.Add(int64(1_000))
	f.Fuzz(func(t *testing.T, seed int64) {
		synctest.Test(t, func(t *testing.T) { disorder(t, seed) })
	})
}

// disordered is a run of it. What is to be done is called by a number, which is in the arguments of its calls.
type disordered struct {
	t      *testing.T
	random *rand.Rand
	log    *calllog.Log
	rules  *policy.Policy
	grants approval.Store
	run    int

	mu    sync.Mutex
	yes   map[string]bool // calls that were allowed, by their id
	once  map[string]int  // how many of them, by number
	until map[string]int  // the run in which a number is allowed for the session
	ran   map[string]int
	total int

	saying sync.Mutex
	said   []string

	guard  *guard.Guard
	desk   *approval.Desk
	era    exchange.Era
	modern *modern.Client
	legacy *legacy.Client
	end    context.CancelFunc
	ids    int
	open   map[string]string // the number of each open call, by its id
	back   []*given          // what was given back to the client, or asked of it
}

// given is a question that a client has.
type given struct {
	run      int
	number   string
	call     string // by the id in the question; "" for a question of the server
	id       string // of the question, in the handshake era
	state    string // to come back with, else
	again    bool
	answered bool
}

func (d *disordered) say(format string, args ...any) {
	d.saying.Lock()
	defer d.saying.Unlock()
	d.said = append(d.said, fmt.Sprintf(format, args...))
}

func (d *disordered) story() string {
	d.saying.Lock()
	defer d.saying.Unlock()
	return strings.Join(d.said, "\n")
}

// handle is the server.
func (d *disordered) handle(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	if r.Msg.Kind() != wire.Request {
		return
	}
	if r.Msg.Method() != "tools/call" {
		if r.Msg.Method() == "initialize" {
			reply(exchange.Result(r, []byte(`{"protocolVersion":"2025-11-25"}`)))
		}
		return
	}
	number := wire.GetString(r.Msg.Params(), "arguments", "number")
	again, _ := wire.Get(r.Msg.Params(), "arguments", "again")
	if _, retry := wire.Get(r.Msg.Params(), "requestState"); string(again) == "true" && !retry && r.Era == exchange.Modern {
		q := []exchange.Question{{Key: "own", Method: "elicitation/create", Params: []byte(`{"message":"?"}`)}}
		reply(exchange.Outcome{Msg: wire.NewResult(r.Msg.ID(), exchange.InputRequired(q, "s"))})
		return
	}
	d.mu.Lock()
	d.total++
	d.say("ran %s", number)
	if d.until[number] != d.run {
		d.ran[number]++
	}
	if d.ran[number] > d.once[number] {
		d.t.Errorf("%s ran %d times, and was allowed %d times:\n%s", number, d.ran[number], d.once[number], d.story())
	}
	d.mu.Unlock()
	reply(exchange.Result(r, []byte(`{"content":[]}`)))
}

// Send, End, Refuse and Open make it the client's end of a stream.
func (d *disordered) Send(m *wire.Message)   { d.hear(m) }
func (d *disordered) Refuse(m *wire.Message) { d.hear(m) }
func (d *disordered) Open() bool             { return true }
func (d *disordered) End(m *wire.Message) {
	if m != nil {
		d.hear(m)
	}
}

var shown = regexp.MustCompile(`approve show ([0-9a-f]{6})`)

func (d *disordered) hear(m *wire.Message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := string(m.ID())
	switch {
	case m.Kind() == wire.Request: // in the handshake era
		if q := shown.FindSubmatch(m.Params()); q != nil {
			d.back = append(d.back, &given{run: d.run, number: d.numberOf(m.Params()), call: string(q[1]), id: id})
		}
	case m.Result() != nil && wire.GetString(m.Result(), "resultType") == "input_required":
		g := &given{run: d.run, number: d.open[id], state: wire.GetString(m.Result(), "requestState"), again: strings.HasSuffix(d.open[id], "!")}
		if q := shown.FindSubmatch(m.Result()); q != nil {
			g.call = string(q[1])
		}
		d.back = append(d.back, g)
	}
	if m.Kind() != wire.Request {
		delete(d.open, id)
	}
}

var numbered = regexp.MustCompile(`number\\*":\\*"(n[0-9]!?)`)

func (d *disordered) numberOf(text []byte) string {
	if m := numbered.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	d.t.Errorf("no number is in %s", text)
	return ""
}

func (d *disordered) start() {
	d.mu.Lock()
	d.run++
	d.open = map[string]string{}
	d.mu.Unlock()
	ctx, end := context.WithCancel(d.t.Context())
	d.end = end
	d.desk = approval.NewDesk(approval.DeskOptions{Wait: time.Minute})
	o := guard.Options{
		Server: "s", Log: d.log, Policy: guard.Policy{Rules: d.rules, Ask: policy.AskAlways},
		Approval: guard.Approval{Desk: d.desk, Terminal: true, Grants: approval.NewGrants(d.grants), Runs: "r", Run: fmt.Sprint("run", d.run)},
	}
	if d.random.Intn(2) == 0 {
		o.Approval.Pending = time.Duration(1+d.random.Intn(40)) * time.Second
	}
	d.guard = guard.New(o)
	d.era = exchange.Era(d.random.Intn(2))
	h := d.guard.Wrap(exchange.HandlerFunc(d.handle))
	session := exchange.NewSession(ctx)
	caps := `{}`
	if d.random.Intn(2) > 0 {
		caps = canAsk
	}
	if d.era == exchange.Modern {
		d.modern = modern.NewClient(h, session, modern.Options{})
	} else {
		d.legacy = legacy.NewClient(d, h, session, legacy.Options{})
		d.receive(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + caps + `,"clientInfo":{"name":"c","version":"1"}}}`)
	}
	d.say("a guard starts, %v %s", d.era, caps)
}

func (d *disordered) receive(line string) {
	m, err := wire.Scan([]byte(line), wire.Strict)
	if err != nil {
		d.t.Fatal(err)
	}
	if d.era == exchange.Modern {
		d.modern.Receive(&m, d)
	} else {
		d.legacy.Receive(&m, d)
	}
}

func (d *disordered) call(number string, besides string) {
	d.ids++
	id := fmt.Sprint(d.ids)
	again := strings.HasSuffix(number, "!")
	meta := ""
	if d.era == exchange.Modern {
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol/clientCapabilities":` + canAsk + `}`
	}
	d.mu.Lock()
	d.open[id] = number
	d.mu.Unlock()
	d.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"t","arguments":{"number":%q,"again":%v}%s%s}}`, id, number, again, meta, besides))
}

// allowed notes a yes to a call.
func (d *disordered) allowed(number, call string, session bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.yes[call] {
		d.yes[call] = true
		d.once[number]++
	}
	if session {
		d.until[number] = d.run
	}
}

// answer answers a question that the client has, or had.
func (d *disordered) answer(g *given) {
	results := []string{`{"action":"accept","content":{"decision":"allow once"}}`, `{"action":"accept","content":{"decision":"allow once"}}`,
		`{"action":"accept","content":{"decision":"allow once"}}`, `{"action":"accept","content":{"decision":"deny"}}`, `{"action":"accept"}`,
		`{"action":"decline"}`, `{"action":"cancel"}`, `{"action":"accept","content":{"decision":"allow everything"}}`, `{}`}
	i := d.random.Intn(len(results))
	live := g.run == d.run && !g.answered
	d.say("the client answers %q (call %s, live %v) with %s", g.number, g.call, live, results[i])
	if live && g.call != "" && i < 3 {
		d.allowed(g.number, g.call, false)
	}
	g.answered = true
	switch {
	case g.id != "" && d.era == exchange.Legacy:
		d.receive(`{"jsonrpc":"2.0","id":` + g.id + `,"result":` + results[i] + `}`)
	case g.state != "" && d.era == exchange.Modern:
		responses := `{"rootbound.approve":` + results[i] + `,"own":{"action":"accept"}}`
		if d.random.Intn(6) == 0 {
			responses = `{}` // it forgets to answer
			g.answered = false
		}
		d.call(g.number, fmt.Sprintf(`,"requestState":%q,"inputResponses":%s`, g.state, responses))
	}
}

func disorder(t *testing.T, seed int64) *disordered {
	dir := t.TempDir()
	d := &disordered{
		t: t, random: rand.New(rand.NewSource(seed)), yes: map[string]bool{}, once: map[string]int{}, until: map[string]int{}, ran: map[string]int{},
		grants: approval.Store{Path: filepath.Join(dir, "grants.json"), Lock: filepath.Join(dir, "grants.lock")},
		rules:  policy.New(policy.Layers{Rules: []*policy.Rule{{At: "r", Verdict: policy.Ask, Remember: policy.SameCall}}}),
	}
	var err error
	if d.log, err = calllog.Create(filepath.Join(dir, "log"), calllog.Record{Server: "s"}, calllog.Options{}); err != nil {
		t.Fatal(err)
	}
	defer d.log.Close(0, "")
	d.start()
	for range 60 {
		if d.random.Intn(3) > 0 {
			synctest.Wait() // else things overlap
		}
		switch op := d.random.Intn(20); {
		case op < 7:
			number := fmt.Sprint("n", d.random.Intn(3))
			if d.random.Intn(5) == 0 {
				number += "!"
			}
			d.say("call %s", number)
			d.call(number, "")
		case op < 12:
			d.mu.Lock()
			n := len(d.back)
			d.mu.Unlock()
			if n > 0 {
				d.mu.Lock()
				g := d.back[n-1-d.random.Intn(min(n, 4))]
				d.mu.Unlock()
				d.answer(g)
			}
		case op < 16:
			s, _ := d.desk.State()
			if len(s.Questions) == 0 {
				break
			}
			q := s.Questions[d.random.Intn(len(s.Questions))]
			c := q.Choices[d.random.Intn(len(q.Choices))]
			if c.Session && d.random.Intn(8) > 0 {
				c = q.Choices[1] // else little is left to be asked
			}
			var args struct{ Number string }
			if err := json.Unmarshal(q.Args, &args); err != nil {
				t.Fatal(err)
			}
			if c.Allow { // before it is said, since what it allows may run at once
				d.allowed(args.Number, q.ID, c.Session)
			}
			err := d.desk.Answer(q.ID, approval.Reply{Choice: c}, approval.ByTerminal, "somebody")
			d.say("the terminal answers %s (call %s) with %s: %v", args.Number, q.ID, c.Word(), err)
		case op == 16:
			d.mu.Lock()
			var id string
			for id = range d.open {
				break
			}
			d.mu.Unlock()
			if id != "" {
				d.say("cancel %s", id)
				d.receive(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
			}
		case op < 19:
			for_ := time.Duration(d.random.Intn(50)) * time.Second
			d.say("wait %v", for_)
			time.Sleep(for_)
		default:
			d.end()
			synctest.Wait() // it is gone
			d.start()
		}
	}
	synctest.Wait()
	d.end()
	synctest.Wait()
	return d
}
