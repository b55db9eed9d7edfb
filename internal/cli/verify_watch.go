package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/sandbox"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/verify"
	"github.com/rootbound/rootbound/roots"
)

// mostOpened is how many things are told of that a server did.
const mostOpened = 40

// opened starts a server that has nothing to judge once more, watched and held as before, lets it tell its tools, and
// returns what it did meanwhile besides what any program of its kind does.
func (t *tested) opened(ctx context.Context, s verify.Setup) ([]string, error) {
	if t.remote != nil {
		return nil, errors.New("it is reached over HTTP, and not started here")
	}
	var mu sync.Mutex
	seen := map[sandbox.Access]bool{}
	set, filled, err := t.filled(s.Roots)
	if err != nil {
		return nil, err
	}
	command, rules, err := t.watched(filled, set, s.Dir, func(a sandbox.Access) {
		mu.Lock()
		defer mu.Unlock()
		if len(seen) < maxSeen {
			seen[a] = true
		}
	})
	if err != nil {
		return nil, err
	}
	_, err = verify.Look(ctx, func(_ context.Context, era exchange.Era) (verify.Running, error) {
		process := transport.NewProcess(func() (transport.Command, error) { return command, nil },
			transport.ProcessOptions{Stderr: t.quiet, Protocol: transport.Protocol(era.String())})
		return verify.Running{Handler: process, Close: func() { process.Close() }}, nil
	}, s.Roots...)
	if err != nil {
		return nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	list := tell(seen, rules, t.confined != nil, filepath.Dir(s.Dir))
	if t.confined != nil && !t.confined.plan.Net.Value.Any() {
		list = append(list, "connects to nothing: the network is closed to it, and --net all shows where it would")
	}
	return list, nil
}

// watched is the command of a server that is watched, and what it needs to run.
func (t *tested) watched(filled launch.Command, set roots.Set, dir string, see func(sandbox.Access)) (transport.Command, []sandbox.Rule, error) {
	command, err := t.startCommand(filled, set, dir)
	if err != nil {
		return command, nil, err
	}
	watch := sandbox.Watch{Seen: see}
	var rules []sandbox.Rule
	if policy, ok := command.Confine.(sandbox.Policy); ok {
		watch.Held, rules = &policy, policy.Rules
	} else if needs, err := filled.Needs(launch.Look{Dir: dir, Getenv: os.Getenv, Net: true}); err == nil {
		rules = rulesOf(set, needs.Files)
	}
	if _, err := watch.Able(); err != nil {
		return command, nil, err
	}
	command.Confine = watch
	return command, rules, nil
}

// tell says for people what was seen, but for what is in the rules and not in the workspace.
func tell(seen map[sandbox.Access]bool, rules []sandbox.Rule, held bool, workspace string) []string {
	self, _ := os.Executable()
	list := []string{}
	add := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	for a := range seen {
		path, within := strings.CutPrefix(a.Path, workspace)
		refused := ""
		switch {
		case a.Program == self: // before it became the server
			continue
		case a.Use == sandbox.Connects:
			if a.Address.Port() != 0 {
				add("%s to %s", a.Use, a.Address)
			}
			continue
		case a.Use == sandbox.Listens:
			add("listens")
			continue
		case within:
			add("%s WORKSPACE%s", a.Use, path)
			continue
		case a.Path == "/proc/self", allowed(rules, a):
			continue
		case held:
			refused = " (refused)"
		}
		add("%s %s%s", a.Use, a.Path, refused)
	}
	slices.Sort(list)
	if n := len(list); n > mostOpened {
		list = append(list[:mostOpened], fmt.Sprintf("and %d more", n-mostOpened))
	}
	return list
}
