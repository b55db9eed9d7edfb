package fsserver

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// reindent returns the new lines of an edit, fit for a place where the file has the lines of old but for blanks around
// them. Lines that are old ones stay as the file has them; what is between them is indented as the old line it stands
// beside is in the file, deeper or less deep by as much as in the edit, in the file's own characters. Text is the file.
func reindent(file, old, new [][]byte, text []byte) [][]byte {
	head, tail := 0, 0
	for head < len(old) && head < len(new) && bytes.Equal(old[head], new[head]) {
		head++
	}
	for tail < len(old)-head && tail < len(new)-head && bytes.Equal(old[len(old)-1-tail], new[len(new)-1-tail]) {
		tail++
	}
	out := slices.Clone(file[:head])
	shift := measure(file, old, new, text)
	known := map[string][]int{} // which old lines have an indentation
	var filled []int            // which are not blank
	for i, l := range old {
		if in, rest := cutIndent(l); !blank(rest) {
			known[in] = append(known[in], i)
			filled = append(filled, i)
		}
	}
	for k, l := range new[head : len(new)-tail] {
		in, rest := cutIndent(l)
		if blank(rest) {
			out = append(out, l)
			continue
		}
		candidates := known[in]
		if candidates == nil {
			candidates = filled
		}
		i := nearestIndex(candidates, head+k)
		was, _ := cutIndent(old[i])
		is, _ := cutIndent(file[i])
		out = append(out, append([]byte(shift.from(is, was, in)), rest...))
	}
	return append(out, file[len(file)-tail:]...)
}

// nearestIndex returns the one of a list, ascending, that is nearest to i, the smaller one of two.
func nearestIndex(list []int, i int) int {
	n, _ := slices.BinarySearch(list, i)
	if n == len(list) || n > 0 && i-list[n-1] <= list[n]-i {
		n--
	}
	return list[max(n, 0)]
}

// cutIndent cuts a line behind its indentation.
func cutIndent(line []byte) (indent string, rest []byte) {
	rest = bytes.TrimLeft(line, " \t")
	return string(line[:len(line)-len(rest)]), rest
}

func blank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }

// columns returns how wide an indentation is.
func columns(indent string) int { return len(indent) + (tabWidth-1)*strings.Count(indent, "\t") }

// tabWidth is how many columns a tab is, where the edit and the file do not show it.
const tabWidth = 4

// indentation says how steps of an edit's indentation become those of a file.
type indentation struct {
	tabs     bool // the file indents with tabs
	old, new int  // as many columns in the edit are as many columns, or tabs, in the file
}

// measure finds how an edit and a file indent.
func measure(file, old, new [][]byte, text []byte) indentation {
	var s indentation
	own := "" // the file's first indentation, of the place or else of all
	for _, l := range file {
		if in, rest := cutIndent(l); !blank(rest) && in != "" {
			own = in
			break
		}
	}
	unit := firstIndent(text)
	if own == "" {
		own = cmp.Or(unit, firstIndent(bytes.Join(new, []byte("\n"))))
	}
	s.tabs = strings.HasPrefix(own, "\t")

	// Two old lines that are indented differently, and differently in the file too, show it.
	last := -1
	for i, l := range old {
		in, rest := cutIndent(l)
		if blank(rest) {
			continue
		}
		if last >= 0 {
			before, _ := cutIndent(old[last])
			is, _ := cutIndent(file[i])
			was, _ := cutIndent(file[last])
			o, n := columns(in)-columns(before), columns(is)-columns(was)
			if s.tabs {
				n = strings.Count(is, "\t") - strings.Count(was, "\t")
			}
			if o*n > 0 {
				s.old, s.new = max(o, -o), max(n, -n)
				return s
			}
		}
		last = i
	}

	// Else by the smallest step of the edit, if it is written otherwise than the file.
	tabbed, step := false, 0
	var widths []int
	for _, l := range slices.Concat(old, new) {
		if in, rest := cutIndent(l); !blank(rest) {
			tabbed = tabbed || strings.Contains(in, "\t")
			widths = append(widths, columns(in))
		}
	}
	slices.Sort(widths)
	for i := 1; i < len(widths); i++ {
		if d := widths[i] - widths[i-1]; d > 1 && (step == 0 || d < step) {
			step = d
		}
	}
	s.old, s.new = max(step, 1), max(step, 1)
	switch {
	case s.tabs && tabbed:
		s.old, s.new = tabWidth, 1
	case s.tabs:
		s.new = 1
		if step == 0 {
			s.old = tabWidth
		}
	case tabbed:
		s.old, s.new = tabWidth, cmp.Or(len(unit), tabWidth)
	}
	return s
}

// firstIndent returns the first indentation of a text that is a tab or more than one blank.
func firstIndent(text []byte) string {
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if in, rest := cutIndent(line); !blank(rest) && (len(in) > 1 || in == "\t") {
			return in
		}
	}
	return ""
}

// from returns the indentation of a new line: as the file has it where the edit has was, and as much deeper as in is.
func (s indentation) from(file, was, in string) string {
	d := columns(in) - columns(was)
	switch {
	case d == 0:
		return file
	case d < 0 && s.tabs:
		return file[:max(0, len(file)-(-d*s.new+s.old-1)/s.old)]
	case d < 0:
		return file[:max(0, len(file)+d*s.new/s.old)]
	case s.tabs:
		return file + strings.Repeat("\t", d*s.new/s.old) + strings.Repeat(" ", d*s.new%s.old/s.new)
	}
	return file + strings.Repeat(" ", d*s.new/s.old)
}
