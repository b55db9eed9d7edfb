package fsserver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/roots"
)

var givenCursor = regexp.MustCompile(`To go on, call again with "cursor":("[!-~]+")\.`)

// pages calls a tool until its answer gives no cursor any more, as a model does, and returns the answers.
func pages(t *testing.T, s *Server, set roots.Set, tool, arguments string) (texts []string) {
	t.Helper()
	for more := ""; ; {
		text, isError := use(t, s, exchange.Modern, set, tool, strings.TrimSuffix(arguments, "}")+more+"}")
		if isError || len(texts) > 1000 {
			t.Fatalf("%s, page %d: %.300s", tool, len(texts), text)
		}
		texts = append(texts, text)
		found := givenCursor.FindAllStringSubmatch(text, -1)
		if found == nil {
			return texts
		}
		more = `,"cursor":` + found[len(found)-1][1]
	}
}

// shownAs returns what is in those lines of all pages that an expression matches.
func shownAs(texts []string, expression string) (list []string) {
	re := regexp.MustCompile("(?m)^" + expression + "$")
	for _, text := range texts {
		for _, m := range re.FindAllStringSubmatch(text, -1) {
			list = append(list, m[1])
		}
	}
	return list
}

// A directory of very many names, of which some are hard to hand back, is had whole: none is missing and none comes twice.
func TestALargeDirectoryIsHadWhole(t *testing.T) {
	n := 100_000
	if mcptest.Race { // which makes it many times as long
		n = 50_000
	}
	dir := project(t, nil)
	var want []string
	for i := range n {
		name := fmt.Sprintf("%d and a name that is long enough", i)
		switch i % 5 {
		case 1:
			name = fmt.Sprintf("é e\u0301 %%41 %d'", i)
		case 2:
			name = fmt.Sprintf("+%d&?#;=.", i)
		case 3:
			if runtime.GOOS != "windows" {
				name = fmt.Sprintf("%d \"cursor\":\"0\\\".\t<>:*?", i)
			}
		}
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		want = append(want, name)
	}
	slices.Sort(want)
	s, set := newServer(t), roots.NewSet(resolve(t, dir, roots.ReadOnly))
	path := quoteJSON(dir)
	for _, tt := range []struct{ tool, arguments, line string }{
		{"list_directory", `{"path":` + path + `}`, `\[FILE\] (.*)`},
		{"list_directory_with_sizes", `{"path":` + path + `}`, `\[FILE\] (.*?) * 0 B`},
		{"list_directory_with_sizes", `{"path":` + path + `,"sortBy":"size"}`, `\[FILE\] (.*?) * 0 B`},
		{"search_files", `{"path":` + path + `,"pattern":"*"}`, regexp.QuoteMeta(dir+string(filepath.Separator)) + `(.*)`},
	} {
		texts := pages(t, s, set, tt.tool, tt.arguments)
		if len(texts) < 2 {
			t.Errorf("%s %s: one page", tt.tool, tt.arguments)
		}
		if got := shownAs(texts, tt.line); !slices.Equal(got, want) {
			t.Errorf("%s %s: %d names on %d pages, want %d", tt.tool, tt.arguments, len(got), len(texts), len(want))
		}
	}
}

