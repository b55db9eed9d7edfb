package guard

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/pathargs"
	"github.com/rootbound/rootbound/internal/policy"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// shortDigest is how much of a digest people see, in letters.
const shortDigest = 16

// subject is what a person is asked about.
type subject struct {
	r        *exchange.Request
	g        *Guard
	server   string
	tool     string
	call     policy.Call
	decision policy.Decision
	args     []byte // in their canonical form
	use      approval.Use
	digest   string
}

// subject makes of a call what a person is asked about: all that a yes is bound to.
func (g *Guard) subject(r *exchange.Request, c policy.Call, d policy.Decision) subject {
	s := subject{r: r, g: g, server: g.opt.Server, tool: c.Tool, call: c, decision: d}
	if s.args = c.Args; len(s.args) == 0 {
		s.args = []byte("{}")
	}
	s.args = wire.Canonical(s.args)
	t, _ := g.listed(c.Tool)
	s.use = approval.Use{
		Server: g.opt.Server, Runs: g.opt.Approval.Runs, Client: clientName(r), Session: g.sessionOf(r), Definition: t.hash, All: g.digestOfTools(),
		Tool: c.Tool, Rule: d.Rule, Roots: policy.Touched(c.Paths), Hosts: hosts(s.args),
	}
	switch {
	case c.Effect == policy.Delete:
		s.decision.Remember = policy.Never
	case d.Remember == policy.InRoot && len(s.use.Roots) > 1: // a grant is for one
		s.decision.Remember = policy.SameCall
	}
	for _, p := range c.Paths {
		if !slices.Contains(s.use.Targets, p.Resolved) {
			s.use.Targets = append(s.use.Targets, p.Resolved)
		}
	}
	s.digest = digestOf(append([]string{"rootbound call 1", s.use.Server, s.use.Runs, s.use.Client, t.hash, c.Tool, string(s.args)}, s.use.Targets...)...)
	s.use.Digest = s.digest
	return s
}

