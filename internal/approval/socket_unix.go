//go:build unix

package approval

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxSocket is the longest path of a socket, in bytes, on every system.
const maxSocket = 100

// listen opens a socket for its user alone. Where its path would be too long it lies in a directory of its own.
func listen(dir, name, _ string) (l net.Listener, socket, own string, err error) {
	socket = filepath.Join(dir, name+".sock")
	if len(socket) > maxSocket {
		if own, err = os.MkdirTemp("/tmp", "rootbound-"); err != nil {
			return nil, "", "", err
		}
		socket = filepath.Join(own, "s")
	}
	l, err = net.Listen("unix", socket)
	if err == nil {
		err = os.Chmod(socket, 0o600)
	}
	if err != nil {
		if l != nil {
			l.Close()
		}
		if own != "" {
			os.Remove(own)
		}
		return nil, "", "", err
	}
	return l, socket, own, nil
}

// onlyMine makes sure that a directory is its user's alone.
func onlyMine(dir string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%q is not a directory of yours", dir)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return os.Chmod(dir, 0o700)
	}
	return nil
}

func dial(ctx context.Context, socket string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", socket)
}

// gone reports whether an error of dial says that nobody is there any more.
func gone(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}

// sweep takes away the socket of a guard that is gone, where guards have theirs: what says where it is may say anything.
func sweep(dir, socket string) {
	switch in := filepath.Dir(socket); {
	case in == dir:
		os.Remove(socket)
	case filepath.Base(socket) == "s" && strings.HasPrefix(in, "/tmp/rootbound-"):
		os.Remove(socket)
		os.Remove(in)
	}
}
