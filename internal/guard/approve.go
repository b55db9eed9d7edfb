package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/pin"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/wire"
)

// Approval is how a person is asked, where policy says so.
type Approval struct {
	// Desk holds the questions.
	Desk *approval.Desk
	// Terminal says that answers can come to the desk from elsewhere than the client.
	Terminal bool
	// Nobody says what to do so that somebody can be asked, where nobody can.
	Nobody string
	// Grants are what was granted before; nil remembers nothing. Runs is what the server's name stands for there.
	Grants *approval.Grants
	Runs   string
	// Run tells the sessions of this run from those of others, where grants are kept. Without it nothing is granted for a
	// session.
	Run string
	// Pending, if not 0, is how long a client is kept waiting before its call is told to come again; with 0 only clients are
	// that are known to give up soon.
	Pending time.Duration
	// AlwaysAsk marks the tools that policy asks for, for clients that ask a person themselves then. It answers nothing.
	AlwaysAsk bool
}

const (
	// codeApproved is the code of a call that a person, or a grant, allowed.
	codeApproved = "approved"
	// codeLeft is that of one for which the client asks a person itself.
	codeLeft = "left to the client"
	// codeRule is that of one that a rule refuses.
	codeRule = "rule"
	// codeRefused is that of one that was asked for and not allowed, codeNobody where nobody could be asked, codePending of one
	// that was told to come again, codePaused of one that was refused while everything waited.
	codeRefused = "not-approved"
	codeNobody  = "nobody-asked"
	codePending = "pending"
	codePaused  = "paused"
	// codeGrants is that of records about grants.
	codeGrants = "grants"
)

const (
	// heldApproval is the approve stage's part of what is held while a request is given back: what was allowed.
	heldApproval = "approve"
	// approveKey is the name of our question among those of a request.
	approveKey = "rootbound.approve"
	// progressEvery is how often a client hears that its call waits for a person.
	progressEvery = 10 * time.Second
)

// approveStage lets policy decide about calls, and a person where policy says so. While the guard is paused it holds every
// call.
func (g *Guard) approveStage(next exchange.Handler) exchange.Handler {
	return exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		if r.Msg.Kind() != wire.Request || !acts(r.Msg.Method()) {
			next.Handle(ctx, r, reply)
			return
		}
		if desk := g.opt.Approval.Desk; desk != nil && desk.Paused() {
			g.hold(ctx, r, reply, func() {
				c, err := g.again(r)
				if err != nil {
					g.deny(r, codePaused, "calls were paused, and what it names lies outside the roots now", "", "what it names is outside the directories that are open now", reply)
					return
				}
				g.approve(ctx, c, next, reply)
			})
			return
		}
		g.approve(ctx, r, next, reply)
	})
}

// acts reports whether a request does something: those are held while everything is paused.
func acts(method string) bool {
	switch method {
	case "tools/call", "prompts/get", "resources/read", "resources/subscribe", "completion/complete":
		return true
	}
	return false
}

// hold keeps a call until the guard goes on, or somebody lets it through: then it does goOn. Or somebody refuses it.
func (g *Guard) hold(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome), goOn func()) {
	w := g.wait(ctx, r)
	held := g.opt.Approval.Desk.Hold(ctx, approval.Call{
		Question: approval.Question{
			ID: trailID(r), Server: g.opt.Server, Tool: method(r), Client: clientName(r), Head: fmt.Sprintf("%s: %s is held, because calls are paused", g.opt.Server, called(r)),
			Choices: []approval.Choice{{}, {Allow: true}},
		},
		Session: g.sessionOf(r),
		Answered: func(a approval.Answer) {
			w.over()
			go func() {
				switch {
				case ctx.Err() != nil:
					reply(exchange.Cancelled)
				case a.Allow:
					r.Trail.Begun = g.opt.Now()
					goOn()
				case a.Road == approval.Flooded:
					g.deny(r, codePaused, "calls are paused, and too many wait", "", "calls are paused, and too many wait already", reply)
				default:
					g.deny(r, codePaused, "it was refused while calls were paused, by "+by(a), "", "the user refused it"+note(a), reply)
				}
			}()
		},
	})
	if !held { // it goes on, as of now
		w.over()
		goOn()
		return
	}
	g.opt.Warn(fmt.Sprintf("%s (call %s) is held, because calls are paused: `rootbound approve resume` in a terminal", method(r), trailID(r)))
}

