//go:build unix

package fsserver

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// canary is the text of every file outside.
const canary = "what nobody may read\n"

// session is what a client of the drop-in tests works on: two roots, what lies beside them, and links between all.
var session = map[string]string{
	"R/a.txt":        "l1\nl2\nl3\n",
	"R/crlf.txt":     "a\r\nb\r\nc",
	"R/empty":        "",
	"R/newlines":     "\n\n",
	"R/one line":     "only",
	"R/bom.txt":      "\ufeffx\n",
	"R/latin1":       "caf\xe9\n\xe2\x82A",
	"R/sub/deep.txt": "deep",
	"R/sub/.hidden":  "h",
	"R/sub/z/":       "",
	"R/none/":        "",
	"R/in.txt":       "-> $W/R/sub/deep.txt",
	"R/across":       "-> ../S/b.txt",
	"R/dir":          "-> sub",
	"R/out":          "-> $W/canary",
	"R/outdir":       "-> ../outside",
	"R/dangling":     "-> $W/R/gone",
	"R/dangling out": "-> $W/gone",
	"R/loop":         "-> loop",
	"R/file:":        "a file with a colon",
	"R/quo'te":       "q",
	"S/a.txt":        "of S",
	"S/b.txt":        "b",
	"R-evil/x":       canary,
	"canary":         canary,
	"home/notes":     "at home",
	"outside/canary": canary,
	"typed":          "-> R",
}

