package guard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// asked is a guard whose policy asks for every tool but "look", before a server that counts what it runs.
type asked struct {
	t      *testing.T
	dir    string
	logDir string
	log    *calllog.Log
	desk   *approval.Desk
	grants *approval.Grants
	guard  *guard.Guard
	server exchange.Handler

	mu   sync.Mutex
	ran  []string // the arguments of what was run
	once bool     // the next call is given back by the server first, with a question of its own
	list bool     // and before that with one for roots
	end  []func()

	contained bool // the server is one of ours
}

// effects are what the tools of the server are believed to do.
var effects = map[string]guard.Effect{
	"write_file": {Effect: policy.Write, From: "the test"}, "delete": {Effect: policy.Delete}, "look": {Effect: policy.Read}, "*": {},
}

// writeSchema is what the server says of the arguments of write_file.
const writeSchema = `{"type":"object","required":["path","content"],"properties":{"path":{"type":"string"},"content":{"type":"string"}}}`

func newAsked(t *testing.T, remember policy.Remember, change func(*guard.Options)) *asked {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := &asked{t: t, dir: filepath.Join(dir, "w"), logDir: filepath.Join(dir, "log"), desk: approval.NewDesk(approval.DeskOptions{})}
	if err := os.Mkdir(a.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := roots.Resolve(a.dir, roots.ResolveOptions{Name: "w", Access: roots.ReadWrite})
	if err != nil {
		t.Fatal(err)
	}
	log, err := calllog.Create(a.logDir, calllog.Record{Server: "files"}, calllog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.grants = approval.NewGrants(approval.Store{Path: filepath.Join(dir, "grants.json"), Lock: filepath.Join(dir, "grants.lock")})
	a.log = log
	secret, err := policy.ParsePathGlob("**/.env")
	if err != nil {
		t.Fatal(err)
	}
	rules := policy.New(policy.Layers{Rules: []*policy.Rule{
		{At: "rules:1", Tool: "look", Verdict: policy.Allow},
		{At: "rules:2", Tool: "never", Verdict: policy.Deny, Reason: "it is never to be called"},
		{At: "rules:4", Tool: "write_file", Args: []policy.Arg{{Name: "path", Predicate: policy.Predicate{PathGlob: []policy.PathGlob{secret}}}}, Verdict: policy.Ask},
	}, Defaults: [][]*policy.Rule{{{At: "rules:3", Verdict: policy.Ask, Remember: remember}}}})
	var telling sync.Mutex
	over := false
	warn := func(text string) { // by whoever still asks, when the call has ended
		telling.Lock()
		defer telling.Unlock()
		if !over {
			t.Log(text)
		}
	}
	o := guard.Options{
		Server: "files", Configured: roots.NewSet(root), Log: log, Warn: warn,
		Policy:   guard.Policy{Rules: rules, Ask: policy.AskAlways, Operator: effects},
		Approval: guard.Approval{Desk: a.desk, Terminal: true, Grants: a.grants, Runs: "npm:files", Run: "run"},
	}
	if change != nil {
		change(&o)
	}
	a.guard = guard.New(o)
	a.server = exchange.HandlerFunc(a.handle)
	t.Cleanup(func() {
		for _, f := range a.end {
			f()
		}
		log.Close(0, "")
		telling.Lock()
		over = true
		telling.Unlock()
		reports, err := calllog.VerifyDir(a.logDir)
		if err != nil || len(reports) != 1 || reports[0].Damage != nil {
			t.Errorf("the log does not hold: %v %+v", err, reports)
		}
	})
	return a
}

func (a *asked) handle(_ context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	switch r.Msg.Method() {
	case "tools/list":
		reply(exchange.Result(r, []byte(`{"tools":[{"name":"write_file","inputSchema":`+writeSchema+`},{"name":"look"}]}`)))
	case "tools/call":
		a.mu.Lock()
		defer a.mu.Unlock()
		state := wire.GetString(r.Msg.Params(), "requestState")
		if a.list && state == "" {
			q := []exchange.Question{{Key: "list", Method: "roots/list"}}
			reply(exchange.Outcome{Msg: wire.NewResult(r.Msg.ID(), exchange.InputRequired(q, "roots-state"))})
			return
		}
		if a.once && state != "server-state" {
			q := []exchange.Question{{Key: "own", Method: "elicitation/create", Params: []byte(`{"message":"Which one?"}`)}}
			reply(exchange.Outcome{Msg: wire.NewResult(r.Msg.ID(), exchange.InputRequired(q, "server-state"))})
			return
		}
		args, _ := wire.Get(r.Msg.Params(), "arguments")
		a.ran = append(a.ran, string(args))
		reply(exchange.Result(r, []byte(`{"content":[{"type":"text","text":"done"}]}`)))
	default:
		if r.Msg.Kind() == wire.Request && r.Msg.Method() != exchange.Listen {
			reply(exchange.Result(r, []byte(`{"capabilities":{"tools":{}},"protocolVersion":"2025-11-25"}`)))
		}
	}
}

func (a *asked) runs() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.ran)
}

// client is a client of a on a stream of its own.
type client struct {
	t   *testing.T
	in  io.WriteCloser
	out <-chan string
	era exchange.Era
	// caps are what it declares.
	caps       string
	progress   bool // it wants to hear of progress
	id         int
	tool, args string // of the last call
}

