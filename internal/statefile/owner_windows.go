package statefile

import (
	"io/fs"
	"os"
)

func keepOwner(*os.File, fs.FileInfo) error { return nil }

// hold does nothing: who has a file open keeps it from being removed.
func hold(string) (release func()) { return func() {} }

func left(string, fs.FileInfo) bool { return true }
