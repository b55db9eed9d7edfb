package fsserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDecode(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"plain é 日本 🙂", "plain é 日本 🙂"},
		{"\ufffd", "\ufffd"},
		{"\xff", "\ufffd"},
		{"\xff\xfe", "\ufffd\ufffd"},
		{"\x80a\xbf", "\ufffda\ufffd"},
		{"\xc2", "\ufffd"},
		{"\xc2a", "\ufffda"},
		{"\xc0\xaf", "\ufffd\ufffd"},             // overlong
		{"\xe2\x82", "\ufffd"},                   // the beginning of one character
		{"\xe2\x82\xe2\x82", "\ufffd\ufffd"},     // of two
		{"\xe2\x82A", "\ufffdA"},                 //
		{"\xe0\x80\x80", "\ufffd\ufffd\ufffd"},   // overlong
		{"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},   // a surrogate
		{"\xf0\x9f\x99", "\ufffd"},               // three of four bytes
		{"\xf0\x8f\x99", "\ufffd\ufffd\ufffd"},   // overlong
		{"\xf4\x90\x80", "\ufffd\ufffd\ufffd"},   // beyond Unicode
		{"\xf1\x80\x80\xc2", "\ufffd\ufffd"},     //
		{"\xf5\x80\xff!", "\ufffd\ufffd\ufffd!"}, //
	} {
		if got := decode([]byte(tt.in)); got != tt.want {
			t.Errorf("decode(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

// Blocks of any size give the same lines as the whole text does.
func FuzzLines(f *testing.F) {
	for _, text := range []string{"", "\n", "a", "a\n", "a\nb", "\n\n\na", "a\r\nb\r\n", "é\n\xff\n", strings.Repeat("line\n", 40)} {
		f.Add([]byte(text), uint8(2), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, lines, size uint8) {
		n, buf := int(lines)+1, make([]byte, int(size)+1)
		pieces := strings.Split(string(text), "\n")

		got, err := lastLines(t.Context(), bytes.NewReader(text), int64(len(text)), int64(n), buf)
		if want := strings.Join(pieces[max(0, len(pieces)-n):], "\n"); err != nil || string(got) != want {
			t.Errorf("last %d by %d: %q, %v, want %q", n, len(buf), got, err, want)
		}
		got, err = firstLines(t.Context(), bytes.NewReader(text), int64(n), buf)
		if pieces[len(pieces)-1] == "" {
			pieces = pieces[:len(pieces)-1]
		}
		if want := strings.Join(pieces[:min(n, len(pieces))], "\n"); err != nil || string(got) != want {
			t.Errorf("first %d by %d: %q, %v, want %q", n, len(buf), got, err, want)
		}
		if s := decode(text); !utf8.ValidString(s) || utf8.Valid(text) && s != string(text) {
			t.Errorf("decode(%q) = %q", text, s)
		}
	})
}

func TestLimitsOfLines(t *testing.T) {
	line := strings.Repeat("x", maxText)
	for _, tt := range []struct {
		name  string
		text  string
		n     int64
		first bool // fits from the beginning
		last  bool // fits from the end
	}{
		{"as much as fits", line, 1, true, true},
		{"with its line end", line + "\n", 1, true, true}, // the last line is empty
		{"both lines", line + "\n", 2, true, false},
		{"one byte too many", line + "x", 1, false, false},
		{"and more behind", line + "\n" + line, 1, true, true},
		{"two such lines", line + "\n" + line, 2, false, false},
		{"all there are", line + "\n" + line, math.MaxInt64, false, false},
	} {
		buf := make([]byte, block)
		text, err := firstLines(t.Context(), strings.NewReader(tt.text), tt.n, buf)
		if ok := err == nil; ok != tt.first || !ok && err != errTooLong || len(text) > maxText {
			t.Errorf("%s, first %d: %d bytes, %v", tt.name, tt.n, len(text), err)
		}
		text, err = lastLines(t.Context(), strings.NewReader(tt.text), int64(len(tt.text)), tt.n, buf)
		if ok := err == nil; ok != tt.last || !ok && err != errTooLong || len(text) > maxText {
			t.Errorf("%s, last %d: %d bytes, %v", tt.name, tt.n, len(text), err)
		}
	}
}

// stopper is a file without end whose reader is told to stop at some block.
type stopper struct {
	after int
	stop  context.CancelFunc
}

func (s *stopper) Read(b []byte) (int, error) {
	if s.after--; s.after == 0 {
		s.stop()
	}
	if s.after < 0 {
		return 0, errors.New("read on")
	}
	return len(b), nil
}

func (s *stopper) ReadAt(b []byte, _ int64) (int, error) { return s.Read(b) }

func TestReadingStopsWhenTheClientDoesNotWait(t *testing.T) {
	buf := make([]byte, 16)
	for name, read := range map[string]func(context.Context, *stopper) error{
		"whole": func(ctx context.Context, s *stopper) error {
			_, err := readAll(ctx, s, make([]byte, 0, 17))
			return err
		},
		"head": func(ctx context.Context, s *stopper) error { _, err := firstLines(ctx, s, 5, buf); return err },
		"tail": func(ctx context.Context, s *stopper) error { _, err := lastLines(ctx, s, 1<<20, 5, buf); return err },
	} {
		ctx, stop := context.WithCancel(t.Context())
		if err := read(ctx, &stopper{after: 3, stop: stop}); err != context.Canceled {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file that grows or shrinks while it is read gives what is there, or an error, and never more than fits.
func TestFilesThatChangeWhileTheyAreRead(t *testing.T) {
	grown := io.MultiReader(strings.NewReader(strings.Repeat("x", maxText)), strings.NewReader("y"))
	if _, err := readAll(t.Context(), grown, make([]byte, 0, 6)); err != errTooLong {
		t.Errorf("grown: %v", err)
	}
	if text, err := readAll(t.Context(), strings.NewReader("abc"), make([]byte, 0, 101)); string(text) != "abc" || err != nil {
		t.Errorf("cut: %q, %v", text, err)
	}
	if text, err := lastLines(t.Context(), strings.NewReader("a\nb"), 100, 1, make([]byte, 8)); err != io.ErrUnexpectedEOF {
		t.Errorf("cut before its end is read: %q, %v", text, err)
	}
}
