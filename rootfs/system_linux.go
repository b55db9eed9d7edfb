package rootfs

import (
	"os"

	"golang.org/x/sys/unix"
)

func mayWriteByKernel(f *os.File) error {
	return control(f, func(fd int) error { return unix.Faccessat(fd, "", unix.W_OK, unix.AT_EACCESS|unix.AT_EMPTY_PATH) })
}