func TestDropIn(t *testing.T) {
	w := tree(t, session)
	home := resolve(t, filepath.Join(w, "home"), roots.ReadOnly)
	set := roots.NewSet(resolve(t, filepath.Join(w, "R"), roots.ReadWrite), resolve(t, filepath.Join(w, "S"), roots.ReadOnly), home)
	server := New(Options{Name: "files", Title: "Files", Version: "1.2", Home: home.Path})
	t.Cleanup(server.Close)

	const read, list, dirs = "read_text_file", "list_directory", "list_allowed_directories"
	invalid := func(tool, what string) string {
		return "!MCP error -32602: Input validation error: Invalid arguments for tool " + tool + ": Invalid input: " + what
	}
	outside := func(path string) string {
		return "!Access denied - path outside allowed directories: " + path + " not in $W/R, $W/S, $W/home"
	}
	link := func(path string) string {
		return "!Access denied - symlink target outside allowed directories, or missing: " + path + " not in $W/R, $W/S, $W/home"
	}
	for _, tt := range []struct {
		tool, args, want string // a want that begins with ! is an error
	}{
		// Whole files: bytes as text, with what is at their ends.
		{read, `{"path":"$W/R/a.txt"}`, "l1\nl2\nl3\n"},
		{read, `{"path":"$W/R/crlf.txt"}`, "a\r\nb\r\nc"},
		{read, `{"path":"$W/R/empty"}`, ""},
		{read, `{"path":"$W/R/bom.txt"}`, "\ufeffx\n"},
		{read, `{"path":"$W/R/latin1"}`, "caf\ufffd\n\ufffdA"},
		{read, `{"path":"$W/R/quo'te"}`, "q"},

		// The beginning: without the last line end, with the carriage returns.
		{read, `{"path":"a.txt","head":2}`, "l1\nl2"},
		{read, `{"path":"a.txt","head":99}`, "l1\nl2\nl3"},
		{read, `{"path":"a.txt","head":1e308}`, "l1\nl2\nl3"},
		{read, `{"path":"a.txt","head":1e999}`, invalid(read, "expected number, received Infinity at head")},
		{read, `{"path":"a.txt","tail":-1e999}`, invalid(read, "expected number, received -Infinity at tail")},
		{read, `{"path":"a.txt","head":1.5}`, "l1\nl2"},
		{read, `{"path":"a.txt","head":0.5}`, "l1"},
		{read, `{"path":"a.txt","head":-1}`, ""},
		{read, `{"path":"crlf.txt","head":2}`, "a\r\nb\r"},
		{read, `{"path":"empty","head":1}`, ""},
		{read, `{"path":"newlines","head":1}`, ""},
		{read, `{"path":"newlines","head":9}`, "\n"},
		{read, `{"path":"one line","head":1}`, "only"},

		// The end: the text behind the last line end is a line, and line ends are made alike.
		{read, `{"path":"a.txt","tail":1}`, ""},
		{read, `{"path":"a.txt","tail":2}`, "l3\n"},
		{read, `{"path":"a.txt","tail":3}`, "l2\nl3\n"},
		{read, `{"path":"a.txt","tail":99}`, "l1\nl2\nl3\n"},
		{read, `{"path":"a.txt","tail":1e308}`, "l1\nl2\nl3\n"},
		{read, `{"path":"a.txt","tail":1.5}`, ""},
		{read, `{"path":"a.txt","tail":0.5}`, "l1\nl2\nl3\n"},
		{read, `{"path":"a.txt","tail":-2}`, ""},
		{read, `{"path":"crlf.txt","tail":2}`, "b\nc"},
		{read, `{"path":"crlf.txt","tail":0.5}`, "a\nb\nc"},
		{read, `{"path":"nope","tail":1}`, "!ENOENT: no such file or directory, stat '$W/R/nope'"},
		{read, `{"path":"empty","tail":3}`, ""},
		{read, `{"path":"newlines","tail":2}`, "\n"},
		{read, `{"path":"one line","tail":1}`, "only"},

		// Zero is none.
		{read, `{"path":"a.txt","head":0,"tail":0}`, "l1\nl2\nl3\n"},
		{read, `{"path":"a.txt","head":0,"tail":2}`, "l3\n"},
		{read, `{"path":"a.txt","head":1,"tail":1}`, "!Cannot specify both head and tail parameters simultaneously"},

		// A relative path is looked for in each root, in order; "~" is the home directory.
		{read, `{"path":"a.txt"}`, "l1\nl2\nl3\n"},
		{read, `{"path":"b.txt"}`, "b"},
		{read, `{"path":"./sub/../a.txt"}`, "l1\nl2\nl3\n"},
		{read, `{"path":"../S/a.txt"}`, "of S"},
		{read, `{"path":"~/notes"}`, "at home"},
		{read, `{"path":"~root/notes"}`, "!ENOENT: no such file or directory, open '$W/R/~root/notes'"},
		{read, `{"path":"nope"}`, "!ENOENT: no such file or directory, open '$W/R/nope'"},
		{read, `{"path":" a.txt"}`, "!ENOENT: no such file or directory, open '$W/R/ a.txt'"},
		{read, `{"path":"\"a.txt\""}`, "!ENOENT: no such file or directory, open '$W/R/\"a.txt\"'"},
		{read, `{"path":"A.TXT","x":{"y":[1]}}`, "!ENOENT: no such file or directory, open '$W/R/A.TXT'"},
		{read, `{"path":"a.txt/"}`, "l1\nl2\nl3\n"},
		{read, `{"path":"$W/R//sub///deep.txt//"}`, "deep"},
		{read, `{"path":"a.txt/x"}`, "!ENOTDIR: not a directory, realpath '$W/R/a.txt/x'"},
		{read, `{"path":""}`, "!EISDIR: illegal operation on a directory, read"},
		{read, `{"path":"sub"}`, "!EISDIR: illegal operation on a directory, read"},
		{read, `{"path":"sub","head":3}`, "!EISDIR: illegal operation on a directory, read"},
		{read, `{"path":"nope","head":-1}`, "!ENOENT: no such file or directory, open '$W/R/nope'"},
		{read, `{"path":"dir/nope"}`, "!ENOENT: no such file or directory, open '$W/R/sub/nope'"},

		// URIs.
		{read, `{"path":"file://$W/R/a.txt"}`, "l1\nl2\nl3\n"},
		{read, `{"path":"FILE://localhost$W/R/one%20line"}`, "only"},
		{read, `{"path":"file://$W/canary"}`, outside("$W/canary")},
		{read, `{"path":"file://$W/R/%2e%2e/canary"}`, "!Access denied - file://$W/R/%2e%2e/canary is not the URI of a file of this machine: write the path that is meant, without \"..\""},
		{read, `{"path":"file://host/a.txt"}`, "!Access denied - file://host/a.txt is not the URI of a file of this machine: three slashes begin a path of this machine, as in file:///home/me/project"},
		{read, `{"path":"file:"}`, "a file with a colon"},

		// Links: inside, wherever inside; never outside, and not by another word for what is there and what is not.
		{read, `{"path":"in.txt"}`, "deep"},
		{read, `{"path":"dir/deep.txt"}`, "deep"},
		{read, `{"path":"across"}`, "b"},
		{read, `{"path":"out"}`, link("$W/R/out")},
		{read, `{"path":"$W/R/outdir/canary"}`, link("$W/R/outdir/canary")},
		{read, `{"path":"$W/R/outdir/nope"}`, link("$W/R/outdir/nope")},
		{read, `{"path":"dangling"}`, link("$W/R/dangling")},
		{read, `{"path":"dangling out"}`, link("$W/R/dangling out")},
		{read, `{"path":"loop"}`, "!ELOOP: too many symbolic links encountered, realpath '$W/R/loop'"},

		// Outside.
		{read, `{"path":"/etc/passwd"}`, outside("/etc/passwd")},
		{read, `{"path":"$W/R-evil/x"}`, outside("$W/R-evil/x")},
		{read, `{"path":"$W/R/../canary"}`, outside("$W/canary")},
		{read, `{"path":"../canary"}`, outside("$W/canary")},
		{read, `{"path":"../nope"}`, outside("$W/nope")},
		{read, `{"path":"a\u0000b"}`, outside("$W/R/a\x00b")},
		{read, `{"path":"C:\\x"}`, `!Access denied - Windows-style path received on a POSIX host: C:\x`},
		{read, `{"path":"c:/x"}`, "!Access denied - Windows-style path received on a POSIX host: c:/x"},
		{read, `{"path":"z:"}`, "!Access denied - Windows-style path received on a POSIX host: z:"},
		{read, `{"path":"z:x"}`, "!ENOENT: no such file or directory, open '$W/R/z:x'"},

		// Lists.
		{list, `{"path":"$W/R/sub"}`, "[FILE] .hidden\n[FILE] deep.txt\n[DIR] z"},
		{list, `{"path":"sub/"}`, "[FILE] .hidden\n[FILE] deep.txt\n[DIR] z"},
		{list, `{"path":"dir"}`, "[FILE] .hidden\n[FILE] deep.txt\n[DIR] z"},
		{list, `{"path":"none"}`, ""},
		{list, `{"path":"$W/S"}`, "[FILE] a.txt\n[FILE] b.txt"},
		{list, `{"path":"a.txt"}`, "!ENOTDIR: not a directory, scandir '$W/R/a.txt'"},
		{list, `{"path":"nope"}`, "!ENOENT: no such file or directory, scandir '$W/R/nope'"},
		{list, `{"path":"outdir"}`, link("$W/R/outdir")},
		{list, `{"path":".."}`, outside("$W")},
		{list, `{"path":"/"}`, outside("/")},
		{dirs, ``, "Allowed directories:\n$W/R\n$W/S\n$W/home"},
		{dirs, `{"path":5}`, "Allowed directories:\n$W/R\n$W/S\n$W/home"},

		// Arguments that are none.
		{read, ``, invalid(read, "expected string, received undefined at path")},
		{read, `null`, invalid(read, "expected string, received undefined at path")},
		{read, `{}`, invalid(read, "expected string, received undefined at path")},
		{read, `{"Path":"a.txt"}`, invalid(read, "expected string, received undefined at path")},
		{read, `{"path":null}`, invalid(read, "expected string, received null at path")},
		{read, `{"path":["a.txt"]}`, invalid(read, "expected string, received array at path")},
		{read, `{"path":"a.txt","head":"1"}`, invalid(read, "expected number, received string at head")},
		{read, `{"path":"a.txt","head":null}`, invalid(read, "expected number, received null at head")},
		{read, `{"path":{},"head":true,"tail":[]}`, invalid(read, "expected string, received object at path\nInvalid input: expected number, received array at tail\nInvalid input: expected number, received boolean at head")},
		{read, `[]`, invalid(read, "expected object, received array")},
		{list, `"x"`, invalid(list, "expected object, received string")},
		{dirs, `7`, invalid(dirs, "expected object, received number")},
		{list, `{}`, invalid(list, "expected string, received undefined at path")},
		{"nope", `{}`, "!MCP error -32602: Tool nope not found"},
		{"", `{}`, "!MCP error -32602: Tool  not found"},
		{"READ_TEXT_FILE", `{"path":"a.txt"}`, "!MCP error -32602: Tool READ_TEXT_FILE not found"},
	} {
		want, wantError := strings.CutPrefix(tt.want, "!")
		want, args := strings.ReplaceAll(want, "$W", w), strings.ReplaceAll(tt.args, "$W", w)
		for _, era := range eras {
			got, isError := use(t, server, era, set, tt.tool, args)
			if diff := cmp.Diff(want, got); diff != "" || isError != wantError {
				t.Errorf("%v %s %s: error %v, want %v (-want +got):\n%s", era, tt.tool, tt.args, isError, wantError, diff)
			}
		}
	}
}

