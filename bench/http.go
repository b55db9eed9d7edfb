package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	httpRounds  = 9
	httpCalls   = 400
	loadClients = 64
	loadCalls   = 1000
	loadRounds  = 3
	idleStreams = 1000
)

const (
	laneHTTP         = "a server over HTTP, nothing between"
	laneHop          = "the least net/http hop before it"
	laneLogged       = "the least guard with a log before it"
	laneSessionURL   = "guard, a session, server over HTTP"
	laneStatelessURL = "guard, 2026-07-28, server over HTTP"
	laneStdio        = "the least net/http hop before a server on stdio"
	laneSession      = "guard, a session, server on stdio"
	laneStateless    = "guard, 2026-07-28, server on stdio"
)

// serveHTTP serves on a port of its own, and says where.
func serveHTTP(h http.HandlerFunc) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "listening on http://%s/mcp\n", l.Addr())
	return http.Serve(l, h)
}

// listen serves over HTTP.
func (e echoer) listen() error {
	return serveHTTP(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		answer := e.answer(nil, body)
		switch {
		case err != nil:
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case len(answer) == 0:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.Write(answer)
		}
	})
}

// hop is the least that can stand before a server over HTTP: it posts what was posted to it, and lets look look at it, if that is set.
func hop(url string, look func(message []byte, requests bool) error) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: loadClients}}
	return serveHTTP(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || looked(look, body, true) != nil {
			return
		}
		req, err := http.NewRequest(r.Method, url, bytes.NewReader(body))
		if err != nil {
			return
		}
		req.Header = r.Header
		resp, err := client.Do(req)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil || len(answer) > 0 && looked(look, answer, false) != nil {
			return
		}
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		w.Write(answer)
	})
}

// hopToStdio is the least that can stand between HTTP and a server on stdio: it hands what was posted to the server, and the
// answer to whoever waits for its id. It is given no id twice at a time.
func hopToStdio(args []string) error {
	in, out, err := childPipes(exec.Command(args[0], args[1:]...), true)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	waiting := map[string]chan []byte{}
	go func() {
		r := bufio.NewReaderSize(out, 64<<10)
		for {
			line, err := readLine(r, nil)
			if err != nil {
				return
			}
			mu.Lock()
			c := waiting[idOf(line)]
			mu.Unlock()
			if c != nil {
				c <- line
			}
		}
	}()
	return serveHTTP(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		id, c := idOf(body), make(chan []byte, 1)
		mu.Lock()
		waiting[id] = c
		_, err = in.Write(body)
		mu.Unlock()
		if err != nil {
			return
		}
		if bytes.Contains(body, []byte(`"method":"notifications/`)) {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answer := <-c
		mu.Lock()
		delete(waiting, id)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.Write(answer)
	})
}

// idOf finds the id of a message, or of the one in an event.
func idOf(line []byte) string {
	_, id, _ := bytes.Cut(line, []byte(`"id":`))
	return string(id[:max(bytes.IndexAny(id, ",}"), 0)])
}

// httpLane is a server that is called over HTTP.
type httpLane struct {
	name   string
	url    string
	header http.Header
	call   func(id int) []byte
	cmd    *exec.Cmd
	client *http.Client
	guard  string

	p50, p99, rate []float64 // of each round
}

var listensOn = regexp.MustCompile(`listening on (http://\S+)`)

// httpLane is a lane whose command was not started.
func (b *bench) httpLane(name string, args ...string) *httpLane {
	l := &httpLane{name: name, guard: b.guard, cmd: exec.Command(args[0], args[1:]...), header: http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
	}}
	l.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: loadClients}}
	l.cmd.Dir = b.root
	l.cmd.Env = append(os.Environ(), "HOME="+b.home, "XDG_CONFIG_HOME="+b.home, "XDG_STATE_HOME="+b.home)
	return l
}

// listen starts a command that says on standard error where it listens.
func (b *bench) listen(name string, args ...string) (*httpLane, error) {
	l := b.httpLane(name, args...)
	stderr, err := l.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := l.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	lines := bufio.NewScanner(stderr)
	var said []string
	for l.url == "" && lines.Scan() {
		said = append(said, lines.Text())
		if m := listensOn.FindStringSubmatch(lines.Text()); m != nil {
			l.url = m[1]
		}
	}
	go io.Copy(io.Discard, stderr)
	if l.url == "" {
		return nil, errors.Join(fmt.Errorf("%s does not listen: %q", name, said), l.end())
	}
	return l, nil
}

func (l *httpLane) end() error {
	l.client.CloseIdleConnections()
	l.cmd.Process.Signal(syscall.SIGTERM)
	err := l.cmd.Wait()
	if l.cmd.Args[0] != l.guard {
		return nil // it knows no other way to end
	}
	return err
}

