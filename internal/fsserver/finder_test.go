package fsserver

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// linesOf returns the lines of a text that a finder finds.
func linesOf(f *finder, text string) []string {
	var got []string
	s := scan{finder: f}
	s.start([]byte(text))
	for from := 0; ; {
		start, end, after := s.line(from)
		if start < 0 {
			return got
		}
		got = append(got, text[start:end])
		from = after
	}
}

// plainLines is what a finder has to find, in the plainest way.
func plainLines(re *regexp.Regexp, text string) []string {
	var got []string
	for line := range strings.SplitAfterSeq(text, "\n") {
		if line == "" { // behind the last line end
			continue
		}
		if ended := strings.TrimSuffix(line, "\n"); ended != line {
			line = strings.TrimSuffix(ended, "\r") // "\r" is of a line end only before "\n"
		}
		if re.MatchString(line) {
			got = append(got, line)
		}
	}
	return got
}

const searched = "package main\r\n\nfunc main() {\n\tfmt.Println(\"Error(1)\", myError(2))\n}\n// KELVIN \u212a and \u017f, ERROR(3)\n" +
	"foo bar\nfoobaz\nFooBar\nok\xff\xfe bytes\n\ufffd\ntéxt\nTÉXT\naaaaaaaaaaaaaaaaab\nlast line"

func TestFinder(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		needles string // with "i" behind one that has no case
		exact   bool
	}{
		{"Error(", "", false}, // as an expression it is wrong, and below it is a text
		{`Error\(`, "Error(", true},
		{`\w+Error\(`, "Error(", false},
		{`(?i)error\(`, "error(/i", true},
		{`(?i)task list`, " li/i", false},
		{`(?i)kelvin`, "elvin/i", false},
		{`^func\s+\w+`, "func", false},
		{`foo(bar|baz)`, "fooba", false},
		{`foo|bar|Error`, "foo bar Error", false},
		{`(foo|x*)y`, "y", false},
		{`a+b`, "a", false},
		{`(abc)+d`, "abc", false},
		{`(abc){2,}`, "abc", false},
		{`(abc)?d`, "d", false},
		{`x*`, "", false},
		{`\d{4}-\d{2}`, "-", false},
		{`\bfoo\b`, "foo", false},
		{`t.xt$`, "xt", false},
		{`téxt`, "téxt", true},
		{`(?i)téxt`, "xt/i", false},
		{"\ufffd", "", false},
		{`[\x{fffd}]`, "", false},
		{`(?:)`, "", false},
		{`^$`, "", false},
		{`line$`, "line", false},
		{`a*a*a*a*a*b`, "b", false},
		{`main\(\) \{$`, "main() {", false},
		{`[Ff]oo[Bb]ar`, "oo", false},
	} {
		f, err := newFinder(tt.pattern, false, false)
		re, want := regexp.Compile(tt.pattern)
		if (err != nil) != (want != nil) {
			t.Fatalf("%q: %v, want %v", tt.pattern, err, want)
		}
		if err != nil {
			continue
		}
		var needles []string
		for _, n := range f.needles {
			s := string(n.text)
			if n.fold {
				s += "/i"
			}
			needles = append(needles, s)
		}
		if got := strings.Join(needles, " "); got != tt.needles || f.exact != tt.exact {
			t.Errorf("%q: looks for %q, exact %v; want %q, %v", tt.pattern, got, f.exact, tt.needles, tt.exact)
		}
		if diff := cmp.Diff(plainLines(re, searched), linesOf(f, searched)); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", tt.pattern, diff)
		}
	}
	f, err := newFinder("Error(", true, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := linesOf(f, searched); len(got) != 2 {
		t.Errorf("a text in any case: %q", got)
	}
}

func TestFinderRefuses(t *testing.T) {
	for pattern, want := range map[string]string{
		"(":                       `missing closing ): "("`,
		"a\\nb":                   "it asks for a line end, and lines are searched one by one",
		"a(\\n|\\n\\n)b":          "it asks for a line end, and lines are searched one by one",
		"((a{50}){50}){50}":       `invalid repeat count: "{50}"`,
		"(a{30}){30}(a{30}){30}":  "it is too large when it is compiled; repeat less",
		"(a|bc|de|fg){1000}":      "it is too large when it is compiled; repeat less",
		"(?<=a)b":                 `invalid named capture: "(?<=a)b"`,
		strings.Repeat("a", 5000): "it has 5000 bytes, and at most 4096 are read",
		strings.Repeat("(", 2000) + strings.Repeat(")", 2000): `expression nests too deeply: ` + fmt.Sprintf("%q", strings.Repeat("(", 200)+"…"),
		"\xff": `invalid UTF-8: "\xff"`,
	} {
		if _, err := newFinder(pattern, false, false); err == nil || err.Error() != want {
			t.Errorf("%.40q: %v, want %s", pattern, err, want)
		}
	}
}

// FuzzFinder: what is found is what the expression matches, line by line.
func FuzzFinder(f *testing.F) {
	f.Add(`\w+Error\(`, searched, false, false)
	f.Add(`(?i)k|foo|[st]x`, searched, false, true)
	f.Add("Error(", searched, true, true)
	f.Add("(a|b+c)?d{2,3}(?:e|f)$", "add\nbcddf\r\n", false, false)
	f.Add("$", "\r", false, false)
	f.Add("^$", "\n\r\n\r\r\n\r", false, false)
	f.Fuzz(func(t *testing.T, pattern, text string, literal, fold bool) {
		finder, err := newFinder(pattern, literal, fold)
		if err != nil {
			return
		}
		if literal {
			pattern = regexp.QuoteMeta(pattern)
		}
		if fold {
			pattern = "(?i)" + pattern
		}
		want := plainLines(regexp.MustCompile(pattern), text)
		if diff := cmp.Diff(want, linesOf(finder, text)); diff != "" {
			t.Errorf("%q over %q: (-want +got)\n%s", pattern, text, diff)
		}
	})
}
