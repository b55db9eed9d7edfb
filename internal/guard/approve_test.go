package guard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	o := guard.Options{
		Server: "files", Configured: roots.NewSet(root), Log: log, Warn: func(text string) { t.Log(text) },
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
		c.again(m.Result.RequestState, `{"rootbound.approve":`+result+`}`)
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

// What a client says for its person becomes a yes only where it is one, and the log tells which no it was.
func TestAClientIsAsked(t *testing.T) {
	for _, era := range eras {
		for _, tt := range []struct {
			result string
			ran    int
			code   string // of the answer in the log
			tell   string // to the model
		}{
			{`{"action":"accept","content":{"decision":"allow once"}}`, 1, "client", "done"},
			{`{"action":"accept","content":{"decision":"deny"}}`, 0, "client", "the user said no"},
			{`{"action":"accept","content":{}}`, 0, "client", "the user said no"},
			{`{"action":"accept"}`, 0, "client", "the user said no"},
			{`{"action":"accept","content":{"decision":"allow"}}`, 0, "client", "the user said no"},
			{`{"action":"accept","content":{"decision":true}}`, 0, "client", "the user said no"},
			{`{"action":"accept","content":{"decision":["allow once"]}}`, 0, "client", "the user said no"},
			{`{"action":"decline","content":{"decision":"allow once"}}`, 0, "client-declined", "the user said no"},
			{`{"action":"cancel"}`, 0, "client-dismissed", "closed the question"},
		} {
			a := newAsked(t, policy.ForTool, nil)
			c := a.connect(era, canAsk)
			c.call("write_file", `{"path":"`+a.dir+`/new.txt","content":"one\ntwo\u202e\n"}`)
			message, enum, answer := c.elicited()
			first, _, _ := strings.Cut(message, "\n")
			if want := `files: "write_file", which writes: ` + a.dir + `/new.txt (new, in root w)`; first != want {
				t.Errorf("%v: the question begins %q, want %q", era, first, want)
			}
			for _, want := range []string{"+one", "+two⟨U+202E⟩", `"content" (`, "rules:3", "where nothing is", "tester", "digest: "} {
				if !strings.Contains(message, want) {
					t.Errorf("%v: there is no %q in %s", era, want, message)
				}
			}
			if want := []string{"deny", "allow once", "allow this session", "allow under " + a.dir}; fmt.Sprint(enum) != fmt.Sprint(want) {
				t.Errorf("%v: the choices are %q, want %q", era, enum, want)
			}
			answer(tt.result)
			if got := c.done(); !strings.Contains(got, tt.tell) {
				t.Errorf("%v: to %s the model reads %q", era, tt.result, got)
			}
			if got := a.runs(); got != tt.ran {
				t.Errorf("%v: after %s it ran %d times", era, tt.result, got)
			}
			records := a.logged(calllog.Asked, calllog.Answered)
			if len(records) > 0 && strings.Contains(fmt.Sprint(records), "one") {
				t.Errorf("%v: the log has the content: %+v", era, records)
			}
			if len(records) != 2 || records[0].Kind != calllog.Asked || records[1].Code != tt.code || records[1].From != calllog.Client || records[0].Ask != records[1].Ask {
				t.Errorf("%v: after %s the log has %+v", era, tt.result, records)
			}
		}
	}
}

// A person in a terminal may be the first to answer. A client that was asked too has its question withdrawn; a stateless one,
// which cannot be told, finds it done when it comes back, and not before.
func TestTheTerminalIsFirst(t *testing.T) {
	a := newAsked(t, policy.Never, nil)
	c := a.connect(exchange.Legacy, canAsk)
	c.call("write_file", `{"path":"`+a.dir+`/f"}`)
	_, enum, _ := c.elicited()
	if fmt.Sprint(enum) != "[deny allow once]" {
		t.Errorf("the choices are %q", enum)
	}
	a.answer(yes)
	if line := c.next(); !strings.Contains(line, "notifications/cancelled") {
		t.Errorf("the client hears %s", line)
	}
	if got := c.done(); got != "done" || a.runs() != 1 {
		t.Errorf("%q, and it ran %d times", got, a.runs())
	}
	if r := a.logged(calllog.Answered); r[0].Code != "terminal" || r[0].From != calllog.Person || !strings.Contains(r[0].Reason, "process 7") {
		t.Errorf("the log has %+v", r)
	}

	for result, want := range map[string]string{
		`{"action":"cancel"}`: "done",
		`{"action":"accept","content":{"decision":"allow once"}}`: "done",
		`{"action":"decline"}`:                              "said no",
		`{"action":"accept","content":{"decision":"deny"}}`: "said no",
	} {
		a := newAsked(t, policy.Never, nil)
		c := a.connect(exchange.Modern, canAsk)
		c.call("write_file", `{"path":"`+a.dir+`/f"}`)
		_, _, answer := c.elicited()
		a.answer(yes)
		if a.runs() != 0 {
			t.Error("it ran while the client had it back")
		}
		answer(result)
		if got := c.done(); !strings.Contains(got, want) || a.runs() != map[bool]int{true: 1}[want == "done"] {
			t.Errorf("after a yes in the terminal and %s: %q, and it ran %d times", result, got, a.runs())
		}
	}

	a = newAsked(t, policy.Never, nil)
	c = a.connect(exchange.Modern, canAsk)
	c.call("write_file", `{"path":"`+a.dir+`/f"}`)
	_, _, answer := c.elicited()
	a.answer(approval.Reply{Note: "not in this\x1b[2J repository"})
	answer(`{"action":"accept","content":{"decision":"allow once"}}`)
	if got := c.done(); !strings.Contains(got, `the user said no, and says: not in this⟨U+001B⟩[2J repository`) || a.runs() != 0 {
		t.Errorf("after a no in the terminal: %q, and it ran %d times", got, a.runs())
	}
}

func TestAClientThatCannotAskIsAnsweredInATerminal(t *testing.T) {
	for _, caps := range []string{`{}`, `{"elicitation":{"url":{}}}`} {
		a := newAsked(t, policy.ForTool, nil)
		c := a.connect(exchange.Legacy, caps)
		c.progress = true
		c.call("fetch", `{"url":"https://Example.com:8443/x","n":1}`)
		if line := c.next(); !strings.Contains(line, `"progressToken":"p","progress":0.0`) {
			t.Errorf("the client hears %s", line)
		}
		q := a.waits()
		if want := `files: "fetch", which may do anything, also over the network: host example.com:8443`; q.Head != want {
			t.Errorf("the question is %q, want %q", q.Head, want)
		}
		if got := q.Choices[3].Word(); got != "allow host example.com:8443" {
			t.Errorf("the last choice is %q", got)
		}
		a.answer(yes)
		if got := c.done(); got != "done" {
			t.Errorf("got %q", got)
		}
	}
}

func TestNobodyIsThere(t *testing.T) {
	a := newAsked(t, policy.Never, func(o *guard.Options) { o.Approval.Terminal, o.Approval.Nobody = false, "run `rootbound approve`" })
	c := a.connect(exchange.Legacy, `{}`)
	c.call("write_file", `{"path":"`+a.dir+`/f"}`)
	if got := c.done(); !strings.Contains(got, "refused: ") || !strings.Contains(got, "nobody can be asked here") || strings.Contains(got, "rule") {
		t.Errorf("the model reads %q", got)
	}
	if r := a.logged(calllog.Call)[1:]; len(r) != 1 || r[0].Code != "nobody-asked" || !strings.Contains(r[0].Fix, "rootbound approve") || !strings.Contains(r[0].Fix, "[[rule]]") && !strings.Contains(r[0].Fix, "rules:3") {
		t.Errorf("the log has %+v", r)
	}
	c = a.connect(exchange.Legacy, canAsk)
	c.call("write_file", `{"path":"`+a.dir+`/f"}`)
	line := c.next()
	id := line[strings.Index(line, `"id":`)+5:]
	id = id[:strings.IndexAny(id, ",}")]
	c.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"no"}}`)
	if got := c.done(); !strings.Contains(got, "closed the question") || a.runs() != 0 {
		t.Errorf("the model reads %q", got)
	}
	for mode, want := range map[policy.Mode]string{policy.AskNobody: "nobody is asked here", policy.AskClient: "done"} {
		a := newAsked(t, policy.Never, func(o *guard.Options) { o.Policy.Ask = mode })
		c := a.connect(exchange.Legacy, canAsk)
		c.call("write_file", `{"path":"`+a.dir+`/f"}`)
		if got := c.done(); !strings.Contains(got, want) {
			t.Errorf("with %v the model reads %q", mode, got)
		}
	}
}

func TestARuleRefuses(t *testing.T) {
	a := newAsked(t, policy.Never, nil)
	c := a.connect(exchange.Legacy, `{}`)
	c.call("never", `{}`)
	if got := c.done(); !strings.Contains(got, "it is never to be called") || a.runs() != 0 {
		t.Errorf("the model reads %q", got)
	}
	c.call("look", `{}`)
	if got := c.done(); got != "done" || len(a.logged(calllog.Asked)) != 0 {
		t.Errorf("the model reads %q", got)
	}
}

// A yes that is good for more is good for just that.
func TestGrants(t *testing.T) {
	for _, tt := range []struct {
		remember policy.Remember
		choice   approval.Choice
		then     map[string]bool // whether a call is asked about afterwards, by tool and arguments
	}{
		{policy.ForTool, approval.Choice{Allow: true}, map[string]bool{`write_file {"path":"W/a","content":"x"}`: true}},
		{policy.ForTool, approval.Choice{Allow: true, Session: true}, map[string]bool{
			`write_file {"path":"W/sub/b"}`: false, `other {"path":"W/a","content":"x"}`: true, `write_file {}`: false,
		}},
		{policy.InRoot, approval.Choice{Allow: true, Session: true}, map[string]bool{
			`write_file {"path":"W/sub/b"}`: false, `other {"path":"W/a"}`: false, `write_file {}`: true, `delete {"path":"W/a"}`: true,
		}},
		{policy.SameCall, approval.Choice{Allow: true, Session: true}, map[string]bool{
			`write_file {"content":"x","path":"W/a"}`: false, `write_file {"path":"W/a","content":"y"}`: true,
		}},
		{policy.ForTool, approval.Choice{Allow: true, Under: "W/sub"}, map[string]bool{
			`write_file {"path":"W/sub/b"}`: false, `write_file {"path":"W/b"}`: true, `write_file {"path":"W/sub/../b"}`: true,
			`other {"path":"W/sub/b"}`: true, `write_file {"path":"W/sub/b","to":"https://example.com"}`: true,
			`write_file {"path":"W/sub/.env"}`: true,
		}},
		{policy.InRoot, approval.Choice{Allow: true, Under: "W/sub"}, map[string]bool{`write_file {"path":"W/sub/b"}`: false, `write_file {"path":"W/b"}`: true}},
		{policy.ForTool, approval.Choice{Allow: true, For: time.Hour}, map[string]bool{
			`write_file {"path":"W/b"}`: false, `write_file {"path":"W/.env"}`: true, `other {"path":"W/a"}`: true,
		}},
		{policy.InRoot, approval.Choice{Allow: true, For: time.Hour}, map[string]bool{`write_file {"path":"W/b"}`: false, `write_file {}`: true}},
		{policy.SameCall, approval.Choice{Allow: true, For: time.Hour}, map[string]bool{
			`write_file {"path":"W/a","content":"x"}`: false, `write_file {"path":"W/a","content":"y"}`: true,
		}},
	} {
		for then, asks := range tt.then {
			a := newAsked(t, tt.remember, nil)
			if err := os.Mkdir(filepath.Join(a.dir, "sub"), 0o700); err != nil {
				t.Fatal(err)
			}
			c := a.connect(exchange.Legacy, `{}`)
			path, choice := "W/a", tt.choice
			if tt.choice.Under != "" {
				path = "W/sub/a"
				choice.Under = strings.ReplaceAll(choice.Under, "W", a.dir)
			}
			c.call("write_file", strings.ReplaceAll(`{"path":"`+path+`","content":"x"}`, "W", a.dir))
			a.answer(approval.Reply{Choice: choice})
			if got := c.done(); got != "done" {
				t.Fatalf("%v, %+v: got %q", tt.remember, choice, got)
			}
			tool, args, _ := strings.Cut(then, " ")
			c.call(tool, strings.ReplaceAll(args, "W/", a.dir+"/"))
			if asks {
				a.answer(approval.Reply{})
			}
			if got := c.done(); strings.HasPrefix(got, "refused") != asks {
				t.Errorf("%v, %+v, then %s: %q", tt.remember, tt.choice, then, got)
			}
			if r := a.logged(calllog.Answered); !asks && (len(r) != 2 || r[1].Code != "grant") {
				t.Errorf("%v, %+v, then %s: the log has %+v", tt.remember, tt.choice, then, r)
			}
			if tt.choice.Session { // another session is asked
				other := a.connect(exchange.Legacy, `{}`)
				other.call(tool, strings.ReplaceAll(args, "W/", a.dir+"/"))
				a.answer(approval.Reply{})
				if got := other.done(); !strings.HasPrefix(got, "refused") {
					t.Errorf("%v, %+v, then %s in another session: %q", tt.remember, tt.choice, then, got)
				}
			}
			if err := a.grants.Store().End("run"); err != nil {
				t.Error(err)
			}
			if left, err := a.grants.Store().Grants(); err != nil || (len(left) > 0) != (tt.choice.Under != "" || tt.choice.For > 0) {
				t.Errorf("%v, %+v: at the end there are %v, %v", tt.remember, tt.choice, left, err)
			}
		}
	}
}

// A yes for one host is for no call that may lead elsewhere as well, however that is written.
func TestAGrantForAHost(t *testing.T) {
	for args, asks := range map[string]bool{
		`{"url":"https://good.example/y","note":"a word"}`:                         false,
		`{"url":"https://good.example","more":["https://good.example/z"]}`:         false,
		`{"url":"https://evil.example","note":"https://good.example"}`:             true,
		`{"url":"https://good.example\\@evil.example","n":"https://good.example"}`: true,
		`{"url":"https:evil.example","n":"https://good.example"}`:                  true,
		`{"url":"https:///evil.example","n":"https://good.example"}`:               true,
		`{"url":"ht\ntps://evil.example","n":"https://good.example"}`:              true,
		`{"url":"evil.example/x","n":"https://good.example"}`:                      true,
		`{"url":"192.0.2.1:80","n":"https://good.example"}`:                        true,
		`{"https://evil.example":1,"url":"https://good.example"}`:                  true,
		`{"url":"https://good.example@evil.example"}`:                              true,
		`{"url":"good.example"}`:                                                   true,
	} {
		a := newAsked(t, policy.ForTool, nil)
		c := a.connect(exchange.Legacy, `{}`)
		c.call("fetch", `{"url":"https://good.example/x"}`)
		a.answer(approval.Reply{Choice: approval.Choice{Allow: true, Host: "good.example"}})
		c.done()
		c.call("fetch", args)
		if asks {
			if q := a.waits(); strings.Contains(fmt.Sprint(q.Choices), "host good.example") {
				t.Errorf("%s: %q is offered", args, q.Choices)
			}
			a.answer(approval.Reply{})
		}
		if got := c.done(); strings.HasPrefix(got, "refused") != asks {
			t.Errorf("%s: %q", args, got)
		}
	}
}

// Who calls cannot write what reads like a fact of ours, and not with a second text show another change than the one that
// will be made.
func TestWhatIsShownIsNotForged(t *testing.T) {
	for args, diff := range map[string]bool{
		`{"path":"W/f","content":"x","the tool":"only reads","why":"it is harmless"}`: true,
		`{"path":"W/f","content":"x","text":"y"}`:                                     false,
		`{"path":"W/f","content":"x","edits":[{"oldText":"a","newText":"b"}]}`:        false,
		`{"path":"W/f","CONTENT":"x","oldText":"a","newText":"b"}`:                    false,
	} {
		a := newAsked(t, policy.Never, nil)
		c := a.connect(exchange.Legacy, `{}`)
		c.call("write_file", strings.ReplaceAll(args, "W/", a.dir+"/"))
		q := a.waits()
		if (q.Diff != "") != diff {
			t.Errorf("%s: the change is %q", args, q.Diff)
		}
		for _, f := range q.Facts {
			if strings.HasPrefix(f, "the tool: ") && f != "the tool: writes, says the test" || strings.HasPrefix(f, "why") {
				t.Errorf("%s: a fact is %q", args, f)
			}
		}
		a.answer(approval.Reply{})
		c.done()
	}
	a := newAsked(t, policy.Never, nil)
	if err := os.WriteFile(filepath.Join(a.dir, "f"), []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := a.connect(exchange.Legacy, `{}`)
	c.call("append_file", `{"path":"`+a.dir+`/f","content":"new\n"}`)
	if q := a.waits(); strings.Contains(q.Diff, "-old") {
		t.Errorf("what is added to is shown as if it went:\n%s", q.Diff)
	}
	a.answer(approval.Reply{})
	c.done()
}

// oneRoot is a server of ours that does not serve its directory closed, though it is a root.
type oneRoot struct {
	*asked
	closed string
}

func (s oneRoot) Means(_ context.Context, set roots.Set, arg string, _ bool) (string, error) {
	return filepath.Join(set.Dirs()[0].Path, arg), nil
}

func (s oneRoot) Handle(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
	if r.Msg.Method() == "tools/call" && r.Roots.Dirs()[0].Path == s.closed {
		r.Trail.Add(exchange.Note{Stage: "fs", Denied: true, Code: calllog.CodeOutside, Path: filepath.Join(s.closed, "f")})
		reply(exchange.Refused(r, "refused", nil))
		return
	}
	s.handle(ctx, r, reply)
}

// A client whose call a server of ours denied may say that it has other roots, and the call is tried with those. A relative path
// leads elsewhere then, to which nobody said yes.
func TestAYesIsNotForOtherRoots(t *testing.T) {
	var dirs []roots.Dir
	a := newAsked(t, policy.Never, func(o *guard.Options) {
		for range 2 {
			d, err := roots.Resolve(t.TempDir(), roots.ResolveOptions{Access: roots.ReadWrite})
			if err != nil {
				t.Fatal(err)
			}
			dirs = append(dirs, d)
		}
		o.Configured = roots.NewSet(dirs...)
	})
	a.contained, a.server = true, oneRoot{a, dirs[0].Path}
	c := a.connect(exchange.Legacy, `{"roots":{}}`)
	var list atomic.Value
	list.Store(dirs[0].Path)
	// answered gives the client's list when it is asked for, and returns what else comes.
	answered := func() string {
		for {
			line := c.next()
			m, err := wire.Scan([]byte(line), wire.Strict)
			if err != nil || m.Method() != "roots/list" {
				return line
			}
			c.say(`{"jsonrpc":"2.0","id":` + string(m.ID()) + `,"result":{"roots":[{"uri":"file://` + list.Load().(string) + `"}]}}`)
		}
	}
	c.call("write_file", `{"path":"f"}`)
	got := make(chan string)
	go func() { got <- answered() }()
	q := a.waits()
	if !strings.Contains(q.Head, dirs[0].Path+"/f") {
		t.Errorf("asked is %q", q.Head)
	}
	list.Store(dirs[1].Path)
	a.answer(yes)
	if line := <-got; !strings.Contains(line, "refused") || a.runs() != 0 {
		t.Errorf("the client gets %s, and it ran %d times", line, a.runs())
	}
}

func TestADeleteIsNeverRemembered(t *testing.T) {
	a := newAsked(t, policy.InRoot, nil)
	c := a.connect(exchange.Legacy, `{}`)
	c.call("delete", `{"path":"`+a.dir+`/a"}`)
	q := a.waits()
	if len(q.Choices) != 2 || q.Remember {
		t.Errorf("the choices are %v", q.Choices)
	}
	if err := a.desk.Answer(q.ID, approval.Reply{Choice: approval.Choice{Allow: true, Session: true}}, approval.ByTerminal, ""); err == nil {
		t.Error("it is remembered")
	}
	a.answer(approval.Reply{})
	c.done()
}

// What changes between the question and the answer makes the answer one to something else.
func TestAnAnswerIsToWhatWasShown(t *testing.T) {
	for name, change := range map[string]func(a *asked, c *client) error{
		"a link": func(a *asked, _ *client) error {
			return os.Symlink(filepath.Join(a.dir, "elsewhere"), filepath.Join(a.dir, "f"))
		},
		"a link outside": func(a *asked, _ *client) error { return os.Symlink("/etc/passwd", filepath.Join(a.dir, "f")) },
		"the roots": func(a *asked, _ *client) error {
			a.guard.Configure(roots.NewSet())
			return nil
		},
		"the rules": func(a *asked, _ *client) error {
			a.guard.SetPolicy(guard.Policy{Rules: policy.New(policy.Layers{Rules: []*policy.Rule{{At: "rules:9", Verdict: policy.Deny}}})})
			return nil
		},
		"what is there": func(a *asked, _ *client) error {
			return os.WriteFile(filepath.Join(a.dir, "f"), []byte("of somebody"), 0o600)
		},
		"the tool": func(a *asked, c *client) error {
			c.say(`{"jsonrpc":"2.0","id":"list","method":"tools/list","params":{}}`)
			c.next()
			return nil
		},
	} {
		a := newAsked(t, policy.ForTool, nil)
		c := a.connect(exchange.Legacy, `{}`)
		c.call("write_file", `{"path":"`+a.dir+`/f"}`)
		q := a.waits()
		if err := change(a, c); err != nil {
			t.Fatal(err)
		}
		a.answer(yes)
		if got := c.done(); !strings.HasPrefix(got, "refused") || a.runs() != 0 {
			t.Errorf("%s changed after %q was asked: %q, and it ran %d times", name, q.Head, got, a.runs())
		}
	}
}

// A client that gives up soon is told to come again, and gets the answer then.
func TestPending(t *testing.T) {
	a := newAsked(t, policy.Never, func(o *guard.Options) { o.Approval.Pending = time.Nanosecond })
	c := a.connect(exchange.Legacy, `{}`)
	args := `{"path":"` + a.dir + `/f"}`
	c.call("write_file", args)
	if got := c.done(); !strings.Contains(got, "Call this tool again with the same arguments") {
		t.Errorf("the model reads %q", got)
	}
	a.answer(yes)
	if a.runs() != 0 {
		t.Error("it ran with nobody who called")
	}
	c.call("write_file", `{"path":"`+a.dir+`/other"}`)
	c.done()
	a.answer(approval.Reply{})
	c.call("write_file", args)
	if got := c.done(); got != "done" || a.runs() != 1 {
		t.Errorf("the model reads %q, and it ran %d times", got, a.runs())
	}
	c.call("write_file", args)
	if got := c.done(); !strings.Contains(got, "Call this tool again") || a.runs() != 1 {
		t.Errorf("the model reads %q, and it ran %d times", got, a.runs())
	}
	a.answer(approval.Reply{Note: "enough"})
	c.call("write_file", args)
	if got := c.done(); !strings.Contains(got, "says: enough") || a.runs() != 1 {
		t.Errorf("the model reads %q, and it ran %d times", got, a.runs())
	}
}

// away is a client that has a request back, and does not come again.
type away struct {
	caller
	asked chan struct{}
}

func (c away) Ask(ctx context.Context, qs []exchange.Question, answer func([]exchange.Answer)) {
	c.caller.Ask(ctx, qs, answer)
	close(c.asked)
}

// A yes to a call whose client never comes back for it runs nothing, and the call ends with the client.
func TestAYesToAClientThatIsGone(t *testing.T) {
	a := newAsked(t, policy.Never, nil)
	ctx, leave := context.WithCancel(t.Context())
	c := away{asked: make(chan struct{})}
	m := wire.NewRequest([]byte("1"), "tools/call", []byte(`{"name":"write_file","arguments":{"path":"`+a.dir+`/f"}}`))
	ended := make(chan exchange.Outcome, 1)
	r := &exchange.Request{Msg: m, Era: exchange.Modern, Session: exchange.NewSession(ctx), Caller: c}
	a.guard.Wrap(a.server).Handle(ctx, r, func(o exchange.Outcome) { ended <- o })
	<-c.asked
	a.answer(yes)
	leave()
	select {
	case o := <-ended:
		if o.Msg != nil || a.runs() != 0 {
			t.Errorf("it ended with %+v, and ran %d times", o, a.runs())
		}
	case <-time.After(mcptest.Patience):
		t.Error("it did not end")
	}
}

func TestACancelledCallIsNotAskedAbout(t *testing.T) {
	a := newAsked(t, policy.Never, nil)
	c := a.connect(exchange.Legacy, canAsk)
	c.call("write_file", `{"path":"`+a.dir+`/f"}`)
	c.elicited()
	q := a.waits()
	c.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, c.id))
	if line := c.next(); !strings.Contains(line, "notifications/cancelled") {
		t.Errorf("the client hears %s", line)
	}
	for deadline := time.Now().Add(mcptest.Patience); ; time.Sleep(time.Millisecond) {
		if s, _ := a.desk.State(); len(s.Questions) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the question stays")
		}
	}
	if err := a.desk.Answer(q.ID, yes, approval.ByTerminal, ""); err != approval.ErrNoQuestion {
		t.Errorf("the answer to it: %v", err)
	}
	c.call("look", `{}`)
	if got := c.done(); got != "done" || a.runs() != 1 {
		t.Errorf("%q, and it ran %d times", got, a.runs())
	}
}

// While everything is paused every call waits, also what no rule asks for.
func TestPause(t *testing.T) {
	a := newAsked(t, policy.Never, nil)
	c := a.connect(exchange.Legacy, `{}`)
	a.desk.Pause(true)
	c.call("look", `{}`)
	q := a.waits()
	if want := `files: "look" is held, because calls are paused`; q.Head != want || !q.Paused {
		t.Errorf("%+v", q)
	}
	a.answer(approval.Reply{Note: "not now"})
	if got := c.done(); !strings.Contains(got, "not now") || a.runs() != 0 {
		t.Errorf("the model reads %q", got)
	}
	c.call("look", `{}`)
	a.waits()
	a.desk.Pause(false)
	if got := c.done(); got != "done" || a.runs() != 1 {
		t.Errorf("the model reads %q, and it ran %d times", got, a.runs())
	}
	a.desk.Pause(true)
	c.call("look", `{"path":"`+a.dir+`/f"}`)
	a.waits()
	if err := os.Symlink("/etc/passwd", filepath.Join(a.dir, "f")); err != nil {
		t.Fatal(err)
	}
	a.desk.Pause(false)
	if got := c.done(); !strings.Contains(got, "outside the directories that are open now") || a.runs() != 1 {
		t.Errorf("the model reads %q, and it ran %d times", got, a.runs())
	}
	a.desk.Pause(true)
	c.progress = true
	c.call("write_file", `{}`)
	first := c.next()
	a.answer(yes) // it is let through to be asked about
	for q := a.waits(); q.Paused; q = a.waits() {
		time.Sleep(time.Millisecond)
	}
	if second := c.next(); progressOf(t, second) <= progressOf(t, first) {
		t.Errorf("the client hears %s, and then %s", first, second)
	}
	a.answer(yes)
	if got := c.done(); got != "done" || a.runs() != 2 {
		t.Errorf("the model reads %q, and it ran %d times", got, a.runs())
	}
}

func progressOf(t *testing.T, line string) (n float64) {
	t.Helper()
	m, err := wire.Scan([]byte(line), wire.Strict)
	if err == nil {
		v, _ := wire.Get(m.Params(), "progress")
		n, err = strconv.ParseFloat(string(v), 64)
	}
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return n
}

// What a client answers while everything is paused is held as well: it may let something else answer than a person.
func TestPauseWhileAClientIsAsked(t *testing.T) {
	for _, era := range []exchange.Era{exchange.Legacy, exchange.Modern} {
		a := newAsked(t, policy.Never, nil)
		c := a.connect(era, canAsk)
		c.call("write_file", `{}`)
		_, _, answer := c.elicited()
		a.desk.Pause(true)
		answer(`{"action":"accept","content":{"decision":"allow once"}}`)
		for q := a.waits(); !q.Paused; q = a.waits() {
			time.Sleep(time.Millisecond)
		}
		if a.runs() != 0 {
			t.Errorf("%v: it ran while everything was paused", era)
		}
		a.desk.Pause(false)
		if got := c.done(); got != "done" || a.runs() != 1 {
			t.Errorf("%v: the model reads %q, and it ran %d times", era, got, a.runs())
		}
	}
}

// A stateless server may give back what a person allowed. Its retry is the same call, and nobody is asked again; another
// guard does not know it.
func TestTheServersOwnQuestionsComeAfterAYes(t *testing.T) {
	a := newAsked(t, policy.Never, nil)
	a.once, a.list = true, true
	c := a.connect(exchange.Modern, canAsk)
	c.call("write_file", `{"path":"`+a.dir+`/f"}`)
	_, _, answer := c.elicited()
	answer(`{"action":"accept","content":{"decision":"allow once"}}`)
	state := func() string {
		t.Helper()
		var m struct {
			Result struct {
				RequestState  string
				InputRequests map[string]any
			}
		}
		line := c.next()
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Result.InputRequests["own"] == nil {
			t.Fatalf("the server's question did not come: %s", line)
		}
		return m.Result.RequestState
	}
	sealed := state()
	if !strings.HasPrefix(sealed, "rbs1.") {
		t.Errorf("the state is %q", sealed)
	}
	c.again(sealed, `{"own":{"action":"accept","content":{}}}`)
	if got := c.done(); got != "done" || a.runs() != 1 {
		t.Errorf("%q, and it ran %d times", got, a.runs())
	}
	c.again(sealed, `{"own":{"action":"accept","content":{}}}`)
	if got := c.done(); !strings.Contains(got, "request state is not valid") || a.runs() != 1 {
		t.Errorf("the same state again: %q, and it ran %d times", got, a.runs())
	}
	if n := len(a.logged(calllog.Asked)); n != 1 {
		t.Errorf("a person was asked %d times", n)
	}
}

// A question of ours that another guard put is put again: a yes is for the guard that asked.
func TestAnotherGuardAsksAgain(t *testing.T) {
	a, b := newAsked(t, policy.Never, nil), newAsked(t, policy.Never, nil)
	at, other := a.connect(exchange.Modern, canAsk), b.connect(exchange.Modern, canAsk)
	at.call("write_file", `{"n":1}`)
	var m struct{ Result struct{ RequestState string } }
	if err := json.Unmarshal([]byte(at.next()), &m); err != nil {
		t.Fatal(err)
	}
	other.tool, other.args = at.tool, at.args
	other.again(m.Result.RequestState, `{"rootbound.approve":{"action":"accept","content":{"decision":"allow once"}}}`)
	_, _, answer := other.elicited()
	if b.runs() != 0 {
		t.Error("the second guard ran it without a yes")
	}
	answer(`{"action":"accept","content":{"decision":"deny"}}`)
	if got := other.done(); !strings.Contains(got, "said no") || a.runs()+b.runs() != 0 {
		t.Errorf("%q, and it ran %d times", got, a.runs()+b.runs())
	}
	at.again(m.Result.RequestState, `{"rootbound.approve":{"action":"accept","content":{"decision":"allow once"}}}`)
	if got := at.done(); got != "done" || a.runs() != 1 {
		t.Errorf("%q, and it ran %d times", got, a.runs())
	}
	at.again(m.Result.RequestState, `{"rootbound.approve":{"action":"accept","content":{"decision":"allow once"}}}`)
	if got := at.done(); !strings.Contains(got, "request state is not valid") || a.runs() != 1 {
		t.Errorf("the same state again: %q, and it ran %d times", got, a.runs())
	}
}

func TestToolsThatAreAskedForAreMarked(t *testing.T) {
	a := newAsked(t, policy.Never, func(o *guard.Options) { o.Approval.AlwaysAsk = true })
	c := a.connect(exchange.Legacy, `{}`)
	c.say(`{"jsonrpc":"2.0","id":"list","method":"tools/list","params":{}}`)
	if got, want := c.next(), `{"tools":[{"name":"write_file","inputSchema":`+writeSchema+`,"_meta":{"anthropic/requiresUserInteraction":true}},{"name":"look"}]}`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A yes that cannot be kept is good for the call that it was said to.
func TestAYesThatCannotBeKept(t *testing.T) {
	var warned []string
	a := newAsked(t, policy.ForTool, func(o *guard.Options) {
		o.Warn = func(text string) { warned = append(warned, text) }
		o.Approval.Grants = approval.NewGrants(approval.Store{Path: "/dev/null/grants.json", Lock: "/dev/null/lock"})
	})
	c := a.connect(exchange.Legacy, `{}`)
	c.call("write_file", `{}`)
	a.answer(approval.Reply{Choice: approval.Choice{Allow: true, Session: true}})
	if got := c.done(); got != "done" || a.runs() != 1 {
		t.Errorf("%q, and it ran %d times", got, a.runs())
	}
	c.call("write_file", `{}`)
	a.answer(approval.Reply{})
	if got := c.done(); !strings.Contains(got, "said no") || !strings.Contains(strings.Join(warned, "\n"), "is good for this call alone") {
		t.Errorf("%q, after %q", got, warned)
	}
}

// What cannot be logged is neither asked nor run.
func TestAFullDiskIsANo(t *testing.T) {
	a := newAsked(t, policy.Never, nil)
	c := a.connect(exchange.Legacy, `{}`)
	c.call("write_file", `{}`)
	a.waits()
	a.log.Close(0, "")
	a.answer(yes)
	if got := c.done(); !strings.Contains(got, "could not be logged") || a.runs() != 0 {
		t.Errorf("%q, and it ran %d times", got, a.runs())
	}
	c.call("write_file", `{}`)
	if got := c.done(); !strings.Contains(got, "could not be logged") || a.runs() != 0 {
		t.Errorf("%q, and it ran %d times", got, a.runs())
	}
}

// A stateless client that is asked has the call back, and may never come again. The same call, sent anew, is not to wait for that.
func TestTheSameCallDoesNotWaitForOneThatNeverComesBack(t *testing.T) {
	a := newAsked(t, policy.Never, nil)
	c := a.connect(exchange.Modern, canAsk)
	var answer func(string)
	for range 3 {
		c.call("write_file", `{"n":1}`)
		_, _, answer = c.elicited()
	}
	answer(`{"action":"accept","content":{"decision":"allow once"}}`)
	if got := c.done(); got != "done" || a.runs() != 1 {
		t.Errorf("%q, and it ran %d times", got, a.runs())
	}
}
