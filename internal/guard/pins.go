package guard

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/pin"
	"github.com/rootbound/rootbound/internal/wire"
)

const (
	// codeHeld is the code of a call of something whose definition changed.
	codeHeld = "held"
	// codePin is the code of records about definitions.
	codePin = "pin"
)

// pinsStage compares what the server says of itself with what is pinned. What changed in its meaning is listed as it was
// and not to be called, until a person looked.
func (g *Guard) pinsStage(next exchange.Handler) exchange.Handler {
	if g.opt.Pins == nil {
		return next
	}
	return exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		method := r.Msg.Method()
		_, _, _, listed := pin.List(method)
		switch {
		case r.Msg.Kind() != wire.Request:
			next.Handle(ctx, r, reply)
		case method == "tools/call" && g.held(r, pin.Tool, reply), method == "prompts/get" && g.held(r, pin.Prompt, reply):
		case listed, method == "initialize", method == "server/discover":
			next.Handle(ctx, r, func(o exchange.Outcome) {
				if _, interim := exchange.Interim(r, o); interim || o.Msg == nil || o.Msg.Result() == nil {
					reply(o)
					return
				}
				exchange.InOrder(func() { reply(g.pinned(r, o)) }) // it reads files, and writes them when something is new
			})
		case method == exchange.Listen && r.Caller != nil:
			l := &listener{r}
			g.mu.Lock()
			g.listeners = append(g.listeners, l)
			g.mu.Unlock()
			next.Handle(ctx, r, func(o exchange.Outcome) {
				g.mu.Lock()
				g.listeners = slices.DeleteFunc(g.listeners, func(other *listener) bool { return other == l })
				g.mu.Unlock()
				reply(o)
			})
		default:
			next.Handle(ctx, r, reply)
		}
	})
}

// held refuses a request for something that is held, and reports whether it did.
func (g *Guard) held(r *exchange.Request, kind pin.Kind, reply func(exchange.Outcome)) bool {
	s, held := g.opt.Pins.Held(kind, r.Msg.Name())
	if !held {
		return false
	}
	review := g.review()
	text := fmt.Sprintf("%s is held, because %s", s.Definition, s.Reason())
	r.Trail.Add(exchange.Note{Stage: "pins", Denied: true, Code: codeHeld, Text: text, Fix: review})
	g.opt.Warn(fmt.Sprintf("refused %s (call %s): %s (to look at it: %s)", method(r), trailID(r), text, review))
	data := append(wire.AppendQuote([]byte(`{"reason":"held","call":`), trailID(r)), '}')
	reply(exchange.Refused(r, fmt.Sprintf("Refused by Rootbound (call %s): %s Ask the user to run `%s` in a terminal, and then try again.",
		trailID(r), unavailable(s), review), data))
	return true
}

// review is the command that shows what is held.
func (g *Guard) review() string { return "rootbound approve pins review " + ShellQuote(g.opt.Server) }

// unavailable says for a model why something is not to be used.
func unavailable(s pin.Sight) string {
	if s.Why != "" || s.Pinned.Text == nil {
		return fmt.Sprintf("this %s is held until the user has reviewed it: %s.", s.Kind, s.Reason())
	}
	return fmt.Sprintf("the definition of this %s changed, and it is held until the user has reviewed that: %s.", s.Kind, s.Reason())
}

// pinned is what goes on of a result that has definitions.
func (g *Guard) pinned(r *exchange.Request, o exchange.Outcome) exchange.Outcome {
	result := o.Msg.Result()
	if r.Session != nil && r.Era == exchange.Legacy && r.Msg.Method() == "initialize" {
		s := g.session(r)
		caps, _ := wire.Get(result, "capabilities")
		s.mu.Lock()
		s.capabilities = slices.Clone(caps)
		s.mu.Unlock()
	}
	defs := pin.Definitions(r.Msg.Method(), result)
	if len(defs) == 0 {
		return o
	}
	sights, err := g.opt.Pins.See(defs)
	if err != nil {
		g.once(codePin, err.Error())
	}
	g.noteSights(sights)
	held := map[string]pin.Sight{}
	for _, s := range sights {
		if s.Outcome == pin.Held {
			held[s.Name] = s
		}
	}
	if len(held) == 0 {
		return o
	}
	if list, name, kind, ok := pin.List(r.Msg.Method()); ok {
		items, _ := wire.Get(result, list)
		o.Msg = o.Msg.WithResult(wire.SetMember(result, g.replaced(items, name, kind, held), list))
		return o
	}
	o.Msg = o.Msg.WithResult(g.wordsOf(result, held[""].Pinned))
	return o
}

