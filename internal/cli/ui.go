package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/ui"
)

func (a *app) uiCommand() *cobra.Command {
	var open bool
	address := "127.0.0.1:0"
	cmd := &cobra.Command{
		Use: "ui", Short: "Show what runs, answer questions and look back, in a browser", GroupID: groupDecide,
		Long: `Serve a page, for a browser on this machine, on which you see what runs behind Rootbound, answer questions and look back. It
prints a link that is good for one browser, once; where input is a terminal, Enter prints a new one, with which the browser
before it is let in no longer. Nothing else needs this command: it finds the guards that run, and ends with Ctrl-C.

` + exitCodes,
		Example: `  rootbound ui
  rootbound ui --open`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serveUI(cmd.Context(), address, open) },
	}
	f := cmd.Flags()
	f.BoolVar(&open, "open", false, "open it in a browser, too")
	f.StringVar(&address, "listen", address, "the `HOST:PORT` of this machine that it is served at; port 0 is any that is free")
	return cmd
}

func (a *app) serveUI(ctx context.Context, address string, open bool) error {
	dir, err := a.approvalDir()
	if err != nil {
		return err
	}
	o := ui.Options{Dir: dir, Version: version(), File: a.system().UserFile, Report: func(format string, args ...any) {
		fmt.Fprintf(a.err, "rootbound: %s\n", printable(fmt.Sprintf(format, args...)))
	}}
	o.Told = func() ([]guard.Told, error) {
		logs, err := a.dirOf("")
		if err != nil {
			return nil, err
		}
		return a.told(logs)
	}
	if o.Consents, err = a.consents(); err != nil {
		return err
	}
	if o.Grants, err = a.grantStore(); err != nil {
		return err
	}
	if o.Pins, err = a.pinStore(""); err != nil {
		return err
	}
	if err := a.lookBack(&o); err != nil {
		return err
	}
	u := ui.New(o)
	l, err := ui.Listen(address)
	switch {
	case errors.Is(err, ui.ErrAddress):
		return usageError{Err: withHint(err, "write --listen 127.0.0.1:0")}
	case err != nil:
		return err
	}
	link := func() error {
		at := u.Link(l.Addr())
		if _, err := fmt.Fprintf(a.out, "%s\n", at); err != nil {
			l.Close()
			return err
		}
		if open {
			if err := transport.Detach(append(browserCommand(), at)...); err != nil {
				fmt.Fprintf(a.err, "rootbound: opening a browser: %v\n", err)
			}
		}
		return nil
	}
	if err := link(); err != nil {
		return err
	}
	if a.interactive() {
		fmt.Fprintf(a.err, "rootbound: open the link above, once; Enter prints a new one, Ctrl-C ends\n")
		go func() {
			for in := bufio.NewScanner(a.in); in.Scan() && link() == nil; {
			}
		}()
	}
	return u.Serve(ctx, l)
}
