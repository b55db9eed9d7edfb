package wire

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// FuzzQuote holds quoting to what the library writes.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{
		"", "plain", "a \"quoted\" word", `back\slash`, "line\r\nline\ttab\b\f", "\x00\x01\x1f\x7f", "é€😀", "\xff", "ab\xe2\x82", "seven..\"", "eight...\"", "\xed\xa0\x80 half",
		"\u2028<&>", strings.Repeat("sixteen letters.", 20) + "\n" + strings.Repeat("é", 30), "1234567\x80", "12345678\x1f", "!\"#[\\]", "\u00a0!!!!!!!", "\ufffd",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, _ := jsontext.AppendQuote([]byte("x"), s)
		if got := AppendQuote([]byte("x"), s); string(got) != string(want) {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
		if got := AppendQuoteBytes([]byte("x"), []byte(s)); string(got) != string(want) {
			t.Errorf("the bytes of %q are %q, want %q", s, got, want)
		}
	})
}

func BenchmarkQuote(b *testing.B) {
	text := strings.Repeat("a line of text that is as long as lines of text often are, and ends here\n", 1<<20/73)
	dst := make([]byte, 0, 2*len(text))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		AppendQuote(dst, text)
	}
}
