package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/pin"
)

// recent is how much of the end of a log is read for what was last in it, in bytes: some hundred requests.
const recent = 256 << 10

// overview says what runs and what to do next.
func (a *app) overview(ctx context.Context) error {
	if _, err := a.logDir(); err != nil {
		return err
	}
	on, failed := a.running(ctx, "")
	if failed != nil {
		fmt.Fprintf(a.err, "rootbound: %s\n", printableLines(failed.Error()))
	}
	if len(on) == 0 {
		return a.nothingRuns()
	}
	var last *approval.Refusal
	questions := 0
	for i := range on {
		if on[i].Closed == "" { // else nobody can answer them here
			questions += on[i].Questions
		}
		if r := on[i].Refused; r != nil && (last == nil || r.Time.After(last.Time)) {
			last = r
		}
	}
	text := guardsText(on) + "\nNext: `rootbound log --follow` shows what is asked"
	if last != nil {
		text += fmt.Sprintf(", `rootbound why %s` why the last refusal was one", printable(last.Call))
	}
	_, err := fmt.Fprintf(a.out, "%s\n\n%s.\n%s", plural(len(on), "guard runs", "guards run"), text, a.waiting(questions))
	return err
}

// waiting says that so many calls, or definitions, wait for a person, and what is paused, or nothing.
func (a *app) waiting(questions int) string {
	text := ""
	if questions > 0 {
		text = "\n" + plural(questions, "call waits", "calls wait") + " for your yes: `rootbound approve`.\n"
	}
	if paused := a.paused(); paused != "" {
		text += "\n" + strings.ToUpper(paused[:1]) + paused[1:] + ".\n"
	}
	s, err := a.pinStore("")
	if err != nil {
		return text
	}
	list, err := s.Waits()
	list = slices.DeleteFunc(list, func(e pin.Entry) bool { return e.Refused })
	switch {
	case err != nil:
		return text + "\n" + printable(err.Error()) + "\n"
	case len(list) == 0:
		return text
	}
	return text + "\n" + plural(len(list), "definition that a server changed waits", "definitions that servers changed wait") + " for you: `rootbound approve pins review`.\n"
}

// nothingRuns says what to begin with.
func (a *app) nothingRuns() error {
	dir, err := a.dirOf("")
	if err != nil {
		return err
	}
	runs, err := calllog.Runs(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var b strings.Builder
	b.WriteString("No guard runs.")
	if len(runs) > 0 {
		ends, err := calllog.ReadEnds(runs[len(runs)-1].Path, recent)
		if n := len(ends.Last); err == nil && n > 0 {
			last := ends.Last[n-1]
			fmt.Fprintf(&b, " The last one that logged to %s was %s, until %s; `rootbound log` shows what it was asked.", printable(dir), printable(last.Server),
				last.Time.Local().Format("2006-01-02 15:04"))
		}
	}
	b.WriteString(`

Next: put one in front of a server, in your client's configuration (` + "`rootbound wrap --all`" + ` shows how):

  rootbound run -- npx -y @modelcontextprotocol/server-filesystem ~/project

or see one at work: ` + "`rootbound demo`. `rootbound --help` lists every command.\n" + a.waiting(0))
	_, err = fmt.Fprint(a.out, b.String())
	return err
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
