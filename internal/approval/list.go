package approval

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// sortGuards sorts by server and age. Wide structs are sorted by package sort: slices.SortFunc is compiled anew for each type, which is 10
// to 20 KB of the program.
func sortGuards(list []Guard) {
	sort.Slice(list, func(i, j int) bool {
		a, b := &list[i], &list[j]
		return cmp.Or(strings.Compare(a.Server, b.Server), a.Since.Compare(b.Since), a.PID-b.PID) < 0
	})
}

func without(list []string, s string) []string {
	return slices.DeleteFunc(list, func(o string) bool { return o == s })
}
