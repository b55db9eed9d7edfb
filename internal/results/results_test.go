package results_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rootbound/rootbound/internal/results"
	"github.com/rootbound/rootbound/internal/unseen"
)

// with returns the actions of one check alone.
func with(c results.Check, a results.Action) results.Actions {
	actions := results.Nothing()
	actions[c] = a
	return actions
}

// outside is a disk on which /in is inside.
func outside(uri string) bool {
	return strings.HasPrefix(uri, "file:") && !strings.HasPrefix(uri, "file:///in/")
}

func found(v results.Verdict) string {
	var list []string
	for _, f := range v.Findings {
		list = append(list, fmt.Sprintf("%s %s: %s", f.Action, f.Check, f.Text))
	}
	return strings.Join(list, "; ")
}

func text(s string) string {
	b, _ := json.Marshal(s)
	return `{"content":[{"type":"text","text":` + string(b) + `}]}`
}

func data(b string) string { return base64.StdEncoding.EncodeToString([]byte(b)) }

const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00"

func TestChecks(t *testing.T) {
	type row struct {
		name   string
		check  results.Check
		method string // "" is tools/call
		value  string
		want   string // the findings, when they are told
		redact string // what goes on when they are taken out; "" when that withholds the result
	}
	const was = "<as it came>"
	for _, tt := range []row{
		{"an ordinary text", results.Characters, "", text("a\n\tb — 中文 é 👩‍👧"), "", was},
		{"an escape sequence", results.Characters, "", text("\x1b[31mred"),
			`warn characters: U+001B (control) in "text"`, `{"content":[{"type":"text","text":"⟨U+001B⟩[31mred"}]}`},
		{"tags", results.Characters, "", `{"content":[{"type":"text","text":"hi` + "\U000e0068" + `"}]}`,
			`warn characters: U+E0068 (tag) in "text"`, `{"content":[{"type":"text","text":"hi⟨U+E0068⟩"}]}`},
		{"tags, escaped", results.Characters, "", `{"content":[{"type":"text","text":"hi\udb40\udc68"}]}`,
			`warn characters: U+E0068 (tag) in "text"`, `{"content":[{"type":"text","text":"hi⟨U+E0068⟩"}]}`},
		{"a turn of direction in structured content", results.Characters, "", `{"content":[], "structuredContent":{"a":"x` + "\u202e" + `y","b":1.0}}`,
			`warn characters: U+202E (direction) in "a"`, `{"content":[], "structuredContent":{"a":"x⟨U+202E⟩y","b":1.0}}`},
		{"a name is told and stays", results.Characters, "", `{"structuredContent":{"a` + "\u200b" + `":1}}`,
			`warn characters: U+200B (no width) in "a\u200b"`, was},
		{"an address stays", results.Characters, "", `{"content":[{"type":"resource_link","uri":"x:` + "\u200b" + `","name":"a` + "\u200b" + `"}]}`,
			`warn characters: U+200B (no width) in "uri"; warn characters: U+200B (no width) in "name"`,
			`{"content":[{"type":"resource_link","uri":"x:` + "\u200b" + `","name":"a⟨U+200B⟩"}]}`},
		{"the messages of a prompt", results.Characters, "prompts/get", `{"messages":[{"role":"user","content":{"type":"text","text":"\u0007"}}]}`,
			`warn characters: U+0007 (control) in "text"`, `{"messages":[{"role":"user","content":{"type":"text","text":"⟨U+0007⟩"}}]}`},
		{"the contents of a resource", results.Characters, "resources/read", `{"contents":[{"uri":"x:y","text":"\u2066"}]}`,
			`warn characters: U+2066 (direction) in "text"`, `{"contents":[{"uri":"x:y","text":"⟨U+2066⟩"}]}`},

		{"a token", results.Secrets, "", text("the token is ghp_abcdefghijklmnopqrstuvwxyz0123456789, keep it"),
			`warn secrets: what looks like a GitHub token in "text"`, text("the token is [a GitHub token, taken out by Rootbound], keep it")},
		{"a token in a line of JSON in text", results.Secrets, "", text(`{"a":"b\nAKIAIOSFODNN7EXAMPLE"}`),
			`warn secrets: what looks like an AWS access key in "text"`, text(`{"a":"b\n[an AWS access key, taken out by Rootbound]"}`)},
		{"a private key", results.Secrets, "", text("a\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn\n-----END OPENSSH PRIVATE KEY-----\nb"),
			`warn secrets: what looks like a private key in "text"`, text("a\n[a private key, taken out by Rootbound]\nb")},
		{"a key in public", results.Secrets, "", text("-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----"), "", was},
		{"a password in an address", results.Secrets, "", text("postgres://app:s3cr3t!x@db/prod"),
			`warn secrets: what looks like a password in an address in "text"`, text("postgres://app:[a password in an address, taken out by Rootbound]@db/prod")},
		{"a placeholder", results.Secrets, "", text("postgres://app:${PASSWORD}@db/prod https://user:password@host/ git@github.com:a/b ssh://git@host:22/x@y"), "", was},
		{"words and hashes", results.Secrets, "", text("sk-learn, hf_transfer, eyJust, npm_config_registry, 0123456789abcdef0123456789abcdef01234567"), "", was},
		{"a token of the web", results.Secrets, "", text("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9"),
			`warn secrets: what looks like a JSON Web Token in "text"`, text("[a JSON Web Token, taken out by Rootbound]")},
		{"data is not read", results.Secrets, "", `{"content":[{"type":"image","mimeType":"image/png","data":"AKIAIOSFODNN7EXAMPLE"}]}`, "", was},

		{"a link inside", results.Paths, "", `{"content":[{"type":"resource_link","uri":"file:///in/a","name":"a"}, {"type":"resource_link","uri":"https://x/y","name":"a"}]}`, "", was},
		{"a link outside", results.Paths, "", `{"content":[{"type":"text","text":"a"},{"type":"resource_link","uri":"file:///etc/passwd","name":"a"}],"isError":false}`,
			"warn paths: a file outside the directories that are open to this server",
			`{"content":[{"type":"text","text":"a"},{"type":"text","text":"[Rootbound took this out: a file outside the directories that are open to this server]"}],"isError":false}`},
		{"a resource in the content", results.Paths, "", `{"content":[{"type":"resource","resource":{"uri":"file:///etc/passwd","text":"root"}}]}`,
			"warn paths: a file outside the directories that are open to this server",
			`{"content":[{"type":"text","text":"[Rootbound took this out: a file outside the directories that are open to this server]"}]}`},
		{"contents", results.Paths, "resources/read", `{"contents":[{"uri":"file:///in/a","text":"a"},{"uri":"file:///out","text":"b"}]}`,
			"warn paths: a file outside the directories that are open to this server",
			`{"contents":[{"uri":"file:///in/a","text":"a"},{"uri":"file:///out","text":"[Rootbound took this out: a file outside the directories that are open to this server]"}]}`},
		{"a list of resources", results.Paths, "resources/list", `{"resources":[{"uri":"file:///in/a","name":"a"},{"uri":"file:///out","name":"b"}],"nextCursor":"c"}`,
			"warn paths: a file outside the directories that are open to this server",
			`{"resources":[{"uri":"file:///in/a","name":"a"}],"nextCursor":"c"}`},
		{"a message", results.Paths, "prompts/get", `{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"file:///out","text":"x"}}},{"role":"user","content":{"type":"text","text":"y"}}]}`,
			"warn paths: a file outside the directories that are open to this server",
			`{"messages":[{"role":"user","content":{"type":"text","text":"[Rootbound took this out: a file outside the directories that are open to this server]"}},{"role":"user","content":{"type":"text","text":"y"}}]}`},

		{"a picture", results.Types, "", `{"content":[{"type":"image","mimeType":"image/png","data":"` + data(png) + `"}]}`, "", was},
		{"a program for a picture", results.Types, "", `{"content":[{"type":"image","mimeType":"image/png","data":"` + data("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00") + `"}]}`,
			`warn types: data that is called "image/png" is a program`,
			`{"content":[{"type":"text","text":"[Rootbound took this out: data that is called \"image/png\" is a program]"}]}`},
		{"a page for a picture", results.Types, "", `{"content":[{"type":"image","mimeType":"image/jpeg","data":"` + data("  <!doctype HTML><script>") + `"}]}`,
			`warn types: data that is called "image/jpeg" is text/html`,
			`{"content":[{"type":"text","text":"[Rootbound took this out: data that is called \"image/jpeg\" is text/html]"}]}`},
		{"sound for a picture", results.Types, "", `{"content":[{"type":"image","mimeType":"audio/wav","data":"` + data("RIFF\x00\x00\x00\x00WAVEfmt ") + `"}]}`,
			`warn types: data of the kind image is called "audio/wav"`,
			`{"content":[{"type":"text","text":"[Rootbound took this out: data of the kind image is called \"audio/wav\"]"}]}`},
		{"no base64", results.Types, "", `{"content":[{"type":"image","mimeType":"image/png","data":"%%%%"}]}`,
			`warn types: data that is called "image/png" is not base64`,
			`{"content":[{"type":"text","text":"[Rootbound took this out: data that is called \"image/png\" is not base64]"}]}`},
		{"a blob", results.Types, "resources/read", `{"contents":[{"uri":"x:y","mimeType":"application/pdf","blob":"` + data("MZ\x90\x00\x03\x00\x00\x00\x04\x00\x00\x00") + `"}]}`,
			`warn types: data that is called "application/pdf" is a program`,
			`{"contents":[{"uri":"x:y","text":"[Rootbound took this out: data that is called \"application/pdf\" is a program]"}]}`},
		{"a blob of a type that nobody knows", results.Types, "resources/read", `{"contents":[{"uri":"x:y","mimeType":"application/x-mine","blob":"` + data("MZ\x90\x00\x03\x00\x00\x00\x04\x00\x00\x00") + `"}]}`, "", was},
		{"other names of a type", results.Types, "", `{"content":[{"type":"image","mimeType":"image/JPG; q=1","data":"` + data("\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01") + `"}]}`, "", was},

		{"text and structured content agree", results.Agreement, "", `{"content":[{"type":"text","text":"{ \"b\": [1.0, 2],\n \"a\": \"\u00e9\" }"}],"structuredContent":{"a":"é","b":[1,2]}}`, "", was},
		{"they do not", results.Agreement, "", `{"content":[{"type":"text","text":"{\"safe\":true}"}],"structuredContent":{"safe":false}}`,
			"warn agreement: the structured content says something else than the text", ""},
		{"one of them is prose", results.Agreement, "", `{"content":[{"type":"text","text":"3 files"}],"structuredContent":{"n":4}}`, "", was},
		{"wrapped, as some servers do", results.Agreement, "", `{"content":[{"type":"text","text":"[1]"}],"structuredContent":{"result":[1]}}`, "", was},
		{"one text an element", results.Agreement, "", `{"content":[{"type":"text","text":"{\"a\":1}"},{"type":"text","text":"{\"a\":2}"}],"structuredContent":{"result":[{"a":1},{"a":2}]}}`, "", was},

		{"structured content as the tool says", results.Schema, "", `{"content":[],"structuredContent":{"n":1}}`, "", was},
		{"of another type", results.Schema, "", `{"content":[],"structuredContent":{"n":"1"}}`,
			`warn schema: the structured content is not what the tool says it is: validating root: validating /properties/n: type: 1 has type "string", want "integer"`, ""},
		{"missing", results.Schema, "", `{"content":[]}`, "warn schema: the structured content is missing that the tool says it has", ""},
		{"missing in an error", results.Schema, "", `{"content":[],"isError":true}`, "", was},
	} {
		t.Run(tt.check.String()+"/"+tt.name, func(t *testing.T) {
			r := results.Result{Method: tt.method, Tool: "count", Value: []byte(tt.value), Outside: outside}
			if r.Method == "" {
				r.Method = "tools/call"
			}
			for _, a := range []results.Action{results.Warn, results.Redact, results.Block, results.Off} {
				c := results.New(results.Options{Actions: with(tt.check, a)})
				c.Learn("", []byte(`{"tools":[{"name":"count","outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}]}`))
				v := c.Check(r)
				want, goes := tt.want, tt.value
				switch {
				case a == results.Off:
					want = ""
				case want == "":
				case a == results.Redact && tt.redact != "":
					want = strings.ReplaceAll(want, "warn ", "redact ")
					if tt.redact != was {
						goes = tt.redact
					}
				case a == results.Redact || a == results.Block:
					want, goes = strings.ReplaceAll(want, "warn ", "block "), ""
				}
				if got := found(v); got != want {
					t.Errorf("%s finds %q, want %q", a, got, want)
				}
				if edited := goes != "" && goes != tt.value; v.Edited != edited {
					t.Errorf("%s: edited is %v, want %v", a, v.Edited, edited)
				}
				if diff := cmp.Diff(goes, string(v.Value)); diff != "" {
					t.Errorf("%s: what goes on (-want +got):\n%s", a, diff)
				}
			}
		})
	}
}

