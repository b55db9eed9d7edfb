package peers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Servers that speak one era only.
var (
	tsModernOnly = peer{"ts-modern-only", []string{"node", abs("node/server.mjs"), "modern"}, true}
	goModernOnly = peer{"go-modern-only", self("goserver", "modern"), false}
	goLegacyOnly = peer{"go-legacy-only", self("goserver", "legacy"), false}
)

// TestAcrossEras drives clients through the guard on servers that do not speak their era. They must have the results that they
// have without a guard on a server that does: the client's own fallback, or the same server with both eras.
func TestAcrossEras(t *testing.T) {
	type pair struct {
		client, server peer
		// without is the server to compare with; the client speaks its own era with it, or falls back.
		without peer
		plan    func(dir string) (plan, []string)
	}
	var pairs []pair
	for _, c := range []peer{tsLegacy, goLegacy} {
		pairs = append(pairs, pair{c, tsModernOnly, tsServer, toolsPlan}, pair{c, goModernOnly, goServerPeer, oneRoundPlan})
	}
	for _, c := range []peer{tsAuto, tsPinned, goModern} {
		pairs = append(pairs, pair{c, goLegacyOnly, goServerPeer, oneRoundPlan})
	}
	for _, c := range []peer{tsAuto, goModern} {
		pairs = append(pairs, pair{c, tsFilesystem, tsFilesystem, filesystemPlan}, pair{c, tsEverything, tsEverything, questionsPlan})
	}
	for _, p := range pairs {
		t.Run(p.client.name+"/"+p.server.name, func(t *testing.T) {
			t.Parallel()
			if p.client.node || p.server.node || p.without.node {
				needNode(t)
			}
			dir := workspace(t)
			plan, args := p.plan(dir)
			direct := drive(t, p.client, append(slices.Clone(p.without.command), args...), plan)
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			fill(t, dir)
			inner := t.TempDir()
			server := append(slices.Clone(p.server.command), args...)
			guarded := drive(t, p.client, guardedBy([]string{"--root", dir}, tapped(inner, server)), plan)
			for i := range direct {
				if without, with := comparable(t, direct[i]), comparable(t, guarded[i]); without != with {
					t.Errorf("step %d (%s %s)\nguarded %.2000s\ndirect  %.2000s", i, plan.Steps[i].Do, plan.Steps[i].Tool, with, without)
				}
			}
			seen := readRecording(t, inner)
			for _, start := range seen[len(seen)-1:] { // earlier ones may be probes
				modern := strings.Contains(string(start.in), `"io.modelcontextprotocol/protocolVersion":"2026-07-28","`)
				if want := p.client.name == tsLegacy.name || p.client.name == goLegacy.name; modern != want {
					t.Errorf("the server was spoken to in the stateless era: %v, want %v", modern, want)
				}
			}
		})
	}
}

// comparable is a printed step without what only one of the eras says in a result, and without the words of errors.
func comparable(t *testing.T, line string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(strip(v))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func strip(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range []string{"resultType", "ttlMs", "cacheScope", "_meta", "execution"} {
			delete(v, name)
		}
		for k := range v {
			v[k] = strip(v[k])
		}
		if p, _ := v["params"].(map[string]any); len(p) == 0 {
			delete(v, "params") // none, or empty ones
		}
	case []any:
		for i := range v {
			v[i] = strip(v[i])
		}
	}
	return v
}

// oneRoundPlan is toolsPlan for servers of the Go SDK, which have one round of questions in the handshake's era.
func oneRoundPlan(dir string) (plan, []string) {
	p, args := toolsPlan(dir)
	p.Steps = slices.DeleteFunc(p.Steps, func(s step) bool { return s.Tool == "two_rounds" })
	return p, args
}

// questionsPlan is everythingPlan without what a client is told outside of its requests, and without the list of tools, which
// depends on what the client of a handshake declares.
func questionsPlan(dir string) (plan, []string) {
	p, args := everythingPlan(dir)
	p.Steps = slices.DeleteFunc(p.Steps, func(s step) bool {
		return s.Do == "await" || s.Do == "list" || s.Do == "level" || s.Do == "subscribe" || s.Tool == "trigger-url-elicitation"
	})
	return p, args
}

// TestRootsAcrossEras has the guard say and hold the roots through the bridge: to stateless servers that ask for them in
// mid-call, and to the reference server, which asks when it is told that they changed.
func TestRootsAcrossEras(t *testing.T) {
	rootsAreAsked(t, []peer{tsLegacy, goLegacy}, []peer{tsModernOnly, goModernOnly})
	for _, client := range []peer{tsAuto, goModern} {
		t.Run(client.name+"/"+tsFilesystem.name, func(t *testing.T) {
			t.Parallel()
			needNode(t)
			p := newProject(t)
			now, other := p.one, p.two
			var steps []expectation
			for range 5 {
				steps = append(steps,
					expectation{readFile(filepath.Join(now, "a.txt")), works, "in " + filepath.Base(now)},
					expectation{readFile(filepath.Join(other, "a.txt")), refused, ""},
					expectation{readFile(p.outside), refused, ""},
					expectation{call("list_allowed_directories", nil), works, now},
					expectation{step{Do: "roots", Roots: []string{other}}, anyResult, ""},
				)
				now, other = other, now
			}
			expect(t, client, tsFilesystem.command, []string{"--root", p.dir}, []string{p.one}, steps)
		})
	}
}

// TestWhatAServerSpeaksIsRemembered starts a guard again and again: the next one tries first what was found, and a file that is
// damaged costs one refusal.
func TestWhatAServerSpeaksIsRemembered(t *testing.T) {
	dir, state, inner, log := workspace(t), t.TempDir(), t.TempDir(), t.TempDir()
	p := plan{Steps: []step{call("echo", args{"text": "hi"})}}
	run := func(wantFirst string) {
		t.Helper()
		guarded := guardedBy([]string{"--root", dir, "--log", log}, tapped(inner, goModernOnly.command))
		out := drive(t, goLegacy, append([]string{"env", "XDG_STATE_HOME=" + state}, guarded...), p)
		if !strings.Contains(out[0], `"text":"hi"`) {
			t.Errorf("the call gave %s", out[0])
		}
		seen := readRecording(t, inner)
		if got := parse(t, seen[len(seen)-1].in)[0].Method; got != wantFirst {
			t.Errorf("the server was first sent %q, want %q", got, wantFirst)
		}
	}
	file := filepath.Join(state, "rootbound", "eras.json")
	run("initialize")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("%s has mode %v", file, got)
	}
	run("server/discover")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	run("initialize")
	run("server/discover")
	logs, err := filepath.Glob(filepath.Join(log, "*.jsonl"))
	if err != nil || len(logs) != 4 {
		t.Fatalf("there are the logs %q, %v", logs, err)
	}
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "the server revision 2026-07-28: a bridge is between them") {
			t.Errorf("the log %s does not say that there is a bridge", name)
		}
	}
}
