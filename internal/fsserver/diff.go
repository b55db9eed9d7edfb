package fsserver

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

const (
	// diffContext is how many lines that did not change are shown around what did.
	diffContext = 4
	// maxDiff is about the longest diff that is shown, in bytes. It is much less than an answer may have, because what is
	// no text grows when it is written as JSON.
	maxDiff = 512 << 10
	// maxDiffLines is how many lines are compared to find what changed; more, and looked at more often, are not worth the
	// time. What is left then is shown as one block.
	maxDiffLines = 1 << 20
)

// showDiff writes what changed in a file as the reference server does, in a fence for Markdown. The texts have "\n" for
// every line end.
func showDiff(path string, before, after []byte) string {
	diff := decode([]byte(unifiedDiff(path, before, after)))
	fence := strings.Repeat("`", max(3, longestRun(diff, '`')+1))
	return fence + "diff\n" + diff + fence + "\n\n"
}

// longestRun returns how often c stands in a row.
func longestRun(s string, c byte) int {
	longest, n := 0, 0
	for i := range len(s) {
		if s[i] != c {
			n = 0
			continue
		}
		n++
		longest = max(longest, n)
	}
	return longest
}

// unifiedDiff writes what changed as programs that patch read it.
func unifiedDiff(path string, before, after []byte) string {
	w := &diffWriter{}
	fmt.Fprintf(&w.text, "Index: %[1]s\n%[2]s\n--- %[1]s\toriginal\n+++ %[1]s\tmodified\n", path, strings.Repeat("=", 67))

	// What is alike at both ends is left out, so that a large file costs no more than its change; but for lines to show.
	top := commonLines(before, after)
	first := bytes.Count(before[:top], []byte("\n"))
	shown := startOfLast(before[:top], diffContext)
	lead := splitLines(before[shown:top])
	old, new, tail := before[top:], after[top:], []string(nil)
	if len(old)+len(new) > maxDiff {
		end := commonEnd(old, new)
		tail = splitLines(old[len(old)-end:][:endOfFirst(old[len(old)-end:], 2*diffContext+1)])
		old, new = old[:len(old)-end], new[:len(new)-end]
	}
	oldLines, newLines := splitBounded(old), splitBounded(new)
	budget := maxDiffLines
	changes := diffLines(oldLines, newLines, &budget)
	shift := len(lead)
	for i := range changes {
		c := &changes[i]
		c.Start, c.End, c.ReplStart, c.ReplEnd = c.Start+shift, c.End+shift, c.ReplStart+shift, c.ReplEnd+shift
	}
	oldLines = append(append(lead[:shift:shift], oldLines...), tail...)
	newLines = append(append(lead[:shift:shift], newLines...), tail...)
	w.hunks(changes, oldLines, newLines, first-shift)
	return w.text.String()
}

// splitBounded cuts a text into lines. Too many lines stay together.
func splitBounded(text []byte) []string {
	if bytes.Count(text, []byte("\n")) > maxDiffLines {
		return []string{string(text)}
	}
	return splitLines(text)
}

// splitLines cuts a text behind each "\n".
func splitLines(text []byte) []string {
	lines := strings.SplitAfter(string(text), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// commonLines returns the length of the whole lines with which both texts begin.
func commonLines(a, b []byte) int {
	n := commonPrefix(a, b)
	if n == len(a) && n == len(b) {
		return n
	}
	return bytes.LastIndexByte(a[:n], '\n') + 1
}

// commonEnd returns the length of the whole lines with which both texts end.
func commonEnd(a, b []byte) int {
	n := commonSuffix(a, b)
	if whole := func(s []byte) bool { return n == len(s) || s[len(s)-n-1] == '\n' }; whole(a) && whole(b) {
		return n
	}
	if i := bytes.IndexByte(a[len(a)-n:], '\n'); i >= 0 {
		return n - i - 1
	}
	return 0
}

// startOfLast returns where the last n lines of a text begin that ends with a line.
func startOfLast(text []byte, n int) int {
	at := len(text)
	for ; n > 0 && at > 0; n-- {
		at = bytes.LastIndexByte(text[:at-1], '\n') + 1
	}
	return at
}

// endOfFirst returns where the first n lines of a text end.
func endOfFirst(text []byte, n int) int {
	at := 0
	for ; n > 0 && at < len(text); n-- {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text)
		}
		at += i + 1
	}
	return at
}

