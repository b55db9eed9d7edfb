package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/demo"
)

func (a *app) demoCommand() *cobra.Command {
	var keep bool
	var naughty string
	cmd := &cobra.Command{
		Use:     "demo",
		Short:   "Show the boundary hold on a real exchange",
		GroupID: groupRun,
		Long: `Make a workspace of two repositories with a file outside that nobody may see, start the guard around a server, drive it
as a client would, and show the messages as they are: in the handshake era, in the stateless one, and around a server
that ignores roots and goes out by itself, also confined where the system can. A table says at the end what held.

Exit codes: 0 everything held, 1 error, 2 wrong usage, 3 something did not hold.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if naughty != "" {
				return demo.ServeNaughty(cmd.Context(), a.in, a.out, naughty)
			}
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding this program: %w", err)
			}
			ok, err := demo.Run(cmd.Context(), demo.Options{Program: program, Out: a.out, Keep: keep})
			if err == nil && !ok {
				err = exitStatus(exitFindings)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the workspace, with the logs, and say where it is")
	cmd.Flags().StringVar(&naughty, demo.NaughtyFlag[2:], "", "be the server that ignores roots, and is after what is in a `DIR`")
	cmd.Flags().MarkHidden(demo.NaughtyFlag[2:])
	return cmd
}
