package calllog

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// day writes a day of two servers into dir.
func day(t *testing.T, dir string) {
	t.Helper()
	now := someTime
	tick := func() time.Time {
		now = now.Add(250 * time.Millisecond)
		return now
	}
	app := Dir{Name: "app", Path: "/home/u/app", Access: "rw", Origin: "--root"}
	docs := Dir{Name: "我的文档", Path: "/home/u/我的文档", Access: "ro", Origin: "--ro"}
	files, err := Create(dir, Record{Server: "files", Version: "0.1.0", PID: 42, Command: []string{"npx", "server"}, Dirs: []Dir{app, docs},
		ClientRoots: "narrow", Layers: []string{"told", "checked"}}, Options{Now: tick})
	if err != nil {
		t.Fatal(err)
	}
	list := []Root{{URI: "file:///home/u/app", Name: "app"}, {URI: "file:///home/u/%E6%88%91%E7%9A%84%E6%96%87%E6%A1%A3", Name: "我的文档"}}
	call := func(id, tool string, v Verdict, code, reason string, paths ...Path) Record {
		return Record{Kind: Call, Call: id, ID: json.RawMessage("1"), Method: "tools/call", Tool: tool, Verdict: v, Code: code, Reason: reason, Paths: paths,
			Args: json.RawMessage(`{"path":"given","content":"` + strings.Repeat("x", 40) + `"}`)}
	}
	appendAll(t, files,
		Record{Kind: RootsAsked, Ask: "a00001", From: Guard, To: Client},
		Record{Kind: RootsAnswered, Ask: "a00001", From: Client, To: Guard, Roots: list[:1], Equal: new(false), Outcome: OK},
		Record{Kind: RootsChanged, Before: []Dir{app, docs}, After: []Dir{app}, Reason: "the client's list is narrower"},
		Record{Kind: RootsAsked, Ask: "a00002", From: Server, To: Guard},
		Record{Kind: RootsAnswered, Ask: "a00002", From: Guard, To: Server, Roots: list[:1], Equal: new(false), Outcome: OK},
		call("c00001", "read_text_file", Allow, "", "", Path{Arg: "/path", Given: "src/main.go", Resolved: "/home/u/app/src/main.go", Root: "app", Rel: "src/main.go", Verdict: Allow}),
		Record{Kind: End, Call: "c00001", Method: "tools/call", Tool: "read_text_file", Outcome: OK, MS: 3.42, Bytes: 1234},
		Record{Kind: ListChanged, Method: "notifications/roots/list_changed", From: Client, To: Guard},
		Record{Kind: RootsAsked, Ask: "a00003", From: Guard, To: Client, Call: "c00002"},
		Record{Kind: RootsAnswered, Ask: "a00003", From: Client, To: Guard, Roots: list, Equal: new(true), Outcome: OK, Call: "c00002"},
		Record{Kind: RootsChanged, Before: []Dir{app}, After: []Dir{app, docs}, Reason: "the client's list changed", Call: "c00002"},
		Record{Kind: ListChanged, Method: "notifications/roots/list_changed", From: Guard, To: Server},
		call("c00002", "list_directory", Allow, "", "", Path{Arg: "/path", Given: "/home/u/我的文档", Resolved: "/home/u/我的文档", Dir: true, Root: "我的文档", Verdict: Allow}),
		Record{Kind: End, Call: "c00002", Method: "tools/call", Tool: "list_directory", Outcome: Failed, MS: 0.4, Reason: "server: \x1b[31mred\x1b[0m alert"},
		call("c00003", "move_file", Deny, CodeOutside, "outside every root",
			Path{Arg: "/source", Given: "a.txt", Resolved: "/home/u/app/a.txt", Root: "app", Rel: "a.txt", Verdict: Allow},
			Path{Arg: "/destination", Given: "../it's/b.txt", Resolved: "/home/u/it's/b.txt", Verdict: Deny, Code: CodeOutside}),
		call("c00004", "write_file", Deny, CodeReadOnly, "我的文档 is read-only",
			Path{Arg: "/path", Given: "/home/u/我的文档/x", Resolved: "/home/u/我的文档/x", Root: "我的文档", Rel: "x", Verdict: Deny, Code: CodeReadOnly},
			Path{Arg: "/content", Code: "free text"}),
		call("c00005", "run", Deny, "unsure", "\"--from\" may be a path", Path{Arg: "/from", Given: "/etc/\u202egnp.exe\x1b]0;x\a", Resolved: "/etc", Dir: true, Verdict: Deny, Code: CodeOutside}),
		call("c00007", "read_text_file", Deny, CodeOutside, "not in /home/u/app", Path{Given: "/srv/x", Resolved: "/srv/x", Verdict: Deny, Code: CodeOutside}),
		Record{Kind: Call, Call: "c00006", Method: "resources/read", Verdict: Ask, Reason: "a person has to say yes", Paths: []Path{{Arg: "/uri", Given: "file:///x", Verdict: Ask}}},
		Record{Kind: End, Call: "c00006", Method: "resources/read", Outcome: Cancelled, MS: 61_234},
		Record{Kind: Note, From: Server, Code: "stdout-text", Reason: "dropped a line on stdout", Text: "Debugger \x1b[2Jlistening " + skKey, Bytes: 53},
	)
	now = someTime.Add(24 * time.Hour)
	clock, err := Create(dir, Record{Server: "世界时钟", Version: "0.1.0", PID: 43, Layers: []string{"told"}}, Options{Now: tick})
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, clock,
		Record{Kind: RootsAsked, Ask: "b00001", From: Guard, To: Client},
		Record{Kind: RootsAnswered, Ask: "b00001", From: Client, To: Guard, Outcome: Failed, Code: "-32601", Reason: "method not found"},
		Record{Kind: RootsAsked, Ask: "b00002", From: Server, To: Guard},
		Record{Kind: Call, Call: "d00001", Method: "tools/call", Tool: "a_tool_with_a_very_long_name_indeed", Verdict: Allow, Bytes: 1 << 20},
	)
	if err := errors.Join(files.Close(0, "client closed"), clock.Close(1, "server exited")); err != nil {
		t.Fatal(err)
	}
}

