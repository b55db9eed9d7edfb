package streamable

import (
	"bytes"
	"net/http"
	"sync"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// catalog knows from the server's list which arguments of its tools are mirrored into headers. The zero value knows of none.
type catalog struct {
	mu    sync.Mutex
	tools map[string][]param
}

// maxTools is how many tools with mirrored arguments are known.
const maxTools = 10_000

// mirror returns the headers that say what a stateless request is.
func (c *catalog) mirror(m *wire.Message) http.Header {
	h := http.Header{headerMethod: {encodeValue(m.Method())}}
	name, ok := mirrored(m)
	if ok {
		h[headerName] = []string{encodeValue(name)}
	}
	if m.Method() != "tools/call" {
		return h
	}
	c.mu.Lock()
	params := c.tools[name]
	c.mu.Unlock()
	arguments, _ := wire.Get(m.Params(), "arguments")
	for _, p := range params {
		if v, ok := p.value(arguments); ok {
			h[p.header] = []string{encodeValue(v)}
		}
	}
	return h
}

// learn reads a page of the list of tools, and takes the tools out that must not be called over HTTP: those that say in a wrong
// way what of them is mirrored.
func (c *catalog) learn(req, m *wire.Message, report func(format string, args ...any)) *wire.Message {
	list, _ := wire.Get(m.Result(), "tools")
	kept, dropped := []byte{'['}, false
	c.mu.Lock()
	if _, more := wire.Get(req.Params(), "cursor"); !more || c.tools == nil {
		c.tools = map[string][]param{}
	}
	var wrong []error
	for tool := range wire.Items(list) {
		name := wire.GetString(tool, "name")
		schema, _ := wire.Get(tool, "inputSchema")
		params, err := mirroredParams(schema)
		if err != nil {
			wrong = append(wrong, &badTool{name, err})
			dropped = true
			continue
		}
		if len(params) > 0 && len(c.tools) < maxTools {
			c.tools[name] = params
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, tool...)
	}
	c.mu.Unlock()
	for _, err := range wrong {
		report("%v", err)
	}
	if !dropped {
		return m
	}
	return m.WithResult(wire.SetMember(m.Result(), append(kept, ']'), "tools"))
}

type badTool struct {
	name string
	err  error
}

func (e *badTool) Error() string {
	return "a tool of the server was left out, which cannot be called over HTTP: " + string(wire.Quote(e.name[:min(len(e.name), 100)])) + ": " + e.err.Error()
}

// maxPages is how many pages of a list of tools are fetched for one call.
const maxPages = 50

// mirrors takes a refusal of a call whose headers are not what the server expects. Its list of tools says what those are: it
// is fetched, and the call, which the server has refused, is sent once more. It reports whether it is.
func (l *Link) mirrors(p *post, m *wire.Message) bool {
	code, _ := wire.Get(m.Error(), "code")
	if string(code) != "-32020" || p.m.Method() != "tools/call" || p.mirrored || !stateless(p.m) {
		return false
	}
	p.mirrored = true
	before := l.tools.mirror(p.m)
	cursor := []byte(nil)
	for range maxPages {
		params := wire.SetMember(nil, wire.DeleteMember(p.m.Meta(), "progressToken"), "_meta")
		if cursor != nil {
			params = wire.SetMember(params, cursor, "cursor")
		}
		list := wire.NewRequest(exchange.NewID(), "tools/list", params)
		page, err := l.fetch(p, list)
		if err != nil {
			return false
		}
		l.tools.learn(list, page, func(string, ...any) {})
		next, ok := wire.Get(page.Result(), "nextCursor")
		if !ok || string(next) == "null" || bytes.Equal(next, cursor) {
			break
		}
		cursor = bytes.Clone(next)
	}
	if sameHeaders(before, l.tools.mirror(p.m)) {
		return false
	}
	l.spawn(func() { l.run(p) })
	return true
}

func sameHeaders(a, b http.Header) bool {
	if len(a) != len(b) {
		return false
	}
	for name := range a {
		if a.Get(name) != b.Get(name) {
			return false
		}
	}
	return true
}
