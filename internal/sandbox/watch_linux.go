//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Able returns the level that a watched program has here, or why it cannot be watched: an error that is
// errors.ErrUnsupported.
func (w Watch) Able() (Level, error) {
	if w.Held == nil {
		return Level{Watched: true}, nil
	}
	if w.Held.Net.Proxy != 0 {
		return Level{}, fmt.Errorf("a program that reaches the network through our proxy cannot be watched too: %w", errors.ErrUnsupported)
	}
	level, err := w.Held.Able()
	level.Watched = err == nil
	return level, err
}

// Stage prepares to run the program at path with the arguments args, of which the first is its name, and exactly the
// environment env. The caller starts what it returns, and then calls Confined, or Close when it did not start.
func (w Watch) Stage(path string, args, env []string) (*Stage, error) {
	level, err := w.Able()
	if err != nil {
		return nil, err
	}
	o := order{Level: level, Path: path, Args: args, Env: env}
	if w.Held != nil {
		o.Policy = *w.Held
	}
	s, err := newStage(o, "/proc/self/exe", []string{os.Args[0], Argument})
	if err == nil {
		if level.Parts {
			s.Attr = mountNamespace()
		}
		s.listen = func(fd int) { go watcher{connector{listener: fd}, w.Seen}.serve() }
	}
	return s, err
}

