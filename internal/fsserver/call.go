package fsserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
	"github.com/rootbound/rootbound/rootfs"
)

const (
	// maxText is the longest text of an answer, in bytes of a file.
	maxText = 4 << 20
	// maxAnswer is the longest answer, in bytes of JSON: clients close the connection at a line of 10 MiB.
	maxAnswer = 10<<20 - 64<<10
)

// call is one call of a tool.
type call struct {
	*openSet
	*Server
	ctx     context.Context
	request *exchange.Request
	slot    *slot
	lent    *lent
	args    arguments
	copied  atomic.Int64 // bytes, of a call that copies
	findings
}

// answer is what a tool answers.
type answer struct {
	text string // the one block of text, which is also the member "content" of structuredContent
	// bytes, when it is not nil, is the text, and quoted, when it is not nil, is the text as a JSON string: each in memory of lent.
	bytes, quoted []byte
	// content, when it is not nil, is a JSON array that takes the place of both.
	content []byte
	// blocks are further content blocks and members further members of structuredContent, as JSON, each with a comma before it.
	blocks, members []byte
}

// refusal is an error in words for the model, with a code for programs.
type refusal struct{ code, text string }

func (r refusal) Error() string { return r.text }

func refuse[C ~string](code C, format string, args ...any) error {
	return refusal{string(code), fmt.Sprintf(format, args...)}
}

// Codes of refusals beside those of rootfs.
const (
	codeArguments   = "invalid_arguments"
	codeUnknownTool = "unknown_tool"
	codeNoRoots     = "no_roots"
	codeUnavailable = "root_unavailable"
	codeTooLarge    = "too_large" // the answer, or a file
	codeHeldUp      = "held_up"   // by a file system that does not answer
)

// denial is the refusal of a path because of the roots or of what may be opened in them. The stages in front log it, and may
// get to know of other roots, where it has a path.
type denial struct {
	refusal
	reason string // as the log has it
	path   string // absolute, as the text has it, or "" when it is not known
}

func (d denial) Unwrap() error { return d.refusal }

// Reasons in the log.
const (
	reasonOutside  = "outside"
	reasonNoRoots  = "no-roots"
	reasonReadOnly = "read-only"
	reasonOwn      = "own-file"
	reasonName     = "protected-name"
	reasonHardLink = "hard-link"
	reasonMount    = "mount"
)

// metaCode is the key of _meta under which an error has its code.
const metaCode = "io.github.rootbound/code"

// call answers tools/call. What goes wrong in a tool is a result that the model reads.
func (s *Server) call(ctx context.Context, r *exchange.Request, t *slot) exchange.Outcome {
	if name, _ := wire.Get(r.Msg.Params(), "name"); typeOf(name) != "string" {
		return exchange.Fail(r, wire.CodeInvalidParams, `tools/call needs a string "name"`, nil)
	}
	var l lent
	defer l.giveBack()
	a, err := s.run(ctx, r, t, &l)
	switch {
	case ctx.Err() != nil:
		return exchange.Cancelled
	case err != nil:
		note(r, err, false)
		return s.toolError(r, err)
	}
	return s.answered(r, a)
}

// note writes a denial into the trail: of the request, or of a part of it.
func note(r *exchange.Request, err error, part bool) {
	if d := (denial{}); errors.As(err, &d) {
		r.Trail.Add(exchange.Note{Stage: "fs", Denied: !part, Part: part, Code: d.reason, Text: err.Error(), Path: d.path})
	}
}

// nothingAllowed is what every call is answered while there is no directory.
var nothingAllowed = refusal{codeNoRoots, "No directory is allowed, so there is nothing to work on: none is configured or none of those is there " +
	"now, or the client's list of roots leaves none. Name one when the server is started, as in `rootbound fs DIR`."}

