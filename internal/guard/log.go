package guard

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/wire"
)

// detail is what the paths stage leaves in the trail, for the log and for policy.
type detail struct {
	paths  []calllog.Path
	judged []pathargs.Judged
}

// logStage is the outermost stage: it gives the request its trail, writes a refusal before the client reads it, and how a
// request ended.
func (g *Guard) logStage(next exchange.Handler) exchange.Handler {
	return exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		switch {
		case r.Msg.Kind() != wire.Request && !strings.HasPrefix(r.Msg.Method(), "notifications/"):
			// A call without an id has no answer in which it could be refused, and a server may run it all the same.
			text := fmt.Sprintf("the client sent %.60q without an id, which only notifications may be; it was dropped", r.Msg.Method())
			g.opt.Warn(text)
			g.note(&calllog.Record{Kind: calllog.Note, Session: sessionID(r), Code: "no-id", Method: r.Msg.Method(), Reason: text})
			return
		case r.Msg.Kind() != wire.Request, r.Msg.Method() == exchange.Listen && r.Era == exchange.Legacy:
			next.Handle(ctx, r, reply)
			return
		}
		c := &struct { // in one piece of memory
			exchange.Request
			exchange.Trail
		}{Request: *r}
		c.ID, c.Begun = g.opt.Log.NewID(), g.opt.Now()
		c.Request.Trail = &c.Trail
		next.Handle(ctx, &c.Request, func(o exchange.Outcome) {
			g.ended(&c.Request, o, g.opt.Now().Sub(c.Begun))
			reply(o)
		})
	})
}

// ended writes a refusal, or how a request ended. Its effect was logged before it happened, so an answer is not held back
// when this cannot be.
func (g *Guard) ended(r *exchange.Request, o exchange.Outcome, took time.Duration) {
	notes := r.Trail.Notes()
	refused := slices.IndexFunc(notes, func(n exchange.Note) bool { return n.Denied })
	g.count(r, o, notes, refused >= 0, r.Trail.Begun.Add(took))
	if g.opt.Log.Discards() {
		return
	}
	if refused >= 0 && !r.Trail.Recorded() {
		rec := g.call(r)
		g.note(&rec)
		return
	}
	rec := calllog.Record{Kind: calllog.End, Session: sessionID(r), Call: r.Trail.ID, Method: r.Msg.Method(), MS: float64(took.Microseconds()) / 1000}
	if n := r.Msg.Method(); n == "tools/call" || n == "prompts/get" {
		rec.Tool = r.Msg.Name()
	}
	switch {
	case o.Msg == nil:
		rec.Outcome = calllog.Cancelled
	case refused >= 0: // by what has changed since it was recorded
		n := notes[refused]
		rec.Outcome, rec.Bytes, rec.Code, rec.Reason = calllog.Failed, int64(len(o.Msg.Bytes())), n.Code, n.Text
	case o.Msg.Error() != nil:
		rec.Outcome, rec.Bytes = calllog.Failed, int64(len(o.Msg.Bytes()))
		rec.Reason = wire.GetString(o.Msg.Error(), "message")
	default:
		rec.Outcome, rec.Bytes = calllog.OK, int64(len(o.Msg.Bytes()))
	}
	for _, n := range notes {
		if d, ok := n.Detail.(answered); ok {
			rec.Code, rec.Reason = n.Code, n.Text
			if d.withheld {
				rec.Outcome, rec.Bytes = calllog.Withheld, d.bytes
			}
		}
	}
	if err := g.opt.Log.AppendSoon(&rec); err != nil {
		g.opt.Warn("the log: " + err.Error())
	}
}

