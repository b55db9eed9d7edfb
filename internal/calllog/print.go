package calllog

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// Printer writes records as a person wants to read them. What peers wrote cannot reach the terminal as anything but
// text. It is not safe for concurrent use.
type Printer struct {
	W io.Writer
	// Color marks verdicts and outcomes by colour.
	Color bool
	// Location is where the reader is; nil is time.Local.
	Location *time.Location

	day string // the last one printed
}

// widths counts columns; it does not depend on the machine's locale.
var widths = runewidth.Condition{StrictEmojiNeutral: true}

// The columns in which the parts of a line begin. They are the same for every log, so that lines that come later line up
// with those that are there.
const (
	wordAt    = len("15:04:05") + 2
	serverAt  = wordAt + len("cancelled") + 2
	subjectAt = serverAt + 12 + 2
	detailAt  = subjectAt + 20 + 2
)

// Print writes e as one line: time, what was decided or came out, server, what it is about, the details, and the short
// id. The parts stand in columns of fixed places; what is longer than its column is not cut, but pushes what comes behind
// it in that line. A line with the date comes first where the day changes.
func (p *Printer) Print(e Entry) error {
	what, word, detail := Describe(&e.Record)
	return p.line(&e.Record, what, word, detail)
}

func (p *Printer) line(r *Record, what, word, detail string) error {
	var b strings.Builder
	t := p.local(r.Time)
	if day := t.Format("2006-01-02"); day != p.day {
		p.day = day
		b.WriteString(p.paint(dim, day) + "\n")
	}
	width := 0
	put := func(at int, color, text string) {
		if text = Visible(text); text == "" {
			return
		}
		if width > 0 {
			at = max(at, width+2)
		}
		b.WriteString(strings.Repeat(" ", at-width) + p.paint(color, text))
		width = at + widths.StringWidth(text)
	}
	put(0, dim, t.Format("15:04:05"))
	put(wordAt, colors[word], word)
	put(serverAt, "", r.Server)
	put(subjectAt, "", what)
	put(detailAt, "", strings.TrimRight(detail, " "))
	if r.Call != "" {
		put(0, dim, "["+r.Call+"]")
	}
	_, err := io.WriteString(p.W, b.String()+"\n")
	return err
}

// PrintJSON writes e as it is in its file. Only what a log of ours does not hold, and a terminal could obey, is written as
// JSON has it: by an escape in a string, by a blank elsewhere.
func (p *Printer) PrintJSON(e Entry) error {
	out := make([]byte, 0, len(e.Line)+1)
	for i, n := 0, 0; i < len(e.Line); i += n {
		var r rune
		switch r, n = utf8.DecodeRune(e.Line[i:]); {
		case r < ' ': // strings have none, or e could not have been read
			out = append(out, ' ')
		case r == utf8.RuneError && n == 1, !unicode.IsGraphic(r):
			out = appendEscaped(out, e.Line[i:i+n])
		default:
			out = append(out, e.Line[i:i+n]...)
		}
	}
	_, err := p.W.Write(append(out, '\n'))
	return err
}

func (p *Printer) local(t time.Time) time.Time {
	if p.Location == nil {
		return t.Local()
	}
	return t.In(p.Location)
}

// PrintRoots writes what happened to roots: each question with its answer, and for each notification whether the list was
// fetched after it.
func (p *Printer) PrintRoots(events []RootsEvent) error {
	for _, ev := range events {
		what, word, detail := Describe(&ev.Record)
		switch ev.Kind {
		case RootsAsked:
			if ev.Answer == nil {
				word, detail = "open", detail+": no answer"
				break
			}
			var answer string
			_, word, answer = Describe(&ev.Answer.Record)
			detail += ": " + answer
		case ListChanged:
			if ev.Fetched == nil {
				word, detail = "open", detail+": list not fetched since"
				break
			}
			word, detail = "ok", detail+": list fetched "+duration(ev.Fetched.Time.Sub(ev.Time))+" later"
		}
		if err := p.line(&ev.Record, what, word, detail); err != nil {
			return err
		}
	}
	return nil
}

