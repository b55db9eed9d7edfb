package guard

import (
	"context"
	"fmt"
	"strings"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/results"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// codeResult is the code of an answer in which something was found.
const codeResult = "result"

// answered is what the results stage leaves in the trail.
type answered struct {
	withheld bool
	bytes    int64 // of the answer as it came
}

// resultsStage checks what the server answers, by the roots that hold when it does, and learns from its lists what tools say
// they answer.
func (g *Guard) resultsStage(next exchange.Handler) exchange.Handler {
	if g.results == nil {
		return next
	}
	return exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		switch method := r.Msg.Method(); {
		case r.Msg.Kind() != wire.Request:
			next.Handle(ctx, r, reply)
		case method == "tools/list":
			cursor := wire.GetString(r.Msg.Params(), "cursor")
			next.Handle(ctx, r, func(o exchange.Outcome) {
				if o.Msg != nil && o.Msg.Result() != nil {
					g.results.Learn(cursor, o.Msg.Result())
				}
				reply(o)
			})
		case g.results.Checks(method):
			next.Handle(ctx, r, func(o exchange.Outcome) { g.checkResult(r, o, reply) })
		default:
			next.Handle(ctx, r, reply)
		}
	})
}

func (g *Guard) checkResult(r *exchange.Request, o exchange.Outcome, reply func(exchange.Outcome)) {
	if _, interim := exchange.Interim(r, o); interim || o.Msg == nil {
		reply(o)
		return
	}
	result := results.Result{Method: r.Msg.Method(), Value: o.Msg.Result()}
	if result.Value == nil {
		result.Value, result.Failed = o.Msg.Error(), true
	}
	if result.Method == "tools/call" {
		result.Tool = r.Msg.Name()
	}
	if !g.results.Asks(&result) {
		reply(g.judged(r, o, g.results.Check(result)))
		return
	}
	exchange.InOrder(func() { g.checkURIs(r, o, result, reply) })
}

// checkURIs is checkResult of an answer that names files: it looks at the disk.
func (g *Guard) checkURIs(r *exchange.Request, o exchange.Outcome, result results.Result, reply func(exchange.Outcome)) {
	set := g.session(r).state().Set // which may be others than when the request came
	result.Outside = func(uri string) bool { return g.outside(uri, set) }
	reply(g.judged(r, o, g.results.Check(result)))
}

// outside reports whether a URI leads to a file of this machine outside of set.
func (g *Guard) outside(uri string, set roots.Set) bool {
	params := append(append([]byte(`{"uri":`), wire.Quote(uri)...), '}')
	args, err := pathargs.Find("resources/read", params, nil, g.rules.Load().paths)
	return err != nil || len(pathargs.Judge(args, set, g.opt.Process).Refused()) > 0
}

// judged is what goes on of an outcome. What was found is told and logged.
func (g *Guard) judged(r *exchange.Request, o exchange.Outcome, v results.Verdict) exchange.Outcome {
	if len(v.Findings) == 0 {
		return o
	}
	blocked, withheld := v.Blocked()
	var found []string
	for _, f := range v.Findings {
		found = append(found, f.String())
	}
	text := "in its answer: "
	switch {
	case withheld:
		text = "its answer was withheld: "
	case v.Edited:
		text = "in its answer, and not all of it was passed on: "
	}
	text += strings.Join(found, "; ")
	r.Trail.Add(exchange.Note{Stage: "results", Code: codeResult, Text: text, Detail: answered{withheld, int64(len(o.Msg.Bytes()))}})
	g.tell(r, v.Findings, text)
	switch {
	case withheld:
		text := fmt.Sprintf("Withheld by Rootbound (call %s): the server did what was asked, and its answer is not handed on, because %s. Tell the user, and do not simply try again.",
			trailID(r), blocked.Check.About())
		data := wire.AppendQuote([]byte(`{"reason":"result","check":`), blocked.Check.String())
		data = wire.AppendQuote(append(data, `,"call":`...), trailID(r))
		return exchange.Refused(r, text, append(data, '}'))
	case !v.Edited:
	case o.Msg.Result() != nil:
		o.Msg = o.Msg.WithResult(v.Value)
	default:
		o.Msg = wire.NewErrorObject(o.Msg.ID(), v.Value)
	}
	return o
}

// tell tells a person of findings: each kind of them of each tool when it is found first, and then seldom.
func (g *Guard) tell(r *exchange.Request, findings []results.Finding, text string) {
	n := 0
	g.mu.Lock()
	for _, f := range findings {
		key := approval.Cut(method(r), 200) + " " + f.Check.String() + " " + f.Action.String()
		if len(g.told) < maxTold || g.told[key] > 0 {
			g.told[key]++
		}
		if c := g.told[key]; n == 0 || c < n {
			n = c
		}
	}
	g.mu.Unlock()
	if n == 0 || n&(n-1) != 0 {
		return
	}
	times := ""
	if n > 1 {
		times = fmt.Sprintf(" (%d times now)", n)
	}
	g.opt.Warn(fmt.Sprintf("%s (call %s): %s%s", method(r), trailID(r), text, times))
}

// maxTold is of how many tools and checks it is counted how often something was found, and how many texts are said once.
const maxTold = 4096
