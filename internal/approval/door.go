package approval

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rootbound/rootbound/internal/statefile"
)

const (
	// maxRequest is the longest request over the socket, in bytes.
	maxRequest = 64 << 10
	// maxArgs is the longest arguments that are sent over it.
	maxArgs = 1 << 20
	// maxVisitors is how many connections there are at once.
	maxVisitors = 64
	// patience is how long a visitor may take to say what it wants, and to read what it gets.
	patience = 5 * time.Second
)

// Dir returns the directory in which guards say where they can be reached: in the user's run-time directory, or where there is
// none, in the directory state, which is that of the program's own files.
func Dir(env func(string) string, state string) string {
	if dir := env("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "rootbound")
	}
	return filepath.Join(state, "run")
}

// card is the file in which a guard says where it can be reached. A confined server cannot read it.
type card struct {
	Server string    `json:"server"`
	PID    int       `json:"pid"`
	Since  time.Time `json:"since"`
	Socket string    `json:"socket"`
	Token  string    `json:"token"`
}

// Door is where answers arrive.
type Door struct {
	desk   *Desk
	server string
	dir    string // where guards are found
	own    string // a directory made for the socket alone, or ""
	card   string // the file
	token  string
	l      net.Listener
	report func(format string, args ...any)

	mu       sync.Mutex
	visitors map[net.Conn]bool
	closed   bool
	ended    chan struct{}
}

// Listen opens a socket for the answers to the questions of desk, and says in dir where. It follows whether guards are paused.
// Report is told what a person, and the log, should know.
func Listen(dir, server string, desk *Desk, report func(format string, args ...any)) (*Door, error) {
	if err := private(dir); err != nil {
		return nil, fmt.Errorf("making the directory for answers: %w", err)
	}
	b := make([]byte, 32)
	rand.Read(b)
	d := &Door{desk: desk, server: server, dir: dir, token: base64.RawURLEncoding.EncodeToString(b), report: report,
		visitors: map[net.Conn]bool{}, ended: make(chan struct{})}
	rand.Read(b) // names are seen by others: nothing of the token is in them
	name := strconv.Itoa(os.Getpid()) + "-" + base64.RawURLEncoding.EncodeToString(b[:6])[:6]
	rand.Read(b)
	var socket string
	var err error
	if d.l, socket, d.own, err = listen(dir, name, base64.RawURLEncoding.EncodeToString(b)); err != nil {
		return nil, fmt.Errorf("opening the socket for answers: %w", err)
	}
	text, err := json.Marshal(card{server, os.Getpid(), time.Now().UTC().Truncate(time.Second), socket, d.token})
	d.card = filepath.Join(dir, name+".json")
	if err == nil { // as a whole, and not on the disk: it is of no use after this run
		if err = os.WriteFile(d.card+".part", append(text, '\n'), 0o600); err == nil {
			err = os.Rename(d.card+".part", d.card)
		}
	}
	if err != nil {
		d.Close()
		return nil, fmt.Errorf("saying where answers arrive: %w", err)
	}
	d.look()
	go d.accept()
	go d.follow()
	return d, nil
}

// Follow makes a guard that takes no answers follow whether it is paused, until end is called.
func Follow(dir, server string, desk *Desk, report func(format string, args ...any)) (end func()) {
	d := &Door{desk: desk, server: server, dir: dir, report: report, ended: make(chan struct{})}
	d.look()
	go d.follow()
	return sync.OnceFunc(func() { close(d.ended) })
}

// private makes a directory that is for its user alone.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	return onlyMine(dir, info)
}

// Dir is the directory in which this guard says where it can be reached.
func (d *Door) Dir() string { return d.dir }

// Close takes no more answers, and takes away what says where they arrive.
func (d *Door) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	close(d.ended)
	for c := range d.visitors {
		c.Close()
	}
	d.mu.Unlock()
	err := d.l.Close()
	for _, path := range []string{d.card, d.own} {
		if path == "" {
			continue
		}
		if e := os.Remove(path); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

func (d *Door) accept() {
	for {
		c, err := d.l.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				select {
				case <-d.ended:
				case <-time.After(100 * time.Millisecond): // no descriptors are left, or the like
					continue
				}
			}
			return
		}
		d.mu.Lock()
		if d.closed || len(d.visitors) >= maxVisitors {
			d.mu.Unlock()
			c.Close()
			continue
		}
		d.visitors[c] = true
		d.mu.Unlock()
		go func() {
			d.receive(c)
			c.Close()
			d.mu.Lock()
			delete(d.visitors, c)
			d.mu.Unlock()
		}()
	}
}

