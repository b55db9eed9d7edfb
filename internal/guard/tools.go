package guard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/pin"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/wire"
)

// codePolicy is the code of records about rules.
const codePolicy = "policy"

// listedTool is what the server says of one of its tools, as far as policy is concerned.
type listedTool struct {
	hash        string // of its definition
	schema      []byte // of its arguments
	annotations []byte
	shown       atomic.Bool // the client was told that it only reads
}

// claims is the effect that the server's annotations claim.
func (t *listedTool) claims() policy.Effect {
	hint := func(name string, usual bool) bool {
		v, ok := wire.Get(t.annotations, name)
		if !ok || string(v) != "true" && string(v) != "false" {
			return usual
		}
		return string(v) == "true"
	}
	switch {
	case hint("readOnlyHint", false):
		return policy.Read
	case hint("destructiveHint", true):
		return policy.Delete
	}
	return policy.Write
}

// listed is what the server says of a tool, nothing where it does not list it.
func (g *Guard) listed(name string) (t *listedTool, listed bool) {
	if t, listed = g.tools.Get(name); !listed {
		t = &listedTool{}
	}
	return t, listed
}

// allTools are the tools of a whole list, sorted; nil when there was none.
func (g *Guard) allTools() []policy.Tool {
	all, whole := g.tools.All()
	if !whole {
		return nil
	}
	list := []policy.Tool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, policy.NewTool(name, all[name].schema))
	}
	return list
}

// metaInteraction marks a tool for which a client that knows the mark asks a person itself. It asks nobody and answers nothing.
const metaInteraction = "anthropic/requiresUserInteraction"

// toolsStage learns from the server's lists what policy has to know of its tools, tells of rules that are for none of them,
// and tells the client what is believed of them, and for which a person is asked, where that is asked for.
func (g *Guard) toolsStage(next exchange.Handler) exchange.Handler {
	return exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		p := g.policy.Load()
		if r.Msg.Method() != "tools/list" || p.Rules == nil {
			next.Handle(ctx, r, reply)
			return
		}
		cursor := wire.GetString(r.Msg.Params(), "cursor")
		next.Handle(ctx, r, func(o exchange.Outcome) {
			if o.Msg != nil && o.Msg.Result() != nil {
				o.Msg = g.learn(cursor, o.Msg, g.policy.Load())
			}
			reply(o)
		})
	})
}

// learn learns a page of tools, and returns it as the client is to have it.
func (g *Guard) learn(cursor string, m *wire.Message, p *Policy) *wire.Message {
	items, ok := wire.Get(m.Result(), "tools")
	if !ok {
		return m
	}
	page := map[string]*listedTool{}
	for item := range wire.Items(items) {
		if name := wire.GetString(item, "name"); name != "" {
			t := &listedTool{hash: pin.New(pin.Tool, name, item).Hash()}
			if v, ok := wire.Get(item, "annotations"); ok {
				t.annotations = append([]byte(nil), v...)
			}
			if v, ok := wire.Get(item, "inputSchema"); ok {
				t.schema = append([]byte(nil), v...)
			}
			t.shown.Store(t.annotations != nil && t.claims() == policy.Read)
			page[name] = t
		}
	}
	whole := g.tools.Learn(cursor, page, wire.GetString(m.Result(), "nextCursor"))
	if p.PublishAnnotations || g.opt.Approval.AlwaysAsk && p.Rules != nil {
		m = g.published(m, items, p, page)
	}
	if whole {
		g.checkTools()
	}
	return m
}

// published is a page of tools as the client is to have it: with the annotations that policy believes, and with the mark of those
// that it asks for. What the server says in its annotations goes to the log.
func (g *Guard) published(m *wire.Message, items []byte, p *Policy, page map[string]*listedTool) *wire.Message {
	out := []byte{'['}
	changed := false
	for item := range wire.Items(items) {
		name := wire.GetString(item, "name")
		if t, ok := page[name]; ok {
			effect := g.effect(p, name).Effect
			worst := p.Rules.Worst(policy.Call{Server: g.opt.Server, Tool: name, Effect: effect})
			if p.PublishAnnotations {
				if want := believed(t.annotations, effect, worst); string(want) != string(t.annotations) {
					said := string(t.annotations)
					if said == "" {
						said = "none"
					}
					g.noteOnce(codePolicy, fmt.Sprintf("the client is told of the annotations of %q: %s instead of %s", name, want, said))
					item, changed = wire.SetMember(item, want, "annotations"), true
				}
				t.shown.Store(effect == policy.Read && worst == policy.Allow)
			}
			if g.opt.Approval.AlwaysAsk && worst == policy.Ask {
				item, changed = wire.SetMember(item, []byte("true"), "_meta", metaInteraction), true
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	if !changed {
		return m
	}
	return m.WithResult(wire.SetMember(m.Result(), append(out, ']'), "tools"))
}

// believed are annotations with what is believed of a tool, where worst is the hardest that can become of a call of it.
func believed(annotations []byte, effect policy.Effect, worst policy.Verdict) []byte {
	if len(annotations) == 0 || annotations[0] != '{' {
		annotations = []byte("{}")
	}
	set := func(name string, yes bool) {
		v := []byte("false")
		if yes {
			v = []byte("true")
		}
		annotations = wire.SetMember(annotations, v, name)
	}
	reads := effect == policy.Read && worst == policy.Allow
	set("readOnlyHint", reads)
	switch {
	case reads:
		if _, ok := wire.Get(annotations, "destructiveHint"); ok {
			set("destructiveHint", false)
		}
	default:
		set("destructiveHint", effect == policy.Delete || effect == policy.Unknown)
		if effect == policy.Unknown {
			set("openWorldHint", true)
			annotations = wire.DeleteMember(annotations, "idempotentHint")
		}
	}
	return annotations
}

// checkTools tells, once each, of rules that are for tools and arguments which the server does not have.
func (g *Guard) checkTools() {
	for _, fault := range g.Faults() {
		text := "a rule does nothing: " + fault
		g.once(codePolicy, text)
	}
}

// noteOnce logs what was not logged before, and reports whether it did. After very much it begins anew: what was said once may come again
// then, and nothing is kept back.
func (g *Guard) noteOnce(code, text string) bool {
	key := digestOf(text) // a server may have made it as long as it likes
	g.mu.Lock()
	first := !g.noted[key]
	if first {
		if len(g.noted) >= maxTold {
			clear(g.noted)
		}
		g.noted[key] = true
	}
	g.mu.Unlock()
	if first {
		g.note(&calllog.Record{Kind: calllog.Note, Code: code, Reason: strings.ToValidUTF8(text, "")})
	}
	return first
}

// once logs and tells a person what may come again and again.
func (g *Guard) once(code, text string) {
	if g.noteOnce(code, text) {
		g.opt.Warn(text)
	}
}