func TestLimits(t *testing.T) {
	c := results.New(results.Options{Actions: results.Defaults(), Bounds: results.Bounds{Bytes: 200, Depth: 10, Parts: 3}})
	for _, tt := range []struct{ value, want string }{
		{text(strings.Repeat("a", 100)), ""},
		{text(strings.Repeat("a", 200)), "block limits: it is 239 bytes long, more than 200"},
		{`{"structuredContent":` + strings.Repeat("[", 9) + strings.Repeat("]", 9) + `}`, ""},
		{`{"structuredContent":` + strings.Repeat("[", 10) + strings.Repeat("]", 10) + `}`, "block limits: it is nested 11 levels deep, more than 10"},
		{`{"content":[{},{},{}]}`, ""},
		{`{"content":[{},{},{},{},{}]}`, "block limits: it has more than 3 parts"},
	} {
		v := c.Check(results.Result{Method: "tools/call", Value: []byte(tt.value)})
		if got := found(v); got != tt.want {
			t.Errorf("Check(%s) finds %q, want %q", tt.value, got, tt.want)
		}
		if blocked := v.Value == nil; blocked != (tt.want != "") {
			t.Errorf("Check(%s) lets it go on: %v", tt.value, !blocked)
		}
	}
}

// The schema is that of the tool's last listing, which may come in pages.
func TestLearn(t *testing.T) {
	c := results.New(results.Options{Actions: with(results.Schema, results.Warn)})
	check := func(tool string) string {
		return found(c.Check(results.Result{Method: "tools/call", Tool: tool, Value: []byte(`{"structuredContent":{"n":"x"}}`)}))
	}
	list := func(tool, typ, next string) []byte {
		return []byte(fmt.Sprintf(`{"tools":[{"name":%q,"outputSchema":{"properties":{"n":{"type":%q}}}}],"nextCursor":%q}`, tool, typ, next))
	}
	if got := check("a"); got != "" {
		t.Errorf("before the list: %q", got)
	}
	c.Learn("", list("a", "integer", "2"))
	if got := check("a"); !strings.Contains(got, "not what the tool says") {
		t.Errorf("with the first page: %q", got)
	}
	c.Learn("2", list("b", "integer", ""))
	for _, tool := range []string{"a", "b"} {
		if got := check(tool); !strings.Contains(got, "not what the tool says") {
			t.Errorf("%s, with both pages: %q", tool, got)
		}
	}
	c.Learn("2", list("b", "integer", "")) // by another client
	if got := check("a"); !strings.Contains(got, "not what the tool says") {
		t.Errorf("with the second page again: %q", got)
	}
	c.Learn("", list("a", "string", ""))
	for _, tool := range []string{"a", "b"} {
		if got := check(tool); got != "" {
			t.Errorf("%s, with another list: %q", tool, got)
		}
	}
}

