// Package streamable speaks MCP over HTTP: it listens for clients of both eras on one endpoint, and reaches servers of both.
//
// # Limits
//
// Without TLS everybody on the way reads and changes what is said, the token included. A host on which other users work is
// such a way: what listens on its loopback address without a token serves all of them.
package streamable
