package cli

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/modern"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/results"
	"github.com/rootbound/rootbound/internal/streamable"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/roots"
)

// tokenVariable is where the token of a server that listens may be, instead of in a file. No server of ours gets it.
const tokenVariable = "ROOTBOUND_TOKEN"

// inherited is the environment that servers inherit.
func inherited() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, tokenVariable+"=") })
}

// shortestToken is how many characters a token has at least: it can be tried as often as one likes.
const shortestToken = 16

// listening is what the command line says of listening for clients.
type listening struct {
	address           string
	remote            bool
	hosts             []string
	token             string
	cert, key, client string
	stateKey          string
	sessions          int
	idle              time.Duration
}

// listenRarely are the flags that only --help-all shows.
var listenRarely = []string{"allow-remote", "allow-host", "auth-token-file", "tls-cert", "tls-key", "tls-client-ca", "state-key-file", "max-sessions", "session-idle"}

func (l *listening) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.address, "listen", "", "serve clients over HTTP at `HOST:PORT`, instead of one on standard input and output")
	f.BoolVar(&l.remote, "allow-remote", false, "listen on an address that other machines reach; needs a token or --tls-client-ca")
	f.StringArrayVar(&l.hosts, "allow-host", nil, "a `NAME` by which clients may call this server, beside its address; may be repeated")
	f.StringVar(&l.token, "auth-token-file", "", "a `FILE` with the token that clients must show (or $"+tokenVariable+")")
	f.StringVar(&l.cert, "tls-cert", "", "a `FILE` with the certificate by which clients know this server (PEM)")
	f.StringVar(&l.key, "tls-key", "", "a `FILE` with its key (PEM)")
	f.StringVar(&l.client, "tls-client-ca", "", "a `FILE` with the authorities whose certificates clients must show (PEM)")
	f.StringVar(&l.stateKey, "state-key-file", "", "a `FILE` with the key of request states, for several guards behind one address; made where there is none")
	f.IntVar(&l.sessions, "max-sessions", 0, "how many sessions there may be at a time: `N`, each with a process of the server (default 64)")
	f.DurationVar(&l.idle, "session-idle", 30*time.Minute, "how long a session is kept that nobody uses: a `TIME` such as 90s or 2h")
}

// open listens, if that is wanted. What is given back besides says how, but for what is served.
func (l *listening) open(a *app) (net.Listener, *streamable.Options, error) {
	if l.address == "" {
		if l.remote || l.hosts != nil || l.token != "" || l.cert != "" || l.key != "" || l.client != "" || l.stateKey != "" || l.sessions != 0 {
			return nil, nil, usageError{Err: withHint(errors.New("saying how to listen, and not where"), "add --listen HOST:PORT")}
		}
		return nil, nil, nil
	}
	host, port, err := net.SplitHostPort(l.address)
	if err != nil || host == "" || port == "" {
		return nil, nil, usageError{Err: withHint(fmt.Errorf("reading --listen %q: it must name a host and a port", l.address), "write --listen 127.0.0.1:8080, or port 0 for any that is free")}
	}
	if l.sessions < 0 || l.idle <= 0 {
		return nil, nil, usageError{Err: errors.New("reading --max-sessions and --session-idle: they must be more than nothing")}
	}
	o := &streamable.Options{Hosts: l.hosts, Sessions: l.sessions, Idle: l.idle}
	if o.Token, err = l.readToken(a); err != nil {
		return nil, nil, err
	}
	if o.TLS, err = l.readTLS(); err != nil {
		return nil, nil, err
	}
	if l.stateKey != "" {
		if o.StateKey, err = readStateKey(l.stateKey); err != nil {
			return nil, nil, err
		}
	}
	addr, err := net.ResolveTCPAddr("tcp", l.address)
	if err != nil {
		return nil, nil, fmt.Errorf("finding the address to listen on: %w", err)
	}
	if !addr.IP.IsLoopback() {
		switch {
		case !l.remote:
			return nil, nil, usageError{Err: withHint(fmt.Errorf("listening on %s, which other machines may reach", l.address),
				"listen on 127.0.0.1, or add --allow-remote, with --auth-token-file FILE or --tls-client-ca FILE")}
		case o.Token == "" && l.client == "":
			return nil, nil, usageError{Err: withHint(fmt.Errorf("listening on %s, where anybody could use the server", l.address),
				"add --auth-token-file FILE, or --tls-client-ca FILE: a certificate of this server's alone does not say who its client is")}
		}
		if net.ParseIP(host) == nil {
			o.Hosts = append(o.Hosts, host)
		}
	}
	ln, err := streamable.Listen(addr.String())
	if err != nil {
		return nil, nil, fmt.Errorf("listening on %s: %w", l.address, err)
	}
	return ln, o, nil
}

func (l *listening) readToken(a *app) (string, error) {
	token, from := a.env(tokenVariable), "$"+tokenVariable
	if l.token != "" {
		b, err := os.ReadFile(l.token)
		if err != nil {
			return "", fmt.Errorf("reading --auth-token-file: %w", err)
		}
		token, from = string(b), l.token
	} else if token == "" {
		return "", nil
	}
	token = strings.TrimSpace(token)
	if len(token) < shortestToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", withHint(fmt.Errorf("reading the token of %s: it must be at least %d characters without blanks", from, shortestToken), "make one with `openssl rand -hex 32`")
	}
	return token, nil
}

