package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"

	"github.com/rootbound/rootbound/internal/calllog"
)

// overview says what runs, as the log has it, and what to do next.
func (a *app) overview() error {
	dir, err := a.dirOf("")
	if err != nil {
		return err
	}
	reports, err := calllog.VerifyDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var runs []*guarded
	for _, r := range reports {
		if r.State != calllog.Running {
			continue
		}
		g, err := readGuarded(r.Path)
		if err != nil {
			return err
		}
		runs = append(runs, g)
	}
	if len(runs) == 0 {
		return a.nothingRuns(dir, reports)
	}
	var b strings.Builder
	var last *calllog.Entry
	for _, g := range runs {
		g.write(&b)
		if d := g.denied; d != nil && (last == nil || d.Time.After(last.Time)) {
			last = d
		}
	}
	b.WriteString("\nNext: `rootbound log --follow` shows what is asked")
	if last != nil {
		fmt.Fprintf(&b, ", `rootbound why %s` why the last refusal was one", printable(last.Call))
	}
	b.WriteString(".\n")
	_, err = fmt.Fprintf(a.out, "%s\n\n%s", plural(len(runs), "guard runs", "guards run"), &b)
	return err
}

// nothingRuns says what to begin with.
func (a *app) nothingRuns(dir string, reports []calllog.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "No guard runs that logs to %s.", dir)
	if n := len(reports); n > 0 {
		r := reports[n-1]
		fmt.Fprintf(&b, " The last one was %s, until %s; `rootbound log` shows what it was asked.", printable(r.Server), r.Last.Local().Format("2006-01-02 15:04"))
	}
	b.WriteString(`

Next: put one in front of a server, in your client's configuration:

  rootbound run -- npx -y @modelcontextprotocol/server-filesystem ~/project

or see one at work: ` + "`rootbound demo`. `rootbound --help` lists every command.\n")
	_, err := fmt.Fprint(a.out, b.String())
	return err
}

// guarded is a run by its records.
type guarded struct {
	start         calllog.Entry
	roots         []calllog.Dir
	calls, denies int
	denied        *calllog.Entry // the last
}

func readGuarded(path string) (*guarded, error) {
	g := &guarded{}
	for e, err := range calllog.Read(path) {
		var unreadable *calllog.UnreadableError
		if errors.As(err, &unreadable) {
			continue
		}
		if err != nil {
			return nil, err
		}
		switch {
		case e.Kind == calllog.Start:
			g.start, g.roots = e, e.Dirs
		case e.Kind == calllog.RootsChanged:
			g.roots = e.After
		case e.Kind == calllog.Call:
			g.calls++
			if e.Verdict == calllog.Deny {
				g.denies++
				g.denied = &e
			}
		}
	}
	return g, nil
}

func (g *guarded) write(b *strings.Builder) {
	s := &g.start
	fmt.Fprintf(b, "%s  since %s, process %d", printable(s.Server), s.Time.Local().Format("2006-01-02 15:04"), s.PID)
	if len(s.Command) > 0 {
		fmt.Fprintf(b, ": %s", printable(strings.Join(s.Command, " ")))
	}
	b.WriteString("\n")
	if len(g.roots) == 0 {
		b.WriteString("  roots    none: calls that name local paths are refused\n")
	}
	for i, d := range g.roots {
		label := ""
		if i == 0 {
			label = "roots"
		}
		name := ""
		if d.Name != "" {
			name = d.Name + "="
		}
		fmt.Fprintf(b, "  %-7s  %s (%s)\n", label, printable(name+d.Path), printable(d.Access))
	}
	if g.denied == nil {
		fmt.Fprintf(b, "  refused  none of %s\n", plural(g.calls, "request", "requests"))
		return
	}
	d := g.denied
	what := d.Tool
	if what == "" {
		what = d.Method
	}
	fmt.Fprintf(b, "  refused  %d of %s, at last %s at %s [%s]\n           %s\n", g.denies, plural(g.calls, "request", "requests"), printable(what),
		d.Time.Local().Format("15:04"), printable(d.Call), printable(d.Reason))
}

// plural counts something.
func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// printable is for a terminal: the log is only a file, and whoever wrote it may have meant the terminal to obey.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
