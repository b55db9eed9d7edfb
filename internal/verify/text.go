package verify

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/rootbound/rootbound/internal/unseen"
)

// marks are how a verdict is shown.
var marks = map[Verdict]string{Held: "✔", Leaked: "✘", Failed: "✘", ByDesign: "•", NotApplicable: "–", Inconclusive: "?"}

// WriteText writes the report for a person: the questions as a table, what did not hold, and how many of each class did.
// With all, also the cases that held.
func (r *Report) WriteText(w io.Writer, all bool) error {
	p := &printer{w: w}
	name := r.Server.Name
	if r.Server.Version != "" {
		name += " " + r.Server.Version
	}
	p.say("%s\n", strings.Join(r.Server.Command, " "))
	if name != "" {
		p.say("It calls itself %s. ", name)
	}
	p.say("It speaks: %s. ", strings.Join(r.Server.Eras, ", "))
	if r.Server.Confined != "" {
		p.say("While it was tried: %s.", r.Server.Confined)
	}
	p.say("\n")
	for _, n := range r.Server.Notes {
		p.say("%s.\n", n)
	}
	if len(r.Server.Opened) > 0 {
		p.say("\nWhat it opened and contacted until it had told its tools\n")
		for _, line := range r.Server.Opened {
			p.say("  %s\n", line)
		}
	}
	if len(r.Tools) > 0 {
		var found []string
		for _, t := range r.Tools {
			found = append(found, fmt.Sprintf("%s (%s)", t.Name, t.Role))
		}
		p.say("Tools that were recognised: %s.\n", strings.Join(found, ", "))
	}
	p.questions(r.Questions)
	p.cases(r.Cases, all)
	p.classes(r.Cases)
	p.say("\n%s\n", r.Score)
	return p.err
}

type printer struct {
	w   io.Writer
	err error
}

// say writes what a terminal does nothing with but show: names and texts are a server's.
func (p *printer) say(format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = unseen.Visible(strings.ReplaceAll(s, "\n", " "))
		}
	}
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) questions(list []Answered) {
	if len(list) == 0 {
		return
	}
	p.say("\nWhat people check by hand\n")
	era := ""
	for _, q := range list {
		if q.Era != era {
			era = q.Era
			p.say("  as a client of the %s\n", eraName(era))
		}
		p.say("  %s %s  %s\n", marks[q.Verdict], padded(q.Question, 50), q.Seen)
		if q.Means != "" {
			p.say("      expected: %s\n", q.Expected)
			p.say("      this means: %s\n", q.Means)
		}
		if q.Closes != "" {
			p.say("      this closes it: %s\n", q.Closes)
		}
	}
}

func eraName(era string) string {
	if era == "modern" {
		return "stateless revision (2026-07-28)"
	}
	return "handshake revisions (2024-11-05 to 2025-11-25)"
}

func padded(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-runewidth.StringWidth(s)))
}

func (p *printer) cases(list []Result, all bool) {
	shown := slices.DeleteFunc(slices.Clone(list), func(c Result) bool {
		return !all && (c.Verdict == Held || c.Verdict == NotApplicable)
	})
	if len(shown) == 0 {
		return
	}
	if all {
		p.say("\nEvery case\n")
	} else {
		p.say("\nWhat did not simply hold\n")
	}
	more := 0
	same := func() {
		if more > 0 {
			p.say("      and %d more, for the same reason\n", more)
		}
		more = 0
	}
	for i, c := range shown {
		if i > 0 && c.Verdict == Inconclusive && c.Seen == shown[i-1].Seen && !all {
			more++
			continue
		}
		same()
		verdict := string(c.Verdict)
		if c.Severity != "" {
			verdict += ", " + string(c.Severity)
		}
		p.say("  %s %s  %s (%s, %s)\n      expected: %s\n      seen:     %s\n", marks[c.Verdict], padded(c.ID, 12), c.Attempt, verdict, c.Era, c.Expected, c.Seen)
	}
	same()
}

func (p *printer) classes(list []Result) {
	if len(list) == 0 {
		return
	}
	type count struct{ held, leaked, failed, rest int }
	counts := map[string]*count{}
	var order []string
	for _, c := range list {
		n := counts[c.Class]
		if n == nil {
			n = &count{}
			counts[c.Class] = n
			order = append(order, c.Class)
		}
		switch c.Verdict {
		case Held:
			n.held++
		case Leaked:
			n.leaked++
		case Failed:
			n.failed++
		default:
			n.rest++
		}
	}
	p.say("\n  %s  held  leaked  failed  other\n", padded("class", 14))
	for _, class := range order {
		n := counts[class]
		p.say("  %s  %4d  %6d  %6d  %5d\n", padded(class, 14), n.held, n.leaked, n.failed, n.rest)
	}
}
