package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/roots"
)

// Parts says why nothing can be taken out of what rules open, or nil. Landlock cannot: it takes mounts of the program's own.
// Root makes them where it may, and an ordinary user in a user namespace, where the system lets him.
func Parts() error { return mounts() }

var mounts = sync.OnceValue(func() error {
	if text, err := os.ReadFile("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"); err == nil && strings.TrimSpace(string(text)) == "1" && os.Geteuid() != 0 {
		return errors.New("this system lets no ordinary user mount (kernel.apparmor_restrict_unprivileged_userns)")
	}
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", ":"}, &syscall.ProcAttr{Env: []string{}, Sys: mountNamespace()})
	if err != nil {
		return fmt.Errorf("no mounts of its own can be had here: %w", err)
	}
	for {
		if _, err := syscall.Wait4(pid, nil, 0, nil); !errors.Is(err, syscall.EINTR) {
			return nil
		}
	}
})

// mountNamespace is how a program is started that can mount for itself alone.
func mountNamespace() *syscall.SysProcAttr {
	if os.Geteuid() == 0 {
		return &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	}
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN}, // until they are all dropped
	}
}

// parts takes out what the policy excepts. The directories above become mounts as well, up to the rule that opens them: a
// mount cannot be moved, so nothing else is put in their place.
func (o *order) parts() error {
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return err
	}
	if guards, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", os.Getppid())); err == nil && guards == own {
		return errors.New("bug: the mounts would be everybody's") // where it cannot be read, this is another namespace already
	}
	excepts := slices.SortedFunc(slices.Values(o.Policy.Excepts), func(a, b Except) int { return strings.Compare(a.Path, b.Path) })
	pinned := map[string]bool{}
	for _, e := range excepts {
		for _, dir := range o.Policy.above(e.Path) {
			if !pinned[dir] {
				pinned[dir] = true
				if err := bind(dir, dir); err != nil {
					return err
				}
			}
		}
		if err := e.takeOut(); err != nil {
			return err
		}
	}
	return nil
}

func (e Except) takeOut() error {
	f, err := openRule(e.Path, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return fmt.Errorf("holding back %q: %w", e.Path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("holding back %q: %w", e.Path, err)
	}
	set := uint64(unix.MOUNT_ATTR_RDONLY)
	switch {
	case e.Access&roots.Read != 0:
		err = bind(e.Path, e.Path)
	case info.IsDir():
		err = unix.Mount("tmpfs", fmt.Sprintf("/proc/self/fd/%d", f.Fd()), "tmpfs", unix.MS_NODEV|unix.MS_NOSUID|unix.MS_NOEXEC, "mode=000,size=4k")
	default:
		err = bind("/dev/null", e.Path) // which cannot be opened where there are no devices
		set |= unix.MOUNT_ATTR_NODEV
	}
	if err != nil {
		return fmt.Errorf("holding back %q: %w", e.Path, err)
	}
	on, err := openRule(e.Path, unix.RESOLVE_NO_SYMLINKS) // what is mounted there now
	if err != nil {
		return fmt.Errorf("holding back %q: %w", e.Path, err)
	}
	defer on.Close()
	if err := unix.MountSetattr(int(on.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: set}); err != nil {
		return fmt.Errorf("holding back %q: %w", e.Path, err)
	}
	return nil
}

// bind mounts what is at one path on another, and follows no link.
func bind(from, to string) error {
	source, err := openRule(from, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := openRule(to, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return err
	}
	defer target.Close()
	return unix.Mount(fmt.Sprintf("/proc/self/fd/%d", source.Fd()), fmt.Sprintf("/proc/self/fd/%d", target.Fd()), "", unix.MS_BIND|unix.MS_REC, "")
}
