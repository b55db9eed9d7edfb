package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/roots"
)

// inFlight is how many calls are open at once.
const inFlight = 200

const holdRole = "hold"

// hold is a server that answers nothing before inFlight calls are there, and then out of order. Each answer says which
// call it was by arrival, and which answer it is.
func hold([]string) error {
	var ids, texts []string
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments struct{ Text string } }
		}
		if err := json.Unmarshal(s.Bytes(), &m); err != nil {
			return err
		}
		switch m.Method {
		case "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"hold","version":"1"}}}`+"\n", m.ID)
		case "tools/call":
			ids, texts = append(ids, string(m.ID)), append(texts, m.Params.Arguments.Text)
		}
		if len(ids) < inFlight {
			continue
		}
		for i := range ids {
			n := (i*73 + 11) % inFlight // 73 and 200 have no common factor: each number comes once
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"arrival":%d,"answer":%d,"text":%q}}`+"\n", ids[n], n, i, texts[n])
		}
		ids, texts = nil, nil
	}
	return nil
}

// TestManyCallsInFlight opens many calls at once, with ids of every form: the server gets them in their order, each gets
// its own answer, the answers come in the server's order, and no goroutine is left when they are there, nor when the
// connection has ended.
func TestManyCallsInFlight(t *testing.T) {
	dir, err := roots.Resolve(t.TempDir(), roots.ResolveOptions{Access: roots.ReadWrite})
	if err != nil {
		t.Fatal(err)
	}
	for name, stages := range map[string]func(t *testing.T, ctx context.Context, server exchange.Handler) exchange.Handler{
		"no stages": func(_ *testing.T, _ context.Context, server exchange.Handler) exchange.Handler { return server },
		"guard": func(t *testing.T, ctx context.Context, server exchange.Handler) exchange.Handler {
			log, err := calllog.Create(t.TempDir(), calllog.Record{Server: "hold"}, calllog.Options{})
			if err != nil {
				t.Fatal(err)
			}
			context.AfterFunc(ctx, func() { log.Close(0, "") })
			g := guard.New(guard.Options{
				Server: "hold", Configured: roots.NewSet(dir), Process: pathargs.Process{Dir: dir.Path}, Log: log,
				Warn: func(text string) { t.Errorf("warning: %s", text) },
			})
			go g.Watch(ctx)
			return g.Wrap(server)
		},
	} {
		t.Run(name, func(t *testing.T) {
			callAtOnce(t, dir.Path, stages) // starts what is started once in a process
			before := runtime.NumGoroutine()
			callAtOnce(t, dir.Path, stages)
			settle(t, before)
		})
	}
}

func callAtOnce(t *testing.T, dir string, stages func(*testing.T, context.Context, exchange.Handler) exchange.Handler) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	report := func(format string, a ...any) { t.Errorf("report: "+format, a...) }
	server := transport.NewProcess(func() (transport.Command, error) {
		return transport.Command{Args: []string{self, holdRole}}, nil
	}, transport.ProcessOptions{Report: report})
	ctx, cancel := context.WithCancel(t.Context())
	inR, in := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		defer outW.Close()
		done <- transport.ServeStdio(ctx, inR, outW, stages(t, ctx, server), transport.StdioOptions{Report: report})
	}()
	defer func() {
		in.Close()
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
		cancel()
		if exit := server.Close(); exit == nil || exit.Code != 0 {
			t.Errorf("the server ended with %v", exit)
		}
	}()

	out := bufio.NewReader(outR)
	io.WriteString(in, initialize)
	if hello, err := out.ReadString('\n'); err != nil || !strings.Contains(hello, `"hold"`) {
		t.Fatalf("initialize is answered %q, %v", hello, err)
	}
	io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	quiet := runtime.NumGoroutine()

	var calls bytes.Buffer
	sent := map[string]int{} // by id
	for i := range inFlight {
		id := [...]string{"%d", `"%d"`, "9007199254740%d", "%d.5", `"rb-%d"`}[i%5]
		id = fmt.Sprintf(id, 1000+i)
		sent[id] = i
		fmt.Fprintf(&calls, `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"hold","arguments":{"path":%q,"text":"text %d"}}}`+"\n",
			id, filepath.Join(dir, "file"), i)
	}
	go in.Write(calls.Bytes())
	for i := range inFlight {
		line, err := out.ReadBytes('\n')
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		var a struct {
			ID     json.RawMessage
			Result *struct {
				Arrival, Answer int
				Text            string
			}
		}
		if err := json.Unmarshal(line, &a); err != nil || a.Result == nil {
			t.Fatalf("answer %d is %s: %v", i, line, err)
		}
		call, open := sent[string(a.ID)]
		if !open {
			t.Fatalf("answer %d has the id %s, which is not open", i, a.ID)
		}
		delete(sent, string(a.ID))
		if a.Result.Arrival != call || a.Result.Answer != i || a.Result.Text != fmt.Sprintf("text %d", call) {
			t.Errorf("call %d is answered %s, want its own arrival and text, and answer %d", call, line, i)
		}
	}
	settle(t, quiet)
}

// settle waits until there are no more goroutines than want.
func settle(t *testing.T, want int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			var stacks strings.Builder
			pprof.Lookup("goroutine").WriteTo(&stacks, 1)
			t.Fatalf("%d goroutines, want %d:\n%s", runtime.NumGoroutine(), want, &stacks)
		}
	}
}
