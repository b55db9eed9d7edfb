package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/doctor"
	"github.com/rootbound/rootbound/internal/launch"
)

// logDir is the usual directory of the log; what else is kept is beside it.
func (a *app) logDir() (string, error) {
	dir, err := calllog.DefaultDir(a.env, runtime.GOOS)
	if err != nil {
		err = withHint(err, setHome("LOCALAPPDATA", "XDG_STATE_HOME"))
	}
	return dir, err
}

// setHome is the way out where it is not known where something is kept: the variable that says so on Windows, and besides HOME
// elsewhere.
func setHome(windows, besides string) string {
	switch runtime.GOOS {
	case "windows":
		return "set " + windows
	case "darwin":
		return "set HOME"
	}
	return "set HOME, or " + besides + " to an absolute directory"
}

type logOptions struct {
	dir, server, since          string
	follow, json, denied, roots bool
}

func (a *app) logCommand() *cobra.Command {
	var o logOptions
	cmd := &cobra.Command{
		Use:     "log",
		Short:   "Show what servers were asked to do, and what was refused",
		GroupID: groupLook,
		Long: `Show the log: each request with its verdict, each question for roots with its answer, each change.

Paths are shown as ROOT:relative/path. A refused call has a short id; ` + "`rootbound why ID`" + ` tells its story.`,
		Example: `  rootbound log --denied
  rootbound log --follow --server filesystem
  rootbound log --since 2h --roots
  rootbound log verify`,
		Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.showLog(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "go on with what comes")
	f.BoolVar(&o.json, "json", false, "print the records as they are, one JSON object a line")
	f.BoolVar(&o.denied, "denied", false, "only what was refused")
	f.BoolVar(&o.roots, "roots", false, "each roots/list with its answer, and whether changes were fetched")
	f.StringVar(&o.server, "server", "", "only the server `NAME`")
	cmd.RegisterFlagCompletionFunc("server", a.completeLogged(&o.dir))
	f.StringVar(&o.since, "since", "", "only what is newer than `WHEN`: "+sinceForms)
	cmd.PersistentFlags().StringVar(&o.dir, "dir", "", "the `DIR` of the log files (default: the configured one, else the state directory)")
	cmd.AddCommand(&cobra.Command{
		Use:   "verify [FILE…]",
		Short: "Prove that the log was not changed",
		Long: `Check the hash chain of every log file, or of the files named, and name the first record that does not hold.

Exit codes: 0 every chain holds, 1 error, 2 wrong usage, 3 a chain is broken.`,
		RunE: func(_ *cobra.Command, files []string) error { return a.verifyLog(o.dir, files) },
	})
	return cmd
}

func (o *logOptions) filter(now time.Time) (calllog.Filter, error) {
	f := calllog.Filter{Server: o.server, Denied: o.denied, Roots: o.roots}
	since, err := parseSince(o.since, now)
	f.Since = since
	return f, err
}

// sinceForms are examples of what --since takes.
const sinceForms = "30m, 2h, 3d, 14:30, 2026-11-30, 2026-11-30T14:30 or 2026-11-30T14:30:00Z"

// parseSince reads a duration back from now, a time of the last 24 hours, a day, or a time of a day. What names no zone is
// in that of now.
func parseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, ok := parseAgo(s); ok {
		return now.Add(-d), nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if clock, err := time.Parse(layout, s); err == nil {
			t := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
			if t.After(now) {
				t = t.AddDate(0, 0, -1)
			}
			return t, nil
		}
	}
	day, rest, timed := strings.Cut(s, " ")
	if timed {
		day += "T" + rest
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", time.RFC3339} {
		if t, err := time.ParseInLocation(layout, day, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usageError{Err: withHint(fmt.Errorf("--since %q is no time", s), "write "+sinceForms)}
}

// parseAgo reads a duration that is not negative: one of Go's, with days before it or alone.
func parseAgo(s string) (time.Duration, bool) {
	var ago time.Duration
	if days, rest, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || !(n >= 0 && n <= 36500) {
			return 0, false
		}
		ago = time.Duration(n * 24 * float64(time.Hour))
		if rest == "" {
			return ago, true
		}
		s = rest
	}
	d, err := time.ParseDuration(s)
	return ago + d, err == nil && d >= 0 && ago+d >= ago
}

func (a *app) showLog(ctx context.Context, o logOptions) error {
	dir, err := a.dirOf(o.dir)
	if err != nil {
		return err
	}
	filter, err := o.filter(time.Now())
	if err != nil {
		return err
	}
	p := &calllog.Printer{W: a.sheet(subjectAt), Color: a.color()}
	if o.json {
		p.W = a.out
	}
	var entries iter.Seq2[calllog.Entry, error]
	if o.follow {
		entries = calllog.Follow(ctx, dir, filter)
	} else {
		entries = readLog(dir, o.dir, filter)
	}
	if o.roots && !o.json && !o.follow {
		events, err := calllog.RootsEvents(entries)
		if err := p.PrintRoots(events); err != nil {
			return err
		}
		if len(events) == 0 {
			fmt.Fprintf(a.err, "rootbound: no question for roots is logged in %s\n", printable(dir))
		}
		return err
	}
	n := 0
	var bad []error
	for e, err := range entries {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			bad = append(bad, err)
			continue
		}
		n++
		if o.json {
			if err := p.PrintJSON(e); err != nil {
				return err
			}
			continue
		}
		if err := p.Print(e); err != nil {
			return err
		}
	}
	if n == 0 && len(bad) == 0 {
		what := "nothing"
		if filter != (calllog.Filter{}) {
			what = "nothing of that"
		}
		fmt.Fprintf(a.err, "rootbound: %s is logged in %s\n", what, printable(dir))
	}
	return errors.Join(bad...)
}

