package approval

import (
	"bufio"
	"bytes"
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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rootbound/rootbound/internal/statefile"
)

const (
	// maxRequest is the longest request over the socket, in bytes: arguments that a person changed are in it.
	maxRequest = 2 << 20
	// maxState is how much of arguments and diffs is sent with a list of questions.
	maxState = 4 << 20
	// maxResponse is the longest that a guard says, in bytes: a question with its arguments and its diff.
	maxResponse = 128 << 20
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
	board  *Board
	server string
	closed string // why it takes no answers; "" when it does
	dir    string // where guards are found
	own    string // a directory made for the socket alone, or ""
	card   string // the file
	token  string
	since  time.Time
	l      net.Listener
	report func(format string, args ...any)

	mu       sync.Mutex
	visitors map[net.Conn]bool
	over     bool
	ended    chan struct{}

	looking sync.Mutex // held from reading what is paused until that holds, or what was read before would hold last
}

// DoorOptions of a door.
type DoorOptions struct {
	// Dir is where guards say where they can be reached, and Server the name of this one's server.
	Dir, Server string
	// Desk holds the questions, and Board tells what the guard is now; nil tells nothing but what is at the desk.
	Desk  *Desk
	Board *Board
	// Closed says why no answers are taken and no questions shown; "" takes them. What the guard is now is told in any case.
	Closed string
	// Report is told what a person, and the log, should know.
	Report func(format string, args ...any)
}

