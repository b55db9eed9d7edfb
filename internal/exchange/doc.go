// Package exchange holds what an MCP request is when no transport and no peer is in sight.
//
// One rule carries the design: a request is open until it is answered; while it is open, its caller can be told
// things and asked things; nothing is ever said outside an open request. Handlers form a chain, as HTTP middleware
// does, and every transport and both eras meet here.
package exchange
