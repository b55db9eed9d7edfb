// Package verify shows whether a server keeps its boundary: it acts as a client of each era, with a workspace of its own
// around which canaries lie, and tells what came back.
//
//	report, err := verify.Run(ctx, verify.Options{Start: start})
//
// # Limits
//
// It shows what it tried and nothing else. A server that behaves while it is looked at, or that keeps its bad ways for a path
// that is not among the cases, passes. A race that was not lost in the time that it got may be lost later. What a server does
// with the network, or with what it was given in its environment, is not looked at, unless Options.Opened looks.
package verify
