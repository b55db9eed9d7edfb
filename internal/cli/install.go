package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/sandbox"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/roots"
)

// packages is where servers are installed that a package runner would fetch each time.
func packages() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache directory: %w", err)
	}
	return filepath.Join(dir, "rootbound", "npm"), nil
}

// installed returns the command of the server that is installed for it. It is installed the first time, and again when
// that is asked for: with the network, and without a file to write but in its own directory. From then on the server is
// the one that was installed, and is run without any of that.
func (c *confinement) installed(ctx context.Context, i launch.Install) (launch.Command, error) {
	top, err := packages()
	if err != nil {
		return launch.Command{}, err
	}
	dir := filepath.Join(top, strings.ReplaceAll(i.Spec, "/", "+"))
	in, err := i.In(dir)
	switch {
	case err == nil && !c.again:
		c.run.note("%s is %s (%s), installed in %q", i.Spec, in.Version, in.Integrity, dir)
		c.version = in.Version
		return in.Command, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !c.again:
		return launch.Command{}, withHint(err, "install it anew with --refresh")
	}
	before := in.Version
	if err := os.MkdirAll(top, 0o700); err != nil {
		return launch.Command{}, fmt.Errorf("making the directory of packages: %w", err)
	}
	fresh, err := os.MkdirTemp(top, ".new-")
	if err != nil {
		return launch.Command{}, fmt.Errorf("making a directory for %s: %w", i.Spec, err)
	}
	defer os.RemoveAll(fresh)
	c.run.warn(fmt.Sprintf("installing %s, once", i.Spec))
	if err := c.install(ctx, i.Command(fresh)); err != nil {
		return launch.Command{}, fmt.Errorf("installing %s: %w", i.Spec, err)
	}
	if in, err = i.In(fresh); err != nil {
		return launch.Command{}, err
	}
	os.RemoveAll(filepath.Join(fresh, "cache")) // what npm keeps for the next time; there is none
	if err := os.RemoveAll(dir); err != nil {
		return launch.Command{}, fmt.Errorf("removing the old %s: %w", i.Spec, err)
	}
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, fs.ErrExist) { // another guard may have been first
		return launch.Command{}, fmt.Errorf("installing %s: %w", i.Spec, err)
	}
	if in, err = i.In(dir); err != nil {
		return launch.Command{}, err
	}
	c.version = in.Version
	text := fmt.Sprintf("%s is %s (%s) from now on; --refresh looks for another one", i.Spec, in.Version, in.Integrity)
	if before != "" && before != in.Version {
		text += "; it was " + before
	}
	c.run.report("%s", text)
	return in.Command, nil
}

// install runs a package manager: confined as a server is, to its own directory and with the network.
func (c *confinement) install(ctx context.Context, command launch.Command) error {
	needs, err := command.Needs(launch.Look{Dir: command.Dir, Getenv: os.Getenv, Net: true, Install: true})
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
	for _, path := range []string{filepath.Join(home, ".npmrc"), "/etc/npmrc", os.Getenv("NODE_EXTRA_CA_CERTS")} { // the registry, and who may use it
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
	named := []string{"NODE_EXTRA_CA_CERTS", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(strings.ToLower(name), "npm_config_") {
			named = append(named, name)
		}
	}
	env, _ := launch.Environment(os.Environ(), named)
	env = environment(slices.Clone(env), map[string]string{"TMPDIR": c.tmp}, needs.Command.Env)
	return transport.Run(ctx, transport.Command{
		Args: append([]string{needs.Command.Path}, needs.Command.Args...), Env: env, Dir: command.Dir, Confine: &policy,
	}, os.Stderr)
}