// https://github.com/modelcontextprotocol/servers/issues/3253: a root that is typed through a link is served under both names.
func TestARootUnderTwoNames(t *testing.T) {
	w := tree(t, session)
	server, set := newServer(t), roots.NewSet(resolve(t, filepath.Join(w, "typed"), roots.ReadOnly))
	for _, path := range []string{"typed/a.txt", "R/a.txt"} {
		if got, isError := use(t, server, exchange.Legacy, set, "read_text_file", `{"path":"`+w+`/`+path+`"}`); got != session["R/a.txt"] || isError {
			t.Errorf("%s is %q, error %v", path, got, isError)
		}
	}
	if got, _ := use(t, server, exchange.Legacy, set, "list_allowed_directories", ""); got != "Allowed directories:\n"+w+"/R\n"+w+"/typed" {
		t.Errorf("allowed: %q", got)
	}
	if got, _ := use(t, server, exchange.Legacy, set, "read_text_file", `{"path":"`+w+`/typed/nope"}`); got != "ENOENT: no such file or directory, open '"+w+"/R/nope'" {
		t.Errorf("missing: %q", got)
	}
}

// https://github.com/modelcontextprotocol/servers/issues/3183
func TestTheWholeDiskAsARoot(t *testing.T) {
	w := tree(t, session)
	d, err := roots.Resolve("/", roots.ResolveOptions{Access: roots.ReadOnly, AllowBroad: true})
	if err != nil {
		t.Fatal(err)
	}
	server, set := newServer(t), roots.NewSet(d)
	if got, _ := use(t, server, exchange.Legacy, set, "read_text_file", `{"path":"`+w+`/canary"}`); got != canary {
		t.Errorf("read %q", got)
	}
	if got, _ := use(t, server, exchange.Legacy, set, "list_directory", `{"path":"/`+strings.TrimPrefix(w, "/")+`/S/"}`); got != "[FILE] a.txt\n[FILE] b.txt" {
		t.Errorf("listed %q", got)
	}
}

