// Package gosdk lets clients and servers on github.com/modelcontextprotocol/go-sdk honour roots, in the revisions with a
// handshake and in 2026-07-28 alike. It adapts package roots, which decides; files are reached by package rootfs.
//
// A server is told what its operator allows, and its handlers ask what of that holds for the request at hand:
//
//	server := gosdk.NewServer(info, nil, roots.SessionOptions{Configured: allowed})
//	mcp.AddTool(server, tool, func(ctx context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
//		state, err := gosdk.Roots(ctx)
//		if err != nil {
//			return nil, nil, err // the client is asked, and the call made again
//		}
//		…
//
// A client is given a list, which answers for it and tells of changes, and starts servers behind a guard:
//
//	client := gosdk.NewClient(info, nil, roots.NewList(open))
//	transport, err := gosdk.Guard([]string{"some-server"}, "--root", dir)
//	session, err := client.Connect(ctx, transport, nil)
//
// Gaps of the SDK (v1.8.0) in these places, for which this package makes up, are named in docs/library.md.
//
// # Limits
//
// Roots says which directories hold and opens none: only what is opened through package rootfs is held to them. Over HTTP
// a client may be on another machine, whose directories are not those of this one: for those set roots.Ignore. A server
// behind Guard is held as far as the guard says at its start; without --confine that is the paths of its calls.
package gosdk