// gate is the innermost stage: what cannot be logged does not go to the server.
func (g *Guard) gate(next exchange.Handler) exchange.Handler {
	return exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Trail != nil && !g.opt.Log.Discards() {
			if err := g.append(r); err != nil {
				r.Trail.Add(exchange.Note{Stage: "log", Denied: true, Code: "log", Text: err.Error()})
				reply(exchange.Fail(r, wire.CodeInternal, "rootbound: the request was not sent, because it could not be logged", []byte(`{"reason":"log"}`)))
				return
			}
		}
		next.Handle(ctx, r, reply)
	})
}

// containedGate is the gate for a server of ours that decides about the paths of a request when it opens them. Then it is known
// what is to be logged: before something is changed (Trail.Record), and else before the client has the answer.
func (g *Guard) containedGate(next exchange.Handler) exchange.Handler {
	atOnce := g.gate(next)
	return exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		switch r.Msg.Method() {
		case "tools/call", "resources/read", "resources/subscribe":
		default:
			atOnce.Handle(ctx, r, reply)
			return
		}
		if r.Trail == nil || g.opt.Log.Discards() {
			next.Handle(ctx, r, reply)
			return
		}
		r.Trail.OnRecord(func() error { return g.append(r) })
		next.Handle(ctx, r, func(o exchange.Outcome) {
			if !slices.ContainsFunc(r.Trail.Notes(), func(n exchange.Note) bool { return n.Denied }) {
				if err := r.Trail.Record(); err != nil {
					r.Trail.Add(exchange.Note{Stage: "log", Denied: true, Code: "log", Text: err.Error()})
					o = exchange.Fail(r, wire.CodeInternal, "rootbound: the request was not carried out, because it could not be logged", []byte(`{"reason":"log"}`))
				}
			}
			reply(o)
		})
	})
}

func (g *Guard) append(r *exchange.Request) error {
	rec := g.call(r)
	return g.opt.Log.Append(&rec)
}

// call is the record of a request and what the stages decided.
func (g *Guard) call(r *exchange.Request) calllog.Record {
	rec := calllog.Record{
		Kind: calllog.Call, Session: sessionID(r), Call: r.Trail.ID, ID: r.Msg.ID(), Method: r.Msg.Method(),
		Verdict: calllog.Allow, Bytes: int64(len(r.Msg.Bytes())),
	}
	switch rec.Method {
	case "tools/call", "prompts/get":
		rec.Tool, rec.Args = r.Msg.Name(), r.Msg.Arguments()
	case "resources/read", "resources/subscribe", "resources/unsubscribe", "completion/complete", exchange.Listen:
		rec.Args = wire.DeleteMember(r.Msg.Params(), "_meta")
	}
	for _, n := range r.Trail.Notes() {
		if _, ok := n.Detail.(answered); ok {
			continue // it is of the end
		}
		if d, ok := n.Detail.(ruled); ok {
			rec.Rule = d.rule
		}
		if d, ok := n.Detail.(detail); ok {
			rec.Paths = append(rec.Paths, d.paths...)
		}
		if n.Denied {
			rec.Verdict = calllog.Deny
			if n.Stage != "approve" {
				rec.Rule = "" // it let the request go, and is not what refused it
			}
		}
		if n.Path != "" && n.Fix == "" && n.Code != CodeOwn && !slices.Contains(unserved, n.Code) {
			n.Fix = g.opt.Widen(filepath.Dir(n.Path))
		}
		if n.Path != "" {
			rec.Paths = append(rec.Paths, calllog.Path{Given: n.Path, Resolved: n.Path, Verdict: calllog.Deny, Code: n.Code})
		}
		if n.Code != "" {
			rec.Code, rec.Reason, rec.Fix = n.Code, n.Text, n.Fix
		}
	}
	return rec
}

// note writes what has no request. That it cannot be written is told, since nothing waits for it.
func (g *Guard) note(rec *calllog.Record) {
	if err := g.opt.Log.Append(rec); err != nil {
		g.opt.Warn("the log: " + err.Error())
	}
}

func sessionID(r *exchange.Request) string {
	if r.Session == nil {
		return ""
	}
	return r.Session.ID
}