// A root that is one file is that file and nothing beside it; a root that allows nothing is a hole in the one around it.
func TestFilesAndHoles(t *testing.T) {
	w := tree(t, session)
	file, hole := resolve(t, filepath.Join(w, "S/a.txt"), roots.ReadOnly), resolve(t, filepath.Join(w, "R/sub"), 0)
	server, set := newServer(t), roots.NewSet(resolve(t, filepath.Join(w, "R"), roots.ReadOnly), hole, file)
	denied := " not in " + w + "/R, " + w + "/S/a.txt"
	for _, tt := range []struct{ tool, path, want string }{
		{"read_text_file", "$W/S/a.txt", "of S"},
		{"read_text_file", "$W/S/b.txt", "Access denied - path outside allowed directories: $W/S/b.txt" + denied},
		{"list_directory", "$W/S", "Access denied - path outside allowed directories: $W/S" + denied},
		{"list_directory", "$W/S/a.txt", "ENOTDIR: not a directory, scandir '$W/S/a.txt'"},
		{"read_text_file", "sub/deep.txt", "Access denied - path outside allowed directories: $W/R/sub/deep.txt" + denied},
		{"read_text_file", "in.txt", "Access denied - symlink target outside allowed directories, or missing: $W/R/in.txt" + denied},
	} {
		if got, _ := use(t, server, exchange.Modern, set, tt.tool, strings.ReplaceAll(`{"path":"`+tt.path+`"}`, "$W", w)); got != strings.ReplaceAll(tt.want, "$W", w) {
			t.Errorf("%s %s:\n got %q\nwant %q", tt.tool, tt.path, got, tt.want)
		}
	}
}