// digestOf hashes parts, each with its length.
func digestOf(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		io.WriteString(h, part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// digestOfTools is that of all tools that are listed.
func (g *Guard) digestOfTools() string {
	all, _ := g.tools.All()
	var parts []string
	for name, t := range all {
		parts = append(parts, name+"\x00"+t.hash)
	}
	slices.Sort(parts)
	return digestOf(parts...)
}

// there tells the places of the call apart where something is from those where nothing is.
func (s *subject) there() string {
	var b strings.Builder
	for _, p := range s.call.Paths {
		fmt.Fprintf(&b, "%t ", p.Exists)
	}
	return b.String()
}

// hosts are those of the URLs in a value. Where one is understood in different ways, or beside one there is a text that some
// take for one, it is not known where the call leads: then that text is in the list, as no host is written.
func hosts(value []byte) (list []string) {
	add := func(h string) {
		if !slices.Contains(list, h) {
			list = append(list, h)
		}
	}
	var perhaps []string
	each(value, "", func(_, s string) {
		switch h, how := policy.HostOf(s); how {
		case policy.Certain:
			add(h)
		case policy.Unclear:
			add(unclear(s))
		case policy.Perhaps:
			perhaps = append(perhaps, s)
		}
	})
	if len(list) > 0 {
		for _, s := range perhaps {
			add(unclear(s))
		}
	}
	return list
}

func unclear(s string) string { return fmt.Sprintf("(unclear: %q)", approval.Line(s, 100)) }

// each calls f with every string in a value, and the name of the member that it is in; a name is such a string, too.
func each(value []byte, name string, f func(name, s string)) {
	switch {
	case len(value) == 0:
	case value[0] == '"':
		if s, err := wire.Unquote(value); err == nil {
			f(name, s)
		}
	case value[0] == '{':
		for n, v := range wire.Members(value) {
			f(n, n)
			each(v, n, f)
		}
	case value[0] == '[':
		for v := range wire.Items(value) {
			each(v, name, f)
		}
	}
}

// findArgs finds the path arguments of a request.
func (g *Guard) findArgs(r *exchange.Request) ([]pathargs.Argument, error) {
	return pathargs.Find(r.Msg.Method(), r.Msg.Params(), g.catalog, g.rules.Load().paths)
}

// grant is the grant that an answer gives, if it is good for more than this call: never for more than the rule lets be remembered.
func (s *subject) grant(a approval.Answer) (approval.Grant, bool) {
	now := s.g.opt.Now().UTC().Truncate(time.Second)
	g := approval.Grant{
		Server: s.use.Server, Runs: s.use.Runs, Client: s.use.Client, Definition: s.use.Definition, Tool: s.tool, Rule: s.decision.Rule,
		Under: a.Under, Host: a.Host, Since: now, Until: now.Add(approval.WorkingDay), Call: trailID(s.r), By: string(a.Road),
	}
	if a.Session {
		g.Session, g.Until = s.use.Session, now.Add(24*time.Hour)
	}
	if a.For > 0 {
		g.Until = now.Add(a.For)
	}
	switch s.decision.Remember {
	case policy.SameCall:
		g.Digest = s.digest
	case policy.InRoot:
		if g.Root = s.use.Roots[0]; a.Session && a.Under == "" {
			g.Tool, g.Definition = "", s.use.All
		}
	}
	return g, a.Allow && !a.Once() && s.decision.Remember != policy.Never
}

// choices are the answers that are offered.
func (s *subject) choices() []approval.Choice {
	list := []approval.Choice{{}, {Allow: true}}
	if s.decision.Remember == policy.Never {
		return list
	}
	if s.use.Session != "" {
		scope := fmt.Sprintf("the tool %s, with any arguments", visible(s.tool))
		switch s.decision.Remember {
		case policy.SameCall:
			scope = "this call with these arguments"
		case policy.InRoot:
			scope = "whatever the same rule asks for in " + visible(s.use.Roots[0]) + ", but what deletes or moves"
		}
		list = append(list, approval.Choice{Allow: true, Session: true, Scope: scope})
	}
	if s.decision.Remember == policy.SameCall {
		return list
	}
	if dir := s.under(); dir != "" && len(s.use.Hosts) == 0 {
		list = append(list, approval.Choice{Allow: true, Under: dir})
	}
	if len(s.use.Hosts) == 1 && len(s.use.Targets) == 0 && !strings.HasPrefix(s.use.Hosts[0], "(") {
		list = append(list, approval.Choice{Allow: true, Host: s.use.Hosts[0]})
	}
	return list
}

// under is the deepest directory that holds all paths of the call, where they are in one root.
func (s *subject) under() string {
	dir := ""
	for _, p := range s.call.Paths {
		if p.Root != s.call.Paths[0].Root {
			return ""
		}
		d := p.Resolved
		if info, err := os.Stat(d); err != nil || !info.IsDir() {
			d = filepath.Dir(d)
		}
		if dir == "" {
			dir = d
		}
		for !policy.Under(d, dir) {
			dir = filepath.Dir(dir)
		}
	}
	return dir
}

// verbs say what a tool does.
var verbs = map[policy.Effect]string{
	policy.Unknown: "may do anything", policy.Read: "reads", policy.Write: "writes", policy.Delete: "deletes or moves",
}

// called names what a request is for.
func called(r *exchange.Request) string {
	if uri := wire.GetString(r.Msg.Params(), "uri"); uri != "" {
		return r.Msg.Method() + " " + approval.Line(uri, 200)
	}
	return method(r)
}

// placeOf is where a path leads, and what is there now.
func placeOf(p policy.Path) approval.Place {
	to := approval.Place{Arg: strings.TrimPrefix(p.Arg, "/"), Given: p.Given, Path: p.Resolved, Root: p.Root, Access: access(p.Rights), Is: "other"}
	if info, err := os.Lstat(asGiven(p)); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		to.Link = true
	}
	switch info, err := os.Stat(p.Resolved); {
	case errors.Is(err, fs.ErrNotExist):
		to.Is = "nothing"
	case err != nil:
		to.Is = "unknown"
	case info.IsDir():
		to.Is = "directory"
	case info.Mode().IsRegular():
		to.Is, to.Size = "file", info.Size()
	}
	return to
}

// question is what a person sees.
func (s *subject) question() approval.Question {
	q := approval.Question{
		ID: trailID(s.r), Server: s.server, Tool: s.tool, Client: clientName(s.r), Digest: s.digest[:shortDigest], Why: s.decision.Reason, Rule: s.decision.Rule,
		Code: s.decision.Code, WhyArgs: s.decision.Args,
		Args: json.RawMessage(s.args), Size: len(s.args), Choices: s.choices(), Remember: s.decision.Remember != policy.Never,
		Same:    s.decision.Remember == policy.SameCall,
		Targets: s.use.Targets, Hosts: s.use.Hosts, Effect: s.call.Effect.String(), From: s.call.From, FromCode: s.call.FromCode, Kept: s.decision.Remember.String(),
	}
	for _, p := range s.call.Paths[:min(len(s.call.Paths), approval.MaxPlaces)] {
		q.Places = append(q.Places, placeOf(p))
	}
	if at := s.decision.Rule; at != "" {
		q.Why += " (" + at + ")"
	}
	verb := verbs[s.call.Effect]
	if s.call.Effect == policy.Unknown && len(s.use.Hosts) > 0 {
		verb += ", also over the network"
	}
	q.Head = fmt.Sprintf("%s: %q, which %s", approval.Line(s.server, 60), approval.Line(s.tool, 80), verb)
	switch about := s.about(); {
	case about != "":
		q.Head += ": " + about
	case len(s.args) > 2:
		q.Head += ", with " + approval.Line(string(s.args), 160)
	default:
		q.Head += ", without arguments"
	}
	q.Facts = s.facts()
	q.Diff = s.diff()
	return q
}

// about names the first few places that the call leads to; "" when it names none.
func (s *subject) about() string {
	var list []string
	for _, p := range s.call.Paths {
		list = append(list, fmt.Sprintf("%s (%s)", approval.Line(p.Resolved, 200), place(p)))
	}
	for _, h := range s.use.Hosts {
		list = append(list, "host "+approval.Line(h, 100))
	}
	more := ""
	if n := len(list) - 3; n > 0 {
		list, more = list[:3], fmt.Sprintf(", and %d more", n)
	}
	return strings.Join(list, ", ") + more
}

// place says in two words where a path is and whether something is there.
func place(p policy.Path) string {
	there := "new"
	if p.Exists {
		there = "exists"
	}
	return there + ", in root " + approval.Line(filepath.Base(p.Root), 60)
}

// facts say what will happen, one a line.
func (s *subject) facts() (facts []string) {
	add := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	if name := clientName(s.r); name != "" {
		add("client: %s", approval.Line(name, 80))
	}
	what := verbs[s.call.Effect]
	if s.call.From != "" {
		what += ", says " + s.call.From
	}
	add("the tool: %s", what)
	for i, p := range s.call.Paths {
		if i == 12 {
			add("and %d more paths", len(s.call.Paths)-i)
			break
		}
		at := placeOf(p)
		add("%s: %s, in the root %s (%s), %s%s", argument(at.Arg), approval.Line(at.Path, 300), approval.Line(at.Root, 200), at.Access, state(at), givenAs(p, at))
	}
	n := 0
	each(s.args, "", func(name, v string) {
		h, how := policy.HostOf(v)
		if how < policy.Unclear || n == 12 {
			return
		}
		n++
		if how == policy.Unclear {
			h = "which is unclear"
		}
		add("%s: host %s, in %s", argument(name), approval.Line(h, 100), approval.Line(v, 300))
	})
	n = 0
	for name, v := range wire.Members(s.args) {
		if slices.ContainsFunc(s.call.Paths, func(p policy.Path) bool { return p.Arg == "/"+name }) {
			continue
		}
		if n++; n > 12 {
			add("and more arguments")
			break
		}
		text, size := string(v), ""
		if str, err := wire.Unquote(v); err == nil && v[0] == '"' {
			text = str
			if len(str) > 120 || strings.Contains(str, "\n") {
				size = fmt.Sprintf(" (%d bytes)", len(str))
				if n := strings.Count(strings.TrimSuffix(str, "\n"), "\n") + 1; n > 1 {
					size = fmt.Sprintf(" (%d bytes, %d lines)", len(str), n)
				}
			}
		} else if len(text) > 120 {
			size = fmt.Sprintf(" (%d bytes)", len(text))
		}
		add("%s%s: %s", argument(name), size, approval.Line(text, 200))
	}
	return facts
}

// argument is the name of one, in quotes: who calls chooses it, and it could read like a fact of ours.
func argument(name string) string { return strconv.Quote(approval.Line(name, 60)) }

// state says what is at a place.
func state(p approval.Place) string {
	switch p.Is {
	case "nothing":
		return "where nothing is"
	case "unknown":
		return "which cannot be looked at"
	case "directory":
		return "a directory that exists"
	case "file":
		return fmt.Sprintf("a file that exists, of %d bytes", p.Size)
	}
	return "which exists and is no ordinary file"
}

// asGiven is what was written of a path, as a path of its own.
func asGiven(p policy.Path) string {
	as := p.Given
	if !filepath.IsAbs(as) {
		as = filepath.Join(p.Root, as)
	}
	return filepath.Clean(as)
}

// givenAs says what was written, where a path leads elsewhere than it reads, and whether it is a link.
func givenAs(p policy.Path, at approval.Place) string {
	text := ""
	if at.Link {
		text = ", by a link"
	}
	if asGiven(p) != p.Resolved {
		text += ", written as " + approval.Line(p.Given, 200)
	}
	return text
}

const (
	// maxDiffed is the largest text that is compared, in bytes, and maxDiffLines the longest, in lines; maxDiff is how much
	// of what came out is kept.
	maxDiffed    = 256 << 10
	maxDiffLines = 5_000
	maxDiff      = 64 << 10
)

// adding are words in the names of tools that put a text beside what is there.
var adding = []string{"append", "prepend", "insert"}

// diff is what a text would become, where the call writes one file and says with which content.
func (s *subject) diff() string {
	if s.call.Effect == policy.Read || s.call.Effect == policy.Delete || len(s.use.Targets) != 1 {
		return ""
	}
	path := s.use.Targets[0]
	old, exists, err := readOld(s.r.Roots, path)
	if err != nil {
		return ""
	}
	if slices.ContainsFunc(adding, func(word string) bool { return strings.Contains(strings.ToLower(s.tool), word) }) {
		return "" // the text is not all that will be there
	}
	new, ok := becomes(s.args, old, exists)
	if !ok || len(new) > maxDiffed || !plainText(old) || !plainText(new) {
		return ""
	}
	name := approval.Line(filepath.Base(path), 100)
	from := name
	if !exists {
		from = "(nothing)"
	}
	text := udiff.Unified(from, name, old, new)
	if text == "" && exists {
		return "(the text stays as it is)\n"
	}
	if len(text) > maxDiff {
		cut := strings.LastIndexByte(text[:maxDiff], '\n') + 1
		text = text[:cut] + fmt.Sprintf("(%d bytes more)\n", len(text)-cut)
	}
	return text
}

func plainText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsRune(s, 0) && strings.Count(s, "\n") <= maxDiffLines
}

