// Package fsserver is the filesystem server: the tools of the reference filesystem server as an exchange.Handler, by name,
// parameters, answers and error texts, in both eras.
//
//	server := fsserver.New(fsserver.Options{Name: "rootbound-fs", Version: "1.0.0"})
//	defer server.Close()
//	err := transport.ServeStdio(ctx, os.Stdin, os.Stdout, exchange.Chain(server, stages...), transport.StdioOptions{})
//
// Each call reaches what Request.Roots holds and nothing else: a stage in front sets it. A set without a directory that
// may be read is answered with what to configure. The roots and all that is in them are resources as well, which a client
// can follow: it is told that one has changed, for as long as its roots hold it.
//
// # Limits
//
// The boundary is that of package rootfs, with its limits: a hard link or a mount inside a root brings in what it names.
// A root that is replaced while its set stays the same is served as it was opened; the roots stage looks for that and
// makes another set of it. Error texts name the allowed directories and paths beneath them, as those of the reference
// server do (unless Options.Redact keeps them out), and say no more of what lies outside than the argument did. An answer
// is bounded, and so is how many calls walk or have a large file in memory at one time; the others wait. A file system that does
// not answer keeps the calls that reach it: a walk is answered without it after a while, and what waits for it beyond a number of
// calls is refused.
//
// A change of a resource is noticed by the times of its file and not by its content. The system's watcher, which only says
// when to look, watches paths: it may be led to watch a directory outside, and nothing of that is told.
//
// A file is replaced by a new one, so that nobody sees half of it; other hard links of it keep the old content. What
// another process writes between the last look and the exchange is lost. Text to edit is found as UTF-8: in a file of
// another encoding whose characters end in bytes of ASCII, as GBK has some, a short text can match a part of one. A copy
// of a directory that fails leaves what was copied. What is deleted stays in the trash of its root, on the same disk.
package fsserver
