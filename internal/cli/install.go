package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/sandbox"
	"github.com/rootbound/rootbound/internal/statefile"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/roots"
)

// packages is where servers are installed that a package runner would fetch each time.
func packages() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache directory: %w", err)
	}
	return filepath.Join(dir, "rootbound"), nil
}

// installation is what is known of a server that was installed. It is kept where our state is, and not beside the server.
type installation struct {
	Version   string `json:"version"`
	Integrity string `json:"integrity,omitempty"` // of the package's archive, from the registry
	Print     string `json:"print"`               // of all that is installed
}

// has reports whether there is a program of that name.
func has(program string) bool { return transport.LookPath(program, "") == nil }

// installed returns the command of the server that is installed for it. It is installed the first time, and again when
// that is asked for: with the network, and without a file to write but in its own directory. From then on the server is
// the one that was installed, and is run without any of that, or not at all.
func (c *confinement) installed(ctx context.Context, i launch.Install) (command launch.Command, err error) {
	top, err := packages()
	if err != nil {
		return launch.Command{}, err
	}
	state, err := c.run.app.logDir()
	if err != nil {
		return launch.Command{}, err
	}
	known := filepath.Join(filepath.Dir(state), "installed", i.Key()+".json")
	err = statefile.Locked(known+".lock", func() error { // another guard may be installing it
		command, err = c.installedAs(ctx, i, filepath.Join(top, i.Key()), known)
		return err
	})
	return command, err
}

