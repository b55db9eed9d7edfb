package calllog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var someTime = time.Date(2026, 11, 30, 6, 12, 1, 123456000, time.UTC)

// clock returns a clock that goes on by a second each time it is looked at.
func clock() func() time.Time {
	t := someTime
	return func() time.Time {
		t = t.Add(time.Second)
		return t
	}
}

// read returns the records of a file; anything unreadable fails the test.
func read(t *testing.T, path string) []Record {
	t.Helper()
	var records []Record
	for e, err := range Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, e.Record)
	}
	return records
}

// sound fails the test unless the file's chain holds.
func sound(t *testing.T, path string, records int, state State) {
	t.Helper()
	r, err := Verify(path)
	if err != nil {
		t.Fatal(err)
	}
	if r.Damage != nil || r.Tail != 0 || r.Records != records || r.State != state {
		t.Errorf("verify: %d records, %v, tail %d, damage %+v; want %d records, %v", r.Records, r.State, r.Tail, r.Damage, records, state)
	}
}

func TestSession(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "log")
	log, err := Create(dir, Record{
		Server: "my files/ü", Version: "0.1.0", PID: 42, Command: []string{"server", "--token", "abc"}, Env: []string{"HOME", "API_KEY=abc"},
		Dirs: []Dir{{Name: "app", Path: "/home/u/app", Access: "rw", Origin: "--root"}}, ClientRoots: "narrow", Layers: []string{"told", "checked"},
	}, Options{Now: clock()})
	if err != nil {
		t.Fatal(err)
	}
	sound(t, log.Path(), 1, Running)

	id := log.NewID()
	for _, r := range []Record{
		{Kind: Call, Call: id, ID: json.RawMessage(`7`), Method: "tools/call", Tool: "read_file", Verdict: Allow, Args: json.RawMessage(`{"path": "/home/u/app/a"}`),
			Paths: []Path{{Arg: "/path", Given: "/home/u/app/a", Resolved: "/home/u/app/a", Root: "app", Rel: "a", Verdict: Allow}}, Bytes: 27},
		{Kind: End, Call: id, Method: "tools/call", Tool: "read_file", Outcome: OK, MS: 1.5, Bytes: 1000},
	} {
		if err := log.Append(&r); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(3, "client closed"); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(0, "again"); err != nil {
		t.Error(err)
	}
	if err := log.Append(&Record{Kind: Note}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("appending to a closed log: got %v", err)
	}
	sound(t, log.Path(), 4, Ended)

	got := read(t, log.Path())
	want := []Record{
		{Kind: Start, Version: "0.1.0", PID: 42, Command: []string{"server", "--token", "[3 bytes redacted]"}, Env: []string{"HOME", "API_KEY"},
			Dirs: []Dir{{Name: "app", Path: "/home/u/app", Access: "rw", Origin: "--root"}}, ClientRoots: "narrow", Layers: []string{"told", "checked"}},
		{Kind: Call, Call: id, ID: json.RawMessage(`7`), Method: "tools/call", Tool: "read_file", Verdict: Allow, Args: json.RawMessage(`{"path":"/home/u/app/a"}`),
			Paths: []Path{{Arg: "/path", Given: "/home/u/app/a", Resolved: "/home/u/app/a", Root: "app", Rel: "a", Verdict: Allow}}, Bytes: 27},
		{Kind: End, Call: id, Method: "tools/call", Tool: "read_file", Outcome: OK, MS: 1.5, Bytes: 1000},
		{Kind: Exit, Status: 3, Reason: "client closed"},
	}
	for i := range want {
		want[i].Seq, want[i].Server, want[i].Time = uint64(i+1), "my files/ü", someTime.Add(time.Duration(i+2)*time.Second)
		want[i].Prev, want[i].Hash = got[i].Prev, got[i].Hash
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}

	if name := filepath.Base(log.Path()); !strings.HasPrefix(name, "20261130T061202.123456Z-my_files_ü-") {
		t.Errorf("file name %q", name)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for path, want := range map[string]fs.FileMode{log.Path(): 0o600, dir: fs.ModeDir | 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("mode of %s: %v %v, want %v", path, info.Mode(), err, want)
		}
	}
}

