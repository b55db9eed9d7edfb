// Command bench measures what the guard and the filesystem server cost, against peers that run beside them in the same run.
//
//	cd bench && go run . [--json] [case…]
//
// Cases are 1kb and 1mb (round trips through real processes), scan (one strict scan of a message), memory and start of the
// guard; bridge of calls between a client and a server of different eras; http, http-peer (against mcp-proxy,
// which .ci/peers installs) and http-sessions of clients over HTTP; confine, confine-npx (which needs npm's registry), confine-peer and
// confine-attempts (which need srt) of confined servers; npm-shim of the npm package (with what .ci/peers installs); doctor of a home with every client in it; log-index of a long log; ui (which needs chromium) of the local page; and of the filesystem server
// fs-start, fs-memory and fs-calls (against the reference server, which .ci/peers
// installs), fs-million (against fd), fs-content (against ripgrep) and fs-open. None named means all. It builds the guard from the module around it. A budget is a ratio to a peer where there is one: a time
// says more of the machine than of the program. Peers and guard take turns, a block of calls each, for several rounds; what
// is compared is the median of each block, and what is printed the median of the rounds with their middle half. Where that
// half is wide, something else ran, and the number says little.
//
// Exit codes: 0 done, 1 error, 2 wrong usage, 3 a budget is missed. "go run" turns every failure into 1 and prints the
// code.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	exitDone   = 0
	exitError  = 1
	exitUsage  = 2
	exitMissed = 3
)

// bench is what every case needs.
type bench struct {
	self  string // this program, for the peers
	guard string // the program that is measured
	repo  string // the module around this one
	dir   string // holds everything that is made; removed at the end
	home  string // for what is started: without any configuration
	root  string // the directory that the guard is given
}

// benchCase is one group of measurements. Its results keep their order.
type benchCase struct {
	name, title string
	run         func(b *bench) ([]result, error)
}

var cases = []benchCase{
	{"1kb", "round trip of a call of 1 KB, all processes on one CPU", oneKB},
	{"1mb", "round trip of a call of 1 MB", oneMB},
	{"scan", "strict scan of one message (go test -bench Scan ./internal/wire)", scan},
	{"memory", "memory of the guard", memory},
	{"start", "start of the guard", start},
	{"confine", "what confinement adds to a start, and to a call of 1 KB on one CPU", confine},
	{"confine-npx", "start of a server by npx, warm: plain, and confined behind the guard", confineNPX},
	{"confine-peer", "start of a confined server, against srt (npm install -g @anthropic-ai/sandbox-runtime)", confinePeer},
	{"confine-attempts", "what a hostile program tries, and how much of it is stopped (with srt)", confineAttempts},
	{"npm-shim", "start by the npm package, against Node alone", npmShim},
	{"http", "calls of 1 KB over HTTP, on loopback", overHTTP},
	{"bridge", "calls of 1 KB between eras, all processes on one CPU", bridgeCase},
	{"http-peer", "calls of 1 KB over HTTP to a server on stdio, against mcp-proxy", httpPeer},
	{"http-sessions", "memory of sessions over HTTP", httpSessions},
	{"doctor", "configurations of every client at once", doctorHome},
	{"ui", "the local page, beside 20 guards and a long log", ui},
	{"log-index", "search in a log of a million records", logIndex},
	{"fs-start", "start of a filesystem server, and what the official client sees", fsStart},
	{"fs-memory", "memory of a filesystem server", fsMemory},
	{"fs-calls", "calls of a filesystem server", fsCalls},
	{"fs-million", "search over a million entries, against fd", fsMillion},
	{"fs-content", "search in 120 MB of text, against ripgrep", fsContent},
	{"fs-open", "confined open (go test -bench Open ./rootfs)", fsOpen},
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errw io.Writer) int {
	if len(args) > 0 {
		if peer, ok := peers[args[0]]; ok {
			return exitCode(errw, peer(args[1:]))
		}
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(errw)
	asJSON := flags.Bool("json", false, "print one JSON object instead of tables")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitDone
		}
		return exitUsage
	}
	chosen, err := choose(flags.Args())
	if err != nil {
		fmt.Fprintf(errw, "bench: error: %v\n", err)
		return exitUsage
	}
	dir, err := os.MkdirTemp("", "rootbound-bench")
	if err != nil {
		return exitCode(errw, err)
	}
	defer os.RemoveAll(dir)
	b, err := newBench(dir, errw)
	if err != nil {
		return exitCode(errw, err)
	}
	r := report{Machine: machine(), Commit: commit(b.repo), Load: load()}
	if !*asJSON {
		r.head(out)
	}
	for _, c := range chosen {
		results, err := c.run(b)
		if err != nil {
			return exitCode(errw, fmt.Errorf("measuring %s: %w", c.name, err))
		}
		r.Cases = append(r.Cases, measured{c.name, c.title, results})
		if !*asJSON {
			r.Cases[len(r.Cases)-1].table(out)
		}
	}
	if *asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(r); err != nil {
			return exitCode(errw, err)
		}
	} else {
		r.foot(out)
	}
	if r.missed() > 0 {
		return exitMissed
	}
	return exitDone
}

func exitCode(errw io.Writer, err error) int {
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(errw, "bench: error: %v\n", err)
	return exitError
}

// choose returns the named cases in their own order, all when none is named.
func choose(names []string) ([]benchCase, error) {
	if len(names) == 0 {
		return cases, nil
	}
	var all []string
	for _, c := range cases {
		all = append(all, c.name)
	}
	for _, n := range names {
		if !slices.Contains(all, n) {
			return nil, fmt.Errorf("no case %q; there are %s", n, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(cases), func(c benchCase) bool { return !slices.Contains(names, c.name) }), nil
}

// newBench builds the guard. Everything it makes is in dir.
func newBench(dir string, errw io.Writer) (*bench, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/rootbound/rootbound")
	list.Stderr = errw
	repo, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("finding the guard's module (run this in its folder bench): %w", err)
	}
	b := &bench{
		self: self, guard: filepath.Join(dir, "rootbound"), repo: strings.TrimSpace(string(repo)),
		dir: dir, home: filepath.Join(dir, "home"), root: filepath.Join(dir, "workspace"),
	}
	for _, d := range []string{b.home, b.root} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, err
		}
	}
	build := exec.Command("go", "build", "-C", b.repo, "-o", b.guard, "./cmd/rootbound")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as README.md says: one file that needs no other
	build.Stdout, build.Stderr = errw, errw
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("building the guard: %w", err)
	}
	return b, nil
}
