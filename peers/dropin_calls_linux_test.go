package peers

import (
	"encoding/json"
	"fmt"
	"strings"
)

// dropInSections are all that both servers are asked.
func dropInSections() []section {
	return []section{
		{"tools and arguments", dropInTree, argumentTrials(), false},
		{"reading", dropInTree, readTrials(), false},
		{"listing", dropInTree, listTrials(), false},
		{"patterns", globTree, patternTrials(), false},
		{"media", mediaTree, mediaTrials(), false},
		{"what may not be read", lockedTree, lockedTrials(), true},
		{"writing", dropInTree, writeTrials(), false},
		{"edits", dropInTree, editTrials(), false},
		{"moves", dropInTree, moveTrials(), false},
		{"large", largeTree, largeTrials(), false},
	}
}

// one makes a trial of one call. The arguments are names and values in turn.
func one(tool string, pairs ...any) trial {
	a := args{}
	for i := 0; i < len(pairs); i += 2 {
		a[pairs[i].(string)] = pairs[i+1]
	}
	b, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	return trial{{tool, string(b)}}
}

// raw makes a trial of one call with arguments as they stand, "" for none.
func raw(tool, arguments string) trial { return trial{{tool, arguments}} }

// then puts the calls of trials into one.
func then(trials ...trial) (all trial) {
	for _, t := range trials {
		all = append(all, t...)
	}
	return all
}

// referenceTools are the tools of the reference server, each with arguments that are right.
var referenceTools = []struct{ name, args string }{
	{"read_file", `{"path":"a.txt"}`},
	{"read_text_file", `{"path":"a.txt"}`},
	{"read_media_file", `{"path":"a.txt"}`},
	{"read_multiple_files", `{"paths":["a.txt"]}`},
	{"write_file", `{"path":"new","content":"x"}`},
	{"edit_file", `{"path":"a.txt","edits":[{"oldText":"l1","newText":"x"}]}`},
	{"create_directory", `{"path":"new"}`},
	{"list_directory", `{"path":"sub"}`},
	{"list_directory_with_sizes", `{"path":"sub"}`},
	{"directory_tree", `{"path":"sub"}`},
	{"move_file", `{"source":"a.txt","destination":"new"}`},
	{"search_files", `{"path":"sub","pattern":"*"}`},
	{"get_file_info", `{"path":"a.txt"}`},
	{"list_allowed_directories", `{}`},
}

// newTools are those that only ours has.
var newTools = []struct{ name, args string }{
	{"read_lines", `{"path":"a.txt"}`},
	{"search_content", `{"path":"sub","pattern":"deep"}`},
	{"append_file", `{"path":"a.txt","content":"l4\n"}`},
	{"copy_file", `{"source":"a.txt","destination":"copy"}`},
	{"delete_path", `{"path":"a.txt"}`},
}

func argumentTrials() []trial {
	list := []trial{raw("tools/list", ""), raw("no_such_tool", `{}`), raw("no_such_tool", ""), raw("", `{}`), raw("READ_FILE", `{"path":"a.txt"}`)}
	wrong := []string{`null`, `1`, `true`, `"x"`, `[]`, `{}`, `[1]`, `[{}]`, `["x",null]`}
	for _, t := range referenceTools {
		for _, a := range []string{"", "{}", `null`, `[]`, `"x"`, `1`} {
			list = append(list, raw(t.name, a))
		}
		list = append(list, raw(t.name, strings.TrimSuffix(t.args, "}")+map[bool]string{true: "", false: ","}[t.args == "{}"]+`"further":1}`))
		right := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(t.args), &right); err != nil {
			panic(err)
		}
		for _, optional := range map[string][]string{
			"read_file": {"head", "tail"}, "read_text_file": {"head", "tail"}, "edit_file": {"dryRun"}, "list_directory_with_sizes": {"sortBy"},
			"directory_tree": {"excludePatterns"}, "search_files": {"excludePatterns"},
		}[t.name] {
			right[optional] = nil
		}
		for _, name := range sorted(right) {
			values := wrong
			if t.name == "edit_file" && name == "edits" {
				values = append(values, `[{"oldText":"x"}]`, `[{"newText":"x"}]`, `[{"oldText":1,"newText":[]}]`, `[{"oldText":null,"newText":null},{}]`, `[{"oldText":"l1","newText":"x","further":1}]`)
			}
			for _, v := range values {
				if right[name] != nil && string(right[name][0]) == v[:1] && v[0] == '"' {
					continue // a text where one belongs is for the others
				}
				given := map[string]json.RawMessage{}
				for n, r := range right {
					if r != nil {
						given[n] = r
					}
				}
				given[name] = json.RawMessage(v)
				b, _ := json.Marshal(given)
				list = append(list, raw(t.name, string(b)))
			}
		}
	}
	for _, t := range newTools {
		list = append(list, raw(t.name, t.args))
	}
	return append(list,
		raw("list_directory_with_sizes", `{"path":"sub","sortBy":"Name"}`),
		raw("list_directory_with_sizes", `{"path":"sub","sortBy":""}`),
		raw("read_multiple_files", `{"paths":""}`),
		then(raw("write_file", `{"path":"new","content":"one"}`), raw("read_text_file", `{"path":"new"}`), raw("write_file", `{"path":"new","content":"two","version":"0"}`)),
	)
}

