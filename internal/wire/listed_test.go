package wire

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// What a server lists is what it listed last, whoever asked for which page, and in whatever order the pages came.
func TestListed(t *testing.T) {
	for _, tt := range []struct{ name, pages, want string }{ // a page is CURSOR:NAMES>NEXT; one that makes a list whole ends in !
		{"one page", ":a,b>!", "a b"},
		{"three pages", ":a>2 2:b>3 3:c>!", "a b c"},
		{"the first page of three", ":a>2", "a"},
		{"another list is shorter", ":a>2 2:b>! :c>!", "c"},
		{"while another list comes", ":a>2 2:b>! :c>2", "a b c"},
		{"two clients at once", ":a>2 :a>2 2:b>! 2:b>", "a b"},
		{"two clients, one ahead", ":a>2 2:b>3 :a>2 3:c>! 2:b>3 3:c>!", "a b c"},
		{"the last page twice", ":a>2 2:b>! 2:b>", "a b"},
		{"a page in the middle twice", ":a>2 2:b>3 2:b>3 3:c>!", "a b c"},
		{"a page of a list that was whole before", ":a>2 2:b>! 2:c>", "a b c"},
		{"and whole again", ":a>2 2:b>! 2:c> :a>2 2:c>!", "a c"},
		{"no first page", "2:b>", "b"},
		{"an empty list", ":a>! :>!", ""},
	} {
		var l Listed[string]
		for page := range strings.FieldsSeq(tt.pages) {
			page, want := strings.CutSuffix(page, "!")
			cursor, rest, _ := strings.Cut(page, ":")
			names, next, _ := strings.Cut(rest, ">")
			listed := map[string]string{}
			for name := range strings.FieldsFuncSeq(names, func(r rune) bool { return r == ',' }) {
				listed[name] = page
			}
			if whole := l.Learn(cursor, listed, next); whole != want {
				t.Errorf("%s: page %s makes it whole: %v", tt.name, page, whole)
			}
			for name := range listed {
				if v, ok := l.Get(name); !ok || v != page {
					t.Errorf("%s: behind page %s %s is of page %q, %v", tt.name, page, name, v, ok)
				}
			}
		}
		all, whole := l.All()
		if got := strings.Join(slices.Sorted(maps.Keys(all)), " "); got != tt.want || whole != strings.Contains(tt.pages, "!") {
			t.Errorf("%s: %q is listed (whole: %v), want %q", tt.name, got, whole, tt.want)
		}
	}
}

// A server may give another cursor each time: that many lists are not kept.
func TestListedHasAnEnd(t *testing.T) {
	var l Listed[int]
	for i := range 10 * maxBegun {
		l.Learn("", map[string]int{"a": i}, strings.Repeat("x", i+1))
	}
	if len(l.begun) > maxBegun {
		t.Errorf("%d lists are waited for", len(l.begun))
	}
	if l.Learn("", map[string]int{"b": 1}, ""); len(l.known) != 1 {
		t.Errorf("a whole list behind them leaves %v", l.known)
	}
}
