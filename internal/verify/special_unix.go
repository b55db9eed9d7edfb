//go:build unix

package verify

import "golang.org/x/sys/unix"

func fifo(p *place) error { return unix.Mkfifo(p.in("fifo"), 0o644) }

// socket makes a socket that nobody listens to.
func socket(p *place) error {
	if err := unix.Mknod(p.in("sock"), unix.S_IFSOCK|0o644, 0); err != nil {
		return errSkip("a socket cannot be made here: " + err.Error())
	}
	return nil
}

// device makes a device that reads as zeros without an end. An ordinary user may not.
func device(p *place) error {
	if err := unix.Mknod(p.in("zero"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
		return errSkip("a device cannot be made here: " + err.Error())
	}
	return nil
}