// oddPaths are paths of every kind beside names that are simply there.
var oddPaths = []string{
	"", ".", "..", "/", "//", "./a.txt", "sub/../a.txt", "sub//deep.txt", "sub/./deep.txt", "a.txt/", "a.txt/.", "a.txt/x", "a.txt/..", "sub/", "nope", "nope/x", "nope/../a.txt", "sub/nope/x",
	"$W", "$W/", "$W/R", "$W/R/", "$W/R/.", "$W/R/..", "$W/R/../S/b.txt", "$W/R/../canary", "$W/R/a.txt", "$W//R//a.txt", "$W/R-evil/x", "$W/R-evil", "$W/canary", "$W/nope", "$W/R/nope/x",
	"../canary", "../S/b.txt", "../../etc/passwd", "/etc/passwd", "/proc/self/environ", "/dev/null", "only/here", "S/b.txt", "R/a.txt",
	"~", "~/project/notes", "~/secret", "~/../canary", "~root", "~root/x", "a~", "~~", "~/",
	"C:\\x", "c:/x", "C:", "C:x", "1:/x", "\\\\host\\share", "sub\\deep.txt", "file:", "file:x", "'a.txt'", "\"a.txt\"", " a.txt", "a.txt ", "a.txt\n", "%61.txt", "a.txt?x", "a.txt#x", "$HOME", "*.txt",
	"a.txt\x00", "a.txt\x00.png", "\x00", "file:///etc/passwd", "file://$W/R/a.txt", "FILE://$W/R/a.txt", "file://localhost$W/R/a.txt", "file://host$W/R/a.txt", "file://$W/R/one%20line", "file://$W/R/bytes/bad%ffname",
	"http://example.com/a.txt", "in.txt", "chain", "across", "dir", "dir/", "dir/deep.txt", "dir/..", "dir/../a.txt", "out", "out/", "out/x", "outdir", "outdir/", "outdir/canary", "outdir/nope", "outdir/../canary", "outdir/../R/a.txt",
	"dangling", "dangling/", "dangling/x", "dangling far", "dangling out", "loop", "loop/x", "ring", "socket", "socket/x", ".env", ".env.example", "none",
	"unicode/caf\u00e9", "unicode/cafe\u0301", "unicode/r\u00e9sume", "unicode/re\u0301sume", "unicode/\u1ed9", "unicode/\u1ecd\u0302", "unicode/o\u0323\u0302", "unicode/\u00f4\u0323", "unicode/d\u00edr/x", "unicode/Caf\u00e9",
	"names/quo'te", "names/dou\"ble", "names/back\\slash", "names/new\nline", "names/tab\t", "names/ lead", "names/trail ", "names/-dash", "names/#hash", "names/[id]", "names/{a,b}", "names/!bang", "names/a*b", "names/100%", "names/%41",
	"names/😀", "names/... ", "names/..x", "names/" + strings.Repeat("n", 200), "A.TXT",
	strings.Repeat("n", 255), strings.Repeat("n", 256), strings.Repeat("n/", 2047), strings.Repeat("n/", 2200), strings.Repeat("../", 100) + "etc/passwd", strings.Repeat("./", 300) + "a.txt",
}

