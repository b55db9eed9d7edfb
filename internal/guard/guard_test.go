package guard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/consent"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/mcptest"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/pin"
	"github.com/rootbound/rootbound/internal/results"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	os.Exit(m.Run())
}

// world is two repositories A and B, and OUT beside them, which nobody configured.
type world struct {
	names    map[string]string
	logDir   string
	consents consent.File

	broken, restart bool // the log; whether the server can be started again
}

// server is who is guarded, as the consents know it.
var server = consent.Server{Name: "files", Runs: "files"}

func newWorld(t *testing.T) *world {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{names: map[string]string{}, logDir: filepath.Join(dir, "log"), consents: consent.File(filepath.Join(dir, "consents.jsonl"))}
	for _, n := range []string{"A", "B", "OUT"} {
		p := filepath.Join(dir, strings.ToLower(n))
		if err := os.MkdirAll(filepath.Join(p, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p, "f.txt"), []byte(n), 0o644); err != nil {
			t.Fatal(err)
		}
		w.names[n] = p
	}
	if err := os.Symlink(w.names["OUT"], filepath.Join(w.names["A"], "link")); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) set(t *testing.T, specs ...string) roots.Set {
	var list []roots.Dir
	for _, spec := range specs {
		name, rest, _ := strings.Cut(spec, ":")
		o := roots.ResolveOptions{Name: strings.ToLower(name), Access: roots.ReadWrite, Origin: "--root", Pinned: rest == "pin"}
		if rest == "ro" {
			o.Access = roots.ReadOnly
		}
		d, err := roots.Resolve(w.names[name], o)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, d)
	}
	return roots.NewSet(list...)
}

// options are what the first lines of a transcript say: "#! roots A B:ro", "#! mode accept", "#! quiet", "#! strict",
// "#! pins", "#! paused" with somebody who refuses what waits, "#! results CHECK ACTION", "#! consent A", "#! own A/FILE", "#! elsewhere", "#! default TOOL ARG VALUE"; "#! restart" for a server that can be started
// again, "#! remote" and "#! remote share" for one on another machine, "#! remote-root DIR"; with "narrowed" one that is when roots are taken away, too; "#! log broken" for a log that takes nothing.
func (w *world) options(t *testing.T, tr mcptest.Transcript) guard.Options {
	o := guard.Options{Server: server.Name, Consent: w.consents.Watch(server), Process: pathargs.Process{Dir: w.names["A"], Home: w.names["OUT"]}}
	for _, words := range tr.Options() {
		switch words[0] {
		case "roots":
			o.Configured = w.set(t, words[1:]...)
		case "mode":
			o.ClientRoots = map[string]roots.Mode{"narrow": roots.Narrow, "ignore": roots.Ignore, "accept": roots.Accept}[words[1]]
		case "consent":
			for _, name := range words[1:] {
				if err := w.consents.Allow(server, w.names[name]); err != nil {
					t.Fatal(err)
				}
			}
		case "own":
			for _, path := range words[1:] {
				name, rest, _ := strings.Cut(path, "/")
				o.Own = append(o.Own, filepath.Join(w.names[name], rest))
			}
		case "pins":
			dir := filepath.Dir(string(w.consents))
			o.Pins = pin.NewPins(pin.Store{
				Pins: filepath.Join(dir, "pins.json"), Waiting: filepath.Join(dir, "waiting.json"), Lock: filepath.Join(dir, "lock"),
			}, pin.Owner{Server: server.Name, Runs: server.Runs})
		case "results":
			if o.Results == nil {
				o.Results = &results.Options{Actions: results.Nothing()}
			}
			for _, c := range results.Checks() {
				for _, a := range []results.Action{results.Block, results.Redact, results.Warn, results.Off} {
					if words[1] == c.String() && words[2] == a.String() {
						o.Results.Actions[c] = a
					}
				}
			}
		case "paused":
			o.Approval = guard.Approval{Desk: refusing(t)}
		case "quiet":
			o.Quiet = true
		case "strict":
			o.Strict = true
		case "log":
			w.broken = words[1] == "broken"
		case "restart":
			w.restart = true
			o.RestartNarrowed = len(words) > 1 && words[1] == "narrowed"
		case "remote":
			o.Remote, o.Share = true, len(words) > 1
		case "remote-root":
			o.Paths.Where, o.Paths.Dirs = pathargs.Remote, words[1:]
		case "elsewhere":
			o.Paths.Where = pathargs.Elsewhere
		case "default":
			o.Defaults = map[string]map[string]string{words[1]: {words[2]: words[3]}}
		default:
			t.Fatalf("unknown option %q", words)
		}
	}
	return o
}

