package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/egress"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/sandbox"
	"github.com/rootbound/rootbound/roots"
)

func (a *app) learnCommand() *cobra.Command {
	var b boundary
	var o runOptions
	var out string
	cmd := &cobra.Command{
		Use:     "learn [flags] -- COMMAND [ARG…]",
		Short:   "Watch a server while you use it, and propose how to confine it",
		GroupID: groupAdopt,
		Long: `Start the server COMMAND as ` + "`rootbound run`" + ` does, held by nothing and watched, and propose at the end the smallest profile with
which ` + "`rootbound run --confine`" + ` would have let it do the same: which directories it reads and which it writes, and what it
reads, writes, runs and reaches besides. Put it into a client's configuration in the place of ` + "`run`" + `, use the server as you
usually do, and close the client; or type it in a terminal: then it is asked for its tools only.

Use it with servers that you trust so far: one that means harm can show less than it does. Which variables of the
environment it reads cannot be seen. It watches on Linux, by seccomp, and needs no rights for that.

` + exitCodes,
		Example: `  rootbound learn --root ~/project -- my-server
  rootbound learn --out profile.toml --root ~/project -- python3 server.py
  rootbound run --config profile.toml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.learn = &learned{out: out}
			if err := o.learn.ready(); err != nil {
				return err
			}
			b.Confine = true
			return a.played().run(cmd.Context(), b.configFlags(args), o)
		},
	}
	cmd.Flags().SetInterspersed(false)
	f := cmd.Flags()
	f.StringVarP(&out, "out", "o", "", "a new `FILE` for the profile, instead of standard error")
	f.BoolVar(&o.refresh, "refresh", false, "install a server anew that a package runner (npx) would fetch")
	b.confineFlags(f)
	b.flags(a, cmd, append(confineNames, "refresh")...)
	return cmd
}

// learned is what a watched server does.
type learned struct {
	out string // the file of the profile; empty is standard error

	mu    sync.Mutex
	seen  map[sandbox.Access]bool
	hosts map[string]bool // by the proxy
	proxy uint16
	rules func(programs []string) ([]sandbox.Rule, error) // what it would be held to now, with more programs
}

// ready looks before the start whether the profile can be written at the end.
func (l *learned) ready() error {
	if l.out == "" {
		return nil
	}
	if _, err := os.Lstat(l.out); err == nil {
		return withHint(fmt.Errorf("writing the profile to %q: it is there already", l.out), "name another file, or remove this one")
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("writing the profile: %w", err)
	}
	if info, err := os.Stat(filepath.Dir(l.out)); err != nil || !info.IsDir() {
		return fmt.Errorf("writing the profile to %q: there is no such directory", l.out)
	}
	return nil
}

func (l *learned) see(a sandbox.Access) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[sandbox.Access]bool{}
	}
	if len(l.seen) < maxSeen {
		l.seen[a] = true
	}
}

// maxSeen is how many different things are kept of what a server does.
const maxSeen = 1 << 17

func (l *learned) reach(a egress.Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hosts == nil {
		l.hosts = map[string]bool{}
	}
	if hosts, err := egress.ParseHosts([]string{a.Host}); err == nil && len(l.hosts) < maxSeen {
		l.hosts[hosts[0].String()] = true
	}
}

// propose writes the profile of what was seen.
func (l *learned) propose(c *confinement, set roots.Set) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rules == nil {
		return withHint(errors.New("the server was never started, so there is nothing to propose"),
			"it starts with a client's first request: use it from a client, or type the command in a terminal")
	}
	p, err := l.profile(c, set)
	if err != nil {
		return err
	}
	if l.out == "" {
		_, err := io.WriteString(c.run.app.err, p)
		return err
	}
	file, err := os.OpenFile(l.out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = io.WriteString(file, p)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("writing the profile: %w", err)
	}
	fmt.Fprintf(c.run.app.err, "rootbound: %s: the profile is in %s\n", c.run.name, l.out)
	return nil
}

// played is the app, or one with a client in it where a person sits at standard input, who speaks no MCP: it asks for
// the tools and closes.
func (a *app) played() *app {
	f, ok := a.in.(*os.File)
	if !ok {
		return a
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 || isNull(info) {
		return a
	}
	in, say := io.Pipe()
	b := *a
	b.in, b.out = in, &player{say: say}
	go say.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"rootbound learn","version":"1"}}}` + "\n"))
	return &b
}

func isNull(info os.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(null, info)
}

// player is a client: it is written what the server says.
type player struct {
	say  *io.PipeWriter
	line []byte
}

func (p *player) Write(b []byte) (int, error) {
	p.line = append(p.line, b...)
	for {
		line, rest, ok := bytes.Cut(p.line, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		p.line = rest
		var m struct {
			ID     json.RawMessage
			Method string
			Error  json.RawMessage
		}
		if json.Unmarshal(line, &m) != nil || m.Method != "" {
			continue
		}
		switch {
		case string(m.ID) == "1" && m.Error == nil:
			go p.say.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n"))
		case string(m.ID) == "1", string(m.ID) == "2":
			p.say.Close()
		}
	}
}

// watched is the command of a server that is watched.
func (c *confinement) watched(filled launch.Command, set roots.Set, dir string) sandbox.Watch {
	l := c.learn
	l.mu.Lock()
	defer l.mu.Unlock()
	plan := *c.plan // what is allowed already is proposed again, as far as it is used
	plan.AllowRead, plan.AllowWrite, plan.AllowRun = config.Setting[[]string]{}, config.Setting[[]string]{}, config.Setting[[]string]{}
	plan.Net.Value = config.Net{All: true} // whom to trust is read too, and is found where it is needed
	bare := &confinement{run: c.run, plan: &plan, tmp: c.tmp}
	l.rules = func(programs []string) ([]sandbox.Rule, error) {
		policy, _, err := bare.policy(filled, set, dir, programs)
		return policy.Rules, err
	}
	if c.proxy != nil {
		l.proxy = c.proxy.Port()
	}
	return sandbox.Watch{Seen: l.see}
}
