package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/approval"
)

func (a *app) statusCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "status [SERVER]",
		Short:   "Say what runs now, what each server may touch and what holds it",
		GroupID: groupLook,
		Long: `Say of every guard that runs, or of those of one server: its clients and the protocol revisions on both sides, the roots
that hold and whether each can be reached now, what holds the server and what does not, what waits for you, how many calls
it lets pass, and the last one that it refused. Paths of calls are shown as ROOT:relative/path.

` + exitCodes,
		Example: `  rootbound status
  rootbound status filesystem
  rootbound status --json | jq -r 'select(.paused) | .server'`,
		Args: usageArgs(cobra.MaximumNArgs(1)), ValidArgsFunction: a.completeGuards,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.status(cmd.Context(), nameOf(args), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON, a guard a line")
	return cmd
}

// running asks every guard what it is now, or those of one server. What cannot be asked is an error beside the others.
func (a *app) running(ctx context.Context, server string) ([]approval.Now, error) {
	dir, err := a.approvalDir()
	if err != nil {
		return nil, err
	}
	guards, err := approval.Find(dir)
	if err != nil {
		return nil, err
	}
	if server != "" {
		guards = slices.DeleteFunc(guards, func(g approval.Guard) bool { return g.Server != server })
	}
	list, errs := make([]approval.Now, len(guards)), make([]error, len(guards))
	var wg sync.WaitGroup
	for i, g := range guards { // one that hangs holds up no other
		wg.Go(func() { list[i], errs[i] = g.Now(ctx) })
	}
	wg.Wait()
	return slices.DeleteFunc(list, func(n approval.Now) bool { return n.PID == 0 }), errors.Join(errs...)
}

func (a *app) status(ctx context.Context, server string, asJSON bool) error {
	list, failed := a.running(ctx, server)
	for _, n := range list {
		if !asJSON {
			continue
		}
		if err := a.jsonLine(n); err != nil {
			return err
		}
	}
	if asJSON {
		return failed
	}
	text := "No guard runs.\n"
	switch {
	case server != "" && len(list) == 0:
		text = fmt.Sprintf("No guard of %s runs.\n", printable(server))
	case len(list) > 0:
		text = guardsText(list)
	case failed != nil:
		return failed
	}
	if _, err := fmt.Fprint(a.out, text); err != nil {
		return err
	}
	return failed
}

// guardsText is what guards are now, with an empty line between them.
func guardsText(list []approval.Now) string {
	var b strings.Builder
	for i := range list {
		if i > 0 {
			b.WriteString("\n")
		}
		writeNow(&b, &list[i])
	}
	return b.String()
}

// writeNow says for a person what a guard is now.
func writeNow(b *strings.Builder, n *approval.Now) {
	line := func(label, format string, args ...any) {
		fmt.Fprintf(b, "  %-7s  %s\n", label, printable(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintf(b, "%s  since %s, process %d", printable(n.Server), n.Since.Local().Format("2006-01-02 15:04"), n.PID)
	if c := commandOf(n); c != "" {
		fmt.Fprintf(b, ": %s", printable(c))
	}
	if n.Paused {
		b.WriteString("; PAUSED: every call is held")
	}
	b.WriteString("\n")
	if n.Listening != "" {
		line("listens", "%s", n.Listening)
	}
	for i := range n.Clients {
		line(label(i, "client", ""), "%s", clientText(&n.Clients[i]))
	}
	if n.More > 0 {
		line("", "and %d more", n.More)
	}
	writeRoots(b, n.Roots, n.Why)
	for i := range n.Clients[min(1, len(n.Clients)):] {
		if c := &n.Clients[i+1]; !slices.Equal(c.Roots, n.Roots) {
			line("", "for %s:", clientName(c))
			writeRoots(b, c.Roots, c.Why)
		}
	}
	var held []string
	for _, l := range n.Layers {
		held = append(held, l.Text)
	}
	line("held", "%s", strings.Join(held, "; "))
	line("calls", "%s", countsText(n))
	if n.Questions > 0 {
		line("waiting", "%s: `rootbound approve`", plural(n.Questions, "call", "calls"))
	}
	if n.Closed != "" {
		line("", "no answers are taken from a terminal: %s", n.Closed)
	}
	if r := n.Refused; r != nil {
		what := r.Tool
		if what == "" {
			what = r.Method
		}
		if r.Path != "" {
			what += " of " + r.Path
		}
		line("refused", "at last %s at %s [%s]", what, r.Time.Local().Format("15:04"), r.Call)
		line("", "%s", r.Reason)
	}
}

// sources are what people call what roots come from.
var sources = map[string]string{"argument": "the server's own arguments", "DIR": "the command line", "workspace": "the work tree"}

// label is that of the first of several lines.
func label(i int, first, other string) string {
	if i == 0 {
		return first
	}
	return other
}

func writeRoots(b *strings.Builder, list []approval.Root, why string) {
	line := func(label, text string) { fmt.Fprintf(b, "  %-7s  %s\n", label, printable(text)) }
	if len(list) == 0 {
		line("roots", "none: calls that name local paths are refused")
	}
	plain := true
	for i, d := range list {
		text := d.Path
		if d.Name != "" {
			text = d.Name + "=" + text
		}
		text += " (" + d.Access
		if d.Pinned {
			text += ", pinned"
		}
		text += ")"
		if d.Source != "" {
			text += " from " + cmp.Or(sources[d.Source], d.Source)
		}
		switch d.State {
		case approval.Unavailable:
			text += ": UNAVAILABLE, " + d.Reason
		case approval.Closed:
			text += ": closed, the client does not open it"
		case approval.WaitsForConsent:
			text += ": waits for your consent (`rootbound roots allow`)"
		}
		plain = plain && d.State == approval.Open
		line(label(i, "roots", ""), text)
	}
	if !plain && why != "" {
		line("", why)
	}
}

func clientName(c *approval.Client) string {
	text := c.Name
	if text == "" {
		text = "a client without a name"
	}
	if c.Version != "" {
		text += " " + c.Version
	}
	return text
}

func clientText(c *approval.Client) string {
	text := clientName(c)
	if c.Session == "" {
		text += " (the last without a session)"
	}
	switch {
	case c.Revision == "":
		return text
	case c.ServerRevision == "":
		return text + ", revision " + c.Revision + "; the server has said nothing yet"
	case c.ServerRevision == c.Revision:
		return text + ", revision " + c.Revision
	}
	return text + ", revision " + c.Revision + "; the server speaks " + c.ServerRevision
}

func countsText(n *approval.Now) string {
	if n.Total.Sum() == 0 {
		return "none yet"
	}
	kinds := func(c approval.Counts) string {
		var parts []string
		for _, k := range []struct {
			n    int
			word string
		}{{c.Allowed, "allowed"}, {c.Approved, "approved"}, {c.Denied, "refused"}} {
			if k.n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", k.n, k.word))
			}
		}
		return strings.Join(parts, ", ")
	}
	text := "none in the last minute"
	if n.Minute.Sum() > 0 {
		text = fmt.Sprintf("%d in the last minute (%s)", n.Minute.Sum(), kinds(n.Minute))
	}
	return text + fmt.Sprintf(", %d since the start (%s)", n.Total.Sum(), kinds(n.Total))
}
