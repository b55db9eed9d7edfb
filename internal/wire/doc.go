// Package wire cuts a stream into JSON-RPC messages, keeps their bytes, and edits a span without touching the rest.
//
// Every message is scanned once, strictly: where its id, method, params, result and error are, and whether two parsers
// could read it differently. What is ambiguous is refused, so that the bytes that were judged are the bytes that go on.
//
//	r := wire.NewReader(os.Stdin, 0)
//	for {
//		line, err := r.Next()
//		if err != nil {
//			break
//		}
//		m, err := wire.Scan(line, wire.Strict)
//		…
//	}
//
// # Limits
//
// A message is one line and is held whole in memory, up to the reader's limit. Nesting is limited to 10,000 levels, a batch to
// 10,000 messages, an id to 1,024 bytes.
// Strings are checked for well-formed text, not for their meaning; numbers keep their digits and are never converted.
// In a server's messages (Lenient) lone surrogates and bad UTF-8 inside strings are passed on as they came, because
// servers that cut strings by code unit send them.
package wire
