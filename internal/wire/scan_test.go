package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestScanFindsTheEnvelope(t *testing.T) {
	tests := []struct {
		line, kind, id, method, params, result, err, meta string
	}{
		{line: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"a":1}}}`,
			kind: "request", id: "1", method: "tools/call", params: `{"name":"x","_meta":{"a":1}}`, meta: `{"a":1}`},
		{line: `{ "params" : { } , "method":"ping","id":"a\u0062","jsonrpc":"2.0" } `, kind: "request", id: `"a\u0062"`, method: "ping", params: "{ }"},
		{line: `{"jsonrpc":"2.0","method":"x/unknown","unknown":[1,{"a":null}]}`, kind: "notification", method: "x/unknown"},
		{line: `{"jsonrpc":"2.0","method":"x","params":null}`, kind: "notification", method: "x", params: "null"},
		{line: `{"jsonrpc":"2.0","id":9007199254740993,"result":{}}`, kind: "response", id: "9007199254740993", result: "{}"},
		{line: `{"result":[1e400,-0.0],"jsonrpc":"2.0","id":1.5}`, kind: "response", id: "1.5", result: "[1e400,-0.0]"},
		{line: `{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}`, kind: "response", id: "null", err: `{"code":-1,"message":"m"}`},
		{line: `{"jsonrpc":"2.0","error":{"code":-1,"message":"m"}}`, kind: "response", err: `{"code":-1,"message":"m"}`},
		{line: `[{"jsonrpc":"2.0","method":"x"}]`, kind: "batch"},
		{line: "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\r", kind: "notification", method: "x"},
	}
	for _, tt := range tests {
		m, err := Scan([]byte(tt.line), Strict)
		if err != nil {
			t.Errorf("Scan(%s): %v", tt.line, err)
			continue
		}
		got := fmt.Sprintf("%s|%s|%s|%s|%s|%s|%s", m.Kind(), m.ID(), m.Method(), m.Params(), m.Result(), m.Error(), m.Meta())
		want := strings.Join([]string{tt.kind, tt.id, tt.method, tt.params, tt.result, tt.err, tt.meta}, "|")
		if got != want {
			t.Errorf("Scan(%s)\n got %s\nwant %s", tt.line, got, want)
		}
		if string(m.Bytes()) != tt.line {
			t.Errorf("Scan(%s) changed the bytes to %s", tt.line, m.Bytes())
		}
	}
}

func TestScanRefusesWhatTwoParsersCouldReadDifferently(t *testing.T) {
	deep := strings.Repeat("[", 10001) + strings.Repeat("]", 10001)
	tests := []struct {
		name, line string
		code       int
		id         string
		reason     string
	}{
		{"text", `hello`, CodeParse, "", "not JSON"},
		{"cut off", `{"jsonrpc":"2.0","id":7,"method":"x"`, CodeParse, "7", "not JSON"},
		{"duplicate in the envelope", `{"jsonrpc":"2.0","id":7,"method":"a","method":"b"}`, CodeInvalidRequest, "7", "duplicate name"},
		{"duplicate, escaped", `{"jsonrpc":"2.0","id":7,"method":"a","params":{"uri":1,"\u0075ri":2}}`, CodeInvalidRequest, "7", "duplicate name"},
		{"duplicate, deep", `{"jsonrpc":"2.0","id":7,"method":"a","params":{"x":[{"a":1,"a":2}]}}`, CodeInvalidRequest, "7", "duplicate name"},
		{"duplicate in a result", `{"jsonrpc":"2.0","id":7,"result":{"a":1,"a":2}}`, CodeInvalidRequest, "7", "duplicate name"},
		{"case twin", `{"jsonrpc":"2.0","id":7,"method":"a","Method":"b"}`, CodeInvalidRequest, "7", "only in case"},
		{"case stranger", `{"jsonrpc":"2.0","id":7,"method":"a","params":{"name":"x","Arguments":{}}}`, CodeInvalidRequest, "7", "only in case"},
		{"case, lower", `{"jsonrpc":"2.0","id":7,"method":"a","params":{"requeststate":"x"}}`, CodeInvalidRequest, "7", "only in case"},
		{"case, long s", `{"jsonrpc":"2.0","id":7,"method":"a","params":{"argumentſ":{}}}`, CodeInvalidRequest, "7", "only in case"},
		{"case, Kelvin escaped", `{"jsonrpc":"2.0","id":7,"method":"a","paramſ":{}}`, CodeInvalidRequest, "7", "only in case"},
		{"case, of a result", `{"jsonrpc":"2.0","id":7,"result":{"ResultType":"input_required"}}`, CodeInvalidRequest, "7", "only in case"},
		{"case, of a result, lower", `{"jsonrpc":"2.0","id":7,"result":{"a":1,"resulttype":"input_required"}}`, CodeInvalidRequest, "7", "only in case"},
		{"bad UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"a\",\"params\":{\"x\":\"\xff\"}}", CodeParse, "7", "UTF-8"},
		{"lone surrogate", `{"jsonrpc":"2.0","id":7,"method":"a","params":{"x":"\ud83d"}}`, CodeParse, "7", "surrogate"},
		{"byte order mark", "\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":7,"method":"a"}`, CodeInvalidRequest, "", "byte order mark"},
		{"trailing bytes", `{"jsonrpc":"2.0","id":7,"method":"a"}x`, CodeInvalidRequest, "7", "trailing"},
		{"two messages", `{"jsonrpc":"2.0","id":7,"method":"a"} {"jsonrpc":"2.0","id":8,"method":"a"}`, CodeInvalidRequest, "7", "trailing"},
		{"too deep", `{"jsonrpc":"2.0","id":7,"method":"a","params":{"x":` + deep + `}}`, CodeParse, "7", "depth"},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"a"}`, CodeInvalidRequest, "", "null"},
		{"id of a wrong kind", `{"jsonrpc":"2.0","id":true,"method":"a"}`, CodeInvalidRequest, "", "neither a string nor a number"},
		{"id too long", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", maxID) + `","method":"a"}`, CodeInvalidRequest, "", "longer than"},
		{"id much too long", `{"jsonrpc":"2.0","method":"a","id":"` + strings.Repeat("x", 2*maxID) + `"}`, CodeInvalidRequest, "", "longer than"},
		{"no version", `{"id":7,"method":"a"}`, CodeInvalidRequest, "7", "jsonrpc"},
		{"other version", `{"jsonrpc":"1.0","id":7,"method":"a"}`, CodeInvalidRequest, "7", "2.0"},
		{"both", `{"jsonrpc":"2.0","id":7,"method":"a","result":1}`, CodeInvalidRequest, "7", "both"},
		{"result and error", `{"jsonrpc":"2.0","id":7,"error":{},"result":1}`, CodeInvalidRequest, "7", "both"},
		{"neither", `{"jsonrpc":"2.0","id":7}`, CodeInvalidRequest, "7", "neither"},
		{"empty", `{}`, CodeInvalidRequest, "", "jsonrpc"},
		{"params an array", `{"jsonrpc":"2.0","id":7,"method":"a","params":[]}`, CodeInvalidRequest, "7", "params"},
		{"result without an id", `{"jsonrpc":"2.0","result":1}`, CodeInvalidRequest, "", "without"},
		{"a number", `7`, CodeInvalidRequest, "", "not an object"},
		{"control byte", "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"a\tb\"}", CodeParse, "7", "not JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Scan([]byte(tt.line), Strict)
			var r *Refusal
			if !errors.As(err, &r) {
				t.Fatalf("accepted: %v", err)
			}
			if r.Code != tt.code || string(r.ID) != tt.id || !strings.Contains(r.Reason, tt.reason) {
				t.Errorf("got %d, id %q, %q; want %d, id %q, …%s…", r.Code, r.ID, r.Reason, tt.code, tt.id, tt.reason)
			}
			if strings.Contains(tt.name, "too long") && r.Kind != Request {
				t.Errorf("it would have been a %v, and so is not answered", r.Kind)
			}
		})
	}
}

