package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/approval"
)

func (a *app) grantsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "Look at what you allowed for more than one call, and take it back",
		Long: `What was allowed for more than one call: for a session, beneath a directory, to a host. A grant is for one server, one client
and the tool as it is defined now; when that changes, it is void. Running guards follow at once.`,
		Example: `  rootbound approve grants
  rootbound approve grants revoke g7f3a2
  rootbound approve grants clear filesystem`,
		Args: onlyCommands,
		RunE: func(*cobra.Command, []string) error { return a.listGrants(false) },
	}
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "List what is granted", Example: "  rootbound approve grants list --json", Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return a.listGrants(asJSON) },
	}
	list.Flags().BoolVar(&asJSON, "json", false, "as JSON, a grant a line")
	cmd.AddCommand(
		list,
		&cobra.Command{
			Use: "revoke GRANT…", Short: "Take grants back", Example: "  rootbound approve grants revoke g7f3a2", Args: usageArgs(cobra.MinimumNArgs(1)), ValidArgsFunction: a.completeGrants,
			RunE: func(_ *cobra.Command, args []string) error { return a.revokeGrants(args) },
		},
		&cobra.Command{
			Use: "clear [SERVER]", Short: "Take everything back, or all of a server", Example: "  rootbound approve grants clear filesystem", Args: usageArgs(cobra.MaximumNArgs(1)),
			ValidArgsFunction: a.completeGranted, RunE: func(_ *cobra.Command, args []string) error { return a.clearGrants(args) },
		},
	)
	return cmd
}

func (a *app) listGrants(asJSON bool) error {
	s, err := a.grantStore()
	if err != nil {
		return err
	}
	list, err := s.Grants()
	if err != nil {
		return withHint(err, "`rootbound approve grants clear` takes everything back")
	}
	now := time.Now()
	list = slices.DeleteFunc(list, func(g approval.Grant) bool { return !now.Before(g.Until) })
	if asJSON {
		for _, g := range list {
			if err := a.jsonLine(g); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(a.out, "Nothing is granted.")
		return err
	}
	var rows [][]string
	for _, g := range list {
		for_ := "any session of " + g.Client
		if g.Session != "" {
			for_ = "one session of " + g.Client
		}
		rows = append(rows, []string{g.ID, g.Server, g.String(), for_, "until " + g.Until.Local().Format("2006-01-02 15:04"), "call " + g.Call})
	}
	return table(a.out, rows)
}

func (a *app) revokeGrants(ids []string) error {
	s, err := a.grantStore()
	if err != nil {
		return err
	}
	gone, err := s.Revoke(func(g approval.Grant) bool { return slices.Contains(ids, g.ID) })
	if err != nil {
		return err
	}
	for _, g := range gone {
		fmt.Fprintf(a.out, "revoked: %s, %s of %s\n", printable(g.ID), printable(g.String()), printable(g.Server))
	}
	for _, id := range ids {
		if !slices.ContainsFunc(gone, func(g approval.Grant) bool { return g.ID == id }) {
			return withHint(fmt.Errorf("there is no grant %q", id), "`rootbound approve grants list` shows all there are")
		}
	}
	return nil
}

func (a *app) clearGrants(servers []string) error {
	s, err := a.grantStore()
	if err != nil {
		return err
	}
	if len(servers) == 0 {
		if err := s.Clear(); err != nil {
			return err
		}
		_, err := fmt.Fprintln(a.out, "Nothing is granted any more.")
		return err
	}
	gone, err := s.Revoke(func(g approval.Grant) bool { return g.Server == servers[0] })
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "revoked: %s of %s\n", plural(len(gone), "grant", "grants"), printable(servers[0]))
	return err
}

// completeGranted completes the name of a server that something is granted to.
func (a *app) completeGranted(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if s, err := a.grantStore(); err == nil && len(args) == 0 {
		list, _ := s.Grants()
		for _, g := range list {
			names = append(names, g.Server)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeGrants(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	s, err := a.grantStore()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, _ := s.Grants()
	var ids []string
	for _, g := range list {
		ids = append(ids, g.ID+"\t"+printable(g.String()))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
