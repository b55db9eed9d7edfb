package guard

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/roots"
)

// pathsStage judges the paths that a request names against the roots that hold for it, and learns from the server's own
// lists which arguments are paths.
func (g *Guard) pathsStage(next exchange.Handler) exchange.Handler {
	return exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		switch {
		case r.Msg.Kind() == wire.Request && pathargs.Judges(r.Msg.Method()):
			g.judge(ctx, r, next, reply)
		case r.Msg.Method() == "tools/list":
			cursor := wire.GetString(r.Msg.Params(), "cursor")
			next.Handle(ctx, r, func(o exchange.Outcome) {
				if o.Msg != nil && o.Msg.Result() != nil {
					g.catalog.Learn(cursor, o.Msg.Result())
				}
				reply(o)
			})
		default:
			next.Handle(ctx, r, reply)
		}
	})
}

// againStage stands before a server of ours that judges paths where it opens them. When it denied one, the client may have
// forgotten to tell of a change: it is asked, and the request, if it has done nothing yet, is tried once more.
func (g *Guard) againStage(next exchange.Handler) exchange.Handler {
	return exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		next.Handle(ctx, r, func(o exchange.Outcome) {
			notes := r.Trail.Notes()
			i := slices.IndexFunc(notes, func(n exchange.Note) bool { return n.Denied || n.Part })
			if i < 0 || r.Trail.Recorded() {
				reply(o)
				return
			}
			s, path := g.session(r), notes[i].Path
			if path == "" || slices.Contains(unserved, notes[i].Code) { // there is no directory, or no other one would allow it
				reply(s.orConsent(r, "", o))
				return
			}
			s.denied(ctx, r, path, reply, func(set roots.Set, final bool) {
				if final {
					reply(s.orConsent(r, path, o))
					return
				}
				c := *r
				c.Roots = set
				decided, still := g.decidedStill(r, &c)
				if !still {
					reply(s.orConsent(r, path, o))
					return
				}
				r.Trail.Reset(g.opt.Now())
				for _, n := range decided {
					r.Trail.Add(n)
				}
				next.Handle(ctx, &c, func(o exchange.Outcome) { reply(s.orConsent(r, path, o)) })
			})
		})
	})
}

// decidedStill reports whether what was decided about r holds for c, the same with other roots, where a relative path may lead
// elsewhere: a rule allows that too, or it is what a person said yes to. Decided is what the trail has of it.
func (g *Guard) decidedStill(r, c *exchange.Request) (decided []exchange.Note, still bool) {
	if g.policy.Load().Rules == nil || r.Msg.Method() != "tools/call" {
		return nil, true
	}
	left := false
	for _, n := range r.Trail.Notes() {
		if n.Stage == "approve" || n.Stage == "policy" {
			decided = append(decided, n)
			left = left || n.Code == codeLeft
		}
	}
	before, b := g.decide(r)
	after, a := g.decide(c)
	switch {
	case left, a.Verdict == policy.Allow:
		return decided, a.Verdict != policy.Deny
	case a.Verdict == policy.Deny:
		return nil, false
	}
	return decided, g.subject(c, after, a).digest == g.subject(r, before, b).digest
}

func (g *Guard) judge(ctx context.Context, r *exchange.Request, next exchange.Handler, reply func(exchange.Outcome)) {
	r = g.fillDefaults(r)
	args, err := g.findArgs(r)
	if err != nil {
		r.Trail.Add(exchange.Note{Stage: "paths", Denied: true, Code: "arguments", Text: err.Error()})
		reply(exchange.Refused(r, fmt.Sprintf("Refused by Rootbound (call %s): %v.", r.Trail.ID, err), []byte(`{"reason":"arguments"}`)))
		return
	}
	if len(args) == 0 {
		next.Handle(ctx, r, reply)
		return
	}
	v := g.judgeArgs(args, r.Roots)
	refused := v.Refused()
	if len(refused) == 0 {
		r.Trail.Add(exchange.Note{Stage: "paths", Detail: detail{logPaths(v, ""), v.Judged}})
		next.Handle(ctx, r, reply)
		return
	}
	s := g.session(r)
	if g.rules.Load().paths.Where == pathargs.Remote { // no list of the client has anything to do with it
		g.refuse(r, r.Roots, v, refused[0], s.state(), reply)
		return
	}
	s.denied(ctx, r, refused[0].Place.Path, reply, func(set roots.Set, final bool) {
		if !final {
			v = g.judgeArgs(args, set)
			refused = v.Refused()
		}
		if len(refused) == 0 {
			c := *r
			c.Roots = set
			r.Trail.Add(exchange.Note{Stage: "paths", Detail: detail{logPaths(v, ""), v.Judged}})
			next.Handle(ctx, &c, reply)
			return
		}
		g.refuse(r, set, v, refused[0], s.state(), reply)
	})
}

