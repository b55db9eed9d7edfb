// Package demo shows the main job on a real exchange: a guard around a server, driven as a client would, with the
// messages as they are.
//
// # Limits
//
// It shows; it does not prove. What it asks are the things that people check by hand, of one server that obeys and one that
// does not. What that one tries by itself are the plain ways out, each of which it has to come through when nothing holds
// it; the tests of the sandbox try many more.
package demo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/sandbox"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// Options of a demonstration.
type Options struct {
	// Program is this program's own executable: the guard and the servers are started from it.
	Program string
	// Out gets the text.
	Out io.Writer
	// Keep leaves the workspace and says where it is.
	Keep bool
}

// NaughtyFlag is the option of `demo` by which the executable becomes the server that ignores roots; its value is the
// directory outside that the server is after.
const NaughtyFlag = "--naughty-server"

// workspace is two repositories, and a file outside that must never be seen.
type workspace struct {
	dir, frontend, backend, outside, log string
	canary                               string
}

func newWorkspace() (*workspace, error) {
	dir, err := os.MkdirTemp("", "rootbound-demo-")
	if err != nil {
		return nil, fmt.Errorf("making the workspace: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, fmt.Errorf("making the workspace: %w", err)
	}
	random := make([]byte, 8)
	rand.Read(random)
	w := &workspace{
		dir: dir, frontend: filepath.Join(dir, "frontend"), backend: filepath.Join(dir, "backend"),
		outside: filepath.Join(dir, "outside", "secret.txt"), log: filepath.Join(dir, "log"),
		canary: "canary-" + hex.EncodeToString(random),
	}
	for path, text := range map[string]string{
		filepath.Join(w.frontend, "README.md"): "# Frontend\n",
		filepath.Join(w.backend, "README.md"):  "# Backend\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, fmt.Errorf("making the workspace: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("making the workspace: %w", err)
		}
	}
	return w, w.plant()
}

// plant puts what is outside there, as it was.
func (w *workspace) plant() error {
	dir := filepath.Dir(w.outside)
	err := os.RemoveAll(dir)
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	for _, name := range []string{filepath.Base(w.outside), lootName, victimName} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(w.canary+"\n"), 0o644)
		}
	}
	if err != nil {
		return fmt.Errorf("making the workspace: %w", err)
	}
	return nil
}

// mark is one cell of the table.
type mark uint8

const (
	untried mark = iota // the server gives no occasion to try
	held
	failed
)

func (m mark) String() string { return [...]string{"–", "✔", "✘"}[m] }

func verdict(ok bool) mark {
	if ok {
		return held
	}
	return failed
}

// The rows of the table.
var rows = []string{
	"roots are declared to the server",
	"roots/list is asked and answered",
	"a read outside is refused",
	"a switch of the workspace is announced and obeyed",
	"all repositories are listed",
	"what the server does by itself stays inside",
}

// column is one run of the steps.
type column struct {
	title   string
	era     exchange.Era
	naughty bool
	confine bool
	marks   [6]mark
}

// Run makes a workspace, runs the steps in each era and against the naughty server, and prints the table. It reports
// whether everything held.
func Run(ctx context.Context, o Options) (bool, error) {
	w, err := newWorkspace()
	if err != nil {
		return false, err
	}
	if o.Keep {
		fmt.Fprintf(o.Out, "The workspace stays in %s\n\n", w.dir)
	} else {
		defer os.RemoveAll(w.dir)
	}
	fmt.Fprintf(o.Out, "Two repositories, frontend and backend, in %s; outside of them a file that nobody may see.\n"+
		"→ is what a client sends, ← what it gets. Where it says \"rootbound run\", both go through the guard; directories are written shorter there.\n", w.dir)
	columns := []*column{
		{title: "handshake era"},
		{title: "stateless era", era: exchange.Modern},
		{title: "naughty server", naughty: true},
	}
	level, err := sandbox.Policy{}.Able()
	if err == nil {
		columns = append(columns, &column{title: "and confined", naughty: true, confine: true})
	} else {
		fmt.Fprintf(o.Out, "What a server does by itself is not shown here: %v.\n", err)
	}
	for _, c := range columns {
		err := c.run(ctx, o, w, level)
		if err != nil && c.confine && ctx.Err() == nil { // what the others showed is worth its table
			fmt.Fprintf(o.Out, "\n   That did not work: %v\n", err)
			c.marks[5] = failed
		} else if err != nil {
			return false, fmt.Errorf("%s: %w", c.title, err)
		}
	}
	return printTable(o.Out, columns), nil
}

func printTable(out io.Writer, columns []*column) bool {
	ok := true
	line := func(row string, cell func(c *column) string) {
		text := fmt.Sprintf("%-52s", row)
		for _, c := range columns {
			text += fmt.Sprintf("%-16s", cell(c))
		}
		fmt.Fprintln(out, strings.TrimRight(text, " "))
	}
	fmt.Fprintln(out)
	line("", func(c *column) string { return c.title })
	for i, row := range rows {
		line(row, func(c *column) string {
			ok = ok && c.marks[i] != failed
			return c.marks[i].String()
		})
	}
	fmt.Fprint(out, "\n– the server gives no occasion: it never asks for roots, has no tool that lists them, or obeys anyhow.\n"+
		"What a server does by itself is not promised unless it is confined (rootbound run --confine).\n")
	return ok
}

