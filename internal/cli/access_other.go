//go:build !unix

package cli

import (
	"os"

	"github.com/rootbound/rootbound/internal/sandbox"
)

func accessible(_ string, info os.FileInfo, use sandbox.Use) bool {
	return use != sandbox.Writes || info.Mode()&0o200 != 0
}