// approve decides about a call, and asks where that is the decision.
func (g *Guard) approve(ctx context.Context, r *exchange.Request, next exchange.Handler, reply func(exchange.Outcome)) {
	if g.policy.Load().Rules == nil || r.Msg.Method() != "tools/call" {
		next.Handle(ctx, r, reply)
		return
	}
	c, d := g.decide(r)
	switch d.Verdict {
	case policy.Allow:
		next.Handle(ctx, r, reply)
	case policy.Ask:
		go g.ask(ctx, r, c, d, next, reply) // it looks at files
	default:
		why := d.Reason
		if d.Rule != byRoots {
			why += " (" + d.Rule + ")"
		}
		g.deny(r, codeRule, why, d.Change, d.Reason, reply)
	}
}

// deny refuses a call: why is for the person and the log, fix what would change it, and tell what the model reads.
func (g *Guard) deny(r *exchange.Request, code, why, fix, tell string, reply func(exchange.Outcome)) {
	r.Trail.Add(exchange.Note{Stage: "approve", Denied: true, Code: code, Text: why, Fix: fix})
	text := fmt.Sprintf("refused %s (call %s): %s", method(r), trailID(r), why)
	if fix != "" {
		text += " (to change that: " + strings.ReplaceAll(fix, "\n", "; or ") + ")"
	}
	g.opt.Warn(text)
	data := append(wire.AppendQuote([]byte(`{"reason":`), code), `,"call":`...)
	data = append(wire.AppendQuote(data, trailID(r)), '}')
	reply(exchange.Refused(r, fmt.Sprintf("Refused by Rootbound (call %s): %s. Nothing was done. Do not look for another way; tell the user.", trailID(r), tell), data))
}

// asking is one call that policy wants a yes for.
type asking struct {
	subject
	ctx      context.Context
	next     exchange.Handler
	reply    func(exchange.Outcome)
	wait     *wait
	elicits  bool     // the client can be asked
	givenOut bool     // a stateless client has the request back, and goes on with its retry
	instead  *subject // the call that a person made of it; nil while it is the one that came

	mu       sync.Mutex
	withdraw context.CancelCauseFunc // takes the question back from the client; nil while it has none
	back     chan struct{}           // closed when it was answered or taken back
	answer   *approval.Answer        // a yes that waits for the retry
	closed   bool                    // the desk's question has ended, and the client is not asked any more
	done     bool
}

