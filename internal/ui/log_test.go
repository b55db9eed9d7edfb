package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/calllog"
)

// get asks for a value.
func (b *browser) get(path string, into any) (status int, text string) {
	b.t.Helper()
	status, _, text = b.do("GET", path, "")
	if into != nil && status == 200 {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			b.t.Fatalf("%s: %v: %s", path, err, text)
		}
	}
	return status, text
}

// eventually waits until something is so: the index follows the log a moment later.
func eventually(t *testing.T, so func() bool) {
	t.Helper()
	for begun := time.Now(); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatal("it never comes to that")
		}
	}
}

func TestTheLogIsSearched(t *testing.T) {
	dir := t.TempDir()
	logs := filepath.Join(dir, "log")
	l, err := calllog.Create(logs, calllog.Record{Server: "files"}, calllog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 120 {
		id, verdict := fmt.Sprintf("%06x", i), calllog.Allow
		if i%40 == 0 {
			verdict = calllog.Deny
		}
		r := calllog.Record{Kind: calllog.Call, Call: id, Method: "tools/call", Tool: "read", Verdict: verdict, Reason: "because " + id,
			Paths: []calllog.Path{{Arg: "/a", Resolved: "/x", Verdict: calllog.Allow}, {Arg: "/b", Resolved: "/home/u/" + id, Verdict: verdict}}}
		if err := l.Append(&r); err != nil {
			t.Fatal(err)
		}
	}
	l.Close(0, "")
	b := serve(t, Options{LogDir: logs, LogIndex: filepath.Join(dir, "index", "x.sqlite")}).letIn()
	type page struct {
		Hits  []logged
		Next  string
		State reading
	}
	search := func(query string) (p page) {
		t.Helper()
		if status, text := b.get("/api/log/search?"+query, &p); status != 200 {
			t.Fatalf("%s: %d %s", query, status, text)
		}
		return p
	}
	eventually(t, func() bool { s := search("").State; return s.Files == 1 && s.Done == s.Bytes })
	first := search("tool=read")
	second := search("tool=read&before=" + first.Next)
	third := search("tool=read&before=" + second.Next)
	if n := []int{len(first.Hits), len(second.Hits), len(third.Hits)}; fmt.Sprint(n) != "[50 50 20]" || third.Next != "" {
		t.Errorf("pages have %v, and then %q", n, third.Next)
	}
	if got := search("verdict=deny&text=BECAUSE&path=/home/u/000028").Hits; len(got) != 1 || got[0].Call != "000028" || strings.Join(got[0].Places, " ") != "/home/u/000028 /x" {
		t.Errorf("found %+v", got)
	}
	for query, want := range map[string]string{"since=yesterday": "time", "before=x": "request", "before=-1": "request"} {
		if status, text := b.get("/api/log/search?"+query, nil); status != 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", query, status, text)
		}
	}
	var chart struct{ Slots []slot }
	b.get("/api/log/chart?verdict=deny", &chart)
	if len(chart.Slots) != 1 || chart.Slots[0].Denied != 3 {
		t.Errorf("the chart is %+v", chart)
	}

	// The proof is of the file as it is now, however often it was asked for.
	var proof struct{ Chains []chain }
	for range 2 {
		b.get("/api/log/chain?file="+url.QueryEscape(filepath.Base(l.Path()))+"&file=../../etc/passwd", &proof)
		if len(proof.Chains) != 1 || proof.Chains[0].Records != 122 || proof.Chains[0].Line != 0 {
			t.Errorf("the chain is %+v", proof)
		}
	}
	text, err := os.ReadFile(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.Path(), []byte(strings.Replace(string(text), "because 000009", "because 00000a", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(l.Path(), later, later); err != nil {
		t.Fatal(err)
	}
	if b.get("/api/log/chain", &proof); len(proof.Chains) != 1 || proof.Chains[0].Line != 11 || proof.Chains[0].Kind != string(calllog.Changed) {
		t.Errorf("the chain is %+v", proof)
	}
	// What is saved is as it is in the file, the oldest first.
	status, header, saved := b.do("GET", "/api/log/export?verdict=deny", "")
	if status != 200 || !strings.HasPrefix(header.Get("Content-Disposition"), "attachment") || strings.Count(saved, "\n") != 3 || !strings.Contains(string(text), saved[:strings.Index(saved, "\n")+1]) {
		t.Errorf("%d %v %s", status, header, saved)
	}
}

// TestWithoutALog says so, and the rest of the page goes on.
func TestWithoutALog(t *testing.T) {
	b := serve(t, Options{}).letIn()
	if status, text := b.get("/api/log/search", nil); status != 404 || !strings.Contains(text, "nolog") {
		t.Errorf("%d %s", status, text)
	}
}

// TestOneTrialAtATime: it goes on until it is done or stopped, and ends with the page's program.
func TestOneTrialAtATime(t *testing.T) {
	end := make(chan error)
	ended := make(chan bool, 9)
	s := serve(t, Options{
		Configured: func() []Configured { return []Configured{{ID: "a", Name: "files"}} },
		Verify: func(ctx context.Context, c Trial) (*Tried, error) {
			defer func() { ended <- true }()
			c.Progress(1, 2, "reading "+c.ID)
			select {
			case err := <-end:
				return &Tried{Score: "2 of 2 held", Held: 2, Page: []byte("<!doctype html>report")}, err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	})
	b := s.letIn()
	stream := b.stream()
	state := func(want string) (last trial) {
		t.Helper()
		for last.State != want {
			if kind, _, value := stream.next(); kind == "verify" {
				last = trial{}
				if err := json.Unmarshal([]byte(value), &last); err != nil {
					t.Fatal(err)
				}
			}
		}
		return last
	}
	start := func(id string, want int) {
		t.Helper()
		if status, _, text := b.do("POST", "/api/verify/start", `{"id":"`+id+`","quick":true}`); status != want {
			t.Errorf("starting %s: %d %s, want %d", id, status, text, want)
		}
	}
	start("b", 404)
	start("a", 200)
	start("a", 409)
	if got := state("running"); got.Server.Name != "files" {
		t.Errorf("what runs is %+v", got)
	}
	if status, _, _ := b.do("GET", "/api/verify/report", ""); status != 404 {
		t.Errorf("there is a report before the end: %d", status)
	}
	b.do("POST", "/api/verify/stop", "{}")
	state("stopped")
	start("a", 200)
	end <- errors.New("it does not start")
	if got := state("failed"); got.Error != "it does not start" {
		t.Errorf("what failed is %+v", got)
	}
	start("a", 200)
	end <- nil
	if got := state("done"); got.Tried == nil || got.Tried.Held != 2 || got.Ended == nil {
		t.Errorf("what is done is %+v", got)
	}
	status, header, page := b.do("GET", "/api/verify/report", "")
	if status != 200 || page != "<!doctype html>report" || !strings.HasPrefix(header.Get("Content-Security-Policy"), "sandbox;") {
		t.Errorf("the report: %d %v %s", status, header, page)
	}
	start("a", 200)
	for range 3 {
		<-ended
	}
	s.end()
	select {
	case <-ended:
	default:
		t.Error("the program ends before what it started")
	}
}

// TestNoTrialBeginsAtTheEnd: a request that is still served when the program ends leaves nothing behind.
func TestNoTrialBeginsAtTheEnd(t *testing.T) {
	u := New(Options{
		Configured: func() []Configured { return []Configured{{ID: "a"}} },
		Verify:     func(context.Context, Trial) (*Tried, error) { t.Error("it begins"); return nil, nil },
	})
	ctx, end := context.WithCancel(t.Context())
	end()
	endTrial(ctx, u)
	r := httptest.NewRequest("POST", "/api/verify/start", strings.NewReader(`{"id":"a"}`))
	r.Header.Set("Content-Type", "application/json")
	if _, err := u.startTrial(r); err == nil {
		t.Error("it is said to have begun")
	}
}

// TestAProofThatNobodyWaitsForIsNotMade: a page that follows the log gives up many.
func TestAProofThatNobodyWaitsForIsNotMade(t *testing.T) {
	dir := t.TempDir()
	l, err := calllog.Create(dir, calllog.Record{Server: "files"}, calllog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(0, "")
	u := New(Options{LogDir: dir})
	ctx, giveUp := context.WithCancel(t.Context())
	u.history.mu.Lock() // another one is being made
	ended := make(chan error, 1)
	go func() {
		_, err := u.logChain(httptest.NewRequest("GET", "/api/log/chain", nil).WithContext(ctx))
		ended <- err
	}()
	giveUp()
	u.history.mu.Unlock()
	if err := <-ended; !errors.Is(err, context.Canceled) || len(u.history.checked) > 0 {
		t.Errorf("%d files were verified, %v", len(u.history.checked), err)
	}
}

// The chain of a log that grows is proven on from where it was, and all of it when somebody asks for that.
func TestTheProofGoesOn(t *testing.T) {
	dir, begun := t.TempDir(), time.Now()
	l, err := calllog.Create(dir, calllog.Record{Server: "files"}, calllog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(0, "")
	b := serve(t, Options{LogDir: dir, LogIndex: filepath.Join(t.TempDir(), "x.sqlite")}).letIn()
	add := func(n int) {
		t.Helper()
		for range n {
			if err := l.Append(&calllog.Record{Kind: calllog.Call, Tool: "read"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	proof := func(query, kind string, records int) {
		t.Helper()
		var out struct{ Chains []chain }
		b.get("/api/log/chain"+query, &out)
		if len(out.Chains) != 1 || out.Chains[0].Kind != kind || out.Chains[0].Records != records {
			t.Errorf("%q finds %+v, want %q and %d records", query, out.Chains, kind, records)
		}
	}
	view := "?file=" + url.QueryEscape(filepath.Base(l.Path()))
	changes := 0
	change := func(tool string) {
		t.Helper()
		changes++
		f, err := os.OpenFile(l.Path(), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		text, err := os.ReadFile(l.Path())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(tool), int64(strings.Index(string(text), `"tool":"`)+len(`"tool":"`))); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(l.Path(), time.Time{}, begun.Add(time.Duration(changes)*time.Minute)); err != nil { // whatever the clock of the disk shows
			t.Fatal(err)
		}
	}
	add(10)
	proof(view, "", 11)
	add(10)
	proof(view, "", 21)
	change("xxxx")
	proof(view, string(calllog.Changed), 1)
	change("read")
	proof(view, "", 21)
	change("xxxx")
	add(1)
	proof(view, "", 22) // what was proven is not read again while the file grows
	proof("", string(calllog.Changed), 1)
	proof(view, string(calllog.Changed), 1)
	add(1)
	proof(view, string(calllog.Changed), 1)

	// A run that has ended is not read again, unless somebody asks for all of it and that was not done.
	change("read")
	proof(view, "", 23)
	change("xxxx")
	if err := l.Close(0, ""); err != nil {
		t.Fatal(err)
	}
	proof(view, "", 24)
	proof("", string(calllog.Changed), 1)
	proof(view, string(calllog.Changed), 1)
}
