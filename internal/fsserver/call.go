package fsserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
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
	ctx  context.Context
	args arguments
	home string
}

// refusal is an error in words for the model.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// denial is the refusal of a path because of the roots. The stages in front log it, and may get to know of other roots.
type denial struct {
	refusal
	code string // as the log has it
	path string // absolute, as the text has it, or "" when it is not known
}

const (
	codeOutside = "outside"
	codeNoRoots = "no-roots"
)

// call answers tools/call. What goes wrong in a tool is a result that the model reads.
func (s *Server) call(ctx context.Context, r *exchange.Request) exchange.Outcome {
	if name, _ := wire.Get(r.Msg.Params(), "name"); typeOf(name) != "string" {
		return exchange.Fail(r, wire.CodeInvalidParams, `tools/call needs a string "name"`, nil)
	}
	text, err := s.run(ctx, r)
	switch {
	case ctx.Err() != nil:
		return exchange.Cancelled
	case err != nil:
		if d := (denial{}); errors.As(err, &d) {
			r.Trail.Add(exchange.Note{Stage: "fs", Denied: true, Code: d.code, Text: err.Error(), Path: d.path})
		}
		return s.toolError(r, err.Error())
	}
	return s.text(r, text)
}

// nothingAllowed is what every call is answered while there is no directory.
const nothingAllowed = refusal("No directory is allowed, so there is nothing to work on: none is configured, or the client's list of " +
	"roots leaves none. Name one when the server is started, as in `rootbound fs DIR`.")

func (s *Server) run(ctx context.Context, r *exchange.Request) (string, error) {
	name := wire.GetString(r.Msg.Params(), "name")
	t := findTool(name)
	if t == nil {
		return "", refuse("MCP error -32602: Tool %.100s not found", name)
	}
	given, _ := wire.Get(r.Msg.Params(), "arguments")
	args, err := t.check(given)
	c := &call{ctx: ctx, args: args, home: s.home}
	switch {
	case !readable(r.Roots):
		return "", denial{nothingAllowed, codeNoRoots, c.absolute()}
	case err != nil:
		return "", err
	}
	if c.openSet, err = s.sets.use(r.Roots); err != nil {
		return "", err
	}
	defer s.sets.done(c.openSet)
	return t.run(c)
}

// text is the outcome of a tool that answers with text.
func (s *Server) text(r *exchange.Request, text string) exchange.Outcome {
	quoted := wire.Quote(text)
	if 2*len(quoted) > maxAnswer {
		return s.toolError(r, fmt.Sprintf("The answer would be %d bytes long, and one answer carries at most %d. Ask for less.", 2*len(quoted), maxAnswer))
	}
	begin, end := s.around(r)
	const content, structured = `"content":[{"type":"text","text":`, `}],"structuredContent":{"content":`
	b := make([]byte, 0, len(begin)+len(content)+len(structured)+2*len(quoted)+1+len(end))
	b = append(append(append(b, begin...), content...), quoted...)
	b = append(append(append(b, structured...), quoted...), '}')
	return exchange.Result(r, append(b, end...))
}

func (s *Server) toolError(r *exchange.Request, text string) exchange.Outcome {
	return s.result(r, `"content":[{"type":"text","text":`+string(wire.Quote(text))+`}],"isError":true`)
}