// What is found in a tree is had whole too, in the order of the paths, whatever lies beside and beneath the last one of a page.
func TestALargeSearchIsHadWhole(t *testing.T) {
	files := map[string]string{"a": "x\n", "a-/b": "x\n", "a.b/a/a": "x\n", "z:1/:": "x\n", "z:10": "x\nx\ny\nx\n"}
	for i := range 40 {
		for j := range i % 7 {
			files[fmt.Sprintf("d%d/%d é/f%d", i%9, j, i)] = strings.Repeat("x\n", j)
			files[fmt.Sprintf("d%d/%d é.txt", i%9, j)] = "x\ny\nx\nx"
		}
	}
	if runtime.GOOS == "windows" {
		delete(files, "z:1/:")
		delete(files, "z:10")
	}
	dir := project(t, files)
	s, set := newServer(t), roots.NewSet(resolve(t, dir, roots.ReadOnly))
	whole, _ := use(t, s, exchange.Modern, set, "search_content", `{"path":".","pattern":"x","maxResults":10000}`)
	for most := 1; most < 12; most++ {
		texts := pages(t, s, set, "search_content", fmt.Sprintf(`{"path":".","pattern":"x","maxResults":%d}`, most))
		var got []string
		for _, text := range texts {
			got = append(got, places(text)...)
		}
		if diff := cmp.Diff(places(whole), got); diff != "" {
			t.Fatalf("%d on a page (-want +got):\n%s", most, diff)
		}
	}
	if texts := pages(t, s, set, "search_content", `{"path":"a.b/a/a","pattern":"x"}`); len(texts) != 1 {
		t.Errorf("one file is searched in %d pages", len(texts))
	}
	if got := shownAs(pages(t, s, set, "search_content", `{"path":"d5/0 é.txt","pattern":"x","maxResults":1}`), `(\d+):x`); !slices.Equal(got, []string{"1", "3", "4"}) {
		t.Errorf("the lines of one file are %v", got)
	}

	// search_files is asked to go on behind each path there is.
	text, _ := use(t, s, exchange.Modern, set, "search_files", `{"path":".","pattern":"**"}`)
	all := strings.Split(text, "\n")
	for i, p := range all {
		rest, _ := strings.CutPrefix(p, dir+string(filepath.Separator))
		want := strings.Join(all[i+1:], "\n")
		if want == "" {
			want = "No more matches found"
		}
		arguments := `{"path":".","pattern":"**","cursor":` + quoteJSON(cursorAt(filepath.ToSlash(rest))) + `}`
		if got, _ := use(t, s, exchange.Modern, set, "search_files", arguments); got != want {
			t.Errorf("%s (-want +got):\n%s", arguments, cmp.Diff(want, got))
		}
	}
}

// places are the lines that an answer of search_content shows, each with its file.
func places(text string) (list []string) {
	file := ""
	for line := range strings.Lines(text) {
		switch {
		case filepath.IsAbs(strings.TrimSpace(line)):
			file = line
		case strings.HasSuffix(line, ":x\n"):
			list = append(list, file+line)
		}
	}
	return list
}

// What is made and removed between two pages changes nothing else.
func TestACursorOutlivesItsName(t *testing.T) {
	dir := project(t, map[string]string{"a": "x", "b": "x", "c": "x", "d/e": "x"})
	s, set := newServer(t), roots.NewSet(resolve(t, dir, roots.ReadOnly))
	if err := os.Remove(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "aa"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ tool, arguments, want string }{
		{"list_directory", `{"path":".","cursor":"b"}`, "[FILE] c\n[DIR] d"},
		{"list_directory", `{"path":".","cursor":""}`, "[FILE] a\n[FILE] aa\n[FILE] c\n[DIR] d"},
		{"list_directory", `{"path":".","cursor":"d"}`, ""},
		{"search_files", `{"path":".","pattern":"**","cursor":"b"}`, "DIR/c\nDIR/d\nDIR/d/e"},
		{"search_files", `{"path":".","pattern":"**","cursor":"b/gone"}`, "DIR/c\nDIR/d\nDIR/d/e"},
		{"search_files", `{"path":".","pattern":"**","cursor":"c/now%20a%20file"}`, "DIR/d\nDIR/d/e"},
		{"search_content", `{"path":".","pattern":"x","cursor":"b:1"}`, "DIR/c\n1:x\n\nDIR/d/e\n1:x\n\n2 lines match in 2 files; 2 files searched.\nOnly what is behind the cursor is counted."},
		{"search_content", `{"path":".","pattern":"x","cursor":"d/e:1"}`, "No more matches found\n\n1 file searched.\nOnly what is behind the cursor is counted."},
	} {
		got, _ := use(t, s, exchange.Modern, set, tt.tool, tt.arguments)
		if got = filepath.ToSlash(strings.ReplaceAll(got, dir, "DIR")); got != tt.want {
			t.Errorf("%s %s:\n got %s\nwant %s", tt.tool, tt.arguments, got, tt.want)
		}
	}
}

