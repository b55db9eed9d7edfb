//go:build unix

package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func open(t *testing.T, dir, server string) (*Desk, *Door) {
	t.Helper()
	d := NewDesk(DeskOptions{})
	door, err := Listen(DoorOptions{Dir: dir, Server: server, Desk: d, Report: func(format string, args ...any) { t.Logf(format, args...) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { door.Close() })
	return d, door
}

// What is no file, where guards say where they are, holds nobody up: neither who answers nor a guard. A pause that cannot be
// read is one, and grants that cannot are none.
func TestNobodyWaitsForWhatIsNoFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	desk, _ := open(t, dir, "files")
	for _, name := range []string{"1-card.json", pausedName, "grants.json"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	guards, err := Find(dir)
	if err != nil || len(guards) != 1 {
		t.Fatalf("%v, %v", guards, err)
	}
	if _, err := guards[0].do(t.Context(), request{Do: "look"}); err != nil {
		t.Error(err)
	}
	if !desk.Paused() {
		t.Error("calls go on")
	}
	if _, found, err := NewGrants(Store{Path: filepath.Join(dir, "grants.json")}).Find(Use{}, time.Now()); found || err == nil {
		t.Errorf("found %v, %v", found, err)
	}
}

// Who may not answer is told of, and who only looked whether somebody is there, and went, is not.
func TestWhoOnlyLooksIsNotReported(t *testing.T) {
	dir := t.TempDir()
	text, err := json.Marshal(card{Server: "other", PID: os.Getppid(), Socket: "nowhere"}) // so this process descends from a guard
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "1-other.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, stays := range []bool{false, true} {
		told := 0
		d := &Door{dir: dir, token: "t", desk: NewDesk(DeskOptions{}), report: func(string, ...any) { told++ }}
		there, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if !stays {
			there.Close()
		}
		here, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		d.receive(here)
		here.Close()
		there.Close()
		if want := stays && refusesDescendants(); (told > 0) != want {
			t.Errorf("stays %v: it is told %d times", stays, told)
		}
	}
}

// refusesDescendants reports whether on this system a guard knows what descends from it.
func refusesDescendants() bool { return runtime.GOOS == "linux" || runtime.GOOS == "darwin" }

func TestAPersonAnswersOverTheSocket(t *testing.T) {
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "run")
	desk, door := open(t, dir, "files")
	answers := make(chan Answer, 1)
	desk.Ask(ctx, Call{Question: Question{ID: "c1", Head: "write", Choices: []Choice{{}, {Allow: true}}}, Key: "k", Answered: func(a Answer) { answers <- a }})

	if at := filepath.Base(door.card); strings.Contains(at, door.token[:6]) {
		t.Errorf("the name %q has a part of the token", at)
	}
	guards, err := Find(dir)
	if err != nil || len(guards) != 1 || guards[0].Server != "files" || guards[0].PID != os.Getpid() {
		t.Fatalf("%v, %v", guards, err)
	}
	watched := make(chan State)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go guards[0].Watch(watching, func(e Event) {
		if e.State != nil {
			watched <- *e.State
		}
	})
	if s := <-watched; len(s.Questions) != 1 || s.Questions[0].Head != "write" {
		t.Fatalf("%+v", s)
	}
	if err := guards[0].Answer(ctx, "c2", Reply{}); err != ErrNoQuestion {
		t.Errorf("an answer to nothing: %v", err)
	}
	if err := guards[0].Answer(ctx, "c1", Reply{Choice: Choice{Allow: true, Session: true}}); err == nil || !strings.Contains(err.Error(), "never remembered") {
		t.Errorf("an answer that is not offered: %v", err)
	}
	if err := guards[0].Answer(ctx, "c1", Reply{Choice: Choice{Allow: true}, Note: "go"}); err != nil {
		t.Fatal(err)
	}
	if a := <-answers; !a.Allow || a.Road != ByTerminal || a.Note != "go" || !strings.Contains(a.Who, fmt.Sprint(os.Getpid())) && !strings.Contains(a.Who, "yours") {
		t.Errorf("%+v", a)
	}
	if s := <-watched; len(s.Questions) != 0 {
		t.Errorf("%+v", s)
	}
	door.Close()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWithoutTheTokenNothingIsTold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	desk, _ := open(t, dir, "files")
	desk.Ask(t.Context(), Call{Question: Question{ID: "c1"}, Key: "k", Answered: func(Answer) { t.Error("it was answered") }})
	guards, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	g := guards[0]
	for _, token := range []string{"", "x", g.token[1:]} {
		g.token = token
		if err := g.Answer(t.Context(), "c1", Reply{}); err == nil || !strings.Contains(err.Error(), "token") {
			t.Errorf("%v", err)
		}
		if s, err := g.State(t.Context()); err == nil {
			t.Errorf("%+v", s)
		}
	}
	for _, garbage := range []string{"\n", "{", strings.Repeat("x", maxRequest+10) + "\n", `{"do":"answer"}` + "\n"} {
		c, err := dial(t.Context(), g.socket)
		if err != nil {
			t.Fatal(err)
		}
		c.Write([]byte(garbage))
		c.Close()
	}
	desk.mu.Lock()
	desk.open[0].lead.call.Answered = func(Answer) {}
	desk.mu.Unlock()
}

func TestWhoeverMayReadIsKeptOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	open(t, dir, "files")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	entries = append(entries, entry{dir})
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", e.Name(), info.Mode())
		}
	}
}

type entry struct{ dir string }

func (e entry) Name() string               { return e.dir }
func (e entry) IsDir() bool                { return true }
func (e entry) Type() os.FileMode          { return os.ModeDir }
func (e entry) Info() (os.FileInfo, error) { return os.Stat(e.dir) }

func TestWhatAKilledGuardLeftIsTakenAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	open(t, dir, "files")
	text, err := json.Marshal(card{Server: "dead", PID: 1 << 30, Since: time.Now(), Socket: filepath.Join(dir, "gone.sock"), Token: "x"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "1-x.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(t.TempDir(), "mine")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(card{Server: "forged", PID: 1 << 30, Socket: mine, Token: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "2-x.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	guards, err := Find(dir)
	if err != nil || len(guards) != 1 || guards[0].Server != "files" {
		t.Errorf("%v, %v", guards, err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("what is no socket of a guard is gone: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file of the dead guard is there")
	}
}

func TestALongPathHasASocketElsewhere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	_, door := open(t, dir, "files")
	if guards, err := Find(dir); err != nil || len(guards) != 1 {
		t.Fatalf("%v, %v", guards, err)
	}
	own := door.own
	door.Close()
	if own != "" {
		if _, err := os.Stat(own); err == nil {
			t.Errorf("%s is there", own)
		}
	}
}

func TestPauseByFile(t *testing.T) {
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "run")
	files, _ := open(t, dir, "files")
	other, _ := open(t, dir, "other")
	told, err := Pause(ctx, dir, "files", true)
	if err != nil || len(told) != 1 || !files.Paused() || other.Paused() {
		t.Fatalf("%v, %v: %v %v", told, err, files.Paused(), other.Paused())
	}
	if late, _ := open(t, dir, "files"); !late.Paused() {
		t.Error("a guard that starts later is not paused")
	}
	if _, err := Pause(ctx, dir, "", true); err != nil || !other.Paused() {
		t.Errorf("%v: %v", err, other.Paused())
	}
	if _, err := Pause(ctx, dir, "files", false); err == nil {
		t.Error("one goes on while all are paused")
	}
	if _, err := Pause(ctx, dir, "", false); err != nil || files.Paused() || other.Paused() {
		t.Errorf("%v: %v %v", err, files.Paused(), other.Paused())
	}
}

