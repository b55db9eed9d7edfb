// Package mcptest has peers for tests: a child process that says what a test tells it to, and transcripts that play a
// client and a server and hold what each of them gets to the byte.
package mcptest