// The stages in front log a denial and may ask the client for newer roots: they are told of which path, and why.
func TestDenialsAreNoted(t *testing.T) {
	w := tree(t, session)
	set := roots.NewSet(resolve(t, filepath.Join(w, "R"), roots.ReadOnly))
	server := newServer(t)
	for _, tt := range []struct {
		set  roots.Set
		path string
		want []exchange.Note
	}{
		{set, "a.txt", nil},
		{set, "nope", nil},
		{set, "C:/x", nil},
		{set, "$W/S/b.txt", []exchange.Note{{Code: "outside", Path: "$W/S/b.txt"}}},
		{set, "file://$W/S/b.txt", []exchange.Note{{Code: "outside", Path: "$W/S/b.txt"}}},
		{set, "../S/b.txt", []exchange.Note{{Code: "outside", Path: "$W/S/b.txt"}}},
		{set, "across", []exchange.Note{{Code: "outside", Path: "$W/R/across"}}},
		{roots.Set{}, "$W/R/a.txt", []exchange.Note{{Code: "no-roots", Path: "$W/R/a.txt"}}},
		{roots.Set{}, "a.txt", []exchange.Note{{Code: "no-roots"}}},
	} {
		r := request(exchange.Modern, "tools/call", `{"name":"read_text_file","arguments":{"path":"`+strings.ReplaceAll(tt.path, "$W", w)+`"}}`, tt.set)
		r.Trail = exchange.NewTrail("c1", time.Time{})
		exchange.Do(t.Context(), server, r)
		for i := range tt.want {
			tt.want[i].Stage, tt.want[i].Denied, tt.want[i].Path = "fs", true, strings.ReplaceAll(tt.want[i].Path, "$W", w)
		}
		got := r.Trail.Notes()
		for i := range got {
			got[i].Text = ""
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.path, diff)
		}
	}
}

func TestErrorsAreShort(t *testing.T) {
	set := roots.NewSet(resolve(t, t.TempDir(), roots.ReadOnly))
	long := strings.Repeat("é", 1<<17)
	for _, args := range []string{
		`{"path":"` + long + `"}`, `{"path":"/` + long + `"}`, `{"path":"file:///` + long + `"}`, `{"path":"file://` + long + `/x"}`, `{"path":"C:/` + long + `"}`,
		`{"path":"` + strings.Repeat("x", 300) + `"}`,
	} {
		got, isError := use(t, newServer(t), exchange.Legacy, set, "read_text_file", args)
		if !isError || len(got) > 10_000 {
			t.Errorf("%.30s…: error %v, %d bytes: %.100q…", args, isError, len(got), got)
		}
	}
	if got, _ := use(t, newServer(t), exchange.Legacy, set, long, "{}"); len(got) > 1000 {
		t.Errorf("an unknown tool: %d bytes", len(got))
	}
}

