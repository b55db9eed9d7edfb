package transport

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/sandbox"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == sandbox.Argument {
		fmt.Fprintln(os.Stderr, sandbox.Enter())
		os.Exit(1)
	}
	if len(os.Args) == 2 && os.Args[1] == WatchArgument {
		Watch()
		os.Exit(1)
	}
	if path := os.Getenv("TRANSPORT_TEST_GUARD"); path != "" {
		os.Exit(guardMain(path))
	}
	mcptest.Main()
	os.Exit(m.Run())
}

// guardMain is a guard with no stage around the "tree" child: for the tests that kill it.
func guardMain(path string) int {
	if err := Adopt(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	os.Unsetenv("TRANSPORT_TEST_GUARD")
	args, env := mcptest.Command("tree " + path)
	p := NewProcess(func() (Command, error) { return Command{Args: args, Env: env}, nil }, ProcessOptions{Grace: 50 * time.Millisecond})
	ServeStdio(context.Background(), os.Stdin, os.Stdout, p, StdioOptions{})
	p.Close()
	KillDescendants()
	return 0
}

// passthrough is a guard without any stage, in this process.
func passthrough(o ProcessOptions, client ...Protocol) mcptest.Guard {
	return func(t *testing.T, args, env []string) (io.WriteCloser, io.Reader) {
		o := o
		if o.Report == nil {
			o.Report = func(f string, a ...any) { t.Logf("report: "+f, a...) }
		}
		p := NewProcess(func() (Command, error) { return Command{Args: args, Env: env}, nil }, o)
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			h := exchange.Handler(p)
			for _, held := range client {
				h = Hold(held, p)
			}
			if err := ServeStdio(t.Context(), inR, outW, h, StdioOptions{Report: o.Report}); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("serving: %v", err)
			}
			p.Close()
			outW.Close()
		}()
		t.Cleanup(func() { inW.Close(); <-done })
		return inW, outR
	}
}

// options are what the first lines of a transcript say: "#! strict", "#! probe 100ms", "#! greet 100ms", "#! remembers legacy",
// "#! server legacy", "#! client 2025-06-18".
func options(t *testing.T, tr mcptest.Transcript) (o ProcessOptions) {
	for _, words := range tr.Options() {
		switch words[0] {
		case "strict":
			o.Strict = true
		case "server":
			o.Protocol = Protocol(words[1])
		case "probe", "greet":
			d, err := time.ParseDuration(words[1])
			if err != nil {
				t.Fatal(err)
			}
			if words[0] == "probe" {
				o.ProbeTimeout = d
			} else {
				o.GreetTimeout = d
			}
		case "remembers":
			only := exchange.Legacy
			if words[1] == exchange.Modern.String() {
				only = exchange.Modern
			}
			o.Memory = &memory{only: only, server: "s 1", known: true}
		case "client":
		default:
			t.Fatalf("unknown option %q", words)
		}
	}
	return o
}

func TestTranscripts(t *testing.T) {
	mcptest.Transcripts(t, "testdata/*.txtar", func(t *testing.T, tr mcptest.Transcript) {
		var client []Protocol
		for _, words := range tr.Options() {
			if words[0] == "client" {
				client = append(client, Protocol(words[1]))
			}
		}
		tr.Play(t, nil, passthrough(options(t, tr), client...))
	})
}

