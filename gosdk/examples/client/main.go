// Command client shows an MCP server one directory, calls one of its tools, and prints what it says. The server is started
// behind a guard, which keeps its calls to the directory, and asks nobody.
//
//	client [-unguarded] [-revision REVISION] DIR TOOL ARGUMENTS COMMAND ARGS…
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rootbound/rootbound/gosdk"
	"github.com/rootbound/rootbound/roots"
)

func main() {
	log.SetFlags(0)
	unguarded := flag.Bool("unguarded", false, "start the server by itself")
	revision := flag.String("revision", "", "begin with this revision of MCP")
	flag.Parse()
	if flag.NArg() < 4 {
		log.Fatal("usage: client [-unguarded] [-revision REVISION] DIR TOOL ARGUMENTS COMMAND ARGS…")
	}
	if err := run(flag.Arg(0), flag.Arg(1), json.RawMessage(flag.Arg(2)), flag.Args()[3:], *unguarded, *revision); err != nil {
		log.Fatal(err)
	}
}

func run(path, tool string, arguments json.RawMessage, command []string, unguarded bool, revision string) error {
	ctx := context.Background()
	dir, err := roots.Resolve(path, roots.ResolveOptions{Access: roots.ReadWrite})
	if err != nil {
		return err
	}
	transport := &mcp.CommandTransport{Command: exec.Command(command[0], command[1:]...)}
	if !unguarded {
		if transport, err = gosdk.Guard(command, "--root", dir.Path, "--preset", "boundary"); err != nil {
			return err
		}
	}
	list := roots.NewList(roots.NewSet(dir)) // what the server may be told
	client := gosdk.NewClient(&mcp.Implementation{Name: "example-client", Version: "1.0.0"}, nil, list)
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		return err
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(result.Content, "", "  ")
	fmt.Println(string(text))
	return err
}