// PrintStory writes the story of a call.
func (p *Printer) PrintStory(s Story) error {
	r := &s.Call.Record
	what, word, _ := Describe(r)
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s  %s  %s  %s  %s", orDash(Visible(r.Call)), p.local(r.Time).Format("2006-01-02 15:04:05"), Visible(r.Server), Visible(what),
		p.paint(colors[word], Visible(word)))
	if text := reason(r); text != "" {
		line("  because   %s", Visible(text))
	}
	if r.Rule != "" {
		line("  rule      %s", Visible(r.Rule))
	}
	for _, path := range r.Paths {
		label := "argument"
		if path.Arg == "" {
			label = "path"
		}
		line("  %-8s  %s", label, Visible(argument(&path)))
	}
	if r.PathsOmitted > 0 {
		line("            and %d more", r.PathsOmitted)
	}
	if len(r.Args) > 0 {
		line("  all       %s", Visible(string(r.Args)))
	}
	if len(r.Paths) > 0 {
		line("  roots     %s", Visible(dirs(s.Roots, true)))
	}
	for _, e := range s.Asked {
		_, word, detail := Describe(&e.Record)
		line("  before    %s  %s  %s", p.local(e.Time).Format("15:04:05"), p.paint(colors[word], Visible(word)), Visible(detail))
	}
	for _, e := range s.Rest {
		what, word, detail := Describe(&e.Record)
		line("  then      %s  %s  %s  %s", p.local(e.Time).Format("15:04:05"), Visible(what), p.paint(colors[word], Visible(word)), Visible(detail))
	}
	for i, allow := range s.Allow {
		label := "  to allow  "
		if i > 0 {
			label = "        or  "
		}
		line("%s%s", label, Visible(allow))
	}
	if r.Rule != "" && r.Verdict == Allow {
		line("  to change a [[rule]] with match = { server = %s, tool = %s } and verdict = \"ask\" or \"deny\"",
			strconv.Quote(r.Server), strconv.Quote(r.Tool))
	}
	line("  record    %s:%d", Visible(s.Call.File), r.Seq)
	_, err := io.WriteString(p.W, b.String())
	return err
}

// PrintReport writes what Verify found as one line: whether the chain holds, of which file, and the hash of its last
// record; or where it does not, and why.
func (p *Printer) PrintReport(r Report) error {
	word, text := "ok", fmt.Sprintf("%d records, %v", r.Records, r.State)
	if r.Tail > 0 {
		text += fmt.Sprintf(", the last line is cut off (%d bytes)", r.Tail)
	}
	where := r.Path
	if d := r.Damage; d != nil {
		word, where = "damaged", fmt.Sprintf("%s:%d", r.Path, d.Line)
		text = fmt.Sprintf("%s: %s; %d records before it hold", d.Kind, d.Detail, r.Records)
	}
	if r.Head != "" {
		text += ", head " + r.Head
	}
	_, err := fmt.Fprintf(p.W, "%s  %s  %s\n", p.paint(colors[word], word), Visible(where), text)
	return err
}

// Describe says what a record is about, in a word what was decided or came out, and the details.
func Describe(r *Record) (what, word, detail string) {
	switch r.Kind {
	case Start:
		parts := []string{"rootbound " + r.Version, "pid " + strconv.Itoa(r.PID), "roots " + dirs(r.Dirs, true)}
		if len(r.Layers) > 0 {
			parts = append(parts, strings.Join(r.Layers, ", "))
		}
		return "start", "", join("; ", parts...)
	case Exit:
		word = "ok"
		if r.Status != 0 {
			word = "error"
		}
		return "exit", word, join(", ", "status "+strconv.Itoa(r.Status), r.Reason)
	case Call:
		return subject(r), string(r.Verdict), join(" — ", paths(r), reason(r))
	case End:
		var size, took string
		if r.Bytes > 0 {
			size = bytesText(r.Bytes)
		}
		if r.MS > 0 {
			took = duration(time.Duration(r.MS * float64(time.Millisecond)))
		}
		return subject(r), string(r.Outcome), join(" — ", join(" in ", size, took), reason(r))
	case Asked:
		return subject(r), string(r.Verdict), join(" — ", "a person is asked", reason(r))
	case Answered:
		return subject(r), string(r.Verdict), reason(r)
	case RootsAsked:
		return "roots/list", "", name(r.From) + " asked " + name(r.To)
	case RootsAnswered:
		if r.Outcome == Failed || r.Outcome == Cancelled {
			return "roots/list", string(r.Outcome), orDash(reason(r))
		}
		detail = told(r.Roots)
		if r.Equal != nil && *r.Equal {
			detail += ", equal to configuration"
		} else if r.Equal != nil {
			detail += ", not equal to configuration"
		}
		return "roots/list", "ok", join(" — ", detail, reason(r))
	case RootsChanged:
		full := dirs(r.Before, false) == dirs(r.After, false) // other rights, or another directory of that name
		return "roots", "", join(" — ", dirs(r.Before, full)+" → "+dirs(r.After, full), reason(r))
	case ListChanged:
		return strings.TrimPrefix(r.Method, "notifications/"), "", join(" — ", name(r.From)+" told "+name(r.To), reason(r))
	default:
		var text, size string
		if r.Text != "" {
			text = strconv.Quote(r.Text)
		}
		if r.Bytes > 0 {
			size = bytesText(r.Bytes)
		}
		return string(r.Kind), string(r.Verdict), join(" — ", name(r.From), reason(r), join(", ", text, size))
	}
}

