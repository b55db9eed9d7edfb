package calllog

import (
	"os"

	"golang.org/x/sys/windows"
)

// beyond is the byte that is locked: Windows keeps others from reading locked bytes, so it is one that no file reaches.
var beyond = windows.Overlapped{OffsetHigh: 1 << 30}

// lock marks f as the file of a run that goes on, until f is closed. It waits for askers, who are quick.
func lock(f *os.File) error {
	o := beyond
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, &o)
	return os.NewSyscallError("LockFileEx", err)
}

// locked reports whether a run that goes on holds f. Askers do not get into each other's way.
func locked(f *os.File) bool {
	o := beyond
	if err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &o); err != nil {
		return true
	}
	o = beyond
	windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &o)
	return false
}
