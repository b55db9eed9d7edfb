//go:build unix

package gosdk_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rootbound/rootbound/gosdk"
	"github.com/rootbound/rootbound/rootfs"
	"github.com/rootbound/rootbound/roots"
)

// A server may read two directories, and its client has one of them open.
func Example() {
	ctx := context.Background()
	top, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(top)
	dir := func(name string) roots.Dir {
		path := filepath.Join(top, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, name+".txt"), []byte("I am "+name), 0o644); err != nil {
			log.Fatal(err)
		}
		d, err := roots.Resolve(path, roots.ResolveOptions{Name: name, Access: roots.ReadOnly})
		if err != nil {
			log.Fatal(err)
		}
		return d
	}
	frontend, backend := dir("frontend"), dir("backend")
	info := &mcp.Implementation{Name: "example", Version: "1.0.0"}

	server := gosdk.NewServer(info, nil, roots.SessionOptions{Configured: roots.NewSet(frontend, backend)})
	type input struct {
		Path string `json:"path"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "read"}, func(ctx context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		state, err := gosdk.Roots(ctx)
		if err != nil {
			return nil, nil, err
		}
		files, err := rootfs.Open(state.Set, rootfs.Options{})
		if err != nil {
			return nil, nil, err
		}
		defer files.Close()
		f, err := files.Open(in.Path)
		if err != nil {
			return nil, nil, gosdk.Denied(ctx, in.Path, err)
		}
		defer f.Close()
		text, err := io.ReadAll(f)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, err
	})

	list := roots.NewList(roots.NewSet(frontend, backend)) // the user agreed to both
	list.Set(backend)                                      // and has one open
	client := gosdk.NewClient(info, nil, list)
	there, here := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, there, nil); err != nil {
		log.Fatal(err)
	}
	session, err := client.Connect(ctx, here, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	for _, path := range []string{"backend.txt", "/etc/passwd"} {
		res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "read", Arguments: input{path}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Content[0].(*mcp.TextContent).Text)
	}
	// Output:
	// I am backend
	// opening "/etc/passwd": outside the roots, or through a link that ends outside them or nowhere
}
