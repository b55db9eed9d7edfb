package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/rootbound/rootbound/internal/approval"
)

// interactive reports whether a person sits before standard input and output.
func (a *app) interactive() bool {
	for _, f := range []any{a.in, a.out} {
		file, ok := f.(*os.File)
		if !ok {
			return false
		}
		if info, err := file.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 || file.Name() == os.DevNull {
			return false
		}
	}
	return true
}

// watchQuestions shows questions on the whole screen until the person has enough.
func (a *app) watchQuestions(ctx context.Context) error {
	dir, err := a.approvalDir()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &screen{
		guards: map[string]*known{},
		answer: func(w waiting, r approval.Reply) error { return w.guard.Answer(ctx, w.ID, r) },
		pause: func(paused bool) error {
			_, err := approval.Pause(ctx, dir, "", paused)
			return err
		},
		paused: func() bool {
			all, _, err := approval.Paused(dir)
			return all || err != nil
		},
		now: time.Now, color: a.color(),
	}
	events := make(chan any)
	go approval.Watch(ctx, dir, func(e approval.Event) {
		select {
		case events <- e:
		case <-ctx.Done():
		}
	})
	return showView(ctx, s, events) // interactive has looked that there is a terminal
}

// screen is what `approve` shows. It changes nothing itself.
type screen struct {
	answer func(waiting, approval.Reply) error
	pause  func(bool) error
	paused func() bool
	now    func() time.Time
	color  bool

	width, height int
	guards        map[string]*known // by their keys
	looking       bool              // at the guards, though questions wait
	selected      string            // the id of the question that is shown
	since         time.Time         // since when
	scroll        int
	noting        bool // a note to a no is being typed
	note          string
	said          string // what came of the last key
}

// known is what a guard has told.
type known struct {
	guard approval.Guard
	state approval.State
	now   *approval.Now // nil before it told
}

// settle is how long a question has to be on the screen before a key answers it: a key that was meant for the one before
// must not.
const settle = 500 * time.Millisecond

func (s *screen) questions() (list []waiting) {
	for _, g := range s.guards {
		for _, q := range g.state.Questions {
			list = append(list, waiting{q, g.guard})
		}
	}
	sort.Slice(list, func(i, j int) bool {
		x, y := &list[i], &list[j]
		return cmp.Or(x.Asked.Compare(y.Asked), strings.Compare(x.ID, y.ID)) < 0
	})
	return list
}

// current is the question that is shown.
func (s *screen) current() (waiting, int, bool) {
	list := s.questions()
	i := slices.IndexFunc(list, func(w waiting) bool { return w.ID == s.selected })
	if i < 0 {
		return waiting{}, -1, false
	}
	return list[i], i, true
}

func (s *screen) choose(id string) {
	if id != s.selected {
		s.selected, s.since, s.scroll, s.noting, s.note = id, s.now(), 0, false, ""
	}
}

// keep shows another question when the one that was shown is gone.
func (s *screen) keep() {
	if _, _, ok := s.current(); ok {
		return
	}
	if list := s.questions(); len(list) > 0 {
		s.choose(list[0].ID)
	} else {
		s.choose("")
	}
}

func (s *screen) resize(width, height int) { s.width, s.height = width, height }

func (s *screen) update(msg any) bool {
	switch msg := msg.(type) {
	case approval.Event:
		s.event(msg)
	case pasteMsg:
		if s.noting {
			s.note += approval.Line(string(msg), 500)
		}
	case keyMsg:
		if s.noting {
			s.typeNote(msg)
			return true
		}
		return s.key(msg.name)
	}
	return true
}

// event takes what a guard tells.
func (s *screen) event(e approval.Event) {
	if e.Err != nil {
		s.said = e.Err.Error()
	}
	key := e.Guard.Key()
	switch g := s.guards[key]; {
	case e.Gone:
		delete(s.guards, key)
	case e.State == nil && e.Now == nil:
		return
	case g == nil:
		s.guards[key] = &known{guard: e.Guard}
	}
	if g := s.guards[key]; g != nil {
		if e.State != nil {
			g.state = *e.State
		}
		if e.Now != nil {
			g.now = e.Now
		}
	}
	s.keep()
}