// request is what a visitor wants: "watch" is told what is at the desk, with every change; "answer" answers; "look" looks
// now whether guards are paused.
type request struct {
	Token string `json:"token"`
	Do    string `json:"do"`
	ID    string `json:"id,omitempty"`
	Reply Reply  `json:"reply,omitzero"`
}

// response is what it gets.
type response struct {
	Error string `json:"error,omitempty"`
	State *State `json:"state,omitempty"`
}

func (d *Door) receive(c net.Conn) {
	c.SetDeadline(time.Now().Add(patience))
	who, err := visitor(c, d.guards())
	if err != nil {
		if say(c, response{Error: "refused: " + err.Error()}) == nil { // else it only looked whether somebody is there
			d.report("somebody who may not answer came to the socket for answers: %v", err)
		}
		return
	}
	line, err := bufio.NewReader(io.LimitReader(c, maxRequest)).ReadBytes('\n')
	if err != nil {
		return
	}
	var r request
	if json.Unmarshal(line, &r) != nil || subtle.ConstantTimeCompare([]byte(r.Token), []byte(d.token)) != 1 {
		d.report("somebody came to the socket for answers without its token: %s", who)
		say(c, response{Error: "refused: this is not the token of this guard"})
		return
	}
	switch r.Do {
	case "watch":
		d.watch(c)
	case "answer":
		var out response
		if err := d.desk.Answer(r.ID, r.Reply, ByTerminal, who); err != nil {
			out.Error = err.Error()
		}
		say(c, out)
	case "look":
		d.look()
		say(c, response{})
	default:
		say(c, response{Error: fmt.Sprintf("this guard does not know %q: it is of another version", r.Do)})
	}
}

// watch tells a visitor what is at the desk until it goes.
func (d *Door) watch(c net.Conn) {
	gone := make(chan struct{})
	go func() {
		c.SetReadDeadline(time.Time{})
		io.Copy(io.Discard, c)
		close(gone)
	}()
	for {
		s, changed := d.desk.State()
		for i := range s.Questions {
			if len(s.Questions[i].Args) > maxArgs {
				s.Questions[i].Args = nil
			}
		}
		c.SetWriteDeadline(time.Now().Add(patience))
		if say(c, response{State: &s}) != nil {
			return
		}
		select {
		case <-changed:
		case <-gone:
			return
		case <-d.ended:
			return
		}
	}
}

func say(c net.Conn, r response) error { return json.NewEncoder(c).Encode(r) }

// guards are the processes of all guards, whose servers may not answer.
func (d *Door) guards() []int {
	pids := []int{os.Getpid()}
	cards, _ := readCards(d.dir)
	for _, c := range cards {
		pids = append(pids, c.PID)
	}
	return pids
}

// readCards reads what guards say of themselves.
func readCards(dir string) (cards map[string]card, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	cards = map[string]card{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") || e.Name() == pausedName {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, err := readShort(path)
		var c card
		if err == nil && json.Unmarshal(text, &c) == nil && c.PID > 0 && c.Socket != "" {
			cards[path] = c
		}
	}
	return cards, nil
}

// maxShort is the longest file of these, in bytes.
const maxShort = 1 << 20

// readShort reads a file that somebody may have put there: no other than an ordinary one, which nobody waits for.
func readShort(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxShort:
		return nil, fmt.Errorf("%q is no file of at most %d bytes", path, maxShort)
	}
	return os.ReadFile(path)
}

// pausedName is the file that says which guards are paused.
const pausedName = "paused.json"

// pauses are the servers whose guards hold every call.
type pauses struct {
	All     bool     `json:"all,omitempty"`
	Servers []string `json:"servers,omitempty"`
}

func (p pauses) of(server string) bool {
	for _, s := range p.Servers {
		if s == server {
			return true
		}
	}
	return p.All
}

func readPauses(dir string) (p pauses, err error) {
	text, err := readShort(filepath.Join(dir, pausedName))
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	return p, err
}

// look looks whether the guard is paused. With a file that cannot be read it is.
func (d *Door) look() {
	p, err := readPauses(d.dir)
	paused := err != nil || p.of(d.server)
	was := d.desk.Paused()
	d.desk.Pause(paused)
	switch {
	case paused == was:
	case err != nil:
		d.report("every call is held, because it cannot be read whether it is paused: %v", err)
	case paused:
		d.report("paused: every call is held until `rootbound approve resume`")
	default:
		d.report("resumed: calls go on")
	}
}

// follow looks every second.
func (d *Door) follow() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.look()
		case <-d.ended:
			return
		}
	}
}

// Guard is a guard that can be reached.
type Guard struct {
	Server string
	PID    int
	Since  time.Time

	socket, token string
}