// dirOf is where the log is to be read: in the directory of the flag, or the one that is configured, or the usual one.
func (a *app) dirOf(flag string) (string, error) {
	if flag != "" {
		return filepath.Abs(flag)
	}
	plan, err := config.Resolve(a.system(), config.Flags{})
	switch {
	case err != nil: // the log may be what is needed to mend it
		fmt.Fprintf(a.err, "rootbound: the configuration is not valid, so its log directory is not known: %v\n", err)
	case plan.Log.Dir.Given():
		return plan.Log.Dir.Value, nil
	}
	return a.logDir()
}

// readLog is calllog.ReadDir, for which a directory that no flag names need not be there: nothing was logged yet.
func readLog(dir, flag string, f calllog.Filter) iter.Seq2[calllog.Entry, error] {
	return func(yield func(calllog.Entry, error) bool) {
		for e, err := range calllog.ReadDir(dir, f) {
			if flag == "" && errors.Is(err, fs.ErrNotExist) || !yield(e, err) {
				return
			}
		}
	}
}

// subjectAt is the column of a line of the log behind time, word and server.
const subjectAt = 35

// storyAt is the column in which a story tells, behind its labels, and factAt the one behind which doctor does.
const (
	storyAt = 12
	factAt  = 6
)

// folded writes lines to a terminal with so many columns: what does not fit in one goes on in others, which are set in.
type folded struct {
	w              io.Writer
	columns, setIn int
}

// Write implements io.Writer for whole lines.
func (f folded) Write(b []byte) (int, error) {
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		text, end := strings.CutSuffix(line, "\n")
		var parts []string
		for i, part := range foldLine(text, f.columns, max(1, f.columns-f.setIn)) {
			if i > 0 {
				part = strings.Repeat(" ", f.setIn) + strings.TrimLeft(part, " ")
			}
			if part = strings.TrimRight(part, " "); part != "" { // else it is of the blanks between columns
				parts = append(parts, part)
			}
		}
		out.WriteString(strings.Join(parts, "\n"))
		if end {
			out.WriteString("\n")
		}
	}
	if _, err := io.WriteString(f.w, out.String()); err != nil {
		return 0, err
	}
	return len(b), nil
}

// sheet is where lines are written that may be long: where it is a terminal, what does not fit is set in so far.
func (a *app) sheet(setIn int) io.Writer {
	if f, ok := a.out.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return folded{a.out, columns, min(setIn, columns/4)}
		}
	}
	return a.out
}

