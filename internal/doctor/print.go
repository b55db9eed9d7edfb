package doctor

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/rootbound/rootbound/internal/calllog"
)

// Printer writes a report for people. What files say cannot reach the terminal as anything but text.
type Printer struct {
	W io.Writer
	// Color marks severities and headings.
	Color bool
	// Home is written as ~.
	Home string
}

const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

var colors = map[Severity]string{Error: red, Warning: yellow, Information: cyan}

func (p *Printer) paint(color, s string) string {
	if !p.Color || color == "" || s == "" {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

func (p *Printer) short(path string) string { return calllog.Visible(shorten(path, p.Home)) }

// widths counts columns; it does not depend on the machine's locale.
var widths = runewidth.Condition{StrictEmojiNeutral: true}

// Servers writes the table of what each server may touch.
func (p *Printer) Servers(r *Report) error {
	var b strings.Builder
	for i, c := range r.clients {
		if i > 0 {
			b.WriteString("\n")
		}
		title := p.paint(bold, c.name)
		if c.ended != "" {
			title += " (" + c.ended + ")"
		}
		b.WriteString(title + "\n")
		sends := c.sends
		if c.sends == "?" {
			sends = "not known"
		}
		if c.roots != "" {
			sends += ": " + c.roots
		}
		p.fact(&b, "sends roots", sends)
		if c.approval == "" {
			c.approval = "not known"
		}
		p.fact(&b, "approves", c.approval)
		p.fact(&b, "what wins", c.order)
		rows := [][]string{{"SCOPE", "SERVER", "RUNS", "MAY TOUCH", "LIVES IN"}}
		for _, s := range r.Servers {
			if s.Client == c.id {
				rows = append(rows, p.rows(s, c)...)
			}
		}
		if len(rows) == 1 {
			b.WriteString("  no servers that it reads\n")
			continue
		}
		p.table(&b, rows)
	}
	_, err := io.WriteString(p.W, b.String())
	return err
}

func (p *Printer) fact(b *strings.Builder, name, text string) {
	fmt.Fprintf(b, "  %s %s\n", p.paint(dim, fmt.Sprintf("%-11s", name)), calllog.Visible(text))
}

// rows are the lines of one server: one for each directory.
func (p *Printer) rows(s Server, c clientFacts) [][]string {
	runs := s.Runs
	switch {
	case s.Disabled:
		runs += " (off)"
	case s.Guarded:
		runs += " (guarded)"
	}
	scope := s.Scope
	if s.For != "" {
		scope += " " + p.short(s.For)
	}
	first := []string{scope, calllog.Visible(s.Name), runs, s.Unbounded, fmt.Sprintf("%s:%d:%d", p.short(s.File), s.Line, s.Column)}
	rows := [][]string{first}
	for i, t := range s.Touches {
		text := fmt.Sprintf("%s (%s)", p.short(t.Path), t.Access)
		if t.Note != "" {
			text += ", " + t.Note
		}
		if i == 0 {
			rows[0][3] = text
		} else {
			rows = append(rows, []string{"", "", "", text, ""})
		}
	}
	if s.Order != "" {
		rows = append(rows, []string{"", "", "", "", calllog.Visible(s.Order)})
	}
	if s.Approves == "nobody" || strings.HasPrefix(s.Approves, "nobody,") {
		rows = append(rows, []string{"", "", "", "calls are approved by " + s.Approves, ""})
	}
	return rows
}

func (p *Printer) table(b *strings.Builder, rows [][]string) {
	size := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			size[i] = max(size[i], widths.StringWidth(cell))
		}
	}
	for n, row := range rows {
		line := " "
		for i, cell := range row {
			pad := strings.Repeat(" ", size[i]-widths.StringWidth(cell))
			if n == 0 {
				cell = p.paint(dim, cell)
			}
			line += " " + cell + pad + " "
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// Findings writes what is wrong, the worst first, and a line that counts it. What is the same in several places is told
// once.
func (p *Printer) Findings(r *Report) error {
	type group struct {
		Finding
		places []string
	}
	var groups []*group
	known := map[string]*group{}
	count := map[Severity]int{}
	for _, f := range r.Findings {
		place := p.short(f.File)
		if f.Line > 0 {
			place += fmt.Sprintf(":%d:%d", f.Line, f.Column)
		}
		place += "  " + f.Client
		if f.Server != "" {
			place += " " + calllog.Visible(f.Server)
		}
		key := strings.Join([]string{f.ID, string(f.Severity), f.Message, f.Fix}, "\x00")
		if g, ok := known[key]; ok {
			g.places = append(g.places, place)
			continue
		}
		count[f.Severity]++
		known[key] = &group{f, []string{place}}
		groups = append(groups, known[key])
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return rank(b.Severity) - rank(a.Severity) })
	var b strings.Builder
	for _, g := range groups {
		head := p.paint(colors[g.Severity], string(g.Severity)) + " " + p.paint(bold, g.ID) + "  "
		indent := strings.Repeat(" ", len(g.Severity)+len(g.ID)+3)
		b.WriteString(head + strings.Join(g.places, "\n"+indent) + "\n")
		fmt.Fprintf(&b, "  %s %s\n  %s %s\n\n", calllog.Visible(g.What), calllog.Visible(g.Why), p.paint(dim, "fix:"), calllog.Visible(g.Fix))
	}
	for _, file := range r.cut {
		fmt.Fprintf(&b, "Of %s only the first %d findings are told.\n", p.short(file), most)
	}
	b.WriteString(plural(count[Error], "error") + ", " + plural(count[Warning], "warning"))
	if n := count[Information]; n > 0 {
		fmt.Fprintf(&b, ", %d for information", n)
	}
	b.WriteString("\n")
	_, err := io.WriteString(p.W, b.String())
	return err
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
