package fsserver

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// numbered returns the lines "1" to "n".
func numbered(n int) []string {
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprint(i+1))
	}
	return lines
}

// Each want is what the reference server prints.
func TestDiff(t *testing.T) {
	twenty := numbered(20)
	change := func(at ...int) []string {
		lines := slices.Clone(twenty)
		for _, i := range at {
			lines[i-1] = "new"
		}
		return lines
	}
	const head = "```diff\nIndex: /r/f\n===================================================================\n--- /r/f\toriginal\n+++ /r/f\tmodified\n"
	for name, tt := range map[string]struct{ before, after, want string }{
		"a line":           {"l1\nl2\nl3\n", "l1\nL2\nl3\n", "@@ -1,3 +1,3 @@\n l1\n-l2\n+L2\n l3\n```\n\n"},
		"nothing":          {"a\n", "a\n", "```\n\n"},
		"of nothing":       {"", "a\n", "@@ -0,0 +1,1 @@\n+a\n```\n\n"},
		"to nothing":       {"a\n", "", "@@ -1,1 +0,0 @@\n-a\n```\n\n"},
		"no final newline": {"a\nb", "a\nc", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n```\n\n"},
		"a final newline":  {"a", "a\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n```\n\n"},
		"in the context":   {"a\nb", "x\nb", "@@ -1,2 +1,2 @@\n-a\n+x\n b\n\\ No newline at end of file\n```\n\n"},
		"one hunk": {strings.Join(twenty, "\n") + "\n", strings.Join(change(5, 14), "\n") + "\n",
			"@@ -1,18 +1,18 @@\n 1\n 2\n 3\n 4\n-5\n+new\n 6\n 7\n 8\n 9\n 10\n 11\n 12\n 13\n-14\n+new\n 15\n 16\n 17\n 18\n```\n\n"},
		"two hunks": {strings.Join(twenty, "\n") + "\n", strings.Join(change(5, 15), "\n") + "\n",
			"@@ -1,9 +1,9 @@\n 1\n 2\n 3\n 4\n-5\n+new\n 6\n 7\n 8\n 9\n@@ -11,9 +11,9 @@\n 11\n 12\n 13\n 14\n-15\n+new\n 16\n 17\n 18\n 19\n```\n\n"},
		"lines added":  {"a\nb\n", "a\nb\nc\nd\n", "@@ -1,2 +1,4 @@\n a\n b\n+c\n+d\n```\n\n"},
		"lines taken":  {"a\nb\nc\n", "c\n", "@@ -1,3 +1,1 @@\n-a\n-b\n c\n```\n\n"},
		"a line again": {"a\n", "a\na\n", "@@ -1,1 +1,2 @@\n a\n+a\n```\n\n"},
		"no UTF-8":     {"caf\xe9\n", "caf\xe9s\n", "@@ -1,1 +1,1 @@\n-caf\ufffd\n+caf\ufffds\n```\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(head+tt.want, showDiff("/r/f", []byte(tt.before), []byte(tt.after))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestDiffFence(t *testing.T) {
	got := showDiff("/r/f", []byte("a\n"), []byte("````\n"))
	if !strings.HasPrefix(got, "`````diff\n") || !strings.HasSuffix(got, "\n`````\n\n") {
		t.Errorf("%q", got)
	}
}

// Many changes are found one by one, not as one block.
func TestDiffOfManyChanges(t *testing.T) {
	lines := numbered(4000)
	for i := 0; i < len(lines); i += 20 {
		lines[i] += " new"
	}
	got := showDiff("f", []byte(strings.Join(numbered(4000), "\n")), []byte(strings.Join(lines, "\n")))
	if n := strings.Count(got, "\n@@ "); n != 200 {
		t.Errorf("%d hunks, want 200", n)
	}
}

// Too many lines to compare are one change, and counted all the same.
func TestDiffOfTooManyLines(t *testing.T) {
	got := showDiff("f", bytes.Repeat([]byte("a\n"), maxDiffLines+1), bytes.Repeat([]byte("b\n"), 3))
	_, body, _ := strings.Cut(got, "+++ f\tmodified\n")
	lines := strings.Split(body, "\n")
	want := []string{"@@ -1,1048577 +1,3 @@", "-a", "-a"}
	if diff := cmp.Diff(want, lines[:3]); diff != "" || !strings.HasSuffix(got, "\n\\ 873860 more lines of this diff are not shown\n```\n\n") {
		t.Errorf("(-want +got):\n%s\n%q", diff, got[len(got)-100:])
	}
}

// A diff is bounded, whatever the texts are.
func TestDiffOfHostileTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []byte {
		var b bytes.Buffer
		for range n {
			fmt.Fprintln(&b, r.IntN(1000))
		}
		return b.Bytes()
	}
	for name, tt := range map[string]struct{ before, after []byte }{
		"random lines":    {random(1 << 18), random(1 << 18)},
		"alike lines":     {bytes.Repeat([]byte("a\n"), 1<<20), bytes.Repeat([]byte("b\na\n"), 1<<19)},
		"too many lines":  {bytes.Repeat([]byte("\n"), 1<<22), bytes.Repeat([]byte("b\n"), 1<<21)},
		"one long line":   {bytes.Repeat([]byte("a"), 1<<22), bytes.Repeat([]byte("b"), 1<<22)},
		"a line put in":   {bytes.Repeat([]byte("\n"), 1<<22), append([]byte("b\n"), bytes.Repeat([]byte("\n"), 1<<22)...)},
		"what is no text": {bytes.Repeat([]byte{0xff}, 1<<20), bytes.Repeat([]byte{0xfe}, 1<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := showDiff("f", tt.before, tt.after); len(got) > 3*maxDiff+1000 {
				t.Errorf("%d bytes", len(got))
			}
		})
	}
}

// FuzzDiff applies each diff to what was before.
func FuzzDiff(f *testing.F) {
	f.Add("a\nb\nc", "a\nx\nc\n")
	f.Add("", "\n\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		got := unifiedDiff("f", []byte(before), []byte(after))
		if patched := patch(t, before, got); patched != after {
			t.Errorf("%q patched to %q, want %q, by:\n%s", before, patched, after, got)
		}
	})
}

var hunkHead = regexp.MustCompile(`(?m)^@@ -(\d+),(\d+) \+(\d+),(\d+) @@$`)

// patch applies a diff of a text.
func patch(t *testing.T, text, diff string) string {
	lines, out := splitLines([]byte(text)), []string(nil)
	at := 0
	_, body, _ := strings.Cut(diff, "+++ f\tmodified\n")
	list := splitLines([]byte(body))
	for i := 0; i < len(list); {
		m := hunkHead.FindStringSubmatch(list[i])
		if m == nil {
			t.Fatalf("no hunk: %q", list[i])
		}
		var n [5]int
		for j := range n[1:] {
			n[j+1], _ = strconv.Atoi(m[j+1])
		}
		i++
		for start := n[1] - min(n[2], 1); at < start; at++ {
			out = append(out, lines[at])
		}
		if want := n[3] - min(n[4], 1); len(out) != want {
			t.Errorf("a hunk begins behind %d lines, not %d", want, len(out))
		}
		for n[2] > 0 || n[4] > 0 {
			mark, line := list[i][0], list[i][1:]
			if i++; i < len(list) && strings.HasPrefix(list[i], "\\") {
				line, i = strings.TrimSuffix(line, "\n"), i+1
			}
			if mark != '+' {
				if lines[at] != line {
					t.Fatalf("line %d is %q, the diff has %q", at+1, lines[at], line)
				}
				at, n[2] = at+1, n[2]-1
			}
			if mark != '-' {
				out, n[4] = append(out, line), n[4]-1
			}
		}
	}
	return strings.Join(append(out, lines[at:]...), "")
}