func (g *Guard) ask(ctx context.Context, r *exchange.Request, c policy.Call, d policy.Decision, next exchange.Handler, reply func(exchange.Outcome)) {
	a := &asking{subject: g.subject(r, c, d), ctx: ctx, next: next, reply: reply}
	o := &g.opt.Approval
	if g.opt.Pins != nil {
		if _, held := g.opt.Pins.Held(pin.Tool, c.Tool); held { // nobody need decide: the pins stage refuses it
			next.Handle(ctx, r, reply)
			return
		}
	}
	if held, retry := r.Held[heldApproval]; retry { // it was allowed, and the server gave it back
		if instead, same := a.was(held); same {
			a.instead = instead
			a.run(approval.Answer{}, "it was allowed before, and goes on")
			return
		}
	}
	if o.Grants != nil && a.decision.Remember != policy.Never {
		grant, ok, err := o.Grants.Find(a.use, g.opt.Now())
		if err != nil {
			g.once(codeGrants, err.Error())
		} else if ok {
			answer := approval.Answer{Choice: approval.Choice{Allow: true}, Road: approval.ByGrant, Who: "grant " + grant.ID + " of call " + grant.Call + ": " + grant.String()}
			if a.answered(answer) {
				a.run(answer, "")
			}
			return
		}
	}
	mode := g.policy.Load().Ask
	why, left := mode.Leaves(clientName(r), g.shownReadOnly(c.Tool))
	switch {
	case mode == policy.AskNobody:
		g.deny(r, codeNobody, "it needs a yes of a person ("+d.Reason+"), and nobody is to be asked", "--ask always or --ask auto\n"+d.Change,
			"it needs the user's yes, and nobody is asked here", reply)
		return
	case left:
		r.Trail.Add(exchange.Note{Stage: "approve", Code: codeLeft, Text: d.Reason + "; " + why})
		next.Handle(ctx, r, reply)
		return
	}
	a.elicits = canElicit(r)
	if o.Desk == nil || !o.Terminal && !a.elicits {
		fix := strings.Trim(o.Nobody+"\n"+d.Change, "\n")
		g.deny(r, codeNobody, "it needs a yes of a person ("+d.Reason+"), and nobody can be asked: the client has no way to ask, and no answer can come from a terminal", fix,
			"it needs the user's yes, and nobody can be asked here", reply)
		return
	}
	q := a.question()
	if err := g.opt.Log.Append(&calllog.Record{
		Kind: calllog.Asked, Session: sessionID(r), Call: trailID(r), Method: r.Msg.Method(), Tool: c.Tool, Verdict: calllog.Ask, Reason: strings.TrimPrefix(a.about()+" — "+q.Why, " — "), Fix: d.Change, Ask: a.digest[:shortDigest],
	}); err != nil {
		g.deny(r, "log", "nobody was asked, because it could not be logged: "+err.Error(), "", "it could not be logged", reply)
		return
	}
	a.wait = g.wait(ctx, r)
	key := a.digest + a.there() + a.use.Session
	if a.elicits && r.Era == exchange.Modern { // its client has it back, and may never come again: who sends the same is not to wait for that
		key += trailID(r)
	}
	o.Desk.Ask(ctx, approval.Call{Question: q, Key: key, Session: a.use.Session,
		Asked: a.asked, Answered: a.ended, Change: a.change})
}

// asked is called when it is this call that a person is asked about.
func (a *asking) asked(w *approval.Waiting) {
	if a.g.opt.Approval.Terminal { // which is told now, when the question is there
		where := "`rootbound approve` in a terminal"
		if a.elicits {
			where += ", or in the client"
		}
		a.g.opt.Warn(fmt.Sprintf("%s (call %s) waits for you, %v at most: %s; `rootbound why %[2]s` says why", method(a.r), trailID(a.r), a.g.opt.Approval.Desk.Wait(), where))
	}
	if p := a.pending(); p > 0 && !(a.elicits && a.r.Era == exchange.Modern) {
		time.AfterFunc(p, func() { a.later(w) })
	}
	if !a.elicits {
		return
	}
	ctx, withdraw := context.WithCancelCause(a.ctx)
	a.mu.Lock()
	if a.closed || a.done { // or what a stateless client has back would go on without its retry
		a.mu.Unlock()
		withdraw(errOver)
		return
	}
	back := make(chan struct{})
	a.withdraw, a.back = withdraw, back
	a.givenOut = a.r.Era == exchange.Modern
	a.mu.Unlock()
	q := a.question()
	e := elicitation(&q)
	e.Settled = a.settled
	a.r.Caller.Ask(ctx, []exchange.Question{e}, func(answers []exchange.Answer) {
		close(back)
		go a.elicited(ctx, w, &q, answers[0])
	})
}

// shortLimits are how long clients are kept waiting that give up soon, whatever they hear of progress: less than they wait.
// Cline waits 60 seconds (its source at 21cb8d25, sdk/packages/shared/src/mcp.ts).
var shortLimits = map[string]time.Duration{"Cline": 45 * time.Second}

// pending is after how long the client is told to come again; 0 is never.
func (a *asking) pending() time.Duration {
	if p := a.g.opt.Approval.Pending; p > 0 {
		return p
	}
	return shortLimits[a.use.Client]
}

