package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/config"
)

// belonging is something of ours on this disk.
type belonging struct {
	name, what string
	paths      []string // those that are there
	dir        string   // our own directory that they lie in, which goes when nothing is left in it
	named      bool     // only removed by its name, not with --all
}

func (a *app) purgeCommand() *cobra.Command {
	var all, yes bool
	cmd := &cobra.Command{
		Use:     "purge [NAME…]",
		Short:   "List what Rootbound keeps on this disk, and remove what you confirm",
		GroupID: groupAdopt,
		Long: `List what Rootbound keeps: the log, grants, pins, consents, logins, caches, the trash of its filesystem server in directories that the
log or the configuration names, copies of clients' files, and its configuration. What is named, or with --all everything but
the configuration, is removed after a question for each; with --yes without one. A trash holds files of yours that were deleted.

Servers that are wrapped stay wrapped: take Rootbound away from them first, with ` + "`rootbound unwrap --all --write`.",
		Example: `  rootbound purge
  rootbound purge log cache
  rootbound purge --all --yes`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return slices.Clone(belongings), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, names []string) error { return a.purge(names, all, yes) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "everything that is listed, but not the configuration")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// belongings are the names of what can be removed, in the order of the list.
var belongings = []string{"log", "grants", "pins", "consents", "logins", "eras", "cache", "trash", "backups", "config", "other"}

func (a *app) purge(names []string, all, yes bool) error {
	for _, name := range names {
		if slices.Contains(belongings, name) {
			continue
		}
		return usageError{Err: withHint(fmt.Errorf("nothing of ours is called %q", name), among(name, belongings))}
	}
	list, wrappedIn, err := a.belongings()
	if err != nil {
		return err
	}
	rows := [][]string{}
	for _, b := range list {
		for _, path := range b.paths {
			rows = append(rows, []string{b.name, size(path), path, b.what})
		}
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.out, "Nothing of Rootbound's is here.")
	} else if err := table(a.out, rows); err != nil {
		return err
	}
	if len(wrappedIn) > 0 {
		fmt.Fprintf(a.out, "Still wrapped are servers in %s: rootbound unwrap --all --write\n", strings.Join(wrappedIn, ", "))
	}
	if len(names) == 0 && !all {
		if len(rows) > 0 {
			fmt.Fprintln(a.out, "Nothing was removed. `rootbound purge NAME…` removes what is named, `rootbound purge --all` all of it, after asking.")
		}
		return nil
	}
	list = slices.DeleteFunc(list, func(b belonging) bool {
		return len(b.paths) == 0 || !slices.Contains(names, b.name) && (!all || b.named)
	})
	if err := a.purgeable(list); err != nil {
		return err
	}
	answers := bufio.NewReader(a.in)
	for _, b := range list {
		if !yes && !confirm(a.out, answers, fmt.Sprintf("Remove %s, %s?", b.name, b.what)) {
			fmt.Fprintf(a.out, "kept %s\n", b.name)
			continue
		}
		for _, path := range b.paths {
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("removing %s: %w", b.name, err)
			}
			fmt.Fprintf(a.out, "removed %s\n", printable(path))
		}
		if b.dir != "" {
			os.Remove(b.dir)
		}
	}
	return nil
}