func TestLenientPassesIllFormedTextAndSaysSo(t *testing.T) {
	for _, line := range []string{`{"jsonrpc":"2.0","id":1,"result":"ab\ud83d"}`, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}"} {
		m, err := Scan([]byte(line), Lenient)
		if err != nil {
			t.Fatal(err)
		}
		if !m.IllFormed() || string(m.Bytes()) != line {
			t.Errorf("%q: ill-formed %v, bytes %q", line, m.IllFormed(), m.Bytes())
		}
	}
	m, _ := Scan([]byte(`{"jsonrpc":"2.0","id":1,"result":"é😀"}`), Lenient)
	if m.IllFormed() {
		t.Error("well-formed text counts as ill-formed")
	}
}

func TestKeyIsEqualForEqualIDs(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"1", "1.0", true}, {"1", "1e0", true}, {"-3", "-3.0", true}, {`"a"`, `"\u0061"`, true}, {"1", `"1"`, false}, {"1.5", "1", false},
		{"9007199254740993", "9007199254740992", false}, {"0", "-0", true}, {`"a"`, `"b"`, false},
	} {
		if got := IDKey([]byte(tt.a)) == IDKey([]byte(tt.b)); got != tt.want {
			t.Errorf("IDKey(%s) == IDKey(%s) is %v", tt.a, tt.b, got)
		}
	}
}