func readTrials() []trial {
	var list []trial
	for _, e := range dropInTree[:20] {
		for _, ht := range []string{
			``, `,"head":1`, `,"head":2`, `,"head":3`, `,"head":4`, `,"head":1000000`, `,"tail":1`, `,"tail":2`, `,"tail":3`, `,"tail":4`, `,"tail":1000000`,
		} {
			list = append(list, raw("read_text_file", fmt.Sprintf(`{"path":%q%s}`, e.path[len("R/"):], ht)))
		}
	}
	for _, path := range []string{"a.txt", "crlf.txt", "empty", "long.txt"} {
		for _, n := range []string{"0", "-0", "0.0", "-1", "-1.5", "0.5", "1.5", "2.999", "1e3", "1e308", "1e309", "-1e309", "1e-9", "11999", "12000", "12001", "4000"} {
			list = append(list, raw("read_file", fmt.Sprintf(`{"path":%q,"head":%s}`, path, n)), raw("read_text_file", fmt.Sprintf(`{"path":%q,"tail":%s}`, path, n)))
		}
		for _, both := range []string{`"head":1,"tail":1`, `"head":0,"tail":2`, `"head":2,"tail":0`, `"head":-1,"tail":1`} {
			list = append(list, raw("read_text_file", fmt.Sprintf(`{"path":%q,%s}`, path, both)))
		}
	}
	list = append(list, one("read_text_file", "path", "sub", "head", -1), one("read_text_file", "path", "sub", "tail", -1))
	for _, path := range []string{"nope", "sub", "out", "/etc/passwd", "loop", "dangling"} {
		list = append(list, one("read_text_file", "path", path, "head", 1), one("read_text_file", "path", path, "tail", 1), one("read_text_file", "path", path, "tail", 1, "head", 1))
	}
	for _, path := range oddPaths {
		list = append(list, one("read_text_file", "path", path))
	}
	for _, path := range []string{"read only", "program", "private", "setuid"} {
		list = append(list, one("read_file", "path", path))
	}
	for _, paths := range [][]string{
		{"a.txt"}, {"a.txt", "a.txt"}, {"a.txt", "nope", "crlf.txt"}, {"empty", "newlines"}, {"sub"}, {"/etc/passwd", "a.txt"}, {"out", "a.txt"}, {"dangling", "a.txt"}, {"loop"}, {"latin1", "utf16", "nul", "bom.txt"},
		{"", "."}, {"C:\\x"}, {"~/project/notes", "~/secret"}, {"across", "in.txt", "dir/deep.txt"}, {"a.txt\x00"}, {"socket"}, {"wide.txt", "long.txt"}, {"names/new\nline", "names/😀"}, {".env"}, {},
	} {
		list = append(list, one("read_multiple_files", "paths", paths))
	}
	return list
}

func listTrials() []trial {
	var list []trial
	for _, tool := range []string{"list_directory", "get_file_info"} {
		for _, path := range oddPaths {
			list = append(list, one(tool, "path", path))
		}
	}
	for _, path := range []string{"fifo", "socket", "read only", "program", "private", "setuid", "utf16", "bytes"} {
		list = append(list, one("get_file_info", "path", path))
	}
	for _, path := range []string{"names", "unicode", "bytes", "sub", "none", ".", "$W/S", "dir", "~/project", "nope", "a.txt", "out", "outdir", "dangling", "loop", "/etc", "socket", "sub/z", "$W"} {
		list = append(list, one("list_directory", "path", path), one("list_directory_with_sizes", "path", path), one("list_directory_with_sizes", "path", path, "sortBy", "size"),
			one("list_directory_with_sizes", "path", path, "sortBy", "name"), one("directory_tree", "path", path), one("search_files", "path", path, "pattern", "**"),
			one("search_files", "path", path, "pattern", "*"), one("directory_tree", "path", path, "excludePatterns", []string{"sub", "*.txt"}))
	}
	return append(list, raw("list_allowed_directories", ""))
}

