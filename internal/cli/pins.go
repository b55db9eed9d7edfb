package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/pin"
	"github.com/rootbound/rootbound/internal/unseen"
)

// pinStore is where it is kept what servers say of themselves: in file, or without one in the user's state directory, where
// also is what waits for a person.
func (a *app) pinStore(file string) (pin.Store, error) {
	logs, err := a.logDir()
	if err != nil {
		return pin.Store{}, err
	}
	state := filepath.Dir(logs)
	s := pin.Store{Pins: file, Waiting: filepath.Join(state, "pins-waiting.json"), Lock: filepath.Join(state, "pins.lock")}
	if file == "" {
		s.Pins = filepath.Join(state, "pins.json")
	} else if s.Pins, err = filepath.Abs(file); err != nil {
		return s, fmt.Errorf("finding the file of pins: %w", err)
	}
	return s, nil
}

// pins makes the guard's view of what a plan keeps of a server, and names the file that is kept by people; nil for none.
func (r *running) pins(plan *config.Plan) (pins *pin.Pins, file string, err error) {
	if plan.Pins.Value == config.PinsOff {
		return nil, "", nil
	}
	s, err := r.app.pinStore(plan.PinsFile())
	if err != nil {
		return nil, "", withHint(err, "set HOME or XDG_STATE_HOME, or write --pins off")
	}
	return pin.NewPins(s, pin.Owner{Server: r.name, Runs: r.runs}), s.Pins, nil
}

func (a *app) pinsCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "pins",
		Short: "Look at what servers say of themselves, and at what changed",
		Long: `The first time a server is seen, all that a model reads and a client acts on is pinned: its tools, prompts and resource
templates, and what it says of itself. What changes in its words later is logged; what changes in its meaning is held, each
tool for itself, until you have reviewed and accepted it. A running guard follows.`,
		Args: onlyCommands,
		Example: `  rootbound approve pins review
  rootbound approve pins accept filesystem`,
		RunE: func(*cobra.Command, []string) error { return a.listPins(file, nil, false) },
	}
	cmd.PersistentFlags().StringVar(&file, "pins", "", "a `FILE` of pins (default: the one in the state directory)")
	var asJSON bool
	list := &cobra.Command{
		Use:               "list [SERVER]",
		Short:             "List what is pinned, and what waits for you",
		Example:           "  rootbound approve pins list filesystem",
		Args:              usageArgs(cobra.MaximumNArgs(1)),
		ValidArgsFunction: a.completePins(&file, 1),
		RunE:              func(_ *cobra.Command, args []string) error { return a.listPins(file, args, asJSON) },
	}
	list.Flags().BoolVar(&asJSON, "json", false, "as JSON, a definition a line")
	cmd.AddCommand(
		list,
		&cobra.Command{
			Use:   "review [SERVER [NAME…]]",
			Short: "Show how what is held differs from what is pinned",
			Long: `Show how what is held differs from what is pinned, for every server, for one, or for some of its tools and prompts. Lines
with "-" were, lines with "+" are, and "!" says what makes a change one of meaning.

Exit codes: 0 nothing waits, 1 error, 2 wrong usage, 3 something waits.`,
			Example:           "  rootbound approve pins review\n  rootbound approve pins review filesystem read_file",
			ValidArgsFunction: a.completePins(&file, 0),
			RunE:              func(_ *cobra.Command, args []string) error { return a.reviewPins(file, args) },
		},
		&cobra.Command{
			Use:   "accept SERVER [NAME…]",
			Short: "Pin what is held, after it was reviewed",
			Long: `Pin what is held of a server, all of it or the tools, prompts and templates that are named. Only what was shown by
` + "`rootbound approve pins review`" + `, as it is now, is accepted.`,
			Example: `  rootbound approve pins review filesystem
  rootbound approve pins accept filesystem read_file`,
			Args:              usageArgs(cobra.MinimumNArgs(1)),
			ValidArgsFunction: a.completePins(&file, 0),
			RunE: func(_ *cobra.Command, args []string) error {
				return a.decidePins(file, args, "accepting", "accepted", pin.Store.Accept)
			},
		},
		&cobra.Command{
			Use:   "refuse SERVER [NAME…]",
			Short: "Say no to what is held, after it was reviewed",
			Long: `Say no to what is held of a server, all of it or the tools, prompts and templates that are named. It stays held, and you are
not asked about it again until the server says something else. ` + "`accept`" + ` takes it all the same, later.`,
			Example: "  rootbound approve pins refuse filesystem read_file",
			Args:    usageArgs(cobra.MinimumNArgs(1)), ValidArgsFunction: a.completePins(&file, 0),
			RunE: func(_ *cobra.Command, args []string) error {
				return a.decidePins(file, args, "refusing", "refused", pin.Store.Refuse)
			},
		},
		&cobra.Command{
			Use:   "forget SERVER [NAME…]",
			Short: "Forget what is pinned, so that it is pinned anew when it is seen next",
			Long: `Forget what is pinned of a server, and what waits: all of it, or the tools, prompts and templates that are named. What the
server says next is pinned as if it were seen for the first time, without a review.`,
			Example: "  rootbound approve pins forget filesystem",
			Args:    usageArgs(cobra.MinimumNArgs(1)), ValidArgsFunction: a.completePins(&file, 0),
			RunE: func(_ *cobra.Command, args []string) error { return a.forgetPins(file, args) },
		},
	)
	return cmd
}

