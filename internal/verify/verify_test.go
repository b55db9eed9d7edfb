package verify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
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
	report, err := verify.Run(t.Context(), verify.Options{
		Dir: dir, Start: start(f), Command: []string{"files", "{roots}"}, Filled: true, Eras: []exchange.Era{era}, Race: race, Only: only,
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
func broken(r *verify.Report) []string {
	var list []string
	for _, q := range r.Questions {
		if q.Verdict == verify.Leaked || q.Verdict == verify.Failed {
			list = append(list, q.ID)
		}
	}
	for _, c := range r.Cases {
		if c.Verdict == verify.Leaked || c.Verdict == verify.Failed {
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
	return fault{does: does, find: finds[find], follows: find == "lexical" || find == "nothing"}
}

// hang does not answer a call of a tool with such an argument.
func hang(tool, arg string, when func(string) bool) fault {
	return fault{request: func(_ *faulty, r *exchange.Request, _ func(exchange.Outcome)) bool {
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

var calls int

// planted are servers with one fault each. Finds are cases that must find it; only is what may be found at all.
var planted = []struct {
	name  string
	fault fault
	era   exchange.Era
	race  time.Duration
	just  string // this class only
	finds []string
	only  string
}{
	{name: "compares the beginning of a name", fault: naively("prefix"), finds: []string{"E12/read", "E12/write", "E13/list", "E15/make-a-directory"}, only: `E1[2358]/`},
	{name: "compares before dots are taken out", fault: naively("dots"), finds: []string{"E01/read", "E01/write", "E01/stat", "E06/list"}, only: `E0[1-6]/|E39/`},
	{name: "does not look at links", fault: naively("lexical"), finds: []string{"E53/read", "E54/write", "E55/tree", "E56/edit", "E58/list", "E63", "E72"}, only: `E5[3-8]/|E63|E64|E65|E67|E7[1-5]|E80|E85|E9[56]|E35/`},
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
	{name: "takes a relative path from its working directory", fault: naively("cwd"), finds: []string{"E23/read", "E22"}, only: `E03/|E23/|E2[12]|E3[01]b?/`},
	{name: "lets one into /proc", fault: naively("proc"), finds: []string{"E93/read", "E99"}, only: `E93/|E9[59]`},

	{name: "read is not checked", fault: naively("nothing", "read_text_file"), finds: []string{"E09/read", "E10", "E12/read", "E55/read", "Q3", "E126"}, only: `/read$|E10|E99|E96|E85|Q[34]|E12[0-9]|E130`},
	{name: "read media is not checked", fault: naively("nothing", "read_media_file"), finds: []string{"E09/read-media"}, only: `/read-media`},
	{name: "read several is not checked", fault: naively("nothing", "read_multiple_files"), finds: []string{"E09/read-several", "E80"}, only: `/read-several|E80`},
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

	{name: "reads what it checked before", fault: naively("race", "read_text_file"), race: 3 * time.Second, just: "races", finds: []string{"E136"}, only: `E136`},
	{name: "lists what it checked before", fault: naively("race", "list_directory"), race: 3 * time.Second, just: "races", finds: []string{"E137"}, only: `E137`},
	{name: "writes what it checked before", fault: naively("race", "write_file"), race: 3 * time.Second, just: "races", finds: []string{"E140"}, only: `E140`},

	{name: "waits for a FIFO", fault: hang("read_text_file", "path", func(p string) bool { return strings.HasSuffix(p, "fifo") }), finds: []string{"E100"}, only: `E100`},
	{name: "waits for the reader of a FIFO", fault: hang("write_file", "path", func(p string) bool { return strings.HasSuffix(p, "fifo") }), finds: []string{"E102"}, only: `E102`},
	{name: "does not end on a pattern", fault: hang("search_files", "pattern", func(p string) bool { return strings.Contains(p, "*a*a") }), finds: []string{"E117"}, only: `E117`},
	{name: "does not end on braces", fault: hang("search_files", "pattern", func(p string) bool { return strings.Contains(p, "{a,b}") }), finds: []string{"E118"}, only: `E118`},
	{name: "does not end on a long path", fault: hang("read_text_file", "path", func(p string) bool { return len(p) > 100_000 }), finds: []string{"E50"}, only: `E50`},
	{name: "does not answer a path that is no string", fault: hang("read_text_file", "path", func(p string) bool { return p == "" }), finds: []string{"E131"}, only: `E131|TC-22`},
	{name: "reads a file of any size", fault: hang("read_text_file", "path", func(p string) bool { return strings.HasSuffix(p, "huge") }), finds: []string{"E109"}, only: `E109`},
	{name: "says where a link leads", fault: fault{call: func(f *faulty, tool string, args map[string]any) (string, bool, error) {
		path := str(args, "path")
		if to, err := os.Readlink(path); err == nil && tool == "read_text_file" && !f.inside(real(path)) {
			return "", true, fmt.Errorf("%s leads to %s", path, to)
		}
		return "", false, nil
	}}, finds: []string{"E85"}, only: `E85`},

	{name: "does not ask for roots", fault: fault{deaf: true}, finds: []string{"Q2", "Q4"}, only: `Q[24]`},
	{name: "serves the first root only", fault: fault{set: func(d []roots.Dir) []roots.Dir { return d[:1] }}, finds: []string{"Q5"}, only: `Q[45]`},
	{name: "ignores a change of the roots", fault: fault{request: func(_ *faulty, r *exchange.Request, _ func(exchange.Outcome)) bool {
		return r.Msg.Method() == "notifications/roots/list_changed"
	}, list: keepFirst()}, finds: []string{"Q4"}, only: `Q4`},
	{name: "asks a client that has no roots", fault: fault{request: asksAnyway}, finds: []string{"E128"}, only: `E128`},

	{name: "gives its tools in another order", fault: fault{answer: func(m string, result []byte) []byte {
		if m != "tools/list" {
			return result
		}
		var list []json.RawMessage
		tools, _ := wire.Get(result, "tools")
		json.Unmarshal(tools, &list)
		if calls++; calls%2 == 0 {
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
}

// keepFirst answers every question with the first list that there was.
func keepFirst() func(f *faulty, list []byte) []byte {
	kept := map[*faulty][]byte{}
	return func(f *faulty, list []byte) []byte {
		if kept[f] == nil {
			kept[f] = bytes.Clone(list)
		}
		return kept[f]
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

// What is planted is found, and nothing else.
func TestPlanted(t *testing.T) {
	for _, p := range planted {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			race := p.race
			if race == 0 {
				race = -1
			}
			var just []string
			for _, c := range verify.Cases() {
				if p.just == c.Class && slices.Contains(p.finds, c.ID) {
					just = append(just, c.ID)
				}
			}
			list := broken(run(t, p.fault, p.era, race, just...))
			for _, id := range p.finds {
				if !slices.Contains(list, id) {
					t.Errorf("%s did not find it; found: %v", id, list)
				}
			}
			only := regexp.MustCompile(p.only)
			if too := slices.DeleteFunc(list, only.MatchString); len(too) > 0 {
				t.Errorf("was found, too: %v", too)
			}
		})
	}
}
