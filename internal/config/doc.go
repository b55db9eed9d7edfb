// Package config reads our configuration as it is written, and resolves its layers into a plan.
//
//	plan, err := config.Resolve(config.System{Env: os.Getenv, Dir: cwd, GOOS: runtime.GOOS}, config.Flags{
//		Command: []string{"npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv/repo"},
//	})
//	if err != nil {
//		return err // names file, line and column of each fault
//	}
//	fmt.Println(plan.Roots.Len(), plan.Source) // 1 the server's own arguments
//
// A File is TOML or JSON in our own form, or one of the forms that people copy around: a client's file with mcpServers,
// TOML with [[mcp.servers]], or only roots and capabilities. A Plan is what holds for one server, each value with the
// file and line, or the flag, that it comes from.
//
// There are three layers: the managed file, the user's (or the one that --config names, with the flags), and the
// project's. A lower one only narrows: of roots it keeps or drops, of rights it takes away, and of two settings the
// stricter one holds. What runs, where the log goes and what is filled in is not for a project to say.
//
// The keys are declared once, in keys.go: the decoder, the JSON Schema and the check of docs/configuration.md use the
// same list.
//
// # Limits
//
// The managed file binds as far as the user cannot write to it and cannot run the server without Rootbound. A
// directory is resolved when the plan is made; what happens to it later is for others to watch. Watch sees what the
// system reports: on file systems that report nothing, a change is seen with the next event on another file.
package config
