package pathargs

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// found lists what counts: "pointer why", a key with "(key)".
func found(t testing.TB, method, params string, c *Catalog, r Rules) []string {
	t.Helper()
	args, err := Find(method, []byte(params), c, r)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, a := range args {
		if a.Why.Judged() {
			s := a.Pointer + " " + a.Why.String()
			if a.Key {
				s += " (key)"
			}
			list = append(list, s)
		}
	}
	return list
}

func call(arguments string) string { return `{"name":"tool","arguments":` + arguments + `}` }

// catalog has one tool with this input schema.
func catalog(schema string) *Catalog {
	c := &Catalog{}
	c.Learn("", []byte(`{"tools":[{"name":"tool","inputSchema":`+schema+`}]}`))
	return c
}

func TestFind(t *testing.T) {
	tests := []struct {
		name   string
		method string // tools/call when empty
		params string
		schema string
		rules  Rules
		want   []string
	}{
		{name: "a name", params: call(`{"path":"x","n":1,"b":true,"z":null}`), want: []string{"/path by name"}},
		{name: "an array goes by its name", params: call(`{"paths":["a",["b"],{"c":"d"}]}`), want: []string{"/paths/0 by name", "/paths/1/0 by name"}},
		{name: "a list sent as text", params: call(`{"paths":"[\"a\",\"b\"]"}`), want: []string{"/paths by name", "/paths/0 by name", "/paths/1 by name"}},
		{name: "an object sent as text", params: call(`{"edits":"{\"file\":\"a\"}","data":"{\"file\":\"a\"}"}`),
			schema: `{"properties":{"edits":{"type":["null","object"]},"data":{"type":"string"}}}`, want: []string{"/edits/file by name"}},
		{name: "nested", params: call(`{"files":[{"path":"a","content":"/etc/passwd"}]}`), want: []string{"/files/0/path by name"}},
		{name: "in order", params: call(`{"z":{"dir":"1"},"file":"2","a":{"cwd":"3"}}`), want: []string{"/z/dir by name", "/file by name", "/a/cwd by name"}},
		{name: "letters in either case", params: call(`{"PATH":"a","FilePath":"b"}`), want: []string{"/PATH by name", "/FilePath by name"}},
		{name: "an empty value is none", params: call(`{"path":""}`)},
		{name: "a name that a decoder folds", params: `{"name":"tool","Arguments":{"path":"x"},"argument\u017f":{"dir":"y"}}`,
			want: []string{"/path by name", "/dir by name"}},
		{name: "arguments that are no object", params: call(`["/etc/passwd"]`), want: []string{"/0 by shape"}},

		{name: "ambiguous and plain", params: call(`{"source":"a","to":"me@example.com","name":"x"}`)},
		{name: "ambiguous and shaped", params: call(`{"source":"/a","to":"./b","name":"../c","uri":"/x"}`),
			want: []string{"/source by name", "/to by name", "/name by name", "/uri by name"}},
		{name: "ambiguous of a filesystem server", params: call(`{"source":"a","name":"x"}`), rules: Rules{Filesystem: true},
			want: []string{"/source by name", "/name by name"}},
		{name: "ambiguous and several lines", params: call(`{"source":"/a\nb"}`), rules: Rules{Filesystem: true}},
		{name: "named and several lines", params: call(`{"path":"/a\nb"}`), want: []string{"/path by name"}},

		{name: "shapes", params: call(`{"a":"/x","b":"~/x","c":"./x","d":"../x","e":"\\x","f":"C:\\x","g":"file:///x","h":"a/../x","i":"~"}`),
			want: []string{"/a by shape", "/b by shape", "/c by shape", "/d by shape", "/e by shape", "/f by shape", "/g by shape", "/h by shape", "/i by shape"}},
		{name: "no shapes", params: call(`{"a":"x/y","b":"x","c":"see a/../b here","d":"..x","e":"c:x","f":"http://x/../y","g":"/x\ny"}`)},
		{name: "too long for a shape", params: call(`{"a":"/` + strings.Repeat("x", 4096) + `"}`)},
		{name: "free text", params: call(`{"content":"/etc","text":"/etc","body":"/etc","message":"/etc","description":"/etc","query":"/etc","prompt":"/etc","code":"/etc","sql":"/etc","oldText":"/etc","newText":"/etc"}`)},
		{name: "addresses", params: call(`{"path":"https://example.com/x","file":"s3://b/k","x":"http://h/","image":"data:image/png;base64,AA"}`)},
		{name: "an address that climbs", params: call(`{"path":"https://h/../../../etc"}`), want: []string{"/path by name"}},
		{name: "file URIs", params: call(`{"url":"file:///x","uri":"FILE:/x","path":"file:x","img":"view-source:file:///x","href":" fi\tle:///x"}`),
			want: []string{"/url by URI", "/uri by URI", "/path by URI", "/img by shape", "/href by URI"}},

		{name: "keys", params: call(`{"/etc/hosts":"127.0.0.1 /x","changes":{"../a":"/etc/x","b":1}}`),
			want: []string{"/~1etc~1hosts by shape (key)", "/changes/..~1a by shape (key)"}},
		{name: "keys in a map of files", params: call(`{"files":{"src/a.ts":"import '/etc'","README":"/etc"}}`),
			want: []string{"/files/src~1a.ts by name (key)", "/files/README by shape"}},

		{name: "a format", params: call(`{"target":"x","where":"y"}`),
			schema: `{"properties":{"target":{"type":"string","format":"path"},"where":{"format":"uri"}}}`, want: []string{"/target by name"}},
		{name: "a format behind references", params: call(`{"a":"x","b":["x",{"c":"x"}],"d":{"any":"x"}}`),
			schema: `{"allOf":[{"$ref":"#/$defs/top"}],"$defs":{"p":{"format":"file-path"},
				"top":{"properties":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/p"}]},
					"b":{"items":{"oneOf":[{"$ref":"#/$defs/p"},{"properties":{"c":{"$ref":"#/$defs/p"}}}]}},
					"d":{"additionalProperties":{"$ref":"#/$defs/p"}}}}}}`,
			want: []string{"/a by name", "/b/0 by name", "/b/1/c by name", "/d/any by name"}},
		{name: "a schema that refers to itself", params: call(`{"a":{"a":{"a":{"p":"x"}}}}`),
			schema: `{"properties":{"a":{"$ref":"#"},"p":{"format":"path"}},"anyOf":[{"$ref":"#"},{"$ref":"#/anyOf/0"}]}`,
			want:   []string{"/a/a/a/p by name"}},
		{name: "keys with a format", params: call(`{"m":{"x":"y"}}`),
			schema: `{"properties":{"m":{"propertyNames":{"format":"path"}}}}`, want: []string{"/m/x by name (key)"}},
		{name: "numbers without end in a schema", params: call(`{"t":"a"}`),
			schema: `{"properties":{"t":{"format":"path","maximum":1e999}}}`, want: []string{"/t by name"}},
		{name: "tuples", params: call(`{"t":["a","b"]}`),
			schema: `{"properties":{"t":{"prefixItems":[{},{"format":"path"}]}}}`, want: []string{"/t/1 by name"}},
		{name: "encoded content", params: call(`{"data":"/9j/4AAQSkZJRg"}`), schema: `{"properties":{"data":{"contentEncoding":"base64"}}}`},
		{name: "free text with a path's format", params: call(`{"query":"x"}`), schema: `{"properties":{"query":{"format":"path"}}}`,
			want: []string{"/query by name"}},

		{name: "elsewhere", params: call(`{"path":"/","files":["a","/etc/passwd"],"x":"../y"}`), rules: Rules{Where: Elsewhere}},
		{name: "elsewhere, of this machine", params: call(`{"path":"~/x","url":"file:///x","y":"file:///x","z":"~/z","body":"file:///x"}`),
			rules: Rules{Where: Elsewhere}, want: []string{"/path by shape", "/url by URI", "/y by URI", "/z by shape"}},

		{name: "rules", params: call(`{"path":"x","here":"y","list":[{"a":"z"}],"content":"w"}`),
			rules: Rules{Tools: map[string]ToolRules{"tool": {NotPaths: []string{"path"}, Paths: []string{"here", "/list/*/a", "content"}}}},
			want:  []string{"/here by rule", "/list/0/a by rule", "/content by rule"}},
		{name: "rules elsewhere", params: call(`{"path":"x"}`), rules: Rules{Where: Elsewhere, Tools: map[string]ToolRules{"*": {Paths: []string{"path"}}}},
			want: []string{"/path by rule"}},

		{name: "a prompt", method: "prompts/get", params: `{"name":"p","arguments":{"file":"x","topic":"y"}}`, want: []string{"/file by name"}},
		{name: "a resource", method: "resources/read", params: `{"uri":"file:///x"}`, want: []string{"/uri by URI"}},
		{name: "a resource of another scheme", method: "resources/subscribe", params: `{"uri":"memo://x/y"}`},
		{name: "a resource by its path", method: "resources/read", params: `{"URI":"/x"}`, want: []string{"/uri by shape"}},
		{name: "completion", method: "completion/complete",
			params: `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"file","value":"/x"},"context":{"arguments":{"dir":"y","topic":"z"}}}`,
			want:   []string{"/argument/value by name", "/context/arguments/dir by name"}},
		{name: "completion of a template", method: "completion/complete",
			params: `{"ref":{"type":"ref/resource","uri":"file:///{path}"},"argument":{"name":"path","value":"x"}}`, want: []string{"/argument/value by name"}},
		{name: "completion of a resource", method: "completion/complete",
			params: `{"ref":{"type":"ref/resource","uri":"file:///x"},"argument":{"name":"topic","value":"x"}}`, want: []string{"/ref/uri by URI"}},
		{name: "another method", method: "tools/list", params: `{"path":"/etc"}`},
		{name: "no arguments", params: `{"name":"tool"}`},
		{name: "no params", params: ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			method := tt.method
			if method == "" {
				method = "tools/call"
			}
			var c *Catalog
			if tt.schema != "" {
				c = catalog(tt.schema)
			}
			if diff := cmp.Diff(tt.want, found(t, method, tt.params, c, tt.rules)); diff != "" {
				t.Error("(-want +got):", diff)
			}
		})
	}
}

