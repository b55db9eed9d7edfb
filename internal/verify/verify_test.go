package verify_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/verify"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// TestMain puts the workspaces where nothing waits for a disk: there are thousands of cases.
func TestMain(m *testing.M) {
	if dir, err := os.MkdirTemp("/dev/shm", "verify-test-"); err == nil {
		os.Setenv("TMPDIR", dir)
		defer os.RemoveAll(dir)
	}
	m.Run()
}

// run tries a server with a fault, as a client of one era.
func run(t *testing.T, f fault, era exchange.Era, race time.Duration, only ...string) *verify.Report {
	t.Helper()
	dir := t.TempDir()
	limit := time.Minute // so that a machine with much to do finds nothing
	if f.hangs {
		limit = 0
	}
	report, err := verify.Run(t.Context(), verify.Options{
		Dir: dir, Start: start(f), Command: []string{"files", "{roots}"}, Filled: true, Eras: []exchange.Era{era}, Race: race, Only: only, Limit: limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	return report
}

// broken are the cases and questions that did not hold.
func broken(r *verify.Report) []string { return ids(r, verify.Leaked, verify.Failed) }

// ids are the cases and questions that came to one of the verdicts.
func ids(r *verify.Report, verdicts ...verify.Verdict) []string {
	var list []string
	for _, q := range r.Questions {
		if slices.Contains(verdicts, q.Verdict) {
			list = append(list, q.ID)
		}
	}
	for _, c := range r.Cases {
		if slices.Contains(verdicts, c.Verdict) {
			list = append(list, c.ID)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Nothing is found in a server that is sound, in either era.
func TestSound(t *testing.T) {
	for _, era := range []exchange.Era{exchange.Legacy, exchange.Modern} {
		t.Run(era.String(), func(t *testing.T) {
			t.Parallel()
			r := run(t, fault{}, era, 50*time.Millisecond)
			if list := broken(r); len(list) > 0 {
				t.Errorf("found %v in a sound server", list)
			}
			for _, c := range r.Cases {
				if c.Verdict == verify.Inconclusive || c.Verdict == verify.ByDesign && c.ID != "E86" {
					t.Errorf("%s: %s: %s", c.ID, c.Verdict, c.Seen)
				}
			}
			if len(r.Tools) < 14 || len(r.Cases) < 400 || len(r.Questions) != 5 {
				t.Errorf("%d tools, %d cases, %d questions", len(r.Tools), len(r.Cases), len(r.Questions))
			}
		})
	}
}

var everyTool = []string{
	"read_text_file", "read_media_file", "read_multiple_files", "list_directory", "list_directory_with_sizes", "directory_tree", "search_files",
	"search_content", "get_file_info", "write_file", "append_file", "edit_file", "create_directory", "delete_path", "move_file", "copy_file",
}

func naively(find string, does ...string) fault {
	if len(does) == 0 {
		does = everyTool
	}
	return fault{does: does, find: finds[find], follows: find == "lexical" || find == "nothing" || find == "resolved", inPlace: find == "sound", slow: find == "race"}
}

// hang does not answer a call of a tool with such an argument.
func hang(tool, arg string, when func(string) bool) fault {
	return fault{hangs: true, request: func(_ *faulty, r *exchange.Request, _ func(exchange.Outcome)) bool {
		params := r.Msg.Params()
		return r.Msg.Method() == "tools/call" && wire.GetString(params, "name") == tool && when(wire.GetString(params, "arguments", arg))
	}}
}

func setMember(method string, value string, path ...string) fault {
	return fault{answer: func(m string, result []byte) []byte {
		if m != method {
			return result
		}
		return wire.SetMember(result, []byte(value), path...)
	}}
}

var calls atomic.Int32

// planted are servers with one fault each. Finds are cases that must find it; only is what may be found at all.
var planted = []struct {
	name  string
	fault fault
	era   exchange.Era
	race  time.Duration
	just  []string // these cases only
	finds []string
	lets  []string // allowed by design, and shown
	only  string
}{
	{name: "compares the beginning of a name", fault: naively("prefix"), finds: []string{"E12/read", "E12/write", "E13/list", "E15/make-a-directory"}, only: `E1[2358]/`},
	{name: "compares before dots are taken out", fault: naively("dots"), finds: []string{"E01/read", "E01/write", "E01/stat", "E06/list"}, only: `E0[1-6]/|E39/`},
	{name: "does not look at links", fault: naively("lexical"), finds: []string{"E53/read", "E54/write", "E55/tree", "E56/edit", "E58/list", "E63", "E72", "E82"}, only: `E82|E5[3-9]/|E63|E64|E65|E67|E7[1-5]|E80|E85s?|E9[56]|E35/`},
	{name: "takes spaces off what it checks", fault: naively("trims"), finds: []string{"E13/read", "E13/list", "E18/write"}, only: `E1[38]/`},
	{name: "takes quotes off what it checks", fault: naively("quotes"), finds: []string{"E15/read", "E15/write"}, only: `E15/`},
	{name: "decodes after it checked", fault: naively("decoded"), finds: []string{"E28/read", "E28/write"}, only: `E28/|E30b/`},
	{name: "decodes twice after it checked", fault: naively("decoded twice"), finds: []string{"E29/read"}, only: `E2[89]/`},
	{name: "makes full-width dots dots after it checked", fault: naively("compatible"), finds: []string{"E34/read", "E34/list"}, only: `E34/`},
	{name: "makes backslashes slashes after it checked", fault: naively("backslash"), finds: []string{"E07/read", "E07/write"}, only: `E07/`},
	{name: "takes spaces off elements after it checked", fault: naively("spaces"), finds: []string{"E39/read"}, only: `E39/`},
	{name: "finds another form of a name that it did not check", fault: naively("composed"), finds: []string{"E35/read"}, only: `E35/`},
	{name: "does not tell capital letters", fault: naively("case"), finds: []string{"E20/read", "E20/write"}, only: `E20/`},
	{name: "opens what a URI says", fault: naively("uri"), finds: []string{"E30/read", "E31/list"}, only: `E3[01]b?/`},
	{name: "ends a path at a NUL", fault: naively("nul"), finds: []string{"E27/read", "E27/write"}, only: `E27/`},
	{name: "takes a relative path from its working directory", fault: naively("cwd"), finds: []string{"E23/read", "E22"}, only: `E03/|E2[34]/|E2[12]|E3[01]b?/`},
	{name: "looks at the part that is there", fault: naively("part"), finds: []string{"E02/read", "E02/write"}, only: `E02/`},
	{name: "takes what a link leads to, unchecked", fault: naively("resolved"), finds: []string{"E53/move-in", "E53/delete", "E64", "E65"}, only: `E82|E5[3-9]/|E6[3-7]|E7[1-5]|E80|E85s?|E9[56]|E35/`},
	{name: "knows a home directory", fault: naively("tilde"), finds: []string{"E24/read", "E24/write"}, only: `E24/`},
	{name: "does not look at a link with a slash behind", fault: naively("slash", "list_directory", "create_directory"), finds: []string{"E59/list", "E59/make-a-directory"}, only: `E59/|E67`},
	{name: "writes into a file that is there", fault: naively("sound", "write_file"), finds: []string{"E87"}, only: `E87|E134`},
	{name: "edits a file in its place", fault: naively("sound", "edit_file"), finds: []string{"E88"}, only: `E88`},
	{name: "lets one into /proc", fault: naively("proc"), finds: []string{"E93/read", "E99"}, only: `E93/|E9[59]`},

	{name: "read is not checked", fault: naively("nothing", "read_text_file"), finds: []string{"E09/read", "E10", "E12/read", "E55/read", "Q3", "E126"}, only: `/read$|E10|E82|E99|E96|E85|Q[34]|E12[0-9]|E13[03]`},
	{name: "read media is not checked", fault: naively("nothing", "read_media_file"), finds: []string{"E09/read-media"}, only: `/read-media`},
	{name: "read several is not checked", fault: naively("nothing", "read_multiple_files"), finds: []string{"E09/read-several", "E80"}, only: `/read-several|E80|E85s`},
	{name: "list is not checked", fault: naively("nothing", "list_directory"), finds: []string{"E09/list", "E11"}, only: `/list$|E11`},
	{name: "list with sizes is not checked", fault: naively("nothing", "list_directory_with_sizes"), finds: []string{"E09/list-with-sizes", "E71"}, only: `/list-with-sizes|E71`},
	{name: "tree is not checked", fault: naively("nothing", "directory_tree"), finds: []string{"E09/tree", "E72"}, only: `/tree|E72`},
	{name: "search of names is not checked", fault: naively("nothing", "search_files"), finds: []string{"E09/search-names", "E74"}, only: `/search-names|E7[45]$|E58`},
	{name: "search of content is not checked", fault: naively("nothing", "search_content"), finds: []string{"E09/search-content", "E74c"}, only: `/search-content|E74c`},
	{name: "stat is not checked", fault: naively("nothing", "get_file_info"), finds: []string{"E09/stat", "E55/stat"}, only: `/stat`},
	{name: "write is not checked", fault: naively("nothing", "write_file"), finds: []string{"E09/write", "E09/overwrite", "E63", "E67"}, only: `/(over)?write|E63$|E67`},
	{name: "append is not checked", fault: naively("nothing", "append_file"), finds: []string{"E09/append", "E63a"}, only: `/append|E63a`},
	{name: "edit is not checked", fault: naively("nothing", "edit_file"), finds: []string{"E09/edit", "E53/edit"}, only: `/edit`},
	{name: "make a directory is not checked", fault: naively("nothing", "create_directory"), finds: []string{"E09/make-a-directory"}, only: `/make-a-directory|E6[45]`},
	{name: "delete is not checked", fault: naively("nothing", "delete_path"), finds: []string{"E09/delete", "E55/delete"}, only: `/delete`},
	{name: "move is not checked", fault: naively("nothing", "move_file"), finds: []string{"E09/move-in", "E09/move-out"}, only: `/move-`},
	{name: "copy is not checked", fault: naively("nothing", "copy_file"), finds: []string{"E09/copy-in", "E09/copy-out", "E63c"}, only: `/copy-|E63c`},
	{name: "creates through a link that leads to nothing", fault: naively("dangling", "write_file", "append_file", "copy_file"), finds: []string{"E63", "E63a", "E63c"}, only: `E63`},

	{name: "reads what it checked before", fault: naively("race", "read_text_file"), race: 10 * time.Second, just: []string{"E136"}, finds: []string{"E136"}, only: `E136`},
	{name: "lists what it checked before", fault: naively("race", "list_directory"), race: 10 * time.Second, just: []string{"E137"}, finds: []string{"E137"}, only: `E137`},
	{name: "writes what it checked before", fault: naively("race", "write_file"), race: 10 * time.Second, just: []string{"E140"}, finds: []string{"E140"}, only: `E140`},
	{name: "searches names in what it checked before", fault: naively("race", "search_files"), race: 10 * time.Second, just: []string{"E138"}, finds: []string{"E138"}, only: `E138$`},
	{name: "walks what it checked before", fault: naively("race", "directory_tree"), race: 10 * time.Second, just: []string{"E139"}, finds: []string{"E139"}, only: `E139$`},
	{name: "searches content in what it checked before", fault: naively("race", "search_content"), race: 10 * time.Second, just: []string{"E138c"}, finds: []string{"E138c"}, only: `E138c$`},
	{name: "edits what it checked before", fault: naively("race", "edit_file"), race: 10 * time.Second, just: []string{"E141"}, finds: []string{"E141"}, only: `E141$`},
	{name: "makes directories in what it checked before", fault: naively("race", "create_directory"), race: 10 * time.Second, just: []string{"E142"}, finds: []string{"E142"}, only: `E142$`},
	{name: "moves into what it checked before", fault: naively("race", "move_file"), race: 10 * time.Second, just: []string{"E143"}, finds: []string{"E143"}, only: `E143$`},

	{name: "waits for a FIFO", fault: hang("read_text_file", "path", func(p string) bool { return strings.HasSuffix(p, "fifo") }), finds: []string{"E100"}, only: `E100`},
	{name: "waits for the reader of a FIFO", fault: hang("write_file", "path", func(p string) bool { return strings.HasSuffix(p, "fifo") }), finds: []string{"E102"}, only: `E102`},
	{name: "does not end on a pattern", fault: hang("search_files", "pattern", func(p string) bool { return strings.Contains(p, "*a*a") }), finds: []string{"E117"}, only: `E117`},
	{name: "does not end on braces", fault: hang("search_files", "pattern", func(p string) bool { return strings.Contains(p, "{a,b}") }), finds: []string{"E118"}, only: `E118`},
	{name: "does not end on a long path", fault: hang("read_text_file", "path", func(p string) bool { return len(p) > 100_000 }), finds: []string{"E50"}, only: `E50`},
	{name: "does not answer a path that is no string", fault: hang("read_text_file", "path", func(p string) bool { return p == "" }), finds: []string{"E131"}, only: `E131|TC-22`},
	{name: "reads a file of any size", fault: hang("read_text_file", "path", func(p string) bool { return strings.HasSuffix(p, "huge") }), finds: []string{"E109", "E112"}, only: `E109|E112`},
	{name: "reads a device to its end", fault: hang("read_text_file", "path", func(p string) bool { return strings.HasSuffix(p, "zero") || strings.HasSuffix(p, "sock") }), finds: []string{"E104"}, only: `E10[45]`},
	{name: "does not end on a deep tree", fault: hang("directory_tree", "path", func(p string) bool { return present(p, "d", "d", "d", "d") }), finds: []string{"E116"}, only: `E116`},
	{name: "reads less than nothing", fault: fault{hangs: true, request: func(_ *faulty, r *exchange.Request, _ func(exchange.Outcome)) bool {
		head, _ := wire.Get(r.Msg.Params(), "arguments", "head")
		return string(head) == "-1"
	}}, finds: []string{"E133"}, only: `E133`},
	{name: "loses what it moves to another root", fault: fault{call: func(f *faulty, tool string, args map[string]any) (string, bool, error) {
		from, to := str(args, "source"), str(args, "destination")
		if tool != "move_file" || !f.inside(to) || strings.HasPrefix(to, f.roots[0]+"/") || filepath.Base(from) != "ok.txt" {
			return "", false, nil
		}
		return "done", true, os.Remove(from)
	}}, finds: []string{"E121"}, only: `E121`},
	{name: "keeps what lets a file run as its owner", fault: fault{call: func(_ *faulty, tool string, args map[string]any) (string, bool, error) {
		path := str(args, "path")
		if tool != "write_file" || filepath.Base(path) != "suid" {
			return "", false, nil
		}
		err := errors.Join(os.WriteFile(path, []byte(str(args, "content")), 0o755), os.Chmod(path, 0o755|os.ModeSetuid))
		return "done", true, err
	}}, finds: []string{"E134"}, only: `E134`},
	{name: "does not end on a path of 5,000 bytes", fault: hang("read_text_file", "path", func(p string) bool { return len(p) > 5000 && len(p) < 100_000 }), finds: []string{"E49"}, only: `E49`},
	{name: "does not end on a long name", fault: hang("write_file", "path", func(p string) bool { return len(filepath.Base(p)) >= 300 }), finds: []string{"E51"}, only: `E51`},
	{name: "does not end on a deep path", fault: hang("create_directory", "path", func(p string) bool { return strings.Count(p, "/") > 1000 }), finds: []string{"E52"}, only: `E52`},
	{name: "does not end on links in a circle", fault: hang("read_text_file", "path", func(p string) bool { return len(p) < 4096 && real(p) == "" }), finds: []string{"E57"}, only: `E57`},
	{name: "does not end on an absolute link", fault: hang("read_text_file", "path", func(p string) bool {
		to, _ := os.Readlink(p)
		return filepath.Dir(to) == filepath.Dir(p) && filepath.Base(to) == "ok.txt"
	}), finds: []string{"E61"}, only: `E61`},
	{name: "does not end where links lead to each other", fault: hang("search_files", "path", func(p string) bool { return present(p, "d0", "l0") }), finds: []string{"E75"}, only: `E75`},
	{name: "waits for a FIFO that it edits", fault: hang("edit_file", "path", func(p string) bool { return strings.HasSuffix(p, "fifo") }), finds: []string{"E103"}, only: `E103$`},
	{name: "waits for a FIFO that it searches", fault: hang("search_content", "path", func(p string) bool { return present(p, "fifo") }), finds: []string{"E103g"}, only: `E103g`},
	{name: "waits for a socket", fault: hang("read_text_file", "path", func(p string) bool { return strings.HasSuffix(p, "sock") }), finds: []string{"E104"}, only: `E104`},
	{name: "does not end on an expression", fault: hang("search_content", "pattern", func(p string) bool { return strings.Contains(p, "(a|a)*") }), finds: []string{"E117c"}, only: `E117c`},
	{name: "puts a file in the place of a root", fault: fault{call: func(f *faulty, tool string, args map[string]any) (string, bool, error) {
		path := str(args, "path")
		if tool != "write_file" || !slices.Contains(f.roots, path) {
			return "", false, nil
		}
		os.RemoveAll(path)
		return "done", true, os.WriteFile(path, nil, 0o644)
	}}, finds: []string{"E124"}, only: `E124`},
	{name: "says where a link leads", fault: fault{call: func(f *faulty, tool string, args map[string]any) (string, bool, error) {
		path := str(args, "path")
		if to, err := os.Readlink(path); err == nil && tool == "read_text_file" && !f.inside(real(path)) {
			return "", true, fmt.Errorf("%s leads to %s", path, to)
		}
		return "", false, nil
	}}, finds: []string{"E85"}, only: `E85`},

	{name: "says of several where a link leads", fault: fault{call: func(f *faulty, tool string, args map[string]any) (string, bool, error) {
		list, _ := args["paths"].([]any)
		for _, p := range list {
			path, _ := p.(string)
			if to, err := os.Readlink(path); err == nil && tool == "read_multiple_files" && !f.inside(real(path)) {
				return path + " leads to " + to + ", which is refused", true, nil
			}
		}
		return "", false, nil
	}}, finds: []string{"E85s"}, only: `E85s`},
	{name: "does not ask for roots", fault: fault{deaf: true}, finds: []string{"Q2", "Q4"}, only: `Q[24]`},
	{name: "serves the first root only", fault: fault{set: func(d []roots.Dir) []roots.Dir { return d[:1] }}, finds: []string{"Q5"}, only: `Q[45]`},
	{name: "ignores a change of the roots", fault: fault{request: func(_ *faulty, r *exchange.Request, _ func(exchange.Outcome)) bool {
		return r.Msg.Method() == "notifications/roots/list_changed"
	}, list: keepFirst()}, finds: []string{"Q4"}, only: `Q4`},
	{name: "waits for a word of change that there is not", era: exchange.Modern, fault: fault{list: keepFirst()}, finds: []string{"Q4"}, only: `Q4`},
	{name: "asks a client that has no roots", fault: fault{request: asksAnyway}, finds: []string{"E128"}, only: `E128`},

	{name: "gives its tools in another order", fault: fault{answer: func(m string, result []byte) []byte {
		if m != "tools/list" {
			return result
		}
		var list []json.RawMessage
		tools, _ := wire.Get(result, "tools")
		json.Unmarshal(tools, &list)
		if calls.Add(1)%2 == 0 {
			slices.Reverse(list)
		}
		b, _ := json.Marshal(list)
		return wire.SetMember(result, b, "tools")
	}}, finds: []string{"TC-25"}, only: `TC-25`},
	{name: "has tools without parameters", fault: setMember("tools/list", `[{"name":"a"},{"name":"read_file","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}]`, "tools"), finds: []string{"TC-26"}, only: `TC-26|E|Q`},
	{name: "has two tools of one name", fault: setMember("tools/list", `[{"name":"a","inputSchema":{"type":"object"}},{"name":"a","inputSchema":{"type":"object"}}]`, "tools"), finds: []string{"TC-27"}, only: `TC-27`},
	{name: "answers a call of no tool", fault: fault{call: func(_ *faulty, tool string, _ map[string]any) (string, bool, error) {
		return "fine", strings.HasPrefix(tool, "rootbound_"), nil
	}}, finds: []string{"TC-21"}, only: `TC-21`},
	{name: "answers a call without a path", fault: fault{call: func(_ *faulty, tool string, args map[string]any) (string, bool, error) {
		return "fine", tool == "read_text_file" && len(args) == 0, nil
	}}, finds: []string{"TC-22"}, only: `TC-22`},
	{name: "writes with a tool that says that it only reads", fault: fault{call: func(_ *faulty, tool string, args map[string]any) (string, bool, error) {
		path := str(args, "path")
		if tool == "get_file_info" && strings.HasSuffix(path, "ok.txt") {
			os.WriteFile(path+".seen", nil, 0o644)
		}
		return "", false, nil
	}}, finds: []string{"TC-15"}, only: `TC-15|/stat`},
	{name: "has a method for everything", fault: fault{request: func(_ *faulty, r *exchange.Request, reply func(exchange.Outcome)) bool {
		if !strings.HasPrefix(r.Msg.Method(), "rootbound/") {
			return false
		}
		reply(exchange.Outcome{Msg: wire.NewResult(r.Msg.ID(), []byte("{}"))})
		return true
	}}, finds: []string{"EC-04"}, only: `EC-04`},
	{name: "echoes any revision", fault: fault{answer: func(m string, result []byte) []byte {
		if m != "initialize" {
			return result
		}
		return wire.SetMember(result, []byte(`"1999-01-01"`), "protocolVersion")
	}}, finds: []string{"VD-02"}, only: `VD-02$`},
	{name: "speaks any revision, stateless", era: exchange.Modern, fault: fault{request: func(f *faulty, r *exchange.Request, reply func(exchange.Outcome)) bool {
		meta := r.Msg.Meta()
		if wire.GetString(meta, exchange.MetaVersion) != "1999-01-01" {
			return false
		}
		reply(exchange.Outcome{Msg: wire.NewResult(r.Msg.ID(), []byte(`{"resultType":"complete","tools":[]}`))})
		return true
	}}, finds: []string{"VD-10"}, only: `VD-10`},
	{name: "does not say what kind a result is", era: exchange.Modern, fault: fault{answer: func(m string, result []byte) []byte {
		if m != "tools/list" {
			return result
		}
		return wire.SetMember(result, []byte(`"whatever"`), "resultType")
	}}, finds: []string{"MR-18"}, only: `MR-18`},
	{name: "never ends its list of tools", fault: setMember("tools/list", `"again"`, "nextCursor"), finds: []string{"PG-01"}, only: `PG-01|TC-27`},
	{name: "does not say which revision it speaks", fault: setMember("initialize", `""`, "protocolVersion"), finds: []string{"VD-02", "VD-02o"}, only: `VD-02`},
	{name: "asks for roots when nobody asked it anything", fault: fault{request: asksAlone()}, lets: []string{"SQ-03"}, only: `^$`},
	{name: "does not say which revisions it speaks", era: exchange.Modern, fault: setMember("server/discover", `[]`, "supportedVersions"), finds: []string{"VD-12"}, only: `VD-12`},
	{name: "answers without a revision", era: exchange.Modern, fault: answers("tools/list", `{"resultType":"complete","tools":[]}`, func(r *exchange.Request) bool {
		return wire.GetString(r.Msg.Meta(), exchange.MetaVersion) == ""
	}), finds: []string{"VD-07"}, only: `VD-07`},
	{name: "has a method of before", era: exchange.Modern, fault: answers("logging/setLevel", `{"resultType":"complete"}`, nil), finds: []string{"VD-24"}, only: `VD-24`},

	{name: "gives requests back as it should", era: exchange.Modern, fault: givesBack(given{}), only: `^$`},
	{name: "gives a request back for nothing", era: exchange.Modern, fault: givesBack(given{first: `{"resultType":"input_required"}`}), finds: []string{"MR-03"}, only: `MR-03|MR-16`},
	{name: "wants what was not declared", era: exchange.Modern, fault: givesBack(given{
		first: `{"resultType":"input_required","inputRequests":{"s":{"method":"sampling/createMessage","params":{}}}}`}), finds: []string{"MR-05"}, only: `MR-05|MR-16`},
	{name: "goes on without an answer", era: exchange.Modern, fault: givesBack(given{unanswered: true}), finds: []string{"MR-17"}, only: `MR-17`},
	{name: "does not stand an answer too many", era: exchange.Modern, fault: givesBack(given{strict: true}), finds: []string{"MR-16"}, only: `MR-16`},
	{name: "waits for a better answer", era: exchange.Modern, fault: givesBack(given{waits: true}), finds: []string{"MR-15"}, only: `MR-15|E12[0-9]`},
	{name: "does not look at its state", era: exchange.Modern, fault: givesBack(given{stateless: true}), lets: []string{"MR-06"}, only: `^$`},
	{name: "gives a list back", era: exchange.Modern, fault: givesBack(given{lists: true}), finds: []string{"MR-02"}, only: `MR-02|VD-10|MR-18|VD-07`},
	{name: "wants roots of everybody", era: exchange.Modern, fault: givesBack(given{everybody: true}), finds: []string{"VD-20"}, only: `VD-20|E128`},
}

// keepFirst answers every question with the first list that there was.
func keepFirst() func(f *faulty, list []byte) []byte {
	var kept sync.Map
	return func(f *faulty, list []byte) []byte {
		first, _ := kept.LoadOrStore(f, bytes.Clone(list))
		return first.([]byte)
	}
}

// asksAnyway asks for roots with each call.
func asksAnyway(f *faulty, r *exchange.Request, reply func(exchange.Outcome)) bool {
	if r.Msg.Method() != "tools/call" || exchange.Capability(r, "roots") != nil || r.Caller == nil {
		return false
	}
	r.Caller.Ask(r.Session.Context(), []exchange.Question{{Method: "roots/list"}}, func([]exchange.Answer) {})
	return false
}

// What is planted is found, and nothing else, which only shows without the race detector: with it, nothing else is looked for. A new case comes
// with a server that it finds something in.
func TestPlanted(t *testing.T) {
	var mu sync.Mutex
	found, ran := map[string]bool{}, 0
	t.Run("servers", func(t *testing.T) {
		for _, p := range planted {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				race := p.race
				if race == 0 {
					race = -1
				}
				just := p.just
				if just == nil && mcptest.Race {
					just = slices.Concat(p.finds, p.lets)
				}
				report := run(t, p.fault, p.era, race, just...)
				list, lets := broken(report), ids(report, verify.ByDesign)
				for _, id := range p.finds {
					if !slices.Contains(list, id) {
						t.Errorf("%s did not find it; found: %v", id, list)
					}
				}
				for _, id := range p.lets {
					if !slices.Contains(lets, id) {
						t.Errorf("%s was not shown as allowed by design; shown: %v", id, lets)
					}
				}
				only := regexp.MustCompile(p.only)
				if too := slices.DeleteFunc(slices.Clone(list), only.MatchString); len(too) > 0 {
					t.Errorf("was found, too: %v", too)
					for _, c := range report.Cases {
						if slices.Contains(too, c.ID) {
							t.Logf("%s: %s", c.ID, c.Seen)
						}
					}
				}
				mu.Lock()
				defer mu.Unlock()
				ran++
				for _, id := range slices.Concat(list, lets) {
					found[id] = true
				}
			})
		}
	})
	var missed []string
	for _, c := range verify.Cases() {
		if !found[c.ID] {
			missed = append(missed, c.ID)
		}
	}
	if len(missed) > 0 && ran == len(planted) && !mcptest.Race {
		t.Errorf("found in none of the servers, so plant one: %v", missed)
	}
}

// present reports whether something is at a path.
func present(elements ...string) bool {
	_, err := os.Lstat(filepath.Join(elements...))
	return err == nil
}

// answers answers a method with a result, where when says so.
func answers(method, result string, when func(r *exchange.Request) bool) fault {
	return fault{request: func(_ *faulty, r *exchange.Request, reply func(exchange.Outcome)) bool {
		if r.Msg.Method() != method || when != nil && !when(r) {
			return false
		}
		reply(exchange.Outcome{Msg: wire.NewResult(r.Msg.ID(), []byte(result))})
		return true
	}}
}

// asksAlone asks for roots as soon as the session has begun.
func asksAlone() func(f *faulty, r *exchange.Request, reply func(exchange.Outcome)) bool {
	var callers sync.Map
	return func(f *faulty, r *exchange.Request, reply func(exchange.Outcome)) bool {
		switch r.Msg.Method() {
		case exchange.Listen:
			callers.Store(f, r.Caller)
		case "notifications/initialized":
			if c, ok := callers.Load(f); ok && exchange.Capability(r, "roots") != nil {
				c.(exchange.Caller).Ask(r.Session.Context(), []exchange.Question{{Method: "roots/list"}}, func([]exchange.Answer) {})
			}
		}
		return false
	}
}

// given is how a stateless server gives a read back to learn of roots.
type given struct {
	first      string // the first time in a process, this
	unanswered bool   // a state alone is enough
	strict     bool   // an answer too many is an error
	waits      bool   // what is no list is not answered
	stateless  bool   // the state may be anything
	lists      bool   // also the list of tools
	everybody  bool   // whether roots were declared or not
}

func givesBack(g given) fault {
	var begun sync.Map
	return fault{hangs: g.waits, request: func(f *faulty, r *exchange.Request, reply func(exchange.Outcome)) bool {
		params := r.Msg.Params()
		list := g.lists && r.Msg.Method() == "tools/list"
		read := r.Msg.Method() == "tools/call" && wire.GetString(params, "name") == "read_text_file"
		if !list && !read || exchange.Capability(r, "roots") == nil && !g.everybody {
			return false
		}
		say := func(result string) bool {
			reply(exchange.Outcome{Msg: wire.NewResult(r.Msg.ID(), []byte(result))})
			return true
		}
		if _, had := begun.LoadOrStore(f, true); !had && g.first != "" {
			return say(g.first)
		}
		responses, answered := wire.Get(params, "inputResponses")
		state := wire.GetString(params, "requestState")
		n := 0
		for range wire.Members(responses) {
			n++
		}
		roots, hasRoots := wire.Get(responses, "roots", "roots")
		switch {
		case g.waits && answered && (!hasRoots || roots[0] != '['):
			return true
		case g.strict && n > 1:
			answer(r, "", errors.New("too many answers"), reply)
			return true
		case g.unanswered && state != "", answered && hasRoots && (state == "kept" || g.stateless):
			return false
		case answered && !hasRoots, answered && state != "kept":
			answer(r, "", errors.New("that is no answer"), reply)
			return true
		}
		return say(`{"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list","params":{}}},"requestState":"kept"}`)
	}}
}
