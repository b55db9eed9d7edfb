//go:build !race

package mcptest

// Race reports whether the race detector is on, with which all takes many times as long.
const Race = false
