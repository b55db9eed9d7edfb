package doctor

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/rootbound/rootbound/internal/calllog"
)

// Symptom is a trouble that people look for.
type Symptom struct {
	// Name is what to type, Means what people say.
	Name, Means string
	// Says is what is behind it, when nothing that can be seen here is.
	Says string

	words []string // of which one tells it, in a text of several
}

// Symptoms are those that are known.
var Symptoms = []Symptom{
	{"never-asked", "roots/list never appears",
		"A server asks only if its client declared roots, and mostly once, right after the handshake: start the client anew and look at `rootbound log --roots`.",
		[]string{"never", "appears", "asks"}},
	{"empty-roots", "the list of roots is empty",
		"A client without an open folder has none to send; open one, and call a tool.", []string{"empty"}},
	{"bad-uri", "a root is refused, or its URI is malformed",
		"What was sent is a URI by the letter; where a server refuses it all the same, it reads URIs of its own system only.", []string{"uri", "uris", "malformed", "windows", "refused"}},
	{"old-path", "the server is still on the old path after a switch",
		"The server knows the new list; a model that goes on with paths it has seen is refused and told the directories.", []string{"old", "stale", "switch"}},
	{"disagree", "the arguments and the roots disagree",
		"Arguments and roots name the same places.", []string{"disagree", "arguments", "args", "mismatch"}},
	{"outside-read", "a read outside is not refused",
		"What was tried outside was refused. What a server reads on its own account no check sees: `rootbound run --confine` has the kernel refuse it.", []string{"outside", "read", "reads"}},
}

// NamedSymptom returns the symptom of a name.
func NamedSymptom(name string) (Symptom, bool) {
	i := slices.IndexFunc(Symptoms, func(s Symptom) bool { return name == s.Name || strings.EqualFold(name, s.Means) })
	if i < 0 {
		return Symptom{}, false
	}
	return Symptoms[i], true
}

// SpokenSymptom returns the symptom that several words speak of: of two the one with more of its words.
func SpokenSymptom(text string) (Symptom, bool) {
	fields := strings.Fields(strings.ToLower(text))
	if len(fields) < 2 {
		return Symptom{}, false
	}
	best, most := Symptom{}, 0
	for _, s := range Symptoms {
		n := 0
		for _, f := range fields {
			if slices.Contains(s.words, strings.Trim(f, ".,;:!?")) {
				n++
			}
		}
		if n > most {
			best, most = s, n
		}
	}
	return best, most > 0
}

// Ran is what the log has of the last run of a server behind Rootbound.
type Ran struct {
	Server string
	Start  calllog.Entry
	// Declared says whether roots were declared to the server, nil where no handshake is logged.
	Declared *bool
	// Events are what happened to roots, in order.
	Events []calllog.RootsEvent
	// Warnings are what was said of the roots.
	Warnings []calllog.Entry
	// Denied are the calls that were refused as outside, Unjudged those that went through with a path that nobody judged.
	Denied, Unjudged []calllog.Entry
	// Calls counts calls of tools and reads of resources.
	Calls int
}

// ReadRan takes what is to be known of a run out of its log. Declared is the code by which the guard says that it declares
// roots.
func ReadRan(entries iter.Seq2[calllog.Entry, error], declared string) (Ran, error) {
	var r Ran
	events, err := calllog.RootsEvents(func(yield func(calllog.Entry, error) bool) {
		for e, err := range entries {
			if err == nil {
				r.take(e, declared)
			}
			if !yield(e, err) {
				return
			}
		}
	})
	r.Events = events
	return r, err
}

