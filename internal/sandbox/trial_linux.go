package sandbox

import "golang.org/x/sys/unix"

// trials returns what this policy must make impossible, as far as it can be tried here.
func (o order) trials(parent int) ([]trial, error) {
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
	return shown(list)
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