func (s *Server) run(ctx context.Context, r *exchange.Request, slot *slot, l *lent) (answer, error) {
	if err := slot.refused(); err != nil {
		return answer{}, err
	}
	name := wire.GetString(r.Msg.Params(), "name")
	t := s.findTool(name)
	if t == nil {
		if slices.ContainsFunc(tools, func(t *tool) bool { return t.name == name && t.writes && !(t.extra && s.compat) }) {
			return answer{}, refuse(rootfs.ReadOnly, "Access denied - nothing may be changed: every allowed directory is read-only, so there is no %s.", name)
		}
		return answer{}, refuse(codeUnknownTool, "MCP error -32602: Tool %.100s not found", name)
	}
	given, _ := wire.Get(r.Msg.Params(), "arguments")
	args, err := t.check(given)
	c := &call{Server: s, ctx: ctx, request: r, slot: slot, lent: l, args: args}
	switch {
	case !readable(r.Roots):
		return answer{}, denial{nothingAllowed, reasonNoRoots, c.absolute()}
	case err != nil:
		return answer{}, err
	}
	if c.openSet, err = s.sets.use(r.Roots); err != nil {
		return answer{}, err
	}
	defer s.sets.done(c.openSet)
	if t.writes {
		if err := t.refused(c); err != nil {
			return answer{}, err
		}
		if err := r.Trail.Record(); err != nil {
			return answer{}, refuse("log", "Nothing was changed, because it could not be logged.")
		}
	}
	return t.run(c)
}

func (s *Server) findTool(name string) *tool {
	if i := slices.IndexFunc(s.tools, func(t *tool) bool { return t.name == name }); i >= 0 {
		return s.tools[i]
	}
	return nil
}

// answered is the outcome of a tool that has answered.
func (s *Server) answered(r *exchange.Request, a answer) exchange.Outcome {
	const around = 1 << 10 // what is written beside the answer, about
	begin, end := s.around(r)
	text := len(a.text) + len(a.bytes)
	size := 2*(text+text/16+len(a.quoted)+len(a.content)) + len(a.blocks) + len(a.members) + around
	tooLong := 0
	msg := wire.NewLongResult(r.Msg.ID(), size, func(b []byte) []byte {
		b = append(append(b, begin...), `"content":`...)
		structured := a.content
		if structured != nil {
			b = append(b, structured[:len(structured)-1]...)
		} else {
			b = append(b, `[{"type":"text","text":`...)
			from := len(b)
			b = a.appendText(b)
			structured = b[from:]
			b = append(b, '}')
		}
		if n := 2*len(structured) + len(a.blocks) + len(a.members); n > maxAnswer {
			tooLong = n
			return b
		}
		b = append(append(append(b, a.blocks...), `],"structuredContent":{"content":`...), structured...)
		return append(append(append(b, a.members...), '}'), end...)
	})
	if tooLong > 0 {
		return s.toolError(r, refuse(codeTooLarge, "The answer would be %d bytes long, and one answer carries at most %d. Ask for less.", tooLong, maxAnswer))
	}
	return exchange.Outcome{Msg: msg}
}

// appendText appends the text of an answer as a JSON string.
func (a *answer) appendText(b []byte) []byte {
	switch {
	case a.quoted != nil:
		return append(b, a.quoted...)
	case a.bytes != nil:
		return wire.AppendQuoteBytes(b, a.bytes)
	}
	return wire.AppendQuote(b, a.text)
}

// toolError is the outcome of a tool that could not do it. Its text is for the model, and its code for programs.
func (s *Server) toolError(r *exchange.Request, err error) exchange.Outcome {
	begin, _ := s.around(r)
	b := append([]byte(begin+`"content":[{"type":"text","text":`), wire.Quote(s.errorText(r, err))...)
	b = append(b, `}],"isError":true`...)
	var meta []byte
	if e := (refusal{}); errors.As(err, &e) && e.code != "" {
		meta = append(wire.AppendQuote(append(wire.AppendQuote(nil, metaCode), ':'), e.code), ',')
	}
	if r.Era == exchange.Modern {
		meta = append(append(wire.AppendQuote(meta, exchange.MetaServer), ':'), append(s.info[:len(s.info):len(s.info)], ',')...)
	}
	if meta != nil {
		b = append(append(append(b, `,"_meta":{`...), meta[:len(meta)-1]...), '}')
	}
	return exchange.Result(r, append(b, '}'))
}

// plural returns a number with what is counted.
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}
