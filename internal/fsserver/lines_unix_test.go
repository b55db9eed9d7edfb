//go:build unix

package fsserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/roots"
)

func TestReadLines(t *testing.T) {
	w := tree(t, map[string]string{"R/a.txt": "l1\nl2\r\nl3", "R/b.txt": "x\n\n", "R/empty": "", "R/sub/": "", "R/latin1": "caf\xe9\n"})
	set := roots.NewSet(resolve(t, w+"/R", roots.ReadOnly))
	const tool = "read_lines"
	each(t, newServer(t), w, set, []struct{ tool, args, want string }{
		{tool, `{"path":"a.txt"}`, "1\tl1\n2\tl2\n3\tl3"},
		{tool, `{"path":"a.txt","limit":1}`, "1\tl1\n[More lines follow: go on with offset 2]"},
		{tool, `{"path":"a.txt","offset":2,"limit":1}`, "2\tl2\n[More lines follow: go on with offset 3]"},
		{tool, `{"path":"a.txt","offset":3,"limit":1}`, "3\tl3"},
		{tool, `{"path":"a.txt","offset":2.9,"limit":1e300}`, "2\tl2\n3\tl3"},
		{tool, `{"path":"a.txt","offset":4}`, "[The file ends with line 3]"},
		{tool, `{"path":"b.txt"}`, "1\tx\n2\t"},
		{tool, `{"path":"b.txt","offset":2,"limit":1}`, "2\t"},
		{tool, `{"path":"b.txt","offset":3}`, "[The file ends with line 2]"},
		{tool, `{"path":"empty"}`, "[The file is empty]"},
		{tool, `{"path":"latin1"}`, "1\tcaf\ufffd"},
		{tool, `{"path":"a.txt","offset":0}`, "!The first line is 1, and at least 1 line is read: offset is 0 and limit is 2000."},
		{tool, `{"path":"a.txt","limit":-1}`, "!The first line is 1, and at least 1 line is read: offset is 1 and limit is -1."},
		{tool, `{"path":"sub"}`, "!EISDIR: illegal operation on a directory, read"},
		{tool, `{"path":"nope"}`, "!ENOENT: no such file or directory, open '$W/R/nope'"},
		{tool, `{"path":"/etc/passwd"}`, "!Access denied - path outside allowed directories: /etc/passwd not in $W/R"},
	})
	each(t, compatServer(t), w, set, []struct{ tool, args, want string }{{tool, `{"path":"a.txt"}`, "!MCP error -32602: Tool read_lines not found"}})
}

