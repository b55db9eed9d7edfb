package transport

import "os"

// GrowStack makes the stack of the calling goroutine as large as it becomes on the way to a first answer, at once and while there
// is little on it. Else it grows step by step, and each step copies all of it and looks up each of its frames in tables that
// have to be read from the disk's cache first: that was 0.3 of the 5 ms of a start.
func GrowStack() { deep(false) }

//go:noinline
func deep(use bool) byte {
	if !use {
		return 0 // the room was made all the same, and nothing of it was touched
	}
	var room [56 << 10]byte
	return room[os.Getpid()%len(room)]
}
