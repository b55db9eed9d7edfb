package fsserver

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// What a pattern matches is what it matches in the reference server, except where the comment says so.
func TestGlob(t *testing.T) {
	paths := []string{
		"!c", "#hash", ".dot", ".hid", ".hid/in.txt", "[e]", "a(b)", "a.txt", "aaab", "aab", "ab", "b.js", `back\slash`, "empty", "f.TXT", "pl+us",
		"quest?", "sub", "sub/a.txt", "sub/deep", "sub/deep/b.txt", "sub/deep/x", "sub/deep/x/c.txt", "{d}", "é.txt",
	}
	all, top := strings.Join(paths, " "), "!c #hash .dot .hid [e] a(b) a.txt aaab aab ab b.js back\\slash empty f.TXT pl+us quest? sub {d} é.txt"
	const beneathSub = "sub/a.txt sub/deep sub/deep/b.txt sub/deep/x sub/deep/x/c.txt"
	for _, tt := range []struct{ pattern, want string }{
		// Wildcards stop at separators, and names with a dot are names.
		{"*", top},
		{"**", all},
		{"**/*", all},
		{"**/**", all},
		{"*.txt", "a.txt é.txt"},
		{"?.txt", "a.txt é.txt"},
		{"??", "!c ab"},
		{"**.txt", "a.txt é.txt"},
		{"a**", "a(b) a.txt aaab aab ab"},
		{"**/*.txt", ".hid/in.txt a.txt sub/a.txt sub/deep/b.txt sub/deep/x/c.txt é.txt"},
		{".*", ".dot .hid"},
		{"*.TXT", "f.TXT"},
		{"a?b", "aab"},
		{"sub?a.txt", ""},
		{"*a*b*", "a(b) aaab aab ab"},
		{"*a", ""},

		// Elements.
		{"sub/*", "sub/a.txt sub/deep"},
		{"sub/**", beneathSub},
		{"sub/**/*", beneathSub},
		{"**/sub", "sub"},
		{"**/deep/**", "sub/deep/b.txt sub/deep/x sub/deep/x/c.txt"},
		{"**/x/**/*.txt", "sub/deep/x/c.txt"},
		{"**/*/x", "sub/deep/x"},
		{"*/*/*", "sub/deep/b.txt sub/deep/x"},
		{"sub//a.txt", "sub/a.txt"},
		{"sub/../a.txt", "a.txt"},
		{"", ""},
		{".", ""},
		{"..", ""},
		{"/", ""},
		{"./a.txt", ""},
		{"/a.txt", ""},
		{"*/", ""},
		{"**/", ""},
		{"sub/", ""},

		// Braces.
		{"*.{txt,js}", "a.txt b.js é.txt"},
		{"{a,b}.*", "a.txt b.js"},
		{"{{a,b},f}.*", "a.txt b.js f.TXT"},
		{"{a,b}{a,b}", "ab"},
		{"{,a}b", "ab"},
		{"*.{js,txt}{,x}", "a.txt b.js é.txt"},
		{"{sub/a.txt,a.txt}", "a.txt sub/a.txt"},
		{"{sub/**,x}", beneathSub},
		{"{sub,.hid}/*.txt", ".hid/in.txt sub/a.txt"},
		{"{a..c}*", "a(b) a.txt aaab aab ab b.js back\\slash"},
		{"{d}", "{d}"},
		{`\{d\}`, "{d}"},
		{"[{]d}", "{d}"},
		{"a{b,{c}}", "ab"},
		{"[a]{b,c}*", "ab"},
		{"{a,b", ""},
		{"*.{txt", ""},
		{"{}", ""},
		{"${a,b}", ""},
		{`{a\,b}`, ""},

		// Classes.
		{"[ab].*", "a.txt b.js"},
		{"[!a].*", "b.js f.TXT é.txt"},
		{"[^a].*", "b.js f.TXT é.txt"},
		{"[a-c]*", "a(b) a.txt aaab aab ab b.js back\\slash"},
		{`[a\-c]*`, "a(b) a.txt aaab aab ab"},
		{"[a-]*", "a(b) a.txt aaab aab ab"},
		{"[--b]*", ".dot .hid [e] a(b) a.txt aaab aab ab b.js back\\slash"},
		{`[\]e]*`, "empty"},
		{"[é-ü].txt", "é.txt"},
		{"[[:alpha:]]*", "a(b) a.txt aaab aab ab b.js back\\slash empty f.TXT pl+us quest? sub é.txt"},
		{"*.[[:upper:]]*", "f.TXT"},
		{"[[]e]", "[e]"},
		{`\[e\]`, "[e]"},
		{"[e]", ""},
		{"[z-a]*", ""},
		{"*[*", "[e]"},
		{"[^/]*", ""},
		{"[!]", ""},
		{"[", ""},

		// Shell extensions, and what only looks like one.
		{"+(a)b", "aaab aab ab"},
		{"*(a)b", "aaab aab ab"},
		{"?(a)b", "ab"},
		{"@(a|aa)b", "aab ab"},
		{"@(a|b)*(a)b", "aaab aab ab"},
		{"*.+(txt)", "a.txt é.txt"},
		{"*([a-z])", "aaab aab ab empty sub"},
		{"@({a,aa})b", "aab ab"},
		{"@(a@(b)", ""},
		{"@(a.txt", ""},
		{"a(b)", "a(b)"},
		{"(a)b", ""},
		{"a+b", ""},
		{"pl+us", "pl+us"},
		{"^a.txt", ""},
		{"a.txt|b.js", ""},

		// Escapes.
		{`back\\slash`, `back\slash`},
		{`back\slash`, ""},
		{`quest\?`, "quest?"},
		{`a\`, ""},

		// What is turned round, and what is not: a "#" begins no comment here.
		{"!**/*[!x]*", "sub/deep/x"},
		{"!!*.txt", "a.txt é.txt"},
		{`\!c`, "!c"},
		{"!(*)", all},
		{"#hash", "#hash"},
	} {
		g, err := compileGlob(tt.pattern)
		if err != nil {
			t.Errorf("%q: %v", tt.pattern, err)
			continue
		}
		var got []string
		for _, p := range paths {
			if g.matchesPath(p) {
				got = append(got, p)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%q matches\n %q, want\n %q", tt.pattern, strings.Join(got, " "), tt.want)
		}
	}
}

// matchesPath reports whether a path is matched, from its beginning.
func (g *glob) matchesPath(path string) bool {
	s := g.first
	for {
		name, rest, more := strings.Cut(path, "/")
		if !more {
			return g.matches(s, name)
		}
		s, path = g.beneath(s, name), rest
	}
}

func TestGlobsThatAreRefused(t *testing.T) {
	for _, tt := range []struct{ pattern, want string }{
		{"a!(b|c)*", `The pattern "a!(b|c)*" cannot be used: "!(b|c)" asks for what does not match in a part of a name`},
		{"x" + strings.Repeat("{a/,b*}", 7), "stand for more than 64 alternatives"},
		{"{1..100000}", "{1..100000} stands for more than 1000 alternatives"},
		{strings.Repeat("a/", 400) + "a", "elements"},
		{strings.Repeat("x", 5000), "at most 4096 are read"},
		{strings.Repeat("@(", 60) + "a" + strings.Repeat(")", 60), "nested more than 50 deep"},
		{strings.Repeat("{a*,", 60) + strings.Repeat("}", 60), "nested more than 50 deep"},
		{"*" + strings.Repeat("[^a]", 1000) + "*", ""},
	} {
		_, err := compileGlob(tt.pattern)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%.50q: %v", tt.pattern, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "The pattern \"") {
			t.Errorf("%.50q: %v, want %q", tt.pattern, err, tt.want)
		}
	}
	// Braces around plain names are tried at once: their number does not multiply.
	if g, err := compileGlob(strings.Repeat("{a,b}", 100)); err != nil || !g.matchesPath(strings.Repeat("ab", 50)) || g.matchesPath(strings.Repeat("a", 99)) {
		t.Errorf("a hundred braces: %v", err)
	}
}

func TestExcludes(t *testing.T) {
	paths := []string{"a.js", "b/a.js", "b/node_modules", "node_modules", "[id]", "i", "b/c/d", "c/d"}
	for _, tt := range []struct{ pattern, want string }{
		{"node_modules", "b/node_modules node_modules"},
		{"node_modules/", "b/node_modules node_modules"},
		{"*.js", "a.js"},
		{"**/*.js", "a.js b/a.js"},
		{"a.js", "a.js b/a.js"},
		{"c/d", "b/c/d c/d"},
		{"[id]", "[id] i b/c/d c/d"}, // its own name, and what it is as a pattern
		{"{a.js,c}/d", "b/c/d c/d"},
		{"", ""},
		{"!**/*.js", "b/node_modules node_modules [id] i b/c/d c/d"},
		{"!c", ""},
	} {
		x, err := compileExcludes([]string{"nothing", tt.pattern})
		if err != nil {
			t.Errorf("%q: %v", tt.pattern, err)
			continue
		}
		var got []string
		for _, p := range paths {
			s := x.start()
			for dir := range strings.SplitSeq(path.Dir(p), "/") {
				if dir != "." {
					s = x.beneath(s, dir)
				}
			}
			if x.matches(s, path.Base(p)) {
				got = append(got, p)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%q leaves out %q, want %q", tt.pattern, got, tt.want)
		}
	}
	if _, err := compileExcludes(make([]string, 201)); err == nil {
		t.Error("201 patterns were taken")
	}
}

// A pattern of plain parts matches what a slow and simple matcher says, and any pattern is compiled or refused.
func FuzzGlob(f *testing.F) {
	for _, p := range []string{"*", "**/*.go", "a/**/b", "{a,b/c}/*", "[a-c]?", "@(a|b)+(c)", "!x", `\*`, "a/**", "{a,{b,c}}*", "**/**/a", "a*b*c*d", strings.Repeat("@(", 40), "[[:alpha:]", "a/..", "{a/..,b}", "a/b/../..", "../..", "/..", "a/../"} {
		f.Add(p, "a/b/c.go")
		f.Add(p, "abc")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 200 || len(name) > 200 {
			return
		}
		g, err := compileGlob(pattern)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "The pattern ") {
				t.Errorf("%q: %v", pattern, err)
			}
			return
		}
		got := g.matchesPath(name)
		s := g.first
		for dir, rest, more := strings.Cut(name, "/"); more; dir, rest, more = strings.Cut(rest, "/") {
			if s = g.beneath(s, dir); s.empty() && got != g.negated {
				t.Errorf("%q: beneath %q nothing can match, and %q does", pattern, dir, name)
			}
		}
		if strings.ContainsAny(pattern, `[]{}()\!`) || slices.ContainsFunc(strings.Split(pattern, "/"), func(e string) bool { return e == "" || e == "." || e == ".." }) || strings.ContainsRune(pattern, '\ufffd') {
			return // more than the simple matcher can do
		}
		if slices.Contains(strings.Split(name, "/"), "") || strings.ToValidUTF8(pattern+name, "\ufffd") != pattern+name {
			return
		}
		if want := simpleMatch(strings.Split(pattern, "/"), strings.Split(name, "/")); got != want {
			t.Errorf("%q on %q: %v, want %v", pattern, name, got, want)
		}
	})
}

func simpleMatch(pattern, names []string) bool {
	switch {
	case len(pattern) == 0:
		return len(names) == 0
	case pattern[0] == "**" && len(pattern) > 1:
		return simpleMatch(pattern[1:], names) || len(names) > 0 && simpleMatch(pattern, names[1:])
	case pattern[0] == "**":
		return len(names) > 0
	}
	return len(names) > 0 && simpleName([]rune(pattern[0]), []rune(names[0])) && simpleMatch(pattern[1:], names[1:])
}

func simpleName(pattern, name []rune) bool {
	at := map[int]bool{0: true} // where in the pattern we may be
	star := func() {
		for i, c := range pattern {
			if at[i] && c == '*' {
				at[i+1] = true
			}
		}
	}
	star()
	for _, c := range name {
		next := map[int]bool{}
		for i, p := range pattern {
			switch {
			case !at[i]:
			case p == '*':
				next[i] = true
			case p == '?' || p == c:
				next[i+1] = true
			}
		}
		at = next
		star()
	}
	return at[len(pattern)]
}

func BenchmarkGlob(b *testing.B) {
	for _, pattern := range []string{"**/*.go", "**/*.{js,ts,tsx,jsx}", "**/*test*", "**/[a-z]*_test.go", "**"} {
		b.Run(strings.ReplaceAll(pattern, "/", "|"), func(b *testing.B) {
			g, err := compileGlob(pattern)
			if err != nil {
				b.Fatal(err)
			}
			var names []string
			for i := range 1000 {
				names = append(names, fmt.Sprintf("some_name_%d.%s", i, []string{"go", "txt", "ts", "c"}[i%4]))
			}
			s := g.beneath(g.first, "dir")
			for i := 0; b.Loop(); i++ {
				g.matches(s, names[i%len(names)])
			}
		})
	}
}
