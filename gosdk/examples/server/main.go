// Command server is an MCP server with one tool, which reads text files: only beneath the directories of its command line,
// and of those only what its client has open.
//
//	server DIR…
package main

import (
	"context"
	"io"
	"log"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rootbound/rootbound/gosdk"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

type readInput struct {
	Path string `json:"path" jsonschema:"an absolute path, or one that begins in a root"`
}

func read(ctx context.Context, _ *mcp.CallToolRequest, in readInput) (*mcp.CallToolResult, any, error) {
	allowed, err := gosdk.Roots(ctx)
	if err != nil {
		return nil, nil, err // the client is asked, and the call made again
	}
	files, err := rootfs.Open(allowed.Set, rootfs.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer files.Close()
	f, err := files.Open(in.Path)
	if err != nil {
		return nil, nil, gosdk.Denied(ctx, in.Path, err) // its list may be out of date
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, err
}

func main() {
	log.SetFlags(0)
	var dirs []roots.Dir
	for _, arg := range os.Args[1:] {
		dir, err := roots.Resolve(arg, roots.ResolveOptions{Access: roots.ReadOnly})
		if err != nil {
			log.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	server := gosdk.NewServer(&mcp.Implementation{Name: "example-server", Version: "1.0.0"}, nil,
		roots.SessionOptions{Configured: roots.NewSet(dirs...), Warn: func(text string) { log.Print(text) }})
	mcp.AddTool(server, &mcp.Tool{Name: "read", Description: "Reads a text file."}, read)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
