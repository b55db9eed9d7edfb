package gosdk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// longestQuestion is how long a message over HTTP may be in which questions are put right. Messages that ask are short.
const longestQuestion = 256 << 10

// tolerant makes a transport bring questions in the one form that the SDK reads: with params, which the specification
// leaves out in its own example. Over HTTP that is done to the text of a response, since a connection of the SDK's own
// kind has to be one for the headers to be right.
func tolerant(t mcp.Transport) mcp.Transport {
	if http, ok := t.(*mcp.StreamableClientTransport); ok {
		c := *http
		c.HTTPClient = tolerantHTTP(c.HTTPClient)
		return &c
	}
	return transport{t}
}

type transport struct{ mcp.Transport }

func (t transport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil || fmt.Sprintf("%T", c) == "*mcp.streamableClientConn" {
		return c, err
	}
	return connection{c}, nil
}

type connection struct{ mcp.Connection }

func (c connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Response); ok {
		r.Result = withParams(r.Result)
	}
	return m, err
}

// withParams gives each question of a result params, if it has none. What is no result with questions is left as it is.
func withParams(result []byte) []byte {
	if !bytes.Contains(result, []byte(`"inputRequests"`)) {
		return result
	}
	var members, asks map[string]json.RawMessage
	if json.Unmarshal(result, &members) != nil || json.Unmarshal(members["inputRequests"], &asks) != nil {
		return result
	}
	changed := false
	for key, ask := range asks {
		var question map[string]json.RawMessage
		if json.Unmarshal(ask, &question) != nil || question == nil {
			return result
		}
		if p := question["params"]; p == nil || string(p) == "null" {
			question["params"] = json.RawMessage("{}")
			asks[key], changed = mustMarshal(question), true
		}
	}
	if !changed {
		return result
	}
	members["inputRequests"] = mustMarshal(asks)
	return mustMarshal(members)
}

// withParamsInMessage does it to a whole message.
func withParamsInMessage(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"inputRequests"`)) {
		return message
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(message, &members) != nil {
		return message
	}
	result := withParams(members["result"])
	if bytes.Equal(result, members["result"]) {
		return message
	}
	members["result"] = result
	return mustMarshal(members)
}

func mustMarshal(v map[string]json.RawMessage) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic("bug: writing what was read just now: " + err.Error())
	}
	return text
}

// tolerantHTTP returns a client that puts questions right in what it receives.
func tolerantHTTP(client *http.Client) *http.Client {
	if client == nil {
		client = http.DefaultClient
	}
	c := *client
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	c.Transport = roundTripper{c.Transport}
	return &c
}

type roundTripper struct{ http.RoundTripper }

func (t roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if kind != "application/json" && kind != "text/event-stream" {
		return res, nil
	}
	buffered := bufio.NewReaderSize(res.Body, longestQuestion)
	var reader io.Reader = buffered
	if kind == "text/event-stream" {
		reader = &events{from: buffered}
	} else if message, err := buffered.Peek(longestQuestion); errors.Is(err, io.EOF) {
		reader = bytes.NewReader(withParamsInMessage(message))
	}
	res.Body = body{reader, res.Body}
	res.ContentLength = -1
	res.Header.Del("Content-Length")
	return res, nil
}

type body struct {
	io.Reader
	io.Closer
}

// events is a stream of events, in which each message is one line.
type events struct {
	from *bufio.Reader
	long bool   // what comes goes on with a line that is too long to be a question
	line []byte // what is left of the last one
	err  error  // behind it
}

func (e *events) Read(p []byte) (int, error) {
	for len(e.line) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		begun := e.long
		e.line, e.err = e.from.ReadSlice('\n')
		if e.long = errors.Is(e.err, bufio.ErrBufferFull); e.long {
			e.err = nil
		}
		if data, ok := bytes.CutPrefix(e.line, []byte("data:")); ok && !begun && !e.long {
			data = bytes.TrimSpace(data)
			if fixed := withParamsInMessage(data); !bytes.Equal(fixed, data) {
				e.line = append(append([]byte("data: "), fixed...), '\n')
			}
		}
	}
	n := copy(p, e.line)
	e.line = e.line[n:]
	return n, nil
}
