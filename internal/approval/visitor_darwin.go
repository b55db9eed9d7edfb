package approval

import (
	"fmt"
	"net"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// visitor says who is at the other end, or why it may not answer: another user, or a process that descends from a guard.
// What a server leaves behind when its parent ends descends from the first process, so it is not known.
func visitor(c net.Conn, guards []int) (string, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return "", fmt.Errorf("bug: a %T", c)
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return "", err
	}
	var pid int
	var cred *unix.Xucred
	var e1, e2 error
	if err := raw.Control(func(fd uintptr) {
		pid, e1 = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
		cred, e2 = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	}); err != nil || e1 != nil || e2 != nil {
		return "", fmt.Errorf("it cannot be known who it is")
	}
	if int(cred.Uid) != os.Geteuid() && cred.Uid != 0 {
		return "", fmt.Errorf("process %d is of another user (%d)", pid, cred.Uid)
	}
	for at, n := pid, 0; at > 0; n++ {
		if at != pid && slices.Contains(guards, at) {
			return "", fmt.Errorf("process %d descends from a guard (process %d): a server does not answer for a person", pid, at)
		}
		info, err := unix.SysctlKinfoProc("kern.proc.pid", at)
		if err != nil || n > 1000 {
			return "", fmt.Errorf("process %d: it cannot be known what it descends from", pid)
		}
		at = int(info.Eproc.Ppid)
	}
	return fmt.Sprintf("process %d of user %d", pid, cred.Uid), nil
}
