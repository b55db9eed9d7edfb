package splice

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func TestPrependAndChop(t *testing.T) {
	for _, c := range []struct {
		format      Format
		text, front string // with "a" as the name of the array; what is made by putting "x" and "y" in front
	}{
		{JSON, `{"a":["1","2"]}`, `{"a":["x","y","1","2"]}`},
		{JSON, `{"a": [ "1" ]}`, `{"a": [ "x", "y", "1" ]}`},
		{JSON, `{"a": []}`, `{"a": ["x", "y"]}`},
		{JSON, "{\"a\": [\n\t\"1\"\n]}", "{\"a\": [\n\t\"x\",\n\t\"y\",\n\t\"1\"\n]}"},
		{JSON, "{\"a\": [\r\n  \"1\",\r\n  2]}", "{\"a\": [\r\n  \"x\",\r\n  \"y\",\r\n  \"1\",\r\n  2]}"},
		{JSON, "{\"a\": [\n\n]}", "{\"a\": [\"x\", \"y\"\n\n]}"},
		{JSONC, "{\"a\": [ // one\n \"1\", ]}", "{\"a\": [ // one\n \"x\", \"y\", \"1\", ]}"},
		{JSONC, "{\"a\": [ /* none */ ]}", "{\"a\": [\"x\", \"y\" /* none */ ]}"},
		{TOML, "a = [\n  # one\n  '1', # two\n]\n", "a = [\n  # one\n  \"x\", \"y\", '1', # two\n]\n"},
		{TOML, "a = []", "a = [\"x\", \"y\"]"},
		{YAML, "a: [1, 2] # c", "a: [\"x\", \"y\", 1, 2] # c"},
		{YAML, "a: []\n", "a: [\"x\", \"y\"]\n"},
		{YAML, "a:\n- 1\n- 2\n", "a:\n- \"x\"\n- \"y\"\n- 1\n- 2\n"},
		{YAML, "a:\n   -   1\n   # c\n   - |\n     2\n", "a:\n   -   \"x\"\n   -   \"y\"\n   -   1\n   # c\n   - |\n     2\n"},
		{YAML, "a:\r\n  - b: 1\r\n    c: 2\r\n", "a:\r\n  - \"x\"\r\n  - \"y\"\r\n  - b: 1\r\n    c: 2\r\n"},
	} {
		d, err := Parse([]byte(c.text), c.format)
		if err != nil {
			t.Fatalf("%q: %v", c.text, err)
		}
		front, err := d.Prepend(Path{"a"}, String("x"), String("y"))
		if err != nil {
			t.Errorf("Prepend to %q: %v", c.text, err)
			continue
		}
		if got := string(front.Bytes()); got != c.front {
			t.Errorf("Prepend to\n%q made\n%q, want\n%q", c.text, got, c.front)
		}
		back, err := front.Chop(Path{"a"}, 2)
		if err != nil {
			t.Errorf("Chop from %q: %v", c.front, err)
			continue
		}
		if got := string(back.Bytes()); got != c.text {
			t.Errorf("Chop from\n%q made\n%q, want\n%q", c.front, got, c.text)
		}
	}
}

func TestChopAll(t *testing.T) {
	for _, c := range []struct {
		format     Format
		text, want string
	}{
		{JSON, "{\"a\": [\n  1,\n  2\n]}", `{"a": []}`},
		{JSONC, "{\"a\": [\n  1,\n  2,\n]}", `{"a": []}`},
		{JSONC, "{\"a\": [1, 2 , /* c */]}", "{\"a\": [ /* c */]}"},
		{YAML, "a:\n  - 1\n  - 2 # c\nb: 3\n", "a: [] # c\nb: 3\n"},
		{YAML, "a:\n- 1\n- 2\n", "a: []\n"},
	} {
		d, err := Parse([]byte(c.text), c.format)
		if err != nil {
			t.Fatalf("%q: %v", c.text, err)
		}
		got, err := d.Chop(Path{"a"}, 2)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
		} else if string(got.Bytes()) != c.want {
			t.Errorf("Chop from\n%q made\n%q, want\n%q", c.text, got.Bytes(), c.want)
		}
	}
}

