package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func serve(args []string) error {
	s := tools()
	if !slices.Contains(args, "http") {
		return server.ServeStdio(s)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s/mcp\n", l.Addr())
	return http.Serve(l, server.NewStreamableHTTPServer(s))
}

func tools() *server.MCPServer {
	s := server.NewMCPServer("peers-mcpgo", "1.0.0", server.WithToolCapabilities(true), server.WithLogging(), server.WithElicitation(), server.WithRoots())
	add := func(name string, call func(context.Context, mcp.CallToolRequest) *mcp.CallToolResult, options ...mcp.ToolOption) {
		s.AddTool(mcp.NewTool(name, append(options, mcp.WithDescription(name))...), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return call(ctx, r), nil
		})
	}
	add("echo", func(_ context.Context, r mcp.CallToolRequest) *mcp.CallToolResult {
		return mcp.NewToolResultText(r.GetString("text", ""))
	}, mcp.WithString("text"))
	add("need_roots", func(_ context.Context, r mcp.CallToolRequest) *mcp.CallToolResult {
		if got := server.RootsResponse(r.Params.InputResponses, "roots"); got != nil {
			return mcp.NewToolResultText(listed(got))
		}
		return needRoots()
	})
	add("two_rounds", func(_ context.Context, r mcp.CallToolRequest) *mcp.CallToolResult {
		if got := server.ElicitationResponse(r.Params.InputResponses, "name"); got != nil {
			content, _ := got.Content.(map[string]any)
			return mcp.NewToolResultText(fmt.Sprint(r.Params.RequestState, " ", got.Action, " ", content["name"]))
		}
		got := server.RootsResponse(r.Params.InputResponses, "roots")
		if got == nil {
			return needRoots()
		}
		return server.NewInputRequestBuilder("two "+listed(got)).Elicit("name", mcp.ElicitationParams{
			Mode: mcp.ElicitationModeForm, Message: "Who?",
			RequestedSchema: map[string]any{
				"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}, "required": []string{"name"},
			},
		}).ToolResult()
	})
	add("slow", func(ctx context.Context, r mcp.CallToolRequest) *mcp.CallToolResult {
		steps := r.GetInt("steps", 0)
		for i := range steps {
			if r.Params.Meta == nil {
				break
			}
			s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{
				"progressToken": r.Params.Meta.ProgressToken, "progress": i + 1, "total": steps, "message": fmt.Sprint("step ", i+1),
			})
		}
		if r.GetBool("hang", false) {
			<-ctx.Done()
		}
		return mcp.NewToolResultText("done")
	}, mcp.WithNumber("steps"), mcp.WithBoolean("hang"))
	add("big", func(_ context.Context, r mcp.CallToolRequest) *mcp.CallToolResult {
		return mcp.NewToolResultText(strings.Repeat("0123456789abcdef", r.GetInt("bytes", 0)/16))
	}, mcp.WithNumber("bytes"))
	add("add_tool", func(context.Context, mcp.CallToolRequest) *mcp.CallToolResult {
		add("added", func(context.Context, mcp.CallToolRequest) *mcp.CallToolResult { return mcp.NewToolResultText("added") })
		return mcp.NewToolResultText("added")
	})
	return s
}

func needRoots() *mcp.CallToolResult {
	return server.NewInputRequestBuilder("one").Roots("roots").ToolResult()
}

func listed(r *mcp.ListRootsResult) string {
	uris := make([]string, len(r.Roots))
	for i, root := range r.Roots {
		uris[i] = root.URI
	}
	return strings.Join(uris, " ")
}
