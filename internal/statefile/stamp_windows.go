package statefile

import "io/fs"

// fileID says nothing here: size and time have to tell a file from one that was put in its place.
func fileID(fs.FileInfo) any { return nil }