// confirm asks a person, for whom no answer is a no.
func confirm(out io.Writer, answers *bufio.Reader, question string) bool {
	fmt.Fprint(out, question+" [y/N] ")
	line, err := answers.ReadString('\n')
	if err != nil {
		fmt.Fprintln(out)
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// purgeable refuses to take away what guards use that run now.
func (a *app) purgeable(list []belonging) error {
	logs, err := a.logDir()
	if err != nil {
		return err
	}
	doors, err := a.approvalDir()
	if err != nil {
		return err
	}
	guards, err := approval.Find(doors)
	if err != nil {
		return err
	}
	runs, err := calllog.Runs(logs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	on := 0
	for _, r := range runs {
		if r.On {
			on++
		}
	}
	on = max(on, len(guards)) // one may log elsewhere, and another have no door
	if on == 0 || !slices.ContainsFunc(list, func(b belonging) bool { return b.name != "backups" && b.name != "config" }) {
		return nil
	}
	return withHint(fmt.Errorf("%s, and would lose what is removed", plural(on, "guard runs", "guards run")), "quit the clients that started them, then try again")
}

// belongings finds what is ours, and the clients that have wrapped servers.
func (a *app) belongings() (list []belonging, wrappedIn []string, err error) {
	logs, err := a.logDir()
	if err != nil {
		return nil, nil, err
	}
	state := filepath.Dir(logs)
	known := map[string]bool{}
	in := func(name, what string, files ...string) {
		b := belonging{name: name, what: what, dir: state}
		for _, f := range files {
			known[f] = true
			b.paths = append(b.paths, filepath.Join(state, f))
		}
		list = append(list, b)
	}
	in("log", "what was asked, decided and answered", filepath.Base(logs))
	in("grants", "what you allowed for later", "grants.json", "grants.lock")
	in("pins", "what servers say of themselves", "pins.json", "pins-waiting.json", "pins.lock")
	in("consents", "which directories of a client's list servers may have", "consents.jsonl")
	in("logins", "tokens for servers on other machines", "logins")
	in("eras", "which revisions servers speak", "eras.json")
	if dir, err := os.UserCacheDir(); err == nil {
		list = append(list, belonging{name: "cache", what: "servers that were installed to be confined", paths: []string{filepath.Join(dir, "rootbound")}})
	}
	list = append(list, belonging{name: "trash", what: "files of yours that were deleted through it", paths: a.trashes(logs)})
	backups := belonging{name: "backups", what: "copies of clients' files from before they were wrapped"}
	if host, err := a.clientHost(""); err == nil {
		for _, f := range clientconf.Find(host) {
			backups.paths = append(backups.paths, f.Backup())
			if slices.ContainsFunc(f.Servers, wrapped) && !slices.Contains(wrappedIn, f.Client.Name) {
				wrappedIn = append(wrappedIn, f.Client.Name)
			}
		}
	}
	list = append(list, backups)
	if file, err := a.system().UserFile(); err == nil {
		list = append(list, belonging{name: "config", what: "your configuration", paths: []string{file}, dir: filepath.Dir(file), named: true})
	}
	other := belonging{name: "other", what: "what running guards and other versions keep", dir: state}
	entries, err := os.ReadDir(state)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("looking into the state directory: %w", err)
	}
	if run, err := a.approvalDir(); err == nil && filepath.Dir(run) != state {
		other.paths = append(other.paths, run)
	}
	for _, e := range entries {
		if !known[e.Name()] {
			other.paths = append(other.paths, filepath.Join(state, e.Name()))
		}
	}
	list = append(list, other)
	for i := range list {
		slices.Sort(list[i].paths)
		list[i].paths = slices.DeleteFunc(slices.Compact(list[i].paths), func(path string) bool {
			_, err := os.Lstat(path)
			return err != nil
		})
	}
	return list, wrappedIn, nil
}

const (
	trashName = ".rootbound-trash" // at the top of a root
	runsRead  = 200                // of how many runs the log is asked for roots
)

// trashes are those that there may be: in the roots of the configuration, and in those of the last runs.
func (a *app) trashes(logs string) []string {
	var paths []string
	if plan, err := config.Resolve(a.system(), config.Flags{}); err == nil {
		for _, d := range plan.Roots.Dirs() {
			paths = append(paths, filepath.Join(d.Path, trashName))
		}
	}
	runs, err := calllog.Runs(logs)
	if err != nil {
		return paths
	}
	for _, r := range runs[max(0, len(runs)-runsRead):] {
		ends, err := calllog.ReadEnds(r.Path, recent)
		if err != nil {
			continue
		}
		dirs := ends.Start.Dirs
		for _, e := range ends.Last {
			dirs = append(dirs, e.After...)
		}
		for _, d := range dirs {
			paths = append(paths, filepath.Join(d.Path, trashName))
		}
	}
	return slices.DeleteFunc(paths, func(path string) bool {
		info, err := os.Lstat(path)
		return err != nil || !info.IsDir() // a link leads to what is somebody else's
	})
}

// size is how much is in a file or a directory, for a person.
func size(path string) string {
	var n, files int64
	filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files++
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	unit, value := "B", float64(n)
	for _, u := range []string{"kB", "MB", "GB"} {
		if value >= 1000 {
			unit, value = u, value/1000
		}
	}
	format := "%.1f %s"
	if unit == "B" {
		format = "%.0f %s"
	}
	text := fmt.Sprintf(format, value, unit)
	if files != 1 {
		text += fmt.Sprintf(" in %d files", files)
	}
	return text
}
