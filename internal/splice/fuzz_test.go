package splice

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
)

// decode reads a text with decoders that are not ours.
func decode(t *testing.T, d *Doc) any {
	t.Helper()
	var out any
	if d.format == TOML {
		m := map[string]any{}
		if err := toml.Unmarshal(d.text, &m); err != nil {
			t.Fatalf("the decoder refuses what was parsed: %v\n%s", err, d.text)
		}
		return m
	}
	plain, err := hujson.Standardize(append(slices.Clone(d.text), '\n'))
	if err != nil {
		t.Fatalf("the decoder refuses what was parsed: %v\n%s", err, d.text)
	}
	dec := json.NewDecoder(strings.NewReader(string(plain)))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil {
		t.Fatalf("the decoder refuses what was parsed: %v\n%s", err, d.text)
	}
	return out
}

// places lists every path of a tree.
func places(v *Value) []Path {
	list := []Path{nil}
	for i, item := range v.Items {
		for _, p := range places(item) {
			list = append(list, Path{i}.join(p...))
		}
	}
	for _, m := range v.Members {
		for _, p := range places(m.Value) {
			list = append(list, Path{m.Name}.join(p...))
		}
	}
	return list
}

// without returns a decoded value with what is at p taken out, and for an array the positions behind it moved up.
func without(v any, p Path) any {
	switch step := p[0].(type) {
	case string:
		m := maps.Clone(v.(map[string]any))
		if len(p) == 1 {
			delete(m, step)
		} else {
			m[step] = without(m[step], p[1:])
		}
		return m
	case int:
		a := slices.Clone(v.([]any))
		if len(p) == 1 {
			return slices.Delete(a, step, step+1)
		}
		a[step] = without(a[step], p[1:])
		return a
	}
	panic("bug: a step is neither name nor position")
}

var equalNaN = cmp.Comparer(func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) })

var emptyLines = regexp.MustCompile(`([\[{])\s*\n\s*([\]}])`)

func FuzzEdit(f *testing.F) {
	for _, text := range []string{
		"{\n  // one\n  \"a\": [1, 2, /* x */ 3],\n  \"b\": {\"c\": null, \"d\": []},\n}\n",
		"[ // c\n  1, 2]", "[1 // one\n, 2 ]", "{\"a\":{}}", "[ ]", "{ /* c */ }", "\ufeff{\r\n\t\"a\": \"\\ud800\"\r\n}", "[[],[\n],{}]",
		"{\n\"0\": {},} ", "[ // \n0 ]", "[1 // one\n,\r2]",
	} {
		f.Add(text, uint8(JSONC), uint16(0), uint8(0), uint8(0))
		f.Add(text, uint8(JSONC), uint16(3), uint8(1), uint8(2))
	}
	for _, text := range []string{
		"# top\n\na = 1 # one\nb.c.d = 2\nb.c.e = [ 1,\n # x\n 2, ] # y\n\n# about t\n[t]\nx = { y = 1, z.a = 2, z.b = [] }\n# tail\n\n[t.sub]\n",
		"[[r]]\nn = 1\n\n[r.s]\nx = '''\n# no\n'''\n[[r.s.u]]\n\n[[r]]\nn = 2\n# end", "", "# only", "\r\n[a]\r\nx = 1979-05-27 07:32:00\r\n",
		"[a.b]\nx = inf\n\n\n[a]\ny = nan", "a = 1\n  \n[b]\n \t[c] # c\n   d = \"\"\n", "x = {}\ny = [ ]\n", "roots = [\n  { path = '/a' }, # a\n]",
	} {
		f.Add(text, uint8(TOML), uint16(0), uint8(0), uint8(0))
		f.Add(text, uint8(TOML), uint16(3), uint8(1), uint8(2))
	}
	values := []*Value{
		String("x"), Bool(true), Array(), Strings("a", `b\c`), Object(), Object(Member{Name: "k", Value: String("v")}),
		Array(Object(Member{Name: "k.k", Value: Strings("v")}), Object()),
		Object(Member{Name: "in", Value: Object(Member{Name: "a", Value: Array(Array())})}),
	}
	f.Fuzz(func(t *testing.T, text string, format uint8, place uint16, position, which uint8) {
		if len(text) > 1<<12 {
			return
		}
		d, err := Parse([]byte(text), Format(format%3)+1)
		if err != nil {
			return
		}
		if got := string(d.Bytes()); got != text {
			t.Fatalf("Bytes changed the text:\n%q\n%q", text, got)
		}
		before := decode(t, d)
		all := places(d.root)
		p := all[int(place)%len(all)]
		target, ok := d.Find(p)
		if !ok {
			t.Fatalf("%s is not found", p)
		}
		refused := func(err error) bool {
			if err != nil && strings.Contains(err.Error(), "bug: ") {
				t.Fatalf("at %s in\n%q\n%v", p, text, err)
			}
			return err != nil
		}

		if len(p) > 0 {
			if next, err := d.Delete(p); !refused(err) {
				want, got := without(before, p), decode(t, next)
				// What existed only to hold it may be gone: so it must be empty where it still is.
				for q := p[:len(p)-1]; len(q) > 0; q = q[:len(q)-1] {
					if _, still := next.Find(q); !still {
						want = without(want, q)
					}
				}
				if diff := cmp.Diff(want, got, equalNaN); diff != "" {
					t.Fatalf("Delete(%s) changed others (-want +got):\n%s", p, diff)
				}
			}
		}

		value := values[int(which)%len(values)]
		var at Path
		switch target.Kind {
		case ObjectKind:
			name := "new"
			for target.index(name) >= 0 {
				name += "."
			}
			at = p.join(name)
		case ArrayKind:
			at = p.join(int(position) % (len(target.Items) + 1))
		default:
			next, err := d.Replace(p, value)
			if refused(err) {
				t.Fatalf("Replace(%s) in %q: %v", p, text, err)
			}
			if diff := cmp.Diff(wipe(before, p), wipe(decode(t, next), p), equalNaN); diff != "" {
				t.Fatalf("Replace(%s) changed others (-want +got):\n%s", p, diff)
			}
			return
		}
		next, err := d.Insert(at, value)
		if refused(err) {
			return
		}
		if got, ok := next.Find(at); !ok || !got.Equal(value) {
			t.Fatalf("Insert(%s) in %q made %q", at, text, next.text)
		}
		if diff := cmp.Diff(before, without(decode(t, next), at), equalNaN); diff != "" {
			t.Fatalf("Insert(%s) changed others (-want +got):\n%s", at, diff)
		}
		back, err := next.Delete(at)
		if err != nil {
			t.Fatalf("Delete(%s) of what Insert made of %q: %v", at, text, err)
		}
		if got, want := string(back.Bytes()), text; got != want &&
			emptyLines.ReplaceAllString(got, "$1$2") != emptyLines.ReplaceAllString(want, "$1$2") {
			t.Fatalf("Insert(%s) and Delete:\nfrom %q\nover %q\nto   %q", at, want, next.Bytes(), got)
		}
	})
}

