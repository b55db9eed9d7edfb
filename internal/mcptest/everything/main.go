// Command everything is the server that the official conformance suite talks to: it has the tools, prompts and resources that the
// suite asks for, on our own core in both eras. It serves one client on standard input and output, or with -listen clients over
// HTTP; with -era it knows one era only.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/streamable"
	"github.com/rootbound/rootbound/internal/transport"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "everything:", err)
		os.Exit(1)
	}
}

func run() error {
	address := flag.String("listen", "", "serve clients over HTTP at `HOST:PORT`")
	era := flag.String("era", "", "know one era only: `legacy` or modern")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	h := exchange.Checked(newServer(*era), func(err error) { panic(err) })
	report := func(format string, args ...any) { fmt.Fprintf(os.Stderr, "everything: "+format+"\n", args...) }
	if *address == "" {
		return transport.ServeStdio(ctx, os.Stdin, os.Stdout, h, transport.StdioOptions{Report: report})
	}
	l, err := streamable.Listen(*address)
	if err != nil {
		return err
	}
	report("listening on http://%s%s", l.Addr(), streamable.Path)
	return streamable.New(l, streamable.Options{
		Stateless: h, Report: report,
		Session: func(func(error)) (exchange.Handler, func(), error) { return h, func() {}, nil },
	}).Serve(ctx, l)
}
