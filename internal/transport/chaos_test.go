package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/wire"
)

// fault is what a stream suffers: it is cut behind Cut bytes, its line Drop is lost, its line Twice comes twice, what is written comes in
// pieces, or late. Lines count from 1; a negative Cut is none.
type fault struct {
	cut, drop, twice int
	split            bool
	late             *rand.Rand
}

var none = fault{cut: -1}

// faulty is the writing end of a stream with a fault.
type faulty struct {
	to io.WriteCloser
	f  fault

	mu   sync.Mutex
	n    int // bytes that were written
	line int // that is being written
	rest []byte
}

func (w *faulty) Write(b []byte) (int, error) {
	if w.f.late != nil { // one goroutine at a time writes
		time.Sleep(time.Duration(w.f.late.IntN(500)) * time.Millisecond)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, b...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			return len(b), nil
		}
		line := w.rest[:i+1]
		w.rest = w.rest[i+1:]
		w.line++
		times := 1
		switch w.line {
		case w.f.drop:
			times = 0
		case w.f.twice:
			times = 2
		}
		for range times {
			if err := w.put(line); err != nil {
				return 0, err
			}
		}
	}
}

// put writes a line, as far as it goes.
func (w *faulty) put(line []byte) error {
	if w.f.cut >= 0 && w.n+len(line) > w.f.cut {
		part := line[:max(0, w.f.cut-w.n)]
		w.n += len(part)
		w.to.Write(part)
		w.to.Close()
		return io.ErrClosedPipe
	}
	w.n += len(line)
	pieces := [][]byte{line}
	if w.f.split {
		pieces = nil
		for i := range line {
			pieces = append(pieces, line[i:i+1])
		}
	}
	for _, p := range pieces {
		if _, err := w.to.Write(p); err != nil {
			return err
		}
	}
	return nil
}

func (w *faulty) Close() error { return w.to.Close() }

// piped is a link to a server in this process, whose streams have faults.
type piped struct {
	in   io.Closer
	read *io.PipeReader
	out  *wire.Writer
	over chan struct{} // it has ended
	left chan struct{}
}

func (l *piped) sink() *wire.Writer  { return l.out }
func (l *piped) gone() chan struct{} { return l.left }
func (l *piped) sessionless() bool   { return false }

func (l *piped) receive(take func(m *wire.Message, refused *wire.Refusal, of string)) {
	receiveLines(l.read, ProcessOptions{Report: func(string, ...any) {}}, take)
}

func (l *piped) ended() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

func (l *piped) wait(time.Duration) *ExitError {
	l.in.Close()
	<-l.over
	return &ExitError{Code: 1, State: "cut off"}
}

func (l *piped) stop(time.Duration) {
	l.in.Close()
	<-l.over
}

// world is a client, a guard and a server, each of the four streams between them with a fault.
type world struct {
	client, server *exchange.Era
	streams        [4]fault // client to guard, guard to client, guard to server, server to guard
	sent           [4]*faulty
	tools          *mcptest.Counted
	called         map[string]string   // the argument n of the client's calls, by id
	got            map[string][]string // what it was answered, by id
	allowed        int                 // how often it said yes
	said           []string
	bad            string // what was none
}

const (
	toGuard = iota
	fromGuard
	toServer
	fromServer
)