// post posts a message and returns the answer and how long it took.
func (l *httpLane) post(header http.Header, body []byte) (*http.Response, []byte, time.Duration, error) {
	req, err := http.NewRequest(http.MethodPost, l.url, bytes.NewReader(body))
	if err != nil {
		return nil, nil, 0, err
	}
	req.Header = header
	began := time.Now()
	resp, err := l.client.Do(req)
	if err != nil {
		return nil, nil, 0, err
	}
	answer, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	return resp, answer, time.Since(began), err
}

// greet begins a session and returns the headers for its messages.
func (l *httpLane) greet() (http.Header, error) {
	h := l.header.Clone()
	h.Del("Mcp-Session-Id")
	resp, answer, _, err := l.post(h, []byte(initialize))
	if err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte("serverInfo")) {
		return nil, fmt.Errorf("%s: initialize got %.200q, %v", l.name, answer, err)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		h.Set("Mcp-Session-Id", id)
	}
	_, _, _, err = l.post(h, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"))
	return h, err
}

// prepare says what is called, and begins a session where there are sessions.
func (l *httpLane) prepare(c *call, stateless bool) (err error) {
	if !stateless {
		l.call = numbered(c.request)
		l.header, err = l.greet()
		return err
	}
	l.call = numbered(c.stateless().request)
	l.header.Set("Mcp-Protocol-Version", "2026-07-28")
	l.header.Set("Mcp-Method", "tools/call")
	l.header.Set("Mcp-Name", "echo")
	return nil
}

// one makes a call and checks its answer.
func (l *httpLane) one(h http.Header, id int) (time.Duration, error) {
	resp, answer, took, err := l.post(h, l.call(id))
	want := strconv.Itoa(id)
	if err != nil || resp.StatusCode != http.StatusOK || idOf(answer) != want || len(answer) < 900 {
		return 0, fmt.Errorf("%s: call %d got %.200q, %v", l.name, id, answer, err)
	}
	return took, nil
}

// block makes calls one after the other.
func (l *httpLane) block(id, calls int) error {
	took := make([]float64, 0, calls)
	for i := -calls / 8; i < calls; i++ {
		d, err := l.one(l.header, id+i)
		if err != nil {
			return err
		}
		if i >= 0 {
			took = append(took, d.Seconds())
		}
	}
	l.p50, l.p99 = append(l.p50, quantile(took, 0.5)), append(l.p99, quantile(took, 0.99))
	return nil
}

// sessions reports whether its clients have sessions.
func (l *httpLane) sessions() bool { return l.header.Get("Mcp-Session-Id") != "" }

