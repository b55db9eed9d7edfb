package approval

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// visitor says who is at the other end, or why it may not answer: another user, or a process that descends from a guard.
// Since guards are subreapers, what a server leaves behind descends from its guard.
func visitor(c net.Conn, guards []int) (string, error) {
	cred, err := credentials(c)
	if err != nil {
		return "", fmt.Errorf("it cannot be known who it is: %w", err)
	}
	pid := int(cred.Pid)
	if int(cred.Uid) != os.Geteuid() && cred.Uid != 0 {
		return "", fmt.Errorf("process %d is of another user (%d)", pid, cred.Uid)
	}
	if pid <= 0 {
		return "", fmt.Errorf("it is in another namespace, so it cannot be known what it descends from")
	}
	name := ""
	for at, n := pid, 0; at > 0; n++ {
		if at != pid && slices.Contains(guards, at) {
			return "", fmt.Errorf("process %d (%s) descends from a guard (process %d): a server does not answer for a person", pid, name, at)
		}
		comm, parent, err := parentOf(at)
		if err != nil || n > 1000 {
			return "", fmt.Errorf("process %d: it cannot be known what it descends from", pid)
		}
		if at == pid {
			name = comm
		}
		at = parent
	}
	return fmt.Sprintf("process %d (%s) of user %d", pid, name, cred.Uid), nil
}

func credentials(c net.Conn) (*unix.Ucred, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("bug: a %T", c)
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	if e := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		return nil, e
	}
	return cred, err
}

// parentOf returns the name of a process and its parent.
func parentOf(pid int) (name string, parent int, err error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", 0, err
	}
	// pid (name, which may hold anything) state ppid …
	text := string(b)
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return "", 0, fmt.Errorf("bug: no name in %q", text)
	}
	fields := strings.Fields(text[end+1:])
	if len(fields) < 2 {
		return "", 0, fmt.Errorf("bug: no parent in %q", text)
	}
	parent, err = strconv.Atoi(fields[1])
	return Line(text[open+1:end], 32), parent, err
}