func (r *Ran) take(e calllog.Entry, declared string) {
	switch {
	case e.Kind == calllog.Start:
		r.Start, r.Server = e, e.Server
	case e.Kind == calllog.Note && e.Code == "roots":
		r.Warnings = append(r.Warnings, e)
	case e.Kind != calllog.Call:
	case e.Method == "initialize" || e.Method == "server/discover":
		yes := e.Code == declared
		r.Declared = &yes
	case e.Method == "tools/call" || e.Method == "resources/read":
		r.Calls++
		if e.Verdict == calllog.Deny && (e.Code == calllog.CodeOutside || e.Code == calllog.CodeNoRoots) {
			r.Denied = append(r.Denied, e)
		}
		if e.Verdict == calllog.Allow && slices.ContainsFunc(e.Paths, func(p calllog.Path) bool { return p.Verdict == "" }) {
			r.Unjudged = append(r.Unjudged, e)
		}
	}
}

// mark is what a step came to.
type mark string

const (
	holds   mark = "✔"
	fails   mark = "✘"
	unknown mark = "–"
)

// step is one link of the chain by which a directory gets from a client to a refusal.
type step struct {
	name  string
	mark  mark
	facts []string
	fix   string
}

// Explanation is what is known of a symptom, for each server that it may be about.
type Explanation struct {
	Symptom  Symptom
	subjects []subject
}

// subject is a server with its chain, up to the first link that fails.
type subject struct {
	title string
	steps []step
}

// Explain looks for the cause of a symptom: first at what runs behind Rootbound, as its log has it, then at what is configured
// without. Server is the name of the only one to look at, or empty.
func Explain(s Symptom, r *Report, ran []Ran, server string) Explanation {
	x := Explanation{Symptom: s}
	add := func(title string, links ...func() step) {
		sub := subject{title: title}
		for _, link := range links {
			l := link()
			sub.steps = append(sub.steps, l)
			if l.mark == fails {
				break
			}
		}
		x.subjects = append(x.subjects, sub)
	}
	for _, run := range ran {
		if server == "" || run.Server == server {
			title := fmt.Sprintf("%s, behind Rootbound, since %s", run.Server, run.Start.Time.Local().Format("2006-01-02 15:04"))
			add(title, run.capability, run.pair, run.outside, run.notification)
		}
	}
	for _, entry := range r.Servers {
		if entry.Guarded || entry.Disabled || !entry.filesystem || server != "" && entry.Name != server {
			continue
		}
		c := configured{entry, r}
		add(fmt.Sprintf("%s of %s, without Rootbound", entry.Name, c.client().name), c.capability, c.pair, c.outside, c.notification)
	}
	return x
}

const (
	linkCapability   = "roots are declared to the server"
	linkPair         = "roots/list is asked and answered"
	linkOutside      = "a read outside is refused"
	linkNotification = "a change reaches the server"
)

func (r Ran) capability() step {
	s := step{name: linkCapability, mark: holds}
	switch {
	case r.Declared == nil:
		s.mark = unknown
		s.facts = append(s.facts, "no handshake is in its log")
	case !*r.Declared && r.elsewhere():
		s.mark = unknown
		s.facts = append(s.facts, "it is reached over HTTP, and told roots only with --share-roots")
	case !*r.Declared:
		s.mark = fails
		s.facts = append(s.facts, "nothing is configured for it, so Rootbound declares none")
		s.fix = "name a directory: rootbound run --root DIR -- COMMAND, or rootbound roots add DIR"
	default:
		s.facts = append(s.facts, "by Rootbound, whatever the client does")
	}
	asked := 0
	for _, ev := range r.Events {
		if ev.Kind == calllog.RootsAsked && ev.From == calllog.Guard {
			asked++
		}
	}
	switch {
	case asked > 0:
		s.facts = append(s.facts, fmt.Sprintf("its client declares them, too, and was asked %s", times(asked)))
	case r.Start.ClientRoots == "ignore":
		s.facts = append(s.facts, "its client is not asked: client_roots is ignore")
	case r.Calls > 0:
		s.facts = append(s.facts, "its client was not asked: it declares none, and what is configured holds")
	}
	return s
}