// load has many clients call at once. Each has a session of its own where there are sessions.
func (l *httpLane) load(id int) error {
	headers := make([]http.Header, loadClients)
	for i := range headers {
		headers[i] = l.header
		if l.sessions() {
			h, err := l.greet()
			if err != nil {
				return err
			}
			headers[i] = h
		}
	}
	errs := make([]error, loadClients)
	var wg sync.WaitGroup
	began := time.Now()
	for i := range headers {
		wg.Go(func() {
			for n := range loadCalls {
				if _, err := l.one(headers[i], id+i*loadCalls+n); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	wg.Wait()
	l.rate = append(l.rate, loadClients*loadCalls/time.Since(began).Seconds())
	if l.sessions() {
		for _, h := range headers {
			req, err := http.NewRequest(http.MethodDelete, l.url, nil)
			if err != nil {
				return err
			}
			req.Header = h
			resp, err := l.client.Do(req)
			if err != nil {
				return err
			}
			resp.Body.Close()
		}
	}
	return errors.Join(errs...)
}

func (b *bench) httpLanes() (lanes []*httpLane, err error) {
	defer func() {
		if err != nil {
			for _, l := range lanes {
				l.end()
			}
		}
	}()
	plain := newCall(1<<10, "")
	run := func(server ...string) []string {
		return append([]string{b.guard, "run", "--preset", "boundary", "--listen", "127.0.0.1:0", "--max-sessions", strconv.Itoa(loadClients + 1), "--root", b.root, "--log", filepath.Join(b.dir, "log")}, server...)
	}
	at := map[string]string{} // where those listen that others stand before
	for _, o := range []struct {
		name      string
		args      func() []string
		stateless bool
	}{
		{laneHTTP, func() []string { return []string{b.self, "http-echo"} }, false},
		{"", func() []string { return []string{b.self, "http-echo-stateless"} }, true},
		{laneHop, func() []string { return []string{b.self, "http-hop", at[laneHTTP]} }, false},
		{laneLogged, func() []string {
			return []string{b.self, "http-hop-logged", filepath.Join(b.dir, "hop.log"), at[laneHTTP]}
		}, false},
		{laneSessionURL, func() []string { return run("--url", at[laneHTTP]) }, false},
		{laneStatelessURL, func() []string { return run("--url", at[""]) }, true},
		{laneStdio, func() []string { return []string{b.self, "http-stdio", b.self, "echo"} }, false},
		{laneSession, func() []string { return run("--", b.self, "echo") }, false},
		{laneStateless, func() []string { return run("--", b.self, "echo-stateless") }, true},
	} {
		l, err := b.listen(o.name, o.args()...)
		if err != nil {
			return lanes, err
		}
		at[o.name] = l.url
		lanes = append(lanes, l)
		if err := l.prepare(plain, o.stateless); err != nil {
			return lanes, err
		}
	}
	return lanes, nil
}

// overHTTP measures calls of 1 KB by HTTP on this machine, one after the other, and of many clients at once. A hop before a server over
// HTTP is the peer for all: to a server on stdio there is one connection less, which is what the other hop shows.
func overHTTP(b *bench) ([]result, error) {
	lanes, err := b.httpLanes()
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, l := range lanes {
			l.end()
		}
	}()
	id := firstID + httpCalls
	order := slices.DeleteFunc(slices.Clone(lanes), func(l *httpLane) bool { return l.name == "" })
	for range httpRounds {
		for _, l := range order {
			if err := l.block(id, httpCalls); err != nil {
				return nil, err
			}
			id += 2 * httpCalls
		}
		slices.Reverse(order)
	}
	for range loadRounds {
		for _, l := range order {
			if err := l.load(id); err != nil {
				return nil, err
			}
			id += loadClients * loadCalls
		}
		slices.Reverse(order)
	}
	var results []result
	named := map[string]*httpLane{}
	for _, l := range lanes {
		if named[l.name] = l; l.name == "" {
			continue
		}
		results = append(results, summary(l.name, "µs", scaled(l.p50, 1e6)), summary(l.name+", p99", "µs", scaled(l.p99, 1e6)),
			summary(fmt.Sprintf("%s, %d clients at once", l.name, loadClients), "calls/s", l.rate))
	}
	for _, p := range []struct {
		lane, peer string
		promised   bool
	}{
		{laneLogged, laneHop, false}, {laneSessionURL, laneHop, true}, {laneStatelessURL, laneHop, true}, {laneSession, laneHop, true}, {laneStateless, laneHop, true},
		{laneSession, laneStdio, false}, {laneStateless, laneStdio, false},
	} {
		l, least := named[p.lane], named[p.peer]
		more := make([]float64, len(l.p99))
		for i := range more {
			more[i] = (l.p99[i] - least.p99[i]) * 1e3
		}
		pair := l.name + " ÷ " + least.name
		p50, p99 := ratio(pair, l.p50, least.p50), summary(l.name+" − "+least.name+", p99", "ms", more)
		rate := ratio(fmt.Sprintf("%s, time of a call with %d clients at once", pair, loadClients), least.rate, l.rate)
		if p.promised {
			p50, p99 = p50.within(1.3), p99.within(1)
			if l.name != laneSession { // which has a process of the server for each client
				rate = rate.within(1 / 0.7)
			}
		}
		results = append(results, p50, p99, rate)
	}
	return results, nil
}

// numbered makes a call with an id.
func numbered(request []byte) func(int) []byte {
	return func(id int) []byte {
		body := bytes.Clone(request)
		strconv.AppendInt(body[:len(callBegin)], int64(id), 10)
		return body
	}
}

// httpSessions measures the memory of many idle sessions, each with a stream to its client.
func httpSessions(b *bench) ([]result, error) {
	l, err := b.listen("rootbound fs", b.guard, "fs", "--preset", "boundary", "--listen", "127.0.0.1:0", "--max-sessions", strconv.Itoa(idleStreams), "--log", filepath.Join(b.dir, "log"), b.root)
	if err != nil {
		return nil, err
	}
	defer l.end()
	before, err := memoryOf(l.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	at := strings.TrimSuffix(strings.TrimPrefix(l.url, "http://"), "/mcp")
	for range idleStreams {
		h, err := l.greet()
		if err != nil {
			return nil, err
		}
		c, err := net.Dial("tcp", at)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		fmt.Fprintf(c, "GET /mcp HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\nMcp-Session-Id: %s\r\n\r\n", at, h.Get("Mcp-Session-Id"))
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
			return nil, fmt.Errorf("a stream got %q, %v", line, err)
		}
	}
	time.Sleep(25 * time.Second) // idle is what it is when all of that is over
	after, err := memoryOf(l.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	return []result{
		summary("before the first session, resident", "MB", []float64{before.resident}),
		summary(fmt.Sprintf("%d idle sessions with a stream each, resident", idleStreams), "MB", []float64{after.resident}).within(60),
	}, nil
}
