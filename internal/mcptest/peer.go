package mcptest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Peer is a program: a well-behaved handshake server on standard input and output. It ends with its input, or with the
// code that its tool exit is given. Its tools are
//
//	read {path}            the text of a file
//	write {path, content}  writes a file
//	roots {}               asks the client for the roots, and lists them
//	args {}                the arguments it was started with, its directory, and the variables PEER_…
//	exit {code}            ends the process, without an answer
//
// What it lists of them is what the file that the variable PEER_TOOLS names says, a JSON array, where there is one.
//
// When it is told that the roots changed, it asks for them, and says in a log message which they are.
func Peer(args []string, in io.Reader, out io.Writer) int {
	p := &peerServer{args: args, out: json.NewEncoder(out), waiting: map[string]json.RawMessage{}}
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m peerMessage
		if err := json.Unmarshal(line, &m); err != nil {
			fmt.Fprintf(os.Stderr, "peer: %v in %s", err, line)
			return 2
		}
		if code, end := p.receive(m); end {
			return code
		}
	}
}

type peerMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Version   string `json:"protocolVersion"`
		Name      string `json:"name"`
		Arguments struct {
			Path, Content string
			Code          int
		} `json:"arguments"`
	} `json:"params"`
	Result struct {
		Roots []struct{ URI, Name string } `json:"roots"`
	} `json:"result"`
	Error *struct{ Message string } `json:"error"`
}

type object map[string]any

type peerServer struct {
	args    []string
	out     *json.Encoder
	asked   int
	waiting map[string]json.RawMessage // the call that a question is for, nil for none, by the question's id
}

func (p *peerServer) send(m object) {
	m["jsonrpc"] = "2.0"
	p.out.Encode(m) // a client that does not read any more has closed our input, too
}

func (p *peerServer) answer(id json.RawMessage, result any) {
	p.send(object{"id": id, "result": result})
}

func (p *peerServer) text(id json.RawMessage, text string, err error) {
	if err != nil {
		text = err.Error()
	}
	p.answer(id, object{"content": []object{{"type": "text", "text": text}}, "isError": err != nil})
}

// receive takes a message; end says that the process is to end with code.
func (p *peerServer) receive(m peerMessage) (code int, end bool) {
	switch m.Method {
	case "initialize":
		p.answer(m.ID, object{
			"protocolVersion": m.Params.Version,
			"capabilities":    object{"tools": p.capability(), "logging": object{}},
			"serverInfo":      object{"name": "peer", "version": "1"},
		})
	case "tools/list":
		p.answer(m.ID, object{"tools": p.tools()})
	case "tools/call":
		return p.call(m)
	case "ping":
		p.answer(m.ID, object{})
	case "notifications/roots/list_changed":
		p.ask(nil)
	case "":
		p.told(m)
	default:
		if m.ID != nil {
			p.send(object{"id": m.ID, "error": object{"code": -32601, "message": "there is no " + m.Method}})
		}
	}
	return 0, false
}

// tools are those that the file PEER_TOOLS says, a JSON array, or what there is.
func (p *peerServer) tools() any {
	text, err := os.ReadFile(os.Getenv("PEER_TOOLS"))
	if err != nil {
		return peerTools
	}
	return json.RawMessage(text)
}

func (p *peerServer) capability() object {
	if os.Getenv("PEER_TOOLS") == "" {
		return object{}
	}
	return object{"listChanged": true}
}

var peerTools = []object{
	peerTool("read", "path"), peerTool("write", "path", "content"), peerTool("roots"), peerTool("args"), peerTool("exit", "code"),
}

func peerTool(name string, arguments ...string) object {
	properties := object{}
	for _, a := range arguments {
		properties[a] = object{"type": "string"}
		if a == "code" {
			properties[a] = object{"type": "integer"}
		}
	}
	return object{
		"name":        name,
		"inputSchema": object{"type": "object", "properties": properties, "required": append([]string{}, arguments...)},
		"annotations": object{"readOnlyHint": name != "write" && name != "exit"},
	}
}

func (p *peerServer) call(m peerMessage) (code int, end bool) {
	args := m.Params.Arguments
	switch m.Params.Name {
	case "read":
		text, err := os.ReadFile(args.Path)
		p.text(m.ID, string(text), err)
	case "write":
		p.text(m.ID, "written", os.WriteFile(args.Path, []byte(args.Content), 0o600))
	case "roots":
		p.ask(m.ID)
	case "args":
		p.text(m.ID, p.start(), nil)
	case "exit":
		return args.Code, true
	default:
		p.text(m.ID, "", fmt.Errorf("there is no tool %q", m.Params.Name))
	}
	return 0, false
}

// start says how the process was started, one thing a line.
func (p *peerServer) start() string {
	var lines []string
	for _, a := range p.args {
		lines = append(lines, "arg "+a)
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = err.Error()
	}
	lines = append(lines, "cwd "+dir)
	for _, v := range slices.Sorted(slices.Values(os.Environ())) {
		if strings.HasPrefix(v, "PEER_") {
			lines = append(lines, "env "+v)
		}
	}
	return strings.Join(lines, "\n")
}

// ask asks for the roots, for a call or for none.
func (p *peerServer) ask(call json.RawMessage) {
	p.asked++
	id := fmt.Sprintf("roots-%d", p.asked)
	p.waiting[id] = call
	p.send(object{"id": id, "method": "roots/list"})
}

// told takes the roots, and says to who wanted them which they are.
func (p *peerServer) told(m peerMessage) {
	var id string
	if json.Unmarshal(m.ID, &id) != nil {
		return
	}
	call, ok := p.waiting[id]
	if !ok {
		return
	}
	delete(p.waiting, id)
	var text string
	var err error
	if m.Error != nil {
		err = errors.New(m.Error.Message)
	}
	for _, r := range m.Result.Roots {
		text += strings.TrimSpace(r.URI+" "+r.Name) + "\n"
	}
	if call != nil {
		p.text(call, text, err)
		return
	}
	p.send(object{"method": "notifications/message", "params": object{"level": "info", "data": "the roots are " + text}})
}