// refusing is a desk of a paused guard, at which somebody refuses every call.
func refusing(t *testing.T) *approval.Desk {
	desk := approval.NewDesk(approval.DeskOptions{})
	desk.Pause(true)
	go func() {
		for {
			s, changed := desk.State()
			for _, q := range s.Questions {
				desk.Answer(q.ID, approval.Reply{Note: "not now"}, approval.ByTerminal, "somebody")
			}
			select {
			case <-changed:
			case <-t.Context().Done():
				return
			}
		}
	}()
	return desk
}

// TestTranscripts plays a client and a server around the guard's stages and a real child, and then holds the log to its
// chain, and to the lines "#log KIND TEXT…" at the end of the transcript, each of which must be in one record.
func TestTranscripts(t *testing.T) {
	mcptest.Transcripts(t, "testdata/*.txtar", func(t *testing.T, tr mcptest.Transcript) {
		w := newWorld(t)
		w.write(t, tr)
		o := w.options(t, tr)
		var wg sync.WaitGroup
		tr.Play(t, w.names, func(t *testing.T, args, env []string) (io.WriteCloser, io.Reader) {
			return w.start(t, &wg, o, args, env)
		})
		wg.Wait()
		w.checkLog(t, tr.Text)
	})
}

// write makes the files of the archive's tree: A/FILE, B/FILE, OUT/FILE.
func (w *world) write(t *testing.T, tr mcptest.Transcript) {
	for _, f := range tr.Tree {
		name, rest, _ := strings.Cut(f.Name, "/")
		path := filepath.Join(w.names[name], filepath.FromSlash(rest))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) start(t *testing.T, wg *sync.WaitGroup, o guard.Options, args, env []string) (io.WriteCloser, io.Reader) {
	log, err := calllog.Create(w.logDir, calllog.Record{Server: o.Server}, calllog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o.Log = log
	if w.broken {
		log.Close(0, "") // what cannot be appended any more
	}
	o.Warn = func(text string) { t.Logf("warning: %s", text) }
	var g *guard.Guard
	p := transport.NewProcess(func() (transport.Command, error) {
		g.Starting()
		return transport.Command{Args: args, Env: env}, nil
	}, transport.ProcessOptions{
		Again:  func(m *wire.Message) bool { return g.Again(m) },
		Report: func(f string, a ...any) { t.Logf("report: "+f, a...) },
	})
	if w.restart {
		o.Restart = p.Restart
	}
	g = guard.New(o)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	wg.Go(func() {
		if err := transport.ServeStdio(t.Context(), inR, outW, g.Wrap(p), transport.StdioOptions{}); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("serving: %v", err)
		}
		p.Close()
		log.Close(0, "")
		outW.Close()
	})
	t.Cleanup(func() { inW.Close(); wg.Wait() })
	return inW, outR
}

func (w *world) checkLog(t *testing.T, text string) {
	t.Helper()
	reports, err := calllog.VerifyDir(w.logDir)
	if err != nil || len(reports) != 1 || reports[0].Damage != nil {
		t.Fatalf("the log does not hold: %v %+v", err, reports)
	}
	var lines []string
	for e, err := range calllog.ReadDir(w.logDir, calllog.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(e.Line))
	}
	for want := range strings.SplitSeq(text, "\n") {
		rest, ok := strings.CutPrefix(want, "#log ")
		if !ok {
			continue
		}
		kind, rest, _ := strings.Cut(rest, " ")
		for name, v := range w.names {
			rest = strings.ReplaceAll(rest, "${"+name+"}", v)
		}
		found := false
		for _, l := range lines {
			found = found || strings.Contains(l, fmt.Sprintf(`"kind":%q`, kind)) && strings.Contains(l, rest)
		}
		if !found {
			t.Errorf("no %s record has %s; the log is\n%s", kind, rest, strings.Join(lines, "\n"))
		}
	}
}
