// Package results checks what a server answers before its client acts on it or a model reads it.
//
//	c := results.New(results.Options{Actions: results.Defaults()})
//	c.Learn("", list) // each result of tools/list: the schemas of what tools answer
//	v := c.Check(results.Result{Method: "tools/call", Tool: "read", Value: result, Outside: outside})
//	// v.Value goes on: the bytes that came, or with what was taken out; nil when nothing may
//
// There are seven checks, and for each of them what is done about a finding: nothing, it is told, what was found is taken
// out, or the whole result is withheld. A result in which nothing is found goes on byte for byte.
//
// # Limits
//
// Only where the protocol has a URI, in a resource, a link to one or a list of them, is it known to be one: paths in text,
// in structured content and in what a server calls otherwise are not seen. Names of members are taken as they are written: a
// client that reads "URI" as "uri" reads more than was checked.
//
// Secrets are found by their shape. One that has none, such as a password, is not found, nor one that was encoded. A finding
// says nothing about intent, and no finding is no promise: text that talks a model into something is text.
//
// Of images, sound and other data the first bytes are looked at, no more. Questions of a server, its log messages and its
// progress are no results. A schema that takes longer than a second to check against is given up, and counts as one that
// cannot be checked. What was begun goes on, since nothing ends it; with four that do, no schema that refers to a part of itself,
// and no long one with a long value, can be checked any more.
package results