func (s *screen) typeNote(k keyMsg) {
	switch k.name {
	case "enter":
		s.noting = false
		s.reply(approval.Reply{Note: s.note})
		s.note = ""
	case "esc", "ctrl+c":
		s.noting, s.note = false, ""
	case "backspace":
		if r := []rune(s.note); len(r) > 0 {
			s.note = string(r[:len(r)-1])
		}
	default:
		if len(s.note) < 500 {
			s.note += k.text
		}
	}
}

// key does what a key is for, and reports whether the screen is still shown.
func (s *screen) key(key string) bool {
	list := s.questions()
	w, at, ok := s.current()
	switch key {
	case "q", "ctrl+c", "esc":
		return false
	case "p":
		paused := s.paused()
		s.said = "every call is held now"
		if paused {
			s.said = "calls go on"
		}
		if err := s.pause(!paused); err != nil {
			s.said = err.Error()
		}
	case "tab", "g":
		s.looking, s.scroll = !s.looking, 0
	case "up", "k":
		if s.looking || !ok {
			s.scroll = max(0, s.scroll-1)
		} else if at > 0 {
			s.choose(list[at-1].ID)
		}
	case "down", "j":
		if s.looking || !ok {
			s.scroll++
		} else if at+1 < len(list) {
			s.choose(list[at+1].ID)
		}
	case "pgdown", "space":
		s.scroll += max(1, s.height/2)
	case "pgup":
		s.scroll = max(0, s.scroll-max(1, s.height/2))
	case "n":
		s.noting = ok && !s.looking
	case "1", "2", "3", "4", "5", "6":
		if n := int(key[0] - '1'); ok && !s.looking && n < len(w.Choices) {
			c := w.Choices[n]
			c.Scope = ""
			s.reply(approval.Reply{Choice: c})
		}
	}
	return true
}

func (s *screen) reply(r approval.Reply) {
	w, _, ok := s.current()
	switch {
	case !ok:
	case r.Allow && s.now().Sub(s.since) < settle:
		s.said = "another question is shown now; press the key again if you mean it"
	default:
		if err := s.answer(w, r); err != nil {
			s.said = err.Error()
			return
		}
		s.said = fmt.Sprintf("%s: %s", w.ID, r.Word())
	}
}

// text is the screen. Nothing in it is longer than a line.
func (s *screen) text() string {
	list := s.questions()
	w, at, ok := s.current()
	head := fmt.Sprintf("rootbound: %s, %s", plural(len(s.guards), "guard", "guards"), plural(len(list), "question", "questions"))
	if s.paused() {
		head += "; PAUSED: every call is held"
	}
	keys := "p pause or go on · ↑ ↓ PgDn more · q quit"
	switch {
	case ok && s.looking:
		keys = "Tab the questions · " + keys
	case ok:
		keys = "p pause or go on · 1–" + fmt.Sprint(len(w.Choices)) + " answer · n no, with a note · ↑ ↓ another · PgDn more · Tab the guards · q quit"
	}
	if s.noting {
		keys = "no, because: " + s.note + "▏ (Enter sends, Esc does not)"
	}
	foot := []string{s.line(s.said), s.paint("2", keys)}
	var body []string
	room := max(1, s.height-len(foot)-2)
	if !ok || s.looking {
		body = []string{""}
		if !ok {
			body = append(body, "Nothing waits for you.", "")
		}
		body = append(body, s.part(s.running(), room-len(body))...)
	} else {
		shown := min(len(list), max(1, room/4))
		from := min(max(0, at-shown/2), len(list)-shown)
		for i, q := range list[from : from+shown] {
			mark, color := "  ", ""
			if from+i == at {
				mark, color = "> ", "1"
			}
			left := "paused"
			if !q.Until.IsZero() {
				left = max(0, q.Until.Sub(s.now())).Round(time.Second).String()
			}
			body = append(body, s.paint(color, fmt.Sprintf("%s%s  %6s  %s", mark, q.ID, left, q.Head)))
		}
		body = append(body, "")
		var detail []string
		for _, l := range strings.Split(strings.TrimSuffix(describe(&w.Question), "\n"), "\n") {
			for _, part := range s.wrap(printable(l)) {
				switch {
				case strings.HasPrefix(part, "+") && !strings.HasPrefix(part, "+++"):
					part = s.paint("32", part)
				case strings.HasPrefix(part, "-") && !strings.HasPrefix(part, "---"):
					part = s.paint("31", part)
				}
				detail = append(detail, part)
			}
		}
		// The choices are always to be seen: they are what is answered.
		choices := []string{""}
		for i, c := range w.Choices {
			choices = append(choices, s.line(fmt.Sprintf("%d  %s", i+1, c)))
		}
		body = append(body, s.part(detail, room-len(body)-len(choices))...)
		body = append(body, choices...)
	}
	body = append([]string{s.paint("1", head)}, body...)
	for len(body) < s.height-len(foot) {
		body = append(body, "")
	}
	return strings.Join(append(body, foot...), "\n")
}

