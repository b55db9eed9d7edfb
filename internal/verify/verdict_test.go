package verify

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
)

// A server that does not answer keeps no rule of the protocol for that.
func TestSilenceKeepsNoRule(t *testing.T) {
	var held []string
	for _, era := range []exchange.Era{exchange.Legacy, exchange.Modern} {
		for _, c := range protocol(era) {
			if c.id == "SQ-03" { // it asked nothing, indeed
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				start := func(context.Context, Setup) (Running, error) {
					return Running{Handler: exchange.HandlerFunc(func(context.Context, *exchange.Request, func(exchange.Outcome)) {}), Close: func() {}}, nil
				}
				r := &run{ctx: t.Context(), Options: Options{Start: start, Limit: callLimit}, w: &workspace{}, report: &Report{}}
				p, _, err := r.connect(era, peerOptions{roots: []string{}})
				if err != nil {
					t.Fatal(err)
				}
				defer p.close()
				s := &session{run: r, era: era, peer: p, tools: tools{roleRead: {role: roleRead, name: "read", params: map[string]string{"path": "path"}, rest: []byte("{}")}}}
				if seen, ok := c.see(s, p.listAll("tools/list", "tools")); ok && seen != "" {
					held = append(held, fmt.Sprintf("%v: %s (%s): %s", era, c.id, c.what, seen))
				}
			})
		}
	}
	if len(held) > 0 {
		t.Errorf("held:\n%s", strings.Join(held, "\n"))
	}
}

// A race in which nothing was swapped shows nothing.
func TestARaceThatWasNone(t *testing.T) {
	w, err := newWorkspace(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.place("race")
	if err != nil {
		t.Fatal(err)
	}
	p.race = time.Millisecond
	p.look()
	c := raced("R", roleRead, "read", func(a *attempt, _ int) {})
	a := &attempt{place: p, peer: &peer{ctx: t.Context()}, trial: &c}
	c.try(a) // unprepared: there is no directory to swap, and no link
	if r := a.result(p.changed()); r.Verdict != Inconclusive || !strings.Contains(r.Seen, "was not swapped all the time") {
		t.Errorf("%s: %s", r.Verdict, r.Seen)
	}
}
