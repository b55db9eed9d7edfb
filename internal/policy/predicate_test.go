package policy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rootbound/rootbound/roots"
)

func regex(t testing.TB, text string) *Regex {
	t.Helper()
	r, err := ParseRegex(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func pathGlob(t testing.TB, text string) PathGlob {
	t.Helper()
	g, err := parsePathGlob(text, false)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func hosts(t testing.TB, list ...string) []Host {
	t.Helper()
	var out []Host
	for _, text := range list {
		h, err := ParseHost(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, h)
	}
	return out
}

// leads is an argument that leads to a path, in the root /srv.
func leads(arg, path string) Path {
	return Path{Arg: arg, Resolved: path, Root: "/srv", Rel: strings.TrimPrefix(path, "/srv/"), Need: roots.Read}
}

func TestPredicate(t *testing.T) {
	n := func(i int) *int { return &i }
	under := Predicate{PathUnder: []string{"/srv/a", "/srv/b"}}
	for _, tt := range []struct {
		p     Predicate
		args  string
		paths []Path
		want  truth
	}{
		// Presence.
		{Predicate{Any: true}, `{"a": null}`, nil, all},
		{Predicate{Any: true}, `{"b": {"a": 1}}`, nil, all}, // at any depth
		{Predicate{Any: true}, `{"b": 1}`, nil, none},
		{Predicate{Any: true}, ``, nil, none},
		{Predicate{Any: true}, `{"A": 1}`, nil, some}, // some decoders take it
		{Predicate{Absent: true}, `{}`, nil, all},
		{Predicate{Absent: true}, `{"a": null}`, nil, none},
		{Predicate{Absent: true}, `{"A": 1}`, nil, some},

		// Text.
		{Predicate{Regex: regex(t, "x|y+")}, `{"a": "yy"}`, nil, all},
		{Predicate{Regex: regex(t, "x|y+")}, `{"a": "xy"}`, nil, none}, // the whole of it
		{Predicate{Regex: regex(t, ".*")}, `{"a": "x\ny"}`, nil, all},
		{Predicate{Regex: regex(t, "1")}, `{"a": 1}`, nil, some}, // a server may make a text of it
		{Predicate{Regex: regex(t, "x")}, `{"a": ["x", "x"]}`, nil, all},
		{Predicate{Regex: regex(t, "x")}, `{"a": ["x", "y"]}`, nil, some},
		{Predicate{Regex: regex(t, "x")}, `{"a": ["y", ["z"]]}`, nil, none},
		{Predicate{Regex: regex(t, "x")}, `{"a": []}`, nil, some},
		{Predicate{Regex: regex(t, "x")}, `{"a": "x", "b": {"a": "y"}}`, nil, some},
		{Predicate{Regex: regex(t, "x")}, `{"a": "x", "A": "x"}`, nil, some},
		{Predicate{Regex: regex(t, "x")}, `{"\u0061": "\u0078"}`, nil, all}, // decoded
		{Predicate{Not: &Predicate{Regex: regex(t, "x")}}, `{"a": "y"}`, nil, all},
		{Predicate{Not: &Predicate{Regex: regex(t, "x")}}, `{"a": ["x", "y"]}`, nil, some},
		{Predicate{Not: &Predicate{Regex: regex(t, "x")}}, `{}`, nil, none},
		{Predicate{MaxBytes: n(3)}, `{"a": "\u00e9x"}`, nil, all},
		{Predicate{MaxBytes: n(2)}, `{"a": "\u00e9x"}`, nil, none},
		{Predicate{MaxBytes: n(5)}, `{"a": [1,2]}`, nil, all},
		{Predicate{MaxBytes: n(4)}, `{"a": [1,2]}`, nil, none},
		{Predicate{Not: &Predicate{MaxBytes: n(2)}}, `{"a": "xyz"}`, nil, all},

		// Values.
		{Predicate{OneOf: []Value{{"x", false}, {"1", true}, {"true", true}}}, `{"a": "x"}`, nil, all},
		{Predicate{OneOf: []Value{{"x", false}, {"1", true}}}, `{"a": 1}`, nil, all},
		{Predicate{OneOf: []Value{{"x", false}, {"1", true}}}, `{"a": 1.0}`, nil, some},
		{Predicate{OneOf: []Value{{"x", false}, {"1", true}}}, `{"a": "1"}`, nil, some},
		{Predicate{OneOf: []Value{{"true", true}}}, `{"a": true}`, nil, all},
		{Predicate{OneOf: []Value{{"true", true}}}, `{"a": "true"}`, nil, some},
		{Predicate{OneOf: []Value{{"x", false}}}, `{"a": "X"}`, nil, none},
		{Predicate{OneOf: []Value{{"x", false}}}, `{"a": {"x": 1}}`, nil, none},
		{Predicate{OneOf: []Value{{"1", true}}}, `{"a": 1e99999999}`, nil, none}, // and no time is spent on it
		{Predicate{OneOf: []Value{{"9007199254740993", true}}}, `{"a": 9007199254740992}`, nil, some},

		// Paths.
		{under, `{"a": "x"}`, []Path{leads("/a", "/srv/a/x")}, all},
		{under, `{"a": "x"}`, []Path{leads("/a", "/srv/a")}, all},
		{under, `{"a": "x"}`, []Path{leads("/a", "/srv/ab/x")}, none},
		{under, `{"a": "x"}`, []Path{leads("/a", "/srv")}, none},
		{under, `{"a": "x"}`, nil, some}, // it was not resolved
		{under, `{"a": "x"}`, []Path{leads("/b", "/srv/a/x")}, some},
		{under, `{"a": "x"}`, []Path{leads("/a", "/srv/a/x"), leads("/a", "/srv/c/x")}, some},
		{under, `{"a": ["x", "y"]}`, []Path{leads("/a/0", "/srv/a/x"), leads("/a/1", "/srv/b/x")}, all},
		{under, `{"a": ["x", "y"]}`, []Path{leads("/a/0", "/srv/a/x"), leads("/a/1", "/srv/c/x")}, some},
		{under, `{"a": "x"}`, []Path{{Arg: "/a", Resolved: "/srv", Root: "/srv", Need: roots.Delete}}, some}, // with what is in it
		{Predicate{Not: &under}, `{"a": "x"}`, []Path{leads("/a", "/srv/c")}, all},
		{Predicate{Not: &under}, `{"a": "x"}`, nil, some},
		{Predicate{PathGlob: []PathGlob{pathGlob(t, "**/*.go")}}, `{"a": "x"}`, []Path{leads("/a", "/srv/x/y.go")}, all},
		{Predicate{PathGlob: []PathGlob{pathGlob(t, "/srv/x/*")}}, `{"a": "x"}`, []Path{leads("/a", "/srv/x/y.go")}, all},
		{Predicate{PathGlob: []PathGlob{pathGlob(t, "*")}}, `{"a": "x"}`, []Path{leads("/a", "/srv/x/y.go")}, none},

		// Hosts.
		{Predicate{URLHost: hosts(t, "example.com")}, `{"a": "https://example.com/x"}`, nil, all},
		{Predicate{URLHost: hosts(t, "example.com")}, `{"a": 1}`, nil, some},
	} {
		e := &evaluation{call: &Call{Args: []byte(tt.args), Paths: tt.paths}}
		if got := e.argument(&Arg{Name: "a", Predicate: tt.p}); got != tt.want {
			t.Errorf("%s of %s, %v: got %v, want %v", &tt.p, tt.args, tt.paths, got, tt.want)
		}
	}
}

func TestArgumentNames(t *testing.T) {
	args := `{"edits": [{"text": "x", "at": {"text": "y"}}, {"text": "x"}], "a/b": "x", "Edits": [{"text": "z"}]}`
	for name, want := range map[string]truth{
		"/edits/*/text": some, "/edits/0/text": some, "/edits/1/at/text": none, "/edits/0/at/text": none, "text": some, "a~1b": all,
		"/a~1b": all, "/*/0/text": some, "/nothing": none,
	} {
		e := &evaluation{call: &Call{Args: []byte(args)}}
		if got := e.argument(&Arg{Name: name, Predicate: Predicate{OneOf: []Value{{"x", false}}}}); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	for name, ok := range map[string]bool{"a": true, "/a": true, "/a/*/b": true, "": false, "/": false, "a/b": false, "/a//b": false, "//": false} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
	}
	deep := strings.Repeat(`{"a":`, maxDepth+2) + "1" + strings.Repeat("}", maxDepth+2)
	e := &evaluation{call: &Call{Args: []byte(deep)}}
	if got := e.argument(&Arg{Name: "b", Predicate: Predicate{Absent: true}}); got != some {
		t.Errorf("what is too deep to be seen: got %v, want %v", got, some)
	}
}

// A URL that two readers may understand differently is neither on a host nor not.
func TestHosts(t *testing.T) {
	list := hosts(t, "example.com", "*.example.org", "api.example.net:8443", "127.0.0.1", "[::1]", "[2001:0db8:0::2]", "tls.example.net:0443")
	for text, want := range map[string]truth{
		"https://example.com":                     all,
		"HTTPS://EXAMPLE.COM./x?y#z":              all,
		"https://example.com:444/":                all,
		"wss://a.example.org/":                    all,
		"https://a.b.example.org":                 all,
		"https://example.org":                     none,
		"https://badexample.org":                  none,
		"https://example.com.evil.net":            none,
		"https://api.example.net:8443":            all,
		"https://api.example.net":                 none,
		"http://127.0.0.1:80/":                    all,
		"http://[::1]/":                           all,
		"http://[0:0::1]/":                        all,
		"http://[2001:db8::2]/":                   all,
		"http://[::ffff:127.0.0.1]/":              all, // who connects there reaches the other
		"https://tls.example.net/":                all,
		"https://tls.example.net:00443/":          all,
		"https://tls.example.net:444/":            none,
		"https://tls.example.net:70000/":          some, // no such port: what a reader makes of it is not known
		"odd://tls.example.net/":                  some, // nor which port this one is
		"https:///example.com/":                   some, // browsers find a host there
		"https:////evil.net/":                     some,
		"https://evil.net/?u=https://example.com": none,
		"file:///etc/passwd":                      none,
		"example.com/x":                           some,
		"evil.net/x":                              none,
		"https://good@example.com":                some,
		"https://example.com@evil.net":            some,
		`https://evil.net\@example.com`:           some,
		"https://evil.net\t.example.com":          some,
		" https://evil.net":                       some,
		"https:example.com":                       some,
		"https:/example.com":                      some,
		"//example.com":                           some,
		"/example.com":                            some,
		"https://ex%61mple.com":                   some,
		"https://exämple.com":                     some,
		"http://2130706433/":                      some,
		"http://0177.0.0.1/":                      some,
		"http://127.1/":                           some,
		"http://0x7f000001/":                      some,
		"https://":                                none,
		"":                                        none,
		"no url at all":                           some,
		"https:///example.com":                    some,
		"HTTP:////example.com/":                   some,
		"example.com://evil.net":                  some,
		"example.com/?u=https://evil.net":         some,
		"evil.net/?u=https://example.com":         none,
	} {
		if got := locate(text).on(list); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"", "https://a", "a/b", "a b", "*", "*.", "a@b", "exämple.com", "a:b", "*.a:b", "a?b", "0177.1", "2130706433", "a.test:70000"} {
		if h, err := ParseHost(text); err == nil {
			t.Errorf("ParseHost(%q) = %+v", text, h)
		}
	}
}

// A text is an address of a host, one that readers understand differently, one to some, or none.
func TestHostOf(t *testing.T) {
	type is struct {
		host string
		how  Addressed
	}
	for text, want := range map[string]is{
		"https://Example.com./x":            {"example.com", Certain},
		" https://example.com:8443":         {"example.com:8443", Certain},
		"ht\ntps://example.com":             {"example.com", Certain},
		"http://[0:0::1]:80/":               {"[::1]:80", Certain},
		"ssh://example.com":                 {"example.com", Certain},
		`https://good.example\@evil.net`:    {"", Unclear},
		"https:evil.net":                    {"", Unclear},
		"https:/evil.net":                   {"", Unclear},
		"https:///evil.net":                 {"", Unclear},
		"//evil.net":                        {"", Unclear},
		`\\evil.net\share`:                  {"", Unclear},
		"https://user@evil.net":             {"", Unclear},
		"https://evil.net/a b":              {"", Unclear},
		"evil.net/x":                        {"evil.net", Perhaps},
		"evil.net/?u=https://good.example":  {"evil.net", Perhaps},
		"localhost":                         {"localhost", Perhaps},
		"intranet:8080":                     {"intranet:8080", Perhaps},
		"README.md":                         {"readme.md", Perhaps},
		"file:///etc/passwd":                {"", NoAddress},
		"/etc/passwd":                       {"", NoAddress},
		`C:\x`:                              {"", NoAddress},
		"word":                              {"", NoAddress},
		"see https://example.com, or don't": {"", NoAddress},
		"mailto:a@example.com":              {"", NoAddress},
		"":                                  {"", NoAddress},
	} {
		if host, how := HostOf(text); host != want.host || how != want.how {
			t.Errorf("%q: got %q, %v, want %+v", text, host, how, want)
		}
	}
}

func TestGlobs(t *testing.T) {
	for _, tt := range []struct {
		glob, name string
		want       bool
	}{
		{"", "x", true}, {"*", "", true}, {"a", "a", true}, {"a", "ab", false}, {"a*", "a", true}, {"*_file", "write_file", true},
		{"a?c", "aéc", true}, {"a?c", "ac", false}, {"*a*b*", "xxaxxbxx", true}, {"*a*b", "ba", false}, {"é*", "éa", true},
		{"a[b]", "a[b]", true}, {"?", "é", true}, {"*é", "éé", true},
	} {
		if got := Glob(tt.glob).Match(tt.name); got != tt.want {
			t.Errorf("%q matches %q: %v", tt.glob, tt.name, got)
		}
	}
	slow := Glob(strings.Repeat("a*", 200) + "b")
	if slow.Match(strings.Repeat("a", 20_000)) {
		t.Error("a glob matches what it is not like")
	}
	for _, tt := range []struct {
		glob, path string
		want       bool
	}{
		{"*.go", "x.go", true}, {"*.go", "a/x.go", false}, {"**/*.go", "x.go", true}, {"**/*.go", "a/b/x.go", true}, {"a/**", "a", true},
		{"a/**", "a/b/c", true}, {"a/**", "ab", false}, {"a/**/z", "a/z", true}, {"a/**/z", "a/b/c/z", true}, {"a/**/z", "az", false},
		{"**", "anything/at/all", true}, {"{a,b}/*", "b/x", true}, {"{a,b}/*", "c/x", false}, {"[a-c]x", "bx", true}, {"[!a-c]x", "bx", false},
		{"[!a]x", "/x", false}, {"a.b", "axb", false}, {"(a|b)", "a", false}, {"[*]", "*", true}, {"?", "é", true}, {".", ".", true},
		{"x\ny", "x\ny", true}, {"*", "x\ny", true},
	} {
		if got := pathGlob(t, tt.glob).match(&Path{Rel: tt.path}); got != tt.want {
			t.Errorf("%q matches %q: %v", tt.glob, tt.path, got)
		}
	}
	for _, text := range []string{"", "a**", "**b", "{a", "[a", "[]", "[!]", "[a/b]", `a\b`, "[z-a]", "a/**b/c"} {
		if g, err := parsePathGlob(text, false); err == nil {
			t.Errorf("%q is taken as %v", text, g.re)
		}
	}
	if g, err := parsePathGlob(`C:\Src\**\*.GO`, true); err != nil || !g.absolute || !g.match(&Path{Resolved: `c:\src\a\x.go`}) {
		t.Errorf("where letter case does not count: %+v, %v", g, err)
	}
}

// Rules that mean something together, for the properties.
func someRules(t testing.TB) []*Rule {
	two := 2
	var list []*Rule
	for _, tool := range []Glob{"", "a", "a*", "*b"} {
		for _, p := range []Predicate{
			{}, {Any: true}, {Absent: true}, {Regex: regex(t, "x+")}, {Regex: regex(t, ".*")}, {OneOf: []Value{{"x", false}, {"xx", false}}},
			{OneOf: []Value{{"x", false}}}, {MaxBytes: &two}, {Not: &Predicate{Regex: regex(t, "x+")}}, {PathUnder: []string{"/srv"}}, {PathUnder: []string{"/srv/a"}},
			{PathGlob: []PathGlob{pathGlob(t, "a/**")}}, {URLHost: hosts(t, "*.example.com")}, {URLHost: hosts(t, "a.example.com", "b.example.com")},
			{URLHost: hosts(t, "a.example.com:443")}, {Regex: regex(t, "x+"), MaxBytes: &two},
		} {
			for _, effects := range []Effects{0, Of(Write), Of(Write, Delete)} {
				r := &Rule{Tool: tool, Effects: effects}
				if fmt.Sprint(&p) != "" {
					r.Args = []Arg{{Name: "p", Predicate: p}}
				}
				list = append(list, r)
			}
		}
	}
	return list
}

func someCalls() []Call {
	var list []Call
	for _, tool := range []string{"a", "ab", "b", "c"} {
		for _, e := range []Effect{Unknown, Read, Write, Delete} {
			for _, v := range []string{
				`"x"`, `"xx"`, `"xxx"`, `""`, `1`, `["x","y"]`, `[]`, `"https://a.example.com/"`, `"https://example.com"`, `"a.example.com"`, `null`, `{"p":"x"}`,
			} {
				for _, name := range []string{"p", "P", "q"} {
					for _, paths := range [][]Path{nil, {leads("/p", "/srv/a/x")}, {leads("/p", "/srv/b")}, {leads("/p", "/srv/a"), leads("/p", "/srv/b")}} {
						list = append(list, Call{Tool: tool, Effect: e, Args: []byte(`{"` + name + `":` + v + `}`), Paths: paths})
					}
				}
			}
		}
	}
	return list
}

// A rule that allows is for no call that the same rule would not be for if it denied; and one that covers another is for
// every call that the other is for.
func TestProperties(t *testing.T) {
	rules, calls := someRules(t), someCalls()
	applies := func(r *Rule, v Verdict, c *Call) bool {
		with := *r
		with.Verdict = v
		return with.matches(c.Server, c.Tool) && with.applies(&evaluation{call: c})
	}
	type is struct{ deny, allow bool }
	table := make([][]is, len(rules))
	for i, r := range rules {
		for j := range calls {
			c := &calls[j]
			now := is{applies(r, Deny, c), applies(r, Allow, c)}
			if now.allow && !now.deny {
				t.Fatalf("%v allows and does not deny %+v", r, c)
			}
			table[i] = append(table[i], now)
		}
	}
	covered := 0
	for i, a := range rules {
		for k, b := range rules {
			if i == k || !a.covers(b) {
				continue
			}
			covered++
			for j := range calls {
				if table[k][j].allow && !table[i][j].allow || table[k][j].deny && !table[i][j].deny {
					t.Fatalf("%v covers %v, and is not for %s %s %v", a, b, calls[j].Tool, calls[j].Args, calls[j].Paths)
				}
			}
		}
	}
	if covered < 100 {
		t.Errorf("only %d pairs cover each other", covered)
	}
}

// Whatever the arguments are, a decision is made, and the same one again.
func FuzzDecide(f *testing.F) {
	for _, args := range []string{`{"p":"x"}`, `{"p":["x",{"p":1}]}`, `{"P":"https://a.example.com"}`, `{`, `[]`, `{"p":"\ud800"}`, "{\"p\":\"\x00\"}", `{"p":1e400}`} {
		f.Add("a", args, "/srv/a")
	}
	rules := someRules(f)
	for i, r := range rules {
		r.Verdict, r.At = Verdict(i%3), fmt.Sprint(i)
	}
	p := New(Layers{Rules: rules[:len(rules)/2], Lower: rules[len(rules)/2:]})
	f.Fuzz(func(t *testing.T, tool, args, path string) {
		c := Call{Tool: tool, Args: []byte(args), Effect: Effect(len(args) % 4), Paths: []Path{leads("/p", path)}}
		d := p.Explain(c)
		if d.Reason == "" || d.Rule == "" {
			t.Errorf("a decision without a reason: %+v", d)
		}
		if again := p.Decide(c); again.Verdict != d.Verdict || again.Rule != d.Rule {
			t.Errorf("%+v, and then %+v", d, again)
		}
	})
}

// Many rules are not looked at one after the other, and decide as if they were.
func TestIndex(t *testing.T) {
	rules := someRules(t)
	for i := range 40 { // some that are found by what a call has, among them numbers
		for j, p := range []Predicate{
			{OneOf: []Value{{fmt.Sprint(i), i%2 == 0}, {"x" + fmt.Sprint(i), false}}}, {PathUnder: []string{fmt.Sprintf("/srv/%c", 'a'+i%3)}},
			{URLHost: hosts(t, fmt.Sprintf("%c.example.com", 'a'+i%26))},
		} {
			rules = append(rules, &Rule{Args: []Arg{{Name: []string{"p", "/p"}[i%2], Predicate: p}}, Effects: Of(Effect(1 + (i+j)%3))})
		}
	}
	calls := append(someCalls(), Call{Tool: "c", Effect: Delete, Args: []byte(`{"p":"x"}`), Paths: []Path{{Arg: "/p", Resolved: "/srv", Root: "/srv", Need: roots.Delete}}})
	for _, v := range []string{`"3"`, `3`, `3.0`, `"x7"`, `"3e0"`, `"https://c.example.com:8443"`} {
		calls = append(calls, Call{Tool: "c", Effect: Write, Args: []byte(`{"p":` + v + `}`)}, Call{Tool: "c", Effect: Read, Args: []byte(`{"p":[` + v + `]}`)})
	}
	random := rand.New(rand.NewPCG(1, 2))
	decided := 0
	for range 30 {
		var some []*Rule
		for i, r := range rules {
			if random.IntN(4) == 0 && len(r.Args) > 0 {
				r := *r
				r.At, r.Verdict = fmt.Sprint(i), Verdict(random.IntN(3))
				some = append(some, &r)
			}
		}
		p := New(Layers{Rules: some})
		for i := range calls {
			c := calls[i]
			var want *Rule
			for v := Deny; v <= Allow && want == nil; v++ {
				for _, r := range some {
					if r.Verdict == v && r.matches(c.Server, c.Tool) && r.applies(&evaluation{call: &c}) {
						want = r
						break
					}
				}
			}
			got := p.Decide(c)
			switch {
			case want == nil && got.Rule != "no rule", want != nil && got.Rule != want.At:
				t.Fatalf("%s %s %v: decided by %q, want %v", c.Tool, c.Args, c.Paths, got.Rule, want)
			case want != nil:
				decided++
			}
		}
	}
	if decided < 1000 {
		t.Errorf("only %d calls were decided by a rule", decided)
	}
}
