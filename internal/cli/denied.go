package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/guard"
	"github.com/rootbound/rootbound/internal/sandbox"
	"github.com/rootbound/rootbound/internal/wire"
)

// The kernel tells a confined server that something is denied, and nobody else. So what the server says of it is read: an
// answer that is a failure, and its standard error. What is named there is told only if it is so: it is there for the user,
// and the rules leave it out.

// denial is something that the confinement kept a server from.
type denial struct {
	what string // for a person: `reading "/etc/passwd"`
	path string // empty for the network
	why  string // which rule it is
	fix  string // what to write to allow it
}

var (
	refusedFile = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(EACCES|EPERM)\b|permission denied|operation not permitted|Errno 1\b|Errno 13\b|os error 1(3)?\b|access( is)? denied|\bEROFS\b|read-only file system|Errno 30\b`)
	})
	refusedNet = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\bEAFNOSUPPORT\b|address family not supported|Errno 97\b|os error 97\b`)
	})
	unknownHost = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:getaddrinfo (?:EAI_AGAIN|ENOTFOUND)|lookup) ([A-Za-z0-9.-]+)`)
	})
	noConnect = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`connect E(?:ACCES|PERM) (\[?[0-9A-Fa-f.:]+\]?:[0-9]+)`)
	})
	spawned = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`spawn (\S+) E(?:ACCES|PERM)|Permission denied: '([^'/]+)'|exec: "([^"]+)": permission denied|: ([\w.+-]+): Permission denied`)
	})
	quotedPath = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("'(/[^'\n]*)'|\"(/[^\"\n]*)\"|`(/[^`\n]*)`")
	})
	barePath = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|[\s(=:])(/[^\s'"` + "`" + `:;,()]+)`)
	})
)

// unknown is the rule for files.
const unknown = "it is in no root, and not among what the server is known to need"

const (
	mostText    = 64 << 10 // of an answer that is looked at
	mostDenials = 8        // that are told of one
)

// denials are what a text of the server speaks of, and what the confinement denies.
func (c *confinement) denials(text string) []denial {
	if len(text) > mostText {
		text = text[:mostText]
	}
	c.mu.Lock()
	policy := c.held
	c.mu.Unlock()
	var list []denial
	add := func(d denial) {
		if len(list) < mostDenials && !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	network := "it may reach " + c.plan.Net.Value.String()
	if !policy.Net.All {
		const way = "--net HOST:PORT"
		if refusedNet().MatchString(text) {
			add(denial{what: "using the network", why: network, fix: way + ", or --allow-unix for Unix sockets"})
		}
		for _, m := range unknownHost().FindAllStringSubmatch(text, -1) {
			add(denial{what: fmt.Sprintf("looking up the host %q by itself", m[1]), why: network, fix: "--net " + guard.ShellQuote(m[1]) + ":443, or another port"})
		}
		for _, m := range noConnect().FindAllStringSubmatch(text, -1) {
			add(denial{what: "connecting to " + m[1], why: network, fix: "--net " + m[1]})
		}
	}
	if !refusedFile().MatchString(text) {
		return list
	}
	for _, m := range spawned().FindAllStringSubmatch(text, -1) {
		name := m[1] + m[2] + m[3] + m[4]
		path := name
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			if !strings.Contains(name, "/") && there(filepath.Join(dir, name)) {
				path = filepath.Join(dir, name)
				break
			}
		}
		if real, err := filepath.EvalSymlinks(path); filepath.IsAbs(path) && err == nil && !allowed(policy.Rules, sandbox.Access{Use: sandbox.Runs, Path: real}) {
			add(denial{fmt.Sprintf("running %q", path), real, unknown, "--allow-run " + guard.ShellQuote(name)})
		}
	}
	var paths []string
	for _, re := range []*regexp.Regexp{quotedPath(), barePath()} {
		for _, m := range re.FindAllStringSubmatch(text, -1) {
			paths = append(paths, strings.TrimRight(strings.Join(m[1:], ""), "."))
		}
	}
	for _, path := range paths {
		d, is := c.deniedFile(policy.Rules, path)
		if real, err := filepath.EvalSymlinks(path); err == nil || filepath.IsAbs(path) {
			if err != nil { // it may have been to be made
				real = path
			}
			if e, held := exceptOf(policy.Excepts, real); held {
				d, is = heldBackDenial(e, path), true
			}
		}
		if is && !slices.ContainsFunc(list, func(have denial) bool { return have.path == d.path }) {
			add(d)
		}
	}
	return list
}

