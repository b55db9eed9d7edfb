package cli

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/roots"
)

// approvalDir is where guards say where they can be reached.
func (a *app) approvalDir() (string, error) {
	logs, err := a.logDir()
	if err != nil {
		return "", err
	}
	return approval.Dir(a.env, filepath.Dir(logs)), nil
}

// grantStore is where it is kept what was granted.
func (a *app) grantStore() (approval.Store, error) {
	logs, err := a.logDir()
	if err != nil {
		return approval.Store{}, err
	}
	state := filepath.Dir(logs)
	return approval.Store{Path: filepath.Join(state, "grants.json"), Lock: filepath.Join(state, "grants.lock")}, nil
}

// approver is how a person is asked about the calls of a run.
type approver struct {
	door  *approval.Door // nil when there is none
	open  bool           // answers can come by it
	store *approval.Store
	run   string
	dir   string
	leave func() // ends that a guard without a door follows whether it is paused; may be nil
}

// approver opens the way for answers. Where there is none, what says why, and what to do.
func (r *running) approver(plan *config.Plan) guard.Approval {
	desk := approval.NewDesk(approval.DeskOptions{Wait: plan.Approval.WaitFor()})
	b := make([]byte, 8)
	rand.Read(b)
	r.approve.run = hex.EncodeToString(b)
	o := guard.Approval{
		Desk: desk, Runs: r.runs, Run: r.approve.run, Pending: plan.Approval.PendingAfter(), AlwaysAsk: plan.Approval.ClaudeAlwaysAsk.Value,
	}
	if o.Runs == "" {
		o.Runs = r.name
	}
	if store, err := r.app.grantStore(); err == nil && os.MkdirAll(filepath.Dir(store.Path), 0o700) == nil {
		r.approve.store, o.Grants = &store, approval.NewGrants(store)
	}
	door := approval.DoorOptions{Server: r.name, Desk: desk, Board: r.board, Report: r.report}
	r.board.Read(r.now)
	dir, err := r.app.approvalDir()
	if err == nil {
		r.approve.dir, door.Dir = dir, dir
		if d, ok := holds(plan.Roots, dir); ok {
			door.Closed = fmt.Sprintf("the directory of its token, %s, lies in the root %s, where the server could read it: set XDG_RUNTIME_DIR to a directory outside of every root", dir, d.Path)
		}
		r.approve.door, err = approval.Listen(door)
	}
	if err != nil && dir != "" {
		err = fmt.Errorf("%w: set XDG_RUNTIME_DIR to a directory that can be written", err)
	}
	r.approve.open = err == nil && door.Closed == ""
	if err == nil && !r.approve.open {
		err = errors.New(door.Closed)
	}
	switch ci := r.app.env("CI"); {
	case err != nil:
		o.Nobody = "a way for answers from a terminal: " + err.Error()
		r.report("questions cannot be answered in a terminal: %v", err)
		if dir != "" && r.approve.door == nil { // any call can be held all the same
			r.approve.leave = approval.Follow(dir, r.name, desk, r.report)
		}
	case ci != "" && ci != "false" && ci != "0":
		o.Nobody = "unset CI, so that an answer from a terminal is waited for (`rootbound approve`)"
	default:
		o.Terminal = true
	}
	return o
}

// holds reports whether a root holds a directory, or may come to.
func holds(set roots.Set, dir string) (roots.Dir, bool) {
	for _, path := range []string{dir, config.RealPath(dir)} {
		if d, _, ok := set.Match(path); ok {
			return d, true
		}
	}
	return roots.Dir{}, false
}

// end takes no more answers, and forgets what was granted for the sessions that end now.
func (p *approver) end() error {
	var err error
	if p.door != nil {
		err = p.door.Close()
	}
	if p.leave != nil {
		p.leave()
	}
	if p.store != nil {
		if e := p.store.End(p.run); e != nil && err == nil {
			err = e
		}
	}
	return err
}
