package launch

import "unicode/utf8"

// Nearest returns the one of known that word is most likely a misspelling of, and whether any is near enough.
func Nearest(word string, known []string) (string, bool) {
	best, near := max(1, utf8.RuneCountInString(word)/3)+1, ""
	for _, k := range known {
		if d := distance([]rune(word), []rune(k)); d < best {
			best, near = d, k
		}
	}
	return near, near != ""
}

// distance counts the characters to put in, take out, exchange or swap with their neighbour to get from a to b.
func distance(a, b []rune) int {
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