// selects reports whether an entry is of the server and the names that were typed, of which there may be none.
func selects(args []string) func(pin.Entry) bool {
	return func(e pin.Entry) bool {
		return len(args) == 0 || e.Server == args[0] && (len(args) == 1 || slices.Contains(args[1:], pinName(e)))
	}
}

// pinName is how a definition is typed.
func pinName(e pin.Entry) string {
	if e.Kind == pin.Server {
		return string(pin.Server)
	}
	return e.Name
}

// entriesIn are what is pinned in file, and what waits for it, or without a file, for any.
func (a *app) entriesIn(file string, args []string) (s pin.Store, pinned, waiting []pin.Entry, err error) {
	if s, err = a.pinStore(file); err != nil {
		return
	}
	if pinned, err = s.Pinned(); err != nil {
		return
	}
	if waiting, err = s.Waits(); err != nil {
		return
	}
	if file != "" {
		waiting = slices.DeleteFunc(waiting, func(e pin.Entry) bool { return e.For != s.Pins })
	}
	others := func(e pin.Entry) bool { return !selects(args)(e) }
	var names []string
	for _, e := range slices.Concat(pinned, waiting) {
		names = append(names, e.Server)
	}
	pinned, waiting = slices.DeleteFunc(pinned, others), slices.DeleteFunc(waiting, others)
	if len(args) > 0 && len(pinned)+len(waiting) == 0 {
		hint := "`rootbound approve pins list` shows all there is"
		if near, ok := launch.Nearest(args[0], slices.Compact(names)); ok && near != args[0] {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		err = withHint(fmt.Errorf("nothing is pinned of %s", strings.Join(quotedAll(args), ", ")), hint)
	}
	return
}

func quotedAll(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, fmt.Sprintf("%q", s))
	}
	return out
}

func (a *app) listPins(file string, args []string, asJSON bool) error {
	s, pinned, waiting, err := a.entriesIn(file, args)
	if err != nil {
		return err
	}
	var rows [][]string
	row := func(e pin.Entry, state string) {
		name := e.Name
		if e.Kind == pin.Server {
			name = "-"
		}
		rows = append(rows, []string{e.Server, e.Runs, string(e.Kind), name, pin.Short(e.Hash()),
			state + " " + e.Since.Local().Format("2006-01-02 15:04")})
	}
	for _, e := range pinned {
		row(e, "pinned")
	}
	for _, e := range waiting {
		state := "waits since"
		if e.Refused {
			state = "refused, held since"
		}
		row(e, state)
	}
	if asJSON {
		for _, e := range slices.Concat(pinned, waiting) {
			if err := a.jsonLine(map[string]any{"server": e.Server, "runs": e.Runs, "kind": e.Kind, "name": e.Name, "hash": e.Hash(), "since": e.Since, "waits": e.For != "", "refused": e.Refused}); err != nil {
				return err
			}
		}
		return nil
	}
	if len(rows) == 0 {
		fmt.Fprintf(a.err, "rootbound: nothing is pinned in %s, and nothing waits\n", s.Pins)
		return nil
	}
	return table(a.out, rows)
}

