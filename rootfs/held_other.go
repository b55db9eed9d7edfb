//go:build unix && !linux && !darwin

package rootfs

import "golang.org/x/sys/unix"

func renameNoReplace(int, string, int, string) error { return unix.ENOSYS }
