package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/launch"
)

func completeClients(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return clientNames(), cobra.ShellCompDirectiveNoFileComp
}

func clientNames() []string {
	var names []string
	for _, c := range clientconf.Clients() {
		names = append(names, c.ID)
	}
	return names
}

// knownClient refuses the name of a client that there is not.
func knownClient(id string) error {
	if _, ok := clientconf.Lookup(id); ok {
		return nil
	}
	names := clientNames()
	hint := "there are " + strings.Join(names, ", ")
	if near, ok := launch.Nearest(id, names); ok {
		hint = fmt.Sprintf("did you mean %q? ", near) + hint
	}
	return usageError{withHint(fmt.Errorf("there is no client %q", id), hint)}
}

// printableLines is printable for a text of several lines.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = printable(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    "))
	}
	return strings.Join(lines, "\n")
}