// A schema that cannot be checked against is told, whatever is in it, and ends neither the program nor the wait.
func TestSchemasThatCannotBeUsed(t *testing.T) {
	doubled := `{"$defs":{` // 2^40 ways to the end
	for i := range 40 {
		doubled += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%[2]d"},{"$ref":"#/$defs/d%[2]d"}]},`, i, i+1)
	}
	doubled += `"d40":{}},"$ref":"#/$defs/d0"}`
	chain := `{"$defs":{`
	for i := range 5_000 {
		chain += fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
	}
	chain += `"d5000":{}},"$ref":"#/$defs/d0"}`
	for _, tt := range []struct{ schema, want string }{
		{`{"$ref":"#"}`, "it refers to itself without end"},
		{`{"properties":{"n":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`, "it refers to itself without end"},
		{`{"$Ref":"#"}`, "it refers to itself without end"},
		{`{"properties":{"n":{"ALLOF":[{"$REF":"#/properties/n"}]}}}`, "it refers to itself without end"},
		{`{"properties":{"default":{"$ref":"#/properties/default"}}}`, "it refers to itself without end"},
		{`{"Properties":{"const":{"Not":{"$ref":"#/Properties/const"}}}}`, "it refers to itself without end"},
		{`{"$ref":"#/$defs/a","$defs":{"a":{}},"$Defs":{"a":{"$ref":"#/$defs/a"}}}`, "it has a keyword twice, in other letters"},
		{`{"$DynamicRef":"#a"}`, "it refers to something that is not followed"},
		{`{"$ref":"https://example.com/schema.json"}`, "it refers to something that is not followed"},
		{`{"$ref":"#/$defs/none"}`, "it refers to something that is not followed"},
		{`{"$dynamicRef":"#a"}`, "it refers to something that is not followed"},
		{`{"properties":{"n":{"$id":"http://x/","$ref":"#"}}}`, "it refers to something that is not followed"},
		{`{"type":7}`, "reading the schema"},
		{`{"pattern":"(?=a)"}`, "resolving the schema"},
		{`{"allOf":` + strings.Repeat(`[{"allOf":`, 300) + `[]` + strings.Repeat(`}]`, 300) + `}`, "it is too deep"},
		{chain, "it is too deep"},
		{`{"properties":{"n":{"$ref":"#/allOf/0x"}},"allOf":[{}]}`, "it refers to something that is not followed"},
		{doubled, "takes longer than 1s"},
		{`{"properties":{"n":{"$ref":"#"}}}`, ""}, // for another value, so that has an end
	} {
		c := results.New(results.Options{Actions: with(results.Schema, results.Warn)})
		c.Learn("", []byte(`{"tools":[{"name":"a","outputSchema":`+tt.schema+`}]}`))
		for range 2 {
			got := found(c.Check(results.Result{Method: "tools/call", Tool: "a", Value: []byte(`{"structuredContent":{"n":{}}}`)}))
			if !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("%.60s: %q, want %q", tt.schema, got, tt.want)
			}
		}
	}
}