func TestConcurrentAppends(t *testing.T) {
	log, err := Create(t.TempDir(), Record{Server: "s"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 8, 100
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := log.Append(&Record{Kind: Call, Call: log.NewID(), Tool: fmt.Sprint(w, " ", i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	log.Close(0, "")
	sound(t, log.Path(), writers*each+2, Ended)
	seen := map[string]bool{}
	next := make([]int, writers)
	for _, r := range read(t, log.Path())[1 : writers*each+1] {
		if seen[r.Call] {
			t.Errorf("id %s twice", r.Call)
		}
		seen[r.Call] = true
		var w, i int
		fmt.Sscan(r.Tool, &w, &i)
		if i != next[w] {
			t.Errorf("writer %d: record %d, want %d", w, i, next[w])
		}
		next[w]++
	}
}

// What may wait is written with the next record, or soon, and stays in its place.
func TestAppendSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, err := Create(t.TempDir(), Record{Server: "s"}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		kinds := func(want ...Kind) {
			t.Helper()
			var got []Kind
			for _, r := range read(t, log.Path()) {
				got = append(got, r.Kind)
			}
			if !slices.Equal(got, want) {
				t.Errorf("in the file are %v, want %v", got, want)
			}
		}
		ends := func() {
			t.Helper()
			if err := log.AppendSoon(&Record{Kind: End, Call: "c00001"}); err != nil {
				t.Fatal(err)
			}
		}
		ends()
		ends()
		kinds(Start)
		if err := log.Append(&Record{Kind: Call, Call: "c00002"}); err != nil {
			t.Fatal(err)
		}
		kinds(Start, End, End, Call)
		ends()
		time.Sleep(soon)
		synctest.Wait()
		kinds(Start, End, End, Call, End)
		ends()
		log.Close(0, "")
		kinds(Start, End, End, Call, End, End, Exit)
		sound(t, log.Path(), 7, Ended)
		if err := log.AppendSoon(&Record{Kind: End}); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("behind the end: %v", err)
		}
	})
}

// What waits while the disk is full is not lost, and the record that needed room is not in the log.
func TestAppendSoonOnAFullDisk(t *testing.T) {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "x"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	b := &brittle{File: f, room: 1 << 20}
	log := newLog(b, f.Name(), "s", Options{Now: time.Now})
	if err := errors.Join(log.Append(&Record{Kind: Call, Call: "c00001"}), log.AppendSoon(&Record{Kind: End, Call: "c00001"})); err != nil {
		t.Fatal(err)
	}
	b.room = 30
	if err := log.Append(&Record{Kind: Call, Call: "c00002"}); !errors.Is(err, errFull) {
		t.Fatalf("appending to a full disk: got %v", err)
	}
	log.flush()
	b.room = 1 << 20
	if err := log.Append(&Record{Kind: Call, Call: "c00003"}); err != nil {
		t.Fatal(err)
	}
	log.Close(0, "")
	sound(t, f.Name(), 4, Ended)
	var calls []string
	for _, r := range read(t, f.Name()) {
		calls = append(calls, r.Call)
	}
	if want := []string{"c00001", "c00001", "c00003", ""}; !slices.Equal(calls, want) {
		t.Errorf("in the log are %q, want %q", calls, want)
	}
}

// brittle is a file whose writes end after room bytes.
type brittle struct {
	*os.File
	room       int
	noTruncate bool
}

var errFull = errors.New("no space left")

func (b *brittle) Write(p []byte) (int, error) {
	if len(p) <= b.room {
		return b.File.Write(p)
	}
	n, _ := b.File.Write(p[:b.room])
	return n, errFull
}

func (b *brittle) Truncate(size int64) error {
	if b.noTruncate {
		return errors.New("not supported")
	}
	return b.File.Truncate(size)
}

func TestShortWrite(t *testing.T) {
	for _, noTruncate := range []bool{false, true} {
		t.Run(fmt.Sprintf("noTruncate=%v", noTruncate), func(t *testing.T) {
			f, err := os.OpenFile(filepath.Join(t.TempDir(), "x"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			b := &brittle{File: f, room: 1 << 20, noTruncate: noTruncate}
			log := newLog(b, f.Name(), "s", Options{Now: time.Now})
			note := func() error { return log.Append(&Record{Kind: Note, Text: "x"}) }
			if err := errors.Join(note(), note()); err != nil {
				t.Fatal(err)
			}
			b.room = 30
			if err := note(); !errors.Is(err, errFull) {
				t.Fatalf("appending to a full disk: got %v", err)
			}
			b.room = 1 << 20
			err = note()
			if noTruncate {
				if !errors.Is(err, errFull) {
					t.Errorf("appending behind a part of a record: got %v, want the first error", err)
				}
				r, err := Verify(f.Name())
				if err != nil || r.Records != 2 || r.Tail != 30 || r.Damage != nil {
					t.Errorf("verify: %+v, %v; want 2 records and a tail of 30", r, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := log.Close(0, ""); err != nil {
				t.Fatal(err)
			}
			sound(t, f.Name(), 4, Ended)
		})
	}
}

func TestCreateFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if log, err := Create(filepath.Join(file, "log"), Record{}, Options{}); err == nil {
		t.Errorf("created %q", log.Path())
	}
}

func TestDiscard(t *testing.T) {
	log := Discard()
	if err := errors.Join(log.Append(&Record{Kind: Call}), log.Close(0, "")); err != nil || log.Path() != "" {
		t.Errorf("got %v, path %q", err, log.Path())
	}
	if id := log.NewID(); !IsID(id) || id == log.NewID() {
		t.Errorf("id %q", id)
	}
}

func TestBounds(t *testing.T) {
	log, err := Create(t.TempDir(), Record{}, Options{Sync: true})
	if err != nil {
		t.Fatal(err)
	}
	paths := slices.Repeat([]Path{{Arg: "/paths/0", Verdict: Allow}}, 1000)
	paths[999].Verdict = Deny
	huge := strings.Repeat("我", 1<<20)
	if err := log.Append(&Record{Kind: Call, Reason: huge, Paths: paths}); err != nil {
		t.Fatal(err)
	}
	// a secret that the cut goes through does not show its beginning
	if err := log.Append(&Record{Kind: Note, Text: strings.Repeat("-", maxText-20) + " " + ghToken + " end"}); err != nil {
		t.Fatal(err)
	}
	log.Close(0, "")
	records := read(t, log.Path())
	call, note := records[1], records[2]
	if len(call.Paths) != maxPaths || call.PathsOmitted != 1000-maxPaths || call.Paths[0].Verdict != Deny || paths[0].Verdict != Allow {
		t.Errorf("%d paths, %d omitted, first %v", len(call.Paths), call.PathsOmitted, call.Paths[0].Verdict)
	}
	if want := strings.Repeat("我", maxText/3) + fmt.Sprintf("… [+%d bytes]", 3<<20-maxText/3*3); call.Reason != want {
		t.Errorf("reason of %d bytes ends %q", len(call.Reason), call.Reason[len(call.Reason)-30:])
	}
	if want := " [40 bytes redacted]… [+4 bytes]"; !strings.HasSuffix(note.Text, want) {
		t.Errorf("text ends %q, want %q", note.Text[len(note.Text)-60:], want)
	}
}

func TestDefaultDir(t *testing.T) {
	for _, tt := range []struct {
		goos, env, want string
	}{
		{"linux", "HOME=/home/u", "/home/u/.local/state/rootbound/log"},
		{"linux", "HOME=/home/u XDG_STATE_HOME=/s/", "/s/rootbound/log"},
		{"linux", "XDG_STATE_HOME=/s", "/s/rootbound/log"},
		{"linux", "HOME=/home/u XDG_STATE_HOME=relative", "/home/u/.local/state/rootbound/log"},
		{"linux", "", ""},
		{"darwin", "HOME=/Users/u XDG_STATE_HOME=/s", "/Users/u/Library/Application Support/rootbound/log"},
		{"windows", `LOCALAPPDATA=C:\Users\u\AppData\Local`, `C:\Users\u\AppData\Local\rootbound\log`},
		{"windows", "HOME=/home/u", ""},
	} {
		env := map[string]string{}
		for _, v := range strings.Fields(tt.env) {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
		got, err := DefaultDir(func(name string) string { return env[name] }, tt.goos)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s %s: got %q, %v; want %q", tt.goos, tt.env, got, err, tt.want)
		}
	}
}

// FuzzEncode compares what the hand-written encoder writes with what encoding/json reads.
func FuzzEncode(f *testing.F) {
	f.Add("a", "b\x1b\u202e\"\\", 1.5, int64(3), []byte(`{"x":[1]}`), true)
	f.Add("\xff\xc0", "/p\n\x00", -1.0, int64(-1<<63), []byte(`{`), false)
	f.Fuzz(func(t *testing.T, a, b string, ms float64, n int64, raw []byte, yes bool) {
		r := Record{
			Kind: Kind(a), Session: b, Version: a, PID: int(n), Command: []string{a, b}, Cwd: b, Env: []string{a}, ClientRoots: a, Layers: []string{a, b},
			Dirs: []Dir{{a, b, a, yes, b}, {}}, Status: int(n), Call: a, ID: raw, Method: b, Tool: a, Verdict: Verdict(b), Code: a, Reason: b, Fix: a, Args: raw,
			Paths: []Path{{a, b, a, yes, b, a, Verdict(b), a}, {}}, PathsOmitted: int(n), Outcome: Outcome(b), MS: ms, Bytes: n, Text: b,
			From: Party(a), To: Party(b), Ask: a, Roots: []Root{{a, b}, {}}, Equal: &yes, Before: []Dir{{Path: a}}, After: []Dir{{Path: b}},
		}
		var e encoder
		line, hash := e.line(&r, 5, someTime, b, noPrev)
		if line[len(line)-1] != '\n' || strings.ContainsFunc(string(line[:len(line)-1]), func(r rune) bool { return r < ' ' }) {
			t.Fatalf("not one line: %q", line)
		}
		var got Record
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if l, sound := parse(line[:len(line)-1]); !sound || l.Hash != string(hash[:]) {
			t.Fatalf("hash does not hold: %s", line)
		}
		// what was read, written again, says the same
		got2 := got
		line2, _ := new(encoder).line(&got2, 5, someTime, got.Server, noPrev)
		var again Record
		if err := json.Unmarshal(line2, &again); err != nil {
			t.Fatalf("%v: %s", err, line2)
		}
		// and, where nothing had to be redacted or replaced, it is what was given
		if Visible(a+b) == a+b && RedactText(a) == a && RedactText(b) == b && len(a)+len(b) < 30 && !strings.ContainsAny(a+b, "-=:") && utf8.ValidString(a) && utf8.ValidString(b) && !strings.ContainsRune(a+b, utf8.RuneError) && ms >= 0 && ms < 1e15 {
			want := r
			want.Seq, want.Time, want.Server, want.Prev, want.Hash = 5, someTime, b, string(noPrev[:]), string(hash[:])
			want.ID, want.Args, got.ID, got.Args = nil, nil, nil, nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("(-want +got):\n%s\n%s", diff, line)
			}
		}
	})
}
