package cli

import (
	"fmt"
	"strconv"
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
	return usageError{Err: withHint(fmt.Errorf("there is no client %q", id), among(id, clientNames()))}
}

// among is the hint for a word that is none of some.
func among(word string, words []string) string {
	hint := "there are " + strings.Join(words, ", ")
	var longer []string
	for _, w := range words {
		if strings.HasPrefix(w, word) {
			longer = append(longer, strconv.Quote(w))
		}
	}
	if word != "" && len(longer) > 0 {
		return fmt.Sprintf("did you mean %s? ", strings.Join(longer, " or ")) + hint
	}
	if near, ok := launch.Nearest(word, words); ok {
		hint = fmt.Sprintf("did you mean %q? ", near) + hint
	}
	return hint
}

// printableLines is printable for a text of several lines.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = printable(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    "))
	}
	return strings.Join(lines, "\n")
}
