//go:build unix && !linux

package rootfs

import (
	"errors"
	"os"
)

func mayWriteByKernel(*os.File) error { return errors.ErrUnsupported }
