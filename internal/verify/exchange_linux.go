package verify

import "golang.org/x/sys/unix"

// exchanged exchanges two names at once.
func exchanged(a, b, spare string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if err == unix.EINVAL || err == unix.ENOSYS {
		return exchangedSlowly(a, b, spare)
	}
	return err
}
