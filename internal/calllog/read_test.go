package calllog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// create makes a log whose clock is *now.
func create(t testing.TB, dir, server string, now *time.Time) *Log {
	t.Helper()
	log, err := Create(dir, Record{Server: server}, Options{Now: func() time.Time { return *now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close(0, "") })
	return log
}

func appendAll(t testing.TB, log *Log, records ...Record) {
	t.Helper()
	for _, r := range records {
		if err := log.Append(&r); err != nil {
			t.Fatal(err)
		}
	}
}

func texts(t testing.TB, dir string, f Filter) (texts []string) {
	t.Helper()
	for e, err := range ReadDir(dir, f) {
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, e.Server+" "+string(e.Kind)+e.Text)
	}
	return texts
}

func TestReadDirInOrder(t *testing.T) {
	dir := t.TempDir()
	now := someTime
	at := func(seconds int) { now = someTime.Add(time.Duration(seconds) * time.Second) }
	a := create(t, dir, "a", &now)
	at(10)
	b := create(t, dir, "b", &now)
	at(11)
	appendAll(t, a, Record{Kind: Note, Text: "1"})
	at(12)
	appendAll(t, b, Record{Kind: Note, Text: "2"})
	at(5) // the clock was set back: a file keeps its order
	appendAll(t, a, Record{Kind: Note, Text: "3"})
	at(13)
	appendAll(t, a, Record{Kind: Call, Verdict: Deny, Call: "000001"}, Record{Kind: Call, Verdict: Allow, Call: "000002"})
	at(14)
	b.Close(0, "")
	at(20)
	create(t, dir, "c", &now).Close(0, "")
	at(21)
	appendAll(t, a, Record{Kind: RootsAsked}, Record{Kind: ListChanged, Method: "notifications/tools/list_changed"})
	if err := os.WriteFile(filepath.Join(dir, "README"), []byte("no log"), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		filter Filter
		want   []string
	}{
		{Filter{}, []string{"a start", "b start", "a note1", "a note3", "b note2", "a call", "a call", "b exit", "c start", "c exit", "a roots-asked", "a list-changed"}},
		{Filter{Server: "b"}, []string{"b start", "b note2", "b exit"}},
		{Filter{Denied: true}, []string{"a call"}},
		{Filter{Call: "000002"}, []string{"a call"}},
		{Filter{Roots: true}, []string{"a roots-asked"}},
		{Filter{Since: someTime.Add(14 * time.Second)}, []string{"b exit", "c start", "c exit", "a roots-asked", "a list-changed"}},
		{Filter{Server: "x"}, nil},
	} {
		if diff := cmp.Diff(tt.want, texts(t, dir, tt.filter)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.filter, diff)
		}
	}

	for _, err := range ReadDir(filepath.Join(dir, "missing"), Filter{}) {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("missing directory: %v", err)
		}
	}
	for range ReadDir(dir, Filter{}) {
		break // leaves nothing open
	}
}

func TestReadUnreadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte(`{"kind":"note","text":"1"}`+"\nnonsense\n\n"+`{"kind":"note","text":"2"}`+"\n"+`{"kind":"no`), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range Read(path) {
		var bad *UnreadableError
		if errors.As(err, &bad) {
			got = append(got, fmt.Sprint("line ", bad.Line))
			continue
		}
		got = append(got, e.Text)
	}
	if diff := cmp.Diff([]string{"1", "line 2", "line 3", "2"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, err := range Read(path + "x") {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("missing file: %v", err)
		}
	}
}

// TestFollow is a person who follows the log before anything runs, while two runs come and one goes.
func TestFollow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan string)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e, err := range Follow(ctx, dir, Filter{}) {
			if err != nil {
				t.Error(err)
			}
			got <- e.Server + " " + string(e.Kind) + e.Text
		}
	}()
	expect := func(want ...string) {
		t.Helper()
		for _, want := range want {
			if got := <-got; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
	now := someTime
	a := create(t, dir, "a", &now)
	expect("a start")
	appendAll(t, a, Record{Kind: Note, Text: "1"}, Record{Kind: Note, Text: "2"})
	expect("a note1", "a note2")
	now = now.Add(time.Second)
	b := create(t, dir, "b", &now)
	expect("b start")
	a.Close(0, "")
	expect("a exit")
	appendAll(t, b, Record{Kind: Note, Text: "3"})
	expect("b note3")
	b.Close(0, "")
	expect("b exit")
	cancel()
	<-done
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	now := someTime
	var logs []*Log
	var size int64
	for i := range 5 {
		now = now.Add(time.Hour)
		log := create(t, dir, fmt.Sprint("s", i), &now)
		if i != 1 { // the second one goes on
			log.Close(0, "")
		}
		modified := now
		if i == 4 {
			modified = someTime.Add(100 * 24 * time.Hour) // the last one was written just now
		}
		if err := os.Chtimes(log.Path(), modified, modified); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(log.Path())
		if err != nil {
			t.Fatal(err)
		}
		size = info.Size()
		logs = append(logs, log)
	}
	other := filepath.Join(dir, "20261130T061201.123456Z-mine.txt")
	if err := os.WriteFile(other, make([]byte, 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(other, someTime, someTime); err != nil {
		t.Fatal(err)
	}
	prune := func(p Policy, want ...*Log) {
		t.Helper()
		var paths []string
		for _, l := range want {
			paths = append(paths, l.Path())
		}
		got, err := Prune(dir, p)
		if err != nil || !slices.Equal(got, paths) {
			t.Errorf("%+v: removed %v, %v; want %v", p, got, err, paths)
		}
	}
	day := 24 * time.Hour
	prune(Policy{Now: someTime.Add(day)})
	prune(Policy{Now: someTime.Add(day), Bytes: 5 * size}) // the running one is a little smaller
	prune(Policy{Now: someTime.Add(day), Bytes: 4*size + size/2}, logs[0])
	prune(Policy{Now: someTime.Add(91 * day)}, logs[2], logs[3])
	prune(Policy{Now: someTime.Add(100 * day), Age: 1, Bytes: 1})
	prune(Policy{Now: someTime.Add(101 * day), Age: day, Bytes: 1}, logs[4])
	logs[1].Close(0, "")
	if err := os.Chtimes(logs[1].Path(), someTime, someTime); err != nil {
		t.Fatal(err)
	}
	prune(Policy{Now: someTime.Add(101 * day)}, logs[1])
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}
