// Package mcptest has peers for tests: a child process that says what a test tells it to, transcripts that play a client
// and a server and hold what each of them gets to the byte, and two programs for scripts: a well-behaved server, and a
// client that plays a written session.
package mcptest
