package sandbox

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/roots"
)

// trial is something that must not be possible any more. Before the restriction it was tried, and was not refused in
// this way: one that is refused anyhow shows nothing.
type trial struct {
	what string
	do   func() error
	want error
}

func (t trial) held() error {
	if err := t.do(); !errors.Is(err, t.want) {
		return fmt.Errorf("trying %s: got %v, want %v", t.what, err, t.want)
	}
	return nil
}

// trials returns what this policy must make impossible, as far as it can be tried here.
func (o order) trials(parent int) ([]trial, error) {
	var list []trial
	if !o.Policy.allows("/") {
		list = append(list, trial{"to list the top directory", func() error {
			fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}, unix.EACCES})
	}
	if o.Level.Landlock >= signals {
		list = append(list, trial{"to signal the guard", func() error { return unix.Kill(parent, 0) }, unix.EPERM})
	}
	list = append(list, trial{"to make a vsock socket", func() error { return trySocket(unix.AF_VSOCK, unix.SOCK_STREAM) }, unix.EAFNOSUPPORT})
	if !o.Policy.Net.All {
		list = append(list, trial{"to make a UDP socket", func() error { return trySocket(unix.AF_INET, unix.SOCK_DGRAM) }, unix.EAFNOSUPPORT})
	}
	if o.Policy.Net.Proxy != 0 {
		list = append(list, trial{"to connect over TCP", tryConnect, unix.EACCES})
	}
	if o.Policy.Net == (Net{}) {
		list = append(list, trial{"to make a TCP socket", func() error { return trySocket(unix.AF_INET, unix.SOCK_STREAM) }, unix.EAFNOSUPPORT})
	}
	shown := list[:0]
	for _, t := range list {
		if err := t.do(); !errors.Is(err, t.want) {
			shown = append(shown, t)
		}
	}
	if len(shown) == 0 {
		return nil, errors.New("nothing that can be tried here is possible before the restriction, so nothing shows whether it holds")
	}
	return shown, nil
}

func trySocket(family, kind int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// tryConnect connects to a port of this machine that nobody is known to serve.
func tryConnect() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}})
}

// allows reports whether a rule lets the directory be listed.
func (p Policy) allows(dir string) bool {
	want, err := os.Stat(dir)
	if err != nil {
		return false
	}
	for _, r := range p.Rules {
		if info, err := os.Stat(r.Path); r.Access&roots.Read != 0 && err == nil && os.SameFile(info, want) {
			return true
		}
	}
	return false
}
