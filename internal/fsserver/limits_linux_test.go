package fsserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
)

// argumentsFor makes arguments that a tool takes, with a path in every place for one that is there already.
func argumentsFor(tool *tool, path string) string {
	var value func(name string, s schema) string
	object := func(params []param, all bool) string {
		var members []string
		for _, p := range params {
			if p.required || all || slices.Contains([]string{"path", "paths", "source"}, p.name) {
				members = append(members, quoteJSON(p.name)+":"+value(p.name, p.schema))
			}
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	value = func(name string, s schema) string {
		switch {
		case s.options != nil:
			return quoteJSON(s.options[0])
		case s.kind == "array":
			return "[" + value(name, *s.items) + "]"
		case s.kind == "object":
			return object(s.members, true)
		case s.kind == "boolean":
			return "false"
		case s.kind == "number", s.kind == "integer":
			return "1"
		case name == "path" || name == "paths" || name == "source":
			return quoteJSON(path)
		case name == "destination":
			return quoteJSON("$W/R/destination")
		}
		return quoteJSON("inside")
	}
	return object(tool.params, false)
}

// boundedly runs f and fails the test if this process grows much meanwhile.
func boundedly(t *testing.T, f func()) {
	t.Helper()
	debug.FreeOSMemory()
	grown := growth(t)
	f()
	if got := grown(); got > mostGrowth() {
		t.Errorf("it grew by %d MiB", got>>20)
	}
}

// A FIFO in every role of every tool: named, above what is named, in a directory that is walked, as the destination. Each
// is answered, and it stays what it is. https://github.com/entireio/cli/pull/2308
func TestAFIFOInEveryRole(t *testing.T) {
	for _, tool := range tools {
		for role, path := range map[string]string{"named": "$W/R/fifo", "through a link": "$W/R/link", "above": "$W/R/fifo/x", "walked": "$W/R"} {
			t.Run(tool.name+" "+role, func(t *testing.T) {
				c := newTrial(t, map[string]string{"R/link": "-> fifo"}, rootfs.Options{})
				if err := makeFIFO(t, c.w); err != nil {
					t.Fatal(err)
				}
				got := c.call(t, tool.name, argumentsFor(tool, path))
				if got.code == codeArguments {
					t.Errorf("%s: %s", argumentsFor(tool, path), got)
				}
				if got := c.call(t, "read_text_file", `{"path":"$W/R/ok.txt"}`); role != "walked" && got.text != "inside" {
					t.Errorf("afterwards a plain read answers %s", got)
				}
				if moved := tool.name == "move_file" || tool.name == "delete_path"; !moved {
					if err := stillFIFO(c.w); err != nil {
						t.Error(err)
					}
				}
				c.report(t)
			})
		}
	}
	for _, s := range []step{
		tryMove("$W/R/ok.txt", "$W/R/fifo", "deny exists"), tryWrite("$W/R/fifo", "deny special_file"),
		{tool: "copy_file", args: `{"source":"$W/R/ok.txt","destination":"$W/R/fifo","overwrite":true}`, want: wantDeny},
	} {
		c := newTrial(t, nil, rootfs.Options{})
		if err := makeFIFO(t, c.w); err != nil {
			t.Fatal(err)
		}
		if got := c.call(t, s.tool, s.args); !c.satisfies(got, s.want) {
			t.Errorf("%s %s: %s", s.tool, s.args, got)
		}
		if err := stillFIFO(c.w); err != nil {
			t.Error(err)
		}
		c.report(t)
	}
}

// A large file without one line end, 1 GB in the long run: whatever is asked of it is answered, by less than that.
func TestAHugeFileWithoutLines(t *testing.T) {
	c := newTrial(t, nil, rootfs.Options{})
	size, holeSize := 16<<20, int64(256<<20)
	if *long {
		size, holeSize = 1<<30, 1<<30
	}
	f, err := os.Create(c.w + "/R/line")
	if err != nil {
		t.Fatal(err)
	}
	for block := bytes.Repeat([]byte("x"), 1<<20); size > 0; size -= len(block) {
		if _, err := f.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	if err := makeHole(holeSize)(t, c.w); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"line", "huge"} {
		for _, s := range []step{
			tryRead(name, "deny too_large"), tryAt("read_file", name, "deny too_large"), tryAt("read_text_file", name, wantEither, `"head":1`), tryAt("read_text_file", name, wantEither, `"tail":1`),
			tryAt("read_text_file", name, wantEither, `"head":1e9`), tryAt("read_lines", name, wantEither), tryAt("read_lines", name, wantEither, `"offset":1000000`),
			tryAt("read_media_file", name, "deny too_large"), {tool: "read_multiple_files", args: `{"paths":["` + name + `","ok.txt"]}`, want: "~ inside"},
			tryAt("edit_file", name, wantDeny, `"edits":[{"oldText":"nowhere","newText":"y"}]`), tryAt("get_file_info", name, "~ size"),
			tryAt("search_content", "$W/R", wantEither, `"pattern":"x+y"`), tryAt("search_content", "$W/R", wantEither, `"pattern":"xxx"`),
		} {
			boundedly(t, func() {
				if got := c.call(t, s.tool, s.args); !c.satisfies(got, s.want) {
					t.Errorf("%s %s: %s", s.tool, s.args, got)
				}
			})
		}
	}
	c.report(t)
}

// Far down in a file there is nothing to be shown, and looking for it ends.
func TestALineFarDown(t *testing.T) {
	if !*long {
		return
	}
	c := newTrial(t, nil, rootfs.Options{})
	if err := makeHole(hugeText)(t, c.w); err != nil {
		t.Fatal(err)
	}
	if got := c.call(t, "read_lines", `{"path":"huge","offset":1e12}`); got.code != "budget" {
		t.Errorf("it says %s", got)
	}
	c.report(t)
}

// 64 reads at once of what is as long as an answer may be, and of what is longer.
func TestParallelReads(t *testing.T) {
	c := newTrial(t, map[string]string{"R/long": strings.Repeat("fifteen letters\n", maxText/16), "R/longer": strings.Repeat("fifteen letters\n", 8<<20/16)}, rootfs.Options{})
	boundedly(t, func() {
		replies := make(chan bool, 128) // whether it is an error; the answers themselves are not kept
		for range cap(replies) / 2 {
			for _, args := range []string{`{"path":"longer"}`, `{"path":"longer","head":200000}`} {
				c.server.Handle(t.Context(), request(exchange.Legacy, "tools/call", `{"name":"read_text_file","arguments":`+args+`}`, c.set), func(o exchange.Outcome) {
					_, isError := wire.Get(o.Msg.Result(), "isError")
					replies <- isError
				})
			}
		}
		failed := 0
		for range cap(replies) {
			if <-replies {
				failed++
			}
		}
		if failed != cap(replies)/2 {
			t.Errorf("%d of %d reads failed, want those that are too long", failed, cap(replies))
		}
	})
	if got := c.call(t, "read_text_file", `{"path":"long"}`); len(got.text) != maxText {
		t.Errorf("then the longest read has %d bytes", len(got.text))
	}
	c.report(t)
}

// Thousands of directories, each in the one before: paths are longer than a system takes.
func TestDeepNesting(t *testing.T) {
	c := newTrial(t, nil, rootfs.Options{})
	if err := os.Mkdir(c.w+"/R/deep", 0o755); err != nil {
		t.Fatal(err)
	}
	levels := 3000
	if *long {
		levels = 10_000
	}
	if err := deepen(c.w+"/R/deep", levels); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // os.RemoveAll holds every directory open
		if out, err := exec.Command("rm", "-rf", c.w+"/R").CombinedOutput(); err != nil {
			t.Errorf("removing the tree: %v, %.300s", err, out)
		}
	})
	for _, s := range []step{
		tryAt("directory_tree", "$W/R", "~ not shown"), trySearch("$W/R", "**/bottom", "= No matches found\n1 directory is too far down, where no path leads."), trySearch("$W/R", "**/*", wantEither), tryAt("search_content", "$W/R", wantEither, `"pattern":"inside"`),
		tryList("$W/R/deep/d/d", "= [DIR] d"), tryList("$W/R/"+strings.Repeat("deep/", 5000), wantDeny), {tool: "copy_file", args: `{"source":"$W/R/deep","destination":"$W/R/copy"}`, want: wantEither},
		{tool: "delete_path", args: `{"path":"$W/R/deep"}`, want: "deny budget"}, tryMove("$W/R/deep", "$W/R/moved", "~ moved"), tryAt("delete_path", "$W/R/moved", wantEither),
	} {
		boundedly(t, func() {
			if got := c.call(t, s.tool, s.args); !c.satisfies(got, s.want) {
				t.Errorf("%s %.100s: %s", s.tool, s.args, got)
			}
		})
	}
	c.report(t)
}

