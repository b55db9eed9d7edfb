package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/roots"
)

// versions are the configurations by version, the first for version 3. Each forbids everything that its version can: what
// is done on files, the network, and signals to processes that are not restricted.
var versions = []landlock.Config{
	landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8, landlock.V9, landlock.V10, landlock.V11,
}

const oldest = 3

// Rights of the kernel. None is to make a device.
const (
	execFile  = landlock.AccessFSSet(ll.AccessFSExecute)
	readFile  = landlock.AccessFSSet(ll.AccessFSReadFile)
	writeFile = landlock.AccessFSSet(ll.AccessFSWriteFile | ll.AccessFSTruncate)
	readDir   = landlock.AccessFSSet(ll.AccessFSReadDir)
	writeDir  = landlock.AccessFSSet(ll.AccessFSMakeReg | ll.AccessFSMakeDir | ll.AccessFSMakeSym | ll.AccessFSRemoveFile | ll.AccessFSRefer)
	deleteDir = landlock.AccessFSSet(ll.AccessFSRemoveDir)
	unixFile  = landlock.AccessFSSet(ll.AccessFSResolveUnix)
	unixDir   = landlock.AccessFSSet(ll.AccessFSMakeSock)
)

// unixSockets is the version of Landlock from which on it can forbid sockets by their path.
const unixSockets = 9

// Supported returns the level that Restrict would reach, or why it would reach none: an error that is
// errors.ErrUnsupported.
func Supported() (Level, error) {
	version, err := ll.LandlockGetABIVersion()
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return Level{}, fmt.Errorf("this kernel has Landlock switched off (its parameter lsm= does not name it): %w", errors.ErrUnsupported)
	case err != nil:
		return Level{}, fmt.Errorf("this kernel has no Landlock, or a container hides it (%v): %w", err, errors.ErrUnsupported)
	case version < oldest:
		return Level{}, fmt.Errorf("the Landlock of this kernel is too old (%d, and %d is needed): %w", version, oldest, errors.ErrUnsupported)
	}
	const signalsMended = 1 << 1 // of the errata: without it, version 6 lets signals through to threads
	if version >= signals {
		if mended, err := ll.LandlockGetErrata(); err != nil || mended&signalsMended == 0 {
			version = signals - 1
		}
	}
	return Level{Landlock: min(version, oldest+len(versions)-1)}, nil
}

// Restrict confines this process, with all its threads and what it starts, to what the rules allow, for good. It does all
// of it or nothing: the error says why, and is errors.ErrUnsupported where the kernel cannot do it at all. A second call
// narrows further.
func Restrict(rules []Rule) (Level, error) {
	level, err := Supported()
	if err != nil {
		return Level{}, err
	}
	list, done, err := landlockRules(rules, 0, 0, 0)
	if err != nil {
		return Level{}, err
	}
	defer done()
	_, _ = time.Now().Zone() // the zone is read from a file when it is first asked for
	if err := level.config().Restrict(list...); err != nil {
		return Level{}, fmt.Errorf("confining the process: %w", err)
	}
	return level, nil
}

// config forbids exactly what the version can, and is an error on a kernel that cannot.
func (l Level) config() landlock.Config { return versions[l.Landlock-oldest] }

// landlockRules makes the kernel's rules, which hold until done is called. What is writable gets also the rights of files
// and directories that are given. Resolve says, in the words of openat2, how paths are followed.
func landlockRules(rules []Rule, file, dir landlock.AccessFSSet, resolve uint64) (list []landlock.Rule, done func(), err error) {
	var open []*os.File
	done = func() {
		for _, f := range open {
			f.Close()
		}
	}
	for _, r := range rules {
		f, err := openRule(r.Path, resolve)
		if err != nil {
			done()
			return nil, nil, fmt.Errorf("confining the process to %q: %w", r.Path, err)
		}
		open = append(open, f)
		rights, err := rightsOf(f, r, file, dir)
		if err != nil {
			done()
			return nil, nil, fmt.Errorf("confining the process to %q: %w", r.Path, err)
		}
		if rights != 0 {
			list = append(list, landlock.PathAccess(rights, fmt.Sprintf("/proc/self/fd/%d", f.Fd())))
		}
	}
	return list, done, nil
}

// openRule opens what a rule is about, and nothing that takes its place after that.
func openRule(path string, resolve uint64) (*os.File, error) {
	if rest, ok := strings.CutPrefix(path, "/proc/self"); ok { // a link that is always followed
		path = fmt.Sprintf("/proc/%d%s", os.Getpid(), rest)
	}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case errors.Is(err, unix.ELOOP):
			return nil, fmt.Errorf("a link is on the way to it: %w", err)
		case !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN): // something was renamed meanwhile
			return nil, err
		}
	}
}

// rightsOf returns the kernel's rights for a rule: for a file only those that a file can have, or the kernel refuses it.
func rightsOf(f *os.File, r Rule, writableFile, writableDir landlock.AccessFSSet) (landlock.AccessFSSet, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	var rights landlock.AccessFSSet
	add := func(given bool, file, dir landlock.AccessFSSet) {
		if !given {
			return
		}
		rights |= file
		if info.IsDir() {
			rights |= dir
		}
	}
	add(r.Execute, execFile, 0)
	add(r.List, 0, readDir)
	add(r.Access&roots.Read != 0, readFile, readDir)
	add(r.Access&roots.Write != 0, writeFile|writableFile, writeDir|writableDir)
	add(r.Access&roots.Delete != 0, 0, deleteDir)
	return rights, nil
}