// wordsOf returns what a server says of itself with its words as they were: nothing else can be held of a server as a whole.
func (g *Guard) wordsOf(result []byte, pinned pin.Definition) []byte {
	if instructions, ok := wire.Get(pinned.Text, "instructions"); ok {
		result = wire.SetMember(result, instructions, "instructions")
	} else {
		result = wire.DeleteMember(result, "instructions")
	}
	info, ok := wire.Get(pinned.Text, "serverInfo")
	if !ok { // it was never accepted, and clients want one
		info = append(wire.AppendQuote([]byte(`{"name":`), g.opt.Server), `,"version":""}`...)
	}
	for _, at := range [][]string{{"serverInfo"}, {"_meta", "io.modelcontextprotocol/serverInfo"}} {
		if _, there := wire.Get(result, at...); there {
			result = wire.SetMember(result, info, at...)
		}
	}
	return result
}

// replaced returns a list of definitions with what is held as it was, and a remark for the model. What has never been
// accepted is listed by its name alone, and a template of that kind not at all.
func (g *Guard) replaced(items []byte, name string, kind pin.Kind, held map[string]pin.Sight) []byte {
	out := []byte{'['}
	done := map[string]bool{}
	for item := range wire.Items(items) {
		n := wire.GetString(item, name)
		if s, is := held[n]; is {
			if done[n] || len(s.Pinned.Text) == 0 && (kind == pin.Template || len(pin.Suspicious(pin.Definition{Kind: kind, Name: n})) > 0) {
				continue
			}
			done[n] = true
			item = s.Pinned.Text
			if len(item) == 0 {
				item = append(wire.AppendQuote([]byte(`{"name":`), n), '}')
				if kind == pin.Tool {
					item = wire.SetMember(item, []byte(`{"type":"object"}`), "inputSchema")
				}
			}
			if kind != pin.Template {
				text := fmt.Sprintf("Not available now: %s The user can run `%s`.", unavailable(s), g.review())
				item = wire.SetMember(item, wire.Quote(text), "description")
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	return append(out, ']')
}

// noteSights logs what is new, and tells a person what is held.
func (g *Guard) noteSights(sights []pin.Sight) {
	var first []string
	note := func(text string) { g.note(&calllog.Record{Kind: calllog.Note, Code: codePin, Reason: text}) }
	for _, s := range sights {
		switch {
		case !s.New:
		case s.Outcome == pin.First:
			first = append(first, s.Definition.String()+" "+pin.Short(s.Hash()))
		case s.Outcome == pin.Reworded:
			var at []string
			for _, c := range s.Changes {
				at = append(at, c.Path)
			}
			note(fmt.Sprintf("%s is described in other words, and pinned anew as %s: %s", s.Definition, pin.Short(s.Hash()), strings.Join(at, ", ")))
		case s.Outcome == pin.Held:
			text := fmt.Sprintf("%s is held, because %s", s.Definition, s.Reason())
			note(text + ": " + pin.Short(s.Hash()))
			g.opt.Warn(fmt.Sprintf("%s; `%s` shows it", text, g.review()))
		}
	}
	if len(first) > 0 {
		note("seen for the first time, and pinned: " + strings.Join(first, ", "))
	}
}

// listener is the request on which a client hears what belongs to no other.
type listener struct{ r *exchange.Request }

// lookPins looks whether a person accepted something, and tells clients that lists changed.
func (g *Guard) lookPins() {
	if g.opt.Pins == nil {
		return
	}
	g.mu.Lock()
	since := g.released
	g.mu.Unlock()
	released, now, first := g.opt.Pins.Look(since)
	if len(released) == 0 {
		return
	}
	g.mu.Lock()
	g.released = now
	g.mu.Unlock()
	var names, lists []string
	for _, d := range released {
		names = append(names, d.String())
		if word := string(d.Kind) + "s"; (d.Kind == pin.Tool || d.Kind == pin.Prompt) && !slices.Contains(lists, word) {
			lists = append(lists, word)
		}
	}
	if first {
		text := "held no more: " + strings.Join(names, ", ")
		g.opt.Warn(text)
		g.note(&calllog.Record{Kind: calllog.Note, Code: codePin, Reason: text})
	}
	g.mu.Lock()
	listeners := slices.Clone(g.listeners)
	g.mu.Unlock()
	exchange.InOrder(func() { // a client may not read, and the next look must come
		for _, word := range lists {
			for _, l := range listeners {
				if g.hears(l, word) {
					l.notify("notifications/" + word + "/list_changed")
				}
			}
		}
	})
}

// hears reports whether a client is told when a list changes: the server said that it tells, or this request asks for it.
func (g *Guard) hears(l *listener, word string) bool {
	var v []byte
	if l.r.Era == exchange.Modern {
		v, _ = wire.Get(l.r.Msg.Params(), "notifications", word+"ListChanged")
	} else if l.r.Session != nil {
		s := g.session(l.r)
		s.mu.Lock()
		v, _ = wire.Get(s.capabilities, word, "listChanged")
		s.mu.Unlock()
	}
	yes, _ := strconv.ParseBool(string(v))
	return yes
}

// notify tells something. A stateless client hears by which of its requests it gets to hear it.
func (l *listener) notify(method string) {
	var params []byte
	if l.r.Era == exchange.Modern {
		params = wire.SetMember(nil, l.r.Msg.ID(), "_meta", exchange.MetaSubscriptionID)
	}
	l.r.Caller.Notify(wire.NewNotification(method, params))
}
