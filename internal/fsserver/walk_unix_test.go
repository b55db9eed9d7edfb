//go:build unix

package fsserver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// grove is a tree with links of every kind.
var grove = map[string]string{
	"R/a.txt": "a", "R/b.js": "b", "R/.hid/in.txt": "i", "R/empty/": "", "R/a-b": "", "R/a/x": "",
	"R/sub/a.txt": "", "R/sub/deep/b.txt": "", "R/sub/node_modules/y/z.txt": "",
	"R/lin": "-> a.txt", "R/ldir": "-> sub", "R/lout": "-> ../canary", "R/ldang": "-> nowhere", "canary": canary,
}

func TestSearchFiles(t *testing.T) {
	w := tree(t, grove)
	set := roots.NewSet(resolve(t, w+"/R", roots.ReadOnly))
	const tool = "search_files"
	lines := func(names ...string) string { return "$W/R/" + strings.Join(names, "\n$W/R/") }
	table := []struct{ tool, args, want string }{
		// In order, a directory before what is in it; links that lead outside or nowhere are not told.
		{tool, `{"path":"$W/R","pattern":"**"}`, lines(".hid", ".hid/in.txt", "a", "a/x", "a-b", "a.txt", "b.js", "empty", "ldir", "lin", "sub", "sub/a.txt",
			"sub/deep", "sub/deep/b.txt", "sub/node_modules", "sub/node_modules/y", "sub/node_modules/y/z.txt")},
		{tool, `{"path":".","pattern":"*.txt"}`, lines("a.txt")},
		{tool, `{"path":".","pattern":"**/*.{txt,js}"}`, lines(".hid/in.txt", "a.txt", "b.js", "sub/a.txt", "sub/deep/b.txt", "sub/node_modules/y/z.txt")},
		{tool, `{"path":".","pattern":"l*"}`, lines("ldir", "lin")},
		{tool, `{"path":".","pattern":"ldir/*"}`, "No matches found"},
		{tool, `{"path":".","pattern":"!**/*.*"}`, lines("a", "a/x", "a-b", "empty", "ldir", "lin", "sub", "sub/deep", "sub/node_modules", "sub/node_modules/y")},
		{tool, `{"path":".","pattern":"*.TXT"}`, "No matches found"},
		{tool, `{"path":".","pattern":""}`, "No matches found"},

		// Excludes mean what they mean for a tree.
		{tool, `{"path":".","pattern":"**/*.txt","excludePatterns":["node_modules"]}`, lines(".hid/in.txt", "a.txt", "sub/a.txt", "sub/deep/b.txt")},
		{tool, `{"path":".","pattern":"**/*.txt","excludePatterns":["sub/*",".hid"]}`, lines("a.txt", "sub/a.txt")[:len("$W/R/a.txt")]},
		{tool, `{"path":".","pattern":"**","excludePatterns":["*"]}`, "No matches found"},

		// A link to a directory is searched as what it leads to, and a relative path as what it is.
		{tool, `{"path":"ldir","pattern":"*.txt","excludePatterns":["deep"]}`, lines("sub/a.txt")},

		{tool, `{"path":"a.txt","pattern":"*"}`, "!ENOTDIR: not a directory, scandir '$W/R/a.txt'"},
		{tool, `{"path":"nope","pattern":"*"}`, "!ENOENT: no such file or directory, scandir '$W/R/nope'"},
		{tool, `{"path":"/","pattern":"**/canary"}`, "!Access denied - path outside allowed directories: / not in $W/R"},
		{tool, `{"path":".","pattern":"a!(b)"}`, `!The pattern "a!(b)" cannot be used: "!(b)" asks for what does not match in a part of a name, which is not supported; a ! at the beginning turns the whole pattern round.`},
		{tool, `{"path":"."}`, "!MCP error -32602: Input validation error: Invalid arguments for tool search_files: Invalid input: expected string, received undefined at pattern"},
	}
	each(t, newServer(t), w, set, table)
	each(t, compatServer(t), w, set, table)
}