// ours reports whether Rootbound itself serves the files: there is no server behind it.
func (r Ran) ours() bool { return slices.Contains(r.Start.Layers, "contained") }

// elsewhere reports whether the server has a URL.
func (r Ran) elsewhere() bool {
	return len(r.Start.Command) == 1 && strings.Contains(r.Start.Command[0], "://")
}

func (r Ran) pair() step {
	s := step{name: linkPair, mark: unknown}
	var client, server *calllog.RootsEvent
	for i := range r.Events {
		ev := &r.Events[i]
		switch {
		case ev.Kind == calllog.RootsAsked && ev.From == calllog.Guard:
			client = ev
		case ev.Kind == calllog.RootsAsked && ev.From == calllog.Server:
			server = ev
		}
	}
	for _, w := range r.Warnings {
		s.facts = append(s.facts, clock(w.Time)+" "+w.Reason)
		if strings.Contains(w.Reason, "refusing root") {
			s.mark = fails
			s.fix = "write the root as the text says, in the client or in what configures it; the other roots hold"
		}
	}
	if client != nil {
		s.facts = append(s.facts, "the client answered at "+clock(client.Time)+": "+answered(client))
		if client.Answer != nil && client.Answer.Outcome == calllog.OK && len(client.Answer.Roots) == 0 && s.mark != fails {
			s.facts = append(s.facts, "an empty first answer is no opinion, and what is configured holds; one that becomes empty takes everything away")
		}
	}
	switch {
	case r.ours():
		s.facts = append(s.facts, "Rootbound serves the files itself, and has the list without asking")
		if s.mark != fails {
			s.mark = holds
		}
	case server == nil && (r.Declared == nil || !slices.Contains(r.Start.Layers, "told")):
		s.facts = append(s.facts, "the server was not told that there are roots to ask for")
	case server == nil:
		s.facts = append(s.facts, "the server has not asked for the list: it goes by its arguments, or by nothing")
		if s.mark != fails {
			s.fix = "put {roots} into its arguments, and Rootbound starts it with them"
		}
	case server.Answer == nil || server.Answer.Outcome != calllog.OK:
		s.mark = fails
		s.facts = append(s.facts, "the server asked at "+clock(server.Time)+" and got "+answered(server))
		s.fix = "configure a directory: rootbound config show --origin says what holds"
	case len(server.Answer.Roots) == 0 && r.elsewhere() && !slices.Contains(r.Start.Layers, "told"):
		s.facts = append(s.facts, "the server asked at "+clock(server.Time)+" and got an empty list, as it is to")
	case len(server.Answer.Roots) == 0:
		s.mark = fails
		s.facts = append(s.facts, "the server asked at "+clock(server.Time)+" and got an empty list: nothing is both configured and in the client's list")
		s.fix = "configure a directory that the client has open, or write --client-roots ignore"
	default:
		s.facts = append(s.facts, "the server asked at "+clock(server.Time)+" and got "+answered(server))
		if s.mark != fails {
			s.mark = holds
		}
	}
	return s
}

func answered(ev *calllog.RootsEvent) string {
	switch a := ev.Answer; {
	case a == nil:
		return "no answer"
	case a.Outcome != calllog.OK:
		return "an error: " + a.Reason
	case len(a.Roots) == 0:
		return "an empty list"
	default:
		var list []string
		for _, root := range a.Roots {
			list = append(list, root.URI)
		}
		if len(list) > 4 {
			list = append(list[:4], fmt.Sprintf("and %d more", len(a.Roots)-4))
		}
		return strings.Join(list, ", ")
	}
}

// notHere is the code of a path that counts as one of another machine.
const notHere = "paths are elsewhere"