// connect makes a connection, with its handshake in the handshake era. Caps are the client's capabilities.
func (a *asked) connect(era exchange.Era, caps string) *client {
	a.t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		wrap := a.guard.Wrap
		if a.contained {
			wrap = a.guard.WrapContained
		}
		transport.ServeStdio(a.t.Context(), inR, outW, wrap(a.server), transport.StdioOptions{})
		outW.Close()
	})
	lines := make(chan string, 100)
	wg.Go(func() {
		defer close(lines)
		for r := wire.NewReader(outR, 0); ; {
			line, err := r.Next()
			if err != nil {
				return
			}
			lines <- string(line)
		}
	})
	a.end = append(a.end, func() { inW.Close(); wg.Wait() })
	c := &client{t: a.t, in: inW, out: lines, era: era, caps: caps}
	if era == exchange.Legacy {
		c.say(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"tester","version":"1"},"capabilities":` + caps + `}}`)
		c.next()
		c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return c
}

func (c *client) say(line string) {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Error(err)
	}
}

func (c *client) next() string {
	c.t.Helper()
	select {
	case line, ok := <-c.out:
		if !ok {
			c.t.Fatal("the guard has closed the connection")
		}
		return line
	case <-time.After(mcptest.Patience):
		c.t.Fatal("nothing came")
	}
	return ""
}

// call calls a tool. Besides are members of its params.
func (c *client) call(tool, args string, besides ...string) {
	c.id++
	c.tool, c.args = tool, args
	meta := `"progressToken":"p"`
	if !c.progress {
		meta = ""
	}
	if c.era == exchange.Modern {
		meta = strings.TrimPrefix(meta+`,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"tester","version":"1"},"io.modelcontextprotocol/clientCapabilities":`+c.caps, ",")
	}
	c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{%s}%s}}`, c.id, tool, args, meta, strings.Join(besides, "")))
}

// done takes the next message, which is the answer to the last call, and says what it is.
func (c *client) done() string {
	c.t.Helper()
	line := c.next()
	var m struct {
		ID     int
		Error  *struct{ Message string }
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil || m.ID != c.id {
		c.t.Fatalf("no answer to %d came: %s", c.id, line)
	}
	switch {
	case m.Error != nil:
		return "error: " + m.Error.Message
	case len(m.Result.Content) != 1:
		c.t.Fatalf("no answer to %d came: %s", c.id, line)
	case m.Result.IsError:
		return "refused: " + m.Result.Content[0].Text
	}
	return m.Result.Content[0].Text
}

// elicited takes the next message, which asks, and returns its text, its choices, and what it is answered with.
func (c *client) elicited() (message string, enum []string, answer func(result string)) {
	c.t.Helper()
	line := c.next()
	type form struct {
		Message         string
		RequestedSchema struct {
			Properties map[string]struct {
				Enum    []string
				Default string
			}
		}
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params form
		Result struct {
			ResultType    string
			RequestState  string
			InputRequests map[string]struct {
				Method string
				Params form
			}
		}
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		c.t.Fatal(err)
	}
	f := m.Params
	if c.era == exchange.Modern {
		f = m.Result.InputRequests["rootbound.approve"].Params
	} else if m.Method != "elicitation/create" {
		c.t.Fatalf("no question came: %s", line)
	}
	p, ok := f.RequestedSchema.Properties["decision"]
	if !ok || len(p.Enum) == 0 || p.Default != "deny" || p.Enum[0] != "deny" {
		c.t.Fatalf("no question of ours came: %s", line)
	}
	return f.Message, p.Enum, func(result string) {
		if c.era == exchange.Legacy {
			c.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`)
			return
		}
		if result != "" {
			result = `"rootbound.approve":` + result
		}
		c.again(m.Result.RequestState, "{"+result+"}")
	}
}

// again is the retry of the last call.
func (c *client) again(state, responses string) {
	c.call(c.tool, c.args, fmt.Sprintf(`,"requestState":%q,"inputResponses":%s`, state, responses))
}

// waits returns the only question at the desk.
func (a *asked) waits() approval.Question {
	a.t.Helper()
	deadline := time.After(mcptest.Patience)
	for {
		s, changed := a.desk.State()
		if len(s.Questions) == 1 {
			return s.Questions[0]
		}
		select {
		case <-changed:
		case <-deadline:
			a.t.Fatalf("%d questions wait", len(s.Questions))
		}
	}
}

// answer answers it as somebody in a terminal.
func (a *asked) answer(r approval.Reply) approval.Question {
	a.t.Helper()
	q := a.waits()
	if err := a.desk.Answer(q.ID, r, approval.ByTerminal, "process 7"); err != nil {
		a.t.Fatal(err)
	}
	return q
}

// logged returns the records of some kinds.
func (a *asked) logged(kinds ...calllog.Kind) (list []calllog.Record) {
	a.t.Helper()
	for e, err := range calllog.ReadDir(a.logDir, calllog.Filter{}) {
		if err != nil {
			a.t.Fatal(err)
		}
		for _, k := range kinds {
			if e.Kind == k {
				list = append(list, e.Record)
			}
		}
	}
	return list
}

var eras = []exchange.Era{exchange.Legacy, exchange.Modern}

const canAsk = `{"elicitation":{}}`

var yes = approval.Reply{Choice: approval.Choice{Allow: true}}