func (a *app) reviewPins(file string, args []string) error {
	s, _, waiting, err := a.entriesIn(file, args)
	if err != nil {
		return err
	}
	if len(args) == 0 { // what was refused is shown to who asks for it
		waiting = slices.DeleteFunc(waiting, func(e pin.Entry) bool { return e.Refused })
	}
	if len(waiting) == 0 {
		fmt.Fprintln(a.out, "Nothing waits.")
		return nil
	}
	reviews, err := s.Review(waiting)
	if err != nil {
		return err
	}
	own, err := a.pinStore("")
	if err != nil {
		return err
	}
	for i, r := range reviews {
		e := r.Entry
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		in := ""
		if own.Pins != e.For {
			in = ", for " + printable(e.For)
		}
		waits := "waits as"
		if e.Refused {
			waits = "is refused as"
		}
		fmt.Fprintf(a.out, "%s (%s): %s %s %s%s\n", printable(e.Server), printable(e.Runs), e.Definition, waits, pin.Short(e.Hash()), in)
		if r.First {
			fmt.Fprintln(a.out, "  It was never accepted. All of it:")
			a.showValue("+", string(e.Text))
			for _, why := range r.Reasons {
				fmt.Fprintf(a.out, "    ! %s\n", why)
			}
		}
		for _, c := range r.Changes {
			fmt.Fprintf(a.out, "  %s\n", printable(unseen.Visible(c.Path)))
			a.showValue("-", c.Before)
			a.showValue("+", c.After)
			if c.Danger != "" {
				fmt.Fprintf(a.out, "    ! %s\n", c.Danger)
			}
		}
		if err := s.Reviewed(waiting[i : i+1]); err != nil {
			return err
		}
	}
	fmt.Fprintln(a.out, "\nTo accept:")
	for i, e := range waiting {
		if i == 0 || waiting[i-1].Server != e.Server {
			fmt.Fprintf(a.out, "  rootbound approve pins accept %s\n", printable(guard.ShellQuote(e.Server)))
		}
	}
	return exitStatus(exitFindings)
}

// showValue prints a JSON value behind a sign: text as its lines, all else as JSON. What nobody sees is written out.
func (a *app) showValue(sign, value string) {
	if value == "" {
		return
	}
	text := value
	var s string
	var b bytes.Buffer
	switch {
	case json.Unmarshal([]byte(value), &s) == nil:
		text = s
	case len(value) > 80 && json.Indent(&b, []byte(value), "", "  ") == nil:
		text = b.String()
	}
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(a.out, "    %s %s\n", sign, printable(unseen.Visible(line)))
	}
}

// decidePins accepts or refuses what waits.
func (a *app) decidePins(file string, args []string, doing, done string, decide func(pin.Store, func(pin.Entry) bool) ([]pin.Entry, error)) error {
	s, _, waiting, err := a.entriesIn(file, args)
	if err != nil {
		return err
	}
	if len(waiting) == 0 {
		return withHint(fmt.Errorf("nothing of %s waits", strings.Join(quotedAll(args), ", ")), "`rootbound approve pins list` shows all there is")
	}
	var files []string
	for _, e := range waiting {
		if !slices.Contains(files, e.For) {
			files = append(files, e.For)
		}
	}
	for _, f := range files {
		decided, err := decide(s.In(f), selects(args))
		if errors.Is(err, pin.ErrNotReviewed) {
			return withHint(fmt.Errorf("%s what %q says of itself: %w", doing, args[0], err), "look at it with `rootbound approve pins review "+guard.ShellQuote(args[0])+"`")
		}
		if err != nil {
			return err
		}
		for _, e := range decided {
			fmt.Fprintf(a.out, "%s: %s (%s), %s as %s\n", done, printable(e.Server), printable(e.Runs), e.Definition, pin.Short(e.Hash()))
		}
	}
	return nil
}

func (a *app) forgetPins(file string, args []string) error {
	s, _, _, err := a.entriesIn(file, args)
	if err != nil {
		return err
	}
	gone, err := s.Forget(selects(args))
	for _, e := range gone {
		fmt.Fprintf(a.out, "forgotten: %s (%s), %s %s\n", printable(e.Server), printable(e.Runs), e.Definition, pin.Short(e.Hash()))
	}
	return err
}

// completePins completes a server, and behind it its names, up to limit words; 0 is no limit.
func (a *app) completePins(file *string, limit int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		_, pinned, waiting, err := a.entriesIn(*file, nil)
		if err != nil || limit > 0 && len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, e := range slices.Concat(pinned, waiting) {
			switch {
			case len(args) == 0:
				names = append(names, e.Server)
			case e.Server == args[0]:
				names = append(names, pinName(e))
			}
		}
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}