func patternTrials() []trial {
	var list []trial
	for _, p := range []string{
		"", "*", "**", "*.js", "**/*.js", "**/*", "*/*.js", "*/*", "**/a.*", "src/*", "src/**", "src/**/*", "src/**/*.ts", "**/src/**", "**/deep/*", "/src/*", "src", "src/", "./src", "./*.js", "../*", "**/..", "src/../*.js",
		"?.js", "??.js", "*.?s", "*.j?x", "?", "??", "[ab].*", "[a-c].*", "[!a].js", "[^a].js", "[].js", "[a", "a]", "[[:alpha:]].js", "[[:digit:]]", "[1-9]", "[z-a].js", "[a-]*", "\\[id\\].js", "[[]id].js", "[id].js",
		"{a,b}.*", "*.{js,ts}", "*.{js,ts,jsx}", "{src,docs}/*", "{src,docs}/**/*.{md,ts}", "{a,{b,c}}.*", "{1..10}", "{1..10..3}", "{a..c}.*", "{a}.js", "{a,}.js", "{,a}.js", "a{.js", "a}.js", "{}", "{x}.js", "\\{x\\}.js", "${a,b}", "{01..02}",
		"!*.js", "!**/*.js", "!a.js", "!", "!!a.js", "!(*.js)", "!(a).js", "*!(b).js", "@(a|b).*", "+(a|b).*", "?(a).js", "*(a|b).js", "+(1|0)", "@(a.js|src/a.js)", "a.js|b.ts", "(a).js", "*@(.js|.ts)", "@(a",
		"#c", "#c/*", "#*", "\\#c", "\\!neg", "!neg", "\\\\b", "\\\\b/*", "\\b", "a\\.js", "*\\.js", "a\\", "*.JS", "*.Js", "upper.*", "U*", "Makefile", "M*e", ".*", ".*/**", "**/.*", ".git/**", "**/.git/**", "*.", "**.js", "a**", "**a.js", "***",
		"**/**/*.js", "src/**/**/a.*", "**/node_modules/**", "node_modules/**", "**/p/index.js", "*/p/*", "é.js", "e\u0301.js", "😀.js", "?.js", "a b.js", "a+b.js", "a.b.*", "*.*.*", "*.b.*", " a.js", "a.js ", "app/\\[id\\]/*", "app/[id]/*", "app/(group)/*",
		"app/@slot/*", "app/(*)/*", "app/*/page.tsx", "//a.js", "src//a.js", "src/./a.js", "src/a.js/", "src/*/", "*/", "**/", ".", "..", "./", "/", "$W/R/*.js", "link.js", "linked", "linked/*", "**/linked/**", "out.js", "dangling.js", "loop.js", "none/**", "none",
	} {
		list = append(list, one("search_files", "path", ".", "pattern", p))
	}
	for _, p := range [][]string{
		{}, {""}, {"*"}, {"**"}, {"**/*"}, {"node_modules"}, {"node_modules/"}, {"/node_modules"}, {"./node_modules"}, {"**/node_modules"}, {"**/node_modules/**"}, {"node_modules/**"}, {"node_modules/*"}, {"*.js"}, {"**/*.js"}, {"src"}, {"src/"},
		{"src/*"}, {"src/deep"}, {"src/deep/**"}, {"deep"}, {"deep/er"}, {"build", ".git"}, {".git"}, {".*"}, {"**/.*"}, {"a.js"}, {"?.js"}, {"[id]"}, {"{src,docs}"}, {"{src,docs}/*"}, {"*.{js,ts}"}, {"!src"}, {"!*.js"}, {"#c"}, {"(group)"}, {"@slot"},
		{"app/[id]"}, {"no such"}, {"A.JS"}, {"SRC"}, {"index.js"}, {"p"}, {"*/p"}, {"+(src|docs)"}, {"docs/x", "*.md"}, {"$W/R/src"}, {"link.js", "linked"}, {"none"}, {"é.js"}, {"\\b"}, {"."}, {".."}, {" "},
	} {
		list = append(list, one("directory_tree", "path", "$W/R", "excludePatterns", p), one("search_files", "path", "$W/R", "pattern", "**", "excludePatterns", p))
	}
	for _, path := range []string{"src", "$W/R/src/", "linked", "$W/R/linked", "$W/R/src/../src", "~/project", "none"} {
		list = append(list, one("directory_tree", "path", path, "excludePatterns", []string{"deep"}), one("directory_tree", "path", path, "excludePatterns", []string{"a.*"}), one("search_files", "path", path, "pattern", "**/*.js", "excludePatterns", []string{"deep/**"}),
			one("search_files", "path", path, "pattern", "a.*"), one("search_files", "path", path, "pattern", "*.rb"))
	}
	return list
}

