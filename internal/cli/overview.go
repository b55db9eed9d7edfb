package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/rootbound/rootbound/internal/calllog"
)

// recent is how much of the end of a log the overview reads, in bytes: some hundred requests.
const recent = 256 << 10

// overview says what runs, as the log has it, and what to do next. Of each log only the ends are read.
func (a *app) overview() error {
	dir, err := a.dirOf("")
	if err != nil {
		return err
	}
	on, all, err := guards(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(on) == 0 {
		return a.nothingRuns(dir, all)
	}
	var b strings.Builder
	var last *calllog.Entry
	for _, g := range on {
		g.write(&b)
		if d := g.denied; d != nil && (last == nil || d.Time.After(last.Time)) {
			last = d
		}
	}
	b.WriteString("\nNext: `rootbound log --follow` shows what is asked")
	if last != nil {
		fmt.Fprintf(&b, ", `rootbound why %s` why the last refusal was one", printable(last.Call))
	}
	b.WriteString(".\n" + a.waiting())
	_, err = fmt.Fprintf(a.out, "%s\n\n%s", plural(len(on), "guard runs", "guards run"), &b)
	return err
}

// waiting says that calls or definitions wait for a person, and what is paused, or nothing.
func (a *app) waiting() string {
	text := ""
	if questions, _, err := a.atDesks(context.Background()); err == nil && len(questions) > 0 {
		text = "\n" + plural(len(questions), "call waits", "calls wait") + " for your yes: `rootbound approve`.\n"
	}
	if paused := a.paused(); paused != "" {
		text += "\n" + strings.ToUpper(paused[:1]) + paused[1:] + ".\n"
	}
	s, err := a.pinStore("")
	if err != nil {
		return text
	}
	list, err := s.Waits()
	switch {
	case err != nil:
		return text + "\n" + printable(err.Error()) + "\n"
	case len(list) == 0:
		return text
	}
	return text + "\n" + plural(len(list), "definition that a server changed waits", "definitions that servers changed wait") + " for you: `rootbound approve pins review`.\n"
}

// guards finds the guards that run and log to dir, among all the runs that are logged there.
func guards(dir string) (on []*guarded, all []calllog.Run, err error) {
	all, err = calllog.Runs(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range all {
		if !r.On {
			continue
		}
		g, err := readGuarded(r.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // ended and pruned meanwhile
		case err != nil:
			return nil, all, err
		case g.start.Kind != "" && !g.ended: // else it is about to begin, or to be gone
			on = append(on, g)
		}
	}
	return on, all, nil
}

// nothingRuns says what to begin with.
func (a *app) nothingRuns(dir string, runs []calllog.Run) error {
	var b strings.Builder
	fmt.Fprintf(&b, "No guard runs that logs to %s.", printable(dir))
	if len(runs) > 0 {
		ends, err := calllog.ReadEnds(runs[len(runs)-1].Path, recent)
		if n := len(ends.Last); err == nil && n > 0 {
			last := ends.Last[n-1]
			fmt.Fprintf(&b, " The last one was %s, until %s; `rootbound log` shows what it was asked.", printable(last.Server), last.Time.Local().Format("2006-01-02 15:04"))
		}
	}
	b.WriteString(`

Next: put one in front of a server, in your client's configuration (` + "`rootbound wrap --all`" + ` shows how):

  rootbound run -- npx -y @modelcontextprotocol/server-filesystem ~/project

or see one at work: ` + "`rootbound demo`. `rootbound --help` lists every command.\n" + a.waiting())
	_, err := fmt.Fprint(a.out, b.String())
	return err
}

// guarded is a run by the ends of its log.
type guarded struct {
	start         calllog.Entry
	roots         []calllog.Dir // that are effective
	whole         bool          // nothing in the log was left out
	changed       bool          // the roots are those of the last change, not those of the start
	calls, denies int           // of what was read
	denied        *calllog.Entry
	ended         bool
}

func readGuarded(path string) (*guarded, error) {
	ends, err := calllog.ReadEnds(path, recent)
	if err != nil {
		return nil, err
	}
	g := &guarded{start: ends.Start, roots: ends.Start.Dirs, whole: ends.Whole}
	for i := range ends.Last {
		switch e := &ends.Last[i]; e.Kind {
		case calllog.RootsChanged:
			g.roots, g.changed = e.After, true
		case calllog.Call:
			g.calls++
			if e.Verdict == calllog.Deny {
				g.denies++
				g.denied = e
			}
		case calllog.Exit:
			g.ended = true
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
	of := plural(g.calls, "request", "requests")
	if !g.whole {
		of = "the last " + of
		if !g.changed {
			b.WriteString("           as configured at the start; `rootbound log --roots` shows whether they changed since\n")
		}
	}
	if g.denied == nil {
		fmt.Fprintf(b, "  refused  none of %s\n", of)
		return
	}
	d := g.denied
	what := d.Tool
	if what == "" {
		what = d.Method
	}
	fmt.Fprintf(b, "  refused  %d of %s, at last %s at %s [%s]\n           %s\n", g.denies, of, printable(what),
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
func printable(s string) string { return calllog.Visible(s) }
