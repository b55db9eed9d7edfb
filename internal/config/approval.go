package config

import (
	"time"

	"github.com/rootbound/rootbound/internal/splice"
)

// Approval says how a person is asked.
type Approval struct {
	// Wait is how many seconds a question waits. Pending is after how many a client that waits is told to come again; 0 is
	// never.
	Wait, Pending Setting[int]
	// ClaudeAlwaysAsk marks the tools that are asked for, for Claude Code.
	ClaudeAlwaysAsk Setting[bool]
}

// before returns what a says, and where it says nothing what other says.
func (a Approval) before(other Approval) Approval {
	return Approval{
		Wait: first(a.Wait, other.Wait), Pending: first(a.Pending, other.Pending), ClaudeAlwaysAsk: first(a.ClaudeAlwaysAsk, other.ClaudeAlwaysAsk),
	}
}

// WaitFor is how long a question waits.
func (a Approval) WaitFor() time.Duration { return time.Duration(a.Wait.Value) * time.Second }

// PendingAfter is after what time a client is told to come again; 0 is never.
func (a Approval) PendingAfter() time.Duration { return time.Duration(a.Pending.Value) * time.Second }

var approvalKeys = []key[Approval]{
	{"wait", "How many seconds a question waits for a person.", false, aNumber,
		func(d *decoder, v *splice.Value, a *Approval) { a.Wait = d.number(v) }},
	{"pending", "After how many seconds a client whose call waits is told to call again.", true, aNumber,
		func(d *decoder, v *splice.Value, a *Approval) { a.Pending = d.number(v) }},
	{"claude_always_ask", "Whether tools that a person is asked for are marked so that Claude Code asks, too.", false, aBool,
		func(d *decoder, v *splice.Value, a *Approval) { a.ClaudeAlwaysAsk = d.bool(v) }},
}

// usualWait is how many seconds a question waits.
const usualWait = 300

// approval resolves how a person is asked.
func (r *resolver) approval() {
	p := &r.p.Approval
	smaller := func(a, b int) bool { return a < b }
	p.Wait = narrowBy(r, "approval.wait", func(s Settings) Setting[int] { return s.Approval.Wait }, usual(usualWait), smaller)
	p.Pending = first(r.operator.Approval.Pending, r.managed.Approval.Pending, usual(0))
	p.ClaudeAlwaysAsk = narrow(r, "approval.claude_always_ask", func(s Settings) Setting[bool] { return s.Approval.ClaudeAlwaysAsk }, usual(false), true, false)
}