// play plays a session, and returns when all of it has ended.
func (w *world) play(t *testing.T) {
	t.Helper()
	w.tools = mcptest.NewCounted(w.server)
	w.called, w.got = map[string]string{}, map[string][]string{}
	p := &server{}
	p.init(ProcessOptions{Stderr: os.Stderr, Grace: time.Second})
	p.dial = func() (link, error) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		first := w.sent[toServer] == nil
		f := [2]fault{none, none} // the next one is a good one
		if first {
			f = [2]fault{w.streams[toServer], w.streams[fromServer]}
		}
		in, out := &faulty{to: inW, f: f[0]}, &faulty{to: outW, f: f[1]}
		if first {
			w.sent[toServer], w.sent[fromServer] = in, out
		}
		l := &piped{in: in, read: outR, out: wire.NewWriter(in), over: make(chan struct{}), left: make(chan struct{})}
		go func() {
			ServeStdio(context.Background(), inR, out, w.tools, StdioOptions{})
			inR.Close()
			out.Close()
			close(l.over)
		}()
		return l, nil
	}
	g := guard.New(guard.Options{Server: "s"})
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	in, out := &faulty{to: inW, f: w.streams[toGuard]}, &faulty{to: outW, f: w.streams[fromGuard]}
	w.sent[toGuard], w.sent[fromGuard] = in, out
	served := make(chan struct{})
	go func() {
		defer close(served)
		ServeStdio(context.Background(), inR, out, g.Wrap(p), StdioOptions{})
		inR.Close()
		out.Close()
	}()
	w.talk(in, outR)
	in.Close()
	go io.Copy(io.Discard, outR)
	<-served
	outR.Close()
	p.mu.Lock()
	p.closed = true
	c := p.link
	p.mu.Unlock()
	if c != nil {
		c.stop(time.Second)
		<-c.gone()
	}
	synctest.Wait()
	if n := p.legacy.Open() + p.modern.Open(); n != 0 {
		t.Errorf("%d requests are still open", n)
	}
}

// talk is the client: it asks one thing after the other, and gives up when it hears nothing for a long time.
func (w *world) talk(in io.Writer, out io.Reader) {
	lines := make(chan string)
	quit := make(chan struct{})
	defer close(quit)
	go func() {
		defer close(lines)
		for r := wire.NewReader(out, 0); ; {
			line, err := r.Next()
			if err != nil {
				return
			}
			select {
			case lines <- string(line):
			case <-quit:
				return
			}
		}
	}()
	say := func(line string) bool {
		_, err := io.WriteString(in, line+"\n")
		return err == nil
	}
	modern := *w.client == exchange.Modern
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
	id := 0
	var ask func(method, params, more string) bool
	ask = func(method, params, more string) bool {
		id++
		mine := strconv.Itoa(id)
		w.called[mine] = wire.GetString([]byte("{"+params+"}"), "arguments", "n")
		full := params + more
		if modern {
			full = strings.Trim(params+","+meta, ",") + more
		}
		if !say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, mine, method, full)) {
			return false
		}
		for {
			select {
			case line, ok := <-lines:
				if !ok {
					return false
				}
				w.said = append(w.said, line)
				var m struct {
					ID     json.RawMessage
					Method string
					Result struct {
						ResultType, RequestState string
						Content                  []struct{ Text string }
					}
					Error *struct{ Message string }
				}
				if err := json.Unmarshal([]byte(line), &m); err != nil {
					w.bad = line
					return false
				}
				switch {
				case m.Method == "elicitation/create":
					w.allowed++
					if !say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{}}}`, m.ID)) {
						return false
					}
				case m.Method != "":
				case m.Result.ResultType == "input_required":
					if string(m.ID) != mine {
						continue
					}
					w.allowed++
					return ask(method, params, fmt.Sprintf(`,"inputResponses":{%s:{"action":"accept","content":{}}},"requestState":%q`, key(line), m.Result.RequestState))
				default:
					text := ""
					if m.Error != nil {
						text = "error: " + m.Error.Message
					} else if len(m.Result.Content) > 0 {
						text = m.Result.Content[0].Text
					}
					w.got[string(m.ID)] = append(w.got[string(m.ID)], text)
					if string(m.ID) == mine {
						return true
					}
				}
			case <-time.After(time.Hour):
				return true // it does not come: go on
			}
		}
	}
	if modern {
		ask("server/discover", "", "")
	} else {
		ask("initialize", `"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}`, "")
		say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	for i, tool := range []string{"do", "ask", "do"} { // the second one asks
		if !ask("tools/call", fmt.Sprintf(`"name":%q,"arguments":{"n":"%d"}`, tool, i+1), "") {
			return
		}
	}
}