func TestBatch(t *testing.T) {
	m, err := Scan([]byte(`[{"jsonrpc":"2.0","id":1,"method":"a"}, 7,[{"jsonrpc":"2.0","method":"b"}],{"jsonrpc":"2.0","id":1,"method":"a","id":2}]`), Strict)
	if err == nil {
		t.Fatal("a duplicate name in a batch is accepted")
	}
	m, err = Scan([]byte(`[{"jsonrpc":"2.0","id":1,"method":"a"}, 7,[{"jsonrpc":"2.0","method":"b"}]]`), Strict)
	if err != nil {
		t.Fatal(err)
	}
	msgs, refused, err := m.Elements(Strict)
	if err != nil || len(msgs) != 3 || refused[0] != nil || refused[1] == nil || refused[2] == nil || msgs[0].Method() != "a" {
		t.Errorf("got %v, %v, %v", msgs, refused, err)
	}
}

// A message is some hundred bytes of memory and may be two on the wire.
func TestBatchOfMany(t *testing.T) {
	for n, want := range map[int]bool{maxElements: true, maxElements + 1: false} {
		m, err := Scan([]byte("["+strings.Repeat("1,", n-1)+"1]"), Lenient)
		if err != nil {
			t.Fatal(err)
		}
		if msgs, _, err := m.Elements(Lenient); (err == nil) != want || want && len(msgs) != n {
			t.Errorf("a batch of %d: %d messages, %v", n, len(msgs), err)
		}
	}
}

func TestEditing(t *testing.T) {
	m, err := Scan([]byte(`{ "x":1.0, "id": 5 ,"jsonrpc":"2.0","method":"a","params" : {"k":[1, 2] } }`), Strict)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		got  *Message
		want string
	}{
		{"id", m.WithID([]byte(`"q"`)), `{ "x":1.0, "id": "q" ,"jsonrpc":"2.0","method":"a","params" : {"k":[1, 2] } }`},
		{"params", m.WithParams([]byte(`{}`)), `{ "x":1.0, "id": 5 ,"jsonrpc":"2.0","method":"a","params" : {} }`},
		{"member", m.WithParams(SetMember(m.Params(), []byte("true"), "_meta", "a/b")), `{ "x":1.0, "id": 5 ,"jsonrpc":"2.0","method":"a","params" : {"k":[1, 2],"_meta":{"a/b":true} } }`},
		{"no params yet", NewRequest([]byte("1"), "m", nil).WithParams([]byte(`{"a":1}`)), `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}`},
	} {
		if string(tt.got.Bytes()) != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, tt.got.Bytes(), tt.want)
		}
	}
	if m.WithID([]byte("5")) != &m {
		t.Error("an id that stays makes a new message")
	}
}

