package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/rootbound/rootbound/internal/cli"
)

// documents makes the manual pages of all commands, and the completions of four shells, from the commands themselves. They are
// made here and not by the program, which would grow by what makes them.
func documents(version string, at time.Time) (manual, completions []file, err error) {
	root := cli.Command()
	if err := pages(root, version, at, &manual); err != nil {
		return nil, nil, err
	}
	for _, shell := range []struct {
		name     string
		generate func(*bytes.Buffer) error
	}{
		{"rootbound.bash", func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) }},
		{"_rootbound", func(b *bytes.Buffer) error { return root.GenZshCompletion(b) }},
		{"rootbound.fish", func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) }},
		{"rootbound.ps1", func(b *bytes.Buffer) error { return root.GenPowerShellCompletionWithDesc(b) }},
	} {
		var b bytes.Buffer
		if err := shell.generate(&b); err != nil {
			return nil, nil, fmt.Errorf("writing the completion %s: %w", shell.name, err)
		}
		completions = append(completions, plain(shell.name, b.Bytes()))
	}
	return manual, completions, nil
}

func pages(cmd *cobra.Command, version string, at time.Time, to *[]file) error {
	cmd.DisableAutoGenTag = true
	cmd.Long = markdown(cmd.Long)
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	var b bytes.Buffer
	head := &doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Date: &at, Source: "Rootbound " + version, Manual: "Rootbound"}
	if err := doc.GenMan(cmd, head, &b); err != nil {
		return fmt.Errorf("writing the manual page of %s: %w", name, err)
	}
	*to = append(*to, plain(name+".1", b.Bytes()))
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := pages(c, version, at, to); err != nil {
			return err
		}
	}
	return nil
}

// markdown is a help text as what makes manual pages reads it, where lines that are indented are to stay as they are.
func markdown(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  ") {
			lines[i] = "    " + strings.TrimPrefix(line, "  ")
		}
	}
	return strings.Join(lines, "\n")
}
