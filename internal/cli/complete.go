package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/config"
)

// completeServers completes the name of a server of the configuration; file is the value of --config.
func (a *app) completeServers(file *string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		plan, err := config.Resolve(a.system(), config.Flags{Config: *file})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return plan.Servers, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeLogged completes the name of a server that logged lately or is configured; dir is the value of --dir.
func (a *app) completeLogged(dir *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		const lately = 100 // runs
		names, _ := a.completeServers(new(string))(cmd, args, typed)
		at, err := a.dirOf(*dir)
		if err != nil {
			return names, cobra.ShellCompDirectiveNoFileComp
		}
		runs, _ := calllog.Runs(at)
		for _, run := range runs[max(0, len(runs)-lately):] {
			if ends, err := calllog.ReadEnds(run.Path, 1); err == nil && ends.Start.Server != "" {
				names = append(names, printable(ends.Start.Server))
			}
		}
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeRoots completes the name of a root of the configuration, or a directory; file and server are the values of
// --config and --server.
func (a *app) completeRoots(file, server *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		plan, err := config.Resolve(a.system(), config.Flags{Config: *file, Server: *server, ForAll: *server == ""})
		if err != nil {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		var names []string
		for _, d := range plan.Roots.Dirs() {
			if d.Name != "" {
				names = append(names, d.Name)
			}
		}
		return orDirs(names, typed)
	}
}

// orDirs completes one of a few words, or where none begins as what is typed, a directory. Both at once is for a shell the directories
// in the one that the first word names.
func orDirs(words []string, typed string) ([]string, cobra.ShellCompDirective) {
	words = slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, typed) })
	if len(words) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}