// refuse tells the model which argument and what would work, the person where it would have led and what to write, and
// the log everything.
func (g *Guard) refuse(r *exchange.Request, set roots.Set, v pathargs.Verdict, j pathargs.Judged, state roots.State, reply func(exchange.Outcome)) {
	code, text, allow, fix := g.explain(j, state, wire.GetString(r.Msg.Params(), "name"))
	r.Trail.Add(exchange.Note{Stage: "paths", Denied: true, Code: code, Text: text, Fix: strings.Trim(allow+"\n"+fix, "\n"), Detail: detail{logPaths(v, code), v.Judged}})
	way := fix
	if allow != "" {
		way = strings.TrimSuffix("to allow it: "+allow+"; or "+fix, "; or ")
	}
	g.opt.Warn(strings.TrimSuffix(fmt.Sprintf("refused %s (call %s): %s (%s)", method(r), r.Trail.ID, text, way), " ()"))
	data := append(wire.AppendQuote([]byte(`{"reason":`), code), `,"call":`...)
	data = append(wire.AppendQuote(data, r.Trail.ID), '}')
	model := modelText(code, j, set, g.allow(""), r.Trail.ID)
	if paths := g.rules.Load().paths; paths.Where == pathargs.Remote && code == calllog.CodeOutside {
		model = fmt.Sprintf("Refused by Rootbound (call %s): the argument %q is outside the directories of the server's machine that are open (%s). Use a path inside of them.",
			r.Trail.ID, strings.TrimPrefix(j.Pointer, "/"), strings.Join(paths.Dirs, ", "))
	}
	reply(exchange.Refused(r, model, data))
}

const (
	// codeUnresolvable is the code of a path of which it cannot be known where it leads.
	codeUnresolvable = "unresolvable"
	// codeClientList is the code of a path that is configured and not in the client's list.
	codeClientList = "client-list"
)

// modelText is for the model: no path of this machine that it did not write itself. Allow is the command that consents.
func modelText(code string, j pathargs.Judged, set roots.Set, allow, id string) string {
	what := fmt.Sprintf("the argument %q", strings.TrimPrefix(j.Pointer, "/"))
	switch code {
	case CodeOwn:
		return fmt.Sprintf("Refused by Rootbound (call %s): %s is a file that decides what this server may do, which it may not change.", id, what)
	case codeConsent:
		return consentText(what, allow, id)
	case calllog.CodeNoRoots:
		return fmt.Sprintf("Refused by Rootbound (call %s): %s is a local path, and no directory is open to this server. Ask the user to configure one.", id, what)
	case calllog.CodeReadOnly:
		return fmt.Sprintf("Refused by Rootbound (call %s): %s is in the directory %q, where this is not allowed. Reading is.", id, what, rootName(j.Place.Dir))
	}
	if code == codeUnresolvable {
		return fmt.Sprintf("Refused by Rootbound (call %s): it cannot be known where %s leads. Use a path without unusual links or characters.", id, what)
	}
	var names []string
	for _, d := range set.Dirs() {
		names = append(names, fmt.Sprintf("%q", rootName(d)))
	}
	if len(names) == 0 {
		return fmt.Sprintf("Refused by Rootbound (call %s): %s is outside the directories that are open to this server, which are none now. Ask the user.", id, what)
	}
	return fmt.Sprintf("Refused by Rootbound (call %s): %s is outside the directories that are open to this server (%s). Use a path inside of them.", id, what, strings.Join(names, ", "))
}

