package mcptest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
)

// Site is the server of Peer over HTTP, in the handshake revisions: each session has one of its own. It is closed by its owner.
type Site struct {
	*httptest.Server
	// Metadata, if set, is the authorization server that it names.
	Metadata string

	mu       sync.Mutex
	token    string // what a client must show; "" for nothing
	sessions map[string]*siteSession
}

type siteSession struct {
	mu  sync.Mutex // one request at a time
	in  io.WriteCloser
	out chan []byte // what is said outside of a request comes with the next one
}

// NewSite starts one that wants a token, or with "" none.
func NewSite(token string) *Site {
	s := &Site{token: token, sessions: map[string]*siteSession{}}
	s.start()
	return s
}

// start starts it when all is said that a request needs to know.
func (s *Site) start() {
	s.Server = httptest.NewUnstartedServer(s)
	s.Start()
}

// NewSecureSite starts one over TLS, with a certificate that no machine trusts by itself: it is returned, as PEM.
func NewSecureSite() (site *Site, certificate []byte) {
	s := &Site{sessions: map[string]*siteSession{}}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that go away for it
	s.StartTLS()
	return s, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// SetToken says what a client must show from now on.
func (s *Site) SetToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// Close ends it, and its sessions.
func (s *Site) Close() {
	s.mu.Lock()
	for _, one := range s.sessions {
		one.in.Close()
	}
	s.mu.Unlock()
	s.CloseClientConnections()
	s.Server.Close()
}

// ServeHTTP implements http.Handler.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	token := s.token
	s.mu.Unlock()
	switch {
	case s.Metadata != "" && r.URL.Path == "/.well-known/oauth-protected-resource/mcp":
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(object{"resource": s.URL + "/mcp", "authorization_servers": []string{s.Metadata}})
		return
	case token != "" && r.Header.Get("Authorization") != "Bearer "+token:
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "who asks?", http.StatusUnauthorized)
		return
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	var m peerMessage
	if err != nil || json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	one, id := s.session(r.Header.Get("Mcp-Session-Id"), m.Method == "initialize")
	if one == nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Mcp-Session-Id", id)
	if m.Method == "" || m.ID == nil {
		one.in.Write(append(body, '\n'))
		w.WriteHeader(http.StatusAccepted)
		return
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.in.Write(append(body, '\n'))
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		line, ok := <-one.out
		if !ok {
			return
		}
		w.Write(append(append([]byte("data: "), bytes.TrimSpace(line)...), "\n\n"...))
		w.(http.Flusher).Flush()
		var answer peerMessage
		if json.Unmarshal(line, &answer) == nil && answer.Method == "" && bytes.Equal(answer.ID, m.ID) {
			return
		}
	}
}

// session is the one with an id, or a new one; nil when there is none.
func (s *Site) session(id string, begins bool) (*siteSession, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !begins {
		return s.sessions[id], id
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	one := &siteSession{in: inW, out: make(chan []byte, 1000)}
	go func() {
		Peer(nil, inR, outW)
		outW.Close()
	}()
	go func() {
		defer close(one.out)
		for r := bufio.NewReader(outR); ; {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			one.out <- line
		}
	}()
	id = "session-" + strconv.Itoa(len(s.sessions)+1)
	s.sessions[id] = one
	return one, id
}
