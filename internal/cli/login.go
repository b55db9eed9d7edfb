package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/oauth"
	"github.com/rootbound/rootbound/internal/streamable"
	"github.com/rootbound/rootbound/internal/transport"
)

// logins is where tokens are kept: beside the logs, in the user's state directory.
func (a *app) logins() (oauth.Store, error) {
	dir, err := a.logDir()
	if err != nil {
		return "", err
	}
	return oauth.Store(filepath.Join(filepath.Dir(dir), "logins")), nil
}

// authorizer has the token that somebody got with `rootbound login`, where nothing else authorizes us.
func (a *app) authorizer(u *url.URL, header http.Header) (streamable.Authorizer, error) {
	if header.Get("Authorization") != "" || u.Scheme == "http" && !config.Loopback(u) {
		return nil, nil // which would give the token to everybody on the way
	}
	store, err := a.logins()
	if err != nil {
		return nil, err
	}
	return store.Tokens(u, "rootbound login "+guard.ShellQuote(config.PlainURL(u))), nil
}

func (a *app) loginCommand() *cobra.Command {
	var o oauth.LoginOptions
	var browser, forget bool
	var patience time.Duration
	cmd := &cobra.Command{
		Use:     "login [flags] [URL]",
		Short:   "Log in to a server on another machine, so that `rootbound run --url` may use it",
		GroupID: groupRun,
		Long: `Log in to the MCP server at URL, by OAuth: it says which authorization server knows you, and that one shows a page on which you
say yes. The page is printed; with --browser it is also opened. The tokens are kept in the state directory, for you alone to
read, and are renewed as long as the authorization server lets that be; ` + "`rootbound run --url URL`" + ` uses them, also one that runs.

Without URL the logins are listed. --forget takes one back.`,
		Example: `  rootbound login https://mcp.example.com/mcp
  rootbound login --browser --scope 'files:read' https://mcp.example.com/mcp
  rootbound login --forget https://mcp.example.com/mcp`,
		Args: usageArgs(cobra.MaximumNArgs(1)), ValidArgsFunction: a.completeLogins,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				if cmd.Flags().NFlag() > 0 {
					return usageError{Err: withHint(errors.New("which server?"), "write `rootbound login URL`; without URL and flags the logins are listed")}
				}
				return a.listLogins()
			}
			u, err := config.ParseURL(args[0])
			if err != nil {
				return usageError{Err: fmt.Errorf("reading the URL: %w", err)}
			}
			store, err := a.logins()
			if err != nil {
				return err
			}
			if forget {
				was, err := store.Remove(cmd.Context(), u)
				switch {
				case err != nil:
					return err
				case !was:
					return withHint(fmt.Errorf("there is no login at %s", config.PlainURL(u)), "`rootbound login` lists the logins")
				}
				fmt.Fprintf(a.out, "forgotten: %s\n", config.PlainURL(u))
				return nil
			}
			o.Server = u
			if o.ClientSecret, err = a.secret(o.ClientSecret); err != nil {
				return fmt.Errorf("reading --client-secret: %w", err)
			}
			o.Visit = func(page, doubt string) error {
				fmt.Fprintf(a.out, "Visit this page to log in; this command waits for that:\n\n%s\n\n", printable(page))
				if doubt != "" {
					fmt.Fprintf(a.err, "rootbound: %s\n", printable(doubt))
				}
				if browser {
					if err := transport.Detach(append(browserCommand(), page)...); err != nil {
						fmt.Fprintf(a.err, "rootbound: opening a browser: %v\n", err)
					}
				}
				return nil
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), patience, errors.New("nobody came in time"))
			defer cancel()
			e, err := oauth.Login(ctx, o)
			if err != nil {
				err = fmt.Errorf("logging in to %s: %w", config.PlainURL(u), err)
				if u.Scheme == "http" && !config.Loopback(u) {
					err = withHint(err, "write https://, if the server can be reached so")
				}
				return err
			}
			if err := store.Save(e); err != nil {
				return err
			}
			fmt.Fprintf(a.out, "logged in to %s by %s\n", printable(e.Server), printable(e.Issuer))
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&browser, "browser", false, "open the page in a browser, too")
	f.StringVar(&o.Scope, "scope", "", "what is asked for: `WORDS` of the authorization server (default: what the server says it needs)")
	f.BoolVar(&forget, "forget", false, "take the login at URL back")
	f.StringVar(&o.ClientID, "client-id", "", "the `ID` of a client that is registered already (default: one is registered)")
	f.StringVar(&o.ClientSecret, "client-secret", "", "its `SECRET`, with ${env:NAME} and ${file:PATH} filled in")
	f.IntVar(&o.Port, "port", 0, "the `PORT` of this machine that the browser comes back to (default: any)")
	f.DurationVar(&patience, "wait", 10*time.Minute, "how long the page is waited for: a `TIME` such as 90s")
	rare(cmd, "client-id", "client-secret", "port", "wait")
	return cmd
}

// browserCommand is how the system opens a page.
func browserCommand() []string {
	switch runtime.GOOS {
	case "darwin":
		return []string{"open"}
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	return []string{"xdg-open"}
}

func (a *app) listLogins() error {
	store, err := a.logins()
	if err != nil {
		return err
	}
	list, err := store.List()
	if err != nil {
		return err
	}
	if len(list) == 0 {
		fmt.Fprintln(a.err, "rootbound: nobody is logged in anywhere")
		return nil
	}
	var rows [][]string
	for _, e := range list {
		until := "as long as it is let"
		switch {
		case e.Refresh != "":
			until = "renewed"
		case !e.Expiry.IsZero():
			until = "until " + e.Expiry.Local().Format("2006-01-02 15:04")
		}
		rows = append(rows, []string{e.Server, e.Issuer, e.Scope, until})
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return table(a.out, rows)
}

func (a *app) completeLogins(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var urls []string
	if store, err := a.logins(); err == nil && len(args) == 0 {
		list, _ := store.List()
		for _, e := range list {
			urls = append(urls, e.Server)
		}
	}
	return urls, cobra.ShellCompDirectiveNoFileComp
}

// secret fills in what stands for a secret.
func (a *app) secret(value string) (string, error) {
	return config.Secrets(value, func(name string) (string, bool) {
		v := a.env(name)
		return v, v != ""
	}, func(path string) (string, error) {
		b, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		return strings.TrimRight(string(b), "\r\n"), nil
	})
}