// Whoever goes on where an answer says reads every line once, whatever the blocks are.
func FuzzNumberedLines(f *testing.F) {
	for _, text := range []string{"", "\n", "a", "a\nb\n", "a\r\n\nb", strings.Repeat("line\n", 30)} {
		f.Add([]byte(text), uint8(2), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, limit, size uint8) {
		var want []string
		lines := bytes.Split(text, []byte("\n"))
		if len(lines[len(lines)-1]) == 0 {
			lines = lines[:len(lines)-1]
		}
		for i, l := range lines {
			want = append(want, fmt.Sprintf("%d\t%s", i+1, decode(bytes.TrimSuffix(l, []byte("\r")))))
		}
		var got []string
		for next := int64(1); next > 0; {
			answer, err := numberedLines(t.Context(), bytes.NewReader(text), next, int64(limit)+1, make([]byte, int(size)+1))
			if err != nil {
				t.Fatal(err)
			}
			before := next
			next = 0
			if i := strings.LastIndex(answer, "\n[More lines follow: go on with offset "); i >= 0 {
				if fmt.Sscanf(answer[i+1:], "[More lines follow: go on with offset %d]", &next); next != before+int64(limit)+1 {
					t.Fatalf("from %d it goes on with %d", before, next)
				}
				answer = answer[:i]
			}
			got = append(got, answer)
		}
		if len(want) == 0 {
			want = []string{"[The file is empty]"}
		}
		if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// endless is a file of some size without a line end.
type endless struct{ left int64 }

func (e *endless) Read(b []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(b)), e.left)
	e.left -= n
	for i := range b[:n] {
		b[i] = 'x'
	}
	return int(n), nil
}

// A long line is cut, a long answer goes on elsewhere, and neither keeps more than it answers.
func TestReadLinesOfWhatIsLong(t *testing.T) {
	text, err := numberedLines(t.Context(), &endless{left: 1 << 28}, 1, 9, make([]byte, block))
	if want := fmt.Sprintf("… [%d more bytes in this line]", 1<<28-maxLineShown); err != nil || len(text) > maxLineShown+100 || !strings.HasSuffix(text, want) {
		t.Errorf("one line: %d bytes, %v", len(text), err)
	}
	many := strings.Repeat(strings.Repeat("y", 999)+"\n", 3000)
	text, err = numberedLines(t.Context(), strings.NewReader(many), 1, 1<<40, make([]byte, block))
	if err != nil || len(text) > maxNumbered+2000 || !strings.Contains(text[len(text)-60:], "[More lines follow: go on with offset 10") {
		t.Errorf("many lines: %d bytes, %v, %q", len(text), err, text[len(text)-60:])
	}
}

// Files are read together up to what one answer carries; what does not fit has its error, and the rest is counted.
func TestReadMultipleFiles(t *testing.T) {
	w := tree(t, map[string]string{"R/a.txt": "l1\nl2\n", "R/b.js": "x", "R/empty": "", "R/sub/": "", "R/out": "-> ../canary", "canary": canary})
	for _, name := range []string{"big1", "big2", "huge"} {
		size := maxText * 3 / 5
		if name == "huge" {
			size = maxText + 1
		}
		if err := os.WriteFile(w+"/R/"+name, bytes.Repeat([]byte("z"), size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set := roots.NewSet(resolve(t, w+"/R", roots.ReadOnly))
	const tool = "read_multiple_files"
	each(t, newServer(t), w, set, []struct{ tool, args, want string }{
		{tool, `{"paths":["$W/R/b.js","zz","a.txt"]}`, "$W/R/b.js:\nx\n\n---\nzz: Error - ENOENT: no such file or directory, open '$W/R/zz'\n---\na.txt:\nl1\nl2\n\n"},
		{tool, `{"paths":["empty","empty"]}`, "empty:\n\n\n---\nempty:\n\n"},
		{tool, `{"paths":["sub","out","/etc/passwd"]}`, "sub: Error - EISDIR: illegal operation on a directory, read\n---\n" +
			"out: Error - Access denied - symlink target outside allowed directories, or missing: $W/R/out not in $W/R\n---\n" +
			"/etc/passwd: Error - Access denied - path outside allowed directories: /etc/passwd not in $W/R"},
		{tool, `{"paths":["huge"]}`, fmt.Sprintf("huge: Error - EFBIG: file too large, read '$W/R/huge': it has %d bytes, and one answer carries at most %d. Read a part of it with head or tail, or with read_lines.", maxText+1, maxText)},
		{tool, `{"paths":[]}`, "!MCP error -32602: Input validation error: Invalid arguments for tool read_multiple_files: Too small: expected array to have >=1 items at paths"},
		{tool, `{"paths":[1,"a.txt"]}`, "!MCP error -32602: Input validation error: Invalid arguments for tool read_multiple_files: Invalid input: expected string, received number at paths[0]"},
	})
	got, isError := use(t, newServer(t), exchange.Modern, set, tool, `{"paths":["big1","big2","a.txt"]}`)
	if isError || len(got) > maxText+1000 || !strings.Contains(got, "\n---\nbig2: Error - EFBIG: file too large: its text has ") || !strings.HasSuffix(got, "\n---\na.txt:\nl1\nl2\n\n") {
		t.Errorf("two large ones: error %v, %d bytes, ends %q", isError, len(got), got[max(0, len(got)-300):])
	}
	// The stages in front hear of every path that was refused, and that the rest was not.
	r := request(exchange.Modern, "tools/call", `{"name":"`+tool+`","arguments":{"paths":["/etc/passwd","a.txt","../S"]}}`, set)
	r.Trail = exchange.NewTrail("c1", time.Time{})
	exchange.Do(t.Context(), newServer(t), r)
	if notes := r.Trail.Notes(); len(notes) != 2 || notes[0].Path != "/etc/passwd" || notes[1].Denied || !notes[1].Part {
		t.Errorf("noted: %v", notes)
	}
}

// slow is a disk that takes a second for each read.
type slow struct{ r io.Reader }

func (s slow) Read(b []byte) (int, error) {
	time.Sleep(time.Second)
	return s.r.Read(b)
}

// What takes too long is ended, with what there is, and says that there is more.
func TestReadLinesInTime(t *testing.T) {
	const ended = "[Reading was ended here, because it took too long. What follows can be found with search_content]"
	long := strings.Repeat("x", 100)
	for _, tt := range []struct {
		text         string
		first, limit int64
		want         string
	}{
		{"a\nb\nc\nd\ne\nf\ng\nh\n", 1, 9, "1\ta\n2\tb\n3\tc\n4\td\n5\te\n" + ended},
		{"a\nb\nc\nd\ne\nf\ng\nh\n", 4, 9, "4\td\n5\te\n" + ended},
		{"a\nb\nc\nd\ne\nf\ng\nh\n", 6, 9, "there was time for 6 lines"},
		{"a\nb\nc\nd\ne\nf\ng\nh\n", 4, 1, "4\td\n[More lines follow: go on with offset 5]"},
		{long, 1, 9, "1\t" + long[:10] + "… [this line goes on]\n" + ended},
		{long, 2, 9, "there was time for 1 lines"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond) // in the fifth read
			defer cancel()
			got, err := numberedLines(ctx, slow{strings.NewReader(tt.text)}, tt.first, tt.limit, make([]byte, 2))
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("%.10q from %d: %q, want %q", tt.text, tt.first, got, tt.want)
			}
		})
	}
}