func (c *confinement) installedAs(ctx context.Context, i launch.Install, dir, known string) (launch.Command, error) {
	var before installation
	text, err := os.ReadFile(known)
	if err == nil {
		err = json.Unmarshal(text, &before)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !c.again {
		return launch.Command{}, withHint(fmt.Errorf("reading what is known of %s: %w", i.Spec, err), "install it anew with --refresh")
	}
	in, err := i.In(dir, has)
	if c.again || errors.Is(err, fs.ErrNotExist) {
		return c.installAnew(ctx, i, dir, known, before)
	}
	if err == nil {
		err = c.unchanged(i, dir, in, before)
	}
	if err != nil {
		return launch.Command{}, withHint(err, "if that is meant, install it anew with --refresh")
	}
	c.run.note("%s is %s (%s), installed in %q", i.Spec, in.Version, cmp.Or(in.Integrity, before.Print), dir)
	c.version = in.Version
	return in.Command, nil
}

// unchanged refuses what is not as it was when it was installed.
func (c *confinement) unchanged(i launch.Install, dir string, in launch.Installed, before installation) error {
	print, err := launch.Print(dir)
	switch {
	case err != nil:
		return fmt.Errorf("looking whether %s is as it was installed: %w", i.Spec, err)
	case before.Print == "":
		return fmt.Errorf("starting %s from %q: nothing is known of how it was installed", i.Spec, dir)
	case print != before.Print || in.Version != before.Version:
		return fmt.Errorf("starting %s from %q: it is not as it was installed, somebody has changed it", i.Spec, dir)
	}
	return nil
}

// installAnew installs the version that was there before, if it is gone, and else the one that the registry has now.
func (c *confinement) installAnew(ctx context.Context, i launch.Install, dir, known string, before installation) (launch.Command, error) {
	version := before.Version
	if c.again {
		version = ""
	}
	top := filepath.Dir(dir)
	if err := os.MkdirAll(top, 0o700); err != nil {
		return launch.Command{}, fmt.Errorf("making the directory of packages: %w", err)
	}
	fresh, err := os.MkdirTemp(top, ".new-")
	if err == nil {
		err = i.Prepare(fresh)
	}
	if err != nil {
		return launch.Command{}, fmt.Errorf("making a directory for %s: %w", i.Spec, err)
	}
	defer os.RemoveAll(fresh)
	installer, also, err := i.Command(fresh, version, has)
	if err != nil {
		return launch.Command{}, err
	}
	c.run.warn(fmt.Sprintf("installing %s, once", i.Spec))
	if err := c.install(ctx, installer, also); err != nil {
		return launch.Command{}, fmt.Errorf("installing %s: %w", i.Spec, err)
	}
	os.RemoveAll(filepath.Join(fresh, "cache")) // what is kept for the next time; there is none
	in, err := i.In(fresh, has)
	if err != nil {
		return launch.Command{}, err
	}
	if in.Version == before.Version && in.Integrity != before.Integrity && before.Print != "" {
		return launch.Command{}, withHint(fmt.Errorf("installing %s: the registry has another %s %s than the one that was installed (%s, and it was %s); nothing was changed",
			i.Spec, i.Spec, in.Version, cmp.Or(in.Integrity, "no print"), cmp.Or(before.Integrity, "without a print")), "a version never changes; if this one is meant all the same, remove "+guard.ShellQuote(known))
	}
	now := installation{Version: in.Version, Integrity: in.Integrity}
	if now.Print, err = launch.Print(fresh); err != nil {
		return launch.Command{}, fmt.Errorf("looking at what was installed of %s: %w", i.Spec, err)
	}
	text, err := json.Marshal(now)
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err == nil {
		err = os.Rename(fresh, dir)
	}
	if err == nil {
		err = statefile.Replace(known, append(text, '\n'))
	}
	if err != nil {
		return launch.Command{}, fmt.Errorf("installing %s: %w", i.Spec, err)
	}
	if in, err = i.In(dir, has); err != nil {
		return launch.Command{}, err
	}
	said := fmt.Sprintf("%s is %s (%s) from now on; --refresh looks for another one", i.Spec, in.Version, cmp.Or(in.Integrity, now.Print))
	if before.Version != "" && before.Version != in.Version {
		said += "; it was " + before.Version
	}
	c.run.report("%s", said)
	c.version = in.Version
	return in.Command, nil
}

// install runs a package manager: confined as a server is, to its own directory and with the network.
func (c *confinement) install(ctx context.Context, command launch.Command, also []string) error {
	needs, err := command.Needs(launch.Look{Dir: command.Dir, Getenv: os.Getenv, Net: true, Install: true}, also...)
	if err != nil {
		return err
	}
	dir, err := filepath.EvalSymlinks(command.Dir)
	if err != nil {
		return err
	}
	policy := sandbox.Policy{Net: sandbox.Net{All: true}, Rules: append(rulesOf(roots.Set{}, needs.Files),
		sandbox.Rule{Path: dir, Access: roots.ReadWrite}, sandbox.Rule{Path: c.tmp, Access: roots.ReadWrite})}
	home, _ := os.UserHomeDir()
	for _, path := range []string{ // the registry, and who may use it
		filepath.Join(home, ".npmrc"), "/etc/npmrc", filepath.Join(home, ".bunfig.toml"), filepath.Join(home, ".config/pnpm/rc"),
		filepath.Join(home, ".config/pip/pip.conf"), filepath.Join(home, ".pip/pip.conf"), "/etc/pip.conf",
		filepath.Join(home, ".config/uv/uv.toml"), "/etc/uv/uv.toml", os.Getenv("NODE_EXTRA_CA_CERTS"), os.Getenv("SSL_CERT_FILE"),
	} {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			policy.Rules = append(policy.Rules, sandbox.Rule{Path: real, Access: roots.ReadOnly})
		}
	}
	for _, path := range c.plan.AllowRead.Value {
		real, err := c.resolve(c.plan.Roots, path)
		if err != nil {
			return err
		}
		policy.Rules = append(policy.Rules, sandbox.Rule{Path: real, Access: roots.ReadOnly})
	}
	named := []string{"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if slices.ContainsFunc([]string{"npm_config_", "pnpm_config_", "bun_config_", "pip_", "uv_"}, func(prefix string) bool {
			return strings.HasPrefix(strings.ToLower(name), prefix)
		}) {
			named = append(named, name)
		}
	}
	env, _ := launch.Environment(os.Environ(), named)
	env = environment(slices.Clone(env), map[string]string{"TMPDIR": c.tmp}, needs.Command.Env)
	return transport.Run(ctx, transport.Command{
		Args: append([]string{needs.Command.Path}, needs.Command.Args...), Env: env, Dir: command.Dir, Confine: &policy,
	}, os.Stderr)
}