// readStateKey reads the key of request states, which it makes where there is none. Of several that start at once all get the same one.
func readStateKey(path string) ([]byte, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := makeStateKey(path); err != nil {
			return nil, fmt.Errorf("making the key of request states: %w", err)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading --state-key-file: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, withHint(fmt.Errorf("reading --state-key-file: other users may read or write %s", path), "chmod 600 "+guard.ShellQuote(path))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading --state-key-file: %w", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != modern.KeySize {
		return nil, withHint(fmt.Errorf("reading --state-key-file: there is no key in %s, which is %d hexadecimal digits", path, 2*modern.KeySize), "remove it, and one is made")
	}
	return key, nil
}

// makeStateKey makes the file of a key as a whole, unless another one does so first.
func makeStateKey(path string) error {
	key := make([]byte, modern.KeySize)
	rand.Read(key)
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // for its user alone
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = fmt.Fprintln(f, hex.EncodeToString(key))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Link(f.Name(), path)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func (l *listening) readTLS() (*tls.Config, error) {
	switch {
	case l.cert == "" && l.key == "" && l.client == "":
		return nil, nil
	case l.cert == "" || l.key == "":
		return nil, usageError{Err: errors.New("reading --tls-cert and --tls-key: TLS needs both")}
	}
	pair, err := tls.LoadX509KeyPair(l.cert, l.key)
	if err != nil {
		return nil, fmt.Errorf("reading --tls-cert and --tls-key: %w", err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if l.client != "" {
		b, err := os.ReadFile(l.client)
		if err != nil {
			return nil, fmt.Errorf("reading --tls-client-ca: %w", err)
		}
		c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !c.ClientCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("reading --tls-client-ca %q: there is no certificate in it", l.client)
		}
	}
	return c, nil
}

// listen says where and to whom r listens, and returns what serves it.
func (r *running) listen(ln net.Listener, o *streamable.Options) func(ctx context.Context) error {
	scheme, who := "http", "whoever knows the token"
	if o.TLS != nil {
		scheme = "https"
	}
	switch {
	case o.TLS != nil && o.TLS.ClientCAs != nil && o.Token == "":
		who = "whoever shows a certificate"
	case o.Token == "":
		who = "every user of this machine (--auth-token-file keeps others out)"
	}
	url := fmt.Sprintf("%s://%s%s", scheme, ln.Addr(), streamable.Path)
	r.listening.Store(&url)
	r.board.Changed()
	where := fmt.Sprintf("listening on %s for %s", url, who)
	r.note("%s", where) // first: who hears where it is may look there
	r.warn(where)
	if addr, ok := ln.Addr().(*net.TCPAddr); ok && !addr.IP.IsLoopback() && o.TLS == nil {
		r.warn("without --tls-cert everybody on the way can read and change what is said, the token included")
	}
	o.Report, o.Note = r.report, r.note
	return func(ctx context.Context) error { return streamable.New(ln, *o).Serve(ctx, ln) }
}

// post is a guard with the server that it stands before. A client on standard input has one; over HTTP each session has its own,
// and all requests without a session have one together.
type post struct {
	guard    *guard.Guard
	handler  exchange.Handler
	close    func() *transport.ExitError
	revision func(exchange.Era) string // that is spoken with the server for a client of an era; nil: the client's own

	n int // which of all posts of its run
}

// posts are those of one run. What its configuration says now holds for each.
type posts struct {
	mu    sync.Mutex
	now   func(*guard.Guard) // puts in force what the configuration says; nil when it is as at the start
	stops map[*post]context.CancelFunc
	made  int             // ever
	board *approval.Board // is told that there are others
}

// add takes one in, and has its guard watch until it is removed.
func (p *posts) add(ctx context.Context, one *post) {
	ctx, stop := context.WithCancel(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now != nil {
		p.now(one.guard)
	}
	if p.stops == nil {
		p.stops = map[*post]context.CancelFunc{}
	}
	p.made++
	one.n, p.stops[one] = p.made, stop
	go one.guard.Watch(ctx)
	p.board.Changed()
}

func (p *posts) remove(one *post) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stop := p.stops[one]; stop != nil {
		stop()
	}
	delete(p.stops, one)
	p.board.Changed()
}

// set puts in force what the configuration says now, also for those to come.
func (p *posts) set(rules pathargs.Rules, defaults map[string]map[string]string, answers results.Options, policy guard.Policy, configured roots.Set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = func(g *guard.Guard) {
		g.SetRules(rules, defaults)
		g.SetResults(answers)
		g.SetPolicy(policy)
		g.Configure(configured)
	}
	var all sync.WaitGroup
	for one := range p.stops {
		all.Go(func() { p.now(one.guard) }) // a server that does not read what changed holds up its own guard for a moment
	}
	all.Wait()
}
