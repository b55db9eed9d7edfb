package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/unseen"
)

// yesFlags are what a yes is good for besides the call.
type yesFlags struct {
	session     bool
	under, host string
	for_        time.Duration
}

func (a *app) approveCommand() *cobra.Command {
	var y yesFlags
	cmd := &cobra.Command{
		Use:     "approve [ID]",
		Short:   "Answer what servers want to do and a person is asked about",
		GroupID: groupDecide,
		Long: `Answer the questions of running guards: calls for which the rules want a yes of a person. With the ID of a call it is
allowed, once; without one the questions are shown as they come, where the output is a terminal, and else listed.

A yes can be good for more, as far as the rule lets it: for this session (--session), for the same tool beneath a directory
(--under) or to a host (--host), for some time (--for). Whoever answers first, here or in the client, has answered.

` + "`deny`, `grants`, `pause`, `pins` and `resume` are known without `approve` before them, too." + `

` + exitCodes,
		Example: `  rootbound approve
  rootbound approve list
  rootbound approve c7f3a2
  rootbound approve c7f3a2 --under ~/project/docs --for 2h
  rootbound approve deny c7f3a2 "use the other branch"
  rootbound approve pause`,
		Args:              usageArgs(cobra.MaximumNArgs(1)),
		ValidArgsFunction: a.completeQuestions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				if cmd.Flags().NFlag() > 0 {
					return usageError{Err: withHint(errors.New("which call is allowed?"), "write `rootbound approve ID`; `rootbound approve list` shows what waits")}
				}
				if a.interactive() {
					return a.watchQuestions(cmd.Context())
				}
				return a.listQuestions(cmd.Context(), false)
			}
			return a.allow(cmd.Context(), args[0], y)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&y.session, "session", false, "it is good for this session")
	f.StringVar(&y.under, "under", "", "it is good for the same tool beneath `DIR`")
	f.StringVar(&y.host, "host", "", "it is good for the same tool to `HOST`")
	f.DurationVar(&y.for_, "for", 0, "how long it is good, such as 30m; at most 720h")
	cmd.AddCommand(a.listQuestionsCommand(), a.showQuestionCommand(), a.denyCommand(), a.watchCommand(), a.grantsCommand(), a.pinsCommand(), a.pauseCommand(true), a.pauseCommand(false))
	return cmd
}

func (a *app) listQuestionsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List what waits for you", Example: "  rootbound approve list\n  rootbound approve list --json | jq -r .id", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listQuestions(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON, a question a line")
	return cmd
}

func (a *app) showQuestionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show all of a question, with all arguments", Example: "  rootbound approve show c7f3a2", Args: usageArgs(cobra.ExactArgs(1)), ValidArgsFunction: a.completeQuestions,
		RunE: func(cmd *cobra.Command, args []string) error { return a.showQuestion(cmd.Context(), args[0]) },
	}
}

func (a *app) denyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "deny ID [NOTE]", Short: "Refuse a call; the model reads the note",
		Example:           `  rootbound approve deny c7f3a2 "ask me before you delete"`,
		Args:              usageArgs(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: a.completeQuestions,
		RunE: func(cmd *cobra.Command, args []string) error {
			r := approval.Reply{Note: strings.Join(args[1:], " ")}
			if err := a.answerQuestion(cmd.Context(), args[0], r); err != nil {
				return err
			}
			_, err := fmt.Fprintf(a.out, "denied: %s\n", args[0])
			return err
		},
	}
}