// Who watches is told of every guard that is there or comes, of what changes, and of the end; and of nothing when nothing changes.
func TestWatchTellsWhatChanges(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	events := make(chan Event, 64)
	watched := make(chan bool)
	go func() {
		Watch(ctx, dir, func(e Event) { events <- e })
		close(watched)
	}()
	next := func() Event {
		t.Helper()
		select {
		case e := <-events:
			return e
		case <-time.After(time.Minute):
			t.Fatal("nothing is told")
		}
		return Event{}
	}
	now := func() Now {
		t.Helper()
		for {
			if e := next(); e.Now != nil {
				return *e.Now
			}
		}
	}
	desk, board := NewDesk(DeskOptions{}), NewBoard(nil)
	var reads atomic.Int32
	board.Read(func() Now {
		reads.Add(1)
		return Now{Log: "a"}
	})
	door, err := Listen(DoorOptions{Dir: dir, Server: "files", Desk: desk, Board: board, Report: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()

	e := next()
	if e.Guard.Server != "files" || e.State == nil || len(e.State.Questions) != 0 || e.Guard.Key() == "" {
		t.Fatalf("%+v", e)
	}
	if n := now(); n.Server != "files" || n.PID != os.Getpid() || n.Log != "a" || n.Questions != 0 {
		t.Fatalf("%+v", n)
	}
	quiet := reads.Load()
	board.Changed() // and it did not
	desk.Ask(t.Context(), Call{Question: Question{ID: "c1"}, Key: "k", Answered: func(Answer) {}})
	for e = next(); e.State == nil; e = next() {
	}
	if len(e.State.Questions) != 1 {
		t.Errorf("%+v", e.State)
	}
	if n := now(); n.Questions != 1 {
		t.Errorf("%+v", n)
	}
	if n := reads.Load() - quiet; n < 1 || n > 3 {
		t.Errorf("what it is now was found out %d times", n)
	}
	for range 1000 {
		board.Count(time.Now(), Counts{Denied: 1}, &Refusal{Call: "c2"})
	}
	n := now()
	for n.Minute.Denied < 1000 {
		n = now()
	}
	if n.Refused.Call != "c2" || n.Total.Denied != 1000 {
		t.Errorf("%+v", n)
	}
	if got, err := e.Guard.Now(ctx); err != nil || got.Total.Denied != 1000 {
		t.Errorf("%+v, %v", got, err)
	}
	door.Close()
	for e = next(); !e.Gone; e = next() {
	}
	if e.Guard.Server != "files" || e.Err != nil {
		t.Errorf("%+v", e)
	}
	if board.watched.Load() != 0 {
		t.Errorf("%d watch it", board.watched.Load())
	}
	stop()
	<-watched
}

// A door that takes no answers shows no questions, and tells what the guard is.
func TestAClosedDoor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	desk := NewDesk(DeskOptions{})
	door, err := Listen(DoorOptions{Dir: dir, Server: "files", Desk: desk, Closed: "the token can be read", Report: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	desk.Ask(t.Context(), Call{Question: Question{ID: "c1", Choices: []Choice{{}, {Allow: true}}}, Key: "k", Answered: func(a Answer) { t.Errorf("%+v", a) }})
	guards, err := Find(dir)
	if err != nil || len(guards) != 1 {
		t.Fatalf("%v, %v", guards, err)
	}
	if n, err := guards[0].Now(t.Context()); err != nil || n.Closed != "the token can be read" || n.Questions != 1 {
		t.Errorf("%+v, %v", n, err)
	}
	if s, err := guards[0].State(t.Context()); err != nil || len(s.Questions) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := guards[0].Answer(t.Context(), "c1", Reply{Choice: Choice{Allow: true}}); err == nil || !strings.Contains(err.Error(), "the token can be read") {
		t.Errorf("it was answered: %v", err)
	}
	desk.mu.Lock()
	desk.open[0].lead.call.Answered = func(Answer) {}
	desk.mu.Unlock()
}

// A guard that does not let us in tells its person each time, so it is left alone for a while.
func TestWatchLeavesAloneWhoRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	came := make(chan bool, 64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			came <- true
			say(c, response{Error: "refused: you are a server"})
			c.Close()
		}
	}()
	text, err := json.Marshal(card{Server: "files", PID: os.Getpid(), Socket: filepath.Join(dir, "s"), Token: "x"})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "1-x.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	events := make(chan Event, 64)
	go Watch(ctx, dir, func(e Event) { events <- e })
	e := <-events
	if !e.Gone || e.Err == nil || !strings.Contains(e.Err.Error(), `the guard of "files" says: refused: you are a server`) {
		t.Errorf("%+v", e)
	}
	other, _ := open(t, dir, "other") // found at a later look
	defer other.Pause(false)
	for e = range events {
		if e.State != nil {
			break
		}
	}
	if e.Guard.Server != "other" {
		t.Errorf("%+v", e)
	}
	if n := len(came); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
}

// A list of questions has what can be read at a time; what is left out of it can be asked for, one by one.
func TestALongListIsShort(t *testing.T) {
	dir := t.TempDir()
	desk, _ := open(t, dir, "files")
	long, _ := json.Marshal(map[string]string{"a": strings.Repeat("x", 1<<20)})
	for i := range 8 {
		q := Question{ID: fmt.Sprintf("c%d", i), Args: long, Size: len(long), Diff: "+x\n"}
		desk.Ask(t.Context(), Call{Question: q, Key: q.ID, Session: q.ID, Answered: func(Answer) {}})
	}
	guards, err := Find(dir)
	if err != nil || len(guards) != 1 {
		t.Fatalf("%v, %v", guards, err)
	}
	s, err := guards[0].State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range s.Questions {
		if short := i > 2; q.Short != short || (q.Args == nil) != short || (q.Diff == "") != short || q.Size != len(long) {
			t.Errorf("question %d is short: %t, with %d bytes of arguments", i, q.Short, len(q.Args))
		}
	}
	if q, err := guards[0].Question(t.Context(), "c7", nil); err != nil || string(q.Args) != string(long) || q.Diff != "+x\n" || q.Short {
		t.Errorf("all of it has %d bytes of arguments, %v", len(q.Args), err)
	}
	if _, err := guards[0].Question(t.Context(), "c9", nil); err != ErrNoQuestion {
		t.Errorf("one that is not there: %v", err)
	}
}

// liar puts what is no guard among the guards: it gets a request, and says what it likes until nobody listens.
func liar(t *testing.T, dir, server string, say func(net.Conn)) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(dir, server+".sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	text, err := json.Marshal(card{Server: server, PID: 4711, Socket: l.Addr().String()})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, server+".json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if b := make([]byte, 1); read(c, b) {
					say(c)
				}
			}()
		}
	}()
}

