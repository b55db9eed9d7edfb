package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/doctor"
	"github.com/rootbound/rootbound/internal/transport"
)

type doctorOptions struct {
	clients             []string
	project, home, file string
	json, sarif         bool
	fix, live           bool
}

func (a *app) doctorCommand() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Judge the configurations of MCP clients: what each server may touch, and what is wrong",
		GroupID: groupLook,
		Long: `Find the configuration files of every MCP client that is known, and show what each server in them may touch, whether its
client sends roots, who approves its calls, and which entry of a name wins. Then what is wrong: where, why, and what to
write instead. docs/doctor.md lists everything that can be found.

Nothing is started and nothing that a file names is executed, unless --live is given: then each server is, if you say yes to
it, as its client would start it, and its tools are listed; none is called. Nothing is written, unless --fix is given: then
what can be mended without a person's judgement is, after the diff was shown, with a copy of the file beside it. No secret is
printed.

--file judges one file as that of the client that --client names, wherever it lies, and by what it says alone: that
directories are there and variables are set is not asked, unless --home or --project says whose they are.

Exit codes: 0 no error was found, 1 error, 2 wrong usage, 3 findings of severity E.`,
		Example: `  rootbound doctor
  rootbound doctor --client claude-code --client cursor --project ~/src/app
  rootbound doctor --file .mcp.json --client claude-code --sarif
  rootbound doctor --fix
  rootbound doctor --live --client cursor`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.clients, "client", nil, "only the client `NAME`; may be repeated")
	f.StringVar(&o.project, "project", "", "the `DIR` that is worked in (default: the project of the working directory)")
	f.StringVar(&o.home, "home", "", "the home `DIR` whose files are judged (default: yours)")
	f.StringVar(&o.file, "file", "", "judge this one `FILE`, as that of --client")
	f.BoolVar(&o.json, "json", false, "print servers and findings as one JSON object")
	f.BoolVar(&o.sarif, "sarif", false, "print the findings as SARIF 2.1.0")
	f.BoolVar(&o.fix, "fix", false, "mend what is safe to mend, after showing the diff")
	f.BoolVar(&o.live, "live", false, "start the servers that you say yes to, and add what only a running one shows")
	cmd.RegisterFlagCompletionFunc("client", completeClients)
	return cmd
}

// machine is what configurations are judged against, and the files that are judged.
func (a *app) machine(o doctorOptions) (doctor.Machine, []*clientconf.File, error) {
	for _, id := range o.clients {
		if err := knownClient(id); err != nil {
			return doctor.Machine{}, nil, err
		}
	}
	m := doctor.Machine{
		LookPath: func(name string) error { return transport.LookPath(name, "") },
		Alone:    o.file != "" && o.home == "" && o.project == "",
	}
	var err error
	if m.Self, err = a.programPath(""); err != nil {
		m.Self = "" // then nothing is written that would need it
	}
	if m.Host, err = a.clientHost(o.project); err != nil && o.home == "" {
		return m, nil, err
	}
	for flag, dir := range map[string]*string{"--home": &o.home, "--project": &o.project} {
		if *dir == "" {
			continue
		}
		info, err := os.Stat(*dir)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%q is no directory", *dir)
		}
		if err == nil {
			*dir, err = filepath.Abs(*dir)
		}
		if err != nil {
			return m, nil, fmt.Errorf("looking at %s: %w", flag, err)
		}
	}
	if o.home != "" { // this environment is not that of whoever lives there
		m.Host.Home, m.Host.Project, m.Host.Env = o.home, o.project, nil
	}
	if o.file == "" {
		return m, doctor.Files(m, o.clients...), nil
	}
	if m.Alone { // nor is where this runs the place of a file that may come from anywhere
		m.Host.Project, m.Host.Env = "", nil
	}
	if len(o.clients) != 1 {
		return m, nil, usageError{Err: withHint(errors.New("--file needs one --client, by whose grammar the file is read"), "write --client NAME; "+among("", clientNames()))}
	}
	path, err := filepath.Abs(o.file)
	if err != nil {
		return m, nil, err
	}
	files, err := doctor.FilesOf(m, o.clients[0], path)
	return m, files, err
}

func (a *app) doctor(ctx context.Context, o doctorOptions) error {
	switch {
	case o.json && o.sarif || o.fix && (o.json || o.sarif):
		return usageError{Err: withHint(errors.New("only one of --json, --sarif and --fix can be had at once"), "see `rootbound doctor --help`")}
	case o.live && (o.file != "" || o.home != ""):
		return usageError{Err: withHint(errors.New("--live starts your own servers: it goes with neither --file nor --home"), "see `rootbound doctor --help`")}
	}
	m, files, err := a.machine(o)
	if err != nil {
		return err
	}
	report := doctor.Examine(m, files)
	if o.live {
		report.AddLive(a.live(ctx, m, files))
	}
	switch {
	case o.json:
		err = report.WriteJSON(a.out)
	case o.sarif:
		err = report.WriteSARIF(a.out, version())
	default:
		if o.fix {
			if report, err = a.mend(m, files, report, o); err != nil {
				return err
			}
		}
		err = a.printReport(m, report)
	}
	if err != nil {
		return err
	}
	if report.Worst() == doctor.Error {
		return exitStatus(exitFindings)
	}
	return nil
}

func (a *app) printReport(m doctor.Machine, r *doctor.Report) error {
	p := &doctor.Printer{W: a.sheet(factAt), Color: a.color(), Home: m.Host.Home}
	if r.Empty() {
		_, err := fmt.Fprintf(a.out, "No configuration of an MCP client was found for %s.\n", printable(m.Host.Home))
		return err
	}
	if err := p.Servers(r); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	return p.Findings(r)
}

// mend shows and writes what can be mended, and judges anew what is there then.
func (a *app) mend(m doctor.Machine, files []*clientconf.File, r *doctor.Report, o doctorOptions) (*doctor.Report, error) {
	for round := 0; ; round++ {
		list, errs := doctor.Fixes(m, files, r)
		if len(list) == 0 || round == 5 { // what one client reads otherwise than another could go on
			for _, err := range errs {
				fmt.Fprintf(a.err, "rootbound: not mended: %s\n", printable(err.Error()))
			}
			if round == 0 {
				fmt.Fprintf(a.out, "Nothing is found that can be mended without you.\n\n")
			}
			return r, nil
		}
		for _, am := range list {
			if err := a.amend(am); err != nil {
				return nil, err
			}
		}
		var err error
		if _, files, err = a.machine(o); err != nil {
			return nil, err
		}
		r = doctor.Examine(m, files)
	}
}

// amend shows and writes one amendment.
func (a *app) amend(am doctor.Amendment) error {
	f := am.File
	path := printable(f.Path)
	fmt.Fprint(a.out, printableLines(udiff.Unified(path, path, doctor.Mask(f, string(am.Before)), doctor.Mask(f, string(am.Draft.Bytes())))))
	// A copy that is there of a file with wrapped servers is that of before they were.
	copied := "what was there is in"
	keep := slices.ContainsFunc(f.Servers, wrapped)
	if _, err := os.Lstat(f.Backup()); err == nil && keep {
		copied = "what was there before servers were wrapped is in"
	}
	if err := f.Save(keep); err != nil {
		return err
	}
	if err := am.Draft.Write(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "Mended %s; %s %s. Then %s.\n\n", plural(len(am.Mends), "finding", "findings"), copied,
		printable(filepath.Base(f.Backup())), f.Client.Restart)
	return err
}
