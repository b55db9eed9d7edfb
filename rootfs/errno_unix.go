//go:build unix

package rootfs

import (
	"errors"
	"syscall"
)

func codeOfErrno(err error) Code {
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return NotDirectory
	case errors.Is(err, syscall.EISDIR):
		return IsDirectory
	case errors.Is(err, syscall.EXDEV):
		return CrossDevice
	case errors.Is(err, syscall.EBUSY):
		return Mount
	case errors.Is(err, syscall.EROFS):
		return Permission
	case errors.Is(err, syscall.ELOOP):
		return Loop
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EINVAL):
		return InvalidPath
	case errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.EOPNOTSUPP):
		return SpecialFile // opening a socket, or a device that is not there
	}
	return IO
}

func isNotEmpty(err error) bool { return errors.Is(err, syscall.ENOTEMPTY) }