// What is seen and does not count is told of, with the reason; contents are not.
func TestUnjudged(t *testing.T) {
	args, err := Find("tools/call", []byte(call(`{"a":"owner/repo","content":"/etc/passwd","text":"plain","body":"x\n/etc","url":"https://x","b":"just words","c":"a\nb/c"}`)), nil, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range args {
		got = append(got, a.Pointer+" "+a.Why.String())
	}
	want := []string{"/a not shaped like a path", "/content free text", "/url an address"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):", diff)
	}
}

// Only so much is told, and what is not worth telling leaves room for what is.
func TestUnjudgedIsBounded(t *testing.T) {
	args, err := Find("tools/call", []byte(call(`{"l":[`+strings.Repeat(`"x",`, 100)+strings.Repeat(`"a/b",`, 100)+`"x"]}`)), nil, Rules{})
	if err != nil || len(args) != maxUnjudged {
		t.Errorf("%d strings told, %v", len(args), err)
	}
}

func TestCatalog(t *testing.T) {
	var c Catalog
	page := func(name string) string {
		return `{"name":"` + name + `","inputSchema":{"properties":{"p":{"format":"path"}}},"annotations":{"readOnlyHint":false}}`
	}
	knows := func(name string) bool {
		return len(found(t, "tools/call", `{"name":"`+name+`","arguments":{"p":"x"}}`, &c, Rules{})) > 0
	}
	want := func(step string, names ...string) {
		t.Helper()
		for _, n := range []string{"a", "b", "c"} {
			if got, want := knows(n), strings.Contains(strings.Join(names, " "), n); got != want {
				t.Errorf("%s: knows %s = %v", step, n, got)
			}
		}
	}
	want("to begin with")
	c.Learn("", []byte(`{"tools":[`+page("a")+`],"nextCursor":"2"}`))
	want("first page", "a")
	c.Learn("2", []byte(`{"tools":[`+page("b")+`]}`))
	want("second page", "a", "b")
	c.Learn("", []byte(`{"tools":[`+page("c")+`],"nextCursor":"2"}`))
	want("while another list is fetched", "a", "b", "c")
	c.Learn("2", []byte(`{"tools":[]}`))
	want("another list", "c")
	c.Learn("", []byte(`{"error":"no list"}`))
	want("no list", "c")
	for range 2 { // two clients at once
		c.Learn("", []byte(`{"tools":[`+page("a")+`],"nextCursor":"2"}`))
	}
	for range 2 {
		c.Learn("2", []byte(`{"tools":[`+page("c")+`]}`))
	}
	want("the last page twice", "a", "c")

	args, err := Find("tools/call", []byte(`{"name":"c","arguments":{"p":"x"}}`), &c, Rules{})
	if err != nil || len(args) != 1 || args[0].Need != roots.Write {
		t.Errorf("a tool that says it is not read-only: %+v, %v", args, err)
	}
}