// Find returns the guards that can be reached. What says of one that is gone is taken away.
func Find(dir string) ([]Guard, error) {
	cards, err := readCards(dir)
	if err != nil {
		return nil, fmt.Errorf("looking for guards: %w", err)
	}
	var list []Guard
	for path, c := range cards {
		conn, err := dial(context.Background(), c.Socket)
		if err != nil {
			if gone(err) {
				os.Remove(path) // a guard that was killed could not
				sweep(dir, c.Socket)
			}
			continue
		}
		conn.Close()
		list = append(list, Guard{c.Server, c.PID, c.Since, c.Socket, c.Token})
	}
	sortGuards(list)
	return list, nil
}

func (g Guard) ask(ctx context.Context, r request) (net.Conn, *json.Decoder, error) {
	c, err := dial(ctx, g.socket)
	if err != nil {
		return nil, nil, fmt.Errorf("reaching the guard of %q (process %d): %w", g.Server, g.PID, err)
	}
	r.Token = g.token
	c.SetDeadline(time.Now().Add(patience))
	if err := json.NewEncoder(c).Encode(r); err != nil {
		// It may have refused before it read anything, and said why.
		var out response
		if json.NewDecoder(c).Decode(&out) == nil && out.Error != "" {
			err = errors.New(out.Error)
		}
		c.Close()
		return nil, nil, fmt.Errorf("asking the guard of %q: %w", g.Server, err)
	}
	return c, json.NewDecoder(c), nil
}

// do asks for one thing.
func (g Guard) do(ctx context.Context, r request) (response, error) {
	c, in, err := g.ask(ctx, r)
	if err != nil {
		return response{}, err
	}
	defer c.Close()
	return g.read(in)
}

func (g Guard) read(in *json.Decoder) (response, error) {
	var out response
	switch err := in.Decode(&out); {
	case err != nil:
		return out, fmt.Errorf("reading what the guard of %q says: %w", g.Server, err)
	case out.Error == ErrNoQuestion.Error():
		return out, ErrNoQuestion
	case out.Error != "":
		return out, fmt.Errorf("the guard of %q says: %s", g.Server, Line(out.Error, 1000))
	}
	return out, nil
}

// Answer answers the question of a call.
func (g Guard) Answer(ctx context.Context, id string, r Reply) error {
	_, err := g.do(ctx, request{Do: "answer", ID: id, Reply: r})
	return err
}

// State returns what is at its desk.
func (g Guard) State(ctx context.Context) (State, error) {
	out, err := g.do(ctx, request{Do: "watch"})
	if err != nil || out.State == nil {
		return State{}, err
	}
	return *out.State, nil
}

// Watch calls f with what is at its desk, now and with every change, until ctx ends or the guard does. It returns why.
func (g Guard) Watch(ctx context.Context, f func(State)) error {
	c, in, err := g.ask(ctx, request{Do: "watch"})
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	c.SetDeadline(time.Time{})
	for {
		out, err := g.read(in)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		if out.State != nil {
			f(*out.State)
		}
	}
}

// Pause holds every call of a server, or of all where server is empty; with paused false it lets them go on. Running guards do so at
// once, and those that start later. It returns the guards that do.
func Pause(ctx context.Context, dir, server string, paused bool) ([]Guard, error) {
	if err := private(dir); err != nil {
		return nil, fmt.Errorf("making the directory for answers: %w", err)
	}
	err := statefile.Locked(filepath.Join(dir, "paused.lock"), func() error {
		p, err := readPauses(dir)
		if err != nil && paused {
			return fmt.Errorf("reading what is paused: %w", err)
		}
		switch {
		case server == "" && paused:
			p.All = true
		case server == "":
			p = pauses{}
		case paused && !p.of(server):
			p.Servers = append(p.Servers, server)
		case !paused && p.All:
			return fmt.Errorf("every server is paused, so %q cannot go on alone: resume them all", server)
		case !paused:
			p.Servers = without(p.Servers, server)
		}
		if !p.All && len(p.Servers) == 0 {
			if err := os.Remove(filepath.Join(dir, pausedName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		return statefile.Replace(filepath.Join(dir, pausedName), append(text, '\n'))
	})
	if err != nil {
		return nil, fmt.Errorf("saying what is paused: %w", err)
	}
	all, err := Find(dir)
	var told []Guard
	for _, g := range all {
		if server != "" && g.Server != server {
			continue
		}
		if _, e := g.do(ctx, request{Do: "look"}); e != nil {
			err = errors.Join(err, e)
			continue
		}
		told = append(told, g)
	}
	return told, err
}

// Paused says what is paused: all, or these servers.
func Paused(dir string) (all bool, servers []string, err error) {
	p, err := readPauses(dir)
	return p.All, p.Servers, err
}
