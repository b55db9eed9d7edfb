// Package calllog is the log: it appends to it, verifies it and reads it.
//
// A run writes one file. Its first record is of kind start, its last one of kind exit; between them stands, in order,
// every request with its verdict before the request took effect, and everything that happened to the roots.
//
//	log, err := calllog.Create(dir, calllog.Record{Server: "files", Version: "1.0", PID: os.Getpid()}, calllog.Options{})
//	…
//	err = log.Append(&calllog.Record{Kind: calllog.Call, Call: log.NewID(), Method: "tools/call", Verdict: calllog.Allow})
//	if err != nil {
//		… // what cannot be logged does not happen
//	}
//	err = log.Close(0, "client closed")
//
// # Format
//
// A file is named TIME-SERVER-PID-RANDOM.jsonl, so that names sort by the time a run began; it has mode 0600. A record is
// one line of JSON (see [Record]), written with one write before Append returns. Its last two members are
//
//	"prev":"<64 hex digits>","hash":"<64 hex digits>"}
//
// Hash is the SHA-256 of the line's bytes from the opening brace up to and without `,"hash":`. Prev, which is among
// those bytes, is the hash of the record before; in the first record it is 64 zeros. So a changed byte, and a record
// that was removed, moved or put in, is found, and by nothing more than a shell:
//
//	sed -n 2p FILE | sed 's/,"hash":"[0-9a-f]*"}$//' | tr -d '\n' | sha256sum
//
// A line without its end is what a crash or a full disk leaves; Verify reports it apart from damage. The writer holds a
// lock on its file, so that a run that goes on can be told from one that was killed.
//
// # Redaction
//
// Nothing a caller hands in is trusted to be free of secrets: Append redacts. Values under names that say secret
// (password, token, authorization, api_key and their kind), and text of a known shape (bearer and basic credentials,
// JWT, PEM, sk-…, AKIA…, passwords in URLs, long strings that look random) become "[12 bytes redacted]". A string over
// 256 bytes, or under a name of free text (content, text, query and their kind), becomes {"bytes":n,"sha256":"…"}: its
// size and the first eight digits of its SHA-256, which is left out below 32 bytes, where the string could be guessed
// from it. Paths stay readable. Of environment variables only the names are kept. Control characters, and what else
// cannot be seen, are escaped, in the file as in what is printed.
//
// # Limits
//
// The chain is not signed. Who may write to the directory can remove whole files, cut a file at the end of a record, or
// write all of it anew; only a head hash noted elsewhere (Report.Head) shows that. A server that is not confined and runs
// as the same user can do so. Without Options.Sync the last records before a loss of power may be lost, though not
// before a crash of the program.
//
// Redaction goes by names and shapes. It does not know a short password under an innocent name, and a secret that
// looks like a path stays.
package calllog
