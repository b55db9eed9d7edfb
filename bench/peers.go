package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/wire"
)

// peers are what this program is instead of a benchmark, by its first argument: the server behind every chain, and what
// stands in the guard's place. What follows is the command behind them.
var peers = map[string]func(args []string) error{
	"echo":          func([]string) error { return echo(os.Stdin, os.Stdout) },
	"copy":          func(args []string) error { return copyLines(args, false, nil) },
	"copy-blocking": func(args []string) error { return copyLines(args, true, nil) },
	"copy-logged":   copyLogged,
	"go-sdk":        proxy,
	"edges":         edges,

	"echo-stateless": func([]string) error {
		manyAtOnce()
		return echoStateless.serve(os.Stdin, os.Stdout)
	},
	"http-echo":           func([]string) error { return echoHandshake.listen() },
	"http-echo-stateless": func([]string) error { return echoStateless.listen() },
	"http-hop":            func(args []string) error { return hop(args[0], nil) },
	"http-hop-logged": func(args []string) error {
		return logged(args[0], func(look func([]byte, bool) error) error { return hop(args[1], look) })
	},
	"http-stdio": hopToStdio,
}

// echo is a server with a tool that returns its text. It looks for the parts of a message where this program's client puts
// them: what it costs is in every number.
func echo(in io.Reader, out io.Writer) error {
	manyAtOnce()
	return echoHandshake.serve(in, out)
}

// manyAtOnce is for a peer on one CPU. There the runtime runs one goroutine, and a thread that waits in a read keeps its place until
// it is taken away by a watch that wakes up every some 20 µs, in the time of others. That would be in every number, now and then.
func manyAtOnce() { runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))) }

// echoer answers one method with hello, and every other request with its text behind begin.
type echoer struct{ method, hello, begin string }

var (
	echoHandshake = echoer{
		"initialize", `,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}}`, textBegin,
	}
	// echoStateless is for those who speak 2026-07-28.
	echoStateless = echoer{
		"server/discover", `,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}`,
		strings.Replace(textBegin, "{", `{"resultType":"complete",`, 1),
	}
)

func (e echoer) serve(in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 64<<10)
	var line, answer []byte
	for {
		var err error
		if line, err = readLine(r, line[:0]); err != nil {
			return eof(err)
		}
		if answer = e.answer(answer[:0], line); len(answer) == 0 {
			continue
		}
		if _, err := out.Write(answer); err != nil {
			return err
		}
	}
}

// answer appends the answer to a message, if there is one. Members may stand in any order.
func (e echoer) answer(to, line []byte) []byte {
	id := idOf(line)
	if id == "" {
		return to
	}
	to = append(append(to, callBegin...), id...)
	if bytes.Contains(line, []byte(`"method":"`+e.method+`"`)) {
		return append(append(to, e.hello...), '\n')
	}
	_, text, _ := bytes.Cut(line, []byte(callText))
	text = text[:max(bytes.Index(text, []byte(`"}`)), 0)] // which stands nowhere in the texts of this program
	return append(append(append(to, e.begin...), text...), textEnd...)
}

func eof(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// copyLines is the least that can stand between: it starts the command and copies lines both ways.
func copyLines(args []string, blocking bool, look func(line []byte, requests bool) error) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	in, out, err := childPipes(cmd, blocking)
	if err != nil {
		return err
	}
	go func() {
		copyTo(in, os.Stdin, func(line []byte) error { return looked(look, line, true) })
		in.Close()
	}()
	return errors.Join(copyTo(os.Stdout, out, func(line []byte) error { return looked(look, line, false) }), cmd.Wait())
}

func looked(look func(line []byte, requests bool) error, line []byte, requests bool) error {
	if look == nil {
		return nil
	}
	return look(line, requests)
}

// copyLogged is the least that a guard with a log can be on stdio: the copier, and what is logged.
func copyLogged(args []string) error {
	manyAtOnce()
	return logged(args[0], func(look func([]byte, bool) error) error { return copyLines(args[1:], true, look) })
}

// logged runs what passes messages on with what looks at each as the least guard does: a strict scan, and one write to a file for each request, of
// as many bytes as the guard's records have.
func logged(file string, run func(look func(line []byte, requests bool) error) error) error {
	log, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	record := bytes.Repeat([]byte("x"), 900)
	return run(func(line []byte, requests bool) error {
		_, err := wire.Scan(bytes.Clone(bytes.TrimSuffix(line, []byte("\n"))), wire.Strict)
		if err == nil && requests {
			_, err = log.Write(record)
		}
		return err
	})
}

// childPipes starts cmd with pipes to its standard input and output: Go's own, or blocking ones.
func childPipes(cmd *exec.Cmd, blocking bool) (in io.WriteCloser, out io.Reader, err error) {
	if !blocking {
		if in, err = cmd.StdinPipe(); err != nil {
			return nil, nil, err
		}
		if out, err = cmd.StdoutPipe(); err != nil {
			return nil, nil, err
		}
		return in, out, cmd.Start()
	}
	inR, inW, err := pipe()
	if err != nil {
		return nil, nil, err
	}
	outR, outW, err := pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.Stdin, cmd.Stdout = inR, outW
	err = cmd.Start()
	inR.Close()
	outW.Close()
	return inW, outR, err
}

func copyTo(w io.Writer, from io.Reader, look func(line []byte) error) error {
	r := bufio.NewReaderSize(from, 64<<10)
	var line []byte
	for {
		var err error
		if line, err = readLine(r, line[:0]); err != nil {
			return eof(err)
		}
		if err := look(line); err != nil {
			return err
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
}

// proxy connects two connections of the Go SDK.
func proxy(args []string) error {
	ctx := context.Background()
	client, err := new(mcp.StdioTransport).Connect(ctx)
	if err != nil {
		return err
	}
	server, err := (&mcp.CommandTransport{Command: exec.Command(args[0], args[1:]...)}).Connect(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	go pump(ctx, client, server)
	return pump(ctx, server, client)
}

func pump(ctx context.Context, to, from mcp.Connection) error {
	defer to.Close()
	for {
		m, err := from.Read(ctx)
		if err != nil {
			return eof(err)
		}
		if err := to.Write(ctx, m); err != nil {
			return err
		}
	}
}

// edges is the guard without its stages: what reading, scanning and passing on cost alone.
func edges(args []string) error {
	server := transport.NewProcess(func() (transport.Command, error) {
		return transport.Command{Args: args}, nil
	}, transport.ProcessOptions{})
	defer server.Close()
	return transport.ServeStdio(context.Background(), os.Stdin, os.Stdout, server, transport.StdioOptions{})
}