func TestAnErrorIsReadToo(t *testing.T) {
	c := results.New(results.Options{Actions: with(results.Characters, results.Redact)})
	v := c.Check(results.Result{Method: "tools/call", Failed: true, Value: []byte(`{"code":-1,"message":"a` + "\u202e" + `b"}`)})
	if got, want := string(v.Value), `{"code":-1,"message":"a⟨U+202E⟩b"}`; got != want {
		t.Errorf("the error goes on as %s, want %s", got, want)
	}
}

// Whether a disk may be looked at decides whether the answer leaves the order of the messages.
func TestAsks(t *testing.T) {
	c := results.New(results.Options{Actions: results.Defaults()})
	for _, tt := range []struct {
		method, value string
		want          bool
	}{
		{"tools/call", `{"content":[{"type":"text","text":"file:///a"}]}`, false},
		{"tools/call", `{"content":[{"type":"text","text":"uri"}]}`, false},
		{"tools/call", `{"content":[{"type":"resource_link","uri":"file:///b"}]}`, true},
		{"tools/call", `{"content":[{"type":"resource_link","u\u0072i":"file:///b"}]}`, true},
		{"tools/call", `{"content":[{"type":"resource","resource":{"\u0075\u0072\u0069":"file:///c"}}]}`, true},
		{"tools/call", `{"uri":"file:///b","content":[]}`, false},
		{"prompts/get", `{"messages":[{"content":{"type":"resource","resource":{"uri":"file:///x"}}}]}`, true},
		{"resources/read", `{"contents":[{"uri":"file:///x","text":""}]}`, true},
		{"resources/list", `{"resources":[{"uri":"file:///x"}]}`, true},
	} {
		if got := c.Asks(&results.Result{Method: tt.method, Value: []byte(tt.value)}); got != tt.want {
			t.Errorf("Asks(%s, %s) = %v, want %v", tt.method, tt.value, got, tt.want)
		}
	}
}

