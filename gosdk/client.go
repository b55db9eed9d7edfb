//lint:file-ignore SA1019 Roots are deprecated and still spoken, and are what this package is about.

package gosdk

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rootbound/rootbound/roots"
)

// mostSheds is how often a request is tried again that a server brings back without a question, as it is busy.
const mostSheds = 3

// Client is an mcp.Client with a list of roots. NewClient makes one. It is safe for concurrent use, as the other is; whoever
// connects it closes the session.
//
// Its AddRoots and RemoveRoots do nothing: what is told is what the list says.
type Client struct {
	*mcp.Client
	list *roots.List
	// The handlers beneath our own middleware, for what we say ourselves.
	send, receive mcp.MethodHandler
}

// NewClient is mcp.NewClient for a client that declares roots, and answers from a list when a server asks for them. The list is
// for one server, or for several that a person trusts alike; with nil no roots are declared. Capabilities of options
// keep what they say of everything but roots.
//
// Unless options.MultiRoundTrip disables it, what a server of 2026-07-28 asks in mid-request is answered by the list, in its
// order, and by the handlers that options have.
func NewClient(impl *mcp.Implementation, options *mcp.ClientOptions, list *roots.List) *Client {
	var o mcp.ClientOptions
	if options != nil {
		o = *options
	}
	var caps mcp.ClientCapabilities
	if o.Capabilities != nil {
		caps = *o.Capabilities
	}
	caps.RootsV2 = nil
	if list != nil {
		caps.RootsV2 = &mcp.RootCapabilities{} // what 2026-07-28 has; the handshake says more
	}
	o.Capabilities = &caps
	answers := o.MultiRoundTrip == nil || !o.MultiRoundTrip.Disabled
	o.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	c := &Client{Client: mcp.NewClient(impl, &o), list: list}
	c.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		c.send = next
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if r, ok := req.(*mcp.InitializeRequest); ok && list != nil {
				r.Params.Capabilities.RootsV2 = &mcp.RootCapabilities{ListChanged: list.Declare(r.Params.ProtocolVersion).ListChanged}
			}
			if r, ok := openRequest(req); ok && answers {
				return c.answer(ctx, method, r)
			}
			return next(ctx, method, req)
		}
	})
	c.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		c.receive = func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch {
			case method != "roots/list":
				return next(ctx, method, req)
			case list == nil:
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this client has no roots"}
			}
			return c.roots(), nil
		}
		return c.receive
	})
	return c
}

// Connect is Connect of mcp.Client. A server of a revision with a handshake is told of each change of the list until the
// session is closed. What the SDK could not read of the server's questions is put right on the way.
func (c *Client) Connect(ctx context.Context, t mcp.Transport, options *mcp.ClientSessionOptions) (*mcp.ClientSession, error) {
	watching, stop := context.WithCancel(context.Background())
	if c.list == nil {
		defer stop()
		return c.Client.Connect(ctx, tolerant(t), options)
	}
	changes := c.list.Changes(watching) // counted from before the server can have asked
	cs, err := c.Client.Connect(ctx, tolerant(t), options)
	if err != nil || !c.list.Declare(cs.InitializeResult().ProtocolVersion).ListChanged {
		stop()
		return cs, err
	}
	go func() {
		_ = cs.Wait() // how it ended is its owner's affair
		stop()
	}()
	go func() {
		for range changes {
			// An error is that of a connection that ends.
			_, _ = c.send(watching, "notifications/roots/list_changed", &mcp.ClientRequest[*mcp.RootsListChangedParams]{Session: cs, Params: &mcp.RootsListChangedParams{}})
		}
	}()
	return cs, nil
}

// roots is the answer to roots/list.
func (c *Client) roots() *mcp.ListRootsResult {
	res := &mcp.ListRootsResult{Roots: []*mcp.Root{}}
	for _, r := range c.list.Roots() {
		res.Roots = append(res.Roots, &mcp.Root{URI: r.URI, Name: r.Name})
	}
	return res
}

// answer sends a request, and again with answers, until its result asks nothing.
func (c *Client) answer(ctx context.Context, method string, r request) (mcp.Result, error) {
	sheds := 0
	for round := 1; ; round++ {
		res, err := c.send(ctx, method, r.Request)
		if err != nil {
			return res, err
		}
		asks, state := questions(res)
		if asks == nil {
			return res, nil
		}
		if len(asks) == 0 && state == "" {
			sheds++
		}
		switch {
		case sheds == mostSheds:
			return nil, fmt.Errorf("%s: the server is busy: it has put the request off %d times", method, sheds)
		case round == mostRounds:
			return nil, fmt.Errorf("%s: the server has asked %d times", method, round)
		}
		answers := make(mcp.InputResponseMap, len(asks))
		cs := r.GetSession().(*mcp.ClientSession)
		for _, key := range slices.Sorted(maps.Keys(asks)) {
			if answers[key], err = c.fulfil(ctx, cs, asks[key]); err != nil {
				return nil, fmt.Errorf("%s: answering the server's question %q: %w", method, key, err)
			}
		}
		r, _ = openRequest(r.Request)
		*r.responses, *r.state = answers, state
	}
}

// fulfil answers a question as if it had come as a request.
func (c *Client) fulfil(ctx context.Context, cs *mcp.ClientSession, ask mcp.InputRequest) (mcp.InputResponse, error) {
	var res mcp.Result
	var err error
	switch p := ask.(type) {
	case *mcp.ListRootsParams:
		res, err = c.receive(ctx, "roots/list", &mcp.ListRootsRequest{Session: cs, Params: p})
	case *mcp.ElicitParams:
		res, err = c.receive(ctx, "elicitation/create", &mcp.ElicitRequest{Session: cs, Params: p})
	case *mcp.CreateMessageWithToolsParams:
		res, err = c.receive(ctx, "sampling/createMessage", &mcp.CreateMessageWithToolsRequest{Session: cs, Params: p})
	default:
		err = fmt.Errorf("a question of an unknown kind, %T", p)
	}
	if err != nil {
		return nil, err
	}
	answer, ok := res.(mcp.InputResponse)
	if !ok {
		return nil, fmt.Errorf("bug: a %T is no answer", res)
	}
	return answer, nil
}