func mediaTrials() []trial {
	var list []trial
	for _, e := range mediaTree {
		list = append(list, one("read_media_file", "path", strings.TrimPrefix(e.path, "R/")))
	}
	for _, path := range []string{"", "nope", "nope.png", ".", "/etc/passwd", "$W/R/m.png", "m.png\x00"} {
		list = append(list, one("read_media_file", "path", path))
	}
	return list
}

func lockedTrials() []trial {
	var list []trial
	for _, path := range []string{"shut", "shut/x", "shut/nope", "shut.txt", "open", "open/shut", "open/shut/x", "unlisted", "unlisted/x", "steady", "."} {
		for _, tool := range []string{"read_text_file", "list_directory", "list_directory_with_sizes", "directory_tree", "get_file_info", "read_media_file", "create_directory"} {
			list = append(list, one(tool, "path", path))
		}
		list = append(list, one("search_files", "path", path, "pattern", "**"), one("read_text_file", "path", path, "tail", 1), one("write_file", "path", path, "content", "new"),
			one("write_file", "path", path+"/new", "content", "new"), one("edit_file", "path", path, "edits", []args{{"oldText": "x", "newText": "y"}}), one("create_directory", "path", path+"/new"),
			one("move_file", "source", path, "destination", "moved"), one("move_file", "source", "a.txt", "destination", path+"/moved"))
	}
	return append(list, one("read_multiple_files", "paths", []string{"shut.txt", "shut/x", "a.txt"}))
}

func writeTrials() []trial {
	var list []trial
	for _, path := range append(oddPaths[:len(oddPaths):len(oddPaths)], "read only", "program", "private", "setuid", "fifo", "attributed", "new", "none/new", "sub/new", "only/new", "$W/S/new", "~/project/new", "~/new", "new/", "outdir/new", "dir/new", "dangling/new", "in.txt/new") {
		list = append(list, one("write_file", "path", path, "content", "new\n"), one("create_directory", "path", path))
	}
	for _, content := range []string{"", "\n", "a\r\nb", "\ufeffx", "é😀\u0000\u2028", "\ufffd", strings.Repeat("long ", 20000)} {
		list = append(list, one("write_file", "path", "a.txt", "content", content), one("write_file", "path", "new", "content", content))
	}
	for _, path := range []string{"x/y/z", "sub/x/y", "sub/../x", "x/../y", "a.txt/x/y", "dir/x/y", "outdir/x/y", "dangling/x/y", "loop/x/y", "$W/S/x", "$W/S/../x", "unicode/d\u00edr/y", "unicode/caf\u00e9/x", strings.Repeat("d/", 200), strings.Repeat("d/", 300)} {
		list = append(list, then(one("create_directory", "path", path), one("create_directory", "path", path)))
	}
	long := strings.Repeat("n", 255)
	return append(list, raw("write_file", `{"path":"new","content":"\ud800"}`),
		then(one("write_file", "path", long, "content", "1"), one("write_file", "path", long, "content", "2")),
		then(one("create_directory", "path", "x/y"), one("write_file", "path", "x/y/f", "content", "1"), one("write_file", "path", "x/y/f", "content", "2"), one("read_text_file", "path", "x/y/f"), one("list_directory", "path", "x")))
}