func TestMembers(t *testing.T) {
	for _, tt := range []struct{ object, path, set, del string }{
		{`{}`, "a", `{"a":0}`, `{}`},
		{`{ }`, "a", `{"a":0 }`, `{ }`},
		{`{"a":1}`, "a", `{"a":0}`, `{}`},
		{`{"a":1,"b":2}`, "a", `{"a":0,"b":2}`, `{"b":2}`},
		{`{"a":1, "b":2}`, "b", `{"a":1, "b":0}`, `{"a":1}`},
		{`{"a":1,"b":2,"c":3}`, "b", `{"a":1,"b":0,"c":3}`, `{"a":1,"c":3}`},
		{`{"a":{"b":1},"c":2}`, "a b", `{"a":{"b":0},"c":2}`, `{"a":{},"c":2}`},
		{`{"c":2}`, "a b", `{"c":2,"a":{"b":0}}`, `{"c":2}`},
		{`null`, "a", `{"a":0}`, `null`},
		{`{"a":null}`, "a b", `{"a":{"b":0}}`, `{"a":null}`},
		{`{"a":"{"}`, "a b", `{"a":{"b":0}}`, `{"a":"{"}`},
		{`{"a":"}{"}`, "a b", `{"a":{"b":0}}`, `{"a":"}{"}`},
		{`{"a":[{"c":1}]}`, "a b", `{"a":{"b":0}}`, `{"a":[{"c":1}]}`},
		{`{"a":7}`, "a b", `{"a":{"b":0}}`, `{"a":7}`},
		{`{"\u0061":1}`, "a", `{"\u0061":0}`, `{}`},
	} {
		path := strings.Fields(tt.path)
		if got := string(SetMember([]byte(tt.object), []byte("0"), path...)); got != tt.set {
			t.Errorf("SetMember(%s, %s) = %s, want %s", tt.object, tt.path, got, tt.set)
		}
		if got := string(DeleteMember([]byte(tt.object), path...)); got != tt.del {
			t.Errorf("DeleteMember(%s, %s) = %s, want %s", tt.object, tt.path, got, tt.del)
		}
	}
}

func TestDeleteMembers(t *testing.T) {
	for object, want := range map[string]string{
		`{}`: `{}`, `{"a":1}`: `{"a":1}`, `{ "a" : 1 , "b":2 }`: `{ "a" : 1 , "b":2 }`, `{"x":1}`: `{}`, `{ "x":1, "a" : [1, 2],"x2":{},"\u0062":"}" }`: `{"a" : [1, 2],"\u0062":"}"}`,
		`{"\u0078":1,"a":2}`: `{"a":2}`, `[1]`: `[1]`, ``: ``,
	} {
		if got := string(DeleteMembers([]byte(object), func(name string, _ []byte) bool { return name[0] == 'x' })); got != want {
			t.Errorf("DeleteMembers(%s) = %s, want %s", object, got, want)
		}
	}
}

