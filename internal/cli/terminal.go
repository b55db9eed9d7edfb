package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gdamore/tcell/v3"
	"github.com/gdamore/tcell/v3/color"
)

// A view is shown on the whole screen of a terminal. It is used by one goroutine.
type view interface {
	// resize says how large the screen is, in cells.
	resize(width, height int)
	// update takes a keyMsg, a pasteMsg, or what was sent to the view, and reports whether the view is still shown.
	update(msg any) bool
	// text is what is shown: lines, each in one of the styles as a whole, or plain.
	text() string
}

// styles are those of a line, by what begins it for a terminal; endStyle ends it.
var styles = map[string]tcell.Style{
	"\x1b[1m": tcell.StyleDefault.Bold(true), "\x1b[2m": tcell.StyleDefault.Dim(true),
	"\x1b[31m": tcell.StyleDefault.Foreground(color.Maroon), "\x1b[32m": tcell.StyleDefault.Foreground(color.Green),
}

const endStyle = "\x1b[0m"

type (
	// keyMsg is a key: its name, such as "esc", "up", "ctrl+c" or "a", and what it types, if anything.
	keyMsg struct{ name, text string }
	// pasteMsg is a text that was pasted as a whole.
	pasteMsg string
)

// maxPaste is how many bytes are pasted at most; what is beyond them is dropped.
const maxPaste = 64 << 10

// showView shows v until it has enough, ctx is done or the terminal is gone. It is drawn anew each second, and with each key
// and each of what events brings.
func showView(ctx context.Context, v view, events <-chan any) error {
	s, err := tcell.NewScreen()
	if err == nil {
		err = s.Init()
	}
	if err != nil {
		return fmt.Errorf("setting up the terminal: %w", err)
	}
	defer s.Fini()
	s.EnablePaste()
	s.SetTitle("rootbound approve")
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for k := new(keyboard); ; {
		v.resize(s.Size())
		s.Clear()
		for y, line := range strings.Split(v.text(), "\n") {
			text, style := styled(line)
			s.PutStrStyled(0, y, text, style)
		}
		s.Show()
		var msg any
		select {
		case e, ok := <-s.EventQ():
			if !ok {
				return nil
			}
			if _, resized := e.(*tcell.EventResize); resized {
				s.Sync()
			}
			msg = k.event(e)
		case msg = <-events:
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if msg != nil && !v.update(msg) {
			return nil
		}
	}
}

// styled takes a line apart.
func styled(line string) (string, tcell.Style) {
	for begin, style := range styles {
		if text, ok := strings.CutPrefix(line, begin); ok {
			return strings.TrimSuffix(text, endStyle), style
		}
	}
	return line, tcell.StyleDefault
}

// keyboard makes messages of what a terminal tells. While something is pasted, keys are text and nothing else.
type keyboard struct {
	pasting bool
	pasted  strings.Builder
}

// keyNames are those that anybody asks for.
var keyNames = [...]struct {
	key  tcell.Key
	name string
}{
	{tcell.KeyEnter, "enter"}, {tcell.KeyEsc, "esc"}, {tcell.KeyTab, "tab"}, {tcell.KeyBackspace, "backspace"}, {tcell.KeyBackspace2, "backspace"},
	{tcell.KeyCtrlC, "ctrl+c"}, {tcell.KeyUp, "up"}, {tcell.KeyDown, "down"}, {tcell.KeyPgUp, "pgup"}, {tcell.KeyPgDn, "pgdown"},
}

// event returns the message that an event is for a view, or nil.
func (k *keyboard) event(e tcell.Event) any {
	switch e := e.(type) {
	case *tcell.EventPaste:
		if e.Start() {
			k.pasting = true
			k.pasted.Reset()
			return nil
		}
		k.pasting = false
		return pasteMsg(k.pasted.String())
	case *tcell.EventKey:
		if k.pasting {
			text := e.Str()
			if e.Key() == tcell.KeyEnter {
				text = "\n"
			}
			if k.pasted.Len()+len(text) <= maxPaste {
				k.pasted.WriteString(text)
			}
			return nil
		}
		return keyOf(e)
	}
	return nil
}

// keyOf returns the message for a key, or nil for one that nobody asks for.
func keyOf(e *tcell.EventKey) any {
	switch {
	case e.Key() == tcell.KeyRune && e.Modifiers()&(tcell.ModCtrl|tcell.ModAlt|tcell.ModMeta) == 0:
		if e.Str() == " " {
			return keyMsg{"space", " "}
		}
		return keyMsg{e.Str(), e.Str()}
	case e.Key() == tcell.KeyRune && e.Modifiers() == tcell.ModCtrl && strings.EqualFold(e.Str(), "c"):
		return keyMsg{name: "ctrl+c"}
	}
	for _, n := range keyNames {
		if n.key == e.Key() {
			return keyMsg{name: n.name}
		}
	}
	return nil
}
