package calllog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// arguments is a tools/call's arguments of about 1 KB: a path and a few edits.
var arguments = []byte(`{"path":"/home/u/projects/app/internal/server/handler.go","dryRun":false,"edits":[` + strings.Repeat(
	`{"oldText":"func (s *Server) handle(w http.ResponseWriter, r *http.Request) {\n\treturn nil","newText":"func (s *Server) handle(w http.ResponseWriter, r *http.Request) error {\n\treturn s.next(w, r)"},`, 4) +
	`{"line":12}],"tags":["backend","http"],"ticket":"APP-1234","branch":"feature/handler-errors","repository":"app","labels":["a","b"]}`)

// dense is 1 KB of short strings, all of which are looked at.
var dense = []byte(`{"paths":["/home/u/projects/app/main.go"` + strings.Repeat(`,"/home/u/projects/app/internal/server/handler_test.go"`, 17) + `]}`)

func content(size int, escaped bool) []byte {
	line := strings.Repeat("x", 39)
	if escaped {
		line += "\n"
	}
	b, err := json.Marshal(map[string]string{"path": "/home/u/app/big.txt", "content": strings.Repeat(line, size/len(line))})
	if err != nil {
		panic(err)
	}
	return b
}

func BenchmarkRedact(b *testing.B) {
	for _, bb := range []struct {
		name string
		args []byte
	}{
		{"edits 1 KB", arguments},
		{"paths 1 KB", dense},
		{"content 1 MB", content(1<<20, false)},
		{"lines 1 MB", content(1<<20, true)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			var w walker
			var dst []byte
			b.ReportAllocs()
			b.SetBytes(int64(len(bb.args)))
			for b.Loop() {
				dst = w.appendJSON(dst[:0], bb.args)
			}
		})
	}
}

func benchRecord() *Record {
	return &Record{Kind: Call, Call: "c7f3a2", ID: []byte("17"), Method: "tools/call", Tool: "edit_file", Verdict: Allow,
		Args: arguments, Bytes: int64(len(arguments)), Paths: []Path{{Arg: "/path", Given: "/home/u/projects/app/internal/server/handler.go",
			Resolved: "/home/u/projects/app/internal/server/handler.go", Root: "app", Rel: "internal/server/handler.go", Verdict: Allow}}}
}

func BenchmarkAppend(b *testing.B) {
	log, err := Create(b.TempDir(), Record{Server: "files"}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close(0, "")
	r := benchRecord()
	b.ReportAllocs()
	for b.Loop() {
		if err := log.Append(r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	var e encoder
	r := benchRecord()
	now := someTime
	b.ReportAllocs()
	for b.Loop() {
		e.line(r, 12, now, "files", noPrev)
	}
}

func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	log, err := Create(dir, Record{Server: "files"}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	for range 10_000 {
		log.Append(benchRecord())
	}
	log.Close(0, "")
	for _, f := range []Filter{{}, {Denied: true}} {
		b.Run(fmt.Sprintf("denied=%v", f.Denied), func(b *testing.B) {
			for b.Loop() {
				for _, err := range ReadDir(dir, f) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if _, err := VerifyDir(dir); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestAllocations keeps the way of every call free of garbage.
func TestAllocations(t *testing.T) {
	var e encoder
	r := benchRecord()
	e.line(r, 1, someTime, "files", noPrev)
	if got := testing.AllocsPerRun(100, func() { e.line(r, 12, someTime, "files", noPrev) }); got > 0 {
		t.Errorf("encoding a call: %v allocations, want 0", got)
	}
	for name, args := range map[string][]byte{"content": content(1<<20, false), "lines": content(1<<20, true)} {
		var w walker
		dst := w.appendJSON(nil, args)
		if len(dst) > 200 || !bytes.Contains(dst, []byte(`"bytes":10485`)) {
			t.Errorf("%s: redacted to %q", name, dst[:min(len(dst), 200)])
		}
	}
}
