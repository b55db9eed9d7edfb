package fsserver

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// project makes files in a new directory and returns it. A name that ends in "/" is a directory.
func project(t testing.TB, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// grep calls search_content, with DIR and PATH for a directory, and returns its text with DIR for the directory.
func grep(t testing.TB, s *Server, dir string, arguments string) string {
	t.Helper()
	arguments = strings.ReplaceAll(arguments, "DIR", strings.Trim(quoteJSON(dir), `"`))
	text, _ := use(t, s, exchange.Legacy, roots.NewSet(resolve(t, dir, roots.ReadOnly)), "search_content", arguments)
	return strings.ReplaceAll(text, dir, "DIR")
}

func TestSearchContent(t *testing.T) {
	dir := project(t, map[string]string{
		"main.go":             "package main\n\nfunc main() {\n\tprintln(\"hello\")\n}\n",
		"lib/a.go":            "package lib\r\n\r\n// Hello says hello.\r\nfunc Hello() {}\r\n",
		"lib/a_test.go":       "package lib\n\nfunc TestHello() {}",
		"lib-x.go":            "// hello",
		"README.md":           "\ufeffhello, wörld\n",
		"build/out.go":        "hello\n",
		"debug.log":           "hello\n",
		"keep.log":            "hello\n",
		".gitignore":          "/build/\n*.log\n!keep.log\n",
		"lib/.gitignore":      "*_gen.go\n",
		"lib/x_gen.go":        "hello\n",
		".git/config":         "hello\n",
		".git/info/exclude":   "local.txt\n",
		"local.txt":           "hello\n",
		".github/workflow":    "hello\n",
		"vendor/sub/.git/x":   "",
		"vendor/sub/deep.log": "hello\n",
		"image.png":           "\x89PNG\x00hello\n",
		"latin1.txt":          "caf\xe9 hello\n",
		"empty":               "",
		"spaced name.txt":     "a\nb\nhello 1\nc\nd\ne\nf\nhello 2\ng\nhello 3\n",
	})
	if err := os.Symlink("main.go", filepath.Join(dir, "link.go")); err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	for _, tt := range []struct{ name, arguments, want string }{
		{
			"everything that is not ignored", `{"path":"DIR","pattern":"hello"}`,
			`DIR/.github/workflow
1:hello

DIR/README.md
1:hello, wörld

DIR/keep.log
1:hello

DIR/latin1.txt
1:caf` + "\ufffd" + ` hello

DIR/lib/a.go
3:// Hello says hello.

DIR/lib-x.go
1:// hello

DIR/main.go
4:	println("hello")

DIR/spaced name.txt
3:hello 1
8:hello 2
10:hello 3

DIR/vendor/sub/deep.log
1:hello

11 lines match in 9 files; 13 files searched.
Not searched: 4 entries that ignore files name (gitignore: false searches them), 1 binary file.`,
		},
		{
			"globs", `{"path":"DIR","pattern":"^func .*\\(\\) \\{\\}$","includePatterns":["*.go"],"excludePatterns":["**/*_test.go"]}`,
			"DIR/lib/a.go\n4:func Hello() {}\n\n1 line matches in 1 file; 3 files searched.\n" +
				"Not searched: 2 entries that ignore files name (gitignore: false searches them).",
		},
		{
			"any case, ignored too", `{"path":"DIR/lib","pattern":"HELLO","ignoreCase":true,"gitignore":false}`,
			"DIR/lib/a.go\n3:// Hello says hello.\n4:func Hello() {}\n\nDIR/lib/a_test.go\n3:func TestHello() {}\n\nDIR/lib/x_gen.go\n1:hello\n\n" +
				"4 lines match in 3 files; 4 files searched.",
		},
		{
			"ignore files above", `{"path":"DIR/vendor","pattern":"hello"}`,
			"DIR/vendor/sub/deep.log\n1:hello\n\n1 line matches in 1 file; 1 file searched.",
		},
		{
			"an ignored directory that is asked for", `{"path":"DIR/build","pattern":"hello"}`,
			"DIR/build/out.go\n1:hello\n\n1 line matches in 1 file; 1 file searched.",
		},
		{
			"one file, with context", `{"path":"DIR/spaced name.txt","pattern":"hello","contextLines":1}`,
			"DIR/spaced name.txt\n2-b\n3:hello 1\n4-c\n--\n7-f\n8:hello 2\n9-g\n10:hello 3\n\n3 lines match in 1 file; 1 file searched.",
		},
		{
			"more context than there is", `{"path":"DIR/lib/a.go","pattern":"Hello","contextLines":9}`,
			"DIR/lib/a.go\n1-package lib\n2-\n3:// Hello says hello.\n4:func Hello() {}\n\n2 lines match in 1 file; 1 file searched.",
		},
		{
			"the first ones", `{"path":"DIR","pattern":"hello","maxResults":2,"includePatterns":["*.txt","*.md"]}`,
			"DIR/README.md\n1:hello, wörld\n\nDIR/latin1.txt\n1:caf\ufffd hello\n\n5 lines match in 3 files; 3 files searched.\n" +
				"Shown are the first 2 by path. Narrow the search, or ask for more with maxResults. To go on, call again with \"cursor\":\"latin1.txt:1\".\n" +
				"Not searched: 2 entries that ignore files name (gitignore: false searches them).",
		},
		{
			"a text", `{"path":"DIR","pattern":"main()","literal":true}`,
			"DIR/main.go\n3:func main() {\n\n1 line matches in 1 file; 13 files searched.\n" +
				"Not searched: 4 entries that ignore files name (gitignore: false searches them), 1 binary file.",
		},
		{
			"nothing", `{"path":"DIR/lib","pattern":"xyzzy"}`,
			"No matches found\n\n3 files searched.\nNot searched: 1 entry that ignore files name (gitignore: false searches it).",
		},
		{"no pattern", `{"path":"DIR","pattern":""}`, `The pattern "" cannot be used: it is empty.`},
		{"a bad pattern", `{"path":"DIR","pattern":"("}`, `The pattern "(" cannot be used: missing closing ): "(". It is read as an RE2 expression, which looks neither ahead nor behind; with literal it is a text.`},
		{"a bad glob", `{"path":"DIR","pattern":"x","includePatterns":["a!(b)"]}`, ``},
		{"what is not there", `{"path":"DIR/none","pattern":"x"}`, "ENOENT: no such file or directory, scandir 'DIR/none'"},
		{"outside", `{"path":"DIR/../x","pattern":"x"}`, ``},
	} {
		got := grep(t, s, dir, tt.arguments)
		switch {
		case tt.want == "" && (got == "" || strings.Contains(got, "searched")):
			t.Errorf("%s: %s", tt.name, got)
		case tt.want != "":
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
			}
		}
	}
}

