package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// held is the command line of the guard in front of a server that it confines to the root and to what it needs to run.
func (b *bench) held(server ...string) []string {
	return append([]string{b.guard, "run", "--preset", "boundary", "--confine", "--root", b.root, "--log", filepath.Join(b.dir, "log"), "--"}, server...)
}

// plain is the same without confinement.
func (b *bench) plain(server ...string) []string {
	return slices.DeleteFunc(b.held(server...), func(arg string) bool { return arg == "--confine" })
}

// firstBytes starts the commands in turn, and returns for each how many milliseconds its first bytes took.
func (b *bench) firstBytes(rounds int, commands ...[]string) ([][]float64, error) {
	took := make([][]float64, len(commands))
	for range rounds {
		for i, args := range commands {
			d, err := b.firstByte(args)
			if err != nil {
				return nil, fmt.Errorf("starting %q: %w", args, err)
			}
			took[i] = append(took[i], d.Seconds()*1e3)
		}
	}
	return took, nil
}

// minus is a less b, round by round.
func minus(a, b []float64) []float64 {
	values := make([]float64, len(a))
	for i := range a {
		values[i] = a[i] - b[i]
	}
	return values
}

// confine measures what confinement adds to a start, with a server that is a shell, and to a call.
func confine(b *bench) ([]result, error) {
	server := []string{"/bin/sh", "-c", lightServer}
	took, err := b.firstBytes(starts, b.plain(server...), b.held(server...))
	if err != nil {
		return nil, err
	}
	results := []result{
		summary("server behind the guard, to its first byte", "ms", took[0]),
		summary("the same confined", "ms", took[1]),
		summary("what confinement adds", "ms", minus(took[1], took[0])).within(10),
	}
	err = onOneCPU(func() error {
		const laneConfined = "guard, server confined"
		var lanes []*lane
		defer func() { endAll(lanes) }()
		for _, l := range []struct {
			name string
			args []string
		}{{laneGuard, b.plain(b.self, "echo")}, {laneConfined, b.held(b.self, "echo")}} {
			c, err := b.startChain(l.name, true, l.args...)
			if err != nil {
				return err
			}
			lanes = append(lanes, &lane{chain: c, call: newCall(1<<10, "")})
		}
		order := slices.Clone(lanes)
		if err := takeTurns(order, 15, 1000); err != nil {
			return err
		}
		for _, l := range lanes {
			results = append(results, summary("a call, "+l.name, "µs", scaled(l.p50, 1/time.Microsecond.Seconds())))
		}
		// The rounds of one chain differ by more than this from each other.
		results = append(results, ratio("a call, confined ÷ not", lanes[1].p50, lanes[0].p50).within(1.05))
		return nil
	})
	return results, err
}

// confineNPX measures a server that npx starts, when it is in npm's cache, and confined behind the guard, when that has
// installed it.
func confineNPX(b *bench) ([]result, error) {
	npx := []string{"npx", "-y", "@modelcontextprotocol/server-filesystem@2026.8.31", b.root}
	commands := [][]string{npx, b.held(npx...)}
	if _, err := b.firstBytes(1, commands...); err != nil { // cold
		return nil, err
	}
	took, err := b.firstBytes(11, commands...)
	if err != nil {
		return nil, err
	}
	return []result{
		summary("npx -y, to the answer to initialize", "ms", took[0]),
		summary("confined behind the guard", "ms", took[1]),
		ratio("confined behind the guard ÷ npx -y", took[1], took[0]).within(0.5),
	}, nil
}

// confinePeer compares what confinement costs at the start with another program that confines.
func confinePeer(b *bench) ([]result, error) {
	srt, err := exec.LookPath("srt")
	if err != nil {
		return nil, fmt.Errorf("finding srt (npm install -g @anthropic-ai/sandbox-runtime; it needs bubblewrap, socat and ripgrep): %w", err)
	}
	settings := filepath.Join(b.dir, "srt.json")
	text, err := json.Marshal(map[string]any{
		"network":    map[string]any{"allowedDomains": []string{}, "deniedDomains": []string{}},
		"filesystem": map[string]any{"denyRead": []string{}, "allowWrite": []string{b.root}, "denyWrite": []string{}},
	})
	if err == nil {
		err = os.WriteFile(settings, text, 0o600)
	}
	if err != nil {
		return nil, err
	}
	server := []string{"/bin/sh", "-c", lightServer}
	took, err := b.firstBytes(15, server, b.held(server...), []string{srt, "--settings", settings, "-c", lightServer})
	if err != nil {
		return nil, err
	}
	ours, theirs := minus(took[1], took[0]), minus(took[2], took[0])
	return []result{
		summary("server alone, to its first byte", "ms", took[0]),
		summary("what the guard adds, with confinement and all else", "ms", ours),
		summary("what srt adds", "ms", theirs),
		ratio("what the guard adds ÷ what srt adds", ours, theirs).within(1. / 3),
	}, nil
}
