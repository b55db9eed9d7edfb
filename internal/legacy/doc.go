// Package legacy speaks the handshake revisions, 2024-11-05 to 2025-11-25: the client edge turns what a client says into
// open requests, and the server edge is a handler in front of a server. Neither does any I/O but to write to a
// wire.Writer; a transport feeds them what arrives.
//
// # Limits
//
// On stdio nothing says which request a server's question belongs to. It travels on the session's listen request when
// that can carry it, else on the oldest open request that can.
package legacy
