package logindex

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/calllog"
)

// fixture is a log, its index, and what the index has said.
type fixture struct {
	*testing.T
	dir, path string
	notes     []string
	now       time.Time
	x         *Index
}

func newFixture(t *testing.T) *fixture {
	root := t.TempDir()
	f := &fixture{T: t, dir: filepath.Join(root, "log"), now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	f.path = Path(root, f.dir)
	f.reopen()
	t.Cleanup(func() { f.x.Close() })
	return f
}

func (f *fixture) reopen() {
	f.Helper()
	if f.x != nil {
		if err := f.x.Close(); err != nil {
			f.Fatal(err)
		}
	}
	x, err := Open(f.path, f.dir, func(note string) { f.notes = append(f.notes, note) })
	if err != nil {
		f.Fatal(err)
	}
	f.x = x
}

// log begins a log, whose clock goes on by a second with every record.
func (f *fixture) log(server string) *calllog.Log {
	f.Helper()
	l, err := calllog.Create(f.dir, calllog.Record{Server: server, Dirs: []calllog.Dir{{Name: "app", Path: "/home/u/app"}}}, calllog.Options{Now: func() time.Time {
		f.now = f.now.Add(time.Second)
		return f.now
	}})
	if err != nil {
		f.Fatal(err)
	}
	return l
}

func (f *fixture) append(l *calllog.Log, records ...calllog.Record) {
	f.Helper()
	for i := range records {
		if err := l.Append(&records[i]); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *fixture) update() {
	f.Helper()
	if err := f.x.Update(f.Context()); err != nil {
		f.Fatal(err)
	}
}

// search returns what q finds, as many at a time as q.Limit says, in a line each.
func (f *fixture) search(q Query) []string {
	f.Helper()
	var found []string
	for {
		page, err := f.x.Search(f.Context(), q)
		if err != nil {
			f.Fatal(err)
		}
		for _, h := range page.Hits {
			found = append(found, strings.TrimSpace(strings.Join([]string{h.Server, string(h.Kind), subjectOf(&h.Record), string(h.Record.Verdict), string(h.Outcome), h.Call}, " ")))
		}
		if q.Before = page.Next; q.Before == 0 {
			return found
		}
	}
}

func (f *fixture) want(q Query, want ...string) {
	f.Helper()
	if diff := cmp.Diff(want, f.search(q)); diff != "" {
		f.Errorf("searching for %+v (-want +got):\n%s", q, diff)
	}
}

func call(id, tool string, verdict calllog.Verdict, path string) calllog.Record {
	return calllog.Record{Kind: calllog.Call, Call: id, Method: "tools/call", Tool: tool, Verdict: verdict, Args: []byte(`{"path":` + fmt.Sprintf("%q", path) + `}`),
		Paths: []calllog.Path{{Arg: "/path", Given: path, Resolved: path, Verdict: verdict}}}
}

func end(id, tool string, outcome calllog.Outcome, ms float64) calllog.Record {
	return calllog.Record{Kind: calllog.End, Call: id, Method: "tools/call", Tool: tool, Outcome: outcome, MS: ms, Bytes: 100}
}

func TestSearch(t *testing.T) {
	f := newFixture(t)
	f.want(Query{})
	f.update() // there is no directory yet
	f.want(Query{})

	files, db := f.log("files"), f.log("db")
	f.append(files, call("000001", "read_file", calllog.Allow, "/home/u/app/main.go"), end("000001", "read_file", calllog.OK, 2))
	f.append(db, calllog.Record{Kind: calllog.Asked, Call: "000002", Method: "tools/call", Tool: "drop", Verdict: calllog.Ask, Reason: "drop — it deletes"},
		calllog.Record{Kind: calllog.Answered, Call: "000002", Method: "tools/call", Tool: "drop", Verdict: calllog.Allow, From: calllog.Person, Reason: "by ann"},
		call("000002", "drop", calllog.Allow, ""))
	f.append(files, call("000003", "write_file", calllog.Deny, "/home/u/.ssh/config"))
	f.append(db, end("000002", "drop", calllog.Failed, 7))
	f.update()

	drop, asked := "db call drop allow error 000002", "db asked drop ask  000002"
	read, write := "files call read_file allow ok 000001", "files call write_file deny  000003"
	f.want(Query{}, write, drop, asked, read, "db start", "files start")
	f.want(Query{Limit: 1}, write, drop, asked, read, "db start", "files start")
	f.want(Query{Server: "db"}, drop, asked, "db start")
	f.want(Query{Server: "d"})
	f.want(Query{Tool: "drop", Verdict: calllog.Allow}, drop)
	f.want(Query{Verdict: calllog.Deny}, write)
	f.want(Query{Outcome: calllog.Failed}, drop)
	f.want(Query{Path: "/home/u"}, write, read)
	f.want(Query{Path: "/home/u/app/"}, read)
	f.want(Query{Path: "/home/u/app/main.go"}, read)
	f.want(Query{Path: "/home/u/ap"})
	f.want(Query{Path: "/"}, write, read)
	f.want(Query{Text: "MAIN.go"}, read)
	f.want(Query{Text: "by ann"}, "db answered drop allow  000002") // what is only in a record of its own
	f.want(Query{Text: "verdict"})
	at := time.Date(2026, 11, 30, 12, 0, 10, 0, time.UTC)
	f.want(Query{Since: at}, write)
	f.want(Query{Until: at}, drop, asked, read, "db start", "files start")
	f.want(Query{Since: at, Server: "db"})

	// What is new is found, and what was there is not looked at again.
	f.append(files, call("000004", "read_file", calllog.Allow, "/home/u/app/x"))
	files.Close(0, "done")
	f.update()
	f.want(Query{Since: at}, "files exit", "files call read_file allow  000004", write)
	f.reopen()
	f.update()
	f.want(Query{Since: at}, "files exit", "files call read_file allow  000004", write)
	if len(f.notes) > 0 {
		t.Errorf("the index said %q", f.notes)
	}

	n, err := f.x.Names(t.Context())
	if diff := cmp.Diff(Names{[]string{"db", "files"}, []string{"drop", "read_file", "write_file"}}, n); err != nil || diff != "" {
		t.Errorf("names: %v (-want +got):\n%s", err, diff)
	}
	if s := f.x.State(); s.Files != 2 || s.Bytes != s.Done || s.Bytes == 0 {
		t.Errorf("state is %+v", s)
	}
}

// TestPathsOfWindows: they are found whatever they are separated by.
func TestPathsOfWindows(t *testing.T) {
	f := newFixture(t)
	l := f.log("files")
	f.append(l, call("000001", "r", calllog.Allow, `C:\Users\ann\app\x`), call("000002", "r", calllog.Allow, `C:\Users\annabel`), call("000003", "r", calllog.Allow, `C:\`))
	f.update()
	f.want(Query{Path: `C:\Users\ann`}, "files call r allow  000001")
	f.want(Query{Path: `C:\`}, "files call r allow  000003", "files call r allow  000002", "files call r allow  000001")
}

// TestChanges are files that are not what they were.
func TestChanges(t *testing.T) {
	f := newFixture(t)
	one, two := f.log("one"), f.log("two")
	f.append(one, call("000001", "r", calllog.Allow, "/a"))
	f.append(two, call("000002", "r", calllog.Allow, "/b"))
	one.Close(0, "")
	two.Close(0, "")
	f.update()
	f.want(Query{Tool: "r"}, "two call r allow  000002", "one call r allow  000001")

	// Pruned.
	if err := os.Remove(one.Path()); err != nil {
		t.Fatal(err)
	}
	f.update()
	f.want(Query{}, "two exit", "two call r allow  000002", "two start")

	// Replaced by another, longer one, at the same name.
	three := f.log("three")
	f.append(three, call("000003", "s", calllog.Deny, "/c"), call("000004", "s", calllog.Deny, "/d"), call("000005", "s", calllog.Deny, "/e"))
	three.Close(0, "")
	if err := os.Rename(three.Path(), two.Path()); err != nil {
		t.Fatal(err)
	}
	f.reopen() // which looks at files that have ended, too
	f.update()
	f.want(Query{}, "three exit", "three call s deny  000005", "three call s deny  000004", "three call s deny  000003", "three start")

	// Changed in place: no byte more, and another time.
	b, err := os.ReadFile(two.Path())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(two.Path(), []byte(strings.ReplaceAll(string(b), "000004", "ffffff")), 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(two.Path(), later, later); err != nil {
		t.Fatal(err)
	}
	f.reopen()
	f.update()
	f.want(Query{Text: "ffffff"}, "three call s deny  ffffff")
	f.want(Query{Text: "000004"})

	// Cut, as by a full disk, and gone on with.
	if err := os.Truncate(two.Path(), int64(len(b))/2); err != nil {
		t.Fatal(err)
	}
	f.reopen()
	f.update()
	f.want(Query{Tool: "s"}, "three call s deny  000003")

	// Lines that are no records do not stop it.
	w, err := os.OpenFile(two.Path(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, "\n[]\n{\"kind\":7}\n\x00\n"+strings.Repeat("[", 20000)+"\n{}\n{\"kind\":\"call\",\"tool\":\"t\\u0000x\",\"time\":\"9999-12-31T00:00:00Z\",\"paths\":[{\"resolved\":\"/x\\u0000y\"}]}\n{\"kind\":\"call\",\"tool\":\"u\",\"time\":\"0001-01-01T00:00:00Z\"}\nrest")
	w.Close()
	f.update()
	f.want(Query{Tool: "u"}, "call u")
	if got := f.search(Query{Path: "/x"}); len(got) != 1 {
		t.Errorf("a path with a zero in it: %q", got)
	}
	if len(f.notes) > 0 {
		t.Errorf("the index said %q", f.notes)
	}
}

// A search that finds damage when the index was closed meanwhile leaves what is there, and opens nothing.
func TestDamageBehindTheEnd(t *testing.T) {
	f := newFixture(t)
	err := f.x.read(t.Context(), func(*database) error {
		f.x.Close()
		return errVersion
	})
	if !errors.Is(err, os.ErrClosed) || len(f.x.idle) != 0 || f.x.timesBuilt() != 0 {
		t.Errorf("error %v, %d connections are open, and it was built anew %d times", err, len(f.x.idle), f.x.timesBuilt())
	}
}

// TestDamage: the index is a cache, whatever happens to it.
func TestDamage(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(b []byte) []byte
	}{
		{"no database", func([]byte) []byte { return []byte(strings.Repeat("nothing of ours\n", 1000)) }},
		{"another version", func(b []byte) []byte { b[63]++; return b }},
		{"another program's", func(b []byte) []byte { b[68]++; return b }},
		{"half of it", func(b []byte) []byte { return b[:len(b)/2] }},
		{"tables overwritten", func(b []byte) []byte {
			for i := 4096; i < len(b); i += 7 {
				b[i] ^= 0x5a
			}
			return b
		}},
		{"the schema overwritten", func(b []byte) []byte {
			return []byte(strings.ReplaceAll(string(b), "verdict INTEGER", "verdikt INTEGER"))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			l := f.log("files")
			var want []string
			for i := range 2000 {
				id := fmt.Sprintf("%06x", i)
				f.append(l, call(id, "read", calllog.Allow, "/home/u/"+id))
				want = append(want, "files call read allow  "+id)
			}
			slices.Reverse(want)
			f.update()
			if err := f.x.Close(); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(f.path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(f.path, tt.damage(b), 0o600); err != nil {
				t.Fatal(err)
			}
			f.reopen()
			// What is written elsewhere is whole, or there is an error.
			noted := len(f.notes)
			var failed error
			for _, err := range f.x.All(t.Context(), Query{}) {
				failed = err
			}
			if anew := len(f.notes) > noted; anew && failed == nil {
				t.Error("all of the log is given from an index that was thrown away meanwhile")
			}
			// Whoever sees it first, a search or an update, builds it anew; a search that saw nothing wrong has been right.
			if _, err := f.x.Search(t.Context(), Query{Tool: "read", Limit: 1000}); err != nil {
				t.Fatal(err)
			}
			f.append(l, call("ffffff", "read", calllog.Allow, "/x"))
			f.update()
			f.want(Query{Tool: "read", Limit: 1000}, append([]string{"files call read allow  ffffff"}, want...)...)
			if len(f.notes) != 1 || !strings.Contains(f.notes[0], "built anew") {
				t.Errorf("the index said %q, want one line", f.notes)
			}
		})
	}
}

// TestTidy: what is gone from the log does not stay in the index for ever.
func TestTidy(t *testing.T) {
	f := newFixture(t)
	l, kept := f.log("old"), f.log("kept")
	for i := range manyLeft + 10 {
		r := call("000001", "r", calllog.Allow, fmt.Sprint("/home/u/", i))
		if err := l.AppendSoon(&r); err != nil {
			t.Fatal(err)
		}
	}
	f.append(kept, call("000002", "r", calllog.Deny, "/x"))
	l.Close(0, "")
	f.update()
	f.reopen() // which puts all of it into one file
	before, err := os.Stat(f.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(l.Path()); err != nil {
		t.Fatal(err)
	}
	f.reopen()
	f.update()
	f.want(Query{Tool: "r"}, "kept call r deny  000002")
	f.reopen()
	if after, err := os.Stat(f.path); err != nil || after.Size() > before.Size()/10 {
		t.Errorf("the index has %d bytes, and had %d: %v", after.Size(), before.Size(), err)
	}
	if len(f.notes) > 0 {
		t.Errorf("the index said %q", f.notes)
	}
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // which has none
	}
	f := newFixture(t)
	f.log("files")
	f.update()
	for name, want := range map[string]os.FileMode{"": 0o600, "-wal": 0o600, "/..": os.ModeDir | 0o700} {
		info, err := os.Stat(filepath.Dir(f.path))
		if name != "/.." {
			info, err = os.Stat(f.path + name)
		}
		if err != nil || info.Mode() != want {
			t.Errorf("%s%s: %v, %v, want %v", f.path, name, info.Mode(), err, want)
		}
	}
}

// TestOrder is what the log itself has for an order, with clocks that go back and times that are the same.
func TestOrder(t *testing.T) {
	f := newFixture(t)
	clock := rand.New(rand.NewPCG(1, 2))
	var logs []*calllog.Log
	for i := range 4 {
		at := f.now
		l, err := calllog.Create(f.dir, calllog.Record{Server: fmt.Sprint("s", i)}, calllog.Options{Now: func() time.Time {
			at = at.Add(time.Duration(clock.IntN(5)-2) * time.Microsecond)
			return at
		}})
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, l)
	}
	for i := range 500 {
		f.append(logs[clock.IntN(len(logs))], call(fmt.Sprintf("%06x", i), "r", calllog.Allow, "/a"))
		if i%50 == 0 {
			f.update()
		}
	}
	f.update()
	var want, got []string
	perFile := map[string][]string{}
	for e, err := range calllog.ReadDir(f.dir, calllog.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, e.Hash)
		perFile[e.File] = append(perFile[e.File], e.Hash)
	}
	gotPerFile := map[string][]string{}
	for e, err := range f.x.All(t.Context(), Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Hash)
		gotPerFile[e.File] = append(gotPerFile[e.File], e.Hash)
	}
	if diff := cmp.Diff(perFile, gotPerFile); diff != "" {
		t.Errorf("the order in files (-want +got):\n%s", diff)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("%d records, want %d", len(got), len(want))
	}
	pages := f.search(Query{Limit: 7})
	slices.Sort(pages)
	if n := len(slices.Compact(pages)); n != len(want) {
		t.Errorf("by pages %d records, want %d", n, len(want))
	}
}

func TestStory(t *testing.T) {
	f := newFixture(t)
	l := f.log("files")
	f.append(l, calllog.Record{Kind: calllog.RootsChanged, After: []calllog.Dir{{Name: "lib", Path: "/home/u/lib"}}},
		calllog.Record{Kind: calllog.Asked, Call: "c7f3a2", Method: "tools/call", Tool: "write", Verdict: calllog.Ask, Ask: "q1"},
		call("000009", "read", calllog.Allow, "/home/u/lib/x"),
		calllog.Record{Kind: calllog.Answered, Call: "c7f3a2", Method: "tools/call", Tool: "write", Verdict: calllog.Allow, From: calllog.Person, Ask: "q1", Code: "terminal"},
		call("c7f3a2", "write", calllog.Allow, "/home/u/lib/y"), end("c7f3a2", "write", calllog.OK, 3))
	f.update()
	stories, err := f.x.Story(t.Context(), "c7f3a2")
	if err != nil || len(stories) != 1 {
		t.Fatalf("%d stories, %v", len(stories), err)
	}
	whole, err := calllog.Why(calllog.ReadDir(f.dir, calllog.Filter{}), "c7f3a2", 5)
	if diff := cmp.Diff(whole, stories); err != nil || diff != "" {
		t.Errorf("%v (-from the files +from the index):\n%s", err, diff)
	}
	for _, none := range []string{"", "000000", "/home/u/lib", "c7f3a2c7f3a2"} {
		if stories, err := f.x.Story(t.Context(), none); err != nil || len(stories) > 0 {
			t.Errorf("%q: %d stories, %v", none, len(stories), err)
		}
	}
}

func TestChart(t *testing.T) {
	f := newFixture(t)
	if c, err := f.x.Chart(t.Context(), Query{}, 10); err != nil || len(c.Slots) > 0 {
		t.Errorf("of nothing: %+v, %v", c, err)
	}
	l := f.log("files")
	for i := range 10 {
		id := fmt.Sprintf("%06x", i)
		f.append(l, call(id, "read", calllog.Allow, "/a"), end(id, "read", calllog.OK, float64(i+1)))
	}
	f.append(l, call("0000ff", "read", calllog.Deny, "/b"),
		calllog.Record{Kind: calllog.Asked, Call: "0000fe", Tool: "x", Verdict: calllog.Ask},
		calllog.Record{Kind: calllog.Call, Call: "0000fd", Method: "ping"})
	f.update()
	c, err := f.x.Chart(t.Context(), Query{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).Local()
	want := Chart{10 * time.Second, []Slot{
		{Begin: at, Allowed: 4, Ended: 4, P50: 2, P90: 4, P99: 4},
		{Begin: at.Add(10 * time.Second), Allowed: 5, Ended: 5, P50: 7, P90: 9, P99: 9},
		{Begin: at.Add(20 * time.Second), Allowed: 1, Denied: 1, Other: 1, Asked: 1, Ended: 1, P50: 10, P90: 10, P99: 10},
	}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c, err := f.x.Chart(t.Context(), Query{Verdict: calllog.Deny}, 3); err != nil || len(c.Slots) != 1 || c.Slots[0].Denied != 1 {
		t.Errorf("what was refused: %+v, %v", c, err)
	}
}

// TestCancelled is a search that nobody waits for any more.
func TestCancelled(t *testing.T) {
	f := newFixture(t)
	l := f.log("files")
	f.append(l, call("000001", "r", calllog.Allow, "/a"))
	f.update()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.x.Search(ctx, Query{}); err != context.Canceled {
		t.Errorf("searching gave %v", err)
	}
	if err := f.x.Update(ctx); err != context.Canceled {
		t.Errorf("updating gave %v", err)
	}
	f.update()
	f.want(Query{Tool: "r"}, "files call r allow  000001")
}

// FuzzQuery: whatever is looked for, what is found is what the log has.
func FuzzQuery(f *testing.F) {
	dir := f.TempDir()
	logs := filepath.Join(dir, "log")
	l, err := calllog.Create(logs, calllog.Record{Server: "files"}, calllog.Options{})
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range []calllog.Record{call("000001", "read_file", calllog.Allow, "/home/u/app"), call("000002", "x' OR 1=1 --", calllog.Deny, `C:\x`), call("000003", "%_", calllog.Deny, "/")} {
		if err := l.Append(&r); err != nil {
			f.Fatal(err)
		}
	}
	x, err := Open(Path(dir, logs), logs, func(string) {})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { x.Close() })
	if err := x.Update(context.Background()); err != nil {
		f.Fatal(err)
	}
	f.Add("files", "x' OR 1=1 --", "deny", "/", "home", int64(0), 1)
	f.Add("", "%", "\x00", "\\", "\xff", int64(-1), -1)
	f.Fuzz(func(t *testing.T, server, tool, verdict, path, text string, before int64, limit int) {
		page, err := x.Search(t.Context(), Query{Server: server, Tool: tool, Verdict: calllog.Verdict(verdict), Path: path, Text: text, Before: Key(before), Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range page.Hits {
			if tool != "" && subjectOf(&h.Record) != tool || verdict != "" && string(h.Record.Verdict) != verdict {
				t.Errorf("%q %q finds %s", tool, verdict, h.Line)
			}
		}
	})
}

// TestLookAfter: a disk that stays full does not keep the machine busy.
func TestLookAfter(t *testing.T) {
	for failed, want := range map[int]time.Duration{0: lookEvery, 1: 2 * lookEvery, 3: 8 * lookEvery, 7: restEvery, 1 << 30: restEvery} {
		if got := lookAfter(failed); got != want {
			t.Errorf("after %d errors it looks after %v, want %v", failed, got, want)
		}
	}
}