// A tree of 1 M entries in the long run, and a hundredth of it else.
func TestAHugeTree(t *testing.T) {
	c := newTrial(t, nil, rootfs.Options{})
	directories := 100
	if *long {
		directories = 10_000
	}
	if err := makeMany(c.w+"/R/many", directories, 100, true); err != nil {
		t.Fatal(err)
	}
	for _, s := range []step{
		tryAt("directory_tree", "$W/R", wantEither), trySearch("$W/R", "**/*", wantEither), trySearch("$W/R", "**/nowhere", "= No matches found"), trySearch("$W/R", fmt.Sprintf("**/%05d/099", directories-1), "~ /099"),
		tryAt("search_content", "$W/R", wantEither, `"pattern":"nowhere"`), tryAt("list_directory_with_sizes", "$W/R/many", "~ [DIR] 000"), tryMove("$W/R/many", "$W/R/moved", "~ moved"), tryAt("delete_path", "$W/R/moved", "~ deleted"),
	} {
		boundedly(t, func() {
			if got := c.call(t, s.tool, s.args); !c.satisfies(got, s.want) {
				t.Errorf("%s %s: %.500s", s.tool, s.args, got)
			}
		})
	}
	c.report(t)
}

// Patterns that take others long, or much.
func TestHostilePatterns(t *testing.T) {
	c := newTrial(t, map[string]string{"R/a.txt": strings.Repeat("a", 20_000) + "!\n" + strings.Repeat("aaaa bbbb\n", 2_000)}, rootfs.Options{})
	for _, pattern := range []string{
		`(a+)+$`, `(a|aa)+$`, `(.*a){50}b`, `^(([a-z])+.)+[A-Z]([a-z])+$`, `(?:a?){500}a{500}`, `.*.*.*.*.*=.*`, `((a{1,100}){1,100}){1,100}`, `a{1000}{1000}`, `(`, `[`, `\`, `(?P<n>a)(?P<n>b)`,
		strings.Repeat("(", 5000), strings.Repeat("(a", 900) + strings.Repeat(")*", 900), strings.Repeat("a|", 100_000), strings.Repeat("x?", 5000), `\p{L}{1000}`, "\x00", "\n", `$`, ``, `(?i)` + strings.Repeat("é", 3000),
		`[[:word:]]{1,99}[^a]`, `(?s).*`, `(?m)^$`,
	} {
		args := `{"path":"$W/R","pattern":` + quoteJSON(pattern) + `}`
		if got := c.call(t, "search_content", args); got.none || got.isError && got.code != codeArguments {
			t.Errorf("%.60q: %s", pattern, got)
		}
	}
	for _, glob := range []string{"[", "[]", "[!]", "[a-", `\`, "{", "}", "{,}", "**", "***/***", "/", "//", "..", "../**", "{a,{b,{c,{d,e}}}}", strings.Repeat("?", 4000), strings.Repeat("*?", 2000), strings.Repeat("[!b]*", 700), "\x00", "\xff", "$W/**", "[[:alpha:]]"} {
		args := `{"path":"$W/R","pattern":` + quoteJSON(glob) + `,"excludePatterns":[` + quoteJSON(glob) + `]}`
		if got := c.call(t, "search_files", args); got.none || got.isError && got.code != codeArguments {
			t.Errorf("%.60q: %s", glob, got)
		}
		args = `{"path":"$W/R","excludePatterns":[` + quoteJSON(glob) + `]}`
		if got := c.call(t, "directory_tree", args); got.none || got.isError && got.code != codeArguments {
			t.Errorf("%.60q: %s", glob, got)
		}
	}
	c.report(t)
}

// asOrdinaryUser runs the test that calls it as somebody who may not read everything.
func asOrdinaryUser(t *testing.T, test func(t *testing.T)) {
	if os.Geteuid() == 0 {
		inEveryVariant(t, []variant{{name: "as nobody", other: true}}, func(t *testing.T, _ variant) { test(t) })
		return
	}
	if os.Getenv(variantEnv) == "" || os.Geteuid() == nobody {
		test(t)
	}
}

// What cannot be read takes nothing else with it.
func TestAnUnreadableDirectory(t *testing.T) {
	asOrdinaryUser(t, func(t *testing.T) {
		c := newTrial(t, map[string]string{"R/locked/x.txt": "inside", "R/unread.txt": "inside", "R/listed/y.txt": "inside"}, rootfs.Options{})
		for name, mode := range map[string]os.FileMode{"locked": 0, "unread.txt": 0, "listed": 0o444} {
			if err := os.Chmod(c.w+"/R/"+name, mode); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Chmod(c.w+"/R/"+name, 0o755) })
		}
		for _, s := range []step{
			tryAt("directory_tree", "$W/R", "~ ok.txt"), trySearch("$W/R", "**/*.txt", "~ ok.txt"), tryAt("search_content", "$W/R", "~ ok.txt", `"pattern":"inside"`), tryList("$W/R", "~ locked"),
			tryAt("list_directory_with_sizes", "$W/R", "~ ok.txt"), tryAt("list_directory_with_sizes", "$W/R/listed", wantEither), tryList("$W/R/locked", "deny permission"), tryList("$W/R/listed", "= [FILE] y.txt"),
			tryRead("$W/R/unread.txt", "deny permission"), tryRead("$W/R/locked/x.txt", "deny permission"), tryRead("$W/R/listed/y.txt", "deny permission"), tryWrite("$W/R/locked/new", "deny permission"), tryWrite("$W/R/listed/y.txt", "deny permission"),
			tryMkdir("$W/R/locked/a/b", "deny permission"), {tool: "read_multiple_files", args: `{"paths":["unread.txt","ok.txt"]}`, want: "~ inside"}, tryAt("directory_tree", "$W/R/locked", "deny permission"),
			tryAt("get_file_info", "$W/R/locked", "~ size"), tryAt("get_file_info", "$W/R/locked/x.txt", "deny permission"), tryMove("$W/R/locked/x.txt", "$W/R/x", "deny permission"),
		} {
			if got := c.call(t, s.tool, s.args); !c.satisfies(got, s.want) {
				t.Errorf("%s %s: %s, want %q", s.tool, s.args, got, s.want)
			}
		}
		c.report(t)
	})
}

// Every definition is a schema that a client can use, and what the server takes as arguments is what its schema says.
func TestArgumentsAreWhatTheSchemaSays(t *testing.T) {
	values := []string{`null`, `true`, `"x"`, `1`, `-1.5`, `1e30`, `[]`, `["x"]`, `[1]`, `{}`, `[{}]`, `[{"oldText":"a","newText":"b"}]`, `[{"oldText":1,"newText":"b"}]`, `[{"oldText":"a"}]`, `[[]]`, `[null]`}
	for _, tool := range tools {
		if len(schemas(t)) == 0 || schemas(t)[tool.name].input == nil {
			t.Fatalf("%s is not listed", tool.name)
		}
		good := argumentsFor(tool, "ok.txt")
		c := newTrial(t, nil, rootfs.Options{})
		for _, p := range tool.params {
			agree(t, c, tool.name, string(wire.DeleteMember([]byte(good), p.name)))
			for _, v := range values {
				agree(t, c, tool.name, string(wire.SetMember([]byte(good), []byte(v), p.name)))
			}
		}
		agree(t, c, tool.name, good)
		agree(t, c, tool.name, `{}`)
		agree(t, c, tool.name, `{"unknown":[{}]}`)
	}
}

// agree calls a tool, and holds what it says of its arguments to their schema. Nothing outside may change. What is no object
// to encoding/json is not tried.
func agree(t *testing.T, c *trial, tool, args string) {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal([]byte(args), &value); err != nil || value == nil {
		return
	}
	wrong := schemas(t)[tool].input.Validate(value)
	before := c.outside(t)
	got := c.callAs(t, eras[len(args)%2], tool, args)
	refused := got.code == codeArguments && strings.Contains(got.text, "Input validation error")
	if refused != (wrong != nil) {
		t.Errorf("%s %s: the schema says %v, and the server %s", tool, args, wrong, got)
	}
	if after := c.outside(t); after != before {
		t.Errorf("%s %s: what lies outside has changed, from\n%s\nto\n%s", tool, args, before, after)
	}
	c.report(t)
}

// A call of any tool, with whatever arguments, on a tree of its own: it is answered as its schemas say, and nothing outside is
// shown or changed.
func FuzzTools(f *testing.F) {
	for i, tool := range tools {
		for _, path := range []string{"ok.txt", "$W/R", "l", "ld/f", "$W/outside/f", "../outside/hiddenplace", ".", "new/../../x", "fifo"} {
			f.Add(byte(i), argumentsFor(tool, path))
		}
	}
	f.Fuzz(func(t *testing.T, which byte, args string) {
		tool := tools[int(which)%len(tools)].name
		if leaked(args) != "" {
			return // it is repeated
		}
		if _, err := wire.Scan([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":`+args+`}}`), wire.Strict); err != nil {
			return // it does not get here
		}
		c := newTrial(t, map[string]string{"R/l": "-> ../outside/f", "R/ld": "-> ../outside", "R/dangling": "-> ../outside/new", "R/in": "-> $W/S"}, rootfs.Options{})
		if err := unix.Mkfifo(c.w+"/R/fifo", 0o666); err != nil {
			t.Fatal(err)
		}
		agree(t, c, tool, args)
	})
}

// What the tests above make of a tool is what it takes.
func TestArgumentsFor(t *testing.T) {
	for _, tool := range tools {
		var value any
		args := argumentsFor(tool, "x")
		if err := json.Unmarshal([]byte(args), &value); err != nil {
			t.Fatal(err)
		}
		if err := schemas(t)[tool.name].input.Validate(value); err != nil {
			t.Error(fmt.Errorf("%s %s: %w", tool.name, args, err))
		}
	}
}