// Listen opens a socket for the answers to the questions at a desk, and says in a directory where. It follows whether guards are
// paused. The caller closes it.
func Listen(o DoorOptions) (*Door, error) {
	dir := o.Dir
	if err := private(dir); err != nil {
		return nil, fmt.Errorf("making the directory for answers: %w", err)
	}
	b := make([]byte, 32)
	rand.Read(b)
	d := &Door{desk: o.Desk, board: o.Board, server: o.Server, closed: o.Closed, dir: dir, token: base64.RawURLEncoding.EncodeToString(b),
		report: o.Report, since: time.Now().UTC().Truncate(time.Second), visitors: map[net.Conn]bool{}, ended: make(chan struct{})}
	rand.Read(b) // names are seen by others: nothing of the token is in them
	name := strconv.Itoa(os.Getpid()) + "-" + base64.RawURLEncoding.EncodeToString(b[:6])[:6]
	rand.Read(b)
	var socket string
	var err error
	if d.l, socket, d.own, err = listen(dir, name, base64.RawURLEncoding.EncodeToString(b)); err != nil {
		return nil, fmt.Errorf("opening the socket for answers: %w", err)
	}
	text, err := json.Marshal(card{d.server, os.Getpid(), d.since, socket, d.token})
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
	if d.over {
		d.mu.Unlock()
		return nil
	}
	d.over = true
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
		if d.over || len(d.visitors) >= maxVisitors {
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

// request is what a visitor wants: "watch" is told what is at the desk and what the guard is now, with every change; "state" and
// "now" are told one of them once; "question" is told all of one question, or what it would be with other arguments; "answer"
// answers; "look" looks now whether guards are paused.
type request struct {
	Token string `json:"token"`
	Do    string `json:"do"`
	ID    string `json:"id,omitempty"`
	Reply Reply  `json:"reply,omitzero"`
}

// response is what it gets.
type response struct {
	Error    string    `json:"error,omitempty"`
	Code     string    `json:"code,omitempty"` // which error it is, of those that codes has
	Question *Question `json:"question,omitempty"`
	State    *State    `json:"state,omitempty"`
	Now      *Now      `json:"now,omitempty"`
}

// The codes of errors.
const (
	codeGone    = "gone"
	codeChanged = "changed"
)

func codeOf(err error) string {
	switch {
	case errors.Is(err, ErrNoQuestion):
		return codeGone
	case errors.Is(err, ErrChanged):
		return codeChanged
	}
	return ""
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
	case "state":
		state, _ := d.state()
		say(c, response{State: &state})
	case "now":
		now, _ := d.now()
		say(c, response{Now: &now})
	case "question":
		var out response
		if d.closed != "" {
			out.Error = d.closed
		} else if q, err := d.desk.Question(r.ID, r.Reply.Args); err != nil {
			out.Error, out.Code = err.Error(), codeOf(err)
		} else {
			out.Question = &q
		}
		c.SetWriteDeadline(time.Now().Add(patience))
		say(c, out)
	case "answer":
		var out response
		if d.closed != "" {
			out.Error = d.closed
		} else {
			road := ByTerminal
			if r.Reply.Page {
				road = ByPage
			}
			if err := d.desk.Answer(r.ID, r.Reply, road, who); err != nil {
				out.Error, out.Code = err.Error(), codeOf(err)
			}
		}
		say(c, out)
	case "look":
		d.look()
		say(c, response{})
	default:
		say(c, response{Error: fmt.Sprintf("this guard does not know %q: it is of another version", r.Do)})
	}
}

// state is what is at the desk, as it is sent, and a channel that is closed when that changes.
func (d *Door) state() (State, <-chan struct{}) {
	s, changed := d.desk.State()
	if d.closed != "" {
		s.Questions = []Question{}
	}
	room := maxState
	for i := range s.Questions {
		q := &s.Questions[i]
		n := len(q.Args) + len(q.Diff)
		if n > room {
			q.Args, q.Diff, q.Short = nil, "", true
			continue
		}
		room -= n
	}
	return s, changed
}

// now is what the guard is at the moment, and when that changes by itself.
func (d *Door) now() (Now, time.Time) {
	n, next := d.board.look()
	n.Server, n.PID, n.Since, n.Closed = d.server, os.Getpid(), d.since, d.closed
	n.Paused, n.Questions = d.desk.count()
	return n, next
}

// tellEvery is how often a visitor is told what the guard is now, at most: more often nobody reads it. What changes together is
// told together, which is what settling is for.
const (
	tellEvery = 500 * time.Millisecond
	settling  = 20 * time.Millisecond
)

// watch tells a visitor what is at the desk, at once, and what the guard is now, until it goes.
func (d *Door) watch(c net.Conn) {
	if b := d.board; b != nil {
		b.watched.Add(1)
		defer b.watched.Add(-1)
	}
	gone := make(chan struct{})
	go func() {
		c.SetReadDeadline(time.Time{})
		io.Copy(io.Discard, c)
		close(gone)
	}()
	tell := func(r response) bool {
		c.SetWriteDeadline(time.Now().Add(patience))
		return say(c, r) == nil
	}
	var at time.Time // when it was told what the guard is now
	var told []byte
	for first := true; ; first = false {
		state, asked := d.state()
		if !tell(response{State: &state}) {
			return
		}
		// A list of a thousand is not told a thousand times while it is worked off.
		spacing := time.After(min(time.Duration(len(state.Questions))*200*time.Microsecond, tellEvery))
		news, later := d.board.news(), time.After(0)
		if !first {
			later = time.After(settling) // with what changes when a question ends
		}
		for again := false; !again; {
			select {
			case <-asked:
				select {
				case <-spacing:
				case <-gone:
					return
				case <-d.ended:
					return
				}
				again = true
			case <-news:
				news, later = nil, time.After(max(settling, tellEvery-time.Since(at)))
			case <-later:
				news = d.board.news()
				now, next := d.now()
				if later = nil; !next.IsZero() {
					later = time.After(max(tellEvery, time.Until(next)))
				}
				text, err := json.Marshal(now)
				if err != nil || bytes.Equal(text, told) {
					continue
				}
				if at, told = time.Now(), text; !tell(response{Now: &now}) {
					return
				}
			case <-gone:
				return
			case <-d.ended:
				return
			}
		}
	}
}

func say(c net.Conn, r response) error { return encoder(c).Encode(r) }

// encoder writes arguments as they are: they are shown to a person.
func encoder(c net.Conn) *json.Encoder {
	e := json.NewEncoder(c)
	e.SetEscapeHTML(false)
	return e
}

// guards are the processes of all guards, whose servers may not answer.
func (d *Door) guards() []int {
	pids := []int{os.Getpid()}
	cards, _ := readCards(d.dir, nil)
	for _, c := range cards {
		pids = append(pids, c.PID)
	}
	return pids
}

// readCards reads what guards say of themselves, by the path of the file, but for the files that are known.
func readCards(dir string, known map[string]bool) (cards map[string]card, err error) {
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
		if known[path] {
			continue
		}
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
	d.looking.Lock()
	defer d.looking.Unlock()
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

	card, socket, token string
}

// Key is the guard's own, among all that run at a time, and as long as it runs.
func (g Guard) Key() string { return strings.TrimSuffix(filepath.Base(g.card), ".json") }

// Find returns the guards that can be reached. What says of one that is gone is taken away.
func Find(dir string) ([]Guard, error) {
	cards, err := readCards(dir, nil)
	if err != nil {
		return nil, fmt.Errorf("looking for guards: %w", err)
	}
	var list []Guard
	var mu sync.Mutex
	var wg sync.WaitGroup
	for path, c := range cards { // all at once: some systems look for a while for one that is gone
		wg.Go(func() {
			conn, err := dial(context.Background(), c.Socket)
			if err != nil {
				c.left(path, err)
				return
			}
			conn.Close()
			mu.Lock()
			defer mu.Unlock()
			list = append(list, c.guard(path))
		})
	}
	wg.Wait()
	sortGuards(list)
	return list, nil
}

func (c card) guard(path string) Guard {
	return Guard{c.Server, c.PID, c.Since, path, c.Socket, c.Token}
}

// left takes away what a guard left that was killed, if that is what an error of dial says.
func (c card) left(path string, err error) {
	if gone(err) {
		os.Remove(path)
		sweep(filepath.Dir(path), c.Socket)
	}
}

// responses are what a guard says, one after another.
type responses struct {
	d *json.Decoder
	r *bounded
}

// bounded reads so many bytes, and then no more: what says that it is a guard may never end.
type bounded struct {
	r    io.Reader
	left int
}

// errEndless is what a guard said that did not end.
var errEndless = fmt.Errorf("it is longer than %d bytes", maxResponse)

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errEndless
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func responsesOf(r io.Reader) *responses {
	b := &bounded{r: r}
	return &responses{json.NewDecoder(b), b}
}

func (in *responses) next() (out response, err error) {
	in.r.left = maxResponse
	err = in.d.Decode(&out)
	return out, err
}

func (g Guard) ask(ctx context.Context, r request) (net.Conn, *responses, error) {
	c, err := dial(ctx, g.socket)
	if err != nil {
		return nil, nil, fmt.Errorf("reaching the guard of %q (process %d): %w", g.Server, g.PID, err)
	}
	r.Token = g.token
	c.SetDeadline(time.Now().Add(patience))
	if err := encoder(c).Encode(r); err != nil {
		// It may have refused before it read anything, and said why.
		if out, e := responsesOf(c).next(); e == nil && out.Error != "" {
			err = &SaidError{g.Server, out.Error, out.Code}
		}
		c.Close()
		return nil, nil, fmt.Errorf("asking the guard of %q: %w", g.Server, err)
	}
	return c, responsesOf(c), nil
}

// SaidError is what a guard said in the place of what it was asked for. Code tells it from others, where that is of use: "changed"
// is ErrChanged.
type SaidError struct{ Server, Text, Code string }

func (e *SaidError) Error() string {
	return fmt.Sprintf("the guard of %q says: %s", e.Server, Line(e.Text, 1000))
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

func (g Guard) read(in *responses) (response, error) {
	out, err := in.next()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return out, fmt.Errorf("asking the guard of %q: process %d does not answer: it hangs, or is stopped", g.Server, g.PID)
	case err != nil:
		return out, fmt.Errorf("reading what the guard of %q says: %w", g.Server, err)
	case out.Code == codeGone:
		return out, ErrNoQuestion
	case out.Error != "":
		return out, &SaidError{g.Server, out.Error, out.Code}
	}
	return out, nil
}

// Answer answers the question of a call.
func (g Guard) Answer(ctx context.Context, id string, r Reply) error {
	_, err := g.do(ctx, request{Do: "answer", ID: id, Reply: r})
	return err
}

// Question returns all of the question of a call, and with args not nil, what it would be if the arguments were these.
func (g Guard) Question(ctx context.Context, id string, args []byte) (Question, error) {
	out, err := g.do(ctx, request{Do: "question", ID: id, Reply: Reply{Args: args}})
	if err != nil {
		return Question{}, err
	}
	if out.Question == nil {
		return Question{}, ErrNoQuestion
	}
	return *out.Question, nil
}

// State returns what is at its desk.
func (g Guard) State(ctx context.Context) (State, error) {
	out, err := g.do(ctx, request{Do: "state"})
	if err != nil || out.State == nil {
		return State{}, err
	}
	return *out.State, nil
}

// Now returns what it is at the moment.
func (g Guard) Now(ctx context.Context) (Now, error) {
	out, err := g.do(ctx, request{Do: "now"})
	if err != nil || out.Now == nil {
		return Now{}, err
	}
	return *out.Now, nil
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
	if server != "" {
		all = slices.DeleteFunc(all, func(g Guard) bool { return g.Server != server })
	}
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, g := range all { // one that hangs holds up no other
		wg.Go(func() { _, errs[i] = g.do(ctx, request{Do: "look"}) })
	}
	wg.Wait()
	var told []Guard
	for i, g := range all {
		if errs[i] == nil {
			told = append(told, g)
		}
	}
	return told, errors.Join(err, errors.Join(errs...))
}

// Paused says what is paused: all, or these servers.
func Paused(dir string) (all bool, servers []string, err error) {
	p, err := readPauses(dir)
	return p.All, p.Servers, err
}
