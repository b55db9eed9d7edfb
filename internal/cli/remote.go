package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/streamable"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/wire"
)

// remoteRarely are the flags for servers on other machines, and for the two sides, that only --help-all shows.
var remoteRarely = []string{"share-roots", "remote-root", "forward-authorization", "server-protocol", "client-protocol"}

// remoteFlags are the flags for a server on another machine.
func (b *boundary) remoteFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&b.URL, "url", "", "a server that is reached over HTTP, instead of COMMAND: its `URL`, such as https://mcp.example.com/mcp")
	f.StringArrayVar(&b.Headers, "header", nil, "what is sent to it with every request: `NAME: VALUE`, with ${env:NAME} and ${file:PATH} filled in; may be repeated")
	f.BoolVar(&b.ShareRoots, "share-roots", false, "let it know the roots that you allow (rootbound roots allow)")
	f.StringArrayVar(&b.RemoteRoots, "remote-root", nil, "a `DIR` of its machine, to which the paths in its calls are held by their text; may be repeated")
	f.BoolVar(&b.ForwardAuthorization, "forward-authorization", false, "send it the Authorization of clients of ours (with --listen)")
	f.Var(protocol{choice{&b.ServerProtocol, config.ProtocolWords}}, "server-protocol", "which revisions are spoken with the server (default: those that it speaks)")
	f.Var(protocol{choice{&b.ClientProtocol, config.ProtocolWords}}, "client-protocol", "which revisions are spoken with the client (default: those that it speaks)")
	for _, name := range []string{"server-protocol", "client-protocol"} {
		cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(config.ProtocolWords, cobra.ShellCompDirectiveNoFileComp))
	}
}

// protocol is a choice of revisions, of which help shows the kinds.
type protocol struct{ choice }

// Type implements pflag.Value.
func (protocol) Type() string { return "auto|legacy|modern|REVISION" }

// headers are what goes with every request to a server, with its secrets filled in.
func (a *app) headers(plan *config.Plan) (http.Header, error) {
	h := http.Header{}
	for name, value := range plan.Headers.Value {
		text, err := a.secret(value)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: filling in the header %q: %w", plan.Headers.Origin, name, err)
		case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return nil, fmt.Errorf("%s: filling in the header %q: the secret has a character that a header cannot have", plan.Headers.Origin, name)
		}
		h.Set(name, text)
	}
	return h, nil
}

// remoteIdentity is what a URL stands for in consents, in what is remembered and in pins.
func remoteIdentity(u *url.URL) string {
	v := *u
	v.RawQuery = ""
	return "url:" + config.PlainURL(&v)
}

// runRemote stands between clients and a server on another machine.
func (a *app) runRemote(ctx context.Context, f config.Flags, plan *config.Plan, o runOptions) error {
	if plan.Confine.Value {
		return withHint(errors.New("confining a server with a URL: it does not run here"), "leave out --confine, or write its command behind --")
	}
	u, err := config.ParseURL(plan.URL.Value)
	if err != nil {
		return fmt.Errorf("%s: reading the URL: %w", plan.URL.Origin, err)
	}
	header, err := a.headers(plan)
	if err != nil {
		return err
	}
	auth, err := a.authorizer(u, header)
	if err != nil {
		return err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("finding the working directory: %w", err)
	}
	ln, clients, err := o.listen.open(a)
	if err != nil {
		return err
	}
	if ln != nil {
		defer ln.Close()
	}
	if plan.ForwardAuthorization.Value {
		switch {
		case ln == nil:
			return withHint(fmt.Errorf("%s: handing on the Authorization of clients: a client on standard input has none", plan.ForwardAuthorization.Origin), "add --listen HOST:PORT")
		case clients.Token != "":
			return fmt.Errorf("%s: handing on the Authorization of clients: it is the token for this guard (--auth-token-file), which no other server may get", plan.ForwardAuthorization.Origin)
		case header.Get("Authorization") != "":
			return fmt.Errorf("%s: handing on the Authorization of clients: %s gives one for all", plan.ForwardAuthorization.Origin, plan.Headers.Origin)
		}
		auth = nil // or who shows nothing would be let in as us
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	layers := remoteLayers(plan)
	r, err := a.newRun(plan, cmp.Or(plan.Server, u.Hostname()), cwd, func() []approval.Layer { return layers })
	if err != nil {
		return err
	}
	home, _ := os.UserHomeDir() // without one, "~" in a path is a name like any other
	r.runs = remoteIdentity(u)
	opt, err := r.options(plan, pathargs.Process{Home: home})
	if err != nil {
		return r.fail(err)
	}
	opt.Remote, opt.Share = true, plan.ShareRoots.Value
	pins, file, err := r.pins(plan)
	if err != nil {
		return r.fail(err)
	}
	if opt.Pins = pins; pins != nil {
		opt.Own = append(opt.Own, file)
	}
	newPost := func(func(error)) *post {
		p := &post{}
		var remote *transport.Remote
		remote = transport.NewRemote(func(again func()) (transport.Link, error) {
			o := streamable.DialOptions{
				URL: u, Header: header, Auth: auth, Agent: "rootbound/" + version(), Again: again, Report: r.report, Note: r.note,
			}
			if plan.ForwardAuthorization.Value {
				o.Forwarded = remote.Shown
			}
			return streamable.Dial(o), nil
		}, transport.ProcessOptions{
			Strict: plan.StrictProtocol.Value, Report: r.report, Note: r.note, Memory: a.eras(r.runs, r.report),
			Again:    func(m *wire.Message) bool { return p.guard.Again(m) },
			Protocol: transport.Protocol(plan.ServerProtocol.Value),
		})
		p.guard, p.revision = guard.New(opt), remote.Revision
		p.close = func() *transport.ExitError {
			remote.Close()
			return nil
		}
		p.handler = transport.Hold(transport.Protocol(plan.ClientProtocol.Value), p.guard.Wrap(remote))
		return p
	}
	a.startLine(r, plan, fmt.Sprintf("%s is reached over HTTP, so its disk counts as that of another machine: it is %s, and %s", config.PlainURL(u), layers[0].Text, layers[1].Text))
	if u.Scheme == "http" && !config.Loopback(u) {
		r.warn("without https:// everybody on the way can read and change what is said, secrets included")
	}
	return r.attend(ctx, f, plan, ln, clients, newPost, func(err error) { cancel(err) }, nil)
}

// remoteLayers say by what a server on another machine is held.
func remoteLayers(plan *config.Plan) []approval.Layer {
	told := approval.Layer{Name: layerTold, Holds: plan.ShareRoots.Value, Text: "told no roots"}
	if told.Holds {
		told.Text = "told the roots that you allow"
	}
	checked := approval.Layer{Name: layerChecked, Holds: true, Text: "the paths in its calls are checked as paths of this machine"}
	switch {
	case len(plan.RemoteRoots.Value) > 0:
		checked.Text = "the paths in its calls are held to " + strings.Join(plan.RemoteRoots.Value, ", ") + " there, by their text"
	case plan.Paths.Value == launch.Elsewhere:
		checked.Text = "of the paths in its calls only file: URIs and ~/ are checked"
	}
	return []approval.Layer{told, checked}
}
