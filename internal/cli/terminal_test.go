package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gdamore/tcell/v3"
)

// What is pasted is text, whatever keys it would be, and has an end.
func TestKeyboard(t *testing.T) {
	key := func(k tcell.Key, text string, mod tcell.ModMask) tcell.Event { return tcell.NewEventKey(k, text, mod) }
	typed := func(text string) (list []tcell.Event) {
		for _, r := range text {
			list = append(list, key(tcell.KeyRune, string(r), 0))
		}
		return list
	}
	paste := func(inside ...tcell.Event) []tcell.Event {
		return append(append([]tcell.Event{tcell.NewEventPaste(true)}, inside...), tcell.NewEventPaste(false))
	}
	for _, tt := range []struct {
		name   string
		events []tcell.Event
		want   string
	}{
		{"letters", typed("q2é "), `q"q" 2"2" é"é" space" "`},
		{"keys", []tcell.Event{
			key(tcell.KeyEnter, "", 0), key(tcell.KeyEsc, "", 0), key(tcell.KeyTab, "", 0), key(tcell.KeyBackspace2, "", 0), key(tcell.KeyCtrlC, "", 0),
			key(tcell.KeyUp, "", 0), key(tcell.KeyDown, "", 0), key(tcell.KeyPgUp, "", 0), key(tcell.KeyPgDn, "", 0),
		}, `enter"" esc"" tab"" backspace"" ctrl+c"" up"" down"" pgup"" pgdown""`},
		{"keys that nobody asks for", []tcell.Event{key(tcell.KeyF1, "", 0), key(tcell.KeyRune, "1", tcell.ModAlt), tcell.NewEventFocus(true)}, ""},
		{"pasted", append(paste(append(typed("q2"), key(tcell.KeyEnter, "", 0), key(tcell.KeyCtrlC, "", 0))...), typed("n")...), `paste"q2\n" n"n"`},
		{"pasted twice", append(paste(typed("a")...), paste(typed("b")...)...), `paste"a" paste"b"`},
		{"pasted without an end", paste(typed("q")...)[:2], ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var k keyboard
			var got []string
			for _, e := range tt.events {
				switch m := k.event(e).(type) {
				case keyMsg:
					got = append(got, fmt.Sprintf("%s%q", m.name, m.text))
				case pasteMsg:
					got = append(got, fmt.Sprintf("paste%q", string(m)))
				}
			}
			if g := strings.Join(got, " "); g != tt.want {
				t.Errorf("got %s, want %s", g, tt.want)
			}
		})
	}
	var k keyboard
	k.event(tcell.NewEventPaste(true))
	for range maxPaste + 10 {
		k.event(key(tcell.KeyRune, "a", 0))
	}
	if m, ok := k.event(tcell.NewEventPaste(false)).(pasteMsg); !ok || len(m) != maxPaste {
		t.Errorf("%d bytes were pasted, want %d", len(m), maxPaste)
	}
}

func TestStyled(t *testing.T) {
	s := &screen{color: true, width: 40}
	for _, color := range []string{"", "1", "2", "31", "32"} {
		text, style := styled(s.paint(color, "text"))
		if text != "text" || (style == tcell.StyleDefault) != (color == "") {
			t.Errorf("a line painted %q is %q in the style %v", color, text, style)
		}
	}
}
