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
	case errors.Is(err, syscall.ELOOP), errors.Is(err, windows.ERROR_CANT_RESOLVE_FILENAME):
		return Loop
	case errors.Is(err, windows.ERROR_INVALID_NAME), errors.Is(err, windows.ERROR_FILENAME_EXCED_RANGE):
		return InvalidPath
	}
	return IO
}
