package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rootbound/rootbound/roots"
)

// trials returns what this policy must make impossible, as far as it can be tried here.
func (o *order) trials(parent int) ([]trial, error) {
	var list []trial
	if !o.Policy.allows("/") {
		list = append(list, trial{"to list the top directory", func() error { return tryList("/") }, unix.EACCES})
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
	list, err := shown(list)
	if o.Level.Parts { // it holds already: nothing can be shown to have been possible
		for _, e := range o.Policy.Excepts {
			if e.Access&roots.Read == 0 {
				list = append(list, trial{fmt.Sprintf("to read %q", e.Path), func() error { return tryRead(e.Path) }, unix.EACCES})
			} else {
				list = append(list, trial{fmt.Sprintf("to write %q", e.Path), func() error { return unix.Access(e.Path, unix.W_OK) }, unix.EROFS})
			}
		}
	}
	return list, err
}

func tryRead(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
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