// explain is for the person and the log: the code, where the path leads, the option that would allow it, and what else to
// write.
func (g *Guard) explain(j pathargs.Judged, state roots.State, tool string) (code, text, allow, fix string) {
	where := j.Place.Path
	if where == "" {
		where = j.Value
	}
	text = fmt.Sprintf("%s is %q", visible(j.Pointer), j.Value)
	if where != j.Value {
		text += ", which leads to " + strconv.Quote(where)
	}
	if j.Reading != "" {
		text += " (" + j.Reading + ")"
	}
	if paths := g.rules.Load().paths; paths.Where == pathargs.Remote && j.Refusal == pathargs.Outside {
		text += ", outside the directories of the server's machine that are open: " + strings.Join(paths.Dirs, ", ")
		if path.IsAbs(where) {
			allow = "--remote-root " + ShellQuote(path.Dir(where))
		}
		if j.Why == pathargs.ByName && tool != "" {
			fix = fmt.Sprintf("not_paths = [%q] for the tool %q, if that is no path", strings.TrimPrefix(j.Pointer, "/"), tool)
		}
		return calllog.CodeOutside, text, allow, fix
	}
	dir := where
	if info, err := os.Stat(where); err != nil || !info.IsDir() {
		dir = filepath.Dir(where)
	}
	switch {
	case j.Refusal == pathargs.Forbidden && g.own(j.Place.Path, j.Need):
		return CodeOwn, text + ", which steers Rootbound itself: no server changes what holds it", "", ""
	case j.Refusal == pathargs.Forbidden:
		code = calllog.CodeReadOnly
		text += fmt.Sprintf(", in %s, where that is not allowed", visible(rootName(j.Place.Dir)))
		allow = g.opt.Rights(j.Place.Dir.Path)
	case state.Why == roots.NothingConfigured && (j.Refusal != pathargs.Unresolvable || g.rules.Load().paths.Where != pathargs.Remote):
		// What is relative here is so to nothing.
		code = calllog.CodeNoRoots
		text += ", and no directory is configured"
		if j.Refusal == pathargs.Outside && !roots.Broad(dir) {
			allow = g.opt.Widen(dir)
		}
	case j.Refusal == pathargs.Unresolvable:
		code = codeUnresolvable
		text += fmt.Sprintf(", which cannot be resolved: %v", j.Err)
	default:
		if d, _, waits := state.Waiting.Match(where); waits {
			return codeConsent, text + ", in a directory that the client opened and that waits for your consent", strings.Trim(g.allow(d.Path), "`"), ""
		}
		code = calllog.CodeOutside
		text += ", outside the roots; " + state.String()
		allow = g.opt.Widen(dir)
		if _, _, configured := state.Configured.Match(where); configured {
			code, allow, fix = codeClientList, "", "open it in the client, or pin the root, or start with --client-roots ignore"
		} else if roots.Broad(dir) {
			allow = "" // nothing that wide is offered
		}
	}
	if j.Why == pathargs.ByName && tool != "" && fix == "" {
		fix = fmt.Sprintf("not_paths = [%q] for the tool %q, if that is no path", strings.TrimPrefix(j.Pointer, "/"), tool)
	}
	return code, text, allow, fix
}

// visible is a text of a peer with nothing in it that a terminal obeys.
func visible(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}

// ShellQuote writes a directory as a shell reads it.
func ShellQuote(dir string) string {
	if strings.ContainsAny(dir, " \t\n'\"\\$&;|<>()*?[]{}~#`!") {
		return "'" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	}
	return dir
}

// method names what was called, for a person.
func method(r *exchange.Request) string {
	if tool := wire.GetString(r.Msg.Params(), "name"); tool != "" {
		return strconv.Quote(tool)
	}
	return r.Msg.Method()
}

func rootName(d roots.Dir) string {
	if d.Name != "" {
		return d.Name
	}
	return filepath.Base(d.Path)
}

// fillDefaults gives a call the arguments that the configuration has for it and the client left out.
func (g *Guard) fillDefaults(r *exchange.Request) *exchange.Request {
	defaults := g.rules.Load().defaults
	if len(defaults) == 0 || r.Msg.Method() != "tools/call" {
		return r
	}
	for _, tool := range []string{wire.GetString(r.Msg.Params(), "name"), "*"} {
		for _, arg := range slices.Sorted(maps.Keys(defaults[tool])) { // the same call gets the same bytes
			value := defaults[tool][arg]
			if _, given := wire.Get(r.Msg.Params(), "arguments", arg); given {
				continue
			}
			text, err := launch.FillText(value, r.Roots)
			if err != nil {
				continue // there is no root for it: the call goes on as it came
			}
			r = r.With(r.Msg.WithParams(wire.SetMember(r.Msg.Params(), wire.Quote(text), "arguments", arg)))
		}
	}
	return r
}

// logPaths are the judged and the seen arguments as the log has them. Code is why the request is refused.
func logPaths(v pathargs.Verdict, code string) []calllog.Path {
	var out []calllog.Path
	for _, j := range v.Judged {
		p := calllog.Path{Arg: j.Pointer, Given: j.Value, Resolved: j.Place.Path, Verdict: calllog.Allow, Code: j.Why.String()}
		if j.Place.Inside {
			p.Root, p.Rel = rootName(j.Place.Dir), j.Place.Rel
		}
		if j.Refusal != pathargs.NotRefused {
			p.Verdict = calllog.Deny
			switch {
			case j.Refusal == pathargs.Outside, code == CodeOwn && j.Refusal == pathargs.Forbidden:
				p.Code = code
			case j.Refusal == pathargs.Forbidden:
				p.Code = calllog.CodeReadOnly
			default:
				p.Code = codeUnresolvable
			}
			if info, err := os.Stat(j.Place.Path); err == nil {
				p.Dir = info.IsDir()
			}
		}
		out = append(out, p)
	}
	for _, a := range v.Unjudged {
		out = append(out, calllog.Path{Arg: a.Pointer, Given: a.Value, Code: a.Why.String()})
	}
	return out
}
