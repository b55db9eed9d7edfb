package rootfs

import "golang.org/x/sys/unix"

func renameNoReplace(from int, name string, to int, as string) error {
	return unix.RenameatxNp(from, name, to, as, unix.RENAME_EXCL)
}
