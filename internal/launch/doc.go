// Package launch knows what a command line really runs: which server is behind npx, uvx, docker, env or cmd, which of
// its arguments are directories, and what the paths in its calls mean.
//
//	c := launch.Command{Path: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "/srv/repo"}}
//	t := launch.Identify(c)
//	if p, ok := launch.Lookup(t); ok {
//		for _, d := range p.Directories(t) {
//			fmt.Println(d.Path) // /srv/repo
//		}
//	}
//
// It also fills the roots into a command (Command.Fill), and finds which files it needs to run at all (Command.Needs).
//
// Nothing is started here. Which server it is, is judged by the text of a command line and by the shipped profiles; only
// Needs looks at the disk.
//
// # Limits
//
// A shell command (sh -c), a script and a program that starts another by itself are not looked into: they are unknown,
// which asks for the strict treatment. A profile describes the package of that name; who publishes another program
// under the name gets the profile too. What a program loads by a path of its own, and what it starts, is not found by
// Needs, which knows Node, Deno, Bun, Python and plain programs. Covers says whether a version is one whose code was read.
package launch