func TestTooMuch(t *testing.T) {
	for name, arguments := range map[string]string{
		"many": `{"paths":[` + strings.Repeat(`"a",`, 20_000) + `"a"]}`,
		"deep": `{"paths":` + strings.Repeat("[", 2_000) + `"a"` + strings.Repeat("]", 2_000) + `}`,
	} {
		if _, err := Find("tools/call", []byte(call(arguments)), nil, Rules{}); !errors.Is(err, ErrTooMuch) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever the arguments: nothing panics, every pointer leads to its value, and free text stays alone.
func FuzzFind(f *testing.F) {
	for _, s := range []string{
		`{"path":"/etc/passwd"}`, `{"paths":["a","b"],"content":"x"}`, `{"files":{"a/b":"c"}}`, `{"uri":"file:///%2e%2e/x"}`,
		`{"a":{"b":[{"c":"../d"}]}}`, `{"paths":"[\"a\"]"}`, `["x"]`, `"x"`, `{"/":{"~":"~/"}}`, `{"path":"C:\\x\u0000y"}`,
	} {
		f.Add(s)
	}
	c := catalog(`{"properties":{"a":{"format":"path"},"b":{"$ref":"#"}},"additionalProperties":{"$ref":"#"}}`)
	f.Fuzz(func(t *testing.T, arguments string) {
		if !json.Valid([]byte(arguments)) {
			return
		}
		if _, err := wire.Scan([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+call(arguments)+`}`), wire.Strict); err != nil {
			return
		}
		var v any
		if json.Unmarshal([]byte(arguments), &v) != nil {
			return // a number too large for it
		}
		args, err := Find("tools/call", []byte(call(arguments)), c, Rules{})
		if err != nil {
			return
		}
		for _, a := range args {
			if a.Why == 0 {
				t.Errorf("%q has no reason", a.Pointer)
			}
			if a.Why.Judged() && !a.Key && !strings.Contains(a.Pointer+"/", "//") {
				if got, ok := resolve(v, "#"+a.Pointer).(string); ok && got != a.Value {
					t.Errorf("%q leads to %q, not to %q", a.Pointer, got, a.Value)
				}
			}
		}
		v2 := Judge(args, roots.Set{}, Process{Dir: "/"})
		if len(v2.Judged) != len(v2.Refused()) {
			t.Errorf("the empty set allows %+v", v2.Judged)
		}
	})
}
