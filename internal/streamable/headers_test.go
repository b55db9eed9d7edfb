package streamable

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/wire"
)

func TestValuesOfHeaders(t *testing.T) {
	for text, want := range map[string]string{
		"us-west1": "us-west1", "": "", "a b\tc": "a b\tc",
		"Hello, 世界":          "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ":           "=?base64?IHBhZGRlZCA=?=",
		"line1\nline2":       "=?base64?bGluZTEKbGluZTI=?=",
		"=?base64?literal?=": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"=?base64?open":      "=?base64?open",
	} {
		if got := encodeValue(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if got, err := decodeValue(want); err != nil || got != text {
			t.Errorf("%q: got %q, %v", want, got, err)
		}
	}
	for _, bad := range []string{"=?base64?*?=", "=?base64?YQ?=", "=?base64?gA==?=", "caf\xe9", "a\x01"} {
		if got, err := decodeValue(bad); err == nil {
			t.Errorf("%q was read as %q", bad, got)
		}
	}
}

func TestMirroredName(t *testing.T) {
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a\u0062"}}`:       "ab",
		`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p"}}`:            "p",
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///x"}}`:  "file:///x",
		`{"jsonrpc":"2.0","id":1,"method":"tasks/cancel","params":{"taskId":"t"}}`:         "t",
		`{"jsonrpc":"2.0","id":1,"method":"tasks/result","params":{"taskId":"t"}}`:         "-", // this revision does not have it
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"name":"no"}}`:            "-",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`:               "-",
		`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`:                                   "-",
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":null,"a":"b"}}`: "-",
	} {
		m, err := wire.Scan([]byte(line), wire.Strict)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := mirrored(&m)
		if !ok {
			got = "-"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

func TestMirroredParams(t *testing.T) {
	for _, tt := range []struct {
		name, schema string
		want         []param
		wrong        string
	}{
		{"none", `{"type":"object","properties":{"a":{"type":"string"}}}`, nil, ""},
		{"some", `{"properties":{"a":{"type":"string","x-mcp-header":"Region"},"b":{"properties":{"c":{"x-mcp-header":"deep-er","type":"integer"}}}}}`,
			[]param{{"Mcp-Param-Region", []string{"a"}}, {"Mcp-Param-Deep-Er", []string{"b", "c"}}}, ""},
		{"an argument of that name", `{"properties":{"x-mcp-header":{"type":"string"}}}`, nil, ""},
		{"within a value", `{"properties":{"a":{"type":"object","default":{"x-mcp-header":1}}}}`, nil, ""},
		{"twice", `{"properties":{"a":{"type":"string","x-mcp-header":"r"},"b":{"type":"string","x-mcp-header":"R"}}}`, nil, "two arguments"},
		{"a number", `{"properties":{"a":{"type":"number","x-mcp-header":"r"}}}`, nil, "no string"},
		{"empty", `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`, nil, "not a name"},
		{"line end", `{"properties":{"a":{"type":"string","x-mcp-header":"a\r\nb"}}}`, nil, "not a name"},
		{"no text", `{"properties":{"a":{"type":"string","x-mcp-header":true}}}`, nil, "not a name"},
		{"in an item", `{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"r"}}}}`, nil, "one place"},
		{"in an alternative", `{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"r"}}}]}`, nil, "one place"},
		{"at the top", `{"type":"string","x-mcp-header":"r"}`, nil, "one place"},
		{"deep", strings.Repeat(`{"properties":{"a":`, 80) + `{"x-mcp-header":"r"}` + strings.Repeat("}}", 80), nil, "deeply"},
	} {
		got, err := mirroredParams([]byte(tt.schema))
		if tt.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%s: got %v", tt.name, err)
			}
			continue
		}
		if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(param{})); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, d)
		}
	}
}

func TestParamsAndTheirHeaders(t *testing.T) {
	p := param{"Mcp-Param-A", []string{"o", "a"}}
	for _, tt := range []struct {
		args   string
		header []string
		want   string // "" is right
	}{
		{`{"o":{"a":"x"}}`, []string{"x"}, ""},
		{`{"o":{"a":"世"}}`, []string{"=?base64?5LiW?="}, ""},
		{`{"o":{"a":42}}`, []string{"42"}, ""},
		{`{"o":{"a":42}}`, []string{"42.0"}, ""},
		{`{"o":{"a":4.2e1}}`, []string{"42"}, ""},
		{`{"o":{"a":true}}`, []string{"true"}, ""},
		{`{"o":{"a":null}}`, nil, ""},
		{`{"o":{}}`, nil, ""},
		{`{}`, nil, ""},
		{`{"o":{"a":["x"]}}`, nil, ""},
		{`{"o":{"a":"x"}}`, []string{"x", "x"}, ""},
		{`{"o":{"a":"x"}}`, nil, "missing"},
		{`{"o":{"a":"x"}}`, []string{"y"}, "does not say"},
		{`{"o":{"a":"42"}}`, []string{"42.0"}, "does not say"},
		{`{"o":{"a":16}}`, []string{"0x10"}, "does not say"},
		{`{"o":{"a":"x"}}`, []string{"x", "y"}, "more than once"},
		{`{"o":{"a":null}}`, []string{"x"}, "is not"},
		{`{"o":{"a":"x"}}`, []string{"=?base64?!?="}, "base64"},
	} {
		h := http.Header{}
		if tt.header != nil {
			h[p.header] = tt.header
		}
		err := p.check(h, []byte(tt.args))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s with %q: got %v, want %q", tt.args, tt.header, err, tt.want)
		}
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add("us-west1", `{"properties":{"a":{"type":"string","x-mcp-header":"Region"}}}`)
	f.Add(" =?base64?x?= ", `{"anyOf":[{"x-mcp-header":""}]}`)
	f.Fuzz(func(t *testing.T, text, schema string) {
		decodeValue(text)
		if utf8.ValidString(text) {
			v := encodeValue(text)
			if got, err := decodeValue(v); err != nil || got != text || !plain(v) {
				t.Errorf("%q became %q, which is read as %q, %v", text, v, got, err)
			}
		}
		if m, err := wire.Scan([]byte(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"s":`+schema+`}}`), wire.Strict); err == nil {
			s, _ := wire.Get(m.Params(), "s")
			params, _ := mirroredParams(s)
			for _, p := range params {
				if !token(p.header) || len(p.path) == 0 {
					t.Errorf("%q gives %+v", schema, p)
				}
			}
		}
	})
}
