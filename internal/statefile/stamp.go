package statefile

import (
	"os"
	"time"
)

// Stamp tells states of a file apart, without reading it. The zero value is that of a file that is not there.
type Stamp struct {
	size     int64
	modified time.Time
	id       any
}

// StampOf returns the stamp of a file as it is now.
func StampOf(path string) Stamp {
	info, err := os.Stat(path)
	if err != nil {
		return Stamp{}
	}
	return Stamp{info.Size(), info.ModTime(), fileID(info)}
}