// A program gets the cursor by itself.
func TestTheCursorForPrograms(t *testing.T) {
	dir := project(t, map[string]string{"a b": "x\nx\n", "c": "x"})
	s, set := newServer(t), roots.NewSet(resolve(t, dir, roots.ReadOnly))
	var got []string
	for cursor := ""; ; {
		params := `{"name":"search_content","arguments":{"path":".","pattern":"x","maxResults":1,"cursor":` + quoteJSON(cursor) + `}}`
		var result struct {
			StructuredContent struct {
				Cursor   string
				Complete bool
			}
		}
		if err := json.Unmarshal([]byte(ask(t, s, request(exchange.Modern, "tools/call", params, set))), &result); err != nil {
			t.Fatal(err)
		}
		cursor = result.StructuredContent.Cursor
		got = append(got, cursor)
		if result.StructuredContent.Complete != (cursor == "") {
			t.Errorf("%+v", result)
		}
		if cursor == "" {
			break
		}
	}
	if want := []string{"a%20b:1", "a%20b:2", ""}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A cursor that no answer has given reaches nothing and breaks nothing: it is refused, or is a place among what is inside.
func TestHostileCursors(t *testing.T) {
	dir := project(t, map[string]string{"in/a": "x", "in/b/c": "x", "out/secret": "x"})
	server, set := newServer(t), roots.NewSet(resolve(t, filepath.Join(dir, "in"), roots.ReadOnly))
	cursors := []string{
		"%", "%zz", "%00", "/", "//", "..", "../", "../out", "../out/secret", "../out/secret:1", "/etc/passwd", "/etc/passwd:1", "a/", "b//c", "b/../../out",
		":", ":1", "a:", "a:0", "a:-1", "a:99999999999999999999", "a:9223372036854775807", "1/a", "-1/a", "99999999999999999999/a", "x/a", "\xff", "%ff%fe",
		"file:///etc/passwd", strings.Repeat("a/", 1<<16), strings.Repeat("%2e%2e/", 1<<12), "\u202e", "*",
	}
	for _, tool := range []struct{ name, more string }{
		{"list_directory", ""}, {"list_directory_with_sizes", ""}, {"list_directory_with_sizes", `,"sortBy":"size"`},
		{"search_files", `,"pattern":"**"`}, {"search_content", `,"pattern":"x"`},
	} {
		for _, cursor := range cursors {
			text, isError := use(t, server, exchange.Modern, set, tool.name, `{"path":"."`+tool.more+`,"cursor":`+quoteJSON(cursor)+`}`)
			switch {
			case isError && !strings.HasPrefix(text, "The cursor "), len(text) > 2000, !isError && strings.Contains(text, "secret"):
				t.Errorf("%s %s with the cursor %.40q: %.300s", tool.name, tool.more, cursor, text)
			}
		}
	}
	for _, tt := range []struct{ tool, arguments string }{
		{"list_directory", `{"path":".","cursor":"%zz"}`},
		{"list_directory", `{"path":".","cursor":"a/b"}`},
		{"list_directory_with_sizes", `{"path":".","cursor":"1/a"}`},
		{"list_directory_with_sizes", `{"path":".","cursor":"a","sortBy":"size"}`},
		{"search_content", `{"path":".","pattern":"x","cursor":"a"}`},
		{"search_content", `{"path":".","pattern":"x","cursor":"a:0"}`},
	} {
		if text, isError := use(t, server, exchange.Modern, set, tt.tool, tt.arguments); !isError || !strings.Contains(text, "is not one of this call's") {
			t.Errorf("%s %s: %s", tt.tool, tt.arguments, text)
		}
	}
}

// The reference server has no cursor: it is neither offered nor read.
func TestCompatHasNoCursor(t *testing.T) {
	dir := project(t, map[string]string{"a": "", "b": ""})
	s := New(Options{Name: "files", Title: "Files", Version: "1.2", Compat: true})
	defer s.Close()
	set := roots.NewSet(resolve(t, dir, roots.ReadOnly))
	if text, _ := use(t, s, exchange.Legacy, set, "list_directory", `{"path":".","cursor":"a"}`); text != "[FILE] a\n[FILE] b" {
		t.Errorf("it lists %q", text)
	}
	if strings.Contains(listTools(s.tools, exchange.Legacy), "cursor") {
		t.Error("a schema has it")
	}
	if text := (&call{Server: s}).goOn("a"); text != "" {
		t.Errorf("a note has %q", text)
	}
}

// However much is found, what is kept are the first by path.
func TestOfVeryManyMatchesTheFirstAreKept(t *testing.T) {
	s := &nameSearch{call: &call{Server: newServer(t)}}
	const dirs, names = 160, 8000
	for i := range dirs {
		f := &foundIn{dir: fmt.Sprintf("d%03d", (i*37)%dirs)}
		for j := range names {
			f.names = append(f.names, fmt.Sprintf("%05d", j))
		}
		s.hits += names
		s.keep(f)
	}
	if s.kept >= maxHits || s.end == "" {
		t.Errorf("%d names are kept, up to %q", s.kept, s.end)
	}
	texts := strings.Split(s.text(walked{start: "/r"}), "\n")
	for i, line := range texts[:len(texts)-1] {
		if want := fmt.Sprintf("/r/d%03d/%05d", i/names, i%names); filepath.ToSlash(line) != want {
			t.Fatalf("line %d is %q, want %q", i, line, want)
		}
	}
	if want := fmt.Sprintf("%d more matches are not listed", dirs*names-(len(texts)-1)); !strings.HasPrefix(texts[len(texts)-1], want) {
		t.Errorf("the end is %q, want %q", texts[len(texts)-1], want)
	}
}

// Directories far down have long paths, and of these, too, no more are kept.
func TestOfVeryLongPathsTheFirstAreKept(t *testing.T) {
	s := &nameSearch{call: &call{Server: newServer(t)}}
	const dirs, length = 20_000, 4000
	long, most := strings.Repeat("d/", length/2), 0
	for i := range dirs {
		s.hits++
		s.keep(&foundIn{dir: fmt.Sprintf("%s%05d", long, (i*37)%dirs), names: []string{"f"}})
		most = max(most, len(s.in))
	}
	if most > maxHits*32/length {
		t.Errorf("%d paths of %d bytes were kept at once", most, length)
	}
	first, _, _ := strings.Cut(s.text(walked{start: "/r"}), "\n")
	if want := "/r/" + long + "00000/f"; filepath.ToSlash(first) != want {
		t.Errorf("the first is …%s", first[len(first)-20:])
	}
}

// What a tree has no room for is had by asking for a directory beneath, as its note says.
func TestATreeThatIsCutIsHadInParts(t *testing.T) {
	const n = 20_000
	dir := project(t, map[string]string{"a/": "", "b/": ""})
	for i := range 2 * n {
		f, err := os.Create(filepath.Join(dir, []string{"a", "b"}[i%2], fmt.Sprintf("f%05d", i/2)))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	s, set := newServer(t), roots.NewSet(resolve(t, dir, roots.ReadOnly))
	names := func(path string) int {
		text, _ := use(t, s, exchange.Modern, set, "directory_tree", `{"path":`+quoteJSON(path)+`}`)
		return strings.Count(text, `"name": "f`)
	}
	if got := names("."); got >= 2*n {
		t.Errorf("%d files are shown", got)
	}
	for _, path := range []string{"a", "b"} {
		if got := names(path); got != n {
			t.Errorf("%d files are shown of %s, want %d", got, path, n)
		}
	}
}