// FuzzScan holds: what is accepted goes on unchanged and reads the same again, after every edit too; nothing panics.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"a":1}}}`,
		`{"jsonrpc":"2.0","id":"a","result":{"x":"\ud83d"}}`, `{"error":{"code":1},"jsonrpc":"2.0","id":null}`,
		`[{"jsonrpc":"2.0","method":"x"}]`, "{\"a\":\"\xff\"}", `{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.IndexByte(line, '\n') >= 0 {
			return
		}
		for _, mode := range []Mode{Strict, Lenient} {
			m, err := Scan(bytes.Clone(line), mode)
			if err != nil {
				var r *Refusal
				if !errors.As(err, &r) || r.Code == 0 || r.Reason == "" {
					t.Fatalf("refused without a code or reason: %#v", err)
				}
				continue
			}
			if !bytes.Equal(m.Bytes(), line) {
				t.Fatal("changed the bytes")
			}
			again, err := Scan(m.Bytes(), mode)
			if err != nil || again.kind != m.kind || again.id != m.id || again.method != m.method || again.params != m.params ||
				again.result != m.result || again.err != m.err || again.meta != m.meta {
				t.Fatalf("reads differently again: %v", err)
			}
			if m.kind == Batch {
				m.Elements(mode)
				continue
			}
			if m.ID() != nil {
				if e := m.WithID([]byte(`"\u0061"`)); e.Key() != `"a` || e.Method() != m.Method() || !bytes.Equal(e.Params(), m.Params()) {
					t.Fatalf("editing the id broke %s", e.Bytes())
				} else if again, err := Scan(e.Bytes(), mode); err != nil || again.id != e.id || again.method != e.method || again.params != e.params ||
					again.result != e.result || again.err != e.err || again.meta != e.meta || again.kind != e.kind {
					t.Fatalf("with another id %s reads differently: %v", e.Bytes(), err)
				}
			}
			if m.kind == Request || m.kind == Notification {
				p := SetMember(m.Params(), []byte("1"), "zz-set")
				if v, ok := Get(m.WithParams(p).Params(), "zz-set"); !ok || string(v) != "1" {
					t.Fatalf("setting a member of %s gave %s", m.Params(), p)
				}
			}
		}
	})
}

