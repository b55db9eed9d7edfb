// Package transport moves messages: over this program's own standard streams, and to and from a child process. It finds
// out which era a message is in and puts the edge in front of it, and which era the server speaks and puts a bridge in where
// that is another one.
//
//	server := transport.NewProcess(transport.Command{Args: []string{"mcp-server", "DIR"}}, transport.ProcessOptions{})
//	defer server.Close()
//	err := transport.ServeStdio(ctx, os.Stdin, os.Stdout, server, transport.StdioOptions{})
//
// # Limits
//
// A child and its descendants are killed with this program on Linux, macOS and the BSDs as long as they stay in its
// process group; on Linux also when they leave it, unless they leave it in the very moment in which this program is
// killed. On Windows a job object holds them.
package transport
