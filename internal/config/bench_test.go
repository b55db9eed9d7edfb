package config

import (
	"fmt"
	"strings"
	"testing"
)

// A file with many rules is read in little time, though each is compared with every other.
func BenchmarkParseRules(b *testing.B) {
	for _, n := range []int{1, 1000} {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "[[rule]]\nmatch = { tool = \"tool_%d\", args = { path = { path_under = \"/srv/project-%d\" } } }\nverdict = \"ask\"\n\n", i%200, i)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := Parse("/c/c.toml", []byte(text.String())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
