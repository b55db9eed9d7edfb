package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/doctor"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/verify"
)

// live starts the servers that a person says yes to, one after the other, and tells what each shows. What it asks and tells
// goes to standard error: standard output is the report.
func (a *app) live(ctx context.Context, m doctor.Machine, files []*clientconf.File) []doctor.Lived {
	var list []doctor.Lived
	answers := bufio.NewReader(a.in)
	for _, s := range m.Startables(files) {
		words := s.Printed()
		for i, w := range words {
			words[i] = guard.ShellQuote(w)
		}
		if !confirm(a.err, answers, fmt.Sprintf("Start %s, unconfined and as you? %s", printable(s.Title()), strings.Join(words, " "))) {
			fmt.Fprintf(a.err, "not started\n")
			continue
		}
		looked, err := verify.Look(ctx, func(_ context.Context, era exchange.Era) (verify.Running, error) {
			process := transport.NewProcess(func() (transport.Command, error) {
				return transport.Command{Args: append([]string{s.Command.Path}, s.Command.Args...), Env: append(inherited(), s.Env...), Dir: s.Command.Dir}, nil
			}, transport.ProcessOptions{Protocol: transport.Protocol(era.String())})
			return verify.Running{Handler: process, Close: func() { process.Close() }}, nil
		}, m.Host.Project)
		if err != nil {
			fmt.Fprintf(a.err, "rootbound: %s: %s\n", printable(s.Title()), printable(err.Error()))
			continue
		}
		a.tellLooked(s, looked)
		lived := doctor.Lived{Startable: s}
		for _, t := range looked.Tools {
			lived.Tools = append(lived.Tools, doctor.LiveTool(t))
		}
		list = append(list, lived)
	}
	transport.KillDescendants()
	return list
}

func (a *app) tellLooked(s doctor.Startable, l verify.Looked) {
	roots := "it did not ask for roots: it goes by its arguments"
	switch {
	case l.Stateless:
		roots = "it is stateless, and asks for roots in a call at most"
	case l.Asked > 0 && l.AskedAgain:
		roots = "it asked for roots, and again after a change"
	case l.Asked > 0:
		roots = "it asked for roots, and not again after a change: restart it after a switch"
	}
	name := l.Name
	if l.Version != "" {
		name += " " + l.Version
	}
	fmt.Fprintf(a.err, "%s is %q with %s; %s\n", printable(s.Title()), printable(name), plural(len(l.Tools), "tool", "tools"), roots)
}
