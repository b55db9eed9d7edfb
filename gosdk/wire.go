//lint:file-ignore SA1019 Roots are deprecated and still spoken, and are what this package is about.

package gosdk

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rootbound/rootbound/roots"
)

// request is a copy of a request that may ask its client, with what changes from one try to the next.
type request struct {
	mcp.Request
	caps      *mcp.ClientCapabilities // where a server has it
	responses *mcp.InputResponseMap
	state     *string
}

// openRequest returns a copy of a request, at either end, if its method is one that may ask.
func openRequest(req mcp.Request) (request, bool) {
	switch r := req.(type) {
	case *mcp.CallToolRequest:
		c, p := *r, *r.Params
		c.Params = &p
		return request{&c, r.ClientCapabilities(), &p.InputResponses, &p.RequestState}, true
	case *mcp.GetPromptRequest:
		c, p := *r, *r.Params
		c.Params = &p
		return request{&c, r.ClientCapabilities(), &p.InputResponses, &p.RequestState}, true
	case *mcp.ReadResourceRequest:
		c, p := *r, *r.Params
		c.Params = &p
		return request{&c, r.ClientCapabilities(), &p.InputResponses, &p.RequestState}, true
	}
	cs, ok := req.GetSession().(*mcp.ClientSession)
	if !ok {
		return request{}, false
	}
	switch p := req.GetParams().(type) {
	case *mcp.CallToolParams:
		c := *p
		return request{&mcp.ClientRequest[mcp.Params]{Session: cs, Params: &c}, nil, &c.InputResponses, &c.RequestState}, true
	case *mcp.GetPromptParams:
		c := *p
		return request{&mcp.ClientRequest[mcp.Params]{Session: cs, Params: &c}, nil, &c.InputResponses, &c.RequestState}, true
	case *mcp.ReadResourceParams:
		c := *p
		return request{&mcp.ClientRequest[mcp.Params]{Session: cs, Params: &c}, nil, &c.InputResponses, &c.RequestState}, true
	}
	return request{}, false
}

// questions returns what a result asks instead of being one, and the state that goes back with the answers. A result
// that asks nothing has nil.
func questions(res mcp.Result) (asks mcp.InputRequestMap, state string) {
	needs := false
	switch r := res.(type) {
	case *mcp.CallToolResult:
		if r != nil {
			asks, state, needs = r.InputRequests, r.RequestState, r.NeedsInput()
		}
	case *mcp.GetPromptResult:
		if r != nil {
			asks, state, needs = r.InputRequests, r.RequestState, r.NeedsInput()
		}
	case *mcp.ReadResourceResult:
		if r != nil {
			asks, state, needs = r.InputRequests, r.RequestState, r.NeedsInput()
		}
	}
	if asks == nil && needs { // only a state, which is to be brought back
		asks = mcp.InputRequestMap{}
	}
	return asks, state
}

// failure returns the error with which a handler ended. That of a tool may be inside its result.
func failure(res mcp.Result, err error) error {
	if r, ok := res.(*mcp.CallToolResult); ok && r != nil && err == nil {
		return r.GetError()
	}
	return err
}

// inputRequired makes a result of questions. Only what comes from JSON text has its resultType.
func inputRequired(method string, asks mcp.InputRequestMap, state string) (mcp.Result, error) {
	members := map[string]any{"resultType": "input_required", "inputRequests": asks}
	if state != "" {
		members["requestState"] = state
	}
	var res mcp.Result
	switch method {
	case "tools/call":
		members["content"], res = []any{}, new(mcp.CallToolResult)
	case "prompts/get":
		members["messages"], res = []any{}, new(mcp.GetPromptResult)
	default:
		members["contents"], res = []any{}, new(mcp.ReadResourceResult)
	}
	text, err := json.Marshal(members)
	if err == nil {
		err = json.Unmarshal(text, res)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: making a question of %d: %w", method, len(asks), err)
	}
	return res, nil
}

// withQuestions returns a result of questions with others.
func withQuestions(res mcp.Result, asks mcp.InputRequestMap) mcp.Result {
	switch r := res.(type) {
	case *mcp.CallToolResult:
		c := *r
		c.InputRequests = asks
		return &c
	case *mcp.GetPromptResult:
		c := *r
		c.InputRequests = asks
		return &c
	case *mcp.ReadResourceResult:
		c := *r
		c.InputRequests = asks
		return &c
	}
	return res
}

// missing returns what a client would have to declare to be asked all of this, as the value of requiredCapabilities; nil
// when it declares it.
func missing(caps *mcp.ClientCapabilities, asks mcp.InputRequestMap) map[string]any {
	need := map[string]any{}
	for _, ask := range asks {
		switch p := ask.(type) {
		case *mcp.ListRootsParams:
			if caps.RootsV2 == nil {
				need["roots"] = map[string]any{}
			}
		case *mcp.ElicitParams:
			mode := "form"
			if p.Mode == "url" || p.URL != "" {
				mode = "url"
			}
			// A client that names no mode has forms.
			if e := caps.Elicitation; e == nil || mode == "url" && e.URL == nil || mode == "form" && e.Form == nil && e.URL != nil {
				need["elicitation"] = map[string]any{mode: map[string]any{}}
			}
		case *mcp.CreateMessageParams:
			if caps.Sampling == nil {
				need["sampling"] = map[string]any{}
			}
		case *mcp.CreateMessageWithToolsParams:
			switch {
			case len(p.Tools) > 0 && (caps.Sampling == nil || caps.Sampling.Tools == nil):
				need["sampling"] = map[string]any{"tools": map[string]any{}}
			case caps.Sampling == nil:
				need["sampling"] = map[string]any{}
			}
		}
	}
	if len(need) == 0 {
		return nil
	}
	return need
}

// listOf is a client's answer to roots/list as package roots takes it.
func listOf(res *mcp.ListRootsResult, err error) ([]roots.Root, error) {
	var wire *jsonrpc.Error
	switch {
	case errors.As(err, &wire) && wire.Code == jsonrpc.CodeMethodNotFound:
		return nil, fmt.Errorf("%w (%w)", err, errors.ErrUnsupported)
	case err != nil:
		return nil, err
	case res == nil || res.Roots == nil:
		return nil, errors.New(`its answer has no list "roots"`)
	}
	list := make([]roots.Root, 0, len(res.Roots))
	for _, r := range res.Roots {
		if r == nil {
			r = &mcp.Root{}
		}
		list = append(list, roots.Root{URI: r.URI, Name: r.Name})
	}
	return list, nil
}

// rootsOf is the answer to a question that travelled with a result.
func rootsOf(response mcp.InputResponse) ([]roots.Root, error) {
	res, _ := response.(*mcp.ListRootsResult)
	return listOf(res, nil)
}

// asWireError gives an error a code of JSON-RPC: that of the client, where it is the client's.
func asWireError(err error) error {
	var wire *jsonrpc.Error
	code := int64(jsonrpc.CodeInternalError)
	if errors.As(err, &wire) && wire.Code != 0 {
		code = wire.Code
	}
	return &jsonrpc.Error{Code: code, Message: err.Error()}
}
