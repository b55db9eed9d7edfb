package cli

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/consent"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/roots"
)

// consents is where it stands what servers were let have: beside the logs, in the user's state directory.
func (a *app) consents() (consent.File, error) {
	dir, err := a.logDir()
	if err != nil {
		return "", err
	}
	return consent.File(filepath.Join(filepath.Dir(dir), "consents.jsonl")), nil
}

// identity is what a command line runs, as a consent is bound to it: the name of a package, and for what has no name of its
// own, or stands for another machine, a name with a print of the whole line. A file that the line names counts with its
// place, since the same words mean another program in another directory.
func identity(c launch.Command, dir string) string {
	t := launch.Identify(c)
	profile, known := launch.Lookup(t)
	if t.Version = ""; t.Registry != "" && (!known || profile.Paths != launch.Elsewhere) {
		return t.String()
	}
	print := sha256.New()
	for _, word := range append([]string{c.Path}, c.Args...) {
		if full := filepath.Join(dir, word); !filepath.IsAbs(word) {
			if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() {
				word = full
			}
		}
		fmt.Fprintf(print, "%q ", word)
	}
	name := filepath.Base(c.Path)
	if t.Name != "" {
		name = t.String()
	}
	return name + "#" + hex.EncodeToString(print.Sum(nil))[:12]
}

func (a *app) allowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "allow SERVER [DIR]",
		Short: "Consent that a server has a directory which the client opened",
		Long: `Consent that a server has a directory which the client opened and no configuration names. It is needed only where
nothing is configured and client_roots = "accept" makes the client's list the boundary. Without DIR it is for all that wait;
with a directory that holds one which waits, for everything in it. A running guard follows.`,
		Example: `  rootbound roots list --servers
  rootbound roots allow filesystem ~/project`,
		Args:              usageArgs(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: a.completeConsents,
		RunE: func(_ *cobra.Command, args []string) error {
			file, entries, err := a.entriesOf(args[0])
			if err != nil {
				return err
			}
			waiting := slices.DeleteFunc(slices.Clone(entries), func(e consent.Entry) bool { return e.Allowed })
			if len(args) == 2 {
				if waiting, err = within(args[1], entries, waiting); err != nil {
					return err
				}
			}
			if len(waiting) == 0 {
				return withHint(fmt.Errorf("nothing waits for consent to %q", args[0]), "`rootbound roots list --servers` shows what each server has")
			}
			for _, e := range waiting {
				if err := file.Allow(e.Server, e.Dir); err != nil {
					return err
				}
				fmt.Fprintf(a.out, "%s (%s) may have %s\n", printable(e.Name), printable(e.Runs), printable(e.Dir))
			}
			return nil
		},
	}
}

// within is what is to be allowed for a directory that was named: that directory, to those servers for which something in
// it waits, or to the only one that there is.
func within(dir string, entries, waiting []consent.Entry) ([]consent.Entry, error) {
	d, err := roots.Resolve(dir, roots.ResolveOptions{Access: roots.ReadWrite})
	if err != nil {
		return nil, err
	}
	servers := map[consent.Server]bool{}
	for _, e := range waiting {
		if _, _, in := roots.NewSet(d).Match(e.Dir); in {
			servers[e.Server] = true
		}
	}
	if len(servers) == 0 {
		for _, e := range entries {
			servers[e.Server] = true
		}
		if len(servers) > 1 {
			return nil, fmt.Errorf("several servers are called %q, and nothing in %q waits for one of them", entries[0].Name, d.Path)
		}
	}
	var allow []consent.Entry
	for s := range servers {
		allow = append(allow, consent.Entry{Server: s, Dir: d.Path})
	}
	return allow, nil
}

