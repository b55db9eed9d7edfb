package ui

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/rootbound/rootbound/internal/unseen"
)

var update = flag.Bool("update", false, "write the file that the page's own reading is compared with")

// The page marks what is not seen by rules of its own, web/lib/unseen.js, which must be those of internal/unseen. This file has
// what these say; a test in a browser (peers/ui_test.go) compares the page's with it.
func TestUnseenAsThePageHasIt(t *testing.T) {
	var edges []rune
	for r := rune(0); r <= 0xe0200; r++ {
		if r == 0xd800 {
			r = 0xe000
		}
		before, at, after := unseen.Any("a"+string(max(r-1, 0))), unseen.Any("a"+string(r)), unseen.Any("a"+string(r+1))
		if r == 0 || before != at || at != after {
			edges = append(edges, r)
		}
	}
	edges = append(edges, 0xfe00, 0xfe0f, 0xe0100, 0xe01ef, 0xe01f0, 0x1f3f4, 0x1f468, 0x0627, 0x0915, 0x094d, 0xfffd, 0x300, 0x2ff)
	slices.Sort(edges)
	var texts []string
	for _, r := range edges {
		s := string(r)
		texts = append(texts, s, "a"+s, s+"b", "a"+s+"b", "\u0627"+s+"\u0627", s+s, "\U0001f468"+s+"\U0001f469", "\u0915"+s, "\ufe0f"+s)
	}
	texts = append(texts, "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "\U0001f3f4\U000e0067\U000e0062", "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e0067\U000e0067\U000e0067\U000e007f",
		"\ufeffhello", "hello\ufeff", "line\nline\r\n\tend\f", "")
	var rows [][2]string
	for _, s := range texts {
		rows = append(rows, [2]string{s, unseen.Visible(s)})
	}
	got, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile("testdata/unseen.json", got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/unseen.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("testdata/unseen.json is not what internal/unseen says: run go test ./internal/ui -update, and mend web/lib/unseen.js")
	}
}