// run does the steps of one column.
func (c *column) run(ctx context.Context, o Options, w *workspace, level sandbox.Level) error {
	p := &printer{out: o.Out}
	log := filepath.Join(w.log, strings.ReplaceAll(c.title, " ", "-"))
	server := []string{o.Program, "fs", "--log", "off", "{roots}"}
	if c.naughty {
		server = []string{o.Program, "demo", NaughtyFlag, filepath.Dir(w.outside)}
	}
	var free, confined outcomes
	confine := ""
	if c.naughty && !c.confine {
		p.title("A server that ignores roots, without the guard")
		alone, err := newClient(ctx, p, c.era, server, w.frontend)
		if err != nil {
			return err
		}
		leak, err := alone.read(w.outside)
		alone.close()
		if err != nil {
			return err
		}
		if !bytes.Contains(leak, []byte(w.canary)) {
			return fmt.Errorf("the naughty server is not naughty: it answered %s", leak)
		}
		p.say("It reads what it is asked for: the file outside came back. Now the same server behind the guard.")
	}
	command := []string{o.Program, "run", "--preset", "boundary", "--log", log, "--pins", "off", "--root", "frontend=" + w.frontend, "--root", "backend=" + w.backend}
	if c.confine {
		p.title("A server that goes out by itself, without the guard")
		alone, err := newClient(ctx, p, c.era, server, w.frontend)
		if err != nil {
			return err
		}
		free, err = alone.misbehave(w.frontend)
		alone.close()
		if err == nil {
			err = w.plant()
		}
		if err != nil {
			return err
		}
		p.say("No call said where to go, so no check could stop it. Now the same server confined.")
		confine = " --confine"
		command = append(command, "--confine")
	}
	command = append(append(command, "--"), server...)
	p.title("%s: rootbound run%s --root frontend --root backend -- rootbound %s", c.title, confine, strings.Join(server[1:], " "))
	client, err := newClient(ctx, p, c.era, command, w.frontend)
	if err != nil {
		return err
	}
	defer client.close()

	if c.naughty {
		p.say("A read inside: the guard asks this client for its roots first. The server asks nobody.")
	} else {
		p.say("A read inside: the guard asks this client for its roots first, and the server asks the guard.")
	}
	inside, err := client.read(filepath.Join(w.frontend, "README.md"))
	if err != nil {
		return err
	}
	p.say("A read outside, which the server must not even see.")
	outside, err := client.read(w.outside)
	if err != nil {
		return err
	}
	p.say("The user switches to the other repository.")
	if err := client.setRoots(w.backend); err != nil {
		return err
	}
	fresh, err := client.read(filepath.Join(w.backend, "README.md"))
	if err != nil {
		return err
	}
	old, err := client.read(filepath.Join(w.frontend, "README.md"))
	if err != nil {
		return err
	}
	p.say("The user opens both repositories.")
	if err := client.setRoots(w.frontend, w.backend); err != nil {
		return err
	}
	if c.era == exchange.Modern {
		p.say("A stateless client cannot tell of it: the guard asks again when a path is refused.")
		if _, err := client.read(filepath.Join(w.frontend, "README.md")); err != nil {
			return err
		}
	}
	var list []byte
	if !c.naughty {
		if list, err = client.call("list_allowed_directories", "{}"); err != nil {
			return err
		}
	}
	if c.confine {
		if confined, err = client.misbehave(w.frontend); err != nil {
			return err
		}
	}
	client.close()

	told, err := readLog(log, w)
	if err != nil {
		return err
	}
	c.marks = [6]mark{
		verdict(told.declared),
		verdict(told.asked),
		verdict(isContent(inside, "# Frontend") && isRefused(outside) && !bytes.Contains(outside, []byte(w.canary))),
		verdict(isContent(fresh, "# Backend") && isRefused(old) && (c.naughty || told.fetched)),
		verdict(bytes.Contains(list, []byte(w.frontend)) && bytes.Contains(list, []byte(w.backend))),
		untried,
	}
	if c.naughty {
		c.marks[1], c.marks[4] = untried, untried
	}
	if c.confine {
		through, err := compare(p, free, confined, level)
		if err != nil {
			return err
		}
		c.marks[5] = verdict(through == 0)
	}
	return nil
}

func isContent(result []byte, text string) bool {
	flag, _ := wire.Get(result, "isError")
	return bytes.Contains(result, []byte(text)) && string(flag) != "true"
}

func isRefused(result []byte) bool {
	flag, _ := wire.Get(result, "isError")
	return string(flag) == "true"
}

// told is what the log says of the server's side.
type told struct{ declared, asked, fetched bool }

func readLog(dir string, w *workspace) (told, error) {
	var t told
	events, err := calllog.RootsEvents(calllog.ReadDir(dir, calllog.Filter{}))
	if err != nil {
		return t, err
	}
	for _, e := range events {
		if e.Kind == calllog.RootsAsked && e.From == calllog.Server && e.Answer != nil && e.Answer.Outcome == calllog.OK {
			t.asked = true
			t.fetched = t.fetched || len(e.Answer.Record.Roots) == 1 && e.Answer.Record.Roots[0].URI == roots.FileURI(w.backend)
		}
	}
	for e, err := range calllog.ReadDir(dir, calllog.Filter{}) {
		if err != nil {
			return t, err
		}
		t.declared = t.declared || e.Kind == calllog.Call && e.Code == guard.CodeDeclared
	}
	return t, nil
}

// printer writes what happens.
type printer struct {
	mu  sync.Mutex
	out io.Writer
}

func (p *printer) title(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "\n── %s\n", fmt.Sprintf(format, args...))
}

func (p *printer) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "\n   %s\n", text)
}

// message prints a message as it is; only what is very long is cut, and says so.
func (p *printer) message(arrow string, m *wire.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := string(m.Bytes())
	if len(text) > 600 {
		text = fmt.Sprintf("%s… (%d bytes)", text[:600], len(text))
	}
	fmt.Fprintf(p.out, "%s %s\n", arrow, text)
}