// The counts come for programs too.
func TestSearchContentCounts(t *testing.T) {
	dir := project(t, map[string]string{"a": "x\nx\n", "b": "x\n", "c": "y"})
	s := newServer(t)
	for maxResults, want := range map[int]string{
		1: `{"matches":3,"files":2,"searched":3,"complete":false,"cursor":"a:1"}`,
		3: `{"matches":3,"files":2,"searched":3,"complete":true}`,
	} {
		params := fmt.Sprintf(`{"name":"search_content","arguments":{"path":%s,"pattern":"x","maxResults":%d}}`, quoteJSON(dir), maxResults)
		result := ask(t, s, request(exchange.Legacy, "tools/call", params, roots.NewSet(resolve(t, dir, roots.ReadOnly))))
		structured, _ := wire.Get([]byte(result), "structuredContent")
		if got := string(wire.DeleteMember(structured, "content")); got != want {
			t.Errorf("maxResults %d: %s, want %s", maxResults, got, want)
		}
	}
}

// Whatever order the files are searched in, the same lines are shown.
func TestSearchContentIsTheSameEachTime(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("d%d/e%d/f%03d", i%3, i%7, i)] = strings.Repeat("x\n", i%5)
	}
	dir := project(t, files)
	s := newServer(t)
	arguments := `{"path":"DIR","pattern":"x","maxResults":%d}`
	all := grep(t, s, dir, fmt.Sprintf(arguments, 1000))
	if !strings.Contains(all, "600 lines match in 240 files; 300 files searched.") {
		t.Fatal(all)
	}
	for n := range 20 {
		got := grep(t, s, dir, fmt.Sprintf(arguments, 10+n))
		shown, _, _ := strings.Cut(got, "\n\n600 lines match")
		if !strings.HasPrefix(all, shown) || strings.Count(shown, ":x") != 10+n {
			t.Errorf("with %d results:\n%s", 10+n, got)
		}
	}
}

