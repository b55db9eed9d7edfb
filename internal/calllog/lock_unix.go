//go:build !windows

package calllog

import (
	"os"
	"syscall"
)

// lock marks f as the file of a run that goes on, until f is closed. It waits for askers, who are quick.
func lock(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			return os.NewSyscallError("flock", err)
		}
	}
}

// locked reports whether a run that goes on holds f. Askers do not get into each other's way.
func locked(f *os.File) bool {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		return true
	}
	syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	return false
}