// subject is the tool, or where there is none the method.
func subject(r *Record) string {
	if r.Tool != "" {
		return r.Tool
	}
	return r.Method
}

// reason is the text of why, or where there is none the code.
func reason(r *Record) string {
	if r.Reason != "" {
		return r.Reason
	}
	return r.Code
}

// paths lists the paths of a call, refused ones alone where there are any.
func paths(r *Record) string {
	var all, refused []string
	for i := range r.Paths {
		p := &r.Paths[i]
		if p.Verdict == "" {
			continue
		}
		all = append(all, p.Place())
		if p.Verdict == Deny {
			refused = append(refused, p.Place())
		}
	}
	if len(refused) > 0 {
		all = refused
	}
	if len(all) == 0 {
		return ""
	}
	return some(all)
}

// Place is the path as NAME:relative/path, or as it was resolved, or as it was given.
func (p *Path) Place() string {
	switch {
	case p.Root != "" && p.Rel == "":
		return p.Root + ":."
	case p.Root != "":
		return p.Root + ":" + p.Rel
	case p.Resolved != "":
		return p.Resolved
	}
	return p.Given
}

// argument is a path of a call with all that is known of it. Who judges a path where it is opened does not know the
// argument that it came in.
func argument(p *Path) string {
	s := p.Arg
	if p.Given != "" {
		s = join(" ", s, strconv.Quote(p.Given))
	}
	if p.Resolved != "" && p.Resolved != p.Given {
		s += " is " + p.Resolved
	}
	if p.Root != "" {
		s += ", " + p.Place()
	}
	verdict := string(p.Verdict)
	if verdict == "" {
		verdict = "not judged"
	}
	return s + ": " + join(", ", verdict, p.Code)
}

func dirs(all []Dir, full bool) string {
	var out []string
	for _, d := range all {
		switch {
		case !full && d.Name != "":
			out = append(out, d.Name)
		case !full:
			out = append(out, d.Path)
		default:
			s := join(" ", d.Name, d.Path)
			if d.Access != "" {
				s += " (" + d.Access + ")"
			}
			out = append(out, s)
		}
	}
	return some(out)
}

func told(all []Root) string {
	var out []string
	for _, root := range all {
		out = append(out, join(" ", root.Name, root.URI))
	}
	return some(out)
}

// some lists a few of many.
func some(all []string) string {
	const few = 8
	switch {
	case len(all) == 0:
		return "none"
	case len(all) > few:
		return strings.Join(all[:few], ", ") + fmt.Sprintf(" and %d more", len(all)-few)
	}
	return strings.Join(all, ", ")
}

func name(p Party) string {
	if p == Guard {
		return "rootbound"
	}
	return string(p)
}

func join(sep string, parts ...string) string {
	var out []string
	for _, s := range parts {
		if s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, sep)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func bytesText(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	v, i := float64(n)/1000, 0
	for ; v >= 999.95 && i < len(units)-1; i++ {
		v /= 1000
	}
	return fmt.Sprintf("%.1f %cB", v, units[i])
}

func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatFloat(float64(d.Microseconds())/1000, 'g', 3, 64) + " ms"
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// Visible returns s with all that is no visible character, and bad UTF-8, written as an escape: text that a terminal
// shows and does not obey.
func Visible(s string) string {
	clean := strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsGraphic(r) }) < 0
	if clean {
		return s
	}
	var b []byte
	for i, r := range s {
		_, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b = append(b, '\\', 'x', hexDigits[s[i]>>4], hexDigits[s[i]&15])
		case unicode.IsGraphic(r):
			b = utf8.AppendRune(b, r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b = append(b, quoted[1:len(quoted)-1]...)
		}
	}
	return string(b)
}

const (
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// colors are the colours of words.
var colors = map[string]string{
	"allow": green, "ok": green,
	"ask": yellow, "cancelled": yellow, "open": yellow,
	"deny": red, "error": red, "damaged": red,
}

func (p *Printer) paint(color, s string) string {
	if !p.Color || color == "" || s == "" {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}