func (r Ran) outside() step {
	s := step{name: linkOutside, mark: unknown}
	switch n, u := len(r.Denied), len(r.Unjudged); {
	case u > 0:
		e := r.Unjudged[u-1]
		i := slices.IndexFunc(e.Paths, func(p calllog.Path) bool { return p.Verdict == "" })
		if e.Paths[i].Code == notHere {
			s.facts = append(s.facts, fmt.Sprintf("%s at %s went through with %s: its paths count as those of another machine, and only file: URIs and ~/ are judged",
				e.Tool, clock(e.Time), e.Paths[i].Arg))
			if r.elsewhere() {
				s.fix = "--remote-root DIR holds them to directories over there, by their text"
			}
			break
		}
		s.mark = fails
		s.facts = append(s.facts, fmt.Sprintf("%s at %s went through with %s, which was not judged: nothing said that it is a path", e.Tool, clock(e.Time), e.Paths[i].Arg))
		s.fix = fmt.Sprintf("paths = [%q] for the tool %q in the configuration, if it is one; rootbound why %s tells the story", strings.TrimPrefix(e.Paths[i].Arg, "/"), e.Tool, e.Call)
	case n > 0:
		e := r.Denied[n-1]
		s.mark = holds
		s.facts = append(s.facts, fmt.Sprintf("%s, the last at %s: %s", counted(n, "call was refused", "calls were refused"), clock(e.Time), e.Reason))
	case r.Calls == 0:
		s.facts = append(s.facts, "no tool was called")
	default:
		s.facts = append(s.facts, fmt.Sprintf("none was tried in %s", counted(r.Calls, "call", "calls")))
	}
	if !slices.Contains(r.Start.Layers, "confined") && !r.ours() {
		s.facts = append(s.facts, "what the server reads on its own account is not seen: it is not confined")
	}
	return s
}

func (r Ran) notification() step {
	s := step{name: linkNotification, mark: unknown}
	var told, passed *calllog.RootsEvent
	for i := range r.Events {
		if ev := &r.Events[i]; ev.Kind == calllog.ListChanged && ev.Method == "notifications/roots/list_changed" {
			if ev.From == calllog.Client {
				told = ev
			} else {
				passed = ev
			}
		}
	}
	if told == nil {
		s.facts = append(s.facts, "the client told of no change: it is asked again when a path is denied, and when its answer is 30 seconds old")
	} else {
		s.facts = append(s.facts, "the client told of a change at "+clock(told.Time))
	}
	switch {
	case r.ours():
		s.mark = holds
		s.facts = append(s.facts, "Rootbound serves the files itself, and goes by what holds when a call comes")
	case passed == nil:
		s.facts = append(s.facts, "the server was told of none: what holds did not change, or it was not told that lists may change")
	case passed.Fetched == nil:
		s.mark = fails
		s.facts = append(s.facts, "the server was told at "+clock(passed.Time)+" and has not asked for the new list")
		s.fix = "put {roots} into its arguments, and Rootbound starts it again with the new ones"
	default:
		s.mark = holds
		s.facts = append(s.facts, fmt.Sprintf("the server was told at %s and asked for the new list %s later", clock(passed.Time), passed.Fetched.Time.Sub(passed.Time).Round(time.Millisecond)))
	}
	return s
}

// configured is an entry that nothing stands before.
type configured struct {
	Server
	report *Report
}

func (c configured) client() clientFacts {
	i := slices.IndexFunc(c.report.clients, func(f clientFacts) bool { return f.id == c.Client })
	return c.report.clients[i]
}

// wrap is the command that puts Rootbound before it.
func (c configured) wrap() string { return wrapping(c.Client, c.Name) }

// found adds what doctor has found of the entry.
func (c configured) found(s *step, ids ...string) {
	for _, f := range c.report.Findings {
		if slices.Contains(ids, f.ID) && !f.floats && f.Client == c.Client && f.File == c.File && (f.Server == c.Name || f.Server == "") && s.mark != fails {
			s.mark = fails
			s.facts = append(s.facts, fmt.Sprintf("%s at %d:%d of %s: %s", f.ID, f.Line, f.Column, f.File, f.What))
			s.fix = f.Fix
		}
	}
}