func TestPrint(t *testing.T) {
	dir := t.TempDir()
	day(t, dir)
	print := func(f Filter, color bool) string {
		var b bytes.Buffer
		p := Printer{W: &b, Location: time.UTC, Color: color}
		for e, err := range ReadDir(dir, f) {
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Print(e); err != nil {
				t.Fatal(err)
			}
		}
		return b.String()
	}
	golden(t, "all.txt", print(Filter{}, false))
	golden(t, "denied.txt", print(Filter{Denied: true}, false))
	golden(t, "color.txt", print(Filter{Call: "c00003"}, true)+print(Filter{Call: "c00001"}, true))
}

// TestRootsChanged: what changed is seen, also where it is no name.
func TestRootsChanged(t *testing.T) {
	app, docs := Dir{Name: "app", Path: "/u/app", Access: "rw"}, Dir{Name: "docs", Path: "/u/docs", Access: "rw"}
	read := docs
	read.Access = "ro"
	for _, tt := range []struct {
		after []Dir
		want  string
	}{
		{[]Dir{app}, "app, docs → app"},
		{[]Dir{app, read}, "app /u/app (rw), docs /u/docs (rw) → app /u/app (rw), docs /u/docs (ro)"},
	} {
		if _, _, got := Describe(&Record{Kind: RootsChanged, Before: []Dir{app, docs}, After: tt.after}); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// TestColumnsStay: a line is the same whatever was printed before it, so that one who follows reads straight columns.
func TestColumnsStay(t *testing.T) {
	dir := t.TempDir()
	day(t, dir)
	var all, each bytes.Buffer
	p := Printer{W: &all, Location: time.UTC}
	for e, err := range ReadDir(dir, Filter{}) {
		alone := Printer{W: &each, Location: time.UTC, day: p.day}
		if err := errors.Join(err, p.Print(e), alone.Print(e)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(all.String(), each.String()); diff != "" {
		t.Errorf("all after each other, and each alone (-want +got):\n%s", diff)
	}
}

// TestLongNames: names are never cut, and a line is straight again as soon as there is room for it.
func TestLongNames(t *testing.T) {
	const detail = "1 B"
	for _, tt := range []struct {
		server, tool string
		subject, at  int // the columns in which the tool and the detail begin
	}{
		{"fs", "read", subjectAt, detailAt},
		{"世界时钟世界", "读文件", subjectAt, detailAt},
		{"mcp-filesystem-server", "read", serverAt + 21 + 2, detailAt},
		{"世界时钟世界时钟世", "读文件", serverAt + 18 + 2, detailAt},
		{"fs", "list_directory_with_sizes", subjectAt, subjectAt + 25 + 2},
	} {
		var b bytes.Buffer
		p := Printer{W: &b, Location: time.UTC, day: "2026-11-30"}
		if err := p.Print(Entry{Record: Record{Time: someTime, Kind: End, Server: tt.server, Tool: tt.tool, Outcome: OK, Bytes: 1}}); err != nil {
			t.Fatal(err)
		}
		before, _, _ := strings.Cut(b.String(), tt.tool)
		whole, _, ok := strings.Cut(b.String(), detail)
		if !ok || !strings.Contains(before, tt.server) {
			t.Errorf("%s, %s: something is missing in %q", tt.server, tt.tool, b.String())
		}
		if subject, at := widths.StringWidth(before), widths.StringWidth(whole); subject != tt.subject || at != tt.at {
			t.Errorf("%s, %s: the tool begins in column %d, the detail in %d; want %d and %d", tt.server, tt.tool, subject, at, tt.subject, tt.at)
		}
	}
}

// TestHostileLog is a log that somebody else wrote, with orders for the terminal in every text of every record.
func TestHostileLog(t *testing.T) {
	const evil = "\x1b]0;owned\a\x1b[2J\r\n\u009b31m\u007f\u202e\U000e0041"
	dir := t.TempDir()
	var file bytes.Buffer
	for _, kind := range []Kind{Start, Exit, Call, End, RootsAsked, RootsAnswered, RootsChanged, ListChanged, Note, evil} {
		for _, verdict := range []Verdict{Deny, evil} {
			r := Record{Time: someTime, ID: json.RawMessage("1"), Args: json.RawMessage(`"` + "\u009b" + `"`), Dirs: make([]Dir, 1), Paths: make([]Path, 1),
				Roots: make([]Root, 1), Before: make([]Dir, 1), After: make([]Dir, 1), Command: []string{""}, Layers: []string{""}}
			fill(reflect.ValueOf(&r).Elem(), evil)
			r.Kind, r.Verdict, r.Paths[0].Verdict = kind, verdict, verdict
			line, err := json.Marshal(&r)
			if err != nil {
				t.Fatal(err)
			}
			// What JSON lets stand as it is stands as it is.
			for _, c := range "\u009b\u007f\u202e" {
				line = bytes.ReplaceAll(line, fmt.Appendf(nil, "\\u%04x", c), []byte(string(c)))
			}
			file.Write(append(bytes.Replace(line, []byte(","), []byte(",\r\t"), 1), '\n'))
		}
	}
	if err := os.WriteFile(filepath.Join(dir, fileName(someTime, "x", 1)), file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "20261130T061201.123456Z-\x1b[2J-00000000.jsonl"), file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var lines, shown bytes.Buffer
	p := Printer{W: &shown, Location: time.UTC}
	raw := Printer{W: &lines}
	n := 0
	for e, err := range ReadDir(dir, Filter{}) {
		n++
		if err := errors.Join(err, p.Print(e), raw.PrintJSON(e)); err != nil {
			t.Fatal(err)
		}
		var r Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil || !reflect.DeepEqual(r.Paths, e.Paths) {
			t.Errorf("%q does not say what %q says: %v", lines.Bytes(), e.Line, err)
		}
		shown.Write(lines.Bytes())
		lines.Reset()
	}
	if n != 20 {
		t.Errorf("%d records were read, want those of one file, 20", n)
	}
	events, err := RootsEvents(ReadDir(dir, Filter{}))
	stories, err2 := Why(ReadDir(dir, Filter{}), evil, 100)
	reports, err3 := VerifyDir(dir)
	if err := errors.Join(err, err2, err3, p.PrintRoots(events), p.PrintReport(Report{Path: evil})); err != nil {
		t.Fatal(err)
	}
	for _, s := range stories {
		if err := p.PrintStory(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range reports {
		if err := p.PrintReport(r); err != nil {
			t.Fatal(err)
		}
	}
	if len(events) == 0 || len(stories) == 0 || len(reports) == 0 {
		t.Errorf("%d events, %d stories, %d reports", len(events), len(stories), len(reports))
	}
	for line := range bytes.Lines(shown.Bytes()) {
		if text := string(bytes.TrimSuffix(line, []byte("\n"))); Visible(text) != text || !utf8.ValidString(text) {
			t.Errorf("this reaches the terminal: %q", text)
		}
	}
}

// fill sets every string in v.
func fill(v reflect.Value, s string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), s)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if v.Index(i).Kind() != reflect.Uint8 {
				fill(v.Index(i), s)
			}
		}
	}
}

// TestPrintJSON: what we wrote is printed byte for byte, so that the chain can be checked from it.
func TestPrintJSON(t *testing.T) {
	dir := t.TempDir()
	day(t, dir)
	var want, got bytes.Buffer
	p := Printer{W: &got}
	for e, err := range ReadDir(dir, Filter{}) {
		if err := errors.Join(err, p.PrintJSON(e)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&want, "%s\n", e.Line)
	}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPrintRoots(t *testing.T) {
	dir := t.TempDir()
	day(t, dir)
	events, err := RootsEvents(ReadDir(dir, Filter{Roots: true}))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	p := Printer{W: &b, Location: time.UTC}
	if err := p.PrintRoots(events); err != nil {
		t.Fatal(err)
	}
	golden(t, "roots.txt", b.String())
}

func TestWhy(t *testing.T) {
	dir := t.TempDir()
	day(t, dir)
	for _, tt := range []struct{ name, what string }{
		{"why-call.txt", "c00003"},
		{"why-allowed.txt", "c00002"},
		{"why-opened.txt", "c00007"},
		{"why-path.txt", "/home/u/我的文档/"},
		{"why-beneath.txt", "/etc"},
		{"why-newest.txt", "/"},
	} {
		stories, err := Why(ReadDir(dir, Filter{}), tt.what, 2)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		p := Printer{W: &b, Location: time.UTC}
		for _, s := range stories {
			s.Call.File = filepath.Base(s.Call.File)[:len("20261130T061201.373456Z-files-")] + "RANDOM.jsonl"
			if err := p.PrintStory(s); err != nil {
				t.Fatal(err)
			}
		}
		golden(t, tt.name, b.String())
	}
	for _, what := range []string{"ffffff", "/home/u/app", "/et"} {
		if stories, err := Why(ReadDir(dir, Filter{}), what, 2); err != nil || len(stories) > 0 {
			t.Errorf("why %s: %d stories, %v", what, len(stories), err)
		}
	}
	if _, err := Why(ReadDir(dir+"x", Filter{}), "/", 1); err == nil {
		t.Error("a log that cannot be read tells no story")
	}
}

// TestWhyAsked is the question of a person who was asked, or would have been.
func TestWhyAsked(t *testing.T) {
	dir := t.TempDir()
	now := someTime
	log := create(t, dir, "s", &now)
	asked := func(id string) Record {
		return Record{Kind: Asked, Call: id, Tool: "write", Verdict: Ask, Reason: "it writes", Fix: "a rule\nanother"}
	}
	answered := func(id, why string) Record {
		return Record{Kind: Answered, Call: id, Tool: "write", Verdict: Deny, Reason: why}
	}
	end := func(id string) Record { return Record{Kind: End, Call: id, Tool: "write", Outcome: "cancelled"} }
	appendAll(t, log,
		asked("c00001"), // waits
		asked("c00002"), answered("c00002", "cancelled"), end("c00002"),
		asked("c00003"), answered("c00003", "no"), Record{Kind: Call, Call: "c00003", Tool: "write", Verdict: Deny, Reason: "no"}, end("c00003"),
	)
	for id, want := range map[string]struct {
		kind        Kind
		asked, rest int
	}{"c00001": {Asked, 0, 0}, "c00002": {Asked, 0, 2}, "c00003": {Call, 2, 1}} {
		stories, err := Why(ReadDir(dir, Filter{}), id, 5)
		if err != nil || len(stories) != 1 {
			t.Fatalf("why %s: %d stories, %v", id, len(stories), err)
		}
		s := stories[0]
		if s.Call.Call != id || s.Call.Kind != want.kind || len(s.Asked) != want.asked || len(s.Rest) != want.rest {
			t.Errorf("why %s: %v with %d before and %d then, want %v with %d and %d", id, s.Call.Kind, len(s.Asked), len(s.Rest), want.kind, want.asked, want.rest)
		}
		if diff := cmp.Diff([]string{"a rule", "another"}, s.Allow); diff != "" {
			t.Errorf("why %s: what would allow it (-want +got):\n%s", id, diff)
		}
	}
}

// TestFetchedAfter is the question people ask: was the list fetched after it changed?
func TestFetchedAfter(t *testing.T) {
	dir := t.TempDir()
	now := someTime
	log := create(t, dir, "s", &now)
	changed := Record{Kind: ListChanged, Method: "notifications/roots/list_changed", From: Guard, To: Server}
	inOther := changed
	inOther.Session = "2"
	appendAll(t, log,
		changed, inOther,
		Record{Kind: RootsAsked, From: Guard, To: Client, Ask: "000001"}, // not the one who was told
		changed,
		Record{Kind: RootsAsked, From: Server, To: Guard, Ask: "000002"}, // fetches for both before
		changed,
	)
	events, err := RootsEvents(ReadDir(dir, Filter{}))
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for _, ev := range events {
		if ev.Kind == ListChanged {
			var seq uint64
			if ev.Fetched != nil {
				seq = ev.Fetched.Seq
			}
			got = append(got, seq)
		}
	}
	if diff := cmp.Diff([]uint64{6, 0, 6, 0}, got); diff != "" {
		t.Errorf("fetched by record (-want +got):\n%s", diff)
	}
}

func TestPrintReport(t *testing.T) {
	var b bytes.Buffer
	p := Printer{W: &b}
	for _, r := range []Report{
		{Path: "a.jsonl", Records: 12, State: Ended, Head: "abc"},
		{Path: "b.jsonl", Records: 3, Tail: 40, Head: "abc"},
		{Path: "c.jsonl", Records: 3, State: Running, Head: "abc", Damage: &Damage{Line: 4, Offset: 900, Seq: 4, Kind: Missing, Detail: "record 4 is missing"}},
		{Path: "\x1b[2J.jsonl"},
	} {
		if err := p.PrintReport(r); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "reports.txt", b.String())
}

func TestUnits(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 999_950: "1.0 MB", 1 << 40: "1.1 TB"} {
		if got := bytesText(n); got != want {
			t.Errorf("bytesText(%d) = %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{1500: "0.001 ms", 42 * time.Millisecond: "42 ms", 1500 * time.Millisecond: "1.5 s", 90 * time.Second: "1m30s"} {
		if got := duration(d); got != want {
			t.Errorf("duration(%d) = %q, want %q", d, got, want)
		}
	}
}
