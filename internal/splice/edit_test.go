package splice

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustParse(t testing.TB, text string, f Format) *Doc {
	t.Helper()
	d, err := Parse([]byte(text), f)
	if err != nil {
		t.Fatalf("parsing %q as %s: %v", text, f, err)
	}
	return d
}

func root(path, name string) *Value {
	return Object(Member{Name: "path", Value: String(path)}, Member{Name: "name", Value: String(name)})
}

func TestInsert(t *testing.T) {
	tests := []struct {
		name   string
		format Format
		text   string
		path   Path
		value  *Value
		want   string
	}{
		{"into an array on one line", JSON, `{"args": ["-y", "pkg"]}`, Path{"args", End}, String("/srv"),
			`{"args": ["-y", "pkg", "/srv"]}`},
		{"at the front", JSON, `{"args": ["-y", "pkg"]}`, Path{"args", 0}, String("run"), `{"args": ["run", "-y", "pkg"]}`},
		{"in a compact text", JSON, `{"args":["-y","pkg"]}`, Path{"args", 1}, String("x"), `{"args":["-y","x","pkg"]}`},
		{"a member of a compact text", JSON, `{"a":1}`, Path{"b"}, Strings("x", "y"), `{"a":1, "b":["x","y"]}`},
		{"into an array over lines", JSON, "{\n  \"args\": [\n    \"-y\",\n    \"pkg\"\n  ]\n}\n", Path{"args", End}, String("/srv"),
			"{\n  \"args\": [\n    \"-y\",\n    \"pkg\",\n    \"/srv\"\n  ]\n}\n"},
		{"before an item on its own line", JSON, "[\n\t1,\n\t2\n]", Path{1}, Bool(true), "[\n\t1,\n\ttrue,\n\t2\n]"},
		{"with Windows line ends", JSON, "{\r\n  \"a\": 1\r\n}\r\n", Path{"b"}, String("x"), "{\r\n  \"a\": 1,\r\n  \"b\": \"x\"\r\n}\r\n"},
		{"into an empty object", JSON, "{\n  \"mcpServers\": {}\n}\n", Path{"mcpServers", "fs"},
			Object(Member{Name: "command", Value: String("rootbound")}, Member{Name: "args", Value: Strings("fs")}),
			"{\n  \"mcpServers\": {\n    \"fs\": {\n      \"command\": \"rootbound\",\n      \"args\": [\"fs\"]\n    }\n  }\n}\n"},
		{"into an empty array", JSON, `{"args": []}`, Path{"args", End}, String("x"), `{"args": ["x"]}`},
		{"behind the comment of the last item", JSONC, "[\n  1 // one\n  // two is off\n]", Path{End}, String("x"),
			"[\n  1, // one\n  \"x\"\n  // two is off\n]"},
		{"with trailing commas", JSONC, "[\n  1, // one\n]", Path{End}, String("x"), "[\n  1, // one\n  \"x\",\n]"},
		{"between comments", JSONC, "[\n  1, // one\n  // about two\n  2\n]", Path{1}, String("x"),
			"[\n  1, // one\n  \"x\",\n  // about two\n  2\n]"},
		{"behind a line comment on the line of the bracket", JSONC, "[1 // one\n]", Path{End}, String("x"), "[1, // one\n\"x\"\n]"},
		{"into what holds only a comment", JSONC, "{\n  // none yet\n}", Path{"a"}, Bool(true), "{\n  // none yet\n  \"a\": true\n}"},
		{"a quoted name", JSON, `{}`, Path{"a\"b\\\n\x01"}, String("é"), `{"a\"b\\\n\u0001": "é"}`},

		{"a key of a table", TOML, "[server.fs]\ncommand = \"npx\" # node\n\n[server.git]\n", Path{"server", "fs", "cwd"}, String("/srv"),
			"[server.fs]\ncommand = \"npx\" # node\ncwd = \"/srv\"\n\n[server.git]\n"},
		{"the first key of a table", TOML, "[a] # table a\n\n[b]\n", Path{"a", "x"}, Bool(true), "[a] # table a\nx = true\n\n[b]\n"},
		{"a key at the top, with others", TOML, "x = 1\n\n[a]\n", Path{"y"}, String(`C:\Users`), "x = 1\ny = 'C:\\Users'\n\n[a]\n"},
		{"the first key at the top", TOML, "# ours\n\n# about a\n[a]\nx = 1\n", Path{"active"}, String("api"),
			"# ours\n\nactive = \"api\"\n\n# about a\n[a]\nx = 1\n"},
		{"into nothing", TOML, "", Path{"active"}, String("api"), "active = \"api\"\n"},
		{"into comments", TOML, "# ours", Path{"active"}, String("api"), "# ours\nactive = \"api\""},
		{"a table", TOML, "[server.a]\nx = 1\n# y = 2\n\n[log]\n", Path{"server", "b"}, root("/srv", "srv"),
			"[server.a]\nx = 1\n# y = 2\n\n[server.b]\npath = \"/srv\"\nname = \"srv\"\n\n[log]\n"},
		{"the first of an array of tables", TOML, "[server.a]\ncommand = \"x\"\n", Path{"server", "a", "roots"}, Array(root("/srv", "srv")),
			"[server.a]\ncommand = \"x\"\n\n[[server.a.roots]]\npath = \"/srv\"\nname = \"srv\"\n"},
		{"a further one", TOML, "[[roots]]\npath = \"/a\"\n\n[server.a]\n", Path{"roots", End}, root("/b", "b"),
			"[[roots]]\npath = \"/a\"\n\n[[roots]]\npath = \"/b\"\nname = \"b\"\n\n[server.a]\n"},
		{"one before the first", TOML, "# the first\n[[roots]]\npath = \"/a\"\n", Path{"roots", 0}, root("/b", "b"),
			"[[roots]]\npath = \"/b\"\nname = \"b\"\n\n# the first\n[[roots]]\npath = \"/a\"\n"},
		{"below the right one of several tables", TOML, "[[mcp.servers]]\nname = \"a\"\n\n[[mcp.servers]]\nname = \"b\"\n",
			Path{"mcp", "servers", 0, "roots"}, Array(root("/srv", "srv")),
			"[[mcp.servers]]\nname = \"a\"\n\n[[mcp.servers.roots]]\npath = \"/srv\"\nname = \"srv\"\n\n[[mcp.servers]]\nname = \"b\"\n"},
		{"into an inline array of tables", TOML, "roots = [{ path = \"/a\" }]\n", Path{"roots", End}, root("/b", "b"),
			"roots = [{ path = \"/a\" }, { path = \"/b\", name = \"b\" }]\n"},
		{"over lines with comments", TOML, "roots = [\n  { path = \"/a\" }, # a\n]\n", Path{"roots", End}, root("/b", "b"),
			"roots = [\n  { path = \"/a\" }, # a\n  { path = \"/b\", name = \"b\" },\n]\n"},
		{"into an inline table", TOML, "env = { A = \"1\" }\n", Path{"env", "B.c"}, String("2"), "env = { A = \"1\", \"B.c\" = \"2\" }\n"},
		{"behind dotted keys", TOML, "[a]\nb.c.x = 1\nz = 2\n", Path{"a", "b", "c", "y"}, Bool(false), "[a]\nb.c.x = 1\nb.c.y = false\nz = 2\n"},
		{"without a line end at the end", TOML, "[a]\nx = 1", Path{"a", "y"}, Bool(true), "[a]\nx = 1\ny = true"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, mark := range []string{"", bom} {
				d := mustParse(t, mark+tt.text, tt.format)
				got, err := d.Insert(tt.path, tt.value)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(mark+tt.want, string(got.Bytes())); diff != "" {
					t.Errorf("Insert (-want +got):\n%s", diff)
				}
				back, err := got.Delete(d.ended(tt.path))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(mark+tt.text, string(back.Bytes())); diff != "" {
					t.Errorf("Delete of what Insert put in (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// ended returns p with End replaced by the position it stands for.
func (d *Doc) ended(p Path) Path {
	if p[len(p)-1] != End {
		return p
	}
	array, _ := d.Find(p[:len(p)-1])
	return p[:len(p)-1].join(len(array.Items))
}

func TestDelete(t *testing.T) {
	tests := []struct {
		name   string
		format Format
		text   string
		path   Path
		want   string
	}{
		{"the first of a line", JSON, `[1, 2, 3]`, Path{0}, `[2, 3]`},
		{"the last of a line", JSON, `[1, 2, 3]`, Path{2}, `[1, 2]`},
		{"the only one", JSON, "{\n  \"a\": 1\n}", Path{"a"}, "{}"},
		{"a line with its comment", JSONC, "{\n  // about a\n  \"a\": 1, // one\n  \"b\": 2, // two\n  \"c\": 3\n}", Path{"b"},
			"{\n  // about a\n  \"a\": 1, // one\n  \"c\": 3\n}"},
		{"the last line keeps the comment before", JSONC, "[\n  1, // one\n  2 // two\n]", Path{1}, "[\n  1 // one\n]"},
		{"the first behind a line comment", JSONC, "[ // list\n  1, 2]", Path{0}, "[ // list\n  2]"},
		{"a key", TOML, "[a]\nx = 1 # one\ny = 2\n", Path{"a", "x"}, "[a]\ny = 2\n"},
		{"a multi-line value", TOML, "x = [\n  1,\n]\ny = '''\n# no comment\n'''\nz = 1\n", Path{"y"}, "x = [\n  1,\n]\nz = 1\n"},
		{"a table with what is in it", TOML, "[a]\nx = 1\n\n[a.b]\ny = 1\n\n[c]\n[a.d]\n", Path{"a"}, "[c]\n"},
		{"one of an array of tables", TOML, "[[r]]\nx = 1\n\n[[r]]\nx = 2\n[r.sub]\ny = 1\n\n[[r]]\nx = 3\n", Path{"r", 1},
			"[[r]]\nx = 1\n\n[[r]]\nx = 3\n"},
		{"the only key at the top", TOML, "active = \"x\"\n\n[a]\n", Path{"active"}, "[a]\n"},
		{"comments of others stay", TOML, "# about a\n[a]\nx = 1\n# z = 1\n\n# about b\n[b]\n", Path{"a"}, "# about a\n\n# about b\n[b]\n"},
		{"a dotted table", TOML, "[a]\nb.x = 1\nc = 1\nb.y = 2\n", Path{"a", "b"}, "[a]\nc = 1\n"},
		{"what held it goes too", TOML, "a.b.c = 1\nd = 2\n", Path{"a", "b", "c"}, "d = 2\n"},
		{"a pair of an inline table", TOML, "t = { a.b = 1, a.c = 2 }\n", Path{"t", "a", "b"}, "t = { a.c = 2 }\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := mustParse(t, tt.text, tt.format).Delete(tt.path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got.Bytes())); diff != "" {
				t.Errorf("Delete (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReplace(t *testing.T) {
	tests := []struct {
		format     Format
		text       string
		path       Path
		value      *Value
		want       string
		wantRefuse string
	}{
		{JSON, `{"a": 12345678901234567890, "b": 1.0, "c": "\u003c"}`, Path{"b"}, String("x"),
			`{"a": 12345678901234567890, "b": "x", "c": "\u003c"}`, ""},
		{TOML, "command = 'C:\\x' # why\nargs = [ \"a\" ]\n", Path{"command"}, String("rootbound"),
			"command = \"rootbound\" # why\nargs = [ \"a\" ]\n", ""},
		{TOML, "args = [ \"a\" ]\n", Path{"args", 0}, String(`a\'b`), "args = [ \"a\\\\'b\" ]\n", ""},
		{TOML, "[a]\nx = 1\n", Path{"a"}, String("x"), "", "1:2: it is spread over headers"},
		{TOML, "a.x = 1\n", Path{"a"}, String("x"), "", "1:1: it is spread over headers"},
	}
	for _, tt := range tests {
		got, err := mustParse(t, tt.text, tt.format).Replace(tt.path, tt.value)
		if tt.wantRefuse != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wantRefuse) {
				t.Errorf("Replace(%s) in %q: error %v, want one with %q", tt.path, tt.text, err, tt.wantRefuse)
			}
			continue
		}
		if err != nil {
			t.Errorf("Replace(%s) in %q: %v", tt.path, tt.text, err)
			continue
		}
		if diff := cmp.Diff(tt.want, string(got.Bytes())); diff != "" {
			t.Errorf("Replace(%s) in %q (-want +got):\n%s", tt.path, tt.text, diff)
		}
	}
}

func TestRefused(t *testing.T) {
	insert := func(p Path, v *Value) func(*Doc) (*Doc, error) {
		return func(d *Doc) (*Doc, error) { return d.Insert(p, v) }
	}
	remove := func(p Path) func(*Doc) (*Doc, error) {
		return func(d *Doc) (*Doc, error) { return d.Delete(p) }
	}
	tests := []struct {
		format Format
		text   string
		edit   func(*Doc) (*Doc, error)
		want   string
	}{
		{JSON, `{"a": 1}`, insert(Path{"a"}, String("x")), "inserting a: 1:7: it is there already"},
		{JSON, `{"a": 1}`, insert(Path{"b", "c"}, String("x")), "there is no b"},
		{JSON, `{"a": 1}`, insert(Path{"a", "c"}, String("x")), "inserting a.c: 1:7: this is a number and has no names in it"},
		{JSON, `{"a": 1}`, insert(Path{0}, String("x")), "inserting [0]: 1:1: this is a table and has no positions"},
		{JSON, `[1]`, insert(Path{3}, String("x")), "inserting [3]: 1:1: there are 1 items only"},
		{JSON, `[1]`, remove(Path{1}), "there is no [1]"},
		{JSON, `[1]`, remove(nil), "deleting the whole text: name a member or a position"},
		{JSON, `[1]`, insert(Path{0}, String("\xff")), `inserting [0]: "\xff" is not UTF-8 text`},
		{TOML, "[a.b]\n", insert(Path{"a", "x"}, String("x")),
			"inserting a.x: 1:2: the table is there only because its sub-tables are: give it a header first"},
		{TOML, "[[a]]\n", insert(Path{"a", End}, String("x")), "inserting a[-1]: 1:3: only a table fits into an array of tables"},
		{TOML, "t = { a.b = 1 }\n", remove(Path{"t", "a"}), "deleting t.a: 1:7: it is written with dotted keys: delete what is in it"},
		{TOML, "t = { a.b = 1 }\n", insert(Path{"t", "a", "c"}, String("x")),
			"inserting t.a.c: 1:7: it is written with dotted keys in an inline table: edit it by hand"},
		{TOML, "x = 1\n", insert(Path{"y"}, &Value{Kind: NullKind, Text: "null"}), "inserting y: TOML has no null"},
	}
	for _, tt := range tests {
		_, err := tt.edit(mustParse(t, tt.text, tt.format))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q: error %q, want %q", tt.text, err, tt.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct {
		format Format
		text   string
		want   string
	}{
		{JSON, "{\n  \"é\": 1, \"a\": 1,\n  \"a\": 2\n}", `3:3: "a" is given twice, first on line 2`},
		{JSON, "{\"a\": {\"b\": [{\"c\": 1, \"c\": 1}]}}", `1:23: "c" is given twice, first on line 1`},
		{JSON, "{\n  \"a\": 1 // one\n}", "2:10: comments are not allowed here"},
		{JSON, "[\"//\", 1, ]", "1:9: a trailing comma is not allowed here"},
		{JSONC, "{\n  \"é\" 1\n}", "2:7: invalid character '1' after object name"},
		{JSONC, "[1", "1:3: parsing array after value: unexpected EOF"},
		{JSONC, `{"p": "C:\Users"}`, `1:10: this is no escape of JSON: a backslash itself is written twice`},
		{JSONC, "{\"p\": \"a\nb\"}", `1:9: the character '\n' has to be written as an escape in a string`},
		{JSON, `["\u12x4"]`, `1:2: there is a bad \u escape in this string`},
		{JSON, `[secret]`, `1:2: this is neither a number nor true, false or null`},
		{JSON, `[01]`, `1:2: this is neither a number nor true, false or null`},
		{JSON, "[\"\xff\"]", "1:3: this is not UTF-8 text"},
		{TOML, "a = 1\n\na = 2\n", "3:1: key a is already defined"},
		{TOML, "[a]\nx = 1\n[a]\n", "3:2: table a already exists"},
		{TOML, "p = \"C:\\Users\"\n", "1:8: unicode escape sequence is too short"},
		{TOML, "é = 1\n", "1:1: invalid character at start of key: U+00C3 'Ã'"},
	}
	for _, tt := range tests {
		_, err := Parse([]byte(tt.text), tt.format)
		var e *Error
		if !errors.As(err, &e) || e.Error() != tt.want {
			t.Errorf("Parse(%q): error %v, want %q", tt.text, err, tt.want)
		}
	}
	for _, f := range []Format{JSON, JSONC, TOML} {
		text := strings.Repeat("[", 2_000_000)
		if f == TOML {
			text = "a = " + text
		}
		if _, err := Parse([]byte(text), f); err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s with deep nesting: error %v", f, err)
		}
	}
}

func TestPositions(t *testing.T) {
	const text = "# settings\né = \"ü\"\n\n[server.\"ä b\"]\nargs = [\n  'ö', 2, { x.y = 1 },\n]\n\n[[server.c.roots]]\n[[server.c.roots]]\n  path = \"/\"\n"
	d := mustParse(t, strings.Replace(text, "é", "\"é\"", 1), TOML)
	tests := []struct {
		path Path
		want Pos
	}{
		{Path{"é"}, Pos{2, 7}},
		{Path{"server"}, Pos{4, 2}},
		{Path{"server", "ä b"}, Pos{4, 9}},
		{Path{"server", "ä b", "args"}, Pos{5, 8}},
		{Path{"server", "ä b", "args", 1}, Pos{6, 8}},
		{Path{"server", "ä b", "args", 2, "x", "y"}, Pos{6, 19}},
		{Path{"server", "c", "roots", 1}, Pos{10, 12}},
		{Path{"server", "c", "roots", 1, "path"}, Pos{11, 10}},
	}
	for _, tt := range tests {
		v, ok := d.Find(tt.path)
		if !ok || v.Pos != tt.want {
			t.Errorf("%s is at %v (found: %v), want %v", tt.path, v.Pos, ok, tt.want)
		}
	}
	j := mustParse(t, bom+"{\r\n  /* é */ \"ä\": [1,\r\n\t\"x\"]}", JSONC)
	for path, want := range map[string]Pos{"": {1, 1}, "ä": {2, 16}, "ä[1]": {3, 2}} {
		p := map[string]Path{"": nil, "ä": {"ä"}, "ä[1]": {"ä", 1}}[path]
		if v, ok := j.Find(p); !ok || v.Pos != want {
			t.Errorf("%q is at %v, want %v", path, v.Pos, want)
		}
	}
	if m := j.Root().Members[0]; m.Pos != (Pos{2, 11}) {
		t.Errorf("the name is at %v", m.Pos)
	}
}