// watch lets everything be done by this thread and what it starts, and the guard be asked about what it watches.
func (o *order) watch() error {
	parent := os.Getppid()
	raw, err := watchFilter()
	if err != nil {
		return fmt.Errorf("writing the filter of system calls: %w", err)
	}
	for _, step := range []step{
		{"giving up new privileges", func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
		{"closing descriptors", closeDescriptors},
		{"watching system calls", func() error { return handListener(raw, true) }},
		{"dying with the guard", func() error { return dieWith(parent) }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// Where the paths of a system call are: the argument that is one, and the one that is the directory that it starts in; -1
// is the working directory.
type pathCall struct{ dir, path int }

const here = -1

var (
	// opens are the calls by which a file is opened, and creates those that change a directory, by its entry.
	opens = map[uint32]pathCall{unix.SYS_OPENAT: {0, 1}, unix.SYS_OPENAT2: {0, 1}}
	runs  = map[uint32]pathCall{unix.SYS_EXECVE: {here, 0}, unix.SYS_EXECVEAT: {0, 1}}
	// truncates change a file by its path.
	truncates = map[uint32]pathCall{unix.SYS_TRUNCATE: {here, 0}}
	changes   = map[uint32][]pathCall{
		unix.SYS_UNLINKAT: {{0, 1}}, unix.SYS_MKDIRAT: {{0, 1}}, unix.SYS_MKNODAT: {{0, 1}}, unix.SYS_SYMLINKAT: {{1, 2}},
		unix.SYS_RENAMEAT: {{0, 1}, {2, 3}}, unix.SYS_RENAMEAT2: {{0, 1}, {2, 3}}, unix.SYS_LINKAT: {{2, 3}},
	}
)

// watchFilter asks about those calls, and about connections.
func watchFilter() ([]bpf.RawInstruction, error) {
	f := program{
		bpf.LoadAbsolute{Off: dataArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: allow},
		bpf.LoadAbsolute{Off: dataNumber, Size: 4},
	}
	for _, calls := range []map[uint32]pathCall{opens, runs, truncates, oldOpens} {
		for number := range calls {
			f.when(number, end(ask))
		}
	}
	for _, calls := range []map[uint32][]pathCall{changes, oldChanges} {
		for number := range calls {
			f.when(number, end(ask))
		}
	}
	for _, number := range []uint32{unix.SYS_CONNECT, unix.SYS_LISTEN, unix.SYS_SENDTO} {
		f.when(number, end(ask))
	}
	return bpf.Assemble(append(f, end(allow)...))
}

// watcher tells of what is asked, and lets it be done. It ends when no process is left that it serves.
type watcher struct {
	connector
	seen func(Access)
}

func (w watcher) serve() {
	w.each(func(n *notification) response {
		for _, a := range w.accesses(n) {
			w.seen(a)
		}
		return response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	})
}

// accesses are what a call comes to, as far as it can be had.
func (w watcher) accesses(n *notification) []Access {
	number := uint32(n.number)
	program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", n.pid))
	var list []Access
	add := func(use Use, path string, err error) {
		if err == nil && path != "" {
			list = append(list, Access{Use: use, Path: path, Program: program})
		}
	}
	open, isOpen := opens[number]
	if !isOpen {
		open, isOpen = oldOpens[number]
	}
	change, isChange := changes[number]
	if !isChange {
		change, isChange = oldChanges[number]
	}
	run, isRun := runs[number]
	switch {
	case isOpen:
		path, err := w.path(n, open)
		if err != nil {
			break
		}
		flags := w.flags(n, number)
		for _, use := range opening(path, flags) {
			if use == Writes && flags&unix.O_CREAT != 0 && !there(path) {
				path = filepath.Dir(path)
			}
			real, err := reachable(path, use)
			add(use, real, err)
		}
	case isRun:
		path, err := w.path(n, run)
		if err == nil {
			path, err = reachable(path, Runs)
		}
		add(Runs, path, err)
	case number == unix.SYS_TRUNCATE:
		path, err := w.path(n, truncates[number])
		if err == nil {
			path, err = reachable(path, Writes)
		}
		add(Writes, path, err)
	case isChange:
		for _, at := range change {
			path, err := w.path(n, at)
			if err == nil {
				path, err = reachable(filepath.Dir(path), Writes)
			}
			add(Writes, path, err)
		}
	case number == unix.SYS_LISTEN:
		list = append(list, Access{Use: Listens, Program: program})
	default:
		address, size := n.args[1], n.args[2]
		if number == unix.SYS_SENDTO {
			address, size = n.args[4], n.args[5]
		}
		if a, ok := w.connection(n, address, size); ok {
			a.Program, a.UDP = program, a.UDP || number == unix.SYS_SENDTO
			list = append(list, a)
		}
	}
	return list
}

// opening says what a file is opened for.
func opening(path string, flags uint64) []Use {
	var list []Use
	info, err := os.Stat(path)
	dir := err == nil && info.IsDir()
	switch mode := flags & unix.O_ACCMODE; {
	case flags&unix.O_PATH != 0:
		return nil // that needs no right
	case dir && flags&unix.O_TMPFILE == unix.O_TMPFILE:
		return []Use{Writes}
	case dir:
		return []Use{Lists}
	case err != nil && flags&unix.O_CREAT == 0:
		return nil
	case mode == unix.O_RDONLY && flags&unix.O_TRUNC == 0 && err == nil:
		return []Use{Reads}
	case mode == unix.O_RDWR && err == nil:
		list = append(list, Reads)
	}
	return append(list, Writes)
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// reachable returns where a path leads, or an error where the user may not do that there.
func reachable(path string, use Use) (string, error) {
	if path == "/proc/self" {
		return path, nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	mode := map[Use]uint32{Reads: unix.R_OK, Lists: unix.R_OK, Writes: unix.W_OK, Runs: unix.X_OK}[use]
	return real, unix.Access(real, mode)
}

// flags are those that a file is opened with.
func (w watcher) flags(n *notification, number uint32) uint64 {
	switch {
	case number == unix.SYS_OPENAT:
		return n.args[2]
	case number == unix.SYS_OPENAT2:
		var how [8]byte // the first member of struct open_how
		w.memory(n, n.args[2], how[:])
		return binary.NativeEndian.Uint64(how[:])
	}
	return oldFlags(number, n.args)
}

// path returns the absolute path that a call names. Of a process's own directory in /proc it is "/proc/self".
func (w watcher) path(n *notification, at pathCall) (string, error) {
	text, err := w.text(n, n.args[at.path])
	if err != nil {
		return "", err
	}
	dir := ""
	if !filepath.IsAbs(text) {
		link := fmt.Sprintf("/proc/%d/cwd", n.pid)
		if at.dir != here && int32(n.args[at.dir]) != unix.AT_FDCWD {
			link = fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[at.dir]))
		}
		if dir, err = os.Readlink(link); err != nil {
			return "", err
		}
		if !filepath.IsAbs(dir) { // no file: what is run from memory, a pipe
			return "", errors.New("it has no path")
		}
	}
	path := filepath.Join(dir, text)
	for _, own := range []string{"/proc/self", "/proc/thread-self", fmt.Sprintf("/proc/%d", n.pid), "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"} {
		if path == own || strings.HasPrefix(path, own+"/") {
			return "/proc/self", nil
		}
	}
	return path, nil
}

// text reads a text that ends with a zero.
func (w watcher) text(n *notification, at uint64) (string, error) {
	var all []byte
	page := uint64(os.Getpagesize())
	for len(all) < unix.PathMax {
		part := make([]byte, page-at%page) // what comes behind may not be there
		got, err := w.memory(n, at, part)
		if err != nil || got == 0 {
			return "", unix.EFAULT
		}
		if i := bytes.IndexByte(part[:got], 0); i >= 0 {
			return string(append(all, part[:i]...)), nil
		}
		all, at = append(all, part[:got]...), at+uint64(got)
	}
	return "", unix.ENAMETOOLONG
}

func (w watcher) memory(n *notification, at uint64, to []byte) (int, error) {
	local := []unix.Iovec{{Base: &to[0], Len: uint64(len(to))}}
	return unix.ProcessVMReadv(int(n.pid), local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(to)}}, 0)
}

// connection reads an address.
func (w watcher) connection(n *notification, at, size uint64) (Access, bool) {
	b := make([]byte, min(size, unix.SizeofSockaddrUnix))
	if at == 0 || len(b) < 2 {
		return Access{}, false
	}
	if got, err := w.memory(n, at, b); err != nil || got != len(b) {
		return Access{}, false
	}
	a := Access{Use: Connects}
	switch family := binary.NativeEndian.Uint16(b); {
	case family == unix.AF_INET && len(b) >= 8:
		a.Address = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:]))
	case family == unix.AF_INET6 && len(b) >= 24:
		a.Address = netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])).Unmap(), binary.BigEndian.Uint16(b[2:]))
	case family == unix.AF_UNIX && len(b) > 2 && b[2] == 0:
		a.Use, a.Path = Sockets, "@"+string(b[3:])
	case family == unix.AF_UNIX && len(b) > 2:
		path := string(b[2:])
		if i := strings.IndexByte(path, 0); i >= 0 {
			path = path[:i]
		}
		if !filepath.IsAbs(path) {
			dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", n.pid))
			if err != nil {
				return Access{}, false
			}
			path = filepath.Join(dir, path)
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil || unix.Access(real, unix.W_OK) != nil {
			return Access{}, false
		}
		a.Use, a.Path = Sockets, real
	default:
		return Access{}, false
	}
	if a.Use == Connects {
		a.UDP = w.datagrams(n)
	}
	return a, true
}

// datagrams reports whether the socket that a call is about is one of datagrams.
func (w watcher) datagrams(n *notification) bool {
	process, err := processOf(n.pid)
	if err != nil {
		return false
	}
	pidfd, err := unix.PidfdOpen(process, 0)
	if err != nil {
		return false
	}
	defer unix.Close(pidfd)
	fd, err := unix.PidfdGetfd(pidfd, int(int32(n.args[0])), 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil && kind == unix.SOCK_DGRAM
}
