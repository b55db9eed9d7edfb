package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/clientconf"
	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/logindex"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/internal/ui"
	"github.com/rootbound/rootbound/internal/verify"
	"github.com/rootbound/rootbound/roots"
)

// lookBack gives the page the log, and what it can try.
func (a *app) lookBack(o *ui.Options) error {
	dir, err := a.dirOf("")
	if err != nil {
		return err
	}
	usual, err := a.logDir()
	if err != nil {
		return err
	}
	o.LogDir, o.LogIndex = dir, logindex.Path(filepath.Dir(usual), dir)
	o.Configured, o.Verify = a.verifiable, a.tryOut
	return nil
}

// verifiable are the servers that the page can try: those of our own configuration, and those of clients.
func (a *app) verifiable() []ui.Configured {
	var list []ui.Configured
	// The roots will be those of a workspace, whatever is configured: so it is not asked whether that can be a root.
	dir, err := os.MkdirTemp("", "rootbound-ui-")
	if err != nil {
		return nil
	}
	defer os.RemoveAll(dir)
	one := []config.DirFlag{{Name: "one", Dir: dir, Access: roots.ReadWrite, Flag: "--root"}}
	add := func(name, from, file string) {
		c := ui.Configured{ID: file + "\x00" + name, Name: name, From: from, File: file}
		plan, err := a.tryPlan(config.Flags{Config: file, Server: name, Roots: one})
		switch {
		case err != nil:
			c.Why = err.Error()
		case plan.URL.Value != "":
			if u, err := config.ParseURL(plan.URL.Value); err == nil {
				c.Command = []string{config.PlainURL(u)}
			} else {
				c.Why = err.Error()
			}
		default:
			c.Command = append([]string{plan.Command.Path}, calllog.RedactArgs(plan.Command.Args)...)
			if err := plan.Runnable(); err != nil {
				c.Why = err.Error()
			}
		}
		list = append(list, c)
	}
	plan, err := config.Resolve(a.system(), config.Flags{ForAll: true, Roots: one})
	if err != nil { // and not an empty list, as if nothing was configured
		list = append(list, ui.Configured{ID: "\x00", Name: "rootbound.toml", Why: err.Error()})
	} else {
		for _, name := range plan.Servers {
			add(name, "", "")
		}
	}
	host, err := a.clientHost("")
	if err != nil {
		return list
	}
	seen := map[string]bool{}
	for _, f := range clientconf.Find(host) {
		path := realPath(f.Path)
		if f.Place.Role != clientconf.Servers || seen[path] {
			continue
		}
		seen[path] = true
		for _, s := range f.Servers {
			if !s.Unread && !slices.ContainsFunc(list, func(c ui.Configured) bool { return c.ID == f.Path+"\x00"+s.Name }) {
				add(s.Name, f.Client.Name, f.Path)
			}
		}
	}
	return list
}

// tryOut runs `rootbound verify` for the page, as a process of its own: what it starts descends from it and ends with it.
func (a *app) tryOut(ctx context.Context, t ui.Trial) (*ui.Tried, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	file, name, _ := strings.Cut(t.ID, "\x00")
	dir, err := os.MkdirTemp("", "rootbound-ui-")
	if err != nil {
		return nil, fmt.Errorf("making the directory of the report: %w", err)
	}
	defer os.RemoveAll(dir) // with the workspace, when it was stopped
	args := []string{program, "verify", "--progress", "--fail-on", "nothing", "--json", filepath.Join(dir, "report.json"), "--html", filepath.Join(dir, "report.html")}
	if file != "" {
		args = append(args, "--client-config", file)
	}
	args = append(args, "--server", name)
	if t.Quick {
		args = append(args, "--only", "Q")
	}
	said, out, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	ended := make(chan error, 1)
	go func() {
		defer out.Close()
		ended <- transport.Run(ctx, transport.Command{Args: args, Env: environment(inherited(), map[string]string{"TMPDIR": dir, "TMP": dir, "TEMP": dir})}, out)
	}()
	last := heard(said, t.Progress)
	said.Close()
	if err := <-ended; err != nil {
		if last != "" && context.Cause(ctx) == nil {
			err = errors.New(last)
		}
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		return nil, fmt.Errorf("reading the report: %w", err)
	}
	var r verify.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("reading the report: %w", err)
	}
	tried := &ui.Tried{Score: r.Score, Held: r.Count(verify.Held), Leaked: r.Count(verify.Leaked), Failed: r.Count(verify.Failed)}
	tried.Other = len(r.Questions) + len(r.Cases) - tried.Held - tried.Leaked - tried.Failed
	if tried.Page, err = os.ReadFile(filepath.Join(dir, "report.html")); err != nil {
		return nil, fmt.Errorf("reading the report: %w", err)
	}
	return tried, nil
}

// heard tells of what a check says it is trying, and returns what else it has said, its last few lines.
func heard(from *os.File, progress func(done, all int, what string)) string {
	const most = 8
	var rest []string
	in := bufio.NewScanner(from)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var now trying
		if strings.HasPrefix(in.Text(), `{"done":`) && json.Unmarshal(in.Bytes(), &now) == nil {
			progress(now.Done, now.All, now.What)
			continue
		}
		if line := strings.TrimPrefix(in.Text(), "rootbound: error: "); strings.TrimSpace(line) != "" {
			rest = append(rest[max(0, len(rest)-most+1):], line)
		}
	}
	return strings.Join(rest, "\n")
}