// readOld reads what is in a file, if it is in the roots.
func readOld(set roots.Set, path string) (text string, exists bool, err error) {
	f, err := rootfs.Open(set, rootfs.Options{})
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	file, err := f.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxDiffed+1))
	if err == nil && len(b) > maxDiffed {
		err = errors.New("it is too long")
	}
	return string(b), true, err
}

// wholeNames are the names of arguments, in small letters, that are all of a text, and oldNames those of a part that goes.
var (
	wholeNames = []string{"content", "contents", "text", "file_text", "new_content", "newcontent"}
	oldNames   = []string{"oldText", "old_text", "old_string", "old_str", "oldString"}
)

// becomes is what the text of a file becomes by the arguments of a call: all of it, or parts of it in the place of others.
// Ok is false where they do not say so in a way that is known.
func becomes(args []byte, old string, exists bool) (text string, ok bool) {
	wholes := 0
	for name, v := range wire.Members(args) {
		if !slices.Contains(wholeNames, strings.ToLower(name)) {
			continue
		}
		wholes++
		s, err := wire.Unquote(v)
		text, ok = s, len(v) > 0 && v[0] == '"' && err == nil
	}
	_, parts := wire.Get(args, "edits")
	if _, has := oneOf(args, oldNames...); has {
		parts = true
	}
	switch {
	case wholes > 1 || wholes == 1 && parts: // nobody knows which of them counts
		return "", false
	case wholes == 1:
		return text, ok
	}
	if !exists {
		return "", false
	}
	edits := [][]byte{args}
	if list, has := wire.Get(args, "edits"); has {
		edits = slices.Collect(wire.Items(list))
	}
	text = old
	for _, e := range edits {
		from, ok1 := oneOf(e, oldNames...)
		to, ok2 := oneOf(e, "newText", "new_text", "new_string", "new_str", "newString")
		if !ok1 || !ok2 || from == "" || strings.Count(text, from) != 1 {
			return "", false
		}
		text = strings.Replace(text, from, to, 1)
	}
	return text, len(edits) > 0
}

