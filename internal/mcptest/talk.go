package mcptest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// TalkFailed is the exit code of Talk for a talk that did not go as it is written.
const TalkFailed = 99

// Talk is a program: it starts a command and talks to it as an MCP client does, as the file args[0] says; the command is
// the rest of args. What is said and answered is printed on out, with the notifications that come meanwhile, and what the command
// says on its standard error goes to errw. Every wait ends with what is waited for, so a talk needs no pauses. It returns the exit code of the command, or
// TalkFailed. A line of a talk is one of
//
//	# a remark
//	hello [URI…]        the handshake, and the list of tools; with URIs as a client that has these roots
//	roots [URI…]        the client has other roots from now on, and says so
//	call TOOL [ARGS]    calls a tool, ARGS is a JSON object, and waits for the answer
//	request M [PARAMS]  the same with any other method
//	begin TOOL [ARGS]   calls a tool, and does not wait
//	wait                waits for the answer to what was begun
//	person RESULT       before hello: the client can ask its person, who always answers like this
//	= PATTERN           the answer was a result, and its text matches (what no tool answered is its own text)
//	! PATTERN           the answer was an error or a refusal, and its text matches
//	heard PATTERN       waits for a notification that matches
//	stdout PATTERN      waits for a line that matches, of a command that is no server
//	stderr PATTERN      waits for a line on standard error that matches
//	$ COMMAND           runs a command in a shell, which must succeed
//	interrupt           sends the command an interrupt, and waits for its end
//	kill                kills the command, and waits for its end
//
// PATTERN is a regular expression in which "." is any character, also the end of a line. ${NAME} is the value of an
// environment variable; in a pattern it stands for itself.
func Talk(args []string, out, errw io.Writer) int {
	if len(args) < 2 {
		fmt.Fprintln(errw, "usage: client TALK COMMAND [ARG…]")
		return 2
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		fmt.Fprintln(errw, err)
		return 2
	}
	code, err := talk(string(text), args[1:], out, errw)
	if err != nil {
		fmt.Fprintf(errw, "client: %s:%v\n", args[0], err)
		return TalkFailed
	}
	return code
}

func talk(text string, command []string, out, errw io.Writer) (int, error) {
	cmd := exec.Command(command[0], command[1:]...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	t := &talker{cmd: cmd, out: out, in: stdin, stdout: lines(stdout, nil), stderr: lines(stderr, errw)}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if err := t.play(line); err != nil {
			cmd.Process.Kill()
			t.end()
			return 0, fmt.Errorf("%d: %s: %w", number, line, err)
		}
	}
	return t.end(), nil
}

// lines returns the lines of r as they come, and copies them to w.
func lines(r io.Reader, w io.Writer) <-chan string {
	c := make(chan string, 1024)
	go func() {
		defer close(c)
		s := bufio.NewReader(r)
		for {
			line, err := s.ReadString('\n')
			if line != "" {
				if w != nil {
					io.WriteString(w, line)
				}
				c <- strings.TrimSuffix(line, "\n")
			}
			if err != nil {
				return
			}
		}
	}()
	return c
}

// talker is the client of one talk.
type talker struct {
	cmd            *exec.Cmd
	in             io.WriteCloser
	out            io.Writer
	stdout, stderr <-chan string

	id     int
	roots  []string
	person json.RawMessage // what the person answers; nil when nobody can be asked
	heard  []string        // notifications that nobody waited for yet
	answer struct {
		failed bool
		text   string
	}
}

var errEnded = errors.New("the command ended")

func next(c <-chan string) (string, error) {
	select {
	case line, ok := <-c:
		if !ok {
			return "", errEnded
		}
		return line, nil
	case <-time.After(Patience):
		return "", fmt.Errorf("nothing came within %v", Patience)
	}
}

// end closes the command's input and waits for its end.
func (t *talker) end() int {
	t.in.Close()
	for _, c := range []<-chan string{t.stdout, t.stderr} {
		for line := range c {
			if c == t.stdout {
				fmt.Fprintln(t.out, line)
			}
		}
	}
	t.cmd.Wait() // the code says it
	return t.cmd.ProcessState.ExitCode()
}

func (t *talker) play(line string) error {
	verb, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	if !slices.Contains([]string{"=", "!", "heard", "stdout", "stderr"}, verb) {
		rest = variable.ReplaceAllStringFunc(rest, value)
		if verb != "$" {
			fmt.Fprintf(t.out, "> %s\n", strings.TrimSpace(verb+" "+rest))
		}
		return t.do(verb, rest)
	}
	pattern, err := regexp.Compile("(?s)" + variable.ReplaceAllStringFunc(rest, func(m string) string { return regexp.QuoteMeta(value(m)) }))
	if err != nil {
		return err
	}
	switch verb {
	case "=", "!":
		if t.answer.failed != (verb == "!") || !pattern.MatchString(t.answer.text) {
			return fmt.Errorf("the answer is %q", t.answer.text)
		}
		return nil
	case "heard":
		return t.hear(pattern)
	case "stdout":
		return find(t.stdout, pattern)
	default:
		return find(t.stderr, pattern)
	}
}

var variable = regexp.MustCompile(`\$\{[A-Za-z_]+\}`)

func value(reference string) string { return os.Getenv(reference[2 : len(reference)-1]) }

func find(c <-chan string, pattern *regexp.Regexp) error {
	for {
		line, err := next(c)
		if err != nil || pattern.MatchString(line) {
			return err
		}
	}
}

