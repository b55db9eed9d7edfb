package approval

import (
	"cmp"
	"slices"
	"strings"
)

func sortGuards(list []Guard) {
	slices.SortFunc(list, func(a, b Guard) int {
		return cmp.Or(strings.Compare(a.Server, b.Server), a.Since.Compare(b.Since), a.PID-b.PID)
	})
}

func without(list []string, s string) []string {
	return slices.DeleteFunc(list, func(o string) bool { return o == s })
}