func oneOf(object []byte, names ...string) (string, bool) {
	for _, name := range names {
		if v, has := wire.Get(object, name); has && len(v) > 0 && v[0] == '"' {
			s, err := wire.Unquote(v)
			return s, err == nil
		}
	}
	return "", false
}

// canElicit reports whether a client can be asked in a form by this request.
func canElicit(r *exchange.Request) bool {
	if r.Caller == nil || !r.Caller.CanAsk("elicitation/create") {
		return false
	}
	caps := exchange.Capability(r, "elicitation")
	_, form := wire.Get(caps, "form")
	_, other := wire.Get(caps, "url")
	return form || !other
}

// maxElicited is how long a question to a client is, in bytes.
const maxElicited = 3000

// decisionName is the name of the one thing that is asked.
const decisionName = "decision"

// elicitation is a question in the words of the protocol: one choice, of which the first, a no, is what holds if nobody
// chooses.
func elicitation(q *approval.Question) exchange.Question {
	words := []byte{'['}
	var means []string
	for i, c := range q.Choices {
		if i > 0 {
			words = append(words, ',')
		}
		words = wire.AppendQuote(words, c.Word())
		if c.Session {
			means = append(means, c.Word()+" means: "+c.Scope)
		}
	}
	words = append(words, ']')
	text := q.Text(maxElicited)
	for _, m := range means {
		text += "\n" + approval.Line(m, 300)
	}
	property := wire.SetMember([]byte(`{"type":"string","title":"Decision","description":"May this call go on?"}`), words, "enum")
	property = wire.SetMember(property, wire.Quote(q.Choices[0].Word()), "default")
	schema := wire.SetMember([]byte(`{"type":"object","properties":{}}`), property, "properties", decisionName)
	params := wire.SetMember([]byte(`{}`), wire.Quote(text), "message")
	return exchange.Question{Key: approveKey, Method: "elicitation/create", Unsent: true, Params: wire.SetMember(params, schema, "requestedSchema")}
}

// readElicitation reads what a client answers. The error says that it has no answer of a person: it asked nobody, or does not
// hand on what was answered.
func readElicitation(q *approval.Question, got exchange.Answer) (approval.Answer, error) {
	a := approval.Answer{Road: approval.ByClient}
	if got.Error != nil {
		return a, fmt.Errorf("%.200q", wire.GetString(got.Error, "message"))
	}
	switch action := wire.GetString(got.Result, "action"); action {
	case "accept":
		v, _ := wire.Get(got.Result, "content", decisionName)
		if len(v) > 0 && v[0] == '"' {
			a.Choice = q.Choice(wire.GetString(got.Result, "content", decisionName))
		}
		if len(v) == 0 {
			a.Note = "accepted without a choice, which is a no"
		}
		return a, nil
	case "decline":
		a.Road = approval.Declined
		return a, nil
	case "cancel":
		a.Road = approval.Dismissed
		return a, nil
	default:
		return a, fmt.Errorf("it answers with the action %.40q", action)
	}
}
