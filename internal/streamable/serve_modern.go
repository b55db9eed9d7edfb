package streamable

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/modern"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/wire"
)

// firstStateless is the oldest revision without a handshake.
const firstStateless = "2026-07-28"

// modernPost takes a message of the stateless era. All its clients are one to what is behind, so each request gets an id, and a
// token for its progress, that no other has: the answer to one must not become that of another.
func (s *Server) modernPost(w http.ResponseWriter, r *http.Request, m *wire.Message) {
	refuse := func(status, code int, text string, data []byte) {
		answer(w, status, wire.NewError(m.ID(), code, "rootbound: "+text, data))
	}
	if m.Kind() == wire.Response {
		refuse(http.StatusBadRequest, wire.CodeInvalidRequest, "this revision has no responses of clients", nil)
		return
	}
	version, err := s.mirrors(r.Header, m)
	_, capable := object(m.Meta(), exchange.MetaCapabilities)
	said := wire.GetString(m.Meta(), exchange.MetaVersion)
	switch {
	case m.Kind() == wire.Request && modern.Removed(m.Method()): // whatever else it says
		refuse(http.StatusNotFound, wire.CodeMethodNotFound, m.Method()+" does not exist in this revision", nil)
		return
	case m.Kind() == wire.Request && (said == "" || !capable):
		refuse(http.StatusBadRequest, wire.CodeInvalidParams, fmt.Sprintf("_meta must have a string %q and an object %q", exchange.MetaVersion, exchange.MetaCapabilities), nil)
		return
	case err != nil:
		refuse(http.StatusBadRequest, codeHeaderMismatch, err.Error(), nil)
		return
	case version < firstStateless || !transport.IsModern(version):
		data := wire.SetMember([]byte(`{"supported":["`+firstStateless+`"]}`), wire.Quote(version), "requested")
		refuse(http.StatusBadRequest, codeUnsupportedVersion, "unsupported protocol version", data)
		return
	}
	if m.Kind() == wire.Notification {
		if m.Method() != "notifications/cancelled" { // which is said by closing the stream: an id alone says nothing of its client
			s.modern.Receive(m, nowhere{})
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	st := newStream(s, nil, 0)
	on := &mapped{stream: st, server: s, method: m.Method(), id: m.ID()}
	inner := on.inward(m)
	if isElsewhere(r) {
		inner = s.elsewhere(r, inner, "_meta", exchange.MetaCapabilities, "roots")
	}
	st.attach(r, -1)
	s.modern.Receive(inner, on)
	p := reply{w: w, r: r, status: modernStatus, prime: func() bool { return false }, header: func(http.Header) {}}
	if m.Method() == exchange.Listen {
		p.closing = func() {
			on.End(exchange.Result(&exchange.Request{Msg: inner, Era: exchange.Modern}, on.farewell()).Msg)
		}
	}
	st.serve(p)
	if !st.ending() { // its client is gone, which is how a request is cancelled
		params := wire.SetMember(wire.SetMember(nil, inner.ID(), "requestId"), []byte(`"the client closed the stream"`), "reason")
		s.modern.Receive(wire.NewNotification("notifications/cancelled", params), nowhere{})
	}
}

// ending reports whether the last message was put on the stream.
func (s *stream) ending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// elsewhere takes out of a message of a client on another machine that it has roots, and tells once that they count for nothing:
// its directories are not here.
func (s *Server) elsewhere(r *http.Request, m *wire.Message, declared ...string) *wire.Message {
	if _, has := wire.Get(m.Params(), declared...); !has {
		return m
	}
	if !s.told.Swap(true) {
		s.opt.Report("a client is on another machine (%s): the roots of such clients count for nothing here", r.RemoteAddr)
	}
	return m.WithParams(wire.DeleteMember(m.Params(), declared...))
}

func object(value []byte, path ...string) ([]byte, bool) {
	v, ok := wire.Get(value, path...)
	return v, ok && v[0] == '{'
}

// modernStatus is the status of an answer that is written alone.
func modernStatus(m *wire.Message) int {
	code, _ := wire.Get(m.Error(), "code")
	switch string(code) {
	case "-32601":
		return http.StatusNotFound
	case "-32020", "-32021", "-32022", "-32600", "-32700":
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// mirrors compares the headers of a request with what it says, and returns the revision that it is in.
func (s *Server) mirrors(h http.Header, m *wire.Message) (version string, err error) {
	request := m.Kind() == wire.Request
	said := wire.GetString(m.Meta(), exchange.MetaVersion)
	version, ok, err := one(h, headerVersion)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return "", fmt.Errorf("the header %s is missing", headerVersion)
	case said != "" && version != said:
		return "", fmt.Errorf("the header %s says %.60q and the message %.60q", headerVersion, version, said)
	}
	check := func(name, want string, needed bool) error {
		value, ok, err := one(h, name)
		switch {
		case err != nil:
			return err
		case !ok && needed:
			return fmt.Errorf("the header %s is missing", name)
		case !ok:
			return nil
		}
		got, err := decodeValue(value)
		if err != nil {
			return fmt.Errorf("reading the header %s: %w", name, err)
		}
		if got != want {
			return fmt.Errorf("the header %s says %.200q and the message %.200q", name, got, want)
		}
		return nil
	}
	if err := check(headerMethod, m.Method(), request); err != nil {
		return version, err
	}
	if name, ok := mirrored(m); ok {
		if err := check(headerName, name, request); err != nil {
			return version, err
		}
	} else if h[headerName] != nil && request {
		return version, fmt.Errorf("the header %s is there, and the message has no name", headerName)
	}
	if m.Method() != "tools/call" {
		return version, nil
	}
	args, _ := wire.Get(m.Params(), "arguments")
	for _, p := range s.params.of(wire.GetString(m.Params(), "name")) {
		if err := p.check(h, args); err != nil {
			return version, err
		}
	}
	return version, nil
}

// nowhere is the stream of what has no answer.
type nowhere struct{}

func (nowhere) Send(*wire.Message)   {}
func (nowhere) End(*wire.Message)    {}
func (nowhere) Refuse(*wire.Message) {}
func (nowhere) Open() bool           { return false }

// mapped is the stream of a stateless request, which is known under another id and another token for its progress to those
// behind.
type mapped struct {
	*stream
	server            *Server
	method            string
	id, inner         []byte
	token, innerToken []byte // nil for none
}

// inward returns the request as those behind get it.
func (s *mapped) inward(m *wire.Message) *wire.Message {
	s.inner = exchange.NewID()
	m = m.WithID(s.inner)
	if token, ok := wire.Get(m.Meta(), "progressToken"); ok {
		s.token, s.innerToken = bytes.Clone(token), exchange.NewID()
		m = m.WithParams(wire.SetMember(m.Params(), s.innerToken, "_meta", "progressToken"))
	}
	return m
}

// Send implements exchange.Stream.
func (s *mapped) Send(m *wire.Message) {
	if token, ok := wire.Get(m.Params(), "progressToken"); ok && s.token != nil && string(token) == string(s.innerToken) {
		m = m.WithParams(wire.SetMember(m.Params(), s.token, "progressToken"))
	}
	if id, ok := wire.Get(m.Meta(), exchange.MetaSubscriptionID); ok && string(id) == string(s.inner) {
		m = m.WithParams(wire.SetMember(m.Params(), s.id, "_meta", exchange.MetaSubscriptionID))
	}
	s.stream.Send(m)
}

// End implements exchange.Stream.
func (s *mapped) End(m *wire.Message) {
	if m == nil {
		s.stream.End(nil)
		return
	}
	if s.method == "tools/list" {
		s.server.params.learn(m.Result())
	}
	if id, ok := wire.Get(m.Result(), "_meta", exchange.MetaSubscriptionID); ok && string(id) == string(s.inner) {
		m = m.WithResult(wire.SetMember(m.Result(), s.id, "_meta", exchange.MetaSubscriptionID))
	}
	s.stream.End(m.WithID(s.id))
}

// Refuse implements exchange.Stream.
func (s *mapped) Refuse(m *wire.Message) { s.End(m) }

// farewell is the result of a subscription that the server ends.
func (s *mapped) farewell() []byte {
	return wire.SetMember([]byte(`{"resultType":"complete"}`), s.inner, "_meta", exchange.MetaSubscriptionID)
}

// maxAnnotated is how many tools with mirrored arguments are known.
const maxAnnotated = 4096

// annotated knows which arguments of tools are mirrored into headers, from the lists that the server gave.
type annotated struct {
	mu    sync.Mutex
	tools map[string][]param
}

func (c *annotated) of(tool string) []param {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tools[tool]
}

// learn takes in a page of the list of tools.
func (c *annotated) learn(result []byte) {
	tools, _ := wire.Get(result, "tools")
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.tools) == 0 && !bytes.Contains(tools, []byte(annotation)) {
		return
	}
	for tool := range wire.Items(tools) {
		name := wire.GetString(tool, "name")
		schema, _ := wire.Get(tool, "inputSchema")
		params, err := mirroredParams(schema) // with a wrong one it cannot be called over HTTP by those who mind
		switch {
		case err != nil || len(params) == 0:
			delete(c.tools, name)
		case len(c.tools) < maxAnnotated || c.tools[name] != nil:
			if c.tools == nil {
				c.tools = map[string][]param{}
			}
			c.tools[name] = params
		}
	}
}
