package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/rootbound/rootbound/internal/demo"
	"github.com/rootbound/rootbound/internal/sandbox"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/verify"
)

// subject is a server of ours, or one behind us, as --self tries it.
type subject struct {
	title  string
	holds  bool // it is promised that nothing leaks
	args   func(program string, s verify.Setup) []string
	report *verify.Report
	why    string // it could not be tried
}

// subjects are our own server, and one that ignores roots behind each set of layers.
func subjects() []*subject {
	naughty := func(program string, s verify.Setup) []string {
		return []string{program, "demo", demo.NaughtyFlag, s.Dir}
	}
	guarded := func(program string, s verify.Setup, flags ...string) []string {
		args := append([]string{program, "run", "--log", "off", "--pins", "off", "--ask", "client"}, flags...)
		for _, dir := range s.Roots {
			args = append(args, "--root", dir)
		}
		return append(append(args, "--"), naughty(program, s)...)
	}
	return []*subject{
		{title: "rootbound fs", holds: true, args: func(program string, s verify.Setup) []string {
			return append([]string{program, "fs", "--log", "off", "--ask", "client"}, s.Roots...)
		}},
		{title: "a server that ignores roots", args: naughty},
		{title: "the same, told and checked", args: func(program string, s verify.Setup) []string { return guarded(program, s) }},
		{title: "and confined", holds: true, args: func(program string, s verify.Setup) []string { return guarded(program, s, "--confine") }},
	}
}

func (a *app) verifySelf(ctx context.Context, v verifying) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	quiet, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer quiet.Close()
	defer transport.KillDescendants()
	list := subjects()
	for _, s := range list {
		if _, err := (sandbox.Policy{}).Able(); err != nil && s.title == "and confined" {
			s.why = err.Error()
			continue
		}
		if err := a.trySelf(ctx, v, s, program, quiet); err != nil {
			return fmt.Errorf("trying %s: %w", s.title, err)
		}
	}
	if err := a.printSelf(list); err != nil {
		return err
	}
	for _, s := range list {
		if s.report != nil && s.holds && s.report.Count(verify.Leaked) > 0 {
			return exitStatus(exitFindings)
		}
	}
	return nil
}

func (a *app) trySelf(ctx context.Context, v verifying, s *subject, program string, quiet *os.File) error {
	dir, err := os.MkdirTemp("", "rootbound-verify-")
	if err != nil {
		return fmt.Errorf("making the workspace: %w", err)
	}
	defer os.RemoveAll(dir)
	o := v.options(a, func(_ context.Context, setup verify.Setup) (verify.Running, error) {
		process := transport.NewProcess(func() (transport.Command, error) {
			return transport.Command{Args: s.args(program, setup), Dir: setup.Dir}, nil
		}, transport.ProcessOptions{Stderr: quiet, Protocol: transport.Protocol(setup.Era.String())})
		return verify.Running{Handler: process, Close: func() { process.Close() }}, nil
	}, dir)
	o.Command, o.Filled, o.Guarded = strings.Fields("rootbound … "+s.title), true, true
	s.report, err = verify.Run(ctx, o)
	a.progressEnd()
	return err
}

// printSelf shows, by class, how many cases leaked with each subject, of those that could be tried.
func (a *app) printSelf(list []*subject) error {
	type cell struct{ leaked, tried int }
	counts := map[string]map[string]cell{}
	var classes []string
	note := func(class, title string, verdict verify.Verdict) {
		if verdict == verify.NotApplicable {
			return
		}
		if counts[class] == nil {
			counts[class] = map[string]cell{}
			classes = append(classes, class)
		}
		c := counts[class][title]
		c.tried++
		if verdict == verify.Leaked {
			c.leaked++
		}
		counts[class][title] = c
	}
	header := []string{"leaked / tried"}
	for _, s := range list {
		header = append(header, s.title)
		if s.report == nil {
			continue
		}
		for _, q := range s.report.Questions {
			note("questions", s.title, q.Verdict)
		}
		for _, c := range s.report.Cases {
			note(c.Class, s.title, c.Verdict)
		}
	}
	rows := [][]string{header}
	for _, class := range classes {
		row := []string{class}
		for _, s := range list {
			c := counts[class][s.title]
			row = append(row, fmt.Sprintf("%d / %d", c.leaked, c.tried))
		}
		rows = append(rows, row)
	}
	err := table(a.out, rows)
	for _, s := range list {
		switch {
		case s.why != "":
			_, e := fmt.Fprintf(a.out, "%s: not tried: %s\n", s.title, s.why)
			err = errors.Join(err, e)
		default:
			_, e := fmt.Fprintf(a.out, "%s: %s\n", s.title, s.report.Score)
			err = errors.Join(err, e)
		}
	}
	return err
}