// A name is a name however it is written.
func TestEscapedNames(t *testing.T) {
	escaped := func(name string) string {
		var b strings.Builder
		for i := range len(name) {
			fmt.Fprintf(&b, `\u%04x`, name[i])
		}
		return b.String()
	}
	c := results.New(results.Options{Actions: results.Defaults()})
	for _, tt := range []struct{ value, want string }{
		{`{"content":[{"type":"text","text":"{\"a\":1}"}],"` + escaped("structuredContent") + `":{"a":2}}`, "warn agreement: the structured content says something else than the text"},
		{`{"` + escaped("content") + `":[{"type":"image","mimeType":"image/png","` + escaped("data") + `":"AAAAAAAAAAAAAAAAAAAAAAAA"}]}`,
			`warn types: data that is called "image/png" does not begin like it`},
	} {
		if got := found(c.Check(results.Result{Method: "tools/call", Tool: "a", Value: []byte(tt.value)})); got != tt.want {
			t.Errorf("Check(%s) finds %q, want %q", tt.value, got, tt.want)
		}
	}
}

// What goes on is JSON, has the bytes that came where nothing was found, and nothing is found in it again.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{
		text("\x1b[31m ghp_abcdefghijklmnopqrstuvwxyz0123456789 postgres://a:b@c"), `{"content":[{"type":"resource_link","uri":"file:///etc"}]}`,
		`{"content":[{"type":"image","mimeType":"image/png","data":"AAAA"}],"structuredContent":{"a":"\udb40\udc68"}}`,
		`{"messages":[{"content":{"type":"resource","resource":{"uri":"file:///x"}}}]}`, `{"contents":[{"uri":"file:///x","text":"-----BEGIN PRIVATE KEY-----"}]}`,
	} {
		f.Add(s)
	}
	actions := results.Nothing()
	for _, check := range []results.Check{results.Paths, results.Types, results.Characters, results.Secrets} {
		actions[check] = results.Redact
	}
	c := results.New(results.Options{Actions: actions})
	f.Fuzz(func(t *testing.T, value string) {
		if !json.Valid([]byte(value)) {
			return
		}
		for _, method := range []string{"tools/call", "prompts/get", "resources/read", "resources/list"} {
			v := c.Check(results.Result{Method: method, Value: []byte(value), Outside: outside})
			switch {
			case !json.Valid(v.Value):
				t.Fatalf("%s: %q goes on as %q", method, value, v.Value)
			case len(v.Findings) == 0 && string(v.Value) != value:
				t.Fatalf("%s: nothing is found in %q, and it goes on as %q", method, value, v.Value)
			}
			again := c.Check(results.Result{Method: method, Value: v.Value, Outside: outside})
			for _, f := range again.Findings {
				if f.Check == results.Characters && !strings.Contains(f.Text, `in "uri"`) && method != "resources/list" && !named(value) {
					t.Fatalf("%s: %q goes on as %q, in which there is %s", method, value, v.Value, f)
				}
			}
		}
	})
}