// FuzzFinder holds: the finder that follows a line in pieces finds the id that the scan finds.
func FuzzFinder(f *testing.F) {
	f.Add([]byte(`{"result":{"id":9,"x":"}\"{"},"jsonrpc":"2.0","id":2}`), 3)
	f.Add([]byte(`{"id":"a\\\"b","method":"x","jsonrpc":"2.0","params":[]}`), 1)
	f.Fuzz(func(t *testing.T, line []byte, step int) {
		m, err := Scan(line, Lenient)
		var fd finder
		for rest := line; len(rest) > 0; {
			n := min(max(step, 1), len(rest))
			fd.scan(rest[:n])
			rest = rest[n:]
		}
		id, kind := fd.id(), fd.kind()
		if err != nil || m.kind == Batch || bytes.IndexByte(line, '\\') >= 0 && (m.ID() == nil || m.ID()[0] != '"') {
			return // an escaped name of the envelope is not looked for
		}
		if m.ID() != nil && string(m.ID()) != "null" && validID(m.ID()) && !bytes.Equal(id, m.ID()) {
			if !bytes.Contains(line, []byte(`\u`)) {
				t.Fatalf("found id %q, want %q in %s", id, m.ID(), line)
			}
			return
		}
		if m.kind != kind && !bytes.Contains(line, []byte(`\`)) && string(m.ID()) != "null" && !m.illFormed {
			t.Fatalf("found %v, want %v in %s", kind, m.kind, line)
		}
	})
}

// FuzzWalk holds: the walk over what was accepted finds the members and items that a parser finds, and never leaves the
// bytes of what was not.
func FuzzWalk(f *testing.F) {
	f.Add([]byte(`{"a\\\"":{"b":[1,"}]",{}]} , "c":-1.5e3,"d":null,"e":"\\"}`))
	f.Add([]byte(`[ 1 ,"a",[],{"x":[]} ]`))
	f.Add([]byte(`{"a":`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var names, values, items []string
		for n, v := range Members(b) {
			names, values = append(names, n), append(values, string(v))
		}
		for v := range Items(b) {
			items = append(items, string(v))
		}
		if !json.Valid(b) {
			return
		}
		var array []json.RawMessage
		if json.Unmarshal(b, &array) == nil && array != nil {
			if len(array) != len(items) {
				t.Fatalf("%d items of %q, want %d", len(items), b, len(array))
			}
			for i := range array {
				if string(array[i]) != items[i] {
					t.Fatalf("item %d of %q is %q, want %q", i, b, items[i], array[i])
				}
			}
		}
		d := json.NewDecoder(bytes.NewReader(b))
		if tok, err := d.Token(); err != nil || tok != json.Delim('{') {
			return
		}
		for i := 0; d.More(); i++ {
			name, err := d.Token()
			var v json.RawMessage
			if err != nil || d.Decode(&v) != nil {
				return
			}
			if i >= len(names) || string(v) != values[i] || !utf8.Valid(b) {
				if utf8.Valid(b) {
					t.Fatalf("member %d of %q: %q is missing or %q", i, b, name, values)
				}
				return
			}
		}
	})
}

func payload(kind string, size int) []byte {
	var b bytes.Buffer
	switch kind {
	case "string":
		fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%s"}]}}`, strings.Repeat("a", size-70))
	case "source":
		line := `\tif err := doc.Write(ctx, \"name\"); err != nil {\n\t\treturn err\n\t}\n`
		fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%s"}]}}`, strings.Repeat(line, (size-70)/len(line)))
	case "dense":
		b.WriteString(`{"jsonrpc":"2.0","id":1,"result":{"tools":[`)
		for i := 0; b.Len() < size-100; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"name":"t%d","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"number","default":%d}}}}`, i, i)
		}
		b.WriteString(`]}}`)
	case "wide":
		b.WriteString(`{"jsonrpc":"2.0","id":1,"result":{`)
		for i := range size {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"name%d":%d`, i, i)
		}
		b.WriteString(`}}`)
	case "deep":
		fmt.Fprintf(&b, `{"jsonrpc":"2.0","id":1,"result":%s0%s}`, strings.Repeat(`{"name":`, size), strings.Repeat("}", size))
	}
	return b.Bytes()
}

func BenchmarkScan(b *testing.B) {
	for _, kind := range []string{"string", "source", "dense"} {
		for _, size := range []int{1 << 10, 1 << 20} {
			benchScan(b, fmt.Sprintf("%s/%d", kind, size), payload(kind, size))
		}
	}
	benchScan(b, "wide/60000", payload("wide", 60000))
	for _, depth := range []int{900, 9000} {
		benchScan(b, fmt.Sprintf("deep/%d", depth), payload("deep", depth))
	}
}

func benchScan(b *testing.B, name string, p []byte) {
	for _, mode := range []Mode{Strict, Lenient} {
		b.Run(fmt.Sprintf("%s/%v", name, mode), func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Scan(p, mode); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A long result is not scanned when it is made, and has to be as if it were.
func TestLongResult(t *testing.T) {
	long := append(Quote(strings.Repeat("ä\n", longMade)), '}')
	for _, id := range []string{`7`, `"a\u0062"`, `1e0`} {
		made := NewResult([]byte(id), []byte(`{"a":`), long)
		want, err := Scan(slices.Clone(made.Bytes()), Strict)
		if err != nil {
			t.Fatal(err)
		}
		if want.unread = true; !reflect.DeepEqual(*made, want) { // it is looked at when it is asked for
			t.Errorf("id %s: its parts are %v %v, and %v %v when it is scanned", id, made.id, made.result, want.id, want.result)
		}
	}
}

// What a call names is found where it is, also behind an id that became longer or params that were changed.
func TestNameAndArguments(t *testing.T) {
	for _, tt := range []struct{ line, name, arguments string }{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"name":"b"}}}`, "a", `{"name":"b"}`},
		{`{"params": {"arguments" : [1], "\u006eame":"\u0061\ud83d\ude00"},"jsonrpc":"2.0","method":"tools/call","id":"x"}`, "a😀", `[1]`},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`, "", ""},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é"}}`, "é", ""},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":""}}`, "", ""},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`, "", ""},
		{`{"jsonrpc":"2.0","id":1,"result":{"name":"a"}}`, "", ""},
	} {
		m, err := Scan([]byte(tt.line), Strict)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []*Message{&m, m.WithID([]byte(`"longer than it was"`)), m.WithID([]byte("2"))} {
			if got := m.Name(); got != tt.name {
				t.Errorf("the name in %s is %q, want %q", m.Bytes(), got, tt.name)
			}
			if got := string(m.Arguments()); got != tt.arguments {
				t.Errorf("the arguments in %s are %q, want %q", m.Bytes(), got, tt.arguments)
			}
		}
		if m.Kind() != Request {
			continue
		}
		other := m.WithParams([]byte(`{"_meta":{},"arguments":{},"name":"other"}`))
		if other.Name() != "other" || string(other.Arguments()) != "{}" {
			t.Errorf("%s has the name %q and the arguments %s", other.Bytes(), other.Name(), other.Arguments())
		}
	}
}

// What is edited without being scanned again has the parts that a scan finds.
func FuzzEdited(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"x":1},"arguments":{"name":"b"}}}`,
		`{"params": {"arguments" : [1], "\u006eame":"a","\u005fmeta":{}},"jsonrpc":"2.0","method":"tools/call","id":"x"}`,
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{}}`, `{"jsonrpc":"2.0","result":{"_meta":{},"a":[]} ,"id":1}`, `{"jsonrpc":"2.0","method":"m","params":null}`,
	} {
		f.Add([]byte(s), "_meta", `{"y":2}`)
		f.Add([]byte(s), "inputResponses", `[]`)
		f.Add([]byte(s), "requestState", `"x"`)
		f.Add([]byte(s), "resultType", `"complete"`)
	}
	f.Fuzz(func(t *testing.T, line []byte, name, value string) {
		m, err := Scan(line, Strict)
		v, bad := Scan([]byte(`{"jsonrpc":"2.0","id":1,"result":`+value+`}`), Strict)
		if err != nil || bad != nil || strings.ContainsAny(string(line)+value, "\n") {
			return
		}
		params, result := m.Params(), m.Result()
		edited := []*Message{m.WithID([]byte(`"a longer one"`))}
		if params != nil && params[0] == '{' {
			edited = append(edited, m.WithEdited(SetMember(params, v.Result(), name)), m.WithEdited(DeleteMember(params, name)))
		}
		if result != nil {
			edited = append(edited, m.WithEditedResult(SetMember(result, v.Result(), name)), m.WithEditedResult(DeleteMember(result, name)))
		}
		for _, got := range edited {
			want, err := Scan(got.Bytes(), Strict)
			if err != nil {
				if strings.Contains(err.Error(), "differs") { // a name that would not have been taken
					continue
				}
				t.Fatalf("%q became %q: %v", line, got.Bytes(), err)
			}
			if got.Key() != want.Key() || got.Method() != want.Method() || got.Kind() != want.Kind() || got.Name() != want.Name() || got.RequestState() != want.RequestState() ||
				got.ResultType() != want.ResultType() || !bytes.Equal(got.InputResponses(), want.InputResponses()) ||
				!bytes.Equal(got.Params(), want.Params()) || !bytes.Equal(got.Meta(), want.Meta()) || !bytes.Equal(got.Arguments(), want.Arguments()) ||
				!bytes.Equal(got.Result(), want.Result()) || !bytes.Equal(got.Error(), want.Error()) {
				t.Errorf("%q became %q, of which a scan finds other parts", line, got.Bytes())
			}
		}
	})
}

// A long result that is made here says its type as well.
func TestResultTypeOfWhatIsMade(t *testing.T) {
	long := strings.Repeat("x", longMade)
	for _, m := range []*Message{
		NewResult([]byte("1"), []byte(`{"resultType":"input_required"}`)),
		NewResult([]byte("1"), []byte(`{"a":"`+long+`","resultType":"input_required"}`)),
		NewLongResult([]byte("1"), longMade, func(b []byte) []byte { return append(b, `{"a":"`+long+`","resultType":"input_required"}`...) }),
		NewResult([]byte("1"), []byte(`{"a":"`+long+`"}`)).WithEditedResult([]byte(`{"resultType":"input_required"}`)),
		NewResult([]byte("1"), []byte(`{"a":"`+long+`","resultType":"input_required"}`)).WithID([]byte(`"longer"`)),
	} {
		if got := m.ResultType(); got != "input_required" {
			t.Errorf("%.80s has the type %q", m.Bytes(), got)
		}
	}
}
