package peers

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// shim serves over HTTP what a command serves on standard input and output, so that a suite which speaks HTTP only can look at it. It is
// made for one client at a time, and adds nothing but what HTTP needs: a process for each session, and one for all requests without;
// streams; the status of an error; Host and Origin. What on stdio does not say which request it belongs to goes to the oldest one.
type shim struct {
	command func() *exec.Cmd

	mu        sync.Mutex
	sessions  map[string]*pipe
	stateless *pipe
	all       []*pipe
}

// pipe is one process.
type pipe struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	over chan struct{}

	mu   sync.Mutex
	n    int
	open []*asked    // the oldest first
	own  chan object // what belongs to no request
}

// asked is a request that the process has not answered.
type asked struct {
	id, inner, token json.RawMessage
	listens          bool
	out              chan object
}

type object = map[string]json.RawMessage

// field is a member of a member, empty when there is none.
func field(m object, path ...string) json.RawMessage {
	for i, name := range path {
		if i == len(path)-1 {
			return m[name]
		}
		inner := object{}
		json.Unmarshal(m[name], &inner)
		m = inner
	}
	return nil
}

// set is m with a member of a member replaced.
func set(m object, value json.RawMessage, path ...string) object {
	out := object{}
	for k, v := range m {
		out[k] = v
	}
	if len(path) > 1 {
		inner := object{}
		json.Unmarshal(m[path[0]], &inner)
		value, _ = json.Marshal(set(inner, value, path[1:]...))
	}
	out[path[0]] = value
	return out
}

func text(v json.RawMessage) (s string) {
	json.Unmarshal(v, &s)
	return s
}

// serveShim serves until close is called, which ends the processes by the end of their input.
func serveShim(command func() *exec.Cmd) (url string, close func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &shim{command: command, sessions: map[string]*pipe{}}
	server := &http.Server{Handler: s}
	go server.Serve(l)
	return fmt.Sprintf("http://%s/mcp", l.Addr()), func() {
		server.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, p := range s.all {
			p.end()
		}
	}, nil
}

// start starts a process. The caller holds mu.
func (s *shim) start() (*pipe, error) {
	p := &pipe{cmd: s.command(), over: make(chan struct{}), own: make(chan object, 1000)}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	s.all = append(s.all, p)
	go func() {
		defer close(p.over)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadBytes('\n')
			if err != nil {
				p.cmd.Wait()
				return
			}
			m := object{}
			if json.Unmarshal(line, &m) == nil {
				p.route(m)
			}
		}
	}()
	return p, nil
}

func (p *pipe) end() {
	p.in.Close()
	select {
	case <-p.over:
	case <-time.After(10 * time.Second):
		p.cmd.Process.Kill()
		<-p.over
	}
}

// ask writes a request under an id that no other has.
func (p *pipe) ask(m object) *asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	a := &asked{id: m["id"], inner: fmt.Appendf(nil, `"shim-%d"`, p.n), token: field(m, "params", "_meta", "progressToken"), out: make(chan object, 1000)}
	a.listens = text(m["method"]) == "subscriptions/listen"
	p.open = append(p.open, a)
	p.write(set(m, a.inner, "id"))
	return a
}

// write writes a message. The caller holds mu.
func (p *pipe) write(m object) {
	line, _ := json.Marshal(m)
	p.in.Write(append(line, '\n'))
}

func (p *pipe) tell(m object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id := field(m, "params", "requestId"); text(m["method"]) == "notifications/cancelled" {
		for _, a := range p.open {
			if string(a.id) == string(id) {
				m = set(m, a.inner, "params", "requestId")
			}
		}
	}
	p.write(m)
}

// forget forgets a request, and reports whether it was open.
func (p *pipe) forget(a *asked) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.open {
		if p.open[i] == a {
			p.open = append(p.open[:i:i], p.open[i+1:]...)
			return true
		}
	}
	return false
}

// route hands a message of the process to the stream it belongs to.
func (p *pipe) route(m object) {
	p.mu.Lock()
	var to *asked
	answer := m["method"] == nil
	subscription, token := field(m, "params", "_meta", metaSubscription), field(m, "params", "progressToken")
	for _, a := range p.open {
		switch {
		case answer && string(a.inner) == string(m["id"]):
			to = a
		case answer:
		case subscription != nil && string(a.inner) == string(subscription):
			to = a
			m = set(m, a.id, "params", "_meta", metaSubscription)
		case subscription != nil:
		case token != nil && string(a.token) == string(token):
			to = a
		case token == nil && to == nil && !a.listens:
			to = a
		}
	}
	p.mu.Unlock()
	switch {
	case to == nil:
		p.own <- m
	case answer:
		p.forget(to)
		if string(field(m, "result", "_meta", metaSubscription)) == string(to.inner) {
			m = set(m, to.id, "result", "_meta", metaSubscription)
		}
		to.out <- set(m, to.id, "id")
		close(to.out)
	default:
		to.out <- m
	}
}