// elicited takes what the client answers.
func (a *asking) elicited(ctx context.Context, w *approval.Waiting, q *approval.Question, got exchange.Answer) {
	a.mu.Lock()
	before := a.answer
	withdrawn := a.done || before == nil && ctx.Err() != nil // then the desk ends the call
	a.givenOut = false                                       // it is not away any more: what ends the question now ends the call
	a.mu.Unlock()
	if withdrawn {
		return
	}
	answer, err := readElicitation(q, got)
	answer.Who = clientName(a.r)
	no := err == nil && !answer.Allow && answer.Road != approval.Dismissed
	switch {
	case before != nil && no: // somebody said yes elsewhere, but it has not run, and any call can be refused
		a.finish(answer)
	case before != nil:
		a.finish(*before)
	case err == nil:
		w.Answer(answer)
	default:
		a.g.note(&calllog.Record{Kind: calllog.Note, Session: sessionID(a.r), Code: "question", Reason: "the client has no answer of its person about call " + trailID(a.r) + ": " + err.Error()})
		if !a.g.opt.Approval.Terminal {
			w.Answer(approval.Answer{Road: approval.Unasked, Who: answer.Who, Note: err.Error()})
		}
	}
}

// settled reports whether somebody said yes elsewhere while the client had the request back.
func (a *asking) settled() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answer != nil
}

// ended takes how the question ended. What a stateless client has back goes on with its retry and not before: who does not
// come back must not find it done.
func (a *asking) ended(answer approval.Answer) {
	a.mu.Lock()
	if a.givenOut && answer.Allow && a.ctx.Err() == nil {
		a.answer = &answer
		a.mu.Unlock()
		return
	}
	a.closed = true
	a.mu.Unlock()
	go a.finish(answer)
}

// errOver is what a client is told of a question that is taken back.
var errOver = errors.New("it was answered elsewhere, or its time is over")

// over ends what waits, and reports whether something did.
func (a *asking) over() bool {
	a.mu.Lock()
	was := a.done
	a.done = true
	withdraw, back := a.withdraw, a.back
	a.mu.Unlock()
	if withdraw != nil {
		withdraw(errOver)
		<-back // what is said of the question is said before the call is answered
	}
	a.wait.over()
	return !was
}

// later tells the client to come again; the question stays.
func (a *asking) later(w *approval.Waiting) {
	a.mu.Lock()
	open := !a.done && a.answer == nil
	a.mu.Unlock()
	if !open || !w.Later() || !a.over() {
		return
	}
	a.r.Trail.Add(exchange.Note{Stage: "approve", Denied: true, Code: codePending, Text: "it waits for a person, and was told to come again"})
	a.reply(exchange.Refused(a.r, fmt.Sprintf("Waiting for the user's yes (call %s). Nothing was done yet. Call this tool again with the same arguments to go on.", trailID(a.r)),
		[]byte(`{"reason":"pending"}`)))
}

// finish does what the answer says.
func (a *asking) finish(answer approval.Answer) {
	if !a.over() {
		return
	}
	if a.ctx.Err() != nil && !answer.Allow && !answer.Road.ByPerson() {
		answer.Road = approval.Withdrawn
	}
	var wrong error
	if answer.Allow && answer.Args != nil {
		if a.instead, wrong = a.g.changed(a.r, answer.Args); wrong == nil {
			answer.Note = strings.TrimPrefix(answer.Note+"; arguments: "+changes(a.args, a.instead.args, false), "; ")
		}
	}
	if !a.answered(answer) {
		return
	}
	switch {
	case wrong != nil: // it was right when it was answered
		a.g.deny(a.r, codeRefused, "it was allowed with other arguments, which are refused now: "+wrong.Error(), "", "the user changed its arguments to ones that are refused", a.reply)
	case !answer.Allow || a.ctx.Err() != nil:
		a.refused(answer)
	case !answer.Road.BySocket() && a.g.opt.Approval.Desk.Paused(): // a client may let something else answer
		a.g.hold(a.ctx, a.r, a.reply, func() { a.goOn(answer) })
	default:
		a.goOn(answer)
	}
}

func (a *asking) goOn(answer approval.Answer) {
	a.remember(answer)
	a.run(answer, "")
}

// answered logs an answer. What cannot be logged is a no.
func (a *asking) answered(answer approval.Answer) bool {
	verdict, from := calllog.Deny, calllog.Party("")
	if answer.Allow {
		verdict = calllog.Allow
	}
	switch answer.Road {
	case approval.ByClient, approval.Declined, approval.Dismissed:
		from = calllog.Client
	case approval.ByTerminal, approval.ByPage:
		from = calllog.Person
	}
	err := a.g.opt.Log.Append(&calllog.Record{
		Kind: calllog.Answered, Session: sessionID(a.r), Call: trailID(a.r), Method: a.r.Msg.Method(), Tool: a.tool, Verdict: verdict, Code: string(answer.Road), From: from,
		Reason: sentence(answer), Ask: a.digest[:shortDigest],
	})
	if err != nil {
		a.g.deny(a.r, "log", "its answer could not be logged: "+err.Error(), "", "it could not be logged", a.reply)
	}
	return err == nil
}

