package unseen_test

import (
	"testing"
	"unicode/utf8"

	"github.com/rootbound/rootbound/internal/unseen"
)

func TestWhatIsNotSeen(t *testing.T) {
	for _, tt := range []struct{ text, want, visible string }{
		{"plain text,\n\tin two lines\r\n\f", "", ""},
		{"Ünïcödé, 中文, العربية, עברית", "", ""},
		{"\ufeffa byte order mark at the beginning", "", ""},
		{"not \ufeff here", "U+FEFF (no width)", "not ⟨U+FEFF⟩ here"},
		{"\x1b[31mred\x1b[0m", "U+001B (control)", "⟨U+001B⟩[31mred⟨U+001B⟩[0m"},
		{"one byte: \u009b31m", "U+009B (control)", "one byte: ⟨U+009B⟩31m"},
		{"nul\x00, backspace\b", "U+0000 (control), U+0008 (control)", "nul⟨U+0000⟩, backspace⟨U+0008⟩"},
		{"if admin {\u202e // ok", "U+202E (direction)", "if admin {⟨U+202E⟩ // ok"},
		{"\u2066a\u2069", "U+2066 (direction), U+2069 (direction)", "⟨U+2066⟩a⟨U+2069⟩"},
		{"marks of single letters: \u200e \u200f", "", ""},
		{"pass\u200bword", "U+200B (no width)", "pass⟨U+200B⟩word"},
		{"pass\u200dword", "U+200D (no width)", "pass⟨U+200D⟩word"},
		{"a family 👩\u200d👩\u200d👧, a heart ❤\ufe0f\u200d🔥, Persian می\u200cخواهم", "", ""},
		{"England 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "", ""},
		{"a flag without its end 🏴\U000e0067\U000e0062", "U+E0067 (tag), U+E0062 (tag)", "a flag without its end 🏴⟨U+E0067⟩⟨U+E0062⟩"},
		{"hi\U000e0068\U000e0069", "U+E0068 (tag), U+E0069 (tag)", "hi⟨U+E0068⟩⟨U+E0069⟩"},
		{"葛\U000e0100 is one form", "", ""},
		{"☺\ufe01\ufe02", "U+FE02 (tag)", "☺\ufe01⟨U+FE02⟩"},
		{"\x01\x02\x03\x04\x05", "U+0001 (control), U+0002 (control), U+0003 (control), 2 more", "⟨U+0001⟩⟨U+0002⟩⟨U+0003⟩⟨U+0004⟩⟨U+0005⟩"},
	} {
		if got := unseen.Describe(tt.text); got != tt.want {
			t.Errorf("Describe(%+q) = %q, want %q", tt.text, got, tt.want)
		}
		want := tt.visible
		if want == "" {
			want = tt.text
		}
		if got := unseen.Visible(tt.text); got != want {
			t.Errorf("Visible(%+q) = %q, want %q", tt.text, got, want)
		}
		if got := unseen.Any(tt.text); got != (tt.want != "") {
			t.Errorf("Any(%+q) = %v", tt.text, got)
		}
	}
}

// What is written out is seen, whatever it was.
func FuzzVisible(f *testing.F) {
	f.Add("a\u202eb\U000e0068\x1b[0m")
	f.Add("\ufeff\ufeff🏴\U000e0067\U000e007f\u200d")
	f.Fuzz(func(t *testing.T, s string) {
		v := unseen.Visible(s)
		if unseen.Any(v) {
			t.Errorf("Visible(%+q) = %+q, in which there is %s", s, v, unseen.Describe(v))
		}
		if utf8.ValidString(s) && !utf8.ValidString(v) {
			t.Errorf("Visible(%+q) is not UTF-8", s)
		}
		at := 0
		for f := range unseen.All(s) {
			if f.Start < at || f.End <= f.Start || f.End > len(s) {
				t.Fatalf("All(%+q) yields %v behind %d", s, f, at)
			}
			at = f.End
		}
	})
}