func TestExitCodeOfTheChild(t *testing.T) {
	for _, code := range []int{0, 3, 77} {
		args, env := mcptest.Command("exit " + strconv.Itoa(code))
		p := NewProcess(func() (Command, error) { return Command{Args: args, Env: env}, nil }, ProcessOptions{})
		out := untilAnswered(t, p, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
		exit := p.Close()
		if exit == nil || exit.Code != code {
			t.Errorf("exit %v, want code %d", exit, code)
		}
		var answer struct {
			Error struct{ Message string }
		}
		if err := json.Unmarshal([]byte(out), &answer); err != nil || !strings.Contains(answer.Error.Message, "ended") {
			t.Errorf("the open request got %q", out)
		}
	}
}

// untilAnswered serves a client that sends one line, and goes when it has its answer: the other era may be tried before, with another child.
func untilAnswered(t *testing.T, p *Process, line string) (answer string) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go func() {
		io.WriteString(inW, line+"\n")
		r := bufio.NewReader(outR)
		answer, _ = r.ReadString('\n')
		inW.Close()
	}()
	if err := ServeStdio(t.Context(), inR, outW, p, StdioOptions{}); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestACommandThatCannotBeStartedIsAnErrorWithItsName(t *testing.T) {
	p := NewProcess(func() (Command, error) { return Command{Args: []string{"/nowhere/server"}}, nil }, ProcessOptions{})
	defer p.Close()
	var out strings.Builder
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize"}` + "\n")
	if err := ServeStdio(t.Context(), in, &out, p, StdioOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `/nowhere/server`) || !strings.Contains(out.String(), `"id":1`) {
		t.Errorf("got %s", out.String())
	}
}

func transcript(t *testing.T, archive, name string) mcptest.Transcript {
	t.Helper()
	list, err := mcptest.Archive(filepath.Join("testdata", archive+".txtar"))
	i := slices.IndexFunc(list, func(tr mcptest.Transcript) bool { return tr.Name == name })
	if i < 0 {
		t.Fatalf("no transcript %s in %s: %v", name, archive, err)
	}
	return list[i]
}

// What is dropped is told where it is to be seen: an answer that comes late in the log alone, an error of nobody to the
// person, too.
func TestWhatIsDroppedIsTold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ archive, name, report, note string }{
		{"cancellation", "late", "", "answered \"2\", which was cancelled"},
		{"odd-servers", "null-id", "refused something and did not say what", "Method not found"},
	} {
		var mu sync.Mutex
		var reports, notes strings.Builder
		to := func(b *strings.Builder) func(string, ...any) {
			return func(f string, a ...any) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(b, f+"\n", a...)
			}
		}
		tr := transcript(t, tt.archive, tt.name)
		tr.Play(t, nil, passthrough(ProcessOptions{Report: to(&reports), Note: to(&notes)}))
		mu.Lock()
		if got := reports.String(); (got == "") != (tt.report == "") || !strings.Contains(got, tt.report) {
			t.Errorf("%s: reported %q, want %q", tt.name, got, tt.report)
		}
		if got := notes.String(); (got == "") != (tt.note == "") || !strings.Contains(got, tt.note) {
			t.Errorf("%s: noted %q, want %q", tt.name, got, tt.note)
		}
		mu.Unlock()
	}
}

// A server that stays when its input was closed, and to which something is still on its way, did not stop reading: that is
// told only of one that did, while it was wanted.
func TestWhoStopsReadingIsTold(t *testing.T) {
	t.Parallel()
	for _, closing := range []bool{true, false} {
		var mu sync.Mutex
		var reports strings.Builder
		args, env := mcptest.Command("tree " + filepath.Join(t.TempDir(), "pids"))
		p := NewProcess(func() (Command, error) { return Command{Args: args, Env: env}, nil }, ProcessOptions{Grace: 300 * time.Millisecond,
			Report: func(f string, a ...any) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(&reports, f+"\n", a...)
			}})
		inR, inW := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- ServeStdio(t.Context(), inR, io.Discard, p, StdioOptions{}) }()
		fmt.Fprintln(inW, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
		var c *child
		for c == nil {
			time.Sleep(time.Millisecond)
			p.mu.Lock()
			c, _ = p.link.(*child)
			p.mu.Unlock()
		}
		ended := make(chan struct{})
		if closing {
			go func() { p.Close(); close(ended) }()
			for open := true; open; time.Sleep(time.Millisecond) {
				p.mu.Lock()
				open = !p.closed
				p.mu.Unlock()
			}
		}
		c.out.Fail(errors.New("nobody reads"))
		<-c.exited
		if !closing {
			go func() { p.Close(); close(ended) }()
		}
		<-ended
		inW.Close()
		<-served
		mu.Lock()
		if got := strings.Contains(reports.String(), "does not read its input any more"); got == closing {
			t.Errorf("closing %v: told %q", closing, reports.String())
		}
		mu.Unlock()
	}
}