func (c configured) capability() step {
	s := step{name: linkCapability, mark: unknown}
	f := c.client()
	switch c.SendsRoots {
	case "yes", "empty":
		s.mark = holds
		s.facts = append(s.facts, f.name+" declares them")
	case "no":
		s.mark = fails
		s.facts = append(s.facts, fmt.Sprintf("%s does not (%s): the server has its arguments alone", f.name, f.roots))
		s.fix = "write the directories in its arguments; with Rootbound in front it is told them as roots, too: " + c.wrap()
	default:
		s.facts = append(s.facts, "whether "+f.name+" does is not known")
	}
	return s
}

func (c configured) pair() step {
	s := step{name: linkPair, mark: unknown}
	if c.SendsRoots == "empty" {
		s.mark = fails
		s.facts = append(s.facts, c.client().name+" always answers with an empty list")
		s.fix = "put Rootbound in front, for which that is no opinion: " + c.wrap()
		return s
	}
	c.found(&s, "ROOT-URI", "ROOT-MISMATCH", "ROOT-EMPTY", "ROOT-MULTI", "VAR-SCOPE", "ROOT-REPLACED", "ROOT-KEY", "ROOT-LEVEL", "ROOT-HOME-CWD", "ROOT-WSL")
	if s.mark != fails {
		s.facts = append(s.facts, "what "+c.client().name+" sends is only seen by a Rootbound in front: "+c.wrap())
	}
	return s
}

func (c configured) outside() step {
	s := step{name: linkOutside, mark: unknown}
	c.found(&s, "PKG-VERSION", "ROOT-BROAD", "ROOT-NONE")
	if s.mark != fails {
		s.facts = append(s.facts, "only as far as the server itself does: nothing checks or logs it")
		s.fix = "put Rootbound in front: " + c.wrap()
	}
	return s
}

func (c configured) notification() step {
	s := step{name: linkNotification, mark: unknown}
	f := c.client()
	switch f.announces {
	case "yes":
		s.mark = holds
		s.facts = append(s.facts, f.name+" tells of changes; whether the server asks for the new list is its own affair")
	case "no":
		s.mark = fails
		s.facts = append(s.facts, f.name+" never tells of changes")
		s.fix = "restart the server after a switch: " + f.restart
	default:
		s.facts = append(s.facts, "whether "+f.name+" tells of changes is not known")
	}
	return s
}

func clock(t time.Time) string { return t.Local().Format("15:04:05") }

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// Explanation writes what is known of a symptom.
func (p *Printer) Explanation(x Explanation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s.\n", p.paint(bold, x.Symptom.Name), x.Symptom.Means)
	sound := true
	for _, sub := range x.subjects {
		fmt.Fprintf(&b, "\n%s\n", p.paint(bold, p.line(sub.title)))
		for _, s := range sub.steps {
			color := ""
			switch s.mark {
			case holds:
				color = green
			case fails:
				color, sound = red, false
			}
			fmt.Fprintf(&b, "  %s %s\n", p.paint(color, string(s.mark)), s.name)
			for _, f := range s.facts {
				fmt.Fprintf(&b, "      %s\n", p.line(f))
			}
			if s.fix != "" {
				fmt.Fprintf(&b, "      %s %s\n", p.paint(dim, "fix:"), p.line(s.fix))
			}
		}
	}
	switch {
	case len(x.subjects) == 0:
		b.WriteString("\nNo server that takes directories is configured here, and none has run behind Rootbound.\n")
	case sound:
		fmt.Fprintf(&b, "\nNothing that can be seen here is wrong. %s\n", x.Symptom.Says)
	}
	_, err := io.WriteString(p.W, b.String())
	return err
}

// line is a text of facts, for a terminal.
func (p *Printer) line(s string) string {
	if p.Home != "" {
		s = strings.ReplaceAll(s, p.Home+"/", "~/")
	}
	return calllog.Visible(s)
}
