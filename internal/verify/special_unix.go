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
