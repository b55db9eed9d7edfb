package fsserver

import (
	"strings"
	"testing"
)

func TestIgnoreRules(t *testing.T) {
	for _, tt := range []struct {
		rules     string
		ignored   string // a "/" at the end: a directory
		unignored string
	}{
		{"node_modules", "node_modules/ a/node_modules/ node_modules", "node_modules2/ a/b"},
		{"node_modules/", "node_modules/ a/node_modules/", "node_modules a/node_modules"},
		{"/dist", "dist dist/", "a/dist"},
		{"a/b", "a/b a/b/", "x/a/b b"},
		{"*.log", "x.log a/x.log .log a/.log", "x.log.gz xlog"},
		{"*.log\n!keep.log", "x.log", "keep.log a/keep.log"},
		{"!keep.log\n*.log", "keep.log", ""},
		{"**/foo", "foo a/foo a/b/foo", "foox"},
		{"foo/**", "foo/a foo/a/b", "foo foo/ a/foo/x"},
		{"a/**/b", "a/b a/x/b a/x/y/b", "a/xb ab x/a/b"},
		{"a/**/**/b", "a/b a/x/b", "b"},
		{"**", "a a/b .x", ""},
		{"*", "a a/b .x", ""},
		{"/*", "a .x", "a/b"},
		{"/*\n!/src/", "a", "src/"},
		{"foo*bar", "foobar fooxbar a/fooxxbar", "foo/bar fooba"},
		{"a**b/c", "ab/c axxb/c", "a/b/c"},
		{"?.go", "a.go é.go", "ab.go .go"},
		{"[a-c]x", "ax cx", "dx"},
		{"[!a-c]x\n[^x]y", "dx ay", "ax xy"},
		{"[]a]x", "]x ax", "bx"},
		{"[[:digit:]]x", "1x", "ax"},
		{"[a", "", "[a a"},
		{`\#x`, "#x", "x"},
		{`\!x`, "!x", "x"},
		{`a\*b`, "a*b", "axb"},
		{"#x", "", "x #x"},
		{"x \ny\\ ", "x", "y"},
		{"x\r\ny\r\n", "x y", ""},
		{"\ufeffx", "x", ""},
		{"a*a*a*a*a*a*a*a*b", "aaaaaaaab", strings.Repeat("a", 100)},
		{"**/a/**/a/**/a/**/a/b", "a/a/a/a/b", strings.Repeat("a/", 100) + "c"},
	} {
		set := parseRules(tt.rules, false)
		check := func(list string, want bool) {
			for _, name := range strings.Fields(list) {
				plain, dir := strings.CutSuffix(name, "/")
				got := false
				if set != nil {
					r := set.match(plain, dir)
					got = r != nil && !r.negated
				}
				if got != want {
					t.Errorf("%q: %s: ignored is %v", tt.rules, name, got)
				}
			}
		}
		check(tt.ignored, true)
		check(tt.unignored, false)
	}
}

func FuzzIgnoreRules(f *testing.F) {
	f.Add("*.log\n!/a/**/b/\n[a-z[:digit:]]?\\x", "a/x/b")
	f.Add("**/**/a*b*/c", "a/b/c")
	f.Fuzz(func(t *testing.T, rules, name string) {
		if set := parseRules(rules, len(name)%2 == 0); set != nil {
			set.match(name, true)
		}
		// A rule that is a path without any sign of a pattern matches that path.
		if name != "" && !strings.ContainsAny(name, "/*?[\\#! \r\n") && strings.ToValidUTF8(name, "") == name && !strings.HasPrefix(name, "\ufeff") {
			if parseRules(name, false).match("x/"+name, false) == nil {
				t.Errorf("%q does not match itself", name)
			}
		}
	})
}