// deniedFile says what of a path the rules deny. It is no denial of theirs where nothing is there, or the user himself may
// not.
func (c *confinement) deniedFile(rules []sandbox.Rule, path string) (denial, bool) {
	path = filepath.Clean(path)
	writing := func(real, opened string) denial {
		d := denial{fmt.Sprintf("writing %q", path), real, unknown, "--allow-write " + guard.ShellQuote(opened)}
		if root, _, in := c.plan.Roots.Match(opened); in {
			d.why, d.fix = "it is in a root that is "+guard.LogDir(root).Access, c.run.app.rights(c.plan, root.Path)
		}
		return d
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil { // it may have been to be made
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil || dir == "/" || allowed(rules, sandbox.Access{Use: sandbox.Writes, Path: dir}) || !may(dir, sandbox.Writes) {
			return denial{}, false
		}
		return writing(path, dir), true
	}
	switch {
	case !allowed(rules, sandbox.Access{Use: sandbox.Reads, Path: real}) && may(real, sandbox.Reads):
		return denial{fmt.Sprintf("reading %q", path), real, unknown, "--allow-read " + guard.ShellQuote(real)}, true
	case program(real) && allowed(rules, sandbox.Access{Use: sandbox.Runs, Path: real}): // that speaks, and begins with its name
	case !allowed(rules, sandbox.Access{Use: sandbox.Writes, Path: real}) && may(real, sandbox.Writes):
		return writing(real, real), true
	}
	return denial{}, false
}

// may reports whether the user may do that: the answer of a file's modes.
func may(path string, use sandbox.Use) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	return accessible(path, info, use)
}

// program reports whether path is a file that can be run.
func program(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// tell tells the person and the log of what was denied: each thing once.
func (c *confinement) tell(call string, list []denial) {
	for _, d := range list {
		c.mu.Lock()
		again := c.denied[d]
		if c.denied == nil {
			c.denied = map[denial]bool{}
		}
		if len(c.denied) < maxDenied {
			c.denied[d] = true
		}
		c.mu.Unlock()
		reason := "the kernel kept the server from " + d.what + ": " + d.why
		if !again {
			in := ""
			if call != "" {
				in = " (call " + call + ")"
			}
			c.run.warn(fmt.Sprintf("%s%s; %s allows it", reason, in, d.fix))
		}
		if again && call == "" {
			continue
		}
		rec := calllog.Record{Kind: calllog.Note, Code: codeKept, Call: call, Verdict: calllog.Deny, Reason: reason, Fix: d.fix}
		if d.path != "" {
			rec.Paths = []calllog.Path{{Given: d.path, Resolved: d.path, Verdict: calllog.Deny, Code: codeKept}}
		}
		if err := c.run.log.Append(&rec); err != nil {
			c.run.warn("the log: " + err.Error())
		}
	}
}

const (
	codeKept  = "confined" // of the record of a denial
	maxDenied = 1024       // that are remembered as told
)

// listener reads the lines of the server's standard error.
func (c *confinement) listener() func(line string) {
	if c == nil || c.learn != nil {
		return nil
	}
	return func(line string) {
		if list := c.denials(line); len(list) > 0 {
			c.tell("", list)
		}
	}
}

// explain is a server whose failures are looked at: what the kernel kept it from is told, and the model gets a sentence.
func (c *confinement) explain(next exchange.Handler) exchange.Handler {
	if c == nil || c.learn != nil {
		return next
	}
	return exchange.HandlerFunc(func(ctx context.Context, r *exchange.Request, reply func(exchange.Outcome)) {
		next.Handle(ctx, r, func(o exchange.Outcome) {
			text, failed := failure(o)
			if !failed {
				reply(o)
				return
			}
			go func() { // it looks at the disk
				if list := c.denials(text); len(list) > 0 {
					call := ""
					if r.Trail != nil {
						call = r.Trail.ID
					}
					c.tell(call, list)
					o = withSentence(o, call)
				}
				reply(o)
			}()
		})
	})
}

// failure returns what a failed request is answered with, if it speaks of something that was denied.
func failure(o exchange.Outcome) (string, bool) {
	if o.Msg == nil {
		return "", false
	}
	text := ""
	if e := o.Msg.Error(); e != nil {
		if wire.GetString(e, "data", "reason") == "server not started" { // our own word: no server was kept from anything
			return "", false
		}
		text = wire.GetString(e, "message")
	} else if failed, _ := wire.Get(o.Msg.Result(), "isError"); string(failed) == "true" {
		content, _ := wire.Get(o.Msg.Result(), "content")
		for item := range wire.Items(content) {
			if len(text) < mostText {
				text += wire.GetString(item, "text") + "\n"
			}
		}
	}
	return text, refusedFile().MatchString(text) || refusedNet().MatchString(text) || unknownHost().MatchString(text)
}

// withSentence adds for the model why it failed. Where that is it does not say.
func withSentence(o exchange.Outcome, call string) exchange.Outcome {
	way := ""
	if call != "" {
		way = ": `rootbound why " + call + "` says what it was and how to allow it"
	}
	text := "Rootbound: this server is confined, and the kernel kept it from something outside of what is open to it. Do not try another way; tell the user" + way + "."
	if e := o.Msg.Error(); e != nil {
		message := wire.GetString(e, "message")
		o.Msg = wire.NewErrorObject(o.Msg.ID(), wire.SetMember(e, wire.Quote(message+"\n"+text), "message"))
		return o
	}
	result := o.Msg.Result()
	content, _ := wire.Get(result, "content")
	end := bytes.LastIndexByte(content, ']')
	if end < 0 {
		return o
	}
	more := slices.Clone(content[:end])
	if len(bytes.TrimSpace(more)) > 1 {
		more = append(more, ',')
	}
	more = append(more, `{"type":"text","text":`...)
	more = append(wire.AppendQuote(more, text), "}]"...)
	o.Msg = o.Msg.WithResult(wire.SetMember(result, more, "content"))
	return o
}