// refused tells the model that the answer is no.
func (a *asking) refused(answer approval.Answer) {
	code, tell := codeRefused, ""
	switch answer.Road {
	case approval.Withdrawn:
		a.reply(exchange.Cancelled)
		return
	case approval.TimedOut:
		if tell = "nobody answered in time whether it may go on"; a.g.opt.Approval.Terminal {
			tell += " (the user can answer with `rootbound approve` in a terminal)"
		}
	case approval.Flooded:
		tell = "too many calls wait for the user's yes already"
	case approval.ClockMoved:
		tell = "the clock of this machine was set while it waited for the user's yes, so that the answer does not count"
	case approval.Dismissed:
		tell = "the user closed the question without an answer"
	case approval.Unasked:
		code, tell = codeNobody, "it needs the user's yes, and the client brought no answer"
	default:
		if a.ctx.Err() != nil { // a yes that comes too late
			a.reply(exchange.Cancelled)
			return
		}
		tell = "the user said no" + note(answer)
	}
	a.g.deny(a.r, code, sentence(answer), "", tell, a.reply)
}

// note is what the person said besides, for the model.
func note(a approval.Answer) string {
	if a.Note == "" {
		return ""
	}
	return ", and says: " + approval.Line(a.Note, 1000)
}

// by says who answered.
func by(a approval.Answer) string {
	switch a.Road {
	case approval.ByTerminal:
		return "a person in a terminal: " + a.Who
	case approval.ByPage:
		return "a person on the page: " + a.Who
	case approval.ByClient, approval.Declined, approval.Dismissed:
		return fmt.Sprintf("the client %q for its person", a.Who)
	}
	return a.Who
}

// sentence says how a question ended, for the log and for people.
func sentence(a approval.Answer) string {
	text := ""
	switch a.Road {
	case approval.ByGrant:
		return "allowed by " + a.Who
	case approval.TimedOut:
		return "nobody answered in time"
	case approval.Withdrawn:
		return "the call was cancelled before somebody answered"
	case approval.Flooded:
		return "too many calls of this session wait for a person"
	case approval.ClockMoved:
		return "the clock was set while it waited, so that the answer does not count"
	case approval.Declined:
		text = "declined by "
	case approval.Dismissed:
		text = "closed without an answer by "
	case approval.Unasked:
		return fmt.Sprintf("the client %q has no answer of its person (%s), and none can come from a terminal", a.Who, a.Note)
	default:
		text = "denied by "
		if a.Allow {
			text = a.Choice.String() + ", said by "
		}
	}
	text += by(a)
	if a.Note != "" {
		text += " (" + a.Note + ")"
	}
	return text
}

// remember keeps a yes that is good for more. If it cannot be kept it is good for this call alone.
func (a *asking) remember(answer approval.Answer) {
	grants := a.g.opt.Approval.Grants
	grant, ok := a.grant(answer)
	if !ok || grants == nil {
		return
	}
	if _, kept, err := grants.Find(a.use, a.g.opt.Now()); kept && err == nil {
		return // by a call like this one
	}
	if _, err := grants.Store().Add(grant); err != nil {
		text := fmt.Sprintf("what you allowed (call %s) is good for this call alone: %v", trailID(a.r), err)
		a.g.opt.Warn(text)
		a.g.note(&calllog.Record{Kind: calllog.Note, Session: sessionID(a.r), Code: codeGrants, Reason: text})
	}
}