// wipe is without for a value that is replaced: it leaves the name.
func wipe(v any, p Path) any {
	if len(p) == 0 {
		return nil
	}
	switch step := p[0].(type) {
	case string:
		m := maps.Clone(v.(map[string]any))
		m[step] = wipe(m[step], p[1:])
		return m
	case int:
		a := slices.Clone(v.([]any))
		a[step] = wipe(a[step], p[1:])
		return a
	}
	panic("bug: a step is neither name nor position")
}

func FuzzParse(f *testing.F) {
	f.Add("{\"a\": 1}", uint8(0))
	f.Add("a.b = [{c = 1}]\n[d]\n[[e]]", uint8(2))
	f.Add("[{\"a\":[]},{\"\\u0041\":1,\"A\":2}]//", uint8(1))
	f.Fuzz(func(t *testing.T, text string, format uint8) {
		d, err := Parse([]byte(text), Format(format%3)+1)
		if err != nil {
			if e, ok := err.(*Error); !ok || e.Pos.Line < 1 || e.Pos.Column < 1 {
				t.Fatalf("an error without a place: %#v", err)
			}
			return
		}
		if diff := cmp.Diff(decode(t, d), plain(t, d.root, decode(t, d)), equalNaN); diff != "" {
			t.Fatalf("the tree differs from what the decoder reads (-decoder +tree):\n%s", diff)
		}
	})
}

// plain makes of a tree what the decoder would, taking the decoder's word only for numbers and dates.
func plain(t *testing.T, v *Value, like any) any {
	switch v.Kind {
	case ObjectKind:
		m := map[string]any{}
		other, _ := like.(map[string]any)
		for _, member := range v.Members {
			m[member.Name] = plain(t, member.Value, other[member.Name])
		}
		return m
	case ArrayKind:
		list := []any{}
		other, _ := like.([]any)
		for i, item := range v.Items {
			if i >= len(other) {
				t.Fatalf("an array has %d items, the decoder reads %d", len(v.Items), len(other))
			}
			list = append(list, plain(t, item, other[i]))
		}
		return list
	case StringKind:
		return v.Text
	case BoolKind:
		return v.Text == "true"
	case NullKind:
		return nil
	}
	return like
}