// part is what fits of lines, from where they are scrolled to.
func (s *screen) part(lines []string, space int) []string {
	space = max(1, space)
	s.scroll = max(0, min(s.scroll, len(lines)-space))
	end := min(len(lines), s.scroll+space)
	shown := slices.Clone(lines[s.scroll:end])
	if more := len(lines) - end; more > 0 && len(shown) > 0 {
		shown[len(shown)-1] = s.paint("2", fmt.Sprintf("(%d lines more)", more+1))
	}
	return shown
}

// running is what every guard is now.
func (s *screen) running() (lines []string) {
	list := slices.Collect(maps.Values(s.guards))
	slices.SortFunc(list, func(x, y *known) int {
		return cmp.Or(strings.Compare(x.guard.Server, y.guard.Server), x.guard.Since.Compare(y.guard.Since), strings.Compare(x.guard.Key(), y.guard.Key()))
	})
	for _, g := range list {
		if g.now == nil {
			continue
		}
		var b strings.Builder
		writeNow(&b, g.now)
		for i, l := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
			for _, part := range s.wrap(l) {
				if i == 0 {
					part = s.paint("1", part)
				}
				lines = append(lines, part)
			}
		}
		lines = append(lines, "")
	}
	return lines
}

// line is one line that fits.
func (s *screen) line(text string) string {
	text = printable(text)
	if s.width > 0 {
		text = runewidth.Truncate(text, s.width, "…")
	}
	return text
}

// wrap cuts a line into such that fit.
func (s *screen) wrap(text string) []string {
	if s.width <= 0 {
		return []string{text}
	}
	return foldLine(text, s.width, s.width)
}

// foldLine cuts a line into one that is so wide at most, and such that are as wide as more: behind a blank where there is one not far
// away, and else within a word. What colours it has no width.
func foldLine(text string, most, more int) []string {
	var parts []string
	begin, blank, width, since := 0, 0, 0, 0 // where the part begins, and what is behind its last blank; how wide it is, and since then
	color := false
	for i, r := range text {
		n := runewidth.RuneWidth(r)
		if color = color || r == '\x1b'; color {
			n, color = 0, r != 'm'
		}
		if width+n > most && i > begin {
			end := i
			if blank > begin+(i-begin)/2 && r != ' ' {
				end = blank
			} else {
				since = 0
			}
			parts = append(parts, text[begin:end])
			begin, width, most = end, since, more
		}
		width += n
		since += n
		if r == ' ' {
			blank, since = i+1, 0
		}
	}
	return append(parts, text[begin:])
}

func (s *screen) paint(color, text string) string {
	text = s.line(text)
	if !s.color || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + endStyle
}