func (t *talker) do(verb, rest string) error {
	switch verb {
	case "hello":
		t.roots = strings.Fields(rest)
		capabilities := object{}
		if len(t.roots) > 0 {
			capabilities["roots"] = object{"listChanged": true}
		}
		if t.person != nil {
			capabilities["elicitation"] = object{}
		}
		if err := t.request("initialize", object{
			"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": object{"name": "client", "version": "1"},
		}); err != nil || t.answer.failed {
			return errors.Join(err, t.refused())
		}
		if err := t.send(object{"method": "notifications/initialized"}); err != nil {
			return err
		}
		if err := t.request("tools/list", object{}); err != nil {
			return err
		}
		return t.refused()
	case "roots":
		t.roots = strings.Fields(rest)
		return t.send(object{"method": "notifications/roots/list_changed"})
	case "call":
		tool, args := withObject(rest)
		return t.show(t.request("tools/call", object{"name": tool, "arguments": args}))
	case "begin":
		tool, args := withObject(rest)
		t.id++
		return t.send(object{"id": t.id, "method": "tools/call", "params": object{"name": tool, "arguments": args}})
	case "wait":
		return t.show(t.await())
	case "person":
		t.person = json.RawMessage(rest)
		return nil
	case "request":
		method, params := withObject(rest)
		return t.show(t.request(method, params))
	case "$":
		fmt.Fprintf(t.out, "$ %s\n", rest)
		cmd := exec.Command("sh", "-c", rest)
		text, err := cmd.CombinedOutput()
		t.out.Write(text)
		return err
	case "interrupt", "kill":
		var signal os.Signal = os.Interrupt
		if verb == "kill" {
			signal = os.Kill
		}
		if err := t.cmd.Process.Signal(signal); err != nil {
			return err
		}
		for {
			line, err := next(t.stdout)
			if err == errEnded {
				return nil
			} else if err != nil {
				return err
			}
			fmt.Fprintln(t.out, line)
		}
	}
	return errors.New("no line of a talk begins like this")
}

// withObject splits a line into a word and the JSON object behind it, which may be left out.
func withObject(line string) (word string, object json.RawMessage) {
	word, text, _ := strings.Cut(line, " ")
	if text == "" {
		text = "{}"
	}
	return word, json.RawMessage(text)
}

// show prints the answer to a request, unless the request failed with err.
func (t *talker) show(err error) error {
	if err != nil {
		return err
	}
	word := "ok"
	if t.answer.failed {
		word = "refused"
	}
	_, err = fmt.Fprintf(t.out, "%s: %s\n", word, t.answer.text)
	return err
}

func (t *talker) refused() error {
	if t.answer.failed {
		return errors.New(t.answer.text)
	}
	return nil
}

func (t *talker) send(m object) error {
	m["jsonrpc"] = "2.0"
	return json.NewEncoder(t.in).Encode(m)
}

type talkMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct{ Message string }
}

// request sends a request, and waits for its answer while it answers what the server asks.
func (t *talker) request(method string, params any) error {
	t.id++
	if err := t.send(object{"id": t.id, "method": method, "params": params}); err != nil {
		return err
	}
	return t.await()
}

// await waits for the answer to the last request while it answers what the server asks.
func (t *talker) await() error {
	for {
		m, line, err := t.receive()
		switch {
		case err != nil:
			return err
		case m.Method != "":
			t.heard = append(t.heard, line)
		case string(m.ID) == fmt.Sprint(t.id):
			t.take(m)
			return nil
		default:
			return fmt.Errorf("an answer to nothing came: %s", line)
		}
	}
}

// receive returns the next message that is no question.
func (t *talker) receive() (talkMessage, string, error) {
	for {
		line, err := next(t.stdout)
		if err != nil {
			return talkMessage{}, "", err
		}
		var m talkMessage
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			return m, line, fmt.Errorf("no message came: %s", line)
		}
		if m.Method == "" {
			return m, line, nil
		}
		if m.ID == nil {
			fmt.Fprintf(t.out, "< %s\n", line)
			return m, line, nil
		}
		reply := object{"id": m.ID}
		switch m.Method {
		case "roots/list":
			list := []object{}
			for _, uri := range t.roots {
				list = append(list, object{"uri": uri})
			}
			reply["result"] = object{"roots": list}
		case "ping":
			reply["result"] = object{}
		case "elicitation/create":
			fmt.Fprintf(t.out, "< %s\n", line)
			reply["result"] = t.person
		default:
			reply["error"] = object{"code": -32601, "message": "there is no " + m.Method}
		}
		if err := t.send(reply); err != nil {
			return m, line, err
		}
	}
}

// take keeps an answer: the text that a tool gave, or what else came as it is.
func (t *talker) take(m talkMessage) {
	if m.Error != nil {
		t.answer.failed, t.answer.text = true, m.Error.Message
		return
	}
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	if json.Unmarshal(m.Result, &result) != nil || result.Content == nil {
		t.answer.failed, t.answer.text = false, string(m.Result)
		return
	}
	var texts []string
	for _, c := range result.Content {
		texts = append(texts, c.Text)
	}
	t.answer.failed, t.answer.text = result.IsError, strings.Join(texts, "\n")
}

func (t *talker) hear(pattern *regexp.Regexp) error {
	for {
		for i, line := range t.heard {
			if pattern.MatchString(line) {
				t.heard = slices.Delete(t.heard, i, i+1)
				return nil
			}
		}
		m, line, err := t.receive()
		switch {
		case err != nil:
			return err
		case m.Method == "":
			return fmt.Errorf("an answer to nothing came: %s", line)
		}
		t.heard = append(t.heard, line)
	}
}
