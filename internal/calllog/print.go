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

	day             string // the last one printed
	server, subject int    // width of the columns so far
}

// widths counts columns; it does not depend on the machine's locale.
var widths = runewidth.Condition{StrictEmojiNeutral: true}

const (
	maxColumn  = 28
	minSubject = len("roots/list_changed")
)

// Print writes e as one line: time, server, what it is about, what was decided or came out, the details, and the short
// id. A line with the date comes first where the day changes.
func (p *Printer) Print(e Entry) error {
	what, word, detail := describe(&e.Record)
	return p.line(&e.Record, what, word, detail)
}

func (p *Printer) line(r *Record, what, word, detail string) error {
	var b strings.Builder
	t := p.local(r.Time)
	if day := t.Format("2006-01-02"); day != p.day {
		p.day = day
		b.WriteString(p.paint(dim, day) + "\n")
	}
	b.WriteString(p.paint(dim, t.Format("15:04:05")))
	p.subject = max(p.subject, minSubject)
	b.WriteString("  " + column(visible(r.Server), &p.server))
	b.WriteString("  " + column(visible(what), &p.subject))
	b.WriteString("  " + p.paint(colors[word], visible(word)) + strings.Repeat(" ", max(0, 5-len(word))))
	if detail != "" {
		b.WriteString("  " + visible(detail))
	}
	if r.Call != "" {
		b.WriteString("  " + p.paint(dim, "["+visible(r.Call)+"]"))
	}
	_, err := io.WriteString(p.W, strings.TrimRight(b.String(), " ")+"\n")
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
		what, word, detail := describe(&ev.Record)
		switch ev.Kind {
		case RootsAsked:
			if ev.Answer == nil {
				word, detail = "open", detail+": no answer"
				break
			}
			var answer string
			_, word, answer = describe(&ev.Answer.Record)
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
	what, word, _ := describe(r)
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s  %s  %s  %s  %s", orDash(visible(r.Call)), p.local(r.Time).Format("2006-01-02 15:04:05"), visible(r.Server), visible(what),
		p.paint(colors[word], visible(word)))
	if text := reason(r); text != "" {
		line("  because   %s", visible(text))
	}
	for _, path := range r.Paths {
		line("  argument  %s", visible(argument(&path)))
	}
	if r.PathsOmitted > 0 {
		line("            and %d more", r.PathsOmitted)
	}
	if len(r.Args) > 0 {
		line("  all       %s", visible(string(r.Args)))
	}
	if len(r.Paths) > 0 {
		line("  roots     %s", visible(dirs(s.Roots, true)))
	}
	for _, e := range s.Rest {
		what, word, detail := describe(&e.Record)
		line("  then      %s  %s  %s  %s", p.local(e.Time).Format("15:04:05"), visible(what), p.paint(colors[word], visible(word)), visible(detail))
	}
	for i, allow := range s.Allow {
		label := "  to allow  "
		if i > 0 {
			label = "        or  "
		}
		line("%s%s", label, visible(allow))
	}
	line("  record    %s:%d", visible(s.Call.File), r.Seq)
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
	_, err := fmt.Fprintf(p.W, "%s  %s  %s\n", p.paint(colors[word], word), visible(where), text)
	return err
}

// describe says what a record is about, in a word what was decided or came out, and the details.
func describe(r *Record) (what, word, detail string) {
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
		return "roots", "", join(" — ", dirs(r.Before, false)+" → "+dirs(r.After, false), reason(r))
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
		return string(r.Kind), "", join(" — ", name(r.From), reason(r), join(", ", text, size))
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
		all = append(all, place(p))
		if p.Verdict == Deny {
			refused = append(refused, place(p))
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

// place is a path as NAME:relative/path, or as it was resolved, or as it was given.
func place(p *Path) string {
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

// argument is a path of a call with all that is known of it.
func argument(p *Path) string {
	s := p.Arg
	if p.Given != "" {
		s += " " + strconv.Quote(p.Given)
	}
	if p.Resolved != "" && p.Resolved != p.Given {
		s += " is " + p.Resolved
	}
	if p.Root != "" {
		s += ", " + place(p)
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

// column pads s to the width of its column, which grows with what is in it, and cuts it at maxColumn.
func column(s string, width *int) string {
	n := widths.StringWidth(s)
	if n > maxColumn {
		s = widths.Truncate(s, maxColumn, "…")
		n = widths.StringWidth(s)
	}
	*width = max(*width, n)
	return s + strings.Repeat(" ", *width-n)
}

// visible returns s with all that is no visible character, and bad UTF-8, written as an escape.
func visible(s string) string {
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