func TestDirectoryTree(t *testing.T) {
	w := tree(t, grove)
	set := roots.NewSet(resolve(t, w+"/R", roots.ReadOnly))
	for _, tt := range []struct{ args, want string }{
		{`{"path":"."}`, ".hid(in.txt) a(x) a-b a.txt b.js empty() ldang ldir lin lout sub(a.txt deep(b.txt) node_modules(y(z.txt)))"},
		{`{"path":"sub"}`, "a.txt deep(b.txt) node_modules(y(z.txt))"},
		{`{"path":"ldir","excludePatterns":["deep"]}`, "a.txt node_modules(y(z.txt))"},
		{`{"path":"empty"}`, ""},
		{`{"path":"sub","excludePatterns":["node_modules"]}`, "a.txt deep(b.txt)"},
		{`{"path":"sub","excludePatterns":["*.txt"]}`, "deep(b.txt) node_modules(y(z.txt))"},
		{`{"path":"sub","excludePatterns":["**/*.txt"]}`, "deep() node_modules(y())"},
		{`{"path":"sub","excludePatterns":["b.txt","y"]}`, "a.txt deep() node_modules()"},
		{`{"path":"sub","maxDepth":1}`, "a.txt deep[] node_modules[]"},
		{`{"path":"sub","maxDepth":2}`, "a.txt deep(b.txt) node_modules(y[])"},
	} {
		for _, era := range eras {
			text, isError := use(t, newServer(t), era, set, "directory_tree", tt.args)
			if got := outline(t, text); got != tt.want || isError {
				t.Errorf("%v %s: %s, want %s", era, tt.args, got, tt.want)
			}
		}
	}
	each(t, newServer(t), w, set, []struct{ tool, args, want string }{
		{"directory_tree", `{"path":"empty"}`, "[]"},
		{"directory_tree", `{"path":"sub","excludePatterns":["node_modules"]}`, `[
  {
    "name": "a.txt",
    "type": "file"
  },
  {
    "name": "deep",
    "type": "directory",
    "children": [
      {
        "name": "b.txt",
        "type": "file"
      }
    ]
  }
]`},
		{"directory_tree", `{"path":"sub","excludePatterns":["*.txt","b.txt","y"]}`, `[
  {
    "name": "deep",
    "type": "directory",
    "children": []
  },
  {
    "name": "node_modules",
    "type": "directory",
    "children": []
  }
]`},
		{"directory_tree", `{"path":"a.txt"}`, "!ENOTDIR: not a directory, scandir '$W/R/a.txt'"},
		{"directory_tree", `{"path":"nope"}`, "!ENOENT: no such file or directory, scandir '$W/R/nope'"},
		{"directory_tree", `{"path":"lout"}`, "!Access denied - symlink target outside allowed directories, or missing: $W/R/lout not in $W/R"},
		{"directory_tree", `{"path":".","maxDepth":0}`, "!maxDepth is 0, and has to be 1 or more."},
	})
	if text, _ := use(t, compatServer(t), exchange.Legacy, set, "directory_tree", `{"path":"sub","maxDepth":1}`); outline(t, text) != "a.txt deep(b.txt) node_modules(y(z.txt))" {
		t.Errorf("compat has maxDepth: %s", text)
	}
}

