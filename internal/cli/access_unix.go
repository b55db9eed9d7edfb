//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/internal/sandbox"
)

func accessible(path string, _ os.FileInfo, use sandbox.Use) bool {
	mode := uint32(unix.R_OK)
	if use == sandbox.Writes {
		mode = unix.W_OK
	}
	return unix.Access(path, mode) == nil
}
