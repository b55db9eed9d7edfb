package rootfs

import (
	"errors"
	"syscall"

	"golang.org/x/sys/windows"
)

func codeOfErrno(err error) Code {
	switch {
	case errors.Is(err, windows.ERROR_DIRECTORY):
		return NotDirectory
	case errors.Is(err, windows.ERROR_NOT_SAME_DEVICE):
		return CrossDevice
	case errors.Is(err, windows.ERROR_WRITE_PROTECT), errors.Is(err, windows.ERROR_SHARING_VIOLATION):
		return Permission
	case errors.Is(err, syscall.ELOOP), errors.Is(err, windows.ERROR_CANT_RESOLVE_FILENAME):
		return Loop
	case errors.Is(err, windows.ERROR_INVALID_NAME), errors.Is(err, windows.ERROR_FILENAME_EXCED_RANGE):
		return InvalidPath
	}
	return IO
}

func isNotEmpty(err error) bool { return errors.Is(err, windows.ERROR_DIR_NOT_EMPTY) }