func TestVerbatim(t *testing.T) {
	for _, c := range []struct {
		format     Format
		text, want string
	}{
		{JSON, `{"a":"\u0041\/","b":1}`, `{"a":"\u0041\/","b":"\u0041\/"}`},
		{TOML, "a = 'C:\\x'\nb = 1\n", "a = 'C:\\x'\nb = 'C:\\x'\n"},
		{YAML, "a: 'it''s' # c\nb: 1 # d\n", "a: 'it''s' # c\nb: 'it''s' # d\n"},
		{YAML, "a: plain text\nb: \"\\u0041\"\n", "a: plain text\nb: plain text\n"},
	} {
		d, err := Parse([]byte(c.text), c.format)
		if err != nil {
			t.Fatalf("%q: %v", c.text, err)
		}
		v, err := d.Verbatim(Path{"a"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Replace(Path{"b"}, v)
		if err != nil {
			t.Fatal(err)
		}
		if string(got.Bytes()) != c.want {
			t.Errorf("%q became %q, want %q", c.text, got.Bytes(), c.want)
		}
	}
}

func TestYAML(t *testing.T) {
	text := "b: &x\n  n: 1\n  s: ü # c\nm:\n  <<: *x\n  n: 2\nl: [*x, ~, yes, 0300, 1.5, true, 2001-01-01, '~']\n"
	d, err := Parse([]byte(text), YAML)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := d.Find(Path{"m", "s"}); v == nil || v.Text != "ü" || !v.Aliased() || v.Pos != (Pos{3, 6}) {
		t.Errorf("what a merge key brings in is %+v", v)
	}
	if v, _ := d.Find(Path{"m", "n"}); v.Text != "2" || v.Aliased() {
		t.Errorf("what is written beside a merge key is %+v", v)
	}
	l, _ := d.Find(Path{"l"})
	var kinds []string
	for _, item := range l.Items {
		kinds = append(kinds, item.Kind.String())
	}
	if got, want := strings.Join(kinds, ", "), "a table, null, a string, a number, a number, true or false, a date or time, a string"; got != want {
		t.Errorf("the kinds are %s, want %s", got, want)
	}
	if !l.Items[2].Unquoted() || l.Items[7].Unquoted() {
		t.Error("with and without quotes is not told apart")
	}
	// What stands for something else, or is stood for, is not edited in one place only.
	for _, p := range []Path{{"m", "s"}, {"b", "n"}, {"l", 0, "n"}} {
		next, err := d.Replace(p, String("z"))
		if p[0] == "b" {
			if err == nil || !strings.Contains(err.Error(), "more than that") {
				t.Errorf("Replace(%s) made %q, %v", p, next.Bytes(), err)
			}
		} else if err == nil || !strings.Contains(err.Error(), "anchor") {
			t.Errorf("Replace(%s): %v", p, err)
		}
	}
}

func TestYAMLFaults(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i < 'k'; i++ {
		prev := string(i - 1)
		bomb += string(i) + ": &" + string(i) + " [*" + prev + strings.Repeat(",*"+prev, 9) + "]\n"
	}
	for _, c := range []struct{ text, want string }{
		{"a: 1\na: 2\n", `2:1: "a" is given twice, first on line 1`},
		{"a: &x [*x]\n", "1:8: an alias stands for what it is in"},
		{bomb, "too many aliases"},
		{"a: 1\n---\nb: 2\n", "there is more than one document in this text"},
		{"a: 1\nb: \"C:\\Mine\"\n", "2:7: this is no escape of YAML"},
		{"? [a]\n: 1\n", "1:3: names have to be plain text here"},
		{"a: [\n", "1:1: did not find expected node content"},
	} {
		if _, err := Parse([]byte(c.text), YAML); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Parse(%.40q): %v, want %s", c.text, err, c.want)
		}
	}
}

func TestRead(t *testing.T) {
	text := "\ufeff{ // one\n \"a\": 1, /* two */ \"a\": [2,], }"
	v, faults := Read([]byte(text), JSON)
	var got []string
	for _, f := range faults {
		got = append(got, f.Error())
	}
	want := `1:1: the text begins with a byte order mark; 1:3: comments are not allowed here; 2:10: comments are not allowed here; ` +
		`2:20: "a" is given twice, first on line 2; 2:27: a trailing comma is not allowed here; 2:29: a trailing comma is not allowed here`
	if strings.Join(got, "; ") != want {
		t.Errorf("the faults are\n%s, want\n%s", strings.Join(got, "; "), want)
	}
	if a, ok := v.Get("a"); !ok || a.Kind != ArrayKind {
		t.Errorf("the last %q does not count: %+v", "a", a)
	}
	if _, faults := Read([]byte("{\n// one\n\"a\": [1,]}"), Commented); len(faults) != 1 || faults[0].Fault != TrailingComma {
		t.Errorf("the faults of JSON with comments are %v", faults)
	}
	if v, faults := Read([]byte("{\"a\": \"C:\\Mine\"}"), JSON); v != nil || len(faults) != 1 || faults[0].Fault != Escape {
		t.Errorf("a bad escape is %v %v", v, faults)
	}
	if _, faults := Read([]byte("[a]\n[a]\n"), TOML); len(faults) != 1 || faults[0].Fault != Twice {
		t.Errorf("a table that is given twice is %v", faults)
	}
}

func FuzzFront(f *testing.F) {
	for _, text := range []string{
		`{"a": ["1", {"b": []}], "c": "d"}`, "{ // c\n\"a\": [ // x\n\"1\", ], \"e\": \"\\u0041\" }", "a = [ 1, # x\n 2, ] # y\n[b]\nc = 'd'\n",
		"{\"\":[#/\n],}", "a:\n  - b\n  - c: [1, 2]\nd: 'x'\ne: {f: [], g: \"\\u0041\"}\n", "- - a\n  - b\n- &x c\n- *x\n", "a: # c\n- 1\n# d\n- |\n x\n",
	} {
		for format := range uint8(5) {
			f.Add(text, format, uint16(1))
			f.Add(text, format, uint16(2))
		}
	}
	f.Fuzz(func(t *testing.T, text string, format uint8, place uint16) {
		if len(text) > 1<<12 {
			return
		}
		d, err := Parse([]byte(text), Format(format%5)+1)
		if err != nil {
			if e, ok := err.(*Error); !ok || e.Pos.Line < 1 || e.Pos.Column < 1 {
				t.Fatalf("an error without a place: %#v", err)
			}
			return
		}
		if got := string(d.Bytes()); got != text {
			t.Fatalf("Bytes changed the text:\n%q\n%q", text, got)
		}
		all := places(d.root)
		p := all[int(place)%len(all)]
		v, _ := d.Find(p)
		check := func(doing string, err error) bool {
			if err != nil && strings.Contains(err.Error(), "bug: ") {
				t.Fatalf("%s %s in\n%q\n%v", doing, p, text, err)
			}
			return err == nil
		}
		switch v.Kind {
		case ArrayKind:
			next, err := d.Prepend(p, String("run"), String("--"))
			if !check("Prepend", err) {
				return
			}
			back, err := next.Chop(p, 2)
			if err != nil {
				t.Fatalf("Chop of what Prepend made of %q at %s: %v", text, p, err)
			}
			if got := string(back.Bytes()); got != text {
				t.Fatalf("Prepend and Chop at %s:\nfrom %q\nover %q\nto   %q", p, text, next.Bytes(), got)
			}
		case ObjectKind:
			if d.format != YAML {
				return // FuzzEdit
			}
			name := "args"
			for v.index(name) >= 0 {
				name += "."
			}
			next, err := d.Insert(p.join(name), Strings("run", "--"))
			if !check("Insert", err) {
				return
			}
			back, err := next.Delete(p.join(name))
			if err != nil {
				t.Fatalf("Delete of what Insert made of %q at %s: %v\n%q", text, p, err, next.Bytes())
			}
			if got := string(back.Bytes()); got != text {
				t.Fatalf("Insert and Delete at %s:\nfrom %q\nover %q\nto   %q", p, text, next.Bytes(), got)
			}
		case StringKind:
			raw, err := d.Verbatim(p)
			if err != nil {
				return
			}
			next, err := d.Replace(p, String("/opt/x"))
			if !check("Replace", err) {
				return
			}
			back, err := next.Replace(p, raw)
			if !check("Replace", err) || string(back.Bytes()) != text {
				t.Fatalf("Replace twice at %s:\nfrom %q\nover %q: %v", p, text, next.Bytes(), err)
			}
		}
	})
}

// The tree of a YAML text says what the decoder reads, with anchors and merge keys filled in.
func FuzzYAML(f *testing.F) {
	for _, text := range []string{
		"a: &x {b: 1, c: [~, yes, 0300]}\nd:\n  <<: *x\n  b: 2\ne: *x\n", "- |\n  a\n- 'b'\n- \"\\u0041\"\n- >-\n  c\n  d\n", "<<: {a: 1}\nb: {<<: [{c: 1}, {c: 2, d: 3}]}\n",
		"a: 1\n...\n", "%YAML 1.1\n---\na: !!str 1\n", "? a\n: b\n", "a:\n", "\ufeffa: 1\r\n", "{a: 1, ? b, c}", "a: \"x\\\n y\"\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		d, err := Parse([]byte(text), YAML)
		if err != nil {
			if e, ok := err.(*Error); !ok || e.Pos.Line < 1 || e.Pos.Column < 1 {
				t.Fatalf("an error without a place: %#v", err)
			}
			return
		}
		var like any
		if err := yaml.Unmarshal([]byte(text), &like); err != nil || !onlyNames(like) {
			return // it knows rules for values that do not bear on where they stand
		}
		if diff := cmp.Diff(like, plain(t, d.root, like), equalNaN); diff != "" {
			t.Fatalf("the tree of %q differs from what the decoder reads (-decoder +tree):\n%s", text, diff)
		}
		for _, p := range places(d.root) {
			if v, _ := d.Find(p); v.form == written && v.end >= 0 && (v.start < 0 || v.end > len(d.text) || v.start > v.end) {
				t.Fatalf("%s stands at %d to %d of %d", p, v.start, v.end, len(d.text))
			}
		}
	})
}

// onlyNames reports whether every name in what the decoder reads is text.
func onlyNames(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, item := range v {
			if !onlyNames(item) {
				return false
			}
		}
	case map[any]any:
		return false
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !onlyNames(item) })
	}
	return true
}