// diffLines finds what changed between two lists of lines. The library stops to look for the shortest answer after about
// a hundred changes, and what it did not look at becomes one block; that is looked at again, as long as budget, in lines,
// allows it.
func diffLines(before, after []string, budget *int) []lcs.Diff {
	if *budget -= len(before) + len(after); *budget < 0 {
		return whole(before, after)
	}
	var changes []lcs.Diff
	for _, d := range lcs.DiffLines(before, after) {
		o, n := before[d.Start:d.End], after[d.ReplStart:d.ReplEnd]
		if len(o) < 2 || len(n) < 2 || len(o) == len(before) && len(n) == len(after) {
			changes = append(changes, d)
			continue
		}
		for _, s := range diffLines(o, n, budget) {
			changes = append(changes, lcs.Diff{Start: d.Start + s.Start, End: d.Start + s.End, ReplStart: d.ReplStart + s.ReplStart, ReplEnd: d.ReplStart + s.ReplEnd})
		}
	}
	return changes
}

// whole says that everything changed.
func whole(before, after []string) []lcs.Diff {
	return []lcs.Diff{{Start: 0, End: len(before), ReplStart: 0, ReplEnd: len(after)}}
}

// diffWriter writes the hunks of a diff, up to a length.
type diffWriter struct {
	text    strings.Builder
	omitted int // lines
}

// hunks writes the changes with the lines around them. Lines before those given are counted by skipped.
func (w *diffWriter) hunks(changes []lcs.Diff, before, after []string, skipped int) {
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].Start-changes[n-1].End <= 2*diffContext {
			n++
		}
		w.hunk(changes[:n], before, after, skipped)
		changes = changes[n:]
	}
	if w.omitted > 0 {
		fmt.Fprintf(&w.text, "\\ %d more lines of this diff are not shown\n", w.omitted)
	}
}

func (w *diffWriter) hunk(changes []lcs.Diff, before, after []string, skipped int) {
	first, last := changes[0], changes[len(changes)-1]
	lead := min(diffContext, first.Start)
	oldStart, newStart := first.Start-lead, first.ReplStart-lead
	oldEnd := min(last.End+diffContext, len(before))
	newEnd := last.ReplEnd + oldEnd - last.End
	w.line("@@", fmt.Sprintf(" -%s +%s @@\n", lineRange(skipped+oldStart, before[oldStart:oldEnd]), lineRange(skipped+newStart, after[newStart:newEnd])))
	at := oldStart
	for _, c := range changes {
		w.lines(" ", before[at:c.Start])
		w.lines("-", before[c.Start:c.End])
		w.lines("+", after[c.ReplStart:c.ReplEnd])
		at = c.End
	}
	w.lines(" ", before[at:oldEnd])
}

// lineRange writes which lines a hunk is about, that has so many before it. When it has none, the line before is named.
func lineRange(before int, lines []string) string {
	n := 0
	for _, l := range lines {
		n += strings.Count(l, "\n")
		if !strings.HasSuffix(l, "\n") {
			n++
		}
	}
	return fmt.Sprintf("%d,%d", before+min(n, 1), n)
}

func (w *diffWriter) lines(mark string, lines []string) {
	for _, several := range lines {
		for l := range strings.Lines(several) {
			w.line(mark, l)
		}
	}
}

func (w *diffWriter) line(mark, line string) {
	room := maxDiff - w.text.Len()
	if room <= 0 {
		w.omitted++
		return
	}
	w.text.WriteString(mark)
	text, ended := strings.CutSuffix(line, "\n")
	if len(text) > room {
		text = text[:room] + "…"
	}
	w.text.WriteString(text)
	w.text.WriteByte('\n')
	if !ended {
		w.text.WriteString("\\ No newline at end of file\n")
	}
}