// An answer is never longer than what a client takes, whatever the text becomes as JSON.
func TestAnswersFitIntoOneLine(t *testing.T) {
	w := tree(t, nil)
	write := func(name, unit string, size int) {
		t.Helper()
		text := strings.Repeat(unit, size/len(unit)+1)[:size]
		if err := os.WriteFile(filepath.Join(w, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("most", "0123456789abcde\n", maxText)
	write("over", "0123456789abcde\n", maxText+1)
	write("controls", "\x01\x02\n", maxText)
	write("invalid", "\xff\xfe\n", maxText)
	write("a line", "x", maxText+1)
	server, set := newServer(t), roots.NewSet(resolve(t, w, roots.ReadOnly))
	for _, tt := range []struct {
		args, want string // want is the beginning of an error; "" is the whole text
	}{
		{`{"path":"most"}`, ""},
		{`{"path":"most","head":262144}`, ""},
		{`{"path":"most","tail":262145}`, ""},
		{`{"path":"over"}`, fmt.Sprintf("EFBIG: file too large, read '%s/over': it has %d bytes, and one answer carries at most %d. Read a part of it with head or tail, or with read_lines.", w, maxText+1, maxText)},
		{`{"path":"over","head":262145}`, "EFBIG: file too large, read '" + w + "/over': head 262145 is more than"},
		{`{"path":"over","tail":262146}`, "EFBIG: file too large, read '" + w + "/over': tail 262146 is more than"},
		{`{"path":"a line","head":1}`, "EFBIG: file too large, read '" + w + "/a line': head 1 is more than"},
		{`{"path":"a line","tail":1}`, "EFBIG: file too large, read '" + w + "/a line': tail 1 is more than"},
		{`{"path":"controls"}`, "The answer would be "},
		{`{"path":"invalid"}`, "The answer would be "},
		{`{"path":"controls","tail":10}`, ""},
	} {
		r := request(exchange.Modern, "tools/call", `{"name":"read_text_file","arguments":`+tt.args+`}`, set)
		answer := exchange.Do(t.Context(), server, r).Msg
		if n := len(answer.Bytes()); n > 10<<20 {
			t.Errorf("%s: the answer has %d bytes", tt.args, n)
		}
		_, isError := wire.Get(answer.Result(), "isError")
		if isError != (tt.want != "") || !bytes.Contains(answer.Result(), []byte(`"text":"`+tt.want)) {
			t.Errorf("%s: error %v, %.200q", tt.args, isError, answer.Result())
		}
	}
	if text, _ := use(t, server, exchange.Legacy, set, "read_text_file", `{"path":"most"}`); len(text) != maxText {
		t.Errorf("a text of %d bytes came with %d", maxText, len(text))
	}
}

// https://github.com/modelcontextprotocol/servers/pull/1027: the first and the last lines of a large file take no more memory
// than those of a small one.
func TestLinesOfAHugeFile(t *testing.T) {
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const size = 10 << 30 // most of it is a hole
	for at, text := range map[int64]string{0: "first\nsecond\n", size: "\nlast but one\nlast"} {
		if _, err := file.WriteAt([]byte(text), at); err != nil {
			t.Fatal(err)
		}
	}
	server, set := newServer(t), roots.NewSet(resolve(t, dir, roots.ReadOnly))
	for args, want := range map[string]string{
		`{"path":"log","head":2}`: "first\nsecond",
		`{"path":"log","tail":2}`: "last but one\nlast",
		`{"path":"log","head":3}`: "EFBIG: ",
		`{"path":"log","tail":3}`: "EFBIG: ",
		`{"path":"log"}`:          "EFBIG: ",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, _ := use(t, server, exchange.Legacy, set, "read_text_file", args)
		runtime.ReadMemStats(&after)
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %.100q, want %q", args, got, want)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 8*maxText {
			t.Errorf("%s allocated %d bytes", args, used)
		}
	}
}

func TestShownPathsCanBeSentBack(t *testing.T) {
	for _, path := range []string{"/a/b", "/a/\xff", "/\xe6\x97/é", "/日本/é"} {
		got := show(path)
		if !utf8.ValidString(got) {
			t.Errorf("show(%q) = %q is not text", path, got)
		}
		if back, err := (&call{Server: &Server{}, openSet: &openSet{}}).paths(got); err != nil || len(back) != 1 || back[0] != path {
			t.Errorf("show(%q) = %q, which is %q, %v", path, got, back, err)
		}
	}
}
