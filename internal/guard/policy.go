package guard

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// Policy is what is decided about calls, and what is believed of what tools do.
type Policy struct {
	// Rules decide. Nil decides nothing: no call is asked for.
	Rules *policy.Policy
	// Ask is who asks a person, where that is decided.
	Ask policy.Mode
	// Operator is what the operator says of tools, by name; "*" is all others.
	Operator map[string]Effect
	// Profile is what a shipped profile says of a tool with a definition of this hash; nil says nothing.
	Profile func(tool, hash string) (Effect, bool)
	// Bound says that the kernel lets the server reach no network and write nothing but its roots, so that it can change
	// nothing while these are read-only.
	Bound bool
	// TrustAnnotations believes what the server says of its tools.
	TrustAnnotations bool
	// PublishAnnotations tells the client what is believed, in the place of what the server says.
	PublishAnnotations bool
}

// Effect is what a tool does at most, and who says so.
type Effect struct {
	Effect policy.Effect
	From   string
	// Code tells who says so, where it is not a file: "own", "profile", "annotations" or "kernel".
	Code string
}

// SetPolicy puts another policy in force, as Options.Policy.
func (g *Guard) SetPolicy(p Policy) {
	g.policy.Store(&p)
	g.checkTools()
}

// ruled is what policy leaves in the trail for the log.
type ruled struct{ rule string }

// decide says what becomes of a tools/call, and of what it was decided. It may ask the disk where paths lead.
func (g *Guard) decide(r *exchange.Request) (policy.Call, policy.Decision) {
	p := g.policy.Load()
	name, _ := wire.Get(r.Msg.Params(), "name")
	args := r.Msg.Arguments()
	c := policy.Call{Server: g.opt.Server, Tool: r.Msg.Name(), Args: args}
	object := len(args) == 0 || args[0] == '{' || string(args) == "null" || g.contained // ours says itself what is wrong
	if len(name) == 0 || name[0] != '"' || !object {
		return c, policy.Decision{Rule: "the protocol", Reason: "it does not say in the protocol's way what is called"}
	}
	e := g.effect(p, c.Tool)
	c.Effect, c.From, c.FromCode = e.Effect, e.From, e.Code
	var refused *pathargs.Judged
	var d policy.Decision
	if g.contained && !p.Rules.OfPaths() { // ours finds out where they lead anyway: only a question has to say so first
		d = p.Rules.Decide(c)
	}
	if d.Verdict != policy.Allow {
		c.Paths, refused = g.policyPaths(r)
		d = p.Rules.Decide(c)
	}
	if c.Effect == policy.Unknown && p.Profile != nil && d.Verdict == policy.Ask {
		d.Change += "\nthe version of the server in its command: of some versions it is known what their tools do"
		if _, listed := g.listed(c.Tool); !listed {
			d.Change += "\na client that lists the tools before it calls one: by their definitions it is known what they do"
		}
	}
	if refused != nil && d.Verdict == policy.Ask { // the server would refuse it, after a person was asked
		d = policy.Decision{Rule: byRoots, Default: true}
		d.Reason, d.Change = g.unheld(refused, r.Roots)
		r.Trail.Add(exchange.Note{Stage: "policy", Detail: detail{paths: logPaths(pathargs.Verdict{Judged: []pathargs.Judged{*refused}}, calllog.CodeOutside)}})
	}
	r.Trail.Add(exchange.Note{Stage: "policy", Detail: ruled{d.Rule}})
	return c, d
}

// byRoots is the rule of what the roots refuse, as package policy has it. The reason says so.
const byRoots = "the roots"

// unheld says for a model why the roots do not allow a path, and what would.
func (g *Guard) unheld(j *pathargs.Judged, set roots.Set) (reason, change string) {
	arg := fmt.Sprintf("the argument %q", strings.TrimPrefix(j.Pointer, "/"))
	switch {
	case set.Len() == 0:
		return "no directory is open to this server now", ""
	case j.Refusal == pathargs.Forbidden && g.own(j.Place.Path, j.Need):
		return arg + " is a file that decides what this server may do, which it may not change", ""
	case j.Refusal == pathargs.Forbidden && j.Place.Dir.Access == roots.Read:
		return fmt.Sprintf("%s is in the directory %q, which is read-only", arg, rootName(j.Place.Dir)), g.opt.Rights(j.Place.Dir.Path)
	case j.Refusal == pathargs.Forbidden:
		return fmt.Sprintf("%s is in the directory %q, which does not allow that", arg, rootName(j.Place.Dir)), g.opt.Rights(j.Place.Dir.Path)
	case j.Refusal == pathargs.Unresolvable:
		return "it cannot be known where " + arg + " leads", ""
	}
	return arg + " leads outside the roots", g.opt.Widen(filepath.Dir(j.Place.Path))
}

// means says where a server of ours will go by a path argument, which may be relative to any root: see fsserver.Server.
type means interface {
	Means(ctx context.Context, set roots.Set, arg string, writes bool) (string, error)
}

