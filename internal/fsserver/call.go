package fsserver

import (
	"context"
	"errors"
	"fmt"

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
	ctx  context.Context
	args arguments
	home string
}

// refusal is an error in words for the model.
type refusal string

func (r refusal) Error() string { return string(r) }

// outsideError is the refusal of a path that is in no root: the stages in front may know of newer roots.
type outsideError struct {
	refusal
	path string
}

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

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
		if outside := (outsideError{}); errors.As(err, &outside) {
			r.Trail.Add(exchange.Note{Stage: "fs", Denied: true, Code: string(rootfs.OutsideRoots), Text: err.Error(), Path: outside.path})
		}
		return s.toolError(r, err.Error())
	}
	return s.text(r, text)
}

// errNothingAllowed is what every call is answered while there is no directory.
const errNothingAllowed = refusal("No directory is allowed, so there is nothing to work on: none is configured, or the client's list of " +
	"roots leaves none. Name one when the server is started, as in `rootbound fs DIR`.")

func (s *Server) run(ctx context.Context, r *exchange.Request) (string, error) {
	name := wire.GetString(r.Msg.Params(), "name")
	t := findTool(name)
	if t == nil {
		return "", refuse("MCP error -32602: Tool %.100s not found", name)
	}
	if !readable(r.Roots) {
		return "", errNothingAllowed
	}
	given, _ := wire.Get(r.Msg.Params(), "arguments")
	args, err := t.check(given)
	if err != nil {
		return "", err
	}
	set, err := s.sets.use(r.Roots)
	if err != nil {
		return "", err
	}
	defer s.sets.done(set)
	return t.run(&call{openSet: set, ctx: ctx, args: args, home: s.home})
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
