// Package logindex finds records in the log without reading all of it.
//
// The index is an SQLite database beside the log's JSONL files, which stay what holds: a record that is found is read from its
// file, where the index only says it lies. So the index can be thrown away at any time and is built anew by itself: when it is
// damaged, or of another version of the program.
//
//	x, err := logindex.Open(logindex.Path(state, logs), logs, func(note string) { … })
//	if err != nil {
//		return err
//	}
//	defer x.Close()
//	go x.Follow(ctx, func() { … })                                         // what is logged from now on
//	page, err := x.Search(ctx, logindex.Query{Verdict: calllog.Deny, Path: "/home/u/app"}) // newest first
//	page, err = x.Search(ctx, logindex.Query{Verdict: calllog.Deny, Path: "/home/u/app", Before: page.Next})
//
// The key of a record is its time, so the table itself has the order in which records are read, and a page or a span of time is a
// range of it. Everything else is asked of the rows as they pass, which are a few bytes each: a million are looked at in some
// tenths of a second. A text is looked for in the lines of the files.
//
// Several processes may follow one log in one index: each batch is a transaction that begins where the file's last one ended. A
// process that is killed leaves the batches that it finished.
//
// # Limits
//
// Who may write to the state directory can change the index, so that something is not found. Whether the log itself was
// changed is not seen here: calllog.Verify says it.
//
// A file that is changed in place is noticed by its time or by the end of what was indexed. Paths are compared as text, as
// they were logged.
package logindex
