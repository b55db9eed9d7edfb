// Package pathargs finds the path arguments of a request to a server and judges where they lead.
//
// Find is pure: it decides from the request, the tool's schema and the rules which strings may be paths, and why. Judge
// asks the disk where each leads, as the server will see it, and whether a root allows it.
//
//	args, err := pathargs.Find(msg.Method(), msg.Params(), &catalog, rules)
//	if err != nil {
//		return err
//	}
//	verdict := pathargs.Judge(args, set, pathargs.Process{Dir: cwd, Home: home})
//	if refused := verdict.Refused(); len(refused) > 0 {
//		…
//	}
//
// # Which strings count
//
// By rule: what the configuration lists. By name: the last words of the argument's name speak of a file or a directory
// (path, filePath, output_dir, fileNames), or its schema has a format that does; everything in an array goes by the
// array's name. By a name that can mean something else (from, to, source, destination, root, uri, name): when the value
// has the shape of a path, or the server is a filesystem server. By shape: any other string, if it is one line of at most
// 4,096 bytes that begins like a path and something of that path exists on this machine. Names of members count by their
// shape, and by the name of the object they are in. Names of free text (content, query, code, …) never count.
//
// For a server elsewhere, whose paths are not of this machine, only "file:" URIs and "~/" count. Where directories of its machine
// are known, JudgeText holds its paths to them by their text; then no one looks whether something exists.
//
// # Every reading
//
// A server may decode a value before it uses it, or may not; it may resolve ".." in the text or leave it to the system;
// it may resolve a relative path in its working directory or in a root. What it does cannot be seen, so a value is judged
// under every reading below, and refused if one of them leads where no root allows it:
//
//   - as it is, and without blanks and quotes around it (servers trim);
//   - a "file:" URI as the path it names; a URI that names another machine is refused;
//   - percent-encoding decoded, once and again;
//   - where the separator is "/": with "\" as separator, and a drive as WSL mounts it;
//   - "~", "~user" and "$HOME" expanded;
//   - cut at a NUL byte, at the "?" or "#" of a URI, or at a colon (file:line, volume:mount);
//   - under a name in the plural: each part between commas, semicolons and line ends;
//   - text that is JSON, where the name or the schema expects a list or an object: as what is in it;
//   - ".." resolved by the system, link by link, and in the text;
//   - relative: in the working directory, and in each root that is a directory.
//
// # Limits
//
// What is checked here is used later by a process that can do as it likes: this stops honest mistakes, not a hostile
// server. Paths inside free text, inside command lines, behind schemes that a server made up, and paths that a server
// keeps from one call to the next are not seen. More than 10,000 paths in a request, 256 in a string, or 64 readings of one are
// refused unread. No Unicode normalisation is applied. A path that a link replaces between
// the check and the use leads elsewhere.
package pathargs