// color reports whether out is a terminal that wants colour.
func (a *app) color() bool {
	f, ok := a.out.(*os.File)
	if !ok || a.env("NO_COLOR") != "" || a.env("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (a *app) verifyLog(flag string, files []string) error {
	var reports []calllog.Report
	if len(files) == 0 {
		dir, err := a.dirOf(flag)
		if err != nil {
			return err
		}
		if reports, err = calllog.VerifyDir(dir); err != nil && (flag != "" || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
		if len(reports) == 0 {
			fmt.Fprintf(a.err, "rootbound: nothing is logged in %s\n", printable(dir))
		}
	}
	for _, f := range files {
		r, err := calllog.Verify(f)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	p := &calllog.Printer{W: a.out, Color: a.color()}
	broken := false
	for _, r := range reports {
		if err := p.PrintReport(r); err != nil {
			return err
		}
		broken = broken || r.Damage != nil
	}
	if broken {
		return exitStatus(exitFindings)
	}
	return nil
}

func (a *app) whyCommand() *cobra.Command {
	var dir, server string
	cmd := &cobra.Command{
		Use:     "why CALL-ID|PATH|HOST|SYMPTOM",
		Short:   "Tell the story of a refusal, or the cause of a trouble, and what to write",
		GroupID: groupLook,
		Long: `Tell the story of a call by its short id, which the refusal showed or the line of a call that waits for you, or of the newest
refusals of a path: which rule it was, why, and the line that would allow it. Of a host, and of a path that was not refused, it is told what holds now, by the configuration:
whether a root holds it or a confined server reaches it, what the rules say, and what would change that.

Or find the cause of a trouble, by what is configured and logged on this machine. Each server that takes directories is
followed from the declaration of roots over roots/list and a read outside to the notification of a change, up to the first
link that fails. The troubles are

` + symptoms() + `
A path of that name is written ./NAME.`,
		Example: `  rootbound why c7f3a2
  rootbound why ~/.ssh/config
  rootbound why api.example.com
  rootbound why old-path --server filesystem
  rootbound why "roots/list never appears"`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if s, ok := doctor.NamedSymptom(args[0]); ok {
				return a.symptom(s, dir, server)
			}
			err := a.why(dir, args[0])
			if s, ok := doctor.SpokenSymptom(args[0]); ok && errors.Is(err, errNoStory) {
				return a.symptom(s, dir, server)
			}
			return err
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return symptomNames(), cobra.ShellCompDirectiveDefault
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the `DIR` of the log files (default: the configured one, else the state directory)")
	cmd.Flags().StringVar(&server, "server", "", "of a trouble, only the server `NAME`")
	cmd.RegisterFlagCompletionFunc("server", a.completeLogged(&dir))
	return cmd
}

var errNoStory = errors.New("neither the id of a logged call nor a path or a host")

func (a *app) why(flag, what string) error {
	dir, err := a.dirOf(flag)
	if err != nil {
		return err
	}
	if home := a.env("HOME"); home != "" && strings.HasPrefix(what, "~/") {
		what = filepath.Join(home, what[2:])
	}
	tell := func(what string) ([]calllog.Story, error) {
		return calllog.Why(readLog(dir, flag, calllog.Filter{}), what, 5)
	}
	stories, err := tell(what)
	if abs, aerr := filepath.Abs(what); len(stories) == 0 && err == nil && aerr == nil && abs != what {
		stories, err = tell(abs)
	}
	if len(stories) == 0 {
		if err != nil {
			return err
		}
		if err := a.standing(what); !errors.Is(err, errNotAPlace) {
			return err
		}
		hint := "`rootbound log --denied` lists what was refused"
		if near, ok := launch.Nearest(what, symptomNames()); ok {
			hint = fmt.Sprintf("did you mean `rootbound why %s`? ", near) + hint
		}
		return withHint(fmt.Errorf("%q is %w", what, errNoStory), hint)
	}
	p := &calllog.Printer{W: a.sheet(storyAt), Color: a.color()}
	for i, s := range stories {
		if i > 0 {
			io.WriteString(a.out, "\n")
		}
		if err := p.PrintStory(s); err != nil {
			return err
		}
	}
	return err
}