// run sends the call on, if it is still what was asked about.
func (a *asking) run(answer approval.Answer, text string) {
	g, r, asked := a.g, a.r, &a.subject
	if text == "" {
		text = sentence(answer)
	}
	if a.instead != nil {
		asked = a.instead
		r = a.put(asked)
	}
	c, _ := g.again(r) // what is outside now has no place in what is decided, nor in its digest
	call, d := g.decide(c)
	if d.Verdict == policy.Deny {
		g.deny(r, codeRule, "it was allowed, and is refused now: "+d.Reason+" ("+d.Rule+")", d.Change, d.Reason, a.reply)
		return
	}
	now := g.subject(c, call, d)
	if now.digest != asked.digest {
		g.deny(r, codeRefused, "it was allowed, and is not what was asked about any more: what it names leads elsewhere now, or the server changed the tool", "",
			"what it names, or the tool itself, changed while it waited for the user", a.reply)
		return
	}
	if now.there() != asked.there() { // it was shown as new, or as something that is there
		g.deny(r, codeRefused, "it was allowed, and is not what was asked about any more: what it names was made or taken away meanwhile", "",
			"what it names was made or taken away while it waited for the user", a.reply)
		return
	}
	r.Trail.Begun = g.opt.Now() // a person's time is not the server's
	r.Trail.Add(exchange.Note{Stage: "approve", Code: codeApproved, Text: text})
	var changedArgs []byte
	if a.instead != nil {
		changedArgs, _ = wire.Get(r.Msg.Params(), "arguments")
	}
	a.next.Handle(a.ctx, c, func(o exchange.Outcome) {
		if _, interim := exchange.Interim(r, o); interim {
			hold := exchange.Held{heldApproval: heldCall(asked.digest, changedArgs)}
			for k, v := range o.Hold {
				hold[k] = v
			}
			o.Hold = hold
		} else if a.instead != nil {
			o = tellChanged(o, trailID(r), changes(a.args, asked.args, true))
		}
		a.reply(o)
	})
}

// again looks at a call that waited as if it came now: which roots hold, and whether its paths are inside. A server of ours
// looks at them by itself. The error says what of it is refused now.
func (g *Guard) again(r *exchange.Request) (*exchange.Request, error) {
	c := *r
	c.Roots = g.session(r).state().Set
	if g.contained || !pathargs.Judges(r.Msg.Method()) {
		return &c, nil
	}
	args, err := g.findArgs(&c)
	if err != nil {
		return &c, err
	}
	v := g.judgeArgs(args, c.Roots)
	d := detail{judged: v.Judged}
	if !slices.ContainsFunc(r.Trail.Notes(), func(n exchange.Note) bool { return n.Stage == "paths" }) {
		d.paths = logPaths(v, "") // else what is for the log is there already
	}
	r.Trail.Add(exchange.Note{Stage: "paths", Detail: d})
	if refused := v.Refused(); len(refused) > 0 {
		_, text, _, _ := g.explain(refused[0], g.session(r).state(), wire.GetString(r.Msg.Params(), "name"))
		return &c, errors.New(text)
	}
	return &c, nil
}

// sessionOf names the session of a request where grants are kept.
func (g *Guard) sessionOf(r *exchange.Request) string {
	if r.Session == nil || g.opt.Approval.Run == "" {
		return ""
	}
	return g.opt.Approval.Run + ":" + r.Session.ID
}

// wait tells a client that its call waits for a person.
type wait struct {
	once sync.Once
	done chan struct{}
}

func (w *wait) over() {
	if w != nil {
		w.once.Do(func() { close(w.done) })
	}
}

// begun is when this process did, for numbers that only grow.
var begun = time.Now()

// wait begins to tell the client of r, if it gave a token, now and then until it is over. The numbers grow also where a call
// waits a second time, and are small, so that those of the server, which come later, are larger.
func (g *Guard) wait(ctx context.Context, r *exchange.Request) *wait {
	w := &wait{done: make(chan struct{})}
	token, ok := wire.Get(r.Msg.Meta(), "progressToken")
	if !ok || r.Caller == nil {
		return w
	}
	text := fmt.Sprintf("Waiting for the user's yes (call %s)", trailID(r))
	if g.opt.Approval.Terminal {
		text += ": `rootbound approve` in a terminal"
	}
	go func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			p := append(append([]byte(`{"progressToken":`), token...), fmt.Sprintf(`,"progress":%.15f,"message":`, time.Since(begun).Seconds()/1e9)...)
			p = append(wire.AppendQuote(p, text), '}')
			r.Caller.Notify(wire.NewNotification("notifications/progress", p))
			select {
			case <-tick.C:
			case <-w.done:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return w
}