func editTrials() []trial {
	edit := func(path string, pairs ...string) trial {
		edits := []args{}
		for i := 0; i < len(pairs); i += 2 {
			edits = append(edits, args{"oldText": pairs[i], "newText": pairs[i+1]})
		}
		return one("edit_file", "path", path, "edits", edits)
	}
	dry := func(t trial) trial {
		return raw("edit_file", strings.TrimSuffix(t[0].args, "}")+`,"dryRun":true}`)
	}
	edits := []trial{
		edit("a.txt", "l2", "L2"), edit("a.txt", "l1\nl2\n", ""), edit("a.txt", "l3\n", "l3"), edit("a.txt", "l3", "l3\nl4"), edit("a.txt", "l1\n", "l0\nl1\n"), edit("a.txt", "l2", "l2"), edit("a.txt"), edit("a.txt", "", "x"), edit("a.txt", "nope", "x"),
		edit("a.txt", "L1", "x"), edit("a.txt", "l1", "x", "x", "y"), edit("a.txt", "l1", "x", "nope", "y"), edit("a.txt", "l1", "l2", "l3", "z"), edit("a.txt", "l1\nl2\nl3\n", "all\n"), edit("a.txt", "l1\r\nl2", "x\r\ny"), edit("a.txt", "l2\n", "a\r\nb\r\n"), edit("a.txt", " l2 ", "x"),
		edit("crlf.txt", "b", "B"), edit("crlf.txt", "a\nb", "x\ny"), edit("crlf.txt", "a\r\nb", "x\r\ny"), edit("crlf.txt", "c", "c\nd"), edit("mixed.txt", "a", "A"), edit("mixed.txt", "b\n", "B\n"), edit("cr.txt", "b", "B"),
		edit("empty", "x", "y"), edit("empty", "", "y"), edit("newlines", "\n", "x\n"), edit("newlines", "\n\n", "x\n"), edit("one line", "only", "one"), edit("one line", "only", "only\n"), edit("bom.txt", "x", "z"), edit("bom.txt", "\ufeffx", "z"), edit("bom.txt", "y\n", ""),
		edit("latin1", "end", "END"), edit("latin1", "caf\ufffd", "x"), edit("utf16", "a", "b"), edit("nul", "c", "d"), edit("wide.txt", "end", "END"), edit("long.txt", "0123456789abcdef\n0", "x"), edit("no end", "xx", "y"),
		edit("same.txt", "same", "SAME"), edit("same.txt", "same\nother", "SAME\nother"), edit("same.txt", "same\nlast", "x"), edit("same.txt", "other", "same"),
		edit("tabs.go", "\t\tone()", "\t\tthree()"), edit("tabs.go", "one()\ntwo()", "one()\nif y {\n\tthree()\n}\ntwo()"), edit("tabs.go", "    if x {\n        one()\n", "    if x {\n        three()\n"), edit("tabs.go", "if x {", "if y {"), edit("tabs.go", "}", "};"),
		edit("tabs.go", "  one()  ", "three()"), edit("blanks.py", "    one()\n    two()", "    one()\n    if y:\n        three()\n    two()"), edit("blanks.py", "if x:\n    one()", "if y:\n    one()"), edit("blanks.py", "  if x:", "  if y:"), edit("blanks.py", "if x:\n  one()\n  two()\n", "while x:\n  one()\n"),
		edit("fence.md", "code", "````` more"), edit("fence.md", "end", "````"), edit("money", "a", "$& $1 $$ $`"), edit("money", "$1 $&", "x"),
		edit("ten", "5\n", "five\n"), edit("ten", "2\n", "two\n", "28\n", "x\n"), edit("ten", "5\n6\n7\n", "", "12\n13", "12\nnew\n13"), edit("ten", "10\n11\n", "10\n"), edit("ten", "4\n5\n6", "6\n5\n4"), edit("ten", "1\n2\n3\n", "1\n2\n3\n1\n2\n3\n"), edit("ten", "29\n30\n", "29\n30"),
		edit("read only", "r", "x"), edit("program", "sh", "bash"), edit("setuid", "s", "t"), edit("attributed", "x", "y"), edit("in.txt", "deep", "DEEP"), edit("chain", "deep", "DEEP"), edit("across", "b", "B"), edit("unicode/cafe\u0301", "composed", "x"),
		edit("nope", "x", "y"), edit("sub", "x", "y"), edit("out", "canary", "x"), edit("outdir/canary", "canary", "x"), edit("dangling", "x", "y"), edit("loop", "x", "y"), edit("/etc/passwd", "root", "x"), edit("socket", "x", "y"), edit("~/project/notes", "notes", "x"), edit("only/here", "here", "there"), edit(".env", "KEY", "X"),
		edit("", "x", "y"), edit("C:\\x", "x", "y"), edit("a.txt\x00", "x", "y"), edit("nope/x", "x", "y"), edit("a.txt/x", "x", "y"),
	}
	var list []trial
	for _, e := range edits {
		list = append(list, e, dry(e))
	}
	return append(list, raw("edit_file", `{"path":"same.txt","edits":[{"oldText":"same","newText":"x","replaceAll":true}]}`), then(edit("a.txt", "l1", "x"), edit("a.txt", "x", "l1"), one("read_text_file", "path", "a.txt")))
}