// A file is searched in blocks: nothing is lost between them, and no line is counted twice.
func TestSearchContentInBlocks(t *testing.T) {
	var b strings.Builder
	want := 0
	for i := range 40_000 {
		if i%1000 == 7 {
			fmt.Fprintf(&b, "line %d has a needle\n", i)
			want++
		} else {
			fmt.Fprintf(&b, "line %d\n", i)
		}
	}
	long := strings.Repeat("a", 3*searchBlock) + "needle" + strings.Repeat("é", searchBlock) + "needle"
	dir := project(t, map[string]string{
		"lines":    b.String(),
		"long":     "first\n" + long + "\nneedle behind\n",
		"straddle": strings.Repeat("b", searchBlock-3) + "needle",
		"sparse":   "",
	})
	if err := os.Truncate(filepath.Join(dir, "sparse"), 1<<30); err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	for _, pattern := range []string{"needle", "n[e]+dle", "(?i)NEEDLE", "[m-o]eedl[e]"} {
		got := grep(t, s, dir, fmt.Sprintf(`{"path":"DIR","pattern":%q,"maxResults":1000,"contextLines":1}`, pattern))
		for _, part := range []string{
			"\n38007-line 38006\n38008:line 38007 has a needle\n38009-line 38008\n", "\n1-first\n2:…aaa", "\n3:needle behind\n",
			"…\n", "needle\n\n", fmt.Sprintf("%d lines match in 3 files; 3 files searched.", want+3), "1 binary file.",
			"Of lines longer than 500 bytes a part is shown.", "Lines longer than 262144 bytes were searched in pieces.",
		} {
			if !strings.Contains(got, part) {
				t.Errorf("%s: no %q in\n%.2000s", pattern, part, got)
			}
		}
		if len(got) > 20_000 {
			t.Errorf("%s: %d bytes", pattern, len(got))
		}
	}
}

// A file with a protected name is not searched, and that is said.
func TestSearchContentLeavesOutWhatIsDenied(t *testing.T) {
	dir := project(t, map[string]string{"a": "secret", ".env": "secret", ".ssh/id": "secret", "private/p": "secret"})
	deny, err := NewDeny([]string{"/private/"}, true)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Name: "files", Title: "Files", Version: "1.2", Deny: deny})
	t.Cleanup(s.Close)
	want := "DIR/a\n1:secret\n\n1 line matches in 1 file; 1 file searched.\nNot searched: 3 protected names."
	if got := grep(t, s, dir, `{"path":"DIR","pattern":"secret"}`); got != want {
		t.Errorf("got %s", got)
	}
	want = `Access denied - DIR/.ssh/id is protected: its name matches ".ssh", one of the patterns of files that may hold secrets. ` +
		`Only the user can allow it, by starting the server with --deny '!.ssh'.`
	if got := grep(t, s, dir, `{"path":"DIR/.ssh/id","pattern":"secret"}`); got != want {
		t.Errorf("got %s", got)
	}
	want = `Access denied - DIR/private/p is protected: its name matches "/private/", which the user has denied. ` +
		`Only the user can allow it, by starting the server without --deny '/private/'.`
	if got := grep(t, s, dir, `{"path":"DIR/private/p","pattern":"secret"}`); got != want {
		t.Errorf("got %s", got)
	}
}

// A hostile expression over a hostile file ends in time, because neither can be large.
func TestSearchContentHostile(t *testing.T) {
	dir := project(t, map[string]string{"a": strings.Repeat("a", 1<<20) + "\n"})
	s := newServer(t)
	for _, pattern := range []string{`(a+)+$b`, `(a|a)*c`, `(.*)(.*)(.*)(.*)(.*)x`, `(a?){100}a{100}b`} {
		if got := grep(t, s, dir, fmt.Sprintf(`{"path":"DIR","pattern":%q}`, pattern)); !strings.HasPrefix(got, "No matches found") {
			t.Errorf("%s: %.200s", pattern, got)
		}
	}
}

func TestCompatHasNoSearchContent(t *testing.T) {
	s := New(Options{Compat: true})
	t.Cleanup(s.Close)
	if s.findTool("search_content") != nil {
		t.Error("it is there")
	}
	var schema map[string]any
	tool := newServer(t).findTool("search_content")
	if err := json.Unmarshal(tool.appendDefinition(nil, exchange.Legacy), &schema); err != nil {
		t.Error(err)
	}
}

func BenchmarkSearchContent(b *testing.B) {
	dir := os.Getenv("ROOTBOUND_BENCH_TREE")
	if dir == "" {
		files := map[string]string{}
		for i := range 500 {
			files[fmt.Sprintf("%d/%d.go", i%20, i)] = strings.Repeat("func f(x int) error { return nil } // some text of no consequence\n", 200)
		}
		dir = project(b, files)
	}
	s := newServer(b)
	set := roots.NewSet(resolve(b, dir, roots.ReadOnly))
	for _, pattern := range []string{`xyzzy`, `\w+Error\(`, `(?i)resolvepath`, `[A-Z]{3}\d{4}`} {
		b.Run(pattern, func(b *testing.B) {
			for b.Loop() {
				use(b, s, exchange.Legacy, set, "search_content", fmt.Sprintf(`{"path":%q,"pattern":%q,"gitignore":false}`, dir, pattern))
			}
		})
	}
}