func (a *app) watchCommand() *cobra.Command {
	return &cobra.Command{
		Use: "watch", Short: "Show questions as they come, and answer them, on the whole screen",
		Long: `Show questions as they come, and answer them, on the whole screen. The keys are on its last line; p holds every call until
it is pressed again.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !a.interactive() {
				return withHint(errors.New("this is no terminal"), "`rootbound approve list` lists what waits")
			}
			return a.watchQuestions(cmd.Context())
		},
	}
}

func (a *app) pauseCommand(paused bool) *cobra.Command {
	cmd := &cobra.Command{
		Use: "pause [SERVER]", Short: "Hold every call, of all servers or of one, until `resume`",
		Long: `Hold every call of all servers, or of one, whatever the rules say, also of guards that start later. What is held can be refused
(deny ID) or let through (approve ID); the rest goes on with resume, by the rules.`,
		Example: `  rootbound approve pause
  rootbound approve pause filesystem
  rootbound approve resume`,
		Args: usageArgs(cobra.MaximumNArgs(1)), ValidArgsFunction: a.completeGuards,
		RunE: func(cmd *cobra.Command, args []string) error { return a.pause(cmd.Context(), args, paused) },
	}
	if !paused {
		cmd.Use, cmd.Short, cmd.Long, cmd.Example = "resume [SERVER]", "Let calls go on that `pause` holds", "", "  rootbound approve resume\n  rootbound approve resume filesystem"
	}
	return cmd
}

func (a *app) pause(ctx context.Context, args []string, paused bool) error {
	dir, err := a.approvalDir()
	if err != nil {
		return err
	}
	server := nameOf(args)
	if _, servers, err := approval.Paused(dir); err == nil && !paused && server != "" && !slices.Contains(servers, server) {
		if all, _, _ := approval.Paused(dir); !all { // else it says so
			hint := "`rootbound status` shows what runs"
			if len(servers) > 0 {
				hint = among(server, servers)
			}
			return withHint(fmt.Errorf("resuming %q: it is not paused", server), hint)
		}
	}
	told, err := approval.Pause(ctx, dir, server, paused)
	if err != nil {
		return err
	}
	what, done := "every server", "goes on"
	if server != "" {
		what = printable(server)
	}
	if paused {
		done = "is paused"
	}
	in := ", in " + plural(len(told), "guard that runs", "guards that run")
	if len(told) == 0 {
		in = "; no guard of it runs now"
		if server == "" {
			in = "; no guard runs now"
		}
	}
	_, err = fmt.Fprintf(a.out, "%s %s%s\n", what, done, in)
	if err == nil && len(told) == 0 && paused {
		fmt.Fprintf(a.err, "rootbound: one that starts will be paused\n")
	}
	return err
}

// nameOf is the name of a server that is given, or "". What is not UTF-8 is as it is kept in files.
func nameOf(args []string) string { return string([]rune(strings.Join(args, ""))) }

// waiting is a question, with the guard that it is at.
type waiting struct {
	approval.Question
	guard approval.Guard
}

// atDesks are the questions of all guards that run, the oldest first. Guards that cannot be asked are an error beside the questions of
// the others.
func (a *app) atDesks(ctx context.Context) (list []waiting, guards []approval.Guard, err error) {
	dir, err := a.approvalDir()
	if err != nil {
		return nil, nil, err
	}
	if guards, err = approval.Find(dir); err != nil {
		return nil, nil, err
	}
	desks, errs := make([]approval.State, len(guards)), make([]error, len(guards))
	var wg sync.WaitGroup
	for i, g := range guards { // one that hangs holds up no other
		wg.Go(func() { desks[i], errs[i] = g.State(ctx) })
	}
	wg.Wait()
	for i, g := range guards {
		for _, q := range desks[i].Questions {
			list = append(list, waiting{q, g})
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Asked.Before(list[j].Asked) })
	return list, guards, errors.Join(errs...)
}

// findQuestion finds the question of a call.
func (a *app) findQuestion(ctx context.Context, id string) (waiting, error) {
	list, guards, failed := a.atDesks(ctx)
	for _, w := range list {
		if w.ID == id {
			return w, nil
		}
	}
	for _, g := range guards { // the same call may have come again, or wait before it
		if q, err := g.Question(ctx, id, nil); err == nil {
			return waiting{q, g}, nil
		}
	}
	if failed != nil { // it may be there
		return waiting{}, failed
	}
	hint := "`rootbound approve list` shows what waits; `rootbound why " + printable(id) + "` what became of a call"
	if !calllog.IsID(id) {
		hint = "an id is what stands first in a line of `rootbound approve list`"
		if near, ok := launch.Nearest(id, []string{"list", "show", "deny", "watch", "grants", "pins", "pause", "resume"}); ok {
			hint = fmt.Sprintf("did you mean `rootbound approve %s`? ", near) + hint
		}
	}
	return waiting{}, withHint(fmt.Errorf("looking for %q: %w", id, approval.ErrNoQuestion), hint)
}

func (a *app) answerQuestion(ctx context.Context, id string, r approval.Reply) error {
	w, err := a.findQuestion(ctx, id)
	if err != nil {
		return err
	}
	if err := w.guard.Answer(ctx, id, r); err != nil {
		return fmt.Errorf("answering %q: %w", id, err)
	}
	return nil
}

func (a *app) allow(ctx context.Context, id string, y yesFlags) error {
	c := approval.Choice{Allow: true, Session: y.session, Host: strings.ToLower(y.host), For: y.for_}
	if y.under != "" {
		c.Under = place(y.under)
	}
	if err := a.answerQuestion(ctx, id, approval.Reply{Choice: c}); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "allowed: %s (%s)\n", id, printable(c.String()))
	return err
}

func (a *app) listQuestions(ctx context.Context, asJSON bool) error {
	list, guards, failed := a.atDesks(ctx)
	if asJSON {
		for _, w := range list {
			if err := a.jsonLine(w.Question); err != nil {
				return err
			}
		}
		return failed
	}
	if text := a.paused(); text != "" {
		fmt.Fprintf(a.err, "rootbound: %s\n", text)
	}
	if len(list) == 0 && failed != nil {
		return failed
	}
	if len(list) == 0 {
		if len(guards) == 0 {
			_, err := fmt.Fprintln(a.out, "Nothing waits for you: no guard runs.")
			return err
		}
		_, err := fmt.Fprintf(a.out, "Nothing waits for you, in %s.\n", plural(len(guards), "guard that runs", "guards that run"))
		return err
	}
	for _, w := range list {
		left := "until you resume"
		if !w.Until.IsZero() {
			left = fmt.Sprintf("%v left", time.Until(w.Until).Round(time.Second))
		}
		more := ""
		if w.Behind > 0 {
			more = fmt.Sprintf(", and %d more like it", w.Behind)
		}
		if _, err := fmt.Fprintf(a.out, "%s  %s\n        %s%s\n", printable(w.ID), printable(w.Head), left, more); err != nil {
			return err
		}
	}
	return failed
}

// paused says what is paused; "" for nothing.
func (a *app) paused() string {
	dir, err := a.approvalDir()
	if err != nil {
		return ""
	}
	switch all, servers, err := approval.Paused(dir); {
	case err != nil:
		return fmt.Sprintf("every call is held, because it cannot be read what is paused: %s", printable(err.Error()))
	case all:
		return "every server is paused; `rootbound approve resume` lets them go on"
	case len(servers) > 0:
		return fmt.Sprintf("paused are %s; `rootbound approve resume` lets them go on", printable(strings.Join(servers, ", ")))
	}
	return ""
}

func (a *app) showQuestion(ctx context.Context, id string) error {
	w, err := a.findQuestion(ctx, id)
	if err != nil {
		return err
	}
	q, err := w.guard.Question(ctx, id, nil) // in a list it may be short
	if err != nil {
		return fmt.Errorf("looking for %q: %w", id, err)
	}
	if _, err := fmt.Fprintln(a.out, describe(&q)); err != nil {
		return err
	}
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, c := range w.Choices {
		fmt.Fprintf(t, "  %s\t%s\n", printable(answering(w.ID, c)), printable(c.String()))
	}
	return t.Flush()
}

// answering is the command that gives an answer.
func answering(id string, c approval.Choice) string {
	cmd := "rootbound approve " + id
	switch {
	case !c.Allow:
		return "rootbound approve deny " + id
	case c.Under != "":
		cmd += " --under " + guard.ShellQuote(c.Under)
	case c.Host != "":
		cmd += " --host " + guard.ShellQuote(c.Host)
	case c.Session:
		cmd += " --session"
	}
	if c.For > 0 {
		cmd += " --for " + c.For.String()
	}
	return cmd
}

// describe writes a question for a terminal, with its arguments as they are and without the answers to it.
func describe(q *approval.Question) string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(printable(fmt.Sprintf(format, args...)) + "\n") }
	line("%s", approval.Line(q.Head, 1000))
	b.WriteString("\n")
	for _, f := range q.Facts {
		line("%s", approval.Line(f, 1000))
	}
	if q.Why != "" {
		line("why: %s", approval.Line(q.Why, 1000))
	}
	if q.Digest != "" {
		line("digest: %s", q.Digest)
	}
	if q.Diff != "" {
		b.WriteString("\n")
		for l := range strings.Lines(q.Diff) {
			line("%s", approval.Line(strings.TrimSuffix(l, "\n"), 1000))
		}
	}
	if q.Short {
		line("\nWhat changes, and the arguments (%d bytes), are more than is shown here: rootbound approve show %s", q.Size, q.ID)
		return b.String()
	}
	b.WriteString("\narguments:\n")
	var text bytes.Buffer
	if len(q.Args) > 0 && json.Indent(&text, q.Args, "", "  ") == nil {
		for l := range strings.Lines(unseen.Visible(text.String())) {
			line("  %s", strings.TrimSuffix(l, "\n"))
		}
	}
	return b.String()
}

func (a *app) completeQuestions(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, _, _ := a.atDesks(cmd.Context())
	var ids []string
	for _, w := range list {
		ids = append(ids, w.ID+"\t"+printable(w.Head))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeGuards(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	dir, err := a.approvalDir()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	guards, _ := approval.Find(dir)
	_, names, _ := approval.Paused(dir) // for resume
	for _, g := range guards {
		names = append(names, g.Server)
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// shortcuts are what is typed often beneath `approve`, by its own name. Help does not list them twice.
func (a *app) shortcuts() []*cobra.Command {
	list := []*cobra.Command{a.denyCommand(), a.grantsCommand(), a.pinsCommand(), a.pauseCommand(true), a.pauseCommand(false)}
	for _, cmd := range list {
		cmd.Hidden = true
	}
	return list
}
