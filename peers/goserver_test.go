//lint:file-ignore SA1019 What is deprecated is still spoken, and is what these tests are about.

package peers

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// goServer is a server on the Go SDK that speaks both eras, or with the argument "modern" or "legacy" one of them. Its tools are
// those of node/server.mjs.
func goServer(args []string) int {
	if err := goTools(args).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, "goserver:", err)
		return 1
	}
	return 0
}

func goTools(args []string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "peers-go", Version: "1.0.0"}, nil)
	refused := map[string]string{"modern": "initialize", "legacy": "server/discover"}
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if len(args) > 0 && method == refused[args[0]] {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "not here"}
			}
			return next(ctx, method, r)
		}
	})
	tool(s, "echo", func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Text string `json:"text"`
	}) *mcp.CallToolResult {
		return say(in.Text)
	})
	tool(s, "need_roots", func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) *mcp.CallToolResult {
		if got, ok := r.Params.InputResponses["roots"].(*mcp.ListRootsResult); ok {
			return say(listed(got))
		}
		return needRoots()
	})
	tool(s, "two_rounds", func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) *mcp.CallToolResult {
		if got, ok := r.Params.InputResponses["name"].(*mcp.ElicitResult); ok {
			return say(fmt.Sprint(r.Params.RequestState, " ", got.Action, " ", got.Content["name"]))
		}
		got, ok := r.Params.InputResponses["roots"].(*mcp.ListRootsResult)
		if !ok {
			return needRoots()
		}
		return &mcp.CallToolResult{
			RequestState: "two " + listed(got), InputRequests: mcp.InputRequestMap{"name": who},
		}
	})
	tool(s, "at_once", func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) *mcp.CallToolResult {
		name, ok := r.Params.InputResponses["name"].(*mcp.ElicitResult)
		if got, both := r.Params.InputResponses["roots"].(*mcp.ListRootsResult); ok && both {
			return say(fmt.Sprint(r.Params.RequestState, " ", listed(got), " ", name.Content["name"]))
		}
		ask := needRoots()
		ask.InputRequests["name"] = who
		return ask
	})
	tool(s, "slow", func(ctx context.Context, r *mcp.CallToolRequest, in struct {
		Steps int  `json:"steps"`
		Hang  bool `json:"hang,omitempty"`
	}) *mcp.CallToolResult {
		for i := range in.Steps {
			r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: float64(in.Steps), Message: fmt.Sprint("step ", i+1),
			})
		}
		if in.Hang {
			<-ctx.Done()
		}
		return say("done")
	})
	tool(s, "log", func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) *mcp.CallToolResult {
		r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Logger: "peers", Data: map[string]string{"said": "in mid-call"}})
		return say("logged")
	})
	tool(s, "big", func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Bytes int `json:"bytes"`
	}) *mcp.CallToolResult {
		return say(strings.Repeat("0123456789abcdef", in.Bytes/16))
	})
	tool(s, "add_tool", func(context.Context, *mcp.CallToolRequest, struct{}) *mcp.CallToolResult {
		tool(s, "added", func(context.Context, *mcp.CallToolRequest, struct{}) *mcp.CallToolResult { return say("added") })
		return say("added")
	})
	return s
}

// who asks for a name.
var who = &mcp.ElicitParams{
	Message: "Who?",
	RequestedSchema: &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{"name": {Type: "string"}}, Required: []string{"name"},
	},
}

func tool[In any](s *mcp.Server, name string, f func(context.Context, *mcp.CallToolRequest, In) *mcp.CallToolResult) {
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: name}, func(ctx context.Context, r *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		return f(ctx, r, in), nil, nil
	})
}

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func needRoots() *mcp.CallToolResult {
	return &mcp.CallToolResult{RequestState: "one", InputRequests: mcp.InputRequestMap{"roots": &mcp.ListRootsParams{}}}
}

func listed(r *mcp.ListRootsResult) string {
	uris := make([]string, len(r.Roots))
	for i, root := range r.Roots {
		uris[i] = root.URI
	}
	return strings.Join(uris, " ")
}
