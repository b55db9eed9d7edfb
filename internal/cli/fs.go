package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/fsserver"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/roots"
)

func (a *app) fsCommand() *cobra.Command {
	var b boundary
	cmd := &cobra.Command{
		Use:     "fs [flags] [NAME=]DIR…",
		Short:   "Serve files of these directories and of nothing else",
		GroupID: groupRun,
		Long: `Serve files on standard input and output, with three tools for now, which only read: read_text_file, list_directory and
list_allowed_directories. They answer as those of the reference filesystem server do. Everything is opened beneath a handle
of a root, so nothing outside can be reached: not by "..", not by a link, not by a race.

Where the client has roots of its own, they narrow the directories and never widen them. Without a directory the
configuration file decides, else the project of the working directory.

` + exitCodes,
		Example: `  rootbound fs ~/project
  rootbound fs frontend=~/frontend --ro docs=/usr/share/doc`,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		RunE: func(cmd *cobra.Command, args []string) error {
			cwd, _ := os.Getwd()
			for _, arg := range args {
				d, err := config.ParseDirFlag("DIR", arg, roots.ReadWrite, cwd)
				if err != nil {
					return usageError{err}
				}
				b.Roots = append(b.Roots, d)
			}
			return a.serveFiles(cmd.Context(), b.configFlags(nil))
		},
	}
	b.flags(a, cmd)
	return cmd
}

func (a *app) serveFiles(ctx context.Context, f config.Flags) error {
	plan, err := a.plan(f)
	if err != nil {
		return err
	}
	r, err := a.newRun(plan, "fs", "")
	if err != nil {
		return err
	}
	opt, err := r.options(plan, pathargs.Process{})
	if err != nil {
		return err
	}
	r.guard = guard.New(opt)
	a.startLine(r, plan)
	home, _ := os.UserHomeDir() // without one, "~" in a path is a name like any other
	server := fsserver.New(fsserver.Options{Name: "rootbound-fs", Title: "Rootbound filesystem", Version: version(), Home: home})
	return r.serve(ctx, f, plan, r.guard.WrapContained(server), func() *transport.ExitError { server.Close(); return nil })
}