const (
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
	metaRevision     = "io.modelcontextprotocol/protocolVersion"
)

// ServeHTTP implements http.Handler.
func (s *shim) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, _ := net.SplitHostPort(r.Host)
	origin := r.Header.Get("Origin")
	if host != "127.0.0.1" && host != "localhost" || origin != "" && !strings.Contains(origin, "://127.0.0.1") && !strings.Contains(origin, "://localhost") {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	s.mu.Lock()
	session := s.sessions[r.Header.Get("Mcp-Session-Id")]
	s.mu.Unlock()
	switch {
	case r.Method == http.MethodPost:
		s.post(w, r, session)
	case session == nil:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.Method == http.MethodDelete:
		s.mu.Lock()
		delete(s.sessions, r.Header.Get("Mcp-Session-Id"))
		s.mu.Unlock()
		session.end()
	default:
		events(w)
		for {
			select {
			case m := <-session.own:
				event(w, m)
			case <-session.over:
				return
			case <-r.Context().Done():
				return
			}
		}
	}
}

// refuseWith answers with an error.
func refuseWith(w http.ResponseWriter, status int, id json.RawMessage, code int, message string) {
	if id == nil {
		id = json.RawMessage("null")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, message)
}

func (s *shim) post(w http.ResponseWriter, r *http.Request, p *pipe) {
	m := object{}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		refuseWith(w, http.StatusBadRequest, nil, -32700, err.Error())
		return
	}
	header, said := r.Header.Get("MCP-Protocol-Version"), text(field(m, "params", "_meta", metaRevision))
	modern := said != "" || header >= "2026"
	s.mu.Lock()
	var err error
	switch {
	case modern && (said == "" || text(m["method"]) == "initialize"): // on stdio that is not of this era: it is alone, and takes none with it
		p, err = s.start()
	case modern && s.stateless == nil:
		s.stateless, err = s.start()
		fallthrough
	case modern:
		p = s.stateless
	case p == nil && text(m["method"]) == "initialize":
		if p, err = s.start(); err == nil {
			id := rand.Text()
			s.sessions[id] = p
			w.Header().Set("Mcp-Session-Id", id)
		}
	}
	s.mu.Unlock()
	switch {
	case err != nil:
		refuseWith(w, http.StatusInternalServerError, m["id"], -32603, err.Error())
		return
	case p == nil:
		refuseWith(w, http.StatusNotFound, m["id"], -32600, "there is no such session")
		return
	case modern && m["id"] != nil && header != said && said != "":
		refuseWith(w, http.StatusBadRequest, m["id"], -32020, "the header and the message name different revisions")
		return
	case m["id"] == nil || m["method"] == nil:
		p.tell(m)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	a := p.ask(m)
	for began := false; ; {
		select {
		case m, more := <-a.out:
			switch {
			case !more:
				return
			case !began && m["method"] == nil:
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(statusOf(modern, m))
				json.NewEncoder(w).Encode(m)
				return
			case !began:
				began = true
				events(w)
			}
			event(w, m)
		case <-p.over:
			return
		case <-r.Context().Done():
			if modern && p.forget(a) {
				p.mu.Lock()
				p.write(object{"jsonrpc": json.RawMessage(`"2.0"`), "method": json.RawMessage(`"notifications/cancelled"`), "params": fmt.Appendf(nil, `{"requestId":%s}`, a.inner)})
				p.mu.Unlock()
			}
			return
		}
	}
}

// statusOf is the status of an answer that is written alone.
func statusOf(modern bool, m object) int {
	switch code := string(field(m, "error", "code")); {
	case !modern:
	case code == "-32601":
		return http.StatusNotFound
	case code != "" && code != "-32603":
		return http.StatusBadRequest
	}
	return http.StatusOK
}

func events(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
}

func event(w http.ResponseWriter, m object) {
	data, _ := json.Marshal(m)
	fmt.Fprintf(w, "event: message\ndata: %s\n\n", data)
	w.(http.Flusher).Flush()
}