// policyPaths are the paths of a call as the paths stage judged them. Before a server that judges them where it opens them,
// they are judged here for what a rule and a person have to know; refused is the first that the roots do not allow.
func (g *Guard) policyPaths(r *exchange.Request) (list []policy.Path, refused *pathargs.Judged) {
	var judged []pathargs.Judged
	known := false
	for _, n := range r.Trail.Notes() {
		if d, ok := n.Detail.(detail); ok && n.Stage == "paths" {
			judged, known = d.judged, true
		}
	}
	if !known && g.contained {
		args, err := g.findArgs(r)
		if err != nil {
			return nil, &pathargs.Judged{Refusal: pathargs.Unresolvable, Err: err}
		}
		judged = g.judgeOurs(args, r.Roots)
	}
	for i, j := range judged {
		if j.Refusal != pathargs.NotRefused {
			if refused == nil {
				refused = &judged[i]
			}
			continue
		}
		for _, p := range j.Places {
			list = append(list, policy.Path{
				Arg: j.Pointer, Given: j.Value, Resolved: p.Path, Exists: p.Exists,
				Root: p.Dir.Path, Rel: p.Rel, Rights: p.Dir.Access, Need: j.Need,
			})
		}
	}
	return list, refused
}

// judgeOurs is judgeArgs for a server of ours, of which it is known where it goes by a relative path.
func (g *Guard) judgeOurs(args []pathargs.Argument, set roots.Set) []pathargs.Judged {
	given := map[string]string{}
	for i, a := range args {
		if g.means == nil || !a.Why.Judged() {
			continue
		}
		if path, err := g.means.Means(context.Background(), set, a.Value, a.Need&^roots.Read != 0); err == nil {
			given[a.Pointer], args[i].Value = a.Value, path
		}
	}
	judged := g.judgeArgs(args, set).Judged
	for i := range judged {
		if value, ok := given[judged[i].Pointer]; ok {
			judged[i].Value = value
		}
	}
	return judged
}

// effect is what is known of what a tool does, from whom is believed first.
func (g *Guard) effect(p *Policy, tool string) Effect {
	if p.Bound && g.heldReadOnly() {
		return Effect{policy.Read, "the kernel, which holds the server read-only and without network", "kernel"}
	}
	for _, name := range []string{tool, "*"} {
		if e, ok := p.Operator[name]; ok {
			return e
		}
	}
	t, listed := g.listed(tool)
	if !listed {
		return Effect{}
	}
	if p.Profile != nil {
		if e, ok := p.Profile(tool, t.hash); ok {
			return e
		}
	}
	if p.TrustAnnotations {
		return Effect{t.claims(), "the server's own annotations, which you trust", "annotations"}
	}
	return Effect{}
}

// heldReadOnly reports whether the process that runs now was started with nothing that it may write to.
func (g *Guard) heldReadOnly() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.started != nil && !slices.ContainsFunc(g.started.Dirs(), func(d roots.Dir) bool { return d.Access&^roots.Read != 0 })
}

// shownReadOnly reports whether the client was told that a tool only reads.
func (g *Guard) shownReadOnly(tool string) bool {
	t, _ := g.listed(tool)
	return t.shown.Load()
}

// clientName is the name that the client gives itself.
func clientName(r *exchange.Request) string {
	if r.Era == exchange.Modern {
		return strings.ToValidUTF8(wire.GetString(r.Msg.Meta(), exchange.MetaClient, "name"), "")
	}
	return r.Session.Client().Name
}

// Try says what would become of a call with the configured directories and nothing granted, without making it.
func (g *Guard) Try(tool string, args []byte) (policy.Call, policy.Decision) {
	params := wire.SetMember(nil, wire.Quote(tool), "name")
	if args != nil {
		params = wire.SetMember(params, args, "arguments")
	}
	r := &exchange.Request{
		Msg: wire.NewRequest(exchange.NewID(), "tools/call", params), Roots: g.Configured(), Trail: exchange.NewTrail("", g.opt.Now()),
	}
	r = g.fillDefaults(r)
	found, err := g.findArgs(r)
	if err != nil {
		return policy.Call{Server: g.opt.Server, Tool: tool}, policy.Decision{Rule: "the protocol", Reason: err.Error()}
	}
	v := g.judgeArgs(found, r.Roots)
	r.Trail.Add(exchange.Note{Stage: "paths", Detail: detail{judged: v.Judged}})
	c, d := g.decide(r)
	if d.Verdict == policy.Allow {
		d = g.policy.Load().Rules.Explain(c)
	}
	if refused := v.Refused(); len(refused) > 0 {
		j := refused[0]
		d = policy.Decision{Rule: "the roots", Default: true, Reason: visible(j.Pointer) + " leads to " + visible(j.Place.Path) + ", which is " + j.Refusal.String()}
	}
	return c, d
}

// Learn takes a result of tools/list from elsewhere than the server.
func (g *Guard) Learn(result []byte) {
	g.catalog.Learn("", result)
	g.learn("", wire.NewResult(exchange.NewID(), result), g.policy.Load())
}

// Faults are the rules that are for tools and arguments which the server does not have, as far as its tools are known.
func (g *Guard) Faults() []string {
	var list []string
	if tools := g.allTools(); tools != nil {
		for _, f := range g.policy.Load().Rules.CheckTools(g.opt.Server, tools) {
			list = append(list, faultText(f))
		}
	}
	return list
}

func faultText(f *policy.Fault) string {
	text := f.Error()
	if near, ok := launch.Nearest(f.Word, f.Known); ok {
		text += fmt.Sprintf(": did you mean %q?", near)
	}
	return text
}

// Worst is the hardest that can become of calls of a tool, whatever their arguments are, and the rule that it comes from.
func (g *Guard) Worst(tool string) (policy.Call, policy.Verdict, string) {
	p := g.policy.Load()
	c := policy.Call{Server: g.opt.Server, Tool: tool}
	e := g.effect(p, tool)
	c.Effect, c.From, c.FromCode = e.Effect, e.From, e.Code
	verdict, rule := p.Rules.Outlook(c)
	return c, verdict, rule
}