// outline writes a tree in one line: "dir(child child)", and "dir[]" for a directory without children.
func outline(t *testing.T, text string) string {
	t.Helper()
	type entry struct {
		Name, Type, Note string
		Children         *[]json.RawMessage
	}
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v in %.300s", err, text)
	}
	var names []string
	for _, raw := range list {
		var e entry
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		name := e.Name
		switch {
		case e.Type == "directory" && e.Children == nil:
			name += "[]"
		case e.Type == "directory":
			inner, _ := json.Marshal(*e.Children)
			name += "(" + outline(t, string(inner)) + ")"
		case e.Type != "file" || e.Children != nil:
			t.Errorf("%s is of type %q", e.Name, e.Type)
		}
		if e.Note != "" {
			name += "<" + e.Note + ">"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// One directory that cannot be read does not fail a tree or a search; both say so.
func TestADirectoryThatCannotBeRead(t *testing.T) {
	w := tree(t, map[string]string{"R/a": "", "R/denied/x": "", "R/z/y": ""})
	server := New(Options{Name: "files", Title: "Files", Version: "1.2", Files: rootfs.Options{Deny: func(name string) bool { return name == "denied" }}})
	t.Cleanup(server.Close)
	set := roots.NewSet(resolve(t, w+"/R", roots.ReadOnly))
	for _, era := range eras {
		text, isError := use(t, server, era, set, "directory_tree", `{"path":"."}`)
		if got := outline(t, text); isError || !strings.HasPrefix(got, "a denied()<it cannot be entered: ") || !strings.HasSuffix(got, "> z(y)") {
			t.Errorf("%v: the tree is %s", era, got)
		}
		text, isError = use(t, server, era, set, "search_files", `{"path":".","pattern":"**"}`)
		want := w + "/R/" + strings.Join([]string{"a", "denied", "z", "z/y"}, "\n"+w+"/R/") + "\n1 directory could not be entered."
		if text != want || isError {
			t.Errorf("%v: the search found %q, want %q", era, text, want)
		}
	}
}

// What does not fit is counted and said, and what is near the top is shown before what is deep. The text stays JSON.
func TestTreesThatDoNotFit(t *testing.T) {
	top := &branch{children: map[string]*branch{"a": {depth: 1}, "b": {depth: 1}}}
	for _, name := range []string{"a", "b", "c"} {
		top.entries = append(top.entries, rootfs.Entry{Name: name, Type: os.ModeDir})
	}
	for _, c := range top.children {
		for i := range 100 {
			c.entries = append(c.entries, rootfs.Entry{Name: fmt.Sprint("f", i)})
		}
	}
	v := &treeView{top: top}
	v.choose(1000)
	text := unquote(v.quoted(nil, "/r"))
	got := outline(t, text)
	if len(text) > 1100 || !strings.HasPrefix(got, "a(f0 ") || !strings.Contains(got, "more entries are not shown> b()<100 more entries are not shown> c()<it was not looked at>") {
		t.Errorf("%d bytes: %s", len(text), got)
	}
	if note := v.note(walked{}); !strings.Contains(note, " entries are not shown, because one answer carries at most ") {
		t.Errorf("the note is %q", note)
	}
	for note, w := range map[string]walked{
		"":                             {},
		"there are more than 7 entrie": {Walked: rootfs.Walked{Cut: true, Entries: 7}},
		"took longer than 45s":         {late: true},
		"2 directories could not be":   {Walked: rootfs.Walked{Unreadable: 2}},
	} {
		if got := (&treeView{}).note(w); !strings.Contains(got, note) || (note == "") != (got == "") {
			t.Errorf("the note is %q, want %q", got, note)
		}
	}
}

func TestSearchesSayWhatIsMissing(t *testing.T) {
	long := strings.Repeat("d", 250)
	in := &foundIn{dir: long}
	for i := range 20_000 {
		in.names = append(in.names, fmt.Sprintf("%05d", i))
	}
	s := &nameSearch{call: &call{Server: newServer(t)}, in: []*foundIn{in}}
	s.hits = 20_000
	text := s.text(walked{start: "/r"})
	if len(text) > maxFound+1000 || !strings.HasPrefix(text, "/r/"+long+"/00000\n/r/"+long+"/00001\n") || !strings.Contains(text, " more matches are not listed, because one answer carries at most 3145728 bytes of them. To go on, call again with \"cursor\":\""+long+"/") {
		t.Errorf("%d bytes, ends %q", len(text), text[len(text)-200:])
	}
	for want, w := range map[string]walked{
		"No matches found": {},
		"No matches found\nThe search ended after 9 entries, and there may be more. Search a directory beneath this one.":         {Walked: rootfs.Walked{Cut: true, Entries: 9}},
		"No matches found\nThe search ended after 45s and 9 entries, and there may be more. Search a directory beneath this one.": {late: true, Walked: rootfs.Walked{Entries: 9}},
		"No matches found\n3 directories could not be entered.":                                                                   {Walked: rootfs.Walked{Unreadable: 3}},
	} {
		if got := (&nameSearch{}).text(w); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A name that is not UTF-8 is shown as a URI, which every tool takes.
func TestNamesThatAreNotTextInTreesAndSearches(t *testing.T) {
	w := tree(t, map[string]string{"R/d/": ""})
	if err := syscall.Mkdir(w+"/R/d/\xff", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w+"/R/d/\xff/x", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	set, uri := roots.NewSet(resolve(t, w+"/R", roots.ReadOnly)), "file://"+w+"/R/d/%FF"
	each(t, newServer(t), w, set, []struct{ tool, args, want string }{
		{"search_files", `{"path":".","pattern":"d/?/**"}`, uri + "/x"},
		{"search_files", `{"path":` + quoteJSON(uri) + `,"pattern":"*"}`, uri + "/x"},
	})
	if text, _ := use(t, newServer(t), exchange.Modern, set, "directory_tree", `{"path":"d"}`); outline(t, text) != uri+"(x)" {
		t.Errorf("the tree is %s", text)
	}
}

// A client that gave a token hears how far a walk is, no more often than it can read, and never twice the same.
func TestProgressOfAWalk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := tree(t, map[string]string{"R/1/": "", "R/2/": "", "R/3/": ""})
		o := &openSet{asked: roots.NewSet(resolve(t, w+"/R", roots.ReadOnly))}
		o.openRoots()
		defer o.close()
		for _, era := range eras {
			who := &caller{}
			r := request(era, "tools/call", "{}", roots.Set{})
			r.Msg = r.Msg.WithParams(wire.SetMember(r.Msg.Params(), []byte(`"tok"`), "_meta", "progressToken"))
			r.Caller = who
			c := &call{Server: newServer(t), openSet: o, ctx: t.Context(), request: r}
			_, err := c.walk(w+"/R", rootfs.WalkOptions{Workers: 1}, func(context.Context, string) (func(*rootfs.Directory) []rootfs.Entry, error) {
				return func(d *rootfs.Directory) []rootfs.Entry { time.Sleep(1500 * time.Millisecond); return d.Entries }, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(who.told) != 1 || !strings.Contains(who.told[0], `"method":"notifications/progress","params":{"progressToken":"tok","progress":3,`) {
				t.Errorf("%v: told %q", era, who.told)
			}
		}
	})
}

// What takes too long is answered with what was found until then, also when the file system keeps a step of it.
func TestAWalkThatTakesTooLong(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := tree(t, map[string]string{"R/1/a": "", "R/2/b": ""})
			o := &openSet{asked: roots.NewSet(resolve(t, w+"/R", roots.ReadOnly))}
			o.openRoots()
			defer o.close()
			s := newServer(t)
			c := &call{Server: s, openSet: o, ctx: t.Context(), request: request(exchange.Legacy, "tools/call", "{}", roots.Set{}), slot: s.slots.newSlot()}
			answers := make(chan bool) // of the file system
			got, err := c.walk(w+"/R", rootfs.WalkOptions{Workers: 1}, func(context.Context, string) (func(*rootfs.Directory) []rootfs.Entry, error) {
				return func(d *rootfs.Directory) []rootfs.Entry {
					switch {
					case d.Parent == nil:
					case stuck:
						<-answers
					default:
						time.Sleep(maxWalk + maxEnding/2)
					}
					return d.Entries
				}, nil
			})
			if err != nil || !got.late || got.stuck != stuck || got.Entries < 3 || got.start != w+"/R" {
				t.Errorf("stuck %v: %+v, %v", stuck, got, err)
			}
			c.slot.end()
			c.slot.leave()
			held := func() [2]int64 { return [2]int64{int64(len(s.slots.walks)), s.slots.heldUp.Load()} }
			want := [2]int64{0, 0}
			if stuck {
				want = [2]int64{0, 1}
			}
			if got := held(); got != want {
				t.Errorf("stuck %v: answered, it holds %v", stuck, got)
			}
			close(answers)
			synctest.Wait()
			if got := held(); got != [2]int64{} {
				t.Errorf("stuck %v: when it has ended, it holds %v", stuck, got)
			}
		})
	}
}

// A walk whose start does not answer has found nothing, and nothing is not the answer.
func TestAWalkThatDoesNotBegin(t *testing.T) {
	w := tree(t, map[string]string{"R/1/a": ""})
	set := roots.NewSet(resolve(t, w+"/R", roots.ReadOnly))
	s := newServer(t)
	s.slots.waits.walk = 0
	for tool, args := range map[string]string{
		"directory_tree": `{"path":"."}`, "list_directory_with_sizes": `{"path":"."}`, "search_files": `{"path":".","pattern":"*"}`, "search_content": `{"path":".","pattern":"a"}`,
	} {
		if text, isError := use(t, s, exchange.Legacy, set, tool, args); !isError || !strings.Contains(text, "/R' was ended after 45s: what it lies in does not answer.") {
			t.Errorf("%s: %v, %s", tool, isError, text)
		}
	}
}

// Every answer is what the output schema of its tool says: programs read it by that.
func TestAnswersMatchTheirOutputSchemas(t *testing.T) {
	w := tree(t, grove)
	if err := os.WriteFile(filepath.Join(w, "R/p.png"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	set := roots.NewSet(resolve(t, w+"/R", roots.ReadOnly))
	calls := [][2]string{
		{"read_file", `{"path":"a.txt"}`}, {"read_text_file", `{"path":"a.txt","head":1}`}, {"read_media_file", `{"path":"p.png"}`}, {"read_media_file", `{"path":"a.txt"}`},
		{"read_multiple_files", `{"paths":["a.txt","nope"]}`}, {"list_directory", `{"path":"."}`}, {"list_directory_with_sizes", `{"path":"."}`},
		{"directory_tree", `{"path":"."}`}, {"search_files", `{"path":".","pattern":"*"}`}, {"get_file_info", `{"path":"."}`}, {"list_allowed_directories", `{}`},
		{"read_lines", `{"path":"a.txt"}`},
	}
	for name, server := range map[string]*Server{"default": newServer(t), "compat": compatServer(t)} {
		for _, era := range eras {
			list, _ := wire.Get([]byte(ask(t, server, request(era, "tools/list", "", roots.Set{}))), "tools")
			schemas := map[string]*jsonschema.Resolved{}
			for item := range wire.Items(list) {
				output, _ := wire.Get(item, "outputSchema")
				var s jsonschema.Schema
				if err := json.Unmarshal(output, &s); err != nil {
					t.Fatal(err)
				}
				resolved, err := s.Resolve(nil)
				if err != nil {
					t.Fatal(err)
				}
				schemas[wire.GetString(item, "name")] = resolved
			}
			for _, call := range calls {
				if schemas[call[0]] == nil {
					if name != "compat" || call[0] != "read_lines" {
						t.Errorf("%s %v: no %s", name, era, call[0])
					}
					continue
				}
				params := `{"name":"` + call[0] + `","arguments":` + call[1] + `}`
				structured, ok := wire.Get([]byte(ask(t, server, request(era, "tools/call", params, set))), "structuredContent")
				var value any
				if err := json.Unmarshal(structured, &value); err != nil || !ok {
					t.Errorf("%s %v %s: %v", name, era, call, err)
				}
				if err := schemas[call[0]].Validate(value); err != nil {
					t.Errorf("%s %v %s: %v", name, era, call, err)
				}
			}
		}
	}
}

// In compat mode there are exactly the tools of the reference server, in its order, with its parameters.
func TestCompatHasTheToolsOfTheReferenceServer(t *testing.T) {
	want := strings.Fields("read_file read_text_file read_media_file read_multiple_files write_file edit_file create_directory list_directory " +
		"list_directory_with_sizes directory_tree move_file search_files get_file_info list_allowed_directories")
	params := map[string]string{"directory_tree": "path excludePatterns", "search_files": "path pattern excludePatterns", "read_text_file": "path tail head", "list_directory_with_sizes": "path sortBy"}
	var got []string
	for _, tool := range compatServer(t).tools {
		got = append(got, tool.name)
		var names []string
		for _, p := range tool.params {
			names = append(names, p.name)
		}
		if w, ok := params[tool.name]; ok && w != strings.Join(names, " ") {
			t.Errorf("%s takes %q, want %q", tool.name, names, w)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// However many and large the ignore files in each other are, only so much of them is held in memory: the outermost counts.
func TestIgnoreFilesAreBounded(t *testing.T) {
	large := strings.Repeat("# a line\n", maxIgnored/18)
	w := newWriter(t, map[string]string{
		"R/.gitignore": "outer\n" + large, "R/d/.gitignore": "middle\n" + large, "R/d/d/.gitignore": "inner\n" + large,
		"R/d/d/inner": "", "R/d/d/.git/x": "", "R/d/d/d/inner": "", "S/.gitignore": "inner\n" + large, "S/inner": "",
	}, Options{})
	// What a repository inside sets aside has been read all the same.
	want := "$W/R/d/d/d/inner\n$W/R/d/d/inner"
	if got := w.use("search_files", `{"path":"$W/R/d/d","pattern":"**/inner","gitignore":true}`); got != want {
		t.Errorf("found %q, want %q", got, want)
	}
	if got := w.use("search_files", `{"path":"$W/S","pattern":"**/inner","gitignore":true}`); got != "No matches found" {
		t.Errorf("found %q", got)
	}
}

// The end of a walk also ends what is done with the entries of one directory.
func TestFilterEndsWithTheWalk(t *testing.T) {
	c := &call{args: arguments{}}
	ctx, cancel := context.WithCancel(t.Context())
	f, err := c.filter(ctx, "/")
	if err != nil {
		t.Fatal(err)
	}
	if f.leavesOut(dirFilter{}, rootfs.Entry{Name: "x"}) {
		t.Error("left out before the end")
	}
	cancel()
	if !f.leavesOut(dirFilter{}, rootfs.Entry{Name: "x"}) {
		t.Error("not left out after the end")
	}
}
