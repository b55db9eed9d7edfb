package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// A view is shown on the whole screen of a terminal. It is used by one goroutine.
type view interface {
	// resize says how large the screen is, in cells.
	resize(width, height int)
	// update takes a keyMsg, a pasteMsg, or what was sent to the view, and reports whether the view is still shown.
	update(msg any) bool
	// text is what is shown: at most as many lines as the screen has, none of them longer, and nothing that moves the cursor.
	text() string
}

type (
	// keyMsg is a key: its name, such as "esc", "up", "ctrl+c" or "a", and what it types, if anything.
	keyMsg struct{ name, text string }
	// pasteMsg is a text that was pasted as a whole.
	pasteMsg string
)

const (
	escWait  = 50 * time.Millisecond // how long the rest of a key may take; then it was the Escape key
	maxPaste = 64 << 10              // bytes; what is pasted beyond them is dropped
)

// showView shows v until it has enough, ctx is done or the terminal is gone. Each second, and with what events brings, it is drawn anew.
func showView(ctx context.Context, in, out *os.File, v view, events <-chan any) (err error) {
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("setting up the terminal: %w", err)
	}
	restoreOutput := prepareOutput(out)
	// Another screen, without a cursor; what is pasted is marked.
	if _, err := io.WriteString(out, "\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b]2;rootbound approve\x07"); err != nil {
		return err
	}
	defer func() {
		io.WriteString(out, "\x1b[?2004l\x1b[?25h\x1b[?1049l")
		restoreOutput()
		if e := term.Restore(int(in.Fd()), state); err == nil && e != nil {
			err = fmt.Errorf("setting the terminal back: %w", e)
		}
	}()

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	typed := make(chan []byte)
	go func() { // it may read until the program ends: a terminal cannot be told to stop
		defer close(typed)
		for {
			b := make([]byte, 4096)
			n, err := in.Read(b)
			select {
			case typed <- b[:n]:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	resized, ignore := notifyResize()
	defer ignore()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var k keys
	var d drawing
	for {
		if w, h, err := term.GetSize(int(out.Fd())); err == nil {
			v.resize(w, h)
			d.resize(w, h)
		}
		if err := d.draw(out, v.text()); err != nil {
			return err
		}
		var late <-chan time.Time
		if k.pending() {
			late = time.After(escWait)
		}
		var msgs []any
		select {
		case b, ok := <-typed:
			if !ok {
				return nil
			}
			msgs = k.feed(b)
		case <-late:
			msgs = k.flush()
		case m := <-events:
			msgs = []any{m}
		case <-resized:
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		for _, m := range msgs {
			if !v.update(m) {
				return nil
			}
		}
	}
}

// drawing is what a terminal shows, so that only the lines that changed are written.
type drawing struct {
	width, height int
	lines         []string
}

func (d *drawing) resize(width, height int) {
	if width != d.width || height != d.height {
		*d = drawing{width: width, height: height}
	}
}

func (d *drawing) draw(w io.Writer, text string) error {
	lines := strings.Split(text, "\n")
	var b bytes.Buffer
	if d.lines == nil {
		b.WriteString("\x1b[2J")
	}
	for i := range max(len(lines), len(d.lines)) {
		line, shown := "", ""
		if i < len(lines) {
			line = lines[i]
		}
		if i < len(d.lines) {
			shown = d.lines[i]
		}
		if line != shown {
			fmt.Fprintf(&b, "\x1b[%d;1H%s\x1b[K", i+1, line)
		}
	}
	d.lines = lines
	if b.Len() == 0 {
		return nil
	}
	_, err := w.Write(b.Bytes())
	return err
}

// keys makes keys of what a terminal sends.
type keys struct {
	rest  []byte // the beginning of a key
	paste *bytes.Buffer
}

// Between these a terminal puts what is pasted.
var pasteBegins, pasteEnds = []byte("\x1b[200~"), []byte("\x1b[201~")

// pending reports whether the beginning of a key is there that could be a whole one.
func (k *keys) pending() bool { return len(k.rest) > 0 && k.paste == nil }

// feed takes what came and returns each keyMsg and pasteMsg that is whole.
func (k *keys) feed(b []byte) (msgs []any) {
	k.rest = append(k.rest, b...)
	for len(k.rest) > 0 {
		n, msg := k.next(false)
		if n == 0 {
			break
		}
		k.rest = k.rest[n:]
		if msg != nil {
			msgs = append(msgs, msg)
		}
	}
	return msgs
}

// flush takes what is pending for whole.
func (k *keys) flush() (msgs []any) {
	for k.pending() {
		n, msg := k.next(true)
		if n == 0 {
			n = len(k.rest) // a sequence without its end is none
		}
		k.rest = k.rest[n:]
		if msg != nil {
			msgs = append(msgs, msg)
		}
	}
	return msgs
}

// next returns how many bytes of the rest the first key takes, and the key, which is nil if it is none that anybody asks
// for. It takes none where the rest may go on, unless all of it is there.
func (k *keys) next(all bool) (int, any) {
	b := k.rest
	if k.paste != nil {
		return k.pasted()
	}
	if b[0] == 0x1b {
		return k.sequence(all)
	}
	if !utf8.FullRune(b) && !all {
		return 0, nil
	}
	r, n := utf8.DecodeRune(b)
	switch {
	case r == '\r' || r == '\n':
		return n, keyMsg{name: "enter"}
	case r == '\b' || r == 0x7f:
		return n, keyMsg{name: "backspace"}
	case r == 3:
		return n, keyMsg{name: "ctrl+c"}
	case r == '\t':
		return n, keyMsg{name: "tab"}
	case r == ' ':
		return n, keyMsg{"space", " "}
	case r == utf8.RuneError || !unicode.IsPrint(r):
		return n, nil
	}
	return n, keyMsg{string(r), string(r)}
}

// sequence reads a key that begins with an escape.
func (k *keys) sequence(all bool) (int, any) {
	b := k.rest
	switch {
	case len(b) == 1 && all:
		return 1, keyMsg{name: "esc"}
	case len(b) == 1:
		return 0, nil
	case b[1] == 0x1b: // it was the Escape key, before something else
		return 1, keyMsg{name: "esc"}
	case b[1] == 'O': // an arrow in a mode that programs before us may have left
		if len(b) < 3 {
			return 0, nil
		}
		return 3, keyOf(b[2:3])
	case b[1] != '[': // a key with Alt
		if !utf8.FullRune(b[1:]) && !all {
			return 0, nil
		}
		_, n := utf8.DecodeRune(b[1:])
		return 1 + n, nil
	}
	for i := 2; i < len(b); i++ {
		switch {
		case b[i] >= 0x40 && b[i] <= 0x7e: // it ends
			if bytes.Equal(b[:i+1], pasteBegins) {
				k.paste = new(bytes.Buffer)
				return i + 1, nil
			}
			return i + 1, keyOf(b[2 : i+1])
		case b[i] < 0x20 || b[i] > 0x7e || i > 32: // it is no sequence
			return i, nil
		}
	}
	return 0, nil
}

// keyOf is the key that a sequence stands for.
func keyOf(sequence []byte) any {
	switch string(sequence) {
	case "A":
		return keyMsg{name: "up"}
	case "B":
		return keyMsg{name: "down"}
	case "5~":
		return keyMsg{name: "pgup"}
	case "6~":
		return keyMsg{name: "pgdown"}
	}
	return nil
}

// pasted reads on in what is pasted.
func (k *keys) pasted() (int, any) {
	b := k.rest
	if i := bytes.Index(b, pasteEnds); i >= 0 {
		k.paste.Write(b[:max(0, min(i, maxPaste-k.paste.Len()))])
		text := pasteMsg(strings.ToValidUTF8(k.paste.String(), "\uFFFD"))
		k.paste = nil
		return i + len(pasteEnds), text
	}
	n := len(b) - len(pasteEnds) + 1 // the rest may be the beginning of the end
	if n <= 0 {
		return 0, nil
	}
	k.paste.Write(b[:max(0, min(n, maxPaste-k.paste.Len()))])
	return n, nil
}