func read(c net.Conn, b []byte) bool {
	n, err := c.Read(b)
	return n > 0 && err == nil
}

// What never ends is not read into memory for ever.
func TestAGuardThatNeverEnds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	open(t, dir, "files")
	said := make(chan int, 1)
	liar(t, dir, "liar", func(c net.Conn) {
		n, _ := c.Write([]byte(`{"state":{"questions":[{"id":"`))
		for text := make([]byte, 1<<20); ; {
			m, err := c.Write(text[:copy(text, strings.Repeat("a", len(text)))])
			if n += m; err != nil {
				said <- n
				return
			}
		}
	})
	guards, err := Find(dir)
	if err != nil || len(guards) != 2 {
		t.Fatalf("%v, %v", guards, err)
	}
	// On a slow machine the time for an answer is over first.
	if _, err := guards[1].State(t.Context()); !errors.Is(err, errEndless) && (err == nil || !strings.Contains(err.Error(), "does not answer")) {
		t.Error(err)
	}
	if n := <-said; n > maxResponse+(8<<20) {
		t.Errorf("%d bytes were read", n)
	}
	if _, err := guards[0].State(t.Context()); err != nil {
		t.Error(err)
	}
}

// A guard that hangs holds no other up that is to be paused, and is named.
func TestAGuardThatHangs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	hang := make(chan bool)
	t.Cleanup(func() { close(hang) })
	open(t, dir, "zfiles")
	for i := range 3 {
		liar(t, dir, fmt.Sprintf("hangs%d", i), func(net.Conn) { <-hang })
	}
	told, err := Pause(t.Context(), dir, "", true)
	if len(told) != 1 || told[0].Server != "zfiles" || err == nil || strings.Count(err.Error(), "process 4711 does not answer") != 3 {
		t.Errorf("%v, %v", told, err)
	}
}
