package sandbox

import "net/netip"

// Watch is what a program is started with that is watched. It may do everything, unless Held says what it is held to.
//
// What it tells is what the program asks of the kernel, before the kernel answers. A program that means to can show
// something else than it does: it is for finding out what an honest one needs.
type Watch struct {
	// Seen is told of each access, one at a time, while the program waits for it.
	Seen func(Access)
	// Held is what the kernel holds it to meanwhile, nil for nothing. What is refused for that is told of too, but for the
	// network: what is closed to a program, it never gets to.
	Held *Policy
}

// Use says what an access is for.
type Use string

const (
	Reads    Use = "reads"
	Lists    Use = "lists"
	Writes   Use = "writes" // also makes, removes and renames: then the path is that of the directory
	Runs     Use = "runs"
	Connects Use = "connects" // over TCP, or over UDP
	Listens  Use = "listens"
	Sockets  Use = "uses the socket" // one of Unix
)

// Access is something that a watched program does. What is not there, and so cannot be had, is none.
type Access struct {
	Use Use
	// Path is absolute and without links; that of an abstract Unix socket begins with "@".
	Path string
	// Address is where it connects to.
	Address netip.AddrPort
	UDP     bool
	// Program is what does it: the path of its file.
	Program string
}