// named reports whether there is something in the name of a member, or under one whose value stays as it is.
func named(value string) bool {
	var v any
	json.Unmarshal([]byte(value), &v)
	var look func(v any) bool
	look = func(v any) bool {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				if look(e) {
					return true
				}
			}
		case map[string]any:
			for name, e := range v {
				s, _ := e.(string)
				if unseen.Any(name) || unseen.Any(s) && strings.Contains(" uri mimeType type resultType nextCursor ", " "+name+" ") || look(e) {
					return true
				}
				if strings.Contains(" uri mimeType type resultType nextCursor ", " "+name+" ") {
					return true // the texts of a list behind it go by its name
				}
			}
		}
		return false
	}
	return look(v)
}

func BenchmarkCheck(b *testing.B) {
	structured := `{"files":[` + strings.Repeat(`{"name":"main.go","size":1234,"dir":false},`, 9) + `{"name":"x","size":1,"dir":true}]}`
	both, _ := json.Marshal(structured)
	for _, bb := range []struct{ name, value string }{
		{"text 1 KB", text(strings.Repeat("The quick brown fox jumps over it.\n", 28))},
		{"text 1 MB", text(strings.Repeat("The quick brown fox jumps over it.\n", 30_000))},
		{"structured 1 KB", `{"content":[{"type":"text","text":` + string(both) + `}],"structuredContent":` + structured + `}`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			c := results.New(results.Options{Actions: results.Defaults()})
			c.Learn("", []byte(`{"tools":[{"name":"a","outputSchema":{"type":"object","properties":{"files":{"type":"array","items":{"type":"object",
				"properties":{"name":{"type":"string"},"size":{"type":"integer"},"dir":{"type":"boolean"}},"required":["name","size"]}}}}}]}`))
			r := results.Result{Method: "tools/call", Tool: "b", Value: []byte(bb.value), Outside: outside}
			if strings.HasPrefix(bb.name, "structured") {
				r.Tool = "a"
			}
			if v := c.Check(r); len(v.Findings) > 0 {
				b.Fatalf("finds %s", found(v))
			}
			b.SetBytes(int64(len(bb.value)))
			b.ReportAllocs()
			for b.Loop() {
				c.Check(r)
			}
		})
	}
}
