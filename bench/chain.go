package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// chain is a client, and the processes between it and the echo server.
type chain struct {
	name string
	// exact says that nothing in the chain may change a byte; else only the id of an answer is checked, and that nothing is missing.
	exact bool

	cmd    *exec.Cmd
	in     *os.File
	out    *bufio.Reader
	close  func() error
	stderr bytes.Buffer
	line   []byte // the last answer
	id     int
}

// startChain starts a command and shakes hands with the server behind it. The caller closes the chain.
func (b *bench) startChain(name string, exact bool, args ...string) (*chain, error) {
	c, err := b.startCommand(args...)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	c.name, c.exact = name, exact
	if err := c.handshake(); err != nil {
		c.end()
		return nil, fmt.Errorf("shaking hands through %s: %w\n%s", name, err, &c.stderr)
	}
	return c, nil
}

// startStateless starts a command for a client of 2026-07-28, which shakes no hands.
func (b *bench) startStateless(name string, exact bool, args ...string) (*chain, error) {
	c, err := b.startCommand(args...)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	c.name, c.exact = name, exact
	return c, nil
}

// startCommand starts a command with blocking pipes to this program, so that its own waiting is as short as it can be.
func (b *bench) startCommand(args ...string) (*chain, error) {
	inR, inW, err := pipe()
	if err != nil {
		return nil, err
	}
	outR, outW, err := pipe()
	if err != nil {
		inR.Close()
		inW.Close()
		return nil, err
	}
	c := &chain{cmd: exec.Command(args[0], args[1:]...), in: inW, out: bufio.NewReaderSize(outR, 64<<10), close: outR.Close, id: firstID}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = inR, outW, &c.stderr
	c.cmd.Dir = b.root
	c.cmd.Env = append(os.Environ(), "HOME="+b.home, "XDG_CONFIG_HOME="+b.home, "XDG_STATE_HOME="+b.home)
	err = c.cmd.Start()
	inR.Close()
	outW.Close()
	if err != nil {
		inW.Close()
		outR.Close()
		return nil, err
	}
	return c, nil
}

// end closes the client's end and waits for the processes to end.
func (c *chain) end() error {
	c.in.Close()
	err := c.cmd.Wait()
	return errors.Join(err, c.close())
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
	`"clientInfo":{"name":"bench","version":"1"}}}` + "\n"

func (c *chain) handshake() error {
	if _, err := io.WriteString(c.in, initialize); err != nil {
		return err
	}
	if err := c.read(); err != nil {
		return err
	}
	if !bytes.Contains(c.line, []byte(`"serverInfo":`)) {
		return fmt.Errorf("initialize is answered %.200q", c.line)
	}
	_, err := io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	return err
}

func (c *chain) read() (err error) {
	c.line, err = readLine(c.out, c.line[:0])
	return err
}

// call sends a call with an id that was never used, and returns how long its answer took.
func (c *chain) call(p *call) (time.Duration, error) {
	c.id++
	p.setID(c.id)
	began := time.Now()
	if _, err := c.in.Write(p.request); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", c.name, err, &c.stderr)
	}
	if err := c.read(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", c.name, err, &c.stderr)
	}
	took := time.Since(began)
	if c.exact && !bytes.Equal(c.line, p.answer) || len(c.line) < len(p.answer) || !bytes.HasPrefix(c.line, p.answer[:len(callBegin)+idDigits]) {
		return 0, fmt.Errorf("%s: %.200q is answered with %d bytes, want %d or more: %.200q", c.name, p.request, len(c.line), len(p.answer), c.line)
	}
	return took, nil
}

// firstID is smaller than every id of a call, and has as many digits.
const firstID = 1_000_000

const idDigits = len("1000000")

// call is a call of the echo tool and its answer, with the newlines.
type call struct{ request, answer []byte }

const (
	callBegin = `{"jsonrpc":"2.0","id":`
	callText  = `"text":"`
	textBegin = `,"result":{"content":[{"type":"text","text":"`
	textEnd   = `"}]}}` + "\n"
)

// newCall returns a call of about size bytes: a piece of source text, as a JSON string. Path, if it is not "", is an
// argument of its own.
func newCall(size int, path string) *call {
	const source = `\tif err := doc.Write(ctx, \"name\"); err != nil {\n\t\treturn fmt.Errorf(\"writing %q: %w\", name, err)\n\t}\n`
	head := fmt.Sprintf(`%s%d,"method":"tools/call","params":{"name":"echo","arguments":{`, callBegin, firstID)
	if path != "" {
		head += `"path":` + strconv.Quote(path) + `,`
	}
	head += callText
	const tail = `"}}}` + "\n"
	n := size - len(head) - len(tail)
	text := bytes.Repeat([]byte(source), n/len(source))
	text = append(text, bytes.Repeat([]byte{'x'}, n-len(text))...)
	c := &call{request: []byte(head), answer: fmt.Appendf(nil, "%s%d%s", callBegin, firstID, textBegin)}
	c.request = append(append(c.request, text...), tail...)
	c.answer = append(append(c.answer, text...), textEnd...)
	return c
}

func (p *call) setID(id int) {
	for _, b := range [][]byte{p.request, p.answer} {
		strconv.AppendInt(b[:len(callBegin)], int64(id), 10)
	}
}

// readLine appends the next line, with its newline, to buf.
func readLine(r *bufio.Reader, buf []byte) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		buf = append(buf, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return buf, err
		}
	}
}

// guarded is the command line of the guard in front of the echo server. Log is "off" or a directory below dir.
func (b *bench) guarded(log string) []string { return append(b.guardedBy(log), "echo") }

// guardedBy is that with further options, and without which server this program is to be.
func (b *bench) guardedBy(log string, options ...string) []string {
	if log != "off" {
		log = filepath.Join(b.dir, log)
	}
	args := append([]string{b.guard, "run", "--preset", "boundary", "--root", b.root, "--log", log}, options...)
	return append(args, "--", b.self)
}