func (a *app) forgetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "forget SERVER [DIR]",
		Short: "Take back what `rootbound roots allow` gave a server",
		Long: `Take back the consent that a server has a directory, or without DIR all that there is about that server. A running guard
follows; what the server has read, it has read. Configured directories are not touched: ` + "`rootbound roots remove`" + ` takes them out.`,
		Example:           "  rootbound roots forget filesystem ~/project",
		Args:              usageArgs(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: a.completeConsents,
		RunE: func(_ *cobra.Command, args []string) error {
			file, entries, err := a.entriesOf(args[0])
			if err != nil {
				return err
			}
			if len(args) == 2 {
				dir := place(args[1])
				entries = slices.DeleteFunc(entries, func(e consent.Entry) bool { return e.Dir != dir })
				if len(entries) == 0 {
					return withHint(fmt.Errorf("there is no consent that %q has %q", args[0], dir), "`rootbound roots list --servers` shows what each server has")
				}
			}
			for _, e := range entries {
				if err := file.Forget(e.Server, e.Dir); err != nil {
					return err
				}
				fmt.Fprintf(a.out, "forgotten: %s (%s) and %s\n", printable(e.Name), printable(e.Runs), printable(e.Dir))
			}
			return nil
		},
	}
}

// entriesOf are the consents about the servers with a name, of which there is at least one.
func (a *app) entriesOf(name string) (consent.File, []consent.Entry, error) {
	file, err := a.consents()
	if err != nil {
		return "", nil, err
	}
	all, err := file.Entries()
	if err != nil {
		return "", nil, err
	}
	var entries []consent.Entry
	var names []string
	for _, e := range all {
		names = append(names, e.Name)
		if e.Name == name {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		hint := `a server waits from its first call on, when it runs with client_roots = "accept" and nothing is configured`
		if near, ok := launch.Nearest(name, slices.Compact(names)); ok {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return "", nil, withHint(fmt.Errorf("nothing waits for consent to %q, and it has none", name), hint)
	}
	return file, entries, nil
}

func (a *app) completeConsents(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	file, err := a.consents()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	entries, err := file.Entries()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, e := range entries {
		switch {
		case len(args) == 0:
			names = append(names, e.Name)
		case len(args) == 1 && e.Name == args[0]:
			names = append(names, e.Dir)
		}
	}
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// told says which servers were told of which directories, as the log in dir has it.
func (a *app) told(dir string) ([]guard.Told, error) {
	return guard.ToldOf(readLog(dir, "", calllog.Filter{Roots: true}), func(err error) { fmt.Fprintf(a.err, "rootbound: %v\n", err) })
}

// listedServer is what `rootbound roots list --servers --json` prints of a server and a directory.
type listedServer struct {
	Server string    `json:"server"`
	Dir    string    `json:"dir"`
	State  string    `json:"state"` // told, allowed or waiting
	Since  time.Time `json:"since"` // when that was so last
	Runs   string    `json:"runs,omitempty"`
}

// listServers says who was told what, as the log has it, and which consents there are and wait.
func (a *app) listServers(only string, asJSON bool) error {
	dir, err := a.dirOf("")
	if err != nil {
		return err
	}
	told, err := a.told(dir)
	if err != nil {
		return err
	}
	file, err := a.consents()
	if err != nil {
		return err
	}
	entries, err := file.Entries()
	if err != nil {
		return err
	}
	var list []listedServer
	for _, t := range told {
		list = append(list, listedServer{t.Server, t.Dir, "told", t.Last, ""})
	}
	for _, e := range entries {
		state := "waiting"
		if e.Allowed {
			state = "allowed"
		}
		list = append(list, listedServer{e.Name, e.Dir, state, e.Since, e.Runs})
	}
	list = slices.DeleteFunc(list, func(l listedServer) bool { return only != "" && l.Server != only })
	if len(list) == 0 {
		fmt.Fprintf(a.err, "rootbound: no server was told of a directory, as far as the log in %s goes, and none waits for consent\n", printable(dir))
	}
	slices.SortFunc(list, func(a, b listedServer) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Dir, b.Dir), cmp.Compare(a.State, b.State), cmp.Compare(a.Runs, b.Runs))
	})
	var rows [][]string
	for _, l := range list {
		if asJSON {
			if err := a.jsonLine(l); err != nil {
				return err
			}
			continue
		}
		text, since := "", l.Since.Local().Format("2006-01-02 15:04")
		switch l.State {
		case "told":
			text = "told, last " + since
		case "allowed":
			text = "allowed " + since + " to " + l.Runs
		default:
			text = fmt.Sprintf("waits for: rootbound roots allow %s %s (%s)", guard.ShellQuote(l.Server), guard.ShellQuote(l.Dir), l.Runs)
		}
		rows = append(rows, []string{l.Server, l.Dir, text})
	}
	return table(a.out, rows)
}