// key is that of the first question in a result.
func key(line string) string {
	var m struct {
		Result struct{ InputRequests map[string]any }
	}
	json.Unmarshal([]byte(line), &m)
	for k := range m.Result.InputRequests {
		return strconv.Quote(k)
	}
	return `""`
}

// asks is the call for which a person is asked.
const asks = "2"

// check says what is wrong: an answer to something else, one that comes twice, a call that was done too often, or without a yes for each time.
func (w *world) check() error {
	if w.bad != "" && w.streams[fromGuard].cut < 0 {
		return fmt.Errorf("the client got %q", w.bad)
	}
	again := w.streams[toGuard].twice > 0 // what the client asks twice is done twice, but for what a yes or a state is good for once
	for id, answers := range w.got {
		if w.streams[fromGuard].twice > 0 {
			answers = slices.Compact(answers)
		}
		if len(answers) > 1 && !again {
			return fmt.Errorf("request %s was answered with %q", id, answers)
		}
		n, ok := w.called[id]
		for _, text := range answers {
			if !ok || n != "" && !strings.HasPrefix(text, "error: ") && text != "did "+n && text != "asked and did "+n {
				return fmt.Errorf("request %s, the call %q, was answered with %q", id, n, text)
			}
		}
	}
	for n, times := range w.tools.Done() {
		most := 1
		if again {
			most = 2
			if n == asks { // twice only when a yes was said to each
				most = max(1, w.allowed)
			}
		}
		if times > most {
			return fmt.Errorf("the call %s was done %d times, and a yes said %d times", n, times, w.allowed)
		}
	}
	return nil
}

// Whatever happens to a stream, and wherever: no answer is another one's, nothing is done twice, and nothing is left open. In this time,
// which is not the real one, a goroutine that is left fails the test.
func TestChaos(t *testing.T) {
	eras := map[string][2]*exchange.Era{}
	legacy, modern := exchange.Legacy, exchange.Modern
	for _, client := range []*exchange.Era{&legacy, &modern} {
		for _, server := range []*exchange.Era{&legacy, &modern, nil} {
			name := client.String() + "-both"
			if server != nil {
				name = client.String() + "-" + server.String()
			}
			eras[name] = [2]*exchange.Era{client, server}
		}
	}
	names := []string{"client to guard", "guard to client", "guard to server", "server to guard"}
	for name, pair := range eras {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(stream int, f fault) (w *world) {
				synctest.Test(t, func(t *testing.T) {
					w = &world{client: pair[0], server: pair[1], streams: [4]fault{none, none, none, none}}
					w.streams[stream] = f
					w.play(t)
					if err := w.check(); err != nil {
						t.Errorf("%s, with %+v: %v\nthe client got %s", names[stream], f, err, strings.Join(w.said, "\n"))
					}
				})
				return w
			}
			clean := run(0, none)
			for n := 1; n <= 3; n++ {
				if clean.tools.Done()[strconv.Itoa(n)] != 1 {
					t.Fatalf("without a fault the calls were done %v times; the client got %s", clean.tools.Done(), strings.Join(clean.said, "\n"))
				}
			}
			step := 1
			if mcptest.Race { // each offset is tried without the detector
				step = 101
			}
			for stream := range names {
				length, lines := clean.sent[stream].n, clean.sent[stream].line
				for at := 0; at <= length && !t.Failed(); at += step {
					run(stream, fault{cut: at})
				}
				for line := 1; line <= lines && !t.Failed(); line++ {
					run(stream, fault{cut: -1, drop: line})
					if stream != toServer { // a server that is told to do a thing twice does it twice
						run(stream, fault{cut: -1, twice: line})
					}
				}
				run(stream, fault{cut: -1, split: true})
				for seed := range uint64(5) {
					run(stream, fault{cut: -1, late: rand.New(rand.NewPCG(seed, uint64(stream)))})
				}
			}
		})
	}
}
