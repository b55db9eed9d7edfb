package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestKeys(t *testing.T) {
	for _, tt := range []struct {
		name string
		sent []string // one read each
		want string
	}{
		{"letters", []string{"q", "n2"}, "q n 2"},
		{"a letter of two reads", []string{"\xc3", "\xa9"}, "é"},
		{"what is no text", []string{"a\x00\x01\xff\u202e\u200bb"}, "a b"},
		{"enter, backspace, tab, space, control and C", []string{"\r\n\x7f\b\t \x03"}, "enter enter backspace backspace tab space ctrl+c"},
		{"arrows and pages", []string{"\x1b[A\x1b[B\x1b[5~\x1b[6~", "\x1bOA\x1bOB"}, "up down pgup pgdown up down"},
		{"an arrow of two reads", []string{"\x1b", "[A"}, "up"},
		{"keys that nobody asks for", []string{"\x1b[C\x1b[1;5A\x1b[15~\x1bOPa\x1bq\x1b[M"}, "a"},
		{"escape", []string{"\x1b"}, "esc"},
		{"escape twice", []string{"\x1b\x1b"}, "esc esc"},
		{"escape before an arrow", []string{"\x1b\x1b[A"}, "esc up"},
		{"half a sequence", []string{"\x1b["}, ""},
		{"a sequence that is none", []string{"\x1b[\rq"}, "enter q"},
		{"a sequence without end", []string{"\x1b[" + strings.Repeat("1", 40) + "q"}, strings.Repeat("1 ", 9) + "q"},
		{"pasted", []string{"\x1b[200~q2\x1b[A\r\x1b[201~n"}, `paste"q2\x1b[A\r" n`},
		{"pasted in pieces", []string{"\x1b[20", "0~q", "2\x1b[20", "1~n"}, `paste"q2" n`},
		{"pasted, and no end of it", []string{"\x1b[200~q"}, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var k keys
			var got []string
			for _, b := range tt.sent {
				got = append(got, typedKeys(k.feed([]byte(b)))...)
			}
			if k.pending() {
				got = append(got, typedKeys(k.flush())...)
			}
			if g := strings.Join(got, " "); g != tt.want {
				t.Errorf("got %q, want %q", g, tt.want)
			}
		})
	}
}

func TestLongPaste(t *testing.T) {
	var k keys
	var got []any
	for _, b := range []string{"\x1b[200~", strings.Repeat("a", maxPaste-1), "bbb", strings.Repeat("c", maxPaste), "\x1b[201~q"} {
		got = append(got, k.feed([]byte(b))...)
	}
	want := strings.Repeat("a", maxPaste-1) + "b"
	if len(got) != 2 || got[0] != pasteMsg(want) || got[1] != (keyMsg{"q", "q"}) {
		t.Errorf("got %d messages, the first of %d bytes", len(got), len(fmt.Sprint(got[0])))
	}
}

// FuzzKeys: whatever a terminal sends, and however it is cut, it is read to its end, and means the same.
func FuzzKeys(f *testing.F) {
	f.Add([]byte("q\x1b[A\x1b[200~x\x1b[201~\x1b\x1bOA\xc3\xa9"), uint(3))
	f.Add([]byte("\x1b[1;1;1;1"), uint(1))
	f.Fuzz(func(t *testing.T, sent []byte, cut uint) {
		var whole, parts keys
		cut %= uint(len(sent)) + 1
		want := append(typedKeys(whole.feed(sent)), typedKeys(whole.flush())...)
		got := append(typedKeys(parts.feed(sent[:cut])), typedKeys(parts.feed(sent[cut:]))...)
		got = append(got, typedKeys(parts.flush())...)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("cut at %d, it is %q, want %q", cut, got, want)
		}
		if len(whole.rest) > 0 && whole.paste == nil {
			t.Errorf("%q is left", whole.rest)
		}
		for _, w := range got {
			if strings.ContainsAny(strings.TrimPrefix(w, "paste"), "\x1b\x07\u202e") {
				t.Errorf("a key types %q", w)
			}
		}
	})
}

func typedKeys(msgs []any) (list []string) {
	for _, m := range msgs {
		switch m := m.(type) {
		case keyMsg:
			list = append(list, m.name)
		case pasteMsg:
			list = append(list, fmt.Sprintf("paste%q", string(m)))
		}
	}
	return list
}

// A drawing writes the lines that changed, and all of them when the screen has another size.
func TestDrawing(t *testing.T) {
	var d drawing
	for _, tt := range []struct {
		width int
		text  string
		want  string
	}{
		{80, "a\nb\nc", "\x1b[2J\x1b[1;1Ha\x1b[K\x1b[2;1Hb\x1b[K\x1b[3;1Hc\x1b[K"},
		{80, "a\nb\nc", ""},
		{80, "a\nx\nc", "\x1b[2;1Hx\x1b[K"},
		{80, "a", "\x1b[2;1H\x1b[K\x1b[3;1H\x1b[K"},
		{40, "a", "\x1b[2J\x1b[1;1Ha\x1b[K"},
	} {
		var b bytes.Buffer
		d.resize(tt.width, 24)
		if err := d.draw(&b, tt.text); err != nil || b.String() != tt.want {
			t.Errorf("%q with width %d is drawn as %q, want %q (%v)", tt.text, tt.width, b.String(), tt.want, err)
		}
	}
}
