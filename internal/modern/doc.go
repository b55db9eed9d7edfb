// Package modern speaks the stateless revision, 2026-07-28: the client edge, the server edge, and the sealing of what
// stages hold between the tries of a request. Neither edge does any I/O but to write to a wire.Writer; a transport feeds
// them what arrives.
//
// # Limits
//
// A request that a stage gave back is kept in memory until its retry, for a limited time and in a limited number; another
// process that gets the retry asks again. A sealed state is used at most once per process.
package modern