func moveTrials() []trial {
	var list []trial
	move := func(from, to string) { list = append(list, one("move_file", "source", from, "destination", to)) }
	for _, to := range []string{
		"new", "sub/new", "sub", "sub/", "sub/z", "none", "a.txt", "crlf.txt", "nope/new", "a.txt/new", "in.txt", "dir", "dir/new", "out", "outdir", "outdir/new", "dangling", "dangling/new", "loop", "/etc/new", "$W/new", "$W/S/new", "$W/S/b.txt", "~/project/new", "~/new", "", ".", "$W/R", "../new",
		"C:\\new", "new\x00", "new/", "fifo", "socket", "A.txt", "unicode/cafe\u0301", "unicode/new", "./a.txt", ".env",
	} {
		move("a.txt", to)
		move("sub", to)
	}
	for _, from := range []string{
		"sub", "none", "in.txt", "chain", "across", "dir", "out", "outdir", "dangling", "loop", "fifo", "socket", "read only", "setuid", ".env", "nope", "nope/x", "a.txt/x", "outdir/canary", "dir/deep.txt", "", ".", "$W/R", "$W/S", "~", "~/project", "~/secret", "/etc/passwd", "../canary",
		"a.txt/", "sub/", "unicode/cafe\u0301", "names/new\nline", "C:\\x", "a.txt\x00", "only/here", "only",
	} {
		move(from, "$W/R/moved")
		move(from, "$W/S/moved")
	}
	for _, wrong := range [][2]string{{"nope", "a.txt"}, {"nope", "sub/"}, {"nope", "new\x00"}, {"loop", "$W/new"}, {strings.Repeat("n", 256), "$W/new"}, {"~", "C:/new"}} {
		move(wrong[0], wrong[1])
	}
	move("sub", "sub/z/sub")
	move("sub", "sub/sub")
	move("sub/z", "z")
	return append(list, then(one("move_file", "source", "ten", "destination", "eleven"), one("move_file", "source", "eleven", "destination", "ten"), one("read_text_file", "path", "ten")))
}

func largeTrials() []trial {
	list := []trial{
		one("read_text_file", "path", "3M"), one("read_text_file", "path", "5M"), one("read_text_file", "path", "5M", "head", 3), one("read_text_file", "path", "5M", "tail", 3), one("read_text_file", "path", "5M", "head", 400000),
		one("read_text_file", "path", "5M line", "tail", 1), one("read_multiple_files", "paths", []string{"3M", "3M", "600K"}), one("read_media_file", "path", "4M.png"), one("read_media_file", "path", "3M"),
		one("list_directory", "path", "wide/"+deep), one("list_directory_with_sizes", "path", "wide/"+deep), one("directory_tree", "path", "wide"), one("search_files", "path", "wide", "pattern", "**"), one("search_files", "path", "wide", "pattern", "*00-*"),
	}
	for _, path := range []string{"600K", "17M"} {
		list = append(list, raw("edit_file", `{"path":"`+path+`","edits":[{"oldText":"first","newText":"FIRST"}],"dryRun":true}`))
	}
	return list
}
