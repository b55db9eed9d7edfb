// Package roots holds the directories that an MCP server is held to, as values: root URIs, sets of resolved roots and
// their algebra, and what holds when a client has a list of its own.
//
// A Root is a root as told, a URI and a name. A Dir is a root as it is on disk. Only a Set of Dirs can be intersected or
// compared:
//
//	dir, err := roots.Resolve("~/src/frontend", roots.ResolveOptions{Access: roots.ReadWrite})
//	if err != nil {
//		return err // names the root, and says what to do instead
//	}
//	configured := roots.NewSet(dir)
//
// What a client answers to roots/list only ever narrows what was configured:
//
//	dirs, bad := roots.ResolveList(answer, roots.ParseURI, roots.ResolveOptions{Access: roots.ReadWrite})
//	allowed := configured.Intersect(roots.NewSet(dirs...))
//
// A Tracker does the rest of it: it says when to ask the client, what holds until the answer, after it, and when none
// comes, and what to tell of it. A Session is one with a clock and a lock, which a server uses as it is; a List is the
// client's side. For the Go SDK of MCP both are put on in github.com/rootbound/rootbound/gosdk.
//
// Resolve, ResolveList, Dir.Refresh, Workspace and Broad look at the disk, and with the first three Session and List do.
// Nothing else here does.
//
// # Limits
//
// This package opens nothing for its callers, so it keeps nobody out: to reach files inside a Set use package rootfs.
// Set.Match goes by text and is for messages. A Dir is what was there when it was resolved; a directory can be moved,
// replaced or linked elsewhere the moment after, and Dir.Refresh only tells of it. What is broad is known from the
// user's home and from the places where systems keep homes; a directory that holds everything under another name is
// not. Where names are not case-sensitive on Linux (some mounts), a spelling in other letters counts as another place.
package roots
