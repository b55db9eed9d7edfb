package fsserver

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/wire"
)

// build builds the program once, for all tests that start it.
var build = sync.OnceValues(func() (program string, err error) {
	dir, err := os.MkdirTemp("", "fsserver")
	if err != nil {
		return "", err
	}
	builtIn = dir
	program = filepath.Join(dir, "rootbound")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/rootbound/rootbound/cmd/rootbound").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return program, nil
})

// builtIn is the directory of the program, for TestMain to remove.
var builtIn string

// process is `rootbound fs` as a client starts it.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
}

func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(program, append([]string{"fs", "--preset", "boundary"}, args...)...)}
	home := t.TempDir()
	p.cmd.Dir = home
	p.cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home, "XDG_CACHE_HOME="+home)
	p.cmd.Stderr = &p.stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	if line, err := p.out.ReadString('\n'); err != nil || !strings.Contains(line, `"id":0`) {
		t.Fatalf("initialize: %v, %q\n%s", err, line, &p.stderr)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return p
}

// send sends a line; that the process is gone is seen elsewhere.
func (p *process) send(line string) { io.WriteString(p.in, line+"\n") }

// ask calls a tool and returns the line of the answer.
func (p *process) ask(t *testing.T, tool, arguments string) string {
	t.Helper()
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`)
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v\n%s", tool, err, &p.stderr)
	}
	return line
}

// answer takes one request at a time to the process. What the process refuses to read is answered without an id.
func (p *process) answer(_ context.Context, r *exchange.Request) exchange.Outcome {
	p.send(string(r.Msg.Bytes()))
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return exchange.Fail(r, wire.CodeInternal, fmt.Sprintf("the process has ended: %v\n%s", err, &p.stderr), nil)
	}
	m, err := wire.Scan(bytes.TrimSuffix(line, []byte("\n")), wire.Strict)
	if err != nil || m.Error() != nil {
		return exchange.Result(r, []byte(`{"content":[{"type":"text","text":`+quoteJSON(string(line))+`}],"isError":true}`))
	}
	return exchange.Outcome{Msg: &m}
}

// end ends the process as a client does.
func (p *process) end(t *testing.T) {
	t.Helper()
	p.in.Close()
	io.Copy(io.Discard, p.out)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v\n%s", err, &p.stderr)
	}
}

// Whenever the process is killed in the middle of writes and edits, the file has the old text or the new one, there is at
// most one temporary file, and the next start removes it.
func TestKilledAtAnyMoment(t *testing.T) {
	rounds := 9
	if *long {
		rounds = 500
	}
	w := tree(t, map[string]string{"R/sub/": "", "R/other": "text"})
	const lines = 8_000
	text := func(version int) string { return strings.Repeat(fmt.Sprintf("version %06d\n", version), lines) }
	file := w + "/R/sub/file"
	if err := os.WriteFile(file, []byte(text(0)), 0o640); err != nil {
		t.Fatal(err)
	}
	temporary := func() []string {
		t.Helper()
		names, err := filepath.Glob(w + "/R/sub/.rootbound-tmp-*")
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	left := 0
	for round := range rounds {
		p := startProcess(t, w+"/R")
		at := p.ask(t, "read_text_file", `{"path":"sub/file","head":1}`)
		var version int
		if _, rest, ok := strings.Cut(at, `"text":"version `); !ok {
			t.Fatalf("round %d: the first line is %s", round, at)
		} else if _, err := fmt.Sscanf(rest, "%d", &version); err != nil {
			t.Fatal(err)
		}
		if list := p.ask(t, "list_directory", `{"path":"sub"}`); strings.Contains(list, "rootbound-tmp") {
			t.Errorf("round %d: a list shows %s", round, list)
		}
		if names := temporary(); len(names) > 0 {
			t.Errorf("round %d: after a list there is %q", round, names)
		}
		first := version + 1
		go func() {
			for next := first; ; next++ {
				line := fmt.Sprintf(`{"name":"write_file","arguments":{"path":"sub/file","content":%s}}`, quoteJSON(text(next)))
				if round%2 == 1 { // every line is edited
					line = fmt.Sprintf(`{"name":"edit_file","arguments":{"path":"sub/file","edits":[{"oldText":"version %06d\n","newText":"version %06d\n","replaceAll":true}]}}`, next-1, next)
				}
				if _, err := io.WriteString(p.in, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`+"\n", next, line)); err != nil {
					return // killed
				}
			}
		}()
		for range round % 5 { // answers that are waited for
			if line, err := p.out.ReadString('\n'); err != nil || strings.Contains(line, `"isError":true`) && round%2 == 0 {
				t.Fatalf("round %d: %v, %.300s\n%s", round, err, line, &p.stderr)
			}
		}
		if round%4 > 0 { // and in most rounds the beginning of the next one
			p.out.Peek(1)
		}
		p.cmd.Process.Signal(syscall.SIGKILL)
		p.cmd.Wait()

		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscanf(string(got[:min(len(got), 20)]), "version %d\n", &version); err != nil || string(got) != text(version) {
			t.Fatalf("round %d: the file has %d bytes, the first version is %d, and it is not whole", round, len(got), version)
		}
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o640 {
			t.Errorf("round %d: %v, %v", round, info.Mode(), err)
		}
		names := temporary()
		if len(names) > 1 {
			t.Errorf("round %d: %d temporary files: %q", round, len(names), names)
		}
		left += len(names)
	}
	t.Logf("%d of %d kills left a temporary file", left, rounds)

	p := startProcess(t, w+"/R")
	p.ask(t, "read_text_file", `{"path":"other"}`)
	names := temporary()
	for begin := time.Now(); len(names) > 0 && time.Since(begin) < mcptest.Patience; names = temporary() {
		runtime.Gosched() // it cleans behind the calls
	}
	if len(names) > 0 {
		t.Errorf("the next start left %q", names)
	}
	p.end(t)
}
