// Package clientconf finds, reads and edits the files in which MCP clients keep their servers: Claude Code, VS Code,
// Cursor, Codex and the others of Clients.
//
//	for _, f := range clientconf.Find(clientconf.Host{Home: home, Project: dir, OS: runtime.GOOS, Env: os.Getenv}) {
//		for _, s := range f.Servers {
//			fmt.Println(f.Client.Name, s.Name, s.Command.Text, s.Command.Pos)
//		}
//	}
//
// Each client is one entry of the table in a file of its own: where its files are on each system, by which grammar it reads
// them, under which keys, and what is known of its roots and of who approves its calls, with source and date. A file is read
// by its client's own grammar, and what that grammar refuses is a Problem with a place. An edit replaces the text of one
// server and leaves every other byte.
//
// Nothing that is found in a file is executed, and no secret is printed: the values of environment variables and headers
// are Hidden, and are empty in the trees.
//
// # Limits
//
// What a client reads is known from its source, its documentation or reports, as the facts say, and changes with its
// versions. A file that is written while it is read may be seen half. Crush's crushrc is a program: only plain lines of it
// are understood.
package clientconf
